// Which lines and branches of cpp/ the doctest programs run, by clang's own counting.
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure, say } from "../../cpp/toolchain/terminal.mjs";
import { buildPreset } from "../../web/build.mjs";
import { lineCount } from "./lines.mjs";

/** Branches that have to be run, of each hundred. */
const BRANCHES = 98;

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

/** The lines of a file that hold code, each with whether it was run, by the regions of code that cover it. */
function linesOf({ segments }, source) {
  const lines = new Map();
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
    if (counts.length > 0 && /\w/.test(text))
      lines.set(
        line,
        counts.some(([, , count]) => count > 0),
      );
  });
  return lines;
}

/** What clang counted in one program: by file of cpp/, its lines, and its branches by where they stand. */
function measure(program) {
  const raw = `${program}.profraw`;
  const profile = `${program}.profdata`;
  run(program, [], { env: { ...process.env, LLVM_PROFILE_FILE: raw } });
  run("llvm-profdata-19", ["merge", "-sparse", raw, "-o", profile]);
  const ignored = "-ignore-filename-regex=/(tests|headers|usr)/";
  const text = run("llvm-cov-19", ["export", program, `-instr-profile=${profile}`, ignored]);
  return JSON.parse(text).data[0].files;
}

/**
 * What clang counts and is no branch: what is decided at compile time, and leaving a switch by none of its cases, where
 * they are all that there are (-Wswitch sees to that).
 */
const isNone = (condition, line, taken) =>
  condition.startsWith("kCoreKernel") || (taken === 0 && line.endsWith(`switch (${condition}`));

/**
 * What all programs ran together, by file. Templates, and sources that two programs compile in different ways, stand
 * several times in the counts: a line or a branch is run where one of them ran it.
 */
function runByAny() {
  const files = new Map();
  for (const file of programs.flatMap(measure)) {
    const name = relative(projectFolder, file.filename);
    const source = readFileSync(file.filename, "utf8");
    const texts = source.split("\n");
    const lineOf = (line) => texts[line - 1];
    const { lines, branches } = files.get(name) ?? { lines: new Map(), branches: new Map() };
    files.set(name, { lines, branches, texts });
    for (const [line, ran] of linesOf(file, source)) lines.set(line, ran || lines.get(line) === true);
    for (const [line, column, , , taken, not] of file.branches) {
      if (isNone(lineOf(line).slice(column - 1), lineOf(line), taken)) continue;
      const before = branches.get(`${line}:${column}`) ?? [0, 0];
      branches.set(`${line}:${column}`, [before[0] + taken, before[1] + not]);
    }
  }
  return files;
}

/** What is not run, by file, and whether that is little enough. */
export function measureCpp() {
  buildPreset("coverage");
  const lines = lineCount("cpp");
  const branches = { all: 0, missed: 0 };
  const report = [];
  for (const [file, { lines: ran, branches: taken, texts }] of runByAny()) {
    const missed = lines.add(file, ran, texts);
    const untaken = [...taken].flatMap(([at, counts]) =>
      [0, 1].filter((side) => counts[side] === 0).map((side) => `${at} is never ${["true", "false"][side]}`),
    );
    branches.all += taken.size * 2;
    branches.missed += untaken.length;
    report.push({ file, missed, untaken });
  }
  const sources = readdirSync(join(projectFolder, "cpp"), { recursive: true })
    .filter((name) => name.endsWith(".cpp"))
    .map((name) => join("cpp", name));
  const alone = lines.strays(sources);
  const stale = lines.stale();
  const { run, missed, excused } = lines.total;
  const share = 100 - (100 * branches.missed) / branches.all;
  say(`cpp/: ${missed} of ${run + missed + excused} lines not run and not excused, ${excused} excused.`);
  say(`cpp/: ${share.toFixed(2)} % of ${branches.all} branches taken (at least ${BRANCHES}).`);
  return { report, checks: [missed === 0, share >= BRANCHES, alone.length === 0, stale.length === 0] };
}
