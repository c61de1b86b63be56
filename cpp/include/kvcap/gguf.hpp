// The head of a GGUF file: keys of the architecture and the table of tensors.
#pragma once

#include <cstddef>
#include <span>

#include "kvcap/error.hpp"
#include "kvcap/model.hpp"

namespace kvcap {

/// The longest head that is read, in bytes. Vocabularies stand in it; the largest seen are some 30 MB.
inline constexpr u64 kMaxGgufHead = 128u << 20;

/// What came of a head so far.
struct GgufHead {
  /// Not 0: the head goes on behind what was given. Ask again with this many bytes of the file's start, more than
  /// were given and at most as many as the file has.
  u64 need_bytes = 0;
  Model model;
};

/// Reads the first bytes of a file of `file_bytes`. The model's weight bytes are the exact sum over the tensor table
/// (of a split file they are unknown). Memory is bounded by a small multiple of the number of keys, whatever lengths
/// the file claims. Errors: `malformed` (wrong magic, lengths that pass the file's end, a file that ends within its
/// head), `unsupported` (versions, an architecture whose cache is not known), `no_cache` (encoders), `too_large`.
/// Source: ggml docs/gguf.md; keys: llama.cpp gguf-py/gguf/constants.py; cache shapes: llama.cpp src/llama-hparams.cpp.
[[nodiscard]] Result<GgufHead> import_gguf(std::span<const std::byte> head, u64 file_bytes);

/// What a file is by its first bytes, where that is not what was asked for: "a Git LFS pointer: …", or "".
[[nodiscard]] std::string_view known_as(std::span<const std::byte> head) noexcept;

}  // namespace kvcap
