// What a host with pages has to stand: reading, leaving by the host's own links, coming back, and the browser's history.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { build } from "./hosts.mjs";
import { FIRST, NEXT, until, visit } from "./visit.mjs";

/** `ready` resolves to why the host cannot be had, if so. */
export function testPages(host, ready, options) {
  describe(host.name, options, () => {
    let page;
    let visitor;
    let close;
    let why;

    before(async () => {
      why = await ready();
      if (!why) ({ page, visitor, close } = await visit(await build(host)));
    });
    after(() => close?.());

    const test = (what, work) => it(what, (context) => (why ? context.skip(why) : work()));

    test("computes where the README's lines put it", async () => {
      assert.deepEqual(await visitor.answer(), FIRST);
      // The example is for readers without script.
      assert.equal(
        await page.evaluate(() => {
          const example = document.querySelector("kv-capacity").firstElementChild;
          return example?.checkVisibility() ?? false;
        }),
        false,
      );
      await visitor.unharmed();
    });

    test("keeps its keys to itself while a reader types", async () => {
      const { href } = await page.evaluate(() => ({ href: location.href }));
      await visitor.click(".context-field .exact");
      const typed = (check) =>
        until("the box of the context", () =>
          page.evaluate((check) => {
            const root = document.querySelector("kv-capacity").shadowRoot;
            const box = root.querySelector(".context-field .exact");
            return root.activeElement === box && (check === "" || box.value.includes(check));
          }, check),
        );
      await typed("");
      // Shortcuts of one host or another: search, next and previous page, slides.
      await page.type("/sfnp?");
      await typed("/sfnp?");
      await page.evaluate(() => document.querySelector("kv-capacity").shadowRoot.activeElement.select());
      await page.type("8192");
      await typed("8192");
      await page.press("Enter");
      const { focus, now } = await page.evaluate(() => ({
        focus: document.activeElement.localName,
        now: location.href,
      }));
      assert.deepEqual({ focus, now }, { focus: "kv-capacity", now: href });
      assert.deepEqual(await visitor.answer(), FIRST);
    });

    /** One answer, shown, whichever of the contexts it is for, from one kernel; a step is heard once. */
    const alive = async () => {
      const answer = await visitor.answer();
      const first = answer.context === FIRST.context;
      assert.deepEqual(answer, first ? FIRST : NEXT);
      assert.deepEqual(await visitor.step(first ? "ArrowRight" : "ArrowLeft"), first ? NEXT : FIRST);
    };

    test("survives the host's own way there and back", async () => {
      await page.evaluate(() => {
        window.stayed = true;
      });
      await alive();
      const ways = [() => visitor.follow("Back"), () => visitor.go(-1), () => visitor.follow("Back")];
      for (const back of ways) {
        await visitor.follow("Away");
        await visitor.away();
        await back();
        await alive();
        await visitor.unharmed();
      }
      // Where the host turns pages itself, this was one document all the time.
      assert.equal(await page.evaluate(() => Boolean(window.stayed)), Boolean(host.router));
    });

    test("finds its state in the address after the browser's way back", async () => {
      await visitor.follow("Kept");
      await until("the page that keeps its state", () =>
        visitor.ask(() => document.querySelector("kv-capacity")?.hasAttribute("link")),
      );
      await visitor.answer();
      assert.deepEqual(await visitor.step("ArrowRight"), NEXT);
      await visitor.follow("Away");
      await visitor.away();
      await visitor.go(-1);
      assert.deepEqual(await visitor.answer(), NEXT);
      await visitor.unharmed();
    });
  });
}
