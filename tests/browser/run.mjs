// The browser tests: node run.mjs MODULES SHOTS [FILTER]. MODULES is where playwright-core is
// installed, SHOTS where pictures go; FILTER is a part of the names of the tests to run.
//
// With JZX_CONSOLE_URL... (see real.mjs) also against a real program.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Browser } from "./browser.mjs";
import { MadeUp } from "./made_up.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [modules, shots, filter = ""] = process.argv.slice(2);
const browser = new Browser(modules, shots);
const LANES = Number(process.env.LANES || 2);
const began = Date.now();
let failed = 0;
let passed = 0;

await browser.start();
const madeUp = new MadeUp(browser, join(here, "../../console/page"));
const tests = madeUp.tests();
const waiting = Object.entries(tests).filter(([name]) => name.includes(filter));

// Most of a test is waiting for the next look of its page, so several run at a time.
async function lane() {
  const session = await madeUp.session();
  for (let next = waiting.shift(); next; next = waiting.shift()) await run(...next, session);
  await madeUp.end(session);
}

async function run(name, body, session) {
  const start = Date.now();
  try {
    const said = await body(session);
    passed++;
    console.log(`ok      ${name} (${Date.now() - start} ms${said ? `; ${said}` : ""})`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}: ${error.constructor.name === "Failure" ? error.message : error.stack}`);
  }
}
await Promise.all(Array.from({ length: LANES }, lane));
await browser.stop();
console.log(`${passed} passed, ${failed} failed in ${((Date.now() - began) / 1000).toFixed(1)} s`);
process.exit(failed ? 1 : 0);
