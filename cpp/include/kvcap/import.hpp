// Bring your own model: a config.json, the head of a GGUF or safetensors file, or a weight index becomes a Model.
// Everything is read from bounded input; nothing is guessed.
#pragma once

#include <cstddef>
#include <span>
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

/// An error of reading `text` as JSON, which says so too where a merge left its marks.
[[nodiscard]] Error name_merge_marks(Error error, std::string_view text);

/// Writes a model as the object that a request takes for `model`, with what the reader should know of its origin:
/// parse_model reads it back.
void write_model(json::Writer& out, const Model& model);

/// A file that somebody brings, as JSON for the page and Node. `kind` is "config", "gguf", "safetensors", "index" or
/// "auto" (by the first bytes); `bytes` is the start of the file and `file_bytes` all of it; `config` is the
/// config.json that lies beside a safetensors file or an index, or empty. The answer is one of
///   {"kind", "model": …, "checkpoint": … or null}   the model, ready for a request; `checkpoint` has the sizes
///   {"kind", "model": null, "checkpoint": …}        a checkpoint without its config: {"bytes", "values", "tensors",
///   "files", "dtypes"}
///   {"kind", "need_bytes": n}                       ask again with n bytes of the file's start
///   {"error": {"code", "field", "message"}}
[[nodiscard]] std::string import_json(std::string_view kind, std::span<const std::byte> bytes, u64 file_bytes,
                                      std::string_view config);

}  // namespace kvcap
