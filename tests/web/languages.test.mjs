// The elements in the language around them: which files that takes, when it changes, and how it looks from right to left.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { passes, until, wait } from "./reader.mjs";
import { dist, serve } from "./site.mjs";
import { visit } from "./visit.mjs";

const locales = fileURLToPath(new URL("../../web/locales/", import.meta.url));
const words = (name) => JSON.parse(readFileSync(join(locales, `${name}.json`), "utf8"));

const LANGUAGES = ["ar", "de", "es", "fr", "hi", "ja", "pt", "zh"];
const SCRIPT = '<script src="kv-capacity.js"></script>';
const document = (lang, head, body) =>
  `<!doctype html><html${lang ? ` lang="${lang}"` : ""}><head><meta charset="utf-8"><title>languages</title><link rel="icon" href="data:,">${head}</head><body>${body}</body></html>`;

const STRICT =
  "default-src 'none'; script-src 'nonce-lorem' 'wasm-unsafe-eval'; style-src 'self'; img-src data:; require-trusted-types-for 'script'";

const PAGES = {
  "/german.html": { html: document("de-AT", SCRIPT, '<kv-capacity></kv-capacity><p id="below">Darunter.</p>') },
  "/english.html": {
    html: document("en-GB", SCRIPT, "<kv-capacity></kv-capacity><kv-levers></kv-levers><kv-quiz></kv-quiz>"),
  },
  "/module.html": {
    html: document("fr", '<script type="module" src="kv-capacity.mjs"></script>', "<kv-capacity></kv-capacity>"),
  },
  "/lesson.html": {
    html: document("de", SCRIPT, "<kv-levers></kv-levers><kv-capacity-table auto></kv-capacity-table>"),
  },
  "/arabic-lesson.html": {
    html: document(
      "ar",
      SCRIPT,
      "<kv-formula></kv-formula><kv-memory></kv-memory><kv-paging></kv-paging><kv-quiz></kv-quiz>",
    ),
  },
  "/growth.html": { html: document("en", SCRIPT, '<kv-growth step="12"></kv-growth>') },
  "/play.html": { html: document("de", SCRIPT, '<kv-quiz seed="7" level="1"></kv-quiz>') },
  "/strict.html": {
    headers: { "content-security-policy": STRICT },
    html: document("ja", '<script nonce="lorem" src="kv-capacity.js"></script>', "<kv-capacity></kv-capacity>"),
  },
  "/latin.html": {
    headers: { "content-type": "text/html; charset=iso-8859-1" },
    html: document("ar", SCRIPT, "<kv-capacity></kv-capacity>").replace('<meta charset="utf-8">', ""),
  },
  "/nested.html": {
    html: document(
      "en",
      SCRIPT,
      `<div id="outer"></div><script>
        const outer = document.getElementById("outer").attachShadow({ mode: "closed" });
        const middle = document.createElement("section");
        outer.append(middle);
        const inner = middle.attachShadow({ mode: "open" });
        window.own = document.createElement("kv-capacity");
        inner.append(own);
        window.middle = middle;
      </script>`,
    ),
  },
  // A folder to which the files of words were not uploaded.
  "/alone/index.html": { html: document("es", SCRIPT, "<kv-capacity></kv-capacity><kv-capacity></kv-capacity>") },
  "/alone/kv-capacity.js": { file: "kv-capacity.js" },
  "/arabic.html": {
    html: document("ar", SCRIPT, "<kv-capacity></kv-capacity>").replace("<html", '<html dir="rtl"'),
  },
};

/** What an element says at once: its first label, and the language that its nodes are marked with. */
const face = (page, selector = "kv-capacity") =>
  page.evaluate((selector) => {
    const element = globalThis.own ?? document.querySelector(selector);
    const base = element.shadowRoot?.querySelector(".kv");
    return base && { lang: base.lang, dir: base.dir, state: base.className, text: base.textContent };
  }, selector);

const speaks = (page, text, selector) =>
  until(`${selector ?? "the calculator"} to say ${text}`, async () => {
    const shown = await face(page, selector);
    return shown?.state === "kv" && shown.text.includes(text) && shown;
  });

for (const [name, launch] of Object.entries(browsers)) {
  describe(`languages in ${name}`, { timeout: 600_000 }, () => {
    let site;
    let page;
    let reader;
    let close;
    const problems = () => page.evaluate(() => window.problems ?? []);
    const files = () => site.asked.splice(0).filter((path) => path.includes("/locales/"));
    const open = async (path) => {
      site.asked.length = 0;
      await page.goto(`${site.origin}${path}`);
    };

    before(async () => {
      ({ site, page, reader, close } = await visit(launch, PAGES));
    });
    after(() => close());

    it("speaks the page's language by one file, and nothing moves when it comes", async () => {
      await open("/german.html");
      const shown = await speaks(page, words("de").context);
      assert.deepEqual([shown.lang, shown.dir], ["de-AT", "ltr"]);
      await wait(300);
      assert.deepEqual(files(), ["/locales/de.js"]);
      assert.deepEqual(await problems(), []);
      const shifted = await page.evaluate(() => shifts.reduce((sum, one) => sum + one, 0));
      assert.equal(shifted, 0);
      await reader.enter("context", "131 072");
      // Grouped as in Austria.
      await reader.planned(({ context }) => context === 131072);
    });

    it("asks for no file of words in an English page", async () => {
      await open("/english.html");
      await speaks(page, words("en").context);
      await speaks(page, "Strongest here", "kv-levers");
      await page.evaluate(() => document.querySelector("kv-quiz").scrollIntoView());
      await speaks(page, words("en-play")["quiz.check"], "kv-quiz");
      assert.deepEqual(files(), []);
    });

    it("loads modules in a page of modules", async () => {
      await open("/module.html");
      await speaks(page, words("fr").context);
      assert.deepEqual(files(), ["/locales/fr.mjs"]);
      assert.deepEqual(await problems(), []);
    });

    it("loads the words of further scripts with those, and no others", async () => {
      await open("/lesson.html");
      await speaks(page, words("de-lesson")["lever.context"].split(" ").at(-1), "kv-levers");
      await speaks(page, words("de-lesson")["table.context"], "kv-capacity-table");
      assert.deepEqual(files().sort(), ["/locales/de-lesson.js", "/locales/de.js"]);
      await open("/play.html");
      await speaks(page, words("de-play")["quiz.check"], "kv-quiz");
      assert.deepEqual(files().sort(), ["/locales/de-more.js", "/locales/de-play.js", "/locales/de.js"]);
      await open("/german.html");
      await speaks(page, words("de").context);
      await reader.click(".panel.engine summary");
      await speaks(page, words("de-more")["engine.about"]);
      assert.deepEqual(files().sort(), ["/locales/de-more.js", "/locales/de.js"]);
      assert.deepEqual(await problems(), []);
    });

    it("follows a language that changes, wherever it is named", async () => {
      await open("/nested.html");
      await speaks(page, words("en").context);
      await page.evaluate(() => {
        document.documentElement.lang = "pt-BR";
      });
      assert.equal((await speaks(page, words("pt").context)).lang, "pt-BR");
      await page.evaluate(() => {
        middle.lang = "hi";
      });
      await speaks(page, words("hi").context);
      await page.evaluate(() => {
        own.lang = "zh-Hant";
      });
      await speaks(page, words("zh").context);
      // Several changes at once end with the last, and a change back needs no file.
      await page.evaluate(() => {
        own.lang = "fr";
        own.lang = "es";
      });
      await speaks(page, words("es").context);
      await page.evaluate(() => own.removeAttribute("lang"));
      await speaks(page, words("hi").context);
      await page.evaluate(() => middle.removeAttribute("lang"));
      await speaks(page, words("pt").context);
      assert.deepEqual(
        files(),
        ["pt", "hi", "zh", "es"].map((one) => `/locales/${one}.js`),
      );
      assert.deepEqual(await problems(), []);
      // An element that has left the page hears of no change; one that comes back does.
      await page.evaluate(async () => {
        const parent = own.parentNode;
        own.remove();
        document.documentElement.lang = "en";
        await new Promise((resolve) => setTimeout(resolve, 50));
        parent.append(own);
      });
      await speaks(page, words("en").context);
    });

    it("keeps the last answer, and the controls where they were, when it changes while something is refused", async () => {
      await reader.open(`${site.origin}/?refused`);
      await reader.enter("context", "16,384");
      await reader.enter("context", "8k");
      const state = async () => {
        const controls = ["#model", "#weights", "#kv", "#gpu", "#gpus", "#context", ".context-field .exact"];
        return Promise.all(controls.map(async (one) => (({ value, max }) => [value, max])(await reader.control(one))));
      };
      const before = await reader.told();
      assert.deepEqual([before.stale, before.count.figure], [true, "26"]);
      const stood = await state();
      for (const language of ["de", "en"]) {
        await page.evaluate((language) => {
          document.documentElement.lang = language;
        }, language);
        await speaks(page, words(language).context);
        await passes(async () => {
          const told = await reader.told();
          assert.deepEqual([told.stale, told.count.figure, told.legend.length], [true, "26", before.legend.length]);
        });
        assert.deepEqual(await state(), stood, language);
      }
      assert.deepEqual(await reader.told(), before);
    });

    it("stays English where a file does not come, and says so in one line", async () => {
      await open("/alone/index.html");
      await speaks(page, words("en").context);
      assert.deepEqual(files(), ["/alone/locales/es.js"]);
      // Where it takes long, the words are English before the file is known to be missing.
      await passes(async () => {
        const own = (await problems()).filter((line) => line.startsWith("kv-capacity"));
        assert.equal(own.length, 1, own.join("\n"));
        assert.match(own[0], /locales\/es\.js/);
      });
    });

    it("is mirrored where the language runs from right to left", async () => {
      await open("/arabic.html");
      const shown = await speaks(page, words("ar").context);
      assert.equal(shown.dir, "rtl");
      const { width, segments } = await reader.bar();
      const [weights] = segments;
      assert.ok(weights.left + weights.width > width - 1, "the bar starts on the right");
      await reader.focus("#gpus");
      await page.press("ArrowLeft");
      await until("one GPU more", async () => (await reader.plan()).deployment.gpus === 2);
      await page.press("ArrowRight");
      await until("one GPU less", async () => (await reader.plan()).deployment.gpus === 1);
      const labels = await page.evaluate(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        const edge = (node) => node.getBoundingClientRect();
        return {
          label: edge(root.querySelector("#gpus")).right,
          exact: edge(root.querySelector(".gpus-field .exact")).left,
          body: [edge(root.querySelector(".body")).left, edge(root.querySelector(".body")).right],
        };
      });
      assert.ok(labels.exact < labels.label, "the number stands at the end of its slider");
    });

    it("runs time from the right where the language does, chart and slider alike", async () => {
      await open("/arabic-lesson.html");
      await page.evaluate(() => {
        const paging = document.querySelector("kv-paging");
        paging.setAttribute("step", "100");
        paging.scrollIntoView();
      });
      await speaks(page, words("ar-play")["paging.long-prompts"], "kv-paging");
      const right = await until("the chart", () =>
        page.evaluate(() => {
          const { shadowRoot: root } = document.querySelector("kv-paging");
          const chart = root.querySelector(".chart")?.getBoundingClientRect();
          const now = root.querySelector(".now")?.getBoundingClientRect();
          return now?.height > 0 && (now.left - chart.left) / chart.width;
        }),
      );
      assert.ok(right > 0.75 && right < 1, `the step stands at ${right} of the chart's width`);
    });

    it("keeps words from right to left in order in selectors and products", async () => {
      await open("/arabic-lesson.html");
      for (const [tag, text] of [
        ["kv-formula", words("ar-lesson")["formula.rows"]],
        ["kv-memory", words("ar-lesson")["memory.engine"]],
        ["kv-paging", words("ar-play")["paging.long-prompts"]],
        ["kv-quiz", words("ar-play")["quiz.check"]],
      ]) {
        await page.evaluate((tag) => document.querySelector(tag).scrollIntoView(), tag);
        await speaks(page, text, tag);
      }
      const { selects, wrong, result } = await page.evaluate(() => {
        const wrong = [];
        const roots = [...document.querySelectorAll("body > *")].flatMap((host) => host.shadowRoot ?? []);
        const selects = roots.flatMap((root) => [...root.querySelectorAll("select")]);
        for (const select of selects) {
          const style = getComputedStyle(select);
          if (style.appearance !== "none") wrong.push(`${select.id} has two arrows`);
          const [above, below] = [parseFloat(style.paddingTop), parseFloat(style.paddingBottom)];
          if (select.clientHeight - above - below < 1.15 * parseFloat(style.fontSize))
            wrong.push(`${select.id} is cut`);
          for (const { text } of select.options) {
            const mixed = /\p{Script=Arabic}/u.test(text) && /[\p{N}\p{Script=Latin}()]/u.test(text);
            if (mixed && !/^[\u2067\u2068]/.test(text)) wrong.push(text);
          }
        }
        const [formula] = roots;
        for (const label of formula.querySelectorAll(".factor label, .result span"))
          if (getComputedStyle(label).direction !== "rtl") wrong.push(label.textContent);
        const edge = (selector) => formula.querySelector(selector).getBoundingClientRect().right;
        return { selects: selects.length, wrong, result: edge(".formula") - edge(".result") };
      });
      assert.ok(selects > 8);
      assert.deepEqual(wrong, []);
      assert.ok(Math.abs(result) < 1, "the result stands under its factors");
    });

    it("sets tokens over their columns as their script is written, apart from one another", async () => {
      await open("/growth.html");
      await page.resize(320, 1000);
      for (const language of ["en", ...LANGUAGES]) {
        await page.evaluate((language) => {
          document.documentElement.lang = language;
        }, language);
        await speaks(page, words(`${language}-lesson`)["growth.scrub"], "kv-growth");
        const tokens = await page.evaluate(() =>
          [...document.querySelector("kv-growth").shadowRoot.querySelectorAll(".tokens li")].map((item) => {
            const { transform, textOrientation, fontSize, overflowX } = getComputedStyle(item);
            return {
              text: item.textContent,
              turned: transform !== "none",
              upright: textOrientation === "upright",
              share: parseFloat(fontSize) / item.getBoundingClientRect().width,
              overflowX,
            };
          }),
        );
        assert.ok(tokens.length > 15);
        for (const { text, turned, upright, share, overflowX } of tokens) {
          const downwards = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\u3000-\u303f\uff01-\uff60]/u.test(
            text,
          );
          if (downwards || turned === upright)
            assert.deepEqual({ text, turned, upright }, { text, turned: !downwards, upright: downwards });
          assert.ok(share < 0.85, `${text} runs into its neighbour`);
          assert.equal(overflowX, "visible", `${text} loses its marks`);
        }
      }
      await page.resize(1280, 1000);
      const tops = await page.evaluate(() =>
        [...document.querySelector("kv-growth").shadowRoot.querySelectorAll(".row label")].map(
          (label) => label.getBoundingClientRect().top,
        ),
      );
      assert.equal(tops.length, 2);
      assert.ok(Math.abs(tops[0] - tops[1]) < 1, `labels of a row at ${tops}`);
    });

    if (name !== "Chromium") return;

    it("takes its words under a strict policy, from a page in Latin-1, and from another origin", async () => {
      await open("/strict.html");
      await speaks(page, words("ja").context);
      await open("/latin.html");
      await speaks(page, words("ar").context);
      const elsewhere = await serve();
      const html = document(
        "es",
        `<script src="${elsewhere.origin}/kv-capacity.js"></script>`,
        "<kv-capacity></kv-capacity>",
      );
      PAGES["/far.html"] = { html };
      await open("/far.html");
      await speaks(page, words("es").context);
      assert.deepEqual(
        elsewhere.asked.filter((path) => path.includes("locales")),
        ["/locales/es.js"],
      );
      await elsewhere.close();
    });

    it("takes its words from disk, and in one file from the file itself", async () => {
      const folder = mkdtempSync(join(tmpdir(), "kv-languages-"));
      try {
        const src = pathToFileURL(join(dist, "kv-capacity.js"));
        writeFileSync(
          join(folder, "page.html"),
          document("hi", `<script src="${src}"></script>`, "<kv-capacity></kv-capacity>"),
        );
        await page.goto(pathToFileURL(join(folder, "page.html")).href);
        await speaks(page, words("hi").context);
        const whole = readFileSync(join(dist, "kv-capacity.html"), "utf8");
        for (const language of LANGUAGES)
          for (const part of ["", "-more", "-lesson", "-play"]) assert.ok(whole.includes(`["${language}${part}"]={`));
        for (const language of ["ar", "de"]) {
          writeFileSync(join(folder, "whole.html"), whole.replace('<html lang="en"', `<html lang="${language}"`));
          const before = page.requests.length;
          await page.goto(pathToFileURL(join(folder, "whole.html")).href);
          await speaks(page, words(language).context);
          const asked = page.requests.slice(before).filter((url) => !/^(data|blob):/.test(url));
          assert.equal(asked.length, 1, asked.join("\n"));
        }
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    it("speaks English in the end where the words take too long", async () => {
      // The end of the patience is held back until the test has looked.
      const patient = `<script>{
        const over = new Promise((resolve) => { window.lose = resolve; });
        const real = window.setTimeout;
        window.setTimeout = (then, time, ...rest) => real(time > 2000 ? () => over.then(then) : then, time, ...rest);
      }</script>`;
      PAGES["/slow.html"] = { html: document("de", patient + SCRIPT, "<kv-capacity></kv-capacity>") };
      await page.page.setRequestInterception(true);
      const held = [];
      const hold = (request) => (request.url().includes("/locales/") ? held.push(request) : request.continue());
      page.page.on("request", hold);
      await page.page.goto(`${site.origin}/slow.html`, { waitUntil: "domcontentloaded" });
      await until("the file to be asked for", () => held.length > 0);
      assert.match((await face(page)).state, /waiting/);
      await page.evaluate(() => lose());
      await speaks(page, words("en").context);
      await held[0].continue();
      await speaks(page, words("de").context);
      page.page.off("request", hold);
      await page.page.setRequestInterception(false);
    });
  });
}
