// npm run mutation: changes each operator, comparison and constant of the arithmetic in turn and sees whether the
// doctest programs notice.
//
//   node tests/mutation.mjs [file …] [--sample N [--seed S]] [--again]
//
// All mutants are compiled at once (tests/mutation/), and the environment says which is alive. A first run of each test
// case tells which mutants it comes by; then each mutant meets those, quickest first, until one fails. A mutant that
// none comes by survives. So does one that no test fails for, which tests/mutation.json then has to explain: by file,
// by the line as it stands, and by the change. Results are in build/mutation/report.json; --again tries
// only what was not killed there.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { rewrite, siteAt } from "./mutation/rewrite.mjs";
import { findSites, syntaxTrees } from "./mutation/sites.mjs";

/** Mutants that have to be killed, of each hundred. */
const KILLED = 95;
/** Test cases that take longer, in seconds, are left out: each survivor would have to sit through them. */
const PATIENCE = 1;
const COMPILER = "clang++-19";

/** The arithmetic: sources, and what headers hold of it. Reading and writing of text is left out. */
const SOURCES = [
  ...["deployment", "derive", "engine", "engine_common", "engine_llama_cpp", "engine_sglang", "engine_tensorrt_llm"],
  ...[
    "engine_vllm",
    "estimates",
    "footprint",
    "format",
    "gpus",
    "import_layers",
    "import_parameters",
    "model",
    "paging",
  ],
  ...["derivation", "plan", "search", "textbook", "units", "weights", "wish"],
].map((name) => `cpp/src/${name}.cpp`);
const HEADERS = [
  ...["deployment", "derivation", "engine", "estimates", "footprint", "format", "model", "paging", "plan", "units"],
  ...["weights", "wish"],
].map((name) => `cpp/include/kvcap/${name}.hpp`);
const FILES = [
  ...[...HEADERS, "cpp/src/engine_common.hpp", "cpp/src/search.hpp"],
  ...[...SOURCES, "cpp/include/kvcap/config.hpp"],
];
/** Numbers set aside for a file, so that what another file holds does not renumber, and recompile, this one. */
const ROOM = 1500;

const folder = join(projectFolder, "build/mutation");
const tree = join(folder, "tree");
const build = join(folder, "cmake");
// The tests open their data from where they run; what stands beside the project is not there.
const place = join(folder, "run/here");
const programs = ["kvcap_tests", "kvcap_core_tests"];

// Offsets are bytes, so sources are read as such.
const read = (path) => readFileSync(join(projectFolder, path), "latin1");
const readable = (text) => Buffer.from(text, "latin1").toString("utf8");

/** Writes what differs, so that nothing else is compiled anew. */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, "latin1") === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, "latin1");
}

/** Runs `work` on each item, as many at a time as there are processors. */
async function each(items, work) {
  const waiting = [...items];
  const worker = async () => {
    while (waiting.length > 0) await work(waiting.shift());
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker));
}

/** A copy of the project to rewrite, and a build folder for it. */
function prepare() {
  const kept = new Set();
  for (const from of ["cpp", "tests/cpp", "tests/oracle", "tests/bench"]) {
    for (const name of readdirSync(join(projectFolder, from), { recursive: true })) {
      const path = join(from, name);
      if (!/\.(cpp|hpp|cmake|mjs|tsv)$/.test(name)) continue;
      kept.add(path);
      if (!FILES.includes(path)) write(join(tree, path), read(path));
    }
  }
  for (const name of readdirSync(tree, { recursive: true })) {
    if (/\.(cpp|hpp)$/.test(name) && !kept.has(name) && !name.endsWith("mutants.hpp")) rmSync(join(tree, name));
  }
  write(join(tree, "CMakeLists.txt"), read("CMakeLists.txt"));
  write(join(tree, "mutants.hpp"), read("tests/mutation/mutants.hpp"));
  mkdirSync(place, { recursive: true });
  if (!existsSync(join(place, "tests"))) symlinkSync(join(projectFolder, "tests"), join(place, "tests"));
}

function configure() {
  const flags = `-O1 -w -ferror-limit=0 -include ${join(tree, "mutants.hpp")}`;
  const { status, stdout } = spawnSync(
    "cmake",
    [
      ...["-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", `-DCMAKE_CXX_COMPILER=${COMPILER}`],
      `-DCMAKE_CXX_FLAGS=${flags}`,
    ],
    { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  if (status !== 0) throw new Failure(`Configuring failed:\n${stdout}`);
}

/** Places that can be changed, by file. Headers are seen from each source that includes them. */
async function sitesOf(sources) {
  const data = join(folder, "data");
  const made = spawnSync("node", ["cpp/data/generate.mjs", data], { cwd: projectFolder, stdio: "inherit" });
  if (made.status !== 0) throw new Failure("The catalogue's tables could not be made.");
  const include = ["-std=c++23", "-fno-exceptions", "-fno-rtti", "-Icpp/include", `-I${data}`];
  const all = new Map(FILES.map((path) => [path, new Map()]));
  // What was found is kept for as long as what it depends on is the same.
  const common = createHash("sha256").update(read("tests/mutation/sites.mjs"));
  for (const name of readdirSync(join(projectFolder, "cpp"), { recursive: true }).sort()) {
    if (/\.(hpp|tsv)$/.test(name)) common.update(read(join("cpp", name)));
  }
  await each(SOURCES, async (path) => {
    const known = new Map([...sources].filter(([name]) => name === path || name.endsWith(".hpp")));
    const kept = join(folder, "sites", `${basename(path)}.${common.copy().update(read(path)).digest("hex")}.json`);
    if (!existsSync(kept)) {
      const found = findSites(await syntaxTrees(COMPILER, [...include, path], projectFolder), known);
      write(kept, JSON.stringify([...found].map(([name, sites]) => [name, [...sites]])));
    }
    for (const [name, sites] of JSON.parse(readFileSync(kept, "utf8"))) {
      for (const [key, site] of sites) all.get(name).set(key, site);
    }
  });
  return new Map([...all].map(([name, sites]) => [name, [...sites.values()].sort((a, b) => a.begin - b.begin)]));
}

/** Numbers for the mutants of a file's sites, from `first` on. */
function number(sites, first) {
  let id = first;
  for (const site of sites) {
    site.id = id;
    id += site.changes.length;
  }
  if (id > first + ROOM) throw new Failure(`A file has more than ${ROOM} mutants.`);
}

/** A constant may be narrower than it looks, what a call gives may not: where that is all that is wrong, it is let be. */
const NARROW = '#pragma clang diagnostic ignored "-Wc++11-narrowing"\n';

/** What the compiler says of the sites: the sites that its errors are about, by file. */
function complaints(output, texts, sitesByFile, narrow) {
  const bad = new Map();
  const already = new Set(narrow);
  const blame = (path, line, column) => {
    const { text, origin } = texts.get(path);
    let start = 0;
    for (let skipped = 1; skipped < line; skipped++) start = text.indexOf("\n", start) + 1;
    const site = siteAt(sitesByFile.get(path), origin(start + column - 1 - (already.has(path) ? NARROW.length : 0)));
    if (site) bad.set(path, (bad.get(path) ?? new Set()).add(site));
    return site !== undefined;
  };
  const lines = output.split("\n");
  lines.forEach((line, index) => {
    if (!/ error: /.test(line)) return;
    // The error, and if it is in a function of mutants.hpp, the first note that leads to a rewritten file.
    for (const one of lines.slice(index)) {
      const found = /^(\S+?):(\d+):(\d+): (?:fatal )?(error|note): /.exec(one);
      if (!found) continue;
      if (one !== line && found[4] === "error") break;
      const path = relative(tree, resolve(build, found[1]));
      if (texts.has(path) && line.includes("-Wc++11-narrowing") && !already.has(path)) {
        bad.set(path, bad.get(path) ?? new Set());
        narrow.add(path);
        break;
      }
      if (texts.has(path) && blame(path, Number(found[2]), Number(found[3]))) break;
    }
  });
  return bad;
}

/** Compiles the rewritten project; what does not compile is taken out, until all does. Gives the sites taken out. */
function compile(sources, sitesByFile) {
  const out = [];
  const narrow = new Set();
  for (let round = 1; ; round++) {
    const texts = new Map();
    for (const [path, sites] of sitesByFile) {
      const { text, origin } = rewrite(sources.get(path), sites);
      texts.set(path, { text: (narrow.has(path) ? NARROW : "") + text, origin });
      write(join(tree, path), texts.get(path).text);
    }
    if (round === 1) configure();
    const { status, stdout } = spawnSync("ninja", ["-C", build, "-k", "0", "-j", "2", ...programs], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 1 << 30,
    });
    if (status === 0) return out;
    const bad = complaints(stdout, texts, sitesByFile, narrow);
    if (bad.size === 0 || round > 12) throw new Failure(`The mutants do not compile:\n${stdout.slice(-6000)}`);
    for (const [path, sites] of bad) {
      out.push(...[...sites].map((site) => ({ path, site })));
      sitesByFile.set(
        path,
        sitesByFile.get(path).filter((site) => !sites.has(site)),
      );
    }
    const places = [...bad.values()].reduce((sum, sites) => sum + sites.size, 0);
    if (places > 0) say(`${places} places do not compile and are left out.`);
  }
}

/** Runs test cases of a program: whether all is well, and the processor time that they took, in seconds. */
function runTests(program, cases, environment, limit) {
  // Commas part the names of a list, so any letter stands for one.
  const names = cases.map((name) => name.replace(/[,\\]/g, "?")).join(",");
  const timed = 'status=0; "$0" "$@" >/dev/null 2>&1 || status=$?; times; exit $status';
  return new Promise((resolve, reject) => {
    const child = spawn("sh", ["-c", timed, join(build, program), "--abort-after=1", `--test-case=${names}`], {
      cwd: place,
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, KVCAP_SECONDS: String(Math.ceil(limit)), ...environment },
    });
    let times = "";
    child.stdout.on("data", (chunk) => (times += chunk));
    // One that waits instead of working uses no time of the processor.
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 60_000 + limit * 20_000);
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(timer);
      const [minutes, seconds] = /\n(\d+)m([\d.]+)s/.exec(times)?.slice(1).map(Number) ?? [0, 0];
      resolve({ well: status === 0, seconds: 60 * minutes + seconds });
    });
  });
}

/** Each test case with the time that it takes and the mutants that it comes by. */
async function record() {
  const cases = [];
  for (const program of programs) {
    const list = spawnSync(join(build, program), ["--list-test-cases", "--no-colors"], {
      encoding: "utf8",
      cwd: place,
    });
    const names = list.stdout.split("\n").filter((line) => line && !/^(\[doctest\]|=+$)/.test(line));
    cases.push(...[...new Set(names)].map((name) => ({ program, name })));
  }
  const file = (index) => join(folder, `reached/${index}`);
  rmSync(join(folder, "reached"), { recursive: true, force: true });
  mkdirSync(join(folder, "reached"), { recursive: true });
  await each(cases.entries(), async ([index, one]) => {
    const { well, seconds } = await runTests(one.program, [one.name], { KVCAP_REACHED: file(index) }, 60);
    if (!well) throw new Failure(`"${one.name}" fails without a mutant.`);
    one.seconds = seconds;
    one.reached = readFileSync(file(index));
  });
  return cases.sort((a, b) => a.seconds - b.seconds);
}

/** True if a test case fails while that mutant is alive. */
async function isKilled(id, cases) {
  const killedBy = async (program, names, seconds) =>
    !(await runTests(program, names, { KVCAP_MUTANT: String(id) }, 2 + 3 * seconds)).well;
  const left = new Set(cases.filter(({ reached }) => reached[id] === 1));
  // First those alone that have killed most in the time that they take …
  const worth = ({ kills = 0, tries = 0, seconds }) => (kills + 1) / (tries + 2) / (seconds + 0.02);
  for (let turn = 0; turn < 3 && left.size > 0; turn++) {
    const one = [...left].reduce((best, other) => (worth(other) > worth(best) ? other : best));
    left.delete(one);
    const killed = await killedBy(one.program, [one.name], one.seconds);
    one.tries = (one.tries ?? 0) + 1;
    one.kills = (one.kills ?? 0) + (killed ? 1 : 0);
    if (killed) return true;
  }
  // … then the quick ones together, since starting a program takes longer than most of them, and the others one by one.
  const groups = [];
  for (const { program, name, seconds } of left) {
    const group = groups.find((one) => one.program === program && one.seconds + seconds < 0.25);
    if (group) {
      group.names.push(name);
      group.seconds += seconds;
    } else groups.push({ program, names: [name], seconds });
  }
  for (const { program, names, seconds } of groups) if (await killedBy(program, names, seconds)) return true;
  return false;
}

/** Shuffles by a seed (a linear congruential generator is random enough to draw a sample). */
function sample(list, count, seed) {
  let state = BigInt(seed);
  const next = (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
  const left = [...list];
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(next(left.length), 1)[0]);
}

/** The mutants of a site, each with the line on which it stands and its change in words. */
function mutantsOf(path, source, site) {
  const lineStart = source.lastIndexOf("\n", site.begin) + 1;
  const lineEnd = source.indexOf("\n", site.begin);
  const line = source.slice(0, site.begin).split("\n").length;
  const text = readable(source.slice(lineStart, lineEnd < 0 ? undefined : lineEnd)).trim();
  const itself = readable(source.slice(site.begin, site.end)).replace(/\s+/g, " ");
  return site.changes.map((change, index) => ({
    id: site.id + index,
    path,
    line,
    text,
    change: site.operator ? `${itself}: ${site.operator} becomes ${change}` : `${itself} becomes ${change}`,
  }));
}

/** Where a line has the same change twice, the second says so. */
function numbered(mutants) {
  const times = new Map();
  return mutants.map((mutant) => {
    const key = `${mutant.text}: ${mutant.change}`;
    times.set(key, (times.get(key) ?? 0) + 1);
    return times.get(key) === 1 ? mutant : { ...mutant, change: `${mutant.change} (${times.get(key)})` };
  });
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  for (const row of rows) {
    console.log(
      row
        .map((cell, column) =>
          column === 0 ? String(cell).padEnd(widths[column]) : String(cell).padStart(widths[column]),
        )
        .join("  "),
    );
  }
}

await runMain(async () => {
  const args = process.argv.slice(2);
  const option = (name) => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args.splice(at, 2)[1];
  };
  const count = option("--sample");
  const seed = option("--seed") ?? String(Date.now() % 1_000_000);
  const again = args.includes("--again") && args.splice(args.indexOf("--again"), 1).length > 0;
  const unknown = args.find((path) => !FILES.includes(path));
  if (unknown) throw new Failure(`${unknown} is none of the files of the arithmetic: ${FILES.join(", ")}`);
  await setup("check");
  const started = Date.now();
  const explained = JSON.parse(readFileSync(join(projectFolder, "tests/mutation.json"), "utf8"));

  mkdirSync(tree, { recursive: true });
  prepare();
  const sources = new Map(FILES.map((path) => [path, read(path)]));
  say("Looking for what can be changed …");
  const sitesByFile = await sitesOf(sources);
  for (const [index, path] of FILES.entries()) number(sitesByFile.get(path), 1 + index * ROOM);
  say("Compiling all mutants …");
  const broken = compile(sources, sitesByFile);
  say("Seeing which test comes by which mutant …");
  const all = await record();
  const slow = all.filter(({ seconds }) => seconds > PATIENCE);
  const cases = all.filter(({ seconds }) => seconds <= PATIENCE);
  for (const { name, seconds } of slow) say(`Left out, as it takes ${seconds.toFixed(1)} s: ${name}`);

  const wanted = new Set(args.length > 0 ? args : FILES);
  let mutants = FILES.filter((path) => wanted.has(path)).flatMap((path) =>
    numbered(sitesByFile.get(path).flatMap((site) => mutantsOf(path, sources.get(path), site))),
  );
  if (count) {
    say(`A sample of ${count} of ${mutants.length} mutants, seed ${seed}`);
    mutants = sample(mutants, Number(count), seed);
  }
  const key = ({ path, text, change }) => `${path}: ${text}: ${change}`;
  const before = again ? JSON.parse(readFileSync(join(folder, "report.json"), "utf8")).mutants : [];
  const dead = new Set(before.filter(({ killed }) => killed).map(key));
  for (const mutant of mutants) mutant.killed = dead.has(key(mutant));
  const alive = mutants.filter(({ killed }) => !killed);
  say(`${alive.length} mutants, ${cases.length} test cases`);
  let done = 0;
  await each(alive, async (mutant) => {
    mutant.reached = cases.some(({ reached }) => reached[mutant.id] === 1);
    mutant.killed = mutant.reached && (await isKilled(mutant.id, cases));
    if (!mutant.killed) say(`${mutant.path}:${mutant.line}: ${mutant.change}`);
    if (++done % 100 === 0) say(`${done} of ${alive.length}, ${Math.round((Date.now() - started) / 1000)} s`);
  });

  const survivors = mutants.filter(({ killed }) => !killed);
  const reasonOf = ({ path, text, change }) => explained[path]?.[text]?.[change];
  const notCompiled = broken.filter(({ path }) => wanted.has(path));
  const sum = (list, path) => list.filter((one) => !path || one.path === path).length;
  const changesOf = (path) =>
    notCompiled.filter((one) => !path || one.path === path).reduce((total, { site }) => total + site.changes.length, 0);
  table([
    ["", "mutants", "killed", "survived", "not compilable"],
    ...[...FILES.filter((path) => sum(mutants, path) > 0), ""].map((path) => [
      path || "all",
      sum(mutants, path),
      sum(mutants, path) - sum(survivors, path),
      sum(survivors, path),
      changesOf(path),
    ]),
  ]);
  const unexplained = survivors.filter((one) => !reasonOf(one));
  for (const one of survivors) {
    const reason = reasonOf(one);
    console.log(
      `${one.path}:${one.line}: ${one.change}${one.reached ? "" : " (never run)"}${reason ? `; ${reason}` : ""}`,
    );
  }
  // An explanation of what is killed, or is not there any more, would hide the next survivor.
  const stale =
    args.length > 0 || count
      ? []
      : Object.entries(explained).flatMap(([path, lines]) =>
          Object.entries(lines).flatMap(([text, changes]) =>
            Object.keys(changes)
              .filter(
                (change) => !survivors.some((one) => one.path === path && one.text === text && one.change === change),
              )
              .map((change) => `${path}: ${text}: ${change}`),
          ),
        );
  for (const one of stale) console.log(`Explained, but killed or gone: ${one}`);
  writeFileSync(
    join(folder, "report.json"),
    JSON.stringify(
      { seed: count ? seed : undefined, mutants, slow: slow.map(({ name }) => name), broken: notCompiled },
      null,
      1,
    ),
  );
  const share = (100 * (mutants.length - survivors.length)) / mutants.length;
  console.log(
    `${share.toFixed(2)} % of ${mutants.length} mutants killed (at least ${KILLED}), ${unexplained.length} of ` +
      `${survivors.length} survivors not explained, in ${Math.round((Date.now() - started) / 60_000)} min`,
  );
  return share < KILLED || unexplained.length > 0 || stale.length > 0 ? 1 : 0;
});
