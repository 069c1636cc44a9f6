// Pointer, fingers and keys on the map.

import { openDocument } from "./state.js";

const STEP = 60; // pixels an arrow key moves
const MOVES = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };

export function listen(map, canvas, buttons) {
  const pointers = new Map(); // those that are down, and where
  let travelled = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    travelled = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!map.points) return;
    const last = pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!last) return map.hover(map.at(...now, 10), ...now);
    const [dx, dy] = [now[0] - last[0], now[1] - last[1]];
    travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) { // two fingers
      const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      map.view.zoom(apart(now) / Math.max(1, apart(last)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      map.view.pan(dx / 2, dy / 2);
    } else map.view.pan(dx, dy);
    pointers.set(event.pointerId, now);
    canvas.classList.add("dragging");
    map.hover(-1);
  });

  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      const pressed = pointers.delete(event.pointerId);
      canvas.classList.remove("dragging");
      if (!map.points || !pressed || name === "pointercancel" || travelled > 5) return;
      const row = map.at(event.offsetX, event.offsetY, event.pointerType === "touch" ? 20 : 10);
      if (row >= 0) openDocument(map.points.ids[row]);
    });
  }

  canvas.addEventListener("pointerleave", () => map.points && map.hover(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (map.points) map.view.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 220), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => map.points && press(map, event));
  canvas.addEventListener("focus", () => map.aim(canvas.matches(":focus-visible")));
  canvas.addEventListener("blur", () => map.aim(false));
  buttons.addEventListener("click", (event) => {
    const kind = event.target.closest("button")?.dataset.zoom;
    if (!map.points || !kind) return;
    if (kind === "all") map.view.all();
    else map.view.zoom(kind === "in" ? 1.5 : 1 / 1.5);
  });
}

function press(map, event) {
  const { key } = event;
  if (MOVES[key]) map.view.pan(...MOVES[key]);
  else if (key === "+" || key === "=") map.view.zoom(1.3);
  else if (key === "-") map.view.zoom(1 / 1.3);
  else if (key === "0") map.view.all();
  else if (key === "Enter" && map.hovered >= 0) return openDocument(map.points.ids[map.hovered]);
  else return;
  event.preventDefault();
  map.aim(true);
}
