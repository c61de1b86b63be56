// A model is runs of layers, each run of one kind of cache; every family is data in this scheme.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kvcap/error.hpp"
#include "kvcap/format.hpp"
#include "kvcap/list.hpp"

namespace kvcap {

/// What one layer keeps of a sequence.
enum class LayerKind : unsigned char {
  full,        ///< a row of K and V for every token
  window,      ///< rows of the last `window` tokens
  chunked,     ///< rows of the current chunk of `window` tokens
  latent,      ///< one row of `latent_width` values for every token, whole on every GPU (MLA)
  compressed,  ///< one entry for every `tokens_per_entry` tokens, as `full` or `latent`
  recurrent,   ///< a constant state
  shared,      ///< nothing: reads another layer's cache
  none,        ///< nothing: a block without attention
  cross,       ///< rows of `source_tokens` tokens of another input (image, audio, encoder)
};

[[nodiscard]] Label kind_name(LayerKind kind) noexcept;
[[nodiscard]] std::optional<LayerKind> find_kind(std::string_view name) noexcept;

/// `count` layers of the same shape. Widths are values of one head; fields that a kind does not use are 0.
struct LayerRun {
  u32 count = 0;
  LayerKind kind = LayerKind::full;
  u32 kv_heads = 0;
  u32 key_width = 0;
  u32 value_width = 0;  ///< 0 where K serves as V
  u32 latent_width = 0;
  /// Of a latent row, where known: the values that serve as V (kv_lora_rank; the rest is the rotary key), and the heads
  /// that the row stands for, which engines without MLA kernels cache instead.
  u32 latent_value_width = 0;
  u32 expanded_heads = 0;
  u32 expanded_key_width = 0;
  u32 expanded_value_width = 0;
  u32 indexer_width = 0;  ///< values of one indexer key, one for every token (or entry)
  u32 window_tokens = 0;
  u32 tokens_per_entry = 0;
  u32 source_tokens = 0;
  u64 state_values = 0;
  u64 conv_values = 0;
  const Format* state_format = nullptr;
  const Format* conv_format = nullptr;

  bool operator==(const LayerRun&) const = default;
};

/// Whether a layer keeps no more tokens than its window or chunk.
[[nodiscard]] constexpr bool is_window(const LayerRun& run) noexcept {
  return run.kind == LayerKind::window || run.kind == LayerKind::chunked;
}

/// A field of somebody's config or file, and what became of it.
struct ImportedField {
  std::string name;
  std::string value;   ///< as text
  std::string source;  ///< of a default: where it is stated; else empty
};

struct Model {
  Name id;  ///< catalogue id; empty for one brought along
  Name name;
  Name family;
  Name source;  ///< where the shape comes from
  List<LayerRun> layers;
  u32 layer_count = 0;                       ///< layers as the model's config counts them; 0 = the sum of the runs
  u32 query_heads = 0;                       ///< never part of the cache; 0 = unknown
  u32 vocabulary = 0;                        ///< entries of the output layer, which engines sample from; 0 = unknown
  bool multimodal = false;                   ///< reads images or sound too, which engines profile with
  u64 max_context = 0;                       ///< tokens; 0 = not stated
  std::optional<u64> parameters;             ///< all of them, every expert
  std::optional<u64> active_parameters;      ///< shown, never used
  const Format* native_weights = nullptr;    ///< as the checkpoint is stored
  std::optional<Bytes> native_weight_bytes;  ///< exact size of that checkpoint, where known
  bool native_weights_estimated = false;     ///< `native_weight_bytes` is computed, not read from a file
  const Format* native_cache = nullptr;      ///< a cache format that the config asks for
  List<ImportedField> used, defaulted;
  List<std::string> ignored;
  List<std::string> note_codes;  ///< what the reader should know, worded by the page
};

}  // namespace kvcap
