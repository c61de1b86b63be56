#include "kvcap/footprint.hpp"

#include <algorithm>

namespace kvcap {
namespace {

Wide bytes_in(const Format* format, Wide values) noexcept { return values == 0 ? 0 : format->bytes_of(values); }

}  // namespace

Row row_of(const LayerRun& run, CacheFormats kv, u64 tensor_parallel) noexcept {
  Row row;
  switch (run.kind) {
    case LayerKind::recurrent:
    case LayerKind::shared:
    case LayerKind::none: return row;
    default: break;
  }
  if (run.latent_width != 0) {
    row.k = bytes_in(kv.k, run.latent_width);
  } else {
    const Wide heads = heads_per_gpu(run.kv_heads, tensor_parallel);
    row.k = bytes_in(kv.k, heads * run.key_width);
    row.v = bytes_in(kv.v, heads * run.value_width);
  }
  if (kv.indexer != nullptr) row.indexer = bytes_in(kv.indexer, run.indexer_width);
  return row;
}

Wide state_of(const LayerRun& run, u64 tensor_parallel) noexcept {
  if (run.kind != LayerKind::recurrent) return 0;
  Wide bytes = 0;
  if (run.state_values != 0) bytes += run.state_format->bytes_of(ceil_div(run.state_values, tensor_parallel));
  if (run.conv_values != 0) bytes += run.conv_format->bytes_of(ceil_div(run.conv_values, tensor_parallel));
  return bytes;
}

u64 rows_kept(const LayerRun& run, Tokens context) noexcept {
  switch (run.kind) {
    case LayerKind::full:
    case LayerKind::latent: return context.count;
    case LayerKind::window:
    case LayerKind::chunked: return std::min<u64>(context.count, run.window_tokens);
    case LayerKind::compressed: return ceil_div<u64>(context.count, run.tokens_per_entry);
    case LayerKind::cross: return run.source_tokens;
    case LayerKind::recurrent:
    case LayerKind::shared:
    case LayerKind::none: break;
  }
  return 0;
}

Wide layer_bytes(const LayerRun& run, CacheFormats kv, u64 tensor_parallel, Tokens context) noexcept {
  if (run.kind == LayerKind::recurrent) return state_of(run, tensor_parallel);
  return row_of(run, kv, tensor_parallel).sum() * rows_kept(run, context);
}

Wide layer_bytes_per_token(const LayerRun& run, CacheFormats kv, u64 tensor_parallel, Tokens context) noexcept {
  const Wide row = row_of(run, kv, tensor_parallel).sum();
  switch (run.kind) {
    case LayerKind::full:
    case LayerKind::latent: return row;
    case LayerKind::window:
    case LayerKind::chunked: return context.count < run.window_tokens ? row : 0;
    case LayerKind::compressed: return ceil_div<Wide>(row, run.tokens_per_entry);
    case LayerKind::cross:
    case LayerKind::recurrent:
    case LayerKind::shared:
    case LayerKind::none: break;
  }
  return 0;
}

SequenceCost sequence_cost(std::span<const LayerRun> runs, CacheFormats kv, u64 tensor_parallel,
                           Tokens context) noexcept {
  SequenceCost cost;
  for (const auto& run : runs) {
    cost.total += run.count * layer_bytes(run, kv, tensor_parallel, context);
    cost.per_token += run.count * layer_bytes_per_token(run, kv, tensor_parallel, context);
  }
  const Wide growing = cost.per_token * context.count;
  cost.fixed = without(cost.total, growing);
  return cost;
}

List<Tokens> slope_changes(std::span<const LayerRun> runs) {
  List<Tokens> at;
  for (const auto& run : runs) {
    if (!is_window(run)) continue;
    const Tokens window{run.window_tokens};
    std::size_t place = at.size();
    while (place > 0 && at[place - 1] > window) --place;
    if (place > 0 && at[place - 1] == window) continue;
    at.push_back(window);
    for (std::size_t i = at.size() - 1; i > place; --i) at[i] = at[i - 1];
    at[place] = window;
  }
  return at;
}

bool has_cache(std::span<const LayerRun> runs) noexcept {
  return std::ranges::any_of(runs, [](const LayerRun& run) {
    if (run.kind == LayerKind::cross) return run.count != 0 && run.source_tokens != 0;
    return run.count != 0 && run.kind != LayerKind::none && run.kind != LayerKind::shared;
  });
}

std::optional<Error> check_formats(std::span<const LayerRun> runs, CacheFormats kv) {
  for (const Format* format : {kv.k, kv.v}) {
    if (!format->latent_only) continue;
    for (const auto& run : runs) {
      const bool has_rows =
          run.kind != LayerKind::recurrent && run.kind != LayerKind::shared && run.kind != LayerKind::none;
      if (has_rows && run.latent_width != format->block_values) {
        return Error{ErrorCode::conflict, "kv",
                     Text() << format->id << " packs latent rows of " << format->block_values
                            << " values; this model has layers of another shape"};
      }
    }
  }
  return std::nullopt;
}

}  // namespace kvcap
