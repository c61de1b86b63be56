// What holds of every request, whatever the figures are: more memory, fewer tokens, more GPUs and smaller formats never
// fit fewer; what is reserved is at least what is written; and a plan depends on its request alone.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { fullKernel, plainKernel } from "./kernels.mjs";
import { ENGINES, randomness, randomRequest } from "./requests.mjs";

/** Settings whose defaults engines choose by the size of the GPU, given so that only what is varied varies. */
const FIXED = {
  textbook: {},
  vllm: { max_num_batched_tokens: 4096, max_num_seqs: 256 },
  sglang: {
    mem_fraction_static: 0.85,
    chunked_prefill_size: 4096,
    cuda_graph_max_bs: 64,
    max_running_requests: 4096,
    max_mamba_cache_size: 120,
  },
  "llama.cpp": { n_ubatch: 512 },
  "tensorrt-llm": {},
};
const VERSIONS = {
  textbook: [{}],
  vllm: [{}, { version: "0.6.3" }, { version: "0.8.5" }, { version: "0.11.0" }, { version: "0.20.0" }],
  sglang: [{}, { version: "0.3.0" }, { version: "0.4.6" }],
  "llama.cpp": [{}, { version: "b4000" }, { version: "b5500" }, { version: "b7000" }, { fork: "ik_llama.cpp" }],
  "tensorrt-llm": [{}, { version: "0.12.0" }],
};
const KNOWN_POOL = "kv_memory_bytes";

describe("properties", { timeout: 300_000 }, () => {
  let kernel;
  let text;
  const plan = (request) => JSON.parse(text(request));

  before(async () => {
    kernel = await fullKernel();
    text = (request) => kernel.plan(JSON.stringify(request));
  });

  /** `count` requests of an engine that are answered, with budgets as well as with known pools. */
  function* requests(engine, seed, count) {
    const random = randomness(seed);
    for (let tries = 0, answered = 0; answered < count; tries++) {
      assert.ok(tries < 20 * count, `${engine}: few are answered`);
      const request = randomRequest(random, [engine]);
      request.gpu = { memory_bytes: random.wide(2 ** 33, 2 ** 40) };
      request.weight_bytes = random.wide(10 ** 6, request.gpu.memory_bytes / 2);
      request.context = random.pick([random.wide(1, 2000), random.wide(1, 200_000), 8192]);
      request.options = { ...FIXED[engine], ...random.pick(VERSIONS[engine]) };
      if (random.chance(0.5)) request.options[KNOWN_POOL] = random.wide(10 ** 8, request.gpu.memory_bytes);
      const answer = plan(request);
      if (answer.error) continue;
      answered++;
      yield { request, answer, random };
    }
  }
  const changed = (request, change) => ({ ...structuredClone(request), ...change });

  /** Asks once more after a change that must not fit fewer; refusals are no answer. Gives how many were compared. */
  function neverFewer(engine, seed, change, count = 200) {
    let compared = 0;
    let more = 0;
    for (const { request, answer, random } of requests(engine, seed, count)) {
      const next = change(request, random);
      if (!next) continue;
      const second = plan(next);
      if (second.error) continue;
      compared++;
      if (second.sequences > answer.sequences) more++;
      assert.ok(
        second.sequences >= answer.sequences,
        `${answer.sequences} → ${second.sequences}\n${JSON.stringify(request)}\n${JSON.stringify(next)}`,
      );
    }
    assert.ok(compared > count / 5 && more > compared / 10, `${engine}: ${compared} compared, ${more} fit more`);
  }

  const keepsStates = ({ model }) => model.layers.some(({ kind }) => kind === "recurrent");
  const keepsIndex = ({ model }) => model.layers.some(({ indexer_width: width }) => width);

  for (const [at, engine] of ENGINES.entries()) {
    it(`${engine}: more memory never fits fewer`, () => {
      neverFewer(engine, 200 + at, (request, random) => {
        const factor = 1 + random.unit();
        const options = { ...request.options };
        if (options[KNOWN_POOL]) options[KNOWN_POOL] = Math.floor(options[KNOWN_POOL] * factor);
        return changed(request, { gpu: { memory_bytes: Math.floor(request.gpu.memory_bytes * factor) }, options });
      });
    });

    it(`${engine}: fewer tokens never fit fewer`, () => {
      neverFewer(engine, 300 + at, (request, random) =>
        changed(request, { context: Math.ceil(request.context * random.unit()) || 1 }),
      );
    });

    // Tensor parallelism copies latent rows and, past their count, KV heads: GPUs that hold the same rows and need some
    // memory to talk to each other.
    it(`${engine}: more GPUs never fit fewer`, () => {
      neverFewer(engine, 400 + at, (request, random) => {
        const sizes = { tensor_parallel: 1, pipeline_parallel: 1, data_parallel: 1, ...request };
        if (!request.tensor_parallel) sizes.tensor_parallel = engine === "llama.cpp" ? 1 : (request.gpus ?? 1);
        const copied = ({ kind, kv_heads: own }) =>
          kind === "latent" || (own && (request.kv_heads ?? own) % (2 * sizes.tensor_parallel) !== 0);
        const dealt = engine === "textbook" || !request.model.layers.some(copied);
        const split =
          engine === "llama.cpp"
            ? "pipeline_parallel"
            : dealt && random.chance(0.7)
              ? "tensor_parallel"
              : "data_parallel";
        sizes[split] *= 2;
        sizes.gpus = sizes.tensor_parallel * sizes.pipeline_parallel * sizes.data_parallel;
        return structuredClone(sizes);
      });
    });

    it(`${engine}: smaller formats of the cache never fit fewer`, () => {
      const sizes = engine === "llama.cpp" ? ["fp32", "bf16", "q8_0", "q5_0", "q4_0"] : ["bf16", "fp8"];
      neverFewer(engine, 500 + at, (request) => {
        // The textbook leaves index keys out of a 16-bit cache, and vLLM fits its blocks to the states.
        if (keepsIndex(request) || keepsStates(request)) return undefined;
        const smaller = sizes[sizes.indexOf(request.kv ?? "bf16") + 1];
        return sizes.includes(request.kv ?? "bf16") && smaller ? changed(request, { kv: smaller }) : undefined;
      });
    });

    it(`${engine}: smaller weights never fit fewer`, () => {
      neverFewer(engine, 600 + at, (request, random) => {
        if (request.options[KNOWN_POOL]) return undefined;
        return changed(request, { weight_bytes: Math.floor(request.weight_bytes * random.unit()) });
      });
    });

    it(`${engine}: reserved is at least written, and the gaps are the difference`, () => {
      for (const { request, answer } of requests(engine, 700 + at, 400)) {
        const { kv_reserved_per_sequence: reserved, kv_bytes_per_sequence: written, gaps } = answer;
        const asked = JSON.stringify(request);
        assert.ok(reserved >= written, `${reserved} for ${written}: ${asked}`);
        if (engine === "textbook") assert.equal(reserved, written, asked);
        else
          assert.equal(
            gaps.reduce((total, { bytes }) => total + bytes, written),
            reserved,
            asked,
          );
        for (const { code, bytes } of gaps) assert.ok(bytes > 0, `${code} ${bytes}: ${asked}`);
      }
    });

    it(`${engine}: what was understood, asked again, gets the same figures`, () => {
      for (const { request, answer } of requests(engine, 800 + at, 100)) {
        const { model, context, kv, gpu, deployment } = answer;
        // The layers are told with the KV heads that were asked for, so asked again nothing is changed.
        answer.notes = answer.notes.filter(({ code }) => code !== "kv_heads_changed");
        const again = plan({
          model: { parameters: model.parameters, native_weights: model.native_weights, layers: model.layers },
          context,
          kv,
          weights: answer.weights ?? undefined,
          weight_bytes: answer.weight_bytes,
          gpu: { memory_bytes: gpu.memory_bytes },
          ...deployment,
          engine: answer.engine,
          options: request.options,
        });
        const figures = ({ model: _model, derivation: _derivation, weights: _weights, ...rest }) => rest;
        assert.deepEqual(figures(again), figures(answer), JSON.stringify(request));
      }
    });

    it(`${engine}: a request spelt otherwise gets the same text`, () => {
      const escaped = (word) =>
        `"${[...word].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`;
      const spelt = (value) => {
        if (Array.isArray(value)) return `[\n${value.map(spelt).join(" ,\t")} ]`;
        if (typeof value === "object") {
          const members = Object.entries(value).reverse();
          return `{ ${members.map(([key, member]) => `${escaped(key)} :\r\n${spelt(member)}`).join(",\n")} }`;
        }
        if (typeof value === "string") return escaped(value);
        return Number.isInteger(value) ? `${value}.0e0` : JSON.stringify(value);
      };
      for (const { request } of requests(engine, 900 + at, 50)) {
        assert.equal(kernel.plan(spelt(request)), text(request), spelt(request));
      }
    });
  }

  it("a plan depends on nothing but its request: not on order, instance, or what was refused before", async () => {
    const asked = ENGINES.flatMap((engine, at) =>
      [...requests(engine, 1000 + at, 20)].map(({ request }) => request),
    ).map((request) => JSON.stringify(request));
    const first = asked.map((request) => kernel.plan(request));
    const hostile = [
      "",
      "{",
      "[".repeat(5000),
      `{"model":"${"x".repeat(100_000)}"}`,
      '{"model":"llama-3-8b","context":1e999}',
      '{"model":{"layers":[{"count":4294967296,"kind":"full"}]}}',
      '{"config":{"model_type":"llama"}}',
      '{"model":"\\ud800"}',
      "\0\u{10ffff}",
    ];
    const random = randomness(12);
    const other = await fullKernel({ fresh: true });
    assert.notEqual(other, kernel);
    const plain = [await plainKernel(), await plainKernel()];
    assert.notEqual(plain[0], plain[1]);
    for (const instance of [kernel, other, ...plain]) {
      const order = asked.map((_, at) => at).sort(() => random.unit() - 0.5);
      for (const at of order) {
        if (random.chance(0.3)) assert.ok(JSON.parse(instance.plan(random.pick(hostile))).error);
        assert.equal(instance.plan(asked[at]), first[at], asked[at]);
      }
    }
  });
});
