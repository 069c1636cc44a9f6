// Which part of the map is seen: map to screen and back, moving, zooming, gliding.

import { calm } from "./dom.js";

const MOST_ZOOM = 60;
const EDGE = 30; // pixels around what is brought into sight

export class View {
  constructor(changed) {
    this.changed = changed; // called when it moves
    this.width = this.height = 0;
    Object.assign(this, { scale: 1, x: 0, y: 0 }); // the point in the middle, and its size
    this.left = null; // where it was before it moved by itself
    this.gliding = 0;
  }

  get size() {
    return 0.45 * Math.min(this.width, this.height) * this.scale;
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.size, this.height / 2 + (y - this.y) * this.size];
  }

  toMap(px, py) {
    return [this.x + (px - this.width / 2) / this.size, this.y + (py - this.height / 2) / this.size];
  }

  // A person moved it: it stays there.
  #moved() {
    this.left = null;
    this.gliding++;
    this.changed();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.scale = Math.max(0.6, Math.min(MOST_ZOOM, this.scale * factor));
    const [nx, ny] = this.toMap(px, py);
    this.x += x - nx;
    this.y += y - ny;
    this.#moved();
  }

  pan(dx, dy) {
    const kept = (value) => Math.max(-1.2, Math.min(1.2, value));
    this.x = kept(this.x - dx / this.size);
    this.y = kept(this.y - dy / this.size);
    this.#moved();
  }

  all() {
    Object.assign(this, { scale: 1, x: 0, y: 0 });
    this.#moved();
  }

  // Bring a point into sight that is not, or that something covers from the right.
  show(x, y, cover) {
    if (!this.width) return;
    const [px, py] = this.toScreen(x, y);
    if (px > EDGE && py > EDGE && px < this.width - cover - EDGE && py < this.height - EDGE) return;
    this.left ??= { x: this.x, y: this.y };
    this.#glide(x + cover / 2 / this.size, y);
  }

  // Return to where it was before it moved by itself.
  back() {
    if (!this.left) return;
    const { x, y } = this.left;
    this.left = null;
    this.#glide(x, y);
  }

  #glide(x, y) {
    const [fromX, fromY, began] = [this.x, this.y, performance.now()];
    const mine = ++this.gliding;
    const step = () => {
      if (this.gliding !== mine) return;
      const t = calm.matches ? 1 : Math.min(1, (performance.now() - began) / 300);
      const eased = 1 - (1 - t) ** 3;
      this.x = fromX + (x - fromX) * eased;
      this.y = fromY + (y - fromY) * eased;
      this.changed();
      if (t < 1) requestAnimationFrame(step);
    };
    step();
  }
}
