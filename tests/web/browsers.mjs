// Three browsers behind one interface: Chromium and Firefox by puppeteer, WebKitGTK by its own driver.
import { existsSync } from "node:fs";
import puppeteer from "puppeteer-core";
import { countIn } from "../coverage/chromium.mjs";
import { dist } from "./site.mjs";
import { launchWebKit } from "./webdriver.mjs";

/** With a folder in it, what Chromium runs of the site's scripts is written there: `npm run coverage` reads it. */
const counted = process.env.KV_COVERAGE;

function installed(...paths) {
  const path = paths.find((one) => existsSync(one));
  if (!path) throw new Error(`none of these is installed: ${paths.join(", ")}`);
  return path;
}

/** How long a browser may take to start, or to open a page, on a slow machine; in milliseconds. */
const PATIENCE = 120_000;

/** Keys by their name, as WebDriver's code points. */
const CODE_POINTS = {
  Tab: "\uE004",
  Enter: "\uE007",
  Escape: "\uE00C",
  Space: " ",
  PageUp: "\uE00E",
  PageDown: "\uE00F",
  End: "\uE010",
  Home: "\uE011",
  ArrowLeft: "\uE012",
  ArrowUp: "\uE013",
  ArrowRight: "\uE014",
  ArrowDown: "\uE015",
  Backspace: "\uE003",
};

class PuppeteerPage {
  /** `leave` is called before the page is left, for another or for good. */
  constructor(page, leave = () => {}) {
    this.page = page;
    this.leave = leave;
    this.problems = [];
    this.requests = [];
    page.setDefaultTimeout(PATIENCE);
    page.on("console", (message) => {
      if (message.type() === "error") this.problems.push(message.text());
    });
    page.on("pageerror", (error) => this.problems.push(String(error)));
    page.on("request", (request) => this.requests.push(request.url()));
  }

  async goto(url) {
    await this.leave();
    return this.page.goto(url);
  }

  evaluate(fn, ...args) {
    return this.page.evaluate(fn, ...args);
  }

  async press(key, times = 1) {
    for (let i = 0; i < times; i++) await this.page.keyboard.press(key);
  }

  type(text) {
    return this.page.keyboard.type(text);
  }

  click(x, y) {
    return this.page.mouse.click(x, y);
  }

  async drag(from, to, steps = 10) {
    const { mouse } = this.page;
    await mouse.move(from.x, from.y);
    await mouse.down();
    await mouse.move(to.x, to.y, { steps });
    await mouse.up();
  }

  resize(width, height) {
    return this.page.setViewport({ width, height });
  }

  async screenshot() {
    return Buffer.from(await this.page.screenshot());
  }

  async close() {
    await this.leave();
    return this.page.close();
  }
}

class WebKitPage {
  problems = [];
  requests = [];

  constructor(session) {
    this.session = session;
  }

  goto(url) {
    return this.session.goto(url);
  }

  evaluate(fn, ...args) {
    return this.session.evaluate(fn, ...args);
  }

  async #keys(values) {
    const actions = values.flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.session.actions([{ type: "key", id: "keyboard", actions }]);
  }

  press(key, times = 1) {
    return this.#keys(Array(times).fill(CODE_POINTS[key] ?? key));
  }

  type(text) {
    return this.#keys([...text]);
  }

  #pointer(...actions) {
    return this.session.actions([{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }]);
  }

  click(x, y) {
    return this.drag({ x, y }, { x, y }, 0);
  }

  drag(from, to, steps = 10) {
    // A hand takes longer than a frame from one place to the next.
    const at = (part) => ({
      type: "pointerMove",
      duration: part && 30,
      x: Math.round(from.x + (to.x - from.x) * part),
      y: Math.round(from.y + (to.y - from.y) * part),
    });
    const moves = Array.from({ length: steps }, (_, i) => at((i + 1) / steps));
    return this.#pointer(at(0), { type: "pointerDown", button: 0 }, ...moves, { type: "pointerUp", button: 0 });
  }

  resize(width, height) {
    return this.session.resize(width, height);
  }

  screenshot() {
    return this.session.screenshot();
  }

  async close() {}
}

async function launchChromium() {
  const browser = await puppeteer.launch({
    timeout: PATIENCE,
    protocolTimeout: 5 * PATIENCE,
    executablePath: installed("/usr/bin/chromium", "/usr/bin/google-chrome"),
    args: [
      "--no-sandbox",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-dev-shm-usage",
      // Pages of the browser's own, which every new window loads beside the one that is tested.
      "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    ],
  });
  const count = counted && (await countIn(browser, process.env.KV_SITE ?? dist, counted));
  const opened = async (page) => {
    await count?.take();
    return new PuppeteerPage(page, count?.take);
  };
  return {
    page: async () => opened(await browser.newPage()),
    /** A page that shares nothing with others: no cache, no compiled code. */
    freshPage: async () => opened(await (await browser.createBrowserContext()).newPage()),
    async close() {
      await count?.take();
      count?.write();
      await browser.close();
    },
  };
}

async function launchFirefox({ prefs = {} } = {}) {
  const browser = await puppeteer.launch({
    browser: "firefox",
    timeout: PATIENCE,
    protocolTimeout: 5 * PATIENCE,
    executablePath: installed("/usr/bin/firefox-esr", "/usr/bin/firefox"),
    extraPrefsFirefox: { "security.sandbox.content.level": 0, ...prefs },
  });
  return {
    page: async () => new PuppeteerPage(await browser.newPage()),
    close: () => browser.close(),
  };
}

async function launchWebKitGtk() {
  const driver = await launchWebKit();
  // The driver holds one window; every page is that window anew.
  const session = await driver.session();
  return {
    page: async () => new WebKitPage(session),
    async close() {
      await session.close().catch(() => {});
      await driver.close();
    },
  };
}

/** All of them; where coverage is counted, the one that counts. */
export const browsers = {
  Chromium: launchChromium,
  ...(!counted && { Firefox: launchFirefox, WebKitGTK: launchWebKitGtk }),
};
