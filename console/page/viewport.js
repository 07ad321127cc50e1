// Zoom and pan of the tree. Until the user moves it, the picture is kept fitted to its stage.

const SMALLEST = 0.15;
const LARGEST = 3;

export class Viewport {
  constructor(stage, root, world, picture) {
    this.stage = stage;
    this.root = root;
    this.world = world;
    this.picture = picture;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.fitted = true;
    this.narrow = false;
    this.dragged = false; // the pointer moved since it went down: no click
    this.pointers = new Map();
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      stage.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    }
  }

  update(narrow) {
    if (narrow !== this.narrow) this.fitted = true;
    this.narrow = narrow;
    this.stage.classList.toggle("stage-narrow", narrow);
    const picture = this.picture();
    // On a phone the page scrolls, and the picture is as long as it has to be.
    this.stage.style.height =
      narrow && picture ? `${Math.ceil(picture.height * (this.fitted ? 1 : this.scale)) + 16}px` : "";
    if (this.fitted) this.place();
    this.apply();
  }

  place() {
    const picture = this.picture();
    if (!picture) return;
    if (this.narrow) {
      [this.x, this.y, this.scale] = [8, 8, 1];
      return;
    }
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    const scale = Math.min((width - 32) / picture.width, (height - 24) / picture.height);
    this.scale = Math.max(0.5, Math.min(1.25, scale));
    // What does not fit begins at its top left.
    this.x = Math.max(16, (width - picture.width * this.scale) / 2);
    this.y = Math.max(12, (height - picture.height * this.scale) / 2);
  }

  apply() {
    const text = `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`;
    if (this.world.getAttribute("transform") !== text) this.world.setAttribute("transform", text);
  }

  fit() {
    this.fitted = true;
    this.update(this.narrow);
  }

  /** Zooms by a factor; the point stays where it is. */
  zoom(factor, px = this.stage.clientWidth / 2, py = this.stage.clientHeight / 2) {
    const scale = Math.max(SMALLEST, Math.min(LARGEST, this.scale * factor));
    this.x = px - (px - this.x) * (scale / this.scale);
    this.y = py - (py - this.y) * (scale / this.scale);
    this.scale = scale;
    this.fitted = false;
    this.apply();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.fitted = false;
    this.apply();
  }

  nudge(key) {
    const [dx, dy] = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[key];
    this.pan(dx, dy);
  }

  /** Moves the picture so that this spot is seen. */
  bringIn(spot) {
    const margin = 24;
    const left = this.x + spot.x * this.scale;
    const right = left + spot.width * this.scale;
    const top = this.y + (spot.y - 18) * this.scale;
    const bottom = this.y + (spot.y + 18) * this.scale;
    let [dx, dy] = [0, 0];
    if (right > this.stage.clientWidth - margin) dx = this.stage.clientWidth - margin - right;
    if (left + dx < margin) dx = margin - left;
    if (bottom > this.stage.clientHeight - margin) dy = this.stage.clientHeight - margin - bottom;
    if (top + dy < margin) dy = margin - top;
    // While all of it is fitted nothing is out of sight but the margin.
    if (Math.abs(dx) > margin || Math.abs(dy) > margin) this.pan(dx, dy);
  }

  wheel(event) {
    // Where the page itself scrolls, the wheel is the page's unless Ctrl says otherwise.
    const pageScrolls = document.documentElement.scrollHeight > innerHeight + 1;
    if (pageScrolls && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.stage.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) this.pan(-event.deltaY * lines, 0);
    else
      this.zoom(
        Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)),
        event.clientX - box.left,
        event.clientY - box.top,
      );
  }

  down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    if (this.pointers.size === 0) this.dragged = false;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, far: 0 });
  }

  move(event) {
    const old = this.pointers.get(event.pointerId);
    if (!old) return;
    const [dx, dy] = [event.clientX - old.x, event.clientY - old.y];
    if (this.pointers.size === 2) this.pinch(event, old);
    else if (!(this.narrow && event.pointerType === "touch")) {
      old.far += Math.abs(dx) + Math.abs(dy);
      if (old.far > 5) {
        this.dragged = true;
        this.pan(dx, dy);
      } else return; // a trembling click; the distance is kept
    }
    old.x = event.clientX;
    old.y = event.clientY;
  }

  pinch(event, old) {
    this.dragged = true;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
    const before = Math.hypot(old.x - other.x, old.y - other.y) || 1;
    const after = Math.hypot(event.clientX - other.x, event.clientY - other.y) || 1;
    const box = this.stage.getBoundingClientRect();
    this.pan((event.clientX - old.x) / 2, (event.clientY - old.y) / 2);
    this.zoom(
      after / before,
      (event.clientX + other.x) / 2 - box.left,
      (event.clientY + other.y) / 2 - box.top,
    );
  }
}
