// What happened over time: kept by the server, so that every page shows the same, and drawn on
// canvases. Of a server that keeps nothing, what this page saw itself.

import { $, clock, count, el, micros, radios, setAttr, setText, short, span } from "./dom.js";

const KEPT_MS = 6 * 3600 * 1000;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map((seconds) => seconds * 1000);
const NAMES = ["handled", "queued", "restarts", "failures", "latency"];

/** Rows of what happened until a time, within a span; times are those of this page's clock. */
export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.last = 0; // of the server's clock
    this.pid = null;
    this.offset = null; // from the server's clock to ours
    this.every = 1000;
    this.own = false; // the server keeps nothing: this page does
    this.times = [];
    this.spans = [];
    this.columns = Object.fromEntries(NAMES.map((name) => [name, []]));
  }

  /** An answer of /api/history: all of it, or what came since `last`. False: it has to be asked for
   * all of it, for it is of another program than what is here. */
  take(answer, all, now = Date.now()) {
    this.own = !answer.every_ms;
    if (this.own) return true;
    if (answer.pid !== this.pid && !all) return false;
    if (all) {
      const { offset } = this;
      this.clear();
      this.offset = offset;
    }
    this.pid = answer.pid;
    this.every = answer.every_ms;
    const offset = now - answer.now_ms;
    if (this.offset === null) this.offset = offset;
    else if (Math.abs(offset - this.offset) > 1500) {
      // One of the clocks was set.
      this.times = this.times.map((time) => time + offset - this.offset);
      this.offset = offset;
    }
    for (const [end, length, handled, queued, restarts, failures, latency] of answer.rows) {
      if (end <= this.last) continue;
      this.last = end;
      this.add(end + this.offset, length, { handled, queued, restarts, failures, latency });
    }
    return true;
  }

  add(time, length, values) {
    this.times.push(time);
    this.spans.push(length);
    for (const name of NAMES) this.columns[name].push(values[name] ?? 0);
    // Now and then, not each time: this moves the whole of it.
    if (this.times[0] < time - KEPT_MS - 600000) this.drop(time - KEPT_MS);
  }

  drop(before) {
    const at = this.firstAfter(before);
    for (const list of [this.times, this.spans, ...Object.values(this.columns)]) list.splice(0, at);
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

  /** Messages per second of the newest row, if it is of now. */
  rate(now = Date.now()) {
    const at = this.times.length - 1;
    if (at < 0 || now - this.times[at] > 2.5 * this.every + 1000) return null;
    return (this.columns.handled[at] * 1000) / Math.max(1, this.spans[at]);
  }
}

// `how` says what a point sums up, of so many milliseconds; `of` makes a number of a bucket.
const CHARTS = [
  {
    key: "handled",
    title: "Messages handled per second",
    how: (step) => `all dispatchers · mean over ${step}`,
    of: (b) => (b.sum * 1000) / Math.max(1, b.span),
    format: (v) => short(v),
    tone: "accent",
    floor: 1,
  },
  {
    key: "queued",
    title: "Messages waiting",
    how: (step) => `in all mailboxes · most in ${step}`,
    of: (b) => b.most,
    format: (v) => count(v),
    tone: "blue",
    floor: 1,
  },
  {
    key: "restarts",
    second: "failures",
    title: "Restarts and failures",
    how: (step, shown) => `bars: count in ${step} · number: sum of ${shown}`,
    of: (b) => b.sum,
    format: (v) => count(v),
    tone: "amber",
    secondTone: "red",
    bars: true,
    floor: 3,
  },
  {
    key: "latency",
    title: "Dispatcher latency",
    how: (step) => `time to answer a ping · slowest of all, longest in ${step}`,
    of: (b) => b.most,
    format: (v) => micros(v),
    tone: "green",
    floor: 50,
  },
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
    const how = el("span", { class: "chart-how" });
    const title = spec.second
      ? [el("i", { class: "key-solid" }), "Restarts and ", el("i", { class: "key-open" }), "failures"]
      : [spec.title];
    const box = el(
      "figure",
      { class: `chart tone-${spec.tone}` },
      el("figcaption", {}, el("span", { class: "chart-title" }, ...title), when, value, how),
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
    return { spec, box, value, when, top, from, how, canvas };
  }

  makeWindows() {
    const { buttons, mark } = radios($("window"), (button) => this.choose(button.dataset.minutes));
    this.choose = (minutes) => {
      const button = buttons.find((one) => one.dataset.minutes === String(minutes)) ?? buttons[0];
      this.minutes = Number(button.dataset.minutes);
      mark(button);
      this.onWindow(this.minutes);
      this.draw();
    };
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
    const step = this.step(spec, width);
    const buckets = this.buckets(spec, width, step);
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
    const words = (ms) => span(ms).replace(/\.0(?= )/, "");
    const how = spec.how(words(step), words(this.length()));
    setText(chart.how, this.history.own ? `${how} · kept by this page only` : how);
    setAttr(chart.how, "title", chart.how.textContent);
  }

  /** Milliseconds shown: the window, or as much as there is while that is less. */
  length() {
    const age = this.now - (this.history.times[0] ?? this.now);
    return Math.min(this.minutes * 60000, Math.max(30000, Math.ceil(age / 10000) * 10000));
  }

  /** How much time a point stands for: a round number, and no less than a row has. */
  step(spec, width) {
    const least = Math.max(this.history.every, (this.length() * (spec.bars ? 8 : 2)) / Math.max(20, width));
    return STEPS.find((step) => step >= least) ?? STEPS.at(-1);
  }

  /** The rows of the window by steps of time. */
  buckets(spec, width, step) {
    const { times, spans, columns } = this.history;
    const length = this.length();
    const start = this.now - length;
    // They stand on the clock, not on the window's edge: what is past keeps its shape.
    const origin = Math.floor(start / step) * step;
    const out = Array.from({ length: Math.floor((this.now - origin) / step) + 1 }, (_, at) => ({
      time: origin + (at + 0.5) * step,
      x: ((origin + (at + 0.5) * step - start) / length) * width,
      value: null,
      second: null,
      sum: 0,
      most: 0,
      span: 0,
    }));
    for (let at = this.history.firstAfter(origin); at < times.length; at++) {
      const bucket = out[Math.floor((times[at] - Math.min(spans[at], step) / 2 - origin) / step)];
      if (!bucket) continue;
      const value = columns[spec.key][at];
      bucket.sum += value;
      bucket.most = Math.max(bucket.most, value);
      bucket.span += spans[at];
      if (spec.second) bucket.second = (bucket.second ?? 0) + columns[spec.second][at];
    }
    for (const bucket of out) if (bucket.span > 0) bucket.value = spec.of(bucket);
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
    // A gap is where nobody looked: no line across it. Coarse rows leave buckets between them empty.
    const far = Math.max(3 * (this.length() / buckets.length), 3.5 * this.history.every, 12000);
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
      when = clock(b.time);
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
    if (spec.key === "handled") return spec.format(this.history.rate(this.now) ?? 0);
    if (!spec.second) return spec.format(columns[spec.key][times.length - 1]);
    const from = this.history.firstAfter(this.now - this.minutes * 60000);
    const sum = (name) => columns[name].slice(from).reduce((all, one) => all + one, 0);
    return this.say(spec, sum(spec.key), sum(spec.second));
  }
}
