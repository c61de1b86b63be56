// The widget in a frame: the fragment is its state, its height is told and cannot loop, and nobody else is listened to.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { becomes, passes, reads, rests, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const folder = process.env.KV_SITE ?? dist;
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
/** What the README gives authors to paste. */
const snippet = readme.match(/```html\n(<iframe[\s\S]*?)```/)[1];
const [tag] = snippet.match(/<iframe[^>]*><\/iframe>/);
const listener = snippet.slice(tag.length);

const html = (body) => ({
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>course</title><link rel="icon" href="data:,"></head><body>${body}</body></html>`,
});

/** A parent that makes the frame a little taller than it was told, as one with padding would. */
const LOOSE = `<script>
  window.heights = [];
  addEventListener("message", ({ data }) => {
    if (data?.type !== "kv-capacity-height") return;
    heights.push(data.height);
    document.querySelector("iframe").height = data.height + 40;
  });
</script>`;

const PAGES = {
  "/snippet.html": html(snippet),
  "/loose.html": html(`${tag}${LOOSE}`),
  "/origin.html": html(tag.replace(/ sandbox="[^"]*"/, "")),
  "/two.html": html(
    `${tag}${tag}<iframe id="other" src="/liar.html" height="200"></iframe><iframe class="kv-capacity" id="large" src="/liar.html" height="200"></iframe>${listener}`,
  ),
  "/liar.html": html(`<script>
    const told = [NaN, Infinity, -5, "900", null, [3000], { valueOf: 3000 }, 1e9];
    for (const height of told) parent.postMessage({ type: "kv-capacity-height", height }, "*");
    for (const data of [null, undefined, "kv-capacity-height", 7, ["kv-capacity-height", 4000]]) parent.postMessage(data, "*");
  </script>`),
};

for (const [name, launch] of Object.entries(browsers)) {
  describe(`a frame in ${name}`, { timeout: 300_000 }, () => {
    let visited;
    before(async () => {
      visited = await visit(launch, PAGES);
    });
    after(() => visited?.close());

    it("D12: computes in a sandbox of an opaque origin and fits its content by the README's snippet", async () => {
      const { page, site } = visited;
      await page.resize(1280, 1000);
      await page.goto(`${site.origin}/snippet.html`);
      const start = Number(tag.match(/ height="(\d+)"/)[1]);
      const height = () => page.evaluate(() => Number(document.querySelector("iframe").height));
      await until("a height", async () => (await height()) !== start);
      const wide = await rests(height);
      assert.ok(wide > 500 && wide < 1200, `${wide}`);
      await page.resize(320, 1000);
      await until("a taller frame on a narrow screen", async () => (await height()) > wide + 100);
      assert.deepEqual(await page.evaluate(() => window.problems), []);
    });
  });
}

describe("a frame", { timeout: 600_000 }, () => {
  let visited;
  let page;
  let origin;

  before(async () => {
    visited = await visit(browsers.Chromium, PAGES);
    page = visited.page;
    origin = visited.site.origin;
  });
  after(() => visited?.close());

  const frames = () => page.page.frames().filter((frame) => frame.url().includes("embed.html"));
  /** The frame's element, once it has answered. */
  const ready = async (frame = frames()[0] ?? page.page.mainFrame(), tag = "kv-capacity") => {
    await until(`${tag} in ${frame.url()}`, () =>
      frame.evaluate((tag) => {
        const element = document.querySelector(tag);
        return Boolean(element?.shadowRoot?.querySelector(".kv:not(.waiting)"));
      }, tag),
    );
    await frame.evaluate((tag) => document.querySelector(tag).ready, tag);
    return frame;
  };
  const alone = async (fragment, tag) => {
    await page.goto("about:blank");
    await page.goto(`${origin}/embed.html${fragment}`);
    await ready(page.page.mainFrame(), tag);
  };
  const shown = (tag = "kv-capacity") =>
    page.evaluate((tag) => {
      const element = document.querySelector(tag);
      const style = getComputedStyle(document.documentElement);
      return {
        state: Object.fromEntries(new URLSearchParams(element.state)),
        lock: element.getAttribute("lock"),
        language: document.documentElement.lang,
        words: element.shadowRoot.querySelector(".kv").lang,
        scheme: style.colorScheme,
        accent: style.getPropertyValue("--kv-accent"),
        problems: window.problems,
        elements: document.body.querySelectorAll("*:not(script)").length,
      };
    }, tag);

  it("starts from its fragment, with the page's own keys kept apart from the request's", async () => {
    await alone("#model=llama-3.1-70b&gpus=4&context=32768&lang=en-GB&theme=dark&accent=b3261e&lock=model%20gpus");
    const { state, lock, language, words, scheme, accent, problems } = await shown();
    assert.deepEqual(state, { model: "llama-3.1-70b", gpus: "4", context: "32768" });
    assert.equal(lock, "model gpus");
    assert.equal(language, "en-GB");
    assert.equal(words, "en-GB");
    assert.equal(scheme, "dark");
    assert.equal(accent, "#b3261e");
    assert.deepEqual(problems, []);
    const locked = await page.evaluate(() => {
      const root = document.querySelector("kv-capacity").shadowRoot;
      return ["#model", "#gpus", "#context"].map((id) => root.querySelector(id).disabled);
    });
    assert.deepEqual(locked, [true, true, false]);
  });

  it("keeps its fragment up with the reader, and follows one that is set", async () => {
    await alone("#context=4096&theme=light");
    await page.evaluate(() => document.querySelector("kv-capacity").shadowRoot.querySelector("#context").focus());
    await page.press("End");
    await until("the fragment to follow", () => page.evaluate(() => location.hash.includes("context=131072")));
    await reads(() => page.evaluate(() => location.hash), /theme=light/);
    await page.evaluate(() => {
      location.hash = "#gpus=2&theme=dark";
    });
    await passes(async () => {
      const { state, scheme } = await shown();
      assert.deepEqual(state, { model: "llama-3.1-8b", gpus: "2" });
      assert.equal(scheme, "dark");
    });
  });

  it("shows every element, by name and by a link that the element itself gave", async () => {
    const names = Object.entries({
      "kv-growth": "step=4",
      "kv-formula": "layers=40",
      "kv-curve": "gpus=2",
      "kv-levers": "context=4096",
      "kv-attention": "show=gqa",
      "kv-memory": "gpus=2",
      "kv-paging": "seed=3&page=32",
      "kv-quiz": "seed=7&level=1",
      "kv-interview": "seed=5",
      "kv-capacity-table": "contexts=1024",
    });
    for (const [tag, state] of names) {
      await alone(`#element=${tag}&${state}`, tag);
      await until(`${tag} at ${state}`, async () => {
        const { state: now } = await shown(tag);
        return [...new URLSearchParams(state)].every(([key, text]) => tag === "kv-capacity-table" || now[key] === text);
      });
      assert.deepEqual((await shown(tag)).problems, [], tag);
    }
    await alone("#kv-quiz.seed=9&kv-quiz.level=1", "kv-quiz");
    await becomes(async () => {
      const { state } = await shown("kv-quiz");
      return [state.seed, state.level];
    }, ["9", "1"]);
  });

  it("takes nothing else from a fragment: no markup, no handler, no address, and says so", async () => {
    const hostile = {
      "#element=script&context=2048": /element=script/,
      "#element=kv-capacity%20onclick": /element=kv-capacity onclick/,
      "#onclick=alert(1)&style=color:red&id=x&hub=https://example.org&context=2048": /no key is called onclick/,
      "#lang=%3Cb%3E": /lang=<b> is not a language/,
      "#theme=url(x)": /theme=url\(x\)/,
      "#accent=red;background:url(https://example.org/x)": /accent=/,
      "#model=%3Cimg%20src=x%20onerror=alert(1)%3E": null,
    };
    for (const [fragment, complaint] of Object.entries(hostile)) {
      await alone(fragment);
      const { problems, accent } = await shown();
      if (complaint)
        assert.ok(
          problems.some((text) => complaint.test(text)),
          `${fragment}: ${problems}`,
        );
      assert.equal(accent, "");
      const found = await page.evaluate(() => {
        const element = document.querySelector("kv-capacity");
        return {
          names: element.getAttributeNames().filter((name) => /^on|style|^id$|hub/.test(name)),
          images: element.shadowRoot.querySelectorAll("img").length,
        };
      });
      assert.deepEqual(found, { names: [], images: 0 }, fragment);
    }
    assert.deepEqual(
      page.requests.filter((url) => new URL(url).host === "example.org"),
      [],
    );
  });

  it("D40: tells its height only when it changes by more than a pixel", async () => {
    await page.goto(`${origin}/loose.html`);
    const frame = await ready();
    const heights = () => page.evaluate(() => window.heights);
    await until("a height", async () => (await heights()).length > 0);
    const first = await rests(heights, 600);
    assert.ok(first.length > 0 && first.length <= 4, `${first}`);
    await wait(500);
    assert.deepEqual(await heights(), first, "the taller frame does not make the content taller");
    const told = first.at(-1);
    const grow = (pixels) =>
      frame.evaluate((pixels) => {
        document.querySelector("kv-capacity").style.marginBlockEnd = `${pixels}px`;
      }, pixels);
    await grow(1);
    await wait(200);
    assert.deepEqual(await heights(), first);
    await grow(30);
    await until("the taller height", async () => (await heights()).at(-1) === told + 30);
    await grow(0);
    await until("the height as before", async () => (await heights()).at(-1) === told);
  });

  it("D40: stops telling when its content grows by itself, and goes on after a reader's hand", async () => {
    await page.goto(`${origin}/loose.html`);
    const frame = await ready();
    const count = () => page.evaluate(() => window.heights.length);
    await until("a height", async () => (await count()) > 0);
    await rests(count);
    // As if something in the frame were always a little taller than the frame.
    await frame.evaluate(() => {
      const follow = () => {
        document.body.style.minHeight = `${innerHeight + 10}px`;
      };
      addEventListener("resize", follow);
      follow();
    });
    await until("growth", async () => (await count()) > 8);
    const stopped = await rests(count, 1000);
    assert.ok(stopped > 8 && stopped < 30, `${stopped} messages`);
    await wait(1000);
    assert.equal(await count(), stopped);
    await frame.evaluate(() => document.querySelector("kv-capacity").shadowRoot.querySelector("#context").focus());
    await page.press("ArrowLeft");
    await until("another height after a key", async () => (await count()) > stopped);
  });

  it("D40: has no measure in its styles that follows the frame's height", () => {
    const web = new URL("../../web/", import.meta.url);
    const styles = readdirSync(web, { recursive: true }).filter((name) =>
      /^(embed|src.*)\.css$|lesson\.ts$/.test(name),
    );
    assert.ok(styles.length > 10, `${styles}`);
    for (const name of styles)
      assert.doesNotMatch(readFileSync(new URL(name, web), "utf8"), /\d[dsl]?v(h|b|min|max)\b/, name);
  });

  it("D41: the snippet sizes the frame that sent and no other, and clamps what it is told", async () => {
    assert.ok(listener.trim().split("\n").length <= 10, "ten lines");
    await page.goto(`${origin}/two.html`);
    for (const frame of frames()) await ready(frame);
    await frames()[1].evaluate(() => {
      document.querySelector("kv-capacity").style.marginBlockEnd = "100px";
    });
    const sizes = () =>
      page.evaluate(() => [...document.querySelectorAll("iframe")].map((frame) => Number(frame.height)));
    await until("the second frame alone to grow", async () => {
      const [first, second] = await sizes();
      return second === first + 100;
    });
    await until("what the liar tells", async () => (await sizes())[3] !== 200);
    const [first, second, other, large] = await rests(sizes);
    assert.equal(second, first + 100);
    assert.equal(other, 200, "a frame of another kind is left alone");
    assert.equal(large, 5000, "a number is clamped and everything else is ignored");
    assert.deepEqual(await page.evaluate(() => window.problems), []);
  });

  it("tells nothing but a height", async () => {
    await page.goto("about:blank");
    await page.goto(`${origin}/loose.html`);
    await page.evaluate(() => {
      window.heard = [];
      addEventListener("message", ({ data, origin }) => heard.push({ keys: Object.keys(data).sort(), origin }));
      document.querySelector("iframe").src = "embed.html?again#context=2048";
    });
    await until("messages", () => page.evaluate(() => window.heard.length > 0));
    for (const { keys, origin: sender } of await page.evaluate(() => window.heard)) {
      assert.deepEqual(keys, ["height", "type"]);
      assert.equal(sender, "null", "the sandbox has an opaque origin");
    }
  });

  it("works from disk", async () => {
    await page.goto(`${pathToFileURL(join(folder, "embed.html")).href}#context=2048&theme=dark`);
    await ready(page.page.mainFrame());
    assert.deepEqual(await page.evaluate(() => document.querySelector("kv-capacity").request.context), 2048);
  });

  it("has an oEmbed answer with the fields that oEmbed 1.0 asks of a rich resource, and pages that name it", async () => {
    const answer = JSON.parse(readFileSync(join(folder, "oembed.json"), "utf8"));
    assert.equal(answer.version, "1.0");
    assert.equal(answer.type, "rich");
    assert.ok(Number.isInteger(answer.width) && Number.isInteger(answer.height));
    const known =
      /^(type|version|title|author_(name|url)|provider_(name|url)|cache_age|thumbnail_(url|width|height)|html|width|height)$/;
    for (const [key, value] of Object.entries(answer)) {
      assert.match(key, known);
      assert.match(typeof value, /^(string|number)$/);
    }
    for (const name of ["index.html", "embed.html"]) {
      await page.goto(`${origin}/${name}`);
      const link = await page.evaluate(
        () => document.querySelector('link[rel="alternate"][type="application/json+oembed"]').href,
      );
      const found = await page.evaluate((link) => fetch(link).then((response) => response.json()), link);
      assert.deepEqual(found, answer);
    }
    assert.doesNotMatch(readFileSync(join(folder, "kv-capacity.html"), "utf8"), /json\+oembed/);
    const frame = await page.evaluate((html) => {
      const frame = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
      return {
        only: frame.parentElement.childNodes.length,
        sandbox: frame.getAttribute("sandbox"),
        src: frame.getAttribute("src"),
      };
    }, answer.html);
    assert.deepEqual(frame, { only: 1, sandbox: "allow-scripts allow-downloads", src: "embed.html" });
  });
});
