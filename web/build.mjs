// Builds everything that a page or the command line loads, into web/dist/:
//   kv-capacity.js                      classic script that holds all: kernel, elements, styles, English words
//   kv-capacity-more.js                 what it loads when somebody asks: full kernel, own models, engines, logs
//   kv-capacity-lesson.js               the lesson's elements, loaded when one of their tags comes near the view
//   kv-capacity-play.js                 likewise: paging, quiz and interview
//   kv-capacity-nowasm.js               full kernel as JavaScript, loaded where WebAssembly is refused
//   kv-capacity.mjs, kv-capacity.wasm   ES module and its kernel, for bundlers; with the same further scripts
//   kernel.mjs                          the full kernel alone, for Node, workers and pages with faces of their own
//   types/, custom-elements.json        what editors and type checkers know of all these
//   THIRD-PARTY-NOTICES.txt             whose work is compiled into the kernels
//   cli.mjs                             the command line
//   locales/de.js, de-more.js, …        words of other languages, a file for each script; as modules (.mjs) too
//   kv-capacity-builder.js, …-page.js   what only builder.html loads: the builder, and a whole page as text
//   index.html, embed.html, embed.js, … the site
//   oembed.json                         what a page that embeds links by oEmbed reads
//   kv-capacity-scorm.zip               the calculator and the quiz for learning platforms
//   kv-capacity.html                    the site's first page with everything inside, for disks and mail
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { manifest } from "./manifest.mjs";
import { notices } from "./notices.mjs";
import { pack, unpack } from "./pack.mjs";
import { scormPackage } from "./scorm.mjs";
import { writeTypes } from "./types.mjs";

const web = join(projectFolder, "web");
const dist = join(web, "dist");
const kernels = join(projectFolder, "build/wasm");

/** Configures a CMake preset and builds it, or one target of it. The compiler's output is shown only on failure. */
export function buildPreset(preset, target = "all") {
  for (const args of [
    ["--preset", preset],
    ["--build", "--preset", preset, "--target", target, "--parallel", "2"],
  ]) {
    const { status, stdout } = spawnSync("cmake", args, {
      cwd: projectFolder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 1 << 28,
    });
    if (status !== 0) {
      if (stdout) say(stdout);
      throw new Failure(`Building the preset "${preset}" failed; the compiler's words are above.`);
    }
  }
}

/**
 * The modules that only a build can give: "kernel:core" and "kernel:full" are the factories that Emscripten made,
 * "kernel:javascript" that of the full kernel without WebAssembly, "kernel:core.wasm" and "kernel:full.wasm" the
 * compiled bytes, "kernel:core.sha256" and "kernel:full.sha256" the hashes of those.
 */
const kernelModules = {
  name: "kernels",
  setup(build) {
    const files = { core: "kernel", full: "kernel_full", javascript: "kernel_full.js" };
    build.onResolve({ filter: /^kernel:/ }, ({ path }) => ({ path, namespace: "kernel" }));
    build.onLoad({ filter: /./, namespace: "kernel" }, ({ path }) => {
      const [, name, form] = path.match(/^kernel:(\w+)(\.wasm|\.sha256)?$/) ?? [];
      const file = join(kernels, `${files[name]}${form ? ".wasm" : ".mjs"}`);
      if (!existsSync(file)) return { errors: [{ text: `${path} is not a kernel that is built (${file})` }] };
      if (!form) return { contents: readFileSync(file, "utf8"), resolveDir: web };
      const bytes = readFileSync(file);
      if (form === ".sha256") {
        return { contents: `export default "${createHash("sha256").update(bytes).digest("hex")}";` };
      }
      const packed = pack(bytes);
      if (!bytes.equals(unpack(packed))) return { errors: [{ text: `${path} does not survive packing` }] };
      const contents = `import { unpack } from "./pack.mjs";\nexport default () => unpack(${JSON.stringify(packed)});`;
      return { contents, resolveDir: web };
    });
  },
};

/** The languages, beside English, that have a file of words. */
const languages = readdirSync(join(web, "locales"))
  .filter((name) => /^[a-z]+\.json$/.test(name) && name !== "en.json")
  .map((name) => basename(name, ".json"));

/** Which scripts have words of their own. */
const wordFiles = languages.flatMap((language) =>
  ["", "-more", "-lesson", "-play"].map((part) => `${language}${part}`),
);

/** "words:files": how a module gets each file of words, spelled out so that bundlers find and split them. */
const wordModules = {
  name: "words",
  setup(build) {
    build.onResolve({ filter: /^words:files$/ }, ({ path }) => ({ path, namespace: "words" }));
    build.onLoad({ filter: /./, namespace: "words" }, () => ({
      contents: `export default {${wordFiles.map((name) => `"${name}": () => import("./locales/${name}.mjs")`)}};`,
    }));
  },
};

/** Style sheets become text, without what only their authors need. */
const styleText = (esbuild) => ({
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, ({ path }) => {
      const { code } = esbuild.transformSync(readFileSync(path, "utf8"), { loader: "css", minify: true });
      // What esbuild leaves: spaces around the values of properties of one's own, and quotes within :host().
      const small = code
        .trim()
        .replace(/(--[\w-]+): /g, "$1:")
        .replace(/(var\(--[\w-]+), /g, "$1,")
        .replace(/\[(\w+)="([a-z]\w*)"\]/g, "[$1=$2]");
      return { contents: small, loader: "text" };
    });
  },
});

/**
 * A script as one text. Further `plugins` come before the build's own. What esbuild has made small, Terser makes
 * smaller by another 1.5 % after brotli, unless `terse` is false.
 */
export async function bundle(esbuild, entry, { plugins = [], terse = true, ...options }) {
  const { outputFiles, metafile } = await esbuild.build({
    entryPoints: [join(web, "src", entry)],
    bundle: true,
    minify: true,
    charset: "ascii",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    plugins: [...plugins, kernelModules, wordModules, styleText(esbuild)],
    ...options,
    write: false,
    metafile: true,
  });
  const foreign = Object.keys(metafile.inputs).find((name) => name.includes("node_modules/"));
  if (foreign) throw new Failure(`${entry} takes in ${foreign}, of which web/notices.mjs gives no notice.`);
  if (!terse) return outputFiles[0].text;
  const { minify } = await import("terser");
  const { code } = await minify(outputFiles[0].text, {
    ecma: 2020,
    module: options.format === "esm",
    compress: { ecma: 2020, passes: 3, toplevel: true, hoist_funs: true, unsafe_arrows: true },
    mangle: { toplevel: true },
    format: { ascii_only: true },
  });
  return code;
}

function copyPages() {
  const files = readdirSync(web).filter((name) => /\.(html|css|svg|png|json)$/.test(name) && name !== "tsconfig.json");
  for (const name of files) copyFileSync(join(web, name), join(dist, name));
}

/** A JSON text in ASCII: not every page that a script comes to is in UTF-8. */
const asciiJson = (text) => text.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A file of words as a script. */
function wordScript(name) {
  const file = join(web, "locales", `${name}.json`);
  const words = existsSync(file) ? JSON.stringify(JSON.parse(readFileSync(file, "utf8"))) : "{}";
  return {
    classic: `(globalThis[Symbol.for("kv-capacity.words.1")]??={})["${name}"]=${asciiJson(words)};\n`,
    module: `export default ${words};\n`,
  };
}

/** A language that runs from right to left. */
const RTL = /^(ar|fa|he|ur)$/;

async function writeWords(esbuild, form) {
  const rtl = await bundle(esbuild, "rtl.ts", { format: "iife", ...form });
  mkdirSync(join(dist, "locales"), { recursive: true });
  for (const name of wordFiles) {
    const { classic, module } = wordScript(name);
    const more = RTL.test(name) ? rtl : "";
    writeFileSync(join(dist, "locales", `${name}.js`), classic + more);
    writeFileSync(join(dist, "locales", `${name}.mjs`), module + more);
  }
}

/** The scripts that a page fetches later. */
const LATER = ["more", "lesson", "play", "nowasm"].map((name) => `kv-capacity-${name}.js`);

/** A page of the site, as text, with its scripts and styles inside, and at the end what it would fetch later. */
function oneFile(page) {
  const inside = (name) => {
    const text = readFileSync(join(dist, name), "utf8");
    if (/<\/(script|style)|<!--/i.test(text))
      throw new Failure(`${name} cannot stand inside a page: it would end its tag.`);
    return text;
  };
  return (
    page
      .replace(/ *<link rel="alternate"[^>]*>\n/g, "")
      .replace(/<link rel="stylesheet" href="([^"]+)" \/>/g, (_tag, name) => `<style>\n${inside(name)}</style>`)
      // The words of every language are there before the first script asks for some.
      .replace(/(?=<script src="kv-capacity\.js">)/, () =>
        wordFiles.map((name) => `<script src="locales/${name}.js"></script>\n    `).join(""),
      )
      .replace(/<script src="([^"]+)"><\/script>/g, (_tag, name) => `<script>\n${inside(name)}</script>`)
      .replace("</body>", () => `${LATER.map((name) => `<script>\n${inside(name)}</script>\n`).join("")}</body>`)
  );
}

/** The frame's page with everything inside, as a script that holds it: the builder puts an element into its place. */
function pageScript(page) {
  const [element] = page.match(/<kv-capacity>[\s\S]*<\/kv-capacity>/) ?? [];
  if (!element) throw new Failure("embed.html has no <kv-capacity> for the builder to take the place of.");
  const text = asciiJson(JSON.stringify(oneFile(page.replace(element, "<!--element-->"))));
  return `globalThis[Symbol.for("kv-capacity.page.1")]=${text};\n`;
}

/** How large a frame is before it is told the height of what it shows, in pixels. */
const FRAME = { width: 720, height: 900 };

/**
 * What oEmbed 1.0 asks of a rich resource, as a file: https://oembed.com. `site` is the address that the files will have;
 * without it addresses are relative, which serves only pages of the same folder.
 */
function writeOembed(site) {
  const title = "KV capacity: how many conversations fit?";
  const source = `${site}embed.html`;
  const { width, height } = FRAME;
  const html = `<iframe class="kv-capacity" src="${source}" title="${title}" sandbox="allow-scripts allow-downloads" allow="clipboard-write" width="${width}" height="${height}" style="border: 0"></iframe>`;
  const answer = { version: "1.0", type: "rich", title, provider_name: "KV Capacity", html, width, height };
  if (site) answer.provider_url = site;
  writeFileSync(join(dist, "oembed.json"), `${JSON.stringify(answer, null, 2)}\n`);
  for (const name of ["index.html", "embed.html"]) {
    const page = readFileSync(join(dist, name), "utf8");
    writeFileSync(join(dist, name), page.replace('href="oembed.json"', `href="${site}oembed.json"`));
  }
}

/** The address of a folder, as `--site` names it; "" when nobody says. */
function siteOf(args) {
  const at = args.indexOf("--site");
  if (at < 0) return "";
  const text = args[at + 1] ?? "";
  if (!/^https?:\/\/[^\s"<>?#]+\/$/.test(text) || !URL.canParse(text))
    throw new Failure(`--site ${text} is not the address of a folder, such as https://example.org/kv/`);
  return new URL(text).href;
}

/**
 * Starts every kernel in `folder` and asks it for its catalogue: a link that was cut short, as on a machine without memory
 * left, can leave half a file and still be called a success.
 */
export async function proveKernels(folder = kernels) {
  for (const [script, wasm] of [
    ["kernel.mjs", "kernel.wasm"],
    ["kernel_full.mjs", "kernel_full.wasm"],
    ["kernel_full.js.mjs"],
  ]) {
    try {
      // By its content, since a module is loaded once.
      const content = readFileSync(join(folder, script));
      const mark = createHash("sha256").update(content).digest("hex");
      const { default: create } = await import(`${pathToFileURL(join(folder, script)).href}?${mark}`);
      const bytes = wasm && readFileSync(join(folder, wasm));
      // The small kernel takes bytes, the full one what is compiled.
      const given = wasm === "kernel.wasm" ? { wasm: bytes } : bytes ? { wasm: await WebAssembly.compile(bytes) } : {};
      const { models } = JSON.parse((await create(given)).catalogue());
      if (!models.length) throw new Error("it knows no model");
    } catch (error) {
      const why = String(error?.message ?? error).slice(0, 200);
      const files = [script, wasm].filter(Boolean).join(" and ");
      throw new Failure(`${files} in ${folder} are no whole kernel (${why}). Remove that folder and build again.`);
    }
  }
}

/** Builds the kernels and the site. */
export async function build(site = "") {
  buildPreset("wasm");
  await proveKernels();
  await buildSite(site);
}

/** What `bundle` takes for scripts as they were written, whole, with the way back to their sources at the end. */
export const READABLE = { minify: false, terse: false, treeShaking: false, sourcemap: "inline", sourcesContent: false };

/**
 * Builds the site from kernels that are built. `site` is the address of the folder that it will be served from, `form`
 * has options of `bundle` for every script.
 */
export async function buildSite(site = "", form = {}) {
  const esbuild = await import("esbuild");
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  const write = async (entry, output, options) =>
    writeFileSync(join(dist, output), await bundle(esbuild, entry, { ...options, ...form }));
  await write("classic.ts", "kv-capacity.js", { format: "iife" });
  await write("embed.ts", "embed.js", { format: "iife" });
  await write("builder/builder.ts", "kv-capacity-builder.js", {
    format: "iife",
    define: { LANGUAGES: JSON.stringify(["en", ...languages]) },
  });
  await write("scorm.ts", "scorm.js", { format: "iife" });
  await write("more/classic.ts", "kv-capacity-more.js", { format: "iife" });
  const later = ["more.mjs", "lesson.mjs", "play.mjs", "nowasm.js"].map((name) => `./kv-capacity-${name}`);
  const external = ["./locales/*", ...later];
  await write("module.ts", "kv-capacity.mjs", { format: "esm", external });
  await write("more/module.ts", "kv-capacity-more.mjs", { format: "esm" });
  for (const [entry, name] of [
    ["lesson/all.ts", "kv-capacity-lesson"],
    ["lesson/play.ts", "kv-capacity-play"],
  ]) {
    await write(entry, `${name}.js`, { format: "iife" });
    await write(entry, `${name}.mjs`, {
      format: "esm",
      external: ["./kv-capacity.mjs"],
      banner: { js: 'import "./kv-capacity.mjs";' },
    });
  }
  await write("kernel-alone.ts", "kernel.mjs", { format: "esm", external });
  await write("nowasm.ts", "kv-capacity-nowasm.js", {
    format: "iife",
    // Emscripten's glue asks for its own address only to find a file that this kernel does not have.
    define: { "import.meta.url": '"file:///"' },
    // It is loaded where little else works, and is large: Terser would take longer than all other scripts together.
    terse: false,
  });
  await write("cli.ts", "cli.mjs", {
    format: "esm",
    platform: "node",
    banner: { js: "#!/usr/bin/env node" },
  });
  chmodSync(join(dist, "cli.mjs"), 0o755);
  copyFileSync(join(kernels, "kernel.wasm"), join(dist, "kv-capacity.wasm"));
  copyFileSync(join(kernels, "kernel_full.wasm"), join(dist, "kv-capacity-more.wasm"));
  const read = (name) => readFileSync(join(dist, name), "utf8");
  writeFileSync(
    join(dist, "THIRD-PARTY-NOTICES.txt"),
    notices(process.env.KV_EMSCRIPTEN_ROOT, join(kernels, "headers")),
  );
  await writeTypes(join(dist, "types"));
  writeFileSync(join(dist, "custom-elements.json"), JSON.stringify(manifest("web/dist"), null, 1));
  copyPages();
  await writeWords(esbuild, form);
  writeOembed(site);
  writeFileSync(join(dist, "kv-capacity.html"), oneFile(read("index.html")));
  writeFileSync(join(dist, "kv-capacity-page.js"), pageScript(read("embed.html")));
  writeFileSync(join(dist, "kv-capacity-scorm.zip"), await scormPackage({}));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    const site = siteOf(process.argv.slice(2));
    await setup();
    await build(site);
    say(`Built ${dist}`);
  });
}
