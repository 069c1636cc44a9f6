// Elements and numbers. Text that comes from documents only ever becomes text nodes.

export const $ = (id) => document.getElementById(id);
export const calm = matchMedia("(prefers-reduced-motion: reduce)");
export const narrow = matchMedia("(max-width: 899px)");

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !name.startsWith("aria")) element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const CROSS = "m6.5 6.5 11 11m0-11-11 11";
export const BACK = "M19 12H5m6-6.5L4.5 12l6.5 6.5";
export const NEXT = "m9.5 5.5 6.5 6.5-6.5 6.5";
export const PREVIOUS = "M14.5 5.5 8 12l6.5 6.5";

export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export function iconButton(path, label, onclick) {
  return el("button", { type: "button", className: "icon", "aria-label": label, onclick }, icon(path));
}

export function quietButton(text, onclick) {
  return el("button", { type: "button", className: "quiet", onclick }, text);
}

export const spinner = () => el("span", { className: "spinner" });
export const number = (value) => value.toLocaleString("en");
export const percent = (share) => `${Math.round(100 * share)} %`;
export const shownScore = (score) => score.toFixed(3); // as the command line shows it
export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

// When there is nothing to show
export function say(tag, heading, sentence, ...more) {
  return el(tag, { className: "say" }, el("h2", {}, heading), el("p", {}, sentence), ...more);
}

// Something went wrong: say what, and let it be tried again.
export function showFailure(error, again) {
  if (error.name === "AbortError" || error.status === 401) return; // given up; the token is asked for
  const retry = quietButton(error.button || "Try again", () => {
    $("note").replaceChildren();
    again();
  });
  $("note").replaceChildren(el("div", { className: "wrong" }, el("p", {}, error.message), retry));
}
