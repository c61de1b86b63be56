// Checks every field of a request before any arithmetic sees it.
#include <algorithm>

#include "kvcap/catalogue.hpp"
#include "kvcap/plan.hpp"
#include "kvcap/weights.hpp"

namespace kvcap {
namespace {

using json::Kind;
using json::Value;

std::string path(std::string_view parent, std::string_view name) {
  return std::string(parent) + "." + std::string(name);
}

/// A whole number that may be absent.
Result<u64> whole_or(const Value& object, std::string_view parent, std::string_view name, u64 fallback, u64 min,
                     u64 max) {
  const Value* const value = object.find(name);
  if (value == nullptr) return fallback;
  return json::to_whole(*value, parent.empty() ? std::string(name) : path(parent, name), min, max);
}

std::string cache_format_ids(bool cache) {
  std::string ids;
  for (const auto& format : formats()) {
    if (!(cache ? format.cache : format.weights)) continue;
    if (!ids.empty()) ids += ", ";
    ids += format.id;
  }
  return ids;
}

Result<const Format*> read_format(const Value& value, std::string_view field, bool cache) {
  const auto text = json::to_text(value, field);
  if (!text) return std::unexpected(text.error());
  const Format* const format = find_format(*text);
  if (format == nullptr || !(cache ? format->cache : format->weights)) {
    return fail(ErrorCode::unknown_id, field,
                Text() << json::describe(value) << " is not a format for " << (cache ? "a KV cache" : "weights")
                       << "; these are: " << cache_format_ids(cache));
  }
  return format;
}

Result<const Format*> read_state_format(const Value& run, std::string_view field, std::string_view name) {
  const Value* const value = run.get(name);
  if (value == nullptr) return find_format("bf16");
  return read_format(*value, path(field, name), true);
}

struct RunKey {
  std::string_view name;
  u64 max;
};

/// The keys of a run that hold whole numbers, with their largest value.
constexpr RunKey kRunKeys[] = {
    {"kv_heads", kMaxHeads},           {"key_width", kMaxWidth},
    {"value_width", kMaxWidth},        {"latent_width", kMaxWidth},
    {"indexer_width", kMaxWidth},      {"window", kMaxTokens},
    {"tokens_per_entry", kMaxTokens},  {"source_tokens", kMaxTokens},
    {"state_values", kMaxState},       {"conv_values", kMaxState},
    {"latent_value_width", kMaxWidth}, {"expanded_heads", kMaxHeads},
    {"expanded_key_width", kMaxWidth}, {"expanded_value_width", kMaxWidth},
};

Result<LayerRun> read_run(const Value& value, std::string_view field) {
  if (!value.is(Kind::object)) {
    return fail(ErrorCode::wrong_type, field, Text() << json::describe(value) << " is not accepted: an object is");
  }
  LayerRun run;
  const Value* const kind_value = value.get("kind");
  if (kind_value == nullptr) return fail(ErrorCode::missing, path(field, "kind"), "says which cache these layers keep");
  const auto kind_text = json::to_text(*kind_value, path(field, "kind"));
  if (!kind_text) return std::unexpected(kind_text.error());
  const auto kind = find_kind(*kind_text);
  if (!kind) {
    return fail(ErrorCode::unknown_id, path(field, "kind"),
                Text() << json::describe(*kind_value)
                       << " is no kind of layer; these are: full, window, "
                          "chunked, latent, compressed, recurrent, shared, "
                          "none, cross");
  }
  run.kind = *kind;

  const Value* const count_value = value.get("count");
  if (count_value == nullptr) return fail(ErrorCode::missing, path(field, "count"), "says how many layers these are");
  const auto count = json::to_whole(*count_value, path(field, "count"), 1, kMaxLayers);
  if (!count) return std::unexpected(count.error());
  run.count = static_cast<u32>(*count);

  u64 read[std::size(kRunKeys)] = {};
  for (std::size_t i = 0; i < std::size(kRunKeys); ++i) {
    const auto whole = whole_or(value, field, kRunKeys[i].name, 0, 0, kRunKeys[i].max);
    if (!whole) return std::unexpected(whole.error());
    read[i] = *whole;
  }
  const auto narrow = [&](std::size_t i) { return static_cast<u32>(read[i]); };
  run.kv_heads = narrow(0);
  run.key_width = narrow(1);
  run.value_width = narrow(2);
  run.latent_width = narrow(3);
  run.indexer_width = narrow(4);
  run.window_tokens = narrow(5);
  run.tokens_per_entry = narrow(6);
  run.source_tokens = narrow(7);
  run.state_values = read[8];
  run.conv_values = read[9];
  run.latent_value_width = narrow(10);
  run.expanded_heads = narrow(11);
  run.expanded_key_width = narrow(12);
  run.expanded_value_width = narrow(13);

  const auto needs = [&](std::string_view name, bool there) -> std::optional<Error> {
    if (there) return std::nullopt;
    return Error{ErrorCode::missing, path(field, name),
                 Text() << "a layer of kind " << *kind_text << " needs it, at least 1"};
  };
  const bool heads = run.kind == LayerKind::full || run.kind == LayerKind::window || run.kind == LayerKind::chunked ||
                     run.kind == LayerKind::cross || (run.kind == LayerKind::compressed && run.latent_width == 0);
  std::optional<Error> lacking;
  const auto check = [&](std::string_view name, bool there) {
    if (!lacking) lacking = needs(name, there);
  };
  if (heads) {
    check("kv_heads", run.kv_heads != 0);
    check("key_width", run.key_width != 0);
    // 0 says that K serves as V; leaving it out says nothing.
    check("value_width", value.get("value_width") != nullptr);
    if (!lacking && run.latent_width != 0) {
      lacking = Error{ErrorCode::conflict, path(field, "latent_width"), "is for layers of kind latent or compressed"};
    }
  }
  if (run.kind == LayerKind::latent) {
    check("latent_width", run.latent_width != 0);
    if (!lacking && run.latent_value_width > run.latent_width) {
      lacking = Error{ErrorCode::out_of_range, path(field, "latent_value_width"),
                      Text() << "is a part of the row, at most latent_width, which is " << run.latent_width};
    }
  }
  if (run.kind == LayerKind::window || run.kind == LayerKind::chunked) check("window", run.window_tokens != 0);
  if (run.kind == LayerKind::compressed) check("tokens_per_entry", run.tokens_per_entry != 0);
  if (run.kind == LayerKind::cross) check("source_tokens", run.source_tokens != 0);
  if (run.kind == LayerKind::recurrent) {
    check("state_values", run.state_values != 0 || run.conv_values != 0);
    const auto state = read_state_format(value, field, "state_format");
    if (!state) return std::unexpected(state.error());
    const auto conv = read_state_format(value, field, "conv_format");
    if (!conv) return std::unexpected(conv.error());
    run.state_format = *state;
    run.conv_format = *conv;
  }
  if (lacking) return std::unexpected(*lacking);
  return run;
}

Result<Model> read_model(const Value& root, const Features& features) {
  const Value* const model = root.get("model");
  const Value* const config = root.get("config");
  if (model != nullptr && config != nullptr) {
    return fail(ErrorCode::conflict, "config", "is given beside model: one of the two is accepted");
  }
  if (config != nullptr) {
    if (config->is(Kind::string) && features.config_text != nullptr) return features.config_text(config->text);
    if (config->is(Kind::object) && features.config_object != nullptr) return features.config_object(*config);
    if (!config->is(Kind::string) && !config->is(Kind::object)) {
      return fail(ErrorCode::wrong_type, "config",
                  Text() << json::describe(*config) << " is not accepted: a config.json as an object or as text is");
    }
    return fail(ErrorCode::unsupported, "config", "needs the kernel that reads configs");
  }
  if (model == nullptr) {
    return fail(ErrorCode::missing, "model", "is needed: a catalogue id, a model as an object, or config instead");
  }
  if (model->is(Kind::object)) return parse_model(*model, "model");
  const auto id = json::to_text(*model, "model");
  if (!id) {
    return fail(ErrorCode::wrong_type, "model",
                Text() << json::describe(*model) << " is not accepted: a catalogue id or an object is");
  }
  const CatalogueEntry* const entry = find_model(*id);
  if (entry == nullptr) {
    return fail(ErrorCode::unknown_id, "model",
                Text() << json::describe(*model)
                       << " is not in the catalogue; a model can also be given "
                          "as an object or by its config");
  }
  return model_of(*entry);
}

Result<Deployment> read_deployment(const Value& root, bool textbook, bool by_layers) {
  Deployment out;
  const Value* const gpu = root.find("gpu");
  if (gpu != nullptr && gpu->is(Kind::object)) {
    const Value* const memory = gpu->get("memory_bytes");
    if (memory == nullptr) return fail(ErrorCode::missing, "gpu.memory_bytes", "says how much memory one GPU has");
    const auto bytes = json::to_whole(*memory, "gpu.memory_bytes", 1, kMaxExact);
    if (!bytes) return std::unexpected(bytes.error());
    out.stated_memory = Bytes{*bytes};
  } else {
    std::string_view id = "80gb";
    if (gpu != nullptr) {
      const auto text = json::to_text(*gpu, "gpu");
      if (!text) {
        return fail(ErrorCode::wrong_type, "gpu",
                    Text() << json::describe(*gpu)
                           << " is not accepted: a catalogue id or "
                              "{\"memory_bytes\": n} is");
      }
      id = *text;
    }
    out.gpu = find_gpu(id);
    if (out.gpu == nullptr) {
      return fail(ErrorCode::unknown_id, "gpu",
                  Text() << json::describe(*gpu)
                         << " is not in the catalogue; {\"memory_bytes\": n} "
                            "is accepted too");
    }
    out.gpu_id = out.gpu->id;
    out.gpu_name = out.gpu->name;
  }

  struct Size {
    std::string_view name;
    u64 count = 1;
    bool given = false;
  };
  Size sizes[] = {{"gpus"}, {"tensor_parallel"}, {"pipeline_parallel"}, {"data_parallel"}};
  for (Size& size : sizes) {
    const auto count = whole_or(root, "", size.name, 1, 1, kMaxGpus);
    if (!count) return std::unexpected(count.error());
    size.count = *count;
    size.given = root.find(size.name) != nullptr;
  }
  auto& [gpus, tensor, pipeline, data] = sizes;
  if (gpus.given && !tensor.given) {
    const u64 others = pipeline.count * data.count;
    if (by_layers && !pipeline.given) {
      if (gpus.count % data.count != 0) {
        return fail(ErrorCode::not_divisible, "data_parallel", Text() << data.count << " does not divide the GPUs");
      }
      pipeline.count = gpus.count / data.count;
    } else if (gpus.count % others == 0) {
      tensor.count = gpus.count / others;
    } else if (!textbook) {
      return fail(ErrorCode::not_divisible, "gpus",
                  Text() << gpus.count << " GPUs are no whole number of copies of " << others
                         << " (pipeline_parallel × data_parallel)");
    } else {
      tensor.count = std::max<u64>(1, gpus.count / others);
    }
  }
  const Wide product = Wide{tensor.count} * pipeline.count * data.count;
  if (product > kMaxGpus) {
    return fail(ErrorCode::out_of_range, "tensor_parallel",
                Text() << "with the other sizes comes to more than " << kMaxGpus << " GPUs");
  }
  if (!gpus.given) gpus.count = static_cast<u64>(product);
  if (product != gpus.count && (tensor.given || !textbook)) {
    return fail(ErrorCode::conflict, "gpus",
                Text() << gpus.count
                       << " is not tensor_parallel × pipeline_parallel × "
                          "data_parallel, which is "
                       << product);
  }
  out.gpus = gpus.count;
  out.tensor_parallel = tensor.count;
  out.pipeline_parallel = pipeline.count;
  out.data_parallel = data.count;
  return out;
}

Result<CacheFormats> read_cache_formats(const Value* kv, const Model& model) {
  const Format* const fallback = model.native_cache != nullptr ? model.native_cache : find_format("bf16");
  CacheFormats out{fallback, fallback};
  if (kv == nullptr) return out;
  if (kv->is(Kind::object)) {
    for (const auto& [name, slot] : {std::pair{"k", &out.k}, std::pair{"v", &out.v}}) {
      const Value* const one = kv->get(name);
      if (one == nullptr) return fail(ErrorCode::missing, path("kv", name), "is needed: the formats of K and of V");
      const auto format = read_format(*one, path("kv", name), true);
      if (!format) return std::unexpected(format.error());
      *slot = *format;
    }
    return out;
  }
  const auto format = read_format(*kv, "kv", true);
  if (!format) return std::unexpected(format.error());
  return CacheFormats{*format, *format};
}

}  // namespace

Result<Model> parse_model(const Value& object, std::string_view field) {
  Model model;
  if (const Value* const name = object.get("name"); name != nullptr) {
    const auto text = json::to_text(*name, path(field, "name"));
    if (!text) return std::unexpected(text.error());
    model.name = *text;
  }
  for (const auto& [name, slot] :
       {std::pair{"parameters", &model.parameters}, std::pair{"active_parameters", &model.active_parameters}}) {
    if (const Value* const count = object.get(name); count != nullptr) {
      const auto whole = json::to_whole(*count, path(field, name), 1, kMaxExact);
      if (!whole) return std::unexpected(whole.error());
      *slot = *whole;
    }
  }
  const auto longest = whole_or(object, field, "max_context", 0, 1, kMaxTokens);
  if (!longest) return std::unexpected(longest.error());
  model.max_context = *longest;
  const auto query_heads = whole_or(object, field, "query_heads", 0, 1, kMaxHeads);
  if (!query_heads) return std::unexpected(query_heads.error());
  model.query_heads = static_cast<u32>(*query_heads);
  const auto vocabulary = whole_or(object, field, "vocabulary", 0, 1, kMaxWidth);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  model.vocabulary = static_cast<u32>(*vocabulary);
  model.native_weights = find_format("bf16");
  if (const Value* const native = object.get("native_weights"); native != nullptr) {
    const auto format = read_format(*native, path(field, "native_weights"), false);
    if (!format) return std::unexpected(format.error());
    model.native_weights = *format;
  }
  const Value* const layers = object.get("layers");
  const std::string layers_field = path(field, "layers");
  if (layers == nullptr) return fail(ErrorCode::missing, layers_field, "is needed: a list of runs of layers");
  if (!layers->is(Kind::array)) {
    return fail(ErrorCode::wrong_type, layers_field,
                Text() << json::describe(*layers) << " is not accepted: a list of runs of layers is");
  }
  if (layers->count() == 0 || layers->count() > kMaxRuns) {
    return fail(ErrorCode::out_of_range, layers_field,
                Text() << "has " << layers->count() << " runs; 1 to " << kMaxRuns << " are accepted");
  }
  u64 index = 0;
  for (const Value& one : *layers) {
    auto run = read_run(one, layers_field + "[" + digits(index++) + "]");
    if (!run) return std::unexpected(run.error());
    model.layers.push_back(*run);
  }
  return model;
}

namespace {

/// Options that change what a conversation writes, not only what is reserved for it.
void apply_options(Request& request) {
  const Options& options = request.options;
  if (options.given("decode_context_parallel_size")) {
    request.deployment.context_parallel = options.whole("decode_context_parallel_size");
  }
  if (options.whole("mamba_ssm_cache_dtype") != 0) {
    constexpr Label kFormats[] = {"", "fp32", "fp16", "bf16"};  // in the order of the option's choices
    for (auto& run : request.model.layers) {
      if (run.kind == LayerKind::recurrent) run.state_format = find_format(kFormats[options.whole("mamba_ssm_cache_dtype")]);
    }
  }
}

}  // namespace

Result<Request> parse_request(const Value& root, const Features& features) {
  if (!root.is(Kind::object)) {
    return fail(ErrorCode::wrong_type, "request", Text() << json::describe(root) << " is not accepted: an object is");
  }
  Request request;

  std::string_view engine_name = "textbook";
  const Value* const engine = root.find("engine");
  if (engine != nullptr) {
    const auto text = json::to_text(*engine, "engine");
    if (!text) return std::unexpected(text.error());
    engine_name = *text;
  }
  constexpr std::string_view kEngines[] = {"textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"};
  if (std::ranges::find(kEngines, engine_name) == std::end(kEngines)) {
    return fail(ErrorCode::unknown_id, "engine",
                Text() << json::describe(*engine)
                       << " is no engine; these are: textbook, vllm, sglang, llama.cpp, tensorrt-llm");
  }
  const auto rules = std::ranges::find(features.engines, engine_name, &EngineRules::name);
  if (rules == features.engines.end()) {
    return fail(ErrorCode::unsupported, "engine", "needs the kernel that knows the engines' rules");
  }
  request.engine = &*rules;

  auto model = read_model(root, features);
  if (!model) return std::unexpected(model.error());
  request.model = std::move(*model);
  if (!has_cache(request.model.layers)) {
    return fail(ErrorCode::no_cache, request.model.id.empty() && root.get("config") != nullptr ? "config" : "model",
                "keeps no KV cache in any layer, so there is nothing to size");
  }
  if (const Value* const count = root.find("parameters"); count != nullptr) {
    const auto whole = json::to_whole(*count, "parameters", 1, kMaxExact);
    if (!whole) return std::unexpected(whole.error());
    request.model.parameters = *whole;
    request.model.native_weight_bytes.reset();
  }

  if (const Value* const weights = root.find("weights"); weights != nullptr) {
    const auto format = read_format(*weights, "weights", false);
    if (!format) return std::unexpected(format.error());
    request.weights = *format;
  }
  if (const Value* const stated = root.find("weight_bytes"); stated != nullptr) {
    const auto bytes = json::to_whole(*stated, "weight_bytes", 0, kMaxExact);
    if (!bytes) return std::unexpected(bytes.error());
    request.weight_bytes = Bytes{*bytes};
  }

  const auto kv = read_cache_formats(root.find("kv"), request.model);
  if (!kv) return std::unexpected(kv.error());
  request.kv = *kv;
  if (auto refused = check_formats(request.model.layers, request.kv)) return std::unexpected(std::move(*refused));

  const auto context = whole_or(root, "", "context", request.context.count, 1, kMaxTokens);
  if (!context) return std::unexpected(context.error());
  request.context = {*context};

  auto deployment =
      read_deployment(root, request.engine->id == EngineId::textbook, request.engine->id == EngineId::llama_cpp);
  if (!deployment) return std::unexpected(deployment.error());
  request.deployment = std::move(*deployment);

  auto options = parse_options(request.engine->options, root.find("options"));
  if (!options) return std::unexpected(options.error());
  request.options = std::move(*options);
  apply_options(request);
  return request;
}

}  // namespace kvcap
