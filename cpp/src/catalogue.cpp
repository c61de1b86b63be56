#include "kvcap/catalogue.hpp"

#include <algorithm>
#include <array>

#include "kvcap/deployment.hpp"
#include "kvcap/engine.hpp"
#include "kvcap/json.hpp"
#include "table.hpp"

namespace kvcap {
namespace {

constexpr std::string_view kRows =
#include "catalogue_data.inc"
    ;

std::vector<CatalogueEntry> read_rows() {
  std::vector<CatalogueEntry> rows;
  rows.reserve(static_cast<std::size_t>(std::ranges::count(kRows, '\n')));
  for (TableReader field(kRows); !field.done();) {
    CatalogueEntry entry;
    entry.id = field.text();
    entry.hub_id = field.text();
    entry.name = field.text();
    entry.family = field.text();
    entry.layers = field.text();
    entry.parameters = field.whole();
    entry.active_parameters = field.whole();
    entry.native_weight_bytes = field.whole();
    entry.max_context = field.whole();
    entry.layer_count = field.count();
    entry.query_heads = field.count();
    entry.vocabulary = field.count();
    entry.multimodal = field.whole() != 0;
    entry.native_weights = field.text();
    entry.core = field.whole() != 0;
    rows.push_back(entry);
  }
  return rows;
}

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letters(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

/// Takes the next word of a name whose words are joined by dashes, passing over those that tell a tuned model from its
/// base: both have one shape. Empty at the end.
std::string_view next_word(std::string_view& name) noexcept {
  constexpr std::array<std::string_view, 7> kVariants = {"meta", "instruct", "it", "chat", "hf", "base", "pt"};
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('-'), name.size());
    const std::string_view word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    const auto is = [word](std::string_view variant) { return same_letters(word, variant); };
    if (std::ranges::none_of(kVariants, is)) return word;
  }
  return {};
}

/// "Llama-3.1-8B" and "Meta-Llama-3.1-8B-Instruct" name one shape.
bool same_variant(std::string_view a, std::string_view b) noexcept {
  for (;;) {
    const std::string_view x = next_word(a);
    const std::string_view y = next_word(b);
    if (!same_letters(x, y)) return false;
    if (x.empty()) return true;
  }
}

/// Reads one run of the short notation from left to right.
class RunReader {
 public:
  explicit RunReader(std::string_view run) noexcept : rest_(run) {}

  Result<LayerRun> read() {
    LayerRun run;
    run.count = whole(kMaxLayers, 1);
    const auto kind = find_kind(word());
    if (!kind) return refuse();
    run.kind = *kind;
    switch (run.kind) {
      case LayerKind::full: heads(run); break;
      case LayerKind::window:
      case LayerKind::chunked:
        run.window_tokens = whole(kMaxTokens, 1);
        heads(run);
        break;
      case LayerKind::latent: latent(run); break;
      case LayerKind::compressed:
        run.tokens_per_entry = whole(kMaxTokens, 1);
        if (take(" latent")) {
          latent(run);
        } else {
          heads(run);
        }
        break;
      case LayerKind::cross:
        run.source_tokens = whole(kMaxTokens, 0);
        heads(run);
        break;
      case LayerKind::recurrent:
        run.state_values = values(run.state_format);
        run.conv_values = values(run.conv_format);
        break;
      case LayerKind::shared:
      case LayerKind::none: break;
    }
    if (!fine_ || !rest_.empty()) return refuse();
    return run;
  }

 private:
  [[nodiscard]] std::unexpected<Error> refuse() const {
    return fail(ErrorCode::malformed, "layers",
                "is not a run of layers from \"" + std::string(rest_.substr(0, 40)) + "\" on");
  }
  bool take(std::string_view text) noexcept {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view word() noexcept {
    if (!take(" ")) return {};
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(found.size());
    return found;
  }
  u64 digits(u64 max, u64 min) noexcept {
    u64 value = 0;
    std::size_t length = 0;
    while (length < rest_.size() && rest_[length] >= '0' && rest_[length] <= '9' && value <= max) {
      value = value * 10 + static_cast<u64>(rest_[length++] - '0');
    }
    fine_ = fine_ && length != 0 && value >= min && value <= max;
    rest_.remove_prefix(length);
    return value;
  }
  /// A number after a space, or at the start of the run.
  u32 whole(u64 max, u64 min) noexcept {
    take(" ");
    return static_cast<u32>(digits(max, min));
  }
  void heads(LayerRun& run) noexcept {
    run.kv_heads = whole(kMaxHeads, 1);
    fine_ = take("x") && fine_;
    run.key_width = static_cast<u32>(digits(kMaxWidth, 1));
    run.value_width = take("/") ? static_cast<u32>(digits(kMaxWidth, 0)) : run.key_width;
    indexer(run);
  }
  void latent(LayerRun& run) noexcept {
    run.latent_width = whole(kMaxWidth, 1);
    if (take(":")) run.latent_value_width = static_cast<u32>(digits(run.latent_width, 1));
    indexer(run);
    if (!rest_.empty()) {
      run.expanded_heads = whole(kMaxHeads, 1);
      fine_ = take("x") && fine_;
      run.expanded_key_width = static_cast<u32>(digits(kMaxWidth, 1));
      run.expanded_value_width = take("/") ? static_cast<u32>(digits(kMaxWidth, 1)) : run.expanded_key_width;
    }
  }
  void indexer(LayerRun& run) noexcept {
    if (take("+")) run.indexer_width = static_cast<u32>(digits(kMaxWidth, 1));
  }
  /// "786432:fp32", or "0" for a part that is not there.
  u64 values(const Format*& format) noexcept {
    take(" ");
    const u64 count = digits(kMaxState, 0);
    if (take(":")) {
      const std::string_view id = rest_.substr(0, rest_.find(' '));
      rest_.remove_prefix(id.size());
      format = find_format(id);
    }
    fine_ = fine_ && (format != nullptr) == (count != 0);
    if (format == nullptr) format = find_format("bf16");  // of no values; as in requests
    return count;
  }

  std::string_view rest_;
  bool fine_ = true;
};

void write_choice(json::Writer& out, std::string_view choices, u64 wanted) {
  u64 index = 0;
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find(' '), choices.size());
    if (index++ == wanted) out.text(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
}

constexpr std::string_view option_kind_name(OptionKind kind) noexcept {
  switch (kind) {
    case OptionKind::whole: return "whole";
    case OptionKind::fraction: return "fraction";
    case OptionKind::truth: return "truth";
    case OptionKind::choice: return "choice";
    case OptionKind::bytes: return "bytes";
    case OptionKind::version: return "version";
  }
  return "whole";
}

/// A number of the option as it stands in a request: shares are held in billionths.
void write_amount(json::Writer& out, OptionKind kind, u64 value) {
  if (kind == OptionKind::fraction) {
    out.decimal(value / 1000);
  } else {
    out.number(value);
  }
}

void write_fallback(json::Writer& out, const OptionSpec& spec) {
  if (!spec.has_fallback) {
    out.null();
  } else if (spec.kind == OptionKind::truth) {
    out.boolean(spec.fallback != 0);
  } else if (spec.kind == OptionKind::choice) {
    write_choice(out, spec.choices, spec.fallback);
  } else if (spec.kind == OptionKind::version) {
    out.text(digits(spec.fallback / 1'000'000) + "." + digits(spec.fallback / 1000 % 1000) + "." +
             digits(spec.fallback % 1000));
  } else {
    write_amount(out, spec.kind, spec.fallback);
  }
}

void write_option(json::Writer& out, const OptionSpec& spec) {
  out.begin_object();
  out.key("name").text(spec.name);
  out.key("kind").text(option_kind_name(spec.kind));
  write_fallback(out.key("fallback"), spec);
  write_amount(out.key("min"), spec.kind, spec.min);
  write_amount(out.key("max"), spec.kind, spec.max);
  out.key("choices").begin_array();
  const auto count = spec.choices.empty() ? 0 : std::ranges::count(spec.choices, ' ') + 1;
  for (int i = 0; i < count; ++i) write_choice(out, spec.choices, static_cast<u64>(i));
  out.end_array();
  out.key("unit").text(spec.unit);
  out.key("offered").boolean(spec.offered);
  out.end_object();
}

/// A number, or null where 0 stands for unknown.
void write_known(json::Writer& out, u64 value) {
  if (value == 0) {
    out.null();
  } else {
    out.number(value);
  }
}

}  // namespace

std::span<const CatalogueEntry> catalogue() noexcept {
  static const std::vector<CatalogueEntry> rows = read_rows();
  return rows;
}

const CatalogueEntry* find_model(std::string_view id) noexcept {
  for (const auto& entry : catalogue()) {
    if (entry.id == id) return &entry;
  }
  const std::size_t slash = id.find('/');
  const bool has_owner = slash != std::string_view::npos;
  const std::string_view name = has_owner ? id.substr(slash + 1) : id;
  const auto find = [&](auto same) -> const CatalogueEntry* {
    for (const auto& entry : catalogue()) {
      const std::size_t end = entry.hub_id.find('/');
      if (has_owner && !same_letters(entry.hub_id.substr(0, end), id.substr(0, slash))) continue;
      if (same(entry.hub_id.substr(end + 1), name)) return &entry;
    }
    return nullptr;
  };
  const CatalogueEntry* const exact = find(same_letters);
  return exact != nullptr ? exact : find(same_variant);
}

Result<std::vector<LayerRun>> parse_layers(std::string_view text) {
  std::vector<LayerRun> runs;
  for (;;) {
    const std::size_t end = std::min(text.find("; "), text.size());
    auto run = RunReader(text.substr(0, end)).read();
    if (!run) return std::unexpected(std::move(run.error()));
    runs.push_back(*run);
    if (end == text.size()) return runs;
    text.remove_prefix(end + 2);
  }
}

Result<Model> model_of(const CatalogueEntry& entry) {
  auto layers = parse_layers(entry.layers);
  if (!layers) return std::unexpected(std::move(layers.error()));
  Model model;
  model.id = entry.id;
  model.name = entry.name;
  model.family = entry.family;
  model.source = entry.hub_id;
  model.layers = std::move(*layers);
  model.layer_count = entry.layer_count;
  model.query_heads = entry.query_heads;
  model.vocabulary = entry.vocabulary;
  model.multimodal = entry.multimodal;
  model.max_context = entry.max_context;
  if (entry.parameters != 0) model.parameters = entry.parameters;
  if (entry.active_parameters != 0) model.active_parameters = entry.active_parameters;
  model.native_weights = find_format(entry.native_weights);
  if (entry.native_weight_bytes != 0) model.native_weight_bytes = Bytes{entry.native_weight_bytes};
  return model;
}

std::string catalogue_json(const Features& features) {
  json::Writer out;
  out.begin_object();
  out.key("models").begin_array();
  for (const auto& entry : catalogue()) {
    out.begin_object();
    out.key("id").text(entry.id);
    out.key("hub_id").text(entry.hub_id);
    out.key("name").text(entry.name);
    out.key("family").text(entry.family);
    write_known(out.key("max_context"), entry.max_context);
    write_known(out.key("query_heads"), entry.query_heads);
    out.key("native_weights").text(entry.native_weights);
    out.key("core").boolean(entry.core);
    out.end_object();
  }
  out.end_array();
  out.key("gpus").begin_array();
  for (const auto& gpu : gpus()) {
    out.begin_object();
    out.key("id").text(gpu.id);
    out.key("vendor").text(gpu.vendor);
    out.key("name").text(gpu.name);
    out.key("kind").text(gpu.kind);
    out.end_object();
  }
  out.end_array();
  out.key("formats").begin_array();
  for (const auto& format : formats()) {
    out.begin_object();
    out.key("id").text(format.id);
    out.key("bits").number(format.bits);
    out.key("weights").boolean(format.weights);
    out.key("cache").boolean(format.cache);
    out.key("latent_only").boolean(format.latent_only);
    out.end_object();
  }
  out.end_array();
  out.key("engines").begin_array();
  for (const auto& engine : features.engines) {
    out.begin_object();
    out.key("id").text(engine.name);
    out.key("options").begin_array();
    for (const auto& spec : engine.options) write_option(out, spec);
    out.end_array();
    out.end_object();
  }
  out.end_array();
  out.key("limits").begin_object();
  out.key("max_context").number(kMaxTokens);
  out.key("max_gpus").number(kMaxGpus);
  out.end_object();
  out.end_object();
  return out.take();
}

}  // namespace kvcap
