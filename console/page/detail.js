// All about one actor, in a panel at the side; what may be done to it, if the program allows it.

import { get, hasToken, post } from "./api.js";
import {
  $,
  backtrace,
  bytes,
  confirmed,
  count,
  el,
  isPressed,
  nameOf,
  plain,
  refill,
  share,
  short,
  span,
  tagText,
  toast,
} from "./dom.js";
import { failureCard, groupsOf } from "./failures.js";

const ACTIONS = {
  stop: ["Stop", "It ends in an orderly way; its supervisor decides whether it starts again."],
  restart: ["Restart", "Its supervisor ends it and starts it again, with what its strategy restarts too."],
  kill: ["Kill", "It ends at once, without cleaning up by itself."],
};

export class Detail {
  constructor({ onClose, onOpen, onTrace, known }) {
    this.known = known;
    this.box = $("detail");
    this.onClose = onClose;
    this.onOpen = onOpen;
    this.onTrace = onTrace;
    this.id = null;
    this.allow = [];
    this.shown = new Map(); // section -> what it was last drawn from
    this.openFrames = new Set();
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.close();
      }
    });
  }

  get isOpen() {
    return this.id !== null;
  }

  open(id) {
    this.id = id;
    this.ended = false;
    this.shown.clear();
    this.sections = {};
    this.name = el("h2", { id: "detail-name", tabindex: -1, text: id });
    this.kind = el("p", { class: "quiet", text: "asking" });
    const close = el("button", {
      type: "button",
      class: "close",
      "aria-label": "Close",
      title: "Close (Esc)",
      text: "✕",
      onclick: () => this.close(),
    });
    this.box.replaceChildren(el("div", { class: "detail-head" }, el("div", {}, this.name, this.kind), close));
    for (const name of [
      "note",
      "now",
      "mailbox",
      "facts",
      "actions",
      "failures",
      "history",
      "timers",
      "asks",
      "links",
      "children",
    ]) {
      this.sections[name] = el("section", { class: `d-${name}` });
      this.box.append(this.sections[name]);
    }
    this.box.hidden = false;
    document.body.classList.add("with-detail");
    this.name.focus();
    return this.refresh();
  }

  close() {
    if (!this.isOpen) return;
    this.id = null;
    this.box.hidden = true;
    document.body.classList.remove("with-detail");
    this.onClose();
  }

  async refresh() {
    const { id } = this;
    if (id === null || this.ended) return;
    let answer;
    try {
      answer = await get("actor", { actor: id });
    } catch (error) {
      if (this.id !== id) return;
      if (!error.reached) {
        this.lastSeen();
        throw error;
      }
      this.ended = error.code === "NO_SUCH_ACTOR"; // ids are not used twice
      this.draw("note", error.message, () => [el("p", { class: "note bad", text: error.message })]);
      this.sections.now.replaceChildren();
      this.sections.actions.replaceChildren();
      this.shown.delete("actions");
      return;
    }
    if (this.id === id) this.show(answer);
  }

  /** The program is gone: what the tree knew of it last is all that can be shown. */
  lastSeen() {
    const row = this.known(this.id)?.row;
    if (row && this.shown.size === 0) this.show({ actor: row, detail: null });
    this.draw("note", "gone", () => [
      el("p", { class: "note", text: "The program cannot be asked: this is what was seen last." }),
    ]);
    this.sections.actions.replaceChildren();
    this.shown.delete("actions");
  }

  /** Draws a section if what it is drawn from is new. */
  draw(name, from, make) {
    const key = JSON.stringify(from);
    if (this.shown.get(name) === key || isPressed(this.sections[name])) return;
    this.shown.set(name, key);
    refill(this.sections[name], make().filter(Boolean));
  }

  show(answer) {
    const { actor, detail } = answer;
    this.name.textContent = nameOf(actor);
    this.kind.textContent = `${actor.supervisor ? "Supervisor" : "Worker"} ${actor.id} on ${actor.dispatcher}`;
    const silent = detail === null || detail === undefined;
    this.draw("note", silent, () =>
      silent
        ? [
            el("p", {
              class: "note",
              text: "Its dispatcher does not answer, so timers, asks and watches are not known.",
            }),
          ]
        : [],
    );
    this.draw("now", [actor.state, actor.stopping, answer.doing], () => this.now(actor, answer.doing));
    this.draw("mailbox", [actor.mailbox, actor.cap, detail?.full_policy, detail?.stashed], () =>
      this.mailbox(actor, detail),
    );
    this.draw("facts", [actor, detail?.names, detail?.groups, detail?.behaviors], () =>
      this.facts(actor, detail),
    );
    this.draw("actions", [actor.id, this.allow, actor.parent !== null, hasToken()], () => this.actions(actor));
    this.draw("history", answer.history, () => this.history(answer.history || []));
    this.draw(
      "failures",
      (answer.failures || []).map((f) => f.seq),
      () => this.failures(answer.failures || []),
    );
    this.draw("timers", detail?.timers, () => this.timers(detail?.timers || []));
    this.draw("asks", [detail?.asks, detail?.owes], () => this.asks(detail));
    this.draw("links", [detail?.watching, detail?.watchers, detail?.links], () => this.links(detail));
    this.draw("children", detail?.supervision, () => this.supervision(detail?.supervision));
  }

  now(actor, doing) {
    const state = el("span", {
      class: `pill s-${actor.state}`,
      text: actor.stopping ? "stopping" : actor.state,
    });
    if (!doing || !doing.running) {
      const idle =
        actor.state === "running" && !actor.stopping
          ? el("span", { class: "quiet", text: "waits for a message" })
          : null;
      return [el("p", { class: "d-state" }, state, idle)];
    }
    const what = doing.hook ? "in a hook" : `handles tag ${tagText(doing.tag)} (${doing.kind})`;
    return [
      el("p", { class: "d-state" }, state, el("strong", { text: `${what} for ${span(doing.for_ms)}` })),
      backtrace(doing.frames, "doing", this.openFrames),
    ];
  }

  mailbox(actor, detail) {
    const filled = actor.cap > 0 ? Math.min(1, actor.mailbox / actor.cap) : 0;
    const bar = el(
      "div",
      {
        class: `bar${filled >= 0.8 ? " bar-full" : ""}`,
        role: "meter",
        "aria-valuemin": 0,
        "aria-valuemax": actor.cap,
        "aria-valuenow": actor.mailbox,
        "aria-label": "Mailbox",
      },
      el("i"),
    );
    bar.firstChild.style.width = `${(filled * 100).toFixed(1)}%`;
    const stash = detail?.stashed ? `, ${count(detail.stashed)} of them stashed` : "";
    return [
      el("h3", { text: "Mailbox" }),
      bar,
      el("p", {
        class: "quiet",
        text: `${count(actor.mailbox)} of ${count(actor.cap)} wait${stash}${detail?.full_policy ? `; when full: ${detail.full_policy}` : ""}`,
      }),
    ];
  }

  facts(actor, detail) {
    const rows = [
      ["Messages", `${short(this.known(actor.id)?.rate ?? actor.rate)}/s, ${count(actor.accepted)} taken`],
      ["Processor", share(actor.cpu)],
      ["Restarts", `${count(actor.restarts)}, now incarnation ${actor.incarnation}`],
      ["Up for", span(actor.uptime_ms)],
      ["Dead letters", count(actor.dead)],
      ["Memory", bytes(actor.memory)],
    ];
    if (detail?.names?.length) rows.push(["Names", detail.names.map(plain).join(", ")]);
    if (detail?.groups?.length) rows.push(["Groups", detail.groups.map(plain).join(", ")]);
    const parent = actor.parent ? [el("dt", { text: "Parent" }), el("dd", {}, this.link(actor.parent))] : [];
    return [
      el(
        "dl",
        { class: "facts" },
        ...rows.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]),
        ...parent,
      ),
    ];
  }

  link(id, name) {
    return el("button", {
      type: "button",
      class: "link-button",
      text: nameOf({ name: name || this.known(id)?.row.name, id }),
      title: id,
      onclick: () => this.onOpen(id),
    });
  }

  actions(actor) {
    const buttons = Object.entries(ACTIONS)
      .filter(([verb]) => this.allow.includes(verb) && (verb !== "restart" || actor.parent))
      .map(([verb, [word, text]]) =>
        el("button", {
          type: "button",
          class: verb === "kill" ? "danger" : "",
          "data-verb": verb,
          text: word,
          onclick: () => this.act(verb, word, text, actor),
        }),
      );
    const trace = el("button", { type: "button", text: "Trace", onclick: () => this.onTrace(actor) });
    const out = [el("h3", { text: "Actions" }), el("div", { class: "buttons" }, trace, ...buttons)];
    if (this.allow.includes("send")) out.push(this.sendForm(actor));
    if (this.allow.length === 0)
      out.push(el("p", { class: "quiet", text: "The program allows looking only." }));
    else if (!hasToken())
      out.push(
        el("p", {
          class: "quiet",
          text: "Actions need the token: open the address that the console printed.",
        }),
      );
    return out;
  }

  sendForm(actor) {
    const tag = el("input", {
      name: "tag",
      type: "number",
      min: 0,
      max: 4294967295,
      value: 0,
      required: true,
    });
    const text = el("input", { name: "text", type: "text", autocomplete: "off", maxlength: 1024 });
    const form = el(
      "form",
      { class: "send" },
      el("label", {}, "Tag", tag),
      el("label", {}, "Text or number", text),
      el("button", { text: "Send" }),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const body = { actor: actor.id, tag: Number(tag.value) };
      // A number that JSON keeps exactly goes as a number.
      if (/^\d{1,15}$/.test(text.value)) body.u64 = Number(text.value);
      else if (text.value) body.text = text.value;
      this.order("send", body, `Sent tag ${body.tag} to ${nameOf(actor)}.`);
    });
    return form;
  }

  async act(verb, word, text, actor) {
    if (!(await confirmed(`${word} ${nameOf(actor)}?`, text, word))) return;
    await this.order(verb, { actor: actor.id }, `${word}: the order was given to ${nameOf(actor)}.`);
  }

  async order(verb, body, done) {
    try {
      await post(verb, body);
      toast(done);
    } catch (error) {
      toast(
        error.status === 401 || error.code === "BAD_TOKEN" || error.code === "NO_TOKEN"
          ? `The token was not accepted: open the address that the console printed. (${error.message})`
          : error.message,
        true,
      );
    }
    await this.refresh().catch(() => {});
  }

  history(states) {
    if (states.length === 0) return [];
    return [
      el("h3", { text: "States" }),
      el(
        "ol",
        { class: "states" },
        ...states.map((state) => el("li", { class: `pill s-${state}`, text: state })),
      ),
    ];
  }

  failures(failures) {
    if (failures.length === 0) return [];
    return [
      el("h3", { text: "Last failures" }),
      ...groupsOf(failures.map((f) => ({ ...f, at: Date.now() - f.ago_ms }))).map((group) =>
        failureCard(group, this.openFrames),
      ),
    ];
  }

  timers(timers) {
    if (timers.length === 0) return [];
    return [
      el("h3", { text: "Timers" }),
      el(
        "ul",
        { class: "plain" },
        ...timers.map((timer) =>
          el("li", {
            text: `tag ${tagText(timer.tag)} in ${span(timer.due_ms)}${timer.period_ms ? `, every ${span(timer.period_ms)}` : ""}`,
          }),
        ),
      ),
    ];
  }

  asks(detail) {
    const asks = detail?.asks || [];
    const owes = detail?.owes || [];
    if (asks.length + owes.length === 0) return [];
    return [
      el("h3", { text: "Asks" }),
      el(
        "ul",
        { class: "plain" },
        ...asks.map((ask) =>
          el(
            "li",
            {},
            "waits for ",
            this.link(ask.to),
            ` since ${span(ask.age_ms)}`,
            ask.left_ms === null || ask.left_ms === undefined ? "" : `, ${span(ask.left_ms)} left`,
          ),
        ),
        ...owes.map((owed) =>
          el("li", {}, "owes an answer to ", this.link(owed.to), ` since ${span(owed.age_ms)}`),
        ),
      ),
    ];
  }

  links(detail) {
    const groups = [
      ["Watches", detail?.watching],
      ["Watched by", detail?.watchers],
      ["Linked to", detail?.links],
    ].filter(([, ids]) => ids?.length);
    return groups.flatMap(([title, ids]) => [
      el("h3", { text: title }),
      el("p", { class: "id-list" }, ...ids.map((id) => this.link(id))),
    ]);
  }

  supervision(supervision) {
    if (!supervision) return [];
    const head = `${supervision.strategy.replaceAll("_", " ")}; gives up after more than ${supervision.intensity} restarts in ${span(supervision.period_ms)}; ${count(supervision.restarts)} counted now`;
    return [
      el("h3", { text: "Supervision" }),
      el("p", { class: "quiet", text: head }),
      el(
        "ul",
        { class: "plain" },
        ...(supervision.children || []).map((child) =>
          el(
            "li",
            {},
            child.id ? this.link(child.id, child.name) : el("span", { text: nameOf({ name: child.name, id: "?" }) }),
            el("span", {
              class: "quiet",
              text: ` ${child.state}, ${child.mode}${child.restarts ? `, ↻ ${child.restarts}` : ""}${child.due_ms !== null && child.due_ms !== undefined ? `, again in ${span(child.due_ms)}` : ""}`,
            }),
          ),
        ),
      ),
    ];
  }
}
