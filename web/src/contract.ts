/**
 * The kernel's contract: one Request in, one Answer out. The command line reads and prints the same objects.
 * Names are stable; a change of meaning is a new major version.
 */

/** Kinds of layer cache. */
export type LayerKind =
  | "full"
  | "window"
  | "chunked"
  | "latent"
  | "compressed"
  | "recurrent"
  | "shared"
  | "none"
  | "cross";

/** `count` layers of one shape; widths are values of one head. */
export interface LayerRun {
  count: number;
  kind: LayerKind;
  kv_heads?: number;
  key_width?: number;
  /** 0 where K serves as V. */
  value_width?: number;
  latent_width?: number;
  indexer_width?: number;
  /** Tokens. */
  window?: number;
  tokens_per_entry?: number;
  source_tokens?: number;
  state_values?: number;
  state_format?: string;
  conv_values?: number;
  conv_format?: string;
}

/** A model brought along. */
export interface ModelObject {
  name?: string;
  parameters?: number;
  max_context?: number;
  /** null: stored in a format that is not known. */
  native_weights?: string | null;
  /** Bytes of the checkpoint as it is stored; computed rather than read from a file where `…_estimated`. */
  weight_bytes?: number;
  weight_bytes_estimated?: boolean;
  /** Cache format that the checkpoint asks for. */
  native_cache?: string;
  family?: string;
  source?: string;
  active_parameters?: number;
  query_heads?: number;
  vocabulary?: number;
  multimodal?: boolean;
  layer_count?: number;
  /** Codes of what the reader should know of it. */
  notes?: string[];
  layers: LayerRun[];
}

export type EngineId = "textbook" | "vllm" | "sglang" | "llama.cpp" | "tensorrt-llm";

export interface Request {
  /** Catalogue id, Hugging Face id, or runs of layers. */
  model?: string | ModelObject;
  /** Instead of `model`: a Hugging Face config.json, as object or text. */
  config?: string | object;
  parameters?: number;
  /** In place of the model's own, in every layer that has KV heads. */
  kv_heads?: number;
  weights?: string;
  kv?: string | { k: string; v: string };
  weight_bytes?: number;
  gpu?: string | { memory_bytes: number };
  gpus?: number;
  tensor_parallel?: number;
  pipeline_parallel?: number;
  data_parallel?: number;
  /** Tokens per conversation. */
  context?: number;
  engine?: EngineId;
  options?: Record<string, number | string | boolean>;
}

export type Confidence = "exact" | "engine_rule" | "estimate";

/** A figure scaled for people; the page only formats it in the reader's language. */
export interface Reading {
  value: number;
  unit: "B" | "kB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB";
}

export interface Term {
  /** "", "×", "+", "−" or "÷". */
  op: string;
  value: number;
  /** What the number counts, a code for the page's words: "layers", "kv_heads", "bytes", or "". */
  of: string;
}

export interface Step {
  name: string;
  /** Which kind of layers, where a figure has several steps; else "". */
  part: string;
  terms: Term[];
  /** The terms as text, with codes for words. */
  expression: string;
  value: number;
  unit: string;
  rounded_down: boolean;
}

export interface Note {
  code: string;
  values: Record<string, string>;
  /** Of values that are byte counts, in a log's findings. */
  readings?: Record<string, Reading>;
}

export interface CachePool {
  name: string;
  cells: number;
  streams: number;
  layers: number;
  k_bytes: number;
  v_bytes: number;
  state_bytes: number;
  conv_bytes: number;
  /** All of it. */
  reading: Reading;
}

export interface MemoryPart {
  code: string;
  bytes: number;
  reading: Reading;
  /** Of an estimate, its range; else equal to `bytes`. */
  low: number;
  high: number;
  low_reading: Reading;
  high_reading: Reading;
  confidence: Confidence;
}

export interface GpuShare {
  gpu: number;
  stage: number;
  shares: { kind: LayerKind; layers: number; first_head: number; heads: number; of_heads: number; copies: number }[];
  kv_bytes_per_sequence: number;
  reading: Reading;
  fullest: boolean;
}

/** A stretch of the memory bar, in drawing order. */
export interface MemorySegment {
  kind: "weights" | "cache" | "left" | "reserve" | string;
  bytes: number;
  reading: Reading;
  /** Of the bar's length, 0 to 1. */
  share: number;
}

export interface UnderstoodModel {
  id: string;
  name: string;
  family: string;
  source: string;
  parameters: number | null;
  active_parameters: number | null;
  max_context: number | null;
  layer_count: number;
  query_heads: number | null;
  native_weights: string | null;
  layers: LayerRun[];
  fields: {
    used: { name: string; value: string }[];
    defaulted: { name: string; value: string; source: string }[];
    ignored: string[];
  };
}

export interface Answer {
  model: UnderstoodModel;
  engine: EngineId;
  context: number;
  weights: string | null;
  kv: { k: string; v: string };
  gpu: { id: string | null; name: string; memory_bytes: number; basis: "sold" | "driver" | "runtime" | "stated" };
  deployment: { gpus: number; tensor_parallel: number; pipeline_parallel: number; data_parallel: number };

  /** Marginal bytes at this context, all GPUs together. */
  kv_bytes_per_token: number;
  kv_bytes_per_token_per_gpu: number;
  /** Bytes of one conversation that do not grow with the context. */
  kv_fixed_bytes: number;
  kv_bytes_per_sequence: number;
  kv_reserved_per_sequence: number;
  /** null when the parameter count is unknown. */
  weight_bytes: number | null;
  weight_bytes_per_gpu: number | null;
  /** Of a mix of formats (q4_k_m, …): what published files come to. */
  weight_bytes_range: [number, number] | null;
  kv_memory_bytes: number | null;
  kv_memory_bytes_per_gpu: number | null;
  /** Whole conversations, and the unrounded figure. null when the weights are unknown. */
  sequences: number | null;
  concurrency: number | null;
  sequences_range: [number, number] | null;
  kv_memory_bytes_per_gpu_range: [number, number] | null;
  kv_tokens: number | null;
  kv_tokens_other: number | null;
  kv_blocks: number | null;
  block_tokens: number | null;
  caches: CachePool[];
  limit: "cache" | "one_sequence_too_long" | "weights_do_not_fit" | null;
  /** What the count hangs on: the context's length, the fixed part of a conversation, or the weights. */
  decides: "context" | "fixed_part" | "weights" | null;
  remedy: {
    /** Fewest GPUs of this kind that hold the weights (and one conversation). */
    gpus_for_weights: number | null;
    gpus_for_one_sequence: number | null;
    /** Longest context of which one conversation fits; null when none does. */
    longest_context: number | null;
  };
  slope_changes: number[];
  memory: {
    /** Memory of all GPUs together. */
    total_bytes: number;
    total_reading: Reading;
    /** Where the memory ends on the bar, 0 to 1; below 1 when the weights need more than there is. */
    total_share: number;
    /** Share of one conversation's cache, for the cuts. */
    sequence_share: number;
    segments: MemorySegment[];
  } | null;
  /** Of one GPU, beside weights and cache (engines). */
  parts: MemoryPart[];
  /** Why reserved is more than written, by cause (engines). */
  gaps: MemoryPart[];
  /** What each GPU of a replica holds; the first 64 (engines). */
  ranks: GpuShare[];
  /** By figure name. */
  readings: Record<string, Reading>;
  confidence: Record<string, Confidence>;
  derivation: Step[];
  notes: Note[];
}

export interface Failure {
  error: { code: string; field: string; message: string };
}

export interface CatalogueModel {
  id: string;
  hub_id: string;
  name: string;
  family: string;
  max_context: number | null;
  query_heads: number | null;
  native_weights: string;
  core: boolean;
}

export interface CatalogueOption {
  name: string;
  kind: "whole" | "fraction" | "truth" | "choice" | "bytes" | "version";
  fallback: number | string | boolean | null;
  min: number;
  max: number;
  choices: string[];
  unit: string;
  offered: boolean;
  /** Where its name and its default stand. Of the full kernel. */
  source?: string;
}

/** Everything a page offers for choice. */
export interface Catalogue {
  models: CatalogueModel[];
  gpus: { id: string; vendor: string; name: string; kind: string }[];
  formats: { id: string; bits: number; weights: boolean; cache: boolean; latent_only: boolean }[];
  engines: { id: EngineId; options: CatalogueOption[] }[];
  /** Limits of the request's counts. */
  limits: { max_context: number; max_gpus: number };
}

/** What became of the fields of somebody's config. */
export type Fields = UnderstoodModel["fields"];

/** A file that somebody brings, read by the full kernel. */
export interface Imported {
  kind: "config" | "gguf" | "safetensors" | "index";
  /** Ready for a request; null for a checkpoint without its config. */
  model?: (ModelObject & { fields: Fields; notes: string[]; layer_count?: number; weight_bytes?: number }) | null;
  checkpoint?: {
    bytes: number;
    values: number | null;
    tensors: number;
    files: number;
    dtypes: { dtype: string; values: number; bytes: number }[];
  } | null;
  /** Instead: ask again with so many bytes of the file's start. */
  need_bytes?: number;
}

export interface LogLine {
  line: number;
  rank: number | null;
  field: string;
  value: number | string;
  unit: string;
  tolerance: number;
  text: string;
}

/** What the full kernel reads in an engine's start-up log. */
export interface LogReading {
  engine: EngineId | null;
  variant: string | null;
  engine_version: string | null;
  ranks: number;
  lines: LogLine[];
  lines_left_out: number;
  printed: Record<string, unknown>;
  readings: Record<string, Reading>;
  memory: {
    total_bytes: number | null;
    total_reading: Reading | null;
    total_share: number;
    segments: MemorySegment[];
  } | null;
  request: Request | null;
  missing: string[];
  contradictions: Note[];
  findings: Note[];
  comparison: {
    figure: string;
    of: string | null;
    printed: number;
    computed: number;
    ratio: number;
    agrees: boolean;
    unit: string;
    printed_reading?: Reading;
    computed_reading?: Reading;
  }[];
  alternatives: { change: string; value: string; concurrency: number; gain: number; same_gpus_and_length: boolean }[];
}

/** Servers that hand out the same memory in different ways, at one step of a simulation. */
export interface PagingQuestion {
  seed?: number;
  /** Of memory: so many tokens, or bytes of a model's bytes per token. */
  memory_tokens?: number;
  memory_bytes?: number;
  bytes_per_token?: number;
  page_tokens?: number;
  lengths?: "sharegpt" | "alpaca" | { prompt: number; answer: number };
  longest_prompt?: number;
  longest_answer?: number;
  prefix_tokens?: number;
  requests?: number;
  /** Mean steps between arrivals. */
  every?: number;
  step?: number;
  /** Run to the end too, for `history`, `peak` and `last_step`. */
  history?: boolean;
}

export type MemoryKind = "used" | "prefix" | "reserved" | "last_page" | "fragmentation" | "free";

export interface PagingServer {
  policy: "contiguous" | "paged" | "shared";
  running: number;
  waiting: number;
  finished: number;
  preempted: number;
  spared_pages: number;
  spared_tokens: number;
  /** They add up to the memory; `share` is of it, 0 to 1. */
  totals: Record<MemoryKind, { tokens: number; share: number }>;
  /** Memory in its order; `owner` 0 is nobody, or all who refer to the prefix. */
  stretches: { kind: MemoryKind; owner: number; tokens: number }[];
  history?: { every: number; running: number[] };
  peak?: number;
  last_step?: number;
}

export interface PagingState {
  step: number;
  pages: number;
  page_tokens: number;
  memory_tokens: number;
  memory_reading: Reading | null;
  requests: { arrival: number; prompt: number; answer: number }[];
  servers: [contiguous: PagingServer, paged: PagingServer, shared: PagingServer];
}

export type QuizKind =
  | "bytes_per_token"
  | "sequence_bytes"
  | "room"
  | "sequences"
  | "costlier"
  | "longest_context"
  | "fewest_gpus"
  | "lever"
  | "shape"
  | "weights"
  | "ask_context";

export interface QuizQuestion {
  seed?: number;
  count?: number;
  level?: number;
  topics?: string[];
  /** One deployment and the chain that leads to a number of conversations, instead. */
  interview?: boolean;
  check?: { question: number; value?: number | bigint | string; unit?: string; choice?: string };
}

export interface QuizItem {
  kind: QuizKind;
  request: Request;
  /** The second of two models, or what stood before a lever was pulled. */
  other: Request | null;
  given: { name: string; value?: number; text?: string; reading?: Reading }[];
  runs: LayerRun[];
  other_runs: LayerRun[];
  users: number;
  lever: "" | "kv" | "weights" | "gpus" | "context";
  unit: "bytes" | "tokens" | "conversations" | "gpus" | "choice";
  choices: string[];
  value?: number;
  choice?: string;
  /** Of bytes: in powers of 1000, and of 1024. */
  readings: Reading[];
  low: number;
  high: number;
  derivation: Step[];
  /** Known mistakes that give another answer. */
  mistakes: { code: string; value?: number; choice?: string; readings: Reading[] }[];
}

export interface QuizVerdict {
  question: number;
  verdict: "right" | "wrong";
  value?: number;
  choice?: string;
  readings?: Reading[];
  /** Codes of known mistakes that give this answer. */
  diagnoses: string[];
}

/** What it would take that so many conversations of a length fit. */
export interface Wish {
  request: Request;
  sequences: number | bigint | string;
  context?: number | bigint | string;
  /** Instead: in units of 1024 tokens. */
  context_k?: number | bigint | string;
}

export interface WishAnswer {
  sequences: number;
  context: number;
  engine: EngineId;
  gpus_now: number;
  kv_now: string;
  sequences_now: number;
  fits: boolean;
  longest_context: number | null;
  gpus: { count: number; copies: number; sequences: number } | null;
  /** The largest of the engine's smaller cache formats in which it fits. */
  kv: { format: string; sequences: number } | null;
}

/** The compiled module behind a kernel: JSON text in and out. */
export interface WasmInstance {
  plan(request: string): string;
  catalogue(): string;
  /** Of the full kernel; `bytes` are the start of a file of `fileBytes`, `config` the config.json beside it or "". */
  importModel?(kind: string, bytes: Uint8Array, fileBytes: number, config: string): string;
  readLog?(text: string | Uint8Array): string;
  paging?(question: string): string;
  quiz?(question: string): string;
  wish?(question: string): string;
}

/** The kernel as a page or Node sees it. One instance serves everything on a page. */
export interface Kernel {
  readonly instance: WasmInstance;
  plan(request: Request): Answer | Failure;
  catalogue(): Catalogue;
  /** The same over JSON text, for the command line. */
  planText(request: string): string;
  readonly version: string;
}
