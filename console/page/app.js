// The page itself: looks twice a second, hands what it sees to the parts, and says when it cannot.

import { ApiError, get, takeToken } from "./api.js";
import { Charts, History } from "./charts.js";
import { Detail } from "./detail.js";
import { $, count, el, nameOf, plain, radios, span, toast } from "./dom.js";
import { Farewell, endOf } from "./end.js";
import { Header } from "./header.js";
import { Lists } from "./lists.js";
import { Model } from "./model.js";
import { Place } from "./place.js";
import { Search } from "./search.js";
import { Table } from "./table.js";
import { Trace } from "./trace.js";
import { Tree } from "./tree.js";

const LOOK_MS = 500;
const STUCK_MS = 2000;
const PAST_MS = 1000; // how often the charts get what is new,
const WHOLE_MS = 300000; // and all of it, which the server has made coarser meanwhile
const THEMES = ["auto", "light", "dark"];
const KEYS = [
  ["↑ ↓", "previous and next in the tree"],
  ["→ ←", "open or go in; close or go out"],
  ["Enter", "details of an actor; more of a group"],
  ["Space", "open or close"],
  ["+ − 0", "larger, smaller, show all"],
  ["Shift + arrows", "scroll the picture; so does the wheel, with Ctrl it zooms"],
  ["v", "tree or table"],
  ["/", "find an actor"],
  ["p", "pause and go on"],
  ["t", "colours"],
  ["Esc", "close what is open"],
  ["?", "this list"],
];

takeToken();
const model = new Model();
const history = new History();
const farewell = new Farewell();
const place = new Place(goTo);
const charts = new Charts(history, { onWindow: (minutes) => place.note({ minutes: String(minutes) }, false) });
const header = new Header();
let program = null;
let paused = false;
let failed = 0;
let stuckAt = 0;
let newestFailure = null;
let opener = null;
let end = null; // how the program, or the way to it, ended: {text, word, at}
let pastAt = -Infinity;
let wholeAt = -Infinity;

const detail = new Detail({
  onClose: () => {
    place.note({ actor: "" });
    tree.select(null);
    table.select(null);
    if (table.seen) table.scroll.focus({ preventScroll: true });
    else if (opener !== null && tree.drawn.has(opener)) tree.focus(opener);
    else tree.focus(tree.focused);
  },
  onOpen: (id) => openActor(id),
  known: (id) => model.actors.get(id),
  onTrace: (actor) => {
    if (matchMedia("(max-width: 999px)").matches) detail.close();
    lists.show("trace");
    trace.aim(actor);
  },
});
const trace = new Trace({ onOpen: (id) => openActor(id), program: () => program });
const tree = new Tree(model, { onOpen: (id) => openActor(id), onToggle: () => refreshTree() });
const table = new Table({ onOpen: (id) => openActor(id), onTrouble: (error) => trouble(error) });
const views = radios($("view"), (button) => show(button.dataset.view));
const lists = new Lists({ onOpen: (id) => openActor(id), known: (id) => model.actors.get(id), onShow: (list) => place.note({ list }), trace });
const search = new Search({
  onChoose: async (id) => {
    await reveal(id);
    openActor(id);
  },
});

lists.counted = () => program?.counters.failures ?? 0;

/** All actors as a tree or as a table. */
function show(view) {
  const asTable = view === "table";
  views.mark(views.buttons.find((button) => button.dataset.view === (asTable ? "table" : "tree")));
  place.note({ view: asTable ? "table" : "tree" });
  for (const part of [$("stage"), $("legend"), $("search-form"), document.querySelector(".zoom")])
    part.hidden = asTable;
  table.show(asTable);
  if (!asTable) {
    tree.draw();
    tellCount();
  }
}

function tellCount() {
  if (table.seen) return;
  const actors = `${count(model.total)} ${model.total === 1 ? "actor" : "actors"}`;
  $("tree-count").textContent = model.large ? `${actors}; the top, and what you open` : actors;
}

/** Has the actor shown in the tree, if it still lives. */
async function reveal(id) {
  try {
    await model.reveal(id);
    tree.draw();
    const parts = tree.drawn.get(id);
    if (parts) tree.setStop(id);
    if (parts && !tree.picture.narrow) tree.viewport.bringIn(parts.spot);
  } catch (error) {
    if (!error.reached) trouble(error);
  }
}

/** The visitor went back, or opened an address that says more than where the console is. */
function goTo({ actor, list, minutes, view }) {
  if (takeToken()) {
    const now = { actor: detail.id ?? "", list: lists.active.name, minutes: String(charts.minutes) };
    place.note({ ...now, view: table.seen ? "table" : "tree" }, false);
    return;
  }
  if (table.seen !== (view === "table")) show(view);
  if (lists.active.name !== list && lists.tab(list)) lists.show(list);
  if (charts.minutes !== Number(minutes)) charts.choose(minutes);
  if (actor && actor !== detail.id) openActor(actor);
  else if (!actor) detail.close();
}

function openActor(id) {
  opener = id;
  place.note({ actor: id });
  tree.select(id);
  table.select(id);
  detail.allow = program?.allow || [];
  detail.open(id).catch(trouble);
}

async function refreshTree() {
  try {
    model.take(await model.ask());
    tree.draw();
  } catch (error) {
    trouble(error);
  }
}

/** What the server kept of the past, since we asked last. */
async function readPast(now) {
  if (now - pastAt < PAST_MS - 50) return;
  pastAt = now;
  const all = history.pid === null || now - wholeAt > WHOLE_MS;
  if (all) wholeAt = now;
  try {
    const answer = await get("history", { after: all ? null : history.last });
    if (!history.take(answer, all)) wholeAt = pastAt = -Infinity; // another program: at the next look
  } catch (error) {
    if (!error.reached) throw error;
    history.own = true; // a server that keeps nothing
  }
}

/** What changed between two looks at the program, as the charts want it. */
function sample(now, before) {
  const seconds = (now.now_ns - before.now_ns) / 1e9;
  if (!(seconds > 0)) return null;
  const grown = (name) => Math.max(0, (now.counters[name] ?? 0) - (before.counters[name] ?? 0));
  return {
    span: seconds * 1000,
    handled: grown("handled"),
    queued: now.counters.queued ?? 0,
    restarts: grown("restarts"),
    failures: grown("failures"),
    latency: Math.max(0, ...now.dispatchers.map((d) => d.latency_us ?? 0)),
  };
}

function sameProgram(a, b) {
  return a && a.pid === b.pid && b.uptime_ms >= a.uptime_ms - 1000;
}

/** Takes in what the program says; true if somebody failed since, or may have. */
function takeProgram(next) {
  const before = program;
  program = next;
  if (!sameProgram(before, next)) {
    model.reset();
    tree.reset();
    lists.reset();
    table.reset();
    if (before) history.clear();
    newestFailure = null;
    clearTicker();
    if (before) {
      detail.close();
      toast(`Another run of the program: ${plain(next.name)}, pid ${next.pid}.`);
    }
  } else {
    const values = sample(next, before);
    if (values) {
      if (history.own) history.add(Date.now(), values.span, values);
      header.rate = history.rate() ?? (values.handled * 1000) / values.span;
    }
  }
  header.show(next);
  tellLive(); // it may have been paused while this look was under way
  detail.allow = next.allow || [];
  return !sameProgram(before, next) || (next.counters.failures ?? 0) > (before.counters.failures ?? 0);
}

/** Somebody failed since the last look: who it was is marked and said. */
async function readFailures() {
  const failures = await lists.failures();
  if (failures.length === 0) {
    newestFailure = -1;
    return;
  }
  const known = newestFailure;
  newestFailure = Math.max(...failures.map((f) => f.seq));
  const fresh = failures.filter((f) => known !== null && f.seq > known);
  for (const failure of fresh) model.noteFailure(failure.actor);
  for (const failure of fresh.slice(0, 3)) await model.meet(failure.actor);
  const last = failures.reduce((a, b) => (a.seq > b.seq ? a : b));
  tickerFrom = { failure: last, at: performance.now() - last.ago_ms };
}

let tickerFrom = null;
function clearTicker() {
  tickerFrom = null;
  delete $("ticker").dataset.seq;
  $("ticker").replaceChildren();
}

function drawTicker(now) {
  const box = $("ticker");
  if (!tickerFrom) return;
  const { failure, at } = tickerFrom;
  if (box.dataset.seq !== String(failure.seq)) {
    box.dataset.seq = failure.seq;
    box.replaceChildren(
      el("span", { class: "ticker-mark", "aria-hidden": "true", text: "✕" }),
      el("button", {
        type: "button",
        class: "link-button",
        text: nameOf({ name: failure.name, id: failure.actor }),
        onclick: () => openActor(failure.actor),
      }),
      el("span", { text: ` ${failure.reason}${failure.text ? `: ${plain(failure.text)}` : ""}` }),
      el("span", { class: "quiet ticker-ago", "aria-hidden": "true" }),
    );
    box.classList.remove("ticker-new");
    void box.offsetWidth; // begins the animation again
    if (now - at < 3000) box.classList.add("ticker-new");
  }
  box.lastChild.textContent = ` ${span(now - at)} ago`;
}

async function readStuck(now) {
  if (now - stuckAt < STUCK_MS) return;
  stuckAt = now;
  const answer = await lists.stuck();
  model.noteStuck(answer.running || []);
  header.showStuck(answer, program);
}

function trouble(error) {
  failed++;
  if (!(error instanceof ApiError)) console.error(error);
  end = error instanceof ApiError ? endOf(error, farewell.told, end) : null;
  if (end) end.status = error.status;
  const text = !(error instanceof ApiError)
    ? `This page has a fault: ${error.message}.`
    : error.message;
  header.showTrouble(end ? end.text : `${text} Trying again.`, end?.word);
  tree.waiting = end ? end.text : "Waiting for the program.";
  tree.draw();
  document.body.classList.add("unreachable");
}

/** A look that began at that time of day succeeded. */
function wellAgain(began) {
  // Who answers long after the farewell is another one.
  if (farewell.told && began > farewell.told.at + 1000) farewell.told = null;
  if (failed === 0) return;
  failed = 0;
  end = null;
  header.showTrouble(null);
  document.body.classList.remove("unreachable");
}

async function look() {
  const began = performance.now();
  try {
    const [next, rows] = await Promise.all([get("program"), model.ask()]);
    wellAgain(Date.now() - (performance.now() - began));
    const another = program && !sameProgram(program, next);
    const fell = takeProgram(next);
    // What was asked for was what of the old program is seen, and may be of the old one.
    model.take(another ? await model.ask() : rows);
    const now = performance.now();
    tree.draw(now);
    if (fell) {
      await readFailures();
      tree.draw(now);
    }
    tellCount();
    drawTicker(now);
    await Promise.all([readPast(now), lists.refresh(now), readStuck(now), detail.refresh(), table.tick(now)]);
    charts.draw(Date.now());
  } catch (error) {
    trouble(error);
    await lookBack();
  }
  return performance.now() - began;
}

/** A page that comes when all is over has the past to show. */
async function lookBack() {
  if (history.pid !== null) return;
  await readPast(performance.now()).catch(() => {});
  charts.draw(end?.at ?? Date.now());
}

/** What the light at the top says. That the program is not reached stays true until it is. */
function tellLive() {
  header.live(paused || document.hidden ? "paused" : failed ? "lost" : "live");
}

let timer = 0;
async function run() {
  clearTimeout(timer);
  timer = -1; // a look is under way
  const took = await look();
  timer = 0;
  if (!paused && !document.hidden) timer = setTimeout(run, Math.max(50, (failed ? 1000 : LOOK_MS) - took));
}

function wake() {
  if (document.hidden) farewell.stop();
  else farewell.start();
  if (timer === 0 && !paused && !document.hidden) run();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden && timer > 0) {
    clearTimeout(timer);
    timer = 0;
  }
  tellLive();
  wake();
});

function setPaused(on) {
  paused = on;
  $("pause").setAttribute("aria-pressed", on);
  $("pause").textContent = on ? "Go on" : "Pause";
  tellLive();
  if (on && timer > 0) {
    clearTimeout(timer);
    timer = 0;
  }
  wake();
}

function setTheme(theme) {
  const root = document.documentElement;
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  $("theme").textContent = theme[0].toUpperCase() + theme.slice(1);
  $("theme").setAttribute("aria-label", `Colours: ${theme}`);
  try {
    localStorage.setItem("jzx-theme", theme);
  } catch {
    /* it is for this visit then */
  }
  charts.draw();
}

function nextTheme() {
  const at = THEMES.indexOf(document.documentElement.dataset.theme || "auto");
  setTheme(THEMES[(at + 1) % THEMES.length]);
}

function showKeys() {
  $("keys-list").replaceChildren(
    ...KEYS.flatMap(([key, text]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text })]),
  );
  $("keys").showModal();
}

function shortcut(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, dialog[open]")) return;
  const actions = {
    "/": () => $(table.seen ? "filter" : "search").focus(),
    "?": showKeys,
    p: () => setPaused(!paused),
    t: nextTheme,
    v: () => show(table.seen ? "tree" : "table"),
    "+": () => tree.viewport.zoom(1.25),
    "=": () => tree.viewport.zoom(1.25),
    "-": () => tree.viewport.zoom(0.8),
    0: () => tree.viewport.fit(),
    Escape: () => detail.close(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function start() {
  let theme = "auto";
  try {
    theme = localStorage.getItem("jzx-theme") || "auto";
  } catch {
    /* auto */
  }
  setTheme(THEMES.includes(theme) ? theme : "auto");
  $("pause").addEventListener("click", () => setPaused(!paused));
  $("theme").addEventListener("click", nextTheme);
  $("keys-open").addEventListener("click", showKeys);
  $("keys-close").addEventListener("click", () => $("keys").close());
  $("zoom-in").addEventListener("click", () => tree.viewport.zoom(1.25));
  $("zoom-out").addEventListener("click", () => tree.viewport.zoom(0.8));
  $("zoom-fit").addEventListener("click", () => tree.viewport.fit());
  $("stuck-line").addEventListener("click", () => {
    lists.show("stuck");
    lists.tab("stuck").tab.focus();
  });
  document.addEventListener("keydown", shortcut);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.draw());
  search.start();
  goTo(place.read());
  farewell.start();
  run();
  lists.doctor().catch(() => {}); // the tab asks again when it is seen
}

start();
