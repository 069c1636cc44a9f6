// Words that matter, marked where the service says they are. It counts characters, JavaScript
// counts halves of those beyond the first 65,536.

import { el } from "./dom.js";
import { info, state } from "./state.js";

function cutter(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (from, to) => text.slice(from, to);
  const characters = Array.from(text);
  return (from, to) => characters.slice(from, to).join("");
}

const reason = (asked) => (asked ? `A word of ${state.id ? "that document" : "your text"}` : "A word behind bits that both codes share");

// What the two kinds of marks mean
export function markKey() {
  const mark = (asked, meaning) => el("span", {}, el("mark", { className: asked ? "asked" : "" }, "word"), meaning);
  return [mark(true, state.id ? "of that document" : "you typed"), ...(info.bits ? [mark(false, "behind shared bits")] : [])];
}

// A stretch of a text, as nodes; words of the query are marked apart from those that hold bits.
export function highlight(text, marks, [from, to] = [0, Infinity]) {
  const cut = cutter(text);
  const nodes = [];
  let end = from;
  for (const [start, stop, asked] of marks) {
    if (start < end || stop > to) continue;
    nodes.push(cut(end, start), el("mark", { className: asked ? "asked" : "", title: reason(asked) }, cut(start, stop)));
    end = stop;
  }
  return [...nodes, cut(end, to)];
}

// The passage; a title or heading that it begins with stands above it already.
export function passage(hit) {
  const [start, to] = hit.span;
  const text = cutter(hit.text)(start, to);
  const signs = /^[#\s]*/.exec(text)[0].length;
  const said = [hit.title, ...(hit.place || "").split(" > ")].find((one) => one && text.slice(signs).split("\n")[0].trim() === one);
  const from = said ? start + signs + Array.from(said).length : start;
  return [start ? "… " : "", ...highlight(hit.text, hit.marks, [from, to]), to < hit.text.length ? " …" : ""];
}
