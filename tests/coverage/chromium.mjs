// Chromium's own counting of what is run of the built scripts, in every page, frame and worker of a browser.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ranIn } from "./mapping.mjs";

/** No renderer takes this long to answer unless it is gone, in milliseconds. */
const PATIENCE = 30_000;

let browsers = 0;

/** The names and texts of the scripts in a folder that know their sources. */
export const scriptsOf = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => /\.m?js$/.test(name))
    .map((name) => [name, readFileSync(join(folder, name), "utf8")])
    .filter(([, text]) => /\n\/\/# sourceMappingURL=\S+\s*$/.test(text));

/** What the file is called that says what a browser ran of a script. */
export const scriptOf = (file) => file.replace(/\.\d+\.\d+$/, "").replaceAll("~", "/");

/**
 * Counts in `browser` (puppeteer's) from now on. Scripts are told by the length of their text, since they also stand
 * inside pages. `take` has to be called before a page is closed or goes elsewhere; `write` puts what was run of each
 * script of `site` into `folder`.
 */
export async function countIn(browser, site, folder) {
  const scripts = new Map();
  for (const [name, { length }] of scriptsOf(site))
    scripts.set(length, { name, ran: new Uint8Array(length), offset: 0 });
  // Inside a page it begins on a line of its own.
  for (const [length, script] of [...scripts])
    if (!scripts.has(length + 1)) scripts.set(length + 1, { ...script, offset: 1 });

  const sessions = new Map();
  const starting = new Set();
  const watch = async (session) => {
    const known = new Map();
    sessions.set(session, known);
    const counted = [
      session.send("Profiler.enable"),
      session.send("Profiler.startPreciseCoverage", { callCount: true, detailed: true }),
    ];
    await Promise.all([...counted, attach(session)]);
  };
  const begin = (session) => {
    // A page may be gone before it has answered.
    const started = watch(session)
      .catch(() => sessions.delete(session))
      .finally(() => starting.delete(started));
    starting.add(started);
    session.send("Runtime.runIfWaitingForDebugger").catch(() => {});
  };
  const attach = (session) => {
    session.on("sessionattached", begin);
    session.on("sessiondetached", (gone) => sessions.delete(gone));
    return session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
  };

  const takeFrom = async ([session, known]) => {
    const { result } = await session.send("Profiler.takePreciseCoverage");
    for (const { scriptId, url, functions } of result) {
      if (!url || url.startsWith("pptr:")) continue;
      // The whole script comes first, but is left out where it was told before and nothing of it ran since. Ids begin anew
      // where a page moves to another process.
      const key = `${scriptId} ${url}`;
      const [{ startOffset, endOffset }] = functions[0].ranges;
      if (startOffset === 0) known.set(key, scripts.get(endOffset));
      const script = known.get(key);
      if (!script) continue;
      const { ran, offset } = script;
      const now = ranIn(functions, ran.length + offset);
      for (let at = 0; at < ran.length; at++) ran[at] |= now[at + offset];
    }
  };

  await attach(await browser.target().createCDPSession());
  return {
    async take() {
      while (starting.size > 0) await Promise.all(starting);
      const late = new Promise((resolve) => setTimeout(resolve, PATIENCE).unref());
      await Promise.all([...sessions].map((one) => Promise.race([takeFrom(one).catch(() => {}), late])));
    },
    write() {
      const number = browsers++;
      for (const { name, ran, offset } of scripts.values()) {
        if (offset > 0 || !ran.includes(1)) continue;
        writeFileSync(join(folder, `${name.replaceAll("/", "~")}.${process.pid}.${number}`), ran);
      }
    },
  };
}
