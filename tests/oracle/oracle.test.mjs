// The kernel against the arithmetic written a second time, byte for byte. `npm run oracle` asks ten times as many.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compare } from "./compare.mjs";
import { ENGINES, KINDS, randomness, randomRequest } from "./requests.mjs";

describe("kernel and oracle", () => {
  for (const [at, engine] of ENGINES.entries()) {
    it(`agree on 2,000 random requests of ${engine}`, async () => {
      const { outcomes, disagreements } = await compare({ count: 2000, seed: 100 + at, engines: [engine] });
      assert.deepEqual(disagreements, []);
      assert.ok(outcomes[`${engine} answered`] > 1500, JSON.stringify(outcomes));
      assert.ok(outcomes[`${engine} out_of_range`] > 0, JSON.stringify(outcomes));
    });
  }

  it("are asked of every kind of layer, every engine and both ways of splitting", () => {
    const random = randomness(7);
    const requests = Array.from({ length: 1000 }, () => randomRequest(random));
    const kinds = new Set(requests.flatMap(({ model }) => model.layers.map(({ kind }) => kind)));
    assert.deepEqual([...kinds].sort(), [...KINDS].sort());
    assert.deepEqual([...new Set(requests.map(({ engine }) => engine))].sort(), [...ENGINES].sort());
    for (const split of ["tensor_parallel", "pipeline_parallel", "data_parallel"]) {
      assert.ok(
        requests.some((request) => request[split] > 1),
        split,
      );
    }
  });

  it("are asked the same for the same seed", () => {
    const asked = (seed) => JSON.stringify(randomRequest(randomness(seed)));
    assert.equal(asked(3), asked(3));
    assert.notEqual(asked(3), asked(4));
  });
});
