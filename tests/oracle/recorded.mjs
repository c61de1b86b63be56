// tests/data/recorded.jsonl: whole answers as this kernel gave them, for what nobody else prints: estimates with their
// ranges, parts of the memory, gaps by their cause, ranks, notes and steps. They do not say that a figure is right (the
// conformance file does, and the logs); they say that none changes without being looked at.
//
//   node tests/oracle/recorded.mjs       writes the file anew: read what git diff shows before it is committed
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fullKernel } from "./kernels.mjs";
import { randomness } from "./requests.mjs";

const MODELS = [
  ...["llama-3-8b", "llama-3.1-70b", "llama-3.2-11b-vision", "llama-4-scout", "mistral-7b-v0.1", "mixtral-8x22b"],
  ...[
    "qwen3-30b-a3b",
    "qwen3-next-80b-a3b",
    "qwen3.5-27b",
    "qwen2.5-0.5b",
    "gemma-3-27b",
    "gemma-3n-e4b",
    "gemma-2-9b",
  ],
  ...["gpt-oss-20b", "gpt-oss-120b", "deepseek-v3", "deepseek-v3.2", "deepseek-v4-flash", "deepseek-v2-lite"],
  ...["kimi-linear-48b-a3b", "glm-5", "glm-4.5", "codellama-34b"],
];
const GPUS = [
  ...["t4-16gb", "a100-sxm-80gb", "l4-24gb", "h100-sxm-80gb", "h200-sxm-141gb", "rtx-3090", "rtx-4090", "b200-180gb"],
  ...[{ memory_bytes: 80_000_000_000 }, { memory_bytes: 24_000_000_000 }, { memory_bytes: 1_000_000_000_000 }],
];
const SPLITS = [
  {},
  {},
  { gpus: 2, tensor_parallel: 2 },
  { gpus: 8, tensor_parallel: 8 },
  { gpus: 16, tensor_parallel: 4, pipeline_parallel: 2, data_parallel: 2 },
  { gpus: 3, pipeline_parallel: 3 },
  { gpus: 4, tensor_parallel: 2, data_parallel: 2 },
];
const SPLITS_BY_LAYER = [{}, { gpus: 2, pipeline_parallel: 2 }, { gpus: 3, pipeline_parallel: 3 }];
const FORMATS = {
  textbook: ["bf16", "fp8", "int4", "nvfp4"],
  vllm: ["bf16", "fp8"],
  sglang: ["bf16", "fp8"],
  "llama.cpp": ["fp16", "q8_0", "q4_0", { k: "q8_0", v: "q5_1" }],
  "tensorrt-llm": ["bf16", "fp8", "nvfp4"],
};
/** Options of an engine, each with what it may be; most are left out of most requests. */
const OPTIONS = {
  textbook: { reserve: [0, 0.05, 0.2], kv_memory_bytes: [10_000_000_000] },
  vllm: {
    gpu_memory_utilization: [0.5, 0.9, 0.95],
    max_num_batched_tokens: [512, 8192, 20_000],
    max_num_seqs: [1, 16, 256, 2000],
    block_size: [8, 32, 64],
    enable_prefix_caching: [true, false],
    enforce_eager: [true],
    disable_hybrid_kv_cache_manager: [true],
    version: ["0.6.4", "0.6.5", "0.7.3", "0.8.1", "0.8.5", "0.9.0", "0.10.2", "0.20.1", "0.21.0", "0.26.0", "0.28.0"],
    decode_context_parallel_size: [2, 4],
    cpu_offload_gb: [1, 40],
    use_v1: [true, false],
    async_scheduling: [false],
    mamba_cache_mode: ["none", "align", "all"],
    mamba_ssm_cache_dtype: ["float32", "float16"],
    num_gpu_blocks_override: [10, 700],
    activation_bytes: [2_000_000_000],
    non_torch_bytes: [0, 500_000_000],
    cuda_graph_bytes: [700_000_000],
  },
  sglang: {
    mem_fraction_static: [0.5, 0.8, 0.95],
    max_running_requests: [1, 40, 3000],
    max_total_tokens: [5000, 300_000],
    page_size: [16, 64],
    chunked_prefill_size: [1024, 2048, 8192],
    cuda_graph_max_bs: [4, 160, 512],
    swa_full_tokens_ratio: [0.1, 0.5, 1],
    disable_hybrid_swa_memory: [true, false],
    max_mamba_cache_size: [7, 100],
    mamba_full_memory_ratio: [0.2, 2],
    mamba_ssm_dtype: ["float32", "bfloat16"],
    disable_radix_cache: [true],
    avail_after_load_bytes: [20_000_000_000],
    version: ["0.4.3", "0.4.9", "0.5.0", "0.5.3", "0.5.9"],
  },
  "llama.cpp": {
    n_ctx: [4096, 50_000],
    n_seq_max: [2, 5, 64],
    n_ubatch: [64, 1024, 4096],
    n_batch: [256, 512],
    n_gpu_layers: [1, 10, 33, 99],
    flash_attn: [true, false],
    kv_unified: [true, false],
    swa_full: [true],
    n_rs_seq: [1, 3],
    fork: ["ik_llama.cpp"],
    mla_attn: [0, 1, 2, 3],
    version: ["b4000", "b5500", "b6200", "b7000", "b8500"],
  },
  "tensorrt-llm": {
    free_gpu_memory_fraction: [0.5, 0.85, 1],
    tokens_per_block: [16, 64, 128],
    free_memory_bytes: [9_000_000_000],
    version: ["0.17", "0.21", "1.0", "1.2"],
  },
};

/** The requests, the same each time. */
export function recordedRequests() {
  const random = randomness(20);
  return Object.keys(OPTIONS).flatMap((engine) =>
    Array.from({ length: ["textbook", "tensorrt-llm"].includes(engine) ? 24 : 48 }, (_, at) => {
      const options = {};
      const rarely = 2.5 / Object.keys(OPTIONS[engine]).length;
      for (const [name, values] of Object.entries(OPTIONS[engine]))
        if (random.chance(rarely)) options[name] = random.pick(values);
      return {
        model: MODELS[at % MODELS.length],
        engine,
        gpu: random.pick(GPUS),
        context: random.pick([1, 700, 4096, 8192, 30_001, 131_072]),
        ...random.pick(engine === "llama.cpp" ? SPLITS_BY_LAYER : SPLITS),
        ...(random.chance(0.4) ? { kv: random.pick(FORMATS[engine]) } : {}),
        ...(random.chance(0.4) ? { weights: random.pick(["fp8", "int4_g128", "q4_k_m"]) } : {}),
        ...(random.chance(0.3) ? { wanted: random.pick([1, 50, 2000]) } : {}),
        ...(Object.keys(options).length > 0 ? { options } : {}),
      };
    }),
  );
}

const cut = (list, ...keys) => list?.map((one) => Object.fromEntries(keys.map((key) => [key, one[key]])));

/** What is kept of an answer: not the model, nor what is a reading of another figure. */
function kept({ model: _model, readings: _readings, engine: _engine, context: _context, ...answer }) {
  if (answer.error) return { error: answer.error };
  const { memory, parts, gaps, derivation, ...figures } = answer;
  return {
    ...figures,
    ...(memory ? { memory: { segments: cut(memory.segments, "kind", "bytes") } } : {}),
    parts: cut(parts, "code", "bytes", "low", "high", "confidence"),
    gaps: cut(gaps, "code", "bytes", "confidence"),
    derivation: cut(derivation, "name", "part", "expression", "value", "rounded_down"),
  };
}

/** The file's text; `plan` answers requests. */
export const recorded = (plan) =>
  recordedRequests()
    .map((request) => JSON.stringify(request))
    .map((text) => `{"request":${text},"answer":${JSON.stringify(kept(JSON.parse(plan(text))))}}\n`)
    .join("");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const kernel = await fullKernel();
  writeFileSync(
    new URL("../data/recorded.jsonl", import.meta.url),
    recorded((text) => kernel.plan(text)),
  );
}
