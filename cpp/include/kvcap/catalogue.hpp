// The models that the widget knows by name: rows of cpp/data/models.tsv, compiled in.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kvcap/plan.hpp"

namespace kvcap {

/// One row. `layers` is the short notation that `parse_layers` reads.
struct CatalogueEntry {
  std::string_view id;      ///< "llama-3-8b"
  std::string_view hub_id;  ///< "meta-llama/Meta-Llama-3-8B", accepted in requests too (any letter case)
  std::string_view name;
  std::string_view family;
  std::string_view layers;
  u64 parameters;           ///< 0 = unknown
  u64 active_parameters;    ///< 0 = dense or unknown
  u64 native_weight_bytes;  ///< exact bytes of the stored checkpoint; 0 = parameters × native format
  u64 max_context;          ///< 0 = unbounded
  u32 layer_count;
  u32 query_heads;
  u32 hidden_size;                  ///< never part of the cache; 0 = unknown
  u32 vocabulary;                   ///< entries of the output layer; 0 = unknown
  bool multimodal;                  ///< reads images or sound too
  std::string_view native_weights;  ///< format id
  bool core = true;                 ///< has a place in a course: the core kernel holds just these
};

[[nodiscard]] std::span<const CatalogueEntry> catalogue() noexcept;
[[nodiscard]] const CatalogueEntry* find_model(std::string_view id) noexcept;
[[nodiscard]] Result<Model> model_of(const CatalogueEntry& entry);
/// The same into a model that is still empty; nothing, or why not.
[[nodiscard]] std::optional<Error> fill_model(const CatalogueEntry& entry, Model& model);

// clang-format off
/// Runs in short notation, separated by "; ":
///   32 full 8x128                 count, kind, KV heads x head width
///   9 full 4x192/128              K and V of different width (0: K serves as V)
///   61 latent 576                 +128 after a width: an indexer's key
///   61 latent 576:512 128x192/128 of the row 512 values serve as V; the heads it stands for, K and V width
///   20 window 4096 8x128          20 chunked 8192 8x128     8 cross 1601 8x128
///   20 compressed 4 latent 512    20 compressed 128 1x512/0
///   48 recurrent 786432:fp32 30720:bf16      state values:format, convolution values:format
///   18 shared    54 none
// clang-format on
[[nodiscard]] Result<List<LayerRun>> parse_layers(std::string_view text);

/// What a page needs to offer choices, as JSON: models, GPUs, formats, engines with their options.
[[nodiscard]] json::Written catalogue_json(const Features& features);

}  // namespace kvcap
