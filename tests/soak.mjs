// npm run soak: long use of a page in each browser. What it takes must not grow: linear memory, JavaScript's heap, nodes.
//
//   node tests/soak.mjs [--calls N] [--imports N] [--inserts N] [browser …]
//
// A million calls of the kernels, ten thousand imports (and logs read), a thousand elements put into a page and taken out
// again. After a tenth of each the page is measured, and at the end once more.
//
//              linear memory   nodes in the page   elements that are still held   heap   nodes and listeners of the engine
//   Chromium   both kernels'   shadow trees too    after a collection             yes    yes, detached ones too
//   Firefox    both kernels'   shadow trees too    after a collection             no way to ask
//   WebKitGTK  both kernels'   shadow trees too    after a collection             no way to ask
//
// tests/web/soak.test.mjs does the same for a short while.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { buildOnce, wholeOption } from "./command.mjs";
import { gguf } from "./fuzz/seeds.mjs";
import { WATCH } from "./web/memories.mjs";
import { serve } from "./web/site.mjs";

const data = (name) => readFileSync(join(projectFolder, "tests/data", name));

const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>soak</title><link rel="icon" href="data:,">
  ${WATCH}<script src="kv-capacity.js"></script></head>
  <body><div id="room" style="min-height: 500px"></div><kv-capacity id="calculator"></kv-capacity></body></html>`;

/** What runs in the page; it is sent there as text. */
function prepare(files) {
  const tags = [
    "kv-capacity",
    "kv-growth",
    "kv-formula",
    "kv-curve",
    "kv-levers",
    "kv-attention",
    "kv-memory",
    "kv-paging",
    "kv-quiz",
    "kv-interview",
    "kv-capacity-table",
  ];
  const shared = globalThis[Symbol.for("kv-capacity.kernel.1")];
  const calculator = document.getElementById("calculator");
  const room = document.getElementById("room");
  const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const models = files.models.map(({ kind, content }) => ({ kind, content: bytes(content) }));
  const log = bytes(files.log);
  const held = [];
  const late = (promise, what) =>
    Promise.race([
      promise,
      new Promise((_, reject) => setTimeout(() => reject(new Error(`${what} is not ready`)), 20000)),
    ]);
  window.soak = {
    async start() {
      await calculator.ready;
      this.core = (await shared.core).instance;
      calculator.setAttribute("engine", "vllm");
      calculator.setAttribute("gpu", "h100-sxm-80gb");
      for (let tries = 0; tries < 400 && !shared.full; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
      this.full = (await shared.full).instance;
      if (this.core === this.full) throw new Error("the first kernel was not seen");
      calculator.removeAttribute("engine");
      calculator.removeAttribute("gpu");
      await calculator.ready;
    },
    call(count) {
      let answers = 0;
      for (let i = 0; i < count; i++) {
        const request = `{"model":"llama-3.1-8b","context":${1024 + (i % 50000)},"gpus":${1 + (i % 8)}}`;
        const kernel = i % 2 ? this.full : this.core;
        if (kernel.plan(i % 10 ? request : `${request},`).length > 500) answers++;
      }
      return answers;
    },
    bring(count) {
      let answers = 0;
      for (let i = 0; i < count; i++) {
        const { kind, content } = models[i % models.length];
        // Every fifth is cut somewhere.
        const given = i % 5 ? content : content.subarray(0, i % content.length);
        if (this.full.importModel(kind, given, given.length, "").includes('"layers"')) answers++;
        if (i % 10 === 0 && this.full.readLog(log).includes('"lines"')) answers++;
      }
      return answers;
    },
    async insert(count, from) {
      for (let i = from; i < from + count; i++) {
        const element = document.createElement(tags[i % tags.length]);
        held.push(new WeakRef(element));
        element.setAttribute("context", String(1024 * (1 + (i % 64))));
        if (i % 2) element.setAttribute("for", "calculator");
        if (i % 4 === 0) element.setAttribute("engine", "vllm");
        room.append(element);
        // Some are taken away before they have begun.
        if (i % 7) await late(element.ready, element.localName);
        if (i % 3) element.setAttribute("gpus", "2");
        if (i % 5 === 0) calculator.setAttribute("context", String(2048 + i));
        await Promise.resolve();
        element.remove();
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
    },
    nodes() {
      const of = (root) =>
        [...root.querySelectorAll("*")].reduce((sum, node) => sum + 1 + (node.shadowRoot ? of(node.shadowRoot) : 0), 0);
      return of(document);
    },
    memory: () => memories.map(({ buffer }) => buffer.byteLength),
    held: () => held.filter((one) => one.deref()).length,
    /** Collects what nobody holds. Chromium is asked from outside too; WebKitGTK does so when much is waste. */
    async collect() {
      const rest = () => new Promise((resolve) => setTimeout(resolve, 50));
      for (let round = 0; round < 40 && this.held() > 0; round++) {
        // Whoever looks at what is held holds it until the turn ends.
        await rest();
        if (window.TestUtils) await TestUtils.gc();
        else window.waste = Array.from({ length: 200_000 }, (_, i) => ({ i, text: String(i) }));
        window.waste = null;
        await rest();
      }
    },
  };
  return window.soak.start();
}

const files = () => ({
  models: [
    { kind: "config", content: data("configs/plain-llama.json") },
    { kind: "config", content: data("configs/gpt-oss-20b.json") },
    ...gguf.map((content) => ({ kind: "gguf", content })),
  ].map(({ kind, content }) => ({ kind, content: content.toString("base64") })),
  log: data("logs/llama.cpp-b1761-phi-2.log").toString("base64"),
});

/** What a page takes now. Chromium alone tells of its heap, its nodes and its listeners. */
async function measure(page, session) {
  if (session) await session.send("HeapProfiler.collectGarbage");
  // WebKit collects in its own time, and on a machine that is busy not within one call.
  for (let tries = 0; tries < 6; tries++) {
    await page.evaluate(() => soak.collect());
    if ((await page.evaluate(() => soak.held())) === 0) break;
  }
  const out = await page.evaluate(() => ({ memory: soak.memory(), nodes: soak.nodes(), held: soak.held() }));
  if (!session) return out;
  // Twice: a collection may free what the one before has only let go.
  for (let i = 0; i < 2; i++) await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
  return {
    ...out,
    held: await page.evaluate(() => soak.held()),
    heap: usedSize,
    engineNodes: nodes,
    listeners: jsEventListeners,
  };
}

/** Uses a page of one browser as long as `sizes` say. Returns what it took after a tenth, and at the end. */
export async function soak(name, { calls, imports, inserts }) {
  const site = await serve(undefined, { "/soak.html": { html: PAGE } });
  let browser;
  try {
    const { browsers } = await import("./web/browsers.mjs");
    // Firefox's own way for tests to ask for a collection.
    browser = await browsers[name]({ prefs: { "dom.testing.testutils.enabled": true } });
    const page = await browser.page();
    await page.resize(1280, 1000);
    await page.goto(`${site.origin}/soak.html`);
    await page.evaluate(prepare, files());
    const session = name === "Chromium" ? await page.page.createCDPSession() : undefined;
    let inserted = 0;
    const use = async (part) => {
      const share = (count) => Math.ceil(count * part);
      for (let left = share(calls); left > 0; left -= 20_000) {
        const count = Math.min(left, 20_000);
        const answers = await page.evaluate((count) => soak.call(count), count);
        assert.ok(answers > count * 0.8, `${answers} of ${count} calls were answered`);
      }
      for (let left = share(imports); left > 0; left -= 500) {
        const count = Math.min(left, 500);
        const answers = await page.evaluate((count) => soak.bring(count), count);
        assert.ok(answers > count * 0.7, `${answers} of ${count} imports were answered`);
      }
      for (let left = share(inserts); left > 0; left -= 22) {
        const count = Math.min(left, 22);
        await page.evaluate((count, from) => soak.insert(count, from), count, inserted);
        inserted += count;
      }
    };
    await use(0.1);
    const early = await measure(page, session);
    await use(0.9);
    const late = await measure(page, session);
    assert.deepEqual(page.problems, []);
    return { early, late };
  } finally {
    await browser?.close();
    await site.close();
  }
}

/** A collector may look at a stack or a register and take a number for an address. */
const FEW = 5;

/** What grew between two measurements, as sentences. */
export function grown({ early, late }) {
  const found = [];
  const compare = (what, before, after, room) => {
    if (after - before > room) found.push(`${what}: ${before} after a tenth, ${after} at the end`);
  };
  if (late.memory.length !== 2) found.push(`${late.memory.length} kernels are in the page`);
  for (const [i, bytes] of late.memory.entries()) compare(`linear memory ${i + 1}`, early.memory[i], bytes, 0);
  compare("nodes in the page", early.nodes, late.nodes, 0);
  if (late.held > FEW) found.push(`${late.held} of the elements that were taken out are still held`);
  if (late.heap !== undefined) {
    // Code that is compiled later, and what engines keep of their own.
    compare("heap", early.heap, late.heap, 1_000_000);
    compare("nodes of the engine", early.engineNodes, late.engineNodes, 200);
    compare("listeners", early.listeners, late.listeners, 20);
  }
  return found;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    const { values, positionals } = parseArgs({
      options: {
        calls: { type: "string", default: "1000000" },
        imports: { type: "string", default: "10000" },
        inserts: { type: "string", default: "1000" },
      },
      allowPositionals: true,
    });
    const sizes = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, wholeOption(name, text, 10)]));
    await setup("test");
    await buildOnce();
    const { browsers } = await import("./web/browsers.mjs");
    const names = positionals.length > 0 ? positionals : Object.keys(browsers);
    const unknown = names.find((name) => !(name in browsers));
    if (unknown) throw new Failure(`There is no browser "${unknown}". There are: ${Object.keys(browsers).join(", ")}`);
    let failed = 0;
    for (const name of names) {
      const found = await soak(name, sizes);
      const faults = grown(found);
      say(`${faults.length ? "FAILED" : "ok"}  ${name}`);
      console.log(
        `    after a tenth  ${JSON.stringify(found.early)}\n    at the end     ${JSON.stringify(found.late)}`,
      );
      for (const fault of faults) console.log(`    ${fault}`);
      failed += faults.length ? 1 : 0;
    }
    console.log(`${names.length - failed} passed, ${failed} failed`);
    return failed ? 1 : 0;
  });
}
