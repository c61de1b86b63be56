// Finds an Emscripten that is new enough, or installs one.
//
// The order: an em++ on PATH; the one that an earlier run put into the cache folder; the system's own
// package where it is new enough (Debian 13); else, on Debian 12, Debian 13's package unpacked into the
// cache folder, which leaves the system as it is.
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { installPackages, isDebian, osRelease, updateLists, which } from "./debian.mjs";
import { Failure, cacheFolder, runQuietly } from "./terminal.mjs";

/** The first release whose --emit-tsd, EMBIND_AOT and ES output do what the build relies on. */
const oldest = [3, 1, 69];
const remedy = `Install Emscripten ${oldest.join(".")} or newer so that em++ is on PATH (emsdk, or Debian 13's package "emscripten").`;

const newEnough = (text) => {
  const version = text
    .match(/(\d+)\.(\d+)\.(\d+)/)
    ?.slice(1)
    .map(Number);
  if (!version) return false;
  const differing = oldest.findIndex((part, index) => version[index] !== part);
  return differing === -1 || version[differing] > oldest[differing];
};

/** The folder with em++, cmake/ and emscripten-version.txt for the em++ at `path`. */
function rootOf(path) {
  const real = realpathSync(path);
  return [dirname(real), "/usr/share/emscripten"].find((folder) => existsSync(join(folder, "emscripten-version.txt")));
}

function onPath() {
  const path = which("em++");
  const root = path && rootOf(path);
  if (!root || !newEnough(readFileSync(join(root, "emscripten-version.txt"), "utf8"))) return undefined;
  return root;
}

const home = () => join(cacheFolder(), "emscripten-3.1.69");
const unpackedRoot = () => join(home(), "usr/share/emscripten");

/** The root folder of an Emscripten that is there already, or undefined. */
export function findEmscripten() {
  return onPath() ?? (existsSync(join(home(), "ready")) ? unpackedRoot() : undefined);
}

/** Installs Emscripten and returns its root folder. */
export async function installEmscripten() {
  if (!isDebian()) throw new Failure(`No Emscripten was found. ${remedy}`);
  const candidate = () =>
    spawnSync("apt-cache", ["policy", "emscripten"])
      .stdout.toString()
      .match(/Candidate: (\S+)/)?.[1];
  if (!candidate()) await updateLists(["emscripten"]);
  if (newEnough(candidate() ?? "")) {
    await installPackages(["emscripten"]);
    const root = onPath();
    if (!root) throw new Failure(`The package "emscripten" was installed but gives no usable em++. ${remedy}`);
    return root;
  }
  if (osRelease().VERSION_CODENAME !== "bookworm" || process.arch !== "x64") {
    throw new Failure(`This Debian has no Emscripten that is new enough. ${remedy}`);
  }
  await unpackFromTrixie();
  return unpackedRoot();
}

/** Packages that hold Emscripten, its optimiser, and the C library that the optimiser was built for. */
const packages = ["emscripten", "node-acorn", "binaryen", "libc6", "libstdc++6", "libgcc-s1"];

async function unpackFromTrixie() {
  await installPackages(["clang-19", "lld-19", "llvm-19"].filter((name) => !existsSync(`/usr/share/doc/${name}`)));
  const archive = () =>
    execFileSync("apt-get", ["indextargets", "--format", "$(REPO_URI)", "Codename: bookworm"], {
      encoding: "utf8",
    }).split("\n")[0];
  if (!archive()) await updateLists(packages);
  if (!archive()) throw new Failure(`No Debian archive is among the apt sources. ${remedy}`);

  const final = home();
  const work = `${final}.${process.pid}`;
  const lists = join(work, "apt");
  mkdirSync(join(lists, "lists/partial"), { recursive: true });
  mkdirSync(join(lists, "cache/archives/partial"), { recursive: true });
  try {
    const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    writeFileSync(join(lists, "sources.list"), `deb [signed-by=${keyring}] ${archive()} trixie main\n`);
    const options = [
      "-q",
      `-oDir::Etc::sourcelist=${join(lists, "sources.list")}`,
      "-oDir::Etc::sourceparts=/dev/null",
      `-oDir::State::lists=${join(lists, "lists")}`,
      `-oDir::Cache=${join(lists, "cache")}`,
      // The folder belongs to the person who runs this, so apt's own download user may not write here.
      `-oAPT::Sandbox::User=root`,
    ];
    const network = `Check the network and try again. Or: ${remedy}`;
    await runQuietly("Reading the list of Debian 13's packages", network, "apt-get", [...options, "update"]);
    await runQuietly("Fetching Emscripten 3.1.69 (246 MB)", network, "apt-get", [...options, "download", ...packages], {
      cwd: lists,
    });
    // What a 32-bit, single-threaded, statically linked module never uses is two thirds of it all.
    const unused = [
      "*/wasm64-emscripten",
      "*/wasm32-emscripten/pic",
      "*/wasm32-emscripten/lto-pic",
      "*-mt*.a",
      "*-ww*.a",
      "*/emscripten/test",
    ];
    const unpack =
      'from=$1 to=$2; shift 2; for deb in "$from"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" "$@"; done';
    const excludes = unused.map((pattern) => `--exclude=${pattern}`);
    const disk = `Is the disk that holds ${dirname(final)} full?`;
    await runQuietly("Unpacking Emscripten", disk, "sh", ["-ec", unpack, "sh", lists, work, ...excludes]);
    rmSync(lists, { recursive: true });
    configure(work, final);
    rmSync(final, { recursive: true, force: true });
    renameSync(work, final);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  const probe = spawnSync(join(unpackedRoot(), "em++"), ["--version"]);
  if (probe.status !== 0) throw new Failure(`The unpacked Emscripten does not start: ${probe.stderr}. ${remedy}`);
  writeFileSync(join(final, "ready"), "");
}

/** Makes the tree in `work` run from `final`, the place it is about to be moved to. */
function configure(work, final) {
  const library = join(final, "usr/lib/x86_64-linux-gnu");
  const tools = join(work, "binaryen/bin");
  mkdirSync(tools, { recursive: true });
  for (const name of readdirSync(join(work, "usr/bin")).filter((tool) => tool.startsWith("wasm"))) {
    const command = `exec "${library}/ld-linux-x86-64.so.2" --library-path "${library}" "${final}/usr/bin/${name}" "$@"`;
    writeFileSync(join(tools, name), `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  }
  const root = join(work, "usr/share/emscripten");
  symlinkSync("../nodejs", join(root, "node_modules"));
  writeFileSync(
    join(root, ".emscripten"),
    [
      "import shutil",
      "LLVM_ROOT = '/usr/bin'",
      `BINARYEN_ROOT = '${join(final, "binaryen")}'`,
      "NODE_JS = shutil.which('node')",
      "CLOSURE_COMPILER = 'closure-compiler'",
      "FROZEN_CACHE = True",
      "LLVM_ADD_VERSION = '19'",
      "CLANG_ADD_VERSION = '19'",
      "",
    ].join("\n"),
  );
}
