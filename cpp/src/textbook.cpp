// The textbook: an engine that reserves exactly what is written, on GPUs whose memory is one pool.
#include <array>

#include "kvcap/engine.hpp"

namespace kvcap {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "reserve",
               .aliases = "",
               .kind = OptionKind::fraction,
               .fallback = 100'000'000,
               .has_fallback = true,
               .min = 0,
               .max = 999'999'999,
               .choices = "",
               .unit = "",
               .offered = true,
               .source = "the share of memory that an estimate on paper keeps free"},
    OptionSpec{.name = "kv_memory_bytes",
               .aliases = "",
               .kind = OptionKind::bytes,
               .fallback = 0,
               .has_fallback = false,
               .min = 0,
               .max = kMaxExact,
               .choices = "",
               .unit = "bytes",
               .offered = false,
               .source = "a known pool on each GPU"},
};

Result<Reservation> reserve(const EngineInput& in) {
  Reservation out;
  const Wide gpus = in.deployment.gpus;
  const SequenceCost cost = sequence_cost(in.model.layers, in.kv, 1, in.context);
  out.reserved_per_sequence = cost.total;

  if (in.options.given("kv_memory_bytes")) {
    out.pool_bytes = gpus * in.options.whole("kv_memory_bytes");
  } else {
    const u64 each = in.deployment.memory(true).bytes.count;
    const Wide total = gpus * each;
    const Fraction usable_share{Fraction::kOne - in.options.fraction("reserve").billionths};
    const Wide usable = usable_share.of(total);
    const Wide weights = in.weight_bytes ? Wide{in.weight_bytes->count} * in.deployment.data_parallel : 0;
    out.weights_fit = weights <= usable;
    out.pool_bytes = out.weights_fit ? usable - weights : 0;
    const Wide kept = total - usable;
    out.parts.push_back({"reserve", kept / gpus, kept / gpus, kept / gpus, Confidence::exact});

    if (out.weights_fit) {
      Step& room = out.derivation.add("kv_memory_bytes", out.pool_bytes, "bytes");
      room.put("", gpus, "gpus").put("×", each, "bytes_per_gpu");
      room.terms.push_back({"×", usable_share.billionths / 1000, "usable_share"});
      room.put("−", weights, "weight_bytes");
    }
  }
  out.pool_bytes_per_gpu = out.pool_bytes / gpus;
  out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
  out.concurrency_num = out.pool_bytes;
  out.concurrency_den = cost.total;
  out.sequences = out.pool_bytes / cost.total;
  out.sequences_low = out.sequences_high = out.sequences;

  if (gpus > 1) {
    for (const auto& run : in.model.layers) {
      if (run.latent_width != 0) {
        out.note("pool_flatters_latent").with("gpus", gpus);
        break;
      }
      if (run.kv_heads != 0 && run.kv_heads < gpus) {
        out.note("pool_flatters_heads").with("kv_heads", run.kv_heads).with("gpus", gpus);
        break;
      }
    }
  }
  return out;
}

}  // namespace

const EngineRules& textbook_rules() noexcept {
  static constexpr EngineRules kRules{EngineId::textbook, "textbook", kOptions, reserve};
  return kRules;
}

}  // namespace kvcap
