// Makes the machine ready: system packages, Emscripten, node modules. Every npm script calls it first.
// It says what it does only when there is something to do, so the second time it is silent.
//
//   node cpp/toolchain/setup.mjs [build|check|test] [--print-env]
//
// build (the default) is what building needs, check adds the linters, test adds the browsers.
// --print-env prints shell lines that put em++ on PATH: eval "$(node cpp/toolchain/setup.mjs --print-env)"
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { installPackages, missingPackages, stages } from "./debian.mjs";
import { findEmscripten, installEmscripten } from "./emscripten.mjs";
import { Failure, cacheFolder, runMain, runQuietly, say } from "./terminal.mjs";

export const projectFolder = join(dirname(fileURLToPath(import.meta.url)), "../..");

/**
 * True when every package of the lock file that this platform takes is in node_modules at its version.
 * npm keeps the tree that it installed in node_modules/.package-lock.json.
 */
export function nodeModulesAreCurrent(folder = projectFolder) {
  const installed = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(installed)) return false;
  const packagesIn = (path) => JSON.parse(readFileSync(path, "utf8")).packages;
  const have = packagesIn(installed);
  return Object.entries(packagesIn(join(folder, "package-lock.json"))).every(
    ([path, entry]) => path === "" || entry.optional || have[path]?.version === entry.version,
  );
}

export function installNodeModules(folder = projectFolder, what = "Installing the node modules", ...more) {
  return runQuietly(
    what,
    'Check the network, then run "npm ci" to see why.',
    "npm",
    ["ci", "--no-audit", "--no-fund", "--loglevel=error", ...more],
    { cwd: folder },
  );
}

/** Runs `work` while no other set-up on this machine does: two of them would undo each other's files. */
async function alone(work) {
  const lock = join(cacheFolder(), "lock");
  mkdirSync(cacheFolder(), { recursive: true });
  const owner = () => {
    try {
      return Number(readdirSync(lock)[0]);
    } catch {
      return undefined;
    }
  };
  const alive = (pid) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch (error) {
      return error.code === "EPERM";
    }
  };
  for (let told = false; ; ) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== "EEXIST")
        throw new Failure(`${lock} cannot be made (${error.code}). Is the disk full or read-only?`);
    }
    const pid = owner();
    if (pid && !alive(pid)) rmSync(lock, { recursive: true, force: true });
    else {
      if (!told) say("Waiting for another set-up to end …");
      told = true;
      await pause(500);
    }
  }
  writeFileSync(join(lock, String(process.pid)), "");
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function closureCompiler() {
  const names = { linux: process.arch === "arm64" ? "linux-arm64" : "linux", darwin: "macos", win32: "windows" };
  const folder = join(projectFolder, "node_modules", `google-closure-compiler-${names[process.platform]}`);
  return ["compiler", "compiler.exe"].map((name) => join(folder, name)).find(existsSync);
}

/** Environment variables with which em++ works. */
function environment(root) {
  const variables = { KV_EMSCRIPTEN_ROOT: root, PATH: `${root}:${process.env.PATH}` };
  const closure = closureCompiler();
  if (closure) variables.EM_CLOSURE_COMPILER = closure;
  return variables;
}

/** Does what is missing for `stage` and puts em++ into this process's environment. Returns those variables. */
export async function setup(stage = "build") {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    throw new Failure(`Node ${process.versions.node} is too old. Install Node 20 or newer and try again.`);
  }
  const ready = () => missingPackages(stage).length === 0 && findEmscripten() !== undefined && nodeModulesAreCurrent();
  if (!ready()) {
    await alone(async () => {
      await installPackages(missingPackages(stage));
      if (!findEmscripten()) await installEmscripten();
      if (!nodeModulesAreCurrent()) await installNodeModules();
    });
  }
  const variables = environment(findEmscripten());
  Object.assign(process.env, variables);
  return variables;
}

async function main() {
  const unknown = process.argv.slice(2).find((word) => word !== "--print-env" && !stages.includes(word));
  if (unknown) throw new Failure(`"${unknown}" is not understood. Give one of ${stages.join(", ")}, or --print-env.`);
  const variables = await setup(process.argv.slice(2).find((word) => stages.includes(word)));
  if (process.argv.includes("--print-env")) {
    const quote = (value) => `'${value.replaceAll("'", "'\\''")}'`;
    for (const [name, value] of Object.entries(variables)) console.log(`export ${name}=${quote(value)}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await runMain(main);
