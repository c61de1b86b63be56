// For everyone: WCAG 2.2 AA in every state, by keyboard, in forced colours, enlarged, on paper, and in any colours of a
// page. In Chromium; the colours once in Firefox and WebKitGTK too.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { browsers } from "./browsers.mjs";
import { CONFIG } from "./fixtures.mjs";
import { becomes, passes, rests, until, wait } from "./reader.mjs";
import { visit } from "./visit.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const project = fileURLToPath(new URL("../../", import.meta.url));
const log = readFileSync(join(project, "tests/data/logs/vllm-0.6.4-llama-3.1-8b.log"), "utf8");
const config = JSON.stringify(CONFIG);

const html = (body, headers) => ({
  headers,
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>reach</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="page.css">
    <script src="kv-capacity.js"></script></head><body><main><h1>Reach</h1><h2>A part</h2>${body}</main></body></html>`,
});
const LESSON = ["growth", "formula", "curve", "levers", "attention", "memory", "paging", "quiz", "interview"].map(
  (name) => `kv-${name}`,
);
const PAGES = {
  "/calculator.html": html('<kv-capacity id="c"><p>An example.</p></kv-capacity>'),
  "/refused.html": html("<kv-capacity><p>An example.</p></kv-capacity><kv-growth><p>Another.</p></kv-growth>", {
    "content-security-policy": "script-src 'self' 'unsafe-eval'; connect-src 'none'; worker-src 'none'",
  }),
  "/far.html": html('<p style="block-size: 9000px">Far up.</p><kv-quiz></kv-quiz>'),
  "/table.html": html("<kv-capacity-table></kv-capacity-table>"),
  "/all.html": html(
    `<kv-capacity id="c"></kv-capacity><kv-capacity-table></kv-capacity-table>${LESSON.map((tag) => `<${tag} seed="7"></${tag}>`).join("")}`,
  ),
  ...Object.fromEntries(LESSON.map((tag) => [`/${tag}.html`, html(`<${tag} seed="7" level="1"></${tag}>`)])),
};

/** Runs in the page before anything else: what all checks need of it. */
function tools() {
  const all = (root, out = []) => {
    for (const node of root.querySelectorAll("*")) {
      out.push(node);
      if (node.shadowRoot) all(node.shadowRoot, out);
    }
    return out;
  };
  const parent = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  /** A colour as red, green, blue and alpha, 0 to 1. */
  const known = new Map();
  const parts = (colour) => {
    if (!known.has(colour)) known.set(colour, read(colour));
    return known.get(colour);
  };
  const read = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].map((one) => one / 255);
  };
  const over = ([r, g, b, a], ground) => [r, g, b].map((one, i) => one * a + ground[i] * (1 - a));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = parent(at)) layers.push(parts(getComputedStyle(at).backgroundColor));
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    return layers.reduceRight((under, layer) => over(layer, under), dark ? [0.07, 0.07, 0.07] : [1, 1, 1]);
  };
  const shown = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (node) =>
    `${node.getRootNode().host?.localName ?? ""} ${node.localName}.${[...node.classList].join(".")} "${(node.textContent ?? "").trim().slice(0, 24)}"`;
  window.reach = { all: () => all(document), parent, parts, over, contrast, ground, shown, name };
}

describe("reach", { timeout: 900_000 }, () => {
  let site;
  let page;
  let close;
  const within = (fn, ...args) => page.evaluate(fn, ...args);

  before(async () => {
    ({ site, page, close } = await visit(browsers.Chromium, PAGES));
    await page.page.evaluateOnNewDocument(tools);
  });
  after(() => close?.());

  const ready = (tag) =>
    until(`<${tag}>`, async () => {
      return within((tag) => {
        const element = document.querySelector(tag);
        element?.scrollIntoView({ behavior: "instant" });
        const base = element?.shadowRoot?.querySelector(".kv");
        return base && !/waiting/.test(base.className);
      }, tag);
    }).then(() => within((tag) => document.querySelector(tag).ready, tag));
  const open = async (path, ...tags) => {
    await page.goto(`${site.origin}${path}?${Math.random()}`);
    for (const tag of tags) await ready(tag);
  };
  /** Runs something inside an element: `fn` gets its shadow root and must stand alone. */
  const inside = (tag, fn, ...args) =>
    within(
      (tag, source, args) =>
        new Function("root", "args", `return (${source})(root, ...args)`)(document.querySelector(tag).shadowRoot, args),
      tag,
      String(fn),
      args,
    );
  const seen = (tag, selector) =>
    until(`${selector} of <${tag}>`, () =>
      inside(tag, (root, selector) => Boolean(root.querySelector(selector)?.checkVisibility()), selector),
    );
  const openPart = async (name) => {
    await inside(
      "kv-capacity",
      (root, name) => {
        root.querySelector(`.${name} summary`).click();
      },
      name,
    );
    await seen("kv-capacity", `.${name} .inside > *`);
  };
  const put = (tag, selector, text) =>
    inside(
      tag,
      (root, selector, text) => {
        const field = root.querySelector(selector);
        field.value = text;
        for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
      },
      selector,
      text,
    );
  const press = (tag, selector) => inside(tag, (root, selector) => root.querySelector(selector).click(), selector);
  const ask = async (request) => {
    await within((request) => {
      const element = document.querySelector("kv-capacity");
      element.request = request;
      return new Promise((resolve) => element.addEventListener("kv-shown", resolve, { once: true }));
    }, request);
  };
  const calculator = (then) => async () => {
    await open("/calculator.html", "kv-capacity");
    await then?.();
  };
  const answer = async (tag, text) => {
    await put(tag, ".answer input", text);
    await inside(tag, (root) =>
      root.querySelector(".answer form, form.answer, .answer").closest("form, .answer").querySelector("button").click(),
    );
    await seen(tag, ".verdict");
  };

  /** Every state that a reader can bring about, and how. */
  const STATES = {
    "an answer": calculator(),
    "weights that do not fit": calculator(() => ask({ model: "llama-3-70b" })),
    "a context too long": calculator(() => ask({ model: "llama-3-70b", gpus: 2, context: 131072 })),
    "a refusal": calculator(() => ask({ context: "many" })),
    "unknown weights": calculator(() =>
      ask({
        model: { name: "Ours", layers: [{ count: 4, kind: "full", kv_heads: 2, key_width: 64, value_width: 64 }] },
      }),
    ),
    "no kernel": () => open("/refused.html", "kv-capacity"),
    "the arithmetic": calculator(async () => {
      await press("kv-capacity", "[part=arithmetic] summary");
      await seen("kv-capacity", ".steps li");
    }),
    "a wish": calculator(async () => {
      await openPart("wish");
      await put("kv-capacity", ".wish input", "100 users at 32k");
      await seen("kv-capacity", ".wish .button");
    }),
    "an own model": calculator(async () => {
      await openPart("own");
      await put("kv-capacity", ".own textarea", config);
      await seen("kv-capacity", ".understood");
    }),
    "an own model that is none": calculator(async () => {
      await openPart("own");
      await put("kv-capacity", ".own textarea", "{");
      await seen("kv-capacity", ".own [aria-invalid]");
    }),
    "an engine": calculator(async () => {
      await openPart("engine");
      await ask({ model: "gemma-3-27b", engine: "vllm", gpu: "h100-sxm-80gb", gpus: 2 });
    }),
    "a log": calculator(async () => {
      await openPart("log");
      await put("kv-capacity", ".log textarea", log);
      await seen("kv-capacity", ".log-outcome table");
    }),
    "the search": calculator(async () => {
      await press("kv-capacity", ".search");
      await seen("kv-capacity", ".finder [role=option]");
    }),
    "sharing by hand": calculator(async () => {
      await openPart("share");
      await within(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
      await press("kv-capacity", ".share .button");
      await seen("kv-capacity", ".share textarea");
    }),
    "a table": async () => {
      await open("/table.html");
      await until("the table's button", () =>
        within(
          () => document.querySelector("kv-capacity-table").shadowRoot?.querySelector("button")?.disabled === false,
        ),
      );
      await press("kv-capacity-table", "button");
      await seen("kv-capacity-table", "tbody tr");
    },
    "the chapter": () => open("/", "kv-capacity", ...LESSON),
    ...Object.fromEntries(LESSON.map((tag) => [`<${tag}>`, () => open(`/${tag}.html`, tag)])),
    "<kv-curve> with kept lines and its table": async () => {
      await open("/kv-curve.html", "kv-curve");
      await within(() =>
        document.querySelector("kv-curve").setAttribute("keep", "model=llama-3.1-70b&gpus=4 model=qwen3-8b"),
      );
      await seen("kv-curve", ".lines li:nth-child(3)");
      await press("kv-curve", "details summary");
      await seen("kv-curve", "tbody tr");
    },
    "<kv-paging> running": async () => {
      await open("/kv-paging.html", "kv-paging");
      await within(() => document.querySelector("kv-paging").setAttribute("step", "200"));
      await until("the step", () => inside("kv-paging", (root) => root.querySelector("#scrub").value === "200"));
    },
    "<kv-quiz> with a wrong answer": async () => {
      await open("/kv-quiz.html", "kv-quiz");
      await answer("kv-quiz", "1");
    },
    "<kv-quiz> with the answer shown, and its summary": async () => {
      await open("/kv-quiz.html", "kv-quiz");
      for (let i = 0; i < 300; i++) {
        const over = await inside("kv-quiz", (root) => {
          if (root.querySelector(".marks")) return true;
          (
            root.querySelector(".give-up") ??
            root.querySelector(".next") ??
            root.querySelector(".card .buttons button")
          ).click();
          return false;
        });
        if (over) break;
        // Another question stands there a little after the click.
        await wait(60);
      }
      await seen("kv-quiz", ".marks");
    },
    "<kv-interview> answered": async () => {
      await open("/kv-interview.html", "kv-interview");
      await press("kv-interview", ".give-up");
      await seen("kv-interview", ".verdict");
    },
  };

  const scheme = (name) =>
    within((name) => {
      document.documentElement.style.colorScheme = name;
    }, name);

  describe("in every state", () => {
    for (const [state, bring] of Object.entries(STATES)) {
      it(state, async () => {
        await page.resize(1280, 1000);
        await bring();
        for (const name of ["light", "dark"]) {
          await scheme(name);
          const found = await within(async (source) => {
            if (!window.axe) new Function(source)();
            const { violations } = await window.axe.run(document, {
              resultTypes: ["violations"],
              runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            });
            return violations.map(
              ({ id, nodes }) =>
                `${id}: ${nodes.map(({ target, any }) => `${target.flat().join(" ")} ${any[0]?.message ?? ""}`).join("; ")}`,
            );
          }, axe);
          assert.deepEqual(found, [], name);
        }
        const wrong = await within(() => {
          const { all, shown, name } = window.reach;
          const nodes = all().filter(shown);
          const found = [];
          for (const node of nodes) {
            const slider = node.matches("input[type=range], [role=slider]");
            if (slider && !/\p{L}/u.test(node.getAttribute("aria-valuetext") ?? ""))
              found.push(`${name(node)} says no unit: ${node.getAttribute("aria-valuetext")}`);
            if (node.matches("input[type=range]")) {
              if (getComputedStyle(node).touchAction !== "pan-y")
                found.push(`${name(node)} keeps a finger from scrolling`);
            }
            if (node.matches("input[type=range], .controls :is(select, input)")) {
              if (node.offsetHeight < 44) found.push(`${name(node)} is ${node.offsetHeight} high`);
            }
            // What is smaller than 24 pixels is reached from all around its middle.
            if (!node.matches("button, select, textarea, summary, input:not(.file), label.button, a:not(p a)"))
              continue;
            const { width, height } = node.getBoundingClientRect();
            if (width >= 24 && height >= 24) continue;
            node.scrollIntoView({ block: "center", behavior: "instant" });
            const { left, top } = node.getBoundingClientRect();
            const at = (dx, dy) => node.getRootNode().elementFromPoint(left + width / 2 + dx, top + height / 2 + dy);
            // The list of models lies over what is below it.
            if (at(0, 0)?.closest(".finder")) continue;
            const misses = [
              [0, -11.5],
              [0, 11.5],
              [-11.5, 0],
              [11.5, 0],
            ].filter(([dx, dy]) => {
              const hit = at(dx, dy);
              return hit !== node && !node.contains(hit);
            });
            if (misses.length > 0) found.push(`${name(node)} is ${width} × ${height}`);
          }
          const live = all().filter((node) =>
            node.matches("[aria-live], [role=status], [role=alert], [role=log], output"),
          );
          if (live.length > 1) found.push(`${live.length} live regions: ${live.map(name).join(", ")}`);
          return found;
        });
        assert.deepEqual(wrong, []);
      });
    }
  });

  describe("by keyboard", () => {
    it("goes through everything in its order, forwards and back, with a focus that is seen", async () => {
      await page.resize(1280, 1000);
      await open("/calculator.html", "kv-capacity");
      for (const part of ["wish", "own", "engine", "log", "share"]) await openPart(part);
      await ask({ model: "gemma-3-27b", engine: "vllm", gpu: "h100-sxm-80gb", gpus: 2 });
      await within(() => {
        const [start, end] = ["start", "end"].map((id) =>
          Object.assign(document.createElement("button"), { id, textContent: id }),
        );
        document.querySelector("main").append(end);
        document.querySelector("h1").after(start);
        start.focus();
        window.last = start;
      });
      const expected = await inside("kv-capacity", (root) =>
        [...root.querySelectorAll("button, select, textarea, summary, input, [tabindex='0']")]
          .filter((node) => node.checkVisibility() && !node.disabled)
          .map((node) => window.reach.name(node)),
      );
      const walk = async (keys) => {
        const names = [];
        for (let i = 0; i < expected.length + 5; i++) {
          await page.page.keyboard.down(keys[0]);
          if (keys[1]) await page.page.keyboard.press(keys[1]);
          await page.page.keyboard.up(keys[0]);
          await until("the focus to go on", () =>
            within(() => {
              const node = document.activeElement.shadowRoot?.activeElement ?? document.activeElement;
              if (node === window.last) return false;
              window.last = node;
              return true;
            }),
          );
          const focus = await within(() => {
            const { parts, over, contrast, ground, parent, name } = window.reach;
            const node = document.activeElement.shadowRoot?.activeElement;
            if (!node) return { id: document.activeElement.id };
            const style = getComputedStyle(node);
            // The picker of files is out of sight: its label has the ring.
            const ring = node.type === "file" ? getComputedStyle(node.parentElement) : style;
            const under = ground(parent(node));
            const { x, y, width, height } = node.getBoundingClientRect();
            return {
              range: node.type === "range" && {
                x: x + scrollX - 8,
                y: y + scrollY - 8,
                width: width + 16,
                height: height + 16,
              },
              name: name(node),
              width: Number.parseFloat(ring.outlineWidth),
              style: ring.outlineStyle,
              contrast: contrast(over(parts(ring.outlineColor), under), under),
            };
          });
          if (focus.id) break;
          names.push(focus.name);
          if (focus.range) {
            // The ring is the handle's, which a page cannot ask: its picture is another without the focus.
            const picture = () => page.page.screenshot({ clip: focus.range, encoding: "base64" });
            const withFocus = await rests(picture, 30);
            await inside("kv-capacity", (root) => {
              window.left = root.activeElement;
              window.left.blur();
            });
            assert.notEqual(await rests(picture, 100), withFocus, `${focus.name}: the focus is not seen`);
            await within(() => window.left.focus());
            continue;
          }
          assert.ok(focus.style !== "none" && focus.width >= 2, `${focus.name}: the focus is not seen`);
          assert.ok(focus.contrast >= 3, `${focus.name}: ${focus.contrast}`);
        }
        return names;
      };
      assert.deepEqual(await walk(["Tab"]), expected);
      assert.deepEqual(await walk(["Shift", "Tab"]), expected.toReversed());
    });

    it("moves every slider by every key, both ways", async () => {
      await open("/all.html", "kv-capacity", ...LESSON);
      const sliders = await within(() => {
        const nodes = window.reach
          .all()
          .filter(
            (node) => node.matches("input[type=range], [role=slider]") && window.reach.shown(node) && !node.disabled,
          );
        window.sliders = nodes;
        return nodes.map(window.reach.name);
      });
      assert.ok(sliders.length >= 6, sliders.join());
      for (const [index, name] of sliders.entries()) {
        const value = () =>
          within((index) => {
            const node = window.sliders[index];
            return Number(node.value ?? node.getAttribute("aria-valuenow"));
          }, index);
        /** The value that a key leads to: one that is as expected, or the last that was there. */
        const after = async (key, expected, what = `${name}: ${key}`) => {
          await page.press(key);
          return passes(async () => {
            const now = await value();
            assert.ok(expected(now), `${what} gives ${now}`);
            return now;
          });
        };
        /** A key that does nothing has a while for it. */
        const stays = async (key, at) => {
          await page.press(key);
          await wait(60);
          assert.equal(await value(), at, `${name} at its end: ${key}`);
        };
        const { least, most } = await within((index) => {
          const node = window.sliders[index];
          node.scrollIntoView({ block: "center", behavior: "instant" });
          node.focus();
          const [least, most] = [
            node.min || node.getAttribute("aria-valuemin"),
            node.max || node.getAttribute("aria-valuemax"),
          ];
          return { least: Number(least), most: Number(most) };
        }, index);
        assert.ok(most > least, name);
        const lowest = await after("Home", (at) => at === least);
        const highest = await after("End", (at) => at === most);
        await stays("ArrowRight", highest);
        const below = await after("PageDown", (at) => at < highest);
        await after("PageUp", (at) => at > below);
        await after("Home", (at) => at === lowest);
        await stays("ArrowLeft", lowest);
        for (const [up, down] of [
          ["ArrowRight", "ArrowLeft"],
          ["ArrowUp", "ArrowDown"],
          ["PageUp", "PageDown"],
        ]) {
          const higher = await after(up, (at) => at > lowest);
          // A page of a slider with few steps is no whole number of them, and the browser rounds it.
          const back = up === "PageUp" ? (at) => at < higher : (at) => at === lowest;
          await after(down, back, `${name}: ${down} from ${higher}`);
        }
      }
    });

    it("opens, presses and closes by Enter, space and Escape", async () => {
      await open("/calculator.html", "kv-capacity");
      const isOpen = () => inside("kv-capacity", (root) => root.querySelector(".share").open);
      for (const key of ["Enter", "Space"]) {
        await inside("kv-capacity", (root) => root.querySelector(".share summary").focus());
        await page.press(key);
        await becomes(isOpen, true, key);
        await page.press(key);
        await becomes(isOpen, false, key);
        await inside("kv-capacity", (root) => root.querySelector(".search").focus());
        await page.press(key);
        await seen("kv-capacity", ".finder");
        await page.press("Escape");
        const closed = () =>
          inside("kv-capacity", (root) => [root.querySelector(".finder").hidden, root.activeElement?.id]);
        await becomes(closed, [true, "model"]);
      }
    });

    it("is told once a settle, and not what the slider says itself", async () => {
      await open("/all.html", "kv-capacity", ...LESSON);
      await within(() => {
        window.spoken = [];
        // The rest before what is spoken is made longer, lest a slow machine take as long from key to key.
        const real = window.setTimeout;
        window.setTimeout = (then, time, ...rest) => real(then, time > 500 ? 2 * time : time, ...rest);
        new MutationObserver(() => {
          const said = document.querySelector("[role=status]")?.textContent;
          if (said) spoken.push(said);
        }).observe(document.body, { childList: true, subtree: true, characterData: true });
      });
      for (const [tag, selector] of [
        ["kv-capacity", "#context"],
        ["kv-capacity", "#gpus"],
        ["kv-curve", ".handle"],
        ["kv-paging", "input[type=range]"],
        ["kv-growth", "input[type=range]"],
      ]) {
        await within(() => {
          spoken.length = 0;
        });
        await inside(tag, (root, selector) => root.querySelector(selector).focus(), selector);
        await page.press("ArrowRight", 3);
        await until(`what ${tag} says`, () => within(() => spoken.length > 0));
        await wait(1600);
        const said = await within(() => spoken);
        assert.equal(said.length, 1, `${tag}: ${said.join(" | ")}`);
        const value = await inside(
          tag,
          (root, selector) => root.querySelector(selector).getAttribute("aria-valuetext"),
          selector,
        );
        assert.notEqual(said[0], value);
      }
    });
  });

  describe("as a reader has set it", () => {
    let session;
    const emulate = async (features, media = "") => {
      session ??= await page.page.createCDPSession();
      await session.send("Emulation.setEmulatedMedia", { features, media });
    };
    after(() => emulate([]));

    it("shows bar, curve, focus and choices in forced colours", async () => {
      await open("/all.html", "kv-capacity", ...LESSON);
      await emulate([{ name: "forced-colors", value: "active" }]);
      const wrong = await within(() => {
        const { all, shown, parts, over, contrast, name } = window.reach;
        const probe = document.createElement("span");
        document.body.append(probe);
        const system = (colour) => {
          probe.style.color = colour;
          return parts(getComputedStyle(probe).color);
        };
        const canvas = system("Canvas").slice(0, 3);
        const found = [];
        const visible = (node, colour, what) => {
          const ratio = contrast(over(parts(colour), canvas), canvas);
          if (ratio < 3) found.push(`${name(node)}: ${what} ${colour} has ${ratio.toFixed(2)}`);
        };
        for (const node of all().filter(shown)) {
          const style = getComputedStyle(node);
          if (node.matches(".bar > .cache, .bar > .weights, .swatch.cache, .swatch.weights, .added"))
            visible(node, style.backgroundColor, "fill");
          if (node.matches(".plot path.line, .sample path")) visible(node, style.stroke, "line");
          if (node.matches(".ring, path.t0, path.prefix, .book, .query")) visible(node, style.fill, "fill");
          if (node.matches("select, .exact, .button, textarea")) visible(node, style.borderTopColor, "border");
          if (node.matches("[aria-pressed=true]"))
            visible(node, style.outlineStyle === "none" ? style.borderTopColor : style.outlineColor, "choice");
          if (node.matches("svg text")) visible(node, style.fill, "text");
        }
        probe.remove();
        return found;
      });
      assert.deepEqual(wrong, []);
      await inside("kv-curve", (root) => root.querySelector(".handle").focus());
      await page.press("ArrowRight");
      await until("the ring of the focus", () =>
        inside("kv-curve", (root) => getComputedStyle(root.querySelector(".handle .touch")).stroke !== "none"),
      );
    });

    it("moves nothing where motion is not wanted", async () => {
      await emulate([{ name: "prefers-reduced-motion", value: "reduce" }]);
      await open("/all.html", "kv-capacity", ...LESSON);
      const moving = await within(() => {
        const { all, name } = window.reach;
        return all()
          .filter((node) => {
            const { transitionDuration, animationName } = getComputedStyle(node);
            return !/^(0s(, )?)+$/.test(transitionDuration) || animationName !== "none";
          })
          .map(name);
      });
      assert.deepEqual(moving, []);
      assert.equal(await inside("kv-growth", (root) => root.querySelector(".button.first").hidden), true);
    });

    it("has nothing that axe finds where more contrast is wanted", async () => {
      await emulate([{ name: "prefers-contrast", value: "more" }]);
      await open("/calculator.html", "kv-capacity");
      const found = await within(async (source) => {
        new Function(source)();
        const { violations } = await window.axe.run(document, { runOnly: ["color-contrast"] });
        return violations.length;
      }, axe);
      assert.equal(found, 0);
    });

    it("reads at 400 % and with wider text, nothing cut off", async () => {
      await emulate([]);
      // 1280 pixels at 400 % are 320.
      await page.resize(320, 800);
      await open("/all.html", "kv-capacity", ...LESSON);
      for (const part of ["wish", "own", "engine", "log", "share"]) await openPart(part);
      await ask({ model: "gemma-3-27b", engine: "llama.cpp", gpu: "h100-sxm-80gb", gpus: 2, context: 32768 });
      await put("kv-capacity", ".log textarea", log);
      await seen("kv-capacity", ".log-outcome table");
      for (const spaced of [false, true]) {
        const wrong = await within((spaced) => {
          const { all, shown, name } = window.reach;
          if (spaced) {
            const sheet = new CSSStyleSheet();
            sheet.replaceSync(
              "*{letter-spacing:.12em!important;word-spacing:.16em!important;line-height:1.5!important}p{margin-block-end:2em!important}",
            );
            for (const node of all()) if (node.shadowRoot) node.shadowRoot.adoptedStyleSheets.push(sheet);
            document.adoptedStyleSheets.push(sheet);
          }
          const found = [];
          if (document.documentElement.scrollWidth > innerWidth)
            found.push(`the page is ${document.documentElement.scrollWidth} wide`);
          for (const node of all().filter(shown)) {
            if (node.closest("svg, .bar, .scroll, .hover, .tokens, textarea, [role=status], .file")) continue;
            const { left, right, width } = node.getBoundingClientRect();
            if (width > 1 && (right > innerWidth + 0.5 || left < -0.5))
              found.push(`${name(node)} reaches from ${left} to ${right}`);
            const { overflowX, overflowY } = getComputedStyle(node);
            if (node.matches("select, input")) continue;
            if (/hidden|clip/.test(overflowX) && node.scrollWidth > node.clientWidth + 1)
              found.push(`${name(node)} is cut off`);
            if (/hidden|clip/.test(overflowY) && node.scrollHeight > node.clientHeight + 1)
              found.push(`${name(node)} is cut off below`);
          }
          return found;
        }, spaced);
        assert.deepEqual(wrong, [], spaced ? "with wider text" : "at 400 %");
      }
      await page.resize(1280, 1000);
    });

    it("prints what there is to read, open and in light", async () => {
      await open("/all.html", "kv-capacity", "kv-capacity-table", ...LESSON);
      await emulate([{ name: "prefers-color-scheme", value: "dark" }], "print");
      const { steps, rows, cells, shown, colours } = await within(() => {
        dispatchEvent(new Event("beforeprint"));
        const { all, shown, name } = window.reach;
        const calculator = document.querySelector("kv-capacity").shadowRoot;
        return {
          steps: calculator.querySelectorAll(".steps li").length,
          rows: document.querySelector("kv-curve").shadowRoot.querySelectorAll("tbody tr").length,
          cells: [...document.querySelector("kv-capacity-table").shadowRoot.querySelectorAll("td")].map(
            (cell) => cell.textContent.trim() !== "",
          ),
          shown: all()
            .filter(
              (node) =>
                node.matches("input[type=range], .search, .panel:not([open]), .buttons button, [part=button], .copy") &&
                shown(node),
            )
            .map(name),
          colours: [
            getComputedStyle(calculator.querySelector(".sentence")).color,
            getComputedStyle(calculator.querySelector(".kv")).backgroundColor,
            getComputedStyle(document.documentElement).backgroundColor,
          ],
        };
      });
      await emulate([]);
      assert.ok(steps > 3);
      assert.ok(rows > 3);
      assert.ok(cells.length > 20 && cells.every(Boolean), "a table that nobody has filled");
      assert.deepEqual(shown, []);
      assert.deepEqual(colours, ["rgb(0, 0, 0)", "rgb(255, 255, 255)", "rgb(255, 255, 255)"]);
    });

    it("leaves no room on paper for what has not come", async () => {
      await page.goto(`${site.origin}/far.html`);
      const height = () => within(() => document.querySelector("kv-quiz").getBoundingClientRect().height);
      await until("room for the quiz", async () => (await height()) > 300);
      await emulate([], "print");
      const printed = await height();
      await emulate([]);
      assert.equal(printed, 0);
    });

    it("looks the same in a narrow column of a wide page as on a phone", async () => {
      await open("/all.html", "kv-capacity", ...LESSON);
      const layout = async (width) => {
        await page.resize(width, 1000);
        await within(() => {
          for (const host of document.querySelectorAll("main > *"))
            if (host.shadowRoot) host.style.inlineSize = "300px";
        });
        const measure = () =>
          within(() => {
            const { name } = window.reach;
            const out = [];
            for (const host of document.querySelectorAll("main > *")) {
              const { left, top } = host.getBoundingClientRect();
              for (const node of host.shadowRoot?.querySelectorAll("*") ?? []) {
                if (node.closest("svg")) continue;
                const box = node.getBoundingClientRect();
                if (box.width === 0) continue;
                out.push([name(node), box.left - left, box.top - top, box.width, box.height]);
              }
            }
            return out;
          });
        // A curve is drawn anew once its size has settled.
        return rests(measure, 300);
      };
      const wide = await layout(1440);
      const phone = await layout(332);
      await page.resize(1280, 1000);
      assert.ok(wide.length > 200);
      assert.equal(wide.length, phone.length);
      // A pixel is what rounding makes of the same length elsewhere.
      const differs = (one, other) =>
        one.some((value, k) => (k === 0 ? value !== other[k] : Math.abs(value - other[k]) > 1));
      const wrong = wide.flatMap((one, k) => (differs(one, phone[k]) ? [`${one} is ${phone[k]}`] : []));
      assert.deepEqual(wrong.slice(0, 5), []);
    });
  });

  describe("the README", () => {
    const readme = readFileSync(join(project, "README.md"), "utf8");
    const source = join(project, "web/src");
    const files = readdirSync(source, { recursive: true });
    const text = (ending) =>
      files
        .filter((name) => name.endsWith(ending))
        .map((name) => readFileSync(join(source, name), "utf8"))
        .join("\n");

    it("names the custom properties that there are, and no more than 15", () => {
      const used = new Set([...text(".css").matchAll(/var\((--kv-[a-z-]+)/g)].map(([, name]) => name));
      const [, looks] = readme.match(/^## Looks$(.*?)^```css/ms);
      const named = new Set([...looks.matchAll(/`(--kv-[a-z-]+)`/g)].map(([, name]) => name));
      assert.deepEqual([...named].sort(), [...used].sort());
      assert.ok(used.size <= 15);
    });

    it("names the parts that there are", () => {
      for (const [file, tag] of [
        ["kv-capacity.ts", "### `<kv-capacity>`"],
        ["lesson/kv-capacity-table.ts", "### `<kv-capacity-table>`"],
      ]) {
        const code = readFileSync(join(source, file), "utf8");
        const there = new Set(
          [...code.matchAll(/\bpart: (?:"([a-z]+)"|`([a-z]+) )/g)].map(([, one, other]) => one ?? other),
        );
        const section = readme.slice(readme.indexOf(tag));
        const [, list] = section.match(/Parts: (.*?)\./s);
        const named = [...list.replace(/\(with .*?\)/s, "").matchAll(/`([a-z]+)`/g)].map(([, name]) => name);
        assert.deepEqual(named.toSorted(), [...there].sort(), tag);
      }
    });
  });
});

// ---- any colours -------------------------------------------------------------------------------------------------------

/** The ends of what there is, and what pages have. */
const ACCENTS = [
  ...["white", "black", "yellow", "#ff0", "lime", "cyan", "magenta", "red", "blue", "#00f8", "transparent", "gray"],
  ...[
    "color(display-p3 0 1 0)",
    "color(display-p3 1 1 0)",
    "oklch(0.9 0.37 150)",
    "oklch(0.2 0.3 260)",
    "lab(50 120 -120)",
  ],
  ...["light-dark(yellow, navy)", "currentColor", "Highlight", "color-mix(in oklab, yellow, white)", "hwb(60 90% 0%)"],
  ...Array.from({ length: 24 }, (_, i) => `hsl(${i * 15} 100% ${[30, 50, 70, 90][i % 4]}%)`),
  ...Array.from({ length: 14 }, (_, i) => `oklch(${(0.05 + i * 0.07).toFixed(2)} ${[0, 0.1, 0.3][i % 3]} ${i * 53})`),
];

for (const [name, launch] of Object.entries(browsers)) {
  describe(`any colour, in ${name}`, { timeout: 300_000 }, () => {
    it("leaves text and controls with enough contrast, light and dark", async () => {
      const { site, page, close } = await visit(launch, PAGES);
      try {
        await page.goto(`${site.origin}/all.html`);
        for (const tag of ["kv-capacity", "kv-capacity-table", ...LESSON]) {
          await until(`<${tag}>`, () =>
            page.evaluate((tag) => {
              const element = document.querySelector(tag);
              element.scrollIntoView({ behavior: "instant" });
              return Boolean(element.shadowRoot?.querySelector(".body")?.checkVisibility());
            }, tag),
          );
        }
        await page.evaluate(tools);
        const accents = name === "Chromium" ? ACCENTS : ACCENTS.filter((_, i) => i % 4 === 0);
        const wrong = await page.evaluate((accents) => {
          const { all, shown, parts, over, contrast, ground, parent, name } = window.reach;
          const nodes = all().filter((node) => shown(node) && node.getRootNode() !== document);
          const texts = nodes.filter(
            (node) =>
              !node.closest("svg, [disabled], :disabled, option, optgroup, .hover, .tokens") &&
              [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== ""),
          );
          const fills = [
            ".bar > .cache",
            ".swatch.cache",
            ".added",
            ".swatch.k",
            ".swatch.v",
            ".swatch.used",
            ".swatch.prefix",
          ].join();
          const found = [];
          const check = (node, colour, under, least, what) => {
            const ratio = contrast(over(parts(colour), under), under);
            if (ratio < least) found.push(`${what}: ${name(node)} ${colour} has ${ratio.toFixed(2)}`);
          };
          for (const scheme of ["light", "dark"]) {
            document.documentElement.style.colorScheme = scheme;
            for (const accent of accents) {
              document.documentElement.style.setProperty("--kv-accent", accent);
              document.documentElement.style.setProperty("--kv-warning", accent);
              const what = `${scheme}, ${accent}`;
              for (const node of texts) check(node, getComputedStyle(node).color, ground(node), 4.5, what);
              for (const node of nodes) {
                const style = getComputedStyle(node);
                const under = ground(parent(node));
                if (node.matches(fills)) check(node, style.backgroundColor, under, 3, what);
                else if (node.matches(".plot .line.l0, .line.paged, .line.contiguous"))
                  check(node, style.stroke, under, 3, what);
                else if (node.matches(".ring, rect.k, path.k, path.v, .book, path.t0, path.t1, path.t2, path.prefix"))
                  check(node, style.fill, under, 3, what);
                else if (node.matches("select, .exact")) check(node, style.borderBlockEndColor, under, 3, what);
              }
            }
          }
          return found;
        }, accents);
        assert.deepEqual(wrong.slice(0, 12), [], `${wrong.length} in all`);
      } finally {
        await close();
      }
    });
  });
}
