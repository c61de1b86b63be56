// The catalogue against our own checked tables: tests/data/models.tsv, golden.tsv and gpus.tsv.
#include "kvcap/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kvcap/deployment.hpp"
#include "kvcap/engine.hpp"
#include "kvcap/footprint.hpp"
#include "kvcap/json.hpp"

using namespace kvcap;

namespace {

using TableRow = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == '\t') {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<TableRow> read_table(const std::string& file) {
  std::ifstream in("tests/data/" + file);
  REQUIRE_MESSAGE(in, "tests run in the project's folder, which has tests/data/" << file);
  std::string line;
  std::getline(in, line);
  const auto columns = cells_of(line);
  std::vector<TableRow> rows;
  while (std::getline(in, line)) {
    auto cells = cells_of(line);
    cells.resize(columns.size());
    TableRow row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

u64 number(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

CacheFormats bf16() { return {find_format("bf16"), find_format("bf16")}; }

std::vector<LayerRun> runs_of(const CatalogueEntry& entry) {
  const auto runs = parse_layers(entry.layers);
  REQUIRE_MESSAGE(runs, entry.id << ": " << (runs ? "" : runs.error().message));
  return *runs;
}

/// The tables give K and V; they leave the keys of sparse attention's indexer out (tests/data/models.tsv, kv_check).
std::vector<LayerRun> without_index_keys(std::vector<LayerRun> runs) {
  for (auto& run : runs) run.indexer_width = 0;
  return runs;
}

std::vector<LayerRun> windows_as_full(std::vector<LayerRun> runs) {
  for (auto& run : runs) {
    if (run.kind == LayerKind::window || run.kind == LayerKind::chunked) {
      run.kind = LayerKind::full;
      run.window_tokens = 0;
    }
  }
  return runs;
}

u64 total_at(std::span<const LayerRun> runs, u64 context, CacheFormats kv = bf16()) {
  return static_cast<u64>(sequence_cost(runs, kv, 1, {context}).total);
}

const CatalogueEntry& entry_of(std::string_view id) {
  const CatalogueEntry* const entry = find_model(id);
  REQUIRE_MESSAGE(entry != nullptr, id << " is not in the catalogue");
  return *entry;
}

}  // namespace

TEST_CASE("every row of the catalogue is a model") {
  REQUIRE(catalogue().size() >= 200);
  std::set<std::string> ids, names, families;
  std::string family;
  for (const auto& entry : catalogue()) {
    CAPTURE(entry.id);
    CHECK(ids.insert(std::string(entry.id)).second);
    CHECK(names.insert(std::string(entry.name)).second);
    if (entry.family != family) {
      family = entry.family;
      CHECK_MESSAGE(families.insert(family).second, "a family stands together");
    }
    const auto model = model_of(entry);
    REQUIRE(model);
    CHECK(model->id == entry.id);
    CHECK(model->layer_count == entry.layer_count);
    REQUIRE(model->native_weights != nullptr);
    CHECK(model->native_weights->weights);
    CHECK(model->parameters.value_or(0) == entry.parameters);
    CHECK(model->active_parameters.value_or(0) <= model->parameters.value_or(~u64{0}));
    u64 layers = 0;
    for (const auto& run : model->layers) {
      CHECK(run.count <= entry.layer_count);
      layers += run.count;
    }
    // Falcon-H1 has attention and a state in every layer, DeepSeek V4 compressed entries and a window.
    const bool side_by_side = family == "Falcon-H1" || family == "DeepSeek V4";
    CHECK((layers == entry.layer_count || side_by_side));
    CHECK(has_cache(model->layers));
    CHECK_FALSE(check_formats(model->layers, bf16()));
  }
}

TEST_CASE("a model is found by its id, its hub id in any letter case, and the names of its tuned variants") {
  for (const auto& entry : catalogue()) {
    CAPTURE(entry.id);
    CHECK(find_model(entry.id) == &entry);
    CHECK(find_model(entry.hub_id) == &entry);
    std::string loud(entry.hub_id);
    for (char& c : loud) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    CHECK(find_model(loud) == &entry);
    CHECK(find_model(entry.hub_id.substr(entry.hub_id.find('/') + 1)) == &entry);
  }
  CHECK(find_model("meta-llama/Llama-3.1-70B-Instruct") == &entry_of("llama-3.1-70b"));
  CHECK(find_model("meta-llama/Llama-3.1-8B") == &entry_of("llama-3.1-8b"));
  CHECK(find_model("google/gemma-3-27b-pt") == &entry_of("gemma-3-27b"));
  CHECK(find_model("Qwen/Qwen2.5-7B-Instruct") == &entry_of("qwen2.5-7b"));
  CHECK(find_model("deepseek-ai/DeepSeek-V3-Base") == &entry_of("deepseek-v3"));
  for (const auto* unknown : {"", "/", "llama", "LLAMA-3", "llama-3-8", "-", "instruct", "meta-llama/", "/gpt2",
                              "somebody/Llama-3.1-8B", "llama-3-8b ", "gemma-3-27b-qat"}) {
    CAPTURE(unknown);
    CHECK(find_model(unknown) == nullptr);
  }
}

TEST_CASE("rows equal the checked table: bytes a token, windows, states, context, heads, parameters") {
  const auto table = read_table("models.tsv");
  REQUIRE(table.size() == 106);
  for (const auto& row : table) {
    CAPTURE(row.at("model_id"));
    const CatalogueEntry& entry = entry_of(row.at("model_id"));
    CHECK(entry.hub_id == row.at("model_id"));
    CHECK(entry.family == row.at("family"));
    CHECK(entry.layer_count == number(row.at("layers")));
    CHECK(entry.query_heads == number(row.at("heads")));
    CHECK(entry.hidden_size == number(row.at("hidden")));
    CHECK(entry.vocabulary == number(row.at("vocab")));
    CHECK(entry.multimodal == (row.at("multimodal") == "yes"));
    CHECK(entry.max_context == (row.at("max_position") == "unbounded" ? 0 : number(row.at("max_position"))));

    Wide growing = 0, windowed = 0, cap = 0, state = 0;
    for (const auto& run : without_index_keys(runs_of(entry))) {
      const Wide bytes = run.count * row_of(run, bf16(), 1).sum();
      switch (run.kind) {
        case LayerKind::latent:
          // The heads that the row stands for, which engines without kernels for it cache instead.
          CHECK(run.expanded_heads == number(row.at("heads")));
          CHECK(run.expanded_key_width == number(row.at("head_dim_k")));
          CHECK(run.expanded_value_width == number(row.at("head_dim_v")));
          CHECK(run.latent_value_width != 0);
          CHECK(run.latent_value_width < run.latent_width);
          [[fallthrough]];
        case LayerKind::full: growing += bytes; break;
        case LayerKind::window:
        case LayerKind::chunked:
          windowed += bytes;
          cap += bytes * run.window_tokens;
          break;
        case LayerKind::recurrent: state += run.count * state_of(run, 1); break;
        case LayerKind::compressed: FAIL("no row of the table has a compressed cache"); break;
        case LayerKind::cross:
        case LayerKind::shared:
        case LayerKind::none: break;
      }
    }
    CHECK(static_cast<u64>(growing) == number(row.at("kv_bytes_per_token_growing")));
    CHECK(static_cast<u64>(windowed) == number(row.at("kv_bytes_per_token_windowed")));
    CHECK(static_cast<u64>(cap) == number(row.at("window_cap_bytes")));
    CHECK(static_cast<u64>(state) == number(row.at("state_bytes_per_sequence")));

    const u64 text = number(row.at("params_text_computed"));
    const u64 published = number(row.at("params_published"));
    if (row.at("multimodal") == "no") {
      CHECK(entry.parameters == (text != 0 ? text : published));
    } else if (text != 0) {
      // With the vision part, which engines load, and without prediction layers and second copies, which they do not.
      CHECK(entry.parameters >= text);
      CHECK((published == 0 || entry.parameters <= published));
    } else if (published != 0) {
      CHECK(entry.parameters == published);
    }
  }
}

u64 parameters_of(std::string_view id) {
  const auto* const entry = find_model(id);
  REQUIRE(entry != nullptr);
  return entry->parameters;
}

TEST_CASE("models that see: text and vision part by part, as transformers builds them") {
  const auto linear = [](u64 in, u64 out) { return in * out + out; };
  // Qwen3-VL: patches of 2 × 16 × 16 × 3, learned positions, blocks with biases, one merger and three of deepstack.
  const auto qwen3_vl = [&](u64 depth, u64 width, u64 mlp, u64 out) {
    const u64 block =
        4 * width + linear(width, 3 * width) + linear(width, width) + linear(width, mlp) + linear(mlp, width);
    const u64 merger = linear(4 * width, 4 * width) + linear(4 * width, out);
    return linear(1536, width) + 2304 * width + depth * block + 4 * merger + 2 * width + 3 * 2 * 4 * width;
  };
  // Two that others counted, then two that follow.
  CHECK(parameters_of("qwen3-vl-2b") == parameters_of("qwen3-1.7b") + qwen3_vl(24, 1024, 4096, 2048));
  CHECK(parameters_of("qwen3-vl-30b-a3b") == parameters_of("qwen3-30b-a3b") + qwen3_vl(27, 1152, 4304, 2048));
  CHECK(parameters_of("qwen3-vl-32b") == parameters_of("qwen3-32b") + qwen3_vl(27, 1152, 4304, 5120));
  CHECK(parameters_of("qwen3-vl-235b-a22b") == parameters_of("qwen3-235b-a22b") + qwen3_vl(27, 1152, 4304, 4096));

  // Qwen2-VL: patches of 2 × 14 × 14 × 3 without bias, no positions, one merger.
  const u64 block = 4 * 1280 + linear(1280, 3840) + linear(1280, 1280) + linear(1280, 5120) + linear(5120, 1280);
  const u64 qwen2_vl = 1176 * 1280 + 32 * block + 2 * 1280 + linear(5120, 5120) + linear(5120, 3584);
  CHECK(parameters_of("qwen2-vl-7b") == parameters_of("qwen2.5-7b") + qwen2_vl);

  // Llama 3.2 Vision: the Llama 3.1 of its size, eight rows of embedding more, cross-attention layers with norms of Q
  // and K and two gates, a projector, and 32 + 8 layers of vision with positions for four tiles in nine layouts.
  const u64 layer = 4 * 1280 * 1280 + linear(1280, 5120) + linear(5120, 1280) + 4 * 1280;
  const u64 tower = 40 * layer + 8 * 2 + 588 * 1280 + 1280 + 1601 * 1280 + 9 * 4 * 1601 * 1280 + 1 +
                    2 * (9 * 4 * 1280 + 1) + 2 * 2 * 1280;
  const auto mllama = [&](std::string_view base, u64 width, u64 mlp, u64 crossing) {
    const u64 cross = 2 * width * width + 2 * width * 1024 + 3 * width * mlp + 2 * width + 2 * 128 + 2;
    return parameters_of(base) + 8 * width + crossing * cross + linear(7680, width) + tower;
  };
  CHECK(parameters_of("llama-3.2-11b-vision") == mllama("llama-3.1-8b", 4096, 14336, 8));
  CHECK(parameters_of("llama-3.2-90b-vision") == mllama("llama-3.1-70b", 8192, 28672, 20));
}

TEST_CASE("golden bytes of one 16-bit sequence, windows capped and not capped") {
  const auto table = read_table("golden.tsv");
  REQUIRE(table.size() == 106);
  for (const auto& row : table) {
    CAPTURE(row.at("model_id"));
    const auto runs = without_index_keys(runs_of(entry_of(row.at("model_id"))));
    const auto full = windows_as_full(runs);
    const u64 state = number(row.at("state_bytes"));
    for (const u64 context : {u64{1}, u64{128}, u64{4096}, u64{32768}, u64{131072}}) {
      CAPTURE(context);
      CHECK(total_at(runs, context) == number(row.at("capped_" + std::to_string(context))) + state);
      CHECK(total_at(full, context) == number(row.at("uncapped_" + std::to_string(context))) + state);
    }
  }
}

TEST_CASE("figures that people measured or published") {
  const CacheFormats packed = cache_formats(find_format("fp8_ds_mla"), find_format("fp8_ds_mla"));
  // sgl-project/sglang pull request 11309; vLLM log of GLM-5.2: 78 x 656 + 21 x 132.
  CHECK(total_at(runs_of(entry_of("deepseek-v3.2")), 1, packed) == 48'068);
  CHECK(total_at(runs_of(entry_of("glm-5.2")), 1, packed) == 53'940);
  // An indexer's key of 128 values in each of 61, 78 and 57 layers: 132 bytes as fp8, left out of a 16-bit cache, which
  // does not say how they are stored.
  const CacheFormats fp8 = cache_formats(find_format("fp8"), find_format("fp8"));
  for (const auto& [id, layers] :
       std::map<std::string, u64>{{"deepseek-v3.2", 61}, {"glm-5", 78}, {"minimax-m3", 57}}) {
    const auto runs = runs_of(entry_of(id));
    CHECK(total_at(runs, 1, fp8) == total_at(without_index_keys(runs), 1, fp8) + layers * 132);
    CHECK(total_at(runs, 1) == total_at(without_index_keys(runs), 1));
  }
  CHECK(total_at(runs_of(entry_of("glm-4.7-flash")), 1) == 54'144);
  CHECK(total_at(runs_of(entry_of("qwen3-4b")), 1) == 147'456);
  CHECK(total_at(runs_of(entry_of("r1-distill-qwen-1.5b")), 1) == 28'672);
  CHECK(total_at(runs_of(entry_of("gemma-4-e2b")), 8192) == 56'623'104);
  CHECK(total_at(runs_of(entry_of("gpt-oss-120b")), 1) == 73'728);
  // DeepSeek V4 Flash: 21 x 1024 / 4 + 20 x 1024 / 128 bytes a token, index keys and windows aside.
  const auto v4 = without_index_keys(runs_of(entry_of("deepseek-v4-flash")));
  CHECK((total_at(v4, 65536) - total_at(v4, 32768)) / 32768 == 5536);
  CHECK(entry_of("gpt-oss-20b").native_weight_bytes == 13'761'264'768);
  CHECK(entry_of("gpt-oss-120b").native_weight_bytes == 65'248'815'744);
}

TEST_CASE("the short notation of layers") {
  const auto runs = parse_layers(
      "32 full 8x128; 9 full 4x192/128+64; 1 full 4x512/0; 20 window 4096 8x128; 2 chunked 8192 8x128; 61 latent "
      "576+128; "
      "20 compressed 4 latent 512; 20 compressed 128 1x512/0; 48 recurrent 786432:fp32 30720:bf16; 10 recurrent 0 "
      "7:bf16; "
      "18 shared; 54 none; 8 cross 1601 8x128; 3 latent 576:512+128 128x192/128; 2 latent 8:8 2x4");
  REQUIRE(runs);
  REQUIRE(runs->size() == 15);
  CHECK((*runs)[0] ==
        LayerRun{.count = 32, .kind = LayerKind::full, .kv_heads = 8, .key_width = 128, .value_width = 128});
  CHECK((*runs)[1] == LayerRun{.count = 9,
                               .kind = LayerKind::full,
                               .kv_heads = 4,
                               .key_width = 192,
                               .value_width = 128,
                               .indexer_width = 64});
  CHECK((*runs)[2].value_width == 0);
  CHECK((*runs)[3].window_tokens == 4096);
  CHECK((*runs)[4].kind == LayerKind::chunked);
  CHECK((*runs)[5] == LayerRun{.count = 61, .kind = LayerKind::latent, .latent_width = 576, .indexer_width = 128});
  CHECK((*runs)[6] == LayerRun{.count = 20, .kind = LayerKind::compressed, .latent_width = 512, .tokens_per_entry = 4});
  CHECK((*runs)[7].key_width == 512);
  CHECK((*runs)[8].state_format == find_format("fp32"));
  CHECK((*runs)[8].conv_values == 30720);
  CHECK((*runs)[9].state_values == 0);
  CHECK((*runs)[10] == LayerRun{.count = 18, .kind = LayerKind::shared});
  CHECK((*runs)[11] == LayerRun{.count = 54, .kind = LayerKind::none});
  CHECK((*runs)[12].source_tokens == 1601);
  CHECK((*runs)[13] == LayerRun{.count = 3,
                                .kind = LayerKind::latent,
                                .latent_width = 576,
                                .latent_value_width = 512,
                                .expanded_heads = 128,
                                .expanded_key_width = 192,
                                .expanded_value_width = 128,
                                .indexer_width = 128});
  CHECK((*runs)[14].latent_value_width == 8);
  CHECK((*runs)[14].expanded_value_width == 4);

  for (const auto* wrong : {"",
                            " ",
                            ";",
                            "full",
                            "full 8x128",
                            "0 full 8x128",
                            "-1 full 8x128",
                            "32 full",
                            "32 full 8",
                            "32 full 8x",
                            "32 full x128",
                            "32 full 0x128",
                            "32 full 8x0",
                            "32 full 8x128/",
                            "32 full 8x128+",
                            "32 full 8x128 8",
                            "32 full 8x128;",
                            "32 full 8x128; ",
                            "32 full 8x128,1 none",
                            "32 fuller 8x128",
                            "32 Full 8x128",
                            "1 window 8x128",
                            "1 window 0 8x128",
                            "1 latent 0",
                            "1 latent 576+0",
                            "1 latent 576:0",
                            "1 latent 576:577",
                            "1 latent 576 128",
                            "1 latent 576 0x1",
                            "1 latent 576 128x192/0",
                            "1 compressed latent 512",
                            "1 compressed 0 latent 512",
                            "1 recurrent 5 0",
                            "1 recurrent 0:bf16 0",
                            "1 recurrent 5:nothing 0",
                            "1 recurrent 5:bf16",
                            "1 shared 2",
                            "65537 none",
                            "4294967297 none",
                            "18446744073709551617 none",
                            "1 full 65537x1",
                            "1 full 1x16777217",
                            "1 window 2147483649 1x1",
                            "99999999999999999999999999999999999999 none"}) {
    CAPTURE(wrong);
    const auto refused = parse_layers(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::malformed);
    CHECK(refused.error().field == "layers");
    CHECK_FALSE(refused.error().message.empty());
  }
}

namespace {

/// Numbers of a cell such as "79.11 to 79.44" or "24123, 24126", × 1000.
std::vector<u64> thousandths(const std::string& cell) {
  std::vector<u64> found;
  for (std::size_t at = 0; at < cell.size();) {
    if (cell[at] < '0' || cell[at] > '9') {
      ++at;
      continue;
    }
    u64 value = 0;
    int decimals = -1;
    for (; at < cell.size() && ((cell[at] >= '0' && cell[at] <= '9') || cell[at] == '.'); ++at) {
      if (cell[at] == '.') {
        decimals = 0;
        continue;
      }
      value = value * 10 + static_cast<u64>(cell[at] - '0');
      if (decimals >= 0) ++decimals;
    }
    for (decimals = std::max(decimals, 0); decimals < 3; ++decimals) value *= 10;
    REQUIRE(decimals == 3);
    found.push_back(value);
  }
  return found;
}

}  // namespace

TEST_CASE("GPUs equal the checked table in each of the three sizes") {
  const auto table = read_table("gpus.tsv");
  REQUIRE(table.size() == 115);
  REQUIRE(gpus().size() == table.size() + 1);
  for (const auto& row : table) {
    CAPTURE(row.at("id"));
    const Gpu* const gpu = find_gpu(row.at("id"));
    REQUIRE(gpu != nullptr);
    CHECK(gpu->vendor == row.at("vendor"));
    CHECK(gpu->name == row.at("name"));
    CHECK(gpu->kind == row.at("kind"));
    CHECK(gpu->year == number(row.at("year")));
    // TPU7x is sold as 192 GB a chip of two devices, and the row is one device.
    const u64 devices = row.at("row_is") == "device: two a chip" ? 2 : 1;
    CHECK(gpu->sold_gb_thousandths * devices == thousandths(row.at("sold_gb")).at(0));
    CHECK(gpu->driver_mib == number(row.at("driver_mib")));

    std::vector<u64> totals;
    for (const u64 gib : thousandths(row.at("runtime_total_gib"))) totals.push_back((gib * 1024 + 500) / 1000);
    for (const u64 mib : thousandths(row.at("runtime_total_mib"))) totals.push_back((mib + 499) / 1000);
    std::ranges::sort(totals);
    CHECK(gpu->runtime_mib == (totals.empty() ? 0 : totals.front()));
    CHECK(gpu->runtime_mib_max == (totals.empty() ? 0 : totals.back()));
  }
  CHECK(find_gpu("h100") == nullptr);
  CHECK(find_gpu("") == nullptr);
}

TEST_CASE("the textbook's GPU comes first and has no size but the one it is sold under") {
  const Gpu& gpu = gpus().front();
  CHECK(gpu.id == "80gb");
  CHECK(gpu.vendor.empty());
  CHECK(gpu.sold_gb_thousandths == 80'000);
  CHECK(gpu.driver_mib == 0);
  CHECK(gpu.runtime_mib == 0);
  CHECK(find_gpu("80gb") == &gpu);
}

TEST_CASE("a page is offered everything in the catalogue") {
  const std::string text = catalogue_json(full_features());
  const auto document = json::Document::parse(text, "catalogue", text.size());
  REQUIRE(document);
  const json::Value& root = document->root();
  const auto list = [&](std::string_view name) -> const json::Value& {
    const json::Value* const value = root.find(name);
    REQUIRE(value != nullptr);
    REQUIRE(value->is(json::Kind::array));
    return *value;
  };
  CHECK(list("models").count() == catalogue().size());
  CHECK(list("gpus").count() == gpus().size());
  CHECK(list("formats").count() == formats().size());
  CHECK(list("engines").count() == full_features().engines.size());
  u32 core = 0;
  for (const auto& model : list("models")) {
    const json::Value* const id = model.find("id");
    REQUIRE(id != nullptr);
    const CatalogueEntry& entry = entry_of(id->text);
    REQUIRE(model.find("core") != nullptr);
    CHECK(model.find("core")->truth == entry.core);
    core += entry.core ? 1 : 0;
    CHECK((model.get("max_context") == nullptr) == (entry.max_context == 0));
    CHECK(model.count() == 8);
  }
  CHECK(core >= 8);
  auto engine = full_features().engines.begin();
  for (const auto& offered : list("engines")) {
    REQUIRE(offered.find("id") != nullptr);
    CHECK(offered.find("id")->text == engine->name);
    REQUIRE(offered.find("options") != nullptr);
    REQUIRE(offered.find("options")->count() == engine->options.size());
    auto spec = engine->options.begin();
    for (const auto& option : *offered.find("options")) {
      CAPTURE(spec->name);
      CHECK(option.find("name")->text == spec->name);
      CHECK(option.find("source")->text == spec->source);
      CHECK(!spec->source.empty());
      CHECK((option.get("fallback") != nullptr) == spec->has_fallback);
      CHECK(option.find("choices")->is(json::Kind::array));
      CHECK((option.find("choices")->count() != 0) == (spec->kind == OptionKind::choice));
      ++spec;
    }
    ++engine;
  }
  REQUIRE(root.find("limits") != nullptr);
  CHECK(root.find("limits")->find("max_context")->text == std::to_string(kMaxTokens));
  CHECK(root.find("limits")->find("max_gpus")->text == std::to_string(kMaxGpus));
}
