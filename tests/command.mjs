// What the commands that test share: the build that they are about, and options that are numbers.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../cpp/toolchain/setup.mjs";
import { Failure } from "../cpp/toolchain/terminal.mjs";
import { build } from "../web/build.mjs";

/** Set by tests/run.mjs for all that it starts. */
export const inTestRun = Boolean(process.env.KV_CAPACITY_TEST_RUN);

/** Builds the site as the sources are now. Under `npm test` another suite has, and others may be using it. */
export async function buildOnce() {
  if (!inTestRun || !existsSync(join(projectFolder, "web/dist/kv-capacity.mjs"))) await build();
}

/** The number that an option's text says. */
export function wholeOption(name, text, least) {
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw new Failure(`--${name} takes a whole number from ${least}, not "${text}".`);
  return Number(text);
}
