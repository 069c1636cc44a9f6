// Labels: a colour for each, and the line that says what a document is.

import { el } from "./dom.js";

// A colour for each name, and grey for any other
export function palette(names) {
  const few = names.length <= 24;
  const hues = new Map(names.map((name, i) => {
    const hue = few ? (360 * i) / names.length + 25 : i * 137.508;
    return [name, `oklch(${i % 2 ? 0.7 : 0.6} 0.15 ${(hue % 360).toFixed(1)})`];
  }));
  return (name) => hues.get(name) || "oklch(0.65 0.02 250)";
}

export let colour = palette([]);
export const setColours = (labels) => (colour = palette(labels));

export function tag(name, text = name, dot = colour(name)) {
  const element = el("span", { className: "tag" }, text);
  element.style.setProperty("--dot", dot);
  return element;
}

export function about(document, ...more) {
  const { id, title, place, labels } = document;
  const [first, ...rest] = (place || "").split(" > "); // the first heading is often the title
  const where = (first === title ? rest : [first, ...rest]).join(" > ");
  return el("p", { className: "about" }, where ? el("span", { className: "place", title: place }, where) : null,
    ...(labels || []).slice(0, 4).map((name) => tag(name)), ...more,
    id === title ? null : el("span", { className: "mono", title: id }, id));
}
