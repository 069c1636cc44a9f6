// What is looked at, all of which is in the address, and what is known so far. Whoever wants to
// know when it changes listens to an event: nobody needs to know who listens.

export const STEP = 10; // hits at a time
export const RANKS = ["relevance", "distance", "expected"]; // the first is the usual one

export let info = null; // the answer of /v1/info
export let found = null; // the last answer to a search
export let state = readUrl();

const events = new EventTarget();

export const on = (name, work) => events.addEventListener(name, (event) => work(event.detail));
export const announce = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));

export function setInfo(answer) {
  info = answer;
  announce("info");
}

export function setFound(answer) {
  found = answer;
  announce("found");
}

function whole(text) {
  const value = Number.parseInt(text, 10);
  return Number.isInteger(value) && value >= 0 ? value : null;
}

function readUrl() {
  const given = new URLSearchParams(location.search);
  return {
    store: given.get("store") || "", // "" is the first one
    q: given.get("q") || "",
    typing: false, // whether its last word may go on; not in the address
    id: given.get("id") || "",
    where: given.getAll("where"), // as `vdsh search --where` takes them; the service reads them
    radius: whole(given.get("radius")),
    rank: RANKS.includes(given.get("rank")) ? given.get("rank") : RANKS[0],
    k: Math.max(STEP, whole(given.get("k")) || STEP),
    view: given.get("view") === "map" ? "map" : "search",
    doc: given.get("doc") || "",
    bit: whole(given.get("bit")),
  };
}

function url(of) {
  const parts = new URLSearchParams();
  for (const name of ["store", "q", "id", "doc"]) if (of[name]) parts.set(name, of[name]);
  for (const filter of of.where) parts.append("where", filter);
  for (const name of ["radius", "bit"]) if (of[name] !== null) parts.set(name, of[name]);
  if (of.rank !== RANKS[0]) parts.set("rank", of.rank);
  if (of.k !== STEP) parts.set("k", of.k);
  if (of.view !== "search") parts.set("view", of.view);
  const text = parts.toString();
  return text ? `?${text}` : location.pathname;
}

export function go(changes, { replace = false } = {}) {
  const before = state;
  state = { ...state, ...changes };
  if (url(state) !== url(before)) history[replace ? "replaceState" : "pushState"](null, "", url(state));
  announce("change", before);
}

// Of several stores, the address names the one it is about.
export function nameStore() {
  if (state.store || info.stores.length < 2) return;
  state = { ...state, store: info.store };
  history.replaceState(null, "", url(state));
}

addEventListener("popstate", () => {
  const before = state;
  state = readUrl();
  announce("change", before);
});

// What a search depends on, and what a query is
export const asked = (of) => JSON.stringify([of.q, of.typing, of.id, of.where, of.radius, of.rank, of.k]);
export const query = () => (state.id ? { id: state.id } : { text: state.q });
export const hasQuery = () => Boolean(state.q || state.id);
export const openDocument = (id) => go({ doc: id, bit: null });
