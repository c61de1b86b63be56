// What a reader does with the calculator and sees of it, in terms of the page.
import assert from "node:assert/strict";

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Asks until the answer is true-ish; says what was waited for when it never is. */
export async function until(what, ask, patience = 60_000) {
  const end = Date.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await wait(30);
  }
}

/** Tries a check until it passes; in vain, its last failure is the error. What it does is done again and again. */
export async function passes(check, patience = 60_000) {
  const end = Date.now() + patience;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await wait(30);
  }
}

/** Asks until the text matches, and gives it; in vain, the error has the pattern and the text that was read last. */
export const reads = (ask, pattern) =>
  passes(async () => {
    const text = await ask();
    assert.match(text, pattern);
    return text;
  });

/** Asks until the answer is the expected one; in vain, the error has both. */
export const becomes = (ask, expected, what) => passes(async () => assert.deepEqual(await ask(), expected, what));

/** Asks until two answers, so long apart, are the same, and gives it: what came late has come. */
export async function rests(ask, milliseconds = 500) {
  let before;
  return until("what does not rest", async () => {
    const now = await ask();
    const same = JSON.stringify(now) === before;
    before = JSON.stringify(now);
    if (same) return { now };
    await wait(milliseconds);
    return null;
  }).then(({ now }) => now);
}

export class Reader {
  constructor(page) {
    this.page = page;
  }

  async open(url) {
    await this.page.goto(url);
    await until("the first answer", () =>
      this.page.evaluate(() => Boolean(document.querySelector("kv-capacity")?.plan)),
    );
    await this.page.evaluate(() => document.querySelector("kv-capacity").ready);
  }

  /** The middle of something, scrolled into view. */
  middle(selector, host = "kv-capacity") {
    return this.page.evaluate(
      (host, selector) => {
        const node = document.querySelector(host).shadowRoot.querySelector(selector);
        node.scrollIntoView({ block: "center", behavior: "instant" });
        const { left, top, width, height } = node.getBoundingClientRect();
        return { x: left + width / 2, y: top + height / 2 };
      },
      host,
      selector,
    );
  }

  async click(selector, host) {
    const { x, y } = await this.middle(selector, host);
    await this.page.click(x, y);
  }

  focus(selector) {
    return this.page.evaluate((selector) => {
      const node = document.querySelector("kv-capacity").shadowRoot.querySelector(selector);
      node.scrollIntoView({ block: "center", behavior: "instant" });
      node.focus();
    }, selector);
  }

  /** Chooses in a selector by the arrow keys. */
  async choose(key, value) {
    await this.focus(`#${key}`);
    const steps = await this.page.evaluate(
      (key, value) => {
        const select = document.querySelector("kv-capacity").shadowRoot.querySelector(`#${key}`);
        return [...select.options].findIndex((option) => option.value === value) - select.selectedIndex;
      },
      key,
      value,
    );
    await this.page.press(steps < 0 ? "ArrowUp" : "ArrowDown", Math.abs(steps));
    // The control has the value before the calculator is told of it, which may come down to the model's own format.
    await until(`${key} to be ${value}`, () =>
      this.page.evaluate(
        (key, value) => {
          const element = document.querySelector("kv-capacity");
          const asked = element[key] ?? (key === "weights" ? element.plan?.weights : undefined);
          return element.shadowRoot.querySelector(`#${key}`).value === value && asked === value;
        },
        key,
        value,
      ),
    );
  }

  /** Types a number into the box beside a slider and leaves it, which is when it is taken. */
  async enter(key, text) {
    const box = (select = false) =>
      this.page.evaluate(
        (key, select) => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          const input = root.querySelector(`.${key}-field .exact`);
          if (select) {
            // A click may only have closed a list that was open.
            input.focus();
            input.select();
          }
          return { text: input.value, focused: root.activeElement === input };
        },
        key,
        select,
      );
    await this.click(`.${key}-field .exact`);
    await until(`an empty box of ${key}`, async () => {
      await box(true);
      await this.page.press("Backspace");
      return (await box()).text === "";
    });
    await this.page.type(text);
    await until(`${text} in the box of ${key}`, async () => (await box()).text === text);
    await this.page.press("Tab");
    await until(`the focus to leave the box of ${key}`, async () => !(await box()).focused);
  }

  /** Drags a slider's handle to a part of its way, 0 to 1. */
  async drag(key, part) {
    const { from, to } = await this.page.evaluate(
      (key, part) => {
        const range = document.querySelector("kv-capacity").shadowRoot.querySelector(`#${key}`);
        range.scrollIntoView({ block: "center", behavior: "instant" });
        const { left, top, width, height } = range.getBoundingClientRect();
        const handle = 1.375 * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
        const at = (share) => ({ x: left + handle / 2 + share * (width - handle), y: top + height / 2 });
        const [min, max] = [Number(range.min), Number(range.max)];
        return { from: at((range.valueAsNumber - min) / (max - min)), to: at(part) };
      },
      key,
      part,
    );
    await this.page.drag(from, to, 12);
  }

  control(selector) {
    return this.page.evaluate((selector) => {
      const node = document.querySelector("kv-capacity").shadowRoot.querySelector(selector);
      return {
        value: node.value,
        invalid: node.getAttribute("aria-invalid"),
        valuetext: node.getAttribute("aria-valuetext"),
        disabled: node.disabled,
        max: node.max,
      };
    }, selector);
  }

  /** Everything that is told, as text. */
  async told() {
    return this.page.evaluate(() => {
      const root = document.querySelector("kv-capacity").shadowRoot;
      const text = (selector) => root.querySelector(selector).textContent.replaceAll("\u00a0", " ");
      const figure = (name) => ({
        figure: text(`.${name} .value b`) + (text(`.${name} .value i`) && ` ${text(`.${name} .value i`)}`),
        small: text(`.${name} .small`),
        title: root.querySelector(`.${name} .value`).title,
      });
      return {
        token: figure("token"),
        sequence: figure("sequence"),
        room: figure("room"),
        count: figure("count"),
        sentence: text(".sentence"),
        problem: text(".problem"),
        context: text("#context-label"),
        gpus: text("#gpus-label"),
        legend: [...root.querySelectorAll(".legend li")].map((item) => item.textContent.replaceAll("\u00a0", " ")),
        stale: root.querySelector(".stale") !== null,
      };
    });
  }

  /** The bar's segments in pixels, and the cuts in its cache. */
  bar() {
    return this.page.evaluate(() => {
      const bar = document.querySelector("kv-capacity").shadowRoot.querySelector(".bar");
      const box = bar.getBoundingClientRect();
      const end = bar.querySelector(".end")?.getBoundingClientRect();
      return {
        width: box.width,
        segments: [...bar.querySelectorAll(".segment")].map((node) => {
          const { left, width } = node.getBoundingClientRect();
          return { kind: node.classList[1], left: left - box.left, width };
        }),
        cuts: (bar.querySelector("path")?.getAttribute("d") ?? "").split("M").length - 1,
        end: end ? end.left - box.left : null,
      };
    });
  }

  plan() {
    return this.page.evaluate(() => document.querySelector("kv-capacity").plan);
  }

  /** Waits until the calculator's answer passes a check, and gives it. What is told changes with the answer. */
  planned(check) {
    return until(`an answer for ${check}`, async () => {
      const plan = await this.plan();
      return plan && check(plan) ? plan : null;
    });
  }
}
