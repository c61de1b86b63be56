// npm test: sets up, checks, builds, and runs every suite of tests. It closes with one line that sums them all.
//
//   node tests/run.mjs [suite …]     only the suites named
//
// To add a suite, add it to the list below. `command` is run in the project's folder; `count` reads how many tests
// passed and failed from what it printed; one that fails without having counted a failure counts as one. `needs` names
// the suite without which it makes no sense to run it. `quiet` keeps the output of a suite that passes to itself. One that
// is `named` runs only when it is.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain } from "../cpp/toolchain/terminal.mjs";

const sum = (output, pattern) => [...output.matchAll(pattern)].reduce((total, [, number]) => total + Number(number), 0);

/** Counts of a command that closes with "N passed, N failed". */
const plainly = (output) => ({
  passed: sum(output, /^(\d+) passed, \d+ failed$/gm),
  failed: sum(output, /^\d+ passed, (\d+) failed$/gm),
});

/** Counts of Node's test runner. */
const byNode = (output) => ({
  passed: sum(output, /^ℹ pass (\d+)$/gm),
  failed: sum(output, /^ℹ (?:fail|cancelled) (\d+)$/gm),
  skipped: sum(output, /^ℹ (?:skipped|todo) (\d+)$/gm),
});

/** Counts of doctest's test cases under ctest; a program that ended before it could count is one failure. */
const byDoctest = (output) => ({
  passed: sum(output, /test cases: +\d+ \| +(\d+) passed/g),
  failed: sum(output, /test cases: +\d+ \| +\d+ passed \| +(\d+) failed/g),
  skipped: sum(output, /test cases:.* (\d+) skipped/g),
});

/** A command that is one test: it passes or it does not. */
const asOne = (_output, status) => ({ passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1 });

/** Tests of what README and the package say, against the build. */
const CLAIMS = ["figures", "readme", "package", "build", "budgets", "reproducible"].map((name) => `${name}.test.mjs`);

/**
 * The tests of a folder, `together` files at a time: a browser leaves a processor free while it waits for itself. `which`
 * says by its name whether a file is among them.
 */
const nodeTests = (folder, together = 1, which = () => true) => {
  const files = existsSync(join(projectFolder, folder))
    ? readdirSync(join(projectFolder, folder)).filter((name) => name.endsWith(".test.mjs") && which(name))
    : [];
  return [
    "node",
    "--test",
    "--test-reporter=spec",
    `--test-concurrency=${together}`,
    ...files.map((name) => join(folder, name)),
  ];
};

const shell = (line) => ["sh", "-ec", line];

const suites = [
  { name: "check", command: ["node", "tests/check.mjs"], count: plainly },
  { name: "build", command: ["node", "web/build.mjs"], count: asOne },
  {
    name: "native",
    command: shell("cmake --preset debug && cmake --build --preset debug --parallel 2"),
    count: asOne,
    quiet: true,
  },
  { name: "doctest", command: shell("ctest --preset debug --verbose"), count: byDoctest, needs: "native", quiet: true },
  { name: "mutation", command: nodeTests("tests/mutation"), count: byNode },
  {
    name: "fuzz",
    command: ["node", "tests/fuzz.mjs", "--seconds", "5", "--seed", "1"],
    count: plainly,
    needs: "build",
  },
  // After "native" and "fuzz", whose compilers' answers it compares.
  { name: "oracle", command: nodeTests("tests/oracle"), count: byNode, needs: "build" },
  {
    name: "claims",
    command: nodeTests("tests/web", 2, (name) => CLAIMS.includes(name)),
    count: byNode,
    needs: "build",
  },
  {
    name: "web",
    command: nodeTests("tests/web", 2, (name) => !CLAIMS.includes(name)),
    count: byNode,
    needs: "build",
  },
  // Some hosts take minutes to install and build: all of them when they are asked for, and where time is nobody's.
  { name: "hosts", command: nodeTests("tests/hosts"), count: byNode, needs: "build" },
  { name: "reproducible", command: ["node", "tests/reproducible.mjs"], count: asOne, named: true },
];

/** No suite takes this long unless it hangs. */
const patience = 20 * 60 * 1000;

/** Marks the environment of everything that this run starts, however it detaches itself. */
const mark = { name: "KV_CAPACITY_TEST_RUN", value: `${process.pid}.${Date.now()}` };

/** The processes that bear the mark. Where there is no /proc, only the suite's own group can be told. */
function marked() {
  if (!existsSync("/proc/self/environ")) return [];
  const bears = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`${mark.name}=${mark.value}`);
    } catch {
      return false; // It has ended, or is another user's.
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && bears(name))
    .map(Number);
}

function signal(pids, name) {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended meanwhile.
    }
  }
}

let group;

/** Ends what is left of a suite: a word first, since a build tool then ends its own, and force after two seconds. */
async function endAll() {
  const left = () => [...(group ? [-group] : []), ...marked()];
  signal(left(), "SIGTERM");
  for (let tries = 0; tries < 20 && marked().length > 0; tries++) await pause(100);
  signal(left(), "SIGKILL");
  group = undefined;
}

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(name, async () => {
    await endAll();
    process.exit(130);
  });
}

/** Runs a suite; nothing that it started outlives it. */
function run({ name, command, count, quiet }) {
  console.log(`\n== ${name}`);
  const start = Date.now();
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: projectFolder,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, [mark.name]: mark.value },
  });
  group = child.pid;
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    if (!quiet) process.stdout.write(chunk);
  });
  const timer = setTimeout(() => {
    console.log(`${name} has taken ${patience / 60000} minutes and is ended.`);
    endAll();
  }, patience);
  const closed = new Promise((resolve) => child.on("close", resolve));
  return new Promise((resolve) => {
    child.on("error", () => resolve(127));
    child.on("exit", (status, signalName) => resolve(status ?? signalName));
  }).then(async (status) => {
    clearTimeout(timer);
    // What is left behind would hold the pipe open; once it is gone, the last of the output can be awaited.
    await endAll();
    if (child.pid) await closed;
    const result = { skipped: 0, ...count(output, status) };
    if (status !== 0 && result.failed === 0) {
      console.log(`${name} counted no failure but ended with ${status}.`);
      result.failed = 1;
    }
    if (status === 0 && result.passed + result.failed === 0) {
      console.log(`${name} ran no test.`);
      result.failed = 1;
    }
    if (quiet && result.failed > 0) process.stdout.write(output);
    const seconds = Math.round((Date.now() - start) / 1000);
    console.log(
      `== ${name}: ${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped in ${seconds} s`,
    );
    return { ...result, output };
  });
}

/** What WebKit's driver says when its browser is gone, which takes all further tests of a file with it. */
const CRASH = "session deleted because of page crash or hang";

/**
 * Runs a suite. Where a browser crashed, the files that failed are run once more, and what they say then counts: a page
 * that brings a browser down does so twice.
 */
async function runTwiceAtMost(suite) {
  const first = await run(suite);
  if (first.failed === 0 || !first.output.includes(CRASH)) return first;
  const files = new Set([...first.output.matchAll(/^test at (\S+\.test\.mjs):/gm)].map(([, file]) => file));
  if (files.size === 0) return first;
  console.log(`A browser crashed. Once more: ${[...files].join(", ")}`);
  const command = [...suite.command.filter((word) => !word.endsWith(".test.mjs")), ...files];
  const { failed } = await run({ ...suite, command });
  return { ...first, passed: first.passed + Math.max(0, first.failed - failed), failed };
}

await runMain(async () => {
  const names = process.argv.slice(2);
  const unknown = names.find((name) => !suites.some((suite) => suite.name === name));
  if (unknown)
    throw new Failure(`There is no suite "${unknown}". There are: ${suites.map(({ name }) => name).join(", ")}`);
  if (names.includes("hosts") || process.env.CI) process.env.KV_HOSTS = "all";
  await setup("test");
  const total = { passed: 0, failed: 0, skipped: 0 };
  const start = Date.now();
  const broken = new Set();
  for (const suite of suites.filter(({ name, named }) => (names.length === 0 ? !named : names.includes(name)))) {
    if (broken.has(suite.needs)) console.log(`\n== ${suite.name}: not run, since "${suite.needs}" failed`);
    const result = broken.has(suite.needs) ? { passed: 0, failed: 1, skipped: 0 } : await runTwiceAtMost(suite);
    if (result.failed > 0) broken.add(suite.name);
    for (const key of Object.keys(total)) total[key] += result[key];
  }
  const skipped = total.skipped ? `, ${total.skipped} skipped` : "";
  const seconds = Math.round((Date.now() - start) / 1000);
  console.log(`\nAll in ${Math.floor(seconds / 60)} min ${seconds % 60} s:`);
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
  return total.failed ? 1 : 0;
});
