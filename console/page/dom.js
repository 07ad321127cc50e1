// Making elements and writing numbers. Every text goes in as text: names come from the program.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

/** An HTML element: el("p", {class: "quiet", text: name}, child...). */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Writes only what changed, so that nothing is laid out again for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttr(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** 1234567 as "1,234,567"; null as a dash. */
export function count(n) {
  return n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en-US");
}

/** At most four characters and a unit: 950, 12.3k, 4.56M. */
export function short(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  const size = Math.abs(n);
  if (size < 0.05) return "0";
  if (size < 10 && !Number.isInteger(n)) return n.toFixed(1);
  if (size < 1000) return String(Math.round(n));
  for (const [unit, scale] of [
    ["k", 1e3],
    ["M", 1e6],
    ["G", 1e9],
    ["T", 1e12],
  ]) {
    const scaled = n / scale;
    if (Math.abs(scaled) < 999.5) {
      return scaled.toFixed(Math.abs(scaled) < 9.995 ? 2 : Math.abs(scaled) < 99.95 ? 1 : 0) + unit;
    }
  }
  return n.toExponential(1);
}

/** A length of time from milliseconds: "12 ms", "3.4 s", "2 min 5 s", "1 h 3 min". */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  const [large, small, first, second] =
    s < 3600 ? [60, 1, "min", "s"] : s < 86400 ? [3600, 60, "h", "min"] : [86400, 3600, "d", "h"];
  const rest = Math.floor((s % large) / small);
  return `${Math.floor(s / large)} ${first}${rest ? ` ${rest} ${second}` : ""}`;
}

/** From microseconds: "35 µs", "1.2 ms". */
export function micros(us) {
  if (us === null || us === undefined) return "–";
  if (us === 0) return "0";
  if (us < 1000) return `${us < 10 && us > 0 ? us.toFixed(1) : Math.round(us)} µs`;
  return us < 10000 ? `${(us / 1000).toFixed(1)} ms` : span(us / 1000);
}

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1024) return `${n} B`;
  if (n < 1048576) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 1073741824) return `${(n / 1048576).toFixed(1)} MiB`;
  return `${(n / 1073741824).toFixed(2)} GiB`;
}

export const share = (part) => (part === null || part === undefined ? "–" : `${Math.round(part * 100)} %`);

/** Tags of users are small; those of the runtime are made of bits. */
export const tagText = (tag) =>
  tag === null || tag === undefined ? "–" : tag > 65535 ? `0x${tag.toString(16)}` : String(tag);

let pressed = null; // what the pointer is down on
addEventListener("pointerdown", (event) => (pressed = event.target), true);
for (const name of ["pointerup", "pointercancel"])
  addEventListener(name, () => setTimeout(() => (pressed = null)), true); // the click comes before that
addEventListener("click", () => (pressed = null), true); // it has hit: what it leads to may be drawn

/** Whether a click is under way in there: what it will hit must not be taken away. */
export const isPressed = (box) => pressed !== null && box.contains(pressed);

/** What a stop of the keyboard is known by when all is drawn anew: what it belongs to, and its words. */
const signOf = (stop) =>
  [stop.closest("[data-key]")?.dataset.key, stop.tagName, stop.title || stop.textContent].join();

/** Puts other children into a box. Who has the focus keeps it, or the next in its place gets it. */
export function refill(box, children) {
  const stops = () => [...box.querySelectorAll("button, summary, input, [tabindex]")];
  const old = stops();
  const at = old.indexOf(document.activeElement);
  const sign = at < 0 ? "" : signOf(old[at]);
  const nth = old.slice(0, Math.max(at, 0)).filter((stop) => signOf(stop) === sign).length;
  box.replaceChildren(...children);
  if (at < 0) return;
  const now = stops();
  const again = now.filter((stop) => signOf(stop) === sign);
  (again[nth] ?? again.at(-1) ?? now[Math.min(at, now.length - 1)])?.focus({ preventScroll: true });
}

/** The frames of a backtrace, folded; null if there are none. `open` remembers which were opened. */
export function backtrace(frames, key, open) {
  if (!frames || frames.length === 0) return null;
  const box = el(
    "details",
    { class: "frames", open: open.has(key), "data-key": key },
    el("summary", { text: frames.length === 1 ? "1 frame" : `${frames.length} frames` }),
    el(
      "ol",
      {},
      ...frames.map((frame) =>
        el(
          "li",
          {},
          el("code", { text: frame.text || frame.pc }),
          frame.text ? el("span", { class: "quiet", text: ` ${frame.pc}` }) : null,
        ),
      ),
    ),
  );
  box.addEventListener("toggle", () => (box.open ? open.add(key) : open.delete(key)));
  return box;
}

/** Signs that are not seen, or that turn a text round, are shown as such: "\u202egnp.exe" is no picture. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
export const plain = (text) => (text ?? "").replace(UNSEEN, "\ufffd");

/** What an actor is called: its name, or its id if it has none that can be seen. */
export const nameOf = ({ name, id }) => (name?.trim() ? plain(name) : id);

/** The fonts of what is written into the picture; parts.css has the same. */
export const NAME_FONT = "680 13px";
export const SUB_FONT = "600 11.5px";

let pen = null;
const widths = new Map();
/** How wide a text is, in pixels. */
export function widthOf(text, font) {
  const key = `${font} ${text}`;
  if (widths.has(key)) return widths.get(key);
  if (!pen) pen = document.createElement("canvas").getContext("2d");
  pen.font = `${font} ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
  if (widths.size > 8000) widths.clear();
  widths.set(key, pen.measureText(text).width);
  return widths.get(key);
}

/** What a reader takes for one sign: a letter with its accents, an emoji of several parts. */
const segmenter = Intl.Segmenter ? new Intl.Segmenter() : null;
const signsOf = (text) => (segmenter ? [...segmenter.segment(text)].map((one) => one.segment) : [...text]);

const cuts = new Map();
/** As much of a text as is this wide; an ellipsis stands for the rest. */
export function cut(text, width, font = NAME_FONT) {
  const key = `${Math.floor(width)} ${font} ${text}`;
  if (cuts.has(key)) return cuts.get(key);
  let out = text.length <= 200 && widthOf(text, font) <= width ? text : null;
  if (out === null) {
    const signs = signsOf(text.slice(0, 200));
    let [low, high] = [0, signs.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (widthOf(`${signs.slice(0, middle).join("")}…`, font) <= width) low = middle;
      else high = middle - 1;
    }
    out = `${signs.slice(0, low).join("")}…`;
  }
  if (cuts.size > 4000) cuts.clear();
  cuts.set(key, out);
  return out;
}

/** The time of day of a moment of this page's clock. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** Buttons of which one is chosen, by arrows too. `choose` is told the button. */
export function radios(box, choose) {
  const buttons = [...box.querySelectorAll("[role=radio]")];
  const mark = (button) => {
    for (const other of buttons) {
      other.setAttribute("aria-checked", other === button);
      other.tabIndex = other === button ? 0 : -1;
    }
  };
  buttons.forEach((button, at) => {
    button.addEventListener("click", () => choose(button));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = buttons[(at + step + buttons.length) % buttons.length];
      next.focus();
      choose(next);
    });
  });
  return { buttons, mark };
}

/** Hands a file to the browser. */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let toastTimer = 0;
/** A sentence at the foot of the page for a few seconds. */
export function toast(text, bad = false) {
  const node = $("toast");
  node.textContent = text;
  node.classList.toggle("toast-bad", bad);
  node.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(
    () => {
      node.hidden = true;
    },
    bad ? 8000 : 4000,
  );
}

/** Asks before something is done that cannot be taken back. Resolves to true or false. */
export function confirmed(title, text, verb) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = verb;
  dialog.returnValue = "";
  return new Promise((resolve) => {
    $("confirm-yes").onclick = () => dialog.close("yes");
    $("confirm-no").onclick = () => dialog.close("");
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
    dialog.showModal();
    $("confirm-no").focus();
  });
}
