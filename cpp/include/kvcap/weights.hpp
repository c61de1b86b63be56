// What the weights take. All experts of a mixture are in memory; the cache's format never enters.
#pragma once

#include <optional>

#include "kvcap/model.hpp"

namespace kvcap {

struct WeightBytes {
  Bytes bytes;
  bool exact = false;  ///< stated, read from a file, or parameters × an unscaled format of 16 bits or more
  /// Of a mix (q4_k_m, …): what published files come to; `bytes` is the typical figure. Both 0 otherwise.
  Bytes low{}, high{};
};

/// Bytes of one copy of the model's weights stored as `format` (null: as the checkpoint is). Nothing when neither the
/// parameter count nor the bytes are known; `out_of_range` past 2^53 - 1.
[[nodiscard]] Result<std::optional<WeightBytes>> weight_bytes_of(const Model& model, const Format* format);

}  // namespace kvcap
