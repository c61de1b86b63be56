// What the set-up and the runners share: running a command with its progress shown,
// and an error that is one sentence for the reader instead of a stack trace.
import { spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** An error whose message says what failed and what to do; it is printed without a stack. */
export class Failure extends Error {}

/** Where everything lives that a second clone should not have to fetch again. */
export const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kv-capacity");

export const say = (text) => process.stderr.write(`${text}\n`);

const seconds = (since) => `${Math.round((Date.now() - since) / 1000)} s`;

/**
 * Runs a command that may take long: says what it is for, shows the time that goes by, keeps its
 * output in a log file, and fails with the last lines of that output and with `remedy`.
 */
export async function runQuietly(what, remedy, command, args, options = {}) {
  const logs = join(cacheFolder(), "logs");
  mkdirSync(logs, { recursive: true });
  const log = join(logs, `${process.pid}-${what.replace(/\W+/g, "-").toLowerCase()}.log`);
  const file = openSync(log, "w");
  const start = Date.now();
  const tty = process.stderr.isTTY;
  if (!tty) say(`${what} …`);
  const show = () => (tty ? process.stderr.write(`\r${what} … ${seconds(start)} `) : say(`  … ${seconds(start)}`));
  const ticker = setInterval(show, tty ? 1000 : 15000);
  const status = await new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", file, file] });
    child.on("error", () => resolve(127));
    child.on("close", (code, signal) => resolve(signal ? 128 : code));
  });
  clearInterval(ticker);
  if (status === 0) {
    say(`${tty ? "\r" : ""}${what}: done in ${seconds(start)}.`);
    return;
  }
  if (tty) say("");
  const tail = readFileSync(log, "utf8").trim().split("\n").slice(-8).join("\n  ");
  if (tail) say(`  ${tail}`);
  throw new Failure(`${what} failed (log: ${log}). ${remedy}`);
}

/** Runs `main`; a Failure becomes one sentence on standard error and exit status 1. */
export async function runMain(main) {
  try {
    const status = await main();
    if (typeof status === "number") process.exitCode = status;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(`kv-capacity: ${error.message}`);
    process.exitCode = 1;
  }
}
