// Everything that can be found wrong without running the program: the first part of npm run check. With --fix (npm run
// format) it formats instead. Each check is a name and a function that returns what it found wrong, as text; "" is well.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { cacheFolder, runMain } from "../cpp/toolchain/terminal.mjs";
import { packages } from "./dependencies.mjs";
import { misdescribed } from "./manifest.mjs";
import { languages, wordless } from "./words.mjs";

const fix = process.argv.includes("--fix");

/** Runs a command in the project's folder and returns its exit status and all that it printed. */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: projectFolder, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ status: 127, output: String(error) }));
    child.on("close", (status) => resolve({ status, output }));
  });
}

async function complaints(command, args) {
  const { status, output } = await run(command, args);
  return status === 0 ? "" : output || `${command} ended with status ${status}`;
}

const read = (path) => readFileSync(join(projectFolder, path), "utf8");

/** Files of the project: those that git knows or would add; without git, all but what is built. */
function projectFiles() {
  const git = spawnSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: projectFolder, encoding: "utf8" });
  const names =
    git.status === 0
      ? git.stdout.split("\n")
      : readdirSync(projectFolder, { recursive: true }).filter(
          (name) => !/^(build|node_modules|\.git|web\/dist)\b/.test(name),
        );
  return names.filter(
    (name) => name && existsSync(join(projectFolder, name)) && /\.\w+$|^[^/]+$|^\.ci\/run$/.test(name),
  );
}

const cppFiles = () => projectFiles().filter((name) => /\.(cpp|hpp)$/.test(name));
const textFiles = () =>
  projectFiles().filter((name) =>
    /\.(cpp|hpp|[cm]?[jt]s|json|css|html|md|cmake|txt|tsv|jsonl|yml)$|run$|^\./.test(name),
  );

/** The project's top level holds these and nothing else, so that a reader finds the way. */
function layout() {
  const known = [
    "cpp",
    "web",
    "tests",
    "CMakeLists.txt",
    "CMakePresets.json",
    "package.json",
    "package-lock.json",
    "README.md",
    "LICENSE",
  ];
  const others = new Set(
    projectFiles()
      .map((name) => name.split("/")[0])
      .filter((name) => !name.startsWith(".") && !known.includes(name)),
  );
  return [...others].map((name) => `${name} does not belong at the top level`).join("\n");
}

/** Dependencies are pinned to one version, and the lock file says the same and names no server. */
function dependencies(folder) {
  const manifest = JSON.parse(read(`${folder}package.json`));
  const lock = JSON.parse(read(`${folder}package-lock.json`));
  const found = [];
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
    for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
      if (!/^\d+\.\d+\.\d+$/.test(version)) found.push(`package.json: ${name} is not pinned (${version})`);
      if (lock.packages[`node_modules/${name}`]?.version !== version)
        found.push(`package-lock.json: ${name} is not ${version}`);
    }
  }
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (entry.resolved) found.push(`package-lock.json: ${path} names the server that it came from`);
    if (path && !entry.integrity) found.push(`package-lock.json: ${path} has no integrity hash`);
    // npm ci refuses a lock file that leaves out what another platform would install.
    for (const name of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      const nested = Object.keys(lock.packages).some((other) => other.endsWith(`node_modules/${name}`));
      if (!nested) found.push(`package-lock.json: ${name}, which ${path} asks for, is left out`);
    }
  }
  return found.map((one) => folder + one).join("\n");
}

/** No file names a package registry: where packages come from is the business of the machine. */
function hosts() {
  const registry = /registry\.npmjs|registry\.yarnpkg|deb\.debian\.|pypi\.org|files\.pythonhosted/i;
  return textFiles()
    .filter((name) => registry.test(read(name)))
    .map((name) => `${name} names a package registry`)
    .join("\n");
}

/**
 * Every row of the catalogue's tables, as the build checks them: each figure in its range, with its source. When it was
 * taken from there stands in a column of its own or behind the source.
 */
async function catalogue() {
  const folder = join(projectFolder, "build/check");
  mkdirSync(folder, { recursive: true });
  const dated = (name) => {
    const [head, ...rows] = read(`cpp/data/${name}.tsv`)
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t"));
    const when = (row) =>
      row[head.indexOf("date")] ?? row[head.indexOf("source")].match(/\((20\d\d-\d\d)\)$/)?.[1] ?? "";
    const wrong = rows.filter((row) => !/^20\d\d-(0[1-9]|1[0-2])$/.test(when(row)));
    return wrong.map(([id]) => `cpp/data/${name}.tsv: ${id} has no month in which it was taken from its source\n`);
  };
  return [await complaints("node", ["cpp/data/generate.mjs", folder]), ...dated("models"), ...dated("gpus")].join("");
}

/** clang-format marks every column; the file and the remedy are enough. */
async function formatOfCpp() {
  const found = await complaints("clang-format-19", ["--dry-run", "-Werror", ...cppFiles()]);
  const names = new Set([...found.matchAll(/^(\S+?):\d+:\d+: error/gm)].map(([, name]) => name));
  return names.size ? [...names].map((name) => `${name} is not formatted (npm run format)`).join("\n") : found;
}

/**
 * clang-tidy over the core and the tests. A file that was well is not looked at again while it, the headers, the rules
 * and the tool are the same; the record is in the cache folder, so a second clone profits too.
 */
async function tidy() {
  const configured = await complaints("cmake", ["--preset", "release", "-DKVCAP_TESTS=ON"]);
  if (configured) return configured;
  // Writes the generated tables that the sources include.
  const generated = await complaints("cmake", ["--build", "--preset", "release", "--target", "kvcap_data"]);
  if (generated) return generated;
  const record = join(cacheFolder(), "tidy");
  mkdirSync(record, { recursive: true });
  const files = cppFiles();
  const common = createHash("sha256").update((await run("clang-tidy-19", ["--version"])).output);
  for (const name of [
    ...files.filter((file) => file.endsWith(".hpp")),
    ".clang-tidy",
    "CMakeLists.txt",
    "cpp/data/generate.mjs",
  ]) {
    common.update(read(name));
  }
  const waiting = files
    .filter((name) => /^cpp\/src\/.*\.cpp$/.test(name))
    .map((name) => ({ name, mark: join(record, common.copy().update(name).update(read(name)).digest("hex")) }))
    .filter(({ mark }) => !existsSync(mark));
  const found = [];
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      // The compile commands are GCC's, which has warnings that clang has not.
      const { status, output } = await run("clang-tidy-19", [
        "-p",
        "build/release",
        "--quiet",
        "--extra-arg=-Wno-unknown-warning-option",
        next.name,
      ]);
      if (status === 0) writeFileSync(next.mark, "");
      else found.push(output.replace(/^\d+ warnings? .*\n|^Suppressed .*\n|^Use -header.*\n/gm, ""));
    }
  };
  await Promise.all([worker(), worker()]);
  return found.join("\n");
}

const checks = [
  { name: "layout of the project", run: layout },
  { name: "dependencies", run: () => dependencies("") || dependencies("tests/hosts/") },
  { name: "packages are used, and their licences known", run: () => packages(projectFolder, projectFiles()) },
  { name: "no registry is named", run: hosts },
  { name: "catalogue, sourced and dated", run: catalogue },
  { name: "words for every code", run: () => wordless(projectFolder) },
  { name: "every language's words", run: () => languages(projectFolder) },
  { name: "manifest of the elements", run: () => misdescribed(projectFolder) },
  { name: "clang-format", run: formatOfCpp },
  { name: "biome", run: () => complaints("npx", ["biome", "check", "--error-on-warnings", "--max-diagnostics=50"]) },
  { name: "types", run: () => complaints("npx", ["tsc", "-p", "web"]) },
  { name: "clang-tidy", run: tidy },
];

const formatters = [
  { name: "clang-format", run: () => complaints("clang-format-19", ["-i", ...cppFiles()]) },
  { name: "biome", run: () => complaints("npx", ["biome", "check", "--write"]) },
];

await runMain(async () => {
  await setup("check");
  let failed = 0;
  const work = fix ? formatters : checks;
  for (const { name, run: perform } of work) {
    const start = Date.now();
    const found = await perform();
    console.log(`${found ? "FAILED" : "ok"}  ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    if (found) console.log(found.trimEnd().replace(/^/gm, "    "));
    failed += found ? 1 : 0;
  }
  console.log(`${work.length - failed} passed, ${failed} failed`);
  return failed ? 1 : 0;
});
