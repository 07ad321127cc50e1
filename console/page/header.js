// The top of the page: which program, how it is, and what is wrong.

import { GLYPHS, shapePath } from "./tree.js";
import {
  $,
  bytes,
  count,
  el,
  micros,
  nameOf,
  plain,
  setAttr,
  setText,
  share,
  short,
  span,
  svg,
  tagText,
} from "./dom.js";

const NUMBERS = [
  ["actors", "Actors", "that live now", (p) => count(p.actors)],
  ["rate", "Messages/s", "handled, by all dispatchers, mean over the last second", (p, rate) => short(rate)],
  ["queued", "Waiting", "messages in all mailboxes now", (p) => short(p.counters.queued)],
  ["restarts", "Restarts", "of all actors since the program began", (p) => short(p.counters.restarts)],
  ["failures", "Failures", "of all actors since the program began", (p) => short(p.counters.failures)],
  ["dead", "Dead letters", "since the program began", (p) => short(p.counters.dead)],
  ["memory", "Memory", "of the process, resident, now", (p) => bytes(p.rss_bytes)],
];
const LEGEND = [
  ["running", "running"],
  ["starting", "starting"],
  ["restarting", "restarting"],
  ["failed", "failed"],
  ["stuck", "stuck"],
  ["stopping", "stopping"],
];
const SHOWN = 6; // dispatchers, unless the visitor wants to see all

function symbol(state, supervisor) {
  return svg(
    "svg",
    { class: `symbol s-${state}`, viewBox: "-10 -10 20 20", "aria-hidden": "true" },
    svg("path", { class: "shape", d: shapePath(supervisor) }),
    svg("path", { class: "glyph", d: GLYPHS[state] }),
  );
}

export class Header {
  constructor() {
    this.rate = null;
    this.word = "not reached";
    this.trouble = null;
    this.warning = "";
    this.values = new Map();
    for (const [key, title, what] of NUMBERS) {
      const value = el("dd", { id: `n-${key}`, text: "–" });
      this.values.set(key, value);
      $("numbers").append(
        el("div", { class: `number number-${key}`, title: `${title}: ${what}` }, el("dt", { text: title }), value),
      );
    }
    for (const id of ["legend", "keys-legend"]) this.legend($(id));
    this.rows = [];
    this.showAll = false;
    this.rest = el("button", { type: "button", class: "link-button", onclick: () => this.toggleRest() });
    this.restItem = el("li", { class: "dispatcher" }, this.rest);
  }

  legend(list) {
    list.append(
      el("li", {}, symbol("running", true), "supervisor"),
      el("li", {}, symbol("running", false), "worker"),
      ...LEGEND.slice(1).map(([state, word]) => el("li", {}, symbol(state, false), word)),
      el(
        "li",
        {},
        svg(
          "svg",
          { class: "symbol", viewBox: "-10 -10 20 20", "aria-hidden": "true" },
          svg("circle", { class: "ring-track", r: 8 }),
          svg("path", { class: "ring", d: "M0-8A8 8 0 0 1 7.6 2.5" }),
        ),
        "mailbox",
      ),
    );
  }

  show(program) {
    setText($("program"), plain(program.name));
    setAttr($("program"), "title", plain(program.name));
    setText($("whereabouts"), `pid ${program.pid} · up ${span(program.uptime_ms)} · Jazz ${program.version}`);
    document.title = `${plain(program.name)} · Jazz console`;
    for (const [key, , , text] of NUMBERS) setText(this.values.get(key), text(program, this.rate));
    $("numbers")
      .querySelector(".number-failures")
      .classList.toggle("number-bad", (program.counters.failures ?? 0) > 0);
    this.dispatchers(program.dispatchers || []);
  }

  toggleRest() {
    this.showAll = !this.showAll;
    this.dispatchers(this.all);
    this.rest.focus(); // it was put behind the others
  }

  dispatchers(all) {
    this.all = all;
    const list = $("dispatchers");
    // Who does not answer must not be among those that are only counted.
    const few = new Set([...all].sort((a, b) => Number(a.answering) - Number(b.answering)).slice(0, SHOWN));
    const shown = all.filter((one) => this.showAll || few.has(one));
    if (this.rows.length !== shown.length) {
      this.rows = shown.map(() => this.makeDispatcher());
      list.replaceChildren(...this.rows.map((row) => row.item), this.restItem);
    }
    this.restItem.hidden = all.length <= SHOWN;
    setText(this.rest, this.showAll ? "fewer" : `and ${count(all.length - SHOWN)} more`);
    setAttr(this.rest, "aria-expanded", this.showAll);
    const twice = (name) => all.filter((other) => other.name === name).length > 1;
    shown.forEach((one, at) =>
      this.showDispatcher(this.rows[at], one, twice(one.name) ? `${one.name} ${one.index}` : one.name),
    );
  }

  makeDispatcher() {
    const name = el("strong");
    const facts = el("span", { class: "quiet" });
    const bars = el("span", { class: "meters" });
    return {
      name,
      facts,
      bars,
      item: el("li", { class: "dispatcher" }, el("span", { class: "dispatcher-name" }, name, facts), bars),
    };
  }

  showDispatcher(row, one, name) {
    const workers = (one.workers || []).slice(0, 8);
    setText(row.name, plain(name));
    setText(
      row.facts,
      one.answering ? `${one.kind} · ${micros(one.latency_us)}` : `⚠ no answer for ${micros(one.latency_us)}`,
    );
    setAttr(row.item, "title", `${plain(name)}: ${row.facts.textContent}`);
    row.item.classList.toggle("silent", !one.answering);
    while (row.bars.children.length > workers.length) row.bars.lastChild.remove();
    while (row.bars.children.length < workers.length)
      row.bars.append(
        el("span", { class: "meter", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 }, el("i")),
      );
    workers.forEach((worker, at) => {
      const meter = row.bars.children[at];
      const busy = Math.min(1, worker.busy ?? 0);
      meter.firstChild.style.height = `${Math.round(busy * 100)}%`;
      setAttr(meter, "aria-valuenow", Math.round(busy * 100));
      setAttr(meter, "aria-label", `worker ${worker.number} of ${one.name}: ${share(worker.busy)} busy`);
      setAttr(
        meter,
        "title",
        `worker ${worker.number}: ${worker.state}, ${share(worker.busy)} busy${worker.name ? `, in ${worker.name}` : ""}`,
      );
    });
  }

  live(how) {
    const words = { live: "live", paused: "paused", lost: this.word };
    // It changes with every look that succeeds: a light that stands still says so.
    this.beat = how === "live" && !this.beat;
    setAttr($("live"), "class", `live live-${how}${this.beat ? " beat" : ""}`);
    setText($("live-text"), words[how]);
  }

  /** A sentence about what cannot be reached, and a word for the light; null: all is well. */
  showTrouble(text, word = "not reached") {
    this.word = word;
    this.trouble = text;
    if (text !== null) {
      setText($("banner"), text);
      setAttr($("banner"), "title", text);
      this.live("lost");
    }
    this.showOne();
  }

  /** One sentence at a time has the place: the gravest. */
  showOne() {
    $("banner").hidden = !this.trouble;
    $("stuck-line").hidden = Boolean(this.trouble) || !this.warning;
    $("well").hidden = Boolean(this.trouble || this.warning);
  }

  showStuck({ running = [], cycles = [], full = [] }, program) {
    const silent = (program?.dispatchers || []).filter((one) => !one.answering);
    let text = "";
    if (running.length > 0) {
      const worst = running.reduce((a, b) => (a.for_ms > b.for_ms ? a : b));
      text = `⚠ ${nameOf({ name: worst.name, id: worst.actor })} has been in the same code for ${span(worst.for_ms)}, ${worst.hook ? "in a hook" : `with tag ${tagText(worst.tag)}`}`;
    } else if (cycles.length > 0) text = `⚠ ${cycles[0].length} actors wait for each other in a circle`;
    else if (silent.length > 0) text = `⚠ dispatcher ${silent[0].name} does not answer`;
    else if (full.length > 0)
      text = `⚠ ${full.length === 1 ? `The mailbox of ${nameOf(full[0])} is full` : `${count(full.length)} mailboxes are full`}`;
    this.warning = text;
    setText($("well"), "Nothing is stuck, nobody is full.");
    if (text) {
      setText($("stuck-line"), text);
      setAttr($("stuck-line"), "title", text);
    }
    this.showOne();
  }
}
