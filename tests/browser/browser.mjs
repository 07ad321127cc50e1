// A browser for the tests: headless Chromium, and pages that are watched while a test runs. What a
// page must never do is found here, whatever the test looks at: errors in its console, requests to
// anywhere but its own server, and breaches of the policy that it was served with.

import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];

export class Failure extends Error {}

export function check(truth, sentence) {
  if (!truth) throw new Failure(sentence);
}

export function same(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  check(a === b, `${what}: expected ${b}, got ${a}`);
}

/** Asks again until the answer is true, or says what did not come about. */
export async function until(question, what, ms = 8000) {
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
    this.chromium = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: FLAGS });
  }

  stop() {
    return this.chromium.close();
  }

  /** A page at this address. `expected`: console errors that the test provokes, as a pattern. */
  async open(url, { expected = null, wait = ".node", ...options } = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(8000);
    const origin = new URL(url).origin;
    const wrong = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !expected?.test(message.text())) wrong.push(`the console says: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`an exception: ${error.stack}`));
    context.on("request", (request) => {
      const to = request.url();
      if (!to.startsWith("data:") && !to.startsWith("blob:") && new URL(to).origin !== origin) wrong.push(`a request left: ${to}`);
    });
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.goto(url);
    if (wait) await page.waitForSelector(wait);
    page.verify = () => {
      const found = wrong.splice(0);
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
  return page.$$eval("#tree .node:not(.group)", (nodes) => nodes.map((node) => ({
    id: node.dataset.id, label: node.getAttribute("aria-label"), level: Number(node.getAttribute("aria-level")), state: node.dataset.state })));
}

export const focusedId = (page) => page.evaluate(() => document.activeElement?.dataset?.id ?? document.activeElement?.id ?? null);
