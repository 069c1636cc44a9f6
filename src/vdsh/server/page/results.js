// Searching: one call brings the hits and all that is shown about them.

import { ask } from "./api.js";
import { strip, unpack } from "./code.js";
import { $, el, number, plural, quietButton, say, shownScore, showFailure, spinner } from "./dom.js";
import { rank } from "./filters.js";
import { markKey, passage } from "./highlight.js";
import { about, tag } from "./labels.js";
import { announce, asked, found, go, hasQuery, info, on, openDocument, query, setFound, state, STEP } from "./state.js";

const MOST_WORDS = 6; // named in a hit
const SPINNER_AFTER = 300; // milliseconds until a slow answer is shown to be one

let running = new AbortController(); // the search that is under way
let examples = []; // texts to try: those of the store, or once there is a map

// Resolves when the hits are there, or are known not to come.
export async function search() {
  running.abort();
  const { signal } = (running = new AbortController());
  $("note").replaceChildren();
  if (!info.documents) return showEmptyStore();
  if (!hasQuery()) return showStart();
  const waiting = setTimeout(() => {
    $("results").setAttribute("aria-busy", "true");
    $("status").replaceChildren(spinner(), "Searching…");
  }, SPINNER_AFTER);
  try {
    setFound(await ask(...call(), { signal }));
    showHits();
  } catch (error) {
    if (error.name === "AbortError") return;
    clearHits();
    showFailure(error, search);
  } finally {
    clearTimeout(waiting);
    if (running.signal === signal) $("results").removeAttribute("aria-busy");
  }
}

const wanted = () => Math.min(state.k, info.limits.k);

function call() {
  const body = { ...query(), where: state.where, highlight: true };
  const unfinished = state.typing && !state.id;
  if (state.radius !== null) return ["v1/within", { ...body, radius: state.radius, limit: wanted() }];
  return ["v1/search", { ...body, k: wanted(), rank: rank(), unfinished }];
}

export function clearHits() {
  setFound(null);
  $("more").hidden = $("key").hidden = $("fold-key").hidden = true;
  $("rank").hidden = !hasQuery();
  $("hits").replaceChildren();
  $("status").replaceChildren();
  $("results").removeAttribute("aria-busy");
}

function status({ hits, total }) {
  const filtered = state.where.length ? " that pass the filters" : "";
  const best = rank() === "relevance" ? "best" : "nearest";
  if (total === undefined) return hits.length === 1 ? `The ${best} document${filtered}` : `The ${hits.length} ${best} documents${filtered}`;
  const near = state.radius ? ` within ${plural(state.radius, "bit")}` : " with the same code";
  return `${total > hits.length ? `The ${hits.length} nearest of ` : ""}${plural(total, "document")}${near}${filtered}`;
}

function showHits() {
  const { hits, total = info.documents, warning, explanation } = found;
  const said = remarks(found);
  if (said.length) $("note").replaceChildren(el("p", { className: "hint" }, ...said));
  // Where no word of the text is known, the note says so, and filters are not to blame.
  if (!hits.length) return warning && !explanation ? clearHits() : showNothing();
  $("status").replaceChildren(status(found));
  showKey();
  $("hits").replaceChildren(...hits.flatMap((hit, i) => {
    const heading = hit.related && kind(hit) !== kind(hits[i - 1]) ? kind(hit) : "";
    return [...(heading ? [el("li", { className: "between" }, el("h2", {}, heading))] : []), hitCard(hit)];
  }));
  $("more").hidden = hits.length < wanted() || hits.length >= Math.min(info.limits.k, total);
}

// How a hit that lacks what was asked for is related
function kind(hit) {
  if (!hit?.related) return "";
  return hit.words.length ? "With parts of it only" : "Related, without these words";
}

// What words were taken for, and which are in no document
function remarks({ warning, meant, unknown }) {
  if (!meant) return warning ? [warning] : [];
  const others = Object.entries(meant).filter(([typed, word]) => !(state.typing && word.startsWith(typed))); // that one goes on
  const corrected = others.reduce((text, [typed, word]) => replaced(text, typed, word), state.q);
  const rest = unknown.length ? [`In no document: ${unknown.join(", ")}.`] : [];
  if (!others.length) return rest;
  return ["Did you mean ", el("button", { type: "button", className: "meant", onclick: () => go({ q: corrected, typing: false, k: STEP }) }, corrected),
    `? No document has ${others.map(([typed]) => `'${typed}'`).join(", ")}. `, ...rest];
}

function replaced(text, typed, word) {
  const at = text.toLowerCase().indexOf(typed);
  return at < 0 ? word : text.slice(0, at) + word + text.slice(at + typed.length);
}

// What marks mean, and what a score counts
function showKey() {
  const score = el("span", {}, `Score, from 0 to 1: how much of ${state.id ? "its" : "your"} words a document has${info.bits ? ", and how near its bits are" : ""}`);
  $("key").replaceChildren(...markKey(), ...(rank() === "relevance" ? [score] : []));
  $("key").hidden = $("fold-key").hidden = $("rank").hidden = false;
}

// What a hit is ranked by: a score, or the number of differing bits
function badge({ score, distance }, bits) {
  if (score === undefined) {
    return el("div", { className: distance ? "far" : "far same", title: `${distance} of ${bits} bits differ` },
      el("b", {}, distance), el("span", {}, distance === 1 ? "bit" : "bits"));
  }
  return el("div", { className: "far score", title: `A score of ${shownScore(score)}, from 0 to 1` }, el("b", {}, shownScore(score)), el("span", {}, "score"));
}

// Which words it has, and how many bits differ, where those are not what it is ranked by
function reasons({ score, words, related, distance, expected }, bits) {
  if (expected !== undefined) return [el("span", {}, `expected ${expected.toFixed(1)}`)];
  if (score === undefined) return [];
  const more = words.length - MOST_WORDS;
  const named = words.slice(0, MOST_WORDS).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return [...(words.length || related ? [el("span", { className: "has" }, words.length ? `has ${named}` : "none of the words")] : []),
    ...(bits ? [el("span", { className: "differing" }, `${distance} of ${bits} bits differ`)] : [])];
}

function hitCard(hit) {
  const { title } = hit;
  const bits = unpack(found.code);
  const card = el("li", { className: "hit" }, badge(hit, bits.length),
    el("div", {},
      el("h3", {}, el("button", { type: "button", className: "open", title, onclick: () => openDocument(hit.id) }, title)),
      about(hit, ...reasons(hit, bits.length), hit.copies ? el("span", {}, `${hit.copies} more like it`) : null),
      el("p", { className: "snippet" }, ...passage(hit))),
    bits.length ? strip(hit.code, { other: bits, small: true, name: title }) : null);
  card.addEventListener("pointerenter", () => announce("point", hit.id));
  card.addEventListener("pointerleave", () => announce("point", null));
  return card;
}

function showNothing() {
  clearHits();
  const [near, filtered] = [state.radius !== null, state.where.length > 0];
  const sentence = near ? `No document${filtered ? " that passes the filters" : ""} is that near to ${state.id ? "it" : "your text"}.`
    : filtered ? "No document of this store fits all of them." : "Quotes ask for words together, a dash leaves a word out: no document fits all of that.";
  $("hits").replaceChildren(say("li", near ? "Nothing is that near" : filtered ? "Nothing passes these filters" : "Nothing fits", sentence,
    near ? quietButton("Any distance", () => go({ radius: null, k: STEP })) : null,
    filtered ? quietButton("Remove the filters", () => go({ where: [], k: STEP })) : null));
}

function showEmptyStore() {
  clearHits();
  $("hits").replaceChildren(say("li", "This store is empty", "Add documents to it, then come back.",
    el("pre", {}, "vdsh add STORE FOLDER"), quietButton("Look again", () => announce("restart"))));
}

function showStart() {
  clearHits();
  const tries = examples.map(({ text, label }) =>
    el("button", { type: "button", onclick: () => go({ q: text, typing: false, k: STEP }) }, el("span", {}, text), label ? tag(label) : null));
  const start = say("li", `Search ${number(info.documents)} documents`,
    info.bits ? `By words and by meaning: a text becomes ${info.bits} bits that keep what it is about. Documents that fit both come first.`
      : "Documents with your words come first.",
    tries.length ? el("div", { className: "tries" }, el("p", {}, "For example"), ...tries) : null);
  start.classList.add("start");
  $("hits").replaceChildren(start);
}

export function setUpResults() {
  $("more").addEventListener("click", () => go({ k: state.k + STEP }, { replace: true }));
  on("info", () => {
    examples = info.examples.map((text) => ({ text }));
  });
  on("map", ({ points }) => {
    if (!examples.length) examples = points.examples(4);
    if (info.documents && !hasQuery()) showStart();
  });
}

export const searchChanged = (before) => !before || asked(before) !== asked(state);
