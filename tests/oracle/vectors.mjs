// The conformance file tests/data/vectors.jsonl: requests and answers with their sources, for any calculator. Nothing in
// it comes from the kernel that it is held against: answers are published figures, the golden table, what engines
// printed, or the arithmetic of oracle.mjs on numbers that can be checked by hand.
//
//   node tests/oracle/vectors.mjs        writes the file anew
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CACHE_FORMATS, oracle, WEIGHT_FORMATS } from "./oracle.mjs";

const data = new URL("../data/", import.meta.url);
export const VECTORS = fileURLToPath(new URL("vectors.jsonl", data));

const table = (name) => {
  const [head, ...rows] = readFileSync(new URL(name, data), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  return rows.map((cells) => Object.fromEntries(head.map((key, at) => [key, cells[at]])));
};

/** Bytes of one 16-bit conversation of every checked model, at two of the five lengths each. */
function golden() {
  const sources = new Map(table("models.tsv").map((row) => [row.model_id, row.source]));
  const lengths = [1, 128, 4096, 32768, 131072];
  return table("golden.tsv").flatMap((row, at) =>
    [lengths[at % 5], lengths[(at + 3) % 5]].map((context) => ({
      id: `golden/${row.model_id}/${context}`,
      source: `golden.tsv: capped_${context} and state_bytes; shape from ${sources.get(row.model_id)}`,
      request: { model: row.model_id, kv: "bf16", context },
      answer: { kv_bytes_per_sequence: Number(row[`capped_${context}`]) + Number(row.state_bytes) },
    })),
  );
}

/** Figures that people measured or published. */
const published = [
  [
    "BLOOM's weights",
    "total_size of its weight index",
    { model: "bigscience/bloom", weights: "bf16" },
    { weight_bytes: 352_494_542_848 },
  ],
  [
    "Mixtral 8x22B's weights",
    "total_size of WizardLM-2-8x22B's weight index, 2 × 140,620,634,112",
    { model: "mistralai/Mixtral-8x22B-v0.1", parameters: 140_620_634_112, weights: "bf16" },
    { weight_bytes: 281_241_268_224 },
  ],
  [
    "gpt-oss 20B's weights",
    "total_size of its weight index, MXFP4 as stored",
    { model: "openai/gpt-oss-20b" },
    { weight_bytes: 13_761_264_768 },
  ],
  [
    "gpt-oss 120B's token",
    "vLLM's log: 5.38 GiB for 78,384 tokens; 36 layers × 8 heads × 2 × 64 × 2 bytes",
    { model: "openai/gpt-oss-120b", context: 1 },
    { kv_bytes_per_token: 73_728 },
  ],
  [
    "DeepSeek V3.2's token",
    "sgl-project/sglang pull request 11309: 61 × (656 + 132)",
    { model: "deepseek-ai/DeepSeek-V3.2", kv: "fp8_ds_mla" },
    { kv_bytes_per_token: 48_068 },
  ],
  [
    "GLM-5.2's token",
    "vLLM's log: 78 × 656 + 21 × 132, an indexer in 21 layers only",
    { model: "zai-org/GLM-5.2", kv: "fp8_ds_mla" },
    { kv_bytes_per_token: 53_940 },
  ],
  [
    "Qwen3 4B's token",
    "2 × 36 layers × 8 heads × 128 × 2 bytes",
    { model: "Qwen/Qwen3-4B" },
    { kv_bytes_per_token: 147_456 },
  ],
  [
    "Llama 3.1 405B's token",
    "huggingface/blog issue 2345: 126 layers of 8 KV heads, not 16",
    { model: "meta-llama/Llama-3.1-405B" },
    { kv_bytes_per_token: 516_096 },
  ],
  [
    "DeepSeek V3 at TP8",
    "SGLang's logs: 61 × 576 × 2 = 70,272 bytes a token on each of 8 GPUs",
    {
      model: "deepseek-ai/DeepSeek-V3",
      engine: "sglang",
      gpus: 8,
      gpu: { memory_bytes: 151_397_597_184 },
      options: { kv_memory_bytes: 70_272_000_000 },
    },
    { kv_bytes_per_token: 562_176, kv_tokens: 1_000_000 },
  ],
  [
    "Llama 3.1 70B at TP8",
    "vLLM's log: 175,884 blocks of 16 tokens, 80 layers × 1 head × 2 × 128 × 2 bytes on each GPU",
    {
      model: "meta-llama/Llama-3.1-70B",
      engine: "vllm",
      gpus: 8,
      gpu: { memory_bytes: 151_397_597_184 },
      context: 8192,
      options: { kv_memory_bytes: 175_884 * 655_360 },
    },
    { kv_blocks: 175_884, kv_tokens: 2_814_144, kv_memory_bytes: 8 * 175_884 * 655_360 },
  ],
  [
    "Gemma 3 27B's groups",
    "vLLM's log: 89,994 blocks of 10 layers, 50.05 requests of 4,096 tokens: 89,994 / (256 + 6 × 257)",
    {
      model: "google/gemma-3-27b-it",
      engine: "vllm",
      gpu: { memory_bytes: 151_397_597_184 },
      context: 4096,
      options: { kv_memory_bytes: 89_994 * 1_310_720, max_num_batched_tokens: 8192 },
    },
    { kv_blocks: 89_994, sequences: 50 },
  ],
].map(([name, source, request, answer]) => ({ id: `published/${name}`, source, request, answer }));

const MODEL = { parameters: 8_000_000_000, native_weights: "bf16" };
const GPU = { memory_bytes: 80_000_000_000 };
const rows = { kv_heads: 8, key_width: 128, value_width: 128 };
const KINDS = {
  full: [{ count: 32, kind: "full", ...rows }],
  "full, K as V": [{ count: 32, kind: "full", kv_heads: 2, key_width: 512, value_width: 0 }],
  "full, K wider than V": [{ count: 48, kind: "full", kv_heads: 4, key_width: 192, value_width: 128 }],
  window: [{ count: 32, kind: "window", ...rows, window: 4096 }],
  "window among full": [
    { count: 10, kind: "full", kv_heads: 16, key_width: 128, value_width: 128 },
    { count: 52, kind: "window", kv_heads: 16, key_width: 128, value_width: 128, window: 1024 },
  ],
  "chunked among full": [
    { count: 12, kind: "full", ...rows },
    { count: 36, kind: "chunked", ...rows, window: 8192 },
  ],
  latent: [{ count: 61, kind: "latent", latent_width: 576 }],
  "latent with indexer": [
    { count: 57, kind: "latent", latent_width: 576 },
    { count: 21, kind: "latent", latent_width: 576, indexer_width: 128 },
  ],
  compressed: [
    { count: 21, kind: "compressed", latent_width: 512, tokens_per_entry: 4 },
    { count: 20, kind: "compressed", latent_width: 512, tokens_per_entry: 128 },
  ],
  "recurrent among full": [
    { count: 16, kind: "full", kv_heads: 4, key_width: 256, value_width: 256 },
    {
      count: 48,
      kind: "recurrent",
      state_values: 786_432,
      state_format: "fp32",
      conv_values: 30_720,
      conv_format: "bf16",
    },
  ],
  recurrent: [
    {
      count: 64,
      kind: "recurrent",
      state_values: 524_288,
      state_format: "fp32",
      conv_values: 24_576,
      conv_format: "bf16",
    },
  ],
  shared: [
    { count: 20, kind: "full", kv_heads: 2, key_width: 256, value_width: 256 },
    { count: 15, kind: "shared" },
  ],
  none: [
    { count: 10, kind: "full", ...rows },
    { count: 54, kind: "none" },
  ],
  cross: [
    { count: 32, kind: "full", ...rows },
    { count: 8, kind: "cross", ...rows, source_tokens: 1601 },
  ],
};

const exactly = (figures) =>
  Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, value === null ? null : Number(value)]));

/** A case whose answer is worked out by `oracle`. */
function worked(id, source, request) {
  const figures = oracle(request);
  if (figures.refused) throw new Error(`${id} is refused: ${figures.refused}`);
  return { id, source, request, answer: exactly(figures) };
}

function byKind() {
  return Object.entries(KINDS).flatMap(([kind, layers]) =>
    [1, 5000, 100_000].map((context) =>
      worked(
        `kind/${kind}/${context}`,
        "rows kept × bytes of a row, and states; oracle.mjs names the paper of each kind",
        { model: { ...MODEL, layers }, gpu: GPU, context, engine: "textbook" },
      ),
    ),
  );
}

function byFormat() {
  const full = { ...MODEL, layers: KINDS.full };
  const cache = CACHE_FORMATS.map((kv) =>
    worked(`cache/${kv}`, "values of a block and its bytes: oracle.mjs, FORMATS", {
      model: kv === "fp8_ds_mla" ? { ...MODEL, layers: KINDS["latent with indexer"] } : full,
      gpu: GPU,
      kv,
    }),
  );
  const pairs = [
    ["q8_0", "q4_0"],
    ["bf16", "fp8"],
    ["q5_1", "iq4_nl"],
    ["fp32", "int4"],
  ].map(([k, v]) =>
    worked(`cache/${k}, ${v}`, "K and V each in a format of their own", { model: full, gpu: GPU, kv: { k, v } }),
  );
  const weights = WEIGHT_FORMATS.map((weights) =>
    worked(`weights/${weights}`, "blocks of the parameters, the last one whole: oracle.mjs, FORMATS", {
      model: { ...full, parameters: 8_030_261_249 },
      gpu: GPU,
      weights,
    }),
  );
  return [...cache, ...pairs, ...weights];
}

function bySplit() {
  const sizes = [
    [2, 1, 1],
    [8, 1, 1],
    [16, 1, 1],
    [2, 3, 1],
    [1, 4, 2],
    [4, 2, 2],
  ];
  return ["textbook", "vllm", "sglang", "tensorrt-llm"].flatMap((engine) =>
    ["full", "latent"].flatMap((kind) =>
      sizes.map(([tensor_parallel, pipeline_parallel, data_parallel]) =>
        worked(
          `split/${engine}/${kind}/${tensor_parallel} × ${pipeline_parallel} × ${data_parallel}`,
          "KV heads are divided down to one and then copied, a latent row is whole on each GPU, layers are dealt out (Shoeybi et al. 2019)",
          {
            model: { ...MODEL, layers: KINDS[kind] },
            gpu: GPU,
            gpus: tensor_parallel * pipeline_parallel * data_parallel,
            tensor_parallel,
            pipeline_parallel,
            data_parallel,
            engine,
            context: 10_000,
            options: engine === "textbook" ? {} : { kv_memory_bytes: 40_000_000_000 },
          },
        ),
      ),
    ),
  );
}

function byEngine() {
  const kv_memory_bytes = 40_000_000_000;
  const asked = {
    textbook: [
      "textbook: a pool of all GPUs' memory, less 10 % and the weights",
      ["full", "window among full", "recurrent among full"],
      [{}, { reserve: 0.05 }, { kv_memory_bytes }],
    ],
    vllm: [
      "vLLM vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py",
      ["full", "latent with indexer", "window among full", "chunked among full", "recurrent among full"],
      [
        { kv_memory_bytes, max_num_batched_tokens: 2048 },
        { kv_memory_bytes, max_num_batched_tokens: 2048, async_scheduling: false, enable_prefix_caching: false },
        { kv_memory_bytes, max_num_batched_tokens: 8192, block_size: 64 },
      ],
    ],
    sglang: [
      "SGLang python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py",
      ["full", "latent with indexer", "window among full", "chunked among full", "recurrent among full"],
      [
        { kv_memory_bytes, max_mamba_cache_size: 90 },
        { kv_memory_bytes, max_mamba_cache_size: 90, page_size: 64, swa_full_tokens_ratio: 0.5 },
        { kv_memory_bytes, max_mamba_cache_size: 90, disable_radix_cache: true, max_running_requests: 7 },
      ],
    ],
    "llama.cpp": [
      "llama.cpp src/llama-context.cpp, src/llama-kv-cache-iswa.cpp and src/llama-memory-recurrent.cpp",
      ["full", "latent with indexer", "window among full", "recurrent among full"],
      [{ kv_memory_bytes }, { kv_memory_bytes, n_ubatch: 2048 }, { kv_memory_bytes, swa_full: true }],
    ],
    "tensorrt-llm": [
      "TensorRT-LLM cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp",
      ["full", "latent with indexer", "window among full"],
      [{ kv_memory_bytes }, { kv_memory_bytes, tokens_per_block: 64 }],
    ],
  };
  return Object.entries(asked).flatMap(([engine, [source, kinds, settings]]) =>
    kinds.flatMap((kind) =>
      settings.flatMap((options, at) =>
        [1000, 33_333].map((context) =>
          worked(`engine/${engine}/${kind}/${at + 1}/${context}`, source, {
            model: { ...MODEL, layers: KINDS[kind] },
            gpu: GPU,
            kv: kind.startsWith("latent") ? "bf16" : ["bf16", engine === "llama.cpp" ? "q8_0" : "fp8"][at % 2],
            context,
            engine,
            options,
          }),
        ),
      ),
    ),
  );
}

/** What must not be answered: a field and what is wrong with it. */
function refusals() {
  const model = { ...MODEL, layers: KINDS.full };
  const run = (change) => ({ model: { ...MODEL, layers: [{ ...KINDS.full[0], ...change }] } });
  return [
    ["no model", {}, "missing", "model"],
    ["model unknown", { model: "llama-9-1t" }, "unknown_id", "model"],
    ["no tokens", { model, context: 0 }, "out_of_range", "context"],
    ["half a token", { model, context: 0.5 }, "not_whole", "context"],
    ["tokens below none", { model, context: -1 }, "out_of_range", "context"],
    ["tokens past 2^31", { model, context: 2 ** 31 + 1 }, "out_of_range", "context"],
    ["tokens in words", { model, context: "many" }, "wrong_type", "context"],
    ["no GPU at all", { model, gpus: 0 }, "out_of_range", "gpus"],
    ["GPU unknown", { model, gpu: "h900" }, "unknown_id", "gpu"],
    ["GPUs that contradict the split", { model, gpus: 8, tensor_parallel: 2 }, "conflict", "gpus"],
    ["format unknown", { model, kv: "fp7" }, "unknown_id", "kv"],
    ["a weights' format as cache", { model, kv: "q4_k" }, "unknown_id", "kv"],
    ["a packed latent row for K and V", { model, kv: "fp8_ds_mla" }, "conflict", "kv"],
    ["engine unknown", { model, engine: "tgi" }, "unknown_id", "engine"],
    ["option unknown", { model, options: { speed: 1 } }, "unknown_id", "options.speed"],
    ["all memory kept free", { model, options: { reserve: 1 } }, "out_of_range", "options.reserve"],
    [
      "heads that do not divide",
      { model: { ...MODEL, layers: [{ ...KINDS.full[0], kv_heads: 6 }] }, engine: "vllm", gpus: 4 },
      "not_divisible",
      "tensor_parallel",
    ],
    [
      "a pool larger than the GPU",
      { model, gpu: GPU, engine: "vllm", options: { kv_memory_bytes: 80_000_000_001 } },
      "out_of_range",
      "options.kv_memory_bytes",
    ],
    ["nothing cached", { model: { ...MODEL, layers: [{ count: 4, kind: "none" }] } }, "no_cache", "model"],
    [
      "KV heads where there are none",
      { model: { ...MODEL, layers: KINDS.latent }, kv_heads: 8 },
      "conflict",
      "kv_heads",
    ],
    ["no layers", { model: { ...MODEL, layers: [] } }, "out_of_range", "model.layers"],
    ["kind unknown", run({ kind: "sparse" }), "unknown_id", "model.layers[0].kind"],
    ["KV heads below none", run({ kv_heads: -8 }), "out_of_range", "model.layers[0].kv_heads"],
    ["a window without its size", run({ kind: "window" }), "missing", "model.layers[0].window"],
    [
      "more than 2^53 bytes",
      {
        model: {
          ...MODEL,
          layers: Array(4).fill({ count: 65_536, kind: "full", kv_heads: 65_536, key_width: 65_536, value_width: 0 }),
        },
        context: 1000,
      },
      "out_of_range",
      "context",
    ],
  ].map(([name, request, code, field]) => ({
    id: `refused/${name}`,
    source: "the contract: which field, and what is wrong with it",
    request,
    answer: { error: { code, field } },
  }));
}

export const vectors = () => [
  ...golden(),
  ...published,
  ...byKind(),
  ...byFormat(),
  ...bySplit(),
  ...byEngine(),
  ...refusals(),
];

/** One vector a line. */
export const written = (list) => list.map((vector) => `${JSON.stringify(vector)}\n`).join("");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const list = vectors();
  writeFileSync(VECTORS, written(list));
  console.log(`${list.length} vectors`);
}
