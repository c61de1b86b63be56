// npm run bench: what everything weighs and how long it takes, in one table; the same as JSON in build/bench.json.
//
//   node tests/bench.mjs [bytes] [kernel] [growth] [start] [page] [drag] [--json file]     only the parts named
//
// Times are this machine's at this moment: compare what stands side by side in one run. Only bytes are held against
// their budget by npm test (tests/web/budgets.test.mjs). How a time grows is no machine's: the run fails where one grows
// faster than it should.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join, resolve } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { build, buildPreset } from "../web/build.mjs";

/** Rows of cells, right-aligned but for the first; one column's cells stand under each other. */
function table(title, head, rows) {
  const all = [head, ...rows].map((row) => row.map((cell) => (cell ?? "").toString()));
  const widths = head.map((_, i) => Math.max(...all.map((row) => (row[i] ?? "").length)));
  const line = (row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  ");
  console.log(`\n${title}\n${all.map(line).join("\n")}`);
}

const grouped = (number) => number.toLocaleString("en-US");
const fixed = (number, digits) => (number === null ? "" : number.toFixed(digits));
const sizes = ({ raw, gzip, brotli }) => [raw, gzip, brotli].map(grouped);

const verdict = (value, most) => (value <= most ? "met" : `${(value / most).toFixed(2)} ×`);

async function showBytes() {
  const { measureBudgets, measureFeatures, measureFiles, measureParts } = await import("./bench/bytes.mjs");
  const { weighKernel } = await import("./bench/wasm.mjs");
  const [held, files, parts] = [measureBudgets(), measureFiles(), await measureParts()];
  const features = await measureFeatures();
  buildPreset("wasm", "kernel_full_apart");
  const kernel = weighKernel();
  table(
    "Bytes against their budgets",
    ["", "raw", "gzip", "brotli", "budget", "", "limit today"],
    held.map((one) => [
      one.what,
      ...sizes(one),
      grouped(one.target),
      verdict(one.brotli, one.target),
      grouped(one.limit),
    ]),
  );
  table(
    "Parts of kv-capacity.js: what leaving each out would save",
    ["", "raw", "gzip", "brotli"],
    parts.map((one) => [one.part, ...sizes(one)]),
  );
  table(
    "Features of the later scripts: what leaving each out would save, the full kernel aside",
    ["", "raw", "gzip", "brotli"],
    features.map((one) => [one.part, ...sizes(one)]),
  );
  table(
    "Features of the full kernel: what comes from the sources of each, as linked, in bytes",
    ["", "code", "data", "% of all"],
    kernel.map((one) => [one.part, grouped(one.code), grouped(one.data), fixed(100 * one.share, 1)]),
  );
  table(
    "Files of the site",
    ["", "raw", "gzip", "brotli"],
    files.map((one) => [one.file, ...sizes(one)]),
  );
  return { budgets: held, parts, features, kernel, files };
}

async function showKernel() {
  const { measureKernel } = await import("./bench/kernel.mjs");
  const { ROUNDS } = await import("./bench/statistics.mjs");
  const { budgets } = await import("./bench/bytes.mjs");
  const most = budgets.kernel_call_microseconds;
  const measured = await measureKernel();
  const ways = {
    native: "native, text to text",
    wasm: "WebAssembly, bytes to bytes",
    text: "WebAssembly, text to text",
    object: "WebAssembly, object to object",
    parse: "  of which JSON.parse of the answer",
    embind: "full kernel through embind, text to text",
    javascript: "JavaScript by hand, figures only",
  };
  const rows = Object.entries(ways).flatMap(([way, words]) => [
    [
      words,
      ...measured.flatMap(({ nanoseconds }) => [
        grouped(nanoseconds[way]),
        Number((nanoseconds[way] / nanoseconds.native).toPrecision(2)),
      ]),
    ],
  ]);
  const worst = measured.map(({ nanoseconds }) => [verdict(nanoseconds.object / 1000, most), ""]);
  table(
    `One plan in nanoseconds, and as a multiple of native (medians of ${ROUNDS} rounds)`,
    ["", ...measured.flatMap(({ name }) => [name, "×"])],
    [...rows, [`object to object within ${most} µs`, ...worst.flat()]],
  );
  return measured;
}

async function showGrowth() {
  const { measureGrowth } = await import("./bench/growth.mjs");
  const { ROUNDS, TOLERANCE } = await import("./bench/statistics.mjs");
  const measured = await measureGrowth();
  const { curve, grid, growth } = measured;
  table(
    "Many plans",
    ["", "plans", "in all", "ns a plan"],
    [
      [
        `a curve of ${curve.points} points × ${curve.lines} lines, objects at both ends`,
        grouped(curve.points * curve.lines),
        `${fixed(curve.milliseconds, 1)} ms`,
        grouped(Math.round((curve.milliseconds * 1e6) / (curve.points * curve.lines))),
      ],
      [
        "models × formats × GPUs × contexts, bytes to bytes",
        grouped(grid.plans),
        `${fixed(grid.seconds, 1)} s`,
        grouped(grid.nanoseconds_per_plan),
      ],
    ],
  );
  table(
    `Growth: nanoseconds of one plan in the full kernel (medians of ${ROUNDS} rounds), and the exponent of the size (met: at most ${TOLERANCE} above)`,
    ["", "smallest", "", "largest", "", "exponent", "should be", ""],
    growth.map(({ name, points, exponent, most, excess }) => [
      name,
      ...[points[0], points.at(-1)].flatMap((point) => point.map(grouped)),
      fixed(exponent, 2),
      most === 0 ? "0: flat" : "1: linear",
      excess > 0 ? `${fixed(excess, 2)} too much` : "met",
    ]),
  );
  return measured;
}

async function showStart() {
  const { measureStart } = await import("./bench/start.mjs");
  const { ROUNDS } = await import("./bench/statistics.mjs");
  const { budgets } = await import("./bench/bytes.mjs");
  const measured = await measureStart();
  const [floor] = measured;
  const ways = ["cold", "warm", "slow_cold", "slow_warm"];
  table(
    `From navigation until the first right number stands in the page, in Chromium, in milliseconds and as a multiple of the floor, the first page of two files (medians of ${ROUNDS} visits; slow: Slow 4G and a quarter of the processor)`,
    ["", ...ways.flatMap((way) => [way.replace("_", ", "), "×"]), "painted, cold", "painted, slow, cold"],
    measured.map(({ name, milliseconds }) => [
      name,
      ...ways.flatMap((way) => [fixed(milliseconds[way], 0), fixed(milliseconds[way] / floor.milliseconds[way], 2)]),
      fixed(milliseconds.painted, 0),
      fixed(milliseconds.slow_painted, 0),
    ]),
  );
  say(`The figure to reach, cold: ${budgets.first_number_times_floor} × the floor.`);
  return measured;
}

async function showDrag() {
  const { measureDrag } = await import("./bench/drag.mjs");
  const measured = await measureDrag();
  const row = (words, read) => [words, ...measured.map(read)];
  table(
    "Ten seconds of dragging the context slider with everything on the first page open, on a processor so many times slower, in milliseconds",
    ["", ...measured.map(({ name, rate, dragging }) => `${name}${dragging ? "" : ", hovered"}, ${rate} ×`)],
    [
      row("input events painted", (one) => one.inputs),
      row("input to its first figure painted, median", (one) => fixed(one.median, 1)),
      row("input to its first figure painted, 99th percentile", (one) => fixed(one.p99, 1)),
      row("input to all of an answer painted, median", (one) => fixed(one.whole.median, 1)),
      row("input to all of an answer painted, 99th percentile", (one) => fixed(one.whole.p99, 1)),
      row("frames", (one) => one.frames),
      row("frames missed", (one) => one.missed),
      row("long tasks", (one) => one.long_tasks),
      row("longest task", (one) => fixed(one.longest_task, 0)),
      row("layout shift", (one) => fixed(one.layout_shift, 3)),
    ],
  );
  return measured;
}

async function showPage() {
  const { measurePage } = await import("./bench/page.mjs");
  const { budgets } = await import("./bench/bytes.mjs");
  const measured = await measurePage();
  const most = budgets.slider_step_milliseconds;
  const row = (words, read, budget) => [words, ...measured.map(read), budget];
  table(
    "A step of the context slider in Chromium, in milliseconds: a drag on the site's first page",
    ["", ...measured.map(({ name }) => name), "budget"],
    [
      row("steps", (one) => one.steps, ""),
      row("scripting, median", (one) => fixed(one.median, 3), `≤ ${most}`),
      row("scripting, 99th percentile", (one) => fixed(one.p99, 3), ""),
      row("its processor time, median", (one) => fixed(one.processor_median, 3), ""),
      row("its processor time, 99th percentile", (one) => fixed(one.processor_p99, 3), ""),
      row("styles and layout, mean", (one) => fixed(one.layout_per_step, 3), ""),
      row("long tasks", (one) => one.long_tasks, budgets.long_tasks),
      row("layout shift", (one) => one.layout_shift, budgets.layout_shift),
      row("within the budget", (one) => verdict(one.median, most), ""),
    ],
  );
  return measured;
}

const parts = {
  bytes: showBytes,
  kernel: showKernel,
  growth: showGrowth,
  start: showStart,
  page: showPage,
  drag: showDrag,
};

/** The file that `--json` names, which is taken out of the arguments. */
function reportFile(args) {
  const at = args.indexOf("--json");
  if (at < 0) return join(projectFolder, "build/bench.json");
  const [, file] = args.splice(at, 2);
  if (!file) throw new Failure("--json is followed by the file to write.");
  return resolve(file);
}

await runMain(async () => {
  const asked = process.argv.slice(2);
  const file = reportFile(asked);
  const unknown = asked.find((name) => !Object.hasOwn(parts, name));
  if (unknown) throw new Failure(`There is no part "${unknown}". There are: ${Object.keys(parts).join(", ")}`);
  const names = asked.length > 0 ? asked : Object.keys(parts);
  await setup("test");
  say("Building what is missing …");
  await build();
  if (names.includes("kernel")) buildPreset("release", "kvcap_bench");
  const busy = loadavg()[0] / cpus().length;
  if (busy > 0.5)
    say(`This machine is busy (${busy.toFixed(1)} processes a core): times are longer than they could be.`);
  const report = {
    measured: new Date().toISOString(),
    processes_a_core: busy,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    node: process.version,
  };
  for (const name of names) report[name] = await parts[name]();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  console.log(`\nWritten to ${file}`);
  const tooFast = (report.growth?.growth ?? []).filter(({ excess }) => excess > 0);
  for (const { name } of tooFast) say(`Grows faster than it should: ${name}`);
  return tooFast.length > 0 ? 1 : 0;
});
