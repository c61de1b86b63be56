// Values of questions, and of the same questions with a mistake in them.
#include <algorithm>

#include "kvcap/catalogue.hpp"
#include "quiz.hpp"
#include "search.hpp"

namespace kvcap::quiz {
namespace {

struct Sizes {
  std::optional<WeightBytes> weights;
  Reservation reserved;
};

std::optional<Sizes> sizes_of(const Request& request) {
  const auto weights = weights_of(request).value_or(std::nullopt);
  if (!weights) return std::nullopt;
  const auto reserved = reserve_with(request, weights, request.deployment, request.context);
  if (!reserved) return std::nullopt;
  return Sizes{weights, *reserved};
}

SequenceCost cost_of(const Request& request) {
  return sequence_cost(request.model.layers, request.kv, 1, request.context);
}

/// Changes a request as somebody would who is mistaken. False where there is nothing to be mistaken about.
using Make = bool (*)(Request& request);

bool for_runs(Request& request, bool (*change)(const Request&, LayerRun&)) {
  bool any = false;
  for (auto& run : request.model.layers) any = change(request, run) || any;
  return any;
}

bool query_heads(Request& request) {
  return for_runs(request, [](const Request& in, LayerRun& run) {
    if (run.kv_heads == 0 || in.model.query_heads <= run.kv_heads) return false;
    run.kv_heads = in.model.query_heads;
    return true;
  });
}

bool hidden_over_heads(Request& request) {
  return for_runs(request, [](const Request& in, LayerRun& run) {
    const CatalogueEntry* const entry = find_model(in.model.id);
    if (run.kv_heads == 0 || entry == nullptr || entry->hidden_size == 0 || in.model.query_heads == 0) return false;
    const u32 width = entry->hidden_size / in.model.query_heads;
    run.key_width = width;
    if (run.value_width != 0) run.value_width = width;
    return true;
  });
}

bool factor_two(Request& request) {
  return for_runs(request, [](const Request&, LayerRun& run) {
    if (run.kv_heads == 0 || run.value_width == 0) return false;
    run.value_width = 0;
    return true;
  });
}

/// A format of as many bytes as it has bits.
const Format* in_bits(const Format* format) {
  static const std::vector<Format> kInBits = [] {
    std::vector<Format> made(formats().begin(), formats().end());
    for (auto& one : made) one.block_bytes *= 8;
    return made;
  }();
  return &kInBits[static_cast<std::size_t>(format - formats().data())];
}

bool cache_in_bits(Request& request) {
  request.kv.k = in_bits(request.kv.k);
  request.kv.v = in_bits(request.kv.v);
  return true;
}

bool weights_in_bits(Request& request) {
  const auto weights = weights_of(request).value_or(std::nullopt);
  if (!weights) return false;
  request.weight_bytes = Bytes{weights->bytes.count * 8};
  return true;
}

bool weight_bits_on_cache(Request& request) {
  const u32 bits = request.weights->bits;
  const Format* const format = find_format(bits == 16 ? "bf16" : bits == 8 ? "fp8" : bits == 4 ? "int4" : "fp32");
  if (format->bits != bits) return false;
  request.kv.k = request.kv.v = format;
  return true;
}

bool active_parameters(Request& request) {
  if (!request.model.active_parameters) return false;
  request.model.parameters = request.model.active_parameters;
  request.model.native_weight_bytes.reset();
  return true;
}

bool one_layer(Request& request) {
  return for_runs(request, [](const Request&, LayerRun& run) {
    const bool more = run.count > 1;
    run.count = 1;
    return more;
  });
}

bool reserve_forgotten(Request& request) {
  for (std::size_t i = 0; i < request.options.specs.size(); ++i) {
    if (request.options.specs[i].name == "reserve") request.options.values[i] = {true, true, 0};
  }
  return true;
}

/// The memory of a GPU that is sold as so many GB, read as GiB.
bool memory_in_gib(Request& request) {
  const Wide sold = request.deployment.memory(true).bytes.count;
  request.deployment.stated_memory = Bytes{static_cast<u64>((sold << 30) / 1'000'000'000)};
  return true;
}

bool windows_as_full(Request& request) {
  return for_runs(request, [](const Request&, LayerRun& run) {
    if (!is_window(run)) return false;
    run.kind = LayerKind::full;
    return true;
  });
}

bool heads_for_latent(Request& request) {
  return for_runs(request, [](const Request&, LayerRun& run) {
    if (run.latent_width == 0 || run.expanded_heads == 0) return false;
    run.kind = LayerKind::full;
    run.latent_width = 0;
    run.kv_heads = run.expanded_heads;
    run.key_width = run.expanded_key_width;
    run.value_width = run.expanded_value_width;
    return true;
  });
}

bool latent_twice(Request& request) {
  return for_runs(request, [](const Request&, LayerRun& run) {
    run.latent_width *= 2;
    return run.latent_width != 0;
  });
}

bool weights_forgotten(Request& request) {
  request.weight_bytes = Bytes{0};
  return true;
}

struct Mistake {
  Label code;
  Make make;
};
/// In the order in which they are looked for: what people do most stands first.
constexpr Mistake kMistakes[] = {
    {"query_heads", query_heads},
    {"hidden_over_heads", hidden_over_heads},
    {"factor_two", factor_two},
    {"bits_for_bytes", cache_in_bits},
    {"bits_for_bytes", weights_in_bits},
    {"gb_for_gib", memory_in_gib},
    {"weight_bits_on_cache", weight_bits_on_cache},
    {"active_parameters", active_parameters},
    {"one_layer", one_layer},
    {"reserve_forgotten", reserve_forgotten},
    {"windows_as_full", windows_as_full},
    {"heads_for_latent", heads_for_latent},
    {"latent_twice", latent_twice},
    {"weights_forgotten", weights_forgotten},
};

}  // namespace

Label kind_id(Kind kind) noexcept {
  constexpr Label kIds[] = {"bytes_per_token", "sequence_bytes", "room",  "sequences", "costlier",   "longest_context",
                            "fewest_gpus",     "lever",          "shape", "weights",   "ask_context"};
  return kIds[static_cast<std::size_t>(kind)];
}

Unit unit_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::sequences:
    case Kind::lever: return Unit::conversations;
    case Kind::longest_context: return Unit::tokens;
    case Kind::fewest_gpus: return Unit::gpus;
    case Kind::costlier:
    case Kind::ask_context: return Unit::choice;
    default: return Unit::bytes;
  }
}

Label unit_id(Unit unit) noexcept {
  constexpr Label kIds[] = {"bytes", "tokens", "conversations", "gpus", "choice"};
  return kIds[static_cast<std::size_t>(unit)];
}

Tolerance tolerance_of(Kind kind, bool interview) noexcept {
  // A count that is near is rough in an interview and wrong in a quiz; two digits of a size are enough, while GB and
  // GiB (7 %) or kB and KiB (2.4 %) are still told apart.
  if (kind == Kind::fewest_gpus || unit_of(kind) == Unit::choice) return {kMaxExact, false};
  return interview ? Tolerance{10, true} : Tolerance{50, false};
}

std::optional<Wide> value_of(const Scene& scene) {
  const Request& request = scene.request;
  switch (scene.kind) {
    case Kind::bytes_per_token: return cost_of(request).per_token;
    case Kind::sequence_bytes:
    case Kind::shape: return cost_of(request).total;
    case Kind::costlier: {
      const Wide first = cost_of(request).total;
      const Wide second = cost_of(*scene.other).total;
      return first == second ? std::nullopt : std::optional<Wide>(first > second ? 0 : 1);
    }
    case Kind::ask_context: return 0;
    case Kind::weights:
      return weights_of(request).value_or(std::nullopt).transform([](const WeightBytes& weights) {
        return Wide{weights.bytes.count};
      });
    default: break;
  }
  const auto sizes = sizes_of(request);
  if (!sizes || !sizes->reserved.weights_fit) return std::nullopt;
  const Search search(request, sizes->weights, scene.users);
  const auto wide = [](std::optional<u64> found) { return found.transform([](u64 number) { return Wide{number}; }); };
  switch (scene.kind) {
    case Kind::room: return sizes->reserved.pool_bytes;
    case Kind::longest_context: return wide(search.longest_context());
    case Kind::fewest_gpus: return wide(search.fewest_gpus(false));
    default: return sizes->reserved.sequences;
  }
}

std::vector<Wrong> mistakes_of(const Scene& scene, Wide right) {
  std::vector<Wrong> out;
  const Tolerance tolerance = tolerance_of(scene.kind, false);
  const auto add = [&](Label code, Wide value) {
    const Wide apart = value > right ? value - right : right - value;
    if (apart <= tolerance.of(right) || value > kMaxExact) return;
    // Of nothing nobody knows how it came about.
    if (value == 0 && unit_of(scene.kind) != Unit::choice) return;
    for (const auto& one : out) {
      if (one.value == value) return;
    }
    out.push_back({code, value});
  };
  if (scene.kind == Kind::ask_context) return out;
  for (const auto& mistake : kMistakes) {
    Scene made = scene;
    // Somebody who is mistaken is so about both models.
    const bool about_first = mistake.make(made.request);
    const bool about_other = made.other && mistake.make(*made.other);
    if (!about_first && !about_other) continue;
    if (const auto value = value_of(made)) add(mistake.code, *value);
  }
  if (scene.kind == Kind::costlier) {
    const auto parameters = [](const Request& request) { return request.model.parameters.value_or(0); };
    if (parameters(scene.request) != parameters(*scene.other)) {
      add("parameters_for_cache", parameters(scene.request) > parameters(*scene.other) ? 0 : 1);
    }
  }
  if (scene.kind == Kind::lever) {
    Scene before = scene;
    before.request = *scene.other;
    if (const auto value = value_of(before)) add("simply_doubled", 2 * *value);
  }
  return out;
}

Derivation derivation_of(const Question& question) {
  const Scene& scene = question.scene;
  Derivation out;
  const auto derive_for = [&](const Request& request, std::initializer_list<std::string_view> names) {
    const auto sizes = sizes_of(request);
    if (!sizes) return;
    Outcome outcome{.reserved = sizes->reserved, .weights = sizes->weights};
    outcome.weight_total = sizes->weights->bytes.count;
    outcome.merged = merge_runs(request.model.layers);
    outcome.cost.together = cost_of(request);
    outcome.pool_known = true;
    for (const auto& step : derive(request, outcome).steps) {
      if (std::ranges::find(names, std::string_view(step.name)) != names.end()) out.steps.push_back(step);
    }
  };
  const Request& request = scene.request;
  const auto sizes = sizes_of(request);
  const SequenceCost cost = cost_of(request);
  switch (scene.kind) {
    case Kind::bytes_per_token: derive_for(request, {"kv_bytes_per_token"}); break;
    case Kind::sequence_bytes:
    case Kind::shape: derive_for(request, {"kv_bytes_per_token", "kv_fixed_bytes", "kv_bytes_per_sequence"}); break;
    case Kind::costlier:
      for (const Request* const each : {&request, &*scene.other}) {
        derive_for(*each, {"kv_bytes_per_token", "kv_fixed_bytes", "kv_bytes_per_sequence"});
      }
      break;
    case Kind::weights: derive_for(request, {"weight_bytes"}); break;
    case Kind::room: derive_for(request, {"weight_bytes", "kv_memory_bytes"}); break;
    case Kind::sequences:
    case Kind::lever:
      derive_for(request, {"kv_bytes_per_token", "kv_fixed_bytes", "kv_bytes_per_sequence", "weight_bytes",
                           "kv_memory_bytes", "sequences"});
      break;
    case Kind::longest_context: {
      derive_for(request, {"kv_bytes_per_token", "weight_bytes", "kv_memory_bytes"});
      Step& step = out.add("longest_context", question.value, "tokens");
      step.put("", sizes->reserved.pool_bytes, "bytes_left").put("÷", scene.users, "conversations");
      step.put("÷", cost.per_token, "bytes_per_token");
      step.rounded_down = true;
      break;
    }
    case Kind::fewest_gpus: {
      derive_for(request, {"kv_bytes_per_token", "kv_fixed_bytes", "kv_bytes_per_sequence", "weight_bytes"});
      const Wide cache = scene.users * cost.total;
      const Wide weights = sizes->weights->bytes.count;
      out.add("memory_needed", cache + weights, "bytes")
          .put("", scene.users, "conversations")
          .put("×", cost.total, "bytes_per_conversation")
          .put("+", weights, "weight_bytes");
      const Wide each = request.deployment.memory(true).bytes.count;
      const Fraction usable{Fraction::kOne - request.options.fraction("reserve").billionths};
      out.add("fewest_gpus", question.value, "gpus")
          .put("", cache + weights, "bytes_needed")
          .put("÷", usable.of(each), "bytes_usable_per_gpu");
      break;
    }
    case Kind::ask_context: break;
  }
  return out;
}

}  // namespace kvcap::quiz
