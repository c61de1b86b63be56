// What `npm run coverage` says: from what V8 counted in a built script to the lines of its sources, and what is excused.
import assert from "node:assert/strict";
import { Session } from "node:inspector/promises";
import { describe, it } from "node:test";
import { Script } from "node:vm";
import { build } from "esbuild";
import { READABLE } from "../../web/build.mjs";
import { lineCount } from "../coverage/lines.mjs";
import { linesOf, placesOf, ranIn } from "../coverage/mapping.mjs";

/** What is run of it stands at the end of each line. */
const SOURCES = {
  "main.ts": `import { half, type Kind } from "./parts"; //
const kinds: Kind[] = ["a", "b"]; // run
let sum = 0; // run
for (const kind of kinds) { // run
  sum += half(kind === "a" ? 8 : 6); // run
} //
export const never = (): number => // run
  sum * 2; // not
export const total = sum; // run`,
  "parts.ts": `export type Kind = "a" | "b"; //
/** Words alone. */ //
export function half(value: number): number { // run
  if (value > 100) { // run
    return -1; // not
  } //
  const unused = () => { // run
    sum(1); // not
    sum(2); // not
  }; //
  return value / 2; // run
} //
export function sum(value: number): number { // not
  return value + 1; // not
} //`,
};

/** Takes the sources from above, as esbuild takes files. */
const given = {
  name: "given",
  setup(build) {
    build.onResolve({ filter: /./ }, ({ path }) => ({ path: path.replace(/^\.\/|\.ts$/g, ""), namespace: "given" }));
    build.onLoad({ filter: /./, namespace: "given" }, ({ path }) => ({
      contents: SOURCES[`${path}.ts`],
      loader: "ts",
    }));
  },
};

describe("what is run of a source", () => {
  const bundled = async (form) => {
    const { terse, ...readable } = READABLE;
    const options = { entryPoints: ["main.ts"], bundle: true, format: "iife", write: false, plugins: [given] };
    return (await build({ ...options, ...readable, ...form })).outputFiles[0].text;
  };

  /** Runs a text under V8's counting. */
  async function counted(text) {
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    new Script(text, { filename: "counted.js" }).runInThisContext();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    session.disconnect();
    return result.find(({ url }) => url === "counted.js").functions;
  }

  const textOf = (name) => SOURCES[name.replace(/^given:/, "").replace(/(\.ts)?$/, ".ts")];

  it("is told line by line, in every source, through what was made of it", async () => {
    const text = await bundled();
    const sources = linesOf([{ places: placesOf(text), ran: ranIn(await counted(text), text.length) }], textOf);
    assert.equal(sources.size, 2);
    for (const [name, { texts, lines }] of sources) {
      texts.forEach((line, at) => {
        const [, told] = line.match(/\/\/ (run|not)$/) ?? [];
        if (told) assert.equal(lines.get(at + 1), told === "run", `${name}: ${line}`);
      });
    }
  });

  it("is told where a script stands after words in its file", async () => {
    const text = await bundled({ tsconfigRaw: '{"compilerOptions": {"alwaysStrict": true}}' });
    const shifted = placesOf(`words["a"] = {};\n${text}`);
    assert.deepEqual(
      shifted.map(({ offset }) => offset - 17),
      placesOf(text).map(({ offset }) => offset),
    );
  });

  it("is run when one of several scripts ran it, and nothing is known without a source map", () => {
    const place = { offset: 1, source: "one.ts", line: 1 };
    const script = (...ran) => ({ places: [place], ran: Uint8Array.from(ran) });
    const lines = (...scripts) =>
      linesOf(scripts, () => "code();")
        .get("one.ts")
        .lines.get(1);
    assert.equal(lines(script(1, 0)), false);
    assert.equal(lines(script(1, 0), script(0, 1), script(0, 0)), true);
    assert.deepEqual(placesOf("code();"), []);
  });
});

describe("what is excused", () => {
  const listed = { "whole.cpp": "A reason.", "part.cpp": { "rare();": "A reason." } };
  const texts = ["often();", "rare();", "never();"];
  const ran = new Map([
    [1, true],
    [2, false],
    [3, false],
  ]);

  it("is a line as it stands; any other that is not run is told", () => {
    const count = lineCount("", listed);
    assert.deepEqual(count.add("part.cpp", ran, texts), [{ line: 3, text: "never();" }]);
    assert.deepEqual(count.total, { run: 1, missed: 1, excused: 1 });
    assert.deepEqual(count.stale(), ["whole.cpp"]);
  });

  it("is a source that nothing was counted of, if it is listed as a whole", () => {
    const count = lineCount("", listed);
    count.add("counted.cpp", ran, texts);
    assert.deepEqual(count.strays(["counted.cpp", "whole.cpp", "part.cpp", "stray.cpp"]), ["part.cpp", "stray.cpp"]);
    assert.deepEqual(count.stale(), ["part.cpp: rare();"]);
  });

  it("does not stay when it is gone", () => {
    const count = lineCount("", listed);
    count.strays([]);
    assert.deepEqual(count.stale(), ["whole.cpp", "part.cpp: rare();"]);
  });
});
