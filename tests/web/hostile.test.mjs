// Places that are hard on a widget: policies, files, opaque origins, wrong servers, other people's styles, pages that
// move and clone their nodes. Browsers other than Chromium where they may differ. Names begin with the number of the
// known bug of other widgets that a test stands for.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { WATCH } from "./memories.mjs";
import { passes, Reader, until, wait, rests } from "./reader.mjs";
import { dist, serve } from "./site.mjs";
import { visit } from "./visit.mjs";

const folder = process.env.KV_SITE ?? dist;
const CLASSIC = '<script src="kv-capacity.js"></script>';
const MODULE = '<script type="module" src="kv-capacity.mjs"></script>';
const TAG = '<kv-capacity><p id="example">A worked example.</p></kv-capacity>';
const html = (body, { head = CLASSIC, headers, style = "" } = {}) => ({
  headers,
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>host</title><link rel="icon" href="data:,">${style}${head}</head><body>${body}</body></html>`,
});
const policy = (text) => ({ "content-security-policy": text });
const script = readFileSync(join(folder, "kv-capacity.js"), "utf8");
const nonced = (tag) => tag.replace("<script", '<script nonce="abc"');

const COMPUTING_POLICIES = {
  "D1: the WebAssembly keyword and no unsafe-eval": "script-src 'self' 'wasm-unsafe-eval'",
  "D4: connections to nowhere":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'none'; img-src data:",
  "D44: styles of its own origin only":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; style-src-attr 'none'; img-src data:",
  "D5: Trusted Types and no policy at all":
    "script-src 'self' 'wasm-unsafe-eval'; require-trusted-types-for 'script'; trusted-types 'none'",
};

/** Styles of hosts that mean no harm to a widget and do it all the same. */
const STYLES = {
  "all: unset with all weight": "* { all: unset !important; }",
  "a root of 62.5 %": "html { font-size: 62.5%; } body { font-size: 1.6rem; }",
  "border boxes and resets":
    "*, *::before, *::after { box-sizing: border-box; margin: 0; padding: 0; border: 0; list-style: none; line-height: 1; vertical-align: baseline; }",
  "pictures as blocks":
    "img, svg, video, canvas { display: block; max-width: 100%; height: auto; } path { fill: red; stroke: none; }",
  "forms without looks":
    "input, select, button { appearance: none; border: 0; background: red; font: inherit; width: 100%; height: 10px; } details > * { display: none; }",
  "everything in columns":
    "body > * { display: flex; align-items: flex-start; } p, div, section { width: 50%; float: left; }",
  "upper case, wide, right":
    "body { text-transform: uppercase; letter-spacing: 0.3em; text-align: right; white-space: pre; }",
};

/** Ways to put the script into a page. */
const WAYS = {
  "in front of the tag": `${CLASSIC}${TAG}`,
  "behind the tag": `${TAG}${CLASSIC}`,
  async: `<script async src="kv-capacity.js"></script>${TAG}`,
  deferred: `<script defer src="kv-capacity.js"></script>${TAG}`,
  twice: `${CLASSIC}${TAG}<script src="kv-capacity.js?2"></script>`,
  "twice, the second deferred": `${CLASSIC}${TAG}<script defer src="kv-capacity.js?2"></script>`,
  "in two versions": `${CLASSIC}${TAG}<script src="other/kv-capacity.js"></script>`,
  "in two versions, the other first": `<script src="other/kv-capacity.js"></script>${TAG}${CLASSIC}`,
  "as script and as module": `${CLASSIC}${TAG}${MODULE}`,
  "from another script": `${TAG}<script>{ const tag = document.createElement("script"); tag.src = "kv-capacity.js"; document.body.append(tag); }</script>`,
};

const PAGES = {
  ...Object.fromEntries(
    Object.entries(COMPUTING_POLICIES).map(([, text], i) => [
      `/policy-${i}.html`,
      html(TAG, { headers: policy(text) }),
    ]),
  ),
  "/nonce.html": html(TAG, {
    head: nonced(CLASSIC),
    headers: policy("script-src 'nonce-abc' 'wasm-unsafe-eval'; style-src 'self'"),
  }),
  "/strict-dynamic.html": html(TAG, {
    head: nonced(CLASSIC),
    headers: policy("script-src 'nonce-abc' 'strict-dynamic' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'"),
  }),
  "/trusted.html": html(TAG, {
    headers: policy(
      "script-src 'self' 'wasm-unsafe-eval'; require-trusted-types-for 'script'; trusted-types kv-capacity",
    ),
  }),
  "/throwing.html": html(TAG, {
    head: `<script>
      for (const name of ["Module", "compile", "instantiate"]) WebAssembly[name] = function () { throw new Error("not today"); };
    </script>${CLASSIC}`,
  }),
  "/at-once.html": html(TAG, {
    head: `<script>for (const name of ["compile", "instantiate"]) WebAssembly[name] = () => new Promise(() => {});</script>${CLASSIC}`,
  }),
  "/sandbox.html": html('<iframe sandbox="allow-scripts" src="embed.html" width="700" height="900"></iframe>'),
  "/srcdoc.html": html(
    `<iframe sandbox="allow-scripts" width="700" height="900" srcdoc='<script src="/kv-capacity.js"></script><kv-capacity link></kv-capacity>'></iframe>`,
  ),
  "/latin1.html": {
    headers: { "content-type": "text/html; charset=iso-8859-1" },
    encoding: "latin1",
    html: `<!doctype html><html lang="en"><head><meta charset="iso-8859-1"><title>Dépôt</title><link rel="icon" href="data:,">
      <script src="bare/kv-capacity.js"></script></head><body><p id="around">déjà vu</p>${TAG}</body></html>`,
  },
  // Scripts without a declared encoding are read in the page's.
  "/bare/kv-capacity.js": { file: "kv-capacity.js", headers: { "content-type": "text/javascript" } },
  "/bare/kv-capacity-more.js": { file: "kv-capacity-more.js", headers: { "content-type": "text/javascript" } },
  "/module.html": html(TAG, { head: MODULE }),
  "/octets/module.html": html(TAG, { head: MODULE }),
  "/octets/kv-capacity.mjs": { file: "kv-capacity.mjs" },
  "/octets/kv-capacity.wasm": { file: "kv-capacity.wasm", headers: { "content-type": "text/plain" } },
  "/spa/module.html": html(TAG, { head: MODULE }),
  "/spa/kv-capacity.mjs": { file: "kv-capacity.mjs" },
  "/spa/kv-capacity.wasm": html("<h1>Welcome</h1>"),
  "/spa/classic.html": html(TAG),
  "/spa/kv-capacity.js": { file: "kv-capacity.js" },
  "/spa/kv-capacity-more.js": html("<h1>Welcome</h1>"),
  ...Object.fromEntries(
    Object.entries(STYLES).map(([, css], i) => [`/styles-${i}.html`, html(TAG, { style: `<style>${css}</style>` })]),
  ),
  "/styles-none.html": html(TAG),
  ...Object.fromEntries(Object.values(WAYS).map((body, i) => [`/way-${i}.html`, html(body, { head: "" })])),
  // Another version: other code under other names, of the same forms at the meeting points.
  "/other/kv-capacity.js": {
    body: script.replaceAll("0.1.0", "9.9.9"),
    headers: { "content-type": "text/javascript; charset=utf-8" },
  },
  "/other/kv-capacity-more.js": { file: "kv-capacity-more.js" },
  "/twenty.html": html("<kv-capacity></kv-capacity>".repeat(20), {
    head: WATCH + CLASSIC,
  }),
  "/made.html": html('<main></main><iframe id="inner" srcdoc="<body></body>"></iframe>', { head: CLASSIC }),
  "/early.html": html("<main></main>", { head: "" }),
  "/hidden.html": html(
    `<div id="none" style="display:none">${TAG}</div><details id="details"><summary>More</summary><kv-capacity></kv-capacity></details>
     <div id="found" hidden="until-found"><kv-capacity></kv-capacity></div>
     <div id="narrow" style="width:0;overflow:hidden"><kv-capacity></kv-capacity></div>
     <template id="template"><kv-capacity gpus="2"></kv-capacity></template>`,
  ),
  "/plain.html": html(TAG),
  "/prototypes.html": html(TAG, {
    head: `<script>
        Object.prototype["deep copy"] = function () {};
        Object.prototype.hidden = "everything";
        Array.prototype.each = function () {};
      </script>${CLASSIC}`,
  }),
  // Holds every further script back.
  "/engine.html": html('<kv-capacity engine="vllm"><p id="example">A worked example.</p></kv-capacity>', {
    head: `<script>
        window.shown = 0;
        document.addEventListener("kv-shown", () => shown++, true);
        const held = [];
        document.head.append = (...nodes) => held.push(nodes);
        window.release = () => {
          delete document.head.append;
          for (const nodes of held) document.head.append(...nodes);
        };
        window.holds = () => held.length;
      </script>${CLASSIC}`,
  }),
  "/linked.html": html("<kv-capacity link></kv-capacity>"),
  "/away.html": html("<p>Elsewhere.</p>", { head: "" }),
};

/** What stands in a page for a reader; null while it is neither answered, to the last part, nor refused. */
const look = (page) =>
  page.evaluate(async () => {
    const element = document.querySelector("kv-capacity");
    const shown = (node) =>
      Boolean(node) && node.getBoundingClientRect().height > 0 && getComputedStyle(node).visibility === "visible";
    const trouble = element?.shadowRoot?.querySelector(".trouble");
    if (element?.plan) await element.ready;
    else if (!shown(trouble)) return null;
    return {
      sequences: element.plan?.sequences,
      trouble: trouble.textContent,
      example: shown(document.getElementById("example")),
      body: shown(element.shadowRoot.querySelector(".body")),
      figure: element.shadowRoot.querySelector(".count b").textContent,
      display: getComputedStyle(element.shadowRoot.querySelector(".bar")).display,
      weights: element.shadowRoot.querySelector(".segment.weights")?.getBoundingClientRect().width,
    };
  });
const outcome = (page) => until("an answer or a refusal", () => look(page));

describe("hostile hosts, in Chromium", { timeout: 900_000 }, () => {
  let site;
  let page;
  let reader;
  let close;
  let abroad;

  before(async () => {
    ({ site, page, reader, close } = await visit(browsers.Chromium, PAGES));
  });
  after(async () => {
    await close?.();
    for (const other of abroad ?? []) await other.close();
  });

  const within = (fn, ...args) => page.evaluate(fn, ...args);
  const open = async (path) => {
    page.problems.length = 0;
    site.asked.length = 0;
    await page.goto(`${site.origin}${path}`);
    return outcome(page);
  };
  /** The recorder of the tests is refused where a nonce is asked for, and rightly so. */
  const complaints = async () =>
    [...(await within(() => window.problems ?? [])), ...page.problems].filter((text) => !text.includes("recorder.js"));
  const assertComputes = (seen, what = "") => {
    assert.equal(seen.sequences, 52, `${what} ${seen.trouble}`);
    assert.equal(seen.figure, "52", what);
    assert.ok(seen.body && !seen.example, what);
    assert.equal(seen.display, "flex", what);
    assert.ok(seen.weights > 10, `${what}: the bar is not drawn`);
  };
  const openEngine = async () => {
    await reader.click(".panel.engine > summary");
    await until("the second script", () =>
      within(() => document.querySelector("kv-capacity").shadowRoot.querySelector(".panel.engine .grid") !== null),
    );
  };

  describe("policies", () => {
    for (const [i, name] of Object.keys(COMPUTING_POLICIES).entries()) {
      it(`${name}: computes as designed, without a violation`, async () => {
        assertComputes(await open(`/policy-${i}.html`));
        assert.deepEqual(await complaints(), []);
        await reader.focus("#context");
        await page.press("End");
        await reader.planned(({ context }) => context === 131072);
        assert.equal((await reader.told()).count.figure, "3");
        assert.deepEqual(await complaints(), []);
      });
    }

    it("D1: has no code from text in any script that pages load", () => {
      const scripts = readdirSync(folder).filter((name) => /\.m?js$/.test(name) && name !== "cli.mjs");
      assert.ok(scripts.length >= 8, scripts.join());
      for (const name of scripts) {
        const text = readFileSync(join(folder, name), "utf8");
        assert.doesNotMatch(
          text,
          /new Function\b|\bFunction\(|[^.\w]eval\(|setTimeout\("|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write/,
          name,
        );
      }
    });

    it("loads the rest by the nonce that it came with, and under strict-dynamic", async () => {
      for (const path of ["/nonce.html", "/strict-dynamic.html"]) {
        assertComputes(await open(path), path);
        await openEngine();
        assert.deepEqual(await complaints(), [], path);
      }
    });

    it("D5: loads the rest under Trusted Types through a policy that a page can name, and says so where it cannot", async () => {
      assertComputes(await open("/trusted.html"));
      await openEngine();
      assert.deepEqual(await complaints(), []);
      const untrusting = Object.keys(COMPUTING_POLICIES).findIndex((name) => name.startsWith("D5"));
      await open(`/policy-${untrusting}.html`);
      await reader.click(".panel.engine > summary");
      await until("the reason", () =>
        within(() =>
          /kv-capacity-more\.js/.test(
            document.querySelector("kv-capacity").shadowRoot.querySelector(".panel.engine .inside").textContent,
          ),
        ),
      );
      const unexpected = (await complaints()).filter((text) => !/trusted|createPolicy|kv-capacity: /i.test(text));
      assert.deepEqual(unexpected, []);
      assert.equal((await reader.told()).count.figure, "52");
    });

    it("gives its first answer at once, waiting for nothing to compile", async () => {
      assert.equal((await open("/at-once.html")).sequences, 52);
    });

    it("D2: takes a refusal that is thrown at once like one that comes later", async () => {
      const seen = await open("/throwing.html");
      assert.match(seen.trouble, /not today/);
      assert.ok(seen.example && !seen.body);
      assert.deepEqual(await complaints(), []);
    });
  });

  describe("files and servers", () => {
    it("D10: computes from disk, every page, without a request that is refused", async () => {
      for (const name of ["index.html", "embed.html", "kv-capacity.html"]) {
        page.problems.length = 0;
        await page.goto(pathToFileURL(join(folder, name)).href);
        const seen = await outcome(page);
        assert.equal(seen.sequences, 52, `${name}: ${seen.trouble}`);
        await openEngine();
        assert.deepEqual(page.problems, [], name);
      }
    });

    it("D11: has no module among the scripts of its pages", () => {
      const pages = readdirSync(folder).filter((name) => name.endsWith(".html"));
      assert.ok(pages.length >= 3);
      for (const name of pages) {
        const outside = readFileSync(join(folder, name), "utf8").replace(/(<script\b[^>]*>)[\s\S]*?<\/script>/g, "$1");
        assert.doesNotMatch(outside, /<script[^>]*type="?module|<link[^>]*modulepreload/, name);
      }
    });

    it("D12: computes in a sandboxed frame of an opaque origin, keeps no store, and loads the rest there", async () => {
      for (const path of ["/sandbox.html", "/srcdoc.html"]) {
        page.problems.length = 0;
        await page.goto(`${site.origin}${path}`);
        const frame = await until("the frame", () => page.page.frames().find((one) => one !== page.page.mainFrame()));
        const inside = { evaluate: (...all) => frame.evaluate(...all) };
        assert.equal((await outcome(inside)).sequences, 52, path);
        assert.equal(await frame.evaluate(() => location.origin === "null" || origin === "null"), true, path);
        const engine = await frame.evaluate(async () => {
          const element = document.querySelector("kv-capacity");
          element.gpu = "h100-sxm-80gb";
          element.engine = "vllm";
          await new Promise((resolve) => element.addEventListener("kv-shown", resolve, { once: true }));
          const slider = element.shadowRoot.querySelector("#context");
          slider.value = 0;
          slider.dispatchEvent(new Event("change"));
          return [element.plan.engine, element.plan.context];
        });
        assert.deepEqual(engine, ["vllm", 1024], path);
        assert.deepEqual(page.problems, [], path);
      }
      for (const name of readdirSync(folder).filter((name) => /\.m?js$/.test(name) && name !== "cli.mjs")) {
        assert.doesNotMatch(
          readFileSync(join(folder, name), "utf8"),
          /localStorage|sessionStorage|indexedDB|document\.cookie/,
          name,
        );
      }
    });

    it("D13: computes from another origin as a script, as a module where that allows it, and else names the cause", async () => {
      const allow = { "access-control-allow-origin": "*" };
      const closed = await serve(undefined, {});
      const open_ = await serve(undefined, {}, allow);
      const half = await serve(undefined, { "/kv-capacity.mjs": { file: "kv-capacity.mjs", headers: allow } });
      abroad = [closed, open_, half];
      const hosts = {
        "/from-closed.html": `<script src="${closed.origin}/kv-capacity.js"></script>`,
        "/from-open.html": `<script type="module" src="${open_.origin}/kv-capacity.mjs"></script>`,
        "/from-half.html": `<script type="module" src="${half.origin}/kv-capacity.mjs"></script>`,
        "/from-closed-module.html": `<script type="module" src="${closed.origin}/kv-capacity.mjs"></script>`,
      };
      for (const [path, head] of Object.entries(hosts)) PAGES[path] = html(TAG, { head });
      assertComputes(await open("/from-closed.html"));
      await openEngine();
      assert.deepEqual(await complaints(), []);
      assertComputes(await open("/from-open.html"));
      await openEngine();
      assert.deepEqual(await complaints(), []);
      const seen = await open("/from-half.html");
      assert.match(seen.trouble, /A file of the calculator did not arrive/);
      assert.ok(seen.example && !seen.body);
      await page.goto(`${site.origin}/from-closed-module.html`);
      await until("the browser's refusal", () => page.problems.some((text) => /CORS/.test(text)));
      assert.ok(await within(() => document.getElementById("example").checkVisibility()));
    });

    it("D8: takes the kernel whatever type it is sent as, and fetches it once", async () => {
      assertComputes(await open("/octets/module.html"));
      assert.equal(site.asked.filter((path) => path === "/octets/kv-capacity.wasm").length, 1);
      assert.deepEqual(await complaints(), []);
    });

    it("D9: says that a file is missing where a page comes in its place", async () => {
      const seen = await open("/spa/module.html");
      assert.match(seen.trouble, /A file of the calculator did not arrive/);
      assert.ok(seen.example && !seen.body);
      assertComputes(await open("/spa/classic.html"));
      await reader.click(".panel.engine > summary");
      await until("the reason", () =>
        within(() =>
          /kv-capacity-more\.js/.test(
            document.querySelector("kv-capacity").shadowRoot.querySelector(".panel.engine .inside").textContent,
          ),
        ),
      );
      assert.equal((await reader.told()).count.figure, "52");
    });

    it("D28: computes and spells right in a page in Latin-1", async () => {
      assertComputes(await open("/latin1.html"));
      assert.equal(await within(() => document.characterSet), "windows-1252");
      const { problem, sentence, token } = await reader.told();
      assert.equal(problem, "");
      assert.match(sentence, /conversation’s cache/);
      assert.equal(token.small, "8 KV heads × 32 layers");
      await openEngine();
      await within(() => document.querySelector("kv-capacity").setAttribute("context", "many"));
      await until("the second script's words", async () => /instead of “many”/.test((await reader.told()).problem));
      assert.deepEqual(await complaints(), []);
    });
  });

  describe("other people's styles", () => {
    const measure = () =>
      within(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        const box = (selector) => {
          const { width, height } = root.querySelector(selector).getBoundingClientRect();
          return { width: Math.round(width), height: Math.round(height) };
        };
        const style = (selector, name) => getComputedStyle(root.querySelector(selector))[name];
        return {
          slider: box("#context"),
          select: box("#model"),
          weights: box(".segment.weights"),
          figures: style(".figures", "display"),
          bar: style(".bar", "display"),
          cuts: style(".bar path", "fill"),
          example: root.querySelector(".example").checkVisibility(),
          panels: [...root.querySelectorAll("details > summary")].every((node) => node.checkVisibility()),
        };
      });
    for (const [i, name] of Object.keys(STYLES).entries()) {
      it(`holds under ${name}`, async () => {
        await page.resize(1280, 1000);
        await open("/styles-none.html");
        const usual = await measure();
        assertComputes(await open(`/styles-${i}.html`), name);
        const { slider, select, weights, ...rest } = await measure();
        const { slider: _, select: __, weights: ___, ...expected } = usual;
        assert.deepEqual(rest, expected);
        assert.ok(slider.height >= 24 && slider.width >= 100, JSON.stringify(slider));
        assert.ok(select.height >= 24 && select.width >= 80, JSON.stringify(select));
        assert.ok(weights.width > 40 && weights.height >= 10, JSON.stringify(weights));
        const spilled = await within(() => {
          const host = document.querySelector("kv-capacity").getBoundingClientRect();
          const root = document.querySelector("kv-capacity").shadowRoot;
          return [...root.querySelectorAll("input, select, .figures, .bar, .sentence")]
            .map((node) => [node.className || node.id, node.getBoundingClientRect()])
            .filter(([, box]) => box.width > 0 && (box.left < host.left - 1 || box.right > host.right + 1))
            .map(([what]) => what);
        });
        assert.deepEqual(spilled, []);
      });
    }
  });

  describe("pages that do as they like", () => {
    for (const [i, name] of Object.keys(WAYS).entries()) {
      it(`D30: computes with the script ${name}`, async () => {
        assertComputes(await open(`/way-${i}.html`), name);
        await wait(100);
        assert.deepEqual(await complaints(), []);
        await openEngine();
        assert.deepEqual(await complaints(), []);
        assert.equal(
          await within(() => document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".body").length),
          1,
        );
      });
    }

    it("D29: shares one small kernel among twenty elements, whatever comes and goes", async () => {
      await open("/twenty.html");
      const { kernels, figures } = await within(async () => {
        const all = [...document.querySelectorAll("kv-capacity")];
        await Promise.all(all.map((one) => one.ready));
        for (let i = 0; i < 10; i++) {
          const fresh = document.createElement("kv-capacity");
          fresh.context = 1024 * (i + 1);
          document.body.append(fresh);
          await fresh.ready;
          fresh.remove();
        }
        return {
          kernels: memories.length,
          figures: all.map((one) => one.shadowRoot.querySelector(".count b").textContent),
        };
      });
      assert.deepEqual(figures, Array(20).fill("52"));
      assert.equal(kernels, 1);
    });

    it("builds no node from what a page hangs on all objects", async () => {
      assertComputes(await open("/prototypes.html"));
      assert.deepEqual(await complaints(), []);
    });

    it("shows an engine's first answer once", async () => {
      page.problems.length = 0;
      await page.goto(`${site.origin}/engine.html`);
      await until("the second script to be asked for", () => within(() => window.holds?.() > 0));
      await within(() => {
        release();
        return document.querySelector("kv-capacity").ready;
      });
      assert.equal(await within(() => document.querySelector("kv-capacity").plan.engine), "vllm");
      await rests(() => within(() => shown));
      assert.equal(await within(() => shown), 1);
    });

    it("stays hidden in another language too while an engine's answer is to come", async () => {
      page.problems.length = 0;
      await page.goto(`${site.origin}/engine.html`);
      await until("the second script to be asked for", () => within(() => window.holds?.() > 0));
      const look = () =>
        within(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          const seen = (node) =>
            getComputedStyle(node).visibility === "visible" && node.getBoundingClientRect().height > 0;
          return { example: seen(document.getElementById("example")), body: seen(root.querySelector(".body")) };
        });
      assert.deepEqual(await look(), { example: true, body: false });
      await within(async () => {
        document.documentElement.lang = "en-GB";
        await new Promise((resolve) => requestAnimationFrame(resolve));
      });
      assert.deepEqual(await look(), { example: true, body: false });
      await within(() => {
        release();
        return document.querySelector("kv-capacity").ready;
      });
      assert.deepEqual(await look(), { example: false, body: true });
      assert.deepEqual(await complaints(), []);
    });

    it("takes properties and attributes before and after the tag is known", async () => {
      await page.goto(`${site.origin}/early.html`);
      const seen = await within(async () => {
        const main = document.querySelector("main");
        const early = document.createElement("kv-capacity");
        Object.assign(early, { context: 32768, gpus: 2, model: "llama-3-70b" });
        early.setAttribute("kv", "fp8");
        const detached = document.createElement("kv-capacity");
        detached.context = 16384;
        const stated = document.createElement("kv-capacity");
        stated.state = "context=1024&gpus=3";
        main.append(early, stated);
        main.insertAdjacentHTML("beforeend", '<kv-capacity context="2048"></kv-capacity>');
        const tag = document.createElement("script");
        tag.src = "kv-capacity.js";
        document.body.append(tag);
        await customElements.whenDefined("kv-capacity");
        const late = document.createElement("kv-capacity");
        late.context = 4096;
        main.append(late, detached);
        const all = [...main.children];
        await Promise.all(all.map((one) => one.ready));
        return all.map(({ plan }) => [plan.model.id, plan.context, plan.deployment.gpus, plan.kv.k]);
      });
      assert.deepEqual(seen, [
        ["llama-3-70b", 32768, 2, "fp8"],
        ["llama-3.1-8b", 1024, 3, "bf16"],
        ["llama-3.1-8b", 2048, 1, "bf16"],
        ["llama-3.1-8b", 4096, 1, "bf16"],
        ["llama-3.1-8b", 16384, 1, "bf16"],
      ]);
      assert.deepEqual(await complaints(), []);
    });

    it("D32: lives through navigation that moves, clones, serialises and adopts its nodes, with one set of listeners", async () => {
      await page.goto(`${site.origin}/made.html`);
      const seen = await within(async () => {
        const main = document.querySelector("main");
        const out = {};
        const figure = async (kv) => {
          await kv.ready;
          await null;
          return kv.shadowRoot.querySelector(".count b").textContent;
        };
        const first = document.createElement("kv-capacity");
        first.setAttribute("context", "32768");
        main.append(first);
        out.first = await figure(first);
        // As pages do that swap their content: the old tree goes, text becomes a tree again.
        const text = main.innerHTML;
        main.innerHTML = "";
        main.innerHTML = text;
        out.text = await figure(main.firstElementChild);
        main.replaceChildren(document.importNode(first, true));
        out.imported = await figure(main.firstElementChild);
        main.replaceChildren(first.cloneNode(true));
        out.cloned = await figure(main.firstElementChild);
        main.replaceChildren(first);
        // Into another document, whose own copy of the script it does not have, and back.
        const inner = document.getElementById("inner").contentDocument;
        inner.body.append(first);
        first.setAttribute("context", "16384");
        await null;
        await null;
        out.adopted = await figure(first);
        out.display = inner.defaultView.getComputedStyle(first.shadowRoot.querySelector(".bar")).display;
        const parsed = new DOMParser().parseFromString('<kv-capacity gpus="2"></kv-capacity>', "text/html");
        main.replaceChildren(document.adoptNode(parsed.body.firstElementChild));
        out.parsed = await figure(main.firstElementChild);
        main.replaceChildren(first);
        for (let i = 0; i < 20; i++) {
          first.remove();
          main.append(first);
        }
        await figure(first);
        let heard = 0;
        document.addEventListener("kv-change", () => heard++);
        const slider = first.shadowRoot.querySelector("#context");
        slider.value = slider.max;
        slider.dispatchEvent(new Event("change"));
        out.heard = heard;
        out.last = await figure(first);
        out.back = getComputedStyle(first.shadowRoot.querySelector(".bar")).display;
        out.bodies = first.shadowRoot.querySelectorAll(".body").length;
        return out;
      });
      assert.deepEqual(seen, {
        first: "13",
        text: "13",
        imported: "13",
        cloned: "13",
        adopted: "26",
        display: "flex",
        parsed: "119",
        heard: 1,
        last: "3",
        back: "flex",
        bodies: 1,
      });
      assert.deepEqual(await complaints(), []);
    });

    it("draws itself when what hid it is opened", async () => {
      await page.goto(`${site.origin}/hidden.html`);
      await until("all answers", () =>
        within(() => [...document.querySelectorAll("kv-capacity")].every((one) => one.plan)),
      );
      await within(() => {
        document.getElementById("none").style.display = "";
        document.getElementById("details").open = true;
        document.getElementById("found").removeAttribute("hidden");
        document.getElementById("narrow").style.width = "700px";
        document.body.append(document.getElementById("template").content.cloneNode(true));
      });
      const bars = await until("five bars", () =>
        within(() => {
          const all = [...document.querySelectorAll("kv-capacity")];
          const out = all.map((one) => {
            const segment = one.shadowRoot.querySelector(".segment.weights");
            const cuts = one.shadowRoot.querySelector(".bar path")?.getAttribute("d") ?? "";
            return [segment?.getBoundingClientRect().width > 20, cuts.length > 0];
          });
          return out.every((one) => one.every(Boolean)) && out.length;
        }),
      );
      assert.equal(bars, 5);
      assert.deepEqual(await complaints(), []);
    });

    it("prints its figures, black on white, and none of its controls' shadows", async () => {
      await open("/plain.html");
      await page.page.emulateMediaType("print");
      const printed = await within(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        const shown = (selector) => root.querySelector(selector).checkVisibility();
        return [".figures", ".bar", ".legend", ".sentence"].map(shown);
      });
      assert.deepEqual(printed, [true, true, true, true]);
      const pdf = await page.page.pdf();
      assert.ok(pdf.length > 5000);
      await page.page.emulateMediaType();
    });

    it("D7: asks the kernel once for the input events of a frame", async () => {
      await open("/plain.html");
      const counted = await within(async () => {
        const element = document.querySelector("kv-capacity");
        const kernel = await globalThis[Symbol.for("kv-capacity.kernel.1")].core;
        const { plan } = kernel.instance;
        let calls = 0;
        kernel.instance.plan = (text) => {
          calls++;
          return plan(text);
        };
        const slider = element.shadowRoot.querySelector("#context");
        const counted = [];
        for (let round = 0; round < 3; round++) {
          const shown = new Promise((resolve) => element.addEventListener("kv-shown", resolve, { once: true }));
          for (let i = 0; i < 20; i++) {
            slider.value = (i % 8) + round;
            slider.dispatchEvent(new Event("input"));
          }
          await shown;
          counted.push({ calls, asked: element.plan.context === element.request.context });
        }
        return counted;
      });
      assert.deepEqual(
        counted,
        [1, 2, 3].map((calls) => ({ calls, asked: true })),
      );
    });

    it("D34: leaves vertical panning of its sliders to the page", async () => {
      await open("/plain.html");
      const touch = await within(() =>
        [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll("input[type=range]")].map(
          (node) => getComputedStyle(node).touchAction,
        ),
      );
      assert.deepEqual(touch, ["pan-y", "pan-y"]);
    });

    it("D38: has no meter: the bar is decoration, its numbers are a list", async () => {
      await open("/plain.html");
      const tree = await page.page.accessibility.snapshot({ interestingOnly: false });
      const roles = [];
      const walk = (node) => {
        roles.push(node.role);
        for (const child of node.children ?? []) walk(child);
      };
      walk(tree);
      assert.ok(!roles.includes("meter") && !roles.includes("progressbar"), roles.join());
      const { hidden, items } = await within(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        return {
          hidden: root.querySelector(".bar").getAttribute("aria-hidden"),
          items: [...root.querySelectorAll("ul.legend[aria-label] > li")].map((item) => item.textContent),
        };
      });
      assert.equal(hidden, "true");
      assert.equal(items.length, 4);
      assert.ok(
        items.every((text) => /\d/.test(text)),
        items.join(),
      );
    });

    it("D39: has labels and descriptions in the roots of their controls", async () => {
      await open("/plain.html");
      await openEngine();
      const broken = await within(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        const out = [];
        for (const control of root.querySelectorAll("input, select, textarea, button")) {
          const name =
            control.getAttribute("aria-label") ||
            control.labels?.[0]?.textContent ||
            control.textContent ||
            control.title;
          if (!name?.trim()) out.push(`no name: ${control.outerHTML.slice(0, 80)}`);
          for (const kind of ["aria-describedby", "aria-labelledby", "aria-controls"]) {
            for (const id of control.getAttribute(kind)?.split(" ") ?? []) {
              if (!root.getElementById(id)) out.push(`${kind} ${id}`);
            }
          }
        }
        return out;
      });
      assert.deepEqual(broken, []);
    });

    it("D27: gives a name with half a character on as the reader sees it", async () => {
      await open("/plain.html");
      await within(async () => {
        const element = document.querySelector("kv-capacity");
        const layers = [{ count: 1, kind: "full", kv_heads: 1, key_width: 64, value_width: 64 }];
        element.models = { id: "half", name: "half \ud83d", parameters: 1e9, layers };
        element.model = "half";
      });
      await until("the model", async () => (await reader.plan()).kv_bytes_per_token === 256);
      assert.equal((await reader.told()).problem, "");
      assert.match(
        await within(
          () => document.querySelector("kv-capacity").shadowRoot.querySelector("#model").selectedOptions[0].text,
        ),
        /^half /,
      );
      assert.deepEqual(await complaints(), []);
    });
  });

  it("D33: shows what it counts with when a reader comes back to the page", async () => {
    await open("/plain.html");
    await reader.enter("context", "32768");
    await page.goto(`${site.origin}/away.html`);
    await page.page.goBack();
    await until("the page", () => within(() => Boolean(document.querySelector("kv-capacity")?.plan)));
    // Browsers put typed text back once the page is there.
    await passes(async () => {
      const { context, count } = await reader.told();
      const box = (await reader.control(".context-field .exact")).value;
      assert.equal(context, `Context length · ${box} tokens`);
      assert.equal(count.figure, box === "32,768" ? "13" : "52");
    });
  });
});

describe("coming back to a page, in Firefox", { timeout: 300_000, skip: !browsers.Firefox }, () => {
  let visited;
  before(async () => {
    visited = await visit(browsers.Firefox, PAGES);
  });
  after(() => visited?.close());

  it("D33: counts with what its controls show after a reload and after going back", async () => {
    const { site, page } = visited;
    const reader = new Reader(page);
    const agree = async (what) => {
      await until("an answer", () => page.evaluate(() => Boolean(document.querySelector("kv-capacity")?.plan)));
      // Browsers put typed text back once the page is there.
      await wait(300);
      await passes(async () => {
        const { context, count } = await reader.told();
        const box = (await reader.control(".context-field .exact")).value;
        assert.equal(context, `Context length · ${box} tokens`, what);
        assert.equal(count.figure, { "8,192": "52", "32,768": "13" }[box], what);
        const stop = await reader.control("#context");
        assert.equal(stop.valuetext, `${box} tokens`, what);
      });
    };
    for (const path of ["/plain.html", "/linked.html"]) {
      await reader.open(`${site.origin}${path}`);
      await reader.enter("context", "32768");
      await agree("typed");
      await page.page.reload();
      await agree(`${path} after a reload`);
      await reader.enter("context", "32768");
      await page.goto(`${site.origin}/away.html`);
      await page.page.goBack();
      await agree(`${path} after going back`);
    }
  });
});
