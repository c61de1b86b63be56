// What holds of every request, whatever the figures are: more memory, fewer tokens, more GPUs and smaller formats never
// fit fewer; what is reserved is at least what is written; and a plan depends on its request alone.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { fullKernel, plainKernel } from "./kernels.mjs";
import { bytesOf, CACHE_FORMATS, ceilDiv, FORMATS, max, rowOf, runsOf, stateOf, WEIGHT_FORMATS } from "./oracle.mjs";
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
/** Bits of a value, scales included. */
const bits = (format) => Number(8n * FORMATS[format][1]) / Number(FORMATS[format][0]);

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
  function* requests(engine, seed, count, prepare = () => {}) {
    const random = randomness(seed);
    for (let tries = 0, answered = 0; answered < count; tries++) {
      assert.ok(tries < 20 * count, `${engine}: few are answered`);
      const request = randomRequest(random, [engine]);
      request.gpu = { memory_bytes: random.wide(2 ** 33, 2 ** 40) };
      request.weight_bytes = random.wide(10 ** 6, request.gpu.memory_bytes / 2);
      request.context = random.pick([random.wide(1, 2000), random.wide(1, 200_000), 8192]);
      request.options = { ...FIXED[engine], ...random.pick(VERSIONS[engine]) };
      if (random.chance(0.5)) request.options[KNOWN_POOL] = random.wide(10 ** 8, request.gpu.memory_bytes);
      prepare(request, random);
      const answer = plan(request);
      if (answer.error) continue;
      answered++;
      yield { request, answer, random };
    }
  }
  const changed = (request, change) => ({ ...structuredClone(request), ...change });

  /** Asks once more after a change that must not fit fewer; refusals are no answer. Gives how many were compared. */
  function neverFewer(engine, seed, change, { count = 200, prepare } = {}) {
    let compared = 0;
    let more = 0;
    for (const { request, answer, random } of requests(engine, seed, count, prepare)) {
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

  /** Weights of a format, in place of so many bytes. */
  const weighByFormat = (request, random) => {
    delete request.weight_bytes;
    delete request.options[KNOWN_POOL];
    const gpus = (request.tensor_parallel ?? 1) * (request.pipeline_parallel ?? 1);
    request.model.parameters = Math.floor(request.gpu.memory_bytes * gpus * random.unit()) + 1;
    request.weights = random.pick(WEIGHT_FORMATS);
    // Long enough that memory is the limit and not an engine's most requests.
    request.context = random.wide(2000, 100_000);
  };

  const keepsWindows = ({ model }) => model.layers.some(({ kind }) => kind === "window" || kind === "chunked");
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
      neverFewer(
        engine,
        400 + at,
        (request, random) => {
          const sizes = { tensor_parallel: 1, pipeline_parallel: 1, data_parallel: 1, ...request };
          if (!request.tensor_parallel) sizes.tensor_parallel = engine === "llama.cpp" ? 1 : (request.gpus ?? 1);
          const split = random.pick(["tensor_parallel", "pipeline_parallel", "data_parallel"]);
          sizes[split] += random.pick([sizes[split], 1, 2, 3, 4]);
          const copied = ({ latent_width: isLatent, kv_heads: own }) =>
            isLatent || (own && (request.kv_heads ?? own) % sizes.tensor_parallel !== 0);
          if (split === "tensor_parallel" && engine !== "textbook" && request.model.layers.some(copied))
            return undefined;
          // Every stage of vLLM has a batch under way, whose tokens each window layer keeps beside its window.
          if (split === "pipeline_parallel" && engine === "vllm" && keepsWindows(request)) return undefined;
          sizes.gpus = sizes.tensor_parallel * sizes.pipeline_parallel * sizes.data_parallel;
          return structuredClone(sizes);
        },
        { count: 600 },
      );
    });

    it(`${engine}: smaller formats of the cache never fit fewer`, () => {
      neverFewer(
        engine,
        500 + at,
        (request, random) => {
          const kv = typeof request.kv === "object" ? request.kv : { k: request.kv ?? "bf16", v: request.kv ?? "bf16" };
          const smaller = { ...kv };
          for (const part of random.pick([["k"], ["v"], ["k", "v"]])) {
            const others = CACHE_FORMATS.filter((one) => one !== kv[part] && bits(one) <= bits(kv[part]));
            if (others.length === 0) return undefined;
            smaller[part] = random.pick(others);
          }
          // Of a row that is no whole number of blocks the smaller format can take more.
          const grows = (run) => {
            const [before, after] = [kv, smaller].map((formats) => rowOf(run, { ...formats, engine }, 1n));
            return after.k > before.k || after.v > before.v;
          };
          const runs = runsOf(request);
          if (runs.some(grows)) return undefined;
          // The textbook counts index keys beside rows of fp8 alone, since engines differ.
          const counted = ({ k }) => k === "fp8" || k === "fp8_ds_mla";
          if (engine === "textbook" && keepsIndex(request) && counted(smaller) && !counted(kv)) return undefined;
          // vLLM's page is the fewest rows, sixteen at a time, that hold a state: of smaller rows at times more bytes.
          const page = (formats) => {
            const t = BigInt(request.tensor_parallel ?? request.gpus ?? 1);
            const row = max(
              ...runs.map((run) => Object.values(rowOf(run, { ...formats, engine }, t)).reduce((a, b) => a + b)),
            );
            return 16n * ceilDiv(max(...runs.map((run) => stateOf(run, t))), 16n * row) * row;
          };
          if (engine === "vllm" && keepsStates(request) && page(smaller) > page(kv)) return undefined;
          return changed(request, { kv: smaller.k === smaller.v ? smaller.k : smaller });
        },
        { count: 1000 },
      );
    });

    it(`${engine}: smaller formats of weights never fit fewer`, () => {
      neverFewer(
        engine,
        550 + at,
        (request, random) => {
          const parameters = BigInt(request.model.parameters);
          return changed(request, {
            weights: random.pick(
              WEIGHT_FORMATS.filter((format) => bytesOf(format, parameters) <= bytesOf(request.weights, parameters)),
            ),
          });
        },
        { count: 400, prepare: weighByFormat },
      );
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
