#include <algorithm>

#include "kvcap/config.hpp"
#include "kvcap/import.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

/// Files that lie beside a config.json and are mistaken for it.
std::optional<Error> other_file(const Value& root) {
  const auto refuse = [](std::string_view field, std::string_view what) {
    return Error{ErrorCode::unsupported, std::string(field),
                 "belongs to " + std::string(what) + ": the config.json beside it is needed"};
  };
  if (root.get("num_hidden_layers") != nullptr) return std::nullopt;
  if (root.get("producer") != nullptr && root.get("quantization") != nullptr) {
    return refuse("quantization",
                  "a hf_quant_config.json, which says how weights are stored and not what the model is");
  }
  if (root.get("weight_map") != nullptr)
    return refuse("weight_map", "a weight index, which names tensors and not their kinds");
  if (root.get("peft_type") != nullptr) return refuse("peft_type", "an adapter");
  if (root.get("added_tokens") != nullptr ||
      (root.get("tokenizer_class") != nullptr && root.get("model_type") == nullptr)) {
    return refuse("tokenizer_class", "a tokenizer");
  }
  return std::nullopt;
}

bool reads_other_inputs(const Value& root) {
  for (const std::string_view name : {"vision_config", "audio_config", "thinker_config", "vision_tower", "vision_model",
                                      "embd_layer", "audio_processor", "img_processor", "vision_backbone"}) {
    if (root.get(name) != nullptr) return true;
  }
  return false;
}

std::string name_of(Fields& fields) {
  for (const Value* const level : {&fields.root(), &fields.text_model()}) {
    const Value* const name = level->get("_name_or_path");
    if (name != nullptr && name->is(Kind::string) && !name->text.empty()) return std::string(name->text);
  }
  const Value* const type = fields.root().get("model_type");
  if (type != nullptr && type->is(Kind::string)) return std::string(type->text);
  return std::string(fields.model_type());
}

}  // namespace

Result<Model> import_config(const Value& config) {
  if (!config.is(Kind::object)) {
    return fail(ErrorCode::wrong_type, "config", Text() << json::describe(config) << " is not accepted: an object is");
  }
  if (auto other = other_file(config)) return std::unexpected(std::move(*other));

  Fields fields(config);
  if (fields.text("layer_pattern") == "encoder") {
    return fail(
        ErrorCode::no_cache, "model_type",
        Text() << "\"" << fields.model_type()
               << "\" is an encoder: it reads a text at once and keeps no KV cache, so any number of texts fits that "
                  "its weights and activations leave room for");
  }

  if (fields.family() == nullptr) {
    const Value* const names = config.get("architectures");
    const Value* const first =
        names != nullptr && names->is(Kind::array) && names->count() != 0 ? &*names->begin() : nullptr;
    if (first != nullptr && first->is(Kind::string) && first->text.ends_with("ForMaskedLM")) {
      return fail(
          ErrorCode::no_cache, "architectures",
          Text() << "\"" << first->text << "\" fills in masked words: it reads a text at once and keeps no KV cache");
    }
  }

  if (!fields.truth("is_causal", true)) {
    return fail(ErrorCode::no_cache, "is_causal",
                "is false: this copy embeds texts and attends to all of a text at once, so it keeps no KV cache");
  }

  LayerShapes shapes = read_layers(fields);
  if (fields.error()) return std::unexpected(*fields.error());
  if (fields.family() == nullptr) {
    if (const std::string hint = fields.unread_hint(); !hint.empty()) {
      return fail(ErrorCode::unsupported, hint,
                  Text() << "hints at a cache of another kind, and model type \"" << fields.model_type()
                         << "\" is not known: it can be written as runs of layers instead");
    }
  }

  Model model;
  model.name = name_of(fields);
  model.family = fields.model_type();
  model.source = "config.json";
  model.layers = run_lengths(shapes.layers);
  model.layer_count = static_cast<u32>(shapes.layers.size());
  for (const LayerSpec& layer : shapes.layers) model.query_heads = std::max(model.query_heads, layer.query_heads);
  if (fields.find("max_position_embeddings") == nullptr || fields.stated_context() != 0) {
    model.max_context = fields.tokens("max_position_embeddings");
  }

  model.multimodal = reads_other_inputs(config);
  model.vocabulary = static_cast<u32>(fields.width("vocab_size"));

  const ParameterCount count = count_parameters(fields, shapes);
  if (fields.error()) return std::unexpected(*fields.error());
  if (count.known && count.total() <= kMaxExact) {
    model.parameters = static_cast<u64>(count.total());
    if (count.inactive_experts != 0) model.active_parameters = static_cast<u64>(count.total() - count.inactive_experts);
    if (model.multimodal) model.note_codes.emplace_back("text_parameters_only");
  }
  read_quantisation(fields, count, model);
  if (fields.error()) return std::unexpected(*fields.error());

  if (fields.family() == nullptr) model.note_codes.emplace_back("unknown_model_type");
  for (const LayerRun& run : model.layers) {
    const auto note = [&](std::string_view code) {
      if (std::ranges::find(model.note_codes, code) == model.note_codes.end()) model.note_codes.emplace_back(code);
    };
    if (run.kind == LayerKind::cross && run.source_tokens == 0) note("cross_attention_without_source");
    if (run.kind == LayerKind::full && run.value_width == 0) note("k_serves_as_v");
  }
  fields.report(model);
  return model;
}

Result<Model> import_config_text(std::string_view config) {
  const auto document = json::Document::parse(config, "config", kMaxConfigBytes);
  if (!document) return std::unexpected(name_merge_marks(document.error(), config));
  return import_config(document->root());
}

Error name_merge_marks(Error error, std::string_view text) {
  const auto begins = [&](std::string_view mark) {
    return text.starts_with(mark.substr(1)) || text.find(mark) != std::string_view::npos;
  };
  if (error.code == ErrorCode::malformed && (begins("\n<<<<<<<") || begins("\n=======") || begins("\n>>>>>>>"))) {
    error.message += ": it holds the marks of a merge that was left half done";
  }
  return error;
}

}  // namespace kvcap
