// The browser tests: node run.mjs MODULES SHOTS [FILTER]. MODULES is where playwright-core is
// installed, SHOTS where pictures go; FILTER is an expression that the names of the tests to run match.
//
// With JZX_NODE and JZX_COMMAND in the environment, the demonstration node and the jzx command, the
// page is shown with a real program too.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Browser } from "./browser.mjs";
import { Doing } from "./doing.mjs";
import { Places } from "./places.mjs";
import { Real } from "./real.mjs";
import { Seeing } from "./seeing.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [modules, shots, expression = ""] = process.argv.slice(2);
const filter = new RegExp(expression);
const browser = new Browser(modules, shots);
const LANES = Number(process.env.LANES || 3);
const began = Date.now();
let failed = 0;
let passed = 0;

await browser.start();
const real =
  process.env.JZX_NODE && process.env.JZX_COMMAND
    ? new Real(browser, process.env.JZX_NODE, process.env.JZX_COMMAND)
    : null;
const page = join(here, "../../page");
const madeUp = new Seeing(browser, page, !real);
const tests = { ...madeUp.tests(), ...new Doing(browser, page).tests(), ...new Places(browser, page).tests() };
const waiting = Object.entries(tests).filter(([name]) => filter.test(name));

// Most of a test is waiting for the next look of its page, so several run at a time.
async function lane() {
  if (waiting.length === 0) return;
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
if (real) await real.begin();
await Promise.all(Array.from({ length: LANES }, lane));
if (real) {
  for (const [name, body] of Object.entries(real.tests())) if (filter.test(name)) await run(name, body);
  await real.end();
}
await browser.stop();
console.log(`${passed} passed, ${failed} failed in ${((Date.now() - began) / 1000).toFixed(1)} s`);
process.exit(failed || !passed ? 1 : 0);
