// A browser for the tests: headless Chromium, and pages that are watched while a test runs. What a
// page must never do is found here, whatever the test looks at: errors in its console, requests to
// anywhere but its own server, and breaches of the policy that it was served with.

import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

export class Failure extends Error {}

export function check(truth, sentence) {
  if (!truth) throw new Failure(sentence);
}

export function same(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  check(a === b, `${what}: expected ${b}, got ${a}`);
}

/** Asks again until the answer is true, or says what did not come about. */
export async function until(question, what, ms = 20000) {
  const end = Date.now() + ms;
  for (;;) {
    const answer = await question();
    if (answer) return answer;
    check(Date.now() < end, `within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

export class Browser {
  constructor(modules, shots) {
    this.modules = modules;
    this.shots = shots;
    mkdirSync(shots, { recursive: true });
  }

  async start() {
    const { chromium } = createRequire(resolve(this.modules, "package.json"))("playwright-core");
    this.chromium = await chromium.launch({
      executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
      args: FLAGS,
    });
  }

  stop() {
    return this.chromium.close();
  }

  /** A page at this address. Its verify() fails if it did what it must not; its expected() names
   * errors in the console, by a pattern, that a test provokes until then; `provoked` those of its
   * beginning. Its quiet() waits until it asks for nothing. */
  async open(url, { wait = ".node", provoked = null, ...options } = {}) {
    const context = await this.chromium.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme: "light",
      ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(20000);
    const origin = new URL(url).origin;
    const wrong = [];
    let pattern = provoked;
    page.expected = (provoked) => {
      pattern = provoked;
    };
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !pattern?.test(message.text()))
        wrong.push(`the console says: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`an exception: ${error.stack}`));
    context.on("request", (request) => {
      const to = request.url();
      if (!to.startsWith("data:") && !to.startsWith("blob:") && new URL(to).origin !== origin)
        wrong.push(`a request left: ${to}`);
    });
    // Nothing is asked: the farewell, which is always waited for, does not count.
    const asking = new Set();
    let askedAt = Date.now();
    page.on("request", (request) => {
      if (request.url().endsWith("/api/farewell")) return;
      asking.add(request);
      askedAt = Date.now();
    });
    for (const name of ["requestfinished", "requestfailed"]) {
      page.on(name, (request) => {
        if (asking.delete(request)) askedAt = Date.now();
      });
    }
    page.quiet = () => until(() => asking.size === 0 && Date.now() - askedAt > 300, "the page asks for nothing");
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) =>
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    await page.goto(url);
    if (wait) await page.waitForSelector(wait);
    page.verify = () => {
      const found = wrong.splice(0);
      pattern = null;
      check(found.length === 0, found.join("; "));
    };
    return page;
  }

  async shoot(page, name) {
    await page.screenshot({ path: join(this.shots, `${name}.png`) });
  }
}

/** The tree as the page draws it: id, name as said to readers, level; groups are left out. */
export function treeOf(page) {
  return page.$$eval("#tree .node:not(.group)", (nodes) =>
    nodes.map((node) => ({
      id: node.dataset.id,
      label: node.getAttribute("aria-label"),
      level: Number(node.getAttribute("aria-level")),
      state: node.dataset.state,
    })),
  );
}

/** What holds on a phone: nothing is too wide, whatever is open, and fingers find the buttons. */
export async function checkPhone(page, anActor) {
  const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const tabs = await page.$$eval("[role=tab]", (all) => all.map((one) => one.id));
  for (const width of [420, 390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    check((await sideways()) <= 0, `at ${width} px: ${await sideways()} px too wide`);
  }
  // All in the page: going to and fro takes longer than it does.
  const wide = await page.evaluate(async (all) => {
    const found = [];
    for (const id of all) {
      document.getElementById(id).click();
      const panel = document.getElementById(id.replace("tab-", "panel-"));
      const end = performance.now() + 5000;
      while (panel.textContent === "Asking." && performance.now() < end) {
        await new Promise((done) => setTimeout(done, 10));
      }
      const more = document.documentElement.scrollWidth - innerWidth;
      if (more > 0 || panel.textContent === "Asking.") found.push(`${id}: ${more} px`);
    }
    return found;
  }, tabs);
  same(wide, [], "tabs that are too wide, or empty");
  await page.tap(anActor);
  await until(() => page.isVisible("#detail .send"), "the panel");
  check((await sideways()) <= 0, "the panel is too wide");
  const small = await page.$$eval(
    "#detail .buttons button, .tools button",
    (all) => all.filter((one) => one.getBoundingClientRect().height < 30).length,
  );
  same(small, 0, "buttons too small for a finger");
  await page.click("#detail .close");
}

export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

export const focusedId = (page) =>
  page.evaluate(() => document.activeElement?.dataset?.id ?? document.activeElement?.id ?? null);
