// npm run coverage: which lines and branches of cpp/ the doctest programs run, by clang's own counting. Fails where a
// line is not run that is not excused below, or where too few branches are. The whole report is in build/coverage/.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { buildPreset } from "../web/build.mjs";

/** Branches that have to be run, of each hundred. */
const BRANCHES = 98;

/** Lines that no test runs, as they stand in the file, each with the reason. */
const EXCUSED = JSON.parse(readFileSync(join(projectFolder, "tests/coverage.json"), "utf8"));

const folder = join(projectFolder, "build/coverage");
const programs = ["kvcap_tests", "kvcap_core_tests"].map((name) => join(folder, name));

function run(command, args, options = {}) {
  const { status, stdout, error } = spawnSync(command, args, {
    cwd: projectFolder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 30,
    ...options,
  });
  if (status !== 0) throw new Failure(`${command} failed${error ? `: ${error.message}` : ""}`);
  return stdout;
}

/** What clang counted, per file of cpp/. */
function measure() {
  const profiles = join(folder, "profiles");
  rmSync(profiles, { recursive: true, force: true });
  mkdirSync(profiles, { recursive: true });
  for (const program of programs)
    run(program, [], { env: { ...process.env, LLVM_PROFILE_FILE: `${profiles}/%p.profraw` } });
  const merged = join(folder, "all.profdata");
  const raw = readdirSync(profiles).map((name) => join(profiles, name));
  run("llvm-profdata-19", ["merge", "-sparse", ...raw, "-o", merged]);
  const [first, ...others] = programs;
  const text = run("llvm-cov-19", [
    "export",
    first,
    ...others.flatMap((name) => ["-object", name]),
    `-instr-profile=${merged}`,
    "-ignore-filename-regex=/(tests|headers|usr)/",
  ]);
  return JSON.parse(text).data[0].files.map((file) => ({ ...file, name: relative(projectFolder, file.filename) }));
}

/** The lines of a file that were never run: those that a region of code without a count covers. */
function missedLines({ segments }, source) {
  const missed = [];
  let index = 0;
  let covering = null;
  source.split("\n").forEach((text, at) => {
    const line = at + 1;
    const starts = [];
    for (; index < segments.length && segments[index][0] === line; index++) starts.push(segments[index]);
    const counts = [covering, ...starts.filter(([, , , counted, entry]) => counted && entry)].filter(
      (one) => one?.[3] && !one[5],
    );
    covering = starts.at(-1) ?? covering;
    if (counts.length > 0 && counts.every(([, , count]) => count === 0) && /\w/.test(text)) {
      missed.push({ line, text: text.trim() });
    }
  });
  return missed;
}

await runMain(async () => {
  await setup("check");
  buildPreset("coverage");
  const lines = { all: 0, missed: 0 };
  const branches = { all: 0, missed: 0 };
  const report = [];
  const excused = new Set();
  for (const file of measure()) {
    const { summary } = file;
    lines.all += summary.lines.count;
    const untaken = file.branches.filter(([, , , , taken, not]) => taken === 0 || not === 0);
    branches.all += file.branches.length * 2;
    for (const [, , , , taken, not] of file.branches) branches.missed += (taken === 0) + (not === 0);
    const missed = missedLines(file, readFileSync(file.filename, "utf8")).filter(({ text }) => {
      const reason = EXCUSED[file.name]?.[text];
      if (reason) excused.add(`${file.name}: ${text}`);
      return !reason;
    });
    lines.missed += missed.length;
    report.push({
      file: file.name,
      missed,
      untaken: untaken.map(([line, column, , , taken]) => ({ line, column, never: taken === 0 })),
    });
    for (const { line, text } of missed) say(`${file.name}:${line} is not run: ${text}`);
  }
  const stale = Object.entries(EXCUSED).flatMap(([name, texts]) =>
    Object.keys(texts)
      .map((text) => `${name}: ${text}`)
      .filter((one) => !excused.has(one)),
  );
  for (const one of stale) say(`Excused, but run or gone: ${one}`);
  writeFileSync(join(folder, "report.json"), JSON.stringify(report, null, 1));
  const share = 100 - (100 * branches.missed) / branches.all;
  say(`Lines: ${lines.missed} of ${lines.all} not run and not excused, ${excused.size} excused.`);
  say(`Branches: ${share.toFixed(2)} % of ${branches.all} taken (at least ${BRANCHES}).`);
  const failed = (lines.missed > 0) + (share < BRANCHES) + (stale.length > 0);
  console.log(`${3 - failed} passed, ${failed} failed`);
  return failed ? 1 : 0;
});
