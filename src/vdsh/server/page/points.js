// The points of the map: where each document is, which is nearest, where the labels' names go.

import { colour, palette } from "./labels.js";

const CELLS = 96; // of the grid that finds the point under the pointer, on each side

export class Points {
  constructor(answer) {
    const { ids, titles, fields } = answer;
    Object.assign(this, { ids, titles, n: ids.length });
    this.fields = { ...(answer.labels.length ? { label: { values: answer.labels, place: answer.label } } : {}), ...fields };
    this.xs = Float32Array.from(answer.x);
    this.ys = Float32Array.from(answer.y, (y) => -y);
    this.rows = new Map(ids.map((id, row) => [id, row]));
    this.order = shuffled(this.n); // else the labels that come last would cover the others
    this.grid = new Map();
    for (let row = 0; row < this.n; row++) {
      const cell = cellOf(this.xs[row], this.ys[row]);
      if (this.grid.has(cell)) this.grid.get(cell).push(row);
      else this.grid.set(cell, [row]);
    }
  }

  // Colour the points by a field: `labels` are the names of its values, `label` the place of each point's among them.
  paint(field) {
    const { values = [], place } = this.fields[field] || {};
    Object.assign(this, { field, values, labels: values.map(String), label: place || new Int8Array(this.n).fill(-1) });
    this.colour = field === "label" ? colour : palette(this.labels);
    this.names = this.#centres();
    this.only = null; // values that are picked out
  }

  row(id) {
    return this.rows.get(id) ?? -1;
  }

  pick(values) {
    this.only = values.length ? new Set(values.map((value) => this.values.indexOf(value))) : null;
  }

  shown(row) {
    return !this.only || this.only.has(this.label[row]);
  }

  // The row nearest to a place, no farther than `within`; -1 where there is none
  nearest(x, y, within) {
    let best = -1;
    let least = within * within;
    for (const row of this.#candidates(x, y, within)) {
      const distance = (this.xs[row] - x) ** 2 + (this.ys[row] - y) ** 2;
      if (distance < least && this.shown(row)) [least, best] = [distance, row];
    }
    return best;
  }

  *#candidates(x, y, within) {
    if (within > 0.5) return yield* this.order;
    const step = 2 / CELLS;
    for (let i = x - within; i < x + within + step; i += step) {
      for (let j = y - within; j < y + within + step; j += step) yield* this.grid.get(cellOf(i, j)) || [];
    }
  }

  // The place of each label's name: where its points are densest
  #centres() {
    const counts = this.labels.map(() => new Map());
    this.totals = this.labels.map(() => 0);
    const bin = (value) => Math.floor((value + 1) * 10);
    for (let row = 0; row < this.n; row++) {
      const label = this.label[row];
      if (label < 0) continue;
      this.totals[label]++;
      const key = `${bin(this.xs[row])} ${bin(this.ys[row])}`;
      const sum = counts[label].get(key) || [0, 0, 0];
      counts[label].set(key, [sum[0] + 1, sum[1] + this.xs[row], sum[2] + this.ys[row]]);
    }
    return counts.map((bins, label) => {
      const [n, x, y] = [...bins.values()].reduce((a, b) => (b[0] > a[0] ? b : a), [0, 0, 0]);
      return { label, x: x / n, y: y / n, total: this.totals[label] };
    }).filter((name) => name.total).sort((a, b) => b.total - a.total).slice(0, 40);
  }

  // Texts to try: what documents of different labels are called, or their first sentence
  examples(count) {
    const { values = [], place = [] } = this.fields.label || {};
    const chosen = [];
    const seen = new Set();
    for (const row of this.order) {
      if (seen.has(place[row]) && values.length >= count) continue;
      const text = sentence(this.titles[row].replace(/^(re:\s*)+/i, ""));
      if (text.length < 18) continue;
      seen.add(place[row]);
      chosen.push({ text, label: values[place[row]] });
      if (chosen.length === count) break;
    }
    return chosen;
  }
}

// A title that was cut off ends with "…"; its first sentence may be whole.
function sentence(title) {
  return title.endsWith("…") ? /^(.{18,}?)[.!?:;](\s|$)/.exec(title)?.[1] || "" : title;
}

function cellOf(x, y) {
  const at = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(((value + 1) / 2) * CELLS)));
  return at(x) * CELLS + at(y);
}

function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 1;
  for (let i = n - 1; i > 0; i--) {
    seed = (seed * 48271) % 2147483647;
    const j = seed % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
