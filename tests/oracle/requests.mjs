// Random requests, the same for the same seed: every kind of layer and mixes of them, every format, K and V apart, sizes
// of GPUs, splits, lengths and engines with their options.
import { CACHE_FORMATS, WEIGHT_FORMATS } from "./oracle.mjs";

/** Numbers from a seed (xorshift of Marsaglia, 2003, over a mixed start). */
export function randomness(seed) {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ 0x2545f491) >>> 0 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
  for (let i = 0; i < 8; i++) next();
  const random = {
    /** 0 ≤ x < 1. */
    unit: () => next() / 2 ** 32,
    whole: (low, high) => low + Math.floor(random.unit() * (high - low + 1)),
    /** Every order of magnitude alike. */
    wide: (low, high) => Math.min(high, Math.floor(low * (high / low) ** random.unit())),
    pick: (list) => list[random.whole(0, list.length - 1)],
    chance: (share) => random.unit() < share,
  };
  return random;
}

const heads = (random) => random.pick([1, 1, 2, 4, 5, 8, 8, 8, 16, 32, random.whole(1, 128)]);
const width = (random) => random.pick([64, 80, 96, 128, 128, 192, 256, 512, random.whole(1, 600)]);
const window = (random) => random.pick([128, 512, 1024, 4096, 8192, random.wide(1, 200_000)]);

const rows = (random) => ({
  kv_heads: heads(random),
  key_width: width(random),
  value_width: random.chance(0.15) ? 0 : width(random),
});
const latent = (random, packed) => ({
  latent_width: packed || random.chance(0.5) ? 576 : random.whole(1, 1200),
  ...(random.chance(0.3) ? { indexer_width: random.pick([64, 128, 256]) } : {}),
});

const kinds = {
  full: (random) => ({ ...rows(random), ...(random.chance(0.05) ? { indexer_width: 128 } : {}) }),
  window: (random) => ({ ...rows(random), window: window(random) }),
  chunked: (random) => ({ ...rows(random), window: window(random) }),
  latent,
  compressed: (random, packed) => ({
    ...(packed || random.chance(0.5) ? latent(random, packed) : rows(random)),
    tokens_per_entry: random.pick([2, 4, 128, random.whole(1, 300)]),
  }),
  recurrent: (random) => ({
    state_values: random.wide(1, 2 ** 23),
    state_format: random.pick(["fp32", "bf16", "fp16"]),
    ...(random.chance(0.8)
      ? { conv_values: random.wide(1, 2 ** 17), conv_format: random.pick(["fp32", "bf16", "fp16"]) }
      : {}),
  }),
  shared: () => ({}),
  none: () => ({}),
  cross: (random) => ({ ...rows(random), source_tokens: random.wide(1, 20_000) }),
};
export const KINDS = Object.keys(kinds);

function layers(random, packed, allowed) {
  const usable = packed
    ? allowed.filter((kind) => ["latent", "compressed", "recurrent", "shared", "none"].includes(kind))
    : allowed;
  const some = Array.from({ length: random.pick([1, 1, 1, 2, 2, 3, 4, 6]) }, () => {
    const kind = random.pick(usable);
    return {
      count: random.pick([1, 2, 10, 12, 32, 48, 80, random.whole(1, 130)]),
      kind,
      ...kinds[kind](random, packed),
    };
  });
  // The same run again, elsewhere: what counts is the sum.
  if (random.chance(0.2)) some.push({ ...random.pick(some), count: random.whole(1, 40) });
  return some;
}

const memory = (random) =>
  random.chance(0.5)
    ? random.pick([24, 40, 48, 80, 141, 192]) * random.pick([10 ** 9, 2 ** 30])
    : random.wide(10 ** 9, 10 ** 12);

export const ENGINES = ["textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"];

/**
 * Formats that an engine's cache is asked in; fp8_ds_mla, which takes rows of its own width, comes with such rows. Not asked
 * are the formats that llama.cpp refuses.
 */
const unpacked = CACHE_FORMATS.filter((format) => format !== "fp8_ds_mla");
export const SERVED = {
  textbook: unpacked,
  vllm: unpacked,
  sglang: unpacked,
  "llama.cpp": ["bf16", "fp16", "fp32", "q8_0", "q6_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"],
  "tensorrt-llm": unpacked,
};

/**
 * Kinds of layers that an engine is asked of. Cross-attention is asked of vLLM alone: SGLang and TensorRT-LLM have no rule
 * for it and refuse it, and what llama.cpp keeps of another input comes from no source here.
 */
const common = KINDS.filter((kind) => kind !== "cross");
export const ASKED = {
  textbook: KINDS,
  vllm: KINDS,
  sglang: common,
  "llama.cpp": common,
  "tensorrt-llm": common,
};

/**
 * A mix of layers whose size an engine's source determines: layers of one kind and any widths; or windows, chunks, states
 * or cross-attention among full layers of one width, as the models have that they were made for. Compressed layers stand
 * alone or beside latent ones: how vLLM deals windows out among them is only an estimate (DeepSeek V4). A block is whole
 * entries, and in SGLang a token's share of an entry is whole bytes: how either is rounded is not settled.
 */
function servedLayers(random, packed, engine) {
  const count = () => random.pick([1, 2, 8, 10, 16, 24, 30, 36, 48, 60, random.whole(1, 130)]);
  const shape = () => {
    const key_width = 32 * random.whole(1, 16);
    return {
      kv_heads: random.pick([1, 2, 4, 8, 8, 16, 32]),
      key_width,
      value_width: random.chance(0.8) ? key_width : 32 * random.whole(1, 16),
    };
  };
  const some = [];
  const mix = packed
    ? random.pick(["latent", "compressed"])
    : random.pick([
        "full",
        "full",
        "latent",
        ...ASKED[engine].filter((kind) => !["full", "shared", "none"].includes(kind)),
      ]);
  if (mix === "latent") {
    const indexer = random.chance(0.3);
    for (let i = random.whole(1, 2); i > 0; i--) {
      const latent_width = packed ? 576 : 32 * random.whole(2, 36);
      some.push({ count: count(), kind: "latent", latent_width, ...(indexer ? { indexer_width: 128 } : {}) });
    }
  } else if (mix === "compressed") {
    const indexer = random.chance(0.3) ? { indexer_width: 128 } : {};
    for (let i = random.whole(1, 2); i > 0; i--) {
      const latent_width = packed ? 576 : 128 * random.pick([1, 2, 4, 4, 5, 8]);
      const tokens_per_entry = random.pick(engine === "sglang" ? [2, 4] : [2, 4, 4, 16, 128]);
      some.push({ count: count(), kind: mix, latent_width, ...indexer, tokens_per_entry });
    }
    if (random.chance(0.3)) some.push({ count: count(), kind: "latent", latent_width: 576, ...indexer });
  } else if (mix === "full") {
    for (let i = random.pick([1, 1, 2, 3]); i > 0; i--) some.push({ count: count(), kind: "full", ...shape() });
  } else {
    const own = shape();
    some.push({ count: count(), kind: "full", ...own });
    if (mix === "recurrent") some.push({ count: count(), kind: mix, ...kinds.recurrent(random) });
    else if (mix === "cross") some.push({ count: count(), kind: mix, ...own, source_tokens: random.wide(1, 20_000) });
    else some.push({ count: count(), kind: mix, ...own, window: window(random) });
  }
  for (const kind of ["shared", "none"]) if (random.chance(0.15)) some.push({ count: count(), kind });
  return random.chance(0.5) ? some : some.reverse();
}

const optionsOf = {
  textbook: (random) => ({
    ...(random.chance(0.4) ? { reserve: random.whole(0, 999) / 1000 } : {}),
    ...(random.chance(0.2) ? { kv_memory_bytes: random.wide(1, 10 ** 13) } : {}),
  }),
  vllm: (random) => ({
    kv_memory_bytes: random.wide(10 ** 8, 10 ** 12),
    max_num_batched_tokens: random.pick([512, 2048, 8192, 16384, random.whole(1, 40_000)]),
    ...(random.chance(0.5) ? { block_size: 16 * random.pick([1, 2, 4, 8]) } : {}),
    ...(random.chance(0.3) ? { async_scheduling: random.chance(0.5) } : {}),
    ...(random.chance(0.3) ? { enable_prefix_caching: random.chance(0.5) } : {}),
  }),
  sglang: (random) => ({
    kv_memory_bytes: random.wide(10 ** 8, 10 ** 12),
    max_mamba_cache_size: random.whole(1, 400),
    ...(random.chance(0.4) ? { page_size: random.pick([1, 16, 64, 128]) } : {}),
    ...(random.chance(0.4) ? { swa_full_tokens_ratio: random.whole(1, 1000) / 1000 } : {}),
    ...(random.chance(0.4) ? { max_running_requests: random.wide(1, 5000) } : {}),
    ...(random.chance(0.3) ? { disable_radix_cache: random.chance(0.5) } : {}),
  }),
  "llama.cpp": (random) => ({
    kv_memory_bytes: random.wide(10 ** 8, 10 ** 12),
    ...(random.chance(0.4) ? { n_ubatch: random.wide(1, 4096) } : {}),
    ...(random.chance(0.3) ? { swa_full: random.chance(0.5) } : {}),
  }),
  "tensorrt-llm": (random) => ({
    kv_memory_bytes: random.wide(10 ** 8, 10 ** 12),
    ...(random.chance(0.5) ? { tokens_per_block: random.pick([16, 32, 64, 128]) } : {}),
  }),
};

/** GPUs that are the product of the splits. */
function splits(random, engine, isUniform) {
  if (engine === "textbook" && random.chance(0.1)) return { gpus: random.wide(1, 10 ** 6) };
  if (random.chance(0.3)) return {};
  const tensor_parallel = engine === "llama.cpp" ? 1 : random.pick([1, 1, 2, 4, 8, 16, engine === "textbook" ? 3 : 2]);
  const pipeline_parallel = isUniform ? random.pick([1, 1, 1, 2, 3, 4]) : 1;
  const data_parallel = engine === "llama.cpp" ? 1 : random.pick([1, 1, 1, 2, 5]);
  return {
    gpus: tensor_parallel * pipeline_parallel * data_parallel,
    tensor_parallel,
    pipeline_parallel,
    data_parallel,
  };
}

/** A request that `oracle` can answer. */
export function randomRequest(random, engines = ENGINES) {
  const engine = random.pick(engines);
  const packed = random.chance(0.08) && engine !== "llama.cpp";
  const format = () => (random.chance(0.4) ? "bf16" : random.pick(SERVED[engine]));
  const layersAsked =
    engine === "textbook" ? layers(random, packed, ASKED.textbook) : servedLayers(random, packed, engine);
  const isUniform =
    engine !== "vllm" ||
    new Set(layersAsked.map(({ kind }) => kind).filter((kind) => kind !== "shared" && kind !== "none")).size === 1 ||
    layersAsked.some(({ kind }) => kind === "compressed");
  const request = {
    model: {
      parameters: random.wide(10 ** 6, 2 * 10 ** 12),
      native_weights: random.chance(0.6) ? "bf16" : random.pick(WEIGHT_FORMATS),
      layers: layersAsked,
    },
    gpu: { memory_bytes: memory(random) },
    context: random.pick([1, 128, 4096, 8192, 32768, 131072, random.wide(1, 2 * 10 ** 6), random.wide(1, 2 ** 31)]),
    engine,
    ...splits(random, engine, isUniform),
    options: optionsOf[engine](random),
  };
  // A pool is part of the memory, or once in a while more than there is and refused.
  if (engine !== "textbook" && random.chance(0.98)) {
    request.options.kv_memory_bytes = random.wide(10 ** 7, request.gpu.memory_bytes);
  }
  if (engine !== "textbook" && layersAsked.some(({ tokens_per_entry: tokens }) => tokens > 16)) {
    if (engine === "vllm") delete request.options.block_size;
    if (engine === "tensorrt-llm") request.options.tokens_per_block = 128;
  }
  const split = random.chance(0.4);
  if (packed) request.kv = "fp8_ds_mla";
  else if (random.chance(0.6)) request.kv = split ? { k: format(), v: format() } : format();
  if (random.chance(0.4)) request.weights = random.pick(WEIGHT_FORMATS);
  if (random.chance(0.2)) request.weight_bytes = random.wide(1, 10 ** 12);
  if (random.chance(0.1)) request.kv_heads = heads(random);
  return request;
}
