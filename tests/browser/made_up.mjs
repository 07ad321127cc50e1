// The page before a made-up console: what it must do with any program, and with the worst of them.

import { readFile } from "node:fs/promises";
import { PHONE, check, checkPhone, focusedId, same, treeOf, until } from "./browser.mjs";
import { Fake } from "./fake.mjs";

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'"&`;
const ALL = ["stop", "kill", "restart", "send"];

export class MadeUp {
  constructor(browser, pageFolder, phoneToo) {
    Object.assign(this, { browser, pageFolder, phoneToo });
  }

  fake(options) {
    return new Fake(this.pageFolder, options);
  }

  /** Two pages are enough for most tests: each gets a new program to show, as if one had ended and
   * another had come, which the page has to cope with anyway. */
  async session() {
    const fake = await this.fake({ allow: ALL }).shop().start();
    return { fake, page: await this.browser.open(`${fake.url}#token=secret`) };
  }

  async end({ fake, page }) {
    await page.context().close();
    await fake.stop();
  }

  async renew({ fake, page }, prepare) {
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
    await page.click("#tab-failures");
    if (await page.getAttribute("#pause", "aria-pressed") === "true") await page.click("#pause");
    page.expected(/status of 404/); // of an actor of the old program
    fake.renew();
    if (prepare) prepare(fake);
    else fake.shop();
    await page.waitForFunction((pid) => document.getElementById("whereabouts").textContent.startsWith(`pid ${pid} `), fake.pid);
    await page.waitForSelector(".node");
    page.verify();
  }

  /** Runs `body` with a session whose program is new. */
  async on(session, prepare, body) {
    await this.renew(session, prepare);
    const said = await body(session.page, session.fake);
    session.page.verify();
    return said;
  }

  /** Runs `body` with a console and a page of its own, and sees to it that both end. */
  async own(fake, options, body) {
    await fake.start();
    let page;
    try {
      page = await this.browser.open(fake.url + (options.hash || ""), options);
      const said = await body(page, fake);
      page.verify();
      return said;
    } finally {
      await page?.context().close();
      await fake.stop();
    }
  }

  /** Fails an actor and resolves to how long it took to be seen. A flash is short: on a machine that
   * does much else it may have to be tried again. */
  async flash(page, fake, id) {
    for (let tries = 1; ; tries++) {
      const began = Date.now();
      fake.fail(id);
      try {
        await page.waitForSelector(`[data-id="${id}"].flash-restarted`, { timeout: 3000 });
        return Date.now() - began;
      } catch (error) {
        if (tries === 3) throw error;
      }
    }
  }

  tests() {
    return {
      "the page names the program and counts it": (s) => this.loads(s),
      "the tree is that of the program, also when it changes": (s) => this.tree(s),
      "a crash shows within a second": (s) => this.crash(s),
      "who failed for good is told by shape and word": (s) => this.failed(s),
      "charts move": (s) => this.charts(s),
      "a hostile name is only a text": (s) => this.hostile(s),
      "everything can be done by keys": (s) => this.keys(s),
      "who ended while it was looked at is asked for no more": (s) => this.ended(s),
      "dialogs and panels close with Esc, and focus returns": (s) => this.escape(s),
      "the picture zooms and moves, and a drag is no click": (s) => this.zoom(s),
      ...(this.phoneToo ? { "a phone shows all of it without scrolling sideways": () => this.phone() } : {}),
      "dark and light follow the system and the button": (s) => this.dark(s),
      "ink and ground differ enough": (s) => this.contrast(s),
      "who wants less motion gets a frame, not a wave": (s) => this.calm(s),
      "actions are offered only where the program allows them": (s) => this.lookingOnly(s),
      "an action asks first and carries the token": (s) => this.actions(s),
      "a wrong token is told": (s) => this.wrongToken(s),
      "a program that is gone is told, and its return is noticed": (s) => this.gone(s),
      "100,000 actors cost the page no more than a hundred": (s) => this.crowd(s),
      "a hidden tab asks for nothing": (s) => this.hidden(s),
      "a trace is drawn, listed and handed out": (s) => this.trace(s),
      "dead letters come in and are sorted by reason": (s) => this.dead(s),
      "what is stuck is said at the top": (s) => this.stuck(s),
    };
  }

  loads(s) {
    return this.on(s, null, async (page, fake) => {
      same(await page.textContent("#program"), "orders", "the title");
      same(await page.textContent("#n-actors"), String(fake.actors.size), "the number of actors");
      await until(async () => /^[\d.]+k$/.test(await page.textContent("#n-rate")), "a rate of messages");
      same(await page.$$eval(".dispatcher strong", (all) => all.map((one) => one.textContent)), ["loop", "pool"], "dispatchers");
      const nameless = await page.$$eval("button, input, [role=treeitem], [role=meter], canvas, [role=region]", (all) => all.filter((one) =>
        !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length)).map((one) => one.outerHTML));
      same(nameless, [], "controls without a name");
      const file = await (await fetch(`${fake.url}app.js`)).text();
      check(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write/.test(file), "no module writes markup");
    });
  }

  tree(s) {
    return this.on(s, null, async (page, fake) => {
      const drawn = await treeOf(page);
      same(drawn.map((one) => one.id).sort(), [...fake.actors.keys()].sort(), "who is drawn");
      for (const one of drawn) {
        const actor = fake.actors.get(one.id);
        same(one.level, actor.depth + 1, `the level of ${actor.name}`);
        check(one.label.startsWith(actor.name), `${one.label} begins with ${actor.name}`);
      }
      fake.add("500000001", "newcomer", "100000004");
      await page.waitForSelector('[data-id="500000001"]');
      fake.actors.delete("500000001");
      fake.actors.get("100000004").children--;
      await page.waitForSelector('[data-id="500000001"].s-terminated');
      await page.waitForSelector('[data-id="500000001"]', { state: "detached" });
      fake.actors.get("400000002").state = "starting";
      await page.waitForSelector('[data-id="400000002"].s-starting');
    });
  }

  crash(s) {
    return this.on(s, null, async (page, fake) => {
      await until(async () => (await page.textContent("#panel-failures")).includes("Nobody has failed"), "no failure yet");
      const times = [];
      for (const id of ["300000004", "300000005", "300000006", "300000008", "300000009"]) {
        times.push(await this.flash(page, fake, id));
        if (times.at(-1) < 1000) break;
      }
      check(Math.min(...times) < 1000, `it took ${times.join(", ")} ms`);
      check((await page.textContent('[data-id="300000004"] .sub')).includes("↻"), "its restarts are counted");
      await until(async () => /^✕order-worker-[45689] crash: SIGSEGV/.test(await page.textContent("#ticker")), "the ticker names it");
      await until(async () => (await page.textContent("#panel-failures")).includes("parse+0x1c (node)"), "the list has its backtrace");
      // Again, while the first flash lasts.
      fake.fail("300000004");
      const counted = String(fake.actors.get("300000004").restarts);
      await until(async () => (await page.getAttribute('[data-id="300000004"]', "data-restarts")) === counted, "the second restart");
      return `seen after ${times.join(", ")} ms`;
    });
  }

  failed(s) {
    return this.on(s, null, async (page, fake) => {
      fake.fail("300000007", "out of memory", false);
      await page.waitForSelector('[data-id="300000007"].s-failed');
      check((await page.textContent('[data-id="300000007"] .sub')).startsWith("failed"), "the word");
      check((await page.getAttribute('[data-id="300000007"] .glyph', "d")).length > 5, "the cross");
      check((await page.getAttribute('[data-id="300000007"]', "aria-label")).includes("failed"), "the label");
      const shapes = await page.$$eval(".sup .shape, .worker .shape", (all) => new Set(all.map((one) => one.getAttribute("d"))).size);
      same(shapes, 2, "shapes of supervisors and workers");
    });
  }

  charts(s) {
    return this.on(s, null, async (page, fake) => {
      const pictures = () => page.$$eval(".chart-canvas", (all) => all.map((one) => one.toDataURL()));
      const values = () => page.$$eval(".chart-value", (all) => all.map((one) => one.textContent));
      const fallen = async () => (await values())[2].split(" / ").map(Number);
      await until(async () => !Number.isNaN((await fallen())[0]), "a first sample");
      const [first, [restarts, failures]] = [await pictures(), await fallen()];
      fake.fail("300000001");
      fake.rate = 9000;
      await until(async () => (await pictures()).every((one, at) => one !== first[at]), "all four charts are drawn anew");
      await until(async () => parseFloat(await page.textContent("#n-rate")) > 5, "the rate grew");
      same(await fallen(), [restarts + 1, failures + 1], "restarts and failures");
      await page.hover(".chart-canvas");
      await until(async () => /^\d\d:\d\d:\d\d$/.test(await page.textContent(".chart-when")), "the time under the pointer");
      await page.mouse.move(5, 5);
      await page.focus(".chart-canvas");
      await page.keyboard.press("ArrowLeft");
      check(/at \d\d:/.test(await page.getAttribute(".chart-canvas", "aria-label")), "keys move the cursor");
      await page.click("text=10 min");
      same(await page.getAttribute("text=10 min", "aria-checked"), "true", "the window");
    });
  }

  hostile(s) {
    const prepare = (fake) => {
      fake.shop();
      fake.name = HOSTILE;
      fake.add("600000001", HOSTILE, "100000001");
      fake.add("600000002", "x".repeat(4000), "100000001");
      fake.add("600000003", "\u202eevil\u0000name\n", "100000001");
      fake.fail("600000001", HOSTILE);
      fake.letter("600000001", "stopped");
      fake.letters[0].target_name = HOSTILE;
    };
    return this.on(s, prepare, async (page) => {
      same(await page.textContent("#program"), HOSTILE, "the program's name");
      check((await page.textContent('[data-id="600000001"] title')).includes(HOSTILE), "the name in the tree");
      await until(async () => (await page.textContent("#ticker")).includes(HOSTILE), "the ticker");
      await page.click("#tab-dead");
      await until(async () => (await page.textContent("#panel-dead")).includes(HOSTILE), "the letter");
      await page.click('[data-id="600000001"]');
      await until(async () => (await page.textContent("#detail-name")) === HOSTILE, "the name in the panel");
      await page.fill("#search", "onerror");
      await until(async () => (await page.textContent("#search-list")).includes(HOSTILE), "the name in the search");
      same(await page.evaluate(() => [window.hacked ?? null, document.querySelectorAll("img, script:not([src])").length]), [null, 0], "what it did");
      same(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "no sideways scroll");
    });
  }

  keys(s) {
    return this.on(s, null, async (page) => {
      const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
      same(await page.evaluate(() => document.querySelector("a[href], button, input").textContent), "Skip to the tree", "the first stop");
      await page.focus(".skip");
      // Every control is reached by Tab, the tree being one stop.
      const stops = [];
      for (let n = 0; n < 40; n++) {
        await press("Tab");
        const at = await page.evaluate(() => ({ id: document.activeElement.dataset?.id ?? document.activeElement.id, seen:
          document.activeElement.matches(":focus-visible"), body: document.activeElement === document.body }));
        if (at.body) break;
        check(at.seen, `${at.id} shows that it has the focus`);
        stops.push(at.id);
      }
      for (const id of ["pause", "theme", "keys-open", "search", "zoom-fit", "100000001", "tab-failures"]) check(stops.includes(id), `Tab comes to ${id}`);
      same(stops.filter((id) => /^\d{9}$/.test(id)).length, 1, "the tree is one stop");
      await page.focus('[data-id="100000001"]');
      await press("ArrowDown");
      same(await focusedId(page), "100000005", "down: the first of its children");
      await press("ArrowDown", "ArrowDown", "ArrowRight");
      same(await focusedId(page), "200000001", "right: in");
      await press("ArrowLeft");
      same(await focusedId(page), "100000002", "left: out");
      await press("ArrowLeft");
      await page.waitForSelector('[data-id="200000001"]', { state: "detached" });
      same(await page.getAttribute('[data-id="100000002"]', "aria-expanded"), "false", "left again: closed");
      await press("ArrowRight");
      await page.waitForSelector('[data-id="200000001"]');
      await press("End");
      same(await focusedId(page), "400000003", "End");
      await press("Home", "ArrowRight", "Enter");
      await until(async () => (await page.textContent("#detail-name")) === "metrics", "Enter opens the panel");
      await press("Escape", "/");
      same(await focusedId(page), "search", "/ goes to the search");
      await page.keyboard.type("order-worker-1");
      await page.waitForSelector("#found-3");
      await press("ArrowDown", "Enter");
      await until(async () => (await page.textContent("#detail-name")) === "order-worker-10", "the second that was found");
      await press("Escape");
      await page.focus("#tab-failures");
      await press("ArrowRight");
      same(await focusedId(page), "tab-dead", "tabs by arrows");
    });
  }

  ended(s) {
    return this.on(s, null, async (page, fake) => {
      await page.click('[data-id="400000003"]');
      await page.waitForSelector("#detail .facts");
      page.expected(/status of 404/);
      fake.actors.delete("400000003");
      await until(async () => (await page.textContent("#detail .d-note")).includes("There is no actor 400000003"), "the panel says that it ended");
      const looks = () => fake.asked.filter((one) => one === "/api/program").length;
      fake.asked.length = 0;
      await until(() => looks() >= 3, "three more looks");
      check(fake.asked.filter((one) => one.startsWith("/api/actor?")).length <= 1, "it is asked for no more");
      check(await page.isHidden("#detail [data-verb]"), "and nothing can be done to it");
    });
  }

  escape(s) {
    return this.on(s, null, async (page) => {
      await page.click('[data-id="300000002"]');
      await until(() => page.isVisible("#detail .facts"), "the panel");
      same(await focusedId(page), "detail-name", "focus is in the panel");
      await page.keyboard.press("Escape");
      check(await page.isHidden("#detail"), "Esc closes the panel");
      same(await focusedId(page), "300000002", "focus is back at the actor");
      await page.keyboard.press("?");
      check(await page.isVisible("#keys"), "the list of keys");
      await page.keyboard.press("Escape");
      check(await page.isHidden("#keys"), "Esc closes it");
      await page.keyboard.press("p");
      same(await page.textContent("#live-text"), "paused", "p pauses");
      await page.keyboard.press("p");
      same(await page.textContent("#live-text"), "live", "p goes on");
    });
  }

  zoom(s) {
    return this.on(s, null, async (page) => {
      const place = () => page.getAttribute(".world", "transform");
      const fitted = await place();
      await page.mouse.move(500, 300);
      await page.mouse.wheel(0, -300);
      await until(async () => (await place()) !== fitted, "the wheel zooms");
      await page.keyboard.press("0");
      same(await place(), fitted, "0 fits it again");
      const box = await page.locator('[data-id="300000005"] .hit').boundingBox();
      await page.mouse.move(box.x + 20, box.y + 10);
      await page.mouse.down();
      await page.mouse.move(box.x + 90, box.y + 60, { steps: 4 });
      await page.mouse.up();
      check((await place()) !== fitted, "a drag moves it");
      check(await page.isHidden("#detail"), "a drag opens nothing");
      await page.click("#zoom-fit");
      await page.click('[data-id="100000003"] .toggle');
      await page.waitForSelector('[data-id="300000005"]', { state: "detached" });
      check(await page.isHidden("#detail"), "the switch opens no panel");
    });
  }

  phone() {
    return this.own(this.fake({ allow: ALL }).shop(), { ...PHONE, hash: "#token=secret" }, async (page, fake) => {
      fake.fail("300000002");
      await page.waitForSelector(".flash-restarted");
      await checkPhone(page, '[data-id="300000002"]');
    });
  }

  dark(s) {
    return this.on(s, null, async (page) => {
      await page.emulateMedia({ colorScheme: "dark" });
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number).reduce((a, b) => a + b));
      check(await ground() < 120, "dark as the system");
      await page.click("#theme");
      same(await page.textContent("#theme"), "Light", "the button");
      check(await ground() > 600, "light by the button");
      await page.reload();
      await page.waitForSelector(".node");
      check(await ground() > 600, "and it stays so");
      await page.click("#theme");
      await page.emulateMedia({ colorScheme: "light" });
      check(await ground() < 120, "dark by the button");
      await page.click("#theme");
      same(await page.textContent("#theme"), "Auto", "and as the system again");
    });
  }

  contrast(s) {
    return this.on(s, null, async (page) => {
      const pairs = ["ink muted accent green blue amber violet red grey".split(" ").flatMap((ink) => ["surface", "sunken"].map((ground) => [ink, ground])),
        [["ink", "ground"], ["muted", "ground"], ["red", "ground"], ["accent", "accent-soft"], ["red", "red-soft"], ["ink", "accent-soft"], ["on-mark", "red"], ["surface", "ink"]]].flat();
      for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        const weak = await page.evaluate((all) => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          return all.map(([a, b]) => [a, b, (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05)]).filter(([, , ratio]) => !(ratio >= 4.5));
        }, pairs);
        same(weak, [], `weak pairs, ${theme}`);
      }
    });
  }

  calm(s) {
    return this.on(s, null, async (page, fake) => {
      await page.emulateMedia({ reducedMotion: "reduce" });
      await this.flash(page, fake, "300000004");
      const style = await page.$eval('[data-id="300000004"]', (node) => [getComputedStyle(node.querySelector(".pulse")).animationName,
        getComputedStyle(node.querySelector(".hit")).stroke !== "rgba(0, 0, 0, 0)"]);
      same(style, ["none", true], "animation, frame");
    });
  }

  lookingOnly(s) {
    const prepare = (fake) => {
      fake.shop();
      fake.allow = ["stop"];
    };
    return this.on(s, prepare, async (page, fake) => {
      await page.click('[data-id="300000002"]');
      await page.waitForSelector("#detail .buttons");
      same(await page.$$eval("#detail [data-verb]", (all) => all.map((one) => one.dataset.verb)), ["stop"], "what is offered");
      check(!await page.isVisible("#detail .send"), "no sending");
      fake.allow = [];
      await until(async () => (await page.textContent("#detail .d-actions")).includes("looking only"), "it says why there are none");
      same(await page.$$eval("#detail [data-verb]", (all) => all.length), 0, "nothing is offered");
    });
  }

  actions(s) {
    return this.on(s, null, async (page, fake) => {
      same(await page.evaluate(() => location.href), fake.url, "the token is out of the address");
      fake.fail("300000002");
      await page.click('[data-id="300000002"]');
      await page.waitForSelector("#detail .failure");
      await this.browser.shoot(page, "made-up-detail");
      await page.click("#detail [data-verb=kill]");
      check((await page.textContent("#confirm-title")).includes("Kill order-worker-2"), "it asks");
      same(await focusedId(page), "confirm-no", "Cancel has the focus");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#confirm", { state: "hidden" });
      same(fake.orders, [], "Esc means no");
      await page.click("#detail [data-verb=restart]");
      await page.click("#confirm-yes");
      await until(() => fake.orders.length === 1, "the order");
      await page.fill("#detail [name=tag]", "9");
      await page.fill("#detail [name=text]", "hello");
      await page.click("text=Send");
      await until(() => fake.orders.length === 2, "the message");
      await page.fill("#detail [name=text]", "42");
      await page.click("text=Send");
      await until(() => fake.orders.length === 3, "the number");
      same(fake.orders, [{ what: "restart", actor: "300000002" }, { what: "send", actor: "300000002", tag: 9, text: "hello" },
        { what: "send", actor: "300000002", tag: 9, u64: 42 }], "what was ordered");
      same(await page.evaluate(() => sessionStorage.getItem("jzx-token")), "secret", "the token outlives a reload");
    });
  }

  wrongToken(s) {
    return this.on(s, null, async (page, fake) => {
      page.expected(/status of 403/);
      fake.token = "another";
      await page.click('[data-id="300000002"]');
      await page.click("#detail [data-verb=stop]");
      await page.click("#confirm-yes");
      await page.waitForSelector("#toast.toast-bad");
      check((await page.textContent("#toast")).includes("token"), "what is wrong");
      same(fake.orders, [], "nothing was ordered");
    });
  }

  gone(s) {
    return this.on(s, null, async (page, fake) => {
      page.expected(/status of 503|ERR_CONNECTION|ERR_EMPTY/);
      fake.gone = true;
      await page.waitForSelector("#banner:not([hidden])");
      check((await page.textContent("#banner")).includes("Nobody serves"), "the reason");
      same(await page.textContent("#live-text"), "not reached", "the light");
      fake.gone = false;
      await page.waitForSelector("#banner", { state: "hidden" });
      same(await page.textContent("#live-text"), "live", "it is back");
      // The whole server goes, and another program comes to the same place.
      await fake.stop();
      await until(async () => /cannot be reached/.test(await page.textContent("#banner")), "the server is missed");
      fake.renew();
      fake.name = "another";
      fake.add("700000001", "lonely", null);
      await fake.start(fake.port);
      await until(async () => (await page.textContent("#program")) === "another", "its name");
      await until(async () => (await treeOf(page)).map((one) => one.id).join() === "700000001", "the old tree is gone");
    });
  }

  crowd(s) {
    return this.on(s, (fake) => fake.crowd(100000), async (page, fake) => {
      const began = Date.now();
      await page.waitForSelector("text=+99,992 more");
      same(await page.textContent("#n-actors"), "100,006", "the count");
      fake.asked.length = 0;
      await until(() => fake.asked.filter((one) => one.startsWith("/api/program")).length >= 2, "two more looks");
      for (const one of fake.asked.filter((path) => path.startsWith("/api/actors"))) {
        check(Number(new URLSearchParams(one.split("?")[1]).get("limit")) <= 400, `asked for too many: ${one}`);
      }
      await page.click(".node.group");
      await until(async () => (await page.$$(".node")).length > 60, "more of them");
      check((await page.$$(".node")).length < 200, "but not all");
      await page.fill("#search", "member-99999");
      await page.keyboard.press("Enter");
      await until(async () => (await page.textContent("#detail-name")) === "member-99999", "one of them is found");
      await page.waitForSelector('.node[aria-label^="member-99999"]');
      check((await page.evaluate(() => document.querySelectorAll("*").length)) < 4000, "the page stays small");
      return `${Date.now() - began} ms`;
    });
  }

  hidden(s) {
    return this.on(s, null, async (page, fake) => {
      const asked = { hidden: 0, seen: 0 };
      page.on("request", () => asked.hidden++);
      await page.evaluate(() => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
        document.dispatchEvent(new Event("visibilitychange"));
      });
      const other = await this.browser.open(fake.url); // and the look that was under way ends
      try {
        asked.hidden = 0;
        other.on("request", (request) => { asked.seen += request.url().endsWith("/api/program"); });
        await until(() => asked.seen >= 3, "the other page looks three times");
        same(asked.hidden, 0, "requests of the hidden page");
        other.verify();
      } finally {
        await other.context().close();
        await page.evaluate(() => {
          delete document.hidden;
          document.dispatchEvent(new Event("visibilitychange"));
        });
      }
      await until(() => asked.hidden > 0, "it goes on when it is seen");
    });
  }

  trace(s) {
    return this.on(s, null, async (page) => {
      await page.click('[data-id="100000001"]');
      await page.click("#detail >> text=Trace");
      same(await page.inputValue("#trace-who"), "100000001", "whom");
      await page.click("text=Record 1 s");
      await page.waitForSelector(".timeline");
      same(await page.$$eval(".timeline .handled", (all) => all.length), 48, "messages drawn");
      same(await page.$$eval(".timeline .arrow", (all) => all.length), 48, "arrows drawn");
      check((await page.textContent(".trace")).includes("120 more were over the rate"), "what was left out");
      await page.keyboard.press("Escape");
      const [file] = await Promise.all([page.waitForEvent("download"), page.click("text=Download for Perfetto")]);
      const { traceEvents } = JSON.parse(await readFile(await file.path(), "utf8"));
      const of = (ph) => traceEvents.filter((event) => event.ph === ph);
      same([of("X").length, of("s").length, of("f").length], [48, 48, 48], "slices and arrows in the file");
      check(of("X").every((event) => Number.isFinite(event.ts) && event.dur > 0 && event.tid > 0), "times of the slices");
      check(of("M").some((event) => event.args.name.startsWith("write-log")), "names of the lanes");
      same(await file.suggestedFilename(), "orders-trace.json", "the file");
    });
  }

  dead(s) {
    return this.on(s, null, async (page, fake) => {
      await page.click("#tab-dead");
      await until(async () => (await page.textContent("#panel-dead")).includes("No dead letters"), "none yet");
      fake.letter("30000000a", "stopped");
      fake.letter("30000000b", "expired");
      fake.letter("30000000c", "expired");
      await page.waitForSelector("#panel-dead tbody tr:nth-child(3)");
      await page.click("text=expired 2");
      same(await page.$$eval("#panel-dead tbody tr", (all) => all.length), 2, "those that expired");
      fake.letter("30000000d", "expired");
      await page.waitForSelector("#panel-dead tbody tr:nth-child(3)");
      same(await page.$$eval("#panel-dead tbody td:nth-child(2)", (all) => all[0].textContent), "30000000d", "the newest is first");
    });
  }

  stuck(s) {
    return this.on(s, null, async (page, fake) => {
      fake.stuckFor = 5200;
      await page.waitForSelector("#stuck-line:not([hidden])");
      check((await page.textContent("#stuck-line")).includes("order-worker-3 has been in the same code for 5.2 s, with tag 7"), "who, for how long, with what");
      await page.click("#stuck-line");
      check((await page.textContent("#panel-stuck")).includes("parse+0x1c (node)"), "where");
      await page.waitForSelector(".dispatcher.silent");
      fake.stuckFor = 0;
      await page.waitForSelector("#stuck-line", { state: "hidden" });
      await page.click("#tab-doctor");
      await until(async () => (await page.textContent("#panel-doctor")).includes("no-backoff"), "what the doctor found");
      fake.fail("300000001");
      await page.click("#tab-record");
      await page.waitForSelector("#panel-record .what-restart");
    });
  }
}
