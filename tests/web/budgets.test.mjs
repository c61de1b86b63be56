// What is built stays within its bytes: tests/budgets.json has the figure to reach and the limit of today.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readMap } from "../bench/wasm.mjs";
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

describe("the linker's list", () => {
  it("is read by the source that each line names", () => {
    const at = "CMakeFiles/kernel_full_apart.dir/cpp/src";
    const parts = readMap(
      [
        "    Addr      Off     Size Out     In      Symbol",
        `       -    13e4a       10         ${at}/engine_vllm.cpp.o:(_ZN5kvcap10vllm_rulesEv)`,
        `       -    13e5a       20         ${at}/engine.cpp.o:(_ZN5kvcap7engineEv)`,
        `    f6b0    69aff       08         ${at}/engine_vllm.cpp.o:(.rodata.kvcap)`,
        "       -    13e7a       02         <internal>:(.rodata)",
        "       -    13e8a       04         libc.a(memcpy.o):(memcpy)",
      ].join("\n"),
    );
    const of = (name) => parts.find(({ part }) => part === name);
    assert.deepEqual(of("vLLM"), { part: "vLLM", code: 16, data: 8 });
    assert.deepEqual(of("what engines share"), { part: "what engines share", code: 32, data: 0 });
    assert.deepEqual(parts.at(-1), { part: parts.at(-1).part, code: 4, data: 2 });
  });
});
