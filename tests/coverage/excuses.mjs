// Lines that no test runs, as they stand in the file, each with the reason: tests/coverage.json. A reason in place of the
// lines excuses a whole file.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";

/** The excuses of one part. */
export function excuses(part) {
  const listed = JSON.parse(readFileSync(join(projectFolder, "tests/coverage.json"), "utf8"))[part];
  const used = new Set();
  return {
    /** Whether the line of that text in that file is excused. */
    excused(file, text) {
      const whole = typeof listed[file] === "string";
      if (!whole && !listed[file]?.[text]) return false;
      used.add(whole ? file : `${file}: ${text}`);
      return true;
    },
    /** Excuses that nothing needed. */
    stale: () =>
      Object.entries(listed)
        .flatMap(([file, reasons]) =>
          typeof reasons === "string" ? [file] : Object.keys(reasons).map((text) => `${file}: ${text}`),
        )
        .filter((one) => !used.has(one)),
  };
}
