// The page before a made-up console: what the tests of seeing.mjs and doing.mjs stand on.

import { Fake } from "./fake.mjs";

export const ALL = ["stop", "kill", "restart", "send"];

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
    await page.evaluate(() => {
      document.activeElement.blur();
      const tree = document.querySelector("#view [data-view=tree]");
      if (tree.getAttribute("aria-checked") !== "true") tree.click(); // of a test that failed
    });
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
    await page.click("#tab-failures");
    if ((await page.getAttribute("#pause", "aria-pressed")) === "true") await page.click("#pause");
    page.expected(/status of 404/); // of an actor of the old program
    fake.renew();
    if (prepare) prepare(fake);
    else fake.shop();
    await page.waitForFunction(
      (pid) => document.getElementById("whereabouts").textContent.startsWith(`pid ${pid} `),
      fake.pid,
    );
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
}
