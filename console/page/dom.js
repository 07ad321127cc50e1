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

let pen = null;
const cuts = new Map();
/** As much of a text as is this wide, in the font of the tree's names. */
export function cut(text, width) {
  const key = `${Math.round(width)} ${text}`;
  if (cuts.has(key)) return cuts.get(key);
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `680 12.5px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
  }
  const signs = [...text.slice(0, 200)];
  const fits = (n) => pen.measureText(signs.slice(0, n).join("")).width;
  let [low, high] = [1, signs.length];
  if (fits(high) <= width) low = high;
  else {
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (fits(middle) + 12 <= width) low = middle;
      else high = middle - 1;
    }
  }
  if (cuts.size > 4000) cuts.clear();
  cuts.set(key, low === signs.length ? text : `${signs.slice(0, low).join("")}…`);
  return cuts.get(key);
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
