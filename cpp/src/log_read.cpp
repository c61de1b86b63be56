// From the figures of a log to one answer: what was printed, which deployment it is, and how the rules compare.
#include <algorithm>
#include <optional>
#include <utility>

#include "kvcap/catalogue.hpp"
#include "kvcap/log.hpp"
#include "kvcap/plan.hpp"
#include "log_scan.hpp"

namespace kvcap {
namespace {

using json::Writer;
using log::Family;
using log::Field;
using log::Found;
using log::Kind;
using log::Merge;
using enum log::Field;

constexpr u64 kBillion = 1'000'000'000;

// ---- figures of one start ------------------------------------------------------------------------------------------

/// One cache as llama.cpp prints it.
struct Cache {
  std::string_view kind = "full";  ///< full, window, latent, recurrent
  u32 line = 0;
  u64 cells = 0, layers = 0, seqs = 0, streams = 1, copies = 0;
  std::optional<u64> size, k, v, r, s;
  u64 k_tolerance = 0, v_tolerance = 0, r_tolerance = 0, s_tolerance = 0;
  std::string k_type, v_type;
  bool named = false;  ///< `kind` stands
  [[nodiscard]] u64 bytes() const {
    const u64 sum = k.value_or(0) + v.value_or(0) + r.value_or(0) + s.value_or(0);
    return sum != 0 ? sum : size.value_or(0);
  }
};

/// One pool as SGLang prints it.
struct Pool {
  u32 line = 0;
  int rank = -1;
  std::optional<u64> tokens, k, v, kv;
  u64 tolerance = 0;
};

struct Device {
  std::string name;
  std::optional<u64> kv, state, compute, model;
  [[nodiscard]] bool host() const {
    return name.starts_with("CPU") || name.ends_with("_Host") || name.ends_with("_Mapped");
  }
};

struct Figures {
  std::array<std::vector<const Found*>, log::kFields> of;
  std::array<const Found*, log::kFields> chosen{};
  std::vector<Cache> caches;
  std::vector<Pool> pools;
  std::vector<Device> devices;
  std::vector<int> ranks;  ///< those that said who they are
  bool draft = false;      ///< a draft model's figures were left aside
  bool decimal_labels = false;

  [[nodiscard]] const Found* operator[](Field field) const { return chosen[static_cast<std::size_t>(field)]; }
  [[nodiscard]] std::optional<u64> value(Field field) const {
    const Found* const one = (*this)[field];
    if (one == nullptr || one->value < 0) return std::nullopt;
    return static_cast<u64>(one->value);
  }
  [[nodiscard]] std::string_view text(Field field) const {
    const Found* const one = (*this)[field];
    return one != nullptr ? std::string_view(one->text) : std::string_view{};
  }
};

/// Ranks as one number, counted as launchers do: replica, stage, tensor rank.
struct RankNumbers {
  int tensor = 1, pipeline = 1;
  explicit RankNumbers(const log::Scan& scan) {
    for (const auto& one : scan.found) {
      tensor = std::max(tensor, one.rank.tensor + 1);
      pipeline = std::max(pipeline, one.rank.pipeline + 1);
    }
  }
  [[nodiscard]] int of(const log::Rank& rank) const {
    if (!rank.said()) return -1;
    const auto part = [](int n) { return std::max(n, 0); };
    return (part(rank.data) * pipeline + part(rank.pipeline)) * tensor + part(rank.tensor);
  }
};

bool is_cache_part(Field field) {
  switch (field) {
    case cells:
    case layers:
    case seqs:
    case streams:
    case rs_copies:
    case cache_size:
    case cache_k:
    case cache_v:
    case cache_latent:
    case cache_latent_t:
    case cache_type_k:
    case cache_type_v:
    case state_r:
    case state_s: return true;
    default: return false;
  }
}

/// Adds a part of a cache's message to the cache it belongs to.
void add_cache_part(Figures& to, const Found& part, std::string_view announced) {
  const auto value = static_cast<u64>(part.value);
  const auto fresh = [&]() -> Cache& {
    Cache& cache = to.caches.emplace_back();
    cache.line = part.line;
    if (!announced.empty()) {
      cache.kind = announced;
      cache.named = true;
    }
    return cache;
  };
  const bool opens = part.field == cache_size || part.field == cells;
  const auto continues = [&](const Cache& last) {
    if (part.field == cache_size) return last.line == part.line && last.size == value && !last.k && last.cells == 0;
    if (part.field == cells) return last.line == part.line && last.cells == 0 && !last.k && last.size.has_value();
    return true;
  };
  if (to.caches.empty() || (opens && !continues(to.caches.back()))) {
    // A shorter pattern sees the size of a message that was already read.
    if (part.field == cache_size && !to.caches.empty() && to.caches.back().line == part.line &&
        to.caches.back().size == value) {
      return;
    }
    fresh();
  }
  Cache& cache = to.caches.back();
  const auto recurrent = [&] {
    cache.kind = "recurrent";
    cache.named = true;
  };
  switch (part.field) {
    case cells: cache.cells = value; break;
    case layers: cache.layers = value; break;
    case seqs: cache.seqs = value; break;
    case streams: cache.streams = std::max<u64>(value, 1); break;
    case rs_copies:
      cache.copies = value;
      recurrent();
      break;
    case cache_size: cache.size = value; break;
    case cache_k:
      cache.k = value;
      cache.k_tolerance = part.tolerance;
      break;
    case cache_latent:
      cache.k = value;
      cache.k_tolerance = part.tolerance;
      cache.kind = "latent";
      cache.named = true;
      break;
    case cache_v:
    case cache_latent_t:
      cache.v = value;
      cache.v_tolerance = part.tolerance;
      break;
    case cache_type_k: cache.k_type = part.text; break;
    case cache_type_v: cache.v_type = part.text; break;
    case state_r:
      cache.r = value;
      cache.r_tolerance = part.tolerance;
      recurrent();
      break;
    case state_s:
      cache.s = value;
      cache.s_tolerance = part.tolerance;
      break;
    default: break;
  }
}

void add_device_part(Figures& to, std::string_view name, const Found& part) {
  auto device = std::ranges::find(to.devices, name, &Device::name);
  if (device == to.devices.end()) {
    to.devices.push_back({std::string(name), {}, {}, {}, {}});
    device = to.devices.end() - 1;
  }
  const auto value = static_cast<u64>(std::max<std::int64_t>(part.value, 0));
  switch (part.field) {
    // Caches of one device add up (full and window layers); buffers are reserved anew.
    case kv_buffer: device->kv = device->kv.value_or(0) + value; break;
    case state_buffer: device->state = device->state.value_or(0) + value; break;
    case compute_buffer: device->compute = std::max(device->compute.value_or(0), value); break;
    case model_buffer: device->model = device->model.value_or(0) + value; break;
    default: break;
  }
}

void add_pool_part(Figures& to, const Found& part, int rank) {
  const auto value = static_cast<u64>(std::max<std::int64_t>(part.value, 0));
  const bool opens = part.field == pool_tokens || (part.field == pool_k && (to.pools.empty() || to.pools.back().k));
  if (opens || to.pools.empty()) to.pools.push_back({part.line, rank, {}, {}, {}, {}, 0});
  Pool& pool = to.pools.back();
  pool.tolerance += part.tolerance;
  switch (part.field) {
    case pool_tokens: pool.tokens = value; break;
    case pool_k: pool.k = value; break;
    case pool_v: pool.v = value; break;
    case pool_kv: pool.kv = value; break;
    default: break;
  }
}

/// The start whose figures count: the last that printed a cache, or the only one.
u32 chosen_start(const log::Scan& scan) {
  u32 start = 0;
  for (const auto& one : scan.found) {
    switch (one.field) {
      case kv_tokens:
      case kv_blocks:
      case kv_memory:
      case cache_size:
      case kv_buffer:
      case pool_k:
      case pool_kv: start = std::max(start, one.start); break;
      default: break;
    }
  }
  return start;
}

Figures gather(const log::Scan& scan, const RankNumbers& numbers) {
  Figures out;
  const u32 start = chosen_start(scan);
  std::string_view path;
  std::string_view announced;
  std::string_view device_name;
  u32 device_match = 0;
  for (const auto& one : scan.found) {
    // What stands before the last start still names the machine.
    if (one.start != start && one.field != gpu && one.field != driver_memory && one.field != total_memory) continue;
    if (one.field == meta_path) {
      if (path.empty()) path = one.text;
      const bool draft = path != one.text;
      out.draft = out.draft || draft;
      if (draft) break;
      // The same model once more: what came before was a trial.
      out.caches.clear();
      out.devices.clear();
      continue;
    }
    if (one.field == Field::draft) {
      out.draft = true;
      break;
    }
    if (const int rank = numbers.of(one.rank); rank >= 0 && std::ranges::find(out.ranks, rank) == out.ranks.end()) {
      out.ranks.push_back(rank);
    }
    out.decimal_labels = out.decimal_labels || one.decimal_label;
    if (one.field == window_cells) announced = "window";
    if (one.field == base_cells) announced = "full";
    if (one.field == device) {
      device_name = one.text;
      device_match = one.match;
      continue;
    }
    if (is_cache_part(one.field)) {
      add_cache_part(out, one, announced);
      continue;
    }
    switch (one.field) {
      case kv_buffer:
      case state_buffer:
      case compute_buffer:
      case model_buffer:
        add_device_part(out, device_match == one.match ? device_name : std::string_view{}, one);
        continue;
      case pool_tokens:
      case pool_k:
      case pool_v:
      case pool_kv: add_pool_part(out, one, numbers.of(one.rank)); continue;
      default: break;
    }
    auto& values = out.of[static_cast<std::size_t>(one.field)];
    if (one.field == avail_before_load || one.field == avail_after_load || one.field == avail_pool_end) {
      // A second load of the same rank is that of a draft model.
      if (std::ranges::any_of(values, [&](const Found* other) { return other->rank == one.rank; })) {
        out.draft = true;
        continue;
      }
    }
    values.push_back(&one);
  }
  return out;
}

/// The rank with the smallest pool, as an index into the values of a field where ranks are not named.
struct Poorest {
  int rank = -1;
  std::size_t position = 0;
  std::size_t count = 0;
};

const Found* least(std::span<const Found* const> values) {
  const auto least = std::ranges::min_element(values, {}, [](const Found* one) { return one->value; });
  return least == values.end() ? nullptr : *least;
}

void choose(Figures& figures, const RankNumbers& numbers) {
  const auto values = [&](Field field) -> std::vector<const Found*>& {
    return figures.of[static_cast<std::size_t>(field)];
  };
  Poorest poorest;
  for (const Field field : {kv_memory, avail_after_load, kv_blocks, kv_tokens}) {
    const auto& all = values(field);
    if (all.size() < 2) continue;
    const Found* const one = least(all);
    poorest.rank = numbers.of(one->rank);
    poorest.position = static_cast<std::size_t>(std::ranges::find(all, one) - all.begin());
    poorest.count = all.size();
    break;
  }
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const auto& all = figures.of[i];
    if (all.empty()) continue;
    const auto field = static_cast<Field>(i);
    const Found*& chosen = figures.chosen[i];
    switch (log::spec_of(field).merge) {
      case Merge::first: chosen = all.front(); break;
      case Merge::last: chosen = all.back(); break;
      case Merge::parts: chosen = all.front(); break;
      case Merge::per_rank: {
        if (field == kv_memory || field == kv_tokens || field == kv_blocks || field == concurrency) {
          chosen = least(all);
          break;
        }
        const auto of_poorest = std::ranges::find_if(
            all, [&](const Found* one) { return poorest.rank >= 0 && numbers.of(one->rank) == poorest.rank; });
        if (of_poorest != all.end()) {
          chosen = *of_poorest;
        } else if (poorest.rank < 0 && poorest.count == all.size() && poorest.count > 1) {
          chosen = all[poorest.position];
        } else {
          chosen = all.front();
        }
        break;
      }
    }
  }
}

// ---- llama.cpp's caches --------------------------------------------------------------------------------------------

/// Values that `bytes` (± tolerance) hold in `format`, spread over `rows` rows; 0 where they are no whole number.
u64 row_values(u64 bytes, u64 tolerance, const Format& format, u64 rows) {
  if (rows == 0 || bytes == 0) return 0;
  const Wide per_value = Wide{format.block_bytes} * rows;
  const Wide low = Wide{bytes > tolerance ? bytes - tolerance : 0} * format.block_values;
  const Wide high = (Wide{bytes} + tolerance) * format.block_values;
  const Wide first = ceil_div(low, per_value);
  const Wide last = high / per_value;
  if (first > last || last > kMaxWidth) return 0;
  // The roundest number in the interval: widths are multiples of a head.
  for (Wide step = Wide{1} << 20; step > 1; step /= 2) {
    const Wide multiple = ceil_div(first, step) * step;
    if (multiple != 0 && multiple <= last) return static_cast<u64>(multiple);
  }
  return static_cast<u64>(first);
}

void complete_caches(Figures& figures) {
  std::erase_if(figures.caches, [](const Cache& cache) { return cache.bytes() == 0 && cache.cells == 0; });
  const u64 layer_count = figures.value(n_layer).value_or(0);
  const bool stateful = figures.text(n_head_kv) == "0";
  for (auto& cache : figures.caches) {
    if (cache.kind == "recurrent") continue;
    if (stateful) {
      // Before mid-2025 the states of RWKV and Mamba were printed as K and V.
      cache.kind = "recurrent";
      cache.r = std::exchange(cache.k, std::nullopt);
      cache.s = std::exchange(cache.v, std::nullopt);
      cache.r_tolerance = cache.k_tolerance;
      cache.s_tolerance = cache.v_tolerance;
      if (cache.layers == 0) cache.layers = layer_count;
      if (cache.cells == 0) cache.cells = figures.value(kv_cells).value_or(1);
      continue;
    }
    if (cache.cells == 0) cache.cells = figures.value(kv_cells).value_or(figures.value(n_ctx).value_or(0));
    if (cache.layers == 0) cache.layers = layer_count;
    if (cache.k_type.empty()) cache.k_type = figures.text(type_k);
    if (cache.v_type.empty()) cache.v_type = figures.text(type_v);
    if (!cache.named && cache.k && cache.v.value_or(1) == 0) cache.kind = "latent";
  }
}

u64 total_of(const std::vector<Cache>& caches) {
  u64 sum = 0;
  for (const auto& cache : caches) sum += cache.bytes();
  return sum;
}

// ---- names ---------------------------------------------------------------------------------------------------------

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

/// Words that say how a checkpoint is stored or tuned, not what shape it has.
constexpr std::string_view kStorageWords[] = {
    "awq",       "gptq",    "int4",     "int8",  "fp8",       "bf16",  "fp16",  "f16",       "gguf",  "bnb",
    "4bit",      "8bit",    "nf4",      "w4a16", "w8a8",      "w8a16", "nvfp4", "mxfp4",     "nvfp",  "dynamic",
    "block",     "unsloth", "instruct", "chat",  "it",        "hf",    "base",  "quantized", "exl2",  "marlin",
    "autoround", "mtp",     "ud",       "q2",    "q3",        "q4",    "q5",    "q6",        "q8",    "iq1",
    "iq2",       "iq3",     "iq4",      "k",     "m",         "s",     "l",     "xl",        "xs",    "xxs",
    "nl",        "0",       "1",        "r4",    "kss",       "ks",    "kt",    "kv",        "quant", "abliterated",
    "tensor",    "channel", "ds",       "mla",   "uncensored"};

const CatalogueEntry* find_named(std::string name) {
  if (name.empty()) return nullptr;
  if (const CatalogueEntry* const exact = find_model(name)) return exact;
  // "/models/Qwen3-8B", "models--Qwen--Qwen3-8B/snapshots/…", "unsloth/Llama-3.2-3B-Instruct"
  if (const std::size_t hub = name.find("models--"); hub != std::string::npos) {
    name.erase(0, hub + 8);
    name.erase(std::min(name.find('/'), name.size()));
    if (const std::size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    if (const CatalogueEntry* const exact = find_model(name)) return exact;
  }
  while (name.ends_with('/')) name.pop_back();
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
  if (name.ends_with(".gguf")) name.erase(name.size() - 5);
  name = lowered(name);
  for (char& c : name) {
    if (c == ' ' || c == '_' || c == ':') c = '-';
  }
  const auto whole = [&](std::string_view candidate) { return find_model(candidate); };
  for (int step = 0; step < 12; ++step) {
    if (const CatalogueEntry* const found = whole(name)) return found;
    // Some publishers put their name before the model's.
    if (const std::size_t dash = name.find('-'); step == 0 && dash != std::string::npos) {
      for (const std::string_view owner : {"meta", "unsloth", "nvidia", "redhatai", "google", "mistralai", "qwen"}) {
        if (std::string_view(name).substr(0, dash) == owner && owner != "qwen") {
          name.erase(0, dash + 1);
          break;
        }
      }
      if (const CatalogueEntry* const found = whole(name)) return found;
    }
    const std::size_t dash = name.rfind('-');
    if (dash == std::string::npos) return nullptr;
    const std::string_view word = std::string_view(name).substr(dash + 1);
    if (std::ranges::find(kStorageWords, word) == std::end(kStorageWords)) return nullptr;
    name.erase(dash);
  }
  return nullptr;
}

/// Letters, digits and words of a GPU's name.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : name) {
    const char small = lower(c);
    if ((small >= 'a' && small <= 'z') || (small >= '0' && small <= '9')) {
      word += small;
    } else {
      flush();
    }
  }
  flush();
  return words;
}

/// The catalogue's GPU whose words the printed name holds, with the memory deciding between sizes. A word of the
/// printed name that makes another card of it ("Ti", "D", "NVL", "PCIe") must be in the catalogue's name too.
const Gpu* find_printed_gpu(std::string_view printed, u64 memory_bytes) {
  std::vector<std::string> have = words_of(printed);
  // Driver names that spell a form factor in their own way.
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (auto& word : have) {
      if (word == from) word = to;
    }
  };
  replace("sxm2", "sxm");
  replace("sxm4", "sxm");
  replace("sxm5", "sxm");
  const auto holds = [&](std::string_view word) { return std::ranges::find(have, word) != have.end(); };
  if (holds("h100") && holds("hbm3")) have.emplace_back("sxm");
  const Gpu* best = nullptr;
  std::size_t best_words = 0;
  bool tie = false;
  for (const Gpu& gpu : gpus()) {
    std::size_t common = 0;
    bool fits = true;
    bool size_said = false;
    for (const auto& word : words_of(gpu.id)) {
      const bool size = word.ends_with("gb") && word.size() <= 5;
      const bool form =
          word == "sxm" || word == "sxm2" || word == "pcie" || word == "nvl" || word == "gcd" || word == "die";
      std::string_view needed = word;
      if (needed == "sxm2") needed = "sxm";
      if (holds(needed)) {
        ++common;
        size_said = size_said || size;
      } else if (!size && !form) {
        fits = false;
      }
    }
    if (!fits || common == 0) continue;
    // Words that tell cards of one series apart.
    for (const std::string_view other : {"ti", "super", "d", "nvl", "pcie", "sxm", "xt", "xtx", "max", "pro", "ultra",
                                         "laptop", "ada", "mobile", "e"}) {
      const auto own = words_of(gpu.id);
      const bool in_id = std::ranges::any_of(
          own, [&](const std::string& word) { return word == other || (other == "sxm" && word == "sxm2"); });
      const auto in_name = words_of(gpu.name);
      const bool in_full = std::ranges::find(in_name, other) != in_name.end();
      if (holds(other) && !in_id && !in_full) fits = false;
    }
    if (!fits) continue;
    if (memory_bytes != 0 && gpu.sold_gb_thousandths != 0) {
      const u64 sold = gpu.sold_gb_thousandths * 1'000'000;
      // A program sees at most a fifth less and a tenth more than the sold size.
      if (memory_bytes < sold / 5 * 4 || memory_bytes > sold / 10 * 11) continue;
    } else if (!size_said && best != nullptr && common == best_words) {
      tie = true;
    }
    if (best == nullptr || common > best_words) {
      best = &gpu;
      best_words = common;
      tie = false;
    } else if (common == best_words && best != &gpu) {
      tie = true;
    }
  }
  return tie ? nullptr : best;
}

// ---- the request that a log describes ------------------------------------------------------------------------------

/// Whether `word` stands in a list separated by spaces.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

struct OptionText {
  std::string_view name;
  OptionKind kind;
  u64 value = 0;
  std::string text;
};

struct Question {
  const EngineRules* engine = nullptr;
  std::string model_id;
  std::vector<LayerRun> layers;
  std::string name;
  std::string gpu_id;
  u64 memory = 0;
  u64 tensor = 0, pipeline = 0, data = 0;
  u64 context = 0;
  const Format* k = nullptr;
  const Format* v = nullptr;
  u64 weight_bytes = 0;
  std::vector<OptionText> options;

  /// Sets an option if the engine has one of that name (or alias) and takes that value.
  void set(std::string_view option, u64 value, std::string text = {}) {
    for (const auto& spec : engine->options) {
      if (spec.name != option && !lists(spec.aliases, option)) continue;
      const bool number =
          spec.kind == OptionKind::whole || spec.kind == OptionKind::fraction || spec.kind == OptionKind::bytes;
      if (number && (value < spec.min || value > spec.max)) return;
      if (spec.kind == OptionKind::choice && !lists(spec.choices, text)) return;
      const auto same = std::ranges::find(options, spec.name, &OptionText::name);
      if (same != options.end()) options.erase(same);
      options.push_back({spec.name, spec.kind, value, std::move(text)});
      return;
    }
  }
  [[nodiscard]] bool has_model() const { return !model_id.empty() || !layers.empty(); }
};

void write_run(Writer& out, const LayerRun& run) {
  out.begin_object().key("count").number(run.count).key("kind").text(kind_name(run.kind));
  const auto put = [&](std::string_view key, u64 value) {
    if (value != 0) out.key(key).number(value);
  };
  put("kv_heads", run.kv_heads);
  put("key_width", run.key_width);
  if (run.kv_heads != 0) out.key("value_width").number(run.value_width);
  put("latent_width", run.latent_width);
  put("window", run.window_tokens);
  put("state_values", run.state_values);
  put("conv_values", run.conv_values);
  if (run.kind == LayerKind::recurrent) out.key("state_format").text("fp32").key("conv_format").text("fp32");
  out.end_object();
}

void write_question(Writer& out, const Question& question) {
  out.begin_object();
  if (!question.model_id.empty()) {
    out.key("model").text(question.model_id);
  } else if (!question.layers.empty()) {
    out.key("model").begin_object().key("name").text(question.name).key("layers").begin_array();
    for (const auto& run : question.layers) write_run(out, run);
    out.end_array().end_object();
  }
  out.key("engine").text(question.engine->name);
  if (question.memory != 0) {
    out.key("gpu").begin_object().key("memory_bytes").number(question.memory).end_object();
  } else if (!question.gpu_id.empty()) {
    out.key("gpu").text(question.gpu_id);
  }
  const auto put = [&](std::string_view key, u64 value) {
    if (value != 0) out.key(key).number(value);
  };
  put("tensor_parallel", question.tensor);
  put("pipeline_parallel", question.pipeline);
  put("data_parallel", question.data);
  put("context", question.context);
  if (question.k != nullptr && question.k == question.v) {
    out.key("kv").text(question.k->id);
  } else if (question.k != nullptr && question.v != nullptr) {
    out.key("kv").begin_object().key("k").text(question.k->id).key("v").text(question.v->id).end_object();
  }
  put("weight_bytes", question.weight_bytes);
  out.key("options").begin_object();
  for (const auto& option : question.options) {
    out.key(option.name);
    switch (option.kind) {
      case OptionKind::fraction: out.decimal(ceil_div<Wide>(option.value, 1000)); break;
      case OptionKind::truth: out.boolean(option.value != 0); break;
      case OptionKind::version:
      case OptionKind::choice: out.text(option.text); break;
      case OptionKind::whole:
      case OptionKind::bytes: out.number(option.value); break;
    }
  }
  out.end_object().end_object();
}

const Format* cache_format(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name.empty() || name == "auto") return nullptr;
  const Format* format = find_format(name);
  if (format == nullptr && name.starts_with("fp8_e")) format = find_format("fp8");
  if (format == nullptr && name.starts_with("float8_e")) format = find_format("fp8");
  return format != nullptr && format->cache ? format : nullptr;
}

std::optional<bool> truth_of(std::string_view text) {
  const std::string small = lowered(text);
  if (small == "true" || small == "1" || small == "enabled" || small == "on") return true;
  if (small == "false" || small == "0" || small == "disabled" || small == "off") return false;
  return std::nullopt;
}

/// Whole numbers of "[8, 8, 0]", or one number as often as `count` says.
std::vector<u64> listed(std::string_view text, u64 count) {
  std::vector<u64> out;
  bool inside = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (!inside) out.push_back(0);
      inside = true;
      out.back() = std::min<u64>(out.back() * 10 + static_cast<u64>(c - '0'), kMaxWidth);
    } else {
      inside = false;
    }
  }
  if (out.size() == 1 && count > 1 && count <= kMaxRuns) out.assign(static_cast<std::size_t>(count), out.front());
  return out;
}

/// Runs of layers from the loader's keys and the printed caches; empty where they do not say enough.
std::vector<LayerRun> layers_of(const Figures& figures) {
  std::vector<LayerRun> runs;
  const u64 window = figures.value(n_swa).value_or(0);
  u64 attention_layers = 0;
  for (const auto& cache : figures.caches) {
    if (cache.kind == "recurrent") continue;
    const Format* const k = cache_format(cache.k_type);
    const Format* const v = cache_format(cache.v_type);
    const u64 rows = cache.cells * cache.streams * cache.layers;
    if (k == nullptr || !cache.k || rows == 0) return {};
    LayerRun run;
    run.count = static_cast<u32>(std::min(cache.layers, kMaxLayers));
    const u64 key = row_values(*cache.k, cache.k_tolerance, *k, rows);
    if (key == 0) return {};
    attention_layers += cache.layers;
    if (cache.kind == "latent") {
      run.kind = LayerKind::latent;
      run.latent_width = static_cast<u32>(key);
      runs.push_back(run);
      continue;
    }
    const u64 value = v != nullptr && cache.v ? row_values(*cache.v, cache.v_tolerance, *v, rows) : 0;
    if (value == 0 && cache.v.value_or(0) != 0) return {};
    const bool windowed = cache.kind == "window" && window != 0;
    run.kind = windowed ? LayerKind::window : LayerKind::full;
    if (windowed) run.window_tokens = static_cast<u32>(std::min(window, kMaxTokens));
    const u64 head = figures.value(head_k).value_or(0);
    const u64 heads = head != 0 && key % head == 0 && value % (key / head) == 0 ? key / head : 1;
    run.kv_heads = static_cast<u32>(heads);
    run.key_width = static_cast<u32>(key / heads);
    run.value_width = static_cast<u32>(value / heads);
    runs.push_back(run);
  }
  for (const auto& cache : figures.caches) {
    if (cache.kind != "recurrent") continue;
    const Format* const fp32 = find_format("fp32");
    const u64 all = std::max(cache.layers, figures.value(n_layer).value_or(0));
    if (all <= attention_layers || fp32 == nullptr) return {};
    LayerRun run;
    run.count = static_cast<u32>(std::min(all - attention_layers, kMaxLayers));
    run.kind = LayerKind::recurrent;
    const u64 rows = run.count * std::max<u64>(cache.cells, 1) * (1 + cache.copies);
    if (cache.s) run.state_values = row_values(*cache.s, cache.s_tolerance, *fp32, rows);
    if (cache.r) run.conv_values = row_values(*cache.r, cache.r_tolerance, *fp32, rows);
    if (run.state_values == 0 && run.conv_values == 0) return {};
    runs.push_back(run);
  }
  if (!runs.empty()) return runs;

  // No cache printed: plain attention is all that the loader's keys tell.
  const u64 count = figures.value(n_layer).value_or(0);
  if (count == 0 || count > kMaxRuns || figures[n_head_kv] == nullptr || window != 0 ||
      figures.value(lora_kv).value_or(0) != 0) {
    return {};
  }
  const auto heads = listed(figures.text(n_head_kv), count);
  const u64 key = figures.value(head_k).value_or(0);
  const u64 value = figures.value(head_v).value_or(key);
  if (heads.size() != count || key == 0 || key > kMaxWidth || value > kMaxWidth) return {};
  for (const u64 of_layer : heads) {
    LayerRun run;
    run.count = 1;
    run.kind = of_layer == 0 ? LayerKind::none : LayerKind::full;
    if (of_layer != 0) {
      run.kv_heads = static_cast<u32>(std::min(of_layer, kMaxHeads));
      run.key_width = static_cast<u32>(key);
      run.value_width = static_cast<u32>(value);
    }
    runs.push_back(run);
  }
  return merge_runs(runs);
}

u64 gpu_devices(const Figures& figures) {
  const auto devices = std::ranges::count_if(figures.devices, [](const Device& device) {
    return !device.name.empty() && !device.host() && (device.compute || device.kv || device.model);
  });
  return static_cast<u64>(devices);
}

struct Reader {
  const log::Scan& scan;
  const Features& features;
  RankNumbers numbers;
  Figures figures;
  const EngineRules* engine = nullptr;
  std::string_view engine_name;
  std::string_view variant;
  std::string version;
  const CatalogueEntry* entry = nullptr;
  const Gpu* gpu_found = nullptr;
  Question question;
  std::vector<std::string_view> missing;
  std::vector<Note> contradictions, findings;

  Reader(const log::Scan& read, const Features& with)
      : scan(read), features(with), numbers(read), figures(gather(read, numbers)) {
    choose(figures, numbers);
    complete_caches(figures);
    name_engine();
  }

  [[nodiscard]] u32 votes(Family family) const { return scan.votes[static_cast<std::size_t>(family)]; }

  void name_engine() {
    struct Candidate {
      std::string_view name;
      u32 votes;
    };
    const Candidate candidates[] = {
        {"vllm", votes(Family::vllm) + votes(Family::aphrodite) + votes(Family::ascend)},
        {"sglang", votes(Family::sglang)},
        {"llama.cpp", votes(Family::llama_cpp) + votes(Family::ik) + votes(Family::ollama)},
        {"tensorrt-llm", votes(Family::tensorrt_llm)},
    };
    const auto* const most = std::ranges::max_element(candidates, {}, &Candidate::votes);
    if (most->votes == 0) return;
    engine_name = most->name;
    const auto rules = std::ranges::find(features.engines, engine_name, &EngineRules::name);
    if (rules != features.engines.end()) engine = &*rules;
    if (engine_name == "vllm" && votes(Family::ascend) != 0) variant = "vllm-ascend";
    if (engine_name == "vllm" && votes(Family::aphrodite) != 0) variant = "aphrodite";
    if (engine_name == "llama.cpp" && votes(Family::ollama) != 0) variant = "ollama";
    if (engine_name == "llama.cpp" && votes(Family::ik) != 0) variant = "ik_llama.cpp";
    for (const Found* one : figures.of[static_cast<std::size_t>(Field::version)]) {
      std::string_view text = one->text;
      if (text.starts_with('v') || text.starts_with('b')) text.remove_prefix(1);
      if (text.empty() || text.front() < '0' || text.front() > '9') continue;
      if (engine_name == "llama.cpp") {
        text = text.substr(0, text.find('-'));
        version = "b" + std::string(text);
      } else {
        version = text;
      }
      break;
    }
  }

  // ---- derived figures ---------------------------------------------------------------------------------------------

  [[nodiscard]] bool llama() const { return engine_name == "llama.cpp"; }

  /// The pool of one GPU (all of llama.cpp's caches), by what was printed.
  [[nodiscard]] std::optional<u64> pool_bytes() const {
    if (llama()) {
      const u64 total = total_of(figures.caches);
      if (total != 0) return total;
      u64 sum = 0;
      for (const auto& one : figures.devices) sum += one.kv.value_or(0) + one.state.value_or(0);
      return sum != 0 ? std::optional(sum) : std::nullopt;
    }
    if (engine_name == "sglang") {
      const Found* const swa = figures[swa_total];
      if (swa != nullptr) return static_cast<u64>(swa->value);
      if (figures.pools.empty()) return std::nullopt;
      const Pool& pool = figures.pools.front();
      const u64 sum = pool.kv.value_or(pool.k.value_or(0) + pool.v.value_or(0));
      return sum != 0 ? std::optional(sum) : std::nullopt;
    }
    return figures.value(kv_memory);
  }

  /// How far the pool may be off by the digits that were left out.
  [[nodiscard]] u64 pool_tolerance() const {
    if (engine_name == "sglang") {
      const Found* const swa = figures[swa_total];
      return swa != nullptr || figures.pools.empty() ? (swa != nullptr ? swa->tolerance : 0)
                                                     : figures.pools.front().tolerance;
    }
    const Found* const pool = figures[kv_memory];
    return pool != nullptr ? pool->tolerance : 0;
  }

  [[nodiscard]] u64 context() const {
    if (!llama()) return figures.value(max_model_len).value_or(0);
    if (const auto each = figures.value(n_ctx_seq)) return *each;
    const u64 all = figures.value(n_ctx).value_or(0);
    const u64 sequences = std::max<u64>(figures.value(n_seq_max).value_or(1), 1);
    return all / sequences;
  }

  [[nodiscard]] u64 ranks() const {
    const u64 flags = std::max<u64>(figures.value(tensor_parallel).value_or(1), 1) *
                      std::max<u64>(figures.value(pipeline_parallel).value_or(1), 1) *
                      std::max<u64>(figures.value(data_parallel).value_or(1), 1);
    const u64 said = llama() ? std::max<u64>(gpu_devices(figures), 1) : figures.ranks.size();
    return std::max({flags, said, u64{1}});
  }

  void add_finding(std::string_view code, std::vector<NoteValue> values) {
    findings.push_back({std::string(code), std::move(values)});
  }
  void add_contradiction(std::string_view code, std::vector<NoteValue> values) {
    contradictions.push_back({std::string(code), std::move(values)});
  }

  // ---- the deployment ----------------------------------------------------------------------------------------------

  void describe() {
    for (const Field field : {Field::model, Field::model_name}) {
      if (entry == nullptr) entry = find_named(std::string(figures.text(field)));
    }
    const u64 layer_count = figures.value(n_layer).value_or(0);
    if (llama() && entry != nullptr && layer_count != 0 && entry->layer_count != 0 &&
        entry->layer_count != layer_count) {
      entry = nullptr;  // another model of that name
    }
    u64 seen = figures.value(total_memory).value_or(figures.value(driver_memory).value_or(0));
    gpu_found = find_printed_gpu(figures.text(Field::gpu), seen);

    question.engine = engine;
    if (entry != nullptr) {
      question.model_id = entry->id;
    } else if (llama()) {
      question.layers = layers_of(figures);
      question.name = figures.text(model_name).empty() ? figures.text(arch) : figures.text(model_name);
    }
    if (const auto total = figures.value(total_memory); total && !llama()) {
      question.memory = *total;
    } else if (gpu_found != nullptr) {
      question.gpu_id = gpu_found->id;
    } else if (figures.value(driver_memory)) {
      question.memory = *figures.value(driver_memory);
    }
    question.context = context();
    set_formats();
    if (llama()) {
      question.pipeline = gpu_devices(figures);
      if (const auto size = figures.value(model_size)) question.weight_bytes = *size;
    } else {
      question.tensor = figures.value(tensor_parallel).value_or(0);
      question.pipeline = figures.value(pipeline_parallel).value_or(0);
      question.data = figures.value(data_parallel).value_or(0);
      if (question.tensor == 0 && question.pipeline == 0 && question.data == 0 && !figures.ranks.empty()) {
        question.tensor = static_cast<u64>(numbers.tensor);
        question.pipeline = static_cast<u64>(numbers.pipeline);
      }
      const u64 split = std::max<u64>(question.tensor, 1) * std::max<u64>(question.pipeline, 1);
      if (const auto bytes = figures.value(weights); bytes && *bytes <= kMaxExact / split) {
        question.weight_bytes = *bytes * split;
      }
    }
    set_options();
  }

  void set_formats() {
    if (llama()) {
      for (const auto& cache : figures.caches) {
        if (cache.kind == "recurrent") continue;
        question.k = cache_format(cache.k_type);
        question.v = cache.v_type.empty() ? question.k : cache_format(cache.v_type);
        break;
      }
      if (question.k == nullptr && figures[type_k] != nullptr) {
        question.k = cache_format(figures.text(type_k));
        question.v = figures[type_v] != nullptr ? cache_format(figures.text(type_v)) : find_format("fp16");
      }
      if (question.k == nullptr || question.v == nullptr) question.k = question.v = nullptr;
      return;
    }
    std::string_view name = figures.text(kv_dtype);
    if (name.empty() || name == "auto") name = figures.text(dtype);
    question.k = question.v = cache_format(name);
  }

  void set_options() {
    const auto whole = [&](Field field, std::string_view option) {
      if (const auto value = figures.value(field)) question.set(option, *value);
    };
    const auto truth = [&](Field field, std::string_view option) {
      if (const auto value = truth_of(figures.text(field))) question.set(option, *value ? 1 : 0);
    };
    if (!version.empty()) question.set("version", 0, version);
    if (engine_name == "vllm") {
      whole(utilization, "gpu_memory_utilization");
      whole(batched_tokens, "max_num_batched_tokens");
      whole(max_num_seqs, "max_num_seqs");
      whole(block_size, "block_size");
      whole(context_parallel, "decode_context_parallel_size");
      whole(activation, "activation_bytes");
      whole(non_torch, "non_torch_bytes");
      whole(graph_estimate, "cuda_graph_bytes");
      truth(prefix_caching, "enable_prefix_caching");
      if (figures[ssm_dtype] != nullptr) question.set("mamba_ssm_cache_dtype", 0, std::string(figures.text(ssm_dtype)));
    } else if (engine_name == "sglang") {
      whole(static_fraction, "mem_fraction_static");
      whole(max_requests, "max_running_requests");
      whole(swa_ratio, "swa_full_tokens_ratio");
      whole(mamba_slots, "max_mamba_cache_size");
    } else if (engine_name == "tensorrt-llm") {
      whole(free_fraction, "free_gpu_memory_fraction");
      whole(block_size, "tokens_per_block");
      whole(available, "free_memory_bytes");
    } else {
      whole(n_ctx, "n_ctx");
      whole(n_seq_max, "n_seq_max");
      whole(n_ubatch, "n_ubatch");
      whole(n_batch, "n_batch");
      truth(flash_attn, "flash_attn");
      truth(kv_unified, "kv_unified");
      truth(swa_full, "swa_full");
      if (variant == "ik_llama.cpp") question.set("fork", 0, "ik_llama.cpp");
      if (const auto mode = listed(figures.text(mla_attn), 1); mode.size() == 1) question.set("mla_attn", mode.front());
      for (const auto& cache : figures.caches) {
        if (cache.kind == "recurrent" && cache.copies != 0) question.set("n_rs_seq", cache.copies);
        // Each sequence with a stream of its own.
        if (cache.kind != "recurrent" && cache.streams > 1) question.set("kv_unified", 0);
      }
    }
    if (const auto pool = pool_bytes(); pool && !llama()) question.set("kv_memory_bytes", *pool);
  }

  void find_missing() {
    if (engine == nullptr) {
      missing.push_back("engine");
      return;
    }
    const auto ask = [&](bool known, std::string_view field) {
      if (!known) missing.push_back(field);
    };
    ask(question.has_model(), "model");
    ask(question.memory != 0 || !question.gpu_id.empty(), "gpu");
    ask(question.context != 0, "context");
    if (llama()) {
      ask(question.k != nullptr, "kv");
      ask(question.weight_bytes != 0, "weight_bytes");
      ask(pool_bytes().has_value(), "kv_memory_bytes");
      return;
    }
    ask(question.weight_bytes != 0, "weight_bytes");
    ask(pool_bytes() || figures.value(kv_tokens) || figures.value(kv_blocks), "kv_memory_bytes");
    ask(question.tensor != 0 || ranks() > 1, "tensor_parallel");
    if (engine_name == "vllm") {
      ask(figures[utilization] != nullptr, "gpu_memory_utilization");
      ask(!version.empty(), "version");
    }
    if (engine_name == "sglang") ask(figures[static_fraction] != nullptr, "mem_fraction_static");
    if (engine_name == "tensorrt-llm") ask(figures[free_fraction] != nullptr, "free_gpu_memory_fraction");
  }

  // ---- what contradicts itself -------------------------------------------------------------------------------------

  static std::string shown(const Found& one) {
    switch (log::spec_of(one.field).kind) {
      case Kind::decimal: return decimals(static_cast<u64>(std::max<std::int64_t>(one.value, 0)), kBillion);
      case Kind::text: return one.text;
      default: return (one.value < 0 ? "-" : "") + digits(static_cast<u64>(one.value < 0 ? -one.value : one.value));
    }
  }

  void find_contradictions() {
    // Flags are said once or said alike.
    for (std::size_t i = 0; i < log::kFields; ++i) {
      const auto field = static_cast<Field>(i);
      const auto& spec = log::spec_of(field);
      const auto& all = figures.of[i];
      if (spec.merge != Merge::last || spec.name.empty() || all.size() < 2) continue;
      const auto* const reference = all.back();
      const auto other = std::ranges::find_if(all, [&](const Found* one) {
        if (spec.kind == Kind::text)
          return one->text != reference->text && truth_of(one->text) != truth_of(reference->text);
        const auto apart =
            static_cast<u64>(std::max(one->value, reference->value) - std::min(one->value, reference->value));
        return apart > one->tolerance + reference->tolerance;
      });
      if (other == all.end()) continue;
      add_contradiction("two_values", {{"field", std::string(spec.name)},
                                       {"first", shown(**other)},
                                       {"first_line", digits((*other)->line)},
                                       {"second", shown(*reference)},
                                       {"second_line", digits(reference->line)}});
    }
    check_blocks();
    check_budget();
    check_sums();
  }

  /// Tokens are blocks × block, or blocks // groups × block, or concurrency × length.
  void check_blocks() {
    const auto tokens = figures.value(kv_tokens);
    const auto blocks = figures.value(kv_blocks);
    const auto block = figures.value(block_size);
    if (!tokens || !blocks || !block || *blocks == 0 || *block == 0) return;
    for (u64 groups = 1; groups <= 64; ++groups) {
      if (Wide{*blocks} / groups * *block == *tokens) return;
      if (const auto size = figures.value(context_parallel); size && Wide{*blocks} / groups * *block * *size == *tokens)
        return;
    }
    const Found* const times = figures[concurrency];
    const auto length = figures.value(max_model_len);
    if (times != nullptr && length) {
      const Wide low =
          Wide{static_cast<u64>(times->value) - std::min<u64>(times->tolerance, static_cast<u64>(times->value))} *
          *length / kBillion;
      const Wide high = (Wide{static_cast<u64>(times->value)} + times->tolerance) * *length / kBillion;
      if (low <= *tokens && *tokens <= high + 1) return;
    }
    add_contradiction("tokens_are_not_blocks",
                      {{"tokens", digits(*tokens)}, {"blocks", digits(*blocks)}, {"block_size", digits(*block)}});
  }

  /// vLLM: total × utilisation − weights − activation − non-torch = pool.
  void check_budget() {
    if (engine_name != "vllm") return;
    const Found* const total = figures[total_memory];
    const Found* const share = figures[utilization];
    const Found* const pool = figures[kv_memory];
    const Found* const loaded = figures[weights];
    const Found* const peak = figures[activation];
    const Found* const other = figures[non_torch];
    if (total == nullptr || share == nullptr || pool == nullptr) return;
    if (pool->value > total->value) {
      add_contradiction("pool_above_total", {{"kv_memory_bytes", shown(*pool)}, {"total_memory_bytes", shown(*total)}});
      return;
    }
    if (loaded == nullptr || peak == nullptr || other == nullptr) return;
    const Found* const graphs = figures[graph_estimate];
    const auto budget =
        static_cast<std::int64_t>(Wide{static_cast<u64>(total->value)} * static_cast<u64>(share->value) / kBillion);
    const std::int64_t left =
        budget - loaded->value - peak->value - other->value - (graphs != nullptr ? graphs->value : 0);
    // A utilisation printed with two digits is off by up to half of the last.
    const u64 step = static_cast<u64>(Wide{static_cast<u64>(total->value)} * share->tolerance / kBillion);
    const u64 allowed = total->tolerance + pool->tolerance + loaded->tolerance + peak->tolerance + other->tolerance +
                        step + (u64{64} << 20);
    const u64 apart = static_cast<u64>(left > pool->value ? left - pool->value : pool->value - left);
    std::vector<NoteValue> values{
        {"total_memory_bytes", shown(*total)},
        {"gpu_memory_utilization", shown(*share)},
        {"weights_bytes", shown(*loaded)},
        {"activation_bytes", shown(*peak)},
        {"non_torch_bytes", shown(*other)},
        {"left_bytes", (left < 0 ? "-" : "") + digits(static_cast<u64>(left < 0 ? -left : left))},
        {"kv_memory_bytes", shown(*pool)},
        {"difference_bytes", digits(apart)}};
    if (apart <= allowed) {
      add_finding("budget_closes", std::move(values));
    } else {
      add_contradiction("budget_does_not_close", std::move(values));
    }
  }

  void check_sums() {
    for (const auto& cache : figures.caches) {
      if (!cache.size || !cache.k || !cache.v) continue;
      const u64 sum = *cache.k + *cache.v;
      const u64 allowed = 3 * std::max(cache.k_tolerance, cache.v_tolerance);
      if (sum > *cache.size + allowed || *cache.size > sum + allowed) {
        add_contradiction("parts_are_not_the_sum", {{"line", digits(cache.line)},
                                                    {"k_bytes", digits(*cache.k)},
                                                    {"v_bytes", digits(*cache.v)},
                                                    {"bytes", digits(*cache.size)}});
      }
    }
    const auto available_memory = figures.value(available);
    const auto total = figures.value(total_memory);
    if (available_memory && total && *available_memory > *total) {
      add_contradiction("available_above_total",
                        {{"available_bytes", digits(*available_memory)}, {"total_memory_bytes", digits(*total)}});
    }
  }

  // ---- what a reader should know -----------------------------------------------------------------------------------

  void find_facts() {
    if (engine == nullptr) add_finding("nothing_found", {});
    if (scan.starts > 1) add_finding("several_starts", {{"count", digits(scan.starts)}});
    if (figures.decimal_labels) add_finding("gb_means_gib", {});
    if (figures.draft) add_finding("draft_model", {});
    const auto& pools = figures.of[static_cast<std::size_t>(kv_memory)];
    if (pools.size() > 1) {
      const auto [low, high] = std::ranges::minmax_element(pools, {}, [](const Found* one) { return one->value; });
      if ((*low)->value != (*high)->value) {
        const int rank = numbers.of((*low)->rank);
        std::vector<NoteValue> values{{"kv_memory_bytes", shown(**low)}, {"richest_bytes", shown(**high)}};
        if (rank >= 0) values.push_back({"rank", digits(static_cast<u64>(rank))});
        add_finding("poorest_rank", std::move(values));
      }
    }
    if (const auto need = figures.value(kv_needed)) {
      std::vector<NoteValue> values{{"kv_needed_bytes", digits(*need)}};
      if (const auto pool = figures.value(kv_memory)) values.push_back({"kv_memory_bytes", digits(*pool)});
      if (const auto longest = figures.value(longest_model_len))
        values.push_back({"longest_model_len", digits(*longest)});
      add_finding("cache_too_small", std::move(values));
    }
    if (const auto padded = figures.value(padding_layers)) add_finding("padding_layers", {{"layers", digits(*padded)}});
    explain_concurrency();
    if (engine_name == "vllm" && figures.value(block_size).value_or(0) > 128) {
      add_finding("block_holds_a_state", {{"block_size", digits(*figures.value(block_size))}});
    }
    if (engine_name == "sglang") {
      const auto requests = figures.value(max_requests);
      const auto length = figures.value(max_model_len);
      if (requests && length) add_finding("request_table", {{"bytes", digits(Wide{*requests} * *length * 4)}});
    }
    if (llama()) {
      if (truth_of(figures.text(swa_full)).value_or(false)) add_finding("window_full_length", {});
      for (const auto& cache : figures.caches) {
        if (cache.kind == "recurrent" && cache.copies != 0)
          add_finding("rollback_copies", {{"copies", digits(cache.copies)}});
        if (cache.kind != "recurrent" && cache.streams > 1) {
          add_finding("streams", {{"streams", digits(cache.streams)}, {"cells", digits(cache.cells)}});
          break;
        }
      }
    }
  }

  /// Tokens ÷ length is the concurrency of plain attention alone.
  void explain_concurrency() {
    const Found* const times = figures[concurrency];
    auto tokens = figures.value(kv_tokens);
    const auto length = figures.value(max_model_len);
    if (!tokens && figures.value(kv_blocks) && figures.value(block_size))
      tokens = *figures.value(kv_blocks) * *figures.value(block_size);
    if (times == nullptr || !tokens || !length || *length == 0) return;
    const Wide exact = Wide{*tokens} * kBillion / *length;
    const auto printed = static_cast<u64>(times->value);
    const bool same = exact + times->tolerance + 1 >= printed && exact <= Wide{printed} + times->tolerance + 1;
    std::vector<NoteValue> values{{"max_concurrency", shown(*times)},
                                  {"tokens_over_length", decimals(exact / 10'000'000, 100)},
                                  {"kv_tokens", digits(*tokens)},
                                  {"max_model_len", digits(*length)}};
    add_finding(same ? "concurrency_is_tokens_over_length" : "concurrency_is_not_tokens_over_length",
                std::move(values));
  }
};

// ---- the computed side ---------------------------------------------------------------------------------------------

/// What a plan answers, as far as it is compared.
struct Computed {
  std::optional<u64> tokens, tokens_other, blocks, block_tokens, pool, fit;
  std::optional<u64> concurrency_millionths;
  struct Named {
    std::string name;
    u64 cells = 0, streams = 0, bytes = 0;
  };
  std::vector<Named> caches;
};

std::optional<Computed> compute(const Question& question, const Features& features,
                                std::vector<Note>* refused = nullptr) {
  Writer request;
  if (question.memory == 0 && question.gpu_id.empty() && question.weight_bytes != 0) {
    // A card that just holds what was printed: from a known pool nothing is budgeted.
    Question stated = question;
    u64 pool = 0;
    for (const auto& option : question.options) {
      if (option.kind == OptionKind::bytes) pool += option.value;
    }
    const u64 split = std::max<u64>(question.tensor, 1) * std::max<u64>(question.pipeline, 1);
    stated.memory = std::min(pool + ceil_div(question.weight_bytes, split), kMaxExact);
    write_question(request, stated);
  } else {
    write_question(request, question);
  }
  const std::string answer = plan_json(request.take(), features);
  const auto document = json::Document::parse(answer, "answer", kMaxRequestBytes);
  if (!document) return std::nullopt;
  const json::Value& root = document->root();
  if (const json::Value* const error = root.find("error"); error != nullptr) {
    if (refused != nullptr) {
      const auto part = [&](std::string_view key) {
        const json::Value* const value = error->get(key);
        return value != nullptr ? std::string(value->text) : std::string();
      };
      refused->push_back(
          {"request_refused", {{"code", part("code")}, {"field", part("field")}, {"message", part("message")}}});
    }
    return std::nullopt;
  }
  const auto whole = [](const json::Value& object, Label key) -> std::optional<u64> {
    const json::Value* const value = object.get(key);
    if (value == nullptr) return std::nullopt;
    const auto read = json::to_whole(*value, key, 0, kMaxExact);
    return read ? std::optional(*read) : std::nullopt;
  };
  Computed out;
  out.tokens = whole(root, "kv_tokens");
  out.tokens_other = whole(root, "kv_tokens_other");
  out.blocks = whole(root, "kv_blocks");
  out.block_tokens = whole(root, "block_tokens");
  out.pool = whole(root, "kv_memory_bytes_per_gpu");
  out.fit = whole(root, "sequences");
  if (const json::Value* const times = root.get("concurrency"); times != nullptr) {
    const auto read = json::to_fraction(*times, "concurrency", {0}, {kMaxExact});
    if (read) out.concurrency_millionths = read->billionths / 1000;
  }
  if (const json::Value* const caches = root.get("caches"); caches != nullptr && caches->is(json::Kind::array)) {
    for (const json::Value& one : *caches) {
      const json::Value* const name = one.get("name");
      Computed::Named cache;
      if (name != nullptr) cache.name = name->text;
      cache.cells = whole(one, "cells").value_or(0);
      cache.streams = whole(one, "streams").value_or(1);
      cache.bytes =
          whole(one, "k_bytes").value_or(0) + whole(one, "v_bytes").value_or(0) + whole(one, "state_bytes").value_or(0);
      out.caches.push_back(std::move(cache));
    }
  }
  return out;
}

struct Comparison {
  std::string_view figure;
  std::string_view of;  ///< which cache
  std::string_view unit;
  u64 printed = 0;  ///< millionths where the unit is "conversations"
  u64 computed = 0;
  bool agrees = false;  ///< within what the printed digits leave open
  [[nodiscard]] u64 ratio_millionths() const {
    return printed == 0 ? 0 : static_cast<u64>(std::min<Wide>(Wide{computed} * 1'000'000 / printed, kMaxExact));
  }
};

struct Alternative {
  std::string_view change;
  std::string value;
  u64 concurrency = 0;  ///< millionths
  bool free = false;    ///< the same GPUs and the same length
};

std::vector<Comparison> compare(const Reader& reader, const Computed& computed) {
  std::vector<Comparison> out;
  const auto add = [&](std::string_view figure, std::string_view unit, std::optional<u64> printed,
                       std::optional<u64> value, u64 low, u64 high, std::string_view of = {}) {
    if (printed && value) out.push_back({figure, of, unit, *printed, *value, low <= *printed && *printed <= high});
  };
  if (reader.llama()) {
    std::vector<bool> used(computed.caches.size());
    u64 slack_of_all = 0;
    for (const auto& cache : reader.figures.caches) {
      const u64 slack = cache.k_tolerance + cache.v_tolerance + cache.r_tolerance + cache.s_tolerance;
      slack_of_all += slack;
      for (std::size_t i = 0; i < computed.caches.size(); ++i) {
        const Computed::Named& other = computed.caches[i];
        if (used[i] || other.name != cache.kind) continue;
        used[i] = true;
        if (cache.kind != "recurrent")
          add("cells", "cells", cache.cells, other.cells, other.cells, other.cells, cache.kind);
        add("bytes", "bytes", cache.bytes(), other.bytes, other.bytes - std::min(slack, other.bytes),
            other.bytes + slack, cache.kind);
        break;
      }
    }
    u64 all = 0;
    for (const auto& cache : computed.caches) all += cache.bytes;
    add("kv_memory_bytes", "bytes", reader.pool_bytes(), all, all - std::min(slack_of_all, all), all + slack_of_all);
    return out;
  }

  // The same from the least and the most memory that prints as it did.
  std::optional<Computed> least_memory, most_memory;
  if (const auto pool = reader.pool_bytes()) {
    Question question = reader.question;
    const u64 slack = reader.pool_tolerance();
    question.set("kv_memory_bytes", *pool - std::min(slack, *pool));
    least_memory = compute(question, reader.features);
    question.set("kv_memory_bytes", *pool + slack);
    most_memory = compute(question, reader.features);
  }
  const Computed& low = least_memory ? *least_memory : computed;
  const Computed& high = most_memory ? *most_memory : computed;
  const auto of = [&](std::optional<u64> Computed::* figure, std::string_view name, std::string_view unit,
                      Field field) {
    add(name, unit, reader.figures.value(field), computed.*figure, (low.*figure).value_or(0),
        (high.*figure).value_or(0));
  };
  // Two conventions of printing tokens; the nearer one is meant.
  const auto printed = reader.figures.value(kv_tokens);
  const auto apart = [&](u64 value) { return value > *printed ? value - *printed : *printed - value; };
  const bool other =
      printed && computed.tokens && computed.tokens_other && apart(*computed.tokens_other) < apart(*computed.tokens);
  of(other ? &Computed::tokens_other : &Computed::tokens, "kv_tokens", "tokens", kv_tokens);
  of(&Computed::blocks, "kv_blocks", "blocks", kv_blocks);
  if (const Found* const times = reader.figures[concurrency]; times != nullptr && computed.concurrency_millionths) {
    const u64 replicas = std::max<u64>(reader.question.data, 1);
    const u64 half = times->tolerance / 1000;
    const auto each = [&](const Computed& one) { return one.concurrency_millionths.value_or(0) / replicas; };
    add("max_concurrency", "conversations", static_cast<u64>(times->value) / 1000, each(computed),
        each(low) - std::min(half, each(low)), each(high) + half);
  }
  return out;
}

std::vector<Alternative> alternatives(const Reader& reader, const Computed& base) {
  std::vector<Alternative> out;
  if (!base.concurrency_millionths || *base.concurrency_millionths == 0) return out;
  const auto pool = reader.llama() ? std::nullopt : reader.pool_bytes();
  const Figures& figures = reader.figures;
  const auto attempt = [&](std::string_view change, std::string value, bool free, Question question) {
    const auto answer = compute(question, reader.features);
    if (answer && answer->concurrency_millionths)
      out.push_back({change, std::move(value), *answer->concurrency_millionths, free});
  };
  const auto with_pool = [&](Question question, Wide bytes) {
    if (bytes <= kMaxExact) question.set("kv_memory_bytes", static_cast<u64>(bytes));
    return question;
  };

  const std::string_view small = reader.llama() ? "q8_0" : "fp8";
  const Format* const format = find_format(small);
  if (format != nullptr && (reader.question.k == nullptr || reader.question.k->bits > 8)) {
    Question question = reader.question;
    question.k = question.v = format;
    attempt("kv", std::string(small), true, std::move(question));
  }
  if (reader.question.context >= 2048) {
    Question question = reader.question;
    question.context /= 2;
    if (const auto all = figures.value(n_ctx); all && reader.llama()) question.set("n_ctx", *all / 2);
    attempt("context", digits(question.context), false, std::move(question));
  }
  if (reader.llama() || !pool) return out;

  constexpr u64 kHigh = 950'000'000;
  const auto share_change = [&](Field flag, std::string_view name, Wide base_bytes) {
    const auto share = figures.value(flag);
    if (!share || *share >= kHigh || base_bytes == 0) return;
    const Wide more = base_bytes * (kHigh - *share) / kBillion;
    Question question = with_pool(reader.question, Wide{*pool} + more);
    question.set(name, kHigh);
    attempt(name, "0.95", true, std::move(question));
  };
  share_change(utilization, "gpu_memory_utilization", figures.value(total_memory).value_or(0));
  share_change(static_fraction, "mem_fraction_static", figures.value(avail_before_load).value_or(0));
  share_change(free_fraction, "free_gpu_memory_fraction", figures.value(available).value_or(0));
  if (const auto loaded = figures.value(weights)) {
    Question question = with_pool(reader.question, Wide{*pool} + *loaded / 2);
    question.tensor = 2 * std::max<u64>(question.tensor, 1);
    attempt("tensor_parallel", digits(question.tensor), false, std::move(question));
    const u64 stored = reader.entry != nullptr ? reader.entry->parameters : 0;
    if (stored != 0 && reader.question.weight_bytes / 2 > stored / 10 * 9) {
      attempt("weights", "fp8", true, with_pool(reader.question, Wide{*pool} + *loaded / 2));
    }
  }
  if (const auto tokens = figures.value(batched_tokens), peak = figures.value(activation);
      tokens && *tokens >= 1024 && reader.engine_name == "vllm") {
    // The peak of activations grows with the tokens of a batch.
    Question question = with_pool(reader.question, Wide{*pool} + peak.value_or(0) / 2);
    question.set("max_num_batched_tokens", *tokens / 2);
    attempt("max_num_batched_tokens", digits(*tokens / 2), true, std::move(question));
  }
  return out;
}

// ---- writing -------------------------------------------------------------------------------------------------------

void write_reading(Writer& out, Bytes bytes) {
  const Reading reading = read_binary(bytes);
  out.begin_object().key("value").decimal(reading.millionths).key("unit").text(reading.unit).end_object();
}

void write_value(Writer& out, const Found& one) {
  switch (log::spec_of(one.field).kind) {
    case Kind::decimal: out.decimal(static_cast<u64>(std::max<std::int64_t>(one.value, 0)) / 1000); break;
    case Kind::text: out.text(one.text); break;
    default: out.integer(one.value); break;
  }
}

std::string_view unit_of(Field field) {
  const auto& spec = log::spec_of(field);
  if (spec.kind == Kind::bytes) return "bytes";
  if (spec.name.ends_with("tokens") || spec.name.starts_with("n_ctx") || field == max_model_len || field == block_size)
    return "tokens";
  if (spec.name.ends_with("blocks")) return "blocks";
  if (spec.name.ends_with("cells")) return "cells";
  return "";
}

constexpr std::size_t kLinesShown = 400;
constexpr std::size_t kShownOfField = 24;

void write_lines(Writer& out, const Reader& reader) {
  std::array<std::size_t, log::kFields> shown{};
  std::size_t total = 0;
  u64 left_out = reader.scan.left_out;
  out.key("lines").begin_array();
  for (const auto& one : reader.scan.found) {
    const auto& spec = log::spec_of(one.field);
    if (spec.name.empty()) continue;
    std::size_t& count = shown[static_cast<std::size_t>(one.field)];
    if (count >= kShownOfField || total >= kLinesShown) {
      ++left_out;
      continue;
    }
    ++count;
    ++total;
    out.begin_object().key("line").number(one.line).key("rank");
    if (const int rank = reader.numbers.of(one.rank); rank >= 0) {
      out.number(static_cast<u64>(rank));
    } else {
      out.null();
    }
    out.key("field").text(spec.name).key("value");
    write_value(out, one);
    out.key("unit").text(unit_of(one.field)).key("tolerance");
    if (spec.kind == Kind::decimal) {
      out.decimal(one.tolerance / 1000);
    } else {
      out.number(one.tolerance);
    }
    out.key("text").text(reader.scan.excerpts[one.excerpt]).end_object();
  }
  out.end_array().key("lines_left_out").number(left_out);
}

void put(Writer& out, std::string_view key, const std::optional<u64>& value) {
  out.key(key);
  if (value) {
    out.number(*value);
  } else {
    out.null();
  }
}

void put_text(Writer& out, std::string_view key, std::string_view text) {
  out.key(key);
  if (text.empty()) {
    out.null();
  } else {
    out.text(text);
  }
}

void write_printed(Writer& out, const Reader& reader) {
  const Figures& figures = reader.figures;
  out.key("printed").begin_object();
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const auto field = static_cast<Field>(i);
    const auto& spec = log::spec_of(field);
    if (figures.chosen[i] == nullptr || spec.name.empty() || spec.merge == Merge::parts || field == Field::version)
      continue;
    if (field == kv_memory && (reader.llama() || reader.engine_name == "sglang")) continue;
    out.key(spec.name);
    write_value(out, *figures.chosen[i]);
  }
  if (reader.llama() || reader.engine_name == "sglang") {
    if (const auto pool = reader.pool_bytes()) out.key("kv_memory_bytes").number(*pool);
  }
  // Each rank's pool once; some say it again when all is done.
  std::vector<const Found*> by_rank;
  for (const Found* one : figures.of[static_cast<std::size_t>(kv_memory)]) {
    const bool again = std::ranges::any_of(by_rank, [&](const Found* other) {
      return other->rank == one->rank && (one->rank.said() || other->value == one->value);
    });
    if (!again) by_rank.push_back(one);
  }
  if (by_rank.size() > 1 && reader.engine_name == "vllm") {
    out.key("kv_memory_by_rank").begin_array();
    for (const Found* one : by_rank) {
      out.begin_object();
      put(out, "rank", one->rank.said() ? std::optional(static_cast<u64>(reader.numbers.of(one->rank))) : std::nullopt);
      out.key("bytes").number(static_cast<u64>(std::max<std::int64_t>(one->value, 0))).end_object();
    }
    out.end_array();
  }
  if (!figures.pools.empty()) {
    const auto window_slots = figures.value(swa_tokens);
    const auto full_slots = figures.value(full_tokens);
    out.key("pools").begin_array();
    const int rank = figures.pools.front().rank;
    std::size_t written = 0;
    for (const auto& pool : figures.pools) {
      // Every rank prints the same pools; a draft model's follow the main one's.
      if (pool.rank != rank || written == (window_slots ? 2U : 1U)) continue;
      std::string_view kind = "full";
      if (window_slots)
        kind = pool.tokens    ? (pool.tokens == window_slots && pool.tokens != full_slots ? "window" : "full")
               : written == 0 ? "window"
                              : "full";
      ++written;
      out.begin_object().key("kind").text(kind);
      put(out, "tokens", pool.tokens);
      put(out, "k_bytes", pool.k);
      put(out, "v_bytes", pool.v);
      put(out, "bytes", pool.kv ? pool.kv : pool.k && pool.v ? std::optional(*pool.k + *pool.v) : std::nullopt);
      out.end_object();
    }
    out.end_array();
  }
  if (const Found* const swa = figures[swa_total]) out.key("swa_pool_bytes").number(static_cast<u64>(swa->value));
  if (reader.llama()) {
    out.key("caches").begin_array();
    for (const auto& cache : figures.caches) {
      out.begin_object().key("kind").text(cache.kind).key("cells").number(cache.cells);
      out.key("layers").number(cache.layers).key("n_seqs").number(cache.seqs).key("streams").number(cache.streams);
      if (cache.kind == "recurrent") {
        out.key("copies").number(cache.copies);
        put(out, "r_bytes", cache.r);
        put(out, "s_bytes", cache.s);
      } else {
        put_text(out, "k_type", cache.k_type);
        put_text(out, "v_type", cache.v_type);
        put(out, "k_bytes", cache.k);
        put(out, "v_bytes", cache.v);
      }
      out.key("bytes").number(cache.bytes()).end_object();
    }
    out.end_array().key("devices").begin_array();
    for (const auto& device : figures.devices) {
      out.begin_object();
      put_text(out, "device", device.name);
      put(out, "model_bytes", device.model);
      put(out, "kv_bytes", device.kv);
      put(out, "state_bytes", device.state);
      put(out, "compute_bytes", device.compute);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();

  out.key("readings").begin_object();
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const Found* const one = figures.chosen[i];
    const auto& spec = log::spec_of(static_cast<Field>(i));
    if (one == nullptr || spec.kind != Kind::bytes || one->value < 0 || spec.merge == Merge::parts) continue;
    if (static_cast<Field>(i) == kv_memory && (reader.llama() || reader.engine_name == "sglang")) continue;
    out.key(spec.name);
    write_reading(out, Bytes{static_cast<u64>(one->value)});
  }
  if (const auto pool = reader.pool_bytes(); pool && (reader.llama() || reader.engine_name == "sglang")) {
    out.key("kv_memory_bytes");
    write_reading(out, Bytes{*pool});
  }
  out.end_object();
}

/// The bar of one GPU (of all, for llama.cpp) from the printed figures.
void write_memory(Writer& out, const Reader& reader) {
  struct Segment {
    std::string_view kind;
    u64 bytes;
  };
  const Figures& figures = reader.figures;
  std::vector<Segment> segments;
  const auto add = [&](std::string_view kind, std::optional<u64> bytes) {
    if (bytes && *bytes != 0) segments.push_back({kind, *bytes});
  };
  u64 total = figures.value(total_memory).value_or(0);
  if (reader.llama()) {
    u64 model_bytes = 0, cache = 0, compute_bytes = 0;
    for (const auto& device : figures.devices) {
      if (device.host()) continue;
      model_bytes += device.model.value_or(0);
      cache += device.kv.value_or(0) + device.state.value_or(0);
      compute_bytes += device.compute.value_or(0);
    }
    if (model_bytes == 0) model_bytes = figures.value(model_size).value_or(0);
    if (cache == 0) cache = total_of(figures.caches);
    add("weights", model_bytes);
    add("compute_buffer", compute_bytes);
    add("cache", cache);
    total = 0;
    if (reader.gpu_found != nullptr) {
      Deployment on;
      on.gpu = reader.gpu_found;
      total = on.memory(false).bytes.count * std::max<u64>(gpu_devices(figures), 1);
    }
  } else {
    add("weights", figures.value(weights));
    add("activation", figures.value(activation));
    add("non_torch", figures.value(non_torch));
    add("cuda_graph", figures.value(cuda_graph) ? figures.value(cuda_graph) : figures.value(graph_estimate));
    if (const auto conv = figures.value(mamba_conv), state = figures.value(mamba_state); conv && state)
      add("states", *conv + *state);
    if (reader.engine_name == "tensorrt-llm" && !figures.value(weights) && figures.value(available) &&
        total > *figures.value(available)) {
      add("in_use", total - *figures.value(available));
    }
    add("cache", reader.pool_bytes());
    if (total == 0) total = figures.value(avail_before_load).value_or(0);
    if (total == 0 && reader.gpu_found != nullptr) {
      Deployment on;
      on.gpu = reader.gpu_found;
      total = on.memory(false).bytes.count;
    }
  }
  Wide drawn = 0;
  for (const auto& segment : segments) drawn += segment.bytes;
  out.key("memory");
  if (segments.empty() || drawn > kMaxExact) {
    out.null();
    return;
  }
  if (total > drawn) segments.push_back({"left", static_cast<u64>(total - drawn)});
  const Wide scale = std::max<Wide>({Wide{total}, drawn, Wide{1}});
  out.begin_object();
  put(out, "total_bytes", total != 0 ? std::optional(total) : std::nullopt);
  out.key("total_reading");
  if (total != 0) {
    write_reading(out, Bytes{total});
  } else {
    out.null();
  }
  out.key("total_share").decimal((total != 0 ? Wide{total} : scale) * 1'000'000 / scale);
  out.key("segments").begin_array();
  for (const auto& segment : segments) {
    out.begin_object().key("kind").text(segment.kind).key("bytes").number(segment.bytes).key("reading");
    write_reading(out, Bytes{segment.bytes});
    out.key("share").decimal(Wide{segment.bytes} * 1'000'000 / scale).end_object();
  }
  out.end_array().end_object();
}

void write_notes(Writer& out, std::string_view key, const std::vector<Note>& notes) {
  out.key(key).begin_array();
  for (const auto& note : notes) {
    out.begin_object().key("code").text(note.code).key("values").begin_object();
    for (const auto& value : note.values) out.key(value.name).text(value.text);
    // Byte counts as people read them, beside their digits.
    out.end_object().key("readings").begin_object();
    for (const auto& value : note.values) {
      const std::string_view digits_of = value.text;
      if (!std::string_view(value.name).ends_with("bytes") || digits_of.empty() || digits_of.size() > 16 ||
          digits_of.front() == '-') {
        continue;
      }
      u64 bytes = 0;
      for (const char digit : digits_of) bytes = bytes * 10 + static_cast<u64>(digit - '0');
      out.key(value.name);
      write_reading(out, Bytes{bytes});
    }
    out.end_object().end_object();
  }
  out.end_array();
}

}  // namespace

std::string read_log_json(std::string_view text, const Features& features) {
  if (text.size() > kMaxLogBytes) {
    return error_json({ErrorCode::too_large, "log",
                       "is " + digits(text.size()) + " bytes long; at most " + digits(kMaxLogBytes) + " are read"});
  }
  const log::Scan scan = log::scan(text);
  Reader reader(scan, features);
  std::vector<Comparison> comparisons;
  std::vector<Alternative> others;
  std::optional<Computed> base;
  if (reader.engine != nullptr) {
    reader.describe();
    if (reader.question.has_model()) base = compute(reader.question, features, &reader.findings);
  }
  reader.find_missing();
  reader.find_contradictions();
  reader.find_facts();
  if (base) {
    comparisons = compare(reader, *base);
    others = alternatives(reader, *base);
    const u64 now = base->concurrency_millionths.value_or(0);
    const Alternative* best = nullptr;
    for (const auto& one : others) {
      if (one.free && one.concurrency > now && (best == nullptr || one.concurrency > best->concurrency)) best = &one;
    }
    if (best != nullptr) {
      reader.add_finding("best_change", {{"change", std::string(best->change)},
                                         {"value", best->value},
                                         {"concurrency", decimals(now, 1'000'000)},
                                         {"concurrency_then", decimals(best->concurrency, 1'000'000)},
                                         {"gain", decimals(Wide{best->concurrency} * 1'000'000 / now, 1'000'000)}});
    }
  }

  Writer out;
  out.begin_object();
  put_text(out, "engine", reader.engine_name);
  put_text(out, "variant", reader.variant);
  put_text(out, "engine_version", reader.version);
  out.key("ranks").number(reader.ranks());
  write_lines(out, reader);
  write_printed(out, reader);
  write_memory(out, reader);
  out.key("request");
  if (reader.engine != nullptr) {
    write_question(out, reader.question);
  } else {
    out.null();
  }
  out.key("missing").begin_array();
  for (const auto& field : reader.missing) out.text(field);
  out.end_array();
  write_notes(out, "contradictions", reader.contradictions);
  write_notes(out, "findings", reader.findings);
  out.key("comparison").begin_array();
  for (const auto& one : comparisons) {
    out.begin_object().key("figure").text(one.figure);
    put_text(out, "of", one.of);
    const bool fraction = one.unit == "conversations";
    out.key("printed");
    fraction ? out.decimal(one.printed) : out.number(one.printed);
    out.key("computed");
    fraction ? out.decimal(one.computed) : out.number(one.computed);
    out.key("ratio").decimal(one.ratio_millionths()).key("agrees").boolean(one.agrees).key("unit").text(one.unit);
    if (one.unit == "bytes") {
      out.key("printed_reading");
      write_reading(out, Bytes{one.printed});
      out.key("computed_reading");
      write_reading(out, Bytes{one.computed});
    }
    out.end_object();
  }
  out.end_array().key("alternatives").begin_array();
  for (const auto& one : others) {
    const u64 now = base->concurrency_millionths.value_or(0);
    out.begin_object()
        .key("change")
        .text(one.change)
        .key("value")
        .text(one.value)
        .key("concurrency")
        .decimal(one.concurrency);
    out.key("gain")
        .decimal(now == 0 ? 0 : Wide{one.concurrency} * 1'000'000 / now)
        .key("same_gpus_and_length")
        .boolean(one.free)
        .end_object();
  }
  out.end_array().end_object();
  return out.take();
}

}  // namespace kvcap
