// Draws questions whose numbers a person would meet.
#include <algorithm>

#include "kvcap/catalogue.hpp"
#include "quiz.hpp"

namespace kvcap::quiz {
namespace {

enum class Pool : unsigned char {
  plain,   ///< full attention alone, dense, of a course
  full,    ///< full attention alone, mixtures too
  shaped,  ///< with windows or latent rows, which do not simply grow
  any,     ///< the last two
};

bool in_pool(const CatalogueEntry& entry, const Model& model, Pool pool) {
  if (entry.parameters == 0 || entry.query_heads == 0 || entry.max_context < 4096) return false;
  bool full = true;
  bool shaped = false;
  for (const auto& run : model.layers) {
    full = full && run.kind == LayerKind::full && run.value_width != 0 && run.indexer_width == 0;
    const bool window = run.kind == LayerKind::window && run.value_width != 0;
    const bool latent = run.kind == LayerKind::latent && run.indexer_width == 0;
    if (!window && !latent && run.kind != LayerKind::full) return false;
    shaped = shaped || window || latent;
  }
  switch (pool) {
    case Pool::plain: return full && entry.core && entry.active_parameters == 0 && model.layers.size() == 1;
    case Pool::full: return full && entry.hidden_size != 0 && model.layers.size() == 1;
    case Pool::shaped: return shaped;
    case Pool::any: break;
  }
  return full || shaped;
}

using Entries = std::vector<const CatalogueEntry*>;

/// The pool's models; worked out once, since every draw asks.
const Entries& entries_of(Pool pool) {
  static const std::array<Entries, 4> kPools = [] {
    std::array<Entries, 4> made;
    for (const auto& entry : catalogue()) {
      const auto model = model_of(entry);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (model && in_pool(entry, *model, static_cast<Pool>(i))) made[i].push_back(&entry);
      }
    }
    return made;
  }();
  return kPools[static_cast<std::size_t>(pool)];
}

template <class Choices>
auto pick(Random& random, const Choices& from) {
  return from[static_cast<std::size_t>(random.below(std::size(from)))];
}

/// The numbers of a deployment that are drawn.
struct Setting {
  const CatalogueEntry* entry = nullptr;
  Label kv = "bf16";
  Label weights = "bf16";
  Label gpu = "80gb";
  u64 gpus = 1;
  u64 context = 8192;
};

Request request_of(const Setting& setting) {
  Request request;
  // The catalogue's own rows always read.
  if (fill_model(*setting.entry, request.model)) return request;
  const Format* const kv = find_format(setting.kv);
  request.kv = cache_formats(kv, kv);
  request.weights = find_format(setting.weights);
  request.context = {setting.context};
  request.engine = &textbook_rules();
  if (auto options = parse_options(request.engine->options, nullptr)) request.options = std::move(*options);
  Deployment& on = request.deployment;
  on.gpu = find_gpu(setting.gpu);
  on.gpu_id = on.gpu->id;
  on.gpu_name = on.gpu->name;
  on.gpus = on.tensor_parallel = setting.gpus;
  return request;
}

Setting draw_setting(Random& random, u64 level, Pool pool) {
  constexpr Label kCards[] = {"80gb", "rtx-4090", "l40s-48gb", "a100-sxm-40gb", "h200-sxm-141gb"};
  constexpr Label kCaches[] = {"bf16", "bf16", "fp8", "int8"};
  constexpr Label kWeights[] = {"bf16", "bf16", "fp8", "int8", "int4"};
  Setting out;
  out.entry = pick(random, entries_of(pool));
  if (level > 1) {
    out.kv = pick(random, kCaches);
    out.weights = pick(random, kWeights);
    out.gpu = pick(random, kCards);
  }
  const u64 longest = std::min<u64>(out.entry->max_context, 131'072);
  u64 lengths = 0;
  while ((u64{2048} << lengths) <= longest) ++lengths;
  out.context = u64{2048} << random.below(lengths);
  return out;
}

/// The least power of two of GPUs on which at least two conversations fit, up to 64.
u64 enough_gpus(Setting setting) {
  for (setting.gpus = 1; setting.gpus < 64; setting.gpus *= 2) {
    Scene scene{Kind::sequences, request_of(setting), {}, "", 1};
    const auto sequences = value_of(scene);
    if (sequences && *sequences >= 2) break;
  }
  return setting.gpus;
}

Pool pool_for(Kind kind, u64 level) {
  if (kind == Kind::shape) return Pool::shaped;
  if (level == 1) return Pool::plain;
  const bool linear = kind == Kind::longest_context || kind == Kind::bytes_per_token;
  return level == 2 || linear ? Pool::full : Pool::any;
}

/// Whether what leads astray does: half of the questions are of models on which a known mistake shows.
bool tempting(const CatalogueEntry& entry, const Request& request, Kind kind) {
  const auto& run = request.model.layers[0];
  if (kind == Kind::bytes_per_token) return entry.hidden_size != entry.query_heads * run.key_width;
  if (kind == Kind::room) return entry.active_parameters != 0;
  return true;
}

/// One try; nothing where the numbers that were drawn make no good question.
std::optional<Scene> draw_scene(Random& random, Kind kind, u64 level) {
  Setting setting = draw_setting(random, level, pool_for(kind, level));
  setting.gpus = enough_gpus(setting);
  if (level > 1 && random.below(3) == 0 && setting.gpus < 64) setting.gpus *= 2;
  Scene scene{kind, request_of(setting), {}, "", 1};
  if (level > 1 && random.below(2) == 0 && !tempting(*setting.entry, scene.request, kind)) return std::nullopt;
  switch (kind) {
    case Kind::costlier: {
      Setting second = setting;
      second.entry = pick(random, entries_of(pool_for(kind, level)));
      if (second.entry->max_context < setting.context) return std::nullopt;
      scene.other = request_of(second);
      const Wide a = sequence_cost(scene.request.model.layers, scene.request.kv, 1, scene.request.context).total;
      const Wide b = sequence_cost(scene.other->model.layers, scene.other->kv, 1, scene.other->context).total;
      // Close calls are about rounding, not about caches.
      if (10 * std::max(a, b) < 13 * std::min(a, b)) return std::nullopt;
      // The larger model with the larger cache teaches little, so it comes up less often.
      const bool expected = (a > b) == (setting.entry->parameters > second.entry->parameters);
      if (expected && random.below(3) != 0) return std::nullopt;
      break;
    }
    case Kind::longest_context:
    case Kind::fewest_gpus: {
      constexpr u64 kUsers[] = {4, 8, 10, 16, 20, 32, 50, 64, 100, 200};
      scene.users = pick(random, kUsers);
      const auto value = value_of(scene);
      if (!value) return std::nullopt;
      const u64 longest = setting.entry->max_context;
      if (kind == Kind::longest_context && (*value < 1024 || *value > longest)) return std::nullopt;
      if (kind == Kind::fewest_gpus && (*value < 2 || *value > 64)) return std::nullopt;
      break;
    }
    case Kind::lever: {
      scene.other = scene.request;
      scene.lever = pick(random, kLevers);
      const std::string_view lever = scene.lever;
      if (lever == "kv") setting.kv = std::string_view(setting.kv) == "bf16" ? "fp8" : "int4";
      if (lever == "weights") setting.weights = std::string_view(setting.weights) == "bf16" ? "fp8" : "int4";
      if (lever == "gpus") setting.gpus *= 2;
      if (lever == "context") setting.context /= 2;
      if (lever == "weights" && scene.request.weights->bits == 4) return std::nullopt;
      scene.request = request_of(setting);
      break;
    }
    case Kind::shape:
      // A window that is not full yet, and a context that all of it fits in, change nothing.
      for (const auto& run : scene.request.model.layers) {
        if (run.kind == LayerKind::window && u64{run.window_tokens} * 2 > setting.context) return std::nullopt;
      }
      break;
    default: break;
  }
  const auto value = value_of(scene);
  if (!value || (*value == 0 && unit_of(kind) != Unit::choice)) return std::nullopt;
  return scene;
}

constexpr int kTries = 200;

std::optional<Scene> draw_good(Random& random, Kind kind, u64 level) {
  std::optional<Scene> scene;
  for (int i = 0; i < kTries && !scene; ++i) scene = draw_scene(random, kind, level);
  return scene;
}

}  // namespace

std::vector<Question> draw_questions(u64 seed, u64 count, u64 level, const std::vector<Kind>& topics) {
  Random random(seed);
  std::vector<Question> out;
  for (u64 i = 0; i < count; ++i) {
    const Kind kind = topics[static_cast<std::size_t>(i % topics.size())];
    auto scene = draw_good(random, kind, level);
    if (!scene) continue;
    const Wide value = *value_of(*scene);
    out.push_back({std::move(*scene), value, tolerance_of(kind, false)});
  }
  return out;
}

std::vector<Question> draw_interview(u64 seed) {
  Random random(seed);
  std::vector<Question> out;
  const auto scene = draw_good(random, Kind::sequences, 2);
  if (!scene) return out;
  for (const Kind kind :
       {Kind::weights, Kind::room, Kind::bytes_per_token, Kind::ask_context, Kind::sequence_bytes, Kind::sequences}) {
    Scene link = *scene;
    link.kind = kind;
    const Wide value = *value_of(link);
    out.push_back({std::move(link), value, tolerance_of(kind, true)});
  }
  return out;
}

}  // namespace kvcap::quiz
