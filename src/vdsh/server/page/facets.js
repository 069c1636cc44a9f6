// Values of labels and small fields beside the hits, with how many documents have them.

import { ask } from "./api.js";
import { $, el, number } from "./dom.js";
import { toggleFilter, written } from "./filters.js";
import { isOpen } from "./fold.js";
import { tag } from "./labels.js";
import { hasQuery, on, state } from "./state.js";

let shown = ""; // for which store and filters
let asking = new AbortController();

function value(field, { value, count }) {
  const filter = written(field, "=", value);
  const chosen = state.where.includes(filter);
  return el("li", {}, el("button", { type: "button", "aria-pressed": String(chosen), onclick: () => toggleFilter(filter) },
    field === "label" ? tag(value, "") : null, el("span", {}, String(value)), el("small", {}, number(count))));
}

async function show() {
  const wanted = JSON.stringify([state.store, state.where]);
  $("facets").hidden = !hasQuery() || !isOpen("facets");
  if ($("facets").hidden || wanted === shown) return;
  asking.abort();
  const { signal } = (asking = new AbortController());
  // Hits are what was asked for: where counts fail, there are none.
  const { facets } = await ask("v1/facets", { where: state.where }, { signal }).catch(() => ({ facets: [] }));
  if (signal.aborted) return;
  shown = wanted;
  $("facets").replaceChildren(...facets.map(({ field, values }) =>
    el("section", {}, el("h2", {}, field), el("ul", {}, ...values.map((one) => value(field, one))))));
}

export function setUpFacets() {
  on("found", show);
  on("folded", show);
  on("info", () => (shown = "")); // documents may have come
}
