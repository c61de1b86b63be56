// A made-up language, longer than English and in brackets: it finds text that is cut off, and text that no file of words has.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { browsers } from "./browsers.mjs";
import { rests, until } from "./reader.mjs";
import { visit } from "./visit.mjs";

const ACCENTS = {
  a: "á",
  e: "é",
  i: "í",
  o: "ó",
  u: "ú",
  y: "ý",
  c: "ç",
  n: "ñ",
  A: "Á",
  E: "É",
  I: "Í",
  O: "Ó",
  U: "Ú",
};

/** Accents and 40 % more length on what a reader sees of a message; names, plural forms and stresses stay. */
export function pseudo(message) {
  let out = "";
  let depth = 0;
  let plain = 0;
  for (let at = 0; at < message.length; ) {
    const rest = message.slice(at);
    const [kept] =
      rest.match(/^(?:\{\s*\w+\s*(?:,\s*plural\s*,|\}(?=))|\s*(?:=\d+|zero|one|two|few|many|other)\s*\{|<\/?b>)/) ?? [];
    const form = kept && /\{$/.test(kept);
    if (kept && (!form || depth > 0)) {
      if (/plural/.test(kept)) depth++;
      out += kept;
      at += kept.length;
      if (form) depth++;
      continue;
    }
    if (rest[0] === "}") depth--;
    else plain++;
    out += ACCENTS[rest[0]] ?? rest[0];
    at++;
  }
  return message === "" ? "" : `[${out}${" ~~~~".repeat(Math.ceil((plain * 0.4) / 5))}]`;
}

const words = {};
for (const part of ["", "-more", "-lesson", "-play"]) {
  const english = JSON.parse(readFileSync(new URL(`../../web/locales/en${part}.json`, import.meta.url), "utf8"));
  words[`qps${part}`] = Object.fromEntries(
    Object.entries(english).map(([key, message]) => [
      key,
      /^(reading|comma|none|unit\..*)$/.test(key) ? message : pseudo(message),
    ]),
  );
}

const LESSON = ["growth", "formula", "curve", "levers", "attention", "memory", "paging", "quiz", "interview"];
const REQUESTS = ["", 'engine="vllm" gpu="h100-sxm-80gb"', 'model="llama-3.1-405b"', 'context="100000000"', 'gpus="x"'];
const page = (body) => ({
  html: `<!doctype html><html lang="qps"><head><meta charset="utf-8"><title>pseudo</title><link rel="icon" href="data:,">
    <script>globalThis[Symbol.for("kv-capacity.words.1")] = ${JSON.stringify(words).replaceAll("<", "\\u003c")};</script>
    <script src="kv-capacity.js"></script></head><body>${body}</body></html>`,
});
const PAGES = {
  "/calculators.html": page(REQUESTS.map((one) => `<kv-capacity ${one}></kv-capacity>`).join("")),
  "/lesson.html": page(
    `${LESSON.map((one) => `<kv-${one}></kv-${one}>`).join("")}<kv-capacity-table auto></kv-capacity-table><kv-memory engine="vllm"></kv-memory>`,
  ),
};

/** Opens all that can be opened, and waits until everything has been shown. */
const openAll = async (reader) => {
  await until("every element", () =>
    reader.page.evaluate(() => {
      for (const one of document.querySelectorAll(":not(:defined)")) one.scrollIntoView({ behavior: "instant" });
      const all = [...document.body.children];
      return all.every((one) => one.shadowRoot?.querySelector(".kv:not(.waiting)"));
    }),
  );
  await reader.page.evaluate(() => Promise.all([...document.body.children].map((one) => one.ready)));
  await reader.page.evaluate(() => {
    for (const one of document.body.children)
      for (const part of one.shadowRoot.querySelectorAll("details")) part.open = true;
  });
  // What is in a part comes after it was opened, and some of it by the second script.
  await until("what is in the parts", () =>
    reader.page.evaluate(() => {
      const roots = [...document.body.children].map((one) => one.shadowRoot);
      const parts = roots.flatMap((root) => [...root.querySelectorAll("details")]);
      return (
        parts.every((part) => part.querySelector("summary ~ * *")) &&
        !roots.some((root) => /Lóádíñg/.test(root.textContent))
      );
    }),
  );
  await rests(() => reader.page.evaluate(() => [...document.body.children].map((one) => one.shadowRoot.textContent)));
};

/** Text of the shadow roots that is cut off or stands outside of brackets. */
const faults = (reader) =>
  reader.page.evaluate(async () => {
    const { core, full } = globalThis[Symbol.for("kv-capacity.kernel.1")];
    const catalogue = (await (full ?? core)).catalogue();
    const known = new Set();
    /** The box that a text leaves: its own block, one that cuts off what leaves it, or the whole element. */
    const cut = (node, parent) => {
      // What stands above the columns of <kv-growth> is turned, and as narrow as they are; pictures have words where
      // their lines are.
      if (node.data.trim() === "" || parent.closest(".tokens, svg")) return null;
      const range = document.createRange();
      range.selectNodeContents(node);
      const text = range.getBoundingClientRect();
      let own = true;
      for (let at = parent; at; at = at.parentElement) {
        const { display, overflowX } = getComputedStyle(at);
        if (/auto|scroll/.test(overflowX)) return null;
        const whole = at.classList.contains("kv");
        const block = own && display !== "inline";
        if (display !== "inline") own = false;
        const box = at.getBoundingClientRect();
        if ((whole || block || overflowX !== "visible") && (text.left < box.left - 1 || text.right > box.right + 1))
          return `${at.localName}.${at.getAttribute("class") ?? ""}`;
        if (whole) return null;
      }
      return null;
    };
    const { models, gpus, engines } = catalogue;
    const options = engines.flatMap((one) => one.options.map((option) => option.name));
    const names = [...models, ...gpus]
      .map((one) => one.name)
      .concat(options)
      .sort((a, b) => b.length - a.length);
    for (const element of document.body.children) {
      const walker = document.createTreeWalker(element.shadowRoot, NodeFilter.SHOW_TEXT);
      const inside = new Map();
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (!parent.checkVisibility({ visibilityProperty: true }) || parent.closest("style,option,[hidden],[lang=en]"))
          continue;
        // The smallest box whose text is whole words: brackets may begin in one node and end in the next.
        const box =
          parent.closest("p,li,dt,dd,th,td,label,summary,button,text,caption,legend,figcaption,div") ?? parent;
        inside.set(box, (inside.get(box) ?? "") + node.data);
        const place = cut(node, parent);
        if (place) known.add(`${element.localName}: ${node.data.trim().slice(0, 60)} leaves ${place}`);
      }
      for (const [box, text] of inside) {
        let depth = 0;
        let bare = "";
        for (const letter of text) {
          if (letter === "[") depth++;
          else if (letter === "]") depth--;
          else if (depth === 0) bare += letter;
        }
        // Names of models, GPUs, formats and files, and units, are what they are in every language.
        for (const name of names) bare = bare.replaceAll(name, "");
        const rest = bare.match(/[A-Za-z]{4,}/g);
        if (rest)
          known.add(`${element.localName}: bare in ${box.localName}.${box.className}: ${bare.trim().slice(0, 80)}`);
      }
    }
    if (document.documentElement.scrollWidth > innerWidth)
      known.add(`the page is ${document.documentElement.scrollWidth} wide`);
    return [...known];
  });

describe("a made-up language", { timeout: 300_000 }, () => {
  let site;
  let reader;
  let close;

  before(async () => {
    ({ site, reader, close } = await visit(browsers.Chromium, PAGES));
  });
  after(() => close());

  it("leaves what is not text as it is", () => {
    assert.equal(
      pseudo("{n, plural, one {# token} other {# tokens}}"),
      "[{n, plural, one {# tókéñ} other {# tókéñs}} ~~~~ ~~~~]",
    );
    assert.equal(pseudo("The <b>{size}</b>"), "[Thé <b>{size}</b> ~~~~]");
  });

  for (const path of Object.keys(PAGES))
    for (const width of [1280, 320])
      it(`finds nothing cut off and nothing without words in ${path}, ${width} pixels wide`, async () => {
        await reader.page.resize(width, 900);
        await reader.page.goto(site.origin + path);
        await openAll(reader);
        const found = await faults(reader);
        assert.deepEqual(found, []);
      });
});
