// How an answer is drawn while a hand drags: on frames and a clock of the test's own, so that no machine is too fast or
// too slow for it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { browsers } from "./browsers.mjs";
import { visit } from "./visit.mjs";

const PAGES = {
  "/frames.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>frames</title>
      <link rel="icon" href="data:,">
      <script>
        // Frames come when the test calls for them; each look at the clock finds so many milliseconds gone. What the
        // browser makes of a frame takes as long as the test says, and what was put off until then runs after it.
        const asked = [];
        const after = [];
        const { setTimeout: later } = window;
        let clock = 0;
        let time = 0;
        let drawing = false;
        window.tick = 0;
        window.between = 16;
        window.requestAnimationFrame = (job) => asked.push(job);
        window.setTimeout = (job, wait) => (drawing && !wait ? after.push(job) : later(job, wait));
        performance.now = () => (clock += tick);
        window.frame = (rest = 0) => {
          drawing = true;
          time += between;
          for (const job of asked.splice(0)) job(time);
          drawing = false;
          clock += rest;
          for (const job of after.splice(0)) job();
        };
      </script>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity id="calculator"></kv-capacity></body></html>`,
  },
};

/** What a test does in the page, by name. */
function tools() {
  const element = document.querySelector("kv-capacity");
  const root = element.shadowRoot;
  const slider = root.querySelector("#context");
  const text = (selector) => [...root.querySelectorAll(selector)].map((node) => node.textContent).join(" ");
  window.heard = [];
  for (const type of ["kv-input", "kv-change", "kv-shown"]) {
    element.addEventListener(type, ({ detail }) => heard.push(detail ? `${type} ${detail.plan?.context}` : type));
  }
  Object.assign(window, {
    move(stop) {
      slider.value = stop;
      slider.dispatchEvent(new Event("input"));
      return element.request.context;
    },
    drop: () => slider.dispatchEvent(new Event("change")),
    type(what) {
      const box = root.querySelector(".context-field .exact");
      box.value = what;
      box.dispatchEvent(new Event("input"));
    },
    parts: () => ({
      figures: text(".figure b"),
      factors: text(".figure .small"),
      legend: text(".legend"),
      sentence: text(".sentence"),
      steps: text(".steps"),
      dial: text("#context-label"),
      problem: text("#problem"),
    }),
  });
  for (const details of root.querySelectorAll("details[part=arithmetic]")) details.open = true;
  return element.ready;
}

for (const [name, launch] of Object.entries(browsers)) {
  describe(`a hand that drags, in ${name}`, () => {
    let page;
    let close;
    let origin;
    before(async () => {
      ({
        page,
        close,
        site: { origin },
      } = await visit(launch, PAGES));
    });
    after(() => close?.());

    const fresh = async () => {
      await page.goto(`${origin}/frames.html`);
      await page.evaluate(tools);
      // Opening is told later than it is done.
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    };

    it("has all of an answer in the next frame where there is time", async () => {
      await fresh();
      const { first, between, drawn, context, heard, again } = await page.evaluate(() => {
        const first = parts();
        move(9);
        const context = move(12);
        const between = parts();
        frame();
        const drawn = parts();
        frame();
        return { first, between, drawn, context, heard, again: parts() };
      });
      assert.deepEqual(between, first);
      for (const [part, text] of Object.entries(drawn)) {
        if (part !== "problem") assert.notEqual(text, first[part], part);
      }
      assert.match(drawn.sentence, new RegExp(`At ${context.toLocaleString("en")} tokens`));
      assert.deepEqual(heard, [`kv-input ${context}`, "kv-shown"]);
      assert.deepEqual(again, drawn);
    });

    it("draws a part a frame where drawing takes long, the figures first, until all is drawn", async () => {
      await fresh();
      const { seen, whole } = await page.evaluate(() => {
        window.tick = 10;
        const seen = [parts()];
        move(12);
        for (let at = 1; at <= 30; at++) {
          frame();
          seen.push(parts());
        }
        drop();
        return { seen, whole: parts() };
      });
      const order = seen.slice(1).map((now, at) => Object.keys(now).filter((part) => now[part] !== seen[at][part]));
      assert.ok(
        order.every((changed) => changed.length <= 1),
        JSON.stringify(order),
      );
      assert.equal(order.flat()[0], "figures");
      assert.deepEqual(seen.at(-1), whole);
    });

    it("leaves nothing behind, however long the hand goes on", async () => {
      await fresh();
      const { figures, sentences, legends, last, whole } = await page.evaluate(() => {
        window.tick = 10;
        const seen = [];
        for (let at = 1; at <= 120; at++) {
          move(at % 2 ? 9 + (at % 7) : 5 + (at % 5));
          frame();
          seen.push(parts());
        }
        for (let at = 121; at <= 160; at++) frame();
        const last = parts();
        drop();
        const count = (part) => new Set(seen.map((one) => one[part])).size;
        return {
          figures: count("figures"),
          sentences: count("sentence"),
          legends: count("legend"),
          last,
          whole: parts(),
        };
      });
      assert.ok(figures >= 5, `${figures} figures were seen`);
      assert.ok(sentences >= 2, `${sentences} sentences were seen`);
      assert.ok(legends >= 2, `${legends} legends were seen`);
      assert.deepEqual(last, whole);
    });

    it("does not take a screen that has few frames for a slow machine", async () => {
      await fresh();
      const { drawn, whole } = await page.evaluate(() => {
        window.tick = 0.01;
        window.between = 34;
        for (let at = 1; at <= 500; at++) {
          move(at % 2 ? 9 : 12);
          frame(2);
        }
        move(14);
        frame();
        const drawn = parts();
        drop();
        return { drawn, whole: parts() };
      });
      assert.deepEqual(drawn, whole);
    });

    it("draws less in a frame while the browser takes long over each, and then as much as before", async () => {
      await fresh();
      const { few, all, whole } = await page.evaluate(() => {
        window.tick = 0.2;
        const go = (frames, rest) => {
          for (let at = 0; at < frames; at++) {
            move(at % 2 ? 9 : 12);
            frame(rest);
          }
        };
        /** How many parts each of the next frames changes while the hand goes on. */
        const changes = (stops) =>
          stops.map((stop) => {
            const before = parts();
            move(stop);
            frame(20);
            const now = parts();
            return Object.keys(now).filter((part) => now[part] !== before[part]).length;
          });
        go(20, 20);
        const few = changes([5, 7, 5, 7, 5, 7]);
        go(60, 1);
        move(14);
        frame();
        const all = parts();
        drop();
        return { few, all, whole: parts() };
      });
      assert.ok(Math.max(...few) === 1 && Math.min(...few) === 0, `${few} parts changed in a frame`);
      assert.deepEqual(all, whole);
    });

    it("answers at once when the hand lets go, and tells of the way before it", async () => {
      await fresh();
      const { dropped, later, context, heard } = await page.evaluate(() => {
        window.tick = 10;
        const context = move(14);
        drop();
        const dropped = parts();
        for (let at = 1; at <= 30; at++) frame();
        return { dropped, later: parts(), context, heard };
      });
      assert.match(dropped.sentence, new RegExp(`At ${context.toLocaleString("en")} tokens`));
      assert.deepEqual(later, dropped);
      assert.deepEqual(heard.slice(0, 3), [`kv-input ${context}`, "kv-shown", `kv-change ${context}`]);
      assert.ok(
        heard.slice(3).every((one) => one === "kv-shown"),
        heard.join(),
      );
    });

    it("takes back what was refused on the way, and goes on", async () => {
      await fresh();
      const { refused, mended } = await page.evaluate(() => {
        const element = document.querySelector("kv-capacity");
        const root = element.shadowRoot;
        const all = () => ({
          ...parts(),
          error: element.error !== null,
          stale: root.querySelectorAll(".stale").length,
          inert: root.querySelectorAll("[inert]").length,
          invalid: root.querySelectorAll("[aria-invalid]").length,
        });
        type("many");
        frame();
        const refused = all();
        type("4096");
        frame();
        frame();
        return { refused, mended: all() };
      });
      assert.match(refused.problem, /whole number of tokens/);
      const marks = ({ error, stale, inert, invalid }) => ({ error, stale, inert, invalid });
      assert.deepEqual(marks(refused), { error: true, stale: 1, inert: 1, invalid: 1 });
      assert.equal(mended.problem, "");
      assert.deepEqual(marks(mended), { error: false, stale: 0, inert: 0, invalid: 0 });
      assert.match(mended.sentence, /At 4,096 tokens/);
    });

    it("does no harm when the calculator goes while frames are to come", async () => {
      await fresh();
      await page.evaluate(() => {
        window.tick = 10;
        move(14);
        frame();
        document.querySelector("kv-capacity").remove();
        for (let at = 2; at <= 30; at++) frame();
      });
      assert.deepEqual(page.problems, []);
    });
  });
}
