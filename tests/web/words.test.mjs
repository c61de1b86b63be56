// Messages, figures and typed numbers, in several languages' writing.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = fileURLToPath(new URL("../../web/src/words.ts", import.meta.url));
const lesson = new URL("../../web/locales/en-lesson.json", import.meta.url);

describe("words", () => {
  let words;
  let english;

  before(async () => {
    const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
    words = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
    words.addEnglish(JSON.parse(readFileSync(lesson, "utf8")));
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
    const german = words.speechFor("de-AT");
    assert.equal(german.language, "en", "a language that is not there falls back to English");
    for (const tag of ["de", "fr", "hi"]) words.addLanguage(tag, {});
    const cases = {
      en: { 8192: 8192, "8,192": 8192, " 131,072 ": 131072, 1.5: 1.5, "1e3": 1000, "-3": -3, "８１９２": 8192 },
      de: { 8.192: 8192, "1,5": 1.5, 131072: 131072, "1.048.576": 1048576 },
      fr: { "8 192": 8192, "8\u202f192": 8192, "1,5": 1.5 },
      hi: { "1,00,000": 100000 },
    };
    for (const [tag, typed] of Object.entries(cases)) {
      for (const [text, value] of Object.entries(typed)) {
        assert.equal(words.speechFor(tag).parse(text), value, `${tag}: ${text}`);
      }
    }
    for (const text of [
      "",
      "81,92",
      "0,192",
      "012,345",
      "1,2,3",
      "8k",
      "0x20",
      "NaN",
      "Infinity",
      "--1",
      "1-",
      "8192 tokens",
      "१",
    ]) {
      assert.equal(english.parse(text), text, text);
    }
    assert.equal(english.parse("9007199254740993"), 9007199254740993n);
    assert.equal(english.parse("1e400"), Number.POSITIVE_INFINITY);
  });

  it("takes any language tag, known or not", () => {
    for (const tag of ["en-GB", "en-x-private", "tlh", "", "not a tag", "🙂"]) {
      assert.equal(words.speechFor(tag).text("model"), "Model", tag);
    }
    assert.equal(words.speechFor("en-GB").language, "en-GB");
  });
});
