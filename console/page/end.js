// How a program ends, and what is said of it. The server says how its program went; that the server
// itself is stopped it tells those who wait for its farewell. Who gets none, and reaches nobody, has
// lost the connection.

import { get } from "./api.js";
import { clock } from "./dom.js";

const AGAIN_MS = 1000;
const LONGEST_MS = 20000; // the server answers after 8 s at the latest

/** What an error means for the program: {over, text, word, at}, or null if it says nothing of it. */
export function endOf(error, farewell, before, now = Date.now()) {
  const since = (ms) => now - ms;
  const tell = (text, word, at) => ({
    text: `${text} Seen last at ${clock(at)}; what is shown is from then.`,
    word: `${word} ${clock(at)}`,
    at,
  });
  if (error.status === 0) {
    if (farewell?.own) return tell("The program ended: it shut down properly.", "ended", farewell.at);
    if (farewell) return tell("The console was stopped; the program goes on without it.", "console stopped", farewell.at);
    return tell(
      "The connection was lost: the console's server cannot be reached. It was killed, crashed, or is cut off.",
      "lost",
      before?.status === 0 ? before.at : now,
    );
  }
  if (error.code !== "NOT_REACHABLE" || !error.end) return null;
  const at = since(error.sinceMs ?? 0);
  const word = { closed: "ended", died: "died", closing: "closed", lost: "lost" }[error.end] ?? "ended";
  return tell(error.message, word, at);
}

/** Waits for the server's farewell for as long as it is told to. */
export class Farewell {
  constructor() {
    this.told = null; // {own, at}
    this.waiting = null; // aborts what is under way
  }

  start() {
    if (this.waiting) return;
    const waiting = new AbortController();
    this.waiting = waiting;
    this.wait(waiting).catch(() => {});
  }

  /** The page is hidden or stopped: nobody need be kept waiting for it. */
  stop() {
    this.waiting?.abort();
    this.waiting = null;
  }

  async wait(waiting) {
    while (this.waiting === waiting) {
      const began = performance.now();
      let answer = null;
      try {
        const signal = AbortSignal.any
          ? AbortSignal.any([waiting.signal, AbortSignal.timeout(LONGEST_MS)])
          : waiting.signal;
        answer = await get("farewell", {}, LONGEST_MS, signal);
      } catch (error) {
        if (waiting.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) return; // a server that says none
      }
      if (answer?.stopping) this.told = { own: answer.own, at: Date.now() };
      else if (answer) this.told = null; // it is there, whatever was before
      if (performance.now() - began < AGAIN_MS) await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  }
}
