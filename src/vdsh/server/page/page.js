// The page of `vdsh serve`: plain JavaScript, no library, no build step. `state` says what is looked
// at; this file starts, and shows what the state says whenever it changes.

import { ask } from "./api.js";
import { setUpBox } from "./box.js";
import { showBit } from "./bit.js";
import { pickBit } from "./code.js";
import { showDocument } from "./document.js";
import { $, el, plural, showFailure } from "./dom.js";
import { setUpFacets } from "./facets.js";
import { openFilter, setUpFilters } from "./filters.js";
import { setUpFolds } from "./fold.js";
import { setColours } from "./labels.js";
import { setUpLink } from "./link.js";
import { loadMap, setUpMap } from "./map.js";
import { closePanel, fillPanel, heading } from "./panel.js";
import { clearHits, search, searchChanged, setUpResults } from "./results.js";
import { announce, found, go, hasQuery, info, nameStore, on, setInfo, state, STEP } from "./state.js";
import { setUpToken } from "./token.js";
import { setUpUpload } from "./upload.js";

let searching = Promise.resolve(); // until the hits are there
let starting = 0; // the last of several starts counts
let reading = new AbortController(); // what the panel waits for

async function start() {
  const mine = (starting += 1);
  $("note").replaceChildren();
  try {
    const answer = await ask("v1/info");
    if (mine !== starting) return; // another store was chosen meanwhile
    setInfo(answer);
    nameStore();
  } catch (error) {
    return mine === starting && showFailure(error, start);
  }
  $("facts").textContent = [plural(info.documents, "document"), ...(info.bits ? [`${info.bits} bits`, info.model.name] : [])].join(" · ");
  $("plain").hidden = Boolean(info.bits || !info.documents);
  $("facts").title = info.words || "";
  setColours(info.labels);
  announce("change", null);
  await searching; // what was asked for comes first, also on a slow line
  if (info.bits) loadMap();
}

function show(before) {
  document.body.dataset.view = info?.bits === 0 ? "search" : state.view; // no codes, no map
  document.body.classList.toggle("asked", hasQuery());
  document.title = state.q ? `${state.q.slice(0, 60)} – vdsh` : "vdsh";
  for (const button of $("views").children) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  if (before && before.store !== state.store) {
    closePanel();
    clearHits();
    return start();
  }
  if (!info) return;
  const other = searchChanged(before);
  if (other) searching = search();
  const turned = !before || before.doc !== state.doc || before.bit !== state.bit;
  if (turned || (other && state.doc)) showPanel(before && turned);
}

async function showPanel(focus = false) {
  pickBit();
  reading.abort();
  const { signal } = (reading = new AbortController());
  if (!state.doc && state.bit === null) return closePanel();
  try {
    await (state.bit === null ? showDocument : showBit)(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    fillPanel("", heading("This cannot be shown"), el("p", { className: "wrong" }, error.message));
  }
  if (focus && !signal.aborted) $("panel").focus({ preventScroll: true });
}

// Light and dark follow the system until one is chosen.
function setUpTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const chosen = localStorage.getItem("vdsh-theme");
  if (chosen) root.dataset.theme = chosen;
  dark.addEventListener("change", () => announce("theme"));
  $("theme").addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("vdsh-theme", root.dataset.theme);
    announce("theme");
  });
}

// Of several stores one is chosen; words go along, filters do not.
function setUpStores() {
  on("info", () => {
    const { store, stores } = info;
    $("store").replaceChildren(...stores.map((name) => el("option", { selected: name === store }, name)));
    document.body.classList.toggle("several", stores.length > 1);
  });
  $("store").addEventListener("change", () => go({ store: $("store").value, id: "", where: [], doc: "", bit: null, k: STEP }));
}

addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName)) {
    event.preventDefault();
    go({ view: "search" });
    $("q").focus();
  }
  if (event.key !== "Escape" || $("token").open || $("upload").open) return;
  if (!$("filter-form").hidden && $("filter-form").contains(document.activeElement)) openFilter(false);
  else if (state.bit !== null && state.doc) go({ bit: null });
  else if (!$("panel").hidden) go({ doc: "", bit: null });
});

$("views").addEventListener("click", (event) => {
  if (event.target.dataset.view) go({ view: event.target.dataset.view });
});

on("change", show);
for (const setUp of [setUpTheme, setUpFolds, setUpFacets, setUpBox, setUpFilters, setUpResults, setUpMap, setUpLink, setUpToken, setUpStores, setUpUpload]) setUp();
on("found", () => found && state.bit !== null && showPanel()); // which of the query's words set the bit
on("restart", start);
show(null);
start();
