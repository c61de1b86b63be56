// What the messages of the engines' logs say, found line by line: a table of patterns over cleaned lines.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvcap/units.hpp"

namespace kvcap::log {

enum class Kind : unsigned char { bytes, whole, decimal, text, mark };

/// How several printed values become one.
enum class Merge : unsigned char {
  first,     ///< the engine's own line comes before those of helpers and drafts
  last,      ///< settled late: the engine may lower it while it starts
  per_rank,  ///< each rank prints its own; the poorest rank counts
  parts,     ///< belongs to a line with several figures, put together by the reader
};

// name in the answer, kind, merge. Byte counts end in _bytes.
#define KVCAP_LOG_FIELDS(X)                                           \
  X(none, "", mark, parts)                                            \
  X(start, "", mark, parts)                                           \
  X(draft, "", mark, parts)                                           \
  X(version, "engine_version", text, first)                           \
  X(model, "model", text, first)                                      \
  X(model_name, "model_name", text, first)                            \
  X(gpu, "gpu", text, first)                                          \
  X(total_memory, "total_memory_bytes", bytes, per_rank)              \
  X(driver_memory, "driver_memory_bytes", bytes, first)               \
  X(device_free, "device_free_bytes", bytes, per_rank)                \
  X(utilization, "gpu_memory_utilization", decimal, last)             \
  X(weights, "weights_bytes", bytes, per_rank)                        \
  X(consumed, "consumed_bytes", bytes, per_rank)                      \
  X(activation, "activation_bytes", bytes, per_rank)                  \
  X(non_torch, "non_torch_bytes", bytes, per_rank)                    \
  X(peak_torch, "peak_torch_bytes", bytes, per_rank)                  \
  X(cuda_graph, "cuda_graph_bytes", bytes, per_rank)                  \
  X(graph_estimate, "cuda_graph_estimate_bytes", bytes, per_rank)     \
  X(kv_memory, "kv_memory_bytes", bytes, per_rank)                    \
  X(kv_needed, "kv_needed_bytes", bytes, first)                       \
  X(kv_tokens, "kv_tokens", whole, per_rank)                          \
  X(kv_blocks, "kv_blocks", whole, per_rank)                          \
  X(cpu_blocks, "cpu_blocks", whole, first)                           \
  X(block_size, "block_size", whole, last)                            \
  X(max_model_len, "max_model_len", whole, last)                      \
  X(longest_model_len, "longest_model_len", whole, last)              \
  X(concurrency, "max_concurrency", decimal, per_rank)                \
  X(tensor_parallel, "tensor_parallel", whole, last)                  \
  X(pipeline_parallel, "pipeline_parallel", whole, last)              \
  X(data_parallel, "data_parallel", whole, last)                      \
  X(context_parallel, "decode_context_parallel_size", whole, last)    \
  X(kv_dtype, "kv_dtype", text, first)                                \
  X(weight_format, "weight_format", text, first)                      \
  X(dtype, "dtype", text, first)                                      \
  X(ssm_dtype, "mamba_ssm_dtype", text, first)                        \
  X(batched_tokens, "max_num_batched_tokens", whole, last)            \
  X(max_num_seqs, "max_num_seqs", whole, last)                        \
  X(prefix_caching, "enable_prefix_caching", text, last)              \
  X(enforce_eager, "enforce_eager", text, last)                       \
  X(no_hybrid_manager, "disable_hybrid_kv_cache_manager", text, last) \
  X(mamba_mode, "mamba_cache_mode", text, last)                       \
  X(cpu_offload, "cpu_offload_gb", whole, last)                       \
  X(blocks_override, "num_gpu_blocks_override", whole, last)          \
  X(padding_layers, "padding_layers", whole, last)                    \
  X(avail_before_load, "avail_before_load_bytes", bytes, per_rank)    \
  X(avail_after_load, "avail_after_load_bytes", bytes, per_rank)      \
  X(avail_pool_end, "avail_pool_end_bytes", bytes, per_rank)          \
  X(static_fraction, "mem_fraction_static", decimal, last)            \
  X(max_requests, "max_running_requests", whole, per_rank)            \
  X(pool_tokens, "pool_tokens", whole, parts)                         \
  X(pool_k, "k_bytes", bytes, parts)                                  \
  X(pool_v, "v_bytes", bytes, parts)                                  \
  X(pool_kv, "kv_size_bytes", bytes, parts)                           \
  X(swa_total, "swa_pool_bytes", bytes, parts)                        \
  X(swa_tokens, "swa_tokens", whole, per_rank)                        \
  X(full_tokens, "full_tokens", whole, per_rank)                      \
  X(swa_ratio, "swa_full_tokens_ratio", decimal, last)                \
  X(page_size, "page_size", whole, last)                              \
  X(max_total_tokens, "max_total_tokens", whole, last)                \
  X(chunked_prefill, "chunked_prefill_size", whole, last)             \
  X(graph_batch, "cuda_graph_max_bs", whole, last)                    \
  X(mamba_ratio, "mamba_full_memory_ratio", decimal, last)            \
  X(no_radix_cache, "disable_radix_cache", text, last)                \
  X(no_window_pool, "disable_hybrid_swa_memory", text, last)          \
  X(mamba_slots, "max_mamba_cache_size", whole, per_rank)             \
  X(mamba_conv, "mamba_conv_bytes", bytes, per_rank)                  \
  X(mamba_state, "mamba_state_bytes", bytes, per_rank)                \
  X(free_fraction, "free_gpu_memory_fraction", decimal, last)         \
  X(available, "available_bytes", bytes, per_rank)                    \
  X(world_size, "mpi_size", whole, last)                              \
  X(bytes_per_token, "kv_bytes_per_token", whole, last)               \
  X(peak_memory, "peak_memory_bytes", bytes, per_rank)                \
  X(n_ctx, "n_ctx", whole, last)                                      \
  X(n_ctx_seq, "n_ctx_seq", whole, last)                              \
  X(n_ctx_train, "n_ctx_train", whole, first)                         \
  X(n_batch, "n_batch", whole, last)                                  \
  X(n_ubatch, "n_ubatch", whole, last)                                \
  X(n_seq_max, "n_seq_max", whole, last)                              \
  X(flash_attn, "flash_attn", text, last)                             \
  X(mla_attn, "mla_attn", text, last)                                 \
  X(kv_unified, "kv_unified", text, last)                             \
  X(swa_full, "swa_full", text, last)                                 \
  X(offloaded, "offloaded_layers", whole, last)                       \
  X(offloadable, "offloadable_layers", whole, last)                   \
  X(arch, "arch", text, first)                                        \
  X(n_layer, "n_layer", whole, first)                                 \
  X(n_head, "n_head", text, first)                                    \
  X(n_head_kv, "n_head_kv", text, first)                              \
  X(n_embd, "n_embd", whole, first)                                   \
  X(head_k, "n_embd_head_k", whole, first)                            \
  X(head_v, "n_embd_head_v", whole, first)                            \
  X(k_gqa, "n_embd_k_gqa", text, first)                               \
  X(v_gqa, "n_embd_v_gqa", text, first)                               \
  X(n_swa, "n_swa", whole, first)                                     \
  X(swa_pattern, "n_swa_pattern", whole, first)                       \
  X(lora_kv, "n_lora_kv", whole, first)                               \
  X(n_rot, "n_rot", whole, first)                                     \
  X(ssm_conv, "ssm_d_conv", whole, first)                             \
  X(ssm_inner, "ssm_d_inner", whole, first)                           \
  X(ssm_state, "ssm_d_state", whole, first)                           \
  X(model_size, "model_size_bytes", bytes, first)                     \
  X(bits_per_weight, "bits_per_weight", decimal, first)               \
  X(ftype, "file_type", text, first)                                  \
  X(meta_path, "", text, parts)                                       \
  X(cells, "cells", whole, parts)                                     \
  X(layers, "layers", whole, parts)                                   \
  X(seqs, "n_seqs", whole, parts)                                     \
  X(streams, "streams", whole, parts)                                 \
  X(rs_copies, "rs_seq", whole, parts)                                \
  X(cache_size, "cache_bytes", bytes, parts)                          \
  X(cache_k, "k_bytes", bytes, parts)                                 \
  X(cache_v, "v_bytes", bytes, parts)                                 \
  X(cache_latent, "latent_bytes", bytes, parts)                       \
  X(cache_latent_t, "latent_transposed_bytes", bytes, parts)          \
  X(type_k, "k_type", text, last)                                     \
  X(type_v, "v_type", text, last)                                     \
  X(cache_type_k, "k_type", text, parts)                              \
  X(cache_type_v, "v_type", text, parts)                              \
  X(state_r, "recurrent_r_bytes", bytes, parts)                       \
  X(state_s, "recurrent_s_bytes", bytes, parts)                       \
  X(kv_cells, "kv_size_cells", whole, last)                           \
  X(base_cells, "cells", whole, parts)                                \
  X(window_cells, "swa_cells", whole, parts)                          \
  X(device, "device", text, parts)                                    \
  X(kv_buffer, "kv_buffer_bytes", bytes, parts)                       \
  X(state_buffer, "state_buffer_bytes", bytes, parts)                 \
  X(compute_buffer, "compute_buffer_bytes", bytes, parts)             \
  X(model_buffer, "model_buffer_bytes", bytes, parts)

enum class Field : unsigned char {
#define KVCAP_LOG_NAME(id, name, kind, merge) id,
  KVCAP_LOG_FIELDS(KVCAP_LOG_NAME)
#undef KVCAP_LOG_NAME
      count_,
};
inline constexpr std::size_t kFields = static_cast<std::size_t>(Field::count_);

struct FieldSpec {
  std::string_view name;  ///< a literal, so NUL follows
  Kind kind;
  Merge merge;
};
[[nodiscard]] const FieldSpec& spec_of(Field field) noexcept;

enum class Family : unsigned char { any, vllm, sglang, llama_cpp, tensorrt_llm, ik, ollama, aphrodite, ascend, count_ };

/// Where in a distributed engine a line comes from. -1: not said.
struct Rank {
  int data = -1, pipeline = -1, tensor = -1;
  [[nodiscard]] bool said() const noexcept { return data >= 0 || pipeline >= 0 || tensor >= 0; }
  bool operator==(const Rank&) const = default;
};

/// One figure of one line.
struct Found {
  Field field = Field::none;
  bool decimal_label = false;  ///< printed as GB or MB, which engines mean as GiB and MiB
  Rank rank;
  u32 line = 0;            ///< from 1
  u32 match = 0;           ///< figures of one message share it
  u32 start = 0;           ///< which start of an engine in this text
  std::int64_t value = 0;  ///< bytes, a count, or billionths
  u64 tolerance = 0;       ///< half a unit of the last printed digit, same scale
  std::string_view text;   ///< of a text; into Scan::storage
  std::string_view excerpt;
};

struct Scan {
  Scan() = default;
  Scan(Scan&&) = default;
  Scan& operator=(Scan&&) = delete;
  std::vector<Found> found;
  std::vector<char> storage;
  std::array<u32, static_cast<std::size_t>(Family::count_)> votes{};  ///< different messages of each engine
  u64 left_out = 0;                                                   ///< figures beyond the number kept of one kind
  u32 starts = 0;  ///< starts of an engine that printed figures of a cache
};

[[nodiscard]] Scan scan(std::string_view text);

}  // namespace kvcap::log
