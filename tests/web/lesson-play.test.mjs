// The lesson's elements that a reader plays with and is asked by, in three browsers: paging, quiz, interview.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { becomes, reads, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const folder = process.env.KV_SITE ?? dist;
const wordsOf = (name) => JSON.parse(readFileSync(new URL(`../../web/locales/${name}.json`, import.meta.url), "utf8"));
const words = wordsOf("en-play");

const script = '<script src="kv-capacity.js"></script>';
const html = (body, head = script) => ({
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>lesson</title><link rel="icon" href="data:,">${head}</head><body>${body}</body></html>`,
});
const PAGES = {
  "/paging.html": html('<kv-paging seed="1"></kv-paging>'),
  "/quiz.html": html('<kv-quiz seed="7" level="1"></kv-quiz>'),
  "/interview.html": html('<kv-interview seed="5"></kv-interview>'),
  "/german.html": html('<kv-quiz seed="7" level="1" lang="de"></kv-quiz>'),
};

/** The nine mistakes that a wrong answer is held against. */
const MISTAKES = [
  "query_heads",
  "hidden_over_heads",
  "factor_two",
  "bits_for_bytes",
  "gb_for_gib",
  "weight_bits_on_cache",
  "active_parameters",
  "one_layer",
  "reserve_forgotten",
];

/** The kernel without a page: what the elements are held against. */
let kernel;
const ask = (name, question) => JSON.parse(kernel.instance[name](JSON.stringify(question)));
const questionsOf = (quiz) => ask("quiz", quiz).questions;

before(async () => {
  const module = await import(pathToFileURL(join(folder, "kv-capacity.mjs")).href);
  kernel = await module.loadFullKernel();
});

/** Where a mistake can be made: a quiz, the question's place, and what somebody who makes it answers. */
function temptation(code) {
  for (let seed = 1; seed < 60; seed++) {
    const quiz = { seed, level: 2 };
    for (const [index, { mistakes, unit }] of questionsOf(quiz).entries()) {
      const found = unit !== "choice" && mistakes.find((mistake) => mistake.code === code);
      if (!found) continue;
      const { diagnoses } = ask("quiz", { ...quiz, check: { question: index, value: found.value } });
      if (diagnoses[0] === code) return { seed, index, answer: String(found.value) };
    }
  }
  throw new Error(`no question tempts to ${code}`);
}

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
    const open = async (path, tag, hash = "") => {
      await page.goto(`${site.origin}${path}?${Math.random()}${hash}`);
      await until(`<${tag}>`, () =>
        within((tag) => Boolean(document.querySelector(tag)?.shadowRoot?.querySelector(".kv[class=kv]")), tag),
      );
      // What it says of itself, from now on.
      await within(() => {
        window.told = [];
        for (const kind of ["kv-answer", "kv-summary"]) {
          document.addEventListener(kind, ({ detail }) => {
            window.told.push({ kind, ...detail, question: detail.question?.kind });
          });
        }
      });
    };
    const text = (tag, selector) =>
      within(
        (tag, selector) => {
          const nodes = [...document.querySelector(tag).shadowRoot.querySelectorAll(selector)];
          return nodes.map((node) => node.textContent.replaceAll("\u00a0", " ")).join(" ");
        },
        tag,
        selector,
      );
    const attribute = (tag, key) => within((tag, key) => document.querySelector(tag).getAttribute(key), tag, key);
    const set = (tag, values) =>
      within(
        (tag, values) => {
          for (const [key, value] of Object.entries(values)) document.querySelector(tag).setAttribute(key, value);
        },
        tag,
        values,
      );
    const told = () => within(() => window.told);
    const complaints = async () => [...(await within(() => window.problems)), ...page.problems];

    describe("<kv-paging>", () => {
      const tag = "kv-paging";
      const running = async () => [
        Number(await text(tag, ".contiguous .counter b")),
        Number(await text(tag, ".paged .counter b")),
      ];
      const runningAt = (question) => {
        const { servers } = ask("paging", { seed: 1, ...question });
        return [servers[0].running, (question.prefix_tokens ? servers[2] : servers[1]).running];
      };

      it("goes on by hand, and shows what the kernel counts", async () => {
        await open("/paging.html", tag);
        assert.deepEqual(await running(), [0, 0]);
        assert.match(await text(tag, ".sentence"), /^Nothing has arrived yet/);
        for (const step of [20, 40, 60]) {
          await reader.click(".buttons button:last-child", tag);
          await until("the step", async () => (await attribute(tag, "step")) === String(step));
          await until("its counts", async () => String(await running()) === String(runningAt({ step })));
        }
        const shares = (await text(tag, ".contiguous .shares b")).match(/[\d.]+(?=%)/g).map(Number);
        const whole = shares.reduce((sum, share) => sum + share, 0);
        assert.ok(Math.abs(whole - 100) < 0.4, `${whole}`);
      });

      it("draws all of the memory, each token once", async () => {
        await set(tag, { step: 500, prefix: 128 });
        await until(
          "the step",
          async () => String(await running()) === String(runningAt({ step: 500, prefix_tokens: 128 })),
        );
        const areas = await within(() =>
          [...document.querySelector("kv-paging").shadowRoot.querySelectorAll(".strip")].map((strip) =>
            [...strip.querySelectorAll("path:not(.cuts, .rows)")]
              .flatMap((path) => [...path.getAttribute("d").matchAll(/h(\d+)v1/g)])
              .reduce((sum, [, wide]) => sum + Number(wide), 0),
          ),
        );
        assert.deepEqual(areas, [8192, 8192]);
        const spared = ask("paging", { seed: 1, step: 500, prefix_tokens: 128 }).servers[2].spared_tokens;
        assert.ok((await text(tag, ".sentence")).includes(`spares ${spared.toLocaleString("en")} tokens`));
      });

      it("plays and pauses", async () => {
        await open("/paging.html", tag);
        await reader.click(".buttons button", tag);
        // Within the page, since it would play to its end while a slow machine looks for the button.
        const { step, end } = await within(async () => {
          const paging = document.querySelector("kv-paging");
          const [play] = paging.shadowRoot.querySelectorAll(".buttons button");
          const step = () => Number(paging.getAttribute("step"));
          while (step() <= 60) await new Promise((resolve) => setTimeout(resolve, 20));
          play.click();
          return { step: paging.getAttribute("step"), end: paging.shadowRoot.querySelector("#scrub").max };
        });
        assert.ok(Number(step) < Number(end), "it was paused before its end");
        await wait(400);
        assert.equal(await attribute(tag, "step"), step);
      });

      it("scrubs by keyboard, and chooses", async () => {
        await open("/paging.html", tag);
        await within(() => document.querySelector("kv-paging").shadowRoot.querySelector("#scrub").focus());
        await page.press("End");
        await until("the end", async () => /both have answered all 60/.test(await text(tag, ".sentence")));
        const { servers } = ask("paging", { seed: 1, history: true });
        assert.equal(Number(await attribute(tag, "step")), servers[0].last_step);
        assert.match(
          await text(tag, ".time .axis"),
          new RegExp(`at most ${servers[0].peak} .* ${servers[1].peak} in pages`),
        );
        // Shorter answers end earlier, which no reader has to be told.
        await within(() => {
          const select = document.querySelector("kv-paging").shadowRoot.querySelector("#lengths");
          select.value = "alpaca";
          select.dispatchEvent(new Event("change", { bubbles: true }));
        });
        const [blocks] = ask("paging", { seed: 1, history: true, lengths: "alpaca" }).servers;
        assert.ok(blocks.last_step < servers[0].last_step);
        await until("its end", async () => Number(await attribute(tag, "step")) === blocks.last_step);
        assert.equal(await text(tag, ".problem"), "");
        await set(tag, { step: 100 });
        await until(
          "other lengths",
          async () => String(await running()) === String(runningAt({ step: 100, lengths: "alpaca" })),
        );
      });

      it("is in a link, and says what it cannot show", async () => {
        await open("/paging.html", tag, "#kv-paging.step=300&kv-paging.prefix=64&kv-paging.page=32");
        await becomes(running, runningAt({ step: 300, prefix_tokens: 64, page_tokens: 32 }));
        assert.match(await within(() => document.querySelector("kv-paging").link), /kv-paging\.step=300/);
        for (const wrong of [{ page: "0" }, { page: "many" }, { memory: "99" }, { lengths: "novels" }]) {
          await set(tag, wrong);
          await until("a complaint", async () => (await text(tag, ".problem")) !== "");
          for (const key of Object.keys(wrong)) {
            await within((key) => document.querySelector("kv-paging").removeAttribute(key), key);
          }
          await until("no complaint", async () => (await text(tag, ".problem")) === "");
        }
        assert.deepEqual(await complaints(), []);
      });
    });

    describe("<kv-quiz>", () => {
      const tag = "kv-quiz";
      const verdict = () => text(tag, ".verdict");
      const answer = async (typed) => {
        await until("the question", () =>
          within(() => Boolean(document.querySelector("kv-quiz").shadowRoot.querySelector("#answer"))),
        );
        await within(() => {
          const input = document.querySelector("kv-quiz").shadowRoot.querySelector("#answer");
          input.value = "";
          input.focus();
        });
        await page.type(typed);
        await page.press("Enter");
      };

      it("takes a right answer in any unit, and tells the page", async () => {
        const [{ value }] = questionsOf({ seed: 7, level: 1 });
        for (const typed of [String(value), `${value / 1024} KiB`, `${value / 1000}kB`, `${value * 8} bits`]) {
          await open("/quiz.html", tag);
          await answer(typed);
          await until("the verdict", async () => (await verdict()).startsWith("Right."));
          assert.equal(await text(tag, ".diagnosis"), "");
          const events = await told();
          assert.deepEqual(events, [
            { kind: "kv-answer", question: "bytes_per_token", answer: typed, verdict: "right", diagnosis: null },
          ]);
          assert.match(await text(tag, ".steps"), new RegExp(`= ${value.toLocaleString("en")} bytes`));
        }
      });

      it("reads another language's numbers", async () => {
        const [{ value }] = questionsOf({ seed: 7, level: 1 });
        await open("/german.html", tag);
        await answer(`${String(value / 1e6).replace(".", ",")} MB`);
        await until("the verdict", async () => (await verdict()).startsWith(wordsOf("de-play")["quiz.right"]));
      });

      for (const code of MISTAKES) {
        it(`says what went wrong: ${code}`, async () => {
          const { seed, index, answer: typed } = temptation(code);
          await open("/quiz.html", tag);
          await set(tag, { seed, level: 2, question: index + 1 });
          await until("the question", async () =>
            (await text(tag, ".progress")).startsWith(`Question ${index + 1} of 8`),
          );
          await answer(typed);
          await until("the verdict", async () => (await verdict()).startsWith("Not quite."));
          const start = words[`quiz.mistake.${code}`].split("{")[0];
          const said = await text(tag, ".diagnosis");
          assert.ok(said.startsWith(start), said);
          const [event] = await told();
          assert.equal(event.verdict, "wrong");
          assert.equal(event.diagnosis, code);
        });
      }

      it("asks again where an answer is none", async () => {
        await open("/quiz.html", tag);
        for (const absurd of ["banana", "-5", "1e99", "12 parsecs", "∞", "128 KiB KiB", "   "]) {
          await answer(absurd);
          await until(`a complaint at ${absurd}`, async () => (await text(tag, ".answer .problem")) !== "");
          assert.equal(await verdict(), "");
          await within(() => {
            document.querySelector("kv-quiz").shadowRoot.querySelector(".answer .problem").textContent = "";
          });
        }
        assert.deepEqual(await told(), []);
        await answer("0");
        await until("a verdict all the same", async () => (await verdict()).startsWith("Not quite."));
      });

      it("goes to its end: right, wrong, shown, and a summary", async () => {
        const quiz = { seed: 4, level: 3 };
        await open("/quiz.html", tag);
        await set(tag, quiz);
        const questions = questionsOf(quiz);
        for (const [index, question] of questions.entries()) {
          await until("the question", async () => (await text(tag, ".progress")) === `Question ${index + 1} of 9`);
          if (index === 1) await reader.click(".give-up", tag);
          else if (question.unit === "choice") {
            await reader.click(`.choice:nth-child(${question.choices.indexOf(question.choice) + 1})`, tag);
          } else await answer(String(index === 0 ? question.value * 1000 : question.value));
          await until("what is said to it", async () => (await verdict()) !== "");
          await reader.click(".next", tag);
        }
        await until("the summary", async () => (await text(tag, "h3")) === "7 of 9 right.");
        const events = await told();
        assert.deepEqual(
          events.map(({ verdict }) => verdict),
          ["wrong", "shown", ...Array(7).fill("right"), undefined],
        );
        assert.deepEqual([events[9].kind, events[9].right, events[9].count], ["kv-summary", 7, 9]);
        await reader.click(".buttons .first", tag);
        await until("other questions", async () => (await attribute(tag, "seed")) === "5");
        await reads(() => text(tag, ".progress"), /^Question 1 of 9/);
        // Another level begins anew with what it asks.
        await within(() => {
          const level = document.querySelector("kv-quiz").shadowRoot.querySelector("#level");
          level.value = "1";
          level.dispatchEvent(new Event("change"));
        });
        const count = questionsOf({ seed: 5, level: 1 }).length;
        await until("the level", async () => (await text(tag, ".progress")) === `Question 1 of ${count}`);
        await becomes(async () => [await attribute(tag, "level"), await attribute(tag, "seed")], ["1", "5"]);
      });

      it("asks what an author names, and says what nobody can ask", async () => {
        await open("/quiz.html", tag);
        await set(tag, { topics: "room sequences", count: 3, lock: "" });
        await until("three questions", async () => (await text(tag, ".progress")) === "Question 1 of 3");
        assert.equal(
          await within(() => document.querySelector("kv-quiz").shadowRoot.querySelector("#level").checkVisibility()),
          false,
        );
        await set(tag, { topics: "astrology" });
        await until("a complaint", async () => /these are known/.test(await text(tag, ".body > .problem")));
        assert.deepEqual(await complaints(), []);
      });
    });

    describe("<kv-interview>", () => {
      const tag = "kv-interview";

      it("goes link by link, and takes what is within a tenth", async () => {
        await open("/interview.html", tag);
        const links = questionsOf({ seed: 5, interview: true });
        for (const [index, { unit, value }] of links.entries()) {
          await until("the link", async () => (await text(tag, ".chain > li:last-child")) !== "");
          if (unit === "choice") {
            await until("the choices", () => text(tag, ".choice"));
            await reader.click(".choice", tag);
          } else {
            await within(() => document.querySelector("kv-interview").shadowRoot.querySelector("#answer").focus());
            await page.type(String(Math.round(value * (index % 2 ? 1.08 : 0.93))));
            await page.press("Enter");
          }
          await until("its verdict", async () => (await told()).length === index + 1 + (index === 5 ? 1 : 0));
        }
        const events = await told();
        assert.deepEqual(
          events.map(({ verdict }) => verdict),
          [...Array(6).fill("right"), undefined],
        );
        assert.equal(events[6].right, 6);
        await reads(() => text(tag, ".aloud"), /^Said in one go: “.* 4,096 tokens .*196 conversations/);
        await reader.click(".end .first", tag);
        await until("another", async () => (await attribute(tag, "seed")) === "6");
        assert.deepEqual(await complaints(), []);
      });

      it("names a mistake on the way, and what should have been asked", async () => {
        await open("/interview.html", tag);
        const links = questionsOf({ seed: 5, interview: true });
        const reserve = links[1].mistakes.find(({ code }) => code === "reserve_forgotten");
        /** Has the next answer shown, after so many. */
        const giveUp = async (before) => {
          await reader.click(".give-up", tag);
          await until("the answer to be shown", async () => (await told()).length === before + 1);
        };
        await giveUp(0);
        await within(() => document.querySelector("kv-interview").shadowRoot.querySelector("#answer").focus());
        await page.type(String(reserve.value));
        await page.press("Enter");
        await until("the mistake", async () =>
          (await text(tag, ".diagnosis")).startsWith("That uses all of the memory"),
        );
        await giveUp(2);
        await reader.click(".choice:nth-child(2)", tag);
        await until("what to ask", async () =>
          /it is “How long do the conversations get/.test(await text(tag, ".verdict")),
        );
      });
    });
  });
}
