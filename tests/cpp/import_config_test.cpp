// Configs that people bring: our fixtures for every spelling and trap, the files found in the wild, and hostile text.
#include <doctest/doctest.h>

#include <cstdio>
#include <random>

#include "import_support.hpp"
#include "kvcap/import.hpp"
#include "kvcap/plan.hpp"

namespace kvcap {
namespace {

using test::read_file;
using test::read_table;

constexpr const char* kFixtures = "tests/data/configs/";
constexpr const char* kFound = "../shared/data/configs/";

std::string code_of(const Error& error) { return std::string(std::string_view(code_name(error.code))); }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

std::map<std::string, test::TableRow> checked_models() {
  std::map<std::string, test::TableRow> out;
  for (auto& row : read_table("tests/data/models.tsv")) {
    const std::string id = row["model_id"];
    out[id] = std::move(row);
  }
  return out;
}

void check_against(const test::TableRow& row, const Model& model) {
  const auto sizes = test::cache_sizes(model.layers);
  const auto number = [&](const char* name) { return row.at(name).empty() ? "0" : row.at(name); };
  CHECK(digits(sizes.growing) == number("kv_bytes_per_token_growing"));
  CHECK(digits(sizes.windowed) == number("kv_bytes_per_token_windowed"));
  CHECK(digits(sizes.cap) == number("window_cap_bytes"));
  CHECK(digits(sizes.state) == number("state_bytes_per_sequence"));
  const std::string& parameters = row.at("params_text_computed");
  if (!parameters.empty()) CHECK(digits(model.parameters.value_or(0)) == parameters);
}

TEST_CASE("every spelling and trap has a fixture, and each gives what its row says") {
  const auto models = checked_models();
  const auto rows = read_table(std::string(kFixtures) + "index.tsv");
  REQUIRE(rows.size() > 100);
  std::size_t with_row = 0;
  for (const auto& row : rows) {
    CAPTURE(row.at("file"));
    const auto text = read_file(kFixtures + row.at("file"));
    REQUIRE(text);
    const auto model = import_config_text(*text);
    if (!row.at("error").empty()) {
      REQUIRE_FALSE(model);
      CHECK(code_of(model.error()) == row.at("error"));
      CHECK(model.error().field == row.at("field"));
      CHECK_FALSE(model.error().message.empty());
      continue;
    }
    if (!model) FAIL_CHECK(model.error().field << ": " << model.error().message);
    if (!model) continue;
    CHECK(test::notation(model->layers) == row.at("layers"));
    if (!row.at("parameters").empty()) CHECK(digits(model->parameters.value_or(0)) == row.at("parameters"));
    CHECK(joined(model->note_codes) == row.at("notes"));
    const std::string native = model->native_weights != nullptr ? std::string(model->native_weights->id) : "?";
    if (!row.at("native_weights").empty()) CHECK(native == row.at("native_weights"));
    if (!row.at("weight_bytes").empty()) {
      REQUIRE(model->native_weight_bytes);
      CHECK(digits(model->native_weight_bytes->count) == row.at("weight_bytes"));
    }
    CHECK((model->native_cache != nullptr ? std::string(model->native_cache->id) : "") == row.at("native_cache"));
    if (!row.at("model_row").empty()) {
      ++with_row;
      REQUIRE(models.contains(row.at("model_row")));
      check_against(models.at(row.at("model_row")), *model);
    }
  }
  CHECK(with_row > 60);
}

TEST_CASE("every config found in the wild has the outcome of our table") {
  const auto outcomes = read_table("tests/data/config_outcomes.tsv");
  REQUIRE(outcomes.size() > 100);
  if (!read_file(std::string(kFound) + "index.tsv")) {
    MESSAGE("skipped: ../shared/data/configs is not here");
    return;
  }
  const auto models = checked_models();
  std::size_t rows_met = 0;
  for (const auto& row : outcomes) {
    CAPTURE(row.at("file"));
    const auto text = read_file(kFound + row.at("file"));
    if (!text) {
      FAIL_CHECK("the file is not there");
      continue;
    }
    CHECK(test::sha256(*text) == row.at("sha256"));
    const auto model = import_config_text(*text);
    if (!model) {
      CHECK(code_of(model.error()) == row.at("error"));
      CHECK(model.error().field == row.at("field"));
      std::printf("%-66s refused: %s, %s\n", row.at("file").c_str(), code_of(model.error()).c_str(),
                  model.error().field.c_str());
      continue;
    }
    CHECK(row.at("error").empty());
    const auto sizes = test::cache_sizes(model->layers);
    CHECK(test::notation(model->layers) == row.at("layers"));
    CHECK(digits(sizes.growing) == row.at("growing"));
    CHECK(digits(sizes.windowed) == row.at("windowed"));
    CHECK(digits(sizes.cap) == row.at("window_cap"));
    CHECK(digits(sizes.state) == row.at("state"));
    CHECK(digits(sizes.indexer) == row.at("indexer"));
    CHECK(digits(model->parameters.value_or(0)) == row.at("parameters"));
    if (!row.at("model_row").empty()) {
      ++rows_met;
      check_against(models.at(row.at("model_row")), *model);
    }
    std::printf("%-66s %s bytes a token, %s\n", row.at("file").c_str(), digits(sizes.growing + sizes.windowed).c_str(),
                test::notation(model->layers).c_str());
  }
  CHECK(rows_met > 50);
}

TEST_CASE("what was read, defaulted and ignored is told") {
  const auto text = read_file(std::string(kFixtures) + "nested-nearly-empty.json");
  REQUIRE(text);
  const auto model = import_config_text(*text);
  REQUIRE(model);
  const auto find = [](const std::vector<ImportedField>& fields, std::string_view name) -> const ImportedField* {
    for (const auto& field : fields) {
      if (field.name == name) return &field;
    }
    return nullptr;
  };
  const auto* const layers = find(model->used, "text_config.num_hidden_layers");
  REQUIRE(layers);
  CHECK(layers->value == "34");
  const auto* const heads = find(model->defaulted, "num_key_value_heads");
  REQUIRE(heads);
  CHECK(heads->value == "4");
  CHECK_FALSE(heads->source.empty());
  CHECK(joined(model->ignored).find("vision_config") != std::string::npos);
  CHECK_FALSE(find(model->used, "vision_config.num_hidden_layers"));
  CHECK(model->family == "gemma3");
  CHECK(model->max_context == 131072);
}

TEST_CASE("an imported model written as an object comes back as the same model") {
  for (const auto& row : read_table(std::string(kFixtures) + "index.tsv")) {
    if (!row.at("error").empty()) continue;
    CAPTURE(row.at("file"));
    const auto text = read_file(kFixtures + row.at("file"));
    REQUIRE(text);
    const auto model = import_config_text(*text);
    REQUIRE(model);
    json::Writer out;
    write_model(out, *model);
    const std::string written = out.take();
    const auto document = json::Document::parse(written, "model", kMaxRequestBytes);
    REQUIRE(document);
    const auto back = parse_model(document->root(), "model");
    if (!back) FAIL_CHECK(back.error().field << ": " << back.error().message);
    if (!back) continue;
    CHECK(back->layers == model->layers);
    CHECK(back->parameters == model->parameters);
    CHECK(back->native_weights == model->native_weights);
    CHECK(back->native_weight_bytes == model->native_weight_bytes);
    CHECK(back->native_weights_estimated == model->native_weights_estimated);
    CHECK(back->native_cache == model->native_cache);
    CHECK(back->max_context == model->max_context);
    CHECK(back->layer_count == model->layer_count);
    CHECK(back->note_codes == model->note_codes);
    CHECK(back->family == model->family);
    CHECK(back->name == model->name);
    CHECK(back->vocabulary == model->vocabulary);
  }
}

TEST_CASE("a request takes a config as an object and as text") {
  const auto text = read_file(std::string(kFixtures) + "gpt-oss-20b.json");
  REQUIRE(text);
  const std::string object = plan_json("{\"config\":" + *text + ",\"context\":4096}", full_features());
  json::Writer quoted;
  quoted.text(std::string_view(*text));
  const std::string as_text = plan_json("{\"config\":" + quoted.take() + ",\"context\":4096}", full_features());
  CHECK(object == as_text);
  CHECK(object.find("\"weight_bytes\":13761264768") != std::string::npos);
  // 12 layers whole and 12 of 128 tokens, 2048 bytes each (tests/data/golden.tsv).
  CHECK(object.find("\"kv_bytes_per_sequence\":103809024") != std::string::npos);
}

TEST_CASE("a config cut anywhere is refused") {
  const auto text = read_file(std::string(kFixtures) + "nested-three-levels.json");
  REQUIRE(text);
  const std::size_t end = text->find_last_of('}');
  for (std::size_t length = 0; length <= end; ++length) {
    CAPTURE(length);
    const auto model = import_config_text(std::string_view(*text).substr(0, length));
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::malformed);
  }
}

TEST_CASE("random changes to configs give a model or an error") {
  std::mt19937 random(20250101);
  std::vector<std::string> seeds;
  for (const char* name : {"hybrid-letters-experts", "kda-lists-from-one", "k-serves-as-v", "compressed-by-ratios",
                           "pruned-blocks", "quant-compressed-int4", "side-by-side", "heads-by-layer"}) {
    const auto text = read_file(kFixtures + std::string(name) + ".json");
    REQUIRE(text);
    seeds.push_back(*text);
  }
  constexpr std::string_view kBits[] = {"0",     "-1",         "1e99", "null", "[]", "{}",
                                        "\"x\"", "4294967296", "1.5",  "true", "9"};
  std::size_t accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    const auto changes = 1 + random() % 3;
    for (unsigned change = 0; change < changes; ++change) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(random() % 96 + 32);
      } else {
        // The value behind a colon becomes another.
        const std::size_t colon = text.find(": ", at);
        if (colon == std::string::npos) continue;
        const std::size_t stop = text.find_first_of(",\n}", colon);
        text.replace(colon + 2, stop - colon - 2, kBits[random() % std::size(kBits)]);
      }
    }
    const auto model = import_config_text(text);
    if (model) {
      ++accepted;
      Wide layers = 0;
      for (const auto& run : model->layers) layers += run.count;
      CHECK(layers != 0);
    } else {
      CHECK_FALSE(model.error().message.empty());
    }
  }
  CHECK(accepted > 100);
}

TEST_CASE("marks of a merge left half done are named, wherever the text breaks on them") {
  for (const char* text : {"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> other\n", "{\"a\": 1}\n=======\n{}",
                           "{\"a\": 1,\n>>>>>>> other\n\"b\": 2}"}) {
    CAPTURE(text);
    const auto model = import_config_text(text);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::malformed);
    CHECK(model.error().message.find("marks of a merge") != std::string::npos);
  }
  const auto plain = import_config_text("{\"a\": ======= }");
  REQUIRE_FALSE(plain);
  CHECK(plain.error().message.find("marks of a merge") == std::string::npos);
}

TEST_CASE("hostile configs end in errors") {
  const auto code = [](std::string_view text) {
    const auto model = import_config_text(text);
    return model ? std::string("accepted") : code_of(model.error());
  };
  CHECK(code(std::string(100, '[')) == "malformed");
  CHECK(code(std::string(100'000, '{')) == "malformed");
  CHECK(code(std::string(kMaxConfigBytes + 1, ' ')) == "too_large");
  CHECK(code(std::string("{\"num_hidden_layers\": 2\0}", 25)) == "malformed");
  CHECK(code("") == "malformed");
  CHECK(code("{}") == "missing");
  std::string long_list =
      "{\"model_type\":\"llama\",\"num_hidden_layers\":4096,\"num_attention_heads\":2,\"head_dim\":1,\"num_key_value_"
      "heads\":[";
  for (int i = 0; i < 4096; ++i) long_list += i == 0 ? "1" : i % 2 == 0 ? ",1" : ",2";
  // 4096 layers, each another than the one before.
  CHECK(code(long_list + "]}") == "accepted");
  CHECK(code("{\"model_type\":\"llama\",\"num_hidden_layers\":4097,\"num_attention_heads\":1,\"head_dim\":1}") ==
        "out_of_range");
  const std::string huge =
      "{\"model_type\":\"mamba2\",\"num_hidden_layers\":2,\"hidden_size\":16777216,\"mamba_expand\":1024,"
      "\"state_size\":16777216,\"head_dim\":1,\"num_heads\":65536,\"n_groups\":1,\"conv_kernel\":4}";
  CHECK(code(huge) == "accepted");
  CHECK(code("{\"model_type\":\"mamba2\",\"num_hidden_layers\":2,\"hidden_size\":16777216,\"state_size\":16777216,"
             "\"head_dim\":16777216,\"num_heads\":65536,\"n_groups\":1,\"conv_kernel\":4}") == "out_of_range");
}

}  // namespace
}  // namespace kvcap
