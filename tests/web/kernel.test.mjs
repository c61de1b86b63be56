// The kernel as Node and the command line see it: the contract, hostile values, exit statuses.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { dist } from "./site.mjs";

const folder = process.env.KV_SITE ?? dist;
const CODES = [
  "missing",
  "wrong_type",
  "not_whole",
  "out_of_range",
  "unknown_id",
  "conflict",
  "not_divisible",
  "unsupported",
  "malformed",
  "too_large",
  "no_cache",
];

/** Runs the command line; gives what it printed and its exit status. */
function command(args, input) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, "cli.mjs"), ...args]);
    let out = "";
    let complaint = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      complaint += chunk;
    });
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, out, complaint }));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

/** A refusal is a value with a known code, a field and a sentence. */
function assertRefused(answer, field, what) {
  assert.ok(answer?.error, `${what} was answered`);
  assert.deepEqual(Object.keys(answer), ["error"], what);
  assert.ok(CODES.includes(answer.error.code), `${what}: ${answer.error.code}`);
  assert.equal(answer.error.field, field, `${what}: ${answer.error.message}`);
  assert.ok(answer.error.message.length > 10, what);
}

/** Rows of one of the catalogue's tables that have a place in a course. */
function ofCourse(file) {
  const table = readFileSync(new URL(`../../cpp/data/${file}`, import.meta.url), "utf8").trimEnd();
  const [head, ...rows] = table.split("\n").map((line) => line.split("\t"));
  return rows.map((cells) => Object.fromEntries(head.map((name, at) => [name, cells[at]]))).filter((row) => row.course);
}

describe("the kernel in Node", () => {
  let core;
  let kernel;
  const plan = (request) => kernel.plan({ model: "llama-3-8b", ...request });

  before(async () => {
    // Importing the elements where there is no page must do nothing.
    const module = await import(pathToFileURL(join(folder, "kv-capacity.mjs")).href);
    core = await module.loadKernel();
    assert.equal(await module.loadKernel(), core);
    kernel = await module.loadFullKernel();
    assert.equal(module.VERSION, JSON.parse(readFileSync(new URL("../../package.json", import.meta.url))).version);
  });

  it("answers with the figures of the textbook", () => {
    const answer = plan({});
    assert.equal(answer.kv_bytes_per_token, 131072);
    assert.equal(answer.kv_bytes_per_sequence, 1073741824);
    assert.equal(answer.weight_bytes, 16060522496);
    assert.equal(answer.kv_memory_bytes, 55939477504);
    assert.equal(answer.sequences, 52);
    assert.equal(answer.limit, "cache");
    assert.equal(plan({ context: 32768 }).sequences, 13);
    assert.equal(plan({ context: 131072 }).sequences, 3);
    assert.equal(plan({ kv: "fp8" }).sequences, 104);
    const large = { model: "llama-3-70b", gpus: 4 };
    assert.equal(kernel.plan(large).kv_bytes_per_token, 327680);
    assert.equal(kernel.plan(large).sequences, 54);
    assert.equal(kernel.plan({ ...large, context: 131072 }).sequences, 3);
    const layers = [{ count: 80, kind: "full", kv_heads: 64, key_width: 128, value_width: 128 }];
    assert.equal(kernel.plan({ model: { layers }, parameters: 70553706496 }).kv_bytes_per_token, 2621440);
    const short = kernel.plan({ model: "llama-3-70b" });
    assert.equal(short.limit, "weights_do_not_fit");
    assert.equal(short.sequences, 0);
    assert.equal(short.remedy.gpus_for_weights, 2);
  });

  it("gives from the first kernel what the full one gives, or leaves it to that", () => {
    let answered = 0;
    const ask = (request, needed) => {
      const text = core.planText(request);
      const failure = JSON.parse(text).error;
      if (failure) {
        assert.deepEqual([failure.code, failure.message], ["unsupported", ""], request);
        // A field that it names is wrong by itself.
        if (failure.field !== "request") {
          assert.equal(JSON.parse(kernel.planText(request)).error?.field.split(".").at(-1), failure.field, request);
        }
        assert.ok(!needed, `${request} is left to the full kernel`);
        return;
      }
      assert.equal(text, kernel.planText(request), request);
      answered++;
    };
    const { models, gpus, formats, engines, limits } = core.catalogue();
    const full = kernel.catalogue();
    // It holds those of a course, as the full one has them and in the same order.
    const inCourse = (one) => ofCourse(one).map(({ id }) => id);
    assert.ok(models.length < full.models.length && gpus.length < full.gpus.length);
    assert.deepEqual(
      models.map(({ id }) => id),
      inCourse("models.tsv"),
    );
    assert.deepEqual(
      gpus.map(({ id }) => id),
      inCourse("gpus.tsv"),
    );
    assert.deepEqual(
      models,
      full.models.filter(({ core }) => core),
    );
    const offered = new Set(gpus.map(({ id }) => id));
    assert.deepEqual(
      gpus,
      full.gpus.filter(({ id }) => offered.has(id)),
    );
    assert.deepEqual(formats, full.formats);
    assert.deepEqual(limits, full.limits);
    // Where a setting's name and default stand is read in a part that asks the full kernel.
    const unsourced = ({ id, options }) => ({ id, options: options.map(({ source, ...rest }) => rest) });
    assert.ok(full.engines.every(({ options }) => options.every(({ source }) => source.length > 0)));
    assert.deepEqual(engines, full.engines.slice(0, 1).map(unsourced));
    const caches = formats.filter(({ cache, latent_only }) => cache && !latent_only).map(({ id }) => id);
    const weights = formats.filter((format) => format.weights).map(({ id }) => id);
    const contexts = [1, 100, 8192, 131072, 1_000_000];
    for (const [at, { id, hub_id }] of models.entries()) {
      ask(JSON.stringify({ model: id }), true);
      ask(JSON.stringify({ model: hub_id, context: contexts[at % 5] }), true);
      for (let i = 0; i < 8; i++) {
        const kv = caches[(at + i) % caches.length];
        const request = {
          model: id,
          context: contexts[(at + i) % 5],
          weights: weights[(at * 7 + i) % weights.length],
          kv: i % 3 ? kv : { k: kv, v: "bf16" },
          gpu: i === 5 ? { memory_bytes: 24e9 + at } : gpus[(at * 11 + i) % gpus.length].id,
          gpus: i + 1,
          options: { reserve: [0, 0.1, 0.25, 0.999999999][i % 4] },
        };
        ask(JSON.stringify(request), true);
      }
    }
    const odd = [0, -1, 1.5, 7, 2 ** 31, 2 ** 42, 999_999_999_999, 2 ** 53, 1e300, "8", "", "fp8", true, null, [], {}];
    odd.push({ memory_bytes: 1e12 }, { k: "fp8", v: "q8_0" }, { reserve: 0.5 }, { kv_memory_bytes: 1e10 }, { x: 1 });
    for (const field of ["model", "parameters", "weights", "kv", "weight_bytes", "gpu", "gpus", "kv_heads"]) {
      for (const value of odd) ask(JSON.stringify({ model: "llama-3-8b", [field]: value }));
    }
    for (const field of [
      "tensor_parallel",
      "pipeline_parallel",
      "data_parallel",
      "context",
      "engine",
      "options",
      "config",
      "other",
    ]) {
      for (const value of odd) ask(JSON.stringify({ model: "gpt-oss-120b", gpus: 6, [field]: value }));
    }
    const text = '{"model":"llama-3-8b","context":8192}';
    for (let end = 0; end < text.length; end++) {
      ask(text.slice(0, end));
      for (const piece of [" ", "0", ".", "-", "e1", "\\", '"', ",", "{", "}", "\u0000", "\n", "é"]) {
        ask(text.slice(0, end) + piece + text.slice(end));
      }
    }
    assert.ok(answered > 10 * models.length, `only ${answered} were answered`);
  });

  it("keeps parts and whole of the memory equal, to the byte", () => {
    for (const { id } of kernel.catalogue().models) {
      for (const gpus of [1, 3, 16]) {
        const answer = kernel.plan({ model: id, gpus, context: 4096 });
        if (answer.memory === null || answer.limit === "weights_do_not_fit") continue;
        const sum = answer.memory.segments.reduce((total, segment) => total + BigInt(segment.bytes), 0n);
        assert.equal(sum, BigInt(answer.memory.total_bytes), id);
        const share = answer.memory.segments.reduce((total, segment) => total + segment.share, 0);
        assert.ok(Math.abs(share - 1) < 1e-5, `${id}: shares add up to ${share}`);
        const cache = answer.memory.segments.find(({ kind }) => kind === "cache");
        assert.equal(BigInt(cache.bytes), BigInt(answer.sequences) * BigInt(answer.kv_bytes_per_sequence), id);
      }
    }
  });

  it("offers a catalogue in which every id is answered", () => {
    const { models, gpus, formats, engines, limits } = kernel.catalogue();
    assert.ok(models.length >= 20);
    assert.equal(new Set(models.map(({ id }) => id)).size, models.length);
    for (const { id, hub_id } of models) {
      const answer = kernel.plan({ model: id });
      assert.equal(answer.model?.id, id, JSON.stringify(answer.error));
      if (hub_id) assert.equal(kernel.plan({ model: hub_id }).model?.id, id, hub_id);
    }
    assert.equal(gpus[0].id, "80gb");
    for (const { id } of gpus) assert.equal(plan({ gpu: id }).gpu?.id, id, id);
    for (const { id, weights, cache, latent_only } of formats) {
      if (weights) assert.equal(plan({ weights: id }).weights, id);
      else assertRefused(plan({ weights: id }), "weights", id);
      if (cache && !latent_only) assert.equal(plan({ kv: id }).kv?.k, id, id);
      else assertRefused(plan({ kv: id }), "kv", id);
    }
    assert.equal(engines[0].id, "textbook");
    assert.equal(plan({ context: limits.max_context }).context, limits.max_context);
    assertRefused(plan({ context: limits.max_context + 1 }), "context", "one token too many");
  });

  it("D20: refuses what is no count, by its field, and coerces nothing", () => {
    const hostile = [
      0,
      -1,
      1.5,
      "8",
      "abc",
      "",
      true,
      [],
      {},
      [8],
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1e300,
      5e-324,
      null,
      "12",
      " 12",
      2 ** 53,
      2n ** 53n,
      2n ** 64n,
      2n ** 128n,
      -(2n ** 63n),
      10n ** 60n,
      new Number(Number.NaN),
      () => 8,
      Symbol("8"),
      new Date(0),
    ];
    for (const field of ["context", "gpus", "tensor_parallel", "pipeline_parallel", "data_parallel", "parameters"]) {
      for (const value of hostile) assertRefused(plan({ [field]: value }), field, `${field}: ${String(value)}`);
    }
    for (const value of hostile.filter((one) => one !== 0)) {
      assertRefused(plan({ weight_bytes: value }), "weight_bytes", `weight_bytes: ${String(value)}`);
    }
    assertRefused(plan({ context: 2 ** 31 + 1 }), "context", "2^31 + 1");
    assert.equal(plan({ context: 8192n }).sequences, 52);
    assert.equal(plan({ context: 8192.0 }).sequences, 52);
  });

  it("D21, D22, D27: refuses what is no id, no model and no request, as values of one form", () => {
    for (const field of ["model", "weights", "kv", "gpu", "engine"]) {
      for (const value of ["no-such-thing", "", "LLAMA 3", "../x", "x".repeat(100_000), 5, true, [], Number.NaN]) {
        const answer = plan({ [field]: value });
        assert.ok(answer.error, `${field}: ${String(value).slice(0, 40)}`);
        assert.equal(answer.error.field.split(/[.[]/)[0], field);
        assert.ok(answer.error.message.length < 5000);
      }
    }
    for (const request of [{}, { model: null }]) assertRefused(kernel.plan(request), "model", JSON.stringify(request));
    for (const request of [null, undefined, 5, "llama-3-8b", [], [{ model: "llama-3-8b" }], () => 1]) {
      assert.ok(kernel.plan(request).error, String(request));
    }
    assert.ok(plan({ kv: "\ud800" }).error);
    const loop = {};
    loop.model = loop;
    assert.equal(kernel.plan(loop).error.code, "malformed");
    assert.equal(
      kernel.plan({
        get model() {
          throw new Error("no");
        },
      }).error.code,
      "malformed",
    );
    for (const text of [
      "",
      "{",
      "nul",
      '{"model": "llama-3-8b"',
      "\u0000",
      "[".repeat(100_000),
      '{"model":"a","model":',
    ])
      assert.equal(JSON.parse(kernel.planText(text)).error.code, "malformed", text.slice(0, 20));
    assert.equal(JSON.parse(kernel.planText(" ".repeat((16 << 20) + 1))).error.code, "too_large");
  });

  it("refuses broken runs of layers by their place", () => {
    const full = { count: 32, kind: "full", kv_heads: 8, key_width: 128, value_width: 128 };
    const run = (change) => kernel.plan({ model: { parameters: 8e9, layers: [full, { ...full, ...change }] } });
    assert.equal(run({}).kv_bytes_per_token, 2 * 131072);
    for (const field of ["count", "kv_heads", "key_width", "value_width"]) {
      for (const value of [-1, 1.5, "8", Number.NaN, Number.POSITIVE_INFINITY, 2n ** 64n, [], {}]) {
        assertRefused(run({ [field]: value }), `model.layers[1].${field}`, `${field}: ${String(value)}`);
      }
    }
    for (const kind of ["fully", "", 5, null]) assertRefused(run({ kind }), "model.layers[1].kind", String(kind));
    for (const layers of [undefined, null, [], "32", 32, {}]) {
      assert.equal(kernel.plan({ model: { layers } }).error.field, "model.layers", String(layers));
    }
    assert.equal(kernel.plan({ model: { layers: [5] } }).error.field, "model.layers[0]");
    // Each factor is allowed, the product is not exact any more.
    const huge = { count: 65536, kind: "full", kv_heads: 65536, key_width: 2 ** 24, value_width: 2 ** 24 };
    const answer = kernel.plan({ model: { parameters: 1, layers: Array(100).fill(huge) }, context: 2 ** 31 });
    assert.ok(["out_of_range"].includes(answer.error?.code), JSON.stringify(answer).slice(0, 200));
  });

  it("answers or refuses whatever comes, and never anything else", () => {
    let seed = 1;
    const random = (below) => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed % below;
    };
    const { models, gpus, formats } = kernel.catalogue();
    const one = (list) => list[random(list.length)];
    const odd = () => one([0, -1, 1.5, 7, 64, 2 ** 31, 2 ** 53, Number.NaN, "x", null, true, [], {}, 3n ** 50n]);
    const fields = {
      model: () => one([one(models).id, one(models).hub_id, { layers: [odd()] }]),
      weights: () => one(formats).id,
      kv: () => one([one(formats).id, { k: one(formats).id, v: one(formats).id }]),
      gpu: () => one([one(gpus).id, { memory_bytes: one([1, 8e10, 2 ** 52]) }]),
      gpus: () => one([1, 2, 3, 8, 1000]),
      context: () => one([1, 1000, 8192, 2 ** 20, 2 ** 31]),
      parameters: () => one([1, 8e9, 2 ** 52]),
      options: () => one([{ reserve: 0 }, { reserve: 0.5 }, { kv_memory_bytes: 1e10 }, { nonsense: 1 }]),
    };
    let answered = 0;
    for (let i = 0; i < 3000; i++) {
      const request = {};
      for (const [field, value] of Object.entries(fields)) {
        if (field === "model" || random(3) === 0) request[field] = random(8) === 0 ? odd() : value();
      }
      const answer = kernel.plan(request);
      if (answer.error) {
        assert.ok(CODES.includes(answer.error.code), JSON.stringify(answer));
        continue;
      }
      answered++;
      for (const [name, value] of Object.entries(answer)) {
        if (typeof value === "number") assert.ok(Number.isFinite(value) && value >= 0, `${name} is ${value}`);
        if (name.endsWith("_bytes") && value !== null) assert.ok(Number.isSafeInteger(value), `${name} is ${value}`);
      }
      if (answer.sequences === 0) assert.notEqual(answer.limit, "cache");
    }
    assert.ok(answered > 300, `only ${answered} of 3000 were answered`);
  });

  it("simulates servers, makes and marks questions, and answers wishes where it is whole", () => {
    for (const name of ["paging", "quiz", "wish"]) assert.equal(core.instance[name], undefined, name);
    const ask = (name, question) => JSON.parse(kernel.instance[name](JSON.stringify(question)));

    const state = ask("paging", { seed: 2, step: 300, prefix_tokens: 64, history: true });
    assert.deepEqual(
      state.servers.map(({ policy }) => policy),
      ["contiguous", "paged", "shared"],
    );
    for (const { totals, stretches, history, peak, running, waiting, finished } of state.servers) {
      const sum = (list) => list.reduce((total, { tokens }) => total + tokens, 0);
      assert.equal(sum(Object.values(totals)), state.memory_tokens);
      assert.equal(sum(stretches), state.memory_tokens);
      assert.ok(history.running.length > 100 && Math.max(...history.running) <= peak);
      assert.ok(running + waiting + finished <= state.requests.length);
    }
    assertRefused(ask("paging", { page_tokens: 0 }), "page_tokens", "a page of nothing");
    assertRefused(ask("paging", "x"), "request", "text");

    const quiz = { seed: 9, level: 3 };
    const { questions } = ask("quiz", quiz);
    assert.equal(new Set(questions.map(({ kind }) => kind)).size, 9);
    questions.forEach((question, index) => {
      const { value, choice, request } = question;
      assert.equal(kernel.plan(request).error, undefined);
      const check = (answer) => ask("quiz", { ...quiz, check: { question: index, ...answer } });
      assert.equal(check({ value, choice }).verdict, "right");
      for (const mistake of question.mistakes) {
        const { verdict, diagnoses } = check({ value: mistake.value, choice: mistake.choice });
        assert.equal(verdict, "wrong");
        assert.ok(diagnoses.includes(mistake.code), mistake.code);
      }
    });
    assertRefused(ask("quiz", { ...quiz, check: { question: 0, value: "x" } }), "check.value", "a word for a number");

    const wish = ask("wish", { request: { model: "llama-3-8b" }, sequences: 100, context_k: 8 });
    assert.deepEqual([wish.context, wish.sequences_now, wish.fits], [8192, 52, false]);
    assert.deepEqual(wish.gpus, { count: 2, copies: 1, sequences: 119 });
    assert.deepEqual(wish.kv, { format: "fp8", sequences: 104 });
    assert.equal(wish.longest_context, 4267);
    assertRefused(ask("wish", { request: { model: "llama-3-8b" } }), "sequences", "a wish for nothing");
  });
});

describe("kv-capacity on the command line", () => {
  it("answers a request", async () => {
    const { status, out, complaint } = await command(["plan"], '{"model": "llama-3-8b", "context": 32768}\n');
    assert.equal(status, 0);
    assert.equal(complaint, "");
    assert.equal(JSON.parse(out).sequences, 13);
    assert.ok(out.endsWith("}\n") && out.trim().split("\n").length === 1);
  });

  it("says 2 for a bad request, and says why", async () => {
    for (const [input, field] of [
      ['{"model": "llama-3-8b", "context": 1.5}', "context"],
      ['{"model": "nothing"}', "model"],
      ["{}", "model"],
      ["", "request"],
      ["not json", "request"],
    ]) {
      const { status, out } = await command(["plan"], input);
      assert.equal(status, 2, input);
      assert.equal(JSON.parse(out).error.field, field, input);
    }
    const { status, out } = await command(["plan"], `{"model": "${"x".repeat(17 << 20)}"}`);
    assert.equal(status, 2);
    assert.equal(JSON.parse(out).error.code, "too_large");
  });

  it("goes on after bad lines", async () => {
    const lines = [
      '{"model": "llama-3-8b"}',
      "not json",
      "",
      '{"model": "llama-3-8b", "gpus": -1}\r',
      '{"model": "llama-3-70b", "gpus": 4}\r',
      '{"model": "llama-3-8b", "context": 131072}',
    ];
    const { status, out } = await command(["plan", "--jsonl"], lines.join("\n"));
    assert.equal(status, 2);
    const answers = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      answers.map((answer) => answer.error?.field ?? answer.sequences),
      [52, "request", "gpus", 54, 3],
    );
    assert.equal((await command(["plan", "--jsonl"], `${lines[0]}\n${lines[5]}\n`)).status, 0);
    const many = await command(["plan", "--jsonl"], `${lines[0]}\n`.repeat(2000));
    assert.equal(many.status, 0);
    assert.equal(many.out.trimEnd().split("\n").length, 2000);
  });

  it("explains itself", async () => {
    const help = await command(["--help"], "");
    assert.equal(help.status, 0);
    assert.match(help.out, /kv-capacity plan \[--jsonl\]/);
    const version = await command(["--version"], "");
    assert.match(version.out, /^\d+\.\d+\.\d+\n$/);
    for (const args of [[], ["plam"], ["plan", "--json"]]) {
      const { status, out, complaint } = await command(args, "{}");
      assert.equal(status, 2);
      assert.equal(out, "");
      assert.match(complaint, /Usage/);
    }
  });
});
