// Messages, figures and typed numbers, in several languages' writing.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { strayWords } from "../words.mjs";

const sources = fileURLToPath(new URL("../../web/src", import.meta.url));
const later = ["en-lesson", "en-more"].map((name) => new URL(`../../web/locales/${name}.json`, import.meta.url));

const languages = ["ar", "de", "es", "fr", "hi", "ja", "pt", "zh"];

describe("words", () => {
  let words;
  let english;

  before(async () => {
    const contents = 'export * from "./words.ts"; export { readWish } from "./more/wish.ts";';
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: sources },
      bundle: true,
      format: "esm",
      write: false,
    });
    words = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
    for (const file of later) words.addEnglish(JSON.parse(readFileSync(file, "utf8")));
    english = words.speechFor("en");
  });

  it("fills messages, with plurals and stresses", () => {
    assert.equal(english.text("tokens", { n: 1 }), "1 token");
    assert.equal(english.text("tokens", { n: 8192 }), "8,192 tokens");
    assert.equal(english.text("heads-layers", { n: 1, layers: 18 }), "1 KV head × 18 layers");
    assert.equal(english.text("heads-layers", { n: 8, layers: 1 }), "8 KV heads × 1 layer");
    const sentence = english.stretches("too-long-remedy", { longest: 8827 });
    assert.deepEqual(sentence, [
      { text: "The longest context that would is ", strong: false },
      { text: "8,827 tokens", strong: true },
      { text: ".", strong: false },
    ]);
    assert.match(english.text("table.gqa", { n: 3, left: 0 }), /none\.$/);
    assert.equal(english.text("no such message"), "no such message");
    assert.ok(!english.has("no such message"));
  });

  it("takes values as they are, whatever they look like", () => {
    const text = english.text("error.model.unknown_id", { value: "<b>{n, plural, other {#}}</b> $& #" });
    assert.equal(text, "There is no model called “<b>{n, plural, other {#}}</b> $& #” here.");
    const [before, value] = english.stretches("fits", { weights: "<b>x</b>" });
    assert.deepEqual([before.strong, value.text], [false, "<b>x</b>"]);
  });

  it("writes English numbers as Intl does, and asks it only for what it cannot write itself", () => {
    const figures = [
      0, 1, 0.5, 0.05, 0.005, 1.005, 1.25, 0.125, 2.675, 9.995, 9.9949, 99.95, 999.5, 999.95, 1000, 1023.5,
    ];
    figures.push(
      1e-6,
      4e-7,
      5e-7,
      123456.789,
      99999999999.5,
      1e11,
      1e12,
      2 ** 53,
      1e21,
      1e300,
      -1.5,
      -0.4,
      NaN,
      Infinity,
    );
    let seed = 1;
    const random = () => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    for (let i = 0; i < 3000; i++) figures.push(Number((random() * 10 ** (random() * 13 - 2)).toFixed(random() * 7)));
    for (const tag of ["en", "en-US", "en-GB"]) {
      const speech = words.speechFor(tag);
      for (const decimals of [0, 1, 2, 6]) {
        const { format } = new Intl.NumberFormat(tag, { maximumFractionDigits: decimals });
        for (const one of figures) assert.equal(speech.number(one, decimals), format(one), `${one} to ${decimals}`);
      }
      const percent = new Intl.NumberFormat(tag, { style: "percent", maximumFractionDigits: 1 });
      const shares = Array.from({ length: 20_001 }, (_, i) => i / 20_000);
      for (const one of [...shares, ...figures]) assert.equal(speech.percent(one), percent.format(one), `${one}`);
      const three = new Intl.NumberFormat(tag, { maximumSignificantDigits: 3 });
      // A figure in its unit is less than 1024 of it.
      for (const one of figures.filter((figure) => figure > 0.001 && figure < 1024)) {
        assert.equal(speech.digits({ value: one, unit: "GB" }, "three"), three.format(one), `${one} to three`);
      }
      const plural = new Intl.PluralRules(tag);
      for (const one of figures) {
        const said = speech.text("tokens", { n: one }).endsWith("token") ? "one" : "other";
        assert.equal(said, plural.select(one), `${one} tokens`);
      }
    }
    // Whose thousands or decimals are others asks Intl.
    assert.equal(words.speechFor("en-IN").number(1234567.5, 1), "12,34,567.5");
    assert.equal(words.speechFor("en-ZA").number(0.5, 1), new Intl.NumberFormat("en-ZA").format(0.5));
  });

  it("says byte figures as a person would", () => {
    const said = (value, unit, precision) => english.reading({ value, unit }, precision).replaceAll("\u00a0", " ");
    assert.equal(said(128, "KiB"), "128 KiB");
    assert.equal(said(2560, "KiB"), "2,560 KiB");
    assert.equal(said(4.5, "KiB"), "4.5 KiB");
    assert.equal(said(1.073742, "GB"), "1.07 GB");
    assert.equal(said(55.939478, "GB"), "56 GB");
    assert.equal(said(9.999, "GB"), "10 GB");
    assert.equal(said(16.060522, "GB", "three"), "16.1 GB");
    assert.equal(said(104.90216, "MB", "three"), "105 MB");
    assert.equal(said(0, "B"), "0 B");
  });

  it("reads what was typed in the language's own writing, and nothing else", () => {
    const austrian = words.speechFor("de-AT");
    assert.equal(austrian.language, "en", "a language that is not there falls back to English");
    for (const language of languages) words.addWords(language, {});
    const cases = {
      en: {
        8192: 8192,
        "8,192": 8192,
        " 131,072 ": 131072,
        "131 072": 131072,
        1.5: 1.5,
        ".5": 0.5,
        "1e3": 1000,
        "-3": -3,
      },
      "en-IN": { "1,31,072": 131072 },
      de: { 8.192: 8192, "1,5": 1.5, "0,1": 0.1, ",5": 0.5, 131072: 131072, "1.048.576": 1048576, "8.192,25": 8192.25 },
      "de-AT": { "131\u00a0072": 131072, "0,1": 0.1 },
      "de-CH": { "131’072": 131072, "131'072": 131072, 0.1: 0.1 },
      fr: { "8 192": 8192, "8\u202f192": 8192, "131\u00a0072": 131072, "1,5": 1.5, "1\u202f048\u202f576,5": 1048576.5 },
      es: { 8192: 8192, 8.192: 8192, 131.072: 131072, "0,1": 0.1 },
      "es-MX": { "8,192": 8192, 0.1: 0.1 },
      pt: { 8.192: 8192, "0,1": 0.1 },
      "pt-PT": { "131 072": 131072, "0,1": 0.1 },
      zh: { "8,192": 8192, "８１９２": 8192, "８，１９２": 8192, "０．１": 0.1 },
      ja: { "131,072": 131072, "１３１，０７２": 131072 },
      hi: { "1,31,072": 131072, "१,३१,०७२": 131072, "८१९२": 8192, "०.१": 0.1, "1,00,00,000": 10000000 },
      ar: { "٨١٩٢": 8192, "٨٬١٩٢": 8192, "٠٫١": 0.1, "8,192": 8192, 0.1: 0.1, "\u200f٨٬١٩٢": 8192, "۸۱۹۲": 8192 },
    };
    for (const [tag, typed] of Object.entries(cases)) {
      for (const [text, value] of Object.entries(typed)) {
        assert.equal(words.speechFor(tag).parse(text), value, `${tag}: ${text}`);
      }
    }
    // A separator that stands where it should not is refused, not taken for another.
    const refused = {
      en: [
        "81,92",
        "0,192",
        "012,345",
        "1,2,3",
        "1,31,072",
        "81 92",
        "1 234,567",
        "1,234 567",
        "8.192.1",
        "8,192e",
        "1.5,5",
      ],
      de: ["0.1", "81.92", "0.192", "1.5", "1,048,576", "1.31.072", "8,192.5", "8.", "1,2,3"],
      fr: ["8.192", "8,192,1", "81 92", "1 31 072", "0.1"],
      es: ["0.1", "81.92", "8,192.5"],
      pt: ["0.1", "1,048,576"],
      zh: ["8、192", "8,19", "八"],
      ja: ["81,92"],
      hi: ["131,072", "13,1072", "1,3,072", "१,३१,०७"],
      ar: ["٨٬١٩", "٠٬١٩٢", "٨.١٩٢.١", "٨1٩2", "٨،١٩٢"],
    };
    const never = [
      "",
      "8k",
      "0x20",
      "NaN",
      "Infinity",
      "--1",
      "1-",
      "8192 tokens",
      "10²",
      "½",
      "①",
      "8१",
      ".",
      ",",
      "e3",
    ];
    for (const [tag, typed] of Object.entries(refused)) {
      for (const text of [...typed, ...never]) assert.equal(words.speechFor(tag).parse(text), text, `${tag}: ${text}`);
    }
    assert.equal(english.parse("9007199254740993"), 9007199254740993n);
    assert.equal(english.parse("9,007,199,254,740,993"), 9007199254740993n);
    assert.equal(english.parse("1e400"), Number.POSITIVE_INFINITY);
  });

  it("reads every number that it writes, in every language and region", () => {
    const regions = [
      "en-IN",
      "de-AT",
      "de-CH",
      "es-MX",
      "fr-CH",
      "fr-CA",
      "pt-BR",
      "pt-PT",
      "zh-Hant",
      "zh-TW",
      "hi-u-nu-deva",
    ];
    for (const tag of ["en", ...languages, ...regions, "ar-EG", "ar-MA", "ar-AE", "ar-u-nu-latn"]) {
      const speech = words.speechFor(tag);
      const values = [0, 0.1, 0.95, 1, 1.5, 12, 999, 999.5, Number.MAX_SAFE_INTEGER];
      for (let value = 1; value < 2 ** 52; value = value * 3 + 1) values.push(value, -value);
      for (let bits = 10; bits < 53; bits++) values.push(2 ** bits, 2 ** bits - 1);
      for (const value of values) {
        const text = speech.number(value, 9);
        assert.equal(speech.parse(text), value, `${tag}: ${text}`);
      }
    }
  });

  it("writes numbers by the rules of the language", () => {
    // Which space, and which marks of direction, is for Intl to say.
    const plain = (text) => text.replace(/\s/g, " ").replace(/\p{Cf}/gu, "");
    const said = (tag) => [words.speechFor(tag).number(131072), words.speechFor(tag).percent(0.125)].map(plain);
    assert.deepEqual(said("en"), ["131,072", "12.5%"]);
    assert.deepEqual(said("de"), ["131.072", "12,5 %"]);
    assert.deepEqual(said("fr"), ["131 072", "12,5 %"]);
    assert.deepEqual(said("hi"), ["1,31,072", "12.5%"]);
    assert.deepEqual(said("ar-EG"), ["١٣١٬٠٧٢", "١٢٫٥٪"]);
  });

  it("chooses among the plural forms of the language", () => {
    const forms = "{n, plural, zero {zero} one {one} two {two} few {few} many {many} other {other} =7 {seven}}";
    for (const language of ["en", ...languages]) words.addWords(language, { forms });
    const chosen = (tag, ...numbers) => numbers.map((n) => words.speechFor(tag).text("forms", { n }));
    assert.deepEqual(chosen("ar", 0, 1, 2, 3, 11, 100, 7), ["zero", "one", "two", "few", "many", "other", "seven"]);
    assert.deepEqual(chosen("de", 0, 1, 2, 7), ["other", "one", "other", "seven"]);
    assert.deepEqual(chosen("fr", 0, 1, 1.5, 2, 1000000), ["one", "one", "one", "other", "many"]);
    assert.deepEqual(chosen("es", 1, 2, 1000000), ["one", "other", "many"]);
    assert.deepEqual(chosen("pt", 0, 1, 2, 1000000), ["one", "one", "other", "many"]);
    assert.deepEqual(chosen("hi", 0, 1, 2), ["one", "one", "other"]);
    for (const tag of ["zh", "ja"]) assert.deepEqual(chosen(tag, 0, 1, 2), ["other", "other", "other"]);
  });

  it("reads a wish in every language's numbers", () => {
    const cases = [
      ["en", "1,000 users at 32,768", 1000, 32768],
      ["de", "1.000 Nutzer mit 32.768", 1000, 32768],
      ["fr", "1 000 utilisateurs à 131 072", 1000, 131072],
      ["fr", "10 128k", 10, "128k"],
      ["zh", "100个用户，每个32k", 100, "32k"],
      ["ja", "１００人で３２Ｋ", 100, "32k"],
      ["hi", "१०० लोग, ३२k", 100, "32k"],
      ["ar-EG", "١٬٠٠٠ مستخدم، ٣٢k", 1000, "32k"],
      ["ja", "1万人", undefined, undefined],
    ];
    for (const [tag, text, sequences, context] of cases) {
      const wish = words.readWish(words.speechFor(tag), text);
      const said = wish.context && (wish.context.thousands ? `${wish.context.value}k` : wish.context.value);
      assert.deepEqual([wish.sequences?.value, said], [sequences, context], `${tag}: ${text}`);
    }
  });

  it("takes any language tag, known or not", () => {
    for (const tag of ["en-GB", "en-x-private", "tlh", "", "not a tag", "🙂"]) {
      assert.equal(words.speechFor(tag).text("model"), "Model", tag);
    }
    assert.equal(words.speechFor("en-GB").language, "en-GB");
  });

  it("has every language's words held against English", () => {
    const english = { a: "{n, plural, one {# token} other {# tokens}} of <b>{m}</b>", b: "Plain." };
    const parts = { "-more": { c: "C" }, "-lesson": {}, "-play": {} };
    const found = (language, words) => strayWords(language, { ...parts, "": english }, { ...parts, "": words });
    const a = "<b>{m}</b>: {n, plural, one {# Token} other {# Tokens}}";
    assert.deepEqual(found("de", { a, b: "Schlicht." }), []);
    const bad = [
      ["de", { a }, "de.json lacks b"],
      ["de", { a, b: "x", z: "y" }, "has z, which English has not"],
      ["de", { a: "{n, plural, one {#} other {#}} <b>x</b>", b: "x" }, "leaves out {m}"],
      ["de", { a: `${a} {k}`, b: "x" }, "has {k} of its own"],
      ["de", { a: "{m} {n, plural, one {#} other {#}}", b: "x" }, "stresses nothing"],
      ["de", { a: "<b>{m}</b> {n, plural, other {#}}", b: "x" }, "{n} lacks one"],
      ["ja", { a: "<b>{m}</b> {n, plural, one {#} other {#}}", b: "x" }, "has one, which ja does not use"],
      ["ar", { a, b: "x" }, "{n} lacks few, many, two, zero"],
      ["de", { a, b: "{n" }, "not closed"],
      ["de", { a, b: "n}" }, "closes nothing"],
      ["de", { a, b: "# mal" }, "outside of a plural"],
      ["de", { a, b: "a <i>b</i>" }, "neither <b> nor </b>"],
      ["de", { a, b: "<b>a" }, "a <b> is not closed"],
      ["de", { a: "{n, plural, one {<b>{m}</b>} other {#}}", b: "x" }, "<b> inside braces"],
      ["de", { a: "<b>{m}</b> {n, select, one {#} other {#}}", b: "x" }, "only plural is known"],
      ["de", { a: "<b>{m}</b> {n, plural, one {#} one {#} other {#}}", b: "x" }, "one twice"],
      ["de", { a, b: "x", c: "Ce" }, "differ in c"],
    ];
    for (const [language, words, line] of bad)
      assert.ok(
        found(language, words).some((one) => one.includes(line)),
        `${line}: ${found(language, words).join("; ")}`,
      );
  });
});
