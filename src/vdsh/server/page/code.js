// Codes as strips of bits.

import { $, el, percent } from "./dom.js";
import { found, go, info, on, state } from "./state.js";

export function unpack(hex) {
  return [...hex].flatMap((digit) => [8, 4, 2, 1].map((mask) => (Number.parseInt(digit, 16) & mask ? 1 : 0)));
}

export function strip(hex, { other = null, small = false, chances = null, name = "" }) {
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
  const sure = (chances?.[i] ?? null) !== null ? Math.max(chances[i], 1 - chances[i]) : null;
  const label = `Bit ${i}: ${bit}${differs ? `, yours is ${other[i]}` : ""}${sure === null ? "" : `, ${percent(sure)} sure`}`;
  const button = i < info.model.bits_of_words
    ? el("button", { type: "button", className: "bit", tabIndex: i ? -1 : 0, "aria-label": label, title: label, "data-bit": i })
    : el("span", { className: "bit", title: `${label}, of the vector: no words stand behind it` });
  button.classList.toggle("one", bit === 1);
  button.classList.toggle("differs", Boolean(differs));
  button.classList.toggle("picked", i === state.bit);
  if (sure !== null) button.style.setProperty("--sure", `${Math.round(25 + 150 * (sure - 0.5))}%`);
  return button;
}

// How sure a code is, in words: what the number counts is bits.
function sureness({ confidence, expected_wrong: wrong, bits }) {
  if (confidence === null) return [];
  return [el("p", { className: "sure" }, el("b", {}, `${percent(confidence)} sure`),
    el("span", { className: "trade" }, `: drawn anew by the model, about ${Math.round(wrong)} of the ${bits.length} bits would come out otherwise. Paler bits are less sure; more words help.`))];
}

function showCode() {
  $("code").hidden = !found?.code;
  if (!found?.code) return;
  const { code, explanation } = found;
  const bits = 4 * code.length;
  const key = (className, text) => el("span", {}, el("i", { className: `bit ${className}` }), text);
  $("code").replaceChildren(
    el("header", {}, el("h2", {}, state.id ? `Its ${bits} bits` : `Your text as ${bits} bits`), el("span", { className: "mono" }, code)),
    strip(code, { chances: explanation?.bits.map((bit) => bit.probability) }),
    el("p", { className: "key" }, key("one", "1"), key("", "0"), key("one differs", "differs in a hit"),
      info.model.bits_of_words ? el("span", {}, "Choose a bit to see its words") : null),
    ...(explanation ? sureness(explanation) : []));
}

export function pickBit() {
  for (const bit of document.querySelectorAll(".bit[data-bit]")) bit.classList.toggle("picked", Number(bit.dataset.bit) === state.bit);
}

on("found", showCode);

addEventListener("click", (event) => {
  const bit = event.target.closest?.("button.bit");
  if (bit) go({ bit: Number(bit.dataset.bit) });
});

addEventListener("keydown", (event) => {
  const bit = event.target.closest?.("button.bit");
  if (!bit) return;
  const bits = [...bit.closest(".strip").querySelectorAll("button.bit")];
  const now = bits.indexOf(bit);
  const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: bits.length - 1 }[event.key];
  if (next === undefined || !bits[next]) return;
  event.preventDefault();
  bits[now].tabIndex = -1;
  bits[next].tabIndex = 0;
  bits[next].focus();
});
