// Builds everything that a page or the command line loads, into web/dist/:
//   kv-capacity.js                      classic script that holds all: kernel, elements, styles, English words
//   kv-capacity-more.js                 what it loads when somebody asks: full kernel, own models, engines, logs
//   kv-capacity-lesson.js               the lesson's elements, loaded when one of their tags comes near the view
//   kv-capacity-play.js                 likewise: paging, quiz and interview
//   kv-capacity.mjs, kv-capacity.wasm   ES module and its kernel, for bundlers; with the same further scripts
//   cli.mjs                             the command line
//   index.html, embed.html, …           the site, and locales/
//   kv-capacity.html                    the site's first page with everything inside, for disks and mail
import { spawnSync } from "node:child_process";
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
import { pack, unpack } from "./pack.mjs";

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
 * "kernel:core.wasm" and "kernel:full.wasm" their compiled bytes.
 */
const kernelModules = {
  name: "kernels",
  setup(build) {
    const files = { core: "kernel", full: "kernel_full" };
    build.onResolve({ filter: /^kernel:/ }, ({ path }) => ({ path, namespace: "kernel" }));
    build.onLoad({ filter: /./, namespace: "kernel" }, ({ path }) => {
      const [, name, wasm] = path.match(/^kernel:(\w+)(\.wasm)?$/) ?? [];
      const file = join(kernels, `${files[name]}${wasm ?? ".mjs"}`);
      if (!existsSync(file)) return { errors: [{ text: `${path} is not a kernel that is built (${file})` }] };
      if (!wasm) return { contents: readFileSync(file, "utf8"), resolveDir: web };
      const bytes = readFileSync(file);
      const packed = pack(bytes);
      if (!bytes.equals(unpack(packed))) return { errors: [{ text: `${path} does not survive packing` }] };
      const contents = `import { unpack } from "./pack.mjs";\nexport default () => unpack(${JSON.stringify(packed)});`;
      return { contents, resolveDir: web };
    });
  },
};

/** Style sheets become text, without what only their authors need. */
const styleText = (esbuild) => ({
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, ({ path }) => {
      const { code } = esbuild.transformSync(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
});

/**
 * A script as one text. Further `plugins` come before the build's own. What esbuild has made small, Terser makes
 * smaller by another 1.5 % after brotli.
 */
export async function bundle(esbuild, entry, { plugins = [], ...options }) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(web, "src", entry)],
    bundle: true,
    minify: true,
    charset: "ascii",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    plugins: [...plugins, kernelModules, styleText(esbuild)],
    ...options,
    write: false,
  });
  const { minify } = await import("terser");
  const { code } = await minify(outputFiles[0].text, {
    ecma: 2020,
    module: options.format === "esm",
    compress: { ecma: 2020, passes: 2, toplevel: true, hoist_funs: true },
    mangle: { toplevel: true },
    format: { ascii_only: true },
  });
  return code;
}

function copyPages() {
  const files = readdirSync(web).filter((name) => /\.(html|css|svg|png|json)$/.test(name) && name !== "tsconfig.json");
  for (const name of files) copyFileSync(join(web, name), join(dist, name));
  mkdirSync(join(dist, "locales"), { recursive: true });
  for (const name of readdirSync(join(web, "locales"))) {
    const words = JSON.parse(readFileSync(join(web, "locales", name), "utf8"));
    writeFileSync(join(dist, "locales", basename(name)), JSON.stringify(words));
  }
}

/** The site's first page with its script and styles inside. */
function writeOneFile() {
  const inside = (name) => {
    const text = readFileSync(join(dist, name), "utf8");
    if (/<\/(script|style)|<!--/i.test(text))
      throw new Failure(`${name} cannot stand inside a page: it would end its tag.`);
    return text;
  };
  const page = readFileSync(join(dist, "index.html"), "utf8")
    .replace(/<link rel="stylesheet" href="([^"]+)" \/>/g, (_tag, name) => `<style>\n${inside(name)}</style>`)
    .replace(/<script src="([^"]+)"><\/script>/g, (_tag, name) => `<script>\n${inside(name)}</script>`)
    // What a page fetches later is inside too, at the end.
    .replace("</body>", () => {
      const later = ["kv-capacity-more.js", "kv-capacity-lesson.js", "kv-capacity-play.js"];
      return `${later.map((name) => `<script>\n${inside(name)}</script>\n`).join("")}</body>`;
    });
  writeFileSync(join(dist, "kv-capacity.html"), page);
}

/** Builds the kernels and the site. */
export async function build() {
  buildPreset("wasm");
  await buildSite();
}

/** Builds the site from kernels that are built. */
export async function buildSite() {
  const esbuild = await import("esbuild");
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  const write = async (entry, output, options) =>
    writeFileSync(join(dist, output), await bundle(esbuild, entry, options));
  await write("classic.ts", "kv-capacity.js", { format: "iife" });
  await write("more/classic.ts", "kv-capacity-more.js", { format: "iife" });
  const external = ["more", "lesson", "play"].map((name) => `./kv-capacity-${name}.mjs`);
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
  await write("cli.ts", "cli.mjs", {
    format: "esm",
    platform: "node",
    banner: { js: "#!/usr/bin/env node" },
  });
  chmodSync(join(dist, "cli.mjs"), 0o755);
  copyFileSync(join(kernels, "kernel.wasm"), join(dist, "kv-capacity.wasm"));
  copyFileSync(join(kernels, "kernel_full.wasm"), join(dist, "kv-capacity-more.wasm"));
  copyPages();
  writeOneFile();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    await setup();
    await build();
    say(`Built ${dist}`);
  });
}
