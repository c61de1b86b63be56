// What is built stays within its bytes: tests/budgets.json has the figure to reach and the limit of today.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { measureBudgets } from "../bench/bytes.mjs";

describe("the budgets of bytes", () => {
  for (const { what, files, brotli, target, limit } of measureBudgets()) {
    it(`hold for ${what}`, (test) => {
      const size = `${brotli} bytes by brotli (${files.join(" + ")})`;
      assert.ok(brotli <= limit, `${what}: ${size}, at most ${limit} are allowed`);
      if (brotli > target) test.diagnostic(`${what}: ${size}; the figure to reach is ${target}`);
    });
  }
});
