// The answer as steps of arithmetic.
#include <algorithm>

#include "answer.hpp"

namespace kvcap {
namespace {

void put_format(Step& step, const Format& format) {
  const bool plain = format.block_values == 1;
  step.put("×", format.block_bytes, plain ? "bytes" : "bytes_per_block");
  if (!plain) step.put("÷", format.block_values, "values_per_block");
}

/// layers × heads × widths × bytes; a row that is not that product (packed beside an indexer, cut blocks, two formats)
/// stands as its bytes.
void put_rows(Step& step, const LayerRun& run, CacheFormats kv, u64 tensor_parallel) {
  const u64 heads = run.latent_width != 0 ? 1 : heads_per_gpu(run.kv_heads, tensor_parallel);
  const u64 key_width = run.latent_width != 0 ? run.latent_width : run.key_width;
  const u64 value_width = run.latent_width != 0 ? 0 : run.value_width;
  const bool same = key_width == value_width;
  const Wide values = Wide{heads} * (key_width + value_width);
  const Row row = row_of(run, kv, tensor_parallel);
  const bool product = row.sum() * kv.k->block_values == values * kv.k->block_bytes;
  if (product && same) step.put("", 2, "k_and_v");
  step.put("×", run.count, "layers");
  if (!product) {
    step.put("×", row.sum(), "bytes_per_row");
    return;
  }
  if (run.latent_width == 0) step.put("×", heads, "kv_heads");
  step.put("×", same ? key_width : key_width + value_width,
           run.latent_width != 0 ? "latent_width"
           : same                ? "head_dimension"
           : value_width == 0    ? "key_width"
                                 : "key_and_value_width");
  put_format(step, *kv.k);
}

/// The parts from `first` on, summed where there are several; a single part is the whole.
void put_sum(Derivation& to, std::size_t first, Label name, Wide value) {
  const std::size_t end = to.steps.size();
  if (end == first) return;
  if (end == first + 1) {
    to.steps[first].part = "";
    return;
  }
  to.add(name, value, "bytes");
  for (std::size_t i = first; i < end; ++i) {
    to.steps.back().put("+", to.steps[i].value_millionths / 1'000'000, to.steps[i].part);
  }
}

}  // namespace

Derivation derive(const Request& request, const Outcome& outcome) {
  Derivation out;
  const SequenceCost& cost = outcome.cost.together;
  const u64 t = pooled(request) ? 1 : request.deployment.tensor_parallel;
  const u64 dealt = request.deployment.context_parallel;
  for (const bool fixed : {false, true}) {
    const Label name = fixed ? "kv_fixed_bytes" : "kv_bytes_per_token";
    const std::size_t first = out.steps.size();
    for (const auto& run : outcome.merged) {
      const Wide growing = layer_bytes_per_token(run, request.kv, t, request.context);
      const Wide whole = layer_bytes(run, request.kv, t, request.context);
      const Wide grown = growing * request.context.count;
      const Wide each = !fixed ? growing : without(whole, grown);
      if (each == 0) continue;
      Step& step = out.add(name, each * run.count * t / dealt, "bytes", kind_name(run.kind));
      if (run.kind == LayerKind::compressed || run.kind == LayerKind::recurrent || (fixed && growing != 0)) {
        step.put("", run.count, "layers").put("×", each, fixed ? "bytes_per_layer" : "bytes_per_token");
      } else if (fixed) {
        step.put("", run.count, "layers").put("×", rows_kept(run, request.context), "tokens");
        step.put("×", row_of(run, request.kv, t).sum(), "bytes_per_row");
      } else {
        put_rows(step, run, request.kv, t);
      }
      if (t > 1) step.put("×", t, "gpus");
      if (dealt > 1) step.put("÷", dealt, "context_parallel");
    }
    put_sum(out, first, name, fixed ? cost.fixed : cost.per_token);
  }

  Step& sequence = out.add("kv_bytes_per_sequence", cost.total, "bytes");
  sequence.put("", cost.per_token, "bytes_per_token").put("×", request.context.count, "tokens");
  if (cost.fixed != 0) sequence.put("+", cost.fixed, "fixed_bytes");

  const Format* const stored = request.weights != nullptr ? request.weights : request.model.native_weights;
  if (outcome.weights && !request.weight_bytes && request.model.parameters && stored != nullptr &&
      stored->bytes_of(*request.model.parameters) == outcome.weights->bytes.count) {
    put_format(
        out.add("weight_bytes", outcome.weights->bytes.count, "bytes").put("", *request.model.parameters, "parameters"),
        *stored);
  }

  const Reservation& reserved = outcome.reserved;
  bool counted = false;
  for (const auto& step : reserved.derivation.steps) {
    counted = counted || std::string_view(step.name) == "sequences";
    out.steps.push_back(step);
  }
  if (!counted && reserved.weights_fit && outcome.pool_known) {
    Step& step = out.add("sequences", reserved.sequences, "conversations");
    step.put("", reserved.pool_bytes, "bytes_left").put("÷", reserved.reserved_per_sequence, "bytes_per_conversation");
    step.rounded_down = true;
  }
  return out;
}

}  // namespace kvcap
