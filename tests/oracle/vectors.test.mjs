// The conformance file against its sources, and the kernel against the file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { fullKernel } from "./kernels.mjs";
import { CACHE_FORMATS } from "./oracle.mjs";
import { ENGINES, KINDS } from "./requests.mjs";
import { vectors, VECTORS, written } from "./vectors.mjs";

describe("vectors.jsonl", () => {
  const text = readFileSync(VECTORS, "utf8");
  const list = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  let kernel;

  before(async () => {
    kernel = await fullKernel();
  });

  it("is what its sources give (write it anew: node tests/oracle/vectors.mjs)", () => {
    assert.equal(text, written(vectors()));
  });

  it("covers every kind, cache format and engine, and refusals", () => {
    assert.equal(new Set(list.map(({ id }) => id)).size, list.length);
    for (const vector of list) assert.deepEqual(Object.keys(vector), ["id", "source", "request", "answer"]);
    const kinds = new Set(list.flatMap(({ request }) => (request.model?.layers ?? []).map(({ kind }) => kind)));
    for (const kind of KINDS) assert.ok(kinds.has(kind), kind);
    for (const format of CACHE_FORMATS)
      assert.ok(
        list.some(({ request }) => request.kv === format),
        format,
      );
    for (const engine of ENGINES)
      assert.ok(list.filter(({ request }) => request.engine === engine).length > 10, engine);
    assert.ok(list.filter(({ answer }) => answer.error).length > 20);
  });

  it("is what the kernel answers", () => {
    const wrong = [];
    for (const { id, request, answer } of list) {
      const given = JSON.parse(kernel.plan(JSON.stringify(request)));
      const { code, field } = given.error ?? {};
      const cut = given.error
        ? { error: { code, field } }
        : Object.fromEntries(Object.keys(answer).map((figure) => [figure, given[figure]]));
      try {
        assert.deepEqual(cut, answer);
      } catch {
        wrong.push(`${id}: ${JSON.stringify(cut)}, not ${JSON.stringify(answer)}`);
      }
    }
    assert.deepEqual(wrong, []);
  });
});
