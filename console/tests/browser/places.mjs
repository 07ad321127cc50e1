// Where things stand: that they can be read and hit, whatever the screen and the program; what is
// known of the past; all actors as a table; and how an end is told.

import { PHONE, check, focusedId, same, until } from "./browser.mjs";
import { ALL, MadeUp } from "./made_up.mjs";

const SCREENS = { low: { width: 1280, height: 720 }, wide: { width: 1920, height: 1080 } };
const LONG = [
  "a-name-that-goes-on-and-on-and-on-for-as-long-as-anybody-cares-to-write",
  "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
  "注文処理係の長い名前がここにあります一二三四五六七八九十",
  "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
  "e\u0301".repeat(60),
  "عامل-الطلبات-ذو-الاسم-الطويل-جدا-جدا-جدا-جدا",
];

/** Texts that are seen and smaller than 11 pixels on the screen. */
function smallTexts() {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("title, noscript, script")) continue;
    if (!parent.checkVisibility({ checkVisibilityCSS: true }) || parent.closest(".sr, .skip")) continue;
    const scale = parent.ownerSVGElement && parent.getScreenCTM ? parent.getScreenCTM().a : 1;
    const size = parseFloat(getComputedStyle(parent).fontSize) * scale;
    if (size < 10.99) found.push(`${size.toFixed(1)} px: ${node.textContent.trim().slice(0, 30)}`);
  }
  return found.slice(0, 5);
}

/** Who of the tree is where scrolling does not lead. */
function unreachable() {
  const stage = document.getElementById("stage");
  const box = stage.getBoundingClientRect();
  return [...document.querySelectorAll(".node .hit")]
    .map((one) => one.getBoundingClientRect())
    .filter(
      (one) =>
        one.left + stage.scrollLeft < box.left ||
        one.top + stage.scrollTop < box.top - 1 ||
        one.right + stage.scrollLeft > box.left + stage.scrollWidth ||
        one.bottom + stage.scrollTop > box.top + stage.scrollHeight,
    ).length;
}

/** Where everything stands that a pointer may aim at. */
function aims() {
  const out = {};
  const stand = (name, node) => {
    const box = node.getBoundingClientRect();
    if (box.width > 0) out[name] = [box.left, box.top, box.width, box.height].map((n) => Math.round(n * 4) / 4);
  };
  for (const node of document.querySelectorAll("button[id], input[id], .card, .charts-card, .strip, .stage, .dispatcher"))
    stand(node.id || `${node.className} ${[...node.parentElement.children].indexOf(node)}`, node);
  for (const node of document.querySelectorAll(".node:not(.group)")) stand(node.dataset.id, node.querySelector(".hit"));
  delete out["stuck-line"];
  return out;
}

/** Words that leave the box that they are in. */
function spilled() {
  const found = [];
  for (const node of document.querySelectorAll(".node")) {
    const hit = node.querySelector(".hit").getBoundingClientRect();
    const toggle = node.querySelector(".toggle:not([display]) circle")?.getBoundingClientRect();
    for (const part of node.querySelectorAll(".name, .sub")) {
      const box = part.getBoundingClientRect();
      if (box.width > 0 && box.right > (toggle ? toggle.left : hit.right) + 0.5)
        found.push(`${part.textContent}: ${(box.right - hit.right).toFixed(1)} px`);
    }
  }
  for (const box of document.querySelectorAll("h1, .who p, .dispatcher, .dispatcher-name > *, .number dd, .t-cell, .link-button, .chart-title, .chart-how, .ticker, .notice-line, .lane-name")) {
    const style = getComputedStyle(box);
    const cut = style.overflow !== "visible" || style.overflowX !== "visible";
    if (box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1 && !cut) found.push(`${box.className}: ${box.textContent.slice(0, 30)}`);
  }
  return found.slice(0, 5);
}

export class Places extends MadeUp {
  tests() {
    return {
      "the tree has room and can be read: 3, 50, 2,000 and 100,000 actors on three screens": (s) => this.readable(s),
      "what is wrong is said without moving anything": (s) => this.still(s),
      "on a phone neither": () => this.stillOnPhone(),
      "labels stay in their boxes, and say all of it elsewhere": (s) => this.labels(s),
      "a page that is opened now shows the past, as every other does": (s) => this.past(s),
      "where the server keeps no past the page keeps its own, and says so": (s) => this.noPast(s),
      "the table sorts, filters and opens, by keys too": (s) => this.table(s),
      "100,000 rows are scrolled through, and few are there": (s) => this.rows(s),
      "equal failures are one": (s) => this.equal(s),
      "that the program ended is told, with how and when": (s) => this.ended(s),
      "who comes after the end sees the past": () => this.after(),
    };
  }

  async sized(page, size, body) {
    await page.setViewportSize(size);
    try {
      return await body();
    } finally {
      await page.setViewportSize({ width: 1440, height: 900 });
    }
  }

  readable(s) {
    const programs = {
      3: (fake) => ["a", "b", "c"].forEach((name, n) => fake.add(`80000000${n}`, name, n ? "800000000" : null)),
      50: (fake) => {
        fake.shop();
        for (let n = 1; n <= 24; n++) fake.add(`5${String(n).padStart(8, "0")}`, `reader-${n}`, n < 9 ? "100000004" : "100000002");
      },
      2000: (fake) => fake.crowd(1994),
      100000: (fake) => fake.crowd(99994),
    };
    return (async () => {
      const said = [];
      for (const [number, prepare] of Object.entries(programs)) {
        await this.on(s, prepare, async (page) => {
          for (const [name, size] of Object.entries(SCREENS)) {
            await this.sized(page, size, async () => {
              const room = await page.$eval("#stage", (stage) => stage.clientHeight);
              check(room >= 320, `${number} actors, ${name}: the tree has ${room} px`);
              same(await page.evaluate(smallTexts), [], `${number} actors, ${name}: texts too small`);
              same(await page.evaluate(unreachable), 0, `${number} actors, ${name}: out of reach`);
              if (name === "low") said.push(room);
            });
          }
          await this.sized(page, { width: 390, height: 844 }, async () => {
            await until(() => page.$eval("#stage", (stage) => stage.classList.contains("stage-narrow")), "the outline");
            same(await page.evaluate(smallTexts), [], `${number} actors, phone: texts too small`);
            same(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "nothing sideways");
          });
          // Made smaller by hand, names go before they cannot be read.
          for (let n = 0; n < 4; n++) await page.keyboard.press("-");
          same(await page.evaluate(smallTexts), [], `${number} actors, zoomed out: texts too small`);
          await page.keyboard.press("0");
        });
      }
      return `${said.join(", ")} px at 720`;
    })();
  }

  /** Every kind of bad news, one after the other. */
  async badNews(page, fake) {
    await until(async () => (await page.textContent("#well")).includes("Nothing is stuck"), "all is well");
    await page.click("#pause");
    const before = await page.evaluate(aims);
    await page.click("#pause");
    const unmoved = async (what) => {
      const now = await page.evaluate(aims);
      const moved = Object.keys(before).filter((name) => now[name] && String(now[name]) !== String(before[name]));
      same(moved.map((name) => [name, before[name], now[name]]), [], `what moved when ${what}`);
    };
    fake.stuckFor = 5200;
    await page.waitForSelector("#stuck-line:not([hidden])");
    await page.waitForSelector(".dispatcher.silent");
    await unmoved("somebody is stuck");
    fake.stuckFor = 0;
    fake.fail("300000002", "a text that is rather long, so that it would need a line of its own to be read");
    await until(async () => (await page.textContent("#ticker")).includes("rather long"), "the ticker");
    await unmoved("somebody failed");
    page.expected(/status of 503/);
    fake.gone = true;
    await page.waitForSelector("#banner:not([hidden])");
    await unmoved("the program is gone");
    fake.gone = false;
    await page.waitForSelector("#banner", { state: "hidden" });
    await unmoved("it is back");
  }

  still(s) {
    return this.on(s, null, (page, fake) => this.sized(page, SCREENS.low, () => this.badNews(page, fake)));
  }

  stillOnPhone() {
    return this.own(this.fake({ allow: ALL }).shop(), PHONE, async (page, fake) => {
      await this.badNews(page, fake);
      const small = await page.evaluate(smallTexts);
      same(small, [], "texts too small");
    });
  }

  labels(s) {
    const prepare = (fake) => {
      fake.name = LONG.join(" ");
      fake.shop();
      fake.pools = 3;
      fake.poolName = LONG[1];
      LONG.forEach((name, n) => {
        fake.add(`60000000${n}`, name, "100000001", { restarts: 123456, mailbox: 64 });
        fake.add(`61000000${n}`, name, "100000001", { supervisor: true });
        fake.add(`62000000${n}`, `${name} kid`, `61000000${n}`, { state: "restarting", restarts: 1234567 });
        fake.fail(`60000000${n}`, name);
      });
    };
    return this.on(s, prepare, async (page) => {
      for (const size of [...Object.values(SCREENS), { width: 390, height: 844 }]) {
        await this.sized(page, size, async () => {
          await page.waitForTimeout(60); // for the picture to be laid out anew
          same(await page.evaluate(spilled), [], `at ${size.width}: words outside of their boxes`);
          same(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "nothing sideways");
        });
      }
      for (const [n, name] of LONG.entries()) {
        check((await page.textContent(`[data-id="60000000${n}"] title`)).includes(name), "the whole name in its title");
        check(/…$/.test(await page.textContent(`[data-id="60000000${n}"] .name`)), "it is cut in the tree");
      }
      check(!/\u200d…$/.test(await page.textContent('[data-id="600000003"] .name')), "no sign is cut in two");
      await page.click('[data-id="600000002"]');
      await until(async () => (await page.textContent("#detail-name")) === LONG[2], "the whole name in the panel");
      await page.keyboard.press("Escape");
      await page.click("#view [data-view=table]");
      await page.waitForSelector(".t-space .t-row:not(.t-asking)");
      same(await page.evaluate(spilled), [], "words outside of their cells");
      await page.click("#view [data-view=tree]");
    });
  }

  past(s) {
    const prepare = (fake) => {
      fake.shop();
      fake.started = Date.now() - 20 * 60000;
      // A peak 17 minutes ago, of which only a coarse row is left.
      fake.past = [[Date.now() - 17 * 60000, 10000, 9000000, 77, 5, 6, 4000, 0]];
    };
    return this.on(s, prepare, async (page, fake) => {
      const other = await this.browser.open(fake.url);
      const read = async (one) => {
        await one.click("#window [data-minutes='60']");
        // At the left edge the cursor takes the oldest that is known.
        await one.evaluate(() => {
          const canvas = document.querySelector(".chart-canvas");
          const box = canvas.getBoundingClientRect();
          canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 1, clientY: box.top + 5 }));
        });
        return one.$$eval(".chart-value", (all) => all.map((value) => value.textContent));
      };
      try {
        await until(
          async () => String(await read(other)).startsWith("900k,77,5 / 6,4.0 ms"),
          "the peak of long ago on a page that is new",
        );
        await until(async () => String(await read(page)) === String(await read(other)), "both say the same");
        const how = () => other.$$eval(".chart-how", (all) => all.map((one) => one.textContent));
        await other.click("#window [data-minutes='2']");
        same(
          await how(),
          [
            "all dispatchers · mean over 1 s",
            "in all mailboxes · most in 1 s",
            "bars: count in 5 s · number: sum of 2 min",
            "time to answer a ping · slowest of all, longest in 1 s",
          ],
          "what the numbers sum up",
        );
        await other.click("#window [data-minutes='60']");
        check((await how())[0].includes("mean over 10 s"), `and of a longer time: ${(await how())[0]}`);
        check((await other.getAttribute(".number-failures", "title")).includes("since the program began"), "at the top too");
        // What comes next comes by itself, and only that.
        fake.asked.length = 0;
        await until(() => fake.asked.filter((one) => one.startsWith("/api/history?after=")).length >= 2, "what is new");
        same(fake.asked.filter((one) => one === "/api/history").length, 0, "all of it again");
        other.verify();
      } finally {
        await other.context().close();
        await page.mouse.move(5, 5);
        await page.click("#window [data-minutes='2']");
      }
    });
  }

  noPast(s) {
    const prepare = (fake) => {
      fake.shop();
      fake.everyMs = 0;
    };
    return this.on(s, prepare, async (page) => {
      await until(async () => /k$/.test(await page.textContent(".chart-value")), "a rate");
      await until(
        async () => (await page.textContent(".chart-how")).includes("kept by this page only"),
        "that it is the page's own",
      );
    });
  }

  table(s) {
    return this.on(s, null, async (page, fake) => {
      const names = () =>
        page.$$eval(".t-space .t-row:not([hidden])", (all) =>
          all
            .sort((a, b) => Number(a.dataset.at) - Number(b.dataset.at))
            .map((one) => one.querySelector(".t-name").textContent),
        );
      const sorted = async (key) => {
        await page.click(`.t-head .t-${key} button`);
      };
      const first = (name, what) => until(async () => (await names())[0] === name, what);
      fake.actors.get("300000007").restarts = 9;
      fake.actors.get("400000002").state = "failed";
      await page.click("#view [data-view=table]");
      await page.waitForSelector(".t-space .t-row:not(.t-asking)");
      same(await page.textContent("#tree-count"), `${fake.actors.size} actors`, "how many");
      await sorted("restarts");
      await first("order-worker-7", "by restarts, the most first");
      same(await page.getAttribute(".t-head .t-restarts", "aria-sort"), "descending", "it says so");
      await sorted("name");
      await first("clock", "by name, from A");
      await sorted("name");
      await first("write-log", "and from Z");
      await sorted("mailbox");
      await first("write-log", "by what waits");
      check((await page.textContent('.t-space [data-id="400000001"] .t-mailbox')).startsWith("21 / 64"), "how much waits");
      fake.asked.length = 0;
      const keys = ["id", "state", "dispatcher", "rate", "handled", "memory", "cpu", "dead", "uptime"];
      await page.evaluate((all) => {
        for (const key of all) document.querySelector(`.t-head .t-${key} button`).click();
      }, keys);
      const missing = () => keys.filter((key) => !fake.asked.some((one) => one.includes(`sort=${key}&`)));
      await until(() => missing().length === 0, "the program sorts by all of them");
      await page.fill("#filter", "worker-1");
      await until(async () => (await names()).length === 4, "those with that in their name");
      await page.fill("#filter", "");
      await page.selectOption("#filter-state", "failed");
      await until(async () => (await names()).join() === "index", "those that failed");
      await page.fill("#filter", "nobody");
      await page.waitForSelector(".t-none:not([hidden])");
      await page.fill("#filter", "");
      await page.selectOption("#filter-state", "");
      await sorted("id");
      await first("root", "all of them again");
      // By keys.
      await page.focus("#filter");
      await page.keyboard.press("ArrowDown");
      const at = () => page.$eval(".t-scroll", (grid) => document.getElementById(grid.getAttribute("aria-activedescendant"))?.dataset.id);
      for (const [key, id] of [["ArrowDown", "100000002"], ["End", "400000003"], ["Home", "100000001"]]) {
        await page.keyboard.press(key);
        await until(async () => (await at()) === id, `${key} leads to ${id}`);
      }
      await page.keyboard.press("Enter");
      await until(async () => (await page.textContent("#detail-name")) === "root", "Enter opens it");
      await page.keyboard.press("Escape");
      check(await page.evaluate(() => document.activeElement.matches(".t-scroll")), "and Esc leads back");
      // What the pointer is among keeps its order.
      await sorted("mailbox");
      await first("write-log", "by what waits");
      await page.hover('.t-space [data-id="400000001"]');
      fake.actors.get("100000005").mailbox = 60;
      fake.actors.get("400000001").mailbox = 22;
      await until(async () => (await page.textContent('.t-space [data-id="400000001"] .t-mailbox')).startsWith("22"), "the numbers live");
      same((await names())[0], "write-log", "who is first while the pointer is there");
      check((await page.textContent("#tree-count")).includes("order held"), "which is said");
      await page.mouse.move(5, 5);
      await first("metrics", "the order when it is not");
      await page.reload();
      await page.waitForSelector(".t-space .t-row:not(.t-asking)");
      await page.keyboard.press("v");
      await page.waitForSelector("#stage:not([hidden])");
    });
  }

  rows(s) {
    return this.on(
      s,
      (fake) => fake.crowd(100000),
      async (page, fake) => {
        await page.click("#view [data-view=table]");
        await page.click(".t-head .t-id button");
        await until(async () => (await page.textContent("#tree-count")) === "100,006 actors", "all are counted");
        const seen = () => page.$$eval(".t-space .t-row:not([hidden]):not(.t-asking) .t-name", (all) => all.map((one) => one.textContent));
        const to = (share) => page.$eval(".t-scroll", (box, part) => box.scrollTo(0, part * box.scrollHeight), share);
        const began = Date.now();
        await to(0.5);
        await until(async () => (await seen()).some((name) => /^member-(49|50)\d\d\d$/.test(name)), "the middle");
        await to(1);
        await until(async () => (await seen()).includes("member-100000"), "the end");
        const took = Date.now() - began;
        check((await page.$$(".t-row")).length < 80, "few rows are there");
        for (const one of fake.asked.filter((path) => path.includes("sort=id")))
          check(Number(new URLSearchParams(one.split("?")[1]).get("limit")) < 100, `asked for too many: ${one}`);
        await page.focus(".t-scroll");
        await page.keyboard.press("Home");
        await until(async () => (await seen())[0] === "root", "Home leads to the first");
        await page.keyboard.press("End");
        await until(async () => (await seen()).includes("member-100000"), "End to the last");
        await page.fill("#filter", "member-77777");
        await until(async () => (await seen()).join() === "member-77777", "one of them is found");
        await page.fill("#filter", "");
        await page.click("#view [data-view=tree]");
        return `${took} ms`;
      },
    );
  }

  equal(s) {
    return this.on(s, null, async (page, fake) => {
      for (let n = 0; n < 5; n++) fake.fail("300000002", `SIGSEGV at 0x7f${n}0 in parse+0x1c (node)`);
      fake.fail("300000003", "out of memory");
      fake.failures[3].at -= 61000;
      fake.failures[5].at -= 120000;
      await until(async () => (await page.$$("#panel-failures .failure")).length === 2, "two cards");
      const cards = () => page.$$eval("#panel-failures .failure", (all) => all.map((one) => one.textContent));
      check((await cards())[0].startsWith("order-worker-3"), "the newest first");
      const [, many] = await cards();
      check(many.includes("×5"), "how often");
      const [, first, last] = /first (\d\d:\d\d:\d\d), last (\d\d:\d\d:\d\d)/.exec(many);
      check(first !== last, `from when to when: ${first}, ${last}`);
      await page.click("#panel-failures .failure:nth-child(2) summary >> text=5 times");
      same((await page.$$("#panel-failures .failure:nth-child(2) ol:visible li")).length, 5, "each of them");
      fake.fail("300000002", "SIGSEGV at 0x1 in parse+0x1c (node)");
      await until(async () => (await cards())[0].includes("×6"), "one more of them");
      await page.waitForSelector("#panel-failures .failure:nth-child(1) ol:visible");
      await page.click('[data-id="300000002"]');
      await until(async () => (await page.$$("#detail .failure")).length === 1, "one card in the panel");
      check((await page.textContent("#detail .failure")).includes("×6"), "how often, in the panel");
      await page.keyboard.press("Escape");
    });
  }

  ended(s) {
    return this.on(s, null, async (page, fake) => {
      const told = async (text) => {
        let said = "";
        await until(async () => {
          said = await page.textContent("#banner");
          return said.includes(text);
        }, text).catch((error) => check(false, `${error.message}: ${said}`));
      };
      const light = () => page.textContent("#live-text");
      const clock = (at) => new Date(at).toLocaleTimeString("en-GB");
      page.expected(/status of 503|ERR_CONNECTION|ERR_EMPTY|ERR_SOCKET/);
      // Early in a second: the page reckons from the age that it is told, and may be some ms late.
      fake.endedAt = Math.floor((Date.now() - 90000) / 1000) * 1000 + 50;
      Object.assign(fake, { gone: true, end: "closed" });
      await told("The program has ended: closed.");
      const words = await page.textContent("#banner");
      check(words.includes(clock(fake.endedAt)), `when: ${words}, not ${clock(fake.endedAt)}`);
      same(await light(), `ended ${clock(fake.endedAt)}`, "the light");
      // The last data can be read, and is grey.
      const tree = await page.$eval("#stage", (stage) => [getComputedStyle(stage).filter, stage.querySelectorAll(".node").length]);
      same(tree, ["grayscale(1)", fake.actors.size], "the tree");
      await page.click('[data-id="300000004"]');
      await until(async () => (await page.textContent("#detail")).includes("what was seen last"), "an actor of it");
      same(await page.textContent("#detail-name"), "order-worker-4", "its name");
      await page.keyboard.press("Escape");
      fake.end = "died";
      await until(async () => (await light()).startsWith("died"), "that it died");
      fake.end = "lost";
      await until(async () => (await light()).startsWith("lost"), "that it is only out of reach");
      Object.assign(fake, { gone: false, end: null });
      await page.waitForSelector("#banner", { state: "hidden" });
      // The console itself goes: with its program, without it, and without a word.
      for (const [stopping, words, word] of [
        [{ own: true }, "The program ended: it shut down properly.", "ended"],
        [{ own: false }, "The console was stopped; the program goes on", "console stopped"],
        [null, "The connection was lost", "lost"],
      ]) {
        fake.asked.length = 0;
        await until(() => fake.asked.includes("/api/farewell"), "the page waits for a farewell");
        if (stopping) {
          const answer = page.waitForResponse((response) => response.url().endsWith("/api/farewell"));
          fake.part(stopping);
          await (await answer).finished();
        }
        await fake.stop();
        await told(words);
        check((await light()).startsWith(word), `the light says ${await light()}`);
        if (!stopping) {
          const when = await light();
          await page.waitForTimeout(1100);
          same(await light(), when, "the time of the end stays");
        }
        fake.stopping = null;
        await fake.start(fake.port);
        await page.waitForSelector("#banner", { state: "hidden" });
        same(await light(), "live", "it is back");
      }
    });
  }

  after() {
    const fake = this.fake().shop();
    fake.started = Date.now() - 100000;
    fake.endedAt = Date.now() - 5000;
    Object.assign(fake, { gone: true, end: "died" });
    return this.own(fake, { wait: "#banner:not([hidden])", provoked: /status of 503/ }, async (page) => {
      await until(async () => (await page.textContent("#tree-empty")).includes("The program has ended: died."), "that it is over");
      await until(async () => /\d/.test(await page.textContent(".chart:nth-child(2) .chart-value")), "the past");
      check(!(await focusedId(page)), "nothing has the focus");
    });
  }
}
