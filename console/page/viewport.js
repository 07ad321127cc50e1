// Zoom and scroll of the tree. The stage scrolls by itself, with bars, wheel and fingers; by itself
// the picture is never so small that it cannot be read: what does not fit is scrolled to.

const SMALLEST = 0.25;
const LARGEST = 3;
const FITTED = { least: 1, most: 1.25 }; // as long as the user does not say otherwise
const MARGIN = { x: 16, y: 12 };
// Below these, names and the line under them would be smaller than 11 pixels: then there are none.
const NAMES_FROM = 11 / 13;
const SUBS_FROM = 11 / 11.5;

export class Viewport {
  constructor(stage, root, world, picture) {
    this.stage = stage;
    this.root = root;
    this.world = world;
    this.picture = picture;
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

  /** How much of the picture is seen at a time. The bar at the foot counts as if it were there: a
   * picture that fits only without it would come and go. */
  room() {
    return { width: this.stage.clientWidth - 2 * MARGIN.x, height: this.stage.offsetHeight - 2 * MARGIN.y - 2 };
  }

  update(narrow) {
    if (narrow !== this.narrow) this.fitted = true;
    this.narrow = narrow;
    this.stage.classList.toggle("stage-narrow", narrow);
    const picture = this.picture();
    if (!picture) return;
    if (this.fitted) {
      const { width, height } = this.room();
      const scale = Math.min(width / picture.width, height / picture.height);
      this.scale = narrow ? 1 : Math.max(FITTED.least, Math.min(FITTED.most, scale));
    }
    this.apply();
  }

  apply() {
    const picture = this.picture();
    const margin = this.narrow ? { x: 8, y: 8 } : MARGIN;
    const [width, height] = [picture.width * this.scale, picture.height * this.scale];
    // On a phone the page scrolls, and the stage is as tall as the picture has to be.
    const tall = `${Math.ceil(height) + 2 * margin.y}px`;
    if (this.stage.style.height !== (this.narrow ? tall : "")) this.stage.style.height = this.narrow ? tall : "";
    const seen = { width: this.stage.clientWidth, height: this.narrow ? 0 : this.stage.clientHeight };
    const size = {
      width: Math.max(seen.width, Math.ceil(width) + 2 * margin.x),
      height: Math.max(seen.height, Math.ceil(height) + 2 * margin.y),
    };
    for (const side of ["width", "height"]) {
      if (this.root.style[side] !== `${size[side]}px`) this.root.style[side] = `${size[side]}px`;
    }
    this.x = Math.max(margin.x, (seen.width - width) / 2);
    this.y = Math.max(margin.y, (seen.height - height) / 2);
    const text = `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`;
    if (this.world.getAttribute("transform") !== text) this.world.setAttribute("transform", text);
    this.stage.classList.toggle("no-names", this.scale < NAMES_FROM);
    this.stage.classList.toggle("no-subs", this.scale < SUBS_FROM);
  }

  fit() {
    this.fitted = true;
    this.update(this.narrow);
  }

  /** Zooms by a factor; the point of the stage stays where it is. */
  zoom(factor, px = this.stage.clientWidth / 2, py = this.stage.clientHeight / 2) {
    if (!this.picture()) return;
    const at = {
      x: (px + this.stage.scrollLeft - this.x) / this.scale,
      y: (py + this.stage.scrollTop - this.y) / this.scale,
    };
    this.scale = Math.max(SMALLEST, Math.min(LARGEST, this.scale * factor));
    this.fitted = false;
    this.apply();
    this.stage.scrollLeft = at.x * this.scale + this.x - px;
    this.stage.scrollTop = at.y * this.scale + this.y - py;
  }

  pan(dx, dy) {
    this.stage.scrollLeft -= dx;
    this.stage.scrollTop -= dy;
  }

  nudge(key) {
    const [dx, dy] = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[key];
    this.pan(dx, dy);
  }

  /** Scrolls so that this spot is seen. */
  bringIn(spot) {
    const { stage } = this;
    const margin = 24;
    const left = this.x + spot.x * this.scale;
    const right = left + spot.width * this.scale;
    const top = this.y + (spot.y - 18) * this.scale;
    const bottom = this.y + (spot.y + 18) * this.scale;
    if (right + margin > stage.scrollLeft + stage.clientWidth) stage.scrollLeft = right + margin - stage.clientWidth;
    if (left - margin < stage.scrollLeft) stage.scrollLeft = left - margin;
    if (bottom + margin > stage.scrollTop + stage.clientHeight) stage.scrollTop = bottom + margin - stage.clientHeight;
    if (top - margin < stage.scrollTop) stage.scrollTop = top - margin;
  }

  /** With Ctrl it zooms; else it scrolls, which the browser does. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.stage.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(
      Math.exp(-event.deltaY * lines * 0.004),
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
    else if (event.pointerType === "mouse") {
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
    this.zoom(
      after / before,
      (event.clientX + other.x) / 2 - box.left,
      (event.clientY + other.y) / 2 - box.top,
    );
  }
}
