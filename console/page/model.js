// What is known of the actors, and what of it is shown. A small program is asked for whole; of a
// large one only the top and what was opened, so that 100,000 actors cost what 100 do.

import { get } from "./api.js";

export const SMALL = 1500; // actors that are asked for in one go
const MORE = 60; // siblings that one click on a group adds
const MOST = 600; // siblings of one parent that are ever shown
const FLASH_MS = 2600; // how long a restart or a failure stays marked
const GHOST_MS = 2200; // how long one who is gone stays in the picture
const STEADY_MS = 15000; // how long the picture keeps to fewer siblings once it had to
const GUESTS = 6; // of a large program: who failed out of sight, and is shown for a moment
const AT_ONCE = 12; // of a large program: parents whose children are asked for at a time
const UNSAID = 36; // and how many of them in all, if the user did not say that they be open
const DEEPEST = 512; // levels that are walked up or down by asking
const IN_CODE = new Set(["starting", "running", "stopping"]); // where one can be stuck: hooks are code too
const TROUBLE = new Set(["stuck", "failed", "restarting", "stopping", "stopped"]);

export class Model {
  constructor() {
    this.actors = new Map(); // id -> {row, kids, rate, flash, flashUntil, goneAt}
    this.roots = [];
    this.total = 0;
    this.large = false;
    this.beyond = 0; // of a large program: rows of the top that were not sent
    this.open = new Map(); // id -> true or false, as the user said
    this.limits = new Map(); // id -> siblings shown below it, as the user said
    this.pinned = new Map(); // id -> row, of one who was searched for, and its parents
    this.stuck = new Map(); // id -> since when it is in the same code
    this.openDepth = 1;
    this.guests = new Map(); // id -> {row, until}
    this.roomy = true; // the stage is no phone's
    this.crowds = { count: 0, until: 0 }; // open parents of many
    this.lastAt = 0;
  }

  /** Forgets everything: another program, or it began anew, with other ids. */
  reset() {
    this.actors.clear();
    this.roots = [];
    this.pinned.clear();
    this.open.clear();
    this.limits.clear();
    this.stuck.clear();
    this.guests.clear();
    this.crowds = { count: 0, until: 0 };
    this.large = false;
    this.lastAt = 0;
  }

  /** Asks for what has to be shown. Resolves to the rows, for take(). */
  async ask() {
    const first = await get(
      "actors",
      this.large
        ? { sort: "tree", depth: 1, limit: Math.max(400, this.limit("") + 2) }
        : { sort: "tree", limit: SMALL },
    );
    const wasLarge = this.large;
    this.total = first.total;
    this.large = first.total > SMALL;
    if (this.large && !wasLarge) return this.ask();
    const rows = new Map(first.actors.map((row) => [row.id, row]));
    if (this.large) await this.refreshOpened(rows);
    await this.refreshPinned(rows);
    this.seatGuests(rows);
    // Those at the top that did not come, or their children: who is what was not said.
    this.beyond = this.large ? Math.max(0, first.matched - rows.size) : 0;
    return rows;
  }

  /** Whom the user opened, or wants to see more of. */
  wanted(row) {
    return this.open.has(row.id) || this.limits.has(row.id);
  }

  /** Who of these is drawn open. Of more siblings than are drawn, the first: each answer costs the
   * program a look at all of its actors. */
  drawnOpen(rows) {
    const seats = new Map(); // parent -> of its children, how many were counted
    return [...rows.values()].filter((row) => {
      if (row.children === 0 || !this.isOpen(row)) return false;
      const before = seats.get(row.parent) ?? 0;
      seats.set(row.parent, before + 1);
      return this.wanted(row) || before < this.limit(row.parent ?? "");
    });
  }

  /** The children of those who are open. Whom the user opened, or wants to see more of, is asked for
   * however many and however deep they are; of those who are open by themselves, the first. */
  async refreshOpened(rows) {
    let unsaid = UNSAID;
    for (let round = 0; round < DEEPEST; round++) {
      const open = this.drawnOpen(rows).filter((row) => !row.asked);
      const said = open.filter((row) => this.wanted(row)).slice(0, AT_ONCE);
      const others = open.filter((row) => !said.includes(row)).slice(0, Math.min(unsaid, AT_ONCE - said.length));
      const parents = [...said, ...others];
      if (parents.length === 0) return;
      unsaid -= others.length;
      const answers = await Promise.all(
        parents.map((row) => {
          row.asked = true;
          return get("actors", {
            sort: "tree",
            under: row.id,
            depth: 1,
            limit: this.limit(row.id) + 2,
          }).catch((error) => {
            if (!error.reached) throw error;
            return { actors: [] }; // it ended meanwhile
          });
        }),
      );
      for (const answer of answers) {
        for (const row of answer.actors) if (!rows.has(row.id)) rows.set(row.id, row);
      }
    }
  }

  /** Those who were searched for are shown for as long as they live. */
  async refreshPinned(rows) {
    for (const id of this.pinned.keys()) {
      if (rows.has(id)) continue;
      const answer = this.large
        ? await get("actor", { actor: id }).catch((error) => {
            if (!error.reached) throw error;
            return {};
          })
        : {};
      if (answer.actor) rows.set(id, answer.actor);
      else this.pinned.delete(id);
    }
  }

  /** Those who failed out of sight stay for as long as the mark does. */
  seatGuests(rows, now = performance.now()) {
    for (const [id, { row, until }] of this.guests) {
      if (now > until) this.guests.delete(id);
      else if (!rows.has(id)) rows.set(id, row);
    }
  }

  /** Puts new rows in the place of the old ones and notes what changed. */
  take(rows, now = performance.now()) {
    const before = this.actors;
    const seconds = (now - this.lastAt) / 1000;
    const fresh = new Map();
    for (const row of rows.values()) {
      const old = before.get(row.id);
      const actor = { row, kids: [], rate: null, flash: "", flashUntil: 0, goneAt: 0 };
      actor.stuckSince = this.stuck.get(row.id) ?? 0;
      if (old) this.compare(actor, old, now, seconds);
      fresh.set(row.id, actor);
    }
    if (!this.large) this.keepGhosts(fresh, before, now);
    this.actors = fresh;
    this.roots = [];
    for (const actor of fresh.values()) {
      const parent = fresh.get(actor.row.parent);
      if (parent && parent !== actor) parent.kids.push(actor);
      else this.roots.push(actor);
    }
    this.openDepth = this.depthOpen();
    this.countCrowds(now);
    this.lastAt = now;
  }

  /** How many have many children to show: at once when it grows, later when it falls. */
  countCrowds(now) {
    let count = this.roots.length > 8 ? 1 : 0;
    for (const { row } of this.actors.values()) if (row.children > 8 && this.isOpen(row)) count++;
    if (count >= this.crowds.count || now > this.crowds.until)
      this.crowds = { count, until: now + STEADY_MS };
  }

  flash(actor, kind, now) {
    actor.flash = kind;
    actor.flashUntil = now + FLASH_MS;
  }

  compare(actor, old, now, seconds) {
    const { row } = actor;
    const grown = (row.accepted - old.row.accepted + 4294967296) % 4294967296;
    // It counts modulo 2^32, and anew in a new incarnation.
    const rate = seconds > 0 && grown < 2147483648 ? grown / seconds : 0;
    actor.rate = old.rate === null ? rate : old.rate * 0.4 + rate * 0.6;
    actor.flash = old.flash;
    actor.flashUntil = old.flashUntil;
    if (row.restarts > old.row.restarts || row.incarnation > old.row.incarnation) {
      this.flash(actor, "restarted", now);
    } else if (row.state === "failed" && old.row.state !== "failed") {
      this.flash(actor, "failed", now);
    }
  }

  keepGhosts(fresh, before, now) {
    const left = new Map(); // parent -> ghosts; where many come and go, two say it
    for (const [id, old] of before) {
      const ghosts = left.get(old.row.parent) ?? 0;
      const orphan = old.row.parent !== null && !fresh.has(old.row.parent);
      if (fresh.has(id) || orphan || ghosts >= 2) continue;
      left.set(old.row.parent, ghosts + 1);
      const goneAt = old.goneAt || now;
      if (now - goneAt > GHOST_MS) continue;
      fresh.set(id, {
        row: { ...old.row, state: "terminated", mailbox: 0, running: false, children: 0 },
        kids: [],
        rate: null,
        flash: old.flash,
        flashUntil: old.flashUntil,
        goneAt,
      });
    }
  }

  /** Who has been in the same code for too long, as `stuck` tells. */
  noteStuck(running, now = performance.now()) {
    this.stuck = new Map(running.map((one) => [one.actor, now - one.for_ms]));
    for (const [id, actor] of this.actors) actor.stuckSince = this.stuck.get(id) ?? 0;
  }

  /** A failure was reported of this actor: mark it, also if it was up again by the next look. */
  noteFailure(id, now = performance.now()) {
    const actor = this.actors.get(id);
    if (!actor) return;
    const again = actor.flash === "restarted" && !actor.goneAt;
    this.flash(actor, again ? "restarted" : "failed", now);
  }

  /** Of a large program, one who failed and is not among those who were asked for: shown beside its
   * siblings for a moment, or its next parent in the picture is marked in its place. */
  async meet(id, now = performance.now()) {
    if (!this.large || this.actors.has(id) || this.guests.size >= GUESTS) return;
    const find = (one) =>
      get("actor", { actor: one }).then(
        (answer) => answer.actor,
        (error) => {
          if (!error.reached) throw error;
          return null; // it ended
        },
      );
    const row = await find(id);
    if (!row) return;
    let up = row.parent;
    for (let guard = 0; up !== null && !this.actors.has(up) && guard < 32; guard++)
      up = (await find(up))?.parent ?? null;
    if (up === row.parent) {
      this.guests.set(id, { row, until: now + FLASH_MS });
      this.take(new Map([...this.rowsNow(), [id, row]]));
      this.noteFailure(id, now);
    } else if (up !== null) this.noteFailure(up, now);
  }

  depthOpen() {
    // As deep as some hundred rows allow.
    const wide = [];
    for (const actor of this.actors.values()) {
      if (actor.row.children > 0) wide[actor.row.depth] = (wide[actor.row.depth] || 0) + 1;
    }
    let parents = 0;
    let depth = 0;
    while (depth < wide.length && parents + (wide[depth] || 0) <= 40) parents += wide[depth++] || 0;
    return Math.max(depth, 1);
  }

  isOpen(row) {
    const said = this.open.get(row.id);
    if (said !== undefined) return said;
    return row.depth < (this.large ? 2 : this.openDepth);
  }

  limit(id, few = false) {
    const said = this.limits.get(id);
    if (said !== undefined) return said;
    if (few) return 5;
    // The fewer have many, the more of theirs there is room for.
    if (this.roomy && this.crowds.count <= 2) return this.crowds.count <= 1 ? 48 : 20;
    return this.total <= 250 ? 12 : 8;
  }

  showMore(id) {
    this.limits.set(id, Math.min(this.limit(id) + MORE, MOST));
  }

  setOpen(id, open) {
    this.open.set(id, open);
  }

  /** Opens all parents of this actor, and has it shown among however many siblings. */
  async reveal(id) {
    let at = id;
    for (let guard = 0; at && guard < DEEPEST; guard++) {
      let row = this.actors.get(at)?.row;
      if (!row) row = (await get("actor", { actor: at })).actor;
      if (!row) return;
      this.pinned.set(at, row);
      if (at !== id) this.open.set(at, true);
      at = row.parent;
    }
    if (!this.actors.has(id)) this.take(new Map([...this.rowsNow(), ...this.pinned]));
  }

  rowsNow() {
    return [...this.actors].filter(([, a]) => !a.goneAt).map(([id, a]) => [id, a.row]);
  }

  /** What is drawn: a forest, as {kids}; each is {id, actor, open, kids, hidden, parents, said}. Null
   * when there is nobody. */
  view(now = performance.now()) {
    if (this.roots.length === 0) return null;
    const shown = this.choose({ row: { id: "" }, kids: this.roots }, this.roots.length, now);
    const loose = this.roots.every((actor) => actor.row.children === 0) ? this.beyond : 0;
    return {
      id: "",
      hidden: this.roots.length - shown.length + loose,
      kids: shown.map((actor) => this.viewOf(actor, now)),
    };
  }

  viewOf(actor, now) {
    const { row } = actor;
    const total = Math.max(row.children, actor.kids.filter((kid) => !kid.goneAt).length);
    const open = total > 0 && this.isOpen(row);
    const node = {
      id: row.id,
      actor,
      open,
      kids: [],
      hidden: 0,
      parents: total > 0,
      said: this.open.has(row.id),
      alarm: "", // of somebody below who is not shown
    };
    if (!open) {
      node.alarm = alarmOf(actor, now);
      return node;
    }
    const shown = this.choose(actor, total, now);
    node.kids = shown.map((kid) => this.viewOf(kid, now));
    node.hidden = Math.max(0, total - shown.filter((kid) => !kid.goneAt).length);
    return node;
  }

  /** The first of the siblings, those with children first, and all that are in trouble. */
  choose(actor, total, now) {
    const limit = this.limit(idOf(actor), alike(actor.kids));
    if (total <= limit + 2 && actor.kids.length <= limit + 2) return actor.kids;
    const rank = (kid) =>
      this.pinned.has(kid.row.id) ? 0 : isLoud(kid, now) ? 1 : kid.row.children > 0 ? 2 : 3;
    const ranked = actor.kids
      .map((kid, at) => [rank(kid), at, kid])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    // Loud ones come on top of the limit, within reason, so that nobody quiet has to leave for them.
    const loud = ranked.filter((entry) => entry[0] < 2).length;
    return ranked
      .slice(0, limit + Math.min(loud, 24))
      .sort((a, b) => a[1] - b[1])
      .map((entry) => entry[2]);
  }
}

/** Siblings of one name are told by a few of them. */
function alike(kids) {
  return kids.length > 5 && kids.every((kid) => kid.row.name === kids[0].row.name && kid.row.children === 0);
}

/** How somebody below is marked, if anybody is. */
function alarmOf(actor, now) {
  for (const kid of actor.kids) {
    const kind = kid.flashUntil > now ? kid.flash : alarmOf(kid, now);
    if (kind) return kind;
  }
  return "";
}

const idOf = (actor) => actor.row.id;

export function isLoud(actor, now) {
  const { row } = actor;
  return (
    actor.flashUntil > now || TROUBLE.has(stateOf(actor)) || (row.cap > 0 && row.mailbox >= row.cap * 0.8)
  );
}

/** The state as a word, with what is not in `state`. */
export function stateOf(actor) {
  const { row } = actor;
  if (actor.goneAt) return "terminated";
  if (actor.stuckSince && IN_CODE.has(row.state)) return "stuck";
  return row.stopping && row.state === "running" ? "stopping" : row.state;
}
