// What can be done with the page: by keys, by pointer, to actors; and what it does by itself.

import { readFile } from "node:fs/promises";
import { check, focusedId, same, treeOf, until } from "./browser.mjs";
import { ALL, MadeUp } from "./made_up.mjs";

export class Doing extends MadeUp {
  tests() {
    return {
      "everything can be done by keys": (s) => this.keys(s),
      "what is drawn anew takes away neither focus nor click": (s) => this.steady(s),
      "who ended while it was looked at is asked for no more": (s) => this.ended(s),
      "dialogs and panels close with Esc, and focus returns": (s) => this.escape(s),
      "the picture zooms and moves, and a drag is no click": (s) => this.zoom(s),
      "actions are offered only where the program allows them": (s) => this.lookingOnly(s),
      "an action asks first and carries the token": (s) => this.actions(s),
      "a wrong token is told": (s) => this.wrongToken(s),
      "a token that is typed into an open page counts": () => this.lateToken(),
      "reload and the back button keep the place": (s) => this.place(s),
      "a program that is gone is told, and its return is noticed": (s) => this.gone(s),
      "a hidden tab asks for nothing": (s) => this.hidden(s),
      "a trace is drawn, listed and handed out": (s) => this.trace(s),
    };
  }

  keys(s) {
    return this.on(s, null, async (page) => {
      const press = async (...keys) => {
        for (const key of keys) await page.keyboard.press(key);
      };
      same(
        await page.evaluate(() => document.querySelector("a[href], button, input").textContent),
        "Skip to the tree",
        "the first stop",
      );
      await page.focus(".skip");
      // Every control is reached by Tab, the tree being one stop.
      const stops = [];
      for (let n = 0; n < 40; n++) {
        await press("Tab");
        const at = await page.evaluate(() => ({
          id: document.activeElement.dataset?.id ?? document.activeElement.id,
          seen: document.activeElement.matches(":focus-visible"),
          body: document.activeElement === document.body,
        }));
        if (at.body) break;
        check(at.seen, `${at.id} shows that it has the focus`);
        stops.push(at.id);
      }
      for (const id of ["pause", "theme", "keys-open", "search", "zoom-fit", "100000001", "tab-failures"])
        check(stops.includes(id), `Tab comes to ${id}`);
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
      await until(
        async () => (await page.textContent("#detail-name")) === "metrics",
        "Enter opens the panel",
      );
      await press("Escape", "/");
      same(await focusedId(page), "search", "/ goes to the search");
      await page.keyboard.type("order-worker-1");
      // What was found for the beginning of it may come first.
      await until(
        async () => (await page.$$eval("#search-list [role=option]", (all) => all.length)) === 4,
        "four are found",
      );
      await press("ArrowDown", "Enter");
      await until(
        async () => (await page.textContent("#detail-name")) === "order-worker-10",
        "the second that was found",
      );
      await press("Escape");
      await page.focus("#tab-failures");
      await press("ArrowRight");
      same(await focusedId(page), "tab-dead", "tabs by arrows");
    });
  }

  /** A list changes with every look: the mailboxes of a program that works, say. */
  steady(s) {
    return this.on(s, null, async (page, fake) => {
      await page.click("#tab-mailboxes");
      const second = "#panel-mailboxes tbody tr:nth-child(2) button";
      await page.waitForSelector(second);
      const told = () => page.textContent("#panel-mailboxes");
      const redrawn = async () => {
        const before = await told();
        await until(async () => (await told()) !== before, "the list is drawn anew");
      };
      const focused = () => page.evaluate(() => document.activeElement.textContent);
      await page.focus(second);
      const name = await focused();
      await redrawn();
      same(await focused(), name, "who has the focus");
      // Another one goes to the top: the focus stays with the actor, not with the place.
      fake.actors.get("300000009").mailbox = 60;
      const first = "#panel-mailboxes tbody tr:nth-child(1) button";
      await until(async () => (await page.textContent(first)) === "order-worker-9", "another is first");
      same(await focused(), name, "who has the focus after another order");
      const looks = () => fake.asked.filter((one) => one.includes("sort=mailbox")).length;
      const box = await until(() => page.locator(first).boundingBox(), "where it is");
      await page.mouse.move(box.x + 5, box.y + 5);
      await page.mouse.down();
      fake.asked.length = 0;
      await until(() => looks() >= 2, "two more answers while the button is down");
      await page.mouse.up();
      await until(async () => (await page.textContent("#detail-name")) === "order-worker-9", "the click counts");
      await page.focus("#detail .facts button");
      const looksAtIt = () => fake.asked.filter((one) => one.startsWith("/api/actor?")).length;
      fake.asked.length = 0;
      await until(() => looksAtIt() >= 2, "two more looks at it");
      same(await focused(), "orders", "the link to its parent has the focus");
    });
  }

  ended(s) {
    return this.on(s, null, async (page, fake) => {
      await page.click('[data-id="400000003"]');
      await page.waitForSelector("#detail .facts");
      page.expected(/status of 404/);
      fake.actors.delete("400000003");
      await until(
        async () => (await page.textContent("#detail .d-note")).includes("There is no actor 400000003"),
        "the panel says that it ended",
      );
      const looks = () => fake.asked.filter((one) => one === "/api/program").length;
      fake.asked.length = 0;
      await until(() => looks() >= 3, "three more looks");
      check(fake.asked.filter((one) => one.startsWith("/api/actor?")).length <= 1, "it is asked for no more");
      check(await page.isHidden("#detail [data-verb]"), "and nothing can be done to it");
    });
  }

  escape(s) {
    return this.on(s, null, async (page, fake) => {
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
      // Also in the middle of a look, which ends later.
      const release = fake.hold();
      fake.asked.length = 0;
      await until(() => fake.asked.length > 0, "a look is under way");
      await page.keyboard.press("p");
      release();
      await page.quiet();
      same(await page.textContent("#live-text"), "paused", "p pauses");
      await page.keyboard.press("p");
      same(await page.textContent("#live-text"), "live", "p goes on");
    });
  }

  zoom(s) {
    return this.on(s, null, async (page) => {
      const place = () => page.getAttribute(".world", "transform");
      const fitted = await place();
      const scrolled = () => page.$eval("#stage", (stage) => [stage.scrollLeft, stage.scrollTop].map(Math.round));
      await page.mouse.move(500, 300);
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -300);
      await page.keyboard.up("Control");
      await until(async () => (await place()) !== fitted, "Ctrl and the wheel zoom");
      const larger = await place();
      const [left, top] = await scrolled();
      await page.mouse.wheel(0, 60);
      await until(async () => (await scrolled())[1] > top, "the wheel scrolls");
      same(await place(), larger, "and does not zoom");
      const box = await page.locator('[data-id="300000005"] .hit').boundingBox();
      await page.mouse.move(box.x + 20, box.y + 10);
      await page.mouse.down();
      await page.mouse.move(box.x - 50, box.y + 10, { steps: 4 });
      await page.mouse.up();
      await until(async () => (await scrolled())[0] > left, "a drag moves it");
      check(await page.isHidden("#detail"), "a drag opens nothing");
      await page.keyboard.press("0");
      same(await place(), fitted, "0 fits it again");
      await page.click("#zoom-fit");
      await page.click('[data-id="100000003"] .toggle');
      await page.waitForSelector('[data-id="300000005"]', { state: "detached" });
      check(await page.isHidden("#detail"), "the switch opens no panel");
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
      same(
        await page.$$eval("#detail [data-verb]", (all) => all.map((one) => one.dataset.verb)),
        ["stop"],
        "what is offered",
      );
      check(!(await page.isVisible("#detail .send")), "no sending");
      fake.allow = [];
      await until(
        async () => (await page.textContent("#detail .d-actions")).includes("looking only"),
        "it says why there are none",
      );
      same(await page.$$eval("#detail [data-verb]", (all) => all.length), 0, "nothing is offered");
    });
  }

  actions(s) {
    return this.on(s, null, async (page, fake) => {
      check(!(await page.evaluate(() => location.href)).includes("secret"), "the token is out of the address");
      fake.fail("300000002");
      await page.click('[data-id="300000002"]');
      await page.waitForSelector("#detail .failure");
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
      same(
        fake.orders,
        [
          { what: "restart", actor: "300000002" },
          { what: "send", actor: "300000002", tag: 9, text: "hello" },
          { what: "send", actor: "300000002", tag: 9, u64: 42 },
        ],
        "what was ordered",
      );
      same(
        await page.evaluate(() => sessionStorage.getItem("jzx-token")),
        "secret",
        "the token outlives a reload",
      );
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

  lateToken() {
    return this.own(this.fake({ allow: ALL }).shop(), {}, async (page, fake) => {
      await page.click('[data-id="300000002"]');
      await until(
        async () => (await page.textContent("#detail .d-actions")).includes("need the token"),
        "it says what is missing",
      );
      await page.evaluate(() => {
        location.hash = "#token=secret";
      });
      await until(
        async () => !(await page.textContent("#detail .d-actions")).includes("need the token"),
        "and that it is there",
      );
      check(!(await page.evaluate(() => location.href)).includes("secret"), "it is out of the address");
      await page.click("#detail [data-verb=stop]");
      await page.click("#confirm-yes");
      await until(() => fake.orders.length === 1, "the order");
    });
  }

  place(s) {
    return this.on(s, null, async (page) => {
      const at = () =>
        page.evaluate(() => [
          document.getElementById("detail").hidden ? "" : document.getElementById("detail-name").textContent,
          document.querySelector("[role=tab][aria-selected=true]").id,
          document.querySelector("#window [aria-checked=true]").dataset.minutes,
        ]);
      const comes = (wanted, what) => until(async () => String(await at()) === String(wanted), what);
      await page.click("text=60 min");
      await page.click('[data-id="300000002"]');
      check(await page.isHidden("#charts"), "what the panel covers is out of reach");
      await page.click("#tab-dead");
      const there = ["order-worker-2", "tab-dead", "60"];
      await comes(there, "a place");
      await page.reload();
      await comes(there, "the same after a reload");
      await page.waitForSelector('[data-id="300000002"].selected');
      await page.click('[data-id="400000002"]');
      await comes(["index", "tab-dead", "60"], "another actor");
      await page.goBack();
      await comes(there, "the one before");
      await page.goBack();
      await comes(["order-worker-2", "tab-failures", "60"], "the list before");
      await page.goBack();
      await comes(["", "tab-failures", "60"], "the beginning");
      await page.goForward();
      await comes(["order-worker-2", "tab-failures", "60"], "and forward");
      await page.keyboard.press("Escape");
      await page.click("text=2 min");
    });
  }

  gone(s) {
    return this.on(s, null, async (page, fake) => {
      page.expected(/status of 503|ERR_CONNECTION|ERR_EMPTY|ERR_SOCKET/);
      fake.gone = true;
      await page.waitForSelector("#banner:not([hidden])");
      check((await page.textContent("#banner")).includes("Nobody serves"), "the reason");
      same(await page.textContent("#live-text"), "not reached", "the light");
      const release = fake.hold();
      await page.click("#pause");
      await page.click("#pause");
      same(await page.textContent("#live-text"), "not reached", "the light after a pause");
      release();
      fake.gone = false;
      await page.waitForSelector("#banner", { state: "hidden" });
      same(await page.textContent("#live-text"), "live", "it is back");
      // The whole server goes, and another program comes to the same place.
      await fake.stop();
      await until(
        async () => /cannot be reached/.test(await page.textContent("#banner")),
        "the server is missed",
      );
      fake.renew();
      await fake.start(fake.port);
      await until(
        async () => (await page.textContent("#tree-empty")) === "The program has no actors.",
        "that it is there and has none",
      );
      fake.name = "another";
      fake.add("700000001", "lonely", null);
      await until(async () => (await page.textContent("#program")) === "another", "its name");
      await until(
        async () => (await treeOf(page)).map((one) => one.id).join() === "700000001",
        "the old tree is gone",
      );
    });
  }

  hidden(s) {
    return this.on(s, null, async (page, fake) => {
      const asked = { hidden: 0, seen: 0 };
      page.on("request", () => asked.hidden++);
      // It is hidden while a look is under way, which must be the last.
      const release = fake.hold();
      await until(() => asked.hidden > 0, "a look is under way");
      await page.evaluate(() => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
        document.dispatchEvent(new Event("visibilitychange"));
      });
      release();
      await page.quiet();
      const other = await this.browser.open(fake.url);
      try {
        asked.hidden = 0;
        other.on("request", (request) => {
          asked.seen += request.url().endsWith("/api/program");
        });
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
    return this.on(s, null, async (page, fake) => {
      await page.click('[data-id="100000001"]');
      await page.click("#detail >> text=Trace");
      same(await page.inputValue("#trace-who"), "100000001", "whom");
      await page.click("text=Record 1 s");
      await page.waitForSelector(".timeline");
      same(
        await page.$$eval(".timeline text", (all) => all.filter((one) => one.getScreenCTM().a < 0.99).length),
        0,
        "words that are shrunk",
      );
      same(await page.$$eval(".timeline .handled", (all) => all.length), 48, "messages drawn");
      same(await page.$$eval(".timeline .arrow", (all) => all.length), 48, "arrows drawn");
      check((await page.textContent(".trace")).includes("120 more were over the rate"), "what was left out");
      await page.keyboard.press("Escape");
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.click("text=Download for Perfetto"),
      ]);
      const { traceEvents } = JSON.parse(await readFile(await file.path(), "utf8"));
      const of = (ph) => traceEvents.filter((event) => event.ph === ph);
      same([of("X").length, of("s").length, of("f").length], [48, 48, 48], "slices and arrows in the file");
      check(
        of("X").every((event) => Number.isFinite(event.ts) && event.dur > 0 && event.tid > 0),
        "times of the slices",
      );
      check(
        of("M").some((event) => event.args.name.startsWith("write-log")),
        "names of the lanes",
      );
      same(await file.suggestedFilename(), "orders-trace.json", "the file");
      check(!(await page.textContent(".trace")).includes("no more fit"), "it was the whole second");
      fake.cut = true;
      await page.click("text=Record 1 s");
      await until(
        async () => (await page.textContent(".trace")).includes("no more fit, so this is what the first 740 ms"),
        "that it was not the whole second",
      );
    });
  }
}
