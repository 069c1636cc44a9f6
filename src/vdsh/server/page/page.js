// The page of `vdsh serve`: plain JavaScript, no library, no build step. Text that comes from
// documents only ever becomes text nodes.

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const narrow = matchMedia("(max-width: 899px)");
const SPINNER_AFTER = 300; // milliseconds until a slow answer is shown to be one
const TYPING = 250; // milliseconds without a key until what was typed is searched
const STEP = 10; // hits at a time
const NEIGHBOURS = 8;
const TITLES = ["title", "subject", "name", "headline"];

let info = null; // the answer of /v1/info
let state = readUrl();
let found = null; // the last answer to a search, with the query it belongs to
let running = new AbortController(); // the search that is under way
let searching = Promise.resolve(); // until its hits are there
let explained = null; // why the query has its code

// ---- Elements ---------------------------------------------------------------------------------

function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !name.startsWith("aria")) element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

const CROSS = "m6.5 6.5 11 11m0-11-11 11";
const BACK = "M19 12H5m6-6.5L4.5 12l6.5 6.5";
const NEXT = "m9.5 5.5 6.5 6.5-6.5 6.5";
const PREVIOUS = "M14.5 5.5 8 12l6.5 6.5";

function iconButton(path, label, onclick) {
  return el("button", { type: "button", className: "icon", "aria-label": label, onclick }, icon(path));
}

const number = (value) => value.toLocaleString("en");
const percent = (share) => `${Math.round(100 * share)} %`;
const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

// ---- Asking the service -----------------------------------------------------------------------

class Failure extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function ask(path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem("vdsh-token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    const options = { method: body ? "POST" : "GET", headers, signal };
    response = await fetch(path, body ? { ...options, body: JSON.stringify(body) } : options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "The service does not answer. Is `vdsh serve` still running?");
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return {};
  });
  if (response.ok) return answer;
  if (response.status === 401) askForToken(Boolean(token));
  throw new Failure(response.status, answer.error || `The service answered ${response.status}.`);
}

function askForToken(refused) {
  if ($("token").open) return;
  if (refused) $("token-why").textContent = "That token is not the one this service was started with.";
  $("token-value").value = "";
  $("token").showModal();
}

$("token-form").addEventListener("submit", () => {
  sessionStorage.setItem("vdsh-token", $("token-value").value.trim());
  start();
});

// ---- What is looked at: all of it is in the address ----------------------------------------------

function readUrl() {
  const given = new URLSearchParams(location.search);
  const bit = Number.parseInt(given.get("bit"), 10);
  return {
    q: given.get("q") || "",
    id: given.get("id") || "",
    where: given.getAll("where").map(readFilter).filter(Boolean),
    rank: given.get("rank") === "expected" ? "expected" : "distance",
    k: Math.max(STEP, Number.parseInt(given.get("k"), 10) || STEP),
    view: given.get("view") === "map" ? "map" : "search",
    doc: given.get("doc") || "",
    bit: Number.isInteger(bit) && bit >= 0 ? bit : null,
  };
}

function url(of) {
  const parts = new URLSearchParams();
  for (const name of ["q", "id", "doc"]) if (of[name]) parts.set(name, of[name]);
  for (const filter of of.where) parts.append("where", writeFilter(filter));
  if (of.rank !== "distance") parts.set("rank", of.rank);
  if (of.k !== STEP) parts.set("k", of.k);
  if (of.view !== "search") parts.set("view", of.view);
  if (of.bit !== null) parts.set("bit", of.bit);
  const text = parts.toString();
  return text ? `?${text}` : location.pathname;
}

function go(changes, { replace = false } = {}) {
  const before = state;
  state = { ...state, ...changes };
  if (url(state) !== url(before)) history[replace ? "replaceState" : "pushState"](null, "", url(state));
  show(before);
}

addEventListener("popstate", () => {
  const before = state;
  state = readUrl();
  $("q").value = state.q;
  show(before);
});

const asked = (of) => JSON.stringify([of.q, of.id, of.where, of.rank, of.k]);

function show(before) {
  document.body.dataset.view = state.view;
  document.title = state.q ? `${state.q.slice(0, 60)} – vdsh` : "vdsh";
  for (const button of $("views").children) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  for (const button of $("rank").children) button.setAttribute("aria-pressed", button.dataset.rank === state.rank);
  grow();
  showChips();
  if (!before || asked(before) !== asked(state)) searching = search();
  if (!before || before.doc !== state.doc || before.bit !== state.bit) showPanel(before);
  if (!before || before.view !== state.view) map.resize();
}

// ---- Filters: the same words as `vdsh search --where` ---------------------------------------------

function readFilter(text) {
  const match = /^([^=!<>]+?)\s*(!=|<=|>=|=|<|>)\s*([^]*)$/.exec(text);
  if (match) return match.slice(1);
  try {
    const parts = JSON.parse(text); // a field whose name holds an operator
    return Array.isArray(parts) && parts.length === 3 ? parts.map(String) : null;
  } catch {
    return null;
  }
}

function writeFilter([field, operator, value]) {
  return /[=!<>[]/.test(field) ? JSON.stringify([field, operator, value]) : field + operator + value;
}

function where() {
  const parts = state.where.map(([field, operator, text]) => {
    let value = text;
    if (!["id", "label", "labels"].includes(field)) {
      try {
        value = JSON.parse(text);
      } catch {
        value = text;
      }
    }
    return { [field]: { [operator]: value } };
  });
  return parts.length ? { and: parts } : null;
}

const WORDS = { "=": "is", "!=": "is not", "<=": "≤", ">=": "≥" };

function showChips() {
  const chip = (text, remove) =>
    el("div", { className: "chip" }, el("span", {}, text),
      el("button", { type: "button", "aria-label": `Remove: ${text}`, onclick: remove }, icon(CROSS)));
  const chips = state.where.map(([field, operator, value], i) =>
    chip(`${field} ${WORDS[operator] || operator} ${value}`, () =>
      go({ where: state.where.filter((_, other) => other !== i), k: STEP })));
  if (state.id) chips.unshift(chip(`like ${state.id}`, () => go({ id: "", k: STEP })));
  $("chips").replaceChildren(...chips);
  const labels = state.where.filter(([field, operator]) => field === "label" && operator === "=");
  $("label").value = labels.length === 1 ? labels[0][2] : "";
  map.emphasize(labels.length ? labels.map((filter) => filter[2]) : null);
}

function setLabel(name) {
  const others = state.where.filter(([field, operator]) => field !== "label" || operator !== "=");
  go({ where: name ? [...others, ["label", "=", name]] : others, k: STEP });
}

function setUpFilters() {
  $("label").replaceChildren(el("option", { value: "" }, "All labels"), ...info.labels.map((name) => el("option", { value: name }, name)));
  $("label").hidden = !info.labels.length || info.labels.length > 200;
  const fields = [...(info.labels.length ? ["label"] : []), ...info.fields.filter((name) => !["id", "label", "labels"].includes(name)), "id"];
  $("filter-field").replaceChildren(...fields.map((name) => el("option", { value: name }, name)));
  offerValues();
}

function offerValues() {
  const names = $("filter-field").value === "label" ? info.labels.slice(0, 500) : [];
  $("filter-values").replaceChildren(...names.map((name) => el("option", { value: name })));
  for (const option of $("filter-operator").options) {
    option.disabled = ["label", "id"].includes($("filter-field").value) && !["=", "!="].includes(option.value);
  }
  if ($("filter-operator").selectedOptions[0]?.disabled) $("filter-operator").value = "=";
}

$("filter-field").addEventListener("change", offerValues);
$("label").addEventListener("change", () => setLabel($("label").value));
$("add-filter").addEventListener("click", () => openFilter($("filter-form").hidden));

function openFilter(open) {
  $("filter-form").hidden = !open;
  $("add-filter").setAttribute("aria-expanded", open);
  (open ? $("filter-field") : $("add-filter")).focus();
}

$("filter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const filter = [$("filter-field").value, $("filter-operator").value, $("filter-value").value.trim()];
  $("filter-value").value = "";
  openFilter(false);
  go({ where: [...state.where, filter], k: STEP });
});

$("rank").addEventListener("click", (event) => {
  const { rank } = event.target.dataset;
  if (rank) go({ rank });
});
$("views").addEventListener("click", (event) => {
  const { view } = event.target.dataset;
  if (view) go({ view });
});

// ---- Searching ----------------------------------------------------------------------------------

let typing = 0;

function typed(immediately) {
  clearTimeout(typing);
  const text = $("q").value.trim();
  if (text === state.q) return;
  if (immediately) go({ q: text, id: text ? "" : state.id, k: STEP });
  else typing = setTimeout(() => go({ q: text, id: text ? "" : state.id, k: STEP }, { replace: Boolean(state.q) }), TYPING);
}

function grow() {
  const field = $("q");
  field.style.height = "auto";
  field.style.height = `${Math.min(168, field.scrollHeight)}px`;
  $("clear").hidden = !field.value;
}

$("q").addEventListener("input", () => {
  grow();
  typed(false);
});
$("q").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  typed(true);
});
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  typed(true);
});
$("clear").addEventListener("click", () => {
  $("q").value = "";
  $("q").focus();
  typed(true);
});
$("more").addEventListener("click", () => go({ k: state.k + STEP }, { replace: true }));

const query = () => (state.id ? { id: state.id } : { text: state.q });

async function search() {
  running.abort();
  const { signal } = (running = new AbortController());
  if (!info) return;
  $("note").replaceChildren();
  $("rank").querySelector("[data-rank=expected]").disabled = Boolean(state.id);
  if (!info.documents) return showEmptyStore();
  if (!state.q && !state.id) return showStart();
  const spinner = setTimeout(() => {
    $("results").setAttribute("aria-busy", "true");
    $("status").replaceChildren(el("span", { className: "spinner" }), "Searching…");
  }, SPINNER_AFTER);
  const k = Math.min(state.k, info.limits.k);
  try {
    const rank = state.id ? "distance" : state.rank;
    const answer = await ask("v1/search", { ...query(), k, where: where(), rank }, signal);
    found = { ...answer, asked: asked(state) };
    explained = null;
    showHits(k);
    if (found) afterwards(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    showFailure(error, search);
    clearHits();
  } finally {
    clearTimeout(spinner);
    if (running.signal === signal) $("results").removeAttribute("aria-busy");
  }
}

// What makes hits understandable comes after them, and never holds them up.
async function afterwards(signal) {
  map.mark(found.hits.map((hit) => hit.id));
  placeQuery(signal);
  try {
    explained = await ask("v1/explain", query(), signal);
    showCode();
    if (state.bit !== null) showPanel();
    for (const hit of found.hits) {
      const pair = await ask("v1/explain", { ...query(), other_id: hit.id }, signal);
      $("hits").children[found.hits.indexOf(hit)]?.querySelector(".snippet")
        .replaceChildren(...snippet(hit.text, behind(pair.other, pair.agreement)));
    }
  } catch (error) {
    if (error.name !== "AbortError" && error.status !== 422) showFailure(error, () => afterwards(running.signal));
  }
}

async function placeQuery(signal) {
  if (!map.ready) return;
  try {
    map.place(await ask("v1/map/place", query(), signal));
  } catch (error) {
    if (error.name !== "AbortError") map.place(null);
  }
}

function clearHits(status = "") {
  found = explained = null;
  $("code").hidden = true;
  $("more").hidden = true;
  $("hits").replaceChildren();
  $("status").replaceChildren(status);
  $("results").removeAttribute("aria-busy");
  map.mark([]);
  map.place(null);
}

function showHits(k) {
  const { hits } = found;
  const text = state.where.length ? " that pass the filters" : "";
  $("status").replaceChildren(hits.length === 1 ? `The nearest document${text}` : `The ${hits.length} nearest documents${text}`);
  $("hits").replaceChildren(...hits.map(hitCard));
  $("more").hidden = hits.length < k || k >= Math.min(info.limits.k, info.documents);
  if (found.warning) $("note").replaceChildren(el("p", { className: "hint" }, found.warning));
  showCode();
  if (hits.length) return;
  const { warning } = found;
  clearHits();
  if (warning) return; // no word of the text is known: the note says so
  const clear = el("button", { type: "button", className: "quiet", onclick: () => go({ where: [], k: STEP }) }, "Remove the filters");
  $("hits").replaceChildren(say("Nothing passes these filters", "No document of this store fits all of them.", clear));
}

function hitCard(hit) {
  const { distance } = hit;
  const bits = unpack(found.code);
  const far = el("div", { className: distance ? "far" : "far same", title: `${distance} of ${bits.length} bits differ` },
    el("b", {}, distance), el("span", {}, distance === 1 ? "bit" : "bits"));
  const card = el("li", { className: "hit" }, far,
    el("div", {},
      el("h3", {}, el("button", { type: "button", className: "open", onclick: () => go({ doc: hit.id, bit: null }) }, title(hit))),
      about(hit, hit.expected === undefined ? null : el("span", {}, `expected ${hit.expected.toFixed(1)}`)),
      el("p", { className: "snippet" }, ...snippet(hit.text, new Map())),
      strip(hit.code, { other: bits, small: true, name: title(hit) })));
  card.addEventListener("pointerenter", () => map.point(hit.id));
  card.addEventListener("pointerleave", () => map.point(null));
  return card;
}

function title(document) {
  const named = TITLES.map((name) => document.metadata?.[name]).find((text) => typeof text === "string" && text.trim());
  const line = (named || document.text.slice(0, 400)).replace(/\s+/g, " ").trim() || document.id;
  const most = named ? 110 : 80;
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

function tag(name) {
  const element = el("span", { className: "tag" }, name);
  element.style.setProperty("--dot", colour(name));
  return element;
}

function about(document, ...more) {
  return el("p", { className: "about" }, ...(document.labels || []).slice(0, 4).map(tag), ...more,
    el("span", { className: "mono", title: document.id }, document.id));
}

// ---- Words that matter --------------------------------------------------------------------------

// How much each word of an explained text holds the bits that count; words of both texts come first.
function behind(explanation, agreement = null, most = 14) {
  const weights = new Map(agreement?.shared_words.map(({ word, weight }) => [word, 3 * weight]));
  const counted = agreement && new Set(agreement.agree);
  for (const { bit, words } of explanation.bits) {
    if (counted && !counted.has(bit)) continue;
    for (const { word, weight } of words) if (weight > 0) weights.set(word, (weights.get(word) || 0) + weight);
  }
  return new Map([...weights].sort((a, b) => b[1] - a[1]).slice(0, most));
}

const WORD = /[\p{L}\p{N}\p{M}]+(?:['’]\p{L}+)*/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Extended_Pictographic}]/u;

function marks(text, weights) {
  const places = [];
  for (const match of text.matchAll(WORD)) {
    const word = match[0].toLowerCase().normalize("NFC").replaceAll("’", "'");
    const weight = weights.get(word) ?? weights.get(word.replace(/'s$/, ""));
    if (weight) places.push([match.index, match.index + match[0].length, weight]);
  }
  for (const [word, weight] of weights) {
    if (!UNSPACED.test(word)) continue;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) places.push([at, at + word.length, weight]);
  }
  return places.sort((a, b) => a[0] - b[0]);
}

function highlight(text, weights) {
  const nodes = [];
  const strong = 0.4 * Math.max(0, ...weights.values());
  let end = 0;
  for (const [from, to, weight] of marks(text, weights)) {
    if (from < end) continue;
    nodes.push(text.slice(end, from), el("mark", { className: weight >= strong ? "strong" : "" }, text.slice(from, to)));
    end = to;
  }
  return [...nodes, text.slice(end)];
}

// The stretch of a text with the words that matter most, about two lines of it.
function snippet(text, weights, length = 210) {
  const places = marks(text.slice(0, 50000), weights);
  let best = 0;
  let start = 0;
  for (let i = 0; i < places.length; i++) {
    let sum = 0;
    for (let j = i; j < places.length && places[j][1] <= places[i][0] + length - 30; j++) sum += places[j][2];
    if (sum > best * 1.05) [best, start] = [sum, places[i][0]];
  }
  start = start > 60 ? text.lastIndexOf(" ", start - 20) + 1 : 0;
  const cut = text.slice(start, start + 3 * length).replace(/\s+/g, " ").trim();
  return [start ? "… " : "", ...highlight(cut, weights)];
}

// ---- Codes as strips of bits ----------------------------------------------------------------------

function unpack(hex) {
  return [...hex].flatMap((digit) => [8, 4, 2, 1].map((mask) => (Number.parseInt(digit, 16) & mask ? 1 : 0)));
}

function strip(hex, { other = null, small = false, chances = null, name = "" }) {
  const bits = unpack(hex);
  const differing = other ? bits.map((bit, i) => (bit !== other[i] ? i : -1)).filter((i) => i >= 0) : [];
  const says = other ? `${differing.length} of ${bits.length} bits differ${differing.length ? `: ${differing.join(", ")}` : ""}` : `${bits.length} bits`;
  const root = el("div", { className: "strip", role: "group", "aria-label": `Code${name ? ` of ${name}` : ""}, ${says}` });
  root.classList.toggle("small", small);
  root.classList.toggle("long", bits.length > 32);
  for (let first = 0; first < bits.length; first += 8) {
    root.append(el("div", { className: "byte" }, ...bits.slice(first, first + 8).map((bit, i) => bitButton(first + i, bit, other, chances))));
  }
  return root;
}

function bitButton(i, bit, other, chances) {
  const differs = other && other[i] !== bit;
  const sure = chances && chances[i] !== null ? Math.max(chances[i], 1 - chances[i]) : null;
  const label = `Bit ${i}: ${bit}${differs ? `, yours is ${other[i]}` : ""}${sure === null ? "" : `, ${percent(sure)} sure`}`;
  const button = el("button", { type: "button", className: "bit", tabIndex: i ? -1 : 0, "aria-label": label, title: label, "data-bit": i });
  button.classList.toggle("one", bit === 1);
  button.classList.toggle("differs", Boolean(differs));
  button.classList.toggle("picked", i === state.bit);
  if (sure !== null) button.style.setProperty("--sure", `${Math.round(25 + 150 * (sure - 0.5))}%`);
  return button;
}

function showCode() {
  if (!found) return;
  const bits = unpack(found.code).length;
  const chances = explained?.bits.map((bit) => bit.probability);
  const key = (className, text) => el("span", {}, el("i", { className: `bit ${className}` }), text);
  const sure = explained && explained.confidence !== null ? `${percent(explained.confidence)} sure` : "";
  $("code").replaceChildren(
    el("header", {}, el("h2", {}, state.id ? `Its ${bits} bits` : `Your text as ${bits} bits`),
      el("span", { className: "mono" }, found.code), el("span", { className: "sure" }, sure)),
    strip(found.code, { chances }),
    el("p", { className: "key" }, key("one", "1"), key("", "0"), key("one differs", "differs in a hit"),
      el("span", {}, "Choose a bit to see its words")));
  $("code").hidden = false;
}

addEventListener("click", (event) => {
  const bit = event.target.closest?.("button.bit");
  if (bit) go({ bit: Number(bit.dataset.bit) });
});

addEventListener("keydown", (event) => {
  const bit = event.target.closest?.("button.bit");
  if (!bit) return;
  const bits = [...bit.closest(".strip").querySelectorAll(".bit")];
  const now = bits.indexOf(bit);
  const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: bits.length - 1 }[event.key];
  if (next === undefined || !bits[next]) return;
  event.preventDefault();
  bits[now].tabIndex = -1;
  bits[next].tabIndex = 0;
  bits[next].focus();
});

// ---- When there is nothing to show ------------------------------------------------------------------

function say(heading, sentence, ...more) {
  return el("li", { className: "say" }, el("h2", {}, heading), el("p", {}, sentence), ...more);
}

function showFailure(error, again) {
  if (error.status === 401) return;
  const retry = el("button", { type: "button", className: "quiet", onclick: () => {
    $("note").replaceChildren();
    again();
  } }, "Try again");
  $("note").replaceChildren(el("div", { className: "wrong" }, el("p", {}, error.message), retry));
}

function showEmptyStore() {
  clearHits();
  $("hits").replaceChildren(say("This store is empty", "Add documents to it, then come back.",
    el("pre", {}, "vdsh index MODEL DOCUMENTS --store STORE"),
    el("button", { type: "button", className: "quiet", onclick: start }, "Look again")));
}

function showStart() {
  clearHits();
  const tries = map.some(4).map(({ title, label }) =>
    el("button", { type: "button", onclick: () => {
      $("q").value = title;
      typed(true);
    } }, el("span", {}, title), label ? tag(label) : null));
  const start = say(`Search ${plural(info.documents, "document")} by meaning`,
    `A text becomes ${info.bits} bits that keep what it is about. Documents whose bits differ least are the nearest.`,
    tries.length ? el("div", { className: "tries" }, el("p", {}, "For example"), ...tries) : null);
  start.classList.add("start");
  $("hits").replaceChildren(start);
}

// ---- The panel: a document or a bit -----------------------------------------------------------------

let opener = null; // what had the focus before the panel opened
let reading = new AbortController();

function showPanel(before) {
  for (const bit of document.querySelectorAll(".bit[data-bit]")) bit.classList.toggle("picked", Number(bit.dataset.bit) === state.bit);
  const open = state.doc || state.bit !== null;
  if (!open) return closePanel();
  reading.abort();
  const { signal } = (reading = new AbortController());
  if ($("panel").hidden) opener = document.activeElement;
  const was = before && (before.doc !== state.doc || before.bit !== state.bit);
  (state.bit !== null ? showBit : showDocument)(signal).catch((error) => {
    if (error.name !== "AbortError") fillPanel("", el("h2", { id: "panel-title" }, "This cannot be shown"), el("p", { className: "wrong" }, error.message));
  }).then(() => {
    if (!signal.aborted && was) $("panel").focus({ preventScroll: true });
  });
}

function closePanel() {
  if ($("panel").hidden) return;
  reading.abort();
  $("panel").hidden = true;
  map.select(null);
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

function fillPanel(heading, ...children) {
  const back = state.bit !== null && state.doc ? iconButton(BACK, "Back to the document", () => go({ bit: null })) : null;
  const steps = state.bit === null || !info ? [] : [
    iconButton(PREVIOUS, "Previous bit", () => go({ bit: (state.bit + info.bits - 1) % info.bits }, { replace: true })),
    iconButton(NEXT, "Next bit", () => go({ bit: (state.bit + 1) % info.bits }, { replace: true }))];
  const body = el("div", { className: "body" }, ...children);
  $("panel").replaceChildren(
    el("header", {}, back, el("span", {}, heading), ...steps, iconButton(CROSS, "Close", () => go({ doc: "", bit: null }))), body);
  $("panel").hidden = false;
  return body;
}

addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName)) {
    event.preventDefault();
    go({ view: "search" });
    $("q").focus();
  }
  if (event.key !== "Escape" || $("token").open) return;
  if (!$("filter-form").hidden && $("filter-form").contains(document.activeElement)) openFilter(false);
  else if (state.bit !== null && state.doc) go({ bit: null });
  else if (!$("panel").hidden) go({ doc: "", bit: null });
});

async function showDocument(signal) {
  const id = state.doc;
  const [read] = await Promise.all([ask(`v1/documents/${encodeURIComponent(id)}`, null, signal), searching]);
  signal.throwIfAborted();
  const other = found && unpack(found.code);
  const distance = other && unpack(read.code).filter((bit, i) => bit !== other[i]).length;
  const text = el("div", { className: "text" }, read.text);
  const near = el("ol", { className: "near" }, el("li", {}, el("b"), el("span", {}, "…")));
  const fields = Object.entries(read.metadata);
  const onMap = map.has(id) && narrow.matches ? el("button", { type: "button", className: "quiet", onclick: () => {
    go({ view: "map", doc: "", bit: null });
    map.select(id);
    map.show(id);
  } }, "Show on the map") : null;
  fillPanel("Document",
    el("h2", { id: "panel-title" }, title(read)), about(read),
    el("div", { className: "actions" },
      el("button", { type: "button", className: "quiet", onclick: () => findLike(id) }, "Find documents like this"), onMap),
    el("h3", {}, other ? `Code, ${distance} of ${other.length} bits differ from the query's` : "Code"),
    strip(read.code, { other, name: title(read) }),
    fields.length ? el("h3", {}, "Fields") : null,
    fields.length ? el("dl", { className: "facts-list" }, ...fields.flatMap(([name, value]) =>
      [el("dt", {}, name), el("dd", {}, typeof value === "string" ? value : JSON.stringify(value))])) : null,
    el("h3", {}, "Text"), text, el("h3", {}, "Nearest documents"), near);
  map.select(id);
  map.show(id);
  explainText(id, read, text, signal).catch(() => {}); // highlights are an extra
  const { hits } = await ask("v1/search", { id, k: NEIGHBOURS + 1 }, signal);
  const others = hits.filter((hit) => hit.id !== id).slice(0, NEIGHBOURS);
  near.replaceChildren(...others.map((hit) => el("li", {}, el("b", { title: "differing bits" }, hit.distance),
    el("div", {}, el("button", { type: "button", className: "open", onclick: () => go({ doc: hit.id, bit: null }) }, title(hit)), about(hit)))));
  map.select(id, others.map((hit) => hit.id));
}

function findLike(id) {
  $("q").value = "";
  go({ q: "", id, doc: "", bit: null, view: "search", k: STEP });
}

async function explainText(id, read, text, signal) {
  const pair = found && (state.q || state.id !== id) ? await ask("v1/explain", { ...query(), other_id: id }, signal) : null;
  const weights = pair ? behind(pair.other, pair.agreement) : behind(await ask("v1/explain", { id }, signal));
  text.replaceChildren(...highlight(read.text, weights));
}

function words(list) {
  const most = Math.max(...list.map((word) => Math.abs(word.weight)), 1e-9);
  return el("ul", { className: "words" }, ...list.map(({ word, weight }) => {
    const bar = el("i");
    bar.style.width = `${Math.max(3, (100 * Math.abs(weight)) / most)}%`;
    return el("li", { title: weight.toFixed(3) }, word, bar);
  }));
}

function side(value, list) {
  return el("section", { className: value ? "ones" : "zeros" },
    el("h4", {}, el("i", { className: value ? "bit one" : "bit" }), `push it to ${value}`),
    list.length ? words(list) : el("p", { className: "why" }, "no word does"));
}

function meter(share, what, note) {
  const bar = el("i");
  bar.style.width = percent(share).replace(" ", "");
  return el("div", {}, what, el("div", { className: "meter" }, bar), el("small", {}, note));
}

async function showBit(signal) {
  const { bit } = state;
  const facts = await ask(`v1/explain/bits/${bit}`, null, signal);
  const mine = explained?.bits[bit];
  const text = mine && mine.words.filter((word) => word.weight > 0);
  const health = facts.unused ? "It is the same for nearly all documents, so it tells little."
    : facts.duplicates.length ? `It says the same as bit ${facts.duplicates.join(", ")}.`
    : "It is in use, and no other bit says the same.";
  const produced = facts.decoder_ones ? [el("h3", {}, "Words the model expects"),
    el("div", { className: "sides" },
      el("section", { className: "ones" }, el("h4", {}, el("i", { className: "bit one" }), "where it is 1"), words(facts.decoder_ones.slice(0, 6))),
      el("section", { className: "zeros" }, el("h4", {}, el("i", { className: "bit" }), "where it is 0"), words(facts.decoder_zeros.slice(0, 6))))] : [];
  fillPanel(`Bit ${bit} of ${info.bits}`,
    el("h2", { id: "panel-title" }, `Bit ${bit}`),
    mine ? el("p", { className: "why" }, `In ${state.id ? "the document" : "your text"} it is ${mine.value}`,
      mine.probability === null ? "" : `, ${percent(Math.max(mine.probability, 1 - mine.probability))} sure`,
      text.length ? `, because of ${text.map((word) => word.word).join(", ")}.` : ".") : null,
    el("h3", {}, "Words that"), el("div", { className: "sides" }, side(1, facts.ones), side(0, facts.zeros)),
    ...produced,
    el("h3", {}, "Health"),
    el("div", { className: "health" },
      meter(facts.balance, "Balance", `${percent(facts.balance)} of the documents have a 1`),
      meter(facts.entropy, "Entropy", `${facts.entropy.toFixed(2)} of at most 1 bit`)),
    el("p", { className: "about" }, health));
}

// ---- Colours of labels --------------------------------------------------------------------------------

let hues = new Map();

function setColours(labels) {
  const few = labels.length <= 24;
  hues = new Map(labels.map((name, i) => {
    const hue = few ? (360 * i) / labels.length + 25 : i * 137.508;
    return [name, `oklch(${i % 2 ? 0.7 : 0.6} 0.15 ${(hue % 360).toFixed(1)})`];
  }));
}

const colour = (label) => hues.get(label) || "oklch(0.65 0.02 250)";

// ---- The map ------------------------------------------------------------------------------------------
// Points are drawn once into a layer that is larger than the window; panning moves that layer, so a
// frame costs the same for a hundred points and for fifty thousand. Only where the layer ends, or
// after a zoom, are the points drawn anew.

const MARGIN = 0.3; // how much larger the layer is, on each side
const CELLS = 96; // of the grid that finds the point under the pointer, on each side
const MOST_ZOOM = 60;

class CorpusMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.paint = canvas.getContext("2d");
    this.layer = document.createElement("canvas");
    this.ready = false;
    this.view = { scale: 1, x: 0, y: 0 }; // the point of the map in the middle, and its size
    this.marked = [];
    this.near = [];
    this.pointed = this.selected = this.hovered = -1;
    this.query = this.only = null;
    this.pointers = new Map();
    this.listen();
  }

  load(answer) {
    const n = answer.ids.length;
    Object.assign(this, { n, ids: answer.ids, titles: answer.titles, label: answer.label, labels: answer.labels });
    this.xs = Float32Array.from(answer.x);
    this.ys = Float32Array.from(answer.y, (y) => -y);
    this.rows = new Map(answer.ids.map((id, row) => [id, row]));
    this.order = shuffled(n); // else the labels that come last would cover the others
    this.grid = new Map();
    for (let row = 0; row < n; row++) {
      const cell = this.cell(this.xs[row], this.ys[row]);
      if (this.grid.has(cell)) this.grid.get(cell).push(row);
      else this.grid.set(cell, [row]);
    }
    this.names = this.centres();
    this.chosen = this.only && new Set(this.only.map((name) => this.labels.indexOf(name)));
    this.ready = true;
    this.refresh();
  }

  has(id) {
    return this.ready && this.rows.has(id);
  }

  some(count) {
    if (!this.ready) return [];
    const chosen = [];
    const seen = new Set();
    for (const row of this.order) {
      const title = this.titles[row].replace(/^(re:\s*)+/i, "");
      if (seen.has(this.label[row]) && this.labels.length >= count) continue;
      if (title.length < 18 || title.endsWith("…")) continue;
      seen.add(this.label[row]);
      chosen.push({ title, label: this.labels[this.label[row]] });
      if (chosen.length === count) break;
    }
    return chosen;
  }

  // What is marked on it
  mark(ids) {
    this.marked = this.ready ? ids.map((id) => this.rows.get(id)).filter((row) => row !== undefined) : [];
    this.draw();
  }

  place(at) {
    const point = at && { x: at.x, y: -at.y };
    if (point && (point.x !== this.query?.x || point.y !== this.query?.y)) this.placed = performance.now();
    this.query = point;
    this.draw();
  }

  select(id, near = []) {
    this.selected = id !== null && this.has(id) ? this.rows.get(id) : -1;
    this.near = near.filter((other) => this.has(other)).map((other) => this.rows.get(other));
    this.draw();
  }

  point(id) {
    this.pointed = id !== null && this.has(id) ? this.rows.get(id) : -1;
    this.draw();
  }

  emphasize(labels) {
    const key = JSON.stringify(labels);
    if (key === JSON.stringify(this.only)) return;
    this.only = labels;
    this.chosen = labels && this.labels && new Set(labels.map((name) => this.labels.indexOf(name)));
    for (const button of $("legend").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", Boolean(labels?.includes(button.dataset.label)));
    }
    this.refresh();
  }

  // Where things are: map to screen and back
  get size() {
    return (0.45 * Math.min(this.width, this.height)) * this.view.scale;
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.view.x) * this.size, this.height / 2 + (y - this.view.y) * this.size];
  }

  toMap(px, py) {
    return [this.view.x + (px - this.width / 2) / this.size, this.view.y + (py - this.height / 2) / this.size];
  }

  cell(x, y) {
    const at = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(((value + 1) / 2) * CELLS)));
    return at(x) * CELLS + at(y);
  }

  nearest(px, py, reach) {
    const [x, y] = this.toMap(px, py);
    const within = reach / this.size;
    let best = -1;
    let least = within * within;
    for (const row of this.candidates(x, y, within)) {
      const distance = (this.xs[row] - x) ** 2 + (this.ys[row] - y) ** 2;
      if (distance < least && this.shown(row)) [least, best] = [distance, row];
    }
    return best;
  }

  *candidates(x, y, within) {
    if (within > 0.5) return yield* this.order;
    const step = 2 / CELLS;
    for (let i = x - within; i < x + within + step; i += step) {
      for (let j = y - within; j < y + within + step; j += step) yield* this.grid.get(this.cell(i, j)) || [];
    }
  }

  shown(row) {
    return !this.only || this.chosen.has(this.label[row]);
  }

  // The place of each label's name: where its points are densest
  centres() {
    const counts = this.labels.map(() => new Map());
    const totals = this.labels.map(() => 0);
    const bin = (value) => Math.floor((value + 1) * 10);
    for (let row = 0; row < this.n; row++) {
      const label = this.label[row];
      if (label < 0) continue;
      totals[label]++;
      const key = `${bin(this.xs[row])} ${bin(this.ys[row])}`;
      const sum = counts[label].get(key) || [0, 0, 0];
      counts[label].set(key, [sum[0] + 1, sum[1] + this.xs[row], sum[2] + this.ys[row]]);
    }
    this.totals = totals;
    return counts.map((bins, label) => {
      const [n, x, y] = [...bins.values()].reduce((a, b) => (b[0] > a[0] ? b : a), [0, 0, 0]);
      return { name: this.labels[label], x: x / n, y: y / n, total: totals[label] };
    }).filter((name) => name.total).sort((a, b) => b.total - a.total).slice(0, 40);
  }

  // Drawing
  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !clientHeight) return;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * this.ratio);
    this.canvas.height = Math.round(clientHeight * this.ratio);
    this.layer.width = Math.round(this.canvas.width * (1 + 2 * MARGIN));
    this.layer.height = Math.round(this.canvas.height * (1 + 2 * MARGIN));
    this.refresh();
  }

  refresh() {
    if (!this.ready) return;
    const style = getComputedStyle(this.canvas);
    this.colours = { ink: style.color, ground: style.backgroundColor, accent: style.borderTopColor, muted: style.caretColor };
    this.drawn = null;
    this.draw();
  }

  draw() {
    if (!this.ready || !this.width || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawFrame();
    });
  }

  // Twenty thousand calls of the canvas are slow; writing its pixels is not.
  drawLayer() {
    clearTimeout(this.sharpen);
    const paint = this.layer.getContext("2d");
    const { width, height } = this.layer;
    if (this.image?.width !== width || this.image.height !== height) this.image = paint.createImageData(width, height);
    const pixels = this.image.data;
    new Uint32Array(pixels.buffer).fill(0);
    const radius = Math.min(6, Math.max(1.5, 1.9 * Math.sqrt(this.view.scale) * Math.sqrt(8000 / Math.max(8000, this.n)))) * this.ratio;
    const discs = [0.25, 0.75].flatMap((y) => [0.25, 0.75].map((x) => disc(radius, x, y, width)));
    const inks = [...this.labels, null].map((name) => rgb(colour(name)));
    const grey = rgb(this.colours.muted);
    const size = this.size * this.ratio;
    const left = width / 2 - this.view.x * size;
    const top = height / 2 - this.view.y * size;
    const edge = Math.ceil(radius) + 1;
    for (const dim of this.only ? [true, false] : [false]) {
      for (const row of this.order) {
        if (this.only && this.shown(row) === dim) continue;
        const x = this.xs[row] * size + left;
        const y = this.ys[row] * size + top;
        if (x < edge || y < edge || x >= width - edge || y >= height - edge) continue;
        const [column, line] = [Math.floor(x), Math.floor(y)];
        const shape = discs[(y - line < 0.5 ? 0 : 2) + (x - column < 0.5 ? 0 : 1)];
        const ink = dim ? grey : inks[this.label[row] < 0 ? inks.length - 1 : this.label[row]];
        stamp(pixels, line * width + column, shape, ink, dim ? 0.12 : 0.78);
      }
    }
    paint.putImageData(this.image, 0, 0);
    this.drawn = { ...this.view };
  }

  drawFrame() {
    const { paint, ratio, view } = this;
    if (!this.drawn || this.outgrown()) this.drawLayer();
    const zoomed = view.scale / this.drawn.scale;
    const x = (this.drawn.x - view.x) * this.size * ratio + this.canvas.width / 2;
    const y = (this.drawn.y - view.y) * this.size * ratio + this.canvas.height / 2;
    const [width, height] = [this.layer.width * zoomed, this.layer.height * zoomed];
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    paint.drawImage(this.layer, x - width / 2, y - height / 2, width, height);
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawMarks();
    this.drawNames();
    if (zoomed !== 1) {
      clearTimeout(this.sharpen);
      this.sharpen = setTimeout(() => this.refresh(), 90);
    }
  }

  outgrown() {
    const zoomed = this.view.scale / this.drawn.scale;
    if (zoomed < 0.75 || zoomed > 1.6) return true;
    const slack = (side) => (side * (1 + 2 * MARGIN) * zoomed - side) / 2;
    return Math.abs(this.drawn.x - this.view.x) * this.size > slack(this.width)
      || Math.abs(this.drawn.y - this.view.y) * this.size > slack(this.height);
  }

  drawNames() {
    const { paint } = this;
    const taken = [];
    const centre = this.centrePoint();
    const middle = centre && this.toScreen(...centre);
    paint.font = "600 12px system-ui, sans-serif";
    paint.textAlign = "center";
    paint.textBaseline = "middle";
    paint.lineJoin = "round";
    paint.lineWidth = 4;
    for (const { name, x, y } of this.names) {
      if (this.only && !this.only.includes(name)) continue;
      const text = name.length > 28 ? `${name.slice(0, 27)}…` : name;
      const half = paint.measureText(text).width / 2 + 5;
      let [px, py] = this.toScreen(x, y);
      if (px > 0 && px < this.width) px = Math.max(half, Math.min(this.width - half, px));
      if (middle && Math.abs(px - middle[0]) < half + 10 && Math.abs(py - middle[1]) < 26) py = middle[1] - 30;
      const box = [px - half, py - 10, px + half, py + 10];
      if (px < -half || py < -10 || px > this.width + half || py > this.height + 10) continue;
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      taken.push(box);
      paint.strokeStyle = this.colours.ground;
      paint.globalAlpha = 0.85;
      paint.strokeText(text, px, py);
      paint.globalAlpha = 1;
      paint.fillStyle = this.colours.ink;
      paint.fillText(text, px, py);
    }
  }

  centrePoint() {
    if (this.selected >= 0) return [this.xs[this.selected], this.ys[this.selected]];
    return this.query && [this.query.x, this.query.y];
  }

  drawMarks() {
    const { paint } = this;
    const { ink, ground, accent } = this.colours;
    const ring = (row, radius, line, width) => {
      const [x, y] = this.toScreen(this.xs[row], this.ys[row]);
      paint.beginPath();
      paint.arc(x, y, radius, 0, 7);
      paint.lineWidth = width;
      paint.strokeStyle = line;
      paint.stroke();
    };
    const dot = (row, radius) => {
      const [x, y] = this.toScreen(this.xs[row], this.ys[row]);
      paint.beginPath();
      paint.arc(x, y, radius, 0, 7);
      paint.fillStyle = colour(this.labels[this.label[row]]);
      paint.fill();
    };
    const from = this.centrePoint();
    const others = this.selected >= 0 ? this.near : this.marked;
    paint.lineWidth = 1;
    paint.strokeStyle = accent;
    paint.globalAlpha = 0.35;
    for (const row of from ? others : []) {
      paint.beginPath();
      paint.moveTo(...this.toScreen(...from));
      paint.lineTo(...this.toScreen(this.xs[row], this.ys[row]));
      paint.stroke();
    }
    paint.globalAlpha = 1;
    for (const row of others) {
      dot(row, 4.5);
      ring(row, 5.5, ground, 2.5);
      ring(row, 6, accent, 1.75);
    }
    for (const row of [this.hovered, this.pointed, this.selected]) {
      if (row < 0) continue;
      dot(row, 6.5);
      ring(row, 7.5, ground, 3);
      ring(row, 8.5, ink, 2);
    }
    if (this.query) this.drawQuery();
    if (this.centred) this.drawCross();
  }

  drawQuery() {
    const { paint } = this;
    const [x, y] = this.toScreen(this.query.x, this.query.y);
    const age = (performance.now() - this.placed) / 900;
    if (age < 1 && !calm.matches) {
      paint.beginPath();
      paint.arc(x, y, 10 + 34 * age, 0, 7);
      paint.globalAlpha = 0.6 * (1 - age);
      paint.lineWidth = 2;
      paint.strokeStyle = this.colours.accent;
      paint.stroke();
      paint.globalAlpha = 1;
      this.draw();
    }
    paint.save();
    paint.translate(x, y);
    paint.rotate(Math.PI / 4);
    paint.fillStyle = this.colours.accent;
    paint.strokeStyle = this.colours.ground;
    paint.lineWidth = 3;
    paint.beginPath();
    paint.roundRect(-7, -7, 14, 14, 3);
    paint.stroke();
    paint.fill();
    paint.restore();
  }

  drawCross() {
    const { paint } = this;
    const [x, y] = [this.width / 2, this.height / 2];
    paint.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      paint.moveTo(x + 5 * dx, y + 5 * dy);
      paint.lineTo(x + 15 * dx, y + 15 * dy);
    }
    paint.lineWidth = 1.5;
    paint.strokeStyle = this.colours.ink;
    paint.stroke();
  }

  // Moving
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.view.scale = Math.max(0.6, Math.min(MOST_ZOOM, this.view.scale * factor));
    const [nx, ny] = this.toMap(px, py);
    this.view.x += x - nx;
    this.view.y += y - ny;
    this.draw();
  }

  pan(dx, dy) {
    const kept = (value) => Math.max(-1.2, Math.min(1.2, value));
    this.view.x = kept(this.view.x - dx / this.size);
    this.view.y = kept(this.view.y - dy / this.size);
    this.draw();
  }

  all() {
    this.view = { scale: 1, x: 0, y: 0 };
    this.draw();
  }

  // Bring a document into sight, where the panel does not cover it.
  show(id) {
    if (!this.has(id) || !this.width) return;
    const row = this.rows.get(id);
    const cover = $("panel").hidden || narrow.matches ? 0 : $("panel").offsetWidth;
    const [x, y] = this.toScreen(this.xs[row], this.ys[row]);
    if (x > 30 && y > 30 && x < this.width - cover - 30 && y < this.height - 30) return;
    this.glide(this.xs[row] + cover / 2 / this.size, this.ys[row]);
  }

  glide(x, y) {
    const from = { ...this.view };
    const began = performance.now();
    const step = () => {
      const t = calm.matches ? 1 : Math.min(1, (performance.now() - began) / 300);
      const eased = 1 - (1 - t) ** 3;
      this.view.x = from.x + (x - from.x) * eased;
      this.view.y = from.y + (y - from.y) * eased;
      this.draw();
      if (t < 1 && !this.pointers.size) requestAnimationFrame(step);
    };
    step();
  }

  hover(row, x, y) {
    if (row !== this.hovered) {
      this.hovered = row;
      this.canvas.classList.toggle("pointing", row >= 0);
      this.draw();
    }
    const tip = $("tip");
    tip.hidden = row < 0;
    if (row < 0) return;
    const label = this.labels[this.label[row]];
    tip.replaceChildren(this.titles[row] || this.ids[row], ...(label ? [el("div", {}, tag(label))] : []));
    const left = Math.min(x + 16, this.width - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > this.height ? y - tip.offsetHeight - 12 : y + 18;
    tip.style.transform = `translate(${Math.round(Math.max(8, left))}px, ${Math.round(top)}px)`;
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.travelled = 0;
    });
    canvas.addEventListener("pointermove", (event) => this.ready && this.moved(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => {
        const pressed = this.pointers.delete(event.pointerId);
        canvas.classList.remove("dragging");
        if (!this.ready || !pressed || name === "pointercancel" || this.travelled > 5) return;
        const row = this.nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 20 : 10);
        if (row >= 0) go({ doc: this.ids[row], bit: null });
      });
    }
    canvas.addEventListener("pointerleave", () => this.ready && this.hover(-1));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (this.ready) this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 220), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.ready && this.key(event));
    canvas.addEventListener("focus", () => this.centre(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => this.centre(false));
    document.querySelector(".zoom").addEventListener("click", (event) => {
      const kind = event.target.closest("button")?.dataset.zoom;
      if (!this.ready || !kind) return;
      if (kind === "all") this.all();
      else this.zoom(kind === "in" ? 1.5 : 1 / 1.5);
    });
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  moved(event) {
    const last = this.pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!last) return this.hover(this.nearest(...now, 10), ...now);
    const [dx, dy] = [now[0] - last[0], now[1] - last[1]];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) { // two fingers
      const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      this.zoom(apart(now) / Math.max(1, apart(last)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      this.pan(dx / 2, dy / 2);
    } else this.pan(dx, dy);
    this.pointers.set(event.pointerId, now);
    this.canvas.classList.add("dragging");
    this.hover(-1);
  }

  key(event) {
    const far = 60;
    const moves = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.all();
    else if (event.key === "Enter" && this.hovered >= 0) return go({ doc: this.ids[this.hovered], bit: null });
    else return;
    event.preventDefault();
    this.centre(true);
  }

  // With the keyboard the middle of the map is the pointer.
  centre(on) {
    this.centred = on;
    if (!this.ready) return;
    const [x, y] = [this.width / 2, this.height / 2];
    this.hover(on ? this.nearest(x, y, Infinity) : -1, x, y);
    this.draw();
  }
}

// The pixels of a disc around (x, y) of a pixel, and how much of each it covers.
function disc(radius, x, y, width) {
  const [places, cover] = [[], []];
  const edge = Math.ceil(radius) + 1;
  for (let dy = -edge; dy <= edge; dy++) {
    for (let dx = -edge; dx <= edge; dx++) {
      const covered = Math.min(1, radius + 0.5 - Math.hypot(dx + 0.5 - x, dy + 0.5 - y));
      if (covered <= 0) continue;
      places.push(dy * width + dx);
      cover.push(covered);
    }
  }
  return { places: Int32Array.from(places), cover: Float32Array.from(cover) };
}

// Lay a disc of one colour over what is there.
function stamp(pixels, at, { places, cover }, [red, green, blue], strength) {
  for (let i = 0; i < places.length; i++) {
    const p = 4 * (at + places[i]);
    const over = strength * cover[i];
    const under = (pixels[p + 3] / 255) * (1 - over);
    const all = over + under;
    pixels[p] = (red * over + pixels[p] * under) / all;
    pixels[p + 1] = (green * over + pixels[p + 1] * under) / all;
    pixels[p + 2] = (blue * over + pixels[p + 2] * under) / all;
    pixels[p + 3] = 255 * all;
  }
}

const inks = new Map();

function rgb(name) {
  if (!inks.has(name)) {
    const paint = el("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    paint.fillStyle = name;
    paint.fillRect(0, 0, 1, 1);
    inks.set(name, paint.getImageData(0, 0, 1, 1).data);
  }
  return inks.get(name);
}

function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 1;
  for (let i = n - 1; i > 0; i--) {
    seed = (seed * 48271) % 2147483647;
    const j = seed % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function showLegend() {
  $("legend").hidden = !map.labels.length;
  $("legend").querySelector("ul").replaceChildren(...map.labels.map((name, i) => {
    const dot = tag("");
    dot.style.setProperty("--dot", colour(name));
    return el("li", {}, el("button", { type: "button", "aria-pressed": "false", "data-label": name, title: name,
      onclick: (event) => setLabel(event.currentTarget.getAttribute("aria-pressed") === "true" ? "" : name) },
    dot, el("span", {}, name), el("small", {}, number(map.totals[i]))));
  }));
}

async function loadMap() {
  $("map-empty").hidden = true;
  try {
    const answer = await ask("v1/map");
    setColours(answer.labels.length ? answer.labels : info.labels);
    map.load(answer);
    showLegend();
    $("map-note").textContent = answer.ids.length < info.documents
      ? `${number(answer.ids.length)} of ${plural(info.documents, "document")}` : `${plural(answer.ids.length, "document")}`;
  } catch (error) {
    if (error.status === 401) return;
    const none = error.status === 404;
    $("map-empty").replaceChildren(el("div", { className: "say" }, el("h2", {}, none ? "No map yet" : "The map cannot be shown"),
      el("p", {}, none ? "A map shows every document as a point, near the documents it resembles. It is computed once:" : error.message),
      none ? el("pre", {}, error.message.split(": ").pop()) : null,
      el("button", { type: "button", className: "quiet", onclick: loadMap }, "Look again")));
    $("map-empty").hidden = false;
  }
}

// ---- Light and dark, and the beginning --------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  map.refresh();
}

$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  localStorage.setItem("vdsh-theme", next);
  setTheme(next);
});
dark.addEventListener("change", () => map.refresh());

const map = new CorpusMap($("canvas"));

async function start() {
  $("note").replaceChildren();
  try {
    info = await ask("v1/info");
  } catch (error) {
    return showFailure(error, start);
  }
  $("facts").textContent = `${plural(info.documents, "document")} · ${info.bits} bits · ${info.model.name}`;
  setColours(info.labels);
  setUpFilters();
  await loadMap();
  show(null);
}

setTheme(localStorage.getItem("vdsh-theme"));
$("q").value = state.q;
document.body.dataset.view = state.view;
$("legend").open = false;
start();
