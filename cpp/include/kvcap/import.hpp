// Bring your own model: a config.json, the head of a GGUF or safetensors file, or a weight index becomes a Model.
// Everything is read from bounded input; nothing is guessed.
#pragma once

#include <string>
#include <string_view>

#include "kvcap/json.hpp"
#include "kvcap/model.hpp"

namespace kvcap {

/// Longest config that is read, in bytes. The longest seen is 43 kB; quantisation blocks can name every module.
inline constexpr u64 kMaxConfigBytes = 4u << 20;

/// A Hugging Face config.json. Errors name the field as the file spells it: `missing` (the config leaves out what no
/// default of its model type gives), `unsupported` (a kind of layer or cache that is not known), `no_cache` (an
/// encoder), `conflict`, and those of single values.
[[nodiscard]] Result<Model> import_config(const json::Value& config);
/// The same from text as people paste it; `malformed` and `too_large` besides.
[[nodiscard]] Result<Model> import_config_text(std::string_view config);

}  // namespace kvcap
