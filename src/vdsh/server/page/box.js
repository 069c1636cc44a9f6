// The search field: what is typed is searched when the hands rest, or at once with Enter.

import { $ } from "./dom.js";
import { go, on, state, STEP } from "./state.js";

const RESTING = 500; // milliseconds without a key

let typing = 0;

function take({ replace = false } = {}) {
  clearTimeout(typing);
  const text = $("q").value.trim();
  if (text !== state.q) go({ q: text, id: text ? "" : state.id, k: STEP }, { replace });
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
    clearTimeout(typing);
    typing = setTimeout(() => take({ replace: Boolean(state.q) }), RESTING);
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
