// The panel at the side: its frame, and lists of words that several things in it have.

import { $, BACK, CROSS, el, iconButton, NEXT, PREVIOUS } from "./dom.js";
import { announce, go, info, state } from "./state.js";

let opener = null; // what had the focus before the panel opened

export function fillPanel(heading, ...children) {
  if ($("panel").hidden) opener = document.activeElement;
  const back = state.bit !== null && state.doc ? iconButton(BACK, "Back to the document", () => go({ bit: null })) : null;
  const steps = state.bit === null ? [] : [
    iconButton(PREVIOUS, "Previous bit", () => go({ bit: (state.bit + info.model.bits_of_words - 1) % info.model.bits_of_words }, { replace: true })),
    iconButton(NEXT, "Next bit", () => go({ bit: (state.bit + 1) % info.model.bits_of_words }, { replace: true }))];
  $("panel").replaceChildren(
    el("header", {}, back, el("span", {}, heading), ...steps, iconButton(CROSS, "Close", () => go({ doc: "", bit: null }))),
    el("div", { className: "body" }, ...children));
  $("panel").hidden = false;
}

export function closePanel() {
  if ($("panel").hidden) return;
  $("panel").hidden = true;
  announce("select", null);
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

export const heading = (text) => el("h2", { id: "panel-title" }, text);

export function words(list) {
  const most = Math.max(...list.map((word) => Math.abs(word.weight)), 1e-9);
  return el("ul", { className: "words" }, ...list.map(({ word, weight }) => {
    const bar = el("i");
    bar.style.width = `${Math.max(3, (100 * Math.abs(weight)) / most)}%`;
    return el("li", { title: weight.toFixed(3) }, word, bar);
  }));
}
