// What happened over time, kept in this page for an hour, and drawn on canvases.

import { $, count, el, micros, setText, short, span } from "./dom.js";

const KEPT_MS = 60 * 60 * 1000;

/** Samples of several numbers, one row of them per look; old ones are dropped. */
export class History {
  constructor(names) {
    this.times = [];
    this.columns = Object.fromEntries(names.map((name) => [name, []]));
  }

  add(time, values) {
    this.times.push(time);
    for (const [name, column] of Object.entries(this.columns)) column.push(values[name] ?? null);
    // Now and then, not each time: this moves the whole of it.
    if (this.times[0] < time - KEPT_MS - 60000) this.drop(time - KEPT_MS);
  }

  drop(before) {
    const at = this.firstAfter(before);
    this.times.splice(0, at);
    for (const column of Object.values(this.columns)) column.splice(0, at);
  }

  firstAfter(time) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const CHARTS = [
  { key: "rate", title: "Messages per second", format: (v) => short(v), tone: "accent", floor: 1 },
  { key: "queued", title: "Messages waiting", format: (v) => count(v), tone: "blue", floor: 1 },
  {
    key: "restarts",
    second: "failures",
    title: "Restarts and failures",
    format: (v) => count(v),
    tone: "amber",
    secondTone: "red",
    bars: true,
    floor: 3,
  },
  { key: "latency", title: "Loop latency", format: (v) => micros(v), tone: "green", floor: 50 },
];

/** A round number at or above: 1, 2, 5, 10, ... */
function roundUp(value, floor) {
  const wanted = Math.max(value, floor);
  const unit = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((step) => step * unit).find((top) => top >= wanted * 0.999);
}

export class Charts {
  constructor(history, { onWindow }) {
    this.history = history;
    this.onWindow = onWindow;
    this.minutes = 2;
    this.cursor = null; // a share of the width, or null
    this.now = 0;
    this.charts = CHARTS.map((spec) => this.make(spec));
    this.makeWindows();
    new ResizeObserver(() => this.draw()).observe($("charts"));
  }

  make(spec) {
    const value = el("span", { class: "chart-value", text: "–" });
    const when = el("span", { class: "chart-when" });
    const top = el("span", { class: "chart-top" });
    const canvas = el("canvas", {
      class: "chart-canvas",
      tabindex: 0,
      role: "img",
      "aria-label": spec.title,
    });
    const from = el("span", { class: "chart-from" });
    const title = spec.second
      ? [el("i", { class: "key-solid" }), "Restarts and ", el("i", { class: "key-open" }), "failures"]
      : [spec.title];
    const box = el(
      "figure",
      { class: `chart tone-${spec.tone}` },
      el("figcaption", {}, el("span", { class: "chart-title" }, ...title), when, value),
      el("div", { class: "chart-area" }, canvas, top, from),
    );
    $("charts").append(box);
    const move = (event) => {
      const area = canvas.getBoundingClientRect();
      this.setCursor((event.clientX - area.left) / area.width);
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerdown", move);
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("blur", () => this.setCursor(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    return { spec, box, value, when, top, from, canvas };
  }

  makeWindows() {
    const buttons = [...$("window").querySelectorAll("button")];
    this.choose = (minutes) => {
      const button = buttons.find((one) => one.dataset.minutes === String(minutes)) ?? buttons[0];
      this.minutes = Number(button.dataset.minutes);
      for (const other of buttons) {
        other.setAttribute("aria-checked", other === button);
        other.tabIndex = other === button ? 0 : -1;
      }
      this.onWindow(this.minutes);
      this.draw();
    };
    buttons.forEach((button, at) => {
      button.addEventListener("click", () => this.choose(button.dataset.minutes));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = buttons[(at + step + buttons.length) % buttons.length];
        next.focus();
        this.choose(next.dataset.minutes);
      });
    });
  }

  key(event) {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (step) {
      event.preventDefault();
      this.setCursor(Math.max(0, Math.min(1, (this.cursor ?? 1) + step)));
    } else if (event.key === "Escape" && this.cursor !== null) {
      event.stopPropagation();
      this.setCursor(null);
    }
  }

  setCursor(at) {
    this.cursor = at === null ? null : Math.max(0, Math.min(1, at));
    this.draw();
  }

  draw(now = this.now) {
    this.now = now;
    if (document.hidden || !now) return;
    const style = getComputedStyle(document.documentElement);
    for (const chart of this.charts) this.drawOne(chart, style);
  }

  drawOne(chart, style) {
    const { canvas, spec } = chart;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (width === 0 || height === 0) return;
    const ratio = Math.min(3, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const buckets = this.buckets(spec, width);
    const most = Math.max(0, ...buckets.map((b) => Math.max(b.value ?? 0, b.second ?? 0)));
    const top = roundUp(most, spec.floor);
    const paint = {
      pen,
      width,
      height,
      top,
      buckets,
      y: (v) => height - 2 - (v / top) * (height - 6),
      tone: style.getPropertyValue(`--${spec.tone}`),
      second: style.getPropertyValue(`--${spec.secondTone || "red"}`),
      line: style.getPropertyValue("--line"),
      ink: style.getPropertyValue("--muted"),
    };
    this.grid(paint);
    if (spec.bars) this.bars(paint);
    else this.curve(paint);
    this.readout(chart, paint);
    setText(chart.top, spec.format(top).replace(/\.0+(?=\D|$)/, ""));
    setText(chart.from, `${span(this.length())} ago`);
  }

  /** Milliseconds shown: the window, or as much as there is while that is less. */
  length() {
    const age = this.now - (this.history.times[0] ?? this.now);
    return Math.min(this.minutes * 60000, Math.max(30000, Math.ceil(age / 10000) * 10000));
  }

  /** The samples of the window as one number per few pixels: the mean, or of bars the sum. */
  buckets(spec, width) {
    const { times, columns } = this.history;
    const length = this.length();
    const start = this.now - length;
    const number = Math.max(10, Math.floor(width / (spec.bars ? 8 : 2)));
    const step = length / number;
    // Buckets stand on the clock, not on the window's edge: what is past keeps its shape.
    const origin = Math.floor(start / step) * step;
    const out = Array.from({ length: number + 1 }, (_, at) => ({
      time: origin + (at + 0.5) * step,
      x: ((origin + (at + 0.5) * step - start) / length) * width,
      value: null,
      second: null,
      n: 0,
    }));
    for (let at = this.history.firstAfter(origin); at < times.length; at++) {
      const bucket = out[Math.floor((times[at] - origin) / step)];
      const value = columns[spec.key][at];
      if (!bucket || value === null) continue;
      bucket.value = (bucket.value ?? 0) + value;
      if (spec.second) bucket.second = (bucket.second ?? 0) + (columns[spec.second][at] ?? 0);
      bucket.n++;
    }
    if (!spec.bars) for (const bucket of out) if (bucket.n > 0) bucket.value /= bucket.n;
    return out;
  }

  grid({ pen, width, height, line }) {
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      const y = Math.round(4 + (height - 6) * part) - 0.5;
      pen.beginPath();
      pen.moveTo(0, y);
      pen.lineTo(width, y);
      pen.stroke();
    }
  }

  curve({ pen, height, buckets, y, tone }) {
    const points = buckets.filter((b) => b.value !== null);
    if (points.length === 0) return;
    // A gap is where the page did not look: no line across it. Buckets between two samples are none.
    const far = Math.max(4 * (this.length() / buckets.length), 2500);
    const runs = [];
    for (const point of points) {
      const run = runs[runs.length - 1];
      if (run && point.time - run[run.length - 1].time < far) run.push(point);
      else runs.push([point]);
    }
    for (const run of runs) {
      pen.beginPath();
      run.forEach((p, at) => (at ? pen.lineTo(p.x, y(p.value)) : pen.moveTo(p.x, y(p.value))));
      pen.strokeStyle = tone;
      pen.lineWidth = 1.75;
      pen.lineJoin = "round";
      pen.stroke();
      pen.lineTo(run[run.length - 1].x, height);
      pen.lineTo(run[0].x, height);
      pen.globalAlpha = 0.13;
      pen.fillStyle = tone;
      pen.fill();
      pen.globalAlpha = 1;
    }
  }

  bars({ pen, height, buckets, y, tone, second }) {
    for (const b of buckets) {
      if (b.value > 0) {
        pen.fillStyle = tone;
        pen.fillRect(b.x - 3, y(b.value), 3, height - 2 - y(b.value));
      }
      if (b.second > 0) {
        pen.strokeStyle = second;
        pen.lineWidth = 1.25;
        pen.strokeRect(b.x + 0.9, y(b.second) + 0.6, 2.2, height - 3 - y(b.second));
      }
    }
  }

  readout(chart, { pen, height, width, buckets, y, tone, ink }) {
    const { spec } = chart;
    const known = buckets.filter((b) => b.value !== null);
    let text;
    let when = "";
    if (this.cursor !== null && known.length > 0) {
      const x = this.cursor * width;
      const b = known.reduce((best, one) => (Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best));
      pen.strokeStyle = ink;
      pen.lineWidth = 1;
      pen.setLineDash([2, 2]);
      pen.beginPath();
      pen.moveTo(b.x, 0);
      pen.lineTo(b.x, height);
      pen.stroke();
      pen.setLineDash([]);
      if (!spec.bars) {
        pen.fillStyle = tone;
        pen.beginPath();
        pen.arc(b.x, y(b.value), 3, 0, 7);
        pen.fill();
      }
      text = this.say(spec, b.value, b.second);
      when = new Date(b.time).toLocaleTimeString("en-GB");
    } else {
      text = this.current(spec);
    }
    setText(chart.value, text);
    setText(chart.when, when);
    const label = `${spec.title}: ${text}${when ? ` at ${when}` : " now"}`;
    if (when || !chart.saidAt || this.now - chart.saidAt > 5000) {
      chart.canvas.setAttribute("aria-label", label);
      chart.saidAt = this.now;
    }
  }

  say(spec, value, second) {
    return spec.second ? `${spec.format(value)} / ${spec.format(second)}` : spec.format(value);
  }

  /** What stands there without a cursor: the last sample, or of bars the sum over the window. */
  current(spec) {
    const { times, columns } = this.history;
    if (times.length === 0) return "–";
    if (!spec.second) return spec.format(columns[spec.key][times.length - 1]);
    const from = this.history.firstAfter(this.now - this.minutes * 60000);
    const sum = (name) => columns[name].slice(from).reduce((all, one) => all + (one ?? 0), 0);
    return this.say(spec, sum(spec.key), sum(spec.second));
  }
}
