// Sizes of a checkpoint from its safetensors headers or its weight index.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvcap/model.hpp"

namespace kvcap {

/// The longest header that is read (the format's own limit is 100 MB), and the longest weight index.
inline constexpr u64 kMaxSafetensorsHeader = 16u << 20;
inline constexpr u64 kMaxIndexBytes = 16u << 20;

struct DtypeSize {
  std::string dtype;  ///< as the file spells it: "BF16"
  u64 values = 0;
  Bytes bytes;
};

struct CheckpointSize {
  u64 need_bytes = 0;             ///< not 0: nothing else is set, and so many bytes of the file's start are needed
  Bytes bytes;                    ///< of all tensors
  std::optional<u64> values;      ///< elements as stored; packed 4-bit weights count two as one
  std::vector<DtypeSize> dtypes;  ///< empty for an index, which does not say
  u64 tensors = 0;
  u64 files = 1;  ///< the header of one of several files covers that one only
};

/// The 8 bytes of length and the JSON header of a safetensors file of `file_bytes`. Errors: `malformed` (lengths that
/// pass the file's end, tensors whose bytes are not those of their shape, a Git LFS pointer), `too_large`.
/// Source: the format's description, github.com/huggingface/safetensors.
[[nodiscard]] Result<CheckpointSize> import_safetensors_header(std::span<const std::byte> head, u64 file_bytes);

/// A model.safetensors.index.json: its metadata.total_size and total_parameters, and the files that it names.
[[nodiscard]] Result<CheckpointSize> import_weight_index(std::string_view text);

/// The model with the checkpoint's exact bytes, and its parameter count where the config gave none and no value is
/// packed.
[[nodiscard]] Model combine(Model model, const CheckpointSize& size);

}  // namespace kvcap
