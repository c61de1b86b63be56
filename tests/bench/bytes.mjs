// What the built files weigh, and what each part of the first script costs in it.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { bundle } from "../../web/build.mjs";

const dist = join(projectFolder, "web/dist");
export const budgets = JSON.parse(readFileSync(join(projectFolder, "tests/budgets.json"), "utf8"));

/** Bytes as they are, and as a server sends them. */
export function weigh(content) {
  const bytes = Buffer.from(content);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return {
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    brotli: brotliCompressSync(bytes, { params }).length,
  };
}

const sum = (weights) => {
  const total = { raw: 0, gzip: 0, brotli: 0 };
  for (const one of weights) for (const key of Object.keys(total)) total[key] += one[key];
  return total;
};

const weighFile = (name) => weigh(readFileSync(join(dist, name)));

/** A page's file and the scripts and styles that its tags name, which a browser loads before anybody asks for more. */
function filesOfPage(page) {
  const html = readFileSync(join(dist, page), "utf8");
  const named = [...html.matchAll(/<(?:script|link)\b[^>]*?(?:src|href)="([^":]+)"/g)].map(([, name]) => name);
  return [page, ...named];
}

/**
 * Each budget beside what is built; `near` are the scripts of elements in the first view. Sizes
 * are brotli's; `over` is the bytes past the limit.
 */
export function measureBudgets() {
  return budgets.bytes.map(({ what, files, page, near = [], target, limit }) => {
    const names = files ?? [...filesOfPage(page), ...near];
    const size = sum(names.map(weighFile));
    return { what, files: names, ...size, target, limit, over: Math.max(0, size.brotli - limit) };
  });
}

/** Every file of the site. */
export function measureFiles() {
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(dist.length + (dist.endsWith("/") ? 0 : 1)))
    .sort()
    .map((file) => ({ file, ...weighFile(file) }));
}

/** The parts of the first script: what stands for each when it is left out. */
const parts = [
  { part: "wasm, packed, and what unpacks it", filter: /^kernel:core\.wasm$/, contents: "export default () => '';" },
  { part: "glue around it", filter: /^kernel:core$/, contents: "export default () => {};" },
  { part: "words (English)", filter: /\/en\.json$/, contents: "export default {};" },
  { part: "styles", filter: /\.css$/, contents: "export default '';" },
];

const without = ({ filter, contents }) => ({
  name: "left out",
  setup(build) {
    const namespace = `without ${filter.source}`;
    build.onResolve({ filter }, ({ path }) => ({ path, namespace }));
    build.onLoad({ filter: /./, namespace }, () => ({ contents, loader: "js" }));
  },
});

/** The catalogue's tables, which are text inside the kernel. */
function cataloguePart() {
  const kernel = readFileSync(join(dist, "kv-capacity.wasm"));
  const folder = join(projectFolder, "build/wasm/data");
  let rest = kernel;
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".inc"))) {
    const literals = readFileSync(join(folder, name), "utf8").match(/"(?:[^"\\]|\\.)*"/g) ?? [];
    const text = literals.map((one) => JSON.parse(one)).join("");
    const at = rest.indexOf(text);
    // Some tables are the full kernel's alone.
    if (at >= 0) rest = Buffer.concat([rest.subarray(0, at), rest.subarray(at + text.length)]);
  }
  if (rest === kernel) throw new Failure("None of the catalogue's tables was found in the kernel.");
  return { part: "  of which the catalogue", ...difference(weigh(kernel), weigh(rest)) };
}

const difference = (a, b) => ({ raw: a.raw - b.raw, gzip: a.gzip - b.gzip, brotli: a.brotli - b.brotli });

/** What the later scripts are made of. */
const LATER = [
  { entry: "more/classic.ts", folder: "more", not: ["attach", "classic", "module", "parts"] },
  {
    entry: "lesson/all.ts",
    folder: "lesson",
    not: ["all", "element", "kit", "parts", "play", "quiz-parts", "stepped"],
  },
  { entry: "lesson/play.ts", folder: "lesson", not: ["all", "element", "kit", "parts", "play"] },
];

/** In place of a module, one that has whatever is asked of it: for weighing alone, it never runs. */
const nothing = (name) => without({ filter: new RegExp(`/${name}\\.js$`), contents: "module.exports = {};" });

/** What each feature of a later script would save by its absence; the full kernel is left out of all. */
export async function measureFeatures() {
  const esbuild = await import("esbuild");
  const kernel = without({ filter: /^kernel:full/, contents: "export default () => {};" });
  const found = [];
  for (const { entry, folder, not } of LATER) {
    // Without Terser, which would take longer than all else and changes little of a difference.
    const built = async (...plugins) =>
      weigh(await bundle(esbuild, entry, { format: "iife", terse: false, plugins: [kernel, ...plugins] }));
    const whole = await built();
    found.push({ part: entry, ...whole });
    const names = readdirSync(join(projectFolder, "web/src", folder))
      .filter((name) => name.endsWith(".ts"))
      .map((name) => name.slice(0, -3))
      .filter((name) => !not.includes(name));
    for (const name of names) {
      const saved = difference(whole, await built(nothing(name)));
      // Modules of another script of the folder save nothing here.
      if (saved.raw > 0) found.push({ part: `  ${name}`, ...saved });
    }
    const styles = difference(whole, await built(without({ filter: /\.css$/, contents: "export default '';" })));
    const words = difference(whole, await built(without({ filter: /\.json$/, contents: "export default {};" })));
    found.push({ part: "  styles", ...styles }, { part: "  words (English)", ...words });
  }
  return found;
}

/** What the first script would save without each part; what is left is the element. */
export async function measureParts() {
  const esbuild = await import("esbuild");
  const built = async (plugins) => weigh(await bundle(esbuild, "classic.ts", { format: "iife", plugins }));
  const whole = await built([]);
  const found = [];
  for (const one of parts) found.push({ part: one.part, ...difference(whole, await built([without(one)])) });
  const element = difference(whole, sum(found));
  found.splice(1, 0, cataloguePart());
  return [...found, { part: "<kv-capacity>, loader and all else", ...element }, { part: "kv-capacity.js", ...whole }];
}
