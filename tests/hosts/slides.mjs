// reveal.js: slides turn by key, by finger and by address; the calculator on one of them is used meanwhile.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { build } from "./hosts.mjs";
import { FIRST, NEXT, until, visit } from "./visit.mjs";

export function testSlides(host, ready, options) {
  describe(host.name, options, () => {
    let page;
    let visitor;
    let close;

    before(async () => {
      await ready();
      ({ page, visitor, close } = await visit(await build(host)));
    });
    after(() => close?.());

    const slide = () => page.evaluate(() => window.Reveal.getIndices().h);
    const at = (number) => until(`slide ${number}`, async () => (await slide()) === number);
    /** Turns with no control focused, as a speaker does. */
    const turn = async (key, number) => {
      await page.evaluate(() => document.activeElement.blur());
      await page.press(key);
      await at(number);
    };
    /** A finger that goes left across something, as far as a swipe needs. */
    const swipe = async ({ x, y }) => {
      const { touchscreen } = page.page;
      await touchscreen.touchStart(x, y);
      for (let moved = 10; moved <= 120; moved += 10) await touchscreen.touchMove(x - moved, y);
      await touchscreen.touchEnd();
    };

    it("computes on a slide that is not the first", async () => {
      await until("the slides", () => page.evaluate(() => window.Reveal?.isReady()));
      assert.equal(await slide(), 0);
      await turn("ArrowRight", 1);
      assert.deepEqual(await visitor.answer(), FIRST);
      const { top, bottom } = await page.evaluate(() => {
        const { top, bottom } = document.querySelector("kv-capacity").getBoundingClientRect();
        return { top, bottom };
      });
      assert.ok(top >= 0 && bottom <= 1000, `the calculator, from ${top} to ${bottom}, does not fit on the slide`);
      // A slide that is not shown has no width; now the cache is cut into its conversations.
      await until("the cuts", async () => (await visitor.bar()).cuts === 51);
      await visitor.unharmed();
    });

    it("keeps the keys of its controls", async () => {
      assert.deepEqual(await visitor.step("ArrowRight"), NEXT);
      assert.deepEqual(await visitor.step("ArrowLeft"), FIRST);
      await visitor.enter("context", "12288");
      await until("what was typed", async () => (await visitor.answer()).context === 12288);
      assert.deepEqual(await visitor.answer(), NEXT);
      assert.equal(await slide(), 1);
    });

    it("keeps the finger that is on a slider", async () => {
      const slider = await visitor.middle("#context");
      await swipe(slider);
      assert.equal(await slide(), 1);
      await swipe({ x: 1275, y: 500 }); // Beside the slide, where nothing prevents it.
      await at(2);
    });

    it("is as it was when its slide comes back", async () => {
      await turn("ArrowLeft", 1);
      const { context } = await visitor.answer();
      await turn("ArrowRight", 2);
      await turn("ArrowRight", 3);
      await visitor.go(-1);
      await at(2);
      await turn("ArrowLeft", 1);
      const answer = await visitor.answer();
      assert.deepEqual(
        { context: answer.context, kernels: answer.kernels, visible: answer.visible },
        { context, kernels: 1, visible: true },
      );
      await visitor.step("Home");
      await visitor.unharmed();
    });
  });
}
