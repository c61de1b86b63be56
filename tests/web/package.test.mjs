// The package as somebody installs it: what it holds, that each way in can be imported where there is no page, type-checked
// and bundled, and that copies of it do not get in each other's way.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { browsers } from "./browsers.mjs";
import { becomes, until } from "./reader.mjs";
import { serve } from "./site.mjs";

const project = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));

/** All that the package holds beside its declarations, which are held against each other below. */
const CONTENTS = [
  "LICENSE",
  "README.md",
  "package.json",
  "web/dist/THIRD-PARTY-NOTICES.txt",
  "web/dist/cli.mjs",
  "web/dist/custom-elements.json",
  "web/dist/embed.css",
  "web/dist/embed.html",
  "web/dist/embed.js",
  "web/dist/kernel.mjs",
  "web/dist/kv-capacity-lesson.js",
  "web/dist/kv-capacity-lesson.mjs",
  "web/dist/kv-capacity-more.js",
  "web/dist/kv-capacity-more.mjs",
  "web/dist/kv-capacity-more.wasm",
  "web/dist/kv-capacity-nowasm.js",
  "web/dist/kv-capacity-play.js",
  "web/dist/kv-capacity-play.mjs",
  "web/dist/kv-capacity.html",
  "web/dist/kv-capacity.js",
  "web/dist/kv-capacity.mjs",
  "web/dist/kv-capacity.wasm",
  ...readdirSync(join(project, "web/locales"))
    .filter((name) => !name.startsWith("en"))
    .flatMap((name) => [".js", ".mjs"].map((form) => `web/dist/locales/${name.replace(".json", form)}`)),
];

const read = (...path) => readFileSync(join(...path), "utf8");
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
/** A valid module of the same content that is not the same file. */
const rebuilt = (wasm) => Buffer.concat([wasm, Buffer.from([0, 2, 1, 120])]);

let folder;
let packed;
let installed;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "kv-capacity-package-"));
  const pack = ["pack", "--json", "--silent", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", pack, { cwd: project });
  [packed] = JSON.parse(stdout);
  writeFileSync(join(folder, "package.json"), '{"name": "consumer", "private": true, "type": "module"}');
  const quiet = ["--offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await run("npm", ["install", ...quiet, `./${packed.filename}`], { cwd: folder });
  installed = join(folder, "node_modules/kv-capacity");
});
after(() => folder && rmSync(folder, { recursive: true, force: true }));

/** Runs a module in the folder where the package is installed; gives what it printed as JSON. */
async function inNode(text) {
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "--eval", text], { cwd: folder });
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}

describe("the package", { timeout: 300_000 }, () => {
  it("holds what it should and nothing else, and asks for no other package", () => {
    const files = packed.files.map(({ path }) => path);
    const types = files.filter((path) => path.startsWith("web/dist/types/"));
    assert.deepEqual(files.filter((path) => !types.includes(path)).sort(), CONTENTS.sort());
    assert.ok(types.length > 10 && types.every((path) => path.endsWith(".d.ts")), types.join());
    assert.deepEqual(
      readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith(".")),
      ["kv-capacity"],
    );
    assert.equal(manifest.dependencies, undefined);
  });

  it("gives notice of what is compiled into it", () => {
    const text = read(installed, "web/dist/THIRD-PARTY-NOTICES.txt");
    for (const part of [
      /RapidJSON.*MIT[\s\S]*Copyright \(C\) \d{4} THL A29 Limited[\s\S]*Permission is hereby granted/,
      /Emscripten.*MIT[\s\S]*Copyright \d{4} The Emscripten Authors[\s\S]*Permission is hereby granted/,
      /musl.*MIT[\s\S]*Copyright © [\d-]+ Rich Felker/,
      /Apache License v2\.0 with LLVM Exceptions/,
    ]) {
      assert.match(text, part);
    }
    assert.match(read(installed, "LICENSE"), /MIT License/);
  });

  it("is imported by every one of its ways in where there is no page, and leaves no trace (D15, D31)", async () => {
    const ways = Object.keys(manifest.exports).flatMap((way) =>
      way.includes("*")
        ? ["de", "ar", "ar-play"].map((name) => way.replace("*", `${name}.mjs`))
        : way === "./react"
          ? []
          : [way],
    );
    assert.ok(ways.length >= 9);
    const specifiers = ways.map((way) => `kv-capacity${way.slice(1)}`);
    const found = await inNode(`
      const before = Object.keys(globalThis).length;
      const events = process.eventNames().length;
      const out = {};
      for (const specifier of ${JSON.stringify(specifiers)}) {
        if (/\\.(wasm|html)$/.test(specifier)) {
          const { readFileSync } = await import("node:fs");
          out[specifier] = readFileSync(new URL(import.meta.resolve(specifier))).length;
        } else {
          const attributes = specifier.endsWith(".json") ? { with: { type: "json" } } : undefined;
          out[specifier] = Object.keys(await import(specifier, attributes)).length;
        }
      }
      out.globals = Object.keys(globalThis).length - before;
      out.events = process.eventNames().length - events;
      console.log(JSON.stringify(out));`);
    for (const specifier of specifiers) {
      // The classic script gives nothing to whoever imports it.
      if (specifier.endsWith(".js")) assert.equal(found[specifier], 0, specifier);
      else assert.ok(found[specifier] > 0, specifier);
    }
    assert.deepEqual([found.globals, found.events], [0, 0]);
  });

  it("computes in Node, in a worker of it, and from bytes that are handed over", async () => {
    const found = await inNode(`
      import { readFileSync } from "node:fs";
      import { Worker } from "node:worker_threads";
      import * as elements from "kv-capacity";
      import { loadKernel, VERSION, WASM_SHA256 } from "kv-capacity/kernel";
      const kernel = await loadKernel();
      const request = { model: "llama-3-8b" };
      const bytes = readFileSync(new URL(import.meta.resolve("kv-capacity/kv-capacity-more.wasm")));
      const sequences = async (wasm) => (await loadKernel({ wasm })).plan(request).sequences;
      const worker = new Worker(
        \`
        Promise.all([import("node:worker_threads"), import("kv-capacity/kernel")]).then(async ([threads, kernel]) => {
          const { plan } = await kernel.loadKernel();
          threads.parentPort.postMessage(plan({ model: "llama-3-8b" }).sequences);
        })\`, { eval: true });
      const inWorker = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
      const { error } = kernel.plan({ model: "nothing" });
      console.log(JSON.stringify({
        VERSION, WASM_SHA256, inWorker, error,
        versions: [kernel.version, elements.VERSION],
        handed: [await sequences(bytes), await sequences(new WebAssembly.Module(bytes))],
        plan: kernel.plan(request).sequences,
        text: JSON.parse(kernel.planText(JSON.stringify(request))).sequences,
        models: kernel.catalogue().models.length,
        config: kernel.importModel({ kind: "config", content: readFileSync(${JSON.stringify(join(project, "tests/data/configs/plain-llama.json"))}, "utf8") }).model.layers.length,
        log: kernel.readLog(readFileSync(${JSON.stringify(join(project, "tests/data/logs/llama.cpp-b1761-phi-2.log"))})).engine,
        servers: kernel.paging({ step: 10 }).servers.length,
        questions: kernel.quiz({ seed: 1, count: 4 }).questions.length,
        verdict: kernel.quiz({ seed: 1, count: 4, check: { question: 0, value: 0 } }).verdict,
        wish: kernel.wish({ request, sequences: 100 }).gpus.count,
        nonsense: [kernel.wish(), kernel.importModel({ kind: 5, content: "x" }), kernel.paging(5)].map((one) => typeof one.error.code),
      }));`);
    const { VERSION, WASM_SHA256, versions, error, models, ...rest } = found;
    assert.equal(VERSION, manifest.version);
    assert.deepEqual(versions, [VERSION, VERSION]);
    for (const [name, hash] of Object.entries(WASM_SHA256)) {
      assert.equal(hash, sha256(readFileSync(join(installed, "web/dist", name))), name);
    }
    assert.deepEqual(Object.keys(WASM_SHA256), ["kv-capacity.wasm", "kv-capacity-more.wasm"]);
    assert.equal(error.field, "model");
    assert.ok(models > 50);
    assert.deepEqual(rest, {
      inWorker: 52,
      handed: [52, 52],
      plan: 52,
      text: 52,
      config: 1,
      log: "llama.cpp",
      servers: 3,
      questions: 4,
      verdict: "wrong",
      wish: 2,
      nonsense: ["string", "string", "string"],
    });
  });

  it("refuses a kernel of another build, by the file's name", async () => {
    const copy = join(folder, "mismatched");
    cpSync(join(installed, "web/dist"), copy, { recursive: true });
    for (const name of ["kv-capacity.wasm", "kv-capacity-more.wasm"]) {
      writeFileSync(join(copy, name), rebuilt(readFileSync(join(copy, name))));
    }
    const found = await inNode(`
      const said = async (load) => load().then(() => "started", (error) => error.name + ": " + error.message);
      const { loadKernel } = await import("./mismatched/kv-capacity.mjs");
      const alone = await import("./mismatched/kernel.mjs");
      const { readFileSync } = await import("node:fs");
      const wasm = readFileSync("mismatched/kv-capacity-more.wasm");
      console.log(JSON.stringify([
        await said(() => loadKernel()), await said(() => alone.loadKernel()), await said(() => alone.loadKernel({ wasm })),
      ]));`);
    const sentence = (name) => `KernelError: ${name} is of another build than the script`;
    assert.deepEqual(found, ["kv-capacity.wasm", "kv-capacity-more.wasm", "kv-capacity-more.wasm"].map(sentence));
  });

  it("does without WebAssembly in Node too", async () => {
    const sequences = await inNode(`
      delete globalThis.WebAssembly;
      const { loadKernel } = await import("kv-capacity/kernel");
      console.log((await loadKernel()).plan({ model: "llama-3-8b" }).sequences);`);
    assert.equal(sequences, 52);
  });
});

const CONSUMERS = {
  "elements.ts": `
    import { addLanguage, KvCapacity, loadKernel, VERSION, type Request } from "kv-capacity";
    const calculator: KvCapacity = document.createElement("kv-capacity");
    calculator.gpus = 4;
    calculator.request = { model: "llama-3-70b", kv: { k: "fp8", v: "fp8" } };
    calculator.addEventListener("kv-change", ({ detail }) => {
      const sequences: number | null | undefined = detail.plan?.sequences;
      return [sequences, detail.request.context, detail.error?.field, VERSION, addLanguage, loadKernel];
    });
    document.querySelector("kv-quiz")?.addEventListener("kv-summary", ({ detail }) => detail.right.toFixed());
    document.querySelector("kv-quiz")?.addEventListener("kv-answer", ({ detail }) => detail.question.kind.length);
    document.querySelector("kv-formula")?.addEventListener("kv-factor", ({ detail }) => detail.factor === "layers");
    document.createElement("kv-growth").play();
    document.createElement("kv-paging").pause();
    document.createElement("kv-capacity-table").run();
    document.createElement("kv-curve").picture("svg").then((file) => file.size);
    const links: string[] = [document.createElement("kv-attention"), document.createElement("kv-levers"),
      document.createElement("kv-memory"), document.createElement("kv-interview")].map(({ link }) => link);
    // @ts-expect-error: no such key
    export const wrong: Request = { modell: "x" };
    // @ts-expect-error: only the element sets this
    calculator.plan = null;
    // @ts-expect-error: no such form
    document.createElement("kv-curve").picture("gif");
    export default links;
  `,
  "kernel.ts": `
    import { KernelError, loadKernel, VERSION, WASM_SHA256, type Answer, type CapacityKernel } from "kv-capacity/kernel";
    const kernel: CapacityKernel = await loadKernel();
    const answer = kernel.plan({ model: "llama-3-8b", context: 8192 });
    export const sequences: number | null = "error" in answer ? null : answer.sequences;
    const verdict = kernel.quiz({ seed: 1, check: { question: 0, value: 1 } });
    export const right: boolean = "error" in verdict ? false : verdict.verdict === "right";
    const quiz = kernel.quiz();
    export const count: number = "error" in quiz ? 0 : quiz.questions.length;
    export const hash: string = WASM_SHA256["kv-capacity.wasm"] + VERSION;
    export const trouble = (error: unknown) => (error instanceof KernelError ? error.trouble === "csp" : false);
    await loadKernel({ wasm: new Uint8Array() });
    // @ts-expect-error: a refusal has no figures
    export const hasty = (answer: Answer | { error: { field: string } }): number => answer.kv_bytes_per_token;
    // @ts-expect-error: no such engine
    kernel.plan({ engine: "vLLM" });
  `,
  "react.tsx": `
    import type {} from "kv-capacity/react";
    export const page = (
      <section>
        <kv-capacity model="llama-3-70b" gpus={4} kv={{ k: "fp8", v: "fp8" }} lock="all" className="wide"
          onkv-change={({ detail }) => detail.plan?.sequences}><p>example</p></kv-capacity>
        <kv-growth for="calculator" step={4} />
        <kv-quiz seed={7} topics="room" onkv-summary={({ detail }) => detail.right} />
      </section>
    );
    // @ts-expect-error: no such attribute
    export const wrong = <kv-capacity modell="x" />;
  `,
};

describe("a consumer's types", { timeout: 300_000 }, () => {
  let ts;
  before(async () => {
    ({ default: ts } = await import("typescript"));
    for (const [name, text] of Object.entries(CONSUMERS)) writeFileSync(join(folder, name), text);
    mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
    for (const name of ["@types/react", "csstype"]) {
      symlinkSync(join(project, "node_modules", name), join(folder, "node_modules", name), "dir");
    }
  });

  const bundler = { module: "ESNext", moduleResolution: "Bundler" };
  const node = { module: "Node16", moduleResolution: "Node16" };
  for (const [files, options] of [
    [["elements.ts", "kernel.ts", "react.tsx"], bundler],
    [["elements.ts", "kernel.ts"], node],
    // Node has no document, and its own types of the platform are not everybody's.
    [["kernel.ts"], { ...node, lib: ["lib.es2023.d.ts"] }],
  ]) {
    it(`hold for ${files.join(", ")} under ${options.moduleResolution}${options.lib ? " without a DOM" : ""}`, () => {
      const settings = {
        strict: true,
        noEmit: true,
        skipDefaultLibCheck: true,
        target: ts.ScriptTarget.ES2022,
        types: [],
        jsx: ts.JsxEmit.ReactJSX,
        ...options,
        module: ts.ModuleKind[options.module],
        moduleResolution: ts.ModuleResolutionKind[options.moduleResolution],
      };
      const host = ts.createCompilerHost(settings);
      const names = files.map((file) => join(folder, file));
      const program = ts.createProgram(names, settings, host);
      const used = program.getSourceFiles().map(({ fileName }) => fileName);
      assert.ok(used.some((name) => name.includes("kv-capacity/web/dist/types/")));
      assert.ok(used.every((name) => !name.startsWith(join(project, "web"))));
      const found = ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host);
      assert.equal(found.replace(/\S*\/kv-capacity-package-\w+\//g, ""), "");
    });
  }

  it("name the values that the modules export, and no others", async () => {
    const settings = { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16, types: [] };
    const ways = ["", "/kernel"];
    const file = join(folder, "exports.ts");
    writeFileSync(file, ways.map((way) => `import "kv-capacity${way}";\n`).join(""));
    const host = ts.createCompilerHost(settings);
    const program = ts.createProgram([file], settings, host);
    const checker = program.getTypeChecker();
    const declared = (name) => {
      const { statements } = program.getSourceFile(file);
      const symbol = checker.getSymbolAtLocation(statements[ways.indexOf(name)].moduleSpecifier);
      const real = (one) => (one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one);
      return checker
        .getExportsOfModule(symbol)
        .filter((one) => !one.declarations.some(ts.isTypeOnlyImportOrExportDeclaration))
        .filter((one) => real(one).flags & ts.SymbolFlags.Value);
    };
    const exported = await inNode(`
      const out = {};
      for (const way of ${JSON.stringify(ways)}) out[way] = Object.keys(await import("kv-capacity" + way));
      const { loadKernel } = await import("kv-capacity/kernel");
      out.kernel = Object.keys(await loadKernel());
      console.log(JSON.stringify(out));`);
    for (const way of ways) {
      const names = declared(way).map(({ name }) => name);
      assert.ok(names.length >= 4, way);
      assert.deepEqual(names.sort(), exported[way].sort(), `kv-capacity${way}`);
    }
    const kernel = checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file).statements[1].moduleSpecifier))
      .find(({ name }) => name === "CapacityKernel");
    const members = checker.getDeclaredTypeOfSymbol(kernel).getProperties();
    assert.deepEqual(members.map(({ name }) => name).sort(), exported.kernel.sort());
  });
});

const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>consumer</title>
  <script type="module" src="./main.js"></script></head>
  <body><kv-capacity engine="vllm" gpu="h100-sxm-80gb">example</kv-capacity><kv-quiz seed="1">example</kv-quiz></body></html>`;
const MAIN = `
  import { VERSION } from "kv-capacity";
  import { loadKernel } from "kv-capacity/kernel";
  window.consumer = loadKernel().then((kernel) => [VERSION, kernel.plan({ model: "llama-3-8b" }).sequences]);
`;
/** A worker of a bundler that knows of workers. */
const WORKER = `
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  window.worker = new Promise((resolve) => worker.addEventListener("message", ({ data }) => resolve(data)));
`;

/** Asks the kernel everything that it answers, in a page without elements. */
const KERNEL_PAGE = `
  import { KernelError, loadKernel } from "./kernel.mjs";
  const kernel = await loadKernel();
  const request = { model: "llama-3-8b" };
  const config = ${JSON.stringify(read(project, "tests/data/configs/plain-llama.json"))};
  const said = (load) => load.then(() => "started", (error) => (error instanceof KernelError ? error.message : "?"));
  const wasm = await (await fetch("kv-capacity-more.wasm")).arrayBuffer();
  const worker = new Worker("kernel-worker.mjs", { type: "module" });
  window.told = {
    plan: kernel.plan(request).sequences,
    text: JSON.parse(kernel.planText(JSON.stringify(request))).sequences,
    field: kernel.plan({ model: "nobody" }).error.field,
    models: kernel.catalogue().models.length > 50,
    config: kernel.importModel({ kind: "config", content: config }).model.layers.length,
    bytes: kernel.importModel({ kind: "config", content: new TextEncoder().encode(config) }).model.layers.length,
    log: kernel.readLog("INFO 01-01 [gpu.py:1] GPU KV cache size: 425,984 tokens").engine,
    servers: kernel.paging().servers.length,
    questions: kernel.quiz().questions.length > 0,
    wish: kernel.wish({ request, sequences: 100 }).gpus.count,
    nonsense: [kernel.wish(), kernel.importModel({ kind: 5, content: "x" }), kernel.paging(5)].map((one) => typeof one.error.code),
    handed: (await loadKernel({ wasm: await WebAssembly.compile(wasm) })).plan(request).sequences,
    changed: await said(loadKernel({ wasm: wasm.slice(0, -1) })),
    worker: await new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data))),
  };`;

describe("a consumer's bundle in Chromium", { timeout: 300_000 }, () => {
  let site;
  let browser;
  let page;

  before(async () => {
    const root = join(folder, "site");
    const built = join(installed, "web/dist");
    cpSync(built, root, { recursive: true });
    // A later version beside this one, and one whose kernel is not its own.
    cpSync(built, join(root, "later"), { recursive: true });
    for (const name of readdirSync(join(root, "later")).filter((one) => /\.m?js$/.test(one))) {
      const file = join(root, "later", name);
      writeFileSync(file, read(file).replaceAll(`"${manifest.version}"`, '"99.0.0"'));
    }
    cpSync(built, join(root, "mismatched"), { recursive: true });
    const kernel = join(root, "mismatched/kv-capacity.wasm");
    writeFileSync(kernel, rebuilt(readFileSync(kernel)));
    // A server that answers with its own page whatever is asked for.
    mkdirSync(join(root, "astray"));
    cpSync(join(built, "kv-capacity.mjs"), join(root, "astray/kv-capacity.mjs"));
    writeFileSync(join(root, "astray/kv-capacity.wasm"), "<!doctype html><title>Home</title>");

    const source = join(folder, "source");
    mkdirSync(source);
    writeFileSync(join(source, "index.html"), PAGE);
    writeFileSync(join(source, "main.js"), MAIN + WORKER);
    writeFileSync(join(source, "plain.js"), MAIN);
    writeFileSync(
      join(source, "worker.js"),
      'import { loadKernel } from "kv-capacity/kernel"; loadKernel().then((kernel) => postMessage(kernel.plan({ model: "llama-3-8b" }).sequences));',
    );
    const vite = await import("vite");
    await vite.build({
      root: source,
      base: "./",
      configFile: false,
      logLevel: "silent",
      worker: { format: "es" },
      build: { outDir: join(root, "vite"), emptyOutDir: true },
    });
    const esbuild = await import("esbuild");
    await esbuild.build({
      entryPoints: [join(source, "plain.js")],
      outfile: undefined,
      outdir: join(root, "esbuild"),
      entryNames: "main",
      bundle: true,
      splitting: true,
      minify: true,
      format: "esm",
      logLevel: "error",
    });
    writeFileSync(join(root, "esbuild/index.html"), PAGE);
    // esbuild leaves addresses of files as they are: they are put beside what it writes.
    for (const name of ["kv-capacity.wasm", "kv-capacity-more.wasm"])
      cpSync(join(built, name), join(root, "esbuild", name));
    const html = (tags) => ({
      html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>copies</title></head><body>${tags}</body></html>`,
    });
    const both = (path, query = "") =>
      `<script src="${path}kv-capacity.js${query}"></script>
       <script type="module" src="${path}kv-capacity.mjs${query}"></script>`;
    const alone = (path) =>
      `<script type="module" src="${path}kv-capacity.mjs"></script>
       <kv-capacity><p id="example">example</p></kv-capacity>`;
    site = await serve(root, {
      "/copies.html": html(
        `${both("")}${both("later/")}${both("later/", "?again")}
        <kv-capacity>example</kv-capacity><kv-growth>example</kv-growth><kv-quiz seed="1">example</kv-quiz>`,
      ),
      "/kernel.html": html(`<script type="module">${KERNEL_PAGE}</script>`),
      "/kernel-worker.mjs": {
        headers: { "content-type": "text/javascript" },
        body: `import { loadKernel } from "./kernel.mjs";
          postMessage((await loadKernel()).plan({ model: "llama-3-8b" }).sequences);`,
      },
      "/mismatched.html": html(alone("mismatched/")),
      "/astray.html": html(alone("astray/")),
    });
    browser = await browsers.Chromium();
    page = await browser.page();
    await page.resize(1280, 1000);
  });
  after(async () => {
    await browser?.close();
    await site?.close();
  });

  const open = async (path) => {
    site.asked.length = 0;
    await page.goto(`${site.origin}${path}`);
  };
  const computed = () =>
    until("an answer", () => page.evaluate(() => document.querySelector("kv-capacity")?.plan?.sequences));
  const quiz = () =>
    until("the quiz", () =>
      page.evaluate(() => {
        const quiz = document.querySelector("kv-quiz");
        quiz.scrollIntoView({ behavior: "instant" });
        return quiz.shadowRoot?.querySelector(".kv")?.className === "kv";
      }),
    );
  const problems = () => page.evaluate(() => window.problems);

  for (const bundler of ["vite", "esbuild"]) {
    it(`of ${bundler} computes, with engines, quiz and the kernel alone (D14)`, async () => {
      await open(`/${bundler}/`);
      assert.ok((await computed()) > 10);
      await quiz();
      await becomes(() => page.evaluate(() => window.consumer), [manifest.version, 52]);
      if (bundler === "vite") assert.equal(await page.evaluate(() => window.worker), 52);
      assert.deepEqual(await problems(), []);
      const strays = site.asked.filter((path) => !path.startsWith(`/${bundler}/`) && path !== "/recorder.js");
      assert.deepEqual(
        strays.filter((path) => path !== "/favicon.ico"),
        [],
      );
    });
  }

  it("needs no bundle for the kernel alone, in a page and in a worker", async () => {
    await open("/kernel.html");
    assert.deepEqual(await until("its answers", () => page.evaluate(() => window.told)), {
      plan: 52,
      text: 52,
      field: "model",
      models: true,
      config: 1,
      bytes: 1,
      log: "vllm",
      servers: 3,
      questions: true,
      wish: 2,
      nonsense: ["string", "string", "string"],
      handed: 52,
      changed: "kv-capacity-more.wasm is of another build than the script",
      worker: 52,
    });
    assert.deepEqual(await problems(), []);
  });

  it("stands beside other copies and versions, classic and module, without an error (D30)", async () => {
    await open("/copies.html");
    assert.equal(await computed(), 52);
    await quiz();
    await until("the picture", () =>
      page.evaluate(() => document.querySelector("kv-growth").shadowRoot?.querySelector(".kv")?.className === "kv"),
    );
    assert.deepEqual(await problems(), []);
    const kernels = site.asked.filter((path) => path.endsWith("/kv-capacity.wasm"));
    assert.deepEqual(kernels, [], "the first copy's kernel serves all");
  });

  for (const [path, sentence] of [
    ["/mismatched.html", /kv-capacity\.wasm is of another build than the script/],
    ["/astray.html", /A file of the calculator did not arrive/],
  ]) {
    it(`says what is wrong with a kernel that is not its own, and leaves the example (D9): ${path}`, async () => {
      await open(path);
      const said = await until("the refusal", () =>
        page.evaluate(
          () => document.querySelector("kv-capacity").shadowRoot?.querySelector(".failed .trouble")?.textContent,
        ),
      );
      assert.match(said, sentence);
      assert.ok(await page.evaluate(() => document.getElementById("example").getBoundingClientRect().height > 0));
    });
  }

  it("has the attributes and members that its manifest says", async () => {
    const { modules } = JSON.parse(read(installed, "web/dist/custom-elements.json"));
    const declarations = modules.flatMap((module) => module.declarations);
    assert.ok(
      modules.every(({ path }) => readdirSync(join(installed, dirname(path))).includes(path.split("/").at(-1))),
    );
    await open("/copies.html");
    const found = await page.evaluate(async (tags) => {
      await import("./kv-capacity-lesson.mjs");
      await import("./kv-capacity-play.mjs");
      return tags.map(({ tagName, members }) => {
        const element = document.createElement(tagName);
        return {
          tag: tagName,
          name: element instanceof HTMLUnknownElement || element.constructor === HTMLElement ? "none" : "defined",
          observed: element.constructor.observedAttributes,
          missing: members.filter(({ name }) => !(name in element)).map(({ name }) => name),
          methods: members.filter(({ name }) => typeof element[name] === "function").map(({ name }) => name),
        };
      });
    }, declarations);
    assert.equal(found.length, 11);
    for (const [at, { tag, name, observed, missing, methods }] of found.entries()) {
      const { attributes, members } = declarations[at];
      assert.equal(name, "defined", tag);
      const said = attributes.map((attribute) => attribute.name);
      assert.deepEqual(
        observed.filter((attribute) => !said.includes(attribute)),
        [],
        tag,
      );
      assert.deepEqual(missing, [], tag);
      assert.deepEqual(
        methods,
        members.filter(({ kind }) => kind === "method").map((member) => member.name),
        tag,
      );
    }
  });
});
