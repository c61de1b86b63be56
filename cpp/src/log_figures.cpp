#include "log_figures.hpp"

#include <algorithm>

#include "letters.hpp"

namespace kvcap::log {

using enum Field;

namespace {

u64 counted(const Found& one) { return one.value > 0 ? static_cast<u64>(one.value) : 0; }

const Found* least(const std::vector<const Found*>& values) {
  const Found* best = nullptr;
  for (const Found* one : values) {
    if (best == nullptr || one->value < best->value) best = one;
  }
  return best;
}

}  // namespace

Figures::Figures(const Scan& scan) {
  gather(scan);
  choose();
  complete_caches();
}

u64 Figures::number(Field field, u64 otherwise) const noexcept {
  const Found* const one = get(field);
  return one == nullptr ? otherwise : counted(*one);
}

std::string_view Figures::text(Field field) const noexcept {
  const Found* const one = get(field);
  return one == nullptr ? std::string_view{} : one->text;
}

int Figures::rank_of(const Found& one) const noexcept {
  if (!one.rank.said()) return -1;
  const auto part = [](int n) { return n > 0 ? n : 0; };
  return (part(one.rank.data) * static_cast<int>(pipeline_ranks) + part(one.rank.pipeline)) *
             static_cast<int>(tensor_ranks) +
         part(one.rank.tensor);
}

// ---- sorting -------------------------------------------------------------------------------------------------------

void Figures::gather(const Scan& scan) {
  // The last start that printed a cache counts.
  u32 start = 0;
  for (const auto& one : scan.found) {
    tensor_ranks = std::max(tensor_ranks, static_cast<u32>(one.rank.tensor + 1));
    pipeline_ranks = std::max(pipeline_ranks, static_cast<u32>(one.rank.pipeline + 1));
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

  // What stands before the last start still names the machine, the nearest first.
  const auto of_machine = [](Field field) { return field == gpu || field == driver_memory || field == total_memory; };
  std::array<u32, kFields> nearest{};
  for (const auto& one : scan.found) {
    if (of_machine(one.field) && one.start <= start) nearest[static_cast<std::size_t>(one.field)] = one.start;
  }

  const auto nearest_of = [&](Field field) -> u32& { return nearest[static_cast<std::size_t>(field)]; };
  for (const Field memory : {driver_memory, total_memory}) {
    // Another card has been named since.
    if (nearest_of(memory) < nearest_of(gpu)) nearest_of(memory) = start;
  }

  std::string_view path;
  std::string_view announced;
  const Found* on = nullptr;  // the device that a message names
  for (const auto& one : scan.found) {
    if (one.start != (of_machine(one.field) ? nearest_of(one.field) : start)) continue;
    switch (one.field) {
      case meta_path:
        if (path.empty()) {
          path = one.text;
          of_[static_cast<std::size_t>(meta_path)].push_back(&one);
        }
        if (path != one.text) {
          draft = true;
          return;
        }
        // The same model once more: what came before was a trial.
        caches.clear();
        devices.clear();
        continue;
      case Field::draft: draft = true; return;
      case window_cells: announced = "window"; break;
      case base_cells: announced = "full"; break;
      case device: on = &one; continue;
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
      case state_s: add_cache_part(one, announced); continue;
      case kv_buffer:
      case state_buffer:
      case compute_buffer:
      case model_buffer:
        add_device_part(on != nullptr && on->match == one.match ? on->text : std::string_view{}, one);
        continue;
      case pool_tokens:
      case pool_k:
      case pool_v:
      case pool_kv: add_pool_part(one); continue;
      default: break;
    }
    if (const int rank = rank_of(one); rank >= 0 && std::ranges::find(ranks, rank) == ranks.end()) {
      ranks.push_back(rank);
    }
    decimal_labels = decimal_labels || one.decimal_label;
    auto& values = of_[static_cast<std::size_t>(one.field)];
    bool again = false;
    if (one.field == avail_before_load || one.field == avail_after_load || one.field == avail_pool_end) {
      // A second load of the same rank is that of a draft model.
      for (const Found* other : values) again = again || other->rank == one.rank;
      draft = draft || again;
    }
    if (!again) values.push_back(&one);
  }
}

void Figures::add_cache_part(const Found& part, std::string_view announced) {
  const u64 value = counted(part);
  Cache* last = caches.empty() ? nullptr : &caches.back();
  const bool same_line = last != nullptr && last->line == part.line;
  if (part.field == cache_size && same_line && last->size == value && (last->k != 0 || last->cells != 0)) {
    return;  // a shorter pattern sees the size of a message that was already read
  }
  const bool opens = (part.field == cache_size && !(same_line && last->size == value)) ||
                     (part.field == cells && !(same_line && last->cells == 0 && last->k == 0 && last->size != 0));
  if (last == nullptr || opens) {
    last = &caches.emplace_back();
    last->line = part.line;
    if (!announced.empty()) {
      last->kind = announced;
      last->named = true;
    }
  }
  const auto is = [&](std::string_view kind) {
    last->kind = kind;
    last->named = true;
  };
  switch (part.field) {
    case cells: last->cells = value; break;
    case layers: last->layers = value; break;
    case seqs: last->seqs = value; break;
    case streams: last->streams = std::max<u64>(value, 1); break;
    case rs_copies:
      last->copies = value;
      is("recurrent");
      break;
    case cache_size: last->size = value; break;
    case cache_type_k: last->k_type = part.text; break;
    case cache_type_v: last->v_type = part.text; break;
    case cache_latent: is("latent"); [[fallthrough]];
    case cache_k:
    case state_r:
      if (part.field == state_r) is("recurrent");
      last->k = value;
      last->k_tolerance = part.tolerance;
      break;
    default:
      last->v = value;
      last->v_tolerance = part.tolerance;
      break;
  }
}

void Figures::add_device_part(std::string_view name, const Found& part) {
  // Weights in a mapped file are read by the device that maps it (Metal), unless that is the CPU.
  if (name.ends_with("_Mapped") && !name.starts_with("CPU")) name.remove_suffix(7);
  auto place = std::ranges::find(devices, name, &Device::name);
  if (place == devices.end()) {
    devices.push_back({.name = name});
    place = devices.end() - 1;
  }
  const u64 value = counted(part);
  switch (part.field) {
    // Caches of one device add up (full and window layers); buffers are reserved anew.
    case kv_buffer: place->kv += value; break;
    case state_buffer: place->state += value; break;
    case compute_buffer: place->compute = std::max(place->compute, value); break;
    default: place->model += value; break;
  }
}

void Figures::add_pool_part(const Found& part) {
  if (pools.empty() || part.field == pool_tokens || (part.field == pool_k && pools.back().k != 0)) {
    pools.push_back({.rank = rank_of(part)});
  }
  Pool& pool = pools.back();
  pool.tolerance += part.tolerance;
  const u64 value = counted(part);
  switch (part.field) {
    case pool_tokens: pool.tokens = value; break;
    case pool_k: pool.k = value; break;
    case pool_v: pool.v = value; break;
    default: pool.kv = value; break;
  }
}

void Figures::choose() {
  // The rank with the smallest pool, or its place in the list where ranks are not named.
  const Found* poorest = nullptr;
  std::size_t place = 0;
  std::size_t count = 0;
  for (const Field field : {kv_memory, avail_after_load, kv_blocks, kv_tokens}) {
    const auto& values = all(field);
    if (values.size() < 2) continue;
    poorest = least(values);
    while (values[place] != poorest) ++place;
    count = values.size();
    break;
  }
  for (std::size_t i = 0; i < kFields; ++i) {
    const auto& values = of_[i];
    if (values.empty()) continue;
    const Found*& chosen = chosen_[i];
    const auto field = static_cast<Field>(i);
    chosen = values.front();
    const Merge merge = spec_of(field).merge;
    if (merge == Merge::last) chosen = values.back();
    if (spec_of(field).kind == Kind::text && chosen->text == "auto") {
      // Flags say "auto" before the engine says what it took.
      for (const Found* one : values) {
        if (one->text == "auto" || (merge == Merge::first && chosen->text != "auto")) continue;
        chosen = one;
      }
    }
    if (merge != Merge::per_rank) continue;
    if (field == kv_memory || field == kv_tokens || field == kv_blocks || field == concurrency) {
      chosen = least(values);
    } else if (poorest != nullptr && poorest->rank.said()) {
      for (auto one = values.rbegin(); one != values.rend(); ++one) {
        if ((*one)->rank == poorest->rank) chosen = *one;
      }
    } else if (count == values.size()) {
      chosen = values[place];
    }
  }
}

void Figures::complete_caches() {
  std::erase_if(caches, [](const Cache& cache) { return cache.bytes() == 0 && cache.cells == 0; });
  const bool stateful = text(n_head_kv) == "0";
  for (auto& cache : caches) {
    if (cache.recurrent()) continue;
    // Before mid-2025 the states of RWKV and Mamba were printed as K and V.
    if (stateful) cache.kind = "recurrent";
    if (cache.cells == 0) cache.cells = number(kv_cells, stateful ? 1 : number(n_ctx));
    if (cache.layers == 0) cache.layers = number(n_layer);
    if (cache.k_type.empty()) cache.k_type = text(type_k);
    if (cache.v_type.empty()) cache.v_type = text(type_v);
    if (!stateful && !cache.named && cache.k != 0 && cache.v == 0) cache.kind = "latent";
  }
}

u64 Figures::gpu_devices() const noexcept {
  u64 count = 0;
  for (const auto& one : devices) {
    // Rows split over all GPUs are printed as a device of their own.
    if (!one.name.empty() && !one.host() && !one.name.ends_with("_Split") && one.compute + one.kv + one.model != 0) {
      ++count;
    }
  }
  return count;
}

u64 Figures::cache_bytes() const noexcept {
  u64 sum = 0;
  for (const auto& cache : caches) sum += cache.bytes();
  if (sum != 0) return sum;
  for (const auto& one : devices) sum += one.kv + one.state;
  return sum;
}

std::vector<u64> Figures::list(Field field) const {
  std::vector<u64> out;
  bool inside = false;
  for (const char c : text(field)) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) out.push_back(0);
    if (digit) out.back() = std::min<u64>(out.back() * 10 + static_cast<u64>(c - '0'), kMaxWidth);
    inside = digit;
  }
  return out;
}

// ---- layers --------------------------------------------------------------------------------------------------------

namespace {

/// Values that `bytes` (± tolerance) hold in `format`, spread over `rows` rows; 0 where they are no whole number.
u32 row_values(u64 bytes, u64 tolerance, const Format* format, Wide rows) {
  if (format == nullptr || rows == 0 || bytes == 0) return 0;
  const Wide per_value = rows * format->block_bytes;
  const Wide first = ceil_div(Wide{bytes - std::min(bytes, tolerance)} * format->block_values, per_value);
  const Wide last = (Wide{bytes} + tolerance) * format->block_values / per_value;
  if (first > last || last > kMaxWidth) return 0;
  // The roundest number of the interval: widths are multiples of a head's.
  u64 step = kMaxWidth;
  u64 multiple = 0;
  do {
    step /= 2;
    multiple = static_cast<u64>(ceil_div<Wide>(first, step)) * step;
  } while (step > 1 && (multiple == 0 || multiple > last));
  return static_cast<u32>(multiple);
}

/// Layers from the loader's keys alone, which tell of plain attention.
std::vector<LayerRun> plain_layers(const Figures& figures) {
  std::vector<LayerRun> runs;
  const u64 count = figures.number(n_layer);
  const u64 key = figures.number(head_k);
  const u64 value = figures.number(head_v, key);
  auto heads = figures.list(n_head_kv);
  if (heads.size() == 1 && count <= kMaxRuns) heads.assign(static_cast<std::size_t>(count), heads.front());
  if (heads.size() != count || figures.number(n_swa) != 0 || figures.number(lora_kv) != 0 || key == 0 ||
      key > kMaxWidth || value > kMaxWidth) {
    return runs;
  }
  for (const u64 of_layer : heads) {
    LayerRun run;
    run.count = 1;
    run.kind = LayerKind::none;
    if (of_layer != 0) {
      run.kind = LayerKind::full;
      run.kv_heads = static_cast<u32>(std::min(of_layer, kMaxHeads));
      run.key_width = static_cast<u32>(key);
      run.value_width = static_cast<u32>(value);
    }
    runs.push_back(run);
  }
  return merge_runs(runs);
}

}  // namespace

std::vector<LayerRun> layers_of(const Figures& figures) {
  std::vector<LayerRun> runs;
  u64 others = 0;
  for (const auto& cache : figures.caches) {
    if (cache.recurrent()) continue;
    const Wide rows = Wide{cache.cells} * cache.streams * cache.layers;
    LayerRun run;
    run.count = static_cast<u32>(std::min(cache.layers, kMaxLayers));
    others += run.count;
    const u32 key = row_values(cache.k, cache.k_tolerance, cache_format(cache.k_type), rows);
    const u32 value = row_values(cache.v, cache.v_tolerance, cache_format(cache.v_type), rows);
    if (key == 0 || (value == 0 && cache.v != 0)) return plain_layers(figures);
    if (cache.kind == "latent") {
      run.kind = LayerKind::latent;
      run.latent_width = key;
    } else {
      run.window_tokens = cache.kind == "window" ? static_cast<u32>(std::min(figures.number(n_swa), kMaxTokens)) : 0;
      if (run.window_tokens != 0) run.kind = LayerKind::window;
      const u64 head = figures.number(head_k);
      run.kv_heads = head != 0 && key % head == 0 && value % (key / head) == 0 ? static_cast<u32>(key / head) : 1;
      run.key_width = key / run.kv_heads;
      run.value_width = value / run.kv_heads;
    }
    runs.push_back(run);
  }
  for (const auto& cache : figures.caches) {
    if (!cache.recurrent()) continue;
    const u64 all = std::max(cache.layers, figures.number(n_layer));
    LayerRun run;
    run.kind = LayerKind::recurrent;
    run.count = all > others ? static_cast<u32>(std::min(all - others, kMaxLayers)) : 0;
    const Wide rows = Wide{run.count} * std::max<u64>(cache.cells, 1) * (1 + cache.copies);
    run.state_format = run.conv_format = find_format("fp32");
    run.state_values = row_values(cache.v, cache.v_tolerance, run.state_format, rows);
    run.conv_values = row_values(cache.k, cache.k_tolerance, run.conv_format, rows);
    if (run.state_values + run.conv_values == 0) return {};
    runs.push_back(run);
  }
  return runs.empty() ? plain_layers(figures) : runs;
}

// ---- names ---------------------------------------------------------------------------------------------------------

bool lists(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::optional<bool> truth_of(std::string_view text) noexcept {
  if (lists("True true 1 enabled on", text)) return true;
  if (lists("False false 0 disabled off", text)) return false;
  return std::nullopt;
}

const Format* cache_format(std::string_view name) noexcept {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  const Format* format = find_format(name);
  if (name.starts_with("fp8_e") || name.starts_with("float8_e")) format = find_format("fp8");
  return format != nullptr && format->cache ? format : nullptr;
}

const CatalogueEntry* find_named_model(std::string_view printed) {
  if (const CatalogueEntry* const exact = find_model(printed)) return exact;
  std::string name(printed);
  // A cache folder of the hub: models--Qwen--Qwen3-8B/snapshots/…
  if (const std::size_t hub = name.find("models--"); hub != std::string::npos) {
    name.erase(0, hub + 8);
    name.erase(std::min(name.find('/'), name.size()));
    const std::size_t dashes = name.find("--");
    name.erase(0, dashes == std::string::npos ? 0 : dashes + 2);
  }
  while (name.ends_with('/')) name.pop_back();
  name.erase(0, name.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  for (char& c : name) c = c == ' ' || c == '_' || c == ':' ? '-' : lower(c);
  // Publishers put their name before the model's; what follows says how it is stored or tuned, not what shape it has.
  for (bool first = true;; first = false) {
    if (const CatalogueEntry* const found = find_model(name)) return found;
    if (first) {
      const std::size_t dash = name.find('-');
      if (dash != std::string::npos &&
          lists("meta unsloth nvidia redhatai google mistralai", std::string_view(name).substr(0, dash))) {
        name.erase(0, dash + 1);
        continue;
      }
    }
    const std::size_t dash = name.rfind('-');
    if (dash == std::string::npos) return nullptr;
    if (!lists("awq gptq int4 int8 fp8 bf16 fp16 f16 gguf bnb 4bit 8bit nf4 w4a16 w8a8 w8a16 nvfp4 mxfp4 dynamic block "
               "unsloth instruct chat it hf base quantized exl2 marlin autoround mtp ud q2 q3 q4 q5 q6 q8 iq1 iq2 iq3 "
               "iq4 k m s l xl xs xxs nl 0 1 r4 kss ks kt quant abliterated tensor channel uncensored",
               std::string_view(name).substr(dash + 1))) {
      return nullptr;
    }
    name.resize(dash);
  }
}

namespace {

/// The words of a GPU's name, small, each between two spaces.
std::string words_of(std::string_view name) {
  std::string words = " ";
  for (char c : name) {
    c = lower(c);
    const bool part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (part) {
      words += c;
    } else if (!words.ends_with(' ')) {
      words += ' ';
    }
  }
  words += ' ';
  return words;
}

bool holds(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    if (words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  }
  return false;
}

template <class Visit>
void each_word(std::string_view words, Visit visit) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end != 0) visit(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

/// "SXM4", "SXM5" and "HBM3" (of an H100) are the SXM form.
bool is_sxm(std::string_view words) {
  return holds(words, "sxm") || holds(words, "sxm2") || holds(words, "sxm4") || holds(words, "sxm5") ||
         (holds(words, "h100") && holds(words, "hbm3"));
}

}  // namespace

const Gpu* find_printed_gpu(std::string_view printed, u64 memory_bytes) {
  const std::string have = words_of(printed);
  const Gpu* best = nullptr;
  unsigned most = 0;
  bool tie = false;
  for (const Gpu& candidate : gpus()) {
    const std::string id = words_of(candidate.id);
    const std::string full = words_of(candidate.name);
    unsigned common = 0;
    bool fits = true;
    each_word(id, [&](std::string_view word) {
      const bool sxm = word.starts_with("sxm");
      const bool said = sxm ? is_sxm(have) : holds(have, word);
      // Sizes and forms may be left out of a driver's name.
      const bool spare = sxm || (word.ends_with("gb") && word.size() <= 5) || lists("pcie nvl gcd die", word);
      common += said ? 1U : 0U;
      fits = fits && (said || spare);
    });
    // Words that make another card of it.
    each_word("ti super d nvl pcie xt xtx max pro ultra laptop ada mobile", [&](std::string_view word) {
      if (holds(have, word) && !holds(id, word) && !holds(full, word)) fits = false;
    });
    if (is_sxm(have) && !is_sxm(id) && !is_sxm(full)) fits = false;
    const u64 sold = candidate.sold_gb_thousandths * 1'000'000;
    // A program sees at most a fifth less and a tenth more than the sold size.
    if (memory_bytes != 0 && sold != 0 && (memory_bytes < sold / 5 * 4 || memory_bytes > sold / 10 * 11)) fits = false;
    if (!fits || common == 0 || common < most) continue;
    tie = common == most;
    most = common;
    best = &candidate;
  }
  return tie ? nullptr : best;
}

}  // namespace kvcap::log
