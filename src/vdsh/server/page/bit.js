// A bit in the panel: the words that set it, the words the model expects, and its health.

import { ask } from "./api.js";
import { el, percent } from "./dom.js";
import { fillPanel, heading, words } from "./panel.js";
import { found, info, state } from "./state.js";

export async function showBit(signal) {
  const { bit } = state;
  const facts = await ask(`v1/explain/bits/${bit}`, null, { signal });
  const mine = found?.explanation?.bits[bit];
  const produced = facts.decoder_ones ? [el("h3", {}, "Words the model expects"), el("div", { className: "sides" },
    side(1, "where it is 1", facts.decoder_ones.slice(0, 6)), side(0, "where it is 0", facts.decoder_zeros.slice(0, 6)))] : [];
  fillPanel(`Bit ${bit} of ${info.bits}`, heading(`Bit ${bit}`), mine ? reason(mine) : null,
    el("h3", {}, "Words that"), el("div", { className: "sides" }, side(1, "push it to 1", facts.ones), side(0, "push it to 0", facts.zeros)),
    ...produced,
    el("h3", {}, "Health"),
    el("div", { className: "health" },
      meter(facts.balance, "Balance", `${percent(facts.balance)} of the documents have a 1`),
      meter(facts.entropy, "Entropy", `${facts.entropy.toFixed(2)} of at most 1 bit`)),
    el("p", { className: "about" }, health(facts)));
}

function reason({ value, probability, words: behind }) {
  const because = behind.filter((word) => word.weight > 0).map((word) => word.word);
  const share = probability === null ? null : Math.max(probability, 1 - probability);
  return el("p", { className: "why" }, `In ${state.id ? "the document" : "your text"} it is ${value}`,
    share === null ? "" : `, ${percent(share)} sure (in ${Math.round(10 * share)} of 10 draws of the model it would be ${value})`,
    because.length ? `, because of ${because.join(", ")}.` : ".");
}

function side(value, text, list) {
  return el("section", { className: value ? "ones" : "zeros" },
    el("h4", {}, el("i", { className: value ? "bit one" : "bit" }), text),
    list.length ? words(list) : el("p", { className: "why" }, "no word does"));
}

function meter(share, what, note) {
  const bar = el("i");
  bar.style.width = percent(share).replace(" ", "");
  return el("div", {}, what, el("div", { className: "meter" }, bar), el("small", {}, note));
}

function health({ unused, duplicates }) {
  if (unused) return "It is the same for nearly all documents, so it tells little.";
  if (duplicates.length) return `It says the same as bit ${duplicates.join(", ")}.`;
  return "It is in use, and no other bit says the same.";
}
