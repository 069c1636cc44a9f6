// Words that matter, marked where the service says they are. It counts characters, JavaScript
// counts halves of those beyond the first 65,536.

import { el } from "./dom.js";

function cutter(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (from, to) => text.slice(from, to);
  const characters = Array.from(text);
  return (from, to) => characters.slice(from, to).join("");
}

// A stretch of a text, as nodes; a word of the query is marked more strongly.
export function highlight(text, marks, [from, to] = [0, Infinity]) {
  const cut = cutter(text);
  const nodes = [];
  let end = from;
  for (const [start, stop, asked] of marks) {
    if (start < end || stop > to) continue;
    const title = asked ? "A word of the query" : "A word behind the bits that both codes share";
    nodes.push(cut(end, start), el("mark", { className: asked ? "asked" : "", title }, cut(start, stop)));
    end = stop;
  }
  return [...nodes, cut(end, to)];
}

export function passage(hit) {
  const [from, to] = hit.passage;
  return [from ? "… " : "", ...highlight(hit.text, hit.marks, [from, to]), to < hit.text.length ? " …" : ""];
}
