// The figures that README.md and .github/SECURITY.md quote, against the build, the data and the sources. Each sentence is
// found by its words, so that one that is worded anew has to be looked at here too.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { dist } from "./site.mjs";

const project = fileURLToPath(new URL("../../", import.meta.url));
const read = (name) => readFileSync(join(project, name), "utf8");
const flat = (name) => read(name).replace(/\s+/g, " ");
const rows = (name) => read(name).trimEnd().split("\n").length;
const table = (name) => rows(name) - 1;
const kilobytes = (name) => gzipSync(readFileSync(join(dist, name))).length / 1000;
const { loadKernel } = await import(pathToFileURL(join(dist, "kernel.mjs")).href);
const kernel = await loadKernel();

/** A constant of the sources, as it is written there, worked out. */
function constant(file, name) {
  const [, text] = read(file).match(new RegExp(`\\b${name}\\b = ([^;]+);`)) ?? [];
  assert.ok(text, `${file} has no ${name}`);
  const plain = text
    .replace(/u64\{(\d+)\}/g, "$1")
    .replaceAll("'", "")
    .replace(/(\d)u\b/g, "$1");
  const [, base, shift] = plain.match(/^\(?(\d+)(?: << (\d+))?\)?(?: - 1)?$/) ?? [];
  assert.ok(base, `${file}: ${name} is written in another way: ${text}`);
  return Number(base) * 2 ** Number(shift ?? 0) - (plain.endsWith("- 1") ? 1 : 0);
}

const mebibytes = (file, name) => `${constant(file, name) / 2 ** 20}`;
const grouped = (number) => number.toLocaleString("en");
const superscript = (power) =>
  [..."⁰¹²³⁴⁵⁶⁷⁸⁹"]
    .map((one, digit) => [String(digit), one])
    .reduce((text, [digit, one]) => text.replaceAll(digit, one), String(power));

const inWords = (number) => ["none", "one", "two", "three", "four", "five", "six"][number];

/** How many changes of the arithmetic are explained that nobody noticed. */
const explained = () =>
  Object.values(JSON.parse(read("tests/mutation.json")))
    .flatMap((lines) => Object.values(lines))
    .reduce((sum, changes) => sum + Object.keys(changes).length, 0);

/** How much of something tests/soak.mjs lets a page grow, as it is written there. */
const allowance = (what) =>
  read("tests/soak.mjs")
    .match(new RegExp(`compare\\("${what}", .*, ([\\d_]+)\\);`))[1]
    .replaceAll("_", "");

/** How many lines of files that are counted are excused. */
const excusedLines = (part) =>
  Object.values(JSON.parse(read("tests/coverage.json"))[part])
    .filter((reasons) => typeof reasons !== "string")
    .reduce((sum, reasons) => sum + Object.keys(reasons).length, 0);

const README = [
  [/8,192 tokens, (\d+) conversations/, () => `${kernel.plan({ model: "llama-3.1-8b" }).sequences}`],
  [/golden values of (\d+) checked models/, () => `${table("tests/data/golden.tsv")}`],
  [/against (\d+) records of what vLLM/, () => `${rows("tests/data/engine_logs.jsonl")}`],
  [/for other calculators: (\d+) requests/, () => `${rows("tests/data/vectors.jsonl")}`],
  [
    /on ([\d,]+) random requests/,
    () => grouped(Number(read("tests/oracle/compare.mjs").match(/count: \{ type: "string", default: "(\d+)"/)[1])),
  ],
  [/minutes and fails below (\d+) %/, () => `${constant("tests/mutation.mjs", "KILLED")}`],
  // A run fails where what survives is not what is explained.
  [
    /: (\d+) % were noticed/,
    () => {
      const [, all] = flat("README.md").match(/some ([\d,]+) changes in one build/);
      return `${Math.floor(100 - (100 * explained()) / Number(all.replace(",", "")))}`;
    },
  ],
  [/cases that take longer than (\w+) second/, () => inWords(constant("tests/mutation.mjs", "PATIENCE"))],
  [/elements taken out at most (\w+) may/, () => inWords(constant("tests/soak.mjs", "FEW"))],
  [/where (\d+) MB, \d+ and \d+ more are let pass/, () => `${allowance("heap") / 1e6}`],
  [/where \d+ MB, (\d+) and \d+ more are let pass/, () => allowance("listeners")],
  [/where \d+ MB, \d+ and (\d+) more are let pass/, () => allowance("nodes of the engine")],
  [/\): every line but (\w+), and/, () => inWords(excusedLines("cpp"))],
  [/every line but \w+, and (\d+) of each hundred branches/, () => `${constant("tests/coverage/cpp.mjs", "BRANCHES")}`],
  [/as the sources are written: (\d+) of each hundred/, () => `${constant("tests/coverage/web.mjs", "LINES")}`],
  [/no more than (\d+) growths in a row/, () => `${constant("web/src/embed.ts", "MOST_GROWTHS")}`],
  [/with Node (\d+), CMake and/, () => JSON.parse(read("package.json")).engines.node.match(/^>=(\d+)$/)[1]],
  [
    /`em\+\+` ([\d.]+) or later/,
    () =>
      read("cpp/toolchain/emscripten.mjs")
        .match(/const oldest = \[([\d, ]+)\]/)[1]
        .replaceAll(", ", "."),
  ],
];

const SECURITY = [
  [/(\d+) MiB of JSON, /, () => mebibytes("cpp/include/kvcap/plan.hpp", "kMaxRequestBytes")],
  [/MiB of JSON, (\d+) levels deep/, () => `${constant("cpp/src/json_read.cpp", "kMaxDepth")}`],
  [/in the first kernel (\d+)\)/, () => `${constant("cpp/src/json_read_core.cpp", "kMaxDepth")}`],
  [/ ([\d,]+) requests, [\d,]+ pages/, () => grouped(constant("cpp/src/paging_json.cpp", "kMostRequests"))],
  [/ requests, ([\d,]+) pages/, () => grouped(constant("cpp/src/paging_json.cpp", "kMostPages"))],
  [/ lengths of ([\d,]+) tokens/, () => grouped(constant("cpp/src/paging_json.cpp", "kLongest"))],
  [/ tokens, ([\d,]+) steps/, () => grouped(constant("cpp/src/paging_json.cpp", "kMostSteps"))],
  [/; (\d+) questions \|/, () => `${constant("cpp/src/quiz.cpp", "kMostQuestions")}`],
  [/ ([\d,]+) runs of layers/, () => grouped(constant("cpp/include/kvcap/units.hpp", "kMaxRuns"))],
  [/, ([\d,]+) layers and KV heads each/, () => grouped(constant("cpp/include/kvcap/units.hpp", "kMaxLayers"))],
  [/, ([\d,]+) layers and KV heads each/, () => grouped(constant("cpp/include/kvcap/units.hpp", "kMaxHeads"))],
  [/heads 2(\S+) wide/, () => superscript(Math.log2(constant("cpp/include/kvcap/units.hpp", "kMaxWidth")))],
  [/\| (\d+) MiB \| \| `model\.safe/, () => mebibytes("cpp/include/kvcap/import.hpp", "kMaxConfigBytes")],
  [/(\d+) MiB of index or header/, () => mebibytes("cpp/include/kvcap/safetensors.hpp", "kMaxSafetensorsHeader")],
  [/(\d+) MiB of index or header/, () => mebibytes("cpp/include/kvcap/safetensors.hpp", "kMaxIndexBytes")],
  [/(\d+) MiB of head/, () => mebibytes("cpp/include/kvcap/gguf.hpp", "kMaxGgufHead")],
  [/(\d+) MiB; time and memory linear/, () => mebibytes("cpp/include/kvcap/log.hpp", "kMaxLogBytes")],
  [/(\d+) MiB; time and memory linear/, () => mebibytes("web/src/more/log.ts", "MOST")],
  [/refused past 2(\S+) − 1/, () => superscript(Math.log2(constant("cpp/include/kvcap/units.hpp", "kMaxExact") + 1))],
  [
    /contexts end at 2(\S+) tokens/,
    () => superscript(Math.log2(constant("cpp/include/kvcap/units.hpp", "kMaxTokens"))),
  ],
  [/GPUs at ([\d,]+)\./, () => grouped(constant("cpp/include/kvcap/units.hpp", "kMaxGpus"))],
];

for (const [file, figures] of [
  ["README.md", README],
  [".github/SECURITY.md", SECURITY],
]) {
  describe(`the figures of ${file}`, () => {
    const text = flat(file);
    for (const [words, expected] of figures) {
      it(`${words.source}`, () => {
        const [, said] = text.match(words) ?? [];
        assert.ok(said, "the sentence is not there");
        assert.equal(said, expected());
      });
    }
  });
}

describe("the sizes and defaults of README.md", () => {
  const text = flat("README.md");

  it("the kernel without WebAssembly, as servers send it", () => {
    const [, said] = text.match(/\((\d+) kB as servers send it\)/);
    assert.ok(Math.abs(kilobytes("kv-capacity-nowasm.js") - said) < 10, `${kilobytes("kv-capacity-nowasm.js")} kB`);
  });

  it("a language's words", () => {
    const [, said] = text.match(/Any other loads one of some (\d+) kB/);
    const sizes = readdirSync(join(dist, "locales"))
      .filter((name) => /^[a-z]+\.js$/.test(name))
      .map((name) => kilobytes(`locales/${name}`));
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    assert.ok(Math.abs(mean - said) < 0.5, `${mean.toFixed(2)} kB`);
  });

  it("the calculator's defaults", () => {
    const attributes = [
      ...read("README.md").matchAll(/^\| (`(?:model|weights|gpu|context)`[^|]*)\|[^|]*\| *([^|]+?) *\|$/gm),
    ];
    const [model, , gpus, context] = attributes.map(([, , value]) => value);
    assert.equal(attributes.length, 4);
    const [gpu, count] = gpus.replaceAll("`", "").split(", ");
    const said = kernel.plan({ model: model.replaceAll("`", ""), gpu, gpus: Number(count), context: Number(context) });
    assert.equal(said.error, undefined);
    assert.deepEqual(kernel.plan({ model: model.replaceAll("`", "") }), said);
    // The element begins with it; the kernel has no model of its own.
    assert.ok(read("web/src/kv-capacity.ts").includes(model.replaceAll("`", '"')), model);
  });
});
