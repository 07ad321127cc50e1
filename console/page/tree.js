// The supervision tree as a picture: drawing it, and moving in it by pointer and by keys.

import { $, SUB_FONT, count, cut, nameOf, setAttr, setText, short, span, svg, widthOf } from "./dom.js";
import { forgetTrays, layout } from "./layout.js";
import { stateOf } from "./model.js";
import { Viewport } from "./viewport.js";

const RADIUS = 8;
const RING = 11.5;
const AROUND = 2 * Math.PI * RING;

// Marks inside the shapes, so that a state is never told by its colour alone.
export const GLYPHS = {
  created: "M-3 0h6",
  starting: "M-3 1.5L0-2.5L3 1.5",
  running: "",
  stuck: "M0-4.2V.8M0 3.8V4",
  stopping: "M-2.5-2.5h5v5h-5z",
  stopped: "M-2.5-2.5h5v5h-5z",
  failed: "M-3-3L3 3M3-3L-3 3",
  restarting: "M3-1.5A3.3 3.3 0 1 0 3.2 1M3.4-4v2.7H.8",
  terminated: "M-3-3L3 3M3-3L-3 3",
};

export function shapePath(supervisor) {
  return supervisor
    ? "M-6-8H6a2 2 0 0 1 2 2V6a2 2 0 0 1-2 2H-6a2 2 0 0 1-2-2V-6a2 2 0 0 1 2-2z"
    : `M-${RADIUS} 0a${RADIUS} ${RADIUS} 0 1 0 ${RADIUS * 2} 0a${RADIUS} ${RADIUS} 0 1 0 -${RADIUS * 2} 0z`;
}

/** The line under a name: two facts at most, and no more of them than fit. */
function subline(actor, view, width, now) {
  const { row } = actor;
  const state = stateOf(actor);
  const parts = [];
  if (state === "stuck") parts.push(`stuck for ${span(now - actor.stuckSince)}`);
  else if (state === "terminated") parts.push(actor.flash === "failed" ? "failed" : "ended");
  else if (state !== "running") parts.push(state);
  if (row.restarts > 0) parts.push(`↻ ${short(row.restarts)}`);
  if (row.cap > 0 && row.mailbox >= row.cap) parts.push("mailbox full");
  else if (row.mailbox > 0) parts.push(`${short(row.mailbox)} waiting`);
  if (view.parents && !view.open) parts.push(`${short(row.children)} below`);
  else if (row.supervisor && state === "running" && row.mailbox === 0)
    parts.push(`${count(row.children)} below`);
  if (!row.supervisor && actor.rate !== null && state === "running") parts.push(`${short(actor.rate)}/s`);
  const two = parts.slice(0, 2).join(" · ");
  return widthOf(two, SUB_FONT) <= width ? two : cut(parts[0] ?? "", width, SUB_FONT);
}

function describe(actor) {
  const { row } = actor;
  const words = [nameOf(row), row.supervisor ? "supervisor" : "worker", stateOf(actor)];
  if (row.mailbox > 0) words.push(`${row.mailbox} of ${row.cap} messages waiting`);
  if (row.children > 0) words.push(`${row.children} below`);
  if (row.restarts > 0) words.push(`restarted ${row.restarts} times`);
  return words.join(", ");
}

export class Tree {
  constructor(model, { onOpen, onToggle }) {
    this.model = model;
    this.onOpen = onOpen;
    this.onToggle = onToggle;
    this.root = $("tree");
    this.stage = $("stage");
    this.layers = ["links", "trays", "nodes"].map((name) => svg("g", { class: name, role: "presentation" }));
    this.world = svg("g", { class: "world", role: "presentation" }, ...this.layers);
    this.root.append(this.world);
    this.drawn = new Map(); // id -> elements of a node
    this.trays = [];
    this.links = [];
    this.picture = null;
    this.focused = null; // id that has the tab stop
    this.selected = null; // id whose detail is open
    this.waiting = "Waiting for the program.";
    this.viewport = new Viewport(this.stage, this.root, this.world, () => this.picture);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("focusin", (event) => {
      const id = event.target.closest(".node")?.dataset.id;
      if (id !== undefined) this.setStop(id);
    });
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  /** Another program comes: the keys begin at its first actor. */
  reset() {
    forgetTrays();
    this.setStop(null);
  }

  isNarrow() {
    return this.stage.clientWidth < 560;
  }

  draw(now = performance.now()) {
    const narrow = this.isNarrow();
    this.model.roomy = !narrow;
    const forest = this.model.view(now);
    $("tree-empty").hidden = Boolean(forest);
    setText($("tree-empty"), this.model.lastAt ? "The program has no actors." : this.waiting);
    if (!forest) {
      for (const layer of this.layers) layer.replaceChildren();
      this.drawn.clear();
      this.links = [];
      this.trays = [];
      this.picture = null;
      return;
    }
    if (this.stage.clientWidth === 0) return; // the table is seen in its place
    const room = this.viewport.room();
    this.picture = layout(forest, { narrow, ...room, width: narrow ? room.width + 16 : room.width }, now);
    this.drawLinks();
    this.drawNodes(now);
    this.viewport.update(narrow);
  }

  drawLinks() {
    const [links, trays] = this.layers;
    this.links = this.reuse(this.links, this.picture.links, links, () => svg("path", { class: "link" }));
    this.picture.links.forEach(({ from, to }, at) => {
      const { outline } = this.picture;
      const x = outline ? from.x + 12.5 : from.x + from.width;
      const mid = (x + to.x) / 2;
      setAttr(
        this.links[at],
        "d",
        outline
          ? `M${x} ${from.y + 14}V${to.y - 6}Q${x} ${to.y + 0.5} ${x + 6} ${to.y + 0.5}H${to.x}`
          : `M${x} ${from.y}C${mid} ${from.y} ${mid} ${to.y} ${to.x} ${to.y}`,
      );
    });
    this.trays = this.reuse(this.trays, this.picture.trays, trays, () =>
      svg("rect", { class: "tray", rx: 10 }),
    );
    this.picture.trays.forEach((tray, at) => {
      for (const name of ["x", "y", "width", "height"]) setAttr(this.trays[at], name, tray[name]);
    });
  }

  reuse(old, wanted, layer, make) {
    while (old.length > wanted.length) old.pop().remove();
    while (old.length < wanted.length) {
      const node = make();
      layer.append(node);
      old.push(node);
    }
    return old;
  }

  drawNodes(now) {
    const layer = this.layers[2];
    const seen = new Set();
    const active = document.activeElement;
    let place = layer.firstChild;
    for (const spot of this.picture.nodes) {
      let parts = this.drawn.get(spot.id);
      if (!parts) {
        parts = this.make(spot);
        this.drawn.set(spot.id, parts);
      }
      seen.add(spot.id);
      // The order of the elements is the order of reading; only who is new or moved is put in.
      if (parts.g !== place) layer.insertBefore(parts.g, place);
      else place = place.nextSibling;
      this.paint(parts, spot, now);
    }
    // An element that is moved loses the focus.
    if (layer.contains(active) && document.activeElement !== active) active.focus({ preventScroll: true });
    for (const [id, parts] of this.drawn) {
      if (seen.has(id)) continue;
      const hadFocus = parts.g === active;
      parts.g.remove();
      this.drawn.delete(id);
      if (hadFocus) this.focus(parts.spot.parent?.id ?? this.picture.nodes[0].id);
    }
    if (!this.drawn.has(this.focused)) this.setStop(this.picture.nodes[0].id);
  }

  make(spot) {
    const parts = {
      spot,
      hit: svg("rect", { class: "hit", rx: 8 }),
      pulse: svg("circle", { class: "pulse", r: RING }),
      track: svg("circle", { class: "ring-track", r: RING }),
      ring: svg("circle", { class: "ring", r: RING, transform: "rotate(-90)" }),
      shape: svg("path", { class: "shape" }),
      glyph: svg("path", { class: "glyph" }),
      name: svg("text", { class: "name" }),
      sub: svg("text", { class: "sub" }),
      toggle: svg("g", { class: "toggle" }, svg("circle", { r: 7.5 }), svg("path", {})),
      title: svg("title"),
    };
    parts.mark = svg(
      "g",
      { class: "mark-group" },
      parts.pulse,
      parts.track,
      parts.ring,
      parts.shape,
      parts.glyph,
    );
    parts.g = svg(
      "g",
      { class: "node", role: "treeitem", tabindex: -1, "data-id": spot.id },
      parts.title,
      parts.hit,
      parts.mark,
      parts.name,
      parts.sub,
      parts.toggle,
    );
    return parts;
  }

  paint(parts, spot, now) {
    parts.spot = spot;
    const { g } = parts;
    setAttr(g, "transform", `translate(${spot.x} ${spot.y})`);
    setAttr(parts.hit, "x", -3);
    setAttr(parts.hit, "y", -18);
    setAttr(parts.hit, "width", spot.width);
    setAttr(parts.hit, "height", 36);
    setAttr(parts.mark, "transform", "translate(13 0)");
    setAttr(g, "aria-level", spot.depth + 1);
    setAttr(g, "aria-selected", spot.id === this.selected && spot.view !== null);
    if (spot.view === null) this.paintGroup(parts, spot);
    else this.paintActor(parts, spot, now);
  }

  paintGroup(parts, spot) {
    setAttr(parts.g, "class", "node group");
    setAttr(
      parts.shape,
      "d",
      "M-8 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM4 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
    );
    setText(parts.name, cut(`+${count(spot.hidden)} more`, spot.width - 37));
    setText(parts.title, `${count(spot.hidden)} more are not drawn; a click shows some of them`);
    setAttr(parts.name, "x", 32);
    setAttr(parts.name, "y", 4);
    setAttr(parts.g, "aria-label", `${count(spot.hidden)} more. Enter shows some of them.`);
    parts.toggle.setAttribute("display", "none");
  }

  paintActor(parts, spot, now) {
    const { actor, parents, open } = spot.view;
    const { row } = actor;
    const state = stateOf(actor);
    const filled = row.cap > 0 ? Math.min(1, row.mailbox / row.cap) : 0;
    const kind = actor.flashUntil > now ? actor.flash : spot.view.alarm;
    const flash = kind ? ` flash flash-${kind}` : "";
    const loud = filled >= 0.8 ? " brimming" : "";
    const chosen = row.id === this.selected ? " selected" : "";
    setAttr(
      parts.g,
      "class",
      `node s-${state} ${row.supervisor ? "sup" : "worker"}${flash}${loud}${chosen}${row.running ? " busy" : ""}`,
    );
    setAttr(parts.g, "data-restarts", row.restarts);
    setAttr(parts.g, "data-state", state);
    setAttr(parts.shape, "d", shapePath(row.supervisor));
    setAttr(parts.glyph, "d", GLYPHS[state] ?? "");
    // A few waiting must be seen as well: the ring grows with the root of the fill.
    setAttr(parts.ring, "class", filled > 0 ? "ring" : "ring ring-empty");
    setAttr(
      parts.ring,
      "stroke-dasharray",
      `${(Math.sqrt(filled) * AROUND).toFixed(1)} ${AROUND.toFixed(1)}`,
    );
    const room = spot.width - 37 - (parents ? 22 : 0);
    const below = subline(actor, spot.view, room, now);
    setText(parts.name, cut(nameOf(row), room));
    setText(parts.sub, below);
    setAttr(parts.name, "x", 32);
    setAttr(parts.name, "y", below ? -2 : 4);
    setAttr(parts.sub, "x", 32);
    setAttr(parts.sub, "y", 12);
    setText(parts.title, `${nameOf(row)}\n${row.id}${below ? `\n${below}` : ""}`);
    setAttr(parts.g, "aria-label", describe(actor));
    if (parents) {
      setAttr(parts.g, "aria-expanded", open);
      setAttr(parts.toggle, "transform", `translate(${spot.width - 14} 0)`);
      setAttr(parts.toggle.lastChild, "d", open ? "M-3.5 0h7" : "M-3.5 0h7M0-3.5v7");
      parts.toggle.removeAttribute("display");
    } else {
      parts.g.removeAttribute("aria-expanded");
      parts.toggle.setAttribute("display", "none");
    }
  }

  select(id) {
    this.selected = id;
    this.draw();
  }

  setStop(id) {
    const old = this.drawn.get(this.focused);
    if (old) old.g.setAttribute("tabindex", "-1");
    this.focused = id;
    const parts = this.drawn.get(id);
    if (parts) parts.g.setAttribute("tabindex", "0");
  }

  focus(id) {
    const parts = this.drawn.get(id);
    if (!parts) return;
    this.setStop(id);
    parts.g.focus({ preventScroll: !this.picture.narrow });
    if (!this.picture.narrow) this.viewport.bringIn(parts.spot);
  }

  /** What Enter and a click do: details of an actor, more of a group. */
  act(spot) {
    if (spot.view === null) {
      this.model.showMore(spot.owner);
      this.onToggle();
    } else if (!spot.view.actor.goneAt) {
      this.onOpen(spot.id);
    }
  }

  setOpen(spot, open) {
    if (!spot.view || !spot.view.parents) return;
    this.model.setOpen(spot.id, open);
    this.draw();
    this.onToggle();
  }

  click(event) {
    const g = event.target.closest(".node");
    if (!g || this.viewport.dragged) return;
    const spot = this.drawn.get(g.dataset.id).spot;
    this.focus(spot.id);
    if (event.target.closest(".toggle")) this.setOpen(spot, !spot.view.open);
    else this.act(spot);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.picture) return;
    const nodes = this.picture.nodes;
    const at = nodes.findIndex((spot) => spot.id === this.focused);
    const spot = nodes[at];
    if (!spot) return;
    if (event.shiftKey && event.key.startsWith("Arrow")) {
      this.viewport.nudge(event.key);
      event.preventDefault();
      return;
    }
    const go = (target) => {
      if (target) this.focus(target.id);
    };
    const moves = {
      ArrowDown: () => go(nodes[at + 1]),
      ArrowUp: () => go(nodes[at - 1]),
      ArrowRight: () =>
        spot.view?.parents && !spot.view.open
          ? this.setOpen(spot, true)
          : nodes[at + 1]?.parent === spot
            ? go(nodes[at + 1])
            : null,
      ArrowLeft: () =>
        spot.view?.open && spot.view.kids.length > 0 ? this.setOpen(spot, false) : go(spot.parent),
      Home: () => go(nodes[0]),
      End: () => go(nodes[nodes.length - 1]),
      Enter: () => this.act(spot),
      " ": () => (spot.view?.parents ? this.setOpen(spot, !spot.view.open) : this.act(spot)),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
