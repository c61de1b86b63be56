// Use that goes on: what a page takes does not grow. `npm run soak` goes on for longer.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { grown, soak } from "../soak.mjs";
import { browsers } from "./browsers.mjs";

describe("a page in use takes no more than at its start", { timeout: 600_000 }, () => {
  for (const name of Object.keys(browsers)) {
    it(`in ${name}`, async () => {
      assert.deepEqual(grown(await soak(name, { calls: 10_000, imports: 100, inserts: 22 })), []);
    });
  }

  it("or what grew is said", () => {
    const early = { memory: [1, 1], nodes: 10, held: 0, heap: 1e6, engineNodes: 100, listeners: 5 };
    assert.deepEqual(grown({ early, late: early }), []);
    const late = { memory: [1, 2], nodes: 11, held: 30, heap: 9e6, engineNodes: 900, listeners: 90 };
    assert.equal(grown({ early, late }).length, 6);
    assert.equal(grown({ early, late: { ...early, memory: [1] } }).length, 1);
  });
});
