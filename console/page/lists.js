// The lists under the tree: failures, dead letters, full mailboxes, what is stuck, what the doctor
// found, and the flight recorder. Only the one that is seen is asked for.

import { get } from "./api.js";
import { $, backtrace, clock, count, el, isPressed, nameOf, refill, setText, short, span, tagText } from "./dom.js";
import { FailureBook, failureCard } from "./failures.js";

function table(head, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, ...rows),
    ),
  );
}

const cell = (text, title) => el("td", { text: text ?? "–", title });
const empty = (text) => el("p", { class: "empty", text });

export class Lists {
  constructor({ onOpen, onShow, trace, known }) {
    this.onOpen = onOpen;
    this.known = known;
    this.letters = [];
    this.next = 0;
    this.reason = null;
    this.drawnFrom = new Map();
    this.frames = new Set();
    this.book = new FailureBook();
    this.counted = () => 0; // failures since the program began, as it says
    this.tabs = [];
    this.active = null;
    this.add("failures", "Failures", 1000, () => this.failures());
    this.add("dead", "Dead letters", 1000, () => this.dead());
    this.add("mailboxes", "Mailboxes", 1000, () => this.mailboxes());
    this.add("stuck", "Stuck", 1000, () => this.stuck());
    this.add("doctor", "Doctor", 10000, () => this.doctor());
    this.add("trace", "Trace", 0, null, trace.box);
    this.add("record", "Recorder", 2000, () => this.record());
    $("tabs").addEventListener("keydown", (event) => this.key(event));
    this.show("failures");
    this.onShow = onShow; // from now on
  }

  add(name, title, every, refresh, content) {
    const badge = el("span", { class: "badge", hidden: true });
    const tab = el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `panel-${name}`,
        "aria-selected": false,
        tabindex: -1,
        onclick: () => this.show(name),
      },
      title,
      badge,
    );
    const panel = el(
      "div",
      {
        role: "tabpanel",
        id: `panel-${name}`,
        "aria-labelledby": `tab-${name}`,
        class: "panel",
        hidden: true,
      },
      content || empty("Asking."),
    );
    $("tabs").append(tab);
    $("panels").append(panel);
    this.tabs.push({ name, tab, panel, badge, every, refresh, askedAt: 0 });
  }

  tab(name) {
    return this.tabs.find((one) => one.name === name);
  }

  show(name) {
    for (const one of this.tabs) {
      const chosen = one.name === name;
      one.tab.setAttribute("aria-selected", chosen);
      one.tab.tabIndex = chosen ? 0 : -1;
      one.panel.hidden = !chosen;
      if (chosen) {
        this.active = one;
        one.askedAt = 0;
        // Along the row of tabs only: the page stays where it is.
        const row = $("tabs");
        if (
          one.tab.offsetLeft + one.tab.offsetWidth > row.scrollLeft + row.clientWidth ||
          one.tab.offsetLeft < row.scrollLeft
        ) {
          row.scrollLeft = one.tab.offsetLeft - row.offsetLeft - 20;
        }
      }
    }
    if (this.started) this.refresh(performance.now()).catch(() => {});
    this.onShow?.(name);
  }

  key(event) {
    const at = this.tabs.indexOf(this.active);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = this.tabs[(to + this.tabs.length) % this.tabs.length];
    this.show(next.name);
    next.tab.focus();
  }

  badge(name, text, bad = false) {
    const { badge } = this.tab(name);
    badge.hidden = !text;
    setText(badge, text || "");
    badge.classList.toggle("badge-bad", bad);
  }

  /** Another program: what was gathered of the old one is void. */
  reset() {
    this.letters = [];
    this.next = 0;
    this.reason = null;
    this.book.clear();
    this.drawnFrom.clear();
    for (const one of this.tabs) {
      one.askedAt = 0;
      if (one.refresh) one.panel.replaceChildren(empty("Asking."));
    }
  }

  /** Asks again for what is seen, if it is time. */
  async refresh(now) {
    this.started = true;
    const tab = this.active;
    if (!tab.refresh || (tab.askedAt && now - tab.askedAt < tab.every - 50)) return;
    tab.askedAt = now;
    try {
      await tab.refresh();
    } catch (error) {
      if (tab.panel.textContent === "Asking.") tab.panel.replaceChildren(empty(`Not asked in time: ${error.message}`));
      throw error;
    }
  }

  draw(name, from, make) {
    const key = JSON.stringify(from);
    const { panel } = this.tab(name);
    if (this.drawnFrom.get(name) === key || isPressed(panel)) return;
    this.drawnFrom.set(name, key);
    const at = panel.querySelector(".scroll")?.scrollTop ?? 0;
    refill(panel, make().filter(Boolean));
    const scroll = panel.querySelector(".scroll");
    if (scroll) scroll.scrollTop = at;
  }

  who(id, name, nobody = "–") {
    if (!id) return el("td", { text: nobody });
    return el(
      "td",
      {},
      el("button", {
        type: "button",
        class: "link-button",
        text: nameOf({ name: name || this.known(id)?.row.name, id }),
        title: id,
        onclick: () => this.onOpen(id),
      }),
    );
  }

  /** Also called when the counters say that somebody failed. Resolves to the newest failures. */
  async failures() {
    const { failures } = await get("failures", { limit: 64 });
    this.book.take(failures);
    const groups = this.book.list();
    const earlier = Math.max(0, this.counted() - this.book.heard);
    this.draw("failures", [groups.map((g) => [g.key, g.count]), earlier > 0], () =>
      groups.length === 0
        ? [empty("Nobody has failed.")]
        : [
            el("div", { class: "cards" }, ...groups.map((g) => failureCard(g, this.frames, this.onOpen))),
            earlier > 0
              ? el("p", {
                  class: "quiet earlier",
                  text: "Equal failures are one card. There were more before: the program keeps its last 64.",
                })
              : null,
          ],
    );
    return failures;
  }

  async dead() {
    const answer = await get("dead", { after: this.next, limit: 200 });
    this.next = answer.next ?? this.next;
    this.letters = [
      ...answer.letters
        .map((letter) => ({ ...letter, at: clock(Date.now() - letter.ago_ms) }))
        .sort((a, b) => b.seq - a.seq),
      ...this.letters,
    ].slice(0, 500);
    this.byReason = answer.by_reason || {};
    this.drawDead();
  }

  drawDead() {
    const reasons = Object.entries(this.byReason || {}).filter(([, n]) => n > 0);
    const shown = this.letters
      .filter((letter) => !this.reason || letter.reason === this.reason)
      .slice(0, 200);
    this.draw("dead", [reasons, this.reason, shown.map((letter) => letter.seq)], () => {
      const chip = (reason, text) =>
        el("button", {
          type: "button",
          class: "chip",
          "aria-pressed": String(this.reason === reason),
          text,
          onclick: () => {
            this.reason = reason;
            this.drawDead();
          },
        });
      const chips = el(
        "div",
        { class: "chips", role: "group", "aria-label": "By reason" },
        chip(null, "all"),
        ...reasons.map(([reason, n]) => chip(reason, `${reason.replaceAll("_", " ")} ${count(n)}`)),
      );
      if (shown.length === 0) return [reasons.length ? chips : null, empty("No dead letters.")];
      return [
        chips,
        table(
          ["Time", "To", "From", "Tag", "Kind", "Reason", "Bytes"],
          shown.map((letter) =>
            el(
              "tr",
              { "data-key": letter.seq },
              cell(letter.at),
              this.who(letter.target, letter.target_name),
              this.who(letter.sender, letter.sender_name, "outside"),
              cell(tagText(letter.tag)),
              cell(letter.kind),
              cell(letter.reason.replaceAll("_", " ")),
              cell(count(letter.len)),
            ),
          ),
        ),
      ];
    });
  }

  async mailboxes() {
    const { actors } = await get("actors", { sort: "mailbox", limit: 20 });
    this.draw(
      "mailboxes",
      actors.map((a) => [a.id, a.mailbox, a.restarts, a.state, a.accepted]),
      () => [
        table(
          ["Actor", "Waiting", "Fill", "State", "Taken", "Restarts", "On"],
          actors.map((a) => {
            const meter = el("meter", {
              min: 0,
              max: a.cap || 1,
              low: (a.cap || 1) * 0.6,
              high: (a.cap || 1) * 0.8,
              optimum: 0,
              value: a.mailbox,
            });
            return el(
              "tr",
              {},
              this.who(a.id, a.name),
              cell(`${count(a.mailbox)} of ${short(a.cap)}`),
              el("td", {}, meter),
              cell(a.state),
              cell(short(a.accepted)),
              cell(count(a.restarts)),
              cell(a.dispatcher),
            );
          }),
        ),
      ],
    );
  }

  /** Also asked for the warning at the top of the page. Resolves to the answer. */
  async stuck() {
    const answer = await get("stuck", { limit_ms: 1000 });
    const { running = [], full = [], asks = [], cycles = [], silent = [], cut = false } = answer;
    const trouble = running.length + full.length + cycles.length;
    this.badge("stuck", trouble ? count(trouble) : "", true);
    this.draw("stuck", [running, full.map((a) => [a.id, a.mailbox]), asks, cycles, silent, cut], () => {
      const block = (title, items) =>
        items.length ? [el("h3", { text: title }), el("ul", { class: "plain" }, ...items)] : [];
      const out = [
        ...block(
          "In the same code for too long",
          running.map((r) =>
            el(
              "li",
              {},
              this.name(r.actor, r.name),
              ` ${r.hook ? "in a hook" : `with tag ${tagText(r.tag)}`} for ${span(r.for_ms)} on ${r.dispatcher}`,
              backtrace(r.frames, r.actor, this.frames),
            ),
          ),
        ),
        ...block(
          "Full mailboxes",
          full.map((a) => el("li", {}, this.name(a.id, a.name), ` ${count(a.mailbox)} of ${count(a.cap)}`)),
        ),
        ...block(
          "Waiting in a circle",
          cycles.map((ids) =>
            el("li", {}, ...ids.flatMap((id) => [this.name(id), " → "]), this.name(ids[0])),
          ),
        ),
        ...block(
          "Longest asks",
          asks.map((a) =>
            el(
              "li",
              {},
              this.name(a.asker, a.asker_name),
              " waits for ",
              this.name(a.callee, a.callee_name),
              ` since ${span(a.age_ms)}`,
            ),
          ),
        ),
        ...block(
          "Did not answer",
          silent.map((text) => el("li", { text })),
        ),
        cut ? el("p", { text: "There are more asks than could be looked at: some are missing here." }) : null,
      ].filter(Boolean);
      return out.length ? out : [empty("Nothing is stuck.")];
    });
    return answer;
  }

  name(id, name) {
    return el("button", {
      type: "button",
      class: "link-button",
      text: nameOf({ name: name || this.known(id)?.row.name, id }),
      title: id,
      onclick: () => this.onOpen(id),
    });
  }

  async doctor() {
    const { findings } = await get("doctor");
    const grave = findings.filter((f) => f.severity !== "note").length;
    this.badge(
      "doctor",
      grave ? count(grave) : "",
      findings.some((f) => f.severity === "error"),
    );
    this.draw("doctor", findings, () =>
      findings.length === 0
        ? [empty("The doctor finds nothing to change.")]
        : [
            el(
              "ul",
              { class: "findings" },
              ...findings.map((f) =>
                el(
                  "li",
                  { class: `finding finding-${f.severity}` },
                  el(
                    "p",
                    {},
                    el("span", { class: "severity", text: f.severity }),
                    f.actor ? this.name(f.actor, f.name) : null,
                    el("span", { class: "quiet", text: ` ${f.rule}` }),
                  ),
                  el("p", { text: f.text }),
                  f.advice ? el("p", { class: "quiet", text: f.advice }) : null,
                ),
              ),
            ),
          ],
    );
  }

  async record() {
    const { events } = await get("record", { limit: 200 });
    const newest = [...events].sort((a, b) => b.t_ns - a.t_ns);
    this.draw(
      "record",
      newest.map((e) => [e.worker, e.dispatcher, e.seq, span(e.ago_ms)]),
      () =>
        newest.length === 0
          ? [empty("Nothing was recorded.")]
          : [
              table(
                ["Ago", "What", "Actor", "Other", "Tag", "Detail", "On"],
                newest.map((e) =>
                  el(
                    "tr",
                    { class: `what-${e.what}`, "data-key": `${e.dispatcher}/${e.worker}/${e.seq}` },
                    cell(span(e.ago_ms)),
                    cell(e.what),
                    this.who(e.actor, e.name),
                    this.who(e.peer),
                    cell(tagText(e.tag)),
                    cell(e.detail),
                    cell(`${e.dispatcher}/${e.worker}`),
                  ),
                ),
              ),
            ],
    );
  }
}
