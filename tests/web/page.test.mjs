// The page as a reader uses it, in three browsers: the real controls by keyboard and pointer, the numbers as shown.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { after, before, describe, it } from "node:test";
import { browsers } from "./browsers.mjs";
import { becomes, passes, reads, rests, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

// The textbook, once more and by hand: what the page has to show is computed here from the shapes alone.
const GPU = 80_000_000_000n;
const MODELS = {
  "llama-3-8b": { parameters: 8_030_261_248n, perToken: 2n * 32n * 8n * 128n * 2n },
  "llama-3.1-8b": { parameters: 8_030_261_248n, perToken: 2n * 32n * 8n * 128n * 2n },
  "llama-3-70b": { parameters: 70_553_706_496n, perToken: 2n * 80n * 8n * 128n * 2n },
};

function byHand(model, { gpus = 1n, context = 8192n, cacheBytes = 2n } = {}) {
  const { parameters, perToken } = MODELS[model];
  const total = GPU * gpus;
  const weights = parameters * 2n;
  const room = total - total / 10n - weights;
  const sequence = ((perToken * cacheBytes) / 2n) * context;
  const count = room / sequence;
  return { total, weights, room, sequence, count, cache: count * sequence, reserve: total / 10n };
}

const host = "kv-capacity";

const NO_WASM = {
  headers: {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:",
  },
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>no wasm</title>
    <script src="kv-capacity.js"></script></head>
    <body><kv-capacity><p id="example">A worked example.</p></kv-capacity></body></html>`,
};

/** Models with much and little to say of them, and languages with long words and from right to left. */
const FIRST = [
  ["llama-3.1-8b", "en"],
  ["gemma-3-27b", "en"],
  ["gemma-3-27b", "de"],
  ["gemma-3-27b", "ar"],
  ["gpt-oss-20b", "fr"],
  ["deepseek-v3", "ja"],
];

/** A page that holds what is put off until the next turn. */
const first = (
  model,
  language,
) => `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><title>first</title>
  <script>
    const { setTimeout: later } = window;
    const held = [];
    window.setTimeout = (job, wait) => (wait ? later(job, wait) : held.push(job));
    window.release = () => { for (const job of held.splice(0)) job(); };
  </script>
  <script src="kv-capacity.js"></script></head>
  <body><kv-capacity model="${model}" context="32768" gpus="4"><p id="example">A worked example.</p></kv-capacity>
  <p id="below">Below.</p></body></html>`;

/** Pages that the site's own are not. */
const PAGES = {
  "/strict.html": {
    headers: {
      "content-security-policy":
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'none'; require-trusted-types-for 'script'",
    },
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>strict</title>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity>example</kv-capacity><kv-capacity-table auto>example</kv-capacity-table></body></html>`,
  },
  "/no-wasm.html": NO_WASM,
  // Nothing but the first script is there.
  "/alone/no-wasm.html": NO_WASM,
  "/alone/kv-capacity.js": { file: "kv-capacity.js" },
  "/twice.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>twice</title></head>
      <body><kv-capacity id="early"></kv-capacity>
      <script>document.getElementById("early").context = 32768; document.getElementById("early").gpus = 2;</script>
      <script src="kv-capacity.js"></script><script src="kv-capacity.js?again"></script>
      <kv-capacity id="late" model="llama-3-70b" gpus="4" lock="model gpus"></kv-capacity></body></html>`,
  },
  "/attributes.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>attributes</title>
      <script src="kv-capacity.js"></script></head><body>
      <kv-capacity model="meta-llama/Meta-Llama-3-8B" weights="fp8" kv="fp8" gpu="80gb" gpus="2" context="4096"
        engine="textbook" options='{"reserve": 0.2}'></kv-capacity></body></html>`,
  },
  "/waiting.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>waiting</title>
      <script>
        // As browsers that compile only small modules at once do; and holds the kernel back until the test lets it go.
        const { instantiate, Module } = WebAssembly;
        WebAssembly.Module = function (bytes) {
          if (bytes.byteLength > 4096) throw new RangeError("larger than 4KB");
          return new Module(bytes);
        };
        WebAssembly.instantiate = (...all) => new Promise((resolve) => { window.release = resolve; }).then(() => instantiate(...all));
      </script>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity><p id="example">A worked example.</p></kv-capacity><p id="below">Below.</p></body></html>`,
  },
  ...Object.fromEntries(
    FIRST.map(([model, language]) => [`/first-${model}-${language}.html`, { html: first(model, language) }]),
  ),
};

for (const [name, launch] of Object.entries(browsers)) {
  describe(name, { timeout: 600_000 }, () => {
    let site;
    let page;
    let reader;
    let close;

    before(async () => {
      ({ site, page, reader, close } = await visit(launch, PAGES));
    });
    after(() => close?.());

    /** The table comes when a reader does. */
    const tableInView = () =>
      until("the table's button", () =>
        page.evaluate(() => {
          const table = document.querySelector("kv-capacity-table");
          table.scrollIntoView({ behavior: "instant" });
          return table.shadowRoot?.querySelector("button")?.disabled === false;
        }),
      );
    /** Opens a page and waits for what stands above its calculator, which has a height of its own once it has come. */
    const fresh = async (path = "/") => {
      await reader.open(`${site.origin}${path}?${Math.random()}`);
      await until("what stands above", () =>
        page.evaluate(() => {
          const calculator = document.querySelector("kv-capacity");
          const above = [...document.querySelectorAll("main > *")].filter(
            (node) => node.compareDocumentPosition(calculator) & Node.DOCUMENT_POSITION_FOLLOWING,
          );
          return above.every(
            (node) => !/^kv-/.test(node.localName) || node.shadowRoot?.querySelector(".kv")?.className === "kv",
          );
        }),
      );
    };

    it("opens at the textbook's figures", async () => {
      await fresh();
      const told = await reader.told();
      assert.deepEqual(told.token, { figure: "128 KiB", small: "8 KV heads × 32 layers", title: "131,072 bytes" });
      assert.deepEqual(told.sequence, { figure: "1.07 GB", small: "8,192 tokens", title: "1,073,741,824 bytes" });
      assert.deepEqual(told.room, { figure: "56 GB", small: "weights 16 GB", title: "55,939,477,504 bytes" });
      assert.deepEqual(told.count, { figure: "52", small: "conversations", title: "" });
      assert.equal(told.context, "Context length · 8,192 tokens");
      assert.equal(told.gpus, "GPUs · 80 GB each");
      assert.equal(
        told.sentence,
        "The weights take 16 GB, which leaves about 56 GB. At 8,192 tokens a conversation’s cache is 1.07 GB, " +
          "so 52 conversations fit. Twice the context fits about half as many.",
      );
      assert.deepEqual(told.legend, [
        "Weights16.1 GB",
        "KV cache, 52 conversations55.8 GB",
        "Left over105 MB",
        "Kept free, 10%8 GB",
      ]);
    });

    it("stays within its folder, without a complaint and without a shift", async () => {
      await fresh();
      await wait(300);
      const { problems, shifts, entries } = await page.evaluate(() => ({
        problems: window.problems,
        shifts: window.shifts,
        entries: performance.getEntriesByType("resource").map((entry) => entry.name),
      }));
      assert.deepEqual(problems, []);
      assert.deepEqual(page.problems, []);
      assert.deepEqual(shifts, []);
      for (const url of [...entries, ...page.requests]) {
        assert.ok(url.startsWith(`${site.origin}/`) || url.startsWith("data:") || url === "about:blank", url);
      }
      assert.ok(entries.some((url) => url.endsWith("/kv-capacity.js")));
    });

    it("D35: follows the context slider by keyboard, Page Down downwards", async () => {
      await fresh();
      await reader.focus("#context");
      await page.press("ArrowRight", 4);
      await reader.planned(({ context }) => context === 32768);
      let told = await reader.told();
      assert.equal(told.context, "Context length · 32,768 tokens");
      assert.equal((await reader.control("#context")).valuetext, "32,768 tokens");
      assert.equal(told.count.figure, "13");
      assert.equal(told.sequence.figure, "4.29 GB");
      await page.press("End");
      await reader.planned(({ context }) => context === 131072);
      told = await reader.told();
      assert.equal(told.context, "Context length · 131,072 tokens");
      assert.equal(told.count.figure, "3");
      await page.press("Home");
      await reader.planned(({ context }) => context === 1024);
      told = await reader.told();
      assert.equal(told.context, "Context length · 1,024 tokens");
      assert.equal(told.count.figure, String(byHand("llama-3.1-8b", { context: 1024n }).count));
      await page.press("PageUp");
      const { context: higher } = await reader.planned(({ context }) => context > 1024);
      await page.press("PageDown");
      await until("a shorter context", async () => (await reader.plan()).context < higher);
    });

    it("follows the pointer, says so as it goes, and moves nothing else", async () => {
      await fresh();
      await rests(() => reader.middle("#context"));
      await page.evaluate(() => {
        window.heard = [];
        window.places = new Set();
        const root = document.querySelector("kv-capacity").shadowRoot;
        for (const type of ["kv-input", "kv-change"]) {
          document.addEventListener(type, ({ detail }) => {
            heard.push({ type, context: detail.request.context, sequences: detail.plan.sequences });
            const parts = [".figures", ".bar", ".legend", ".sentence", "summary", ".notes"].map((part) =>
              root.querySelector(part),
            );
            const nodes = [...parts, document.querySelector("h2"), document.querySelector("kv-capacity")];
            places.add(
              nodes
                .map((node) => {
                  const box = node.getBoundingClientRect();
                  return `${box.left} ${box.top + scrollY} ${box.width}`;
                })
                .join("; "),
            );
          });
        }
      });
      await reader.drag("context", 1);
      await until("the drop", () => page.evaluate(() => heard.some(({ type }) => type === "kv-change")));
      const { heard, places } = await page.evaluate(() => ({ heard, places: [...places] }));
      assert.equal((await reader.told()).count.figure, "3");
      const inputs = heard.filter(({ type }) => type === "kv-input");
      assert.ok(inputs.length >= 3, `heard ${inputs.length} kv-input events`);
      assert.deepEqual(
        heard.filter(({ type }) => type === "kv-change"),
        [{ type: "kv-change", context: 131072, sequences: 3 }],
      );
      for (const { context, sequences } of heard) {
        assert.equal(sequences, Number(byHand("llama-3.1-8b", { context: BigInt(context) }).count));
      }
      assert.equal(places.length, 1, places.join("\n"));
      assert.equal(await page.evaluate(() => document.querySelector("kv-capacity").getAttribute("context")), "131072");
    });

    it("shows the 70B model on four GPUs, on one, and with too long a context", async () => {
      await fresh();
      await reader.choose("model", "llama-3-70b");
      let told = await reader.told();
      assert.equal(told.token.figure, "320 KiB");
      assert.equal(told.token.title, "327,680 bytes");
      assert.equal(
        told.sentence,
        "The weights need 141 GB, but only 72 GB of the 80 GB can be used, so there is no room for any conversation. " +
          "It takes at least 2 GPUs of this kind to hold the weights.",
      );
      assert.equal(told.count.figure, "0");
      assert.equal(told.count.small, "the weights do not fit");
      assert.deepEqual(told.legend, ["Weights141 GB", "Memory there is80 GB"]);
      const bar = await reader.bar();
      const { weights } = byHand("llama-3-70b");
      assert.ok(Math.abs(bar.end - (bar.width * Number(GPU)) / Number(weights)) <= 1, JSON.stringify(bar));

      await reader.focus("#gpus");
      await page.press("ArrowRight", 3);
      await reader.planned(({ deployment }) => deployment.gpus === 4);
      told = await reader.told();
      assert.equal((await reader.control(".gpus-field .exact")).value, "4");
      assert.equal(told.room.figure, "147 GB");
      assert.equal(told.count.figure, "54");

      await reader.enter("context", "131072");
      told = await reader.told();
      assert.equal(told.count.figure, "3");
      assert.equal(told.context, "Context length · 131,072 tokens");

      await reader.drag("gpus", 1 / 15);
      await reader.planned(({ deployment }) => deployment.gpus === 2);
      told = await reader.told();
      const { room } = byHand("llama-3-70b", { gpus: 2n });
      const longest = room / MODELS["llama-3-70b"].perToken;
      assert.equal(
        told.sentence,
        "The weights take 141 GB, which leaves about 2.89 GB. At 131,072 tokens a single conversation’s cache is 43 GB, " +
          `so not even one fits. The longest context that would is ${longest.toLocaleString("en")} tokens.`,
      );
      assert.equal(told.count.figure, "0");
      assert.equal(told.count.small, "one alone does not fit");
    });

    it("has room for twice as many in an 8-bit cache, beside the same weights", async () => {
      await fresh();
      await reader.choose("model", "llama-3-8b");
      await reader.choose("kv", "fp8");
      const told = await reader.told();
      assert.equal(told.token.figure, "64 KiB");
      assert.equal(told.count.figure, String(byHand("llama-3-8b", { cacheBytes: 1n }).count));
      assert.equal(told.count.figure, "104");
      assert.equal(told.room.small, "weights 16 GB");
    });

    it("draws the bar to scale", async () => {
      await fresh();
      const drawn = async (expected, cuts) => {
        const bar = await reader.bar();
        const total = Number(expected.total);
        const bytes = {
          weights: expected.weights,
          cache: expected.cache,
          left: expected.room - expected.cache,
          reserve: expected.reserve,
        };
        assert.deepEqual(
          bar.segments.map(({ kind }) => kind),
          Object.keys(bytes),
        );
        let left = 0;
        for (const segment of bar.segments) {
          const width = (bar.width * Number(bytes[segment.kind])) / total;
          assert.ok(Math.abs(segment.width - width) <= 1, `${segment.kind}: ${segment.width} for ${width}`);
          assert.ok(Math.abs(segment.left - left) <= 1, `${segment.kind} begins at ${segment.left}, not ${left}`);
          left += width;
        }
        assert.equal(bar.cuts, cuts);
      };
      // How wide the bar is, on which its cuts hang, is told by the browser later.
      const check = (...all) => passes(() => drawn(...all));
      await check(byHand("llama-3.1-8b"), 51);
      await reader.focus("#context");
      await page.press("End");
      await check(byHand("llama-3.1-8b", { context: 131072n }), 2);
      // Too thin to see: one solid band.
      await page.press("Home");
      await check(byHand("llama-3.1-8b", { context: 1024n }), 0);
    });

    it("keeps what was typed, marks it, and shows no number for what was refused", async () => {
      await fresh();
      await reader.enter("context", "16,384");
      const good = await reader.told();
      assert.equal(good.count.figure, "26");
      for (const text of ["1.5", "-3", "0", "abc", "3000000000", "81,92", "1e400", "9007199254740993", "NaN"]) {
        await reader.enter("context", text);
        const told = await reader.told();
        const box = await reader.control(".context-field .exact");
        assert.equal(box.value, text);
        assert.equal(box.invalid, "true", text);
        assert.ok(told.stale, `${text} is not marked as refused`);
        assert.equal(told.context, "Context length", text);
        assert.match(told.problem, /^Context length must be a whole number of tokens from 1 to 2,147,483,64[78]\.$/);
        assert.deepEqual({ ...told, stale: false, problem: "", context: good.context }, good, text);
      }
      await reader.enter("context", "10000");
      const told = await reader.told();
      assert.ok(!told.stale);
      assert.equal(told.problem, "");
      assert.equal((await reader.control(".context-field .exact")).value, "10,000");
      assert.equal((await reader.control(".context-field .exact")).invalid, null);
      assert.equal((await reader.control("#context")).valuetext, "10,000 tokens");
      assert.equal(told.count.figure, String(byHand("llama-3.1-8b", { context: 10000n }).count));

      await reader.enter("gpus", "40");
      await reader.planned(({ deployment }) => deployment.gpus === 40);
      assert.equal((await reader.control("#gpus")).value, "16");
      assert.equal((await reader.control("#gpus")).valuetext, "40 GPUs");
      await reader.enter("gpus", "2.5");
      assert.equal((await reader.control(".gpus-field .exact")).invalid, "true");
      assert.match((await reader.told()).problem, /^The number of GPUs must be whole, from 1 to [\d,]+\.$/);
    });

    it("halves no single conversation", async () => {
      await fresh();
      for (const [context, count, said] of [
        [131072, 3, true],
        [262144, 1, false],
      ]) {
        await page.evaluate((context) => {
          document.querySelector("kv-capacity").context = context;
        }, context);
        await reader.planned((plan) => plan.sequences === count && plan.decides === "context");
        assert.equal(/Twice the context/.test((await reader.told()).sentence), said, `${count} conversations`);
      }
    });

    it("D36, D37: speaks once, in one place, after a change has settled", async () => {
      await fresh();
      await page.evaluate(() => {
        window.spoken = [];
        window.mended = 0;
        // The rest before what is spoken is made longer, lest a slow machine take as long from key to key.
        const real = window.setTimeout;
        window.setTimeout = (then, time, ...rest) => real(then, time > 500 ? 4 * time : time, ...rest);
        new MutationObserver((records) => {
          const region = document.querySelector("[role=status]");
          const said = region?.textContent;
          if (said && spoken.at(-1) !== said) spoken.push(said);
          mended += records.filter(({ type, target }) => type === "characterData" && region?.contains(target)).length;
        }).observe(document.body, { childList: true, subtree: true, characterData: true });
      });
      await reader.focus("#context");
      await page.press("ArrowRight", 4);
      await reader.planned(({ context }) => context === 32768);
      await until("the sentence to be spoken", () => page.evaluate(() => spoken.length > 0));
      // As long as a second one would take.
      await wait(3000);
      const { sentence } = await reader.told();
      assert.deepEqual(
        (await page.evaluate(() => spoken)).map((text) => text.replaceAll("\u00a0", " ")),
        [sentence],
      );
      assert.equal(await page.evaluate(() => document.querySelectorAll("[aria-live], [role=status]").length), 1);
      // The next is a text of its own: of one that is mended in place, some readers speak only what differs.
      await page.press("ArrowLeft");
      await until("the next sentence", () => page.evaluate(() => spoken.length > 1));
      assert.equal(await page.evaluate(() => mended), 0);
      // What is spoken is not seen, and makes no page wider.
      await page.resize(320, 1000);
      const sizes = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return { scrollWidth, clientWidth };
      });
      await page.resize(1280, 1000);
      assert.equal(sizes.scrollWidth, sizes.clientWidth);
    });

    it("is worked by keyboard alone, each control with its name", async () => {
      await fresh();
      await reader.focus("#model");
      const names = [];
      for (let i = 0; i < 11; i++) {
        names.push(
          await page.evaluate(() => {
            const node = document.querySelector("kv-capacity").shadowRoot.activeElement;
            window.left = node;
            return node && (node.getAttribute("aria-label") ?? node.labels?.[0]?.firstChild.data ?? node.textContent);
          }),
        );
        await page.press("Tab");
        await until("the focus to go on", () =>
          page.evaluate(() => document.querySelector("kv-capacity").shadowRoot.activeElement !== window.left),
        );
      }
      assert.deepEqual(names, [
        "Model",
        "Search the models",
        "Weights stored as",
        "KV cache stored as",
        "GPU",
        "GPUs",
        "GPUs, exact number",
        "Context length",
        "Context length, exact number",
        "What would it take?",
        "Show the arithmetic",
      ]);
    });

    it("shows the arithmetic with its numbers in place", async () => {
      await fresh();
      await reader.focus("[part=arithmetic] summary");
      await page.press("Enter");
      const steps = await until("the steps", () =>
        page.evaluate(() => {
          const items = [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".steps li")];
          return items.length > 0 && items.map((item) => item.textContent);
        }),
      );
      assert.ok(
        steps.includes("KV cache per token2 × 32 layers × 8 KV heads × 128 × 2 bytes = 131,072 bytes"),
        steps.join("\n"),
      );
      assert.ok(
        steps.some((step) => step.includes("8,192 tokens = 1,073,741,824 bytes")),
        steps.join("\n"),
      );
      assert.ok(
        steps.some((step) => step.endsWith("= 52 conversations, rounded down")),
        steps.join("\n"),
      );
    });

    it("fills the table when it is asked to", async () => {
      await fresh();
      await tableInView();
      const cells = () =>
        page.evaluate(() =>
          [...document.querySelector("kv-capacity-table").shadowRoot.querySelectorAll("table")].map((table) =>
            [...table.querySelectorAll("tbody tr")].map((row) =>
              [...row.children].map((cell) => cell.textContent.replaceAll("\u00a0", " ").trim()),
            ),
          ),
        );
      assert.ok((await cells()).flat().every((row) => row.slice(1).every((cell) => cell === "")));
      const height = () => page.evaluate(() => document.querySelector("kv-capacity-table").offsetHeight);
      const before = await height();
      await reader.click("button", "kv-capacity-table");
      await until("the table", async () => (await cells())[0][0][1] !== "");
      assert.equal(await height(), before);
      const [small, large] = await cells();
      assert.deepEqual(small[3], ["8,192", "1.07 GB", "56 GB", "52"]);
      assert.deepEqual(small[5], ["32,768", "4.29 GB", "56 GB", "13"]);
      assert.deepEqual(small[7], ["131,072", "17.2 GB", "56 GB", "3"]);
      assert.deepEqual(large[3], ["8,192", "2.68 GB", "147 GB", "54"]);
      assert.deepEqual(large[7], ["131,072", "42.9 GB", "147 GB", "3"]);
      for (const [rows, model, gpus] of [
        [small, "llama-3-8b", 1n],
        [large, "llama-3-70b", 4n],
      ]) {
        assert.deepEqual(
          rows.map((row) => row[3]),
          [1024n, 2048n, 4096n, 8192n, 16384n, 32768n, 65536n, 131072n].map((context) =>
            String(byHand(model, { gpus, context }).count),
          ),
        );
      }
      const line = await page.evaluate(() =>
        document
          .querySelector("kv-capacity-table")
          .shadowRoot.querySelector(".gqa")
          .textContent.replaceAll("\u00a0", " "),
      );
      assert.match(line, /8 KV heads among 64 query heads and caches 320 KiB per token/);
      assert.match(
        line,
        /it would be 2,560 KiB, 8 times as much, and of the 54 conversations that fit at 8,192 tokens 6 would be left\.$/,
      );
    });

    it("takes a property's text as an attribute's, since frameworks write attributes as properties", async () => {
      await fresh();
      const { request, plan, error } = await page.evaluate(async () => {
        const element = document.querySelector("kv-capacity");
        const texts = { model: " llama-3-70b ", gpus: "4", context: "16384", kv: '{"k": "fp8", "v": "bf16"}' };
        Object.assign(element, { ...texts, options: '{"reserve": 0.2}' });
        await Promise.resolve();
        const { request, plan, error } = element;
        return { request, plan, error };
      });
      assert.equal(error, null);
      const kv = { k: "fp8", v: "bf16" };
      assert.deepEqual(request, { model: "llama-3-70b", gpus: 4, context: 16384, kv, options: { reserve: 0.2 } });
      assert.deepEqual([plan.deployment.gpus, plan.context], [4, 16384]);
    });

    it("keeps the keys of its controls from the page's shortcuts, and no others", async () => {
      await fresh();
      await page.evaluate(() => {
        window.heard = [];
        document.addEventListener("keydown", ({ key }) => window.heard.push(key));
      });
      await reader.focus(".context-field .exact");
      await page.type("n/");
      await reader.focus("#context");
      for (const key of ["ArrowRight", "Home", "PageUp"]) await page.press(key);
      await reader.focus("#model");
      await page.press("ArrowDown");
      await page.press("Escape");
      await page.press("Tab");
      await becomes(() => page.evaluate(() => window.heard), ["Escape", "Tab"]);
    });

    it("takes its state from attributes, and keeps properties that came early", async () => {
      await fresh("/attributes.html");
      let plan = await reader.plan();
      assert.equal(plan.model.id, "llama-3-8b");
      assert.deepEqual([plan.weights, plan.kv.k, plan.deployment.gpus, plan.context], ["fp8", "fp8", 2, 4096]);
      assert.equal((await reader.told()).legend.at(-1), "Kept free, 20%32 GB");
      assert.equal((await reader.control("#model")).value, "llama-3-8b");
      await page.evaluate(async () => {
        const element = document.querySelector("kv-capacity");
        element.context = 16384;
        element.setAttribute("gpus", "3");
        await Promise.resolve();
      });
      plan = await reader.plan();
      assert.deepEqual([plan.deployment.gpus, plan.context], [3, 16384]);
      assert.deepEqual(
        await page.evaluate(() => {
          const element = document.querySelector("kv-capacity");
          return [element.getAttribute("context"), element.gpus];
        }),
        ["16384", 3],
      );
      // What a reader types in a field needs no second script to be refused.
      await reader.enter("context", "plenty");
      await reads(async () => (await reader.told()).problem, /^Context length must be a whole number/);
      assert.equal(
        (await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name))).filter((name) =>
          name.includes("kv-capacity-more"),
        ).length,
        0,
      );
      // Attributes pass the same check as what is typed, and give way to the default.
      await page.evaluate(() => document.querySelector("kv-capacity").setAttribute("context", "many"));
      await until("the default", async () => /8,192 is used instead of “many”/.test((await reader.told()).problem));
      assert.ok(!(await reader.told()).stale);
      assert.equal((await reader.control(".context-field .exact")).value, "8,192");
      // That two fields contradict each other is not said by what one of them accepts.
      await page.evaluate(() => {
        const element = document.querySelector("kv-capacity");
        element.context = 8192;
        element.setAttribute("gpus", "4");
        element.setAttribute("tensor_parallel", "3");
      });
      await until("the contradiction", async () =>
        /^gpus: 4 is not tensor_parallel/.test((await reader.told()).problem),
      );

      await fresh("/twice.html");
      await until("the other one", () => page.evaluate(() => Boolean(document.getElementById("late").plan)));
      const early = await page.evaluate(() => {
        const { plan } = document.getElementById("early");
        return [plan.context, plan.deployment.gpus];
      });
      assert.deepEqual(early, [32768, 2]);
      assert.deepEqual(await page.evaluate(() => problems), []);
      const locked = await page.evaluate(() => {
        const root = document.getElementById("late").shadowRoot;
        return [...root.querySelectorAll("select, input")]
          .filter((node) => node.disabled)
          .map((node) => node.id || "exact");
      });
      assert.deepEqual(locked, ["model", "gpus", "exact"]);
      // One kernel for the page, however many elements and scripts.
      assert.ok(
        await page.evaluate(async () => {
          const shared = globalThis[Symbol.for("kv-capacity.kernel.1")];
          return Boolean(shared.core) && Object.keys(shared).length === 1;
        }),
      );
    });

    it("D32: survives being moved, taken out, put back and copied", async () => {
      await fresh();
      await reader.enter("context", "32768");
      const count = await page.evaluate(async () => {
        const element = document.querySelector("kv-capacity");
        const parent = element.parentNode;
        const copy = element.cloneNode(true);
        element.remove();
        parent.append(element);
        const frame = document.createElement("iframe");
        document.body.append(frame);
        frame.contentDocument.body.append(element);
        parent.prepend(element);
        parent.append(copy);
        await copy.ready;
        window.heard = 0;
        document.addEventListener("kv-change", () => heard++);
        return [
          element.plan.sequences,
          copy.plan.sequences,
          getComputedStyle(copy.shadowRoot.querySelector(".bar")).display,
        ];
      });
      assert.deepEqual(count, [13, 13, "flex"]);
      await reader.enter("context", "8192");
      await reader.planned(({ context }) => context === 8192);
      assert.equal((await reader.told()).count.figure, "52");
      assert.equal(await page.evaluate(() => heard), 1);
      assert.equal(
        await page.evaluate(
          () => getComputedStyle(document.querySelector("kv-capacity").shadowRoot.querySelector(".bar")).display,
        ),
        "flex",
      );
    });

    it("carries its state in the link, by ids", async () => {
      await fresh("/embed.html");
      await reader.choose("model", "llama-3-70b");
      await reader.enter("gpus", "4");
      const hash = "#model=llama-3-70b&gpus=4";
      await becomes(() => page.evaluate(() => location.hash), hash);
      await reader.open(`${site.origin}/embed.html?again${hash}`);
      assert.equal((await reader.told()).count.figure, "54");
    });

    it("D1, D4, D5, D44: works under a policy without inline styles, connections or markup strings", async () => {
      await fresh("/strict.html");
      assert.deepEqual(await page.evaluate(() => problems), []);
      assert.equal((await reader.told()).count.figure, "52");
      const bar = await reader.bar();
      assert.ok(bar.segments[0].width > 10);
      assert.equal(
        await page.evaluate(
          () => getComputedStyle(document.querySelector("kv-capacity").shadowRoot.querySelector(".bar")).display,
        ),
        "flex",
      );
    });

    it("computes by JavaScript alone where WebAssembly is refused", async () => {
      await reader.open(`${site.origin}/no-wasm.html`);
      assert.equal((await reader.told()).count.figure, "52");
      assert.ok(site.asked.includes("/kv-capacity-nowasm.js"));
    });

    it("D3: says what was refused where that is refused too, and leaves the example", async () => {
      await page.goto(`${site.origin}/alone/no-wasm.html`);
      const { text, example, body } = await until("the refusal", () =>
        page.evaluate(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          const trouble = root.querySelector(".trouble");
          if (getComputedStyle(trouble).display === "none") return null;
          const shown = (node) =>
            node.getBoundingClientRect().height > 0 && getComputedStyle(node).visibility === "visible";
          return {
            text: trouble.textContent,
            example: shown(document.getElementById("example")),
            body: shown(root.querySelector(".body")),
          };
        }),
      );
      assert.match(text, /'wasm-unsafe-eval' to script-src/);
      assert.ok(example);
      assert.ok(!body);
    });

    it("shows its own content until the kernel is there, in the space that it will take", async () => {
      await page.goto(`${site.origin}/waiting.html`);
      const look = () =>
        page.evaluate(() => {
          const example = document.getElementById("example");
          return {
            example: example.getBoundingClientRect().height > 0,
            height: document.querySelector("kv-capacity").offsetHeight,
            below: document.getElementById("below").getBoundingClientRect().top,
          };
        });
      await until("the kernel to be held", () => page.evaluate(() => Boolean(window.release)));
      const before = await look();
      assert.ok(before.example);
      await page.evaluate(() => release());
      await until("the answer", () => page.evaluate(() => Boolean(document.querySelector("kv-capacity").plan)));
      await becomes(look, { ...before, example: false });
    });

    for (const width of [320, 768, 1280])
      it(`has a frame with the first figures before all else, which keeps its room, at ${width} pixels`, async (test) => {
        await page.resize(width, 1000);
        test.after(() => page.resize(1280, 1000));
        for (const [model, language] of FIRST) {
          await page.goto(`${site.origin}/first-${model}-${language}.html`);
          const look = () =>
            page.evaluate(() => {
              const root = document.querySelector("kv-capacity").shadowRoot;
              const top = (node) => node.getBoundingClientRect().top;
              return {
                figures: [...root.querySelectorAll(".value")].map((node) => node.textContent),
                sentence: root.querySelector(".sentence").textContent,
                seen: getComputedStyle(root.querySelector(".figures")).visibility,
                example: document.getElementById("example").getBoundingClientRect().height > 0,
                places: [...root.querySelectorAll(".field, .figure, .bar, .legend, .sentence, summary, .notes")].map(
                  top,
                ),
                below: top(document.getElementById("below")),
              };
            });
          const rest = () =>
            page.evaluate(() => {
              const root = document.querySelector("kv-capacity").shadowRoot;
              return {
                choices: root.querySelectorAll("option").length > 50,
                drawn: root.querySelector(".segment") !== null,
                context: Number(root.querySelector("#context").value) > 0,
              };
            });
          const first = await until("the answer", () =>
            page.evaluate(() => Boolean(document.querySelector("kv-capacity").plan)),
          ).then(look);
          if (model === "llama-3.1-8b") {
            const { count } = byHand(model, { context: 32768n, gpus: 4n });
            assert.deepEqual(first.figures, ["128KiB", "4.29GB", "272GB", `${count}`]);
          }
          assert.equal(first.seen, "visible");
          assert.ok(!first.example && first.sentence);
          assert.deepEqual(await rest(), { choices: false, drawn: false, context: false });
          await page.evaluate(() => {
            release();
            return document.querySelector("kv-capacity").ready;
          });
          assert.deepEqual(await look(), first, `${model}, ${language}`);
          assert.deepEqual(await rest(), { choices: true, drawn: true, context: true });
        }
      });

    it("is whole on paper, however early it is printed", async () => {
      await page.goto(`${site.origin}/first-gemma-3-27b-en.html`);
      await until("the answer", () => page.evaluate(() => Boolean(document.querySelector("kv-capacity").plan)));
      const told = await page.evaluate(() => {
        const element = document.querySelector("kv-capacity");
        let shown = 0;
        element.addEventListener("kv-shown", () => shown++);
        const count = () => element.shadowRoot.querySelectorAll("option").length;
        const before = count();
        dispatchEvent(new Event("beforeprint"));
        const after = count();
        release();
        return { before, after, shown, segments: element.shadowRoot.querySelectorAll(".segment").length };
      });
      assert.ok(told.before === 0 && told.after > 50 && told.segments > 2, JSON.stringify(told));
      assert.equal(told.shown, 1);
    });

    it("reads in 320 pixels, and takes the page's colours, light and dark", async () => {
      await fresh();
      await tableInView();
      const overflowing = await page.evaluate(() => {
        document.documentElement.style.width = "320px";
        document.querySelector("main").style.paddingInline = "1rem";
        document.querySelector("kv-capacity-table").run();
        const out = [];
        for (const host of document.querySelectorAll("kv-capacity, kv-capacity-table")) {
          for (const node of host.shadowRoot.querySelectorAll("*")) {
            if (node.closest("svg, .bar")) continue;
            const box = node.getBoundingClientRect();
            if (box.width > 0 && (box.right > 320.5 || box.left < -0.5))
              out.push(`${node.localName}.${node.className} ${box.left} ${box.right}`);
          }
        }
        document.documentElement.style.width = "";
        return out;
      });
      assert.deepEqual(overflowing, []);
      const colours = await page.evaluate(() => {
        const look = () => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          return [".sentence", ".cache", "#model"].map((part) => {
            const style = getComputedStyle(root.querySelector(part));
            return part === ".cache" ? style.backgroundColor : style.color;
          });
        };
        document.documentElement.style.colorScheme = "light";
        const light = look();
        document.documentElement.style.colorScheme = "dark";
        return { light, dark: look() };
      });
      for (let i = 0; i < 3; i++) assert.notEqual(colours.light[i], colours.dark[i]);
    });

    it("D10, D11: works when opened from disk", async () => {
      await reader.open(pathToFileURL(`${process.env.KV_SITE ?? dist}/index.html`).href);
      await reader.focus("#context");
      await page.press("End");
      await reader.planned(({ context }) => context === 131072);
      assert.equal((await reader.told()).count.figure, "3");
      assert.ok(await page.evaluate((tag) => document.querySelector(tag).matches(":defined"), host));
    });
  });
}
