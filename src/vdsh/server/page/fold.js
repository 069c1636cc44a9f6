// What folds away, so that hits come first; this browser remembers it.

import { $, narrow } from "./dom.js";
import { announce, info, on } from "./state.js";

const key = (name) => `vdsh-${name}`;
const AT_FIRST = { // whether it is open until one has chosen
  bits: () => false,
  key: () => false,
  map: () => info.map,
  facets: () => !narrow.matches && !isOpen("map"),
};

export const isOpen = (name) => (localStorage.getItem(key(name)) ?? String(AT_FIRST[name]())) === "true";

function show() {
  document.body.classList.toggle("no-codes", !info.bits);
  for (const name of Object.keys(AT_FIRST)) {
    document.body.classList.toggle(`with-${name}`, isOpen(name));
    $(`fold-${name}`).setAttribute("aria-expanded", isOpen(name));
  }
  announce("folded");
}

export function setUpFolds() {
  on("info", show);
  for (const name of Object.keys(AT_FIRST)) {
    $(`fold-${name}`).addEventListener("click", () => {
      localStorage.setItem(key(name), !isOpen(name));
      show();
    });
  }
  $("legend").open = localStorage.getItem(key("legend")) === "true";
  $("legend").addEventListener("toggle", () => localStorage.setItem(key("legend"), $("legend").open));
}
