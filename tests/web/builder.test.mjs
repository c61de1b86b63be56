// The builder's page: what an author chooses there, and every snippet that it makes, pasted into a page and run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transformSync } from "esbuild";
import markdown from "markdown-it";
import { browsers } from "./browsers.mjs";
import { becomes, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const work = fileURLToPath(new URL("../../build/builder/", import.meta.url));
const words = JSON.parse(readFileSync(new URL("../../web/locales/en-builder.json", import.meta.url), "utf8"));

const HOSTILE =
  '</kv-capacity></script><img src=x onerror="hacked=1">&quot;&amp;\'{1+1}*a*_b_`c`\\\n\n\n    d $<!-- 模型 \u2028';

/** What an author sets up: the element and its state, and the choices below. */
const CASES = {
  "every choice": {
    tag: "kv-capacity",
    state: { model: "llama-3.1-70b", gpus: "4", context: "131072", kv: "fp8" },
    lock: ["model", "gpus"],
    theme: "dark",
    accent: "#b3261e",
    lang: "es",
    width: "560",
  },
  "an engine with options": {
    tag: "kv-capacity",
    state: {
      model: "llama-3.1-8b",
      engine: "vllm",
      gpu: "h100-sxm-80gb",
      options: '{"gpu_memory_utilization":0.85}',
    },
    theme: "light",
    lock: ["model", "weights", "kv", "gpu", "gpus", "context", "engine"],
  },
  "a model with a hostile name": {
    tag: "kv-capacity",
    state: {
      model: JSON.stringify({
        name: HOSTILE,
        parameters: 1e9,
        layers: [{ count: 4, kind: "full", kv_heads: 2, key_width: 64, value_width: 64 }],
      }),
      kv: '{"k":"q8_0","v":"q4_0"}',
    },
    accent: "#00f",
  },
  "a quiz": { tag: "kv-quiz", state: { seed: "7", level: "1", count: "3" }, lock: ["level"], width: "720" },
  "a table": {
    tag: "kv-capacity-table",
    state: { deployments: "model=llama-3-8b; model=llama-3-70b gpus=4", contexts: "1024 8192" },
    lang: "de",
  },
  "a formula": { tag: "kv-formula", state: { model: "llama-3.1-8b", layers: "40" }, theme: "dark" },
};
const FORMS = ["tag", "frame", "file", "markdown", "mdx", "rst"];

/** A page as a snippet's host would make it; answers with what is to be opened. */
const around = (body) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>course</title><link rel="icon" href="data:,"></head><body>${body}</body></html>`;

/** The little of React that the snippet's JSX asks for. */
const JSX = `const Fragment = "fragment";
  function make(type, props, ...children) {
    const node = type === Fragment ? document.createDocumentFragment() : document.createElement(type);
    for (const [name, value] of Object.entries(props ?? {})) {
      if (name !== "style") node.setAttribute(name, value === true ? "" : value);
      else for (const [key, text] of Object.entries(value)) {
        if (key.startsWith("--")) node.style.setProperty(key, text);
        else if (!(key in node.style)) throw new Error("no style " + key);
        else node.style[key] = text;
      }
    }
    node.append(...children.flat());
    return node;
  }`;

/** The HTML that reStructuredText's raw directives stand for, read by hand. */
function rawHtml(rst) {
  const [, block] = rst.match(/^\.\. raw:: html\n\n((?: {3}.*\n)+)(?!\S)/m) ?? [];
  assert.ok(block, rst);
  return block.replace(/^ {3}/gm, "");
}

const hosts = {
  tag: around,
  frame: around,
  file: (text) => text,
  markdown(text) {
    const html = markdown({ html: true }).render(`# Before\n\nA *word*.\n\n${text}\n\nAfter *it*.\n`);
    assert.match(html, /<p>A <em>word<\/em>\.<\/p>/);
    assert.match(html, /<p>After <em>it<\/em>\.<\/p>\s*$/);
    assert.ok(html.includes(text), "lines of HTML go through as they are");
    // MkDocs has another Markdown.
    const program = "import sys, markdown; print(markdown.markdown(sys.stdin.read()))";
    const { status, stdout } = ["/usr/bin/python3", "python3"]
      .map((name) => spawnSync(name, ["-c", program], { input: `A\n\n${text}\n\nB\n`, encoding: "utf8" }))
      .reduce((one, other) => (one.status === 0 ? one : other));
    if (status === 0) assert.ok(stdout.includes(text), `Python's Markdown leaves lines of HTML alone:\n${stdout}`);
    return around(html);
  },
  mdx(text) {
    const { code } = transformSync(`document.body.append(<>${text}</>);`, {
      loader: "jsx",
      jsxFactory: "make",
      jsxFragment: "Fragment",
      charset: "ascii",
    });
    return around(`<script>${JSX}\n${code.replaceAll("</", "<\\/").replaceAll("<!--", "<\\!--")}</script>`);
  },
  rst(text) {
    const rst = `Before\n======\n\nA *word*.\n\n${text}\n\nAfter it.\n`;
    const html = rawHtml(rst);
    const code =
      "import sys, docutils.core as c; sys.stdout.buffer.write(c.publish_parts(sys.stdin.buffer.read().decode(), writer_name='html', settings_overrides={'report_level': 1, 'halt_level': 2})['body'].encode())";
    const rendered = spawnSync("python3", ["-c", code], { input: rst });
    if (/No module named/.test(rendered.stderr ?? "") || rendered.error) return around(html);
    assert.equal(rendered.status, 0, String(rendered.stderr));
    assert.ok(String(rendered.stdout).includes(html.trimEnd()), "docutils makes the same of it");
    return around(String(rendered.stdout));
  },
};

describe("the builder", { timeout: 900_000 }, () => {
  const pages = {};
  let page;
  let origin;
  let visited;

  before(async () => {
    mkdirSync(work, { recursive: true });
    visited = await visit(browsers.Chromium, pages);
    page = visited.page;
    origin = visited.site.origin;
  });
  after(() => visited?.close());

  const open = async (url = `${origin}/builder.html`) => {
    page.problems.length = 0;
    await page.goto("about:blank");
    await page.goto(url);
    await until("the calculator and its snippet", () =>
      page.evaluate(() =>
        Boolean(
          document.querySelector("kv-builder")?.shadowRoot?.querySelector("code")?.textContent &&
            document.querySelector("kv-capacity").plan,
        ),
      ),
    );
  };
  /** Sets a control of the builder as a reader's hand would. */
  const put = (selector, value) =>
    page.evaluate(
      (selector, value) => {
        const control = document.querySelector("kv-builder").shadowRoot.querySelector(selector);
        if (!control) throw new Error(`no ${selector}`);
        if (control.type === "checkbox" || control.type === "radio") {
          if (control.checked !== value) control.click();
          return;
        }
        control.value = value;
        for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind, { bubbles: true }));
        if (control.value !== value) throw new Error(`${selector} does not take ${value}`);
      },
      selector,
      value,
    );
  const shown = (selector) =>
    page.evaluate((selector) => {
      const node = document.querySelector("kv-builder").shadowRoot.querySelector(selector);
      return node && !node.closest("[hidden]") ? node.textContent : null;
    }, selector);
  const code = () => shown("pre code");
  const state = async (tag, within = page) => {
    const text = await within.evaluate((tag) => document.querySelector(tag)?.state, tag);
    return Object.fromEntries([...new URLSearchParams(text)].sort());
  };

  async function setUp({ tag, state: wanted, lock = [], theme = "auto", accent, lang = "", width = "" }) {
    await open();
    await put("#element", tag);
    await until(tag, () => page.evaluate((tag) => Boolean(customElements.get(tag)), tag));
    await page.evaluate(
      (tag, wanted) => {
        for (const [key, text] of Object.entries(wanted)) document.querySelector(tag).setAttribute(key, text);
      },
      tag,
      wanted,
    );
    for (const key of lock) await put(`#lock-${key}`, false);
    await put(`#theme-${theme}`, true);
    if (accent) await put("#accent", accent.length === 4 ? accent.replace(/[^#]/g, "$&$&") : accent);
    await put("#lang", lang);
    await put("#width", width);
    await until("the element to answer", () =>
      page.evaluate((tag) => {
        const element = document.querySelector(tag);
        if (element?.shadowRoot?.querySelector(".kv")?.className !== "kv") return false;
        // A calculator shows its last answer while the second script is on its way.
        return tag !== "kv-capacity" || element.plan?.engine === (element.engine ?? "textbook");
      }, tag),
    );
    return state(tag);
  }

  /** The text of a form: the snippet, or the file that would be saved. */
  async function textOf(form) {
    await put(`#form-${form}`, true);
    if (form !== "file") return code();
    await page.evaluate(() => {
      window.saved = null;
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        blob.text().then((text) => {
          window.saved = text;
        });
        return make.call(URL, blob);
      };
      HTMLAnchorElement.prototype.click = () => {};
      [...document.querySelector("kv-builder").shadowRoot.querySelectorAll("button")]
        .find((button) => button.textContent.startsWith("Download"))
        .click();
    });
    return until("the file", () => page.evaluate(() => window.saved));
  }

  it("has a snippet of each element, with a text for readers without script", async () => {
    await open();
    const tags = await page.evaluate(() =>
      [...document.querySelector("kv-builder").shadowRoot.querySelectorAll("#element option")].map(
        ({ value }) => value,
      ),
    );
    assert.ok(tags.length > 10);
    for (const tag of tags) {
      await put("#element", tag);
      await until(`a snippet of ${tag}`, async () =>
        new RegExp(`<${tag}[^>]*>\\s*<p>[^<]{10,}</p>\\s*</${tag}>`).test((await code()) ?? ""),
      );
    }
  });

  for (const [name, choice] of Object.entries(CASES)) {
    it(`makes snippets that start where the author stood: ${name}`, async () => {
      const { tag, theme = "auto", accent, lang = "", width, lock = [] } = choice;
      const wanted = await setUp(choice);
      for (const [key, text] of Object.entries(choice.state)) assert.equal(wanted[key], text, `${key} on the stage`);
      const texts = {};
      for (const form of FORMS) texts[form] = await textOf(form);
      assert.deepEqual(await page.evaluate(() => window.problems), []);
      for (const [form, text] of Object.entries(texts)) {
        const where = `${name} as ${form}`;
        let url = `${origin}/pasted-${form}.html`;
        if (form === "file") {
          writeFileSync(join(work, "pasted.html"), text);
          url = pathToFileURL(join(work, "pasted.html")).href;
        } else {
          pages[`/pasted-${form}.html`] = { html: hosts[form](text) };
        }
        page.problems.length = 0;
        await page.goto("about:blank");
        await page.goto(url);
        let within = page.page.mainFrame();
        await until(where, async () => {
          if (form === "frame") within = page.page.frames().find((one) => one.url().includes("embed.html")) ?? within;
          return within.evaluate((tag) => {
            const element = document.querySelector(tag);
            element?.scrollIntoView();
            return element?.shadowRoot?.querySelector(".kv")?.className === "kv";
          }, tag);
        });
        await until(`${where}: the state`, async () => {
          const { lock: _, ...now } = await state(tag, within);
          return JSON.stringify(now) === JSON.stringify(wanted);
        });
        const found = await within.evaluate((tag) => {
          const element = document.querySelector(tag);
          const style = getComputedStyle(element);
          return {
            lock: element.getAttribute("lock"),
            scheme: style.colorScheme,
            accent: style.getPropertyValue("--kv-accent"),
            words: element.shadowRoot.querySelector(".kv").lang.split("-")[0],
            width: element.getBoundingClientRect().width,
            elements: document.querySelectorAll(tag).length,
            images: document.images.length,
            hacked: "hacked" in window,
          };
        }, tag);
        const all = (choice.lock?.length ?? 0) === 7;
        assert.equal(found.lock, lock.length === 0 ? null : all ? "all" : lock.join(" "), where);
        if (theme !== "auto") assert.equal(found.scheme, theme, where);
        assert.equal(found.accent, accent?.replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3") ?? "", where);
        if (width) assert.ok(found.width <= Number(width), `${where}: ${found.width} wide`);
        assert.deepEqual([found.elements, found.images, found.hacked], [1, 0, false], where);
        // A file of words that is still to come leaves English.
        if (lang) assert.ok([lang, "en"].includes(found.words), `${where}: ${found.words}`);
        assert.deepEqual(page.problems, [], where);
      }
    });
  }

  it("gives the frame with the same listener as the README", async () => {
    await open();
    const listener = readme.match(/<iframe class="kv-capacity"[^>]*><\/iframe>\n(<script>[\s\S]*?<\/script>)/)[1];
    assert.ok((await textOf("frame")).endsWith(listener));
  });

  it("says why there is nothing to take: a refused state, an address that is none, a file that is missing", async () => {
    await open();
    await page.evaluate(() => document.querySelector("kv-capacity").setAttribute("gpus", "0"));
    await until("the refusal", async () => /^The calculator refuses this.*gpus/.test(await shown(".start .problem")));
    assert.equal(await code(), null);
    assert.equal(
      await page.evaluate(
        () => document.querySelector("kv-builder").shadowRoot.querySelector(".take .buttons button").disabled,
      ),
      true,
    );
    await page.evaluate(() => document.querySelector("kv-capacity").setAttribute("gpus", "2"));
    await until("the snippet again", async () => (await code())?.includes('gpus="2"'));
    for (const wrong of ["javascript:alert(1)", 'https://x/"onload="', "//x/", "data:,", "https://exa mple/", "a b"]) {
      await put("#base", wrong);
      assert.ok((await shown("#base-problem")).includes(wrong), wrong);
      assert.equal(await code(), null);
      assert.equal(
        await page.evaluate(() =>
          document.querySelector("kv-builder").shadowRoot.querySelector("#base").getAttribute("aria-invalid"),
        ),
        "true",
      );
    }
    const addresses = {
      "": "kv-capacity.js",
      "files/kv": "files/kv/kv-capacity.js",
      "../_static/": "../_static/kv-capacity.js",
      "https://example.org/a/": "https://example.org/a/kv-capacity.js",
      "https://example.org": "https://example.org/kv-capacity.js",
    };
    for (const [typed, source] of Object.entries(addresses)) {
      await put("#base", typed);
      assert.ok((await code()).startsWith(`<script src="${source}"></script>`), typed);
      assert.equal(await shown("#base-problem"), "");
    }
  });

  it("previews what readers will see, in a frame that follows", async () => {
    await open();
    await put("#lock-context", false);
    await put("#theme-dark", true);
    await page.evaluate(() => document.querySelector("kv-capacity").setAttribute("context", "4096"));
    const steps = await page.evaluate(() => history.length);
    const frame = () => page.page.frames().find((one) => one.url().includes("embed.html"));
    await until("the preview", async () =>
      frame()?.evaluate(() => {
        const element = document.querySelector("kv-capacity");
        return element?.request?.context === 4096 && element.getAttribute("lock") === "context";
      }),
    );
    await becomes(() => frame().evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
    await until("its height", () =>
      page.evaluate(
        () => document.querySelector("kv-builder").shadowRoot.querySelector("iframe").style.blockSize !== "",
      ),
    );
    assert.equal(await page.evaluate(() => history.length), steps, "a choice is no step back");
    assert.equal(
      await page.evaluate(() => document.querySelector("kv-capacity").getAttribute("lock")),
      null,
      "the author's own stays open",
    );
  });

  it("copies, and where a browser refuses selects the text and says so", async () => {
    await open();
    const copy = () =>
      page.evaluate(() => {
        const root = document.querySelector("kv-builder").shadowRoot;
        [...root.querySelectorAll("button")].find((button) => button.textContent === "Copy").click();
      });
    await page.evaluate(() => {
      navigator.clipboard.writeText = async (text) => {
        window.copied = text;
      };
    });
    await copy();
    await until("the copy", () => page.evaluate(() => window.copied));
    assert.equal(await page.evaluate(() => window.copied), await code());
    await until("the word", async () => (await shown(".outcome")) === words["builder.copied"]);
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
    });
    await copy();
    await until("the remedy", async () => (await shown(".outcome")) === words["builder.copy-by-hand"]);
    await becomes(
      () => page.evaluate(() => document.querySelector("kv-builder").shadowRoot.activeElement?.localName),
      "pre",
    );
  });

  it("works from disk", async () => {
    await open(pathToFileURL(join(dist, "builder.html")).href);
    assert.match(await code(), /^<script src="kv-capacity\.js"><\/script>\n<kv-capacity model="llama-3\.1-8b">/);
    const file = await textOf("file");
    assert.match(file, /<kv-capacity model="llama-3\.1-8b">\n {2}<p>The weights take/);
    await until("the preview", async () => {
      const frame = page.page.frames().find((one) => one.url().includes("embed.html"));
      return frame?.evaluate(() => document.querySelector("kv-capacity")?.plan?.sequences === 52);
    });
    assert.deepEqual(page.problems, []);
  });

  it("is at ease with keyboards, screen readers and narrow windows", async () => {
    await open();
    await page.resize(320, 800);
    await becomes(
      () => page.evaluate(() => [innerWidth, document.documentElement.scrollWidth <= innerWidth]),
      [320, true],
      "no sideways scroll at 320",
    );
    const reached = new Set();
    await page.evaluate(() => document.querySelector("kv-builder").shadowRoot.querySelector("#element").focus());
    for (let i = 0; i < 60; i++) {
      reached.add(
        await page.evaluate(() => {
          const active = document.querySelector("kv-builder").shadowRoot.activeElement;
          return active ? active.id || active.localName : "";
        }),
      );
      await page.press("Tab");
    }
    for (const control of [
      "element",
      "lock-model",
      "theme-auto",
      "accent",
      "own-accent",
      "lang",
      "width",
      "form-tag",
      "base",
      "pre",
      "button",
    ])
      assert.ok(reached.has(control), `${control} is not reached by Tab: ${[...reached]}`);
    await page.evaluate(() => document.querySelector("kv-builder").shadowRoot.querySelector("#form-tag").focus());
    await page.press("ArrowRight");
    await until("the frame's snippet", async () => (await code()).startsWith("<iframe"));
    await page.resize(1280, 1000);
    await page.evaluate(axe);
    for (const theme of ["auto", "dark"]) {
      await put(`#theme-${theme}`, true);
      await wait(300);
      const { violations } = await page.evaluate(() =>
        window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], iframes: false }),
      );
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`),
        [],
      );
    }
  });
});
