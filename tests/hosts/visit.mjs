// A built host in Chromium, served below /course/ as a university's server would, and what every host has to stand.
import assert from "node:assert/strict";
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { browsers } from "../web/browsers.mjs";
import { WATCHING } from "../web/memories.mjs";
import { passes, Reader, until, wait } from "../web/reader.mjs";
import { TYPES } from "../web/site.mjs";

const BASE = "/course/";
/** What a browser asks for by itself. */
const ICON = "/favicon.ico";

/** The file that a path names: itself, or as servers of static sites look for it. */
function fileFor(folder, path) {
  const isFile = (name) => statSync(name, { throwIfNoEntry: false })?.isFile();
  const name = join(folder, path);
  return [name, `${name}.html`, join(name, "index.html")].find(isFile);
}

async function serveBelow(folder, { app = false } = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const inside = pathname.startsWith(BASE) && decodeURIComponent(pathname.slice(BASE.length));
    const file = inside === false ? undefined : (fileFor(folder, inside) ?? (app && fileFor(folder, "")));
    if (pathname === ICON) return response.writeHead(204).end();
    if (!file) return response.writeHead(404).end("not here");
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

/** First script of every document: notes what goes wrong. */
function record() {
  window.problems = [];
  window.changes = 0;
  addEventListener(
    "error",
    ({ message, target }) => window.problems.push(message || `could not load ${target.src || target.href}`),
    true,
  );
  addEventListener("unhandledrejection", ({ reason }) => window.problems.push(`unhandled: ${reason}`));
  addEventListener("kv-change", () => window.changes++);
}

/** Opens a host's first page. */
export async function visit(folder, options) {
  const site = await serveBelow(folder, options);
  let browser;
  const close = async () => {
    await browser?.close();
    await site.close();
  };
  try {
    browser = await browsers.Chromium();
    const page = await browser.page();
    await page.page.evaluateOnNewDocument(record);
    await page.page.evaluateOnNewDocument(WATCHING);
    await page.resize(1280, 1000);
    await page.goto(site.origin + BASE);
    return { site, page, visitor: new Visitor(site, page), close };
  } catch (error) {
    await close();
    throw error;
  }
}

export class Visitor extends Reader {
  constructor(site, page) {
    super(page);
    this.site = site;
  }

  /** Asks the page; undefined while it is giving way to another document. */
  ask(question, ...values) {
    return this.page.evaluate(question, ...values).catch((error) => {
      if (!/context was destroyed|Cannot find context|navigat/i.test(String(error))) throw error;
    });
  }

  /** What the one calculator of the page says, once it does. */
  async answer() {
    await until("the calculator's answer", () => this.ask(() => Boolean(document.querySelector("kv-capacity")?.plan)));
    return this.page.evaluate(() => {
      const found = document.querySelectorAll("kv-capacity");
      const [{ shadowRoot, plan }] = found;
      return {
        calculators: found.length,
        shown: shadowRoot.querySelector(".count .value b")?.textContent,
        visible: shadowRoot.querySelector(".figures").checkVisibility(),
        sequences: plan.sequences,
        context: plan.context,
        kernels: memories.length,
      };
    });
  }

  /** Follows the page's own link. A page that still settles makes the hand miss it, which then tries again. */
  async follow(text) {
    const here = () => this.ask(() => location.href);
    const from = await here();
    const left = async () => {
      const now = await here();
      return now !== undefined && now !== from;
    };
    await passes(async () => {
      if (await left()) return;
      const at = await this.ask((text) => {
        const link = [...document.querySelectorAll("a")].find(
          (one) => one.textContent.trim() === text && one.checkVisibility(),
        );
        link?.scrollIntoView({ block: "center", behavior: "instant" });
        const box = link?.getBoundingClientRect();
        return box?.width ? { x: box.left + box.width / 2, y: box.top + box.height / 2 } : null;
      }, text);
      if (at) await this.page.click(at.x, at.y);
      await until(`the link "${text}" to be followed`, left, 5000);
    });
  }

  go(steps) {
    return this.ask((steps) => history.go(steps), steps);
  }

  /** The page without the calculator is there, whether or not it is a new document. */
  async away() {
    await until("the page without the calculator", () =>
      this.ask(
        () =>
          !document.querySelector("kv-capacity") &&
          [...document.querySelectorAll("a")].some((one) => one.textContent.trim() === "Back"),
      ),
    );
  }

  /** Nothing complained, and nobody else was asked for anything. */
  async unharmed() {
    assert.deepEqual(await this.page.evaluate(() => window.problems), []);
    assert.deepEqual(this.page.problems, []);
    const elsewhere = this.page.requests.filter(
      (url) =>
        !/^(data|blob|about):/.test(url) && ![BASE, ICON].some((path) => url.startsWith(this.site.origin + path)),
    );
    assert.deepEqual(elsewhere, []);
  }

  /** One step of the context's slider by keyboard, which is heard once. */
  async step(key) {
    const before = await this.page.evaluate(() => window.changes);
    await this.focus("#context");
    await this.page.press(key);
    await until("a change", async () => (await this.page.evaluate(() => window.changes)) > before);
    assert.equal(await this.page.evaluate(() => window.changes), before + 1);
    return this.answer();
  }
}

/** What the default says: Llama 3.1 8B on 80 GB at 8,192 tokens. */
export const FIRST = { calculators: 1, shown: "52", visible: true, sequences: 52, context: 8192, kernels: 1 };
/** One step of the slider further. */
export const NEXT = { ...FIRST, shown: "34", sequences: 34, context: 12288 };
export { until, wait };
