// npm run reproducible: two builds from nothing, in folders of different names and depths, give the same bytes.
// ccache is left out, so that both compile everything; it takes some minutes.
//
// tests/web/reproducible.test.mjs does the same from kernels that are built, which takes seconds.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";

/** Every file of a folder with the hash of its bytes. */
export function hashes(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
  const hash = (name) =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
  return Object.fromEntries(files.sort().map((name) => [name, hash(name)]));
}

/** Files that two builds do not have alike, one a line. */
export function differences(one, other) {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  return names.filter((name) => one[name] !== other[name]).join("\n");
}

/**
 * Copies the project's sources to `folder`, with the packages that are installed. What is built is not copied, but for the
 * kernels where `kernels` says so.
 */
export function copyProject(folder, { kernels = false } = {}) {
  const built = /^(build|node_modules|\.git|web\/dist)$/;
  mkdirSync(folder, { recursive: true });
  cpSync(projectFolder, folder, {
    recursive: true,
    filter: (path) => !built.test(path.slice(projectFolder.length).replace(/^\/+/, "")),
  });
  symlinkSync(join(projectFolder, "node_modules"), join(folder, "node_modules"));
  if (!kernels) return;
  const from = join(projectFolder, "build/wasm");
  const to = join(folder, "build/wasm");
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from).filter((one) => /^kernel.*\.(mjs|wasm)$/.test(one)))
    cpSync(join(from, name), join(to, name));
  symlinkSync(join(from, "headers"), join(to, "headers"));
}

/** Builds the copy in `folder`: all of it, or with `site` what is made from built kernels. Returns the hashes. */
export function buildCopy(folder, { site = false } = {}) {
  const script = site
    ? 'await (await import("./web/build.mjs")).buildSite();'
    : 'await (await import("./web/build.mjs")).build();';
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script, "copy"], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, CCACHE_DISABLE: "1" },
  });
  if (status !== 0) throw new Failure(`A build in ${folder} failed.\n${stdout}${stderr}`);
  return hashes(join(folder, "web/dist"));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    await setup();
    const folder = mkdtempSync(join(tmpdir(), "kv-capacity-twice-"));
    try {
      const places = ["a", "another/place/with a longer name"].map((name) => join(folder, name));
      const [one, other] = places.map((place) => {
        copyProject(place);
        say(`Building in ${place} …`);
        return buildCopy(place);
      });
      const found = differences(one, other);
      const count = Object.keys(one).length;
      console.log(found ? `Differ:\n${found}` : `${count} files, all the same`);
      return found ? 1 : 0;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
