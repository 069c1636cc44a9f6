// The map: each document a point, with what was found marked on it. It comes after the search.

import { ask } from "./api.js";
import { $, el, narrow, number, plural, quietButton, say, spinner } from "./dom.js";
import { chooseFilter, written } from "./filters.js";
import { listen } from "./hands.js";
import { setColours, tag } from "./labels.js";
import { Layer } from "./layer.js";
import { drawMarks, drawNames } from "./marks.js";
import { Points } from "./points.js";
import { announce, found, info, on, setInfo, state } from "./state.js";
import { View } from "./view.js";

const COLOUR = "vdsh-colour"; // the field that points are coloured by, which this browser remembers
const SHARPEN_AFTER = 90; // milliseconds after a zoom

class CorpusMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.paint = canvas.getContext("2d");
    this.layer = new Layer();
    this.view = new View(() => this.draw());
    this.points = null; // until the map is here
    this.marked = []; // rows of the hits
    this.near = []; // rows of the neighbours of the selected document
    this.pointed = this.selected = this.hovered = -1; // rows
    this.query = null; // where the query is
    this.wanted = null; // the document that is open, and its neighbours
    this.centred = false; // whether the middle is the pointer, with the keyboard
    listen(this, canvas, document.querySelector(".zoom"));
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  load(answer) {
    this.points = new Points(answer);
    this.paintBy(localStorage.getItem(COLOUR));
    this.mark();
    this.select(this.wanted);
  }

  // Colour by a field, or by the first where there is none of that name.
  paintBy(field) {
    const { fields } = this.points;
    this.points.paint(field in fields ? field : Object.keys(fields)[0]);
    this.picked = null;
    showLegend(this.points);
    this.pick();
    this.refresh();
  }

  // What is marked on it
  mark() {
    if (!this.points) return;
    this.marked = (found?.hits || []).map((hit) => this.points.row(hit.id)).filter((row) => row >= 0);
    const place = found?.place && [found.place.x, -found.place.y];
    if (place && String(place) !== String(this.query)) this.placed = performance.now();
    this.query = place || null;
    this.draw();
  }

  select(wanted) {
    this.wanted = wanted;
    if (!this.points) return;
    this.selected = wanted ? this.points.row(wanted.id) : -1;
    this.near = (wanted?.near || []).map((id) => this.points.row(id)).filter((row) => row >= 0);
    if (!wanted) this.view.back();
    else if (this.selected >= 0) {
      const cover = $("panel").hidden || narrow.matches ? 0 : $("panel").offsetWidth;
      this.view.show(this.points.xs[this.selected], this.points.ys[this.selected], cover);
    }
    this.draw();
  }

  point(id) {
    this.pointed = this.points && id !== null ? this.points.row(id) : -1;
    this.draw();
  }

  pick() {
    if (!this.points) return;
    const { field, values } = this.points;
    const chosen = values.filter((value) => state.where.includes(written(field, "=", value)));
    [...$("legend").querySelectorAll("button")].forEach((button, i) => button.setAttribute("aria-pressed", chosen.includes(values[i])));
    if (String(chosen) === this.picked) return;
    this.picked = String(chosen);
    this.points.pick(chosen);
    this.refresh();
  }

  get centre() {
    return this.selected >= 0 ? [this.points.xs[this.selected], this.points.ys[this.selected]] : this.query;
  }

  // The row at a place of the screen
  at(px, py, reach) {
    return this.points.nearest(...this.view.toMap(px, py), reach / this.view.size);
  }

  // Drawing
  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !clientHeight) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    Object.assign(this.view, { width: clientWidth, height: clientHeight });
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.layer.resize(this.canvas.width, this.canvas.height, ratio);
    this.refresh();
  }

  refresh() {
    const style = getComputedStyle(this.canvas);
    this.colours = { ink: style.color, ground: style.backgroundColor, accent: style.borderTopColor, muted: style.caretColor };
    this.layer.drawn = null;
    this.draw();
  }

  draw() {
    if (!this.points || !this.view.width || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawFrame();
    });
  }

  drawFrame() {
    clearTimeout(this.sharpen);
    if (this.layer.outgrown(this.view)) this.layer.draw(this.points, this.view, this.colours.muted);
    const sharp = this.layer.put(this.paint, this.view);
    drawMarks(this.paint, this);
    drawNames(this.paint, this);
    if (!sharp) this.sharpen = setTimeout(() => this.refresh(), SHARPEN_AFTER);
  }

  // Say which document is under the pointer, or, with the keyboard, in the middle.
  hover(row, x, y) {
    if (row !== this.hovered) {
      this.hovered = row;
      this.canvas.classList.toggle("pointing", row >= 0);
      this.draw();
    }
    const tip = $("tip");
    tip.hidden = row < 0;
    if (row < 0) return;
    const { titles, ids, labels, label, colour } = this.points;
    const name = labels[label[row]];
    tip.replaceChildren(titles[row] || ids[row], ...(name ? [el("div", {}, tag(name, name, colour(name)))] : []));
    const left = Math.min(x + 16, this.view.width - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > this.view.height ? y - tip.offsetHeight - 12 : y + 18;
    tip.style.transform = `translate(${Math.round(Math.max(8, left))}px, ${Math.round(top)}px)`;
  }

  aim(on) {
    this.centred = on;
    if (!this.points) return;
    const [x, y] = [this.view.width / 2, this.view.height / 2];
    this.hover(on ? this.at(x, y, Infinity) : -1, x, y);
    this.draw();
  }
}

const map = new CorpusMap($("canvas"));
let loading = new AbortController(); // the map that is on its way

export const isOnMap = (id) => map.points?.row(id) >= 0;

function showLegend({ fields, field, values, labels, totals, colour }) {
  const filters = values.map((value) => written(field, "=", value));
  $("legend").hidden = !labels.length;
  $("colour").replaceChildren(...Object.keys(fields).map((name) => el("option", { selected: name === field }, name)));
  $("legend").querySelector("ul").replaceChildren(...labels.map((name, i) => {
    return el("li", {}, el("button", { type: "button", "aria-pressed": "false", onclick: () => chooseFilter(filters[i], filters) },
      tag(name, "", colour(name)), el("span", {}, name), el("small", {}, number(totals[i]))));
  }));
}

function showWaiting() {
  const note = el("p", {}, "The map is on its way…");
  $("map-empty").replaceChildren(el("div", { className: "say" }, spinner(), note));
  $("map-empty").hidden = false;
  return (bytes) => note.replaceChildren(`The map is on its way… ${(bytes / 1e6).toFixed(1)} MB`);
}

function showAbsence(error = null) {
  map.points = null;
  const text = "A map shows every document as a point, near the documents it resembles. It is computed once:";
  const command = error ? null : el("pre", {}, "vdsh research map STORE");
  $("map-empty").hidden = false;
  $("map-empty").replaceChildren(say("div", error ? "The map cannot be shown" : "No map yet",
    error ? error.message : text, command, quietButton("Look again", lookAgain)));
}

// Nothing is asked for that the service does not have: it says whether there is a map.
async function lookAgain() {
  try {
    setInfo(await ask("v1/info"));
  } catch (error) {
    return showAbsence(error);
  }
  return loadMap();
}

export async function loadMap() {
  loading.abort(); // of another store
  const { signal } = (loading = new AbortController());
  if (!info.map) return showAbsence();
  try {
    const answer = await ask("v1/map", null, { arrived: showWaiting(), signal });
    setColours(answer.labels.length ? answer.labels : info.labels);
    map.load(answer);
    $("map-empty").replaceChildren();
    $("map-empty").hidden = true;
    const of = answer.ids.length < info.documents ? `${number(answer.ids.length)} of ` : "";
    $("map-note").textContent = `${of}${plural(info.documents, "document")}`;
    announce("map", map);
  } catch (error) {
    if (error.name === "AbortError") return;
    map.points = null;
    if (error.status === 401) $("map-empty").hidden = true;
    else showAbsence(error.status === 404 ? null : error);
  }
}

export function setUpMap() {
  on("found", () => map.mark());
  on("change", (before) => {
    if (before?.view !== state.view) map.resize();
    map.pick();
  });
  on("select", (wanted) => map.select(wanted));
  on("point", (id) => map.point(id));
  on("theme", () => map.refresh());
  $("colour").addEventListener("change", () => {
    localStorage.setItem(COLOUR, $("colour").value);
    map.paintBy($("colour").value);
  });
}
