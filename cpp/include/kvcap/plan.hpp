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
  const EngineRules* engine = nullptr;
  Options options;
};

/// Turns a config (an object of a request, or text) into a model. The core is
/// linked with or without it, so that a page loads the reading of configs only
/// when somebody brings one.
using ConfigReader = Result<Model> (*)(const json::Value& config);
using ConfigTextReader = Result<Model> (*)(std::string_view config);
struct Importers {
  ConfigReader from_object = nullptr;
  ConfigTextReader from_text = nullptr;
};

/// Checks every field of a request.
[[nodiscard]] Result<Request> parse_request(const json::Value& root, const Importers& importers);

/// Reads a model written as an object: {"name", "parameters", "max_context",
/// "native_weights", "layers": [run, …]}.
[[nodiscard]] Result<Model> parse_model(const json::Value& object, std::string_view field);

/// One JSON request to one JSON answer, or to {"error": {"code", "field",
/// "message"}}. Never fails otherwise.
[[nodiscard]] std::string plan_json(std::string_view request, const Importers& importers);

/// Writes an error as the answer that a request gets.
[[nodiscard]] std::string error_json(const Error& error);

/// Longest texts that are read, in bytes.
inline constexpr u64 kMaxRequestBytes = 16u << 20;

}  // namespace kvcap
