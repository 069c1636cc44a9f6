// What the columns of a file are: guessed by its first rows, shown with them, and chosen.

import { $, el } from "./dom.js";
import { info } from "./state.js";

const ROLES = { text: "text", title: "title", id: "id", labels: "labels", field: "a field", none: "leave out" };
const NAMES = { id: /^_?id$/i, labels: /^(labels?|category|class|topic|tags?)$/i, title: /^(title|subject|headline|name)$/i };
const SHOWN = 3; // rows
const PROSE = 4; // words in a cell, on average

let roles = new Map(); // by column

function guess(rows, names) {
  const words = (name) => rows.reduce((sum, row) => sum + (String(row[name] ?? "").match(/\p{L}+/gu)?.length || 0), 0) / rows.length;
  const named = (name) => Object.keys(NAMES).find((role) => NAMES[role].test(name) && !(role === "labels" && words(name) > 2 * PROSE));
  const free = names.filter((name) => !named(name));
  const longest = (free.length ? free : names).reduce((best, name) => (words(name) > words(best) ? name : best));
  const isText = (name) => (names.includes("text") ? name === "text" : name === longest || (!named(name) && words(name) >= PROSE));
  const taken = new Set(); // an id, a title or labels once
  return new Map(names.map((name) => {
    const role = isText(name) ? "text" : named(name) || "field";
    const again = taken.has(role) && role !== "text";
    taken.add(role);
    return [name, again ? "field" : role];
  }));
}

export function showColumns(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  roles = names.length ? guess(rows, names) : new Map();
  const choice = (name) => el("select", { "aria-label": `What ${name} is`, onchange: ({ target }) => roles.set(name, target.value) },
    ...Object.entries(ROLES).map(([value, text]) => el("option", { value, selected: roles.get(name) === value }, text)));
  $("columns").replaceChildren(...(rows.length ? [el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name) => el("th", {}, el("span", {}, name), choice(name))))),
    el("tbody", {}, ...rows.slice(0, SHOWN).map((row) => el("tr", {}, ...names.map((name) => el("td", {}, short(row[name] ?? "")))))))] : []));
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

// A cell of a table is a text until it is known what it is.
function read(cell, role) {
  if (role === "labels") return cell.startsWith("[") ? JSON.parse(cell) : cell ? cell.split(/\s*;\s*/) : null;
  return role === "field" && String(Number(cell)) === cell && /\d/.test(cell) ? Number(cell) : cell;
}

const idOf = (value) => value?.rawJSON || (Number.isInteger(value) ? String(value) : value);
const labelOf = (value) => (["number", "boolean"].includes(typeof value) ? String(value) : value);

// A record as a document, as the columns were chosen; its values are typed, or cells of a table.
export function shaped(record, isTyped, ownId) {
  const [found, metadata, texts] = [{ id: ownId }, {}, []];
  for (const [name, given] of Object.entries(record ?? {})) {
    const role = roles.get(name) || (Object.hasOwn(ROLES, name) ? name : "field");
    const value = isTyped ? given : read(given, role);
    const isEmpty = (value ?? "") === "";
    if (role === "text") texts.push(value);
    else if (role === "id") found.id = isEmpty ? ownId : idOf(value);
    else if (role === "labels") found.labels = isEmpty ? null : [value].flat().map(labelOf);
    else if (role === "title") metadata.title = value;
    else if (role === "none") continue;
    else if (name === "vector" && info.model.bits > info.model.bits_of_words) found.vector = value;
    else if (name === "metadata" && value?.constructor === Object) Object.assign(metadata, value);
    else metadata[name] = value;
  }
  if (texts.length) found.text = texts.every((one) => typeof one === "string") ? texts.filter(Boolean).join("\n") : texts[0];
  return { ...found, metadata };
}
