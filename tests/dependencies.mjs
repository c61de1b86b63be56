// Packages of others: each is used, each import is of one that package.json names, and the licences of all are known, those
// of the tests' sites too.
import { existsSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";

/** Licences of tools that a project under any licence may be built with. */
const LICENCES = [
  "MIT",
  "MIT-0",
  "ISC",
  "0BSD",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "MPL-2.0",
  "Python-2.0",
  "BlueOak-1.0.0",
];

/**
 * Those that the tests' sites bring along besides, of which nothing goes into what is built: data in the public domain or
 * under its authors' names, and a library of pictures that is linked to.
 */
const HOSTS_LICENCES = [...LICENCES, "CC0-1.0", "CC-BY-4.0", "LGPL-3.0-or-later"];

/** Licences that a package's files name and its manifest does not, or in another way than the lock reads. */
const IN_FILES = {
  "eval@0.1.8": "MIT",
  "format@0.2.2": "MIT",
  "require-like@0.1.2": "MIT",
  "zod-to-ts@1.2.0": "MIT",
};

/**
 * Whether a licence expression of SPDX is met by one of `licences`: any of those joined by OR, all of those joined by AND.
 */
function accepted(expression = "", licences) {
  const parts = expression.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return parts.some((part) => part.split(" AND ").every((one) => licences.includes(one)));
}

/** What an import names: the package, without a path into it. */
const packageOf = (specifier) => specifier.match(/^(@[^/]+\/)?[^/]+/)[0];

/** Complaints about the licences in a lock file's packages. */
function licencesIn(file, locked, licences) {
  const found = [];
  for (const [path, { license, version }] of Object.entries(locked)) {
    if (!path) continue;
    const name = `${path.replace(/^.*node_modules\//, "")}@${version}`;
    const said = license ?? IN_FILES[name];
    if (!accepted(said, licences)) found.push(`${file}: ${path} has the licence "${said}"`);
  }
  return found;
}

/**
 * Complaints about the packages of the project's root and about all licences, one a line. `files` are the project's, by
 * their paths in it.
 */
export async function packages(project, files) {
  // Once the packages are installed.
  const { default: ts } = await import("typescript");
  const read = (name) => readFileSync(join(project, name), "utf8");
  const { name: own, devDependencies: declared } = JSON.parse(read("package.json"));
  const { packages: locked } = JSON.parse(read("package-lock.json"));
  const found = [];

  // Sites of the hosts have packages of their own.
  const code = files
    .filter((name) => /\.([cm]?js|tsx?)$|tsconfig\.json$/.test(name) && !/^tests\/hosts\/[^/]+\//.test(name))
    .map((name) => ({ name, text: read(name) }));
  for (const name of Object.keys(declared)) {
    const manifest = join(project, "node_modules", name, "package.json");
    const { bin = {} } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")) : {};
    const names = [name, name.replace("@types/", ""), ...(typeof bin === "string" ? [] : Object.keys(bin))];
    const quoted = new RegExp(`["'\`](${names.join("|")})(["'\`/]|-\\$)`);
    if (!code.some(({ text }) => quoted.test(text))) found.push(`package.json: ${name} is used by nothing`);
  }

  const known = [own, ...Object.keys(declared), ...Object.keys(declared).map((name) => name.replace("@types/", ""))];
  for (const { name, text } of code) {
    for (const { fileName: specifier } of ts.preProcessFile(text, true, true).importedFiles) {
      if (/^\.|^(node|kernel|words):/.test(specifier) || builtinModules.includes(specifier)) continue;
      if (!known.includes(packageOf(specifier)))
        found.push(`${name} imports ${specifier}, which package.json does not name`);
    }
  }

  const hosts = "tests/hosts/package-lock.json";
  found.push(
    ...licencesIn("package-lock.json", locked, LICENCES),
    ...licencesIn(hosts, JSON.parse(read(hosts)).packages, HOSTS_LICENCES),
  );
  return found.join("\n");
}
