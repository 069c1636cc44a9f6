// What narrows a search down: filters in the words of `vdsh search --where`, a radius, the rank.

import { $, CROSS, el, icon, plural } from "./dom.js";
import { go, info, on, state, STEP } from "./state.js";

const LABEL = "label="; // filters that the list of labels sets
const RADII = [0, 1, 2, 3, 4, 6, 8, 12, 16];

const chosenLabels = () => state.where.filter((text) => text.startsWith(LABEL)).map((text) => text.slice(LABEL.length));

function setLabel(name) {
  const others = state.where.filter((text) => !text.startsWith(LABEL));
  go({ where: name ? [...others, LABEL + name] : others, k: STEP });
}

export function toggleFilter(text) {
  const others = state.where.filter((other) => other !== text);
  go({ where: others.length < state.where.length ? others : [...others, text], k: STEP });
}

// Take one of several filters, instead of the others; or none, where it was taken.
export function chooseFilter(text, all) {
  const others = state.where.filter((other) => !all.includes(other));
  go({ where: state.where.includes(text) ? others : [...others, text], k: STEP });
}

function chip(text, remove) {
  return el("div", { className: "chip" }, el("span", {}, text),
    el("button", { type: "button", "aria-label": `Remove: ${text}`, onclick: remove }, icon(CROSS)));
}

const radiusText = (radius) => (radius ? `Within ${plural(radius, "bit")}` : "Same code");

function showTools() {
  const chips = state.where.map((text) =>
    chip(text, () => toggleFilter(text)));
  if (state.id) chips.unshift(chip(`like ${state.id}`, () => go({ id: "", k: STEP })));
  $("chips").replaceChildren(...chips);
  const labels = chosenLabels();
  $("label").value = labels.length === 1 ? labels[0] : "";
  const radii = [...new Set([...RADII, ...(state.radius === null ? [] : [state.radius])])].sort((a, b) => a - b);
  $("radius").replaceChildren(el("option", { value: "" }, "Any distance"),
    ...radii.map((radius) => el("option", { value: radius }, radiusText(radius))));
  $("radius").value = state.radius ?? "";
  $("radius").classList.toggle("set", state.radius !== null);
  for (const button of $("rank").children) {
    button.setAttribute("aria-pressed", button.dataset.rank === rank());
    button.disabled = button.dataset.rank !== "distance" && state.radius !== null;
  }
}

// Radii know distances only.
export const rank = () => (state.radius === null ? state.rank : "distance");

function offerFields() {
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

// What a filter makes of a value that was typed: JSON, or a text
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// A field whose name could be mistaken for a comparison is written as JSON.
export function written(field, operator, value) {
  if (/[=!<>{]/.test(field)) return JSON.stringify({ [field]: { [operator]: value } });
  const plain = field === "label" || read(String(value)) === value;
  return field + operator + (plain ? value : JSON.stringify(value));
}

export function openFilter(open) {
  $("filter-form").hidden = !open;
  $("add-filter").setAttribute("aria-expanded", open);
  (open ? $("filter-field") : $("add-filter")).focus();
}

export function setUpFilters() {
  on("info", offerFields);
  on("change", showTools);
  $("filter-field").addEventListener("change", offerValues);
  $("label").addEventListener("change", () => setLabel($("label").value));
  $("radius").addEventListener("change", () => go({ radius: $("radius").value === "" ? null : Number($("radius").value), k: STEP }));
  $("add-filter").addEventListener("click", () => openFilter($("filter-form").hidden));
  $("filter-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const filter = written($("filter-field").value, $("filter-operator").value, read($("filter-value").value.trim()));
    $("filter-value").value = "";
    openFilter(false);
    go({ where: [...state.where, filter], k: STEP });
  });
  $("rank").addEventListener("click", (event) => {
    if (event.target.dataset.rank) go({ rank: event.target.dataset.rank });
  });
}
