// A second of messages: recorded on request, drawn as lanes over time, and handed out as a file that
// Chrome's and Perfetto's viewers open.

import { get } from "./api.js";
import { count, cut, download, el, micros, nameOf, setText, span, svg, tagText } from "./dom.js";

const LANES = 14;
const ROWS = 200;
const LANE = 30;
const TOP = 26;

/** The events as Chrome's trace format: an actor is a thread, a message an arrow. */
export function chromeTrace(events, program) {
  const pid = program?.pid ?? 1;
  const threads = new Map();
  const thread = (id, name) => {
    if (!threads.has(id)) threads.set(id, { tid: threads.size + 1, name: name || id });
    else if (name) threads.get(id).name = name;
    return threads.get(id).tid;
  };
  const out = [];
  for (const event of events) {
    const base = { pid, tid: thread(event.actor, event.name), ts: event.t_ns / 1000 };
    const args = {
      actor: event.actor,
      peer: event.peer,
      tag: event.tag,
      kind: event.kind,
      result: event.result,
    };
    if (event.what === "handled") {
      out.push({
        ...base,
        ph: "X",
        name: `tag ${tagText(event.tag)}`,
        cat: event.kind || "message",
        dur: (event.dur_ns || 0) / 1000,
        args,
      });
      if (event.stamp)
        out.push({
          ...base,
          ph: "f",
          bp: "e",
          name: "message",
          cat: "message",
          id: `${event.actor}/${event.stamp}`,
        });
    } else if (event.what === "sent") {
      out.push({ ...base, ph: "i", s: "t", name: `send ${tagText(event.tag)}`, cat: "send", args });
      if (event.stamp)
        out.push({ ...base, ph: "s", name: "message", cat: "message", id: `${event.peer}/${event.stamp}` });
    } else {
      out.push({ ...base, ph: "i", s: "t", name: event.what, cat: "life", args });
    }
  }
  for (const [id, { tid, name }] of threads) {
    out.unshift({ ph: "M", pid, tid, name: "thread_name", args: { name: `${name} (${id})` } });
  }
  if (program) out.unshift({ ph: "M", pid, name: "process_name", args: { name: program.name } });
  return { displayTimeUnit: "ms", traceEvents: out };
}

export class Trace {
  constructor({ onOpen, program }) {
    this.onOpen = onOpen;
    this.program = program;
    this.events = [];
    this.who = el("input", {
      id: "trace-who",
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "name or id",
      required: true,
    });
    this.below = el("input", { id: "trace-below", type: "checkbox", checked: true });
    this.go = el("button", { class: "primary", text: "Record 1 s" });
    this.save = el("button", {
      type: "button",
      text: "Download for Perfetto",
      hidden: true,
      onclick: () => this.handOut(),
    });
    this.form = el(
      "form",
      { class: "trace-form" },
      el("label", { for: "trace-who" }, "Actor"),
      this.who,
      el("label", { class: "check" }, this.below, "and all below it"),
      this.go,
      this.save,
    );
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.record();
    });
    this.said = el("p", {
      class: "quiet",
      role: "status",
      text: "Records the messages of one second, and who sent them.",
    });
    this.result = el("div", { class: "trace-result" });
    this.box = el("div", { class: "trace" }, this.form, this.said, this.result);
  }

  /** Fills in whom to trace. */
  aim(actor) {
    this.who.value = actor.id;
    this.below.checked = Boolean(actor.supervisor);
    this.go.focus();
  }

  async record() {
    const who = this.who.value.trim();
    this.go.disabled = true;
    setText(this.said, `Recording ${who}.`);
    try {
      const members = { ms: 1000, sends: 1, rate: 4000, limit: 5000 };
      members[this.below.checked ? "under" : "actors"] = who;
      const answer = await get("trace", members, 10000);
      this.show(
        (answer.events || []).map((line) => line.event || line),
        answer,
      );
    } catch (error) {
      setText(this.said, error.message);
      this.said.classList.add("bad");
    } finally {
      this.go.disabled = false;
    }
  }

  show(events, { skipped = 0, lost = 0, cut: full = false, ms = 0 }) {
    this.said.classList.remove("bad");
    this.events = events.sort((a, b) => a.t_ns - b.t_ns);
    const handled = events.filter((event) => event.what === "handled").length;
    const left =
      skipped + lost > 0 ? `; ${count(skipped)} more were over the rate, ${count(lost)} were lost` : "";
    const early = full ? `; no more fit, so this is what the first ${span(ms)} were like` : "";
    setText(this.said, `${count(handled)} messages handled, ${count(events.length)} events${left}${early}.`);
    this.save.hidden = events.length === 0;
    this.result.replaceChildren();
    if (events.length > 0) this.result.append(this.picture(), this.table());
  }

  handOut() {
    const name = (this.program()?.name || "jzx").replace(/[^\w.-]/g, "_");
    download(
      `${name}-trace.json`,
      JSON.stringify(chromeTrace(this.events, this.program())),
      "application/json",
    );
  }

  /** The busiest actors, in the order in which they first appear. */
  lanes() {
    const seen = new Map();
    for (const event of this.events) {
      const lane = seen.get(event.actor) || { id: event.actor, name: event.name, n: 0, first: event.t_ns };
      lane.n++;
      lane.name = lane.name || event.name;
      seen.set(event.actor, lane);
    }
    return [...seen.values()]
      .sort((a, b) => b.n - a.n)
      .slice(0, LANES)
      .sort((a, b) => a.first - b.first);
  }

  picture() {
    const lanes = this.lanes();
    const rowOf = new Map(lanes.map((lane, at) => [lane.id, TOP + at * LANE + LANE / 2]));
    // At least a few messages wide, at most the whole second: a picture of 10,000 is none.
    const most = this.events.slice(0, 400);
    const from = most[0].t_ns;
    const until = Math.max(...most.map((event) => event.t_ns + (event.dur_ns || 0)), from + 1000);
    // As wide as there is room, and never shrunk: what is wider is scrolled.
    const [left, width] = [150, Math.max(700, this.box.clientWidth || 1000)];
    const x = (t) => left + ((t - from) / (until - from)) * (width - left - 12);
    const height = TOP + lanes.length * LANE + 8;
    const root = svg("svg", {
      class: "timeline",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Messages of ${lanes.length} actors over ${micros((until - from) / 1000)}`,
    });
    root.append(...this.scale(x, from, until, height));
    for (const lane of lanes) {
      const y = rowOf.get(lane.id);
      const label = nameOf(lane);
      root.append(
        svg("path", { class: "lane", d: `M${left} ${y}H${width - 12}` }),
        svg(
          "text",
          { class: "lane-name", x: left - 10, y: y + 4, "text-anchor": "end", text: cut(label, left - 16) },
          svg("title", { text: `${label}\n${lane.id}` }),
        ),
      );
    }
    root.append(...this.arrows(most, rowOf, x), ...this.marks(most, rowOf, x));
    return el(
      "div",
      { class: "scroll timeline-scroll", tabindex: 0, role: "region", "aria-label": "Picture of the trace" },
      root,
    );
  }

  scale(x, from, until, height) {
    const unit = 10 ** Math.floor(Math.log10((until - from) / 4));
    const step = [1, 2, 5, 10].map((n) => n * unit).find((one) => one * 8 >= until - from);
    return Array.from({ length: Math.floor((until - from) / step) + 1 }, (_, at) => from + at * step).flatMap(
      (t) => [
        svg("path", { class: "tick", d: `M${x(t)} ${TOP - 6}V${height}` }),
        svg("text", {
          class: "tick-text",
          x: x(t),
          y: 13,
          "text-anchor": x(t) > 960 ? "end" : "middle",
          text: micros((t - from) / 1000),
        }),
      ],
    );
  }

  arrows(events, rowOf, x) {
    const sent = new Map(events.filter((e) => e.what === "sent").map((e) => [`${e.peer}/${e.stamp}`, e]));
    const out = [];
    for (const event of events) {
      const start = event.what === "handled" ? sent.get(`${event.actor}/${event.stamp}`) : null;
      if (!start || !rowOf.has(start.actor) || !rowOf.has(event.actor)) continue;
      const [x1, y1, x2, y2] = [x(start.t_ns), rowOf.get(start.actor), x(event.t_ns), rowOf.get(event.actor)];
      const bend = Math.max(6, Math.abs(x2 - x1) / 2);
      out.push(
        svg("path", { class: "arrow", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }),
      );
    }
    return out;
  }

  marks(events, rowOf, x) {
    return events
      .filter((event) => rowOf.has(event.actor))
      .map((event) => {
        const y = rowOf.get(event.actor);
        const title = svg("title", {
          text: `${event.what} tag ${tagText(event.tag)}${event.dur_ns ? `, ${micros(event.dur_ns / 1000)}` : ""}`,
        });
        if (event.what === "handled") {
          const w = Math.max(2.5, x(event.t_ns + (event.dur_ns || 0)) - x(event.t_ns));
          return svg(
            "rect",
            {
              class: `handled${event.result && event.result !== "ok" ? " bad" : ""}`,
              x: x(event.t_ns),
              y: y - 6,
              width: w,
              height: 12,
              rx: 1.5,
            },
            title,
          );
        }
        if (event.what === "sent")
          return svg("circle", { class: "sent", cx: x(event.t_ns), cy: y, r: 2.2 }, title);
        return svg(
          "path",
          {
            class: event.what === "fail" || event.what === "dead" ? "life bad" : "life",
            d: `M${x(event.t_ns)} ${y - 8}l5 8l-5 8l-5-8z`,
          },
          title,
        );
      });
  }

  table() {
    const from = this.events[0].t_ns;
    const who = (id, name) =>
      el(
        "td",
        {},
        id
          ? el("button", {
              type: "button",
              class: "link-button",
              text: nameOf({ name, id }),
              title: id,
              onclick: () => this.onOpen(id),
            })
          : "–",
      );
    const names = new Map(this.events.filter((e) => e.name).map((e) => [e.actor, e.name]));
    const rows = this.events
      .slice(0, ROWS)
      .map((e) =>
        el(
          "tr",
          {},
          el("td", { text: micros((e.t_ns - from) / 1000) }),
          el("td", { text: e.what }),
          who(e.actor, names.get(e.actor)),
          who(e.peer, names.get(e.peer)),
          el("td", { text: tagText(e.tag) }),
          el("td", { text: e.kind ?? "–" }),
          el("td", { text: e.dur_ns === undefined || e.dur_ns === null ? "–" : micros(e.dur_ns / 1000) }),
          el("td", { text: e.result ?? "–" }),
        ),
      );
    const head = ["At", "What", "Actor", "Other", "Tag", "Kind", "Took", "Result"];
    return el(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Events" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, ...rows),
      ),
      this.events.length > ROWS
        ? el("p", {
            class: "quiet",
            text: `The first ${ROWS} of ${count(this.events.length)}; the file has all.`,
          })
        : null,
    );
  }
}
