// All actors as a table. The program sorts and filters; the page asks for what is seen of it and a
// little more, so that 100,000 rows cost what fifty do.

import { get } from "./api.js";
import { $, bytes, count, el, nameOf, setAttr, setText, share, short, span } from "./dom.js";

const ROW = 30; // pixels; app.css has the same
const AROUND = 12; // rows beyond the edge that are there already
const TALLEST = 15000000; // pixels that browsers scroll exactly
const EVERY_MS = 1000;
const PAUSE_MS = 120; // after the last key in the filter
const STATES = ["created", "starting", "running", "stopping", "stopped", "failed", "restarting"];

// name in the protocol, title, what the number is, text of a row. `text` sorts A to Z first.
const COLUMNS = [
  { key: "name", title: "Name", text: true, say: (row) => nameOf(row) },
  { key: "id", title: "Id", text: true, say: (row) => row.id },
  { key: "state", title: "State", text: true, say: (row) => (row.stopping && row.state === "running" ? "stopping" : row.state) },
  { key: "dispatcher", title: "Dispatcher", text: true, say: (row) => row.dispatcher },
  { key: "mailbox", title: "Mailbox", about: "messages that wait, of how many have room", say: (row) => `${count(row.mailbox)} / ${row.cap}` },
  { key: "rate", title: "Rate", about: "messages handled per second, mean since the last look", say: (row) => (row.rate === null ? "–" : `${short(row.rate)}/s`) },
  { key: "handled", title: "Handled", about: "messages handled or otherwise done with, since it began", say: (row) => count(row.handled ?? row.accepted) },
  { key: "restarts", title: "Restarts", about: "how often its supervisor restarted it", say: (row) => count(row.restarts) },
  { key: "memory", title: "Memory", about: "what the runtime holds for it; not what it allocated itself", say: (row) => bytes(row.memory) },
  { key: "cpu", title: "CPU", about: "share of one processor since the last look", say: (row) => share(row.cpu) },
  { key: "dead", title: "Dead", about: "its messages that became dead letters", say: (row) => count(row.dead) },
  { key: "uptime", title: "Up for", about: "since it was started last", say: (row) => span(row.uptime_ms) },
];

export class Table {
  constructor({ onOpen, onTrouble }) {
    this.onOpen = onOpen;
    this.onTrouble = onTrouble;
    this.sort = "rate";
    this.reverse = false;
    this.total = 0; // rows that match
    this.rows = []; // those that were asked for last
    this.offset = 0; // of the first of them
    this.at = 0; // the row of the keyboard
    this.atId = null;
    this.lines = []; // elements, reused
    this.askedAt = 0;
    this.selected = null;
    this.wanted = 0; // number of the last question; an older answer is void
    this.box = $("table");
    this.make();
  }

  make() {
    this.head = el(
      "div",
      { class: "t-row t-head", role: "row", "aria-rowindex": 1 },
      ...COLUMNS.map((column) =>
        el(
          "div",
          { role: "columnheader", class: `t-cell t-${column.key}`, "data-key": column.key },
          el("button", {
            type: "button",
            class: "t-sort",
            text: column.title,
            title: `Sort by ${column.title.toLowerCase()}${column.about ? `: ${column.about}` : ""}`,
            onclick: () => this.sortBy(column),
          }),
        ),
      ),
    );
    this.space = el("div", { class: "t-space", role: "rowgroup" });
    this.none = el("p", { class: "empty t-none", text: "Nobody passes the filter.", hidden: true });
    this.scroll = el(
      "div",
      {
        class: "t-scroll",
        role: "grid",
        tabindex: 0,
        "aria-label": "All actors. Arrow keys move, Enter opens.",
        "aria-colcount": COLUMNS.length,
      },
      el("div", { role: "rowgroup", class: "t-top" }, this.head),
      this.space,
    );
    this.box.append(this.scroll, this.none);
    this.scroll.addEventListener("scroll", () => this.scrolled());
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.space.addEventListener("click", (event) => {
      const line = event.target.closest(".t-row");
      if (!line) return;
      this.go(Number(line.dataset.at), false);
      this.onOpen(line.dataset.id);
    });
    // While the pointer is among the rows they keep their order: what is aimed at must not leave.
    this.space.addEventListener("pointerenter", () => this.hold(true));
    this.space.addEventListener("pointerleave", () => this.hold(false));
    $("filter-state").append(
      el("option", { value: "", text: "any state" }),
      ...STATES.map((state) => el("option", { value: state, text: state })),
    );
    let timer = 0;
    $("filter").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.again(), PAUSE_MS);
    });
    $("filter-state").addEventListener("change", () => this.again());
    $("filters").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      this.again();
      this.scroll.focus();
    });
    $("filter").addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      this.scroll.focus();
    });
    new ResizeObserver(() => this.seen && this.scrolled()).observe(this.scroll);
    this.markSort();
  }

  get seen() {
    return !this.box.hidden;
  }

  show(seen) {
    this.box.hidden = !seen;
    $("filters").hidden = !seen;
    if (seen) this.again();
  }

  /** Another program: nothing of the old one is kept. */
  reset() {
    this.rows = [];
    this.total = 0;
    this.atId = null;
    this.again();
  }

  /** Other rows from the top on. */
  again() {
    this.at = 0;
    this.atId = null;
    this.held = false;
    this.scroll.scrollTop = 0;
    this.askedAt = 0;
    if (this.seen) this.refresh().catch((error) => this.onTrouble(error));
  }

  hold(on) {
    this.held = on;
    setText($("tree-count"), this.summary());
  }

  summary() {
    const all = `${count(this.total)} ${this.total === 1 ? "actor" : "actors"}`;
    return this.held ? `${all}; order held` : all;
  }

  sortBy(column) {
    if (this.sort === column.key) this.reverse = !this.reverse;
    else [this.sort, this.reverse] = [column.key, false];
    this.markSort();
    this.again();
  }

  markSort() {
    for (const cell of this.head.children) {
      const column = COLUMNS.find((one) => one.key === cell.dataset.key);
      const chosen = column.key === this.sort;
      const up = Boolean(column.text) !== this.reverse;
      setAttr(cell, "aria-sort", chosen ? (up ? "ascending" : "descending") : "none");
    }
  }

  /** The first row that is seen, and how many are. */
  window() {
    const room = Math.max(ROW, this.scroll.clientHeight - ROW);
    const seen = Math.ceil(room / ROW) + 1;
    const most = Math.max(0, this.total - seen + 1);
    // Of more rows than a page is tall, the place of the bar is a share of them.
    const first = this.exact()
      ? Math.floor(this.scroll.scrollTop / ROW)
      : Math.round((this.scroll.scrollTop / Math.max(1, TALLEST - room)) * most);
    return { first: Math.max(0, Math.min(first, most)), seen };
  }

  exact() {
    return this.total * ROW <= TALLEST;
  }

  scrolled() {
    this.draw();
    const { first, seen } = this.window();
    const has = first >= this.offset && Math.min(this.total, first + seen) <= this.offset + this.rows.length;
    if (!has && !this.hurry) {
      this.hurry = setTimeout(() => {
        this.hurry = 0;
        this.refresh().catch((error) => this.onTrouble(error));
      }, 30);
    }
  }

  /** Asks again if it is time. */
  tick(now) {
    if (!this.seen || now - this.askedAt < EVERY_MS - 50) return undefined;
    return this.refresh();
  }

  async refresh() {
    this.askedAt = performance.now();
    const number = ++this.wanted;
    const { first, seen } = this.window();
    const offset = Math.max(0, first - AROUND);
    const answer = await get("actors", {
      sort: this.sort,
      reverse: this.reverse ? "true" : null,
      offset: offset || null,
      limit: seen + 2 * AROUND,
      filter: $("filter").value.trim(),
      state: $("filter-state").value,
    });
    if (number !== this.wanted) return;
    this.total = answer.matched;
    this.take(answer.actors, offset);
    this.none.hidden = this.total > 0;
    setText($("tree-count"), this.summary());
    this.draw();
  }

  take(rows, offset) {
    const same = this.held && offset === this.offset && this.rows.length > 0;
    if (!same) {
      [this.rows, this.offset] = [rows, offset];
      return;
    }
    const fresh = new Map(rows.map((row) => [row.id, row]));
    this.rows = this.rows.map((row) => fresh.get(row.id) ?? row);
  }

  draw() {
    const height = Math.min(this.total * ROW, TALLEST);
    if (this.space.style.height !== `${height}px`) this.space.style.height = `${height}px`;
    setAttr(this.scroll, "aria-rowcount", this.total + 1);
    if (this.atId !== null) {
      // Who has the mark keeps it, wherever it goes, for as long as it is in sight.
      const now = this.rows.findIndex((row) => row.id === this.atId);
      if (now >= 0 && !this.moving) this.at = this.offset + now;
    }
    this.at = Math.max(0, Math.min(this.at, this.total - 1));
    const { first, seen } = this.window();
    const from = Math.max(0, first - 4);
    const until = Math.min(this.total, first + seen + 4);
    const top = this.exact() ? 0 : this.scroll.scrollTop - first * ROW;
    while (this.lines.length < until - from) this.lines.push(this.makeLine());
    this.lines.forEach((line, index) => {
      const at = from + index;
      line.box.hidden = at >= until;
      if (at < until) this.drawLine(line, at, top);
    });
    const active = this.lines.find((line) => !line.box.hidden && line.at === this.at);
    if (active) setAttr(this.scroll, "aria-activedescendant", active.box.id);
    else this.scroll.removeAttribute("aria-activedescendant");
  }

  makeLine() {
    const cells = COLUMNS.map((column, at) =>
      el("div", { role: "gridcell", class: `t-cell t-${column.key}`, "aria-colindex": at + 1 }),
    );
    const box = el("div", { class: "t-row", role: "row", id: `t-${this.lines.length}` }, ...cells);
    this.space.append(box);
    return { box, cells, at: -1 };
  }

  drawLine(line, at, top) {
    const row = this.rows[at - this.offset];
    line.at = at;
    line.box.style.transform = `translateY(${top + at * ROW}px)`;
    line.box.dataset.at = at;
    setAttr(line.box, "aria-rowindex", at + 2);
    setAttr(line.box, "aria-selected", at === this.at);
    const full = row && row.cap > 0 && row.mailbox >= row.cap * 0.8;
    setAttr(
      line.box,
      "class",
      `t-row${at === this.at ? " t-at" : ""}${row ? ` s-${row.state}` : " t-asking"}${row?.id === this.selected ? " t-open" : ""}${full ? " t-full" : ""}`,
    );
    line.box.dataset.id = row?.id ?? "";
    COLUMNS.forEach((column, n) => {
      const text = row ? column.say(row) : n === 0 ? "…" : "";
      setText(line.cells[n], text);
      if (column.text) setAttr(line.cells[n], "title", text);
    });
  }

  /** Goes to a row and shows it. */
  go(at, scroll = true) {
    this.at = Math.max(0, Math.min(at, this.total - 1));
    this.atId = this.rows[this.at - this.offset]?.id ?? null;
    if (scroll) {
      const room = Math.max(ROW, this.scroll.clientHeight - ROW);
      if (this.exact()) {
        if (this.at * ROW < this.scroll.scrollTop) this.scroll.scrollTop = this.at * ROW;
        else if ((this.at + 1) * ROW > this.scroll.scrollTop + room)
          this.scroll.scrollTop = (this.at + 1) * ROW - room;
      } else {
        const { first, seen } = this.window();
        const most = Math.max(1, this.total - seen + 1);
        if (this.at < first || this.at >= first + seen - 1)
          this.scroll.scrollTop = (Math.min(this.at, most) / most) * (TALLEST - room);
      }
    }
    this.moving = true;
    this.scrolled();
    this.moving = false;
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== this.scroll) return;
    const page = Math.max(1, Math.floor((this.scroll.clientHeight - ROW) / ROW) - 1);
    const moves = {
      ArrowDown: () => this.go(this.at + 1),
      ArrowUp: () => this.go(this.at - 1),
      PageDown: () => this.go(this.at + page),
      PageUp: () => this.go(this.at - page),
      Home: () => this.go(0),
      End: () => this.go(this.total - 1),
      Enter: () => {
        const row = this.rows[this.at - this.offset];
        if (row) this.onOpen(row.id);
      },
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  select(id) {
    this.selected = id;
    if (this.seen) this.draw();
  }
}
