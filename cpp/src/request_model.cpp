// A model written as an object, checked field by field.
#include "kvcap/plan.hpp"
#include "reader.hpp"

namespace kvcap {
namespace {

using json::Kind;
using json::Value;

/// The keys of a run that hold whole numbers, and where they go.
struct WidthKey {
  Label name;
  u32 LayerRun::* slot;
  u64 max;
};
constexpr WidthKey kWidthKeys[] = {
    {"kv_heads", &LayerRun::kv_heads, kMaxHeads},
    {"key_width", &LayerRun::key_width, kMaxWidth},
    {"value_width", &LayerRun::value_width, kMaxWidth},
    {"latent_width", &LayerRun::latent_width, kMaxWidth},
    {"latent_value_width", &LayerRun::latent_value_width, kMaxWidth},
    {"expanded_heads", &LayerRun::expanded_heads, kMaxHeads},
    {"expanded_key_width", &LayerRun::expanded_key_width, kMaxWidth},
    {"expanded_value_width", &LayerRun::expanded_value_width, kMaxWidth},
    {"indexer_width", &LayerRun::indexer_width, kMaxWidth},
    {"window", &LayerRun::window_tokens, kMaxTokens},
    {"tokens_per_entry", &LayerRun::tokens_per_entry, kMaxTokens},
    {"source_tokens", &LayerRun::source_tokens, kMaxTokens},
};

/// What each kind cannot be sized without: bits of this set, by position of the kind.
enum Need : unsigned char { heads = 1, latent = 2, window = 4, entry = 8, source = 16, state = 32 };
constexpr unsigned char kNeeds[] = {heads, heads | window, heads | window, latent, entry, state, 0, 0, heads | source};

void check_run(const LayerRun& run, ObjectReader& in) {
  const auto needs = [&](Label name, bool there) {
    if (there) return;
    in.refuse(ErrorCode::missing, name, Text() << "a layer of kind " << kind_name(run.kind) << " needs it, at least 1");
  };
  unsigned need = kNeeds[static_cast<std::size_t>(run.kind)];
  if (run.kind == LayerKind::compressed && run.latent_width == 0) need |= heads;
  if ((need & heads) != 0) {
    needs("kv_heads", run.kv_heads != 0);
    needs("key_width", run.key_width != 0);
    // 0 says that K serves as V; leaving it out says nothing.
    needs("value_width", in.member("value_width") != nullptr);
    if (run.latent_width != 0) {
      in.refuse(ErrorCode::conflict, "latent_width", "is for layers of kind latent or compressed");
    }
  }
  if ((need & latent) != 0) needs("latent_width", run.latent_width != 0);
  if ((need & window) != 0) needs("window", run.window_tokens != 0);
  if ((need & entry) != 0) needs("tokens_per_entry", run.tokens_per_entry != 0);
  // 0 says that there is nothing to attend to, a conversation without an image; leaving it out says nothing.
  if ((need & source) != 0) needs("source_tokens", in.member("source_tokens") != nullptr);
  if ((need & state) != 0) needs("state_values", run.state_values != 0 || run.conv_values != 0);
  if (run.latent_value_width > run.latent_width) {
    in.refuse(ErrorCode::out_of_range, "latent_value_width",
              Text() << "is a part of the row, at most latent_width, which is " << run.latent_width);
  }
}

LayerRun read_run(const Value& value, const Path& at, std::optional<Error>& error) {
  ObjectReader in(value, at, error);
  LayerRun run;
  if (!value.is(Kind::object)) {
    in.refuse_kind("", value, "an object");
    return run;
  }
  const std::string_view kind_text = in.text("kind", "");
  const auto kind = find_kind(kind_text);
  if (!kind) {
    in.refuse(in.member("kind") == nullptr ? ErrorCode::missing : ErrorCode::unknown_id, "kind",
              "is one of full, window, chunked, latent, compressed, recurrent, shared, none, cross");
    return run;
  }
  run.kind = *kind;
  if (in.member("count") == nullptr) in.refuse(ErrorCode::missing, "count", "says how many layers these are");
  run.count = static_cast<u32>(in.whole("count", 1, 1, kMaxLayers));
  for (const auto& key : kWidthKeys) run.*key.slot = static_cast<u32>(in.whole(key.name, 0, 0, key.max));
  run.state_values = in.whole("state_values", 0, 0, kMaxState);
  run.conv_values = in.whole("conv_values", 0, 0, kMaxState);
  if (run.kind == LayerKind::recurrent) {
    const Format* const half = find_format("bf16");
    run.state_format = in.format("state_format", true, half);
    run.conv_format = in.format("conv_format", true, half);
  }
  check_run(run, in);
  return run;
}

Model read_model_object(const Value& object, const Path& at, std::optional<Error>& error) {
  ObjectReader in(object, at, error);
  Model model;
  model.name = in.text("name", "");
  model.family = in.text("family", "");
  model.source = in.text("source", "");
  for (const auto& [name, slot] : {std::pair<Label, std::optional<u64> Model::*>{"parameters", &Model::parameters},
                                   {"active_parameters", &Model::active_parameters}}) {
    if (in.member(name) != nullptr) model.*slot = in.whole(name, 1, 1, kMaxExact);
  }
  model.max_context = in.whole("max_context", 0, 1, kMaxTokens);
  model.query_heads = static_cast<u32>(in.whole("query_heads", 0, 1, kMaxHeads));
  model.vocabulary = static_cast<u32>(in.whole("vocabulary", 0, 1, kMaxWidth));
  model.multimodal = in.truth("multimodal", false);
  model.layer_count = static_cast<u32>(in.whole("layer_count", 0, 1, kMaxLayers));
  // null: stored in a format that is not known.
  const Value* const native = in.member("native_weights");
  if (native == nullptr || !native->is(Kind::null)) {
    model.native_weights = in.format("native_weights", false, find_format("bf16"));
  }
  if (in.member("native_cache") != nullptr) model.native_cache = in.format("native_cache", true, nullptr);
  if (in.member("weight_bytes") != nullptr) {
    model.native_weight_bytes = Bytes{in.whole("weight_bytes", 0, 1, kMaxExact)};
    model.native_weights_estimated = in.truth("weight_bytes_estimated", false);
  }
  if (const Value* const notes = in.member("notes"); notes != nullptr && notes->is(Kind::array)) {
    for (const Value& note : *notes) {
      if (note.is(Kind::string)) model.note_codes.emplace_back(note.text);
    }
  }

  const Value* const layers = in.member("layers");
  if (layers == nullptr) {
    in.refuse(ErrorCode::missing, "layers", "is needed: a list of runs of layers");
  } else if (!layers->is(Kind::array)) {
    in.refuse_kind("layers", *layers, "a list of runs of layers");
  } else if (layers->count() == 0 || layers->count() > kMaxRuns) {
    in.refuse(ErrorCode::out_of_range, "layers",
              Text() << "has " << layers->count() << " runs; 1 to " << kMaxRuns << " are accepted");
  } else {
    const Path list{&at, "layers"};
    Path one{.parent = &list, .indexed = true};
    for (const Value& run : *layers) {
      model.layers.push_back(read_run(run, one, error));
      ++one.index;
    }
  }
  return model;
}

}  // namespace

Result<Model> parse_model(const Value& object, std::string_view field) {
  const std::string name(field);
  const Path at{nullptr, name.c_str()};
  std::optional<Error> error;
  Model model = read_model_object(object, at, error);
  if (error) return std::unexpected(*error);
  return model;
}

}  // namespace kvcap
