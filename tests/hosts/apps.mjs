// Apps of three frameworks: attributes, properties and events as the framework writes them, drawing anew, leaving, and
// coming back. What is in tests/hosts/<framework> is the app around the README's component.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { build } from "./hosts.mjs";
import { FIRST, NEXT, until, visit } from "./visit.mjs";

export function testApp(host, ready, options) {
  describe(host.name, options, () => {
    let page;
    let visitor;
    let close;

    before(async () => {
      await ready();
      ({ page, visitor, close } = await visit(await build(host), { app: true }));
    });
    after(() => close?.());

    const press = (id) => page.evaluate((id) => document.getElementById(id).click(), id);
    /** Model, context and conversations, once the app's change has come through. */
    const become = async (model, context, sequences) => {
      const now = () =>
        page.evaluate(() => {
          const { plan } = document.querySelector("kv-capacity");
          return JSON.stringify([plan.model.name, plan.context, plan.sequences]);
        });
      const expected = JSON.stringify([model, context, sequences]);
      let last;
      await until(expected, async () => {
        last = await now();
        return last === expected;
      }).catch(() => assert.equal(last, expected));
    };
    const heard = () => page.evaluate(() => document.querySelector("output").textContent);

    it("computes from what a component gives", async () => {
      assert.deepEqual(await visitor.answer(), FIRST);
      await visitor.unharmed();
    });

    it("tells a component of a reader's change, once, and keeps it while the app draws anew", async () => {
      assert.deepEqual(await visitor.step("ArrowRight"), NEXT);
      await until("what the component heard", async () => (await heard()) === "[34]");
      assert.deepEqual(await visitor.step("ArrowLeft"), FIRST);
      assert.deepEqual(await visitor.step("ArrowRight"), NEXT);
      await until("what the component heard", async () => (await heard()) === "[34,52,34]");
      assert.deepEqual(await visitor.answer(), NEXT);
    });

    it("takes a number, an object and nothing as properties", async () => {
      await press("longer");
      await become("Llama 3.1 8B", 16384, 26);
      await press("own");
      // 72 GB without 2 GB of weights, by 16 KiB a token.
      await become("Course model", 16384, 260);
      await press("none");
      await become("Llama 3.1 8B", 16384, 26);
      assert.equal(await page.evaluate(() => document.querySelector("kv-capacity").error), null);
      assert.equal(await heard(), "[34,52,34]");
    });

    it("is left and comes back", async () => {
      const { kernels } = await visitor.answer();
      const left = await page.page.evaluateHandle(() => document.querySelector("kv-capacity"));
      for (const back of [() => visitor.follow("Back"), () => visitor.go(-1)]) {
        await visitor.follow("Away");
        await visitor.away();
        assert.equal(await left.evaluate((node) => node.isConnected), false);
        await back();
        const answer = await visitor.answer();
        assert.deepEqual(
          { calculators: answer.calculators, kernels: answer.kernels, visible: answer.visible },
          { calculators: 1, kernels, visible: true },
        );
      }
      // What <KeepAlive> kept is the same element; elsewhere it is a new one, which starts where the component says.
      if (host.keeps) await become("Llama 3.1 8B", 16384, 26);
      else await become("Llama 3.1 8B", 8192, 52);
      assert.equal(await left.evaluate((node) => node.isConnected), Boolean(host.keeps));
      const before = await heard();
      await visitor.step("Home");
      await until("what the component heard", async () => (await heard()) !== before);
      await visitor.unharmed();
    });
  });
}
