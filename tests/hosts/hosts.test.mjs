// The ordinary places, each built from its real package with the README's lines: what a reader, a host's own way from page
// to page, and a framework do to the widget. KV_HOSTS=all runs all, otherwise those that come without npm.
import { describe } from "node:test";
import { testApp } from "./apps.mjs";
import { hosts, installDebian, installNpm, lacking } from "./hosts.mjs";
import { testPages } from "./pages.mjs";
import { testSlides } from "./slides.mjs";

const tests = { pages: testPages, slides: testSlides, app: testApp };
const chosen = hosts.filter(({ npm }) => !npm || process.env.KV_HOSTS === "all");

const once = (work) => {
  let done;
  return () => {
    done ??= work();
    return done;
  };
};
const npm = once(installNpm);
// A machine that may not install has what it has.
const debian = once(() => installDebian(chosen).catch(({ message }) => console.log(message)));

const ready = (host) => async () => {
  if (host.npm) return npm();
  if (!lacking(host)) return undefined;
  await debian();
  const name = lacking(host);
  return name && `${name} is not installed here`;
};

// Two at a time: generators mostly use one processor.
describe("hosts", { concurrency: 2 }, () => {
  for (const host of hosts) {
    const skip = !chosen.includes(host) && "npm run test:hosts runs it";
    tests[host.kind](host, ready(host), { skip, timeout: 900_000, concurrency: 1 });
  }
});
