// Where WebAssembly is refused: the same C++ as JavaScript gives the same answers; where that is refused too, the
// example stays and a sentence says what would help.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { until } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const data = new URL("../data/", import.meta.url);
const table = (name) =>
  readFileSync(new URL(name, data), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));

describe("the kernel without WebAssembly", () => {
  let wasm;
  let plain;

  before(async () => {
    const { loadFullKernel } = await import(pathToFileURL(join(dist, "kv-capacity.mjs")).href);
    wasm = (await loadFullKernel()).instance;
    await import(pathToFileURL(join(dist, "kv-capacity-nowasm.js")).href);
    plain = await globalThis[Symbol.for("kv-capacity.nowasm.1")]();
    assert.notEqual(plain, wasm);
  });

  /** Asks both kernels the same. Gives how many answered rather than refused. */
  const compare = (name, questions) => {
    let answered = 0;
    for (const args of questions) {
      const expected = wasm[name](...args);
      assert.equal(plain[name](...args), expected, JSON.stringify(args).slice(0, 300));
      if (!JSON.parse(expected).error) answered++;
    }
    return answered;
  };
  const asked = (...requests) => requests.map((request) => [JSON.stringify(request)]);

  it("answers byte for byte the same for every model and context of the golden table, in every engine", () => {
    assert.equal(plain.catalogue(), wasm.catalogue());
    const [[, ...head], ...rows] = table("golden.tsv");
    const contexts = [...new Set(head.map((name) => Number(name.match(/\d+$/)?.[0])).filter(Boolean))];
    const engines = JSON.parse(wasm.catalogue()).engines.map(({ id }) => id);
    assert.ok(rows.length > 100 && contexts.length >= 5 && engines.length >= 5);
    const requests = rows.flatMap(([model], row) =>
      contexts.map((context, column) => {
        const engine = engines[(row + column) % engines.length];
        return { model, context, engine, gpu: "h100-sxm-80gb", gpus: 8, kv: ["bf16", "fp8"][row % 2] };
      }),
    );
    assert.ok(compare("plan", asked(...requests)) > 200);
    // The largest numbers, and what is none.
    const huge = { count: 65536, kind: "full", kv_heads: 65536, key_width: 2 ** 20, value_width: 2 ** 20 };
    const models = [1, 3, 100].map((runs) => ({ parameters: 2 ** 50, layers: Array(runs).fill(huge) }));
    compare(
      "plan",
      models.flatMap((model) => asked(...[1, 2 ** 31 - 1].map((context) => ({ model, context })))),
    );
    compare("plan", [["{"], [""], ["[]"], ['{"model":"llama-3-8b","context":1e400}'], ['{"model":"\\ud800"}']]);
  });

  it("reads configs and logs, simulates, asks and answers wishes alike", () => {
    const folder = (name) => readdirSync(new URL(name, data)).map((file) => new URL(`${name}/${file}`, data));
    const configs = folder("configs").filter(({ pathname }) => pathname.endsWith(".json"));
    const read = compare(
      "importModel",
      configs.map((file) => {
        const bytes = readFileSync(file);
        return ["config", new Uint8Array(bytes), bytes.length, ""];
      }),
    );
    assert.ok(configs.length > 100 && read > 80, `${read} of ${configs.length}`);
    const logs = folder("logs").filter(({ pathname }) => pathname.endsWith(".log"));
    assert.ok(
      compare(
        "readLog",
        logs.map((file) => [readFileSync(file, "utf8")]),
      ) > 10,
    );
    assert.ok(compare("paging", asked({ seed: 2, step: 300, prefix_tokens: 64, history: true }, {})) === 2);
    assert.ok(
      compare("quiz", asked(...Array.from({ length: 20 }, (_, seed) => ({ seed, level: 1 + (seed % 3) })))) === 20,
    );
    assert.ok(compare("wish", asked({ request: { model: "llama-3-8b" }, sequences: 100, context_k: 8 })) === 1);
  });
});

const page = (tags, { head = '<script src="kv-capacity.js"></script>', before = "" } = {}) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>no wasm</title>${before}${head}</head>
  <body>${tags}</body></html>`;
const tag = '<kv-capacity><p id="example">A worked example.</p></kv-capacity>';
const policy = (scripts, rest = "") => ({
  "content-security-policy": `default-src 'none'; script-src ${scripts}; ${rest}`,
});
const WITHOUT = "<script>delete globalThis.WebAssembly;</script>";

const PAGES = {
  "/policy.html": { headers: policy("'self'"), html: page(tag) },
  "/policy-all.html": {
    headers: policy("'self'", "require-trusted-types-for 'script'"),
    html: page(`<kv-capacity engine="vllm" gpu="h100-sxm-80gb">example</kv-capacity>
      <kv-capacity-table auto>example</kv-capacity-table><kv-quiz seed="1">example</kv-quiz>`),
  },
  "/policy-module.html": {
    headers: policy("'self'", "connect-src 'self'"),
    html: page(tag, { head: '<script type="module" src="kv-capacity.mjs"></script>' }),
  },
  "/deleted.html": { html: page(tag, { before: WITHOUT }) },
  "/sandboxed.html": {
    headers: { "content-security-policy": "sandbox allow-scripts" },
    html: page(tag, { before: WITHOUT }),
  },
  // Nothing but the first script may run, or is there.
  "/first-only.html": { headers: policy("http://127.0.0.1:*/kv-capacity.js"), html: page(tag) },
  "/alone/kv-capacity.js": { file: "kv-capacity.js" },
  "/alone/policy.html": { headers: policy("'self'"), html: page(tag) },
  "/alone/deleted.html": { html: page(tag, { before: WITHOUT }) },
};

/** What a page shows of its first calculator. */
const look = (page) =>
  page.evaluate(() => {
    const element = document.querySelector("kv-capacity");
    const shown = (node) => node.getBoundingClientRect().height > 0 && getComputedStyle(node).visibility === "visible";
    const trouble = element?.shadowRoot?.querySelector(".trouble");
    if (!element?.plan && !(trouble && shown(trouble))) return null;
    return {
      sequences: element.plan?.sequences,
      trouble: trouble.textContent,
      example: shown(document.getElementById("example") ?? trouble),
      body: shown(element.shadowRoot.querySelector(".body")),
    };
  });

describe("a page that refuses WebAssembly, in Chromium", { timeout: 300_000 }, () => {
  let site;
  let page;
  let close;

  before(async () => {
    ({ site, page, close } = await visit(browsers.Chromium, PAGES));
  });
  after(() => close?.());

  const open = async (path) => {
    site.asked.length = 0;
    await page.goto(`${site.origin}${path}`);
    return until("an answer or a refusal", () => look(page));
  };
  const fallbacks = () => site.asked.filter((path) => path.endsWith("nowasm.js")).length;

  for (const path of ["/policy.html", "/policy-module.html", "/deleted.html", "/sandboxed.html"]) {
    it(`computes all the same: ${path}`, async () => {
      const { sequences, trouble, example, body } = await open(path);
      assert.deepEqual(
        { sequences, trouble, example, body },
        { sequences: 52, trouble: "", example: false, body: true },
      );
      assert.equal(fallbacks(), 1);
    });
  }

  it("has engines, the table and the quiz from the one script too", async () => {
    await open("/policy-all.html");
    const { engine, blocks } = await page.evaluate(() => {
      const { plan } = document.querySelector("kv-capacity");
      return { engine: plan.engine, blocks: plan.kv_blocks };
    });
    assert.equal(engine, "vllm");
    assert.ok(blocks > 1000);
    for (const name of ["kv-capacity-table", "kv-quiz"]) {
      await page.evaluate((name) => document.querySelector(name).scrollIntoView({ behavior: "instant" }), name);
      await until(name, () =>
        page.evaluate(
          (name) => document.querySelector(name).shadowRoot?.querySelector(".kv")?.className === "kv",
          name,
        ),
      );
    }
    assert.equal(fallbacks(), 1);
  });

  it("loads none of it where WebAssembly runs", async () => {
    const { sequences } = await open("/embed.html");
    assert.equal(sequences, 52);
    assert.equal(fallbacks(), 0);
  });

  for (const [path, help] of [
    ["/first-only.html", /'wasm-unsafe-eval' to script-src/],
    ["/alone/policy.html", /'wasm-unsafe-eval' to script-src/],
    ["/alone/deleted.html", /kv-capacity-nowasm\.js/],
  ]) {
    it(`keeps the example and names what would help where both are refused: ${path}`, async () => {
      const { trouble, example, body } = await open(path);
      assert.match(trouble, help);
      assert.deepEqual({ example, body }, { example: true, body: false });
    });
  }

  it("computes in the one-file page from disk", async () => {
    await page.page.evaluateOnNewDocument("delete globalThis.WebAssembly;");
    await page.goto(pathToFileURL(join(dist, "kv-capacity.html")).href);
    const { sequences } = await until("an answer or a refusal", () => look(page));
    assert.equal(sequences, 52);
  });
});
