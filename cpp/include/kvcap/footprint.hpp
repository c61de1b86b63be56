// What one sequence writes, layer by layer.
#pragma once

#include <optional>
#include <span>

#include "kvcap/model.hpp"

namespace kvcap {

/// Bytes of one row of one layer on one GPU: one token's (or entry's) K, V and indexer key.
struct Row {
  Wide k = 0;
  Wide v = 0;
  Wide indexer = 0;
  [[nodiscard]] constexpr Wide sum() const noexcept { return k + v + indexer; }
};

/// KV heads of a layer that one of `tensor_parallel` GPUs holds: ceil(kv_heads / t), at least one, so heads replicate
/// past their count (engine_rules 2).
[[nodiscard]] constexpr u64 heads_per_gpu(u64 kv_heads, u64 tensor_parallel) noexcept {
  return kv_heads == 0 ? 0 : ceil_div(kv_heads, tensor_parallel);
}

/// The row of one layer on one GPU of `tensor_parallel`. A latent row is whole on each (engine_rules 3). Recurrent
/// layers have no row.
[[nodiscard]] Row row_of(const LayerRun& run, CacheFormats kv, u64 tensor_parallel) noexcept;

/// Constant state of one recurrent layer on one GPU; states split over tensor parallel GPUs.
[[nodiscard]] Wide state_of(const LayerRun& run, u64 tensor_parallel) noexcept;

/// Rows of one layer that a sequence of `context` tokens keeps: all, the last `window`, ceil(L / tokens_per_entry), or
/// the other input's.
[[nodiscard]] u64 rows_kept(const LayerRun& run, Tokens context) noexcept;

/// Bytes that one sequence of `context` tokens writes in one layer of this run, on one GPU.
[[nodiscard]] Wide layer_bytes(const LayerRun& run, CacheFormats kv, u64 tensor_parallel, Tokens context) noexcept;

/// Bytes that one more token adds to one layer of this run at `context`; of a compressed layer the average, rounded up.
[[nodiscard]] Wide layer_bytes_per_token(const LayerRun& run, CacheFormats kv, u64 tensor_parallel,
                                         Tokens context) noexcept;

/// The cost of one sequence: total = fixed + per_token × context, exactly.
struct SequenceCost {
  Wide total = 0;
  Wide per_token = 0;  ///< marginal, at this context
  Wide fixed = 0;      ///< filled windows and states; total - per_token × context, at least 0
};

/// Over all runs, on one GPU that holds every layer.
[[nodiscard]] SequenceCost sequence_cost(std::span<const LayerRun> runs, CacheFormats kv, u64 tensor_parallel,
                                         Tokens context) noexcept;

/// The contexts at which the cost per token changes (windows that fill, chunks that wrap), ascending, without repeats.
[[nodiscard]] List<Tokens> slope_changes(std::span<const LayerRun> runs);

/// Layers that keep any cache at all.
[[nodiscard]] bool has_cache(std::span<const LayerRun> runs) noexcept;

/// The first reason why these formats cannot hold this model's rows (a latent-only format on K/V heads, …).
[[nodiscard]] std::optional<Error> check_formats(std::span<const LayerRun> runs, CacheFormats kv);

}  // namespace kvcap
