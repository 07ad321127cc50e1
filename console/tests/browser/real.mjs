// The page with a real program: the demonstration node, its own console, and what the jzx command
// says of it. The pictures of the documentation are made here.

import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { PHONE, check, checkPhone, same, until } from "./browser.mjs";

const run = promisify(execFile);
const TAG_CRASH = 103; // cmd/node/node.h

export class Real {
  constructor(browser, node, command) {
    Object.assign(this, { browser, node, command });
  }

  /** Starts the node on this port, or on any; resolves when it says where its console is. */
  async start(port = 0) {
    this.child = spawn(this.node, ["--port", String(port)], { stdio: ["ignore", "pipe", "inherit"] });
    const { child } = this;
    process.once("exit", () => child.kill("SIGKILL")); // whatever happens here
    let said = "";
    this.child.stdout.on("data", (data) => {
      said += data;
    });
    await until(() => /http:\/\/\S+\n/.test(said), "the node says where its console is");
    this.url = /http:\/\/\S+/.exec(said)[0];
    return this.url;
  }

  async stop() {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
  }

  /** Begins, so that there is something in the charts when the tests come to it. */
  async begin() {
    await this.start();
    this.page = await this.browser.open(this.url, { viewport: { width: 1320, height: 860 } });
  }

  async end() {
    await this.page?.context().close();
    await this.stop();
  }

  tests() {
    return {
      "a real program: the tree is what jzx tree says": () => this.tree(),
      "a real program: charts move, and a picture is taken": () => this.charts(),
      "a real program: all of it as a table": () => this.table(),
      "a real program: a phone shows all of it without scrolling sideways": () => this.phone(),
      "a real program: a crash shows within a second": () => this.crash(),
      "a real program: a trace is recorded": () => this.trace(),
      "a real program: an actor's failures have their backtrace": () => this.detail(),
      "a real program: it ends, and another one comes": () => this.gone(),
      "a real program: in another process, how it ended is told": () => this.away(),
    };
  }

  async actors() {
    const { stdout } = await run(this.command, ["tree", "--json", "--once", String(this.child.pid)], {
      maxBuffer: 1 << 24,
    });
    const { actors } = JSON.parse(stdout);
    return new Map(actors.map((row) => [row.id, row]));
  }

  /** Parcels come and go all the time: those who were there before and after must be drawn, or
   * counted in the group of their parent. */
  async tree() {
    const before = await this.actors();
    const drawn = await this.page.$$eval("#tree .node", (nodes) =>
      nodes.map((node) => ({
        id: node.dataset.id,
        level: Number(node.getAttribute("aria-level")),
        label: node.getAttribute("aria-label"),
        group: node.classList.contains("group"),
        ended: node.classList.contains("s-terminated"),
      })),
    );
    const after = await this.actors();
    const steady = [...before.values()].filter((row) => after.has(row.id));
    check(steady.length > 20, `only ${steady.length} actors lived long enough`);
    const byId = new Map(drawn.map((node) => [node.id, node]));
    for (const row of steady) {
      const node = byId.get(row.id);
      if (!node) {
        check(
          byId.has(`${row.parent}+`) || row.uptime_ms === null || row.uptime_ms < 3000,
          `${row.name} (${row.id}) is neither drawn nor in a group`,
        );
        continue;
      }
      same(node.level, row.depth + 1, `the level of ${row.name}`);
      check(
        node.label.startsWith(`${row.name}, ${row.supervisor ? "supervisor" : "worker"}`),
        `${node.label} is ${row.name}`,
      );
    }
    for (const node of drawn) {
      if (node.group || node.ended) continue;
      check(
        before.has(node.id) || after.has(node.id) || node.label.startsWith("parcel"),
        `${node.label} is drawn and is not there`,
      );
    }
    for (const name of ["shop", "bank", "clerk-1", "database"])
      check(
        steady.some((row) => row.name === name && byId.has(row.id)),
        `${name} is drawn`,
      );
    this.page.verify();
  }

  /** By the page's own means: a message that crashes the bank, which its guard turns into a restart. */
  async crash() {
    const { page } = this;
    const bank = '.node[aria-label^="bank,"]';
    await page.click(bank);
    await page.waitForSelector("#detail .send");
    await page.fill("#detail [name=tag]", String(TAG_CRASH));
    const times = [];
    for (let tries = 0; tries < 5 && !(times.at(-1) < 1000); tries++) {
      await page.waitForSelector(`${bank}[data-state=running]`);
      const restarts = Number(await page.getAttribute(bank, "data-restarts"));
      const began = Date.now();
      await page.click("#detail .send button");
      await page.waitForFunction(
        ([selector, old]) => {
          const node = document.querySelector(selector);
          return (
            node &&
            (node.dataset.state !== "running" || Number(node.dataset.restarts) > old) &&
            node.classList.contains("flash")
          );
        },
        [bank, restarts],
      );
      times.push(Date.now() - began);
    }
    check(Math.min(...times) < 1000, `it took ${times.join(", ")} ms`);
    await until(
      async () => (await page.textContent("#panel-failures")).includes("crash 11"),
      "the failure is in the list",
    );
    page.verify();
    return `seen after ${times.join(", ")} ms`;
  }

  async detail() {
    const { page } = this;
    await page.click("#tab-failures");
    await page.click('.node[aria-label^="bank,"]');
    await page.waitForSelector("#detail .failure .frames");
    check(/crash 11/.test(await page.textContent("#detail .d-failures")), "the crash");
    check(/bank_work/.test(await page.textContent("#detail .frames ol")), "its frames have names");
    await this.browser.shoot(page, "console-detail");
    await page.keyboard.press("Escape");
    page.verify();
  }

  async charts() {
    const { page } = this;
    const pictures = () => page.$$eval(".chart-canvas", (all) => all.map((one) => one.toDataURL()));
    const first = await pictures();
    await until(async () => (await pictures()).every((one, at) => one !== first[at]), "all four charts move");
    check(/\d/.test(await page.textContent("#n-rate")), "messages per second");
    if (process.env.UPDATE === "1") await page.waitForTimeout(40000); // a picture with something in it
    await this.browser.shoot(page, "console");
    await page.emulateMedia({ colorScheme: "dark" });
    await this.browser.shoot(page, "console-dark");
    await page.emulateMedia({ colorScheme: "light" });
    page.verify();
  }

  async table() {
    const { page } = this;
    await page.click("#view [data-view=table]");
    await page.waitForSelector(".t-space .t-row:not(.t-asking)");
    const rates = () => page.$$eval(".t-space .t-row:not([hidden]) .t-rate", (all) => all.map((one) => one.textContent));
    await until(async () => /^[1-9]/.test((await rates())[0]), "who handles most is first");
    await page.mouse.move(5, 5);
    await this.browser.shoot(page, "console-table");
    await page.click(".t-head .t-name button");
    await until(async () => (await page.textContent('.t-space [data-at="0"] .t-name')) === "audit", "by name");
    await page.click("#view [data-view=tree]");
    page.verify();
  }

  /** `jzx console` for the node that runs: it shuts down, the next one is killed. */
  async away() {
    for (const [signal, words] of [
      ["SIGTERM", "it shut down properly"],
      ["SIGKILL", "it crashed, was killed, or left by exit()"],
    ]) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) await this.start();
      const console = spawn(this.command, ["console", "--port", "0", "--json", String(this.child.pid)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      process.once("exit", () => console.kill("SIGKILL"));
      let said = "";
      console.stdout.on("data", (data) => {
        said += data;
      });
      await until(() => said.includes("\n"), "the console says where it is");
      const page = await this.browser.open(JSON.parse(said).url);
      try {
        page.expected(/status of 503/);
        await until(async () => (await page.textContent("#live-text")) === "live", "it is live");
        await until(async () => (await page.$$(".node")).length > 20, "the tree is there");
        this.child.kill(signal);
        await until(async () => (await page.textContent("#banner")).includes(words), words);
        check((await page.$$(".node")).length > 20, "the last tree is there");
      } finally {
        await page.context().close();
        const over = new Promise((resolve) => console.once("exit", resolve));
        console.kill("SIGTERM");
        await over;
      }
    }
  }

  async phone() {
    const page = await this.browser.open(this.url, PHONE);
    await page.waitForSelector('.node[aria-label^="bank,"]');
    await this.browser.shoot(page, "console-phone");
    await checkPhone(page, '.node[aria-label^="bank,"]');
    await page.context().close();
    page.verify();
  }

  async trace() {
    const { page } = this;
    await page.keyboard.press("Escape");
    await page.click("#tab-trace");
    await page.fill("#trace-who", "shop");
    await page.click("text=Record 1 s");
    await page.waitForSelector(".timeline");
    check((await page.$$eval(".timeline .handled", (all) => all.length)) > 20, "messages are drawn");
    check((await page.$$eval(".timeline .arrow", (all) => all.length)) > 5, "arrows are drawn");
    await page.waitForSelector("#toast", { state: "hidden" });
    await this.browser.shoot(page, "console-trace");
    page.verify();
  }

  async gone() {
    const { page } = this;
    const { port } = new URL(this.url);
    page.expected(/ERR_CONNECTION|ERR_EMPTY|ERR_SOCKET/);
    const old = await page.textContent("#whereabouts");
    await this.stop();
    await page.waitForSelector("#banner:not([hidden])");
    await until(
      async () => (await page.textContent("#banner")).startsWith("The program ended: it shut down properly."),
      "that it shut down",
    );
    await this.browser.shoot(page, "console-ended");
    await this.start(port);
    await page.waitForSelector("#banner", { state: "hidden" });
    await until(async () => (await page.textContent("#whereabouts")) !== old, "the new one's pid");
    await page.waitForSelector('.node[aria-label^="bank,"]');
    page.verify();
  }
}
