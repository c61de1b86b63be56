// The answer's JSON. Its figures stand in one table: name, reading, and which confidence they share.
#include "answer.hpp"

#include <algorithm>

namespace kvcap {
namespace {

/// Lists that stay empty in the core kernel, which so leaves out what writes them: those that only engines fill, and
/// those of models that somebody brings along.
template <class Values>
std::span<const typename Values::value_type> filled_elsewhere(const Values& list) noexcept {
  if constexpr (kCoreKernel) return {};
  return list;
}

struct RunKey {
  Label name;
  u32 LayerRun::* slot;
};
constexpr RunKey kRunKeys[] = {
    {"kv_heads", &LayerRun::kv_heads},
    {"key_width", &LayerRun::key_width},
    {"latent_width", &LayerRun::latent_width},
    {"latent_value_width", &LayerRun::latent_value_width},
    {"expanded_heads", &LayerRun::expanded_heads},
    {"expanded_key_width", &LayerRun::expanded_key_width},
    {"expanded_value_width", &LayerRun::expanded_value_width},
    {"indexer_width", &LayerRun::indexer_width},
    {"window", &LayerRun::window_tokens},
    {"tokens_per_entry", &LayerRun::tokens_per_entry},
};

}  // namespace

void write_run(json::Writer& out, const LayerRun& run) {
  out.begin_object().key("count").number(run.count).key("kind").text(kind_name(run.kind));
  for (const auto& key : kRunKeys) {
    if (run.*key.slot != 0) out.key(key.name).number(run.*key.slot);
  }
  if (run.kv_heads != 0) out.key("value_width").number(run.value_width);
  // Of cross-attention 0 says that nothing was given to attend to, a conversation without an image.
  if (run.kind == LayerKind::cross) out.key("source_tokens").number(run.source_tokens);
  if (run.kind == LayerKind::recurrent) {
    out.key("state_values").number(run.state_values);
    if (run.state_format != nullptr) out.key("state_format").text(run.state_format->id);
    out.key("conv_values").number(run.conv_values);
    if (run.conv_format != nullptr) out.key("conv_format").text(run.conv_format->id);
  }
  out.end_object();
}

void write_fields(json::Writer& out, const Model& model) {
  out.begin_object();
  for (const bool defaulted : {false, true}) {
    out.key(defaulted ? "defaulted" : "used").begin_array();
    for (const auto& field : filled_elsewhere(defaulted ? model.defaulted : model.used)) {
      out.begin_object().key("name").text(field.name).key("value").text(field.value);
      if (defaulted) out.key("source").text(field.source);
      out.end_object();
    }
    out.end_array();
  }
  out.key("ignored").begin_array();
  for (const auto& name : filled_elsewhere(model.ignored)) out.text(std::string_view(name));
  out.end_array().end_object();
}
namespace {

using json::Writer;

enum class Read : unsigned char { none, per_token, size };
enum class Sure : unsigned char { unsaid, exact, weights, reserved, room };

struct Figure {
  Label name;
  Read read;
  Sure sure;
};

/// The order is that of `figures_of`.
constexpr Figure kFigures[] = {
    {"kv_bytes_per_token", Read::per_token, Sure::exact},
    {"kv_bytes_per_token_per_gpu", Read::per_token, Sure::unsaid},
    {"kv_fixed_bytes", Read::size, Sure::exact},
    {"kv_bytes_per_sequence", Read::size, Sure::exact},
    {"kv_reserved_per_sequence", Read::size, Sure::reserved},
    {"weight_bytes", Read::size, Sure::weights},
    {"weight_bytes_per_gpu", Read::size, Sure::unsaid},
    {"kv_memory_bytes", Read::size, Sure::room},
    {"kv_memory_bytes_per_gpu", Read::size, Sure::unsaid},
    {"sequences", Read::none, Sure::room},
    {"kv_tokens", Read::none, Sure::room},
    {"kv_tokens_other", Read::none, Sure::unsaid},
    {"kv_blocks", Read::none, Sure::room},
    {"block_tokens", Read::none, Sure::unsaid},
};
constexpr std::size_t kFigureCount = std::size(kFigures);

struct Figures {
  std::optional<Wide> values[kFigureCount];
};

Figures figures_of(const Request& request, const Outcome& outcome) {
  const Reservation& reserved = outcome.reserved;
  const Written& cost = outcome.cost;
  std::optional<Wide> weights;
  std::optional<Wide> weights_per_gpu;
  if (outcome.weights) {
    const Deployment& on = request.deployment;
    weights = outcome.weights->bytes.count;
    const Wide on_gpus = reserved.weight_bytes_on_gpus ? *reserved.weight_bytes_on_gpus : *weights;
    weights_per_gpu =
        ceil_div<Wide>(on_gpus * on.data_parallel,
                       pooled(request) ? on.gpus : on.tensor_parallel * on.pipeline_parallel * on.data_parallel);
  }
  Figures out{{cost.together.per_token, cost.per_token_per_gpu, cost.together.fixed, cost.together.total,
               reserved.reserved_per_sequence, weights, weights_per_gpu, reserved.pool_bytes,
               reserved.pool_bytes_per_gpu, reserved.sequences, reserved.kv_tokens, reserved.kv_tokens_other,
               reserved.kv_blocks, reserved.block_tokens}};
  if (!outcome.pool_known) {
    for (std::size_t i = 7; i < kFigureCount - 1; ++i) out.values[i].reset();
  }
  return out;
}

Bytes capped(Wide bytes) { return {static_cast<u64>(std::min<Wide>(bytes, kMaxExact))}; }

class AnswerWriter {
 public:
  AnswerWriter(const Request& request, const Outcome& outcome) : request_(request), outcome_(outcome) {}
  json::Written write();

 private:
  void number(Label key, const std::optional<Wide>& value) {
    out_.key(key);
    if (value) {
      out_.number(*value);
    } else {
      out_.null();
    }
  }
  /// 0 says that it is not known.
  void number_or_null(Label key, u64 value) { number(key, value != 0 ? std::optional<Wide>(value) : std::nullopt); }
  void text(Label key, const std::string_view& value) { out_.key(key).text(value); }
  void text_or_null(Label key, const std::string_view& value) {
    out_.key(key);
    if (value.empty()) {
      out_.null();
    } else {
      out_.text(value);
    }
  }
  void reading(Wide bytes, Read read) {
    const Reading scaled = read == Read::per_token ? read_per_token(capped(bytes))
                           : pooled(request_)      ? read_decimal(capped(bytes))
                                                   : read_binary(capped(bytes));
    out_.begin_object().key("value").decimal(scaled.millionths).key("unit").text(scaled.unit).end_object();
  }
  void range(Label key, Wide low, Wide high) {
    out_.key(key);
    if (outcome_.pool_known && low != high) {
      out_.begin_array().number(low).number(high).end_array();
    } else {
      out_.null();
    }
  }

  void model();
  void deployment();
  void caches();
  void memory();
  void parts(Label key, const List<MemoryPart>& list);
  void ranks();
  void readings(const Figures& figures);
  void confidence();
  void note(const Note& note);
  void notes();

  const Request& request_;
  const Outcome& outcome_;
  Writer out_;
};

void AnswerWriter::model() {
  const Model& model = request_.model;
  u64 counted = 0;
  for (const auto& one : model.layers) counted += one.count;
  out_.key("model").begin_object();
  text("id", model.id);
  text("name", model.name);
  text("family", model.family);
  text("source", model.source);
  number_or_null("parameters", model.parameters.value_or(0));
  number_or_null("active_parameters", model.active_parameters.value_or(0));
  number_or_null("max_context", model.max_context);
  out_.key("layer_count").number(model.layer_count != 0 ? model.layer_count : counted);
  number_or_null("query_heads", model.query_heads);
  text_or_null("native_weights", model.native_weights != nullptr ? model.native_weights->id : "");
  out_.key("layers").begin_array();
  for (const auto& one : model.layers) write_run(out_, one);
  out_.end_array().key("fields");
  write_fields(out_, model);
  out_.end_object();
}

void AnswerWriter::deployment() {
  const Deployment& on = request_.deployment;
  const GpuMemory memory = on.memory(pooled(request_));
  out_.key("gpu").begin_object();
  text_or_null("id", on.gpu_id);
  text("name", on.gpu_name);
  out_.key("memory_bytes").number(memory.bytes.count).key("basis").text(basis_name(memory.basis)).end_object();
  out_.key("deployment").begin_object().key("gpus").number(on.gpus);
  out_.key("tensor_parallel").number(on.tensor_parallel).key("pipeline_parallel").number(on.pipeline_parallel);
  out_.key("data_parallel").number(on.data_parallel).end_object();
}

void AnswerWriter::caches() {
  out_.key("caches").begin_array();
  for (const auto& pool : filled_elsewhere(outcome_.reserved.caches)) {
    out_.begin_object();
    text("name", pool.name);
    out_.key("cells").number(pool.cells).key("streams").number(pool.streams).key("layers").number(pool.layers);
    out_.key("k_bytes").number(pool.k_bytes).key("v_bytes").number(pool.v_bytes);
    out_.key("state_bytes").number(pool.state_bytes).key("conv_bytes").number(pool.conv_bytes).key("reading");
    reading(pool.k_bytes + pool.v_bytes + pool.state_bytes, Read::size);
    out_.end_object();
  }
  out_.end_array();
}

/// The bar is as long as the memory, or as what stands on it where that is more.
void AnswerWriter::memory() {
  out_.key("memory");
  if (!outcome_.pool_known) {
    out_.null();
    return;
  }
  const Reservation& reserved = outcome_.reserved;
  const Deployment& on = request_.deployment;
  const Wide total = Wide{on.gpus} * on.memory(pooled(request_)).bytes.count;
  const Wide weights =
      reserved.weight_bytes_on_gpus ? *reserved.weight_bytes_on_gpus * on.data_parallel : outcome_.weight_total;
  struct Segment {
    Label kind;
    Wide bytes;
  };
  List<Segment> segments;
  Wide drawn = 0;
  const auto add = [&](Label kind, Wide bytes) {
    segments.push_back({kind, bytes});
    drawn += bytes;
  };
  add("weights", weights);
  if (reserved.weights_fit) {
    const Wide used = std::min(reserved.sequences * reserved.reserved_per_sequence, reserved.pool_bytes);
    for (const auto& part : reserved.parts) {
      if (std::string_view(part.code) != "reserve") add(part.code, part.bytes * on.gpus);
    }
    add("cache", used);
    add("left", reserved.pool_bytes - used);
    if (total > drawn) add("reserve", total - drawn);
  }
  const Wide scale = std::max<Wide>(std::max(total, drawn), 1);
  const auto share = [&](Label key, Wide bytes) { out_.key(key).decimal(bytes * 1'000'000 / scale); };
  out_.begin_object().key("total_bytes").number(total).key("total_reading");
  reading(total, Read::size);
  share("total_share", total);
  share("sequence_share", reserved.reserved_per_sequence);
  out_.key("segments").begin_array();
  for (const auto& segment : segments) {
    out_.begin_object().key("kind").text(segment.kind).key("bytes").number(segment.bytes).key("reading");
    reading(segment.bytes, Read::size);
    share("share", segment.bytes);
    out_.end_object();
  }
  out_.end_array().end_object();
}

void AnswerWriter::parts(Label key, const List<MemoryPart>& list) {
  out_.key(key).begin_array();
  for (const auto& part : list) {
    out_.begin_object().key("code").text(part.code).key("bytes").number(part.bytes).key("reading");
    reading(part.bytes, Read::size);
    out_.key("low").number(part.low).key("high").number(part.high).key("low_reading");
    reading(part.low, Read::size);
    out_.key("high_reading");
    reading(part.high, Read::size);
    out_.key("confidence").text(confidence_name(part.confidence)).end_object();
  }
  out_.end_array();
}

void AnswerWriter::ranks() {
  out_.key("ranks").begin_array();
  for (const auto& rank : filled_elsewhere(outcome_.reserved.ranks)) {
    out_.begin_object().key("gpu").number(rank.gpu).key("stage").number(rank.stage).key("shares").begin_array();
    for (const auto& share : rank.shares) {
      out_.begin_object().key("kind").text(kind_name(share.kind)).key("layers").number(share.layers);
      out_.key("first_head").number(share.first_head).key("heads").number(share.heads);
      out_.key("of_heads").number(share.of_heads).key("copies").number(share.copies).end_object();
    }
    out_.end_array().key("kv_bytes_per_sequence").number(rank.kv_bytes_per_sequence).key("reading");
    reading(rank.kv_bytes_per_sequence, Read::size);
    out_.key("fullest").boolean(rank.fullest).end_object();
  }
  out_.end_array();
}

void AnswerWriter::readings(const Figures& figures) {
  out_.key("readings").begin_object();
  for (std::size_t i = 0; i < kFigureCount; ++i) {
    if (kFigures[i].read == Read::none || !figures.values[i]) continue;
    out_.key(kFigures[i].name);
    reading(*figures.values[i], kFigures[i].read);
  }
  const Deployment& on = request_.deployment;
  const Wide each = on.memory(pooled(request_)).bytes.count;
  out_.key("gpu_memory_bytes");
  reading(each, Read::size);
  out_.key("total_memory_bytes");
  reading(each * on.gpus, Read::size);
  // What weights and cache share: all but the textbook's reserve.
  Wide usable = each;
  for (const auto& part : outcome_.reserved.parts) {
    if (std::string_view(part.code) == "reserve") usable -= std::min(usable, part.bytes);
  }
  out_.key("usable_memory_bytes");
  reading(usable * on.gpus, Read::size);
  const Reservation& reserved = outcome_.reserved;
  if (outcome_.pool_known && reserved.pool_low_per_gpu != reserved.pool_high_per_gpu) {
    out_.key("kv_memory_bytes_per_gpu_low");
    reading(reserved.pool_low_per_gpu, Read::size);
    out_.key("kv_memory_bytes_per_gpu_high");
    reading(reserved.pool_high_per_gpu, Read::size);
  }
  out_.end_object();
}

void AnswerWriter::confidence() {
  const Reservation& reserved = outcome_.reserved;
  const Confidence weights = outcome_.weights && outcome_.weights->exact ? Confidence::exact : Confidence::estimate;
  Confidence room = std::max(reserved.pool_confidence, reserved.reserved_confidence);
  if (!pool_stated(request_)) room = std::max(room, weights);
  const Confidence by_class[] = {Confidence::exact, Confidence::exact, weights, reserved.reserved_confidence, room};
  out_.key("confidence").begin_object();
  for (const auto& figure : kFigures) {
    if (figure.sure == Sure::unsaid) continue;
    out_.key(figure.name).text(confidence_name(by_class[static_cast<std::size_t>(figure.sure)]));
  }
  out_.key("concurrency").text(confidence_name(room)).end_object();
}

/// The step's left-hand side: "2 × 32 layers × 8 kv_heads × 128 key_width × 2 bytes".
void write_expression(Writer& out, const Step& step) {
  for (const auto& one : step.terms) {
    if (*one.op != 0) out.piece(" ").piece(one.op).piece(" ");
    out.decimal_piece(one.value_millionths);
    if (*one.of != 0) out.piece(" ").piece(one.of);
  }
}

void AnswerWriter::note(const Note& note) {
  out_.begin_object();
  text("code", note.code);
  out_.key("values").begin_object();
  for (const auto& value : note.values) text(value.name, value.text);
  out_.end_object().end_object();
}

void AnswerWriter::notes() {
  const Model& model = request_.model;
  out_.key("notes").begin_array();
  for (const auto& one : outcome_.reserved.notes) note(one);
  for (const auto& code : filled_elsewhere(model.note_codes)) note({code, {}});
  Wide index_keys = 0;
  Wide index_values = 0;
  for (const auto& run : model.layers) {
    index_values += Wide{run.count} * run.indexer_width;
    if (run.indexer_width != 0) index_keys += run.count * find_format("fp8_indexer")->bytes_of(run.indexer_width);
  }
  if (index_keys != 0 && request_.kv.indexer == nullptr) {
    Note left_out{"index_keys_left_out", {}};
    note(left_out.with("low", index_keys).with("high", 2 * index_values));
  }
  if (!outcome_.weights) note({"parameters_unknown", {}});
  if (request_.kv_heads != 0) {
    Note changed{"kv_heads_changed", {}};
    note(changed.with("kv_heads", request_.kv_heads));
  }
  if (model.max_context != 0 && request_.context.count > model.max_context) {
    Note beyond{"beyond_max_context", {}};
    note(beyond.with("context", request_.context.count).with("max_context", model.max_context));
  }
  out_.end_array();
}

/// What the count hangs on most, for the sentence: the fixed part where it is more than half of a conversation, the
/// weights where they leave less than they take, else the length of the context.
Label decided_by(const Outcome& outcome) {
  if (outcome.cost.together.fixed * 2 > outcome.cost.together.total) return "fixed_part";
  return outcome.weight_total > outcome.reserved.pool_bytes ? "weights" : "context";
}

json::Written AnswerWriter::write() {
  const Reservation& reserved = outcome_.reserved;
  const Figures figures = figures_of(request_, outcome_);
  out_.begin_object();
  model();
  text("engine", request_.engine->name);
  out_.key("context").number(request_.context.count);
  const Format* const stored = request_.weights != nullptr ? request_.weights : request_.model.native_weights;
  text_or_null("weights", stored != nullptr ? stored->id : "");
  out_.key("kv").begin_object();
  text("k", request_.kv.k->id);
  text("v", request_.kv.v->id);
  out_.end_object();
  deployment();
  for (std::size_t i = 0; i < kFigureCount; ++i) number(kFigures[i].name, figures.values[i]);
  out_.key("concurrency");
  if (outcome_.pool_known) {
    out_.decimal(reserved.concurrency_num * 1'000'000 / std::max<Wide>(reserved.concurrency_den, 1));
  } else {
    out_.null();
  }
  const WeightBytes weights = outcome_.weights.value_or(WeightBytes{});
  range("weight_bytes_range", weights.low.count, weights.high.count);
  range("sequences_range", reserved.sequences_low, reserved.sequences_high);
  range("kv_memory_bytes_per_gpu_range", reserved.pool_low_per_gpu, reserved.pool_high_per_gpu);
  caches();
  text_or_null("limit", outcome_.limit);
  text_or_null("decides", outcome_.pool_known ? decided_by(outcome_) : "");
  const Remedy& remedy = outcome_.remedy;
  out_.key("remedy").begin_object();
  number_or_null("gpus_for_weights", remedy.gpus_for_weights.value_or(0));
  number_or_null("gpus_for_one_sequence", remedy.gpus_for_one_sequence.value_or(0));
  number_or_null("longest_context", remedy.longest_context.value_or(0));
  out_.end_object().key("slope_changes").begin_array();
  for (const Tokens at : slope_changes(outcome_.merged)) out_.number(at.count);
  out_.end_array();
  memory();
  parts("parts", reserved.parts);
  parts("gaps", reserved.gaps);
  ranks();
  readings(figures);
  confidence();
  write_steps(out_, derive(request_, outcome_));
  notes();
  out_.end_object();
  return out_.take();
}

}  // namespace

void write_steps(Writer& out, const Derivation& derivation) {
  out.key("derivation").begin_array();
  for (const auto& step : derivation.steps) {
    out.begin_object().key("name").text(step.name).key("part").text(step.part).key("terms").begin_array();
    for (const auto& one : step.terms) {
      out.begin_object().key("op").text(one.op).key("value").decimal(one.value_millionths);
      out.key("of").text(one.of).end_object();
    }
    out.end_array();
    out.key("expression").begin_text();
    write_expression(out, step);
    out.end_text();
    out.key("value").decimal(step.value_millionths).key("unit").text(step.unit);
    out.key("rounded_down").boolean(step.rounded_down).end_object();
  }
  out.end_array();
}

Result<json::Written> write_answer(const Request& request, const Outcome& outcome) {
  const Deployment& on = request.deployment;
  const struct {
    Label field;
    Wide bytes;
  } kBounded[] = {
      {"context", outcome.cost.together.total},
      {"context", outcome.reserved.reserved_per_sequence},
      {"gpus", Wide{on.gpus} * on.memory(pooled(request)).bytes.count},
      {"gpus", outcome.reserved.pool_bytes},
      {"data_parallel", outcome.weight_total},
  };
  for (const auto& figure : kBounded) {
    if (const auto exact = to_bytes(figure.bytes, figure.field); !exact) return std::unexpected(exact.error());
  }
  return AnswerWriter(request, outcome).write();
}

}  // namespace kvcap
