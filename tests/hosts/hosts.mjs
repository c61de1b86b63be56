// The hosts: how each gets its packages, its sources, the widget's files and its build, all below build/hosts/.
import { execFile, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { installPackages, which } from "../../cpp/toolchain/debian.mjs";
import { installNodeModules, nodeModulesAreCurrent, projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { dist } from "../web/site.mjs";

const sources = fileURLToPath(new URL(".", import.meta.url));
const work = join(projectFolder, "build/hosts");

const npx = (name, ...args) => ["npx", "--no-install", name, ...args];

/**
 * The ordinary places. `debian` and `npm` say where a host comes from, `folder` where the widget's files are copied to by
 * hand, where that is the way; `command` builds a site into `out`. A host has pages by a generator, slides, or an app.
 * `router`: it turns pages without loading a new document; `keeps`: it keeps what it takes out of the page.
 */
export const hosts = [
  { name: "html", kind: "pages", folder: ".", out: "." },
  {
    name: "mkdocs",
    kind: "pages",
    debian: ["mkdocs"],
    folder: "docs/kv-capacity",
    command: ["mkdocs", "build"],
    out: "site",
  },
  {
    name: "mkdocs-material",
    kind: "pages",
    debian: ["mkdocs", "mkdocs-material"],
    folder: "docs/kv-capacity",
    command: ["mkdocs", "build"],
    out: "site",
    router: true,
  },
  {
    name: "sphinx",
    kind: "pages",
    debian: ["python3-sphinx", "python3-myst-parser"],
    folder: "_static/kv-capacity",
    command: ["sphinx-build", "-q", "-b", "html", ".", "out"],
    out: "out",
  },
  {
    name: "hugo",
    kind: "pages",
    debian: ["hugo"],
    folder: "static/kv-capacity",
    command: ["hugo", "--quiet"],
    out: "public",
  },
  {
    name: "jupyter",
    kind: "pages",
    debian: ["jupyter-nbconvert"],
    folder: "kv-capacity",
    // A notebook asks two other servers for RequireJS and MathJax, unless it is told where else they are.
    command: [
      "jupyter-nbconvert",
      "--to=html",
      "--HTMLExporter.require_js_url=data:text/javascript,",
      "--HTMLExporter.mathjax_url=data:text/javascript,",
      "index.ipynb",
      "away.ipynb",
      "kept.ipynb",
    ],
    out: ".",
  },
  { name: "eleventy", kind: "pages", npm: true, command: npx("eleventy", "--quiet"), out: "_site" },
  {
    name: "vitepress",
    kind: "pages",
    npm: true,
    command: npx("vitepress", "build"),
    out: ".vitepress/dist",
    router: true,
  },
  {
    name: "docusaurus",
    kind: "pages",
    npm: true,
    command: npx("docusaurus", "build"),
    out: "build",
    router: true,
  },
  { name: "starlight", kind: "pages", npm: true, command: npx("astro", "build"), out: "dist" },
  { name: "reveal", kind: "slides", npm: true, folder: "kv-capacity", copies: ["reveal.js"], out: "." },
  ...["react", "vue", "svelte"].map((name) => ({
    name,
    kind: "app",
    npm: true,
    command: npx("vite", "build", "--base=/course/"),
    out: "dist",
    keeps: name === "vue",
  })),
];

/** How to see that a Debian package is there, whoever installed it. */
const present = {
  mkdocs: () => which("mkdocs"),
  "mkdocs-material": () => existsSync("/usr/share/mkdocs/themes/material/main.html") || importable("material"),
  "python3-sphinx": () => which("sphinx-build"),
  "python3-myst-parser": () => importable("myst_parser"),
  hugo: () => which("hugo"),
  "jupyter-nbconvert": () => which("jupyter-nbconvert"),
};

/** Debian's Python has its modules where another Python, earlier on PATH, does not look. */
function importable(module) {
  return ["/usr/bin/python3", "python3"].some((name) => spawnSync(name, ["-c", `import ${module}`]).status === 0);
}

/** Installs what the hosts need from Debian, as far as this machine lets it. */
export async function installDebian(wanted) {
  const missing = new Set(wanted.flatMap(({ debian = [] }) => debian).filter((name) => !present[name]()));
  await installPackages([...missing]);
}

/** The first Debian package of a host that is not here. */
export function lacking({ debian = [] }) {
  return debian.find((name) => !present[name]());
}

/** Installs the hosts that come from npm, and packs the widget as npm publishes it. */
export async function installNpm() {
  mkdirSync(work, { recursive: true });
  for (const name of ["package.json", "package-lock.json", ".npmrc"]) cpSync(join(sources, name), join(work, name));
  // Below "npm test" the project's engine-strict is in the environment, and would hold for hosts' packages as well.
  if (!nodeModulesAreCurrent(work))
    await installNodeModules(work, "Installing the hosts from npm", "--no-engine-strict");
  const packed = join(work, "packed");
  rmSync(packed, { recursive: true, force: true });
  mkdirSync(packed);
  writeFileSync(join(packed, "package.json"), '{ "private": true }');
  // It is built already.
  const [{ filename }] = JSON.parse(
    await run(projectFolder, "npm", "pack", "--json", "--ignore-scripts", `--pack-destination=${packed}`),
  );
  await run(packed, "npm", "install", "--no-audit", "--no-fund", "--offline", `./${filename}`);
}

/** Nothing that builds a site reports home or looks for news. */
const quiet = {
  ASTRO_TELEMETRY_DISABLED: "1",
  DO_NOT_TRACK: "1",
  NO_UPDATE_NOTIFIER: "1",
  npm_config_update_notifier: "false",
  CI: "1",
};

async function run(cwd, program, ...args) {
  const options = { cwd, env: { ...process.env, ...quiet }, timeout: 10 * 60 * 1000, maxBuffer: 1 << 28 };
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { message, stdout = "", stderr = "" } = error;
    throw new Failure(`${program} ${args.join(" ")} failed in ${cwd}:\n${message}\n${stdout}${stderr}`);
  }
}

/**
 * The README's blocks for each host: `<!-- host: mkdocs docs/index.md, hugo content/_index.md -->` before a fenced block
 * says in which files of which hosts it stands.
 */
export function snippets() {
  const text = readFileSync(join(projectFolder, "README.md"), "utf8");
  const found = [];
  for (const [, places, , code] of text.matchAll(/^<!-- host: (.+) -->\n+(```+)\w*\n([\s\S]*?)^\2$/gm)) {
    for (const place of places.split(", ")) {
      const [host, file] = place.split(" ");
      found.push({ host, file, code });
    }
  }
  return found;
}

/** A line that the README's block takes the place of, in any language's comments. */
const HERE = /^( *)(?:\/\/|#|\.\.|<!--) README(?: -->)?\n/m;

/** What a cell of a notebook shows after it ran: its source without the magic. */
function fillNotebook(text, code) {
  const lines = (source) => source.trimEnd().split(/^/m);
  const filled = JSON.parse(text, (key, value) => {
    if (JSON.stringify(value) !== '["README"]') return value;
    return lines(key === "source" ? code : code.replace(/^%%html\n/, ""));
  });
  return JSON.stringify(filled);
}

function write(folder, { file, code }) {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) return writeFileSync(path, code);
  const text = readFileSync(path, "utf8");
  if (file.endsWith(".ipynb")) return writeFileSync(path, fillNotebook(text, code));
  if (!HERE.test(text)) throw new Failure(`${path} has no line for the README's block`);
  writeFileSync(
    path,
    text.replace(HERE, (_line, indent) => code.replace(/^(?=.)/gm, indent)),
  );
}

/** Builds a host's site as its author would; the folder that is to be served. */
export async function build(host) {
  const folder = join(work, host.name);
  rmSync(folder, { recursive: true, force: true });
  if (host.folder) cpSync(dist, join(folder, host.folder), { recursive: true });
  cpSync(join(sources, host.name), folder, { recursive: true });
  const own = snippets().filter((one) => one.host === host.name);
  if (own.length === 0) throw new Failure(`The README says nothing of ${host.name}`);
  for (const one of own) write(folder, one);
  if (host.npm) {
    cpSync(join(work, "packed/node_modules/kv-capacity"), join(folder, "node_modules/kv-capacity"), {
      recursive: true,
    });
  }
  for (const name of host.copies ?? [])
    cpSync(join(work, "node_modules", name), join(folder, name), { recursive: true });
  if (existsSync(join(folder, "src/main.js")) || existsSync(join(folder, "src/main.jsx")))
    cpSync(join(sources, "own.js"), join(folder, "src/own.js"));
  if (host.command) await run(folder, ...host.command);
  return join(folder, host.out);
}
