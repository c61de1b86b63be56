// The arithmetic of the answers written a second time, plainly, from papers and from what engines print; not from the
// C++ that it is held against. Every number is a BigInt. Requests are those of the contract with the model as an object;
// the model's runs, GPUs by their bytes and engines' pools by `kv_memory_bytes` (a pool that is known needs no estimate).
//
// Where the formulas come from:
//   attention           Vaswani et al. 2017; grouped heads Ainslie et al. 2023: a token's row is K and V of every KV head
//   latent rows         DeepSeek-V2, 2024, section 2.1: one compressed vector and one rotary key for all heads
//   windows             Beltagy et al. 2020, Mistral 7B 2023: no more than the last W tokens; chunks: Llama 4
//   states              Gu and Dao 2023 (Mamba), Yang et al. 2024 (gated delta net): constant in the tokens
//   shared layers       Brandon et al. 2024; Gemma 3n: the layer reads another one's rows
//   compressed entries  DeepSeek-V4: one entry for every so many tokens
//   blocks of formats   ggml-common.h; OCP Microscaling 1.0 (MXFP4); NVFP4 of TensorRT Model Optimizer;
//                       bitsandbytes (NF4); MLX quantisation; GPTQ and AWQ checkpoints
//   splits              Shoeybi et al. 2019 (tensor), heads copied past their count as in vLLM and SGLang; Huang et al.
//                       2018 (pipeline)
//   engines             vLLM vllm/v1/core/kv_cache_utils.py; SGLang python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py;
//                       llama.cpp src/llama-kv-cache*.cpp; TensorRT-LLM cpp/.../kvCacheManager.cpp

const MOST = 2n ** 53n - 1n;
const BILLION = 10n ** 9n;

export const ceilDiv = (a, b) => (a + b - 1n) / b;
const ascending = (a, b) => Number(a > b) - Number(a < b);
const min = (...values) => values.sort(ascending)[0];
export const max = (...values) => values.sort(ascending).at(-1);
const sum = (list, of) => list.reduce((total, item) => total + of(item), 0n);

/** Values of a block and its bytes, scales and zero points included. */
export const FORMATS = {
  fp32: [1n, 4n],
  bf16: [1n, 2n],
  fp16: [1n, 2n],
  fp8: [1n, 1n],
  int8: [1n, 1n],
  int4: [2n, 1n],
  // ggml-common.h: block_q8_0 and its kin, 32 values; the k- and i-quants, 256 values.
  q8_0: [32n, 34n],
  q6_0: [32n, 26n],
  q5_1: [32n, 24n],
  q5_0: [32n, 22n],
  q4_1: [32n, 20n],
  q4_0: [32n, 18n],
  iq4_nl: [32n, 18n],
  q6_k: [256n, 210n],
  q5_k: [256n, 176n],
  q4_k: [256n, 144n],
  q3_k: [256n, 110n],
  q2_k: [256n, 84n],
  iq4_xs: [256n, 136n],
  iq3_s: [256n, 110n],
  iq3_xxs: [256n, 98n],
  iq2_s: [256n, 82n],
  iq2_xs: [256n, 74n],
  iq2_xxs: [256n, 66n],
  iq1_m: [256n, 56n],
  iq1_s: [256n, 50n],
  mxfp4: [32n, 17n], // 4 bits each and a scale of one byte (OCP Microscaling 1.0)
  nvfp4: [16n, 9n], // 4 bits each and a scale of one fp8
  fp8_block: [128n * 128n, 128n * 128n + 4n], // a scale of fp32 for a square of 128 (DeepSeek-V3, section 3.3)
  int4_g128: [256n, 133n], // GPTQ: of each group a scale of fp16 and a zero point of 4 bits
  int4_g64: [128n, 69n],
  int4_g32: [64n, 37n],
  nf4: [64n, 36n], // bitsandbytes: a largest value of fp32 for 64
  nf4_dq: [64n * 256n, 64n * 128n + 256n + 4n], // those again as 8 bits, 256 of them with a scale (QLoRA, section 3)
  mlx8_g64: [64n, 68n], // MLX: scale and bias of 16 bits a group
  mlx6_g64: [64n, 52n],
  mlx5_g64: [64n, 44n],
  mlx4_g32: [32n, 20n],
  mlx4_g64: [64n, 36n],
  mlx4_g128: [128n, 68n],
  mlx3_g64: [64n, 28n],
  fp8_ds_mla: [576n, 656n], // FlashMLA's packed row: 512 fp8, 4 scales of fp32, 64 rotary values of bf16
};

/** Cache formats; their rows may be of any width unless the format is a row. */
export const CACHE_FORMATS = [
  ...["fp32", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "q8_0", "q6_0", "q5_1", "q5_0", "q4_1", "q4_0"],
  ...["iq4_nl", "fp8_ds_mla"],
];
export const WEIGHT_FORMATS = Object.keys(FORMATS).filter((id) => id !== "fp8_ds_mla" && id !== "q6_0");

export const bytesOf = (format, values) => ceilDiv(values, FORMATS[format][0]) * FORMATS[format][1];

/**
 * An indexer's keys: 128 fp8 and a scale of fp32 (DeepSeek-V3.2, the key cache of its indexer in vLLM and SGLang);
 * llama.cpp has them in K's format (src/llama-kv-cache-dsa.cpp). The textbook takes them with 8-bit rows and else leaves
 * them out, since engines differ.
 */
function indexerBytes(kv, width) {
  if (kv.engine === "llama.cpp") return bytesOf(kv.k, width);
  const counts = kv.engine !== "textbook" || ["fp8", "fp8_ds_mla"].includes(kv.k);
  return counts ? ceilDiv(width, 128n) * 132n : 0n;
}

/** A model's runs in BigInt, `kv_heads` of the request in place of its own. */
export function runsOf(request) {
  return request.model.layers.map((run) => {
    const own = Object.fromEntries(
      Object.entries(run).map(([key, value]) => [key, typeof value === "number" ? BigInt(value) : value]),
    );
    if (request.kv_heads && own.kv_heads) own.kv_heads = BigInt(request.kv_heads);
    return own;
  });
}

/** K, V and index keys of one layer's row on one of `t` GPUs. */
export function rowOf(run, kv, t) {
  const indexer = run.indexer_width ? indexerBytes(kv, run.indexer_width) : 0n;
  if (run.latent_width) return { k: bytesOf(kv.k, run.latent_width), v: 0n, indexer };
  if (!run.kv_heads) return { k: 0n, v: 0n, indexer: 0n };
  const heads = ceilDiv(run.kv_heads, t);
  return { k: bytesOf(kv.k, heads * run.key_width), v: bytesOf(kv.v, heads * (run.value_width ?? 0n)), indexer };
}
const rowBytes = (run, kv, t) => {
  const { k, v, indexer } = rowOf(run, kv, t);
  return k + v + indexer;
};

/** A recurrent layer's constant state on one of `t` GPUs. */
export const stateOf = (run, t) =>
  run.kind === "recurrent"
    ? bytesOf(run.state_format, ceilDiv(run.state_values, t)) +
      (run.conv_values ? bytesOf(run.conv_format, ceilDiv(run.conv_values, t)) : 0n)
    : 0n;

/** Rows that a conversation of `length` tokens keeps in one layer. */
export function rowsKept(run, length) {
  switch (run.kind) {
    case "full":
    case "latent":
      return length;
    case "window":
    case "chunked":
      return min(length, run.window);
    case "compressed":
      return ceilDiv(length, run.tokens_per_entry);
    case "cross":
      return run.source_tokens;
    default:
      return 0n;
  }
}

/** What one conversation writes on one of `t` GPUs that holds all these layers. */
export const written = (runs, kv, t, length) =>
  sum(runs, (run) => run.count * (rowsKept(run, length) * rowBytes(run, kv, t) + stateOf(run, t)));

/** What one more token adds to it at that length; of compressed entries the mean, whole bytes a layer. */
export function marginal(runs, kv, t, length) {
  return sum(runs, (run) => {
    const row = rowBytes(run, kv, t);
    if (run.kind === "full" || run.kind === "latent") return run.count * row;
    if (run.kind === "window" || run.kind === "chunked") return length < run.window ? run.count * row : 0n;
    return run.kind === "compressed" ? run.count * ceilDiv(row, run.tokens_per_entry) : 0n;
  });
}

/** The layers of the fullest of `stages`: each kind is dealt evenly, what is over goes to the first. */
export function firstStage(runs, stages) {
  const merged = new Map();
  for (const { count, ...shape } of runs) {
    const key = JSON.stringify(Object.entries(shape).sort(), (_, value) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    merged.set(key, { ...shape, count: count + (merged.get(key)?.count ?? 0n) });
  }
  return [...merged.values()].map((run) => ({ ...run, count: ceilDiv(run.count, stages) }));
}

/** A decimal fraction in billionths, exactly. */
const billionths = (fraction) => {
  const [whole, digits = ""] = fraction.toFixed(9).split(".");
  return BigInt(whole) * BILLION + BigInt(digits.padEnd(9, "0"));
};

/** Bytes of one token in all layers, windows as long as everything else. */
const fullLength = (runs, kv, t) =>
  sum(runs, (run) => run.count * (rowBytes(run, kv, t) / (run.tokens_per_entry ?? 1n)));

/** Bytes of a block of so many tokens in all layers; of compressed layers the entries of those tokens. */
const blockBytes = (runs, kv, t, block) =>
  sum(runs, (run) => run.count * (block / (run.tokens_per_entry ?? 1n)) * rowBytes(run, kv, t));

const roundUp = (value, step) => ceilDiv(value, step) * step;
/** Kinds of which every token is kept, or every entry of a few. */
const keepsAll = ({ kind }) => ["full", "latent", "compressed"].includes(kind);
const keepsRows = ({ kind }) => !["shared", "none", "recurrent"].includes(kind);

const engines = {
  /** All memory in one pool, a reserve off it, the weights off it; a conversation takes what it writes. */
  textbook({ runs, kv, length, memory, gpus, weights, options, copies }) {
    const one = written(runs, kv, 1n, length);
    const usable = (memory * gpus * (BILLION - billionths(options.reserve ?? 0.1))) / BILLION;
    const pool =
      options.kv_memory_bytes === undefined
        ? max(usable - weights * copies, 0n)
        : BigInt(options.kv_memory_bytes) * gpus;
    return { reserved: one, pool, sequences: pool / one, tokens: null, blocks: null };
  },

  /**
   * vllm/v1/core/kv_cache_utils.py: layers of one kind make one group, whatever their widths; layers of several kinds
   * make groups of equally many layers with pages of equally many bytes, the last group padded. A request holds of each
   * group the blocks that kv_cache_interface.py counts. The printed tokens are int(max_concurrency × max_model_len).
   */
  vllm({ runs, stage, kv, t, length, copies, gpus, options }) {
    const pool = BigInt(options.kv_memory_bytes);
    // DeepSeek V4's entries come in blocks of 256 tokens, each of block_size // compress_ratio entries.
    let block = BigInt(options.block_size ?? (runs.some(({ kind }) => kind === "compressed") ? 256 : 16));
    const states = stage.filter(({ kind }) => kind === "recurrent");
    const rows = stage.filter(keepsRows);
    // Tokens scheduled at once; with asynchronous scheduling two batches are under way (max_in_flight_tokens).
    const inFlight = BigInt(options.max_num_batched_tokens ?? 0) * (options.async_scheduling === false ? 1n : 2n);
    const answer = (blocks, perRequest, reserved) => ({
      reserved,
      pool: pool * gpus,
      blocks,
      // Python's floats there, which lose a token here and there.
      tokens: BigInt(Math.trunc((Number(blocks) / Number(perRequest)) * Number(length))),
      sequences: (blocks / perRequest) * copies,
    });
    if (states.length === 0 && rows.every(keepsAll)) {
      const perRequest = ceilDiv(length, block);
      const bytes = (layers) => blockBytes(layers, kv, t, block);
      return answer(pool / bytes(rows), perRequest, perRequest * bytes(runs) * t);
    }
    // Equal layers are one type; its page is that of the widest, in blocks of as many more tokens.
    const types = rows.map((run) => ({ ...run, row: rowBytes(run, kv, t) }));
    if (states.length > 0) {
      // A block holds a state: multiples of 16 tokens (vllm/model_executor/models/config.py).
      const state = states.map((run) => stateOf(run, t)).reduce((a, b) => max(a, b));
      const row = types.map(({ row }) => row).reduce((a, b) => max(a, b));
      block = max(block, 16n * ceilDiv(state, 16n * row));
    }
    const page = block * types.map(({ row }) => row).reduce((a, b) => max(a, b));
    const counts = [...types, ...states].map(({ count }) => count);
    const least = counts.reduce((a, b) => min(a, b));
    const most = counts.reduce((a, b) => max(a, b));
    const size = 2n * most < 3n * least ? most : least;
    const blocksOf = (run) => {
      if (run.kind === "recurrent") return options.enable_prefix_caching === false ? 1n : 2n;
      const own = page / run.row;
      if (run.kind === "window") return ceilDiv(min(run.window - 1n + inFlight, length), own) + 1n;
      if (run.kind === "chunked") return ceilDiv(min(run.window + inFlight, length), own);
      // CrossAttentionSpec: the encoder's tokens, whatever the conversation's are.
      if (run.kind === "cross") return ceilDiv(run.source_tokens, own);
      return ceilDiv(length, own);
    };
    const perRequest = sum([...types, ...states], (run) => ceilDiv(run.count, size) * blocksOf(run));
    return answer(pool / (size * page), perRequest, perRequest * size * page * t);
  },

  /**
   * SGLang model_runner_kv_cache_mixin.py: slots of one token; windows in a pool of their own of `swa_full_tokens_ratio` as many slots,
   * of which a request holds its window and one page; states in a third pool, three for each request where the radix
   * cache keeps prefixes.
   */
  sglang({ runs, stage, kv, t, length, copies, gpus, options }) {
    const pool = BigInt(options.kv_memory_bytes);
    const page = BigInt(options.page_size ?? 1);
    const down = (slots) => slots - (slots % page);
    const isWindow = ({ kind }) => kind === "window" || kind === "chunked";
    const whole = (list) =>
      fullLength(
        list.filter((run) => !isWindow(run) && keepsRows(run)),
        kv,
        t,
      );
    const windows = stage.filter(isWindow);
    const isHybrid = windows.length > 0 && whole(stage) > 0n;
    const state = (list) => sum(list, (run) => run.count * stateOf(run, t));
    const held = roundUp(length, page);
    const heldBytes = sum(runs, (run) =>
      isHybrid && isWindow(run) ? 0n : run.count * ceilDiv(held, run.tokens_per_entry ?? 1n) * rowBytes(run, kv, t),
    );
    let reserved = t * heldBytes;
    let slots;
    const limits = [];
    let rest = pool;
    if (state(stage) > 0n) {
      const perRequest = options.disable_radix_cache ? 1n : 3n;
      const states = BigInt(options.max_mamba_cache_size);
      rest = max(pool - states * state(stage), 0n);
      limits.push(states / perRequest);
      reserved += t * perRequest * state(runs);
    }
    if (isHybrid) {
      const ratio = billionths(options.swa_full_tokens_ratio ?? 0.8);
      const own = fullLength(windows, kv, t);
      // set_num_tokens_hybrid_swa: what fits were all layers full, in whole pages; then shared out.
      const alike = down(rest / (whole(stage) + own));
      const tokens = (alike * (whole(stage) + own) * BILLION) / (whole(stage) * BILLION + ratio * own);
      slots = down(tokens);
      const windowSlots = down((tokens * ratio) / BILLION);
      const kept = windows.map(({ window }) => min(held, roundUp(window, page) + page)).reduce((a, b) => max(a, b));
      limits.push(windowSlots / kept);
      reserved += t * kept * fullLength(runs.filter(isWindow), kv, t);
    } else {
      slots = down(rest / fullLength(stage, kv, t));
    }
    limits.push(slots / held);
    limits.push(
      options.max_running_requests === undefined
        ? min(max((slots * 512n) / length, 2048n), 4096n)
        : BigInt(options.max_running_requests),
    );
    return {
      reserved,
      pool: pool * gpus,
      sequences: limits.reduce((a, b) => min(a, b)) * copies,
      tokens: slots,
      blocks: null,
    };
  },

  /**
   * llama.cpp: cells of one stream for each sequence, rounded up to 256 (src/llama-context.cpp, pull request 17046);
   * windows keep theirs and a micro-batch, rounded up to 256 (src/llama-kv-cache-iswa.cpp); states in fp32
   * (src/llama-memory-recurrent.cpp); of compressed layers the entries of all cells (src/llama-kv-cache-dsv4.cpp). Layers
   * are dealt out over GPUs.
   */
  "llama.cpp"({ runs, stage, kv, length, gpus, options }) {
    const pool = BigInt(options.kv_memory_bytes);
    const cells = roundUp(length, 256n);
    const mixed = runs.some(({ kind }) => kind === "full" || kind === "latent");
    const of = (list) =>
      sum(list, (run) => {
        if (run.kind === "recurrent") return run.count * 4n * (run.state_values + (run.conv_values ?? 0n));
        const isWindow = (run.kind === "window" || run.kind === "chunked") && mixed && !options.swa_full;
        const all = ceilDiv(cells, run.tokens_per_entry ?? 1n);
        const own = isWindow ? min(cells, roundUp(run.window + BigInt(options.n_ubatch ?? 512), 256n)) : all;
        return run.count * own * rowBytes(run, kv, 1n);
      });
    return { reserved: of(runs), pool: pool * gpus, sequences: pool / of(stage), tokens: cells, blocks: null };
  },

  /** TensorRT-LLM kvCacheManager: blocks of all layers, rounded up as its logs show; windows as long as the rest. */
  "tensorrt-llm"({ runs, stage, kv, t, length, copies, gpus, options }) {
    const pool = BigInt(options.kv_memory_bytes);
    const block = BigInt(options.tokens_per_block ?? 32);
    const blocks = ceilDiv(pool, blockBytes(stage, kv, t, block));
    const perRequest = ceilDiv(length, block);
    return {
      // States stand beside the blocks.
      reserved: t * (perRequest * blockBytes(runs, kv, t, block) + sum(runs, (run) => run.count * stateOf(run, t))),
      pool: pool * gpus,
      blocks,
      tokens: blocks * block,
      sequences: (blocks / perRequest) * copies,
    };
  },
};

/**
 * The figures of the contract for a request, or {refused: code}.
 */
export function oracle(request) {
  const runs = runsOf(request);
  // A model without a cache is no question, and neither are other KV heads where there are none.
  const keepsNothing = ({ kind, source_tokens }) =>
    kind === "shared" || kind === "none" || (kind === "cross" && source_tokens === 0n);
  if (runs.every(keepsNothing)) return { refused: "no_cache" };
  if (request.kv_heads && !runs.some((run) => run.kv_heads)) return { refused: "conflict" };
  const engine = request.engine ?? "textbook";
  const { k, v } = typeof request.kv === "object" ? request.kv : { k: request.kv ?? "bf16", v: request.kv ?? "bf16" };
  const kv = { k, v, engine };
  const length = BigInt(request.context ?? 8192);
  const p = BigInt(request.pipeline_parallel ?? 1);
  const copies = BigInt(request.data_parallel ?? 1);
  const gpus = BigInt(request.gpus ?? 1);
  const t = BigInt(request.tensor_parallel ?? gpus / (p * copies));
  // Engines copy KV heads past their count, but cut them only evenly (check of tensor_parallel in both servers).
  if (engine !== "textbook" && runs.some(({ kv_heads: h }) => h && h % t !== 0n && t % h !== 0n)) {
    return { refused: "not_divisible" };
  }
  const weightFormat = request.weights ?? request.model.native_weights;
  const weights =
    request.weight_bytes === undefined
      ? bytesOf(weightFormat, BigInt(request.model.parameters))
      : BigInt(request.weight_bytes);
  const split = engine === "textbook" ? 1n : t;
  const total = split * written(runs, kv, split, length);
  const perToken = split * marginal(runs, kv, split, length);
  const memory = BigInt(request.gpu.memory_bytes);
  const options = request.options ?? {};
  // An engine's pool is part of its GPU's memory.
  if (engine !== "textbook" && options.kv_memory_bytes > request.gpu.memory_bytes) return { refused: "out_of_range" };
  const input = { runs, kv, length, t, p, copies, gpus, memory, weights, options, stage: firstStage(runs, p) };
  const { reserved, pool, sequences, tokens, blocks, refused } = engines[engine](input);
  if (refused) return { refused };
  const figures = {
    kv_bytes_per_token: perToken,
    kv_fixed_bytes: max(total - perToken * length, 0n),
    kv_bytes_per_sequence: total,
    kv_reserved_per_sequence: reserved,
    weight_bytes: weights,
    kv_memory_bytes: pool,
    kv_blocks: blocks,
    kv_tokens: tokens,
    sequences,
  };
  // Figures are exact numbers in JSON or the request is refused.
  if ([memory * gpus, ...Object.values(figures)].some((value) => value !== null && value > MOST)) {
    return { refused: "out_of_range" };
  }
  return figures;
}
