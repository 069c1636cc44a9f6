// Labels: a colour for each, and the line that says what a document is.

import { el } from "./dom.js";

let hues = new Map();

export function setColours(labels) {
  const few = labels.length <= 24;
  hues = new Map(labels.map((name, i) => {
    const hue = few ? (360 * i) / labels.length + 25 : i * 137.508;
    return [name, `oklch(${i % 2 ? 0.7 : 0.6} 0.15 ${(hue % 360).toFixed(1)})`];
  }));
}

export const colour = (label) => hues.get(label) || "oklch(0.65 0.02 250)";

export function tag(name, text = name) {
  const element = el("span", { className: "tag" }, text);
  element.style.setProperty("--dot", colour(name));
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
