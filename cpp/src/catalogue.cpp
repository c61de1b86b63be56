#include "kvcap/catalogue.hpp"

#include <algorithm>
#include <array>

#include "kvcap/deployment.hpp"
#include "kvcap/engine.hpp"
#include "kvcap/json.hpp"
#include "letters.hpp"
#include "table.hpp"

namespace kvcap {
namespace {

constexpr std::string_view kTable =
#ifdef KVCAP_CORE_KERNEL
#include "catalogue_first_data.inc"
#else
#include "catalogue_data.inc"
#endif
    ;
struct Column {
  enum : u32 {
    family,
    owner,
    max_context,
    query_heads,
    native_weights,
    layers,
    name,  // from here on empty cells are empty
    id,
    hub_name,
    layer_count,
    parameters,
    active_parameters,
    native_weight_bytes,
    count
  };
};
constexpr u32 kCount = row_count(kTable, Column::count);

/// What only engines and the quiz look at.
constexpr std::string_view kProfile =
#include "catalogue_profile_data.inc"
    ;
struct ProfileColumn {
  enum : u32 { vocabulary, multimodal, hidden_size, core, count };
};

constexpr u32 kIdRoom = 128;  // for both ids of a row, as the generator checks

/// The sum of the runs' counts. A count ends at the first space, a run at a semicolon and a space.
u32 layers_in(std::string_view runs) noexcept {
  u32 sum = 0;
  u32 count = 0;
  bool counting = true;
  for (const char c : runs) {
    if (c == ';') {
      counting = true;
      count = 0;
    } else if (counting && c != ' ') {
      count = count * 10 + static_cast<u32>(c - '0');
    } else if (count != 0 && counting) {
      sum += count;
      counting = false;
    }
  }
  return sum;
}

/// "=" stands for the row's name, "~" for the same in small letters.
std::string_view hub_id_of(const TableReader& cells, TextPool& pool) noexcept {
  pool.put(cells.text(Column::owner)).put("/");
  std::string_view rest = cells.text(Column::hub_name);
  const bool lower = rest.starts_with('~');
  if (lower || rest.starts_with('=')) {
    pool.put_dashed(cells.text(Column::name), lower);
    rest.remove_prefix(1);
  }
  return pool.put(rest).take();
}

struct Table {
  std::array<CatalogueEntry, kCount> rows{};
  char texts[kCount * kIdRoom]{};

  Table() noexcept {
    TableReader cells(kTable, Column::count, Column::name);
    TextPool pool(texts);
    for (auto& entry : rows) {
      cells.next_row();
      entry.name = cells.text(Column::name);
      entry.id = pool.id(cells.text(Column::id), entry.name);
      entry.hub_id = hub_id_of(cells, pool);
      entry.family = cells.text(Column::family);
      entry.layers = cells.text(Column::layers);
      entry.parameters = cells.whole(Column::parameters);
      entry.active_parameters = cells.whole(Column::active_parameters);
      entry.native_weight_bytes = cells.whole(Column::native_weight_bytes);
      entry.max_context = cells.whole(Column::max_context);
      entry.layer_count = cells.count(Column::layer_count);
      if (entry.layer_count == 0) entry.layer_count = layers_in(entry.layers);
      entry.query_heads = cells.count(Column::query_heads);
      entry.native_weights = cells.text(Column::native_weights);
    }
    if constexpr (!kCoreKernel) {
      TableReader profile(kProfile, ProfileColumn::count, 0);
      for (auto& entry : rows) {
        profile.next_row();
        entry.vocabulary = profile.count(ProfileColumn::vocabulary);
        entry.multimodal = profile.whole(ProfileColumn::multimodal) != 0;
        entry.hidden_size = profile.count(ProfileColumn::hidden_size);
        entry.core = profile.whole(ProfileColumn::core) != 0;
      }
    }
  }
};

/// Takes what stands before the first `end`, or all of it.
std::string_view take_until(std::string_view& text, char end) noexcept {
  std::size_t length = 0;
  while (length < text.size() && text[length] != end) ++length;
  const std::string_view taken(text.data(), length);
  text.remove_prefix(length);
  return taken;
}

/// Takes the next word of a name whose words are joined by dashes, passing over those that tell a tuned model from its
/// base: both have one shape. Empty at the end.
std::string_view next_word(std::string_view& name) noexcept {
  constexpr std::array<std::string_view, 7> kVariants = {"meta", "instruct", "it", "chat", "hf", "base", "pt"};
  while (!name.empty()) {
    const std::string_view word = take_until(name, '-');
    if (!name.empty()) name.remove_prefix(1);
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
                Text() << "is not a run of layers from \"" << rest_.substr(0, 40) << "\" on");
  }
  bool take(std::string_view text) noexcept {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view word() noexcept {
    if (!take(" ")) return {};
    return take_until(rest_, ' ');
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
    if (take(":")) format = find_format(take_until(rest_, ' '));
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
    case OptionKind::whole: break;
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
    return;
  }
  if constexpr (!kCoreKernel) {  // the textbook's are all numbers
    if (spec.kind == OptionKind::truth) {
      out.boolean(spec.fallback != 0);
      return;
    }
    if (spec.kind == OptionKind::choice) {
      write_choice(out, spec.choices, spec.fallback);
      return;
    }
  }
  write_amount(out, spec.kind, spec.fallback);
}

template <class Where>
void write_source(json::Writer& out, [[maybe_unused]] Where source) {
  if constexpr (!kCoreKernel) out.key("source").text(source);
}

void write_option(json::Writer& out, const OptionSpec& spec) {
  out.begin_object();
  out.key("name").text(spec.name);
  out.key("kind").text(option_kind_name(spec.kind));
  write_fallback(out.key("fallback"), spec);
  write_amount(out.key("min"), spec.kind, spec.min);
  write_amount(out.key("max"), spec.kind, spec.max);
  out.key("choices").begin_array();
  const auto count = kCoreKernel || spec.choices.empty() ? 0 : std::ranges::count(spec.choices, ' ') + 1;
  for (int i = 0; i < count; ++i) write_choice(out, spec.choices, static_cast<u64>(i));
  out.end_array();
  out.key("unit").text(spec.unit);
  out.key("offered").boolean(spec.offered);
  write_source(out, spec.source);
  out.end_object();
}

void put(json::Writer& out, Label key, const std::string_view& text) { out.key(key).text(text); }
void put_truth(json::Writer& out, Label key, bool truth) { out.key(key).boolean(truth); }

/// A number, or null where 0 stands for unknown.
void put_known(json::Writer& out, Label key, u64 value) {
  out.key(key);
  if (value == 0) {
    out.null();
  } else {
    out.number(value);
  }
}

}  // namespace

std::span<const CatalogueEntry> catalogue() noexcept {
  static const Table table;
  return table.rows;
}

const CatalogueEntry* find_model(std::string_view id) noexcept {
  for (const auto& entry : catalogue()) {
    if (entry.id == id) return &entry;
  }
  std::string_view name = id;
  const std::string_view owner = take_until(name, '/');
  const bool has_owner = !name.empty();
  for (const auto same : {same_letters, same_variant}) {
    for (const auto& entry : catalogue()) {
      std::string_view hub_name = entry.hub_id;
      if (!same_letters(take_until(hub_name, '/'), owner) && has_owner) continue;
      if (same(hub_name.substr(1), has_owner ? name.substr(1) : id)) return &entry;
    }
  }
  return nullptr;
}

Result<List<LayerRun>> parse_layers(std::string_view text) {
  List<LayerRun> runs;
  for (;;) {
    auto run = RunReader(take_until(text, ';')).read();
    if (!run) return std::unexpected(std::move(run.error()));
    runs.push_back(*run);
    if (text.empty()) return runs;
    if (!text.starts_with("; ")) return fail(ErrorCode::malformed, "layers", "has runs that no space parts");
    text.remove_prefix(2);
  }
}

std::optional<Error> fill_model(const CatalogueEntry& entry, Model& model) {
  auto layers = parse_layers(entry.layers);
  if (!layers) return std::move(layers.error());
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
  return std::nullopt;
}

Result<Model> model_of(const CatalogueEntry& entry) {
  Result<Model> model(std::in_place);
  if (auto refused = fill_model(entry, *model)) model = std::unexpected(std::move(*refused));
  return model;
}

json::Written catalogue_json(const Features& features) {
  json::Writer out;
  out.begin_object();
  out.key("models").begin_array();
  for (const auto& entry : catalogue()) {
    out.begin_object();
    put(out, "id", entry.id);
    put(out, "hub_id", entry.hub_id);
    put(out, "name", entry.name);
    put(out, "family", entry.family);
    put_known(out, "max_context", entry.max_context);
    put_known(out, "query_heads", entry.query_heads);
    put(out, "native_weights", entry.native_weights);
    put_truth(out, "core", entry.core);
    out.end_object();
  }
  out.end_array();
  out.key("gpus").begin_array();
  for (const auto& gpu : gpus()) {
    out.begin_object();
    put(out, "id", gpu.id);
    put(out, "vendor", gpu.vendor);
    put(out, "name", gpu.name);
    put(out, "kind", gpu.kind);
    out.end_object();
  }
  out.end_array();
  out.key("formats").begin_array();
  for (const auto& format : formats()) {
    out.begin_object();
    put(out, "id", format.id);
    out.key("bits").number(format.bits);
    put_truth(out, "weights", format.weights);
    put_truth(out, "cache", format.cache);
    put_truth(out, "latent_only", format.latent_only);
    out.end_object();
  }
  out.end_array();
  out.key("engines").begin_array();
  for (const auto& engine : features.engines) {
    out.begin_object();
    put(out, "id", engine.name);
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
