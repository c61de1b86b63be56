// Known bugs of widgets like this one, D1 to D44: each has a test whose name begins with its number. Here are those that
// are read from sources and built files or need the kernel alone, and the list that misses none.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findEmscripten } from "../../cpp/toolchain/emscripten.mjs";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { watchMemories } from "./memories.mjs";
import { dist } from "./site.mjs";

const folder = process.env.KV_SITE ?? dist;
const TOPICS = {
  1: "invokers made of text need unsafe-eval",
  2: "a factory that throws at once",
  3: "no WebAssembly keyword in the policy",
  4: "connect-src 'none'",
  5: "Trusted Types",
  6: "minified bindings",
  7: "slow calls without dynamic code",
  8: "wrong MIME type of the wasm file",
  9: "HTML in place of the wasm file",
  10: "file: and a separate wasm",
  11: "file: and modules",
  12: "opaque origins",
  13: "cross-origin hosting",
  14: "bundlers and asset URLs",
  15: "paths passed to fetch in Node",
  16: "an optimiser without acorn",
  17: "64-bit unsigned returned as signed",
  18: "64-bit unsigned unbound",
  19: "precision past 2^53",
  20: "silent coercion of numbers",
  21: "silent coercion of enums",
  22: "missing and superfluous fields",
  23: "handles that nobody deletes",
  24: "finalisers that do not run",
  25: "bindings that vanish at link",
  26: "noexcept members that do not bind",
  27: "lone surrogates",
  28: "payloads and the page's encoding",
  29: "memory of many instances",
  30: "definition twice",
  31: "import without a DOM",
  32: "instant navigation",
  33: "restored inputs",
  34: "touch on sliders",
  35: "Page Down goes up",
  36: "live regions that repeat",
  37: "several live regions",
  38: "meter role",
  39: "labels across shadow roots",
  40: "frame heights that loop",
  41: "messages of other senders",
  42: "renamed properties in bindings",
  43: "process-wide exception handlers",
  44: "style-src without inline permission",
};

it("each of D1 to D44 has a test that bears its number", () => {
  const tests = fileURLToPath(new URL("..", import.meta.url));
  const named = new Set();
  for (const name of readdirSync(tests, { recursive: true })) {
    if (!name.endsWith(".test.mjs") || name.includes("node_modules")) continue;
    const text = readFileSync(join(tests, name), "utf8");
    // Tests that are made of a table have their names there.
    for (const [, title] of text.matchAll(/^\s*(?:(?:it|describe)\(\s*[`"']|"(?=D\d))([^\n]*)/gm)) {
      for (const [one] of title.matchAll(/\bD\d{1,2}\b/g)) named.add(one);
    }
  }
  const numbers = Object.keys(TOPICS).map(Number);
  assert.deepEqual(
    numbers,
    Array.from({ length: 44 }, (_, i) => i + 1),
  );
  const without = numbers.filter((number) => !named.has(`D${number}`)).map((number) => `D${number}: ${TOPICS[number]}`);
  assert.deepEqual(without, []);
});

describe("the sources of the bindings", () => {
  const folderOf = join(projectFolder, "cpp/bindings");
  const sources = readdirSync(folderOf)
    .filter((name) => /^kernel.*\.cpp$/.test(name))
    .map((name) => readFileSync(join(folderOf, name), "utf8").replace(/\/\/.*$/gm, ""));

  it("D17, D18: let no 64-bit integer across", () => {
    assert.equal(sources.length, 2);
    for (const source of sources) {
      // The one conversion checks its range first.
      const rest = source.replace(/kvcap::u64 whole\(double number\) \{[\s\S]*?\n\}/, "");
      assert.doesNotMatch(rest, /\bu?int64_t\b|\blong long\b|\bu64\b|\bi64\b|BigInt/);
    }
  });

  it("D21, D26: bind free functions of text and bytes: no enum, no class, no member", () => {
    for (const source of sources) {
      assert.doesNotMatch(source, /\benum_\s*<|\bclass_\s*<|\bvalue_object\s*<|register_vector|allow_raw_pointers/);
    }
  });
});

describe("the build's tools", () => {
  it("D16: give the optimiser its acorn", () => {
    const root = findEmscripten();
    assert.ok(root, "Emscripten is there once the site is built");
    assert.match(createRequire(join(root, "tools/acorn-optimizer.mjs")).resolve("acorn"), /acorn/);
  });

  it("D16: leave an Emscripten that is too old alone", () => {
    const old = mkdtempSync(join(tmpdir(), "emscripten-"));
    try {
      mkdirSync(join(old, "bin"));
      writeFileSync(join(old, "bin/em++"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
      writeFileSync(join(old, "bin/emscripten-version.txt"), '"3.1.6"\n');
      const tool = pathToFileURL(join(projectFolder, "cpp/toolchain/emscripten.mjs"));
      const ask = (version) => {
        writeFileSync(join(old, "bin/emscripten-version.txt"), `"${version}"\n`);
        const code = `import { findEmscripten } from ${JSON.stringify(tool.href)}; console.log(String(findEmscripten()));`;
        const env = { ...process.env, PATH: join(old, "bin"), XDG_CACHE_HOME: old };
        return spawnSync(process.execPath, ["--input-type=module", "-e", code], {
          env,
          encoding: "utf8",
        }).stdout.trim();
      };
      assert.equal(ask("3.1.6"), "undefined");
      assert.equal(ask("3.1.68"), "undefined");
      assert.match(ask("3.1.69"), /bin$/);
      assert.match(ask("4.0.0"), /bin$/);
    } finally {
      rmSync(old, { recursive: true });
    }
  });
});

describe("the kernels as they ship", () => {
  const memories = [];
  let core;
  let full;
  let listeners;

  before(async () => {
    const count = () => ["uncaughtException", "unhandledRejection"].map((name) => process.listenerCount(name));
    const before = count();
    const unwatch = watchMemories(memories);
    const module = await import(pathToFileURL(join(folder, "kv-capacity.mjs")).href);
    core = await module.loadKernel();
    full = await module.loadFullKernel();
    unwatch();
    listeners = [before, count()];
  });

  it("D25: have every function that they are bound for", () => {
    assert.deepEqual(Object.keys(core.instance).toSorted(), ["catalogue", "plan"]);
    for (const name of ["catalogue", "importModel", "paging", "plan", "quiz", "readLog", "wish"]) {
      assert.equal(typeof full.instance[name], "function", name);
    }
  });

  it("D43: leave the process's handlers of exceptions alone", () => {
    assert.deepEqual(listeners[1], listeners[0]);
  });

  it("D23, D24: keep their memory in a loop that never yields", () => {
    assert.equal(memories.length, 2);
    const text = JSON.stringify({ model: "llama-3-8b", context: 4096, kv: "fp8" });
    const wrong = JSON.stringify({ model: "x".repeat(2000), gpus: -1 });
    const ask = (times) => {
      for (let i = 0; i < times; i++) {
        core.instance.plan(i % 8 ? text : wrong);
        if (i % 16 === 0) full.instance.plan(i % 32 ? text : wrong);
        if (i % 256 === 0) full.instance.quiz(JSON.stringify({ seed: i }));
      }
    };
    ask(2000);
    const before = memories.map((memory) => memory.buffer.byteLength);
    ask(40_000);
    assert.deepEqual(
      memories.map((memory) => memory.buffer.byteLength),
      before,
    );
    // The first kernel's is a few pages of 64 KiB, on whatever device.
    assert.ok(Math.min(...before) <= 16 * 65536, before.join());
  });

  it("D19: are exact to 2^53 - 1 and refuse what is beyond", () => {
    const most = Number.MAX_SAFE_INTEGER;
    const ask = (weight_bytes) => full.plan({ model: "llama-3-8b", weight_bytes });
    for (const bytes of [1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 2, most]) assert.equal(ask(bytes).weight_bytes, bytes);
    for (const bytes of [2 ** 53, 2n ** 53n, 2n ** 53n + 1n, 2n ** 64n - 1n, 2n ** 64n]) {
      assert.equal(ask(bytes).error?.field, "weight_bytes", String(bytes));
    }
    assert.equal(full.plan({ model: "llama-3-8b", gpu: { memory_bytes: most } }).gpu.memory_bytes, most);
    // Figures that grow past it are refused; none is off by one.
    for (const context of [2 ** 31 - 1, 2 ** 31]) {
      const perToken = 131072n;
      assert.equal(
        BigInt(full.plan({ model: "llama-3-8b", context }).kv_bytes_per_sequence),
        perToken * BigInt(context),
      );
    }
  });

  it("D6, D42: bind by the names that a minifier left", () => {
    assert.ok(
      readFileSync(join(folder, "kv-capacity.mjs"), "utf8").split("\n").length < 100,
      "it is the minified file",
    );
    assert.equal(full.plan({ model: "llama-3-70b", gpus: 4 }).sequences, 54);
    assert.equal(
      JSON.parse(full.instance.wish(JSON.stringify({ request: { model: "llama-3-8b" }, sequences: 100 }))).fits,
      false,
    );
    assert.equal(JSON.parse(full.instance.readLog("nothing")).engine, null);
    const config = new TextEncoder().encode('{"model_type": "llama"}');
    assert.ok(JSON.parse(full.instance.importModel("config", config, config.length, "")).error);
  });
});
