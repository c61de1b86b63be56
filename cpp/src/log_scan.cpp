#include "log_scan.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kvcap::log {
namespace {

using enum Field;

constexpr FieldSpec kSpecs[] = {
#define KVCAP_LOG_SPEC(id, name, kind, merge) {name, Kind::kind, Merge::merge},
    KVCAP_LOG_FIELDS(KVCAP_LOG_SPEC)
#undef KVCAP_LOG_SPEC
};
static_assert(std::size(kSpecs) == kFields);

// ---- what is looked for --------------------------------------------------------------------------------------------

/// A message as literal fragments and captures. A space matches one space or none, since lines are cleaned and may be
/// broken anywhere.
///   %b bytes with a unit   %n whole number   %d decimal number   %w word
///   %t text up to the next fragment          %< (first) the word before the message
struct Pattern {
  std::string_view text;
  Family family;
  Field fields[8];
};

constexpr Pattern kPatterns[] = {
    // vLLM: llm_engine.py, worker.py, gpu_worker.py, kv_cache_utils.py, executor_base.py of 0.2 to 0.24
    {"Initializing a", Family::vllm, {start}},
    {"LLM engine (v%w) with config", Family::vllm, {version}},
    {"vLLM API server version %w", Family::vllm, {version}},
    {"vLLM API server version", Family::vllm, {start}},
    {"vLLM server version %w", Family::vllm, {version}},
    {"blocks: %n, # CPU blocks: %n", Family::vllm, {kv_blocks, cpu_blocks}},
    {"# GPU blocks: %n", Family::vllm, {kv_blocks}},
    {"GPU KV cache size: %n tokens", Family::vllm, {kv_tokens}},
    {"Maximum concurrency for %n tokens per request: %dx", Family::vllm, {max_model_len, concurrency}},
    {"Available KV cache memory: %b", Family::vllm, {kv_memory}},
    {"reserved %b memory for KV Cache", Family::vllm, {kv_memory}},
    {"Loading model weights took %b", Family::vllm, {weights}},
    {"Model loading took %b", Family::vllm, {weights}},
    {"model weights take %b", Family::vllm, {weights}},
    {"weights memory: %b", Family::vllm, {weights}},
    {"non_torch_memory takes %b", Family::vllm, {non_torch}},
    {"non_torch_memory=%b", Family::vllm, {non_torch}},
    {"non-torch forward increase memory: %b", Family::vllm, {non_torch}},
    {"activation peak memory takes %b", Family::vllm, {activation}},
    {"torch peak memory increase: %b", Family::vllm, {activation}},
    {"reserved for KV Cache is %b", Family::vllm, {kv_memory}},
    {"kv_cache_size=%b", Family::vllm, {kv_memory}},
    {"peak_torch_memory=%b", Family::vllm, {peak_torch}},
    {"total_gpu_memory (%b)", Family::vllm, {total_memory}},
    {"total_gpu_memory=%b", Family::vllm, {total_memory}},
    {"gpu_memory_utilization (%d)", Family::vllm, {utilization}},
    {"GPU memory utilization is (%d", Family::vllm, {utilization}},
    {"desired GPU memory utilization (%d", Family::vllm, {utilization}},
    {"Actual usage is %b for weight", Family::vllm, {weights}},
    {"Actual usage is %b for consumed memory", Family::vllm, {consumed}},
    {"for weight, %b for peak activation", Family::vllm, {activation}},
    {"(weights + non-torch), %b for peak activation", Family::vllm, {activation}},
    {"for peak activation, %b for non-torch memory", Family::vllm, {non_torch}},
    {"and %b for CUDAGraph memory", Family::vllm, {cuda_graph}},
    {"kv cache memory in use is %b", Family::vllm, {kv_memory}},
    {"capturing finished in %d secs, took %b", Family::vllm, {none, cuda_graph}},
    {"CUDA graph pool memory: %b (actual), %b (estimated)", Family::vllm, {cuda_graph, graph_estimate}},
    {"Estimated CUDA graph memory: %b", Family::vllm, {graph_estimate}},
    {"Using max model len %n", Family::vllm, {max_model_len}},
    {"max seq len (%n)", Family::vllm, {max_model_len}},
    {"estimated maximum model length is %n", Family::vllm, {longest_model_len}},
    {"%b KV cache is needed", Family::vllm, {kv_needed}},
    {"available KV cache memory (%b)", Family::vllm, {kv_memory}},
    {"Setting attention block size to %n tokens", Family::vllm, {block_size}},
    {"Add %n padding layers", Family::vllm, {padding_layers}},
    {"on device (%d/%b) on startup", Family::vllm, {none, total_memory}},
    {"on device cuda:%n (%d/%b) on startup", Family::vllm, {none, none, total_memory}},
    {"Available memory: %n, total memory: %n", Family::ascend, {kv_memory, total_memory}},
    {"Aphrodite Engine", Family::aphrodite, {none}},
    {"Aphrodite instance", Family::aphrodite, {none}},
    {"weights loaded. Memory usage: %b", Family::aphrodite, {weights}},
    {"vllm_ascend", Family::ascend, {none}},

    // SGLang: model_runner.py, memory_pool.py, scheduler.py, server_args.py of 0.1 to 0.5
    {"server_args=ServerArgs(", Family::sglang, {start}},
    {"sglang: %w", Family::sglang, {version}},
    {"Load weight begin. avail mem=%b", Family::sglang, {avail_before_load}},
    {"oad weight end. %t avail mem=%b", Family::sglang, {none, avail_after_load}},
    {"oad weight end. %t mem usage=%b", Family::sglang, {none, weights}},
    {"oad weight end.", Family::sglang, {none}},
    {"emory pool end. avail mem=%b", Family::sglang, {avail_pool_end}},
    {"KV Cache is allocated. dtype: torch.%w", Family::sglang, {kv_dtype}},
    {"KV Cache is allocated", Family::sglang, {none}},
    {"#tokens: %n, K size: %b, V size: %b", Family::sglang, {pool_tokens, pool_k, pool_v}},
    {"allocated. K size: %b, V size: %b", Family::sglang, {pool_k, pool_v}},
    {"#tokens: %n, KV size: %b", Family::sglang, {pool_tokens, pool_kv}},
    {"SWAKVPool mem usage: %b, swa size: %n, full size: %n", Family::sglang, {swa_total, swa_tokens, full_tokens}},
    {"max_mamba_cache_size: %n, conv_state size: %b, ssm_state size: %b",
     Family::sglang,
     {mamba_slots, mamba_conv, mamba_state}},
    {"max_total_num_tokens=%n", Family::sglang, {kv_tokens}},
    {"cuda graph end. Time elapsed: %d s. mem usage=%b", Family::sglang, {none, cuda_graph}},
    {"CUDA graph end. elapsed=%d s, mem usage=%b", Family::sglang, {none, cuda_graph}},

    // TensorRT-LLM: kvCacheManager.cpp, trtGptModelInflightBatching.cpp, _util.py of 0.5 to 1.x
    {"[TensorRT-LLM]", Family::tensorrt_llm, {none}},
    {"[TRT-LLM]", Family::tensorrt_llm, {none}},
    {"TensorRT-LLM version: %w", Family::tensorrt_llm, {version}},
    {"TensorRT-LLM version:", Family::tensorrt_llm, {start}},
    {"MPI size: %n, MPI local size: %n, rank: %n", Family::tensorrt_llm, {world_size}},
    {"TensorRT-LLM engine version %w", Family::tensorrt_llm, {version}},
    {"Engine version %w found in the config", Family::tensorrt_llm, {version}},
    {"in paged kv cache: total: %b, available: %b", Family::tensorrt_llm, {total_memory, available}},
    {"Number of blocks in KV cache primary pool: %n", Family::tensorrt_llm, {kv_blocks}},
    {"Number of tokens per block: %n", Family::tensorrt_llm, {block_size}},
    {"Allocated %b for max tokens in paged KV cache (%n)", Family::tensorrt_llm, {kv_memory, kv_tokens}},
    {"Allocate %n bytes for k/v cache", Family::tensorrt_llm, {kv_memory}},
    {"Using %n tokens in paged KV cache", Family::tensorrt_llm, {kv_tokens}},
    {"Using %n total tokens in paged KV cache", Family::tensorrt_llm, {kv_tokens}},
    {"max_seq_len=%n, max_num_requests=%n, max_num_tokens=%n",
     Family::tensorrt_llm,
     {max_model_len, max_num_seqs, batched_tokens}},
    {"maxNumSequences: %n", Family::tensorrt_llm, {max_num_seqs}},
    {"maxSequenceLen: %n", Family::tensorrt_llm, {max_model_len}},
    {"calculating max tokens: %b", Family::tensorrt_llm, {available}},
    {"(torch + non-torch): %b", Family::tensorrt_llm, {peak_memory}},
    {"fraction is set %d", Family::tensorrt_llm, {free_fraction}},
    {"kv size is %n", Family::tensorrt_llm, {bytes_per_token}},
    {"kv size per token is %n", Family::tensorrt_llm, {bytes_per_token}},
    {"device total memory %b", Family::tensorrt_llm, {total_memory}},
    {"model weights (inside torch) in memory usage profiling: %b", Family::tensorrt_llm, {weights}},
    {"during inference (inside torch) in memory usage profiling: %b", Family::tensorrt_llm, {activation}},
    {"Loaded engine size: %b", Family::tensorrt_llm, {weights}},
    {"Total Weights Memory: %n bytes", Family::tensorrt_llm, {weights}},

    // llama.cpp: llama.cpp / llama-context.cpp, llama-kv-cache*.cpp, llama-memory-recurrent.cpp, b1700 to b8500
    {"build: %w (", Family::llama_cpp, {version}},
    {"build: %n (", Family::llama_cpp, {start}},
    {"build=%n commit=", Family::llama_cpp, {start}},
    {"build = %w (", Family::llama_cpp, {version}},
    {"build_info: %w", Family::llama_cpp, {version}},
    {"build_info:", Family::llama_cpp, {start}},
    {"build=%w commit=", Family::llama_cpp, {version}},
    {"version: %w (", Family::llama_cpp, {version}},
    {"system_info: n_threads", Family::llama_cpp, {none}},
    {"main: build", Family::llama_cpp, {start}},
    {"loaded meta data with %t from %w", Family::llama_cpp, {none, meta_path}},
    {"MTP draft context", Family::llama_cpp, {draft}},
    {"general.architecture str = %w", Family::llama_cpp, {arch}},
    {"general.name str = %t", Family::llama_cpp, {model_name}},
    {"general.name = %t", Family::llama_cpp, {model_name}},
    {"print_meta: arch = %w", Family::llama_cpp, {arch}},
    {"print_info: arch = %w", Family::llama_cpp, {arch}},
    {"print_meta: model ftype = %t", Family::llama_cpp, {ftype}},
    {"print_info: file type = %t", Family::llama_cpp, {ftype}},
    {"model size = %b (%d BPW)", Family::llama_cpp, {model_size, bits_per_weight}},
    {"file size = %b (%d BPW)", Family::llama_cpp, {model_size, bits_per_weight}},
    {"llama_context: n_ctx = %n", Family::llama_cpp, {n_ctx}},
    {"with_model: n_ctx = %n", Family::llama_cpp, {n_ctx}},
    {"from_model: n_ctx = %n", Family::llama_cpp, {n_ctx}},
    {"offloaded %n/%n layers to GPU", Family::llama_cpp, {offloaded, offloadable}},
    {"self size = %b, K (%w): %b, V (%w): %b",
     Family::llama_cpp,
     {cache_size, cache_type_k, cache_k, cache_type_v, cache_v}},
    {"self size = %b, c^KV (%w): %b", Family::ik, {cache_size, cache_type_k, cache_latent}},
    {"kv^T (%w): %b", Family::ik, {cache_type_v, cache_latent_t}},
    {"self size = %b", Family::llama_cpp, {cache_size}},
    {"size = %b (%n cells, %n layers, %n seqs), K (%w): %b, V (%w): %b",
     Family::llama_cpp,
     {cache_size, cells, layers, seqs, cache_type_k, cache_k, cache_type_v, cache_v}},
    {"size = %b (%n cells, %n layers, %n/%n seqs)", Family::llama_cpp, {cache_size, cells, layers, seqs, streams}},
    {"seqs), K (%w): %b, V (%w): %b", Family::llama_cpp, {cache_type_k, cache_k, cache_type_v, cache_v}},
    {"size = %b (%n cells, %n layers, %n seqs), R (%w): %b, S (%w): %b",
     Family::llama_cpp,
     {none, cells, layers, seqs, none, state_r, none, state_s}},
    {"size = %b (%n cells, %n layers, %n seqs %n rs_seq)", Family::llama_cpp, {none, cells, layers, seqs, rs_copies}},
    {"rs_seq), R (%w): %b, S (%w): %b", Family::llama_cpp, {none, state_r, none, state_s}},
    {"creating non-SWA KV cache, size = %n cells", Family::llama_cpp, {base_cells}},
    {"creating SWA KV cache, size = %n cells", Family::llama_cpp, {window_cells}},
    {"using full-size SWA cache", Family::llama_cpp, {swa_full}},
    {"Flash Attention was auto, set to %w", Family::llama_cpp, {flash_attn}},
    {"kv_size = %n", Family::llama_cpp, {kv_cells}},
    {"type_k = '%w'", Family::llama_cpp, {type_k}},
    {"type_v = '%w'", Family::llama_cpp, {type_v}},
    {"%<KV buffer size = %b", Family::llama_cpp, {device, kv_buffer}},
    {"%<RS buffer size = %b", Family::llama_cpp, {device, state_buffer}},
    {"%<compute buffer size = %b", Family::llama_cpp, {device, compute_buffer}},
    {"compute buffer total size = %b", Family::llama_cpp, {compute_buffer}},
    {"%<model buffer size = %b", Family::llama_cpp, {device, model_buffer}},
    {"load_tensors: %w buffer size = %b", Family::llama_cpp, {device, model_buffer}},
    {"msg=\"starting go runner\"", Family::ollama, {start}},
    {"msg=\"starting runner\"", Family::ollama, {start}},
    {"msg=\"starting llama server\"", Family::ollama, {start}},
    {"msg=\"model weights\" device=%w size=\"%b", Family::ollama, {device, model_buffer}},
    {"msg=\"kv cache\" device=%w size=\"%b", Family::ollama, {device, kv_buffer}},
    {"msg=\"compute graph\" device=%w size=\"%b", Family::ollama, {device, compute_buffer}},
    {"ollama", Family::ollama, {none}},
    {"attn_max_b =", Family::ik, {none}},
    {"fused_moe =", Family::ik, {none}},

    // GPUs: ggml_cuda_init, llama.cpp's device list, nvidia-smi, PyTorch's collect_env
    {"Device %n: %t, compute", Family::any, {none, gpu}},
    {"using device %w (%t)", Family::any, {none, gpu}},
    {"using device %w (%t) - %b free", Family::llama_cpp, {none, none, device_free}},
    {"using device %w (%t) (%t) - %b free", Family::llama_cpp, {none, none, none, device_free}},
    {"GPU name: %t", Family::any, {gpu}},
    {"GPU %n: %t (UUID", Family::any, {none, gpu}},
    {"GPU %n: %t", Family::any, {none, gpu}},
    {"found device: %t", Family::any, {gpu}},
    {"ggml_vulkan: %n = %t (", Family::any, {none, gpu}},
    {"NVIDIA %t On |", Family::any, {gpu}},
    {"NVIDIA %t Off |", Family::any, {gpu}},
    {"MiB / %b |", Family::any, {driver_memory}},
    {"total=\"%b\" available=", Family::ollama, {total_memory}},

    // Short flags of llama-server and vLLM
    {" -c %n ", Family::any, {n_ctx}},
    {" -np %n ", Family::any, {n_seq_max}},
    {" -ub %n ", Family::any, {n_ubatch}},
    {" -ctk %w", Family::any, {type_k}},
    {" -ctv %w", Family::any, {type_v}},
    {" -tp %n ", Family::any, {tensor_parallel}},
};

/// A setting printed as name=value, 'name': value, or given as --name value; '-' and '_' are one.
struct Key {
  std::string_view name;
  Family family;
  Field field;
};

constexpr Key kKeys[] = {
    {"model", Family::any, model},
    {"model_path", Family::any, model},
    {"model_tag", Family::any, model},
    {"max_model_len", Family::vllm, max_model_len},
    {"max_seq_len", Family::any, max_model_len},
    {"context_len", Family::sglang, max_model_len},
    {"context_length", Family::sglang, max_model_len},
    {"tensor_parallel_size", Family::any, tensor_parallel},
    {"pipeline_parallel_size", Family::any, pipeline_parallel},
    {"data_parallel_size", Family::any, data_parallel},
    {"decode_context_parallel_size", Family::vllm, context_parallel},
    {"tp_size", Family::any, tensor_parallel},
    {"pp_size", Family::any, pipeline_parallel},
    {"dp_size", Family::any, data_parallel},
    {"--tp", Family::any, tensor_parallel},
    {"gpu_memory_utilization", Family::vllm, utilization},
    {"kv_cache_dtype", Family::any, kv_dtype},
    {"kv_cache_memory_bytes", Family::vllm, kv_memory},
    {"block_size", Family::vllm, block_size},
    {"tokens_per_block", Family::tensorrt_llm, block_size},
    {"max_num_batched_tokens", Family::vllm, batched_tokens},
    {"max_num_seqs", Family::vllm, max_num_seqs},
    {"enable_prefix_caching", Family::vllm, prefix_caching},
    {"enforce_eager", Family::vllm, enforce_eager},
    {"disable_hybrid_kv_cache_manager", Family::vllm, no_hybrid_manager},
    {"mamba_cache_mode", Family::vllm, mamba_mode},
    {"cpu_offload_gb", Family::vllm, cpu_offload},
    {"num_gpu_blocks_override", Family::vllm, blocks_override},
    {"quantization", Family::any, weight_format},
    {"dtype", Family::any, dtype},
    {"mamba_ssm_cache_dtype", Family::any, ssm_dtype},
    {"mamba_ssm_dtype", Family::sglang, ssm_dtype},
    {"mem_fraction_static", Family::sglang, static_fraction},
    {"max_running_requests", Family::sglang, max_requests},
    {"swa_full_tokens_ratio", Family::sglang, swa_ratio},
    {"page_size", Family::sglang, page_size},
    {"max_total_tokens", Family::sglang, max_total_tokens},
    {"chunked_prefill_size", Family::sglang, chunked_prefill},
    {"cuda_graph_max_bs", Family::sglang, graph_batch},
    {"mamba_full_memory_ratio", Family::sglang, mamba_ratio},
    {"disable_radix_cache", Family::sglang, no_radix_cache},
    {"disable_hybrid_swa_memory", Family::sglang, no_window_pool},
    {"free_gpu_memory_fraction", Family::tensorrt_llm, free_fraction},
    {"kv_cache_free_gpu_mem_fraction", Family::tensorrt_llm, free_fraction},
    {"ctx_size", Family::llama_cpp, n_ctx},
    {"n_ctx_seq", Family::llama_cpp, n_ctx_seq},
    {"n_ctx_per_seq", Family::llama_cpp, n_ctx_seq},
    {"n_ctx_train", Family::llama_cpp, n_ctx_train},
    {"n_batch", Family::llama_cpp, n_batch},
    {"n_ubatch", Family::llama_cpp, n_ubatch},
    {"ubatch_size", Family::llama_cpp, n_ubatch},
    {"n_seq_max", Family::llama_cpp, n_seq_max},
    {"flash_attn", Family::llama_cpp, flash_attn},
    {"mla_attn", Family::ik, mla_attn},
    {"kv_unified", Family::llama_cpp, kv_unified},
    {"swa_full", Family::llama_cpp, swa_full},
    {"cache_type_k", Family::llama_cpp, type_k},
    {"cache_type_v", Family::llama_cpp, type_v},
    {"n_layer", Family::llama_cpp, n_layer},
    {"n_head", Family::llama_cpp, n_head},
    {"n_head_kv", Family::llama_cpp, n_head_kv},
    {"n_embd", Family::llama_cpp, n_embd},
    {"n_embd_head_k", Family::llama_cpp, head_k},
    {"n_embd_head_v", Family::llama_cpp, head_v},
    {"n_embd_k_gqa", Family::llama_cpp, k_gqa},
    {"n_embd_v_gqa", Family::llama_cpp, v_gqa},
    {"n_swa", Family::llama_cpp, n_swa},
    {"n_swa_pattern", Family::llama_cpp, swa_pattern},
    {"n_lora_kv", Family::llama_cpp, lora_kv},
    {"n_rot", Family::llama_cpp, n_rot},
    {"ssm_d_conv", Family::llama_cpp, ssm_conv},
    {"ssm_d_inner", Family::llama_cpp, ssm_inner},
    {"ssm_d_state", Family::llama_cpp, ssm_state},
};

static_assert(std::ranges::all_of(kPatterns, [](const Pattern& pattern) {
  for (std::size_t at = pattern.text.find('%'); at != std::string_view::npos; at = pattern.text.find('%', at + 2)) {
    if (pattern.text.substr(at + 1, 1).find_first_of("bndwt<") != 0) return false;
  }
  return true;
}));
static_assert(std::ranges::none_of(kKeys, [](const Key& key) {
  return kSpecs[static_cast<std::size_t>(key.field)].kind == Kind::mark;
}));

constexpr std::size_t kPatternCount = std::size(kPatterns);
constexpr std::size_t kKeyCount = std::size(kKeys);

// ---- where a message may begin -------------------------------------------------------------------------------------

constexpr std::size_t kAnchor = 4;
constexpr u32 kBuckets = 4096;

constexpr char as_key(char c) { return c == '-' ? '_' : c; }

/// The four characters of a window over a line, with '-' as '_', and their bucket.
constexpr u32 slide(u32 four, char next) { return four << 8 | static_cast<unsigned char>(as_key(next)); }
constexpr u32 bucket_of(u32 four) { return (four * 2654435761U) >> 20; }

/// A message that opens with a number is found by the fragment after it and read from there.
std::string_view anchor_text(std::string_view text) {
  if (text.starts_with("%<")) return text.substr(2);
  if (text.starts_with("%b")) return text.substr(2);
  return text;
}

/// Chains of patterns and keys by bucket; 0 ends a chain. Each with its four letters, since buckets are shared.
struct Index {
  std::array<unsigned short, kBuckets> head{};
  std::array<unsigned short, kPatternCount + kKeyCount + 1> next{};
  std::array<u32, kPatternCount + kKeyCount + 1> letters{};

  Index() {
    const auto add = [this](std::string_view anchor, std::size_t id) {
      u32 four = 0;
      for (const char c : anchor.substr(0, kAnchor)) four = slide(four, c);
      letters[id] = four;
      const u32 bucket = bucket_of(four);
      next[id] = head[bucket];
      head[bucket] = static_cast<unsigned short>(id);
    };
    for (std::size_t i = 0; i < kPatternCount; ++i) add(anchor_text(kPatterns[i].text), i + 1);
    for (std::size_t i = 0; i < kKeyCount; ++i) add(kKeys[i].name, kPatternCount + i + 1);
  }
};

const Index& index() {
  static const Index kIndex;
  return kIndex;
}

// ---- reading of values ---------------------------------------------------------------------------------------------

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_name(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

/// A cursor over one line; `spent` says that the text ended where more was expected.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;
  bool spent = false;

  [[nodiscard]] bool done() const { return at >= text.size(); }
  [[nodiscard]] char now() const { return done() ? '\0' : text[at]; }
  [[nodiscard]] char ahead(std::size_t n) const { return at + n < text.size() ? text[at + n] : '\0'; }
  void space() {
    if (now() == ' ') ++at;
  }
  bool refuse() {
    // Two characters from the end, the rest may stand on the next line.
    if (at + 2 >= text.size()) spent = true;
    return false;
  }
};

struct Number {
  u64 digits = 0;
  unsigned decimals = 0;
  bool negative = false;
};

constexpr u64 kMostDigits = 1'000'000'000'000'000'000;

/// "89,994", "89_994", "28.85", "2713,50" (a decimal comma has not three digits after it), "-0.42".
std::optional<Number> read_number(Cursor& in) {
  in.space();
  Number out;
  if (in.now() == '-' && is_digit(in.ahead(1))) {
    out.negative = true;
    ++in.at;
  }
  if (!is_digit(in.now())) {
    in.refuse();
    return std::nullopt;
  }
  const auto take = [&](bool fraction) {
    while (is_digit(in.now())) {
      if (out.digits >= kMostDigits / 10) {
        // More digits than any count has: what is past a decimal point is dropped, a whole number is refused.
        if (!fraction) return false;
      } else {
        out.digits = out.digits * 10 + static_cast<u64>(in.now() - '0');
        if (fraction) ++out.decimals;
      }
      ++in.at;
    }
    return true;
  };
  if (!take(false)) return std::nullopt;
  for (;;) {
    const char mark = in.now();
    const bool three =
        is_digit(in.ahead(1)) && is_digit(in.ahead(2)) && is_digit(in.ahead(3)) && !is_digit(in.ahead(4));
    if ((mark == ',' || mark == '_') && three) {
      ++in.at;
      if (!take(false)) return std::nullopt;
      continue;
    }
    if ((mark == '.' || mark == ',') && is_digit(in.ahead(1))) {
      ++in.at;
      take(true);
    }
    return out;
  }
}

/// The unit after a number: every engine means powers of 1024, whatever the label says.
std::optional<u64> read_unit(Cursor& in, bool& decimal_label) {
  in.space();
  constexpr std::string_view kPrefixes = "KMGT";
  std::size_t power = 0;
  const auto found = in.done() ? std::string_view::npos : kPrefixes.find(in.now() == 'k' ? 'K' : in.now());
  std::size_t length = 0;
  bool plain = false;
  if (found != std::string_view::npos) {
    power = found + 1;
    length = 1;
    if (in.ahead(length) == 'i') {
      ++length;
    } else {
      plain = true;
    }
    if (in.ahead(length) != 'B' && in.ahead(length) != 'b') {
      in.refuse();
      if (in.at + length >= in.text.size()) in.spent = true;
      return std::nullopt;
    }
    ++length;
  } else if (in.now() == 'B') {
    length = 1;
  } else {
    in.refuse();
    return std::nullopt;
  }
  if (is_name(in.ahead(length))) return std::nullopt;
  in.at += length;
  decimal_label = plain;
  return u64{1} << (10 * power);
}

constexpr u64 power_of_ten(unsigned n) {
  u64 power = 1;
  while (n-- != 0) power *= 10;
  return power;
}

/// One capture.
struct Capture {
  std::int64_t value = 0;
  u64 tolerance = 0;
  bool decimal_label = false;
  std::string_view text;
  std::size_t end = 0;
};

bool take_scaled(const Number& number, u64 unit, Capture& out) {
  const u64 ten = power_of_ten(std::min(number.decimals, 18U));
  const Wide scaled = (Wide{number.digits} * unit * 2 + ten) / (Wide{ten} * 2);
  if (scaled > kMaxExact) return false;
  out.value = static_cast<std::int64_t>(scaled);
  if (number.negative) out.value = -out.value;
  out.tolerance = static_cast<u64>(number.decimals == 0 && unit == 1 ? 0 : ceil_div(Wide{unit}, Wide{ten} * 2));
  return true;
}

bool take_bytes(Cursor& in, Capture& out) {
  const auto number = read_number(in);
  if (!number) return false;
  const auto unit = read_unit(in, out.decimal_label);
  return unit && take_scaled(*number, *unit, out);
}

bool take_whole(Cursor& in, Capture& out) {
  const auto number = read_number(in);
  if (!number || number->negative || number->decimals != 0) return false;
  return take_scaled(*number, 1, out);
}

bool take_decimal(Cursor& in, Capture& out) {
  const auto number = read_number(in);
  return number && take_scaled(*number, 1'000'000'000, out);
}

constexpr std::size_t kLongestWord = 160;
constexpr std::size_t kLongestList = 16384;

bool take_word(Cursor& in, Capture& out) {
  in.space();
  if (in.now() == '[') {
    constexpr std::string_view kMarks = " ,.-[";
    const std::size_t from = in.at;
    while (!in.done() && in.at - from < kLongestList && (is_digit(in.now()) || kMarks.contains(in.now()))) ++in.at;
    if (in.done()) in.spent = true;
    if (in.now() != ']') return false;
    out.text = in.text.substr(from, ++in.at - from);
    return true;
  }
  constexpr std::string_view kEnds = " ,;()[]{}'\"|<>";
  const std::size_t from = in.at;
  while (!in.done() && in.at - from < kLongestWord && kEnds.find(in.now()) == std::string_view::npos) ++in.at;
  std::size_t to = in.at;
  while (to > from && (in.text[to - 1] == '.' || in.text[to - 1] == ':')) --to;
  out.text = in.text.substr(from, to - from);
  if (to == from) return in.refuse();
  in.at = to;
  return true;
}

bool take_quoted(Cursor& in, Capture& out) {
  in.space();
  const char quote = in.now();
  if (quote != '\'' && quote != '"') return take_word(in, out);
  const std::size_t close = in.text.substr(in.at + 1, 2 * kLongestWord).find(quote);
  if (close == std::string_view::npos) {
    if (in.text.size() - in.at < 2 * kLongestWord) in.spent = true;
    return false;
  }
  out.text = in.text.substr(in.at + 1, close);
  in.at += close + 2;
  return close != 0;
}

/// Text up to the fragment `rest` opens with, or to the end of the line.
bool take_text(Cursor& in, std::string_view rest, Capture& out) {
  in.space();
  std::string_view stop = rest.substr(0, rest.find('%'));
  while (!stop.empty() && stop.back() == ' ') stop.remove_suffix(1);
  const std::string_view from = in.text.substr(in.at, kLongestWord);
  std::size_t length = from.size();
  if (!stop.empty()) {
    length = from.find(stop);
    if (length == std::string_view::npos) {
      if (in.at + from.size() >= in.text.size()) in.spent = true;
      return false;
    }
  }
  out.text = from.substr(0, length);
  while (!out.text.empty() && out.text.back() == ' ') out.text.remove_suffix(1);
  in.at += length;
  return !out.text.empty();
}

/// A number and its unit that end at `end`, as in "7.32 GiB KV cache is needed".
bool take_bytes_before(std::string_view text, std::size_t end, Capture& out) {
  std::size_t from = end;
  while (from > 0 && end - from < 24) {
    const char c = text[from - 1];
    const bool part = is_digit(c) || is_letter(c) || c == '.' || c == ' ';
    if (!part) break;
    --from;
  }
  // The last number of that stretch.
  std::size_t digit = end;
  while (digit > from && !is_digit(text[digit - 1])) --digit;
  while (digit > from && (is_digit(text[digit - 1]) || text[digit - 1] == '.')) --digit;
  Cursor in{text.substr(0, end), digit};
  return take_bytes(in, out) && (in.space(), in.at == end);
}

struct Match {
  std::array<Capture, 8> captures;
  std::size_t count = 0;
  std::size_t end = 0;
};

enum class Outcome : unsigned char { no, more, yes };

Outcome match_pattern(const Pattern& pattern, std::string_view line, std::size_t at, Match& out) {
  out.count = 0;
  std::string_view text = pattern.text;
  if (text.starts_with("%<")) {
    std::size_t end = at;
    while (end > 0 && line[end - 1] == ' ') --end;
    std::size_t from = end;
    while (from > 0 && end - from < 40 && line[from - 1] != ' ') --from;
    Capture& word = out.captures[out.count++];
    word = {};
    word.text = line.substr(from, end - from);
    if (word.text.ends_with(':')) word.text = {};
    text.remove_prefix(2);
  } else if (text.starts_with("%b")) {
    Capture& bytes = out.captures[out.count++];
    bytes = {};
    if (!take_bytes_before(line, at, bytes)) return Outcome::no;
    text.remove_prefix(2);
  }
  Cursor in{line, at};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') {
      in.space();
      continue;
    }
    if (c != '%') {
      if (in.now() != c) {
        in.refuse();
        return in.spent ? Outcome::more : Outcome::no;
      }
      ++in.at;
      continue;
    }
    Capture& capture = out.captures[out.count++];
    capture = {};
    bool taken = false;
    switch (text[++i]) {
      case 'b': taken = take_bytes(in, capture); break;
      case 'n': taken = take_whole(in, capture); break;
      case 'd': taken = take_decimal(in, capture); break;
      case 'w': taken = take_word(in, capture); break;
      default: taken = take_text(in, text.substr(i + 1), capture); break;
    }
    if (!taken) return in.spent ? Outcome::more : Outcome::no;
    capture.end = in.at;
  }
  out.end = in.at;
  return Outcome::yes;
}

/// Compares with '-' and '_' as one.
Outcome match_key(const Key& key, std::string_view line, std::size_t at, Match& out) {
  const bool is_flag_name = key.name.starts_with("--");
  Cursor in{line, at};
  for (const char c : key.name) {
    if (in.done()) return Outcome::more;
    if (as_key(in.now()) != as_key(c)) return Outcome::no;
    ++in.at;
  }
  if (is_name(in.now()) || in.now() == '-') return Outcome::no;
  const char before = at > 0 ? line[at - 1] : ' ';
  const bool flag = is_flag_name || (at >= 2 && before == '-' && line[at - 2] == '-');
  if (!flag && (is_name(before) || before == '.' || before == '-')) return Outcome::no;
  const bool quoted = (before == '\'' || before == '"') && in.now() == before;
  if (quoted) ++in.at;
  const bool spaced = in.now() == ' ';
  in.space();
  if (in.now() == '=') {
    ++in.at;
  } else if (quoted && in.now() == ':') {
    ++in.at;
  } else if (!(flag && spaced)) {
    return in.at + 1 >= line.size() ? Outcome::more : Outcome::no;
  }
  Capture& capture = out.captures[0];
  capture = {};
  out.count = 1;
  bool taken = false;
  switch (spec_of(key.field).kind) {
    case Kind::bytes:  // a flag in bytes is written without a unit
    case Kind::whole: taken = take_whole(in, capture); break;
    case Kind::decimal: taken = take_decimal(in, capture); break;
    case Kind::text:
    case Kind::mark: taken = take_quoted(in, capture); break;
  }
  if (!taken) return in.spent ? Outcome::more : Outcome::no;
  capture.end = in.at;
  out.end = in.at;
  return Outcome::yes;
}

// ---- lines ---------------------------------------------------------------------------------------------------------

/// Length of the UTF-8 sequence at `at`, 0 where there is none.
std::size_t sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

/// Steps over a terminal's escape sequence at `at` (the byte after ESC).
std::size_t after_escape(std::string_view raw, std::size_t at) {
  if (at >= raw.size()) return at;
  const char kind = raw[at++];
  if (kind == '[') {
    while (at < raw.size() && static_cast<unsigned char>(raw[at]) >= 0x20 &&
           static_cast<unsigned char>(raw[at]) < 0x40) {
      ++at;
    }
    return std::min(at + 1, raw.size());
  }
  if (kind == ']') {  // a title or link, ended by BEL or ESC backslash
    while (at < raw.size() && raw[at] != '\a' && raw[at] != '\x1b') ++at;
    if (at < raw.size() && raw[at] == '\x1b') ++at;
    return std::min(at + 1, raw.size());
  }
  return at;
}

/// What a byte is to clean().
enum class Byte : unsigned char { plain, space, dropped, escape, high };

constexpr auto kBytes = [] {
  std::array<Byte, 256> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i] = i >= 0x80 ? Byte::high : i > ' ' && i != 0x7F ? Byte::plain : Byte::dropped;
    if (i == ' ' || (i >= '\t' && i <= '\r')) kinds[i] = Byte::space;
  }
  kinds[0x1B] = Byte::escape;
  return kinds;
}();

constexpr Byte byte_kind(char c) { return kBytes[static_cast<unsigned char>(c)]; }

/// Plain text of a line: no colours, no control characters, one space for any white space, no quote marks of mail.
/// True where white space ends it.
[[gnu::noinline]] bool clean(std::string_view raw, std::string& out) {
  // Nothing grows but a byte that is no text, which becomes one.
  out.resize(raw.size());
  char* const begin = out.data();
  char* to = begin;
  bool gap = false;
  const auto put = [&](const char* from, std::size_t count) {
    if (gap && to != begin) *to++ = ' ';
    gap = false;
    while (count-- != 0) *to++ = *from++;
  };
  const char* const data = raw.data();
  for (std::size_t i = 0; i < raw.size();) {
    switch (byte_kind(data[i])) {
      case Byte::plain: {
        if (gap) put(data + i++, 1);
        while (i < raw.size() && byte_kind(data[i]) == Byte::plain) *to++ = data[i++];
        break;
      }
      case Byte::space:
        gap = true;
        ++i;
        break;
      case Byte::dropped: ++i; break;
      case Byte::escape: i = after_escape(raw, i + 1); break;
      case Byte::high: {
        const std::size_t length = sequence(raw, i);
        if (length == 2 && data[i] == '\xC2' && data[i + 1] == '\xA0') {
          gap = true;
        } else {
          put(length == 0 ? "?" : data + i, std::max<std::size_t>(length, 1));
        }
        i += std::max<std::size_t>(length, 1);
        break;
      }
    }
  }
  out.resize(static_cast<std::size_t>(to - begin));
  if (out.starts_with('>')) {
    std::size_t quotes = 0;
    while (quotes < out.size() && (out[quotes] == '>' || out[quotes] == ' ')) ++quotes;
    out.erase(0, quotes);
  }
  return gap;
}

/// A container's line as its file driver keeps it, {"log":"…\\n","stream":…}: its text, without the escapes.
bool unwrap(std::string_view raw, std::string& out) {
  constexpr std::string_view kOpening = "{\"log\":\"";
  if (!raw.starts_with(kOpening)) return false;
  out.clear();
  for (std::size_t i = kOpening.size(); i < raw.size() && raw[i] != '"'; ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char kind = raw[++i];
    if (kind == 'n' || kind == 'r' || kind == 't') {
      out += ' ';
    } else if (kind == 'u' && raw.substr(i + 1, 2) == "00" && i + 4 < raw.size()) {
      unsigned code = 0;  // control characters, and < > & as some writers escape them
      for (const char c : raw.substr(i + 3, 2)) {
        code = code * 16 + static_cast<unsigned>(is_digit(c) ? c - '0' : ((c | 0x20) - 'a' + 10) & 15);
      }
      out += static_cast<char>(code & 0x7F);
      i += 4;
    } else {
      out += kind;
    }
  }
  return true;
}

/// Pieces of a text: lines, and parts of lines too long to hold.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  /// False at the end. `number` counts line feeds only, as editors do.
  bool next(std::string_view& raw, u32& number) {
    if (at_ >= text_.size()) return false;
    number = number_;
    constexpr std::size_t kLongest = 1 << 16;
    const std::string_view rest = text_.substr(at_, kLongest);
    if (feed_ < at_) feed_ = std::min(text_.find('\n', at_), text_.size());
    std::size_t end = std::min(feed_ - at_, rest.size());
    end = std::min(rest.substr(0, end).find('\r'), end);
    if (end == rest.size()) {
      if (at_ + end < text_.size()) {
        // Break where no figure is torn.
        if (const std::size_t space = rest.rfind(' '); space != std::string_view::npos && space > kLongest / 2)
          end = space;
      }
      raw = rest.substr(0, end);
      at_ += end;
      return true;
    }
    raw = rest.substr(0, end);
    at_ += end + 1;
    if (rest[end] == '\n') {
      ++number_;
    } else if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++number_;
    }
    return true;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t feed_ = std::min(text_.find('\n'), text_.size());  ///< the next line feed, looked for once
  u32 number_ = 1;
};

std::size_t width_of(std::string_view raw) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < raw.size();) {
    ++i;
    if (raw[i - 1] == '\x1b') {
      i = after_escape(raw, i);
    } else {
      ++width;
    }
  }
  return width;
}

/// The column at which a terminal broke the lines; 0 where none did.
std::size_t wrap_column(std::string_view text) {
  constexpr std::size_t kWidest = 512;
  std::size_t widest = 0;
  u64 count = 0;
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    // A line without colours is as wide as it is long.
    const std::string_view rest = text.substr(i, kWidest + 1);
    std::size_t length = 0;
    while (length < rest.size() && rest[length] != '\n' && rest[length] != '\r' && rest[length] != '\x1b') ++length;
    width += length;
    i += length;
    if (width > kWidest) return 0;
    if (i < text.size() && text[i] == '\x1b') {
      i = after_escape(text, i + 1);
      continue;
    }
    ++i;
    if (width > widest) {
      widest = width;
      count = 0;
    }
    if (width == widest) ++count;
    width = 0;
  }
  return widest >= 40 && count >= 2 ? widest : 0;
}

/// Whether a line opens a record of its own, so that it cannot continue `before`: it has a record's head, or the same
/// as the line before.
bool opens_record(std::string_view line, std::string_view before) {
  constexpr std::size_t kSame = 5;
  if (line.size() > kSame && line.substr(0, kSame) == before.substr(0, kSame)) return true;
  constexpr std::string_view kOpenings =
      "[20|(Engine|(Worker|(Vllm|(API|(Ray|INFO |WARNING |ERROR |DEBUG |llama_|llm_|ggml_|print_info|load_|load: "
      "|time=|"
      "[Tensor|sched_|slot |main:|srv |";
  for (std::size_t at = 0; at < kOpenings.size();) {
    const std::size_t end = kOpenings.find('|', at);
    if (line.starts_with(kOpenings.substr(at, end - at))) return true;
    at = end + 1;
  }
  // A date or a clock: 2025-09-25, 10:00:00, 0.08.312.926
  std::size_t at = 0;
  while (at < line.size() && is_digit(line[at])) ++at;
  if (at == 0 || at + 2 >= line.size() || !is_digit(line[at + 1])) return false;
  const auto two_digits = [&](std::size_t i) {
    return i + 1 < line.size() && is_digit(line[i]) && is_digit(line[i + 1]);
  };
  if (line[at] == '-' && at == 4) return true;
  if (line[at] == ':' && at <= 2 && two_digits(at + 1) && at + 3 < line.size() && line[at + 3] == ':') return true;
  std::size_t dots = 0;
  for (std::size_t i = at; i < line.size() && (is_digit(line[i]) || line[i] == '.'); ++i)
    dots += line[i] == '.' ? 1 : 0;
  return dots == 3;
}

/// The rank that the brackets at the head of a line name: (Worker_TP1 pid=9), [2025-… DP0 TP3], [gpu=2], [RANK 1].
constexpr std::size_t kHead = 200;

Rank rank_of(std::string_view line) {
  Rank rank;
  const auto number_at = [&](std::string_view inside, std::size_t at) {
    int value = 0;
    for (std::size_t digits = 0; at < inside.size() && is_digit(inside[at]) && digits < 5; ++at, ++digits) {
      value = value * 10 + (inside[at] - '0');
    }
    return value;
  };
  std::size_t from = 0;
  for (int group = 0; group < 4; ++group) {
    const std::size_t open = line.substr(0, 120).find_first_of("([", from);
    if (open == std::string_view::npos) break;
    const std::size_t close = line.substr(0, open + 80).find_first_of(")]", open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view inside = line.substr(open + 1, close - open - 1);
    for (std::size_t i = 0; i + 2 < inside.size(); ++i) {
      const char before = i == 0 ? ' ' : inside[i - 1];
      if (is_digit(before) || is_letter(before)) continue;
      const std::string_view two = inside.substr(i, 2);
      if (is_digit(inside[i + 2])) {
        if (two == "TP") rank.tensor = number_at(inside, i + 2);
        if (two == "PP") rank.pipeline = number_at(inside, i + 2);
        if (two == "DP") rank.data = number_at(inside, i + 2);
      }
      for (const std::string_view name : {"rank=", "rank ", "RANK ", "gpu=", "gpu_id="}) {
        const std::size_t end = i + name.size();
        if (inside.substr(i).starts_with(name) && end < inside.size() && is_digit(inside[end])) {
          rank.tensor = number_at(inside, end);
        }
      }
    }
    from = close + 1;
  }
  return rank;
}

constexpr std::size_t kExcerpt = 120;

std::string_view excerpt_of(std::string_view line, std::size_t at) {
  std::size_t from = 0;
  if (line.size() > kExcerpt) from = std::min(at > 24 ? at - 24 : 0, line.size() - kExcerpt);
  std::size_t to = std::min(from + kExcerpt, line.size());
  const auto inside = [&](std::size_t i) {
    return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;
  };
  while (inside(from)) ++from;
  while (to > from && inside(to)) --to;
  return line.substr(from, to - from);
}

// ---- the scan ------------------------------------------------------------------------------------------------------

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), wrap_(wrap_column(text)) {}

  Scan run() {
    Lines lines(text_);
    std::string_view raw;
    u32 number = 0;
    bool more = next_line(lines, raw, number);
    bool continued = false;
    while (more) {
      if (ahead_text_.empty()) {
        more = next_line(lines, raw, number);
        continued = false;
        continue;
      }
      line_.swap(ahead_text_);
      line_gap_ = ahead_gap_;
      const u32 now = number;
      const bool full = wrap_ != 0 && width_of(raw) == wrap_;
      const std::size_t raw_end = static_cast<std::size_t>(raw.data() - text_.data()) + raw.size();
      more = next_line(lines, raw, number);
      // A continued line has no head of its own.
      if (!continued) {
        head_.assign(line_, 0, kHead);
        rank_read_ = false;
      }
      scan_line(now, full, raw_end);
      continued = full && more && !opens_record(ahead_text_, line_);
    }
    if (have_cache_) ++out_.starts;
    count_votes();
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      out_.found[i].text = view(stored_[i].text);
      out_.found[i].excerpt = view(stored_[i].excerpt);
    }
    return std::move(out_);
  }

 private:
  [[gnu::noinline]] bool next_line(Lines& lines, std::string_view& raw, u32& number) {
    if (!lines.next(raw, number)) return false;
    ahead_gap_ = clean(unwrap(raw, unwrapped_) ? std::string_view(unwrapped_) : raw, ahead_text_);
    return true;
  }

  // Not inlined, since a browser optimises a function from one call to the next.
  [[gnu::noinline]] void scan_line(u32 number, bool full, std::size_t raw_end) {
    const Index& messages = index();
    Match match;
    u32 four = 0;
    for (std::size_t i = 0; i + 1 < kAnchor && i < line_.size(); ++i) four = slide(four, line_[i]);
    const std::string_view line = line_;
    std::size_t at = 0;
    for (; at + kAnchor <= line.size(); ++at) {
      four = slide(four, line[at + kAnchor - 1]);
      for (unsigned short id = messages.head[bucket_of(four)]; id != 0; id = messages.next[id]) {
        if (messages.letters[id] == four) try_one(id, number, at, full, raw_end, match);
      }
    }
    // A message that begins in the last letters of a broken line.
    if (at < line.size() && full && !opens_record(ahead_text_, line_)) scan_joined(number, at, raw_end);
  }

  Outcome match_id(unsigned short id, std::string_view line, std::size_t at, Match& match) const {
    if (id <= kPatternCount) return match_pattern(kPatterns[id - 1], line, at, match);
    return match_key(kKeys[id - kPatternCount - 1], line, at, match);
  }

  void try_one(unsigned short id, u32 number, std::size_t at, bool full, std::size_t raw_end, Match& match) {
    const Outcome outcome = match_id(id, line_, at, match);
    // Text may go on after a space, other captures end there.
    const bool to_end = id <= kPatternCount && kPatterns[id - 1].text.ends_with("%t");
    const bool at_edge = outcome == Outcome::yes && full && (!line_gap_ || to_end) && match.end >= line_.size();
    if (outcome == Outcome::no) return;
    if (outcome == Outcome::yes && !at_edge) {
      keep(id, number, line_, at, match);
      return;
    }
    if (outcome == Outcome::yes && opens_record(ahead_text_, line_)) {
      keep(id, number, line_, at, match);
      return;
    }
    if (!joined(raw_end)) {
      if (outcome == Outcome::yes) keep(id, number, line_, at, match);
      return;
    }
    // A terminal breaks anywhere, mail at spaces.
    Match longer;
    for (const bool tight : {full, !full}) {
      join(tight);
      if (outcome == Outcome::yes && !tight) continue;
      if (match_id(id, window_, at, longer) == Outcome::yes) {
        keep(id, number, window_, at, longer);
        return;
      }
    }
    if (outcome == Outcome::yes) keep(id, number, line_, at, match);
  }

  void scan_joined(u32 number, std::size_t from, std::size_t raw_end) {
    const Index& messages = index();
    if (!joined(raw_end)) return;
    Match match;
    for (const bool tight : {true, false}) {
      join(tight);
      for (std::size_t at = from; at < line_.size() && at + kAnchor <= window_.size(); ++at) {
        u32 four = 0;
        for (std::size_t i = 0; i < kAnchor; ++i) four = slide(four, window_[at + i]);
        for (unsigned short id = messages.head[bucket_of(four)]; id != 0; id = messages.next[id]) {
          if (messages.letters[id] == four && match_id(id, window_, at, match) == Outcome::yes) {
            keep(id, number, window_, at, match);
          }
        }
      }
    }
  }

  /// Fetches the lines after this one that may continue it: up to six and 600 characters, none that opens a record.
  bool joined(std::size_t raw_end) {
    if (joined_for_ == raw_end) return !pieces_.empty();
    joined_for_ = raw_end;
    pieces_.clear();
    std::size_t at = raw_end;
    const auto step = [&] {  // over one line's end
      if (at < text_.size() && text_[at] == '\r') ++at;
      if (at < text_.size() && text_[at] == '\n') ++at;
    };
    std::size_t size = 0;
    for (int lines = 0; lines < 6 && at < text_.size() && size < 600; ++lines) {
      step();
      const std::string_view rest = text_.substr(at, 2048);
      const std::string_view raw = rest.substr(0, rest.find_first_of("\r\n"));
      const bool ends_in_gap = clean(raw, piece_);
      if (piece_.empty() || opens_record(piece_, line_)) break;
      if (raw.front() == ' ') piece_.insert(0, 1, ' ');
      if (ends_in_gap) piece_ += ' ';
      piece_.resize(std::min<std::size_t>(piece_.size(), 600));
      size += piece_.size();
      pieces_.push_back(piece_);
      at += raw.size();
    }
    return !pieces_.empty();
  }

  void join(bool tight) {
    window_ = line_;
    if (tight && line_gap_) window_ += ' ';
    for (const auto& piece : pieces_) {
      const bool spaced = window_.ends_with(' ') || piece.starts_with(' ');
      if (!tight && !spaced) window_ += ' ';
      window_ += piece;
    }
  }

  /// The messages since the last start that printed a cache.
  void count_votes() {
    const u32 from = have_cache_ || start_ == 0 ? start_ : start_ - 1;
    const auto vote = [&](u32 seen, Family family) {
      if (seen > from) ++out_.votes[static_cast<std::size_t>(family)];
    };
    for (std::size_t i = 0; i < seen_.size(); ++i) vote(seen_[i], kPatterns[i].family);
    for (std::size_t i = 0; i < seen_keys_.size(); ++i) vote(seen_keys_[i], kKeys[i].family);
  }

  void keep(unsigned short id, u32 number, std::string_view line, std::size_t at, const Match& match) {
    if (id > kPatternCount) {
      const Key& key = kKeys[id - kPatternCount - 1];
      seen_keys_[id - kPatternCount - 1] = start_ + 1;
      if (match.captures[0].text == "None") return;
      ++match_;
      add(key.field, number, line, at, match.captures[0]);
      return;
    }
    const Pattern& pattern = kPatterns[id - 1];
    seen_[id - 1] = start_ + 1;
    if (pattern.fields[0] == start) {
      if (have_cache_) {
        ++start_;
        ++out_.starts;
        have_cache_ = false;
      }
      seen_[id - 1] = start_ + 1;
      return;
    }
    ++match_;
    if (match.count == 0 && pattern.fields[0] != none) {
      // The message itself is the fact.
      Capture yes;
      yes.text = "1";
      add(pattern.fields[0], number, line, at, yes);
      return;
    }
    for (std::size_t i = 0; i < match.count; ++i) {
      if (pattern.fields[i] != none) add(pattern.fields[i], number, line, at, match.captures[i]);
    }
  }

  void add(Field field, u32 number, std::string_view line, std::size_t at, const Capture& capture) {
    constexpr u32 kKept = 512;  // of one field
    switch (field) {
      case kv_tokens:
      case kv_blocks:
      case kv_needed:  // it ended there
      case cache_size:
      case pool_k:
      case pool_kv: have_cache_ = true; break;
      default: break;
    }
    // The same words can match a longer and a shorter pattern.
    constexpr std::size_t kNear = 48;
    const std::size_t all = out_.found.size();
    for (std::size_t i = all; i-- > 0 && all - i <= kNear && out_.found[i].line == number;) {
      const Found& other = out_.found[i];
      if (other.field == field && other.value == capture.value && view(stored_[i].text) == capture.text &&
          spec_of(field).merge != Merge::parts) {
        return;
      }
    }
    if (++counts_[static_cast<std::size_t>(field)] > kKept) {
      ++out_.left_out;
      return;
    }
    // A short line is quoted whole and once.
    if (excerpt_match_ != match_ && (excerpt_line_ != number || line.size() > kExcerpt)) {
      excerpt_line_ = number;
      excerpt_match_ = match_;
      excerpt_ = store(excerpt_of(line, at));
    }
    if (!rank_read_) rank_ = rank_of(head_);
    rank_read_ = true;
    Found& found = out_.found.emplace_back();
    found.field = field;
    found.decimal_label = capture.decimal_label;
    found.rank = rank_;
    found.line = number;
    found.match = match_;
    found.start = start_;
    found.value = capture.value;
    found.tolerance = capture.tolerance;
    stored_.push_back({store(capture.text), excerpt_});
  }

  /// A piece of the storage, which moves while it grows.
  struct Piece {
    std::size_t at = 0, size = 0;
  };
  struct Stored {
    Piece text, excerpt;
  };
  Piece store(std::string_view text) {
    const Piece piece{out_.storage.size(), text.size()};
    out_.storage.insert(out_.storage.end(), text.begin(), text.end());
    return piece;
  }
  [[nodiscard]] std::string_view view(Piece piece) const { return {out_.storage.data() + piece.at, piece.size}; }

  std::string_view text_;
  std::size_t wrap_;
  Scan out_;
  std::string line_, ahead_text_, window_, piece_, unwrapped_;
  std::string head_;  ///< where the line's record names its rank
  std::vector<std::string> pieces_;
  std::size_t joined_for_ = static_cast<std::size_t>(-1);
  Rank rank_;
  bool rank_read_ = false;
  bool line_gap_ = false, ahead_gap_ = false;
  bool have_cache_ = false;
  std::vector<Stored> stored_;  ///< beside out_.found
  Piece excerpt_;
  u32 excerpt_line_ = 0, excerpt_match_ = 0;
  u32 match_ = 0;
  u32 start_ = 0;
  std::array<u32, kFields> counts_{};
  std::array<u32, kPatternCount> seen_{};  ///< one more than the last start that had the message; 0: none had
  std::array<u32, kKeyCount> seen_keys_{};
};

}  // namespace

const FieldSpec& spec_of(Field field) noexcept { return kSpecs[static_cast<std::size_t>(field)]; }

Scan scan(std::string_view text) { return Scanner(text).run(); }

}  // namespace kvcap::log
