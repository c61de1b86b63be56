// How values are stored: a format is bytes per block of values, exactly.
#pragma once

#include <span>
#include <string_view>

#include "kvcap/error.hpp"

namespace kvcap {

struct Format {
  std::string_view id;       ///< as in requests: "bf16", "q8_0"
  u32 block_values;          ///< values in one block
  u32 block_bytes;           ///< bytes of one block, scales and zero points included
  u32 bits;                  ///< bits of one value in plain words, scales left out
  bool weights;              ///< offered for weights
  bool cache;                ///< offered for the KV cache
  bool latent_only;          ///< a packed row of exactly `block_values` latent values
                             ///< (MLA)
  std::string_view indexer;  ///< format of an indexer's keys beside it; empty =
                             ///< the same format
  std::string_view source;

  /// Bytes of `values` values, whole blocks.
  [[nodiscard]] constexpr Wide bytes_of(Wide values) const noexcept {
    return ceil_div<Wide>(values, block_values) * block_bytes;
  }
};

[[nodiscard]] std::span<const Format> formats() noexcept;
/// Exact id or a known other spelling ("float16", "bfloat16", "auto" is not
/// one). nullptr when unknown.
[[nodiscard]] const Format* find_format(std::string_view id) noexcept;

/// The format of K and of V. Formats of a checkpoint's weights are chosen
/// independently.
struct CacheFormats {
  const Format* k = nullptr;
  const Format* v = nullptr;
};

}  // namespace kvcap
