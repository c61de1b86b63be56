// From a checked request to the answer's JSON.
#include "kvcap/plan.hpp"

#include <algorithm>

#include "kvcap/weights.hpp"

namespace kvcap {
namespace {

using json::Writer;

/// One GPU's and all GPUs' share of a sequence's cost. The textbook pools its
/// GPUs; engines split by their rules.
struct Written {
  SequenceCost together;  ///< all GPUs of one replica
  SequenceCost per_gpu;   ///< the fullest GPU
};

/// Whether the room for the cache is stated, so that it does not hang on the weights.
bool pool_stated(const Request& request) {
  return request.options.given("kv_memory_bytes") || request.options.given("num_gpu_blocks_override") ||
         request.options.given("free_memory_bytes");
}

bool pooled(const Request& request) { return request.engine->id == EngineId::textbook; }

SequenceCost shared_evenly(const SequenceCost& cost, u64 gpus) {
  return {ceil_div<Wide>(cost.total, gpus), ceil_div<Wide>(cost.per_token, gpus), ceil_div<Wide>(cost.fixed, gpus)};
}

Written written(const Request& request, std::span<const LayerRun> merged) {
  Written out;
  const Deployment& on = request.deployment;
  if (pooled(request)) {
    out.together = sequence_cost(merged, request.kv, 1, request.context);
    out.per_gpu = shared_evenly(out.together, on.gpus);
    return out;
  }
  const SequenceCost rank = sequence_cost(merged, request.kv, on.tensor_parallel, request.context);
  const u64 dealt = on.context_parallel;
  const auto copies = [&](Wide bytes) { return bytes * on.tensor_parallel / dealt; };
  out.together = {copies(rank.total), copies(rank.per_token), copies(rank.fixed)};
  out.per_gpu = shared_evenly(
      sequence_cost(stage_runs(merged, on.pipeline_parallel, 0), request.kv, on.tensor_parallel, request.context), dealt);
  return out;
}

// ---- derivation
// ----------------------------------------------------------------------------------------------------

/// Appends the factors of one layer kind's row: heads × widths × bytes, with a
/// packed format as bytes per block.
void add_row_terms(Step& step, const LayerRun& run, const Request& request, u64 tensor_parallel) {
  const Format& k = *request.kv.k;
  const Format& v = *request.kv.v;
  const Row row = row_of(run, request.kv, tensor_parallel);
  const auto add_bytes = [&](const Format& format) {
    step.terms.push_back(term("×", format.block_bytes, format.block_values == 1 ? "bytes" : "bytes_per_block"));
    if (format.block_values != 1) step.terms.push_back(term("÷", format.block_values, "values_per_block"));
  };
  const bool plain = run.indexer_width == 0 && run.kind != LayerKind::compressed;
  const u64 heads = heads_per_gpu(run.kv_heads, tensor_parallel);
  if (plain && run.latent_width != 0 &&
      k.bytes_of(run.latent_width) * k.block_values == Wide{run.latent_width} * k.block_bytes) {
    step.terms.push_back(term("×", run.latent_width, "latent_width"));
    add_bytes(k);
    return;
  }
  const bool whole_blocks =
      (Wide{heads} * run.key_width) % k.block_values == 0 && (Wide{heads} * run.value_width) % v.block_values == 0;
  if (plain && run.latent_width == 0 && whole_blocks && (&k == &v || run.value_width == 0)) {
    if (run.key_width == run.value_width) step.terms.insert(step.terms.begin(), term("", 2, "k_and_v"));
    if (step.terms.size() > 1) step.terms[1].op = "×";
    step.terms.push_back(term("×", heads, "kv_heads"));
    if (run.key_width == run.value_width) {
      step.terms.push_back(term("×", run.key_width, "head_dimension"));
    } else {
      step.terms.push_back(term("×", Wide{run.key_width} + run.value_width, "key_and_value_width"));
    }
    add_bytes(k);
    return;
  }
  step.terms.push_back(term("×", row.sum(), "bytes_per_row"));
}

/// A sum of the parts that were just added, where there is more than one or a
/// single part does not carry the name.
void add_total(Derivation& to, std::size_t first, Label name, Wide value, Label unit) {
  if (to.steps.size() - first == 1) {
    to.steps[first].part = "";
    return;
  }
  std::vector<Term> terms;
  for (std::size_t i = first; i < to.steps.size(); ++i) {
    terms.push_back({terms.empty() ? "" : "+", to.steps[i].value_millionths, to.steps[i].part});
  }
  to.add(name, value, unit).terms = std::move(terms);
}

Derivation derive(const Request& request, std::span<const LayerRun> merged, const Written& cost,
                  const std::optional<WeightBytes>& weights, const Reservation& reserved) {
  Derivation out;
  const u64 t = pooled(request) ? 1 : request.deployment.tensor_parallel;
  const u64 dealt = request.deployment.context_parallel;
  const auto times_gpus = [&](Step& step) {
    if (t > 1) step.terms.push_back(term("×", t, "gpus"));
    if (dealt > 1) step.terms.push_back(term("÷", dealt, "context_parallel"));
  };

  std::size_t first = out.steps.size();
  for (const auto& run : merged) {
    const Wide each = layer_bytes_per_token(run, request.kv, t, request.context);
    if (each == 0) continue;
    Step& step = out.add("kv_bytes_per_token", each * run.count * t / dealt, "bytes", kind_name(run.kind));
    step.terms.push_back(term("", run.count, "layers"));
    if (run.kind == LayerKind::compressed) {
      step.terms.push_back(term("×", row_of(run, request.kv, t).sum(), "bytes_per_row"));
      step.terms.push_back(term("÷", run.tokens_per_entry, "tokens_per_entry"));
    } else {
      add_row_terms(step, run, request, t);
    }
    times_gpus(step);
  }
  if (out.steps.size() != first) add_total(out, first, "kv_bytes_per_token", cost.together.per_token, "bytes");

  first = out.steps.size();
  for (const auto& run : merged) {
    const Wide whole = layer_bytes(run, request.kv, t, request.context);
    const Wide growing = layer_bytes_per_token(run, request.kv, t, request.context) * request.context.count;
    if (whole <= growing) continue;
    Step& step = out.add("kv_fixed_bytes", (whole - growing) * run.count * t / dealt, "bytes", kind_name(run.kind));
    step.terms.push_back(term("", run.count, "layers"));
    if (run.kind == LayerKind::recurrent || growing != 0) {
      step.terms.push_back(term("×", whole - growing, "bytes_per_layer"));
    } else {
      step.terms.push_back(term("×", rows_kept(run, request.context), "tokens"));
      step.terms.push_back(term("×", row_of(run, request.kv, t).sum(), "bytes_per_row"));
    }
    times_gpus(step);
  }
  if (out.steps.size() != first) add_total(out, first, "kv_fixed_bytes", cost.together.fixed, "bytes");

  Step& sequence = out.add("kv_bytes_per_sequence", cost.together.total, "bytes");
  sequence.terms = {term("", cost.together.per_token, "bytes_per_token"), term("×", request.context.count, "tokens")};
  if (cost.together.fixed != 0) sequence.terms.push_back(term("+", cost.together.fixed, "fixed_bytes"));

  const Format* const stored = request.weights != nullptr ? request.weights : request.model.native_weights;
  if (weights && !request.weight_bytes && request.model.parameters && stored != nullptr &&
      stored->bytes_of(*request.model.parameters) == weights->bytes.count) {
    Step& step = out.add("weight_bytes", weights->bytes.count, "bytes");
    step.terms.push_back(term("", *request.model.parameters, "parameters"));
    step.terms.push_back(term("×", stored->block_bytes, stored->block_values == 1 ? "bytes" : "bytes_per_block"));
    if (stored->block_values != 1) step.terms.push_back(term("÷", stored->block_values, "values_per_block"));
  }

  for (const auto& step : reserved.derivation.steps) out.steps.push_back(step);

  const bool counted =
      std::ranges::any_of(out.steps, [](const Step& step) { return std::string_view(step.name) == "sequences"; });
  if (!counted && reserved.weights_fit && (weights || pool_stated(request))) {
    Step& step = out.add("sequences", reserved.sequences, "conversations");
    step.terms = {term("", reserved.pool_bytes, "bytes_left"),
                  term("÷", reserved.reserved_per_sequence, "bytes_per_conversation")};
    step.rounded_down = true;
  }
  return out;
}

// ---- what would it take
// --------------------------------------------------------------------------------------------

struct Remedy {
  std::optional<u64> gpus_for_weights;
  std::optional<u64> gpus_for_one_sequence;
  std::optional<u64> longest_context;
};

/// An engine's answer for the same request with other sizes.
Result<Reservation> reserve_with(const Request& request, const std::optional<WeightBytes>& weights,
                                 const Deployment& on, Tokens context) {
  const u64 split = on.tensor_parallel * on.pipeline_parallel;
  const Wide per_gpu = weights ? ceil_div<Wide>(weights->bytes.count, split) : 0;
  const EngineInput input{
      request.model,
      request.kv,
      on,
      context,
      weights ? std::optional(weights->bytes) : std::nullopt,
      Bytes{static_cast<u64>(per_gpu)},
      request.options,
  };
  return request.engine->reserve(input);
}

/// The least GPU count that satisfies `enough`, by doubling and halving for the
/// textbook, by doubling for engines (tensor parallel sizes divide heads).
template <class Enough>
std::optional<u64> fewest_gpus(const Request& request, const std::optional<WeightBytes>& weights, Enough enough) {
  const auto fits = [&](u64 gpus) {
    Deployment on = request.deployment;
    on.gpus = gpus;
    if (request.engine->id == EngineId::llama_cpp) {
      on.pipeline_parallel = gpus;
      on.tensor_parallel = on.data_parallel = 1;
    } else {
      on.tensor_parallel = gpus;
      on.pipeline_parallel = on.data_parallel = 1;
    }
    const auto answer = reserve_with(request, weights, on, request.context);
    return answer && enough(*answer);
  };
  u64 high = 1;
  while (!fits(high)) {
    high *= 2;
    if (high > kMaxGpus) return std::nullopt;
  }
  if (!pooled(request)) return high;
  u64 low = high / 2;  // too few
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

/// The longest context of which one conversation still fits; nothing when not
/// even one token does.
std::optional<u64> longest_context(const Request& request, const std::optional<WeightBytes>& weights) {
  const auto fits = [&](u64 tokens) {
    const auto answer = reserve_with(request, weights, request.deployment, {tokens});
    return answer && answer->weights_fit && answer->sequences >= 1;
  };
  if (!fits(1)) return std::nullopt;
  u64 low = 1;
  u64 high = kMaxTokens + 1;
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

// ---- writing
// -------------------------------------------------------------------------------------------------------

void write_reading(Writer& out, Reading reading) {
  out.begin_object().key("value").decimal(reading.millionths).key("unit").text(reading.unit).end_object();
}

void write_optional(Writer& out, Label key, const std::optional<Wide>& value) {
  out.key(key);
  if (value) {
    out.number(*value);
  } else {
    out.null();
  }
}

template <class T>
std::optional<Wide> widened(const std::optional<T>& value) {
  return value ? std::optional<Wide>(*value) : std::nullopt;
}

void write_text_or_null(Writer& out, Label key, std::string_view text) {
  out.key(key);
  if (text.empty()) {
    out.null();
  } else {
    out.text(text);
  }
}

void write_run(Writer& out, const LayerRun& run) {
  out.begin_object().key("count").number(run.count).key("kind").text(kind_name(run.kind));
  const auto put = [&](Label key, u64 value) {
    if (value != 0) out.key(key).number(value);
  };
  put("kv_heads", run.kv_heads);
  put("key_width", run.key_width);
  if (run.kv_heads != 0) out.key("value_width").number(run.value_width);
  put("latent_width", run.latent_width);
  put("latent_value_width", run.latent_value_width);
  put("expanded_heads", run.expanded_heads);
  put("expanded_key_width", run.expanded_key_width);
  put("expanded_value_width", run.expanded_value_width);
  put("indexer_width", run.indexer_width);
  put("window", run.window_tokens);
  put("tokens_per_entry", run.tokens_per_entry);
  put("source_tokens", run.source_tokens);
  put("state_values", run.state_values);
  if (run.state_format != nullptr) out.key("state_format").text(run.state_format->id);
  put("conv_values", run.conv_values);
  if (run.conv_format != nullptr) out.key("conv_format").text(run.conv_format->id);
  out.end_object();
}

void write_model(Writer& out, const Model& model) {
  u64 counted = 0;
  for (const auto& run : model.layers) counted += run.count;
  out.begin_object().key("id").text(model.id).key("name").text(model.name).key("family").text(model.family);
  out.key("source").text(model.source);
  write_optional(out, "parameters", widened(model.parameters));
  write_optional(out, "active_parameters", widened(model.active_parameters));
  write_optional(out, "max_context", model.max_context != 0 ? std::optional<Wide>(model.max_context) : std::nullopt);
  out.key("layer_count").number(model.layer_count != 0 ? model.layer_count : counted);
  write_optional(out, "query_heads", model.query_heads != 0 ? std::optional<Wide>(model.query_heads) : std::nullopt);
  write_text_or_null(out, "native_weights", model.native_weights != nullptr ? model.native_weights->id : "");
  out.key("layers").begin_array();
  for (const auto& run : model.layers) write_run(out, run);
  out.end_array().key("fields").begin_object().key("used").begin_array();
  for (const auto& field : model.used) {
    out.begin_object().key("name").text(field.name).key("value").text(field.value).end_object();
  }
  out.end_array().key("defaulted").begin_array();
  for (const auto& field : model.defaulted) {
    out.begin_object().key("name").text(field.name).key("value").text(field.value);
    out.key("source").text(field.source).end_object();
  }
  out.end_array().key("ignored").begin_array();
  for (const auto& name : model.ignored) out.text(name);
  out.end_array().end_object().end_object();
}

struct Segment {
  Label kind;
  Wide bytes = 0;
};

/// Shares are of the bar, which is as long as the memory, or as the weights
/// where they need more.
void write_memory(Writer& out, const std::vector<Segment>& segments, Wide total, Wide sequence, bool binary) {
  Wide drawn = 0;
  for (const auto& segment : segments) drawn += segment.bytes;
  const Wide scale = std::max<Wide>(std::max(total, drawn), 1);
  const auto share = [&](Wide bytes) { return bytes * 1'000'000 / scale; };
  const auto reading = [&](Wide bytes) {
    const Bytes exact{static_cast<u64>(std::min<Wide>(bytes, kMaxExact))};
    return binary ? read_binary(exact) : read_decimal(exact);
  };
  out.begin_object().key("total_bytes").number(total).key("total_reading");
  write_reading(out, reading(total));
  out.key("total_share").decimal(share(total)).key("sequence_share").decimal(share(sequence));
  out.key("segments").begin_array();
  for (const auto& segment : segments) {
    out.begin_object().key("kind").text(segment.kind).key("bytes").number(segment.bytes).key("reading");
    write_reading(out, reading(segment.bytes));
    out.key("share").decimal(share(segment.bytes)).end_object();
  }
  out.end_array().end_object();
}

void write_derivation(Writer& out, const Derivation& derivation) {
  out.begin_array();
  for (const auto& step : derivation.steps) {
    out.begin_object().key("name").text(step.name).key("part").text(step.part).key("terms").begin_array();
    for (const auto& one : step.terms) {
      out.begin_object().key("op").text(one.op).key("value").decimal(one.value_millionths);
      out.key("of").text(one.of).end_object();
    }
    out.end_array().key("expression").text(expression(step)).key("value").decimal(step.value_millionths);
    out.key("unit").text(step.unit).key("rounded_down").boolean(step.rounded_down).end_object();
  }
  out.end_array();
}

void write_parts(Writer& out, const std::vector<MemoryPart>& parts) {
  out.begin_array();
  for (const auto& part : parts) {
    out.begin_object().key("code").text(part.code).key("bytes").number(part.bytes).key("low").number(part.low);
    out.key("high").number(part.high).key("confidence").text(confidence_name(part.confidence)).end_object();
  }
  out.end_array();
}

/// What the count hangs on most, for the sentence: twice the fixed part
/// outweighs the growing part, or the weights take more than half of what
/// weights and cache share, or else the length of the context.
Label decided_by(const SequenceCost& cost, Wide weights, Wide pool) {
  if (cost.fixed * 2 > cost.total) return "fixed_part";
  return weights > pool ? "weights" : "context";
}

}  // namespace

std::string error_json(const Error& error) {
  Writer out;
  out.begin_object().key("error").begin_object();
  out.key("code").text(code_name(error.code)).key("field").text(error.field).key("message").text(error.message);
  out.end_object().end_object();
  return out.take();
}

namespace {

Result<std::string> answer(const Request& request) {
  const Deployment& on = request.deployment;
  const std::vector<LayerRun> merged = merge_runs(request.model.layers);
  const Written cost = written(request, merged);

  std::optional<WeightBytes> weights;
  if (request.weight_bytes) {
    weights = WeightBytes{*request.weight_bytes, true};
  } else {
    const auto computed = weight_bytes_of(request.model, request.weights);
    if (!computed) return std::unexpected(computed.error());
    weights = *computed;
  }

  const auto reservation = reserve_with(request, weights, on, request.context);
  if (!reservation) return std::unexpected(reservation.error());
  const Reservation& reserved = *reservation;
  const bool pool_known = weights || pool_stated(request);

  // Every figure of the answer is exact in JSON, or the request is refused.
  const GpuMemory gpu_memory = on.memory(pooled(request));
  const Wide total_memory = Wide{on.gpus} * gpu_memory.bytes.count;
  const Wide weight_total = weights ? Wide{weights->bytes.count} * on.data_parallel : 0;
  const std::pair<std::string_view, Wide> bounded[] = {
      {"context", cost.together.total}, {"context", reserved.reserved_per_sequence},
      {"gpus", total_memory},           {"gpus", reserved.pool_bytes},
      {"data_parallel", weight_total},
  };
  for (const auto& [field, value] : bounded) {
    if (const auto bytes = to_bytes(value, field); !bytes) return std::unexpected(bytes.error());
  }

  std::string_view limit;
  if (pool_known) {
    limit = "cache";
    if (!reserved.weights_fit) {
      limit = "weights_do_not_fit";
    } else if (reserved.sequences == 0) {
      limit = "one_sequence_too_long";
    }
  }
  Remedy remedy;
  if (limit == "weights_do_not_fit") {
    remedy.gpus_for_weights = fewest_gpus(request, weights, [](const Reservation& r) { return r.weights_fit; });
  }
  if (!limit.empty() && limit != "cache") {
    remedy.gpus_for_one_sequence =
        fewest_gpus(request, weights, [](const Reservation& r) { return r.weights_fit && r.sequences >= 1; });
    remedy.longest_context = longest_context(request, weights);
  }

  const bool binary = !pooled(request);
  Writer out;
  out.begin_object().key("model");
  write_model(out, request.model);
  out.key("engine").text(request.engine->name).key("context").number(request.context.count);
  const Format* const stored = request.weights != nullptr ? request.weights : request.model.native_weights;
  write_text_or_null(out, "weights", stored != nullptr ? stored->id : "");
  out.key("kv").begin_object().key("k").text(request.kv.k->id).key("v").text(request.kv.v->id).end_object();
  out.key("gpu").begin_object();
  write_text_or_null(out, "id", on.gpu_id);
  out.key("name").text(on.gpu_name).key("memory_bytes").number(gpu_memory.bytes.count);
  out.key("basis").text(basis_name(gpu_memory.basis)).end_object();
  out.key("deployment").begin_object().key("gpus").number(on.gpus).key("tensor_parallel").number(on.tensor_parallel);
  out.key("pipeline_parallel").number(on.pipeline_parallel).key("data_parallel").number(on.data_parallel).end_object();

  out.key("kv_bytes_per_token").number(cost.together.per_token);
  out.key("kv_bytes_per_token_per_gpu").number(cost.per_gpu.per_token);
  out.key("kv_fixed_bytes").number(cost.together.fixed);
  out.key("kv_bytes_per_sequence").number(cost.together.total);
  out.key("kv_reserved_per_sequence").number(reserved.reserved_per_sequence);
  const u64 split = on.tensor_parallel * on.pipeline_parallel;
  const std::optional<Wide> weight_bytes = weights ? std::optional<Wide>(weights->bytes.count) : std::nullopt;
  const std::optional<Wide> weight_per_gpu =
      weights ? std::optional<Wide>(pooled(request) ? ceil_div(weight_total, Wide{on.gpus})
                                                    : ceil_div(Wide{weights->bytes.count}, Wide{split}))
              : std::nullopt;
  write_optional(out, "weight_bytes", weight_bytes);
  write_optional(out, "weight_bytes_per_gpu", weight_per_gpu);
  const auto if_known = [&](Wide value) { return pool_known ? std::optional<Wide>(value) : std::nullopt; };
  write_optional(out, "kv_memory_bytes", if_known(reserved.pool_bytes));
  write_optional(out, "kv_memory_bytes_per_gpu", if_known(reserved.pool_bytes_per_gpu));
  write_optional(out, "sequences", if_known(reserved.sequences));
  out.key("concurrency");
  if (pool_known) {
    out.decimal(reserved.concurrency_num * 1'000'000 / std::max<Wide>(reserved.concurrency_den, 1));
  } else {
    out.null();
  }
  const auto write_range = [&](Label key, Wide low, Wide high) {
    out.key(key);
    if (pool_known && low != high) {
      out.begin_array().number(low).number(high).end_array();
    } else {
      out.null();
    }
  };
  write_range("sequences_range", reserved.sequences_low, reserved.sequences_high);
  write_range("kv_memory_bytes_per_gpu_range", reserved.pool_low_per_gpu, reserved.pool_high_per_gpu);
  write_optional(out, "kv_tokens", pool_known ? reserved.kv_tokens : std::nullopt);
  write_optional(out, "kv_tokens_other", pool_known ? reserved.kv_tokens_other : std::nullopt);
  write_optional(out, "kv_blocks", pool_known ? reserved.kv_blocks : std::nullopt);
  write_optional(out, "block_tokens", reserved.block_tokens);
  out.key("caches").begin_array();
  for (const auto& pool : reserved.caches) {
    out.begin_object().key("name").text(pool.name).key("cells").number(pool.cells).key("streams").number(pool.streams);
    out.key("layers").number(pool.layers).key("k_bytes").number(pool.k_bytes).key("v_bytes").number(pool.v_bytes);
    out.key("state_bytes").number(pool.state_bytes).key("conv_bytes").number(pool.conv_bytes).end_object();
  }
  out.end_array();
  write_text_or_null(out, "limit", limit);
  write_text_or_null(out, "decides",
                     pool_known ? decided_by(cost.together, weight_total, reserved.pool_bytes) : std::string_view{});
  out.key("remedy").begin_object();
  write_optional(out, "gpus_for_weights", widened(remedy.gpus_for_weights));
  write_optional(out, "gpus_for_one_sequence", widened(remedy.gpus_for_one_sequence));
  write_optional(out, "longest_context", widened(remedy.longest_context));
  out.end_object().key("slope_changes").begin_array();
  for (const Tokens at : slope_changes(merged)) out.number(at.count);
  out.end_array();

  out.key("memory");
  if (pool_known) {
    const Wide weight_held =
        reserved.weight_bytes_on_gpus ? *reserved.weight_bytes_on_gpus * on.data_parallel : weight_total;
    std::vector<Segment> segments{{"weights", weight_held}};
    Wide counted = weight_held;
    const auto add = [&](Label kind, Wide bytes) {
      segments.push_back({kind, bytes});
      counted += bytes;
    };
    if (reserved.weights_fit) {
      const Wide used = std::min(reserved.sequences * reserved.reserved_per_sequence, reserved.pool_bytes);
      for (const auto& part : reserved.parts) {
        if (std::string_view(part.code) != "reserve") add(part.code, part.bytes * on.gpus);
      }
      add("cache", used);
      add("left", reserved.pool_bytes - used);
      if (total_memory > counted) add("reserve", total_memory - counted);
    }
    write_memory(out, segments, total_memory, reserved.reserved_per_sequence, binary);
  } else {
    out.null();
  }

  out.key("parts");
  write_parts(out, reserved.parts);
  out.key("gaps");
  write_parts(out, reserved.gaps);

  out.key("readings").begin_object();
  const auto read = [&](Label key, const std::optional<Wide>& value, bool per_token = false) {
    if (!value) return;
    const Bytes exact{static_cast<u64>(std::min<Wide>(*value, kMaxExact))};
    out.key(key);
    write_reading(out, per_token ? read_per_token(exact) : binary ? read_binary(exact) : read_decimal(exact));
  };
  read("kv_bytes_per_token", cost.together.per_token, true);
  read("kv_bytes_per_token_per_gpu", cost.per_gpu.per_token, true);
  read("kv_fixed_bytes", cost.together.fixed);
  read("kv_bytes_per_sequence", cost.together.total);
  read("kv_reserved_per_sequence", reserved.reserved_per_sequence);
  read("weight_bytes", weight_bytes);
  read("weight_bytes_per_gpu", weight_per_gpu);
  read("kv_memory_bytes", if_known(reserved.pool_bytes));
  read("kv_memory_bytes_per_gpu", if_known(reserved.pool_bytes_per_gpu));
  read("gpu_memory_bytes", gpu_memory.bytes.count);
  read("total_memory_bytes", total_memory);
  if (pooled(request)) {
    const Wide kept = reserved.parts.empty() ? 0 : reserved.parts.front().bytes * on.gpus;
    read("usable_memory_bytes", total_memory > kept ? total_memory - kept : 0);
  }
  out.end_object();

  out.key("confidence").begin_object();
  for (const Label key : {"kv_bytes_per_token", "kv_fixed_bytes", "kv_bytes_per_sequence"}) {
    out.key(key).text(confidence_name(Confidence::exact));
  }
  out.key("kv_reserved_per_sequence").text(confidence_name(reserved.reserved_confidence));
  const Confidence weight_confidence = weights && weights->exact ? Confidence::exact : Confidence::estimate;
  const Confidence room = pool_stated(request)
                              ? reserved.pool_confidence
                              : std::max(reserved.pool_confidence, weight_confidence);
  out.key("weight_bytes").text(confidence_name(weight_confidence));
  for (const Label key : {"kv_memory_bytes", "sequences", "concurrency", "kv_tokens", "kv_blocks"}) {
    out.key(key).text(confidence_name(std::max(room, reserved.reserved_confidence)));
  }
  out.end_object();

  out.key("derivation");
  write_derivation(out, derive(request, merged, cost, weights, reserved));

  std::vector<Note> notes = reserved.notes;
  for (const auto& code : request.model.note_codes) notes.push_back({code, {}});
  if (!weights) notes.push_back({"parameters_unknown", {}});
  if (request.model.max_context != 0 && request.context.count > request.model.max_context) {
    notes.push_back({"beyond_max_context",
                     {{"context", digits(request.context.count)}, {"max_context", digits(request.model.max_context)}}});
  }
  out.key("notes").begin_array();
  for (const auto& note : notes) {
    out.begin_object().key("code").text(note.code).key("values").begin_object();
    for (const auto& value : note.values) out.key(value.name).text(value.text);
    out.end_object().end_object();
  }
  out.end_array().end_object();
  return out.take();
}

}  // namespace

std::string plan_json(std::string_view request_text, const Features& features) {
  const auto document = json::Document::parse(request_text, "request", kMaxRequestBytes);
  if (!document) return error_json(document.error());
  const auto request = parse_request(document->root(), features);
  if (!request) return error_json(request.error());
  const auto text = answer(*request);
  return text ? *text : error_json(text.error());
}

}  // namespace kvcap
