// The search field: what is typed is searched when the hands rest, or at once with Enter.

import { $ } from "./dom.js";
import { go, on, state, STEP } from "./state.js";

const RESTING = 500; // milliseconds without a key

let resting = 0;

// `replace` in the history; null where a key says that the text is whole
function take(replace = null) {
  clearTimeout(resting);
  const text = $("q").value.trim();
  const typing = replace !== null && !/\s$/.test($("q").value); // its last word may go on
  if (text !== state.q || (state.typing && !typing)) go({ q: text, typing, id: text ? "" : state.id, k: STEP }, { replace });
}

function grow() {
  const field = $("q");
  $("clear").hidden = !field.value; // first: it takes room from the text
  field.style.height = "auto";
  field.style.height = `${Math.min(168, field.scrollHeight)}px`;
}

export function setUpBox() {
  $("q").value = state.q;
  on("change", (before) => {
    const other = before && (before.q !== state.q || before.id !== state.id); // else it is being typed
    if (other && $("q").value.trim() !== state.q) $("q").value = state.q;
    grow();
  });
  $("q").addEventListener("input", () => {
    grow();
    clearTimeout(resting);
    resting = setTimeout(() => take(Boolean(state.q)), RESTING);
  });
  $("q").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    take();
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    take();
  });
  $("clear").addEventListener("click", () => {
    $("q").value = "";
    $("q").focus();
    take();
  });
}
