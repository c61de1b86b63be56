// The package's declarations: what TypeScript makes of the sources, of which only the files are kept that the package's
// entries lead to.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure } from "../cpp/toolchain/terminal.mjs";

const web = dirname(fileURLToPath(import.meta.url));
const source = join(web, "src");

/** Entries of the package, by the name of their source. */
const entries = ["module", "kernel-alone", "react"];

/** Writes the declarations into `folder`. That the sources are right is for `npm run check` to say. */
export async function writeTypes(folder) {
  const { default: ts } = await import("typescript");
  const { config } = ts.readConfigFile(join(web, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, web);
  const files = entries.map((name) => join(source, `${name}.ts`));
  const host = ts.createCompilerHost(options);
  const made = new Map();
  host.writeFile = (name, text) => made.set(name, text);
  const program = ts.createProgram({
    rootNames: [...files, join(source, "assets.d.ts")],
    options: {
      ...options,
      // So that it writes addresses that Node resolves too.
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      noCheck: true,
      rootDir: source,
      outDir: folder,
      declarationDir: folder,
    },
    host,
  });
  const { diagnostics } = program.emit();
  if (diagnostics.length > 0) throw new Failure(ts.formatDiagnostics(diagnostics, host));
  const wanted = new Set(entries.map((name) => join(folder, `${name}.d.ts`)));
  for (const name of wanted) {
    const text = made.get(name);
    if (text === undefined) throw new Failure(`${name} is asked for by another declaration and is not there`);
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      if (fileName.startsWith(".")) wanted.add(join(dirname(name), fileName.replace(/\.js$/, ".d.ts")));
    }
    mkdirSync(dirname(name), { recursive: true });
    writeFileSync(name, text);
  }
}
