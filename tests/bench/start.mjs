// How long a page takes from navigation to its first right number, beside a page that only starts an empty module.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { browsers } from "../web/browsers.mjs";
import { dist, TYPES } from "../web/site.mjs";
import { median, ROUNDS } from "./statistics.mjs";

const WIDGETS = [1, 5, 20];
/** What Chromium's own tools call "Slow 4G", with a processor of a quarter of the speed. */
const SLOW = { processor: 4, latency: 562.5, download: 180_000, upload: 84_375 };

/** The smallest module there is, and the scripts that start it: as a file of its own, and out of the script. */
const EMPTY = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const STREAM = `WebAssembly.instantiateStreaming(fetch("empty.wasm")).then(() => done(""));`;
const WITHIN = `WebAssembly.instantiate(new Uint8Array([${EMPTY}])).then(() => done(""));`;

/** Resolves `started` when what the page is for has happened. */
const CLOCK = `let done; const started = new Promise((resolve) => { done = resolve; }).then((shown) => [performance.now(), shown]);`;

/** In all widgets of the page a number stands; which ones is told. */
const WATCH = `customElements.whenDefined("kv-capacity").then(async () => {
  const figures = [...document.querySelectorAll("kv-capacity")].map((one) => one.shadowRoot.querySelector(".figure.count b"));
  await Promise.all(figures.map((figure) => figure.textContent || new Promise((resolve) => {
    new MutationObserver(resolve).observe(figure, { childList: true });
  })));
  done([...new Set(figures.map((figure) => figure.textContent))].join());
});`;

/** When the page first had something painted: of an empty one, never. */
const painted = () =>
  new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const [first] = list.getEntriesByName("first-contentful-paint");
      if (first) resolve(first.startTime);
    }).observe({ type: "paint", buffered: true });
  });

const document = (body) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>…</title>${body}</html>`;
const script = (text) => `<script>${text}</script>`;

const pages = {
  "/empty.html": document(script(CLOCK + STREAM)),
  "/empty-within.html": document(script(CLOCK + WITHIN)),
};
for (const count of WIDGETS) {
  const widgets = '<kv-capacity model="llama-3.1-8b" context="8192"></kv-capacity>'.repeat(count);
  // Who watches is there before, and not kept waiting by the frame that the answer is painted in.
  pages[`/${count}.html`] = document(`${script(CLOCK + WATCH)}${widgets}<script src="kv-capacity.js"></script>`);
}

/** Serves as a good host does: packed, and kept by the browser. */
async function host() {
  const made = new Map();
  const answer = (path) => {
    if (!made.has(path)) {
      const text = pages[path] ?? (path === "/empty.wasm" ? EMPTY : readFileSync(join(dist, path)));
      made.set(path, brotliCompressSync(text));
    }
    return made.get(path);
  };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    try {
      const body = answer(pathname);
      const kept = pathname.endsWith(".html") ? "no-cache" : "max-age=31536000, immutable";
      const type = TYPES[extname(pathname)];
      response.writeHead(200, { "content-type": type, "content-encoding": "br", "cache-control": kept });
      response.end(body);
    } catch {
      response.writeHead(404);
      response.end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    // Browsers take brotli without encryption only from this name.
    origin: `http://localhost:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

async function slowDown(page, slow) {
  const session = await page.createCDPSession();
  await session.send("Emulation.setCPUThrottlingRate", { rate: slow ? SLOW.processor : 1 });
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: slow ? SLOW.latency : 0,
    downloadThroughput: slow ? SLOW.download : -1,
    uploadThroughput: slow ? SLOW.upload : -1,
  });
}

/** Milliseconds of one visit, until the number stands in the page and until that is painted. */
async function visit(page, address, expected) {
  await page.goto(address);
  const [milliseconds, shown] = await page.evaluate("started");
  if (shown !== expected) throw new Failure(`${address} showed "${shown}" where "${expected}" is right.`);
  return [milliseconds, expected === "" ? null : await page.evaluate(painted)];
}

/** The 8B model in bf16 on 80 GB, at 8192 tokens: README's first example. */
const NUMBER = "52";

export async function measureStart() {
  const server = await host();
  const browser = await browsers.Chromium();
  const places = [
    { name: "empty page, empty module", path: "/empty.html", expected: "" },
    { name: "the same, nothing but the page to fetch", path: "/empty-within.html", expected: "" },
    ...WIDGETS.map((count) => ({ name: `widgets: ${count}`, path: `/${count}.html`, expected: NUMBER })),
  ];
  const rows = places.map((place) => ({
    ...place,
    cold: [],
    warm: [],
    slow_cold: [],
    slow_warm: [],
    painted: [],
    slow_painted: [],
  }));
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const slow of [false, true]) {
        for (const row of rows) {
          // A browser of its own has nothing kept, neither files nor compiled code.
          const { page } = await browser.freshPage();
          try {
            await slowDown(page, slow);
            const [cold, warm] = slow ? [row.slow_cold, row.slow_warm] : [row.cold, row.warm];
            const [first, paint] = await visit(page, server.origin + row.path, row.expected);
            const [second] = await visit(page, server.origin + row.path, row.expected);
            cold.push(first);
            warm.push(second);
            if (paint !== null) (slow ? row.slow_painted : row.painted).push(paint);
          } finally {
            await page.browserContext().close();
          }
        }
      }
    }
  } finally {
    await browser.close();
    await server.close();
  }
  const medianOrNull = (times) => (times.length ? median(times) : null);
  return rows.map(({ name, cold, warm, slow_cold, slow_warm, painted: paints, slow_painted }) => ({
    name,
    milliseconds: {
      cold: median(cold),
      warm: median(warm),
      slow_cold: median(slow_cold),
      slow_warm: median(slow_warm),
      painted: medianOrNull(paints),
      slow_painted: medianOrNull(slow_painted),
    },
  }));
}
