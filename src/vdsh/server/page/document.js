// A document in the panel: its code against the query's, its fields, its text, what is near it.

import { ask, Failure } from "./api.js";
import { strip, unpack } from "./code.js";
import { el, narrow, quietButton, shownScore } from "./dom.js";
import { highlight, markKey } from "./highlight.js";
import { about } from "./labels.js";
import { isOnMap } from "./map.js";
import { fillPanel, heading } from "./panel.js";
import { announce, go, hasQuery, openDocument, query, state, STEP } from "./state.js";

const NEIGHBOURS = 8;

export async function showDocument(signal) {
  const id = state.doc;
  const look = (asked) => ask("v1/search", { ...asked, where: { id }, k: 1, highlight: true }, { signal });
  const mine = hasQuery() ? await look(query()) : { hits: [] }; // not found where it lacks a phrase
  const hit = mine.hits[0] || (await look({ id })).hits[0];
  if (!hit) throw new Failure(404, `There is no document '${id}'.`);
  const near = el("ol", { className: "near" }, el("li", {}, el("b"), el("span", {}, "…")));
  fillPanel("Document", ...contents(hit, mine.hits.length ? unpack(mine.code) : null), el("h3", {}, "Documents like it"), near);
  announce("select", { id });
  const others = await neighbours(id, signal);
  near.replaceChildren(...others.map((hit) => el("li", {}, el("b", { title: "score, from 0 to 1" }, shownScore(hit.score)),
    el("div", {}, el("button", { type: "button", className: "open", onclick: () => openDocument(hit.id) }, hit.title), about(hit)))));
  announce("select", { id, near: others.map((hit) => hit.id) });
}

async function neighbours(id, signal) {
  const { hits } = await ask("v1/search", { id, k: NEIGHBOURS + 1, highlight: true }, { signal });
  return hits.filter((hit) => hit.id !== id).slice(0, NEIGHBOURS);
}

function contents(hit, other) {
  const fields = Object.entries(hit.metadata);
  const value = (of) => (typeof of === "string" ? of : JSON.stringify(of));
  return [
    heading(hit.title), about(hit),
    el("div", { className: "actions" }, quietButton("Find documents like this", () => findLike(hit.id)),
      narrow.matches && isOnMap(hit.id) ? quietButton("Show on the map", () => showOnMap(hit.id)) : null),
    ...(hit.code ? [el("h3", {}, other ? `Code, ${hit.distance} of ${other.length} bits differ from the query's` : "Code"),
      strip(hit.code, { other, name: hit.title })] : []),
    fields.length ? el("h3", {}, "Fields") : null,
    fields.length ? el("dl", { className: "facts-list" }, ...fields.flatMap(([name, of]) => [el("dt", {}, name), el("dd", {}, value(of))])) : null,
    el("h3", {}, "Text"), other ? el("p", { className: "key" }, ...markKey()) : null,
    el("div", { className: "text" }, ...highlight(hit.text, other ? hit.marks : []))];
}

const findLike = (id) => go({ q: "", id, doc: "", bit: null, view: "search", k: STEP });

function showOnMap(id) {
  go({ view: "map", doc: "", bit: null });
  announce("select", { id });
}
