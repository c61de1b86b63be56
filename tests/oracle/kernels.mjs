// The builds of the core that answer requests, each as a function from requests to answers, JSON text both.
import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const project = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(project, "web/dist");
const newest = (presets) =>
  presets
    .map((preset) => join(project, "build", preset, "kvcap_answers"))
    .filter(existsSync)
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
/** Built by the suite "native", with sanitizers; or by hand, `cmake --build --preset release`: the newest counts. */
const native = newest(["debug", "release"]);
/** Built by the suite "fuzz" or by `npm run clang`, both with sanitizers. */
const clang = newest(["fuzz", "clang"]);

const load = (name) => import(new URL(name, pathToFileURL(join(dist, "/"))).href);

let copies = 0;

/** The full kernel, WebAssembly: the one that all share, or a `fresh` instance. */
export async function fullKernel({ fresh = false } = {}) {
  const shared = Symbol.for("kv-capacity.kernel.1");
  const before = globalThis[shared];
  if (fresh) delete globalThis[shared];
  const { loadFullKernel } = await load(fresh ? `kv-capacity.mjs?copy=${++copies}` : "kv-capacity.mjs");
  const { instance } = await loadFullKernel();
  if (fresh) globalThis[shared] = before;
  return instance;
}

/** The kernel that a page loads first. It leaves to the full one what it does not hold. */
export async function coreKernel() {
  const { loadKernel } = await load("kv-capacity.mjs");
  return (await loadKernel()).instance;
}

/** The full kernel as JavaScript. */
export async function plainKernel() {
  await load("kv-capacity-nowasm.js");
  return globalThis[Symbol.for("kv-capacity.nowasm.1")]();
}

/** Gives a program all requests, one a line, and takes its answers. */
function lines(program, args, requests) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args);
    let out = "";
    let complaint = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      complaint += chunk;
    });
    child.on("error", reject);
    child.on("close", (status) => {
      const answers = out.split("\n").slice(0, -1);
      if (answers.length === requests.length) resolve({ answers, status });
      else reject(new Error(`${program} gave ${answers.length} answers and ended with ${status}\n${complaint}`));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(requests.map((request) => `${request}\n`).join(""));
  });
}

export const commandLine = (requests) => lines(process.execPath, [join(dist, "cli.mjs"), "plan", "--jsonl"], requests);

/** undefined where it is not built. */
export const nativeProgram = native && ((requests) => lines(native, [], requests));
export const clangProgram = clang && ((requests) => lines(clang, [], requests));
