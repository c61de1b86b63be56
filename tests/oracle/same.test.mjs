// Every build answers the same text: native, WebAssembly, JavaScript, and the command line.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { inTestRun } from "../command.mjs";
import { clangProgram, commandLine, coreKernel, fullKernel, nativeProgram, plainKernel } from "./kernels.mjs";
import { randomness, randomRequest } from "./requests.mjs";
import { VECTORS } from "./vectors.mjs";

const MISSING = "its kvcap_answers is not built: the suites native and fuzz of npm test do";

describe("the same answer everywhere", () => {
  let requests;
  let expected;

  before(async () => {
    const random = randomness(11);
    requests = readFileSync(VECTORS, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.stringify(JSON.parse(line).request));
    for (let i = 0; i < 300; i++) requests.push(JSON.stringify(randomRequest(random)));
    // What is no request at all is refused in the same words.
    requests.push("{", "[]", '{"model":"llama-3-8b","context":1e400}', '{"model":"\\ud800"}', '{"model":7}');
    const kernel = await fullKernel();
    expected = requests.map((request) => kernel.plan(request));
  });

  const assertSame = (answers) => {
    assert.equal(answers.length, expected.length);
    for (const [at, answer] of answers.entries()) assert.equal(answer, expected[at], requests[at]);
  };

  // Whoever runs this file alone may not have built the programs; npm test has.
  for (const [name, program] of [
    ["natively", nativeProgram],
    ["natively by clang", clangProgram],
  ]) {
    it(name, { skip: program || inTestRun ? false : MISSING }, async () => {
      assert.ok(program, MISSING);
      assertSame((await program(requests)).answers);
    });
  }

  it("from the command line", async () => {
    const { answers, status } = await commandLine(requests);
    assertSame(answers);
    assert.equal(status, 2, "at least one is refused");
  });

  it("from the kernel without WebAssembly", async () => {
    const kernel = await plainKernel();
    assertSame(requests.map((request) => kernel.plan(request)));
  });

  it("from the first kernel, as far as it answers", async () => {
    const kernel = await coreKernel();
    let answered = 0;
    for (const [at, request] of requests.entries()) {
      const answer = kernel.plan(request);
      if (JSON.parse(answer).error?.code === "unsupported") continue;
      assert.equal(answer, expected[at], request);
      answered++;
    }
    assert.ok(answered > 200, `${answered} answered`);
  });
});
