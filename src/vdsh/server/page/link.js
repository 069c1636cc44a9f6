// The link to what is looked at. Browsers lend the clipboard to safe pages only, and to any page
// the old way: copy what is selected.

import { $, el } from "./dom.js";

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = el("textarea", { className: "hidden", value: text });
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("The browser does not copy.");
}

export function setUpLink() {
  let shown = 0;
  $("link").addEventListener("click", async () => {
    const said = await copy(location.href).then(() => "Link copied", () => "Copy the address of this page");
    $("copied").textContent = said;
    clearTimeout(shown);
    shown = setTimeout(() => $("copied").replaceChildren(), 2500);
  });
}
