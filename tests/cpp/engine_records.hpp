// Records of what engines printed (tests/data/engine_logs.jsonl) and the models that they name (engine_models.tsv), as
// requests; and answers read back.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kvcap/catalogue.hpp"
#include "kvcap/json.hpp"
#include "kvcap/plan.hpp"

namespace records {

using namespace kvcap;

/// A parsed JSON text.
class Json {
 public:
  explicit Json(const std::string& text) {
    auto parsed = json::Document::parse(text, "text", kMaxRequestBytes);
    REQUIRE_MESSAGE(parsed, text.substr(0, 200));
    document_ = std::make_shared<json::Document>(std::move(*parsed));
  }
  [[nodiscard]] const json::Value& root() const { return document_->root(); }
  [[nodiscard]] const json::Value* get(const char* name) const { return root().get(name); }

 private:
  std::shared_ptr<json::Document> document_;
};

inline std::string text_of(const json::Value* value) { return value == nullptr ? "" : std::string(value->text); }
inline double number_of(const json::Value* value) { return value == nullptr ? 0 : std::stod(std::string(value->text)); }

inline std::vector<Json> read_records(const std::string& engine_part) {
  std::ifstream in("tests/data/engine_logs.jsonl");
  REQUIRE_MESSAGE(in, "tests run in the project's folder");
  std::vector<Json> found;
  for (std::string line; std::getline(in, line);) {
    Json record(line);
    if (text_of(record.get("engine")).find(engine_part) != std::string::npos) found.push_back(record);
  }
  return found;
}

/// A run of layers as a request writes it.
inline void write_run(json::Writer& out, const LayerRun& run) {
  out.begin_object().key("count").number(run.count).key("kind").text(kind_name(run.kind));
  const auto put = [&](const char* key, u64 value) {
    if (value != 0) out.key(key).number(value);
  };
  put("kv_heads", run.kv_heads);
  put("key_width", run.key_width);
  if (run.kv_heads != 0) out.key("value_width").number(run.value_width);
  put("latent_width", run.latent_width);
  put("window", run.window_tokens);
  put("state_values", run.state_values);
  if (run.state_format != nullptr) out.key("state_format").text(run.state_format->id);
  put("conv_values", run.conv_values);
  if (run.conv_format != nullptr) out.key("conv_format").text(run.conv_format->id);
  out.end_object();
}

struct NamedModel {
  std::string id;      ///< of the catalogue, or
  std::string layers;  ///< in short notation
  std::string query_heads;
};

/// By a record's id or its arch_key.
inline const std::map<std::string, NamedModel>& models() {
  static const std::map<std::string, NamedModel> all = [] {
    std::map<std::string, NamedModel> read;
    std::ifstream in("tests/data/engine_models.tsv");
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::vector<std::string> cells(1);
      for (const char c : line) {
        if (c == '\t') {
          cells.emplace_back();
        } else {
          cells.back() += c;
        }
      }
      cells.resize(4);
      read[cells[0]] = {cells[1], cells[2], cells[3]};
    }
    return read;
  }();
  return all;
}

inline const NamedModel* model_of(const Json& record) {
  for (const char* key : {"id", "arch_key"}) {
    const auto found = models().find(text_of(record.get(key)));
    if (found != models().end()) return &found->second;
  }
  return nullptr;
}

/// Writes the key `model` of a request.
inline void write_model(json::Writer& out, const NamedModel& model) {
  out.key("model");
  if (!model.id.empty()) {
    out.text(std::string_view(model.id));
    return;
  }
  const auto runs = parse_layers(model.layers);
  REQUIRE_MESSAGE(runs, model.layers);
  out.begin_object().key("name").text("of a record");
  if (!model.query_heads.empty()) out.key("query_heads").number(std::stoull(model.query_heads));
  out.key("layers").begin_array();
  for (const auto& run : *runs) write_run(out, run);
  out.end_array().end_object();
}

inline Json ask(const std::string& request) {
  const Json answer(plan_json(request, full_features()));
  const json::Value* const error = answer.get("error");
  CHECK_MESSAGE(error == nullptr, request << " -> " << (error ? text_of(error->get("message")) : ""));
  return answer;
}

inline std::string error_of(const std::string& request) {
  const Json answer(plan_json(request, full_features()));
  const json::Value* const error = answer.get("error");
  return error == nullptr ? "" : text_of(error->get("code")) + " " + text_of(error->get("field"));
}

inline const json::Value* cache_named(const Json& answer, const std::string& name) {
  const json::Value* const caches = answer.get("caches");
  if (caches == nullptr) return nullptr;
  for (const json::Value& cache : *caches) {
    if (text_of(cache.get("name")) == name) return &cache;
  }
  return nullptr;
}

/// How many of a group's comparisons hold, and the worst ratio.
struct Tally {
  int compared = 0;
  int held = 0;
  double worst = 1;
  void add(bool holds, double ratio) {
    ++compared;
    held += holds ? 1 : 0;
    if (std::abs(ratio - 1) > std::abs(worst - 1)) worst = ratio;
  }
};
using Summary = std::map<std::string, Tally>;

inline void print(const Summary& summary) {
  for (const auto& [group, tally] : summary) {
    std::printf("%-44s %3d of %3d hold, worst ratio %.5f\n", group.c_str(), tally.held, tally.compared, tally.worst);
  }
}

}  // namespace records
