// Question in, answer out: a Request is checked JSON, an answer is JSON again.
#pragma once

#include <string>
#include <string_view>

#include "kvcap/engine.hpp"

namespace kvcap {

/// A checked request.
struct Request {
  Model model;
  CacheFormats kv;
  const Format* weights = nullptr;    ///< null: as the checkpoint is stored
  std::optional<Bytes> weight_bytes;  ///< stated by the request
  Deployment deployment;
  Tokens context{8192};
  u64 kv_heads = 0;  ///< of every layer that has KV heads, in place of the model's own; 0: the model's
  const EngineRules* engine = nullptr;
  Options options;
};

/// Turns a config (an object of a request, or text) into a model.
using ConfigReader = Result<Model> (*)(const json::Value& config);
using ConfigTextReader = Result<Model> (*)(std::string_view config);
/// Turns a model written as an object into one; `field` names it in errors.
using ModelReader = Result<Model> (*)(const json::Value& object, std::string_view field);

/// What a kernel is built with. A page loads the textbook's alone first; the engines' rules and the reading of configs
/// come when somebody asks for them.
struct Features {
  std::span<const EngineRules> engines;
  ModelReader model_object = nullptr;
  ConfigReader config_object = nullptr;
  ConfigTextReader config_text = nullptr;
};

/// The textbook engine alone.
[[nodiscard]] const Features& textbook_features() noexcept;
/// Everything there is.
[[nodiscard]] const Features& full_features() noexcept;

/// Checks every field of a request.
[[nodiscard]] Result<Request> parse_request(const json::Value& root, const Features& features);

/// Reads a model written as an object: {"name", "parameters", "max_context", "native_weights", "layers": [run, …]}.
[[nodiscard]] Result<Model> parse_model(const json::Value& object, std::string_view field);

/// One JSON request to one JSON answer, or to {"error": {"code", "field", "message"}}. Never fails otherwise.
[[nodiscard]] json::Written plan_json(std::string_view request, const Features& features);

/// Writes an error as the answer that a request gets.
[[nodiscard]] json::Written error_json(const Error& error);

/// Longest texts that are read, in bytes.
inline constexpr u64 kMaxRequestBytes = 16u << 20;

}  // namespace kvcap
