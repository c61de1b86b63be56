// The answer taken elsewhere: copied, drawn, and as a link that opens again, in three browsers and after years.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { browsers } from "./browsers.mjs";
import { CONFIG } from "./fixtures.mjs";
import { reads, until } from "./reader.mjs";
import { visit } from "./visit.mjs";

/** Links that were written once, with the counts that they showed. */
const KEPT = readFileSync(new URL("../data/links.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => line.split("\t"));

const OWN = {
  name: 'Ours & "theirs" | #1 <b>%20+=;',
  parameters: 1_000_000_007,
  max_context: 4096,
  layers: [{ count: 4, kind: "full", kv_heads: 2, key_width: 64, value_width: 64 }],
};

/** Requests that have every key between them. */
const REQUESTS = [
  {
    model: "llama-3.1-8b",
    weights: "fp8",
    kv: { k: "q8_0", v: "q4_0" },
    gpu: { memory_bytes: 24_000_000_000 },
    gpus: 3,
    context: 10_000,
    kv_heads: 4,
    options: { reserve: 0.125 },
  },
  {
    model: "meta-llama/Llama-3.1-70B-Instruct",
    engine: "vllm",
    gpu: "h100-sxm-80gb",
    gpus: 8,
    tensor_parallel: 2,
    pipeline_parallel: 2,
    data_parallel: 2,
    kv: "fp8",
    context: 16_384,
    options: { gpu_memory_utilization: 0.85, max_num_batched_tokens: 4096, enforce_eager: true },
  },
  { model: OWN, context: 2048, parameters: 1_000_000_009 },
  { config: CONFIG, weight_bytes: 3_000_000_001, gpu: "rtx-4090" },
  { model: "llama-3.1-8b", context: 3_000_000_000 },
  { model: "no such model", gpus: 2 },
];

const PAGES = {
  "/linked.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>linked</title>
      <script src="kv-capacity.js"></script></head><body><kv-capacity link></kv-capacity></body></html>`,
  },
  "/plain.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>plain</title>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity id="one"></kv-capacity><kv-capacity id="two" gpus="2"></kv-capacity></body></html>`,
  },
};

/** A request as text, its config as an object, since a link carries the one and a page may have given the other. */
const plain = ({ config, ...rest }) =>
  JSON.parse(
    JSON.stringify({ ...rest, ...(config && { config: typeof config === "string" ? JSON.parse(config) : config }) }),
  );

const visitWith = async (launch) => {
  const all = await visit(launch, PAGES);
  const { site, page, reader } = all;
  const within = (fn, ...args) => page.evaluate(fn, ...args);
  return {
    ...all,
    within,
    fresh: (path = "/linked.html", hash = "") => reader.open(`${site.origin}${path}?${Math.random()}${hash}`),
    /** Opens the part for sharing; what is copied is kept in `window.copied`. */
    async openShare() {
      await within(() => {
        window.copied = [];
        const clipboard = { writeText: async (text) => void copied.push(text) };
        Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
      });
      await reader.click(".panel.share > summary");
      await until("the ways to share", () =>
        within(() => Boolean(document.querySelector("kv-capacity").shadowRoot.querySelector(".share .button"))),
      );
    },
    press: (name) =>
      within((name) => {
        const buttons = [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".share .button")];
        const button = buttons.find((one) => one.textContent === name);
        if (button.disabled) return false;
        button.click();
        return true;
      }, name),
    copied: () => until("something copied", () => within(() => copied.pop())),
    /** What the calculator asks and what it is told. */
    async settled() {
      await until("the answer", () =>
        within(() => {
          const { plan, error } = document.querySelector("kv-capacity");
          return Boolean(plan || error);
        }),
      );
      return within(() => {
        const { request, plan, error } = document.querySelector("kv-capacity");
        const text = JSON.stringify(request, (_key, one) => (typeof one === "bigint" ? String(one) : one));
        return { request: JSON.parse(text), plan, error };
      });
    },
  };
};

/** Each request's link as Chromium gives it, and what it shows there. */
const links = [];

before(async () => {
  const { within, fresh, openShare, press, copied, settled, close } = await visitWith(browsers.Chromium);
  try {
    for (const request of REQUESTS) {
      await fresh();
      await openShare();
      await within((request) => {
        document.querySelector("kv-capacity").request = request;
        return new Promise((resolve) => document.querySelector("kv-capacity").addEventListener("kv-shown", resolve));
      }, request);
      const shown = await settled();
      await press("Copy link");
      links.push({ hash: (await copied()).match(/#.*/s)[0], shown });
    }
  } finally {
    await close();
  }
});

for (const [name, launch] of Object.entries(browsers)) {
  describe(name, { timeout: 600_000 }, () => {
    let site;
    let page;
    let reader;
    let close;
    let within;
    let fresh;
    let openShare;
    let press;
    let copied;
    let settled;

    before(async () => {
      ({ site, page, reader, close, within, fresh, openShare, press, copied, settled } = await visitWith(launch));
    });
    after(() => close?.());

    it("opens a link of another browser in the same state", async () => {
      assert.equal(links.length, REQUESTS.length);
      for (const [i, { hash, shown }] of links.entries()) {
        await page.goto(`${site.origin}/linked.html?${Math.random()}${hash}`);
        const here = await settled();
        assert.deepEqual(plain(here.request), plain(shown.request), hash);
        if (i < 4) assert.deepEqual(plain(shown.request), plain(REQUESTS[i]), hash);
        // A link carries what was asked, and what was refused was not.
        assert.ok(!here.error, hash);
        // Whoever names a config as text or as an object gets the same answer, to the last figure.
        assert.deepEqual(here.plan, shown.plan, hash);
      }
    });

    it("takes the state of each calculator from its own keys where the page keeps none", async () => {
      await fresh("/plain.html");
      await openShare();
      await within(() => {
        document.querySelector("kv-capacity").context = 32768;
      });
      await reader.planned(({ context }) => context === 32768);
      await press("Copy link");
      const link = await copied();
      assert.deepEqual(Object.fromEntries(new URLSearchParams(new URL(link).hash.slice(1))), {
        "one.model": "llama-3.1-8b",
        "one.context": "32768",
      });
      await fresh("/plain.html", link.match(/#.*/s)[0]);
      const told = () => within(() => ["one", "two"].map((id) => document.getElementById(id).plan?.context));
      await until("both", async () => (await told()).every(Boolean));
      assert.deepEqual(await told(), [32768, 8192]);
      // A frame's page takes them too, and stays as it is dressed.
      await fresh("/embed.html", "#theme=dark&context=1024");
      await openShare();
      await within(() => {
        document.querySelector("kv-capacity").gpus = 4;
      });
      await reader.planned(({ deployment }) => deployment.gpus === 4);
      await press("Copy link");
      const frame = await copied();
      assert.match(frame, /&theme=dark$/);
      await fresh("/embed.html", frame.match(/#.*/s)[0]);
      const { context, deployment } = await until("the frame's state", async () => {
        const plan = await reader.plan();
        return plan?.context === 1024 && plan;
      });
      assert.deepEqual([context, deployment.gpus], [1024, 4]);
      assert.equal(await within(() => document.documentElement.style.colorScheme), "dark");
      // A plain key is nobody's here.
      await fresh("/plain.html", "#context=1024");
      await until("both", async () => (await told()).every(Boolean));
      assert.deepEqual(await told(), [8192, 8192]);
    });

    it("copies text, table and JSON", async () => {
      await fresh();
      await openShare();
      await press("Copy as text");
      const link = `${await within(() => location.href.replace(/#.*/, ""))}#model=llama-3.1-8b`;
      const text = (await copied()).replaceAll("\u00a0", " ");
      assert.deepEqual(text.split("\n"), [
        "Model: Llama 3.1 8B",
        "Weights stored as: 16-bit (bf16)",
        "KV cache stored as: 16-bit (bf16)",
        "GPU: 80 GB GPU",
        "GPUs: 1",
        "Context length: 8,192 tokens",
        "KV cache per token: 128 KiB (8 KV heads × 32 layers)",
        "One conversation: 1.07 GB (8,192 tokens)",
        "Left after weights: 56 GB (weights 16 GB)",
        "Fit at once: 52 (conversations)",
        "",
        "The weights take 16 GB, which leaves about 56 GB. At 8,192 tokens a conversation’s cache is 1.07 GB, so 52 conversations fit. Twice the context fits about half as many.",
        "",
        link,
      ]);
      await press("Copy as Markdown table");
      const table = (await copied()).replaceAll("\u00a0", " ").split("\n");
      assert.deepEqual(table.slice(0, 3), [
        "| Model | Llama 3.1 8B |",
        "| --- | --- |",
        "| Weights stored as | 16-bit (bf16) |",
      ]);
      assert.equal(table.filter((line) => /^\| .* \| .* \|$/.test(line)).length, 11);
      await press("Copy as JSON");
      const { request, answer } = JSON.parse(await copied());
      assert.deepEqual(request, { model: "llama-3.1-8b" });
      assert.deepEqual(answer, await reader.plan());

      // Another's words are no markup, and what is refused is no answer.
      await within((model) => {
        document.querySelector("kv-capacity").request = { model };
      }, OWN);
      await until("the other model", async () => (await reader.plan())?.model.name === OWN.name);
      await press("Copy as Markdown table");
      assert.equal((await copied()).split("\n")[0], '| Model | Ours & "theirs" \\| #1 \\<b\\>%20+=; |');
      await within(() => {
        const box = document.querySelector("kv-capacity").shadowRoot.querySelector(".gpus-field .exact");
        box.value = "none";
        box.dispatchEvent(new Event("input"));
      });
      await until("the refusal", () => within(() => document.querySelector("kv-capacity").error));
      assert.equal(await press("Copy as text"), false);
      assert.equal(await press("Save picture as SVG"), false);
      assert.equal(await press("Copy as JSON"), true);
      assert.equal(JSON.parse(await copied()).answer.error.field, "gpus");
    });

    it("shows the text, selected, where a page may not copy", async () => {
      for (const clipboard of ["refuses", "lacks"]) {
        await fresh();
        await openShare();
        await within((clipboard) => {
          const writeText = () => Promise.reject(new DOMException("no", "NotAllowedError"));
          Object.defineProperty(navigator, "clipboard", { value: clipboard === "lacks" ? undefined : { writeText } });
        }, clipboard);
        const field = () =>
          within(() => {
            const root = document.querySelector("kv-capacity").shadowRoot;
            const area = root.querySelector(".share textarea");
            return area.checkVisibility() && root.activeElement === area
              ? area.value.slice(area.selectionStart, area.selectionEnd)
              : null;
          });
        assert.equal(await field(), null);
        await press("Copy link");
        await reads(async () => (await field()) ?? "", /^http.*#model=llama-3\.1-8b$/);
        await press("Copy as JSON");
        assert.equal(
          JSON.parse(await until("the JSON", async () => /^\{/.test(await field()) && field())).answer.sequences,
          52,
        );
        await press("Copy picture");
        await until("what else there is", () =>
          within(() =>
            /does not allow/.test(document.querySelector("kv-capacity").shadowRoot.querySelector(".share").textContent),
          ),
        );
        assert.deepEqual(await within(() => problems), []);
      }
    });

    it("draws the memory to scale, as SVG and PNG", async () => {
      await fresh();
      await openShare();
      const files = () =>
        within(async () => {
          const made = [];
          const create = URL.createObjectURL;
          URL.createObjectURL = (file) => {
            made.push(file);
            return create.call(URL, file);
          };
          // Where a click would save, the test looks on.
          HTMLAnchorElement.prototype.click = () => {};
          const { shadowRoot } = document.querySelector("kv-capacity");
          for (const button of shadowRoot.querySelectorAll(".share .button")) {
            if (/^Save/.test(button.textContent)) button.click();
          }
          while (made.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
          const png = made.find((file) => file.type === "image/png");
          const { width, height } = await createImageBitmap(png);
          const text = await made.find((file) => file.type === "image/svg+xml").text();
          const picture = new DOMParser().parseFromString(text, "image/svg+xml");
          const attributes = [...picture.querySelectorAll("*")].flatMap((node) => [...node.attributes]);
          return {
            png: [width, height],
            root: picture.documentElement.localName,
            size: ["width", "height"].map((name) => Number(picture.documentElement.getAttribute(name))),
            title: picture.querySelector("title").textContent,
            bar: [...picture.querySelectorAll("g > rect[height='56']:first-child")].map((node) =>
              Number(node.getAttribute("width")),
            ),
            cuts: picture.querySelector("path[stroke-opacity='0.75']")?.getAttribute("d").split("M").length,
            texts: [...picture.querySelectorAll("text")].map((node) => node.textContent.replaceAll("\u00a0", " ")),
            colours: attributes.filter(({ name }) => name === "fill" || name === "stroke").map(({ value }) => value),
            active: [...picture.querySelectorAll("script, foreignObject, style, image")].length,
          };
        });
      const drawn = await files();
      assert.equal(drawn.root, "svg");
      assert.deepEqual(
        drawn.png,
        drawn.size.map((one) => 2 * one),
      );
      assert.match(drawn.title, /52 conversations fit/);
      assert.deepEqual(drawn.texts.slice(0, 3), [
        "Llama 3.1 8B",
        "52 conversations",
        "1 × 80 GB GPU · Weights stored as: bf16 · KV cache stored as: bf16 · 8,192 tokens",
      ]);
      const { memory } = await reader.plan();
      drawn.bar.forEach((width, i) => {
        assert.ok(Math.abs(width - 816 * memory.segments[i].share) < 0.01, `${width}`);
      });
      assert.equal(drawn.bar.length, memory.segments.length);
      assert.equal(drawn.cuts, 52);
      for (const colour of drawn.colours) assert.match(colour, /^(#[0-9a-f]{6}|none|url\(#(stripes|lines)\))$/);
      assert.equal(drawn.active, 0);
      // Where the weights do not fit, the end of the memory is drawn.
      await within(() => {
        document.querySelector("kv-capacity").model = "llama-3-70b";
      });
      await until("the large model", async () => (await reader.plan())?.model.id === "llama-3-70b");
      const short = await files();
      assert.deepEqual(short.texts.slice(-4), ["Weights", "141 GB", "Memory there is", "80 GB"]);
      assert.equal(short.texts[1], "0 the weights do not fit");
      // A picture too large for the browser's memory.
      await within(() => {
        HTMLCanvasElement.prototype.toBlob = (then) => then(null);
      });
      await press("Save picture as PNG");
      await until("what else there is", () =>
        within(() =>
          /does not allow/.test(document.querySelector("kv-capacity").shadowRoot.querySelector(".share").textContent),
        ),
      );
    });

    it("asks for nothing, keeps nothing, and says once that it copied", async () => {
      await fresh();
      await openShare();
      const asked = () => within(() => performance.getEntriesByType("resource").length);
      const before = await asked();
      await within(() => {
        window.spoken = [];
        new MutationObserver(() => {
          const said = document.querySelector("[role=status]")?.textContent;
          if (said && spoken.at(-1) !== said) spoken.push(said);
        }).observe(document.body, { childList: true, subtree: true, characterData: true });
      });
      for (const way of ["Copy link", "Copy as text", "Copy as JSON"]) await press(way);
      await until("it to be said", () => within(() => spoken.length > 0));
      assert.deepEqual(await within(() => spoken), ["Copied."]);
      assert.equal(await asked(), before);
      assert.deepEqual(
        await within(() => [localStorage.length, sessionStorage.length, document.cookie, problems.length]),
        [0, 0, "", 0],
      );
    });
  });
}

describe("kept links", { timeout: 600_000 }, () => {
  it("open with the counts that they had", async () => {
    const { fresh, within, close } = await visitWith(browsers.Chromium);
    try {
      await fresh();
      const wrong = await within(async (kept) => {
        const element = document.querySelector("kv-capacity");
        // Not all of them are the first kernel's.
        element.engine = "vllm";
        await new Promise((resolve) => element.addEventListener("kv-shown", resolve, { once: true }));
        const found = [];
        for (const [link, count] of kept) {
          element.request = {};
          element.state = `#${link}`;
          await new Promise((resolve) => element.addEventListener("kv-shown", resolve, { once: true }));
          const { plan, error } = element;
          const shown = error ? JSON.stringify(error) : String(plan.sequences ?? "-");
          if (shown !== count) found.push(`${link}: ${shown}, not ${count}`);
        }
        return found;
      }, KEPT);
      assert.deepEqual(wrong, []);
      assert.ok(KEPT.length > 100);
    } finally {
      await close();
    }
  });
});
