// The lesson's elements as a reader uses them, in three browsers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { becomes, reads, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

/** The command line's answer: the same kernel, asked without a page. */
function ask(request) {
  const { stdout } = spawnSync("node", [join(dist, "cli.mjs"), "plan"], {
    input: JSON.stringify(request),
    encoding: "utf8",
  });
  return JSON.parse(stdout);
}

const script = '<script src="kv-capacity.js"></script>';
const html = (body, head = script) => ({
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>lesson</title><link rel="icon" href="data:,">${head}</head><body>${body}</body></html>`,
});

const PAGES = {
  "/growth.html": html('<kv-growth model="llama-3.1-8b"><p id="example">Example</p></kv-growth>'),
  "/far.html": html('<div style="height: 6000px"></div><kv-growth step="3"><p>Example</p></kv-growth>'),
  "/late.html": html('<main id="main"></main>'),
  "/module.html": html("<kv-growth></kv-growth>", '<script type="module" src="kv-capacity.mjs"></script>'),
  "/strict.html": {
    ...html("<kv-growth>example</kv-growth>"),
    headers: {
      "content-security-policy":
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'none'; require-trusted-types-for 'script'; trusted-types kv-capacity",
    },
  },
  "/formula.html": html('<kv-formula for="c"></kv-formula><kv-capacity id="c"></kv-capacity>'),
  "/curve.html": html('<kv-capacity id="c"></kv-capacity><kv-curve for="c"></kv-curve>'),
  "/kept.html": html('<kv-curve model="qwen3-8b" keep="model=llama-3.1-70b&gpus=4 model=gemma-3-27b"></kv-curve>'),
  "/levers.html": html('<kv-capacity id="c"></kv-capacity><kv-levers for="c"></kv-levers>'),
  "/lever.html": html("<kv-levers></kv-levers>"),
  "/attention.html": html("<kv-attention></kv-attention>"),
  "/memory.html": html('<kv-memory gpu="h100-sxm-80gb"></kv-memory>'),
  "/latent.html": html('<kv-formula model="deepseek-v3"></kv-formula>'),
  "/following.html": html(
    '<kv-capacity id="c" model="llama-3-70b" gpus="4"></kv-capacity><kv-growth for="c"></kv-growth>',
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

    const within = (fn, ...args) => page.evaluate(fn, ...args);
    const loaded = (tag) =>
      until(`<${tag}>`, () =>
        within((tag) => Boolean(document.querySelector(tag)?.shadowRoot?.querySelector(".kv[class=kv]")), tag),
      );
    const open = async (path, tag, hash = "") => {
      await page.goto(`${site.origin}${path}?${Math.random()}${hash}`);
      if (tag) await loaded(tag);
      // An element does not wait for long for the calculator that it follows.
      await until("the calculators", () =>
        within(() => [...document.querySelectorAll("kv-capacity[id]")].every((one) => one.plan)),
      );
    };
    const text = (tag, selector) =>
      within(
        (tag, selector) => {
          const node = document.querySelector(tag).shadowRoot.querySelector(selector);
          return node?.checkVisibility() ? node.textContent.replaceAll("\u00a0", " ") : "";
        },
        tag,
        selector,
      );
    /** Asks a function, which must stand alone, about an element's inside. */
    const insideOf = (tag, fn) =>
      within(
        (tag, source) => new Function("root", `return (${source})(root)`)(document.querySelector(tag).shadowRoot),
        tag,
        String(fn),
      );
    const lessonAsked = () => site.asked.filter((path) => path === "/kv-capacity-lesson.js").length;
    const complaints = async () => [...(await within(() => window.problems)), ...page.problems];

    describe("the third script", () => {
      it("comes when a tag comes near the view, and not before", async () => {
        const before = lessonAsked();
        await open("/far.html");
        await until("the first script", () => within(() => Boolean(customElements.get("kv-capacity"))));
        await wait(400);
        assert.equal(lessonAsked(), before);
        assert.ok(await within(() => document.querySelector("kv-growth p").checkVisibility()));
        await within(() => scrollTo(0, 4500));
        await loaded("kv-growth");
        assert.equal(lessonAsked(), before + 1);
        assert.deepEqual(await complaints(), []);
      });

      it("leaves paging, quiz and interview to a script of their own", async () => {
        const played = () => site.asked.filter((path) => path === "/kv-capacity-play.js").length;
        const before = played();
        await open("/far.html");
        await until("the first script", () => within(() => Boolean(customElements.get("kv-capacity"))));
        await wait(400);
        assert.equal(played(), before);
        const lessons = lessonAsked();
        await within(() => document.body.prepend(document.createElement("kv-quiz")));
        await until("the quiz", () => within(() => Boolean(document.querySelector("kv-quiz")?.shadowRoot)));
        assert.equal(played(), before + 1);
        assert.equal(lessonAsked(), lessons);
      });

      it("comes for a tag that is inserted later", async () => {
        const before = lessonAsked();
        await open("/late.html");
        await wait(200);
        assert.equal(lessonAsked(), before);
        await within(() => {
          const around = document.createElement("section");
          around.append(document.createElement("kv-growth"));
          document.getElementById("main").append(around);
        });
        await loaded("kv-growth");
        assert.deepEqual(await complaints(), []);
      });

      it("comes as a module, under a strict policy, and from disk", async () => {
        await open("/module.html", "kv-growth");
        assert.deepEqual(await complaints(), []);
        await open("/strict.html", "kv-growth");
        assert.deepEqual(await complaints(), []);
        await page.goto(pathToFileURL(join(process.env.KV_SITE ?? dist, "kv-capacity.html")).href);
        await within(() => document.body.append(document.createElement("kv-growth")));
        await loaded("kv-growth");
      });
    });

    describe("<kv-growth>", () => {
      const counter = () => text("kv-growth", ".counter");
      const columns = () =>
        within(() => document.querySelector("kv-growth").shadowRoot.querySelectorAll(".column.in").length);

      it("reads the prompt at once, then adds a column a token", async () => {
        await open("/growth.html", "kv-growth");
        assert.equal(await counter(), "0 Bin the cache for no token yet");
        assert.equal(await columns(), 0);
        await reader.click(".buttons button:last-child", "kv-growth");
        await until("the prompt", async () => (await columns()) === 10);
        const reading = ask({ model: "llama-3.1-8b", context: 10 }).readings.kv_bytes_per_sequence;
        assert.equal(await counter(), `${reading.value.toFixed(2)} ${reading.unit}in the cache for 10 tokens`);
        assert.match(await text("kv-growth", ".sentence"), /^Prefill\. All 10 tokens .* 32 layers .* 1\.31 MB\.$/);
        await reader.click(".buttons button:last-child", "kv-growth");
        await until("a token", async () => (await columns()) === 11);
        assert.match(await text("kv-growth", ".sentence"), /^Decode\. “As” .* 128 KiB more/);
      });

      it("scrubs by keyboard, to the end and back", async () => {
        await open("/growth.html", "kv-growth");
        await within(() => document.querySelector("kv-growth").shadowRoot.querySelector("#scrub").focus());
        await page.press("End");
        await until("the end", async () => (await columns()) === 22);
        assert.match(await text("kv-growth", ".sentence"), /finished.*8,192 tokens it is 1\.07 GB/);
        assert.equal(await within(() => document.querySelector("kv-growth").getAttribute("step")), "13");
        await page.press("Home");
        await until("the start", async () => (await columns()) === 0);
      });

      it("plays, pauses and goes on", async () => {
        await open("/growth.html", "kv-growth");
        await reader.click(".buttons button", "kv-growth");
        // Within the page, since it would play to its end while a slow machine looks for the button.
        const held = await within(async () => {
          const root = document.querySelector("kv-growth").shadowRoot;
          const columns = () => root.querySelectorAll(".column.in").length;
          while (columns() < 13) await new Promise((resolve) => setTimeout(resolve, 20));
          root.querySelector(".buttons button").click();
          return columns();
        });
        assert.ok(held < 22, "it was paused before its end");
        await wait(1000);
        assert.equal(await columns(), held);
      });

      it("takes its state from a link, and gives it as one", async () => {
        await open("/growth.html", "kv-growth", "#kv-growth.step=4&kv-growth.model=qwen3-8b");
        assert.equal(await columns(), 13);
        assert.match(await text("kv-growth", ".axis"), /^36 layers/);
        const link = await within(() => document.querySelector("kv-growth").link);
        assert.match(link, /#kv-growth\.step=4&kv-growth\.model=qwen3-8b$/);
        // Without leave to write to the clipboard, the link stands there to be taken.
        await within(() => {
          Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined });
        });
        await reader.click(".copy", "kv-growth");
        const shown = await until("the link", () =>
          within(() => document.querySelector("kv-growth").shadowRoot.querySelector(".address:not([hidden])")?.value),
        );
        assert.equal(shown, link);
      });

      it("follows a calculator", async () => {
        await open("/following.html", "kv-growth");
        await reads(() => text("kv-growth", ".axis"), /^80 layers/);
        await within(() => document.querySelector("kv-capacity").setAttribute("model", "qwen3-8b"));
        await until("the other model", async () => (await text("kv-growth", ".axis")).startsWith("36 layers"));
        assert.deepEqual(await complaints(), []);
      });

      it("has the models of a course, and all of them when asked", async () => {
        await open("/growth.html", "kv-growth");
        const models = () => insideOf("kv-growth", (root) => root.querySelector("#model").options.length);
        const few = await models();
        await insideOf("kv-growth", (root) => {
          const select = root.querySelector("#model");
          select.value = "…";
          select.dispatchEvent(new Event("change"));
        });
        await until("the whole catalogue", async () => (await models()) > 3 * few);
        assert.equal(await insideOf("kv-growth", (root) => root.querySelector("#model").value), "llama-3.1-8b");
        await within(() => document.querySelector("kv-growth").setAttribute("model", "gemma-3-27b"));
        await until("one of them", async () => (await text("kv-growth", ".axis")).startsWith("62 layers"));
      });

      it("says what is wrong with what it was given", async () => {
        await open("/growth.html", "kv-growth");
        await within(() => document.querySelector("kv-growth").setAttribute("model", "no-such-model"));
        await until("the complaint", async () => (await text("kv-growth", ".problem")).includes("no-such-model"));
        await within(() => document.querySelector("kv-growth").setAttribute("model", "llama-3.1-8b"));
        await until("none", async () => (await text("kv-growth", ".problem")) === "");
      });
    });

    describe("<kv-formula>", () => {
      const result = () => text("kv-formula", ".result");
      const type = async (id, number) => {
        await within((id) => {
          const input = document.querySelector("kv-formula").shadowRoot.querySelector(`#${id}`);
          input.scrollIntoView({ block: "center" });
          input.focus();
          input.select();
        }, id);
        await page.type(String(number));
      };

      it("multiplies what the model's config says", async () => {
        await open("/formula.html", "kv-formula");
        await becomes(result, "128 KiB2 × 32 × 8 × 128 × 2 = 131,072 bytes a token");
        await reads(() => text("kv-formula", ".sentence"), /8,192 tokens keeps 1\.07 GB/);
      });

      it("takes a number typed in place, and goes back", async () => {
        await open("/formula.html", "kv-formula");
        await type("kv-heads", 32);
        await until("four times as much", async () => (await result()).startsWith("512 KiB"));
        assert.equal(await within(() => document.querySelector("kv-formula").getAttribute("kv_heads")), "32");
        await reader.click(".hint .plain", "kv-formula");
        await until("the model's own", async () => (await result()).startsWith("128 KiB"));
      });

      it("takes a number dragged sideways", async () => {
        await open("/formula.html", "kv-formula");
        const from = await reader.middle("#layers", "kv-formula");
        await page.drag(from, { x: from.x + 80, y: from.y }, 16);
        await until("16 more layers", async () => (await result()).startsWith("192 KiB2 × 48 × 8"));
      });

      it("takes formats in blocks, and one row for key and value", async () => {
        await open("/formula.html", "kv-formula");
        await within(() => {
          const formula = document.querySelector("kv-formula");
          formula.setAttribute("kv", "q4_0");
          formula.setAttribute("rows", "1");
        });
        await until("both", async () => (await result()).startsWith("18 KiB32 × 8 × 128 × 18 ÷ 32 = 18,432 bytes"));
        await open("/latent.html", "kv-formula");
        assert.match(await result(), /61 × 576 × 2 = 70,272 bytes a token$/);
        const { kv_bytes_per_token } = ask({ model: "deepseek-v3" });
        assert.equal(kv_bytes_per_token, 70272);
      });

      it("refuses what is absurd, and says why", async () => {
        await open("/formula.html", "kv-formula");
        for (const layers of ["0", "-3", "1e30", ""]) {
          await within((layers) => document.querySelector("kv-formula").setAttribute("layers", layers), layers);
          // The model's own stands in for what the page gave.
          await until(`a refusal of ${layers}`, async () =>
            /32 is used instead/.test(await text("kv-formula", ".problem")),
          );
          assert.match(await text("kv-formula", ".result"), /^128 KiB/);
          await within(() => document.querySelector("kv-formula").removeAttribute("layers"));
          await until("none", async () => (await text("kv-formula", ".problem")) === "");
        }
        // No product of other numbers stands beside what a reader typed.
        await type("layers", "0");
        await until("a refusal", async () => /layers/.test(await text("kv-formula", ".problem")));
        assert.equal(await text("kv-formula", ".result"), "");
        assert.equal(
          await within(() => document.querySelector("kv-formula").shadowRoot.querySelector("#layers").value),
          "0",
        );
      });

      it("lights the same factor in its calculator, and tells which", async () => {
        await open("/formula.html", "kv-formula");
        await within(() => {
          window.factors = [];
          addEventListener("kv-factor", ({ detail }) => factors.push(detail.factor));
          document.querySelector("kv-formula").shadowRoot.querySelector("#kv-heads").focus();
        });
        const lit = () =>
          within(() => {
            const root = document.querySelector("kv-capacity").shadowRoot;
            return [...root.querySelectorAll(".small strong, #kv")]
              .filter((node) => getComputedStyle(node).outlineStyle === "solid" && !node.matches(":focus"))
              .map((node) => node.id || node.textContent);
          });
        await becomes(lit, ["8 KV heads"]);
        await page.press("Tab");
        await page.press("Tab");
        await becomes(lit, ["kv"]);
        await reads(() => text("kv-formula", ".source"), /--kv-cache-dtype/);
        await becomes(
          async () => (await within(() => window.factors)).filter((factor) => factor),
          ["kv_heads", "head_size", "kv"],
        );
      });
    });

    describe("<kv-curve>", () => {
      const inside = (fn) => insideOf("kv-curve", fn);
      const slider = () => inside((root) => root.querySelector(".handle").getAttribute("aria-valuetext"));
      const context = () => inside((root) => Number(root.querySelector(".handle").getAttribute("aria-valuenow")));
      const lines = () =>
        inside((root) => [...root.querySelectorAll(".lines li")].map((item) => item.querySelector("b").textContent));

      it("marks the calculator's state, and follows it", async () => {
        await open("/curve.html", "kv-curve");
        await becomes(slider, "8,192 tokens: 52 conversations fit");
        await within(() => {
          document.querySelector("kv-capacity").gpus = 2;
        });
        const { sequences } = ask({ model: "llama-3.1-8b", gpus: 2 });
        await until("two GPUs", async () => (await slider()) === `8,192 tokens: ${sequences} conversations fit`);
      });

      it("is dragged, and the calculator goes along", async () => {
        await open("/curve.html", "kv-curve");
        await within(() => {
          window.told = { input: 0, change: 0 };
          for (const kind of ["input", "change"]) {
            document.querySelector("kv-curve").addEventListener(`kv-${kind}`, ({ detail }) => {
              told[kind]++;
              told.context = detail.request.context;
              told.plan = detail.plan.sequences;
            });
          }
        });
        const from = await reader.middle(".ring", "kv-curve");
        await page.drag(from, { x: from.x + 150, y: from.y + 20 }, 12);
        const at = await until("the drop", () => within(() => told.change === 1 && told.context));
        assert.ok(at > 8192, `${at} tokens`);
        await becomes(context, at);
        await becomes(() => within(() => document.querySelector("kv-capacity").context), at);
        const { sequences } = ask({ model: "llama-3.1-8b", context: at });
        await becomes(lines, [String(sequences)]);
        const told = await within(() => window.told);
        assert.ok(told.input > 2);
        assert.equal(told.plan, sequences);
      });

      it("is moved by keys", async () => {
        await open("/curve.html", "kv-curve");
        await inside((root) => root.querySelector(".handle").focus());
        await page.press("ArrowRight", 2);
        await until("twice the context", async () => (await slider()) === "16,384 tokens: 26 conversations fit");
        await page.press("PageDown");
        await until("and back", async () => (await slider()) === "8,192 tokens: 52 conversations fit");
        await page.press("End");
        await until("the end", async () => (await slider()) === "131,072 tokens: 3 conversations fit");
        await page.press("Home");
        await until("the start", async () => (await context()) === 1024);
      });

      it("keeps up to three lines, and lets them go", async () => {
        await open("/kept.html", "kv-curve");
        const counts = ["qwen3-8b", "llama-3.1-70b", "gemma-3-27b"].map(
          (model) => ask({ model, gpus: model === "llama-3.1-70b" ? 4 : 1 }).sequences,
        );
        await becomes(lines, counts.map(String));
        await reader.click(".buttons .button", "kv-curve");
        await until("a third kept", async () => (await lines()).length === 4);
        await until("room for no more", () => inside((root) => root.querySelector(".buttons .button").disabled));
        const kept = () => within(() => document.querySelector("kv-curve").getAttribute("keep"));
        await becomes(kept, "model=llama-3.1-70b&gpus=4 model=gemma-3-27b model=qwen3-8b");
        await reader.click(".lines .plain", "kv-curve");
        await until("one gone", async () => (await lines()).length === 3);
      });

      it("has a table of the same counts", async () => {
        await open("/kept.html", "kv-curve");
        await reader.click("summary", "kv-curve");
        const rows = await until("the table", async () => {
          const found = await inside((root) =>
            [...root.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
          );
          return found.length > 0 && found;
        });
        assert.equal(rows.length, 8);
        const row = rows.find(([context]) => context === "32,768");
        const count = (request) => String(ask({ ...request, context: 32768 }).sequences);
        assert.deepEqual(row.slice(1), [
          count({ model: "qwen3-8b" }),
          count({ model: "llama-3.1-70b", gpus: 4 }),
          count({ model: "gemma-3-27b" }),
        ]);
        // Past its own longest context a model has no count.
        assert.equal(rows.at(-1)[1], "–");
      });

      it("is given as SVG and PNG", async () => {
        await open("/kept.html", "kv-curve");
        const { svg, png } = await within(async () => {
          const curve = document.querySelector("kv-curve");
          const bytes = new Uint8Array(await (await curve.picture("png")).arrayBuffer());
          return {
            svg: await (await curve.picture("svg")).text(),
            png: { start: [...bytes.slice(1, 4)], size: bytes.length },
          };
        });
        assert.match(svg, /^<svg[^>]* width="\d/);
        assert.match(svg, /Gemma 3 27B/);
        assert.doesNotMatch(svg, /var\(|class=/);
        assert.equal(String.fromCharCode(...png.start), "PNG");
        assert.ok(png.size > 5000, `${png.size} bytes`);
      });
    });

    describe("<kv-levers>", () => {
      const gains = () =>
        insideOf("kv-levers", (root) => [...root.querySelectorAll(".lever b")].map((node) => node.textContent));
      const sentence = () => text("kv-levers", ".sentence");

      it("adds what the kernel says each lever would", async () => {
        await open("/levers.html", "kv-levers");
        const now = ask({ model: "llama-3.1-8b" }).sequences;
        const changes = [{ kv: "fp8" }, { weights: "fp8" }, { kv_heads: 4 }, { context: 4096 }, { gpus: 2 }];
        const expected = changes.map((change) => `${ask({ model: "llama-3.1-8b", ...change }).sequences - now} more`);
        await becomes(gains, expected);
        await reads(sentence, /^Strongest here: Use 2 GPUs instead of 1, for 67 more conversations/);
      });

      it("pulls a lever of the calculator, and undoes it", async () => {
        await open("/levers.html", "kv-levers");
        const nothingToUndo = () => insideOf("kv-levers", (root) => root.querySelector(".buttons button").disabled);
        await becomes(nothingToUndo, true);
        await reader.click("li:nth-child(1) .lever", "kv-levers");
        await until("8 bits", () => within(() => document.querySelector("kv-capacity").plan.kv.k === "fp8"));
        await until("the lever's answer", async () => /104 conversations/.test(await text("kv-levers", ".now")));
        await reader.click("li:nth-child(3) .lever", "kv-levers");
        await until("fewer heads", () => within(() => document.querySelector("kv-capacity").kv_heads === 4));
        await reader.click(".buttons button", "kv-levers");
        await until("more heads", () => within(() => document.querySelector("kv-capacity").kv_heads === undefined));
        await until("the answer before", async () => /104 conversations/.test(await text("kv-levers", ".now")));
        await reader.click(".buttons button", "kv-levers");
        await until("the start", async () => (await text("kv-levers", ".now")).includes("52 conversations"));
        await becomes(() => within(() => document.querySelector("kv-capacity").state), "model=llama-3.1-8b");
        await becomes(nothingToUndo, true);
      });

      it("names another lever for another model, and says why", async () => {
        await open("/lever.html", "kv-levers");
        const of = (attributes) =>
          within((attributes) => {
            const levers = document.querySelector("kv-levers");
            for (const name of levers.getAttributeNames()) levers.removeAttribute(name);
            for (const [name, value] of Object.entries(attributes)) levers.setAttribute(name, value);
          }, attributes);
        await of({ model: "llama-2-7b" });
        await until("heads", async () =>
          /Train the model with 8 KV heads instead of 32.*41 more/.test(await sentence()),
        );
        await of({ model: "llama-3.1-70b", gpus: "2" });
        await until("weights", async () =>
          /Without buying anything: Keep the weights in 8 bits/.test(await sentence()),
        );
        await of({ model: "llama-3.1-70b" });
        await until("GPUs", async () => /The weights alone do not fit now/.test(await sentence()));
        await of({ model: "phi-3.5-moe" });
        await until("weights too large, once", async () =>
          /56 more conversations\. The weights alone do not fit now.*8 bits instead of 16, for 28 more\.$/.test(
            await sentence(),
          ),
        );
        await of({ model: "deepseek-v3", gpus: "10" });
        await until("a latent", async () =>
          (await text("kv-levers", "li:nth-child(3)")).startsWith("This model has no KV heads"),
        );
        assert.ok(await insideOf("kv-levers", (root) => root.querySelector("li:nth-child(3) button").disabled));
      });
    });

    describe("<kv-attention>", () => {
      const rows = () =>
        insideOf("kv-attention", (root) =>
          [...root.querySelectorAll(".variants li:not([hidden])")].map((item) =>
            [...item.querySelectorAll("b")].map((node) => node.textContent.replaceAll("\u00a0", " ")),
          ),
        );

      it("shows the same model five ways", async () => {
        await open("/attention.html", "kv-attention");
        const heads = (kv_heads) => String(ask({ model: "llama-3.1-8b", kv_heads }).sequences);
        const made = (layers) => String(ask({ model: { layers }, weight_bytes: 16060522496 }).sequences);
        const shape = { kv_heads: 8, key_width: 128, value_width: 128 };
        assert.deepEqual(await rows(), [
          ["512 KiB", heads(32)],
          ["128 KiB", heads(8)],
          ["16 KiB", heads(1)],
          ["36 KiB", made([{ count: 32, kind: "latent", latent_width: 576 }])],
          [
            "24 KiB",
            made([
              { count: 6, kind: "full", ...shape },
              { count: 26, kind: "window", window: 1024, ...shape },
            ]),
          ],
        ]);
        const own = await insideOf("kv-attention", (root) => root.querySelector(".own h3").textContent);
        assert.match(own, /GQA/);
        assert.match(await text("kv-attention", ".sentence"), /512 KiB .* 13 conversations .* 128 KiB and 52 conv/);
      });

      it("shares as few heads as the reader likes", async () => {
        await open("/attention.html", "kv-attention");
        await insideOf("kv-attention", (root) => root.querySelector(".words input").focus());
        await page.press("ArrowLeft");
        const count = String(ask({ model: "llama-3.1-8b", kv_heads: 4 }).sequences);
        await until("four heads", async () => (await rows())[1].join() === `64 KiB,${count}`);
        await becomes(() => within(() => document.querySelector("kv-attention").getAttribute("groups")), "4");
      });

      it("shows a model's own windows as they are", async () => {
        await open("/attention.html", "kv-attention");
        const windows = () =>
          insideOf("kv-attention", (root) => {
            const [about] = root.querySelectorAll(".variants li:nth-child(5).own .about");
            return about?.textContent ?? "";
          });
        for (const model of ["gemma-3-27b", "gpt-oss-20b"]) {
          await within((model) => document.querySelector("kv-attention").setAttribute("model", model), model);
          const { sequences, model: shape } = ask({ model });
          const full = shape.layers.reduce((sum, run) => sum + (run.kind === "full" ? run.count : 0), 0);
          await until(`the windows of ${model}`, async () =>
            (await windows()).startsWith(`${full} of ${shape.layer_count} layers keep every token`),
          );
          assert.ok((await windows()).endsWith(`: as ${shape.name} is`));
          assert.equal((await rows())[4][1], String(sequences));
        }
      });

      it("does not say of rows that an author left out that the model lacks them", async () => {
        await open("/attention.html", "kv-attention");
        await within(() => document.querySelector("kv-attention").setAttribute("show", "gqa mla"));
        await until("two rows", async () => (await rows()).length === 2);
        assert.equal(await text("kv-attention", ".sentence"), "The weights are counted the same in every row.");
      });

      it("shows of a latent model what can be compared", async () => {
        await open("/attention.html", "kv-attention");
        await within(() => {
          const attention = document.querySelector("kv-attention");
          attention.setAttribute("model", "deepseek-v3");
          attention.setAttribute("gpus", "10");
        });
        const count = String(ask({ model: "deepseek-v3", gpus: 10 }).sequences);
        await until("one row", async () => JSON.stringify(await rows()) === JSON.stringify([["68.6 KiB", count]]));
      });

      it("changes only the layers of a hybrid that attend", async () => {
        await open("/attention.html", "kv-attention");
        await within(() => {
          const attention = document.querySelector("kv-attention");
          attention.setAttribute("model", "jamba-1.5-mini");
          attention.setAttribute("gpus", "2");
          attention.setAttribute("show", "mla");
        });
        const { layers } = ask({ model: "jamba-1.5-mini" }).model;
        assert.equal(layers.find(({ kind }) => kind === "full").count, 4);
        // 4 layers × 576 values × 2 bytes.
        await until("the row", async () => (await rows())[0]?.[0] === "4.5 KiB");
        // Its heads are those of the layers that have some: a brought model may begin with others.
        const config = readFileSync(new URL("../data/configs/jamba-period.json", import.meta.url), "utf8");
        const { query_heads, layers: own } = ask({ config }).model;
        assert.equal(own[0].kind, "recurrent");
        await within((config) => {
          const attention = document.querySelector("kv-attention");
          attention.removeAttribute("model");
          attention.setAttribute("config", config);
          attention.setAttribute("show", "mha gqa");
        }, config);
        const grouped = own.find(({ kv_heads }) => kv_heads).kv_heads;
        const about = () =>
          insideOf("kv-attention", (root) =>
            [...root.querySelectorAll("li:not([hidden]) .about")].map((node) => node.textContent),
          );
        await until("both rows", async () => (await about()).length === 2);
        const [plain, groups] = await about();
        assert.match(plain, new RegExp(`${query_heads} query heads, ${query_heads} KV heads`));
        assert.match(groups, new RegExp(`from ${grouped} KV heads`));
      });
    });

    describe("<kv-memory>", () => {
      it("holds the textbook against an engine", async () => {
        await open("/memory.html", "kv-memory");
        const counts = () =>
          insideOf("kv-memory", (root) => [...root.querySelectorAll(".head b")].map((node) => node.textContent));
        const count = (engine) =>
          `${ask({ model: "llama-3.1-8b", gpu: "h100-sxm-80gb", engine }).sequences} conversations`;
        await becomes(counts, [count("textbook"), count("vllm")]);
        const drawn = await insideOf("kv-memory", (root) =>
          [...root.querySelectorAll(".bar")].map(
            (bar) =>
              [...bar.children].reduce((sum, node) => sum + node.getBoundingClientRect().width, 0) / bar.clientWidth,
          ),
        );
        for (const share of drawn) assert.ok(Math.abs(share - 1) < 0.01, `${share} of the bar is drawn`);
        assert.match(await text("kv-memory", ".one:nth-child(3) .legend"), /Activations.*CUDA graphs.*KV cache/);
        await within(() => document.querySelector("kv-memory").setAttribute("engine", "llama.cpp"));
        await until("another engine", async () => (await counts())[1] === count("llama.cpp"));
      });
    });

    describe("the chapter", () => {
      /** Reads the page to its end, so that everything in it has come. */
      const readAll = async () => {
        await open("/", "kv-growth");
        await within(async () => {
          for (let y = 0; y < document.body.scrollHeight; y += 400) {
            scrollTo(0, y);
            await new Promise((resolve) => setTimeout(resolve, 60));
          }
        });
        for (const tag of ["kv-formula", "kv-curve", "kv-levers", "kv-attention", "kv-memory"]) await loaded(tag);
      };

      it("comes without a complaint, and without a shift", async () => {
        await readAll();
        assert.deepEqual(await complaints(), []);
        assert.deepEqual(await within(() => window.shifts), []);
      });

      it("fits in 320 pixels", async () => {
        await readAll();
        await within(() => {
          document.documentElement.style.width = "320px";
          document.querySelector("main").style.paddingInline = "1rem";
        });
        const outside = () =>
          within(() => {
            const found = [];
            for (const host of document.querySelectorAll("main > *")) {
              for (const node of host.shadowRoot?.querySelectorAll("*") ?? []) {
                if (node.closest("svg, .bar, .scroll, .hover")) continue;
                const { left, right, width } = node.getBoundingClientRect();
                if (width > 0 && (right > 320.5 || left < -0.5))
                  found.push(`${host.localName} ${node.className} ${right}`);
              }
            }
            return found;
          });
        // Some of it is drawn anew once its size has settled.
        await becomes(outside, []);
      });

      it("says every change once, in one place", async () => {
        await readAll();
        await insideOf("kv-curve", (root) => root.querySelector(".handle").focus());
        await page.press("ArrowRight", 3);
        const said = () =>
          within(() => [...document.querySelectorAll("[role=status]")].map((node) => node.textContent).join("|"));
        await reads(said, /^At [\d,]+ tokens, \d+ conversations fit/);
        const live = await within(
          () =>
            [...document.querySelectorAll("*")].flatMap((host) => [
              ...(host.shadowRoot?.querySelectorAll("[aria-live], [role=status], output") ?? []),
            ]).length,
        );
        assert.equal(live, 0);
      });
    });
  });
}
