// What the page must show of any program, and of the worst of them.

import { PHONE, check, checkPhone, focusedId, same, treeOf, until } from "./browser.mjs";
import { ALL, MadeUp } from "./made_up.mjs";

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'"&`;

export class Seeing extends MadeUp {
  tests() {
    return {
      "the page names the program and counts it": (s) => this.loads(s),
      "the tree is that of the program, also when it changes": (s) => this.tree(s),
      "a crash shows within a second": (s) => this.crash(s),
      "who failed for good is told by shape and word": (s) => this.failed(s),
      "who fails and is gone, or is out of sight, is marked as well": (s) => this.failedAway(s),
      "at every width, and however deep, the tree can be read and scrolled to": (s) => this.widths(s),
      "charts move": (s) => this.charts(s),
      "a hostile name is only a text": (s) => this.hostile(s),
      ...(this.phoneToo ? { "a phone shows all of it without scrolling sideways": () => this.phone() } : {}),
      "dark and light follow the system and the button": (s) => this.dark(s),
      "ink and ground differ enough": (s) => this.contrast(s),
      "who wants less motion gets a frame, not a wave": (s) => this.calm(s),
      "the system's own colours leave nothing unseen": (s) => this.forced(s),
      "100,000 actors cost the page no more than a hundred": (s) => this.crowd(s),
      "a tall tree is found and opened to its end": (s) => this.tall(s),
      "of many, whoever is opened shows its children": (s) => this.opened(s),
      "of many without a supervisor some are drawn, and all are counted": (s) => this.loose(s),
      "dead letters come in and are sorted by reason": (s) => this.dead(s),
      "many dispatchers are counted, and shown on request": (s) => this.dispatchers(s),
      "what is stuck is said at the top": (s) => this.stuck(s),
    };
  }

  loads(s) {
    return this.on(s, null, async (page, fake) => {
      same(await page.textContent("#program"), "orders", "the title");
      same(await page.textContent("#n-actors"), String(fake.actors.size), "the number of actors");
      await until(async () => /^[\d.]+k$/.test(await page.textContent("#n-rate")), "a rate of messages");
      same(
        await page.$$eval(".dispatcher strong", (all) => all.map((one) => one.textContent)),
        ["loop", "pool"],
        "dispatchers",
      );
      const nameless = await page.$$eval(
        "button, input, [role=treeitem], [role=meter], canvas, [role=region]",
        (all) =>
          all
            .filter(
              (one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length),
            )
            .map((one) => one.outerHTML),
      );
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
      await until(
        async () => (await page.textContent("#panel-failures")).includes("Nobody has failed"),
        "no failure yet",
      );
      const times = [];
      for (const id of ["300000004", "300000005", "300000006", "300000008", "300000009"]) {
        times.push(await this.flash(page, fake, id));
        if (times.at(-1) < 1000) break;
      }
      check(Math.min(...times) < 1000, `it took ${times.join(", ")} ms`);
      check((await page.textContent('[data-id="300000004"] .sub')).includes("↻"), "its restarts are counted");
      await until(
        async () => /^✕order-worker-[45689] crash: SIGSEGV/.test(await page.textContent("#ticker")),
        "the ticker names it",
      );
      await until(
        async () => (await page.textContent("#panel-failures")).includes("parse+0x1c (node)"),
        "the list has its backtrace",
      );
      // Again, while the first flash lasts.
      fake.fail("300000004");
      const counted = String(fake.actors.get("300000004").restarts);
      await until(
        async () => (await page.getAttribute('[data-id="300000004"]', "data-restarts")) === counted,
        "the second restart",
      );
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
      const shapes = await page.$$eval(
        ".sup .shape, .worker .shape",
        (all) => new Set(all.map((one) => one.getAttribute("d"))).size,
      );
      same(shapes, 2, "shapes of supervisors and workers");
    });
  }

  failedAway(s) {
    return this.on(s, null, async (page, fake) => {
      fake.add("700000001", "loose", null);
      await page.waitForSelector('[data-id="700000001"]');
      fake.fail("700000001", "for good", false);
      fake.actors.delete("700000001");
      // In one question: it stays for two seconds only.
      await page.waitForFunction(
        () =>
          document.querySelector('[data-id="700000001"].s-terminated.flash-failed .sub')?.textContent === "failed",
      );
      // Below one that the visitor closed.
      await page.click('[data-id="100000003"] .toggle');
      await page.waitForSelector('[data-id="300000004"]', { state: "detached" });
      fake.fail("300000004");
      await page.waitForSelector('[data-id="100000003"].flash');
      // One of many whom the page did not ask for.
      fake.crowd(100000);
      await page.waitForSelector(".node.group");
      fake.fail((0x900000000 + 77777).toString(16));
      await page.waitForSelector('.node.flash[aria-label^="member-77777,"]');
    });
  }

  widths(s) {
    const prepare = (fake) => {
      let parent = null;
      for (let n = 1; n <= 11; n++) parent = fake.add(`9${String(n).padStart(8, "0")}`, `level-${n}`, parent);
    };
    // Nobody is beside the stage; who is below it is scrolled to.
    const outside = () => {
      const box = document.getElementById("stage");
      const stage = box.getBoundingClientRect();
      const nodes = [...document.querySelectorAll(".node .name")].map((one) => one.getBoundingClientRect());
      return nodes.length === 11
        ? nodes.filter(
            (one) =>
              one.height < 11 ||
              one.left < stage.left ||
              one.right > stage.right ||
              one.top + box.scrollTop < stage.top ||
              one.bottom + box.scrollTop > stage.top + box.scrollHeight,
          ).length
        : `${nodes.length} are drawn`;
    };
    return this.on(s, prepare, async (page) => {
      try {
        for (const width of [360, 640, 999, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          await until(async () => (await page.evaluate(outside)) === 0, `all at ${width} px`);
        }
      } finally {
        await page.setViewportSize({ width: 1440, height: 900 });
      }
    });
  }

  charts(s) {
    return this.on(s, null, async (page, fake) => {
      const pictures = () => page.$$eval(".chart-canvas", (all) => all.map((one) => one.toDataURL()));
      const values = () => page.$$eval(".chart-value", (all) => all.map((one) => one.textContent));
      const fallen = async () => (await values())[2].split(" / ").map(Number);
      let before = [NaN, NaN];
      await until(async () => !(before = await fallen()).some(Number.isNaN), "a first sample");
      const first = await pictures();
      fake.fail("300000001");
      fake.rate = 9000;
      await until(
        async () => (await pictures()).every((one, at) => one !== first[at]),
        "all four charts are drawn anew",
      );
      await until(async () => parseFloat(await page.textContent("#n-rate")) > 5, "the rate grew");
      await until(
        async () => (await fallen()).every((one, at) => one === before[at] + 1),
        "restarts and failures are one more each",
      );
      await page.hover(".chart-canvas");
      await until(
        async () => /^\d\d:\d\d:\d\d$/.test(await page.textContent(".chart-when")),
        "the time under the pointer",
      );
      await page.mouse.move(5, 5);
      await page.focus(".chart-canvas");
      await page.keyboard.press("ArrowLeft");
      check(/at \d\d:/.test(await page.getAttribute(".chart-canvas", "aria-label")), "keys move the cursor");
      check(/k$/.test((await values())[0]), `the rate under the cursor is ${(await values())[0]}`);
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
      fake.add("600000004", "W".repeat(40), "100000001");
      fake.add("600000005", " \t ", "100000001");
      fake.fail("600000001", HOSTILE);
      fake.letter("600000001", "stopped");
      fake.letters[0].target_name = HOSTILE;
    };
    return this.on(s, prepare, async (page) => {
      same(await page.textContent("#program"), HOSTILE, "the program's name");
      check(
        (await page.textContent('[data-id="600000001"] title')).includes(HOSTILE),
        "the name in the tree",
      );
      const told = (id) => page.textContent(`[data-id="${id}"] .name`);
      same(await told("600000003"), "\ufffdevil\ufffdname\ufffd", "signs that are not seen");
      same(await told("600000005"), "600000005", "a name of nothing");
      const wide = await page.$$eval(".node", (all) =>
        all
          .filter((one) => {
            const [name, hit] = [".name", ".hit"].map((part) => one.querySelector(part).getBoundingClientRect());
            return name.right > hit.right;
          })
          .map((one) => one.dataset.id),
      );
      same(wide, [], "names that leave their place");
      await until(async () => (await page.textContent("#ticker")).includes(HOSTILE), "the ticker");
      await page.click("#tab-dead");
      await until(async () => (await page.textContent("#panel-dead")).includes(HOSTILE), "the letter");
      await page.click('[data-id="600000001"]');
      await until(async () => (await page.textContent("#detail-name")) === HOSTILE, "the name in the panel");
      await page.fill("#search", "onerror");
      await until(
        async () => (await page.textContent("#search-list")).includes(HOSTILE),
        "the name in the search",
      );
      same(
        await page.evaluate(() => [
          window.hacked ?? null,
          document.querySelectorAll("img, script:not([src])").length,
        ]),
        [null, 0],
        "what it did",
      );
      same(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        true,
        "no sideways scroll",
      );
    });
  }

  phone() {
    return this.own(
      this.fake({ allow: ALL }).shop(),
      { ...PHONE, hash: "#token=secret" },
      async (page, fake) => {
        fake.fail("300000002");
        await page.waitForSelector(".flash-restarted");
        await checkPhone(page, '[data-id="300000002"]');
      },
    );
  }

  dark(s) {
    return this.on(s, null, async (page) => {
      await page.emulateMedia({ colorScheme: "dark" });
      const ground = () =>
        page.evaluate(() =>
          getComputedStyle(document.body)
            .backgroundColor.match(/\d+/g)
            .map(Number)
            .reduce((a, b) => a + b),
        );
      check((await ground()) < 120, "dark as the system");
      await page.click("#theme");
      same(await page.textContent("#theme"), "Light", "the button");
      check((await ground()) > 600, "light by the button");
      await page.reload();
      await page.waitForSelector(".node");
      check((await ground()) > 600, "and it stays so");
      await page.click("#theme");
      await page.emulateMedia({ colorScheme: "light" });
      check((await ground()) < 120, "dark by the button");
      await page.click("#theme");
      same(await page.textContent("#theme"), "Auto", "and as the system again");
    });
  }

  contrast(s) {
    return this.on(s, null, async (page) => {
      const pairs = [
        "ink muted accent green blue amber violet red grey"
          .split(" ")
          .flatMap((ink) => ["surface", "sunken"].map((ground) => [ink, ground])),
        [
          ["ink", "ground"],
          ["muted", "ground"],
          ["red", "ground"],
          ["accent", "accent-soft"],
          ["red", "red-soft"],
          ["ink", "accent-soft"],
          ["on-mark", "red"],
          ["surface", "ink"],
        ],
      ].flat();
      for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        const weak = await page.evaluate((all) => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
            const [r, g, b] = [0, 2, 4]
              .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
              .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          return all
            .map(([a, b]) => [
              a,
              b,
              (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05),
            ])
            .filter(([, , ratio]) => !(ratio >= 4.5));
        }, pairs);
        same(weak, [], `weak pairs, ${theme}`);
      }
    });
  }

  calm(s) {
    return this.on(s, null, async (page, fake) => {
      await page.emulateMedia({ reducedMotion: "reduce" });
      await this.flash(page, fake, "300000004");
      const style = await page.$eval('[data-id="300000004"]', (node) => [
        getComputedStyle(node.querySelector(".pulse")).animationName,
        getComputedStyle(node.querySelector(".hit")).stroke !== "rgba(0, 0, 0, 0)",
      ]);
      same(style, ["none", true], "animation, frame");
    });
  }

  forced(s) {
    return this.on(s, null, async (page) => {
      await page.emulateMedia({ forcedColors: "active" });
      try {
        const style = (selector, name) =>
          page.$eval(selector, (node, what) => getComputedStyle(node)[what], name);
        check(
          (await style(".meter i", "backgroundColor")) !== (await style("body", "backgroundColor")),
          "how busy a worker is",
        );
        check(
          (await style("#tab-failures", "borderBottomColor")) !== (await style("#tab-dead", "borderBottomColor")),
          "which list is chosen",
        );
        same(await style('#window [aria-checked="true"]', "outlineStyle"), "solid", "which time is chosen");
      } finally {
        await page.emulateMedia({ forcedColors: "none" });
      }
    });
  }

  crowd(s) {
    return this.on(
      s,
      (fake) => fake.crowd(100000),
      async (page, fake) => {
        const began = Date.now();
        await page.waitForSelector("text=+99,952 more");
        same(await page.textContent("#n-actors"), "100,006", "the count");
        const covered = await page.$$eval(".node:has(.toggle:not([display]))", (all) =>
          all
            .map((one) => [".sub", ".toggle"].map((part) => one.querySelector(part).getBoundingClientRect()))
            .filter(([sub, toggle]) => sub.right > toggle.left),
        );
        same(covered, [], "words that reach under a switch");
        fake.asked.length = 0;
        await until(
          () => fake.asked.filter((one) => one.startsWith("/api/program")).length >= 2,
          "two more looks",
        );
        for (const one of fake.asked.filter((path) => path.startsWith("/api/actors"))) {
          check(
            Number(new URLSearchParams(one.split("?")[1]).get("limit")) <= 400,
            `asked for too many: ${one}`,
          );
        }
        await page.click(".node.group");
        await until(async () => (await page.$$(".node")).length > 60, "more of them");
        check((await page.$$(".node")).length < 200, "but not all");
        await page.fill("#search", "member-99999");
        await page.keyboard.press("Enter");
        await until(
          async () => (await page.textContent("#detail-name")) === "member-99999",
          "one of them is found",
        );
        await page.waitForSelector('.node[aria-label^="member-99999"]');
        check(
          (await page.evaluate(() => document.querySelectorAll("*").length)) < 4000,
          "the page stays small",
        );
        return `${Date.now() - began} ms`;
      },
    );
  }

  tall(s) {
    const prepare = (fake) => {
      let parent = null;
      for (let n = 1; n <= 200; n++) parent = fake.add(`9${String(n).padStart(8, "0")}`, `level-${n}`, parent);
    };
    return this.on(s, prepare, async (page) => {
      await page.fill("#search", "level-198");
      await page.keyboard.press("Enter");
      await page.waitForSelector('.node[aria-label^="level-198,"]');
      await page.focus('.node[aria-label^="level-198,"]');
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector('.node[aria-label^="level-199,"]');
      same(
        await page.getAttribute('.node[aria-label^="level-199,"]', "aria-level"),
        "199",
        "as deep as it is",
      );
    });
  }

  /** Of a large program not everybody's children are asked for, but theirs whom the visitor opens. */
  opened(s) {
    const prepare = (fake) => {
      fake.crowd(100000);
      for (let n = 1; n <= 45; n++) {
        const parent = fake.add(`5${String(n).padStart(8, "0")}`, `team-${n}`, "100000001");
        for (let m = 1; m <= 12; m++) fake.add(`6${String(n * 100 + m).padStart(8, "0")}`, `t${n}-${m}`, parent);
      }
      let parent = "100000003";
      for (let n = 1; n <= 4; n++) parent = fake.add(`7${String(n).padStart(8, "0")}`, `level-${n}`, parent);
    };
    return this.on(s, prepare, async (page, fake) => {
      const asked = (what) => fake.asked.filter((one) => one.startsWith(what)).length;
      await until(() => asked("/api/program") >= 2, "two looks");
      fake.asked.length = 0;
      await until(() => asked("/api/program") >= 3, "three more");
      const each = asked("/api/actors") / 3;
      check(each < 16, `a look asks ${each} times, though few of the teams are drawn`);
      await page.focus('[data-id="700000001"]');
      for (let n = 2; n <= 4; n++) {
        await page.keyboard.press("ArrowRight");
        await page.waitForSelector(`[data-id="70000000${n}"]`);
        await page.focus(`[data-id="70000000${n}"]`);
      }
      await page.keyboard.press("Home");
      await page.focus('[data-id="100000001+"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector('[data-id="500000044"]');
      await page.focus('[data-id="500000044+"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector('[data-id="600004403"]');
      // A small program after it is whole at its first look, and has the places that are its own.
      await this.renew(s);
      // Sooner than the 15 s after which everything is asked for anew, however busy the machine is.
      await page.waitForSelector('[data-id="200000001"]', { timeout: 12000 });
      same(await page.$$eval('[data-id="100000002+"]', (all) => all.length), 0, "none of them is only counted");
      await page.focus('[data-id="100000001"]');
      await page.keyboard.press("ArrowDown");
      same(await focusedId(page), "100000005", "who has no children comes first, as always");
    });
  }

  /** Actors that nobody supervises stand side by side at the top. */
  loose(s) {
    const prepare = (fake) => {
      for (let n = 1; n <= 300; n++) fake.add(`8${String(n).padStart(8, "0")}`, `loose-${n}`, null);
    };
    return this.on(s, prepare, async (page) => {
      await page.waitForSelector(".node.group");
      check((await page.$$(".node")).length < 60, "few of them are drawn");
      const count = async () => [
        (await page.$$(".node:not(.group)")).length,
        Number(/\d+/.exec(await page.textContent(".node.group"))[0]),
      ];
      const [drawn, hidden] = await count();
      same(drawn + hidden, 300, "drawn and counted");
      await page.click(".node.group");
      await until(async () => (await count())[0] > drawn, "a click shows more");
    });
  }

  dead(s) {
    return this.on(s, null, async (page, fake) => {
      await page.click("#tab-dead");
      await until(
        async () => (await page.textContent("#panel-dead")).includes("No dead letters"),
        "none yet",
      );
      fake.letter("30000000a", "stopped");
      fake.letter("30000000b", "expired");
      fake.letter("30000000c", "expired");
      await page.waitForSelector("#panel-dead tbody tr:nth-child(3)");
      same(
        await page.$$eval("#panel-dead tbody td:nth-child(2)", (all) => all.map((one) => one.textContent)),
        ["30000000c", "30000000b", "30000000a"],
        "the newest first",
      );
      const chosen = () => page.$$eval("#panel-dead [aria-pressed=true]", (all) => all.map((one) => one.textContent));
      same(await chosen(), ["all"], "what is chosen is marked");
      await page.click("text=expired 2");
      same(await chosen(), ["expired 2"], "what is chosen now");
      same(await page.$$eval("#panel-dead tbody tr", (all) => all.length), 2, "those that expired");
      fake.letter("30000000d", "expired");
      await page.waitForSelector("#panel-dead tbody tr:nth-child(3)");
      same(
        await page.$$eval("#panel-dead tbody td:nth-child(2)", (all) => all[0].textContent),
        "30000000d",
        "the newest is first",
      );
      await this.renew({ page, fake });
      fake.letter("30000000e", "stopped");
      await page.click("#tab-dead");
      await page.waitForSelector("#panel-dead tbody tr");
      same(await chosen(), ["all"], "of another program all are shown");
    });
  }

  dispatchers(s) {
    const names = (page) => page.$$eval(".dispatcher strong", (all) => all.map((one) => one.textContent));
    const more = (page) => page.textContent(".dispatcher .link-button");
    const prepare = (fake) => {
      fake.shop();
      fake.pools = 6;
    };
    return this.on(s, prepare, async (page, fake) => {
      await until(async () => (await more(page)) === "and 2 more", "those that are not shown are counted");
      fake.pools = 28;
      await until(async () => (await more(page)) === "and 24 more", "also when there are more of them");
      fake.silentPool = 20;
      await until(async () => (await names(page)).includes("pool-20"), "who does not answer is shown");
      await page.focus(".dispatcher .link-button");
      await page.keyboard.press("Enter");
      same((await names(page)).length, 30, "all of them on request");
      await page.keyboard.press("Enter");
      same((await names(page)).length, 6, "and few again");
      fake.pools = 0;
      await until(async () => (await names(page)).join() === "loop,pool", "two need no counting");
      check(await page.isHidden(".dispatcher .link-button"), "nor a button");
    });
  }

  stuck(s) {
    return this.on(s, null, async (page, fake) => {
      fake.stuckFor = 5200;
      await page.waitForSelector("#stuck-line:not([hidden])");
      check(
        (await page.textContent("#stuck-line")).includes(
          "order-worker-3 has been in the same code for 5.2 s, with tag 7",
        ),
        "who, for how long, with what",
      );
      await page.click("#stuck-line");
      check((await page.textContent("#panel-stuck")).includes("parse+0x1c (node)"), "where");
      await page.waitForSelector(".dispatcher.silent");
      await page.waitForSelector('[data-id="300000003"].s-stuck');
      await until(
        async () =>
          /^stuck for 5\.\d s|^stuck for [6-9]/.test(await page.textContent('[data-id="300000003"] .sub')),
        "the tree says it",
      );
      fake.hook = true;
      fake.actors.get("300000003").state = "starting";
      await until(
        async () => /5\.2 s, in a hook$/.test(await page.textContent("#stuck-line")),
        "that it is a hook",
      );
      await page.waitForSelector('[data-id="300000003"].s-stuck');
      fake.actors.get("300000003").state = "running";
      fake.stuckFor = 0;
      await page.waitForSelector("#stuck-line", { state: "hidden" });
      await page.waitForSelector('[data-id="300000003"].s-running');
      await page.click("#tab-doctor");
      await until(
        async () => (await page.textContent("#panel-doctor")).includes("no-backoff"),
        "what the doctor found",
      );
      fake.fail("300000001");
      await page.click("#tab-record");
      await page.waitForSelector("#panel-record .what-restart");
      const ago = () => page.textContent("#panel-record .what-restart td");
      const first = await ago();
      await until(async () => (await ago()) !== first, "how long ago it was grows, also when nothing happens");
    });
  }
}
