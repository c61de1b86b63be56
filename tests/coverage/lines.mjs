// Lines that no test runs, as they stand in the file, each with the reason: tests/coverage.json. A reason in place of the
// lines excuses a whole file, also one that is in nothing that is counted.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { say } from "../../cpp/toolchain/terminal.mjs";

const excuses = (part) => JSON.parse(readFileSync(join(projectFolder, "tests/coverage.json"), "utf8"))[part];

/** Counts the lines of one part, with its excuses. */
export function lineCount(part, listed = excuses(part)) {
  const counted = new Set();
  const used = new Set();
  const total = { run: 0, missed: 0, excused: 0 };
  const excused = (file, text) => {
    const whole = typeof listed[file] === "string";
    if (!whole && !listed[file]?.[text]) return false;
    used.add(whole ? file : `${file}: ${text}`);
    return true;
  };
  return {
    total,
    /** Adds a file's lines (whether each was run, by its number from 1) to `total`; those that nothing excuses. */
    add(file, lines, texts) {
      counted.add(file);
      const unrun = [...lines.keys()]
        .filter((line) => !lines.get(line))
        .sort((one, other) => one - other)
        .map((line) => ({ line, text: texts[line - 1].trim() }));
      const missed = unrun.filter(({ text }) => !excused(file, text));
      total.run += lines.size - unrun.length;
      total.missed += missed.length;
      total.excused += unrun.length - missed.length;
      for (const { line, text } of missed) say(`${file}:${line} is not run: ${text}`);
      return missed;
    },
    /** Those of `files` of which nothing could be counted, since they are in nothing that was run. */
    strays(files) {
      const strays = files.filter((file) => !counted.has(file) && !excused(file));
      for (const file of strays) say(`${file} is in nothing that is counted`);
      return strays;
    },
    /** Excuses that nothing needed. */
    stale() {
      const stale = Object.entries(listed)
        .flatMap(([file, reasons]) =>
          typeof reasons === "string" ? [file] : Object.keys(reasons).map((text) => `${file}: ${text}`),
        )
        .filter((one) => !used.has(one));
      for (const one of stale) say(`Excused, but run or gone: ${one}`);
      return stale;
    },
  };
}
