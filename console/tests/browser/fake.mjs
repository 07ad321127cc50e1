// A console whose program is made up: for what a real one cannot be made to show at will, such as
// hostile names, 100,000 actors, a dispatcher that is stuck, a program that is gone. It serves the
// page as the real server does, with the same policy, and answers in the words of docs/reference/CONTROL.md.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";

export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
};
const FRAMES = [
  { pc: "55d0c0de", text: "parse+0x1c (node)" },
  { pc: "55d0c1aa", text: "handle+0x44 (node)" },
  { pc: "7f00aa10", text: "jzi_turn+0x90 (libjzx.so)" },
];

export class Fake {
  constructor(pageFolder, { allow = [], token = "secret", name = "orders" } = {}) {
    Object.assign(this, { pageFolder, token, pid: 4710, as: { allow, name } });
    this.renew();
    this.server = createServer((request, response) => this.serve(request, response));
  }

  /** Answers nobody until the function that it returns is called. */
  hold() {
    let release;
    this.held = new Promise((resolve) => {
      release = resolve;
    });
    return () => {
      this.held = null;
      release();
    };
  }

  /** Another program, without actors. */
  renew() {
    Object.assign(this, {
      pid: this.pid + 1,
      gone: false,
      many: 0,
      started: Date.now(),
      lastAt: Date.now(),
      handled: 0,
      rate: 2000,
      stuckFor: 0,
      pools: 0, // further dispatchers
      poolName: null, // of all of them
      silentPool: 0, // which of them does not answer
      hook: false, // who is stuck is so in a hook
      cut: false, // a trace is full before its time is over
      end: null, // how it is gone, and when
      endedAt: 0,
      past: [], // rows of /api/history, with ages instead of times
      orders100k: new Map(), // of a crowd: what was sorted once
      everyMs: 1000, // 0: no past is kept
      stopping: null, // the farewell: {own}
      partings: [],
      actors: new Map(),
      failures: [],
      letters: [],
      orders: [],
      asked: [],
      counters: { restarts: 0, failures: 0, dead: 0 },
      ...this.as,
    });
  }

  async start(port = 0) {
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}/`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  add(id, name, parent, more = {}) {
    const depth = parent ? this.actors.get(parent).depth + 1 : 0;
    if (parent) this.actors.get(parent).children++;
    this.actors.set(id, {
      id,
      name,
      parent,
      depth,
      state: "running",
      mailbox: 0,
      cap: 64,
      accepted: 0,
      handled: 0,
      dead: 0,
      rate: null,
      cpu: 0.01,
      restarts: 0,
      incarnation: 1,
      children: 0,
      memory: 704,
      uptime_ms: 60000,
      dispatcher: "loop",
      supervisor: false,
      stopping: false,
      running: false,
      ...more,
    });
    return id;
  }

  /** A shop: what the pictures in the documentation would look like without a program. */
  shop() {
    this.add("100000001", "root", null, { supervisor: true });
    this.add("100000002", "gateway", "100000001", { supervisor: true });
    for (let n = 1; n <= 6; n++) this.add(`2${String(n).padStart(8, "0")}`, `listener-${n}`, "100000002");
    this.add("100000003", "orders", "100000001", { supervisor: true });
    for (let n = 1; n <= 12; n++)
      this.add(`3${String(n).padStart(8, "0")}`, `order-worker-${n}`, "100000003");
    this.add("100000004", "storage", "100000001", { supervisor: true });
    this.add("400000001", "write-log", "100000004", { mailbox: 21 });
    this.add("400000002", "index", "100000004");
    this.add("400000003", "compactor", "100000004");
    this.add("100000005", "metrics", "100000001");
    this.add("100000006", "clock", "100000001");
    return this;
  }

  /** A supervisor of as many actors, which are made up when asked for. */
  crowd(number) {
    this.add("100000001", "root", null, { supervisor: true });
    this.add("100000002", "crowd", "100000001", { supervisor: true });
    this.add("100000003", "front", "100000001", { supervisor: true });
    for (let n = 1; n <= 3; n++) this.add(`3${String(n).padStart(8, "0")}`, `front-${n}`, "100000003");
    this.actors.get("100000002").children = number;
    this.many = number;
    return this;
  }

  crowdRow(n) {
    return {
      ...this.actors.get("300000001"),
      id: (0x900000000 + n).toString(16),
      name: `member-${n}`,
      parent: "100000002",
      restarts: 0,
      accepted: n,
      handled: n,
      mailbox: n % 7,
    };
  }

  /** Everybody, those of the crowd made up; in the order that a query asks for. */
  sorted(query) {
    const words = ["sort", "reverse", "filter", "state"].map((name) => query.get(name)).join();
    if (this.many === 0 || !this.orders100k.has(words)) this.orders100k.set(words, this.sort(query));
    return this.orders100k.get(words);
  }

  sort(query) {
    const wanted = query.get("filter");
    const state = query.get("state");
    const rows = [
      ...this.actors.values(),
      ...Array.from({ length: this.many }, (_, n) => this.crowdRow(n + 1)),
    ].filter(
      (row) => (!wanted || row.id.includes(wanted) || (row.name || "").includes(wanted)) && (!state || row.state === state),
    );
    const key = query.get("sort") === "uptime" ? "uptime_ms" : query.get("sort");
    const texts = ["name", "id", "state", "dispatcher"].includes(key);
    const order = (a, b) =>
      (texts ? (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0) : (b[key] ?? 0) - (a[key] ?? 0)) || (a.id < b.id ? -1 : 1);
    rows.sort((a, b) => (query.get("reverse") === "true" ? -order(a, b) : order(a, b)));
    return rows;
  }

  /** What the server kept: what a test put there, and a row for each second since the program began. */
  history(query) {
    const now = Date.now();
    const rows = [...this.past];
    const began = Math.ceil(this.started / 1000) * 1000;
    for (let end = Math.max(began, now - 900000) + 1000; end <= now && this.everyMs; end += 1000)
      rows.push([end, 1000, this.rate, 21, 0, 0, 61, 0]);
    for (const failure of this.failures) {
      const row = rows.find(([end]) => end >= failure.at);
      if (row) {
        row[4]++;
        row[5]++;
      }
    }
    return {
      ok: true,
      pid: this.pid,
      now_ms: now,
      every_ms: this.everyMs,
      rows: rows.filter(([end]) => end > Number(query.get("after") || 0)),
    };
  }

  /** The console is stopped: who waits for the farewell gets it. */
  part(stopping) {
    this.stopping = stopping;
    for (const done of this.partings.splice(0)) done();
  }

  async farewell() {
    await new Promise((done) => {
      this.partings.push(done);
      setTimeout(done, 5000).unref();
    });
    return { ok: true, stopping: Boolean(this.stopping), own: this.stopping?.own ?? true };
  }

  fail(id, text = "SIGSEGV at 0x0 in parse+0x1c (node)", restart = true) {
    const actor = this.find(id);
    this.failures.unshift({
      seq: this.failures.length + 1,
      at: Date.now(),
      actor: id,
      name: actor.name,
      incarnation: actor.incarnation,
      reason: "crash",
      code: 11,
      text,
      tag: 7,
      frames: FRAMES,
    });
    this.counters.failures++;
    if (restart) {
      actor.restarts++;
      actor.incarnation++;
      this.counters.restarts++;
    } else {
      actor.state = "failed";
    }
  }

  letter(target, reason = "stopped") {
    this.counters.dead++;
    this.letters.push({
      seq: this.letters.length + 1,
      time_ns: 1,
      at: Date.now(),
      target,
      target_name: null,
      sender: "300000001",
      tag: 7,
      kind: "user",
      reason,
      len: 8,
    });
  }

  advance() {
    const now = Date.now();
    this.handled += (this.rate * (now - this.lastAt)) / 1000;
    for (const actor of this.actors.values())
      if (!actor.supervisor) actor.handled = actor.accepted += Math.round(((now - this.lastAt) / 1000) * (this.rate / 20));
    this.lastAt = now;
  }

  program() {
    this.advance();
    const uptime = Date.now() - this.started;
    const worker = (number, busy) => ({
      number,
      tid: 4712 + number,
      state: "sleeping",
      actor: null,
      name: null,
      for_ms: 0,
      busy,
      handled: 1,
      turns: 1,
      ticks: 1,
    });
    return {
      ok: true,
      pid: this.pid,
      name: this.name,
      exe: "/usr/bin/node",
      version: "0.1.0",
      uptime_ms: uptime,
      now_ns: uptime * 1e6 + 1e9,
      time_ms: Date.now(),
      allow: this.allow,
      actors: this.actors.size + this.many,
      rss_bytes: 5242880,
      cpu_ms: 4100,
      threads: 5,
      counters: {
        accepted: Math.round(this.handled),
        handled: Math.round(this.handled),
        queued: 21 + this.failures.length,
        ...this.counters,
      },
      dead_by: {},
      refused: {},
      dispatchers: [
        {
          index: 0,
          name: "loop",
          kind: "loop",
          actors: 20,
          latency_us: this.stuckFor ? this.stuckFor * 1000 : 35,
          answering: !this.stuckFor,
          workers: [worker(0, 0.32)],
        },
        {
          index: 1,
          name: "pool",
          kind: "pool",
          actors: 8,
          latency_us: 61,
          answering: true,
          workers: [worker(0, 0.72), worker(1, 0.55)],
        },
        ...Array.from({ length: this.pools }, (_, n) => ({
          index: 2 + n,
          name: this.poolName ?? `pool-${n + 1}`,
          kind: "pool",
          actors: 0,
          latency_us: 40,
          answering: this.silentPool !== n + 1,
          workers: [worker(0, 0)],
        })),
      ],
    };
  }

  under(id, most) {
    const out = [];
    const walk = (actor) => {
      out.push(actor);
      for (const kid of this.actors.values()) if (kid.parent === actor.id) walk(kid);
      if (actor.id === "100000002" && this.many)
        out.push(...Array.from({ length: Math.min(this.many, most) }, (_, n) => this.crowdRow(n + 1)));
    };
    for (const actor of this.actors.values()) if (id ? actor.id === id : actor.parent === null) walk(actor);
    return out;
  }

  list(query) {
    this.advance();
    const limit = Math.min(20000, Number(query.get("limit") || 1000));
    const depth = query.has("depth") ? Number(query.get("depth")) : Infinity;
    const under = query.get("under");
    let rows;
    const sort = query.get("sort") ?? "tree";
    if (sort !== "tree" && !(sort === "name" && query.get("filter"))) {
      rows = this.sorted(query);
    } else if (query.get("filter")) {
      const wanted = query.get("filter");
      rows = [...this.actors.values()].filter(
        (a) => a.id.includes(wanted) || (a.name || "").includes(wanted),
      );
      const member = /^member-(\d+)$/.exec(wanted);
      if (member && Number(member[1]) <= this.many) rows.push(this.crowdRow(Number(member[1])));
    } else {
      const from = under ? (this.actors.get(under)?.depth ?? 2) : 0;
      rows = this.under(under, limit).filter((a) => a.depth - from <= depth);
    }
    const offset = Number(query.get("offset") || 0);
    return {
      ok: true,
      total: this.actors.size + this.many,
      matched: rows.length,
      took_us: 100,
      since_ms: 500,
      actors: rows.slice(offset, offset + limit),
    };
  }

  find(id) {
    if (this.actors.has(id)) return this.actors.get(id);
    const n = parseInt(id, 16) - 0x900000000;
    return n > 0 && n <= this.many ? this.crowdRow(n) : null;
  }

  actor(query) {
    const actor = this.find(query.get("actor"));
    if (!actor)
      return { ok: false, error: "NO_SUCH_ACTOR", text: `There is no actor ${query.get("actor")}.` };
    const children = [...this.actors.values()].filter((kid) => kid.parent === actor.id);
    return {
      ok: true,
      actor,
      history: ["created", "starting", "running"],
      doing: this.stuckFor
        ? { running: true, for_ms: this.stuckFor, tag: 7, kind: "user", hook: false, frames: FRAMES }
        : null,
      detail: {
        names: [actor.name],
        groups: [],
        stashed: 0,
        revoked: 0,
        redirected: 0,
        full_policy: "reject",
        max_messages: 64,
        stop_timeout_ms: 5000,
        behaviors: 1,
        timers: [{ tag: 3, due_ms: 120, period_ms: 1000 }],
        watching: [],
        watchers: actor.parent ? [actor.parent] : [],
        links: [],
        asks: actor.supervisor ? [] : [{ to: "400000001", age_ms: 3, left_ms: 997 }],
        owes: [],
        sources: 2,
        jobs: 0,
        subscriptions: 1,
        supervision: actor.supervisor
          ? {
              strategy: "one_for_one",
              intensity: 3,
              period_ms: 5000,
              restarts: 1,
              children: children.map((kid) => ({
                id: kid.id,
                name: kid.name,
                state: "up",
                mode: "permanent",
                restarts: kid.restarts,
                attempt: 0,
                due_ms: null,
              })),
            }
          : null,
      },
      failures: this.aged(this.failures.filter((f) => f.actor === actor.id)),
    };
  }

  aged(list) {
    return list.map(({ at, ...rest }) => ({ ...rest, ago_ms: Date.now() - at }));
  }

  trace() {
    const events = [];
    for (let n = 0; n < 24; n++) {
      const t = 1e9 + n * 31e5;
      const worker = `3${String((n % 5) + 1).padStart(8, "0")}`;
      events.push({
        what: "sent",
        t_ns: t,
        actor: "200000001",
        name: "listener-1",
        peer: worker,
        tag: 7,
        stamp: n + 1,
        dispatcher: "loop",
        worker: 0,
      });
      events.push({
        what: "handled",
        t_ns: t + 9e5,
        dur_ns: 6e5 + (n % 4) * 4e5,
        actor: worker,
        name: `order-worker-${(n % 5) + 1}`,
        peer: "200000001",
        tag: 7,
        kind: "user",
        result: "ok",
        stamp: n + 1,
        dispatcher: "loop",
        worker: 0,
      });
      events.push({
        what: "sent",
        t_ns: t + 14e5,
        actor: worker,
        name: null,
        peer: "400000001",
        tag: 9,
        stamp: n + 1,
        dispatcher: "loop",
        worker: 0,
      });
      events.push({
        what: "handled",
        t_ns: t + 22e5,
        dur_ns: 5e5,
        actor: "400000001",
        name: "write-log",
        peer: worker,
        tag: 9,
        kind: "user",
        result: n === 9 ? "fail" : "ok",
        stamp: n + 1,
        dispatcher: "loop",
        worker: 0,
      });
    }
    return { ok: true, events, skipped: 120, lost: 0, ms: 740, cut: this.cut };
  }

  api(what, query) {
    switch (what) {
      case "program":
        return this.program();
      case "actors":
        return this.list(query);
      case "actor":
        return this.actor(query);
      case "history":
        return this.history(query);
      case "farewell":
        return this.farewell();
      case "failures":
        return { ok: true, failures: this.aged(this.failures).slice(0, Number(query.get("limit") || 64)) };
      case "dead": {
        const after = Number(query.get("after") || 0);
        const by = {};
        for (const letter of this.letters) by[letter.reason] = (by[letter.reason] || 0) + 1;
        return {
          ok: true,
          next: this.letters.length,
          lagged: 0,
          by_reason: by,
          letters: this.aged(this.letters.filter((l) => l.seq > after)),
        };
      }
      case "stuck":
        return {
          ok: true,
          limit_ms: 1000,
          full: [],
          asks: [],
          cycles: [],
          silent: this.stuckFor ? ["loop"] : [],
          running: this.stuckFor
            ? [
                {
                  dispatcher: "loop",
                  worker: 0,
                  actor: "300000003",
                  name: "order-worker-3",
                  tag: this.hook ? null : 7,
                  kind: this.hook ? null : "user",
                  hook: this.hook,
                  for_ms: this.stuckFor,
                  answered: true,
                  frames: FRAMES,
                },
              ]
            : [],
        };
      case "doctor":
        return {
          ok: true,
          findings: [
            {
              severity: "warning",
              rule: "no-backoff",
              actor: "100000003",
              name: "orders",
              text: "Its children restart without a pause.",
              advice: "Set a backoff.",
            },
          ],
        };
      case "record":
        return {
          ok: true,
          events: this.failures.flatMap((f, at) => [
            {
              seq: at * 2,
              t_ns: at * 2,
              ago_ms: Date.now() - f.at,
              dispatcher: "loop",
              worker: 0,
              what: "fail",
              actor: f.actor,
              name: f.name,
              peer: null,
              tag: 7,
              detail: 11,
              value: 0,
            },
            {
              seq: at * 2 + 1,
              t_ns: at * 2 + 1,
              ago_ms: Date.now() - f.at,
              dispatcher: "loop",
              worker: 0,
              what: "restart",
              actor: f.actor,
              name: f.name,
              peer: "100000003",
              tag: 0,
              detail: 2,
              value: 0,
            },
          ]),
        };
      case "trace":
        return this.trace();
      default:
        return null;
    }
  }

  async serve(request, response) {
    const url = new URL(request.url, this.url);
    this.asked.push(url.pathname + url.search);
    await this.held;
    const send = (status, type, body) =>
      response
        .writeHead(status, {
          "Content-Type": type,
          "Content-Security-Policy": POLICY,
          "X-Content-Type-Options": "nosniff",
        })
        .end(body);
    const json = (status, body) => send(status, "application/json", JSON.stringify(body));
    if (!url.pathname.startsWith("/api/")) {
      const name = url.pathname === "/" ? "index.html" : url.pathname.slice(1);
      try {
        return send(200, TYPES[extname(name)] || "text/plain", await readFile(join(this.pageFolder, name)));
      } catch {
        return send(404, "text/plain", "There is no such page.");
      }
    }
    const what = url.pathname.slice(5);
    const ours = what === "history" || what === "farewell"; // the console's own knowledge
    if (this.gone && !ours)
      return json(503, {
        ok: false,
        error: "NOT_REACHABLE",
        text: this.end ? `The program has ended: ${this.end}.` : "Nobody serves /tmp/jzx-0/4711.sock.",
        since_ms: this.end ? Date.now() - this.endedAt : 0,
        end: this.end,
      });
    if (request.method === "POST") return this.order(what, request, json);
    const answer = await this.api(what, url.searchParams);
    if (!answer) return json(404, { ok: false, error: "UNKNOWN_OP", text: `There is no ${what}.` });
    return json(answer.ok ? 200 : 404, answer);
  }

  async order(what, request, json) {
    let body = "";
    for await (const part of request) body += part;
    if (request.headers["x-jzx-token"] !== this.token)
      return json(403, { ok: false, error: "BAD_TOKEN", text: "The token is wrong." });
    if (!this.allow.includes(what))
      return json(403, { ok: false, error: "NOT_ALLOWED", text: `The program does not allow ${what}.` });
    this.orders.push({ what, ...JSON.parse(body) });
    return json(200, { ok: true });
  }
}
