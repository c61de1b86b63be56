// The kernel against the arithmetic written a second time, byte for byte. `npm run oracle` asks ten times as many.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compare } from "./compare.mjs";
import { ASKED, ENGINES, SERVED, randomness, randomRequest } from "./requests.mjs";

describe("kernel and oracle", () => {
  for (const [at, engine] of ENGINES.entries()) {
    it(`agree on 2,000 random requests of ${engine}`, async () => {
      const { outcomes, disagreements } = await compare({ count: 2000, seed: 100 + at, engines: [engine] });
      assert.deepEqual(disagreements, []);
      assert.ok(outcomes[`${engine} answered`] > 1500, JSON.stringify(outcomes));
      assert.ok(outcomes[`${engine} out_of_range`] > 0, JSON.stringify(outcomes));
    });
  }

  for (const engine of ENGINES) {
    it(`are asked of ${engine} with every kind of layer and format that it is asked in`, () => {
      const random = randomness(7);
      const requests = Array.from({ length: 2000 }, () => randomRequest(random, [engine]));
      const asked = (list) => [...new Set(list)].sort();
      assert.deepEqual(
        asked(requests.flatMap(({ model }) => model.layers.map(({ kind }) => kind))),
        [...ASKED[engine]].sort(),
      );
      for (const part of ["k", "v"]) {
        const packed = engine === "llama.cpp" ? [] : ["fp8_ds_mla"];
        const formats = requests.map(({ kv = "bf16" }) => kv[part] ?? kv);
        assert.deepEqual(asked(formats), [...SERVED[engine], ...packed].sort(), part);
      }
    });
  }

  it("are asked of every engine and all ways of splitting", () => {
    const random = randomness(7);
    const requests = Array.from({ length: 1000 }, () => randomRequest(random));
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
