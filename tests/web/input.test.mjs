// What a page, its link and its author's JSON give is not to be trusted: unknown keys are ignored and reported once,
// wrong values give way to defaults and are named, and nothing of them becomes more than text.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { browsers } from "./browsers.mjs";
import { becomes, until } from "./reader.mjs";
import { visit } from "./visit.mjs";

const page_ = (body) => ({
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>input</title><link rel="icon" href="data:,">
    <script src="kv-capacity.js"></script></head><body>${body}</body></html>`,
});

const RUN = { count: 32, kind: "full", kv_heads: 8, key_width: 128, value_width: 128 };
const json = (value) => `<script type="application/json">${JSON.stringify(value)}</script>`;

const PAGES = {
  "/plain.html": page_("<kv-capacity></kv-capacity>"),
  "/linked.html": page_('<kv-capacity link context="4096"></kv-capacity><kv-growth></kv-growth>'),
  "/unknown.html": page_(
    `${'<kv-capacity contxt="5" context="many" class="wide" data-x="1" v-cloak x:y="2" tabindex="-1" title="t" link lock="gpus, banana" hub="off"></kv-capacity>'.repeat(
      2,
    )}`,
  ),
  "/locked.html": page_('<kv-capacity link lock="model gpus" model="llama-3.1-70b" gpus="4"></kv-capacity>'),
  "/vast.html": page_('<kv-capacity model="llama-3.1-70b" gpus="1000000"></kv-capacity>'),
  "/many.html": page_('<kv-capacity context="many" gpus="-2" model="no-such-model" kv="fp7"></kv-capacity>'),
  "/authored.html": page_(
    `<kv-capacity model="mine">${json({ id: "mine", layers: [{ ...RUN, kind: "fully" }] })}${json({
      id: "fine",
      name: "Fine",
      parameters: 8e9,
      colour: "red",
      layers: [{ ...RUN, wings: 2 }],
      ["__proto__" + "x"]: 1,
    })}${json({ model: "llama-3-70b", gpus: 4 })}<script type="application/json">{"id": </script>${json([5, null, "model"])}</kv-capacity>`,
  ),
  "/lesson.html": page_(
    `<kv-capacity></kv-capacity><kv-growth></kv-growth><kv-formula></kv-formula><kv-curve></kv-curve>
     <kv-levers></kv-levers><kv-attention></kv-attention><kv-memory></kv-memory><kv-paging seed="1"></kv-paging>
     <kv-quiz seed="1"></kv-quiz><kv-interview seed="1"></kv-interview>
     <kv-capacity-table auto></kv-capacity-table>`,
  ),
};

describe("what a page gives", { timeout: 600_000 }, () => {
  let site;
  let page;
  let reader;
  let close;
  before(async () => {
    ({ site, page, reader, close } = await visit(browsers.Chromium, PAGES));
  });
  after(() => close?.());

  const open = (path) => reader.open(`${site.origin}${path}`);
  const within = (fn, ...args) => page.evaluate(fn, ...args);
  const problem = async (pattern) =>
    until(`${pattern} to be said`, async () => {
      const { problem } = await reader.told();
      return pattern.test(problem) && [problem];
    }).then(([said]) => said);
  const set = (changes) =>
    within((changes) => {
      const kv = document.querySelector("kv-capacity");
      for (const [key, value] of Object.entries(changes)) {
        if (value === null) kv.removeAttribute(key);
        else kv.setAttribute(key, value);
      }
    }, changes);

  it("gives way to the default where an attribute is wrong, and is named", async () => {
    await open("/many.html");
    const told = await reader.told();
    assert.equal(told.count.figure, "52");
    assert.equal(told.stale, false);
    assert.equal(told.context, "Context length · 8,192 tokens");
    assert.match(
      told.problem,
      /Context length must be a whole number of tokens from 1 to [\d,]+\. 8,192 is used instead of “many”\./,
    );
    assert.match(told.problem, /The number of GPUs must be whole, from 1 to [\d,]+\. 1 is used instead of “-2”\./);
    assert.match(
      told.problem,
      /no model called “no-such-model” here\. Llama 3\.1 8B is used instead of “no-such-model”\./,
    );
    assert.match(told.problem, /no number format called “fp7” here\. bf16 is used instead of “fp7”\./);
    // The attributes are their author's; the request is what is answered.
    const { attributes, request, error, state } = await within(() => {
      const kv = document.querySelector("kv-capacity");
      const attributes = Object.fromEntries([...kv.attributes].map(({ name, value }) => [name, value]));
      return { attributes, request: kv.request, error: kv.error, state: kv.state };
    });
    assert.deepEqual(attributes, { context: "many", gpus: "-2", model: "no-such-model", kv: "fp7" });
    assert.deepEqual(request, { model: "llama-3.1-8b" });
    assert.equal(state, "model=llama-3.1-8b");
    assert.ok(error.message);
    // A hand that moves the slider takes it back; the others stay as they are.
    const move = () =>
      within(() => {
        const slider = document.querySelector("kv-capacity").shadowRoot.querySelector("#context");
        slider.value = 9;
        slider.dispatchEvent(new Event("input"));
      });
    await move();
    await problem(/^((?!“many”).)*“fp7”((?!“many”).)*$/);
    // A right value mends it; the others stay as they are.
    await set({ context: "16384", gpus: null, model: null });
    await problem(/^There is no number format called “fp7” here\. bf16 is used instead of “fp7”\.$/);
    assert.equal((await reader.told()).count.figure, "26");
    await set({ kv: "fp8" });
    await problem(/^$/);
    assert.equal(await within(() => document.querySelector("kv-capacity").error), null);
    await set({ context: "many" });
    await problem(/^Context length .* instead of “many”\.$/);
    await move();
    await problem(/^$/);
  });

  it("is worded with what is accepted, whichever key it is", async () => {
    await open("/plain.html");
    for (const [changes, sentence, plan] of [
      [{ gpu: "abacus" }, /no GPU called “abacus” here\. .*80 GB.* is used instead of “abacus”\./],
      [{ gpu: '{"memory_bytes": "much"}' }, /memory_bytes.*is used instead of “\{…\}”/],
      [{ engine: "steam" }, /^engine: is one of textbook, .* textbook is used instead of “steam”\.$/],
      [{ weights: "latin" }, /no number format called “latin” here\. bf16 is used/],
      [{ kv: '{"k": "fp8"}' }, /kv\.v.* bf16 is used instead of “\{…\}”/],
      [{ parameters: "few" }, /^parameters: .*8,030,261,248 is used instead of “few”/],
      [{ weight_bytes: "9007199254740993" }, /weight_bytes.* is used instead of “9007199254740993”/],
      [{ kv_heads: "1.5" }, /^kv_heads: .* The default is used instead of “1.5”\.$/],
      [{ options: "{" }, /^options: .* The default is used instead of “\{”\.$/],
      [
        { options: '{"speed": 9, "reserve": 0.2, "__proto__": 1, "constructor": 2}' },
        /options\.speed: .* instead of “9”/,
        44,
      ],
      [{ config: "{}" }, /./],
      [{ gpus: "4", tensor_parallel: "3" }, /^gpus: 4 is not tensor_parallel .* is used instead/],
    ]) {
      await set(changes);
      const said = await problem(sentence);
      assert.doesNotMatch(said, /undefined|NaN|\[object/, JSON.stringify(changes));
      const told = await reader.told();
      assert.ok(!told.stale, JSON.stringify(changes));
      if (plan) assert.equal(told.count.figure, String(plan), JSON.stringify(changes));
      await set(Object.fromEntries(Object.keys(changes).map((key) => [key, null])));
      await problem(/^$/);
      assert.equal((await reader.told()).count.figure, "52");
    }
  });

  it("takes the same from a property, and tells the page's author by `error`", async () => {
    await open("/plain.html");
    for (const [key, value] of [
      ["context", "1.5"],
      ["gpus", {}],
      ["context", Number.MAX_VALUE],
      ["model", { layers: 5 }],
      ["options", []],
    ]) {
      const { error, sequences, request } = await within(
        async (key, value) => {
          const kv = document.querySelector("kv-capacity");
          const shown = new Promise((resolve) => kv.addEventListener("kv-shown", resolve, { once: true }));
          kv[key] = value;
          await shown;
          const { error, plan, request } = kv;
          kv[key] = undefined;
          return { error, sequences: plan.sequences, request };
        },
        key,
        value,
      );
      assert.equal(error.field.split(/[.[]/)[0], key);
      assert.equal(sequences, 52);
      assert.deepEqual(request, { model: "llama-3.1-8b" }, key);
      await problem(/^$/);
    }
    // What cannot be written as JSON is refused as well, and the page goes on.
    await within(async () => {
      const kv = document.querySelector("kv-capacity");
      const loop = {};
      loop.layers = loop;
      kv.model = loop;
      await new Promise((resolve) => kv.addEventListener("kv-shown", resolve, { once: true }));
    });
    await problem(/Llama 3\.1 8B is used instead of “\{…\}”/);
    assert.equal((await reader.plan()).sequences, 52);
  });

  it("does not touch what a reader typed", async () => {
    await open("/many.html");
    await problem(/fp7/);
    await reader.enter("gpus", "zwei");
    await problem(/^The number of GPUs must be whole/);
    let told = await reader.told();
    assert.ok(told.stale);
    assert.equal((await reader.control(".gpus-field .exact")).value, "zwei");
    // Nor when the page changes something else meanwhile.
    await set({ context: "16384" });
    await until("the page's change", () =>
      within(() => document.querySelector("kv-capacity").request.context === 16384),
    );
    assert.equal((await reader.control(".gpus-field .exact")).value, "zwei");
    assert.match((await reader.told()).problem, /^The number of GPUs must be whole/);
    await reader.enter("gpus", "2");
    await reader.planned(({ deployment }) => deployment.gpus === 2);
    told = await reader.told();
    assert.ok(!told.stale);
    assert.equal((await reader.plan()).context, 16384);
    assert.doesNotMatch(told.problem, /GPUs/);
    assert.equal(await within(() => document.querySelector("kv-capacity").getAttribute("gpus")), "2");
  });

  it("is read from the fragment, where unknown keys are reported once a key", async () => {
    const hash =
      "#context=many&context=5&colour=red&__proto__=1&kv=%ZZ&%E0%A4%A=1&colour=blue&kv-growth.step=soon&kv-growth.hue=3";
    await open(`/linked.html${hash}`);
    await problem(/bf16 is used instead of “%ZZ”\. .*8,192 is used instead of “many”/);
    await until("the growth", () => within(() => document.querySelector("kv-growth").matches(":defined")));
    await within(() => document.querySelector("kv-growth").ready);
    for (let i = 0; i < 3; i++) {
      await within((hash) => {
        document.querySelector("kv-capacity").state = hash;
      }, hash);
    }
    const reports = (await within(() => window.problems)).filter((text) => !text.includes("favicon"));
    assert.deepEqual(reports.toSorted(), [...new Set(reports)].toSorted());
    for (const key of ["colour", "__proto__", "hue"]) {
      assert.equal(reports.filter((text) => text.endsWith(`no key is called ${key}`)).length, 1, `${key}: ${reports}`);
    }
    assert.ok(
      reports.every((text) => text.startsWith("kv-capacity: ")),
      reports.join("\n"),
    );
    assert.equal(await within(() => Object.prototype.context), undefined);
    await becomes(
      () => within(() => document.querySelector("kv-growth").shadowRoot.querySelector(".problem").textContent),
      "step: a whole number is accepted. 0 is used instead of “soon”.",
    );
  });

  it("has its unknown attributes reported once, beside what is wrong", async () => {
    await open("/unknown.html");
    await problem(/instead of “many”/);
    await within(() => document.body.append(document.querySelector("kv-capacity")));
    await becomes(
      () => within(() => window.problems),
      ["kv-capacity: no attribute is called contxt", "kv-capacity: lock: no key is called banana"],
    );
  });

  it("is not undone by a link where it is locked", async () => {
    await open("/locked.html#model=llama-3.1-8b&gpus=8&context=4096&kv-capacity.gpus=16");
    const { model, deployment, context } = await reader.plan();
    assert.deepEqual([model.name, deployment.gpus, context], ["Llama 3.1 70B", 4, 4096]);
  });

  it("is refused by what is wrong with it, not by what each key accepts alone", async () => {
    await open("/vast.html");
    await problem(/^gpus: comes to more than .*\. 1 is used instead of “1000000”\.$/);
  });

  it("is read from the JSON of a page's author, piece by piece", async () => {
    await open("/authored.html");
    await problem(/^model\.layers\[0\]\.kind: .* Llama 3\.1 8B is used instead of “mine”\.$/);
    const before = await within(() => window.problems);
    assert.ok(
      before.some((text) => /is not JSON/.test(text)),
      before.join("\n"),
    );
    await set({ model: "fine" });
    await until("the other model", async () => (await reader.plan()).model.name === "Fine");
    assert.equal((await reader.told()).problem, "");
    const reports = await until("a report of what is not known", async () => {
      const all = await within(() => window.problems);
      return all.some((text) => text.includes("wings")) && all;
    });
    assert.deepEqual(reports.toSorted(), [...new Set(reports)].toSorted());
    assert.ok(reports.includes("kv-capacity: JSON in a tag is for models; model is an attribute"), reports.join("\n"));
    for (const key of ["colour", "wings"]) {
      assert.equal(reports.filter((text) => text.includes(key)).length, 1, reports.join("\n"));
    }
  });

  it("gives way to defaults in the lesson's elements too", async () => {
    await open("/lesson.html");
    for (const [tag, changes, sentence] of [
      ["kv-growth", { model: "no-such-model" }, /Llama 3\.1 8B is used instead of “no-such-model”/],
      ["kv-growth", { step: "-1" }, /^step: .* 0 is used instead of “-1”/],
      ["kv-growth", { step: "99" }, /^step: at most (\d+) is accepted\. \1 is used instead of “99”/],
      ["kv-paging", { step: "999999" }, /^step: at most ([\d,]+) is accepted\. \1 is used instead of “999999”/],
      ["kv-attention", { show: "mha gpa" }, /^show: mha gqa .* are accepted\. mha is used instead of “mha gpa”/],
      ["kv-attention", { show: "?" }, /^show: .* are accepted\. mha gqa mqa mla window is used instead of “\?”/],
      ["kv-formula", { layers: "none" }, /^layers: .* 32 is used instead of “none”/],
      ["kv-formula", { kv_heads: "0" }, /^kv_heads: .* 8 is used instead of “0”/],
      ["kv-formula", { head_size: "1e30" }, /^head_size: .* 128 is used instead of “1e30”/],
      ["kv-formula", { rows: "3" }, /^rows: .* 2 is used instead of “3”/],
      ["kv-curve", { context: "far" }, /is used instead of “far”/],
      ["kv-levers", { gpus: "0" }, /is used instead of “0”/],
      ["kv-attention", { groups: "a few" }, /^groups: .* is used instead of “a few”/],
      ["kv-memory", { gpu: "abacus" }, /is used instead of “abacus”/],
      [
        "kv-paging",
        { page: "many", lengths: "novels" },
        /page: .*“many”.*lengths: .*“novels”|lengths: .*“novels”.*page: .*“many”/,
      ],
      ["kv-quiz", { count: "lots", level: "9" }, /“lots”.*“9”|“9”.*“lots”/],
      ["kv-interview", { seed: "x" }, /^seed: .* 1 is used instead of “x”/],
    ]) {
      await within(
        (tag, changes) => {
          const element = document.querySelector(tag);
          element.scrollIntoView({ behavior: "instant" });
          for (const [key, value] of Object.entries(changes)) element.setAttribute(key, value);
        },
        tag,
        changes,
      );
      const what = `${tag} ${JSON.stringify(changes)}`;
      const text = () =>
        within(
          (tag) => document.querySelector(tag).shadowRoot?.querySelector(".body > .problem")?.textContent ?? "",
          tag,
        );
      await until(`${what}: ${sentence}`, async () => sentence.test(await text())).catch(async (error) => {
        throw new Error(`${error.message}; it says “${await text()}”`);
      });
      assert.ok(
        await within((tag) => document.querySelector(tag).shadowRoot.querySelector(".kv:not(.waiting)"), tag),
        what,
      );
      await within(
        (tag, keys) => {
          for (const key of keys) document.querySelector(tag).removeAttribute(key);
        },
        tag,
        Object.keys(changes),
      );
      await until(`${tag} without a complaint`, async () => (await text()) === "");
    }
  });

  it("is never anything but text: 10,000 fragments and sets of attributes", async () => {
    await open("/lesson.html");
    const tags = await within(() => [...document.body.children].map(({ localName }) => localName));
    for (const tag of tags) {
      await within((tag) => document.querySelector(tag).scrollIntoView({ behavior: "instant" }), tag);
      await until(`${tag}`, () => within((tag) => document.querySelector(tag).matches(":defined"), tag));
      await within((tag) => document.querySelector(tag).ready, tag);
    }
    // Everything that is loaded on request is there before requests are counted.
    await set({ model: "no-such-model" });
    await problem(/no-such-model/);
    await set({ model: null });
    await problem(/^$/);
    page.requests.length = 0;
    const sums = {};
    for (let seed = 1; seed <= 20; seed++) {
      const { counts, faults } = await within(FUZZ, 500, seed);
      assert.deepEqual(faults, [], `seed ${seed}`);
      for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
    }
    assert.deepEqual(page.requests, []);
    assert.equal(sums.ran, 0);
    // It is of use only while it meets what is right and what is wrong.
    assert.ok(sums.mended > 1000 && sums.plain > 500, JSON.stringify(sums));
    const complaints = (await within(() => window.problems)).concat(page.problems);
    const foreign = complaints.filter((text) => !/kv-capacity: /.test(text));
    assert.deepEqual(foreign, []);
  });
});

/** Runs in the page, by itself: makes `total` cases and gives them to the elements. */
async function FUZZ(total, seed) {
  const counts = { state: 0, attributes: 0, links: 0, lesson: 0, mended: 0, plain: 0, ran: 0 };
  const faults = [];
  const fault = (text) => faults.length < 20 && faults.push(text.slice(0, 400));
  globalThis.canary = () => counts.ran++;
  addEventListener("error", ({ message }) => fault(`error: ${message}`));
  addEventListener("unhandledrejection", ({ reason }) => fault(`rejection: ${reason?.stack ?? reason}`));

  let word = seed;
  const random = (below) => {
    word = (Math.imul(word ^ (word >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    word ^= word >>> 12;
    return (word >>> 0) % below;
  };
  const one = (list) => list[random(list.length)];
  const HOSTILE = [
    "<img src=x onerror=canary()>",
    "<script>canary()</script>",
    '"><svg onload=canary()>',
    "javascript:canary()",
    "data:text/html,<script>canary()</script>",
    "{{constructor.constructor('canary()')()}}",
    "$" + "{canary()}",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "\u0000",
    "a\u0000b",
    "\ud800",
    "\udfff\ud800",
    "\u202e\u2066abc",
    "NaN",
    "Infinity",
    "-0",
    "1e400",
    "-1e-400",
    "0x10",
    "9".repeat(400),
    "9007199254740993",
    "18446744073709551616",
    "١٢٣",
    "８１９２",
    "8,192",
    "",
    " ",
    "\n",
    "null",
    "undefined",
    "true",
    "[]",
    "{}",
    '{"__proto__": {"polluted": 1}}',
    '{"constructor": {"prototype": {"polluted": 1}}}',
    '{"k": "fp8", "v": "fp8", "k": "x"}',
    '{"k": {"k": {}}}',
    '{"memory_bytes": 1e999}',
    '{"memory_bytes": -1}',
    '{"reserve": 2, "reserve": 0.5}',
    '{"reserve\\u0000": 0.5, "toString\\u0000x": 1}',
    '{"<img src=x onerror=canary()>": 1}',
    '{"layers": [{"count": 1e9, "kind": "full"}]}',
    `${"[".repeat(3000)}`,
    `{"a":${'{"a":'.repeat(500)}1${"}".repeat(500)}}`,
    "x".repeat(20_000),
    "%",
    "%00",
    "%ZZ",
    "%E0%A4",
    "&amp;",
    "'; DROP TABLE models; --",
    "../../etc/passwd",
    "//example.invalid/x.js",
    "url(//example.invalid/x.png)",
    "ünïcödé 模型",
  ];
  const VALID = {
    model: ["llama-3.1-8b", "llama-3-70b", "gemma-3-27b", "deepseek-v3", "meta-llama/Meta-Llama-3-8B"],
    weights: ["bf16", "fp8", "int4", "q4_k_m"],
    kv: ["bf16", "fp8", "q8_0", '{"k":"fp8","v":"bf16"}'],
    gpu: ["80gb", "h100-sxm-80gb", "rtx-4090", '{"memory_bytes":24000000000}'],
    engine: ["textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"],
    gpus: ["1", "2", "4", "8"],
    context: ["1", "1024", "8192", "131072", "1000000"],
    parameters: ["8000000000", "1"],
    kv_heads: ["1", "8"],
    weight_bytes: ["16000000000"],
    tensor_parallel: ["1", "2", "4"],
    pipeline_parallel: ["1", "2"],
    data_parallel: ["1", "2"],
    options: ['{"reserve":0.2}', '{"gpu_memory_utilization":0.8}', '{"kv_memory_bytes":10000000000}'],
    config: ['{"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":256,"model_type":"llama"}'],
  };
  const OWN = {
    "kv-growth": { step: ["0", "3"], prompt: ["a b"], answer: ["c d e"] },
    "kv-formula": { layers: ["1", "80"], head_size: ["64"], rows: ["1", "2"] },
    "kv-curve": { keep: ["model=llama-3-70b&gpus=4"] },
    "kv-levers": {},
    "kv-attention": { show: ["mha mqa"], groups: ["4"] },
    "kv-memory": {},
    "kv-paging": { step: ["0", "90"], lengths: ["alpaca", "161 338"], longest: ["512"], page: ["16"], prefix: ["64"] },
    "kv-quiz": { seed: ["4"], count: ["3"], level: ["1", "2"], topics: ["room"], question: ["2"] },
    "kv-interview": { seed: ["7"] },
    "kv-capacity-table": { deployments: ["model=llama-3-8b; model=llama-3-70b gpus=4"], contexts: ["1024 8192"] },
  };
  const mutated = (text) => {
    const at = random(text.length + 1);
    const piece = one([one(HOSTILE), String.fromCharCode(random(0x300)), String(random(1e9)), "-", ".", '"', "}", "="]);
    return one([text.slice(0, at) + piece + text.slice(at), text.slice(0, at), text.slice(at), text.toUpperCase()]);
  };
  const textOf = (valid) => {
    const text = one(valid);
    return [text, text, mutated(text), mutated(mutated(text)), one(HOSTILE), one(HOSTILE)][random(6)];
  };
  const ODD_KEYS = [
    "__proto__",
    "constructor",
    "toString",
    "colour",
    "onclick",
    "<b>",
    "kv-growth.step",
    "style.color",
    "",
    ".",
  ];
  const pairs = (keys, own, most) => {
    const out = [];
    for (let i = 1 + random(most); i > 0; i--) {
      const key = random(8) === 0 ? one(ODD_KEYS) : one(keys);
      out.push([key, textOf(Object.hasOwn(own, key) ? own[key] : Object.hasOwn(VALID, key) ? VALID[key] : ["1"])]);
    }
    return out;
  };
  const fragmentOf = (list) =>
    list
      .map(([key, text]) => {
        if (random(6) === 0) return `${key}=${text}`;
        try {
          return `${encodeURIComponent(key)}=${encodeURIComponent(text)}`;
        } catch {
          return `${key}=${text}`;
        }
      })
      .join("&");

  // What came of input would be more than the elements themselves ever make.
  const FOREIGN =
    "img, script, iframe, object, embed, link, style, meta, base, video, audio, a, [src], [href], [srcdoc]";
  const OWN_TAGS = new Set();
  const everything = (root) => [...root.querySelectorAll("*")];
  const elements = [...document.body.children].filter((node) => node.shadowRoot);
  const FURTHER = [
    "form",
    "optgroup",
    "option",
    "li",
    "strong",
    "p",
    "text",
    "path",
    "line",
    "g",
    "td",
    "th",
    "tr",
    "table",
  ];
  for (const name of FURTHER) OWN_TAGS.add(name);
  for (const element of elements) for (const node of everything(element.shadowRoot)) OWN_TAGS.add(node.localName);
  const inspect = (root, what, thorough) => {
    const foreign = root.querySelector(FOREIGN);
    if (foreign) fault(`${what} made <${foreign.localName}>`);
    if (!thorough) return;
    for (const node of everything(root)) {
      if (!OWN_TAGS.has(node.localName)) fault(`${what} made <${node.localName}>`);
      for (const { name } of node.attributes) if (name.startsWith("on")) fault(`${what} made ${name}`);
    }
  };
  const settle = async () => {
    for (let i = 0; i < 4; i++) await null;
  };
  const calculator = document.querySelector("kv-capacity");
  const KEYS = Object.keys(VALID);
  const clear = (element, keep = []) => {
    for (const { name } of [...element.attributes]) if (!keep.includes(name)) element.removeAttribute(name);
  };
  const give = (element, list) => {
    for (const [key, text] of list) {
      try {
        element.setAttribute(key, text);
      } catch {
        // No name for an attribute.
      }
    }
  };
  const judge = (kv, what) => {
    const said = kv.shadowRoot.querySelector(".problem").textContent;
    if (!kv.plan) fault(`${what} has no answer`);
    else if (kv.shadowRoot.querySelector(".stale")) fault(`${what} is refused: ${said}`);
    else if (kv.error && said === "") fault(`${what} is wrong (${JSON.stringify(kv.error)}) and not said`);
    else if (!kv.error && said !== "") fault(`${what} is right and complained about: ${said}`);
    if (kv.error) counts.mended++;
    else counts.plain++;
  };

  for (let i = 0; i < total; i++) {
    const thorough = i % 25 === 0;
    const way = random(100);
    let what = "";
    try {
      if (way < 45) {
        const fragment = fragmentOf(pairs(KEYS, {}, 4));
        what = `the state ${fragment}`;
        clear(calculator);
        calculator.state = one(["", "#", "?"]) + fragment;
        await settle();
        judge(calculator, what);
        inspect(calculator.shadowRoot, what, thorough);
        counts.state++;
      } else if (way < 89) {
        const list = pairs(KEYS, {}, 5);
        what = `the attributes ${JSON.stringify(list)}`;
        clear(calculator);
        give(calculator, list);
        await settle();
        judge(calculator, what);
        inspect(calculator.shadowRoot, what, thorough);
        counts.attributes++;
      } else if (way < 91) {
        const fragment = fragmentOf(pairs(KEYS, {}, 3));
        what = `the link ${fragment}`;
        history.replaceState(null, "", `#${fragment}`);
        const fresh = document.createElement("kv-capacity");
        fresh.setAttribute("link", "");
        document.body.append(fresh);
        await fresh.ready;
        judge(fresh, what);
        inspect(fresh.shadowRoot, what, true);
        fresh.remove();
        history.replaceState(null, "", " ");
        counts.links++;
      } else {
        const tag = one(Object.keys(OWN));
        const own = OWN[tag];
        const element = document.querySelector(tag);
        const mine = Object.keys(own);
        const list = pairs(mine.length > 0 && random(3) > 0 ? mine : [...KEYS, ...mine], own, 3);
        what = `${tag} ${JSON.stringify(list)}`;
        clear(element, ["auto"]);
        if (random(2) && "state" in element) element.state = fragmentOf(list);
        else give(element, list);
        await settle();
        inspect(element.shadowRoot, what, thorough);
        if (!element.shadowRoot.querySelector(".kv:not(.failed)")) fault(`${what} failed`);
        counts.lesson++;
      }
    } catch (error) {
      fault(`${what}: ${error.stack}`);
    }
    if ({}.polluted !== undefined) fault(`${what} polluted`);
    if (i % 200 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
  return { counts, faults };
}
