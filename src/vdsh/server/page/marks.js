// What is drawn over the points: hits and their lines, chosen documents, the query, names.

import { calm } from "./dom.js";

function circle(paint, [x, y], radius) {
  paint.beginPath();
  paint.arc(x, y, radius, 0, 7);
}

function ring(paint, at, radius, line, width) {
  circle(paint, at, radius);
  paint.lineWidth = width;
  paint.strokeStyle = line;
  paint.stroke();
}

// `map` has points, view, colours and what is marked: see CorpusMap.
export function drawMarks(paint, map) {
  const { points, view, colours: { ink, ground, accent } } = map;
  const at = (row) => view.toScreen(points.xs[row], points.ys[row]);
  const dot = (row, radius) => {
    circle(paint, at(row), radius);
    paint.fillStyle = points.colour(points.labels[points.label[row]]);
    paint.fill();
  };
  const others = map.selected >= 0 ? map.near : map.marked;
  paint.lineWidth = 1;
  paint.strokeStyle = accent;
  paint.globalAlpha = 0.35;
  for (const row of map.centre ? others : []) {
    paint.beginPath();
    paint.moveTo(...view.toScreen(...map.centre));
    paint.lineTo(...at(row));
    paint.stroke();
  }
  paint.globalAlpha = 1;
  for (const row of others) {
    dot(row, 4.5);
    ring(paint, at(row), 5.5, ground, 2.5);
    ring(paint, at(row), 6, accent, 1.75);
  }
  for (const row of [map.hovered, map.pointed, map.selected]) {
    if (row < 0) continue;
    dot(row, 6.5);
    ring(paint, at(row), 7.5, ground, 3);
    ring(paint, at(row), 8.5, ink, 2);
  }
  if (map.query) drawQuery(paint, map);
  if (map.centred) drawCross(paint, map);
}

function drawQuery(paint, map) {
  const { accent, ground } = map.colours;
  const [x, y] = map.view.toScreen(...map.query);
  const age = (performance.now() - map.placed) / 900;
  if (age < 1 && !calm.matches) {
    paint.globalAlpha = 0.6 * (1 - age);
    ring(paint, [x, y], 10 + 34 * age, accent, 2);
    paint.globalAlpha = 1;
    map.draw();
  }
  paint.save();
  paint.translate(x, y);
  paint.rotate(Math.PI / 4);
  paint.fillStyle = accent;
  paint.strokeStyle = ground;
  paint.lineWidth = 3;
  paint.beginPath();
  paint.roundRect(-7, -7, 14, 14, 3);
  paint.stroke();
  paint.fill();
  paint.restore();
}

function drawCross(paint, { view, colours }) {
  const [x, y] = [view.width / 2, view.height / 2];
  paint.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    paint.moveTo(x + 5 * dx, y + 5 * dy);
    paint.lineTo(x + 15 * dx, y + 15 * dy);
  }
  paint.lineWidth = 1.5;
  paint.strokeStyle = colours.ink;
  paint.stroke();
}

// The labels' names, the largest first, where there is room.
export function drawNames(paint, { points, view, colours, centre }) {
  const taken = [];
  const middle = centre && view.toScreen(...centre);
  paint.font = "600 12px system-ui, sans-serif";
  paint.textAlign = "center";
  paint.textBaseline = "middle";
  paint.lineJoin = "round";
  paint.lineWidth = 4;
  for (const { label, x, y } of points.names) {
    if (points.only && !points.only.has(label)) continue;
    const name = points.labels[label];
    const text = name.length > 40 ? `${name.slice(0, 39)}…` : name;
    const half = paint.measureText(text).width / 2 + 5;
    let [px, py] = view.toScreen(x, y);
    if (px > 0 && px < view.width) px = Math.max(half, Math.min(view.width - half, px));
    if (middle && Math.abs(px - middle[0]) < half + 10 && Math.abs(py - middle[1]) < 26) py = middle[1] - 30;
    const box = [px - half, py - 10, px + half, py + 10];
    if (px < -half || py < -10 || px > view.width + half || py > view.height + 10) continue;
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    paint.strokeStyle = colours.ground;
    paint.globalAlpha = 0.85;
    paint.strokeText(text, px, py);
    paint.globalAlpha = 1;
    paint.fillStyle = colours.ink;
    paint.fillText(text, px, py);
  }
}
