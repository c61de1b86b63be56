// Which lines of web/src the web tests run in Chromium, by V8's own counting. They are built as they are written, in a
// copy of the project, and the tests of that copy that open a browser are run there.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure, say } from "../../cpp/toolchain/terminal.mjs";
import { build } from "../../web/build.mjs";
import { copyProject } from "../reproducible.mjs";
import { scriptOf, scriptsOf } from "./chromium.mjs";
import { lineCount } from "./lines.mjs";
import { linesOf, placesOf } from "./mapping.mjs";

/** Lines that have to be run, of each hundred that are not excused. */
const LINES = 95;

const BUILD = `const { buildSite, READABLE } = await import("./web/build.mjs"); await buildSite("", READABLE);`;

/** Builds the copy in `folder` readable, and runs its tests that open a browser; what Chromium counted goes to `counts`. */
function runTests(folder, counts) {
  const node = (args, env = {}) =>
    spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit", env: { ...process.env, ...env } }).status === 0;
  if (!node(["--input-type=module", "--eval", BUILD, "copy"])) throw new Failure("The readable build failed.");
  const opens = (file) => /\bbrowsers\b/.test(readFileSync(join(folder, file), "utf8"));
  const files = readdirSync(join(folder, "tests/web"))
    .filter((name) => name.endsWith(".test.mjs"))
    .map((name) => join("tests/web", name))
    .filter(opens);
  return node(["--test", "--test-concurrency=1", ...files], { KV_COVERAGE: counts });
}

/** What was run of each script of the copy, with where it comes from. */
function countsOf(folder, counts) {
  const all = new Map();
  for (const [name, text] of scriptsOf(join(folder, "web/dist"))) {
    const places = placesOf(text).filter(({ source }) => /^web\/src\/[\w/-]+\.ts$/.test(source));
    all.set(name, { places, ran: new Uint8Array(text.length) });
  }
  for (const file of readdirSync(counts)) {
    const { ran } = all.get(scriptOf(file));
    readFileSync(join(counts, file)).forEach((one, at) => {
      ran[at] |= one;
    });
  }
  return [...all.values()];
}

/** The sources with more than types and imports. */
async function sourcesOf(copy) {
  // Once the packages are installed.
  const { transformSync } = await import("esbuild");
  return readdirSync(join(copy, "web/src"), { recursive: true })
    .filter((name) => /(?<!\.d)\.ts$/.test(name))
    .map((name) => join("web/src", name))
    .filter((file) => {
      const { code } = transformSync(readFileSync(join(copy, file), "utf8"), { loader: "ts" });
      return /\w/.test(code.replace(/^(import ".*"|(import|export) .* from ".*");$/gm, ""));
    });
}

/** What is not run, by file, and whether that is little enough, by the counts of the tests in the copy. */
async function tally(copy, counts) {
  const textOf = (source) => readFileSync(join(copy, source), "utf8");
  const count = lineCount("web");
  const report = [];
  for (const [file, { texts, lines }] of linesOf(countsOf(copy, counts), textOf)) {
    report.push({ file, lines: lines.size, missed: count.add(file, lines, texts) });
  }
  const alone = count.strays(await sourcesOf(copy));
  const stale = count.stale();
  const { run, missed, excused } = count.total;
  const share = (100 * run) / (run + missed);
  say(`web/src: ${share.toFixed(2)} % of ${run + missed} lines run (at least ${LINES}), ${excused} excused.`);
  return { report, checks: [share >= LINES, alone.length === 0, stale.length === 0] };
}

/** Runs the tests, and says what they do not run. */
export async function measureWeb() {
  await build();
  const folder = mkdtempSync(join(tmpdir(), "kv-capacity-coverage-"));
  const copy = join(folder, "project");
  const counts = join(folder, "counts");
  mkdirSync(counts);
  try {
    copyProject(copy, { kernels: true });
    const green = runTests(copy, counts);
    const { report, checks } = await tally(copy, counts);
    return { report, checks: [green, ...checks] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
