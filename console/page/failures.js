// Failures, equal ones together: the same child that fails for the same reason, with the same words, is
// one card with how often, first and last.

import { backtrace, clock, count, el, nameOf, plain, tagText } from "./dom.js";

const SHOWN = 20; // times that a card lists
const GROUPS = 200; // kept by this page

/** Addresses differ from one crash to the next; where it happened and why does not. */
const wordsOf = (text) => (text ?? "").replace(/\b0x[0-9a-f]+\b/gi, "0x…");

/** A child keeps its name in every incarnation, and siblings of one spec share it. */
const keyOf = (failure) =>
  [failure.name || failure.actor, failure.reason, failure.code, wordsOf(failure.text)].join("\u0000");

/** Failures ({seq, at, ...}) as groups, the one that failed last first. */
export function groupsOf(failures) {
  const groups = new Map();
  for (const failure of failures) addTo(groups, failure);
  return inOrder(groups);
}

function addTo(groups, failure) {
  const key = keyOf(failure);
  const group = groups.get(key);
  if (!group) {
    groups.set(key, { key, count: 1, first: failure.at, last: failure.at, newest: failure, times: [failure] });
    return;
  }
  group.count++;
  group.first = Math.min(group.first, failure.at);
  if (failure.seq > group.newest.seq) [group.newest, group.last] = [failure, failure.at];
  group.times.push(failure);
  group.times.sort((a, b) => b.seq - a.seq);
  group.times.length = Math.min(group.times.length, SHOWN);
}

const inOrder = (groups) => [...groups.values()].sort((a, b) => b.newest.seq - a.newest.seq);

/** All failures that this page heard of: the program keeps its last 64 only. */
export class FailureBook {
  constructor() {
    this.clear();
  }

  clear() {
    this.groups = new Map();
    this.newest = 0;
    this.heard = 0;
  }

  take(failures, now = Date.now()) {
    for (const failure of [...failures].sort((a, b) => a.seq - b.seq)) {
      if (failure.seq <= this.newest) continue;
      this.newest = failure.seq;
      this.heard++;
      addTo(this.groups, { ...failure, at: now - failure.ago_ms });
    }
    for (const group of inOrder(this.groups).slice(GROUPS)) this.groups.delete(group.key);
  }

  list() {
    return inOrder(this.groups);
  }
}

/** A group as a card. `open` remembers what was unfolded. */
export function failureCard(group, open, onOpen) {
  const { newest } = group;
  const who = onOpen
    ? el("button", {
        type: "button",
        class: "link-button failure-who",
        text: nameOf({ name: newest.name, id: newest.actor }),
        title: `${nameOf({ name: newest.name, id: newest.actor })} ${newest.actor}`,
        onclick: () => onOpen(newest.actor),
      })
    : null;
  const code = newest.code ? ` ${newest.code}` : "";
  const many = group.count > 1;
  const about = (f) =>
    `incarnation ${f.incarnation}${f.tag === null || f.tag === undefined ? "" : `, tag ${tagText(f.tag)}`}`;
  return el(
    "article",
    { class: "failure", "data-key": group.key },
    who,
    el("strong", { text: `${newest.reason}${code}` }),
    many ? el("span", { class: "badge badge-bad times", text: `×${count(group.count)}`, title: `${count(group.count)} equal failures` }) : null,
    newest.text ? el("span", { class: "failure-text", text: plain(newest.text) }) : null,
    el("span", {
      class: "quiet failure-when",
      text: many
        ? `first ${clock(group.first)}, last ${clock(group.last)}, ${about(newest)}`
        : `${clock(group.last)}, ${about(newest)}`,
    }),
    backtrace(newest.frames, `frames ${group.key}`, open),
    many ? occasions(group, about, open) : null,
  );
}

function occasions(group, about, open) {
  const key = `times ${group.key}`;
  const box = el(
    "details",
    { class: "frames", open: open.has(key), "data-key": key },
    el("summary", { text: group.count > group.times.length ? `the last ${group.times.length} times` : `${group.count} times` }),
    el("ol", {}, ...group.times.map((f) => el("li", { text: `${clock(f.at)}, ${about(f)}` }))),
  );
  box.addEventListener("toggle", () => (box.open ? open.add(key) : open.delete(key)));
  return box;
}
