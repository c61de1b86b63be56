// How values are stored: a format is bytes per block of values, exactly.
#pragma once

#include <concepts>
#include <span>
#include <string_view>

#include "kvcap/error.hpp"

namespace kvcap {

/// Where a figure stands. For those who read the code; programs do not carry it.
struct Source {
  constexpr Source() = default;
  template <class Words>
    requires std::convertible_to<Words, std::string_view>
  consteval Source(Words) noexcept {}  // NOLINT(google-explicit-constructor)
};

struct Format {
  std::string_view id;       ///< as in requests: "bf16", "q8_0"
  u32 block_values;          ///< values in one block
  u32 block_bytes;           ///< bytes of one block, scales and zero points included
  u32 bits;                  ///< bits of one value in plain words, scales left out
  bool weights;              ///< offered for weights
  bool cache;                ///< offered for the KV cache
  bool latent_only;          ///< a packed row of exactly `block_values` latent values (MLA)
  std::string_view indexer;  ///< format of an indexer's keys beside it; empty: left open
  [[no_unique_address]] Source source;
  /// Of a mix, whose tensors are of several types: the least and the most bytes of a block seen in files; else 0. The
  /// block is of 8000 values, so that bytes of a block are thousandths of a bit for each weight.
  u32 low_bytes = 0;
  u32 high_bytes = 0;

  [[nodiscard]] constexpr bool is_mix() const noexcept { return high_bytes != 0; }
  /// Bytes of `values` values, whole blocks; of a mix the typical figure.
  [[nodiscard]] constexpr Wide bytes_of(Wide values) const noexcept {
    return ceil_div<Wide>(values, block_values) * block_bytes;
  }
};

[[nodiscard]] std::span<const Format> formats() noexcept;
/// Exact id or a known other spelling ("float16", "bfloat16", "auto" is not one). nullptr when unknown.
[[nodiscard]] const Format* find_format(std::string_view id) noexcept;

/// The format of K and of V. Formats of a checkpoint's weights are chosen independently.
struct CacheFormats {
  const Format* k = nullptr;
  const Format* v = nullptr;
  /// Of an indexer's keys, which stand in a cache of their own; null leaves them out.
  const Format* indexer = nullptr;
};

/// K, V, and the index keys as K's format has them: 8-bit caches store them with a scale; of 16-bit caches engines
/// differ (132 bytes a key where the indexer runs in fp8, 256 where it does not), so there they are left out.
[[nodiscard]] CacheFormats cache_formats(const Format* k, const Format* v) noexcept;

}  // namespace kvcap
