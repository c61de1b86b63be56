// vLLM and TensorRT-LLM against what they printed: tests/data/engine_logs.jsonl, with models from the catalogue or from
// tests/data/engine_models.tsv.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "kvcap/catalogue.hpp"
#include "kvcap/json.hpp"
#include "kvcap/plan.hpp"

using namespace kvcap;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// A parsed JSON text with plain getters.
class Reply {
 public:
  explicit Reply(std::string text) : document_(json::Document::parse(text, "text", kMaxRequestBytes)) {
    REQUIRE_MESSAGE(document_, text);
  }
  [[nodiscard]] const json::Value& root() const { return document_->root(); }
  [[nodiscard]] std::optional<double> number(std::string_view name) const { return number_of(root().get(name)); }
  [[nodiscard]] std::string text(std::string_view name) const {
    const json::Value* const value = root().get(name);
    return value != nullptr ? std::string(value->text) : std::string();
  }
  [[nodiscard]] bool has(std::string_view name) const { return root().get(name) != nullptr; }
  static std::optional<double> number_of(const json::Value* value) {
    if (value == nullptr || !value->is(json::Kind::number)) return std::nullopt;
    return std::stod(std::string(value->text));
  }

 private:
  Result<json::Document> document_;
};

/// The error's field and code, or empty.
std::pair<std::string, std::string> refusal(const Reply& answer) {
  const json::Value* const error = answer.root().get("error");
  if (error == nullptr) return {};
  return {std::string(error->get("field")->text), std::string(error->get("code")->text)};
}

Reply plan(const std::string& request) { return Reply(plan_json(request, full_features())); }

double figure(const Reply& answer, std::string_view name) {
  const auto value = answer.number(name);
  REQUIRE_MESSAGE(value, name << ": " << refusal(answer).first << ' ' << refusal(answer).second);
  return *value;
}

/// The two bounds of a range.
std::pair<double, double> bounds_of(const json::Value& range) {
  std::vector<double> bounds;
  for (const auto& one : range) bounds.push_back(*Reply::number_of(&one));
  REQUIRE(bounds.size() == 2);
  return {bounds[0], bounds[1]};
}

std::string whole(double value) {
  std::ostringstream out;
  out.precision(0);
  out << std::fixed << value;
  return out.str();
}
std::string bytes(double gib) { return whole(std::floor(gib * kGiB)); }

/// A request put together field by field; `options` apart.
struct Question {
  std::map<std::string, std::string> fields;
  std::map<std::string, std::string> options;
  void text(const std::string& name, const std::string& value) { fields[name] = '"' + value + '"'; }
  void number(const std::string& name, double value) { fields[name] = whole(value); }
  void option(const std::string& name, const std::string& value) { options[name] = value; }
  [[nodiscard]] std::string json() const {
    std::string out = "{";
    for (const auto& [name, value] : fields) out += '"' + name + "\":" + value + ',';
    out += "\"options\":{";
    bool first = true;
    for (const auto& [name, value] : options) {
      if (!first) out += ',';
      first = false;
      out += '"' + name + "\":" + value;
    }
    return out + "}}";
  }
};

// ---- the records ---------------------------------------------------------------------------------------------------

struct KnownModel {
  std::string id;      ///< in the catalogue, or empty
  std::string object;  ///< else as a JSON object
  double parameters = 0;
  double kept_16_bit = 0;  ///< parameters that quantised checkpoints keep at 16 bits
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == '\t') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::map<std::string, KnownModel> read_models() {
  std::ifstream in("tests/data/engine_models.tsv");
  REQUIRE_MESSAGE(in, "tests run in the project's folder, which has tests/data/engine_models.tsv");
  std::map<std::string, KnownModel> models;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto cells = cells_of(line);
    REQUIRE(cells.size() == 9);
    KnownModel model;
    model.id = cells[1];
    model.kept_16_bit = cells[7].empty() ? 0 : std::stod(cells[7]);
    if (!model.id.empty()) {
      const CatalogueEntry* const entry = find_model(model.id);
      REQUIRE_MESSAGE(entry != nullptr, model.id);
      model.parameters = static_cast<double>(entry->parameters);
    } else {
      if (cells[4].empty()) continue;  // a row of another engine's test
      const auto runs = parse_layers(cells[2]);
      REQUIRE_MESSAGE(runs, cells[2]);
      REQUIRE(runs->size() == 1);
      const LayerRun& run = runs->front();
      model.parameters = std::stod(cells[4]);
      model.object = "{\"layers\":[{\"kind\":\"full\",\"count\":" + whole(run.count) +
                     ",\"kv_heads\":" + whole(run.kv_heads) + ",\"key_width\":" + whole(run.key_width) +
                     ",\"value_width\":" + whole(run.value_width) + "}],\"parameters\":" + cells[4] +
                     ",\"query_heads\":" + cells[3] + ",\"vocabulary\":" + cells[5] +
                     ",\"multimodal\":" + (cells[6] == "1" ? "true" : "false") + '}';
    }
    models[cells[0]] = model;
  }
  return models;
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct Record {
  Reply json;
  [[nodiscard]] std::string id() const { return json.text("id"); }
  [[nodiscard]] bool tensorrt() const { return json.text("engine") == "tensorrt-llm"; }
  [[nodiscard]] double tensor_parallel() const { return json.number("tp").value_or(1); }
  [[nodiscard]] double block() const {
    if (const auto size = json.number("block_size")) return *size;
    return tensorrt() ? 32 : 16;
  }
  /// Where engine_rules says that the printed memory is not that of the rank that set the tokens, or a page is
  /// unstated.
  [[nodiscard]] bool explained() const {
    const json::Value* const check = json.root().get("check");
    return check != nullptr && check->get("explanation") != nullptr;
  }
  /// The V0 engine also printed blocks of main memory.
  [[nodiscard]] bool v0() const { return json.has("cpu_blocks") || holds(json.text("notes"), "V0"); }
};

std::vector<Record> read_records() {
  std::ifstream in("tests/data/engine_logs.jsonl");
  REQUIRE_MESSAGE(in, "tests run in the project's folder, which has tests/data/engine_logs.jsonl");
  std::vector<Record> records;
  std::string line;
  while (std::getline(in, line)) {
    Record record{Reply(line)};
    const std::string engine = record.json.text("engine");
    const bool ours = engine == "vllm" || engine == "aphrodite" || engine == "vllm-ascend" || engine == "tensorrt-llm";
    if (ours) records.push_back(std::move(record));
  }
  REQUIRE(records.size() > 50);
  return records;
}

/// What a record says of model, split, format and flags; no memory yet.
Question question_of(const Record& record, const std::map<std::string, KnownModel>& models) {
  const auto known = models.find(record.json.text("arch_key"));
  REQUIRE_MESSAGE(known != models.end(), record.json.text("arch_key"));
  Question out;
  out.text("engine", record.tensorrt() ? "tensorrt-llm" : "vllm");
  if (known->second.id.empty()) {
    out.fields["model"] = known->second.object;
  } else {
    out.text("model", known->second.id);
  }
  out.number("tensor_parallel", record.tensor_parallel());
  out.number("pipeline_parallel", record.json.number("pp").value_or(1));
  const std::string kv = record.json.text("kv_dtype");
  if (holds(kv, "fp8_ds_mla")) {
    out.text("kv", "fp8_ds_mla");
  } else if (holds(kv, "fp8")) {
    out.text("kv", "fp8");
  }
  if (const auto length = record.json.number("max_model_len")) out.number("context", *length);
  if (record.json.has("block_size")) {
    out.option(record.tensorrt() ? "tokens_per_block" : "block_size", whole(record.block()));
  }
  if (record.json.has("engine_version")) out.option("version", '"' + record.json.text("engine_version") + '"');
  if (record.json.text("kv_layout") == "hybrid_groups_old") out.option("version", "\"0.20.0\"");
  const json::Value* const prefixes = record.json.root().get("prefix_caching");
  if (prefixes != nullptr && prefixes->truth) out.option("enable_prefix_caching", "true");
  if (const auto dcp = record.json.number("dcp")) out.option("decode_context_parallel_size", whole(*dcp));
  if (record.json.text("mamba_ssm_dtype") == "float16") out.option("mamba_ssm_cache_dtype", "\"float16\"");
  return out;
}

const std::string kAmpleMemory = "{\"memory_bytes\":35184372088832}";

/// One printed figure beside the computed one.
struct Figure {
  std::string id, kind, what;
  double printed = 0, computed = 0;
  bool exact = false;
  bool explained = false;
};

void print_rows(const std::vector<Figure>& rows, const char* title) {
  std::printf("\n%s\n%-6s %-16s %-22s %14s %14s %9s\n", title, "record", "attention", "figure", "printed", "computed",
              "ratio");
  std::map<std::string, std::vector<double>> by_kind;
  for (const auto& row : rows) {
    const double ratio = row.computed / row.printed;
    std::printf("%-6s %-16s %-22s %14.2f %14.2f %9.5f%s%s\n", row.id.c_str(), row.kind.c_str(), row.what.c_str(),
                row.printed, row.computed, ratio, row.exact ? "  =" : "",
                row.explained ? "  (one rank's figure, or a page that is not stated)" : "");
    if (!row.explained) by_kind[row.kind].push_back(std::abs(ratio - 1));
  }
  for (const auto& [kind, errors] : by_kind) {
    std::printf("%-16s %3zu figures, largest error %.4f %%\n", kind.c_str(), errors.size(),
                *std::ranges::max_element(errors) * 100);
  }
}

/// Two decimals as printed.
bool prints_as(double computed, double printed) { return std::abs(computed - printed) < 0.005 + 1e-9; }

}  // namespace

TEST_CASE("blocks, tokens and concurrency from the printed memory, and concurrency from the printed blocks") {
  const auto models = read_models();
  std::vector<Figure> rows;
  for (const Record& record : read_records()) {
    CAPTURE(record.id());
    const std::string kind = record.json.text("engine") + ' ' + record.json.text("attention_kind");
    const bool explained = record.explained();
    const auto tokens = record.json.number("kv_tokens");
    const auto blocks = record.json.number("kv_blocks");
    const auto memory = record.json.number("kv_mem_gib");
    Question question = question_of(record, models);
    question.fields["gpu"] = kAmpleMemory;

    if (memory && (tokens || blocks)) {
      const std::string_view what = tokens ? "kv_tokens" : "kv_blocks";
      const auto computed = [&](double gib) {
        question.option("kv_memory_bytes", bytes(gib));
        return figure(plan(question.json()), what);
      };
      // The log prints two decimals, so any memory of that rounding could be meant.
      const double printed = tokens ? *tokens : *blocks;
      Figure row{record.id(), kind, std::string(what) + " of memory", printed, computed(*memory), false, explained};
      row.exact = computed(*memory - 0.005) <= printed && printed <= computed(*memory + 0.005);
      if (!explained) {
        CHECK(std::abs(row.computed / printed - 1) < 0.01);
        CHECK(row.exact);
      }
      rows.push_back(row);
      question.options.erase("kv_memory_bytes");
    }

    const auto concurrency = record.json.number("max_concurrency");
    if (concurrency && !record.tensorrt() && record.json.text("kv_layout") != "hybrid_align") {
      question.option("num_gpu_blocks_override",
                      whole(blocks ? *blocks : std::floor(tokens.value_or(0) / record.block())));
      if (blocks || tokens) {
        const Reply answer = plan(question.json());
        Figure row{record.id(), kind,     "concurrency of blocks", *concurrency, figure(answer, "concurrency"),
                   false,       explained};
        row.exact = prints_as(row.computed, row.printed);
        CHECK(row.exact);
        rows.push_back(row);
        if (tokens && blocks) {
          Figure count{record.id(), kind,     "kv_tokens of blocks", *tokens, figure(answer, "kv_tokens"),
                       false,       explained};
          count.exact = count.computed == count.printed;
          CHECK(count.exact);
          rows.push_back(count);
        }
      }
    } else if (concurrency && memory) {
      // Blocks are not printed here: they follow from the memory, within its rounding.
      bool met = false;
      Figure row{record.id(), kind, "concurrency of memory", *concurrency, 0, false, explained};
      for (const double gib : {*memory - 0.005, *memory, *memory + 0.005}) {
        question.option("kv_memory_bytes", bytes(gib));
        const double computed = figure(plan(question.json()), "concurrency");
        if (gib == *memory) row.computed = computed;
        met = met || prints_as(computed, row.printed);
      }
      row.exact = met;
      CHECK(met);
      rows.push_back(row);
    }
  }
  print_rows(rows, "Stated facts");
  CHECK(rows.size() > 60);
}

TEST_CASE("V0's blocks in main memory: 4 GiB of swap space over the block") {
  const auto models = read_models();
  std::vector<Figure> rows;
  for (const Record& record : read_records()) {
    const json::Value* const check = record.json.root().get("check");
    if (check == nullptr || check->get("basis") == nullptr) continue;
    if (!holds(std::string(check->get("basis")->text), "cpu_blocks")) continue;
    CAPTURE(record.id());
    Question question = question_of(record, models);
    question.fields["gpu"] = kAmpleMemory;
    question.option("kv_memory_bytes", bytes(4));
    if (!question.options.contains("version")) question.option("version", "\"0.6\"");
    Figure row{record.id(),
               record.json.text("attention_kind"),
               "blocks of 4 GiB",
               *record.json.number("cpu_blocks"),
               figure(plan(question.json()), "kv_blocks"),
               true,
               false};
    CHECK(row.computed == row.printed);
    rows.push_back(row);
  }
  print_rows(rows, "Swap space");
  CHECK(rows.size() >= 9);
}

TEST_CASE("the budget from printed terms: total x utilisation - weights - activation - non-torch") {
  const auto models = read_models();
  std::vector<Figure> rows;
  for (const Record& record : read_records()) {
    const auto total = record.json.number("total_gpu_mem_gib");
    const auto share = record.json.number("gpu_memory_utilization");
    const auto weights = record.json.number("weights_gib");
    const auto activation = record.json.number("activation_gib");
    const auto other = record.json.number("non_torch_gib");
    const auto memory = record.json.number("kv_mem_gib");
    if (!total || !share || !weights || !activation || !other || !memory) continue;
    CAPTURE(record.id());
    Question question = question_of(record, models);
    question.fields["gpu"] = "{\"memory_bytes\":" + bytes(*total) + '}';
    question.number("weight_bytes", std::floor(*weights * kGiB) * record.tensor_parallel());
    question.option("activation_bytes", bytes(*activation));
    question.option("non_torch_bytes", bytes(*other));
    question.option("cuda_graph_bytes", "0");  // outside the budget before 0.21, and no such log states all terms
    question.option("gpu_memory_utilization", std::to_string(*share));
    const Reply answer = plan(question.json());
    Figure row{record.id(),
               record.json.text("attention_kind"),
               "GiB of the budget",
               *memory,
               figure(answer, "kv_memory_bytes_per_gpu") / kGiB,
               false,
               false};
    // Unsloth prints a utilisation of its own making with two digits only.
    const bool rounded =
        holds(record.json.text("notes"), "two digits") || holds(record.json.text("weight_format"), "bnb");
    row.exact = std::abs(row.computed - row.printed) <= 0.021;
    CHECK(std::abs(row.computed - row.printed) <= (rounded ? 0.021 + 0.005 * *total : 0.021));
    CHECK(answer.root().get("kv_memory_bytes_per_gpu_range") == nullptr);  // nothing is estimated, so there is no range
    rows.push_back(row);
  }
  print_rows(rows, "Budgets");
  CHECK(rows.size() >= 15);
}

// ---- from end to end -----------------------------------------------------------------------------------------------

namespace {

/// Names in the records, as the catalogue has them.
const std::map<std::string, std::string> kGpuCounts = {
    {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
    {"Tesla T4", "t4-16gb"},
    {"T4", "t4-16gb"},
    {"T4 class", "t4-16gb"},
    {"RTX 3090", "rtx-3090"},
    {"RTX 4090", "rtx-4090"},
    {"RTX 5090", "rtx-5090"},
    {"A10", "a10-24gb"},
    {"L4", "l4-24gb"},
    {"A100 40GB", "a100-sxm-40gb"},
    {"A100 40GB class", "a100-sxm-40gb"},
    {"A100 80GB PCIe", "a100-pcie-80gb"},
    {"A100 80GB", "a100-sxm-80gb"},
    {"H100 80GB", "h100-sxm-80gb"},
    {"H800", "h100-sxm-80gb"},
    {"H100 NVL", "h100-nvl-94gb"},
    {"H20", "h20-96gb"},
    {"H200", "h200-sxm-141gb"},
    {"H200 class", "h200-sxm-141gb"},
    {"H20-3e/H200 class", "h200-sxm-141gb"},
    {"GH200 96GB", "gh200-96gb"},
    {"MI300-class (ROCm)", "mi300x-192gb"},
};

/// vLLM's version when a log without one was posted: the last release before that month (github.com/vllm-project/vllm
/// releases).
std::string version_at(const std::string& date) {
  constexpr std::pair<const char*, const char*> kReleases[] = {
      {"2024-01", "0.2.6"},  {"2024-04", "0.3.3"},  {"2024-07", "0.4.3"},  {"2024-09", "0.5.4"},  {"2024-12", "0.6.4"},
      {"2025-01", "0.6.5"},  {"2025-02", "0.6.6"},  {"2025-03", "0.7.3"},  {"2025-04", "0.8.0"},  {"2025-06", "0.8.5"},
      {"2025-07", "0.9.1"},  {"2025-08", "0.9.2"},  {"2025-10", "0.10.2"}, {"2025-11", "0.11.0"}, {"2025-12", "0.11.2"},
      {"2026-02", "0.14.0"}, {"2026-04", "0.17.0"}, {"2026-05", "0.19.0"}, {"2026-06", "0.21.0"}, {"2026-07", "0.23.0"},
      {"2026-08", "0.25.0"}};
  for (const auto& [before, version] : kReleases) {
    if (date.substr(0, 7) < before) return version;
  }
  return "0.26.0";
}

/// Bytes of the checkpoint, as far as its format is a rule: embeddings and the output layer stay at 16 bits.
std::optional<double> checkpoint_bytes(const std::string& format, const KnownModel& model) {
  const double quantised = model.parameters - model.kept_16_bit;
  const double kept = 2 * model.kept_16_bit;
  if (format == "fp8" || format == "fp8-block" || format == "int8-w8a8" || format == "experts_int8") {
    return quantised + kept;
  }
  // A scale and a zero point of 2.5 bytes for each 128 values; NF4's double-quantised scales come to 1/32 bit a value.
  if (format == "awq-int4" || format == "gptq-int4" || format == "int4-w4a16") return quantised * 133 / 256 + kept;
  if (format == "bnb-4bit" || format == "4-bit" || format == "bitsandbytes-nf4") return quantised * 33 / 64 + kept;
  if (format == "nvfp4") return quantised * 9 / 16 + kept;
  if (format == "gguf-Q4_K_M") return model.parameters * 4.85 / 8;  // bits a weight of the mix (llama.cpp, quantize)
  return std::nullopt;
}

/// Why a record does not state enough for a prediction; empty when it does.
std::string lacking(const Record& record, const KnownModel& model) {
  const Reply& json = record.json;
  const std::string notes = json.text("notes");
  if (!kGpuCounts.contains(json.text("gpu")) && !json.has("total_gpu_mem_gib")) return "no GPU";
  if (!json.has("kv_tokens") && !json.has("kv_blocks") && !json.has("kv_mem_gib")) return "no cache printed";
  if (holds(notes, "fails")) return "did not start";
  if (holds(notes, "two digits")) return "utilisation and max_num_seqs are a notebook's own";
  if (record.id() == "AP001") return "images of another size than by default, before the change it reports";
  if (model.parameters == 0) return "parameters unknown";
  const std::string format = json.text("weight_format");
  const bool plain = holds(format, "16") && !holds(format, "int4");
  const bool native = !model.id.empty() && find_model(model.id)->native_weight_bytes != 0;
  if (!plain && !native && !checkpoint_bytes(format, model)) return "weights in an unknown format";
  const std::string version = json.has("engine_version") ? json.text("engine_version") : version_at(json.text("date"));
  const bool long_batches = !record.tensorrt() && (record.v0() || version < "0.8");
  if (long_batches && !json.has("max_model_len") && json.text("date") < "2024-12")
    return "no length, which V0 profiles";
  return {};
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  // The least value that at least this share of them does not exceed.
  return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
}

}  // namespace

TEST_CASE("end to end: the cache from model, GPU, flags and version alone") {
  const auto models = read_models();
  std::vector<double> errors;
  std::size_t inside = 0;
  std::printf("\nEnd to end\n%-6s %-16s %-22s %12s %12s %8s   range\n", "record", "model", "GPU", "printed", "computed",
              "error");
  for (const Record& record : read_records()) {
    CAPTURE(record.id());
    const Reply& json = record.json;
    const KnownModel& model = models.at(json.text("arch_key"));
    const std::string gpu = json.text("gpu");
    if (gpu.starts_with("TPU") || gpu.starts_with("Ascend")) continue;
    if (const std::string why = lacking(record, model); !why.empty()) {
      std::printf("%-6s %-16s left out: %s\n", record.id().c_str(), json.text("arch_key").c_str(), why.c_str());
      continue;
    }
    Question question = question_of(record, models);
    if (const auto named = kGpuCounts.find(gpu); named != kGpuCounts.end()) {
      question.text("gpu", named->second);
    } else {
      question.fields["gpu"] = "{\"memory_bytes\":" + bytes(*json.number("total_gpu_mem_gib")) + '}';
    }
    const std::string format = json.text("weight_format");
    if (const auto stored = checkpoint_bytes(format, model)) {
      question.number("weight_bytes", std::floor(*stored));
    } else if (holds(format, "16")) {
      question.text("weights", "bf16");
    }
    if (const auto share = json.number("gpu_memory_utilization")) {
      question.option("gpu_memory_utilization", std::to_string(*share));
    }
    if (const auto share = json.number("free_gpu_memory_fraction"); share && record.tensorrt()) {
      question.option("free_gpu_memory_fraction", std::to_string(*share));
    }
    if (!record.tensorrt()) {
      if (!question.options.contains("version")) question.option("version", '"' + version_at(json.text("date")) + '"');
      if (record.v0()) question.option("use_v1", "false");
    }
    const Reply answer = plan(question.json());
    const double pool = figure(answer, "kv_memory_bytes_per_gpu");
    // Where only the memory is printed, it stands for the tokens: they are proportional.
    const auto blocks = json.number("kv_blocks");
    const auto tokens = json.number("kv_tokens") ? json.number("kv_tokens")
                        : blocks                 ? std::optional(*blocks * record.block())
                                                 : std::nullopt;
    const double printed = tokens ? *tokens : *json.number("kv_mem_gib");
    const double computed = tokens ? figure(answer, "kv_tokens") : pool / kGiB;
    double low = computed;
    double high = computed;
    if (const json::Value* const range = answer.root().get("kv_memory_bytes_per_gpu_range")) {
      const auto [least, most] = bounds_of(*range);
      low = computed * least / pool;
      high = computed * most / pool;
    }
    const double error = computed / printed - 1;
    const bool within = low <= printed && printed <= high;
    errors.push_back(std::abs(error));
    inside += within ? 1 : 0;
    std::printf("%-6s %-16s %-22s %12.2f %12.2f %+7.1f%%   %.2f to %.2f%s\n", record.id().c_str(),
                json.text("arch_key").c_str(), gpu.c_str(), printed, computed, error * 100, low, high,
                within ? "" : "  OUTSIDE");
  }
  const double covered = static_cast<double>(inside) / static_cast<double>(errors.size());
  std::printf("%zu records: median error %.1f %%, 90th percentile %.1f %%, %.0f %% inside the range\n", errors.size(),
              percentile(errors, 0.5) * 100, percentile(errors, 0.9) * 100, covered * 100);
  CHECK(errors.size() >= 25);
  CHECK(percentile(errors, 0.5) <= 0.05);
  CHECK(percentile(errors, 0.9) <= 0.15);
  CHECK(covered >= 0.8);
}

// ---- rules and properties ------------------------------------------------------------------------------------------

TEST_CASE("windows, states and latents: blocks by the engine's rules") {
  SUBCASE("Gemma 3 27B: 1 full and 6 window groups of 10 layers, 8 of them padding") {
    const Reply answer = plan(R"({"engine":"vllm","model":"gemma-3-27b","gpu":"mi300x-192gb","context":4096,
      "options":{"num_gpu_blocks_override":89994,"version":"0.20"}})");
    CHECK(figure(answer, "kv_tokens") == 205'696);
    CHECK(figure(answer, "kv_tokens_other") == 205'014);
    CHECK(std::abs(figure(answer, "concurrency") - 89'994.0 / (256 + 6 * 257)) < 1e-6);
  }
  SUBCASE("before 0.9 every layer is stored full length") {
    const std::string ask =
        R"({"engine":"vllm","model":"gemma-3-27b","gpu":"mi300x-192gb","context":16384,"options":{"version":)";
    const double older = figure(plan(ask + "\"0.8.2\"}}"), "kv_reserved_per_sequence");
    CHECK(older == 62.0 * 16'384 * 16 * 128 * 2 * 2);
    CHECK(figure(plan(ask + "\"0.11\"}}"), "kv_reserved_per_sequence") < older);
    CHECK(figure(plan(ask + "\"0.11\",\"disable_hybrid_kv_cache_manager\":true}}"), "kv_reserved_per_sequence") ==
          older);
  }
  SUBCASE("the order of the runs does not matter") {
    const std::string full = R"({"kind":"full","count":1,"kv_heads":16,"key_width":128,"value_width":128})";
    const std::string window =
        R"({"kind":"window","count":5,"window":1024,"kv_heads":16,"key_width":128,"value_width":128})";
    std::string mixed;
    for (int i = 0; i < 10; ++i) mixed += window + ',' + full + ',';
    const auto ask = [](const std::string& layers) {
      return plan(
          R"({"engine":"vllm","gpu":"h100-sxm-80gb","context":65536,"options":{"kv_memory_bytes":20000000000},"model":{"layers":[)" +
          layers + "]}}");
    };
    const Reply one = ask(mixed + window);
    const Reply other =
        ask(R"({"kind":"window","count":55,"window":1024,"kv_heads":16,"key_width":128,"value_width":128},
      {"kind":"full","count":10,"kv_heads":16,"key_width":128,"value_width":128})");
    for (const auto* name : {"kv_tokens", "kv_blocks", "kv_reserved_per_sequence", "kv_bytes_per_sequence"}) {
      CHECK(figure(one, name) == figure(other, name));
    }
  }
  SUBCASE("a state enlarges the block; prefix caching keeps two in each group") {
    const std::string ask =
        R"({"engine":"vllm","model":"qwen3.6-35b-a3b","kv":"fp8","gpu":"rtx-5090","context":131072,"options":{"kv_memory_bytes":6420976107,)";
    const Reply align = plan(ask + "\"enable_prefix_caching\":true}}");
    CHECK(figure(align, "block_tokens") == 2096);
    CHECK(figure(align, "kv_tokens") == 567'978);
    CHECK(std::abs(figure(align, "concurrency") - 299.0 / (63 + 3 * 2)) < 1e-6);
    const Reply none = plan(ask + "\"enable_prefix_caching\":false}}");
    CHECK(std::abs(figure(none, "concurrency") - 299.0 / (63 + 3)) < 1e-6);
    const Reply all = plan(ask + "\"mamba_cache_mode\":\"all\"}}");
    CHECK(std::abs(figure(all, "concurrency") - 299.0 / (63 * 4)) < 1e-6);
    // States of half the width let a block be half as long.
    CHECK(figure(plan(ask + "\"mamba_ssm_cache_dtype\":\"float16\"}}"), "block_tokens") == 1072);
  }
  SUBCASE("V0 keeps Jamba's states beside the blocks") {
    const Reply answer =
        plan(R"({"engine":"vllm","model":"jamba-1.5-mini","kv":"fp8","gpu":"a100-pcie-80gb","context":16384,
      "weight_bytes":55268000000,"options":{"version":"0.5.5"}})");
    const double states = 28.0 * (131'072 + 24'576) * 2;
    CHECK(figure(answer, "kv_reserved_per_sequence") == 16'384.0 * 4 * 8 * 128 * 2 + states);
  }
  SUBCASE("a latent row is whole on each GPU; decode-context parallelism deals it out") {
    const std::string ask =
        R"({"engine":"vllm","model":"deepseek-r1","gpu":"h200-sxm-141gb","gpus":8,"context":32768,"options":{"kv_memory_bytes":50251117363)";
    const Reply copied = plan(ask + "}}");
    CHECK(figure(copied, "kv_bytes_per_sequence") == 8.0 * 70'272 * 32'768);
    const Reply dealt = plan(ask + ",\"dcp\":8}}");
    CHECK(figure(dealt, "kv_bytes_per_sequence") == 70'272.0 * 32'768);
    CHECK(figure(dealt, "kv_tokens") == 8 * figure(copied, "kv_tokens"));
  }
  SUBCASE("latent rows of 656 bytes, and an indexer's 132 on the layers that own one") {
    const Reply answer = plan(R"({"engine":"vllm","model":"glm-5.2","kv":"fp8_ds_mla","gpu":"gh200-96gb","context":6400,
      "options":{"kv_memory_bytes":30977451622,"block_size":64}})");
    CHECK(figure(answer, "kv_bytes_per_token") == 78 * 656 + 21 * 132);
  }
  SUBCASE("data parallel replicas each print their own tokens") {
    const std::string ask =
        R"({"engine":"vllm","model":"llama-3.1-8b","gpu":"h100-sxm-80gb","context":8192,"tensor_parallel":1,)";
    const Reply one = plan(ask + R"("options":{}})");
    const Reply three = plan(ask + R"("data_parallel":3,"options":{}})");
    CHECK(figure(three, "kv_tokens") == figure(one, "kv_tokens"));
    CHECK(figure(three, "sequences") == 3 * figure(one, "sequences"));
  }
  SUBCASE("TensorRT-LLM rounds up to blocks of 32 tokens, 64 before 0.17") {
    const std::string ask =
        R"({"engine":"tensorrt-llm","model":"llama-2-7b","gpu":"h100-nvl-94gb","gpus":2,"context":4096,
      "options":{"free_memory_bytes":91884000000)";
    CHECK(figure(plan(ask + "}}"), "kv_tokens") == 315'488);
    CHECK(figure(plan(ask + ",\"version\":\"0.13\"}}"), "block_tokens") == 64);
  }
}

TEST_CASE("reserved covers written, and the gaps say why, for every model") {
  const std::string_view versions[] = {"\"version\":\"0.6.3\"", "\"version\":\"0.11.2\"", "\"version\":\"0.29\"", ""};
  constexpr int kCounts[] = {1, 2, 8};
  std::size_t turn = 0;
  for (const auto& entry : catalogue()) {
    CAPTURE(entry.id);
    for (const std::string_view engine : {"vllm", "tensorrt-llm"}) {
      for (const std::string_view version : versions) {
        // Each model meets each version, and each number of GPUs: all with all would take minutes under the sanitizers.
        const int gpus = kCounts[turn++ % std::size(kCounts)];
        double before = 0;
        for (const int context : {1, 1000, 4097, 131'072}) {
          Question question;
          question.text("engine", std::string(engine));
          question.text("model", std::string(entry.id));
          question.text("gpu", "h200-sxm-141gb");
          question.number("gpus", gpus);
          question.number("context", context);
          std::string request = question.json();
          request.insert(request.size() - 2, version);
          const Reply answer = plan(request);
          const auto [field, code] = refusal(answer);
          if (!field.empty()) {
            const bool named = field == "tensor_parallel" || field == "model";
            CHECK_MESSAGE(named, field << ' ' << code << ' ' << request);
            continue;
          }
          const double reserved = figure(answer, "kv_reserved_per_sequence");
          const double written = figure(answer, "kv_bytes_per_sequence");
          REQUIRE_MESSAGE(reserved >= written, request);
          REQUIRE(reserved >= before);
          before = reserved;
          double gaps = 0;
          for (const auto& gap : *answer.root().get("gaps")) gaps += *Reply::number_of(gap.get("bytes"));
          REQUIRE_MESSAGE(gaps == reserved - written, request);
        }
      }
    }
  }
}

TEST_CASE("more memory never holds less, longer conversations never fit more often, wider formats never take less") {
  for (const std::string_view model :
       {"llama-3.1-8b", "gemma-3-12b", "qwen3.5-27b", "deepseek-v2-lite", "gpt-oss-20b"}) {
    CAPTURE(model);
    for (const std::string_view engine : {"vllm", "tensorrt-llm"}) {
      const auto ask = [&](double gib, double context, std::string_view kv) {
        return plan(R"({"engine":")" + std::string(engine) + R"(","model":")" + std::string(model) +
                    R"(","gpu":{"memory_bytes":)" + bytes(gib) + R"(},"context":)" + whole(context) + R"(,"kv":")" +
                    std::string(kv) + "\"}");
      };
      double tokens = 0;
      for (double gib = 64; gib <= 192; gib += 8) {
        // One class of card: the defaults of small and large ones differ.
        if (gib < 72) continue;
        const double more = figure(ask(gib, 8192, "bf16"), "kv_tokens");
        CHECK(more >= tokens);
        tokens = more;
      }
      double fit = 1e18;
      for (double context = 512; context <= 262'144; context *= 2) {
        const double fewer = figure(ask(141, context, "bf16"), "sequences");
        CHECK(fewer <= fit);
        fit = fewer;
      }
      double bytes_before = 0;
      for (const std::string_view kv : {"fp8", "bf16", "fp32"}) {
        const double reserved = figure(ask(141, 32'768, kv), "kv_reserved_per_sequence");
        CHECK(reserved >= bytes_before);
        bytes_before = reserved;
      }
      const Reply estimated = ask(80, 8192, "bf16");
      const json::Value* const range = estimated.root().get("kv_memory_bytes_per_gpu_range");
      REQUIRE(range != nullptr);
      const auto [low, high] = bounds_of(*range);
      CHECK(low <= figure(estimated, "kv_memory_bytes_per_gpu"));
      CHECK(figure(estimated, "kv_memory_bytes_per_gpu") <= high);
      CHECK(estimated.root().get("confidence")->get("kv_memory_bytes")->text == "estimate");
    }
  }
}

TEST_CASE("bad flags are refused by field") {
  const auto refused = [](const std::string& rest) {
    return refusal(plan(R"({"engine":"vllm","model":"llama-3.1-8b","gpu":"h100-sxm-80gb",)" + rest + '}'));
  };
  using Refusal = std::pair<std::string, std::string>;
  CHECK(refused(R"("options":{"gpu_memory_utilization":0})") ==
        Refusal{"options.gpu_memory_utilization", "out_of_range"});
  CHECK(refused(R"("options":{"gpu_memory_utilization":1.01})") ==
        Refusal{"options.gpu_memory_utilization", "out_of_range"});
  CHECK(refused(R"("options":{"block_size":0})") == Refusal{"options.block_size", "out_of_range"});
  CHECK(refused(R"("options":{"kv_cache_memory_bytes":90000000000})") ==
        Refusal{"options.kv_memory_bytes", "out_of_range"});
  CHECK(refused(R"("options":{"num_gpu_blocks_override":900000000})") ==
        Refusal{"options.num_gpu_blocks_override", "out_of_range"});
  CHECK(refused(R"("tensor_parallel":3)") == Refusal{"tensor_parallel", "not_divisible"});
  CHECK(refused(R"("tensor_parallel":8,"options":{"dcp":3})") ==
        Refusal{"options.decode_context_parallel_size", "not_divisible"});
  CHECK(refused(R"("tensor_parallel":8,"options":{"dcp":2})") ==
        Refusal{"options.decode_context_parallel_size", "not_divisible"});
  CHECK(refused(R"("tensor_parallel":16,"options":{"dcp":2})") == Refusal{});
  CHECK(refused(R"("options":{"mamba_cache_mode":"some"})") == Refusal{"options.mamba_cache_mode", "unknown_id"});
  CHECK(refused(R"("options":{"version":"new"})") == Refusal{"options.version", "malformed"});
  CHECK(refused(R"("options":{"mem_fraction_static":0.9})") == Refusal{"options.mem_fraction_static", "unknown_id"});
  CHECK(refusal(plan(R"({"engine":"vllm","model":"gemma-3-27b","gpus":16,"gpu":"h100-sxm-80gb","options":{"dcp":2}})"))
            .first != "");
  CHECK(refusal(plan(R"({"engine":"vllm","model":"qwen3.5-27b","gpu":"h100-sxm-80gb",
    "options":{"disable_hybrid_kv_cache_manager":true}})")) ==
        Refusal{"options.disable_hybrid_kv_cache_manager", "conflict"});
  CHECK(refusal(plan(R"({"engine":"tensorrt-llm","model":"llama-3.1-8b","gpu":"h100-sxm-80gb",
    "options":{"free_memory_bytes":90000000000}})")) == Refusal{"options.free_memory_bytes", "out_of_range"});
  CHECK(refusal(plan(R"({"engine":"tensorrt-llm","model":"mamba-130m","gpu":"h100-sxm-80gb"})")) ==
        Refusal{"model", "unsupported"});
}

TEST_CASE("hostile sizes end in an answer or an error") {
  const char* const shapes[] = {
      R"({"kind":"full","count":65536,"kv_heads":65536,"key_width":16777216,"value_width":16777216})",
      R"({"kind":"window","count":65536,"window":2147483648,"kv_heads":65536,"key_width":16777216,"value_width":1})",
      R"({"kind":"recurrent","count":65536,"state_values":281474976710656,"state_format":"fp32"})",
      R"({"kind":"compressed","count":3,"tokens_per_entry":2147483648,"kv_heads":1,"key_width":1,"value_width":0})",
      R"({"kind":"cross","count":7,"source_tokens":2147483648,"kv_heads":1,"key_width":1,"value_width":0})",
      R"({"kind":"full","count":1,"kv_heads":1,"key_width":1,"value_width":0})",
  };
  for (const std::string_view engine : {"vllm", "tensorrt-llm"}) {
    for (const char* const one : shapes) {
      for (const char* const other : shapes) {
        for (const char* const rest : {"", R"("pipeline_parallel":1000000,)", R"("tensor_parallel":65536,)"}) {
          for (const char* const context : {"1", "2147483648"}) {
            const Reply answer =
                plan(R"({"engine":")" + std::string(engine) + R"(","gpu":{"memory_bytes":9007199254740991},)" + rest +
                     R"("context":)" + context + R"(,"model":{"layers":[)" + one + ',' + other +
                     R"(]},"options":{"kv_memory_bytes":9007199254740991}})");
            const bool ended = answer.has("error") ||
                               figure(answer, "kv_reserved_per_sequence") >= figure(answer, "kv_bytes_per_sequence");
            CHECK(ended);
          }
        }
      }
    }
  }
}
