// The points as a picture, larger than the window: panning moves it, so a frame costs the same for
// a hundred points and for fifty thousand. Only where it ends, or after a zoom, is it drawn anew.

import { el } from "./dom.js";

const MARGIN = 0.3; // how much larger it is, on each side

export class Layer {
  constructor() {
    this.canvas = el("canvas");
    this.drawn = null; // the view it was drawn for
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * (1 + 2 * MARGIN));
    this.canvas.height = Math.round(height * (1 + 2 * MARGIN));
    this.drawn = null;
  }

  // Twenty thousand calls of the canvas are slow; writing its pixels is not.
  draw(points, view, muted) {
    const paint = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    if (this.image?.width !== width || this.image.height !== height) this.image = paint.createImageData(width, height);
    const pixels = this.image.data;
    new Uint32Array(pixels.buffer).fill(0);
    const radius = Math.min(6, Math.max(1.5, 1.9 * Math.sqrt(view.scale) * Math.sqrt(8000 / Math.max(8000, points.n)))) * this.ratio;
    const discs = [0.25, 0.75].flatMap((y) => [0.25, 0.75].map((x) => disc(radius, x, y, width)));
    const inks = [...points.labels, null].map((name) => rgb(points.colour(name)));
    const grey = rgb(muted);
    const size = view.size * this.ratio;
    const left = width / 2 - view.x * size;
    const top = height / 2 - view.y * size;
    const edge = Math.ceil(radius) + 1;
    for (const dim of points.only ? [true, false] : [false]) {
      for (const row of points.order) {
        if (points.only && points.shown(row) === dim) continue;
        const x = points.xs[row] * size + left;
        const y = points.ys[row] * size + top;
        if (x < edge || y < edge || x >= width - edge || y >= height - edge) continue;
        const [column, line] = [Math.floor(x), Math.floor(y)];
        const shape = discs[(y - line < 0.5 ? 0 : 2) + (x - column < 0.5 ? 0 : 1)];
        const ink = dim ? grey : inks[points.label[row] < 0 ? inks.length - 1 : points.label[row]];
        stamp(pixels, line * width + column, shape, ink, dim ? 0.12 : 0.78);
      }
    }
    paint.putImageData(this.image, 0, 0);
    this.drawn = { scale: view.scale, x: view.x, y: view.y };
  }

  // Whether the view has left what was drawn.
  outgrown(view) {
    if (!this.drawn) return true;
    const zoomed = view.scale / this.drawn.scale;
    if (zoomed < 0.75 || zoomed > 1.6) return true;
    const slack = (side) => (side * (1 + 2 * MARGIN) * zoomed - side) / 2;
    return Math.abs(this.drawn.x - view.x) * view.size > slack(view.width)
      || Math.abs(this.drawn.y - view.y) * view.size > slack(view.height);
  }

  // Lay it where the view is now; say whether it is as sharp as it could be.
  put(paint, view) {
    const zoomed = view.scale / this.drawn.scale;
    const x = (this.drawn.x - view.x) * view.size * this.ratio + paint.canvas.width / 2;
    const y = (this.drawn.y - view.y) * view.size * this.ratio + paint.canvas.height / 2;
    const [width, height] = [this.canvas.width * zoomed, this.canvas.height * zoomed];
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, paint.canvas.width, paint.canvas.height);
    paint.drawImage(this.canvas, x - width / 2, y - height / 2, width, height);
    paint.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return zoomed === 1;
  }
}

// The pixels of a disc around (x, y) of a pixel, and how much of each it covers.
function disc(radius, x, y, width) {
  const [places, cover] = [[], []];
  const edge = Math.ceil(radius) + 1;
  for (let dy = -edge; dy <= edge; dy++) {
    for (let dx = -edge; dx <= edge; dx++) {
      const covered = Math.min(1, radius + 0.5 - Math.hypot(dx + 0.5 - x, dy + 0.5 - y));
      if (covered <= 0) continue;
      places.push(dy * width + dx);
      cover.push(covered);
    }
  }
  return { places: Int32Array.from(places), cover: Float32Array.from(cover) };
}

// Lay a disc of one colour over what is there.
function stamp(pixels, at, { places, cover }, [red, green, blue], strength) {
  for (let i = 0; i < places.length; i++) {
    const p = 4 * (at + places[i]);
    const over = strength * cover[i];
    const under = (pixels[p + 3] / 255) * (1 - over);
    const all = over + under;
    pixels[p] = (red * over + pixels[p] * under) / all;
    pixels[p + 1] = (green * over + pixels[p + 1] * under) / all;
    pixels[p + 2] = (blue * over + pixels[p + 2] * under) / all;
    pixels[p + 3] = 255 * all;
  }
}

const inks = new Map();

function rgb(name) {
  if (!inks.has(name)) {
    const paint = el("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    paint.fillStyle = name;
    paint.fillRect(0, 0, 1, 1);
    inks.set(name, paint.getImageData(0, 0, 1, 1).data);
  }
  return inks.get(name);
}
