// Checks every field of a request before any arithmetic sees it.
#include <algorithm>

#include "kvcap/catalogue.hpp"
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

Result<Model> read_model(const ObjectReader& root, const Features& features) {
  const Value* const model = root.member("model");
  const Value* const config = root.member("config");
  if (config != nullptr) {
    if (model != nullptr) {
      return fail(ErrorCode::conflict, "config", "is given beside model: one of the two is accepted");
    }
    const bool text = config->is(Kind::string);
    if (!text && !config->is(Kind::object)) {
      return fail(ErrorCode::wrong_type, "config",
                  Text() << json::describe(*config) << " is not accepted: a config.json as an object or as text is");
    }
    if (features.config_object == nullptr || features.config_text == nullptr) {
      return fail(ErrorCode::unsupported, "config", "needs the kernel that reads configs");
    }
    return text ? features.config_text(config->text) : features.config_object(*config);
  }
  if (model == nullptr) {
    return fail(ErrorCode::missing, "model", "is needed: a catalogue id, a model as an object, or config instead");
  }
  if (model->is(Kind::object)) return parse_model(*model, "model");
  if (!model->is(Kind::string)) {
    return fail(ErrorCode::wrong_type, "model",
                Text() << json::describe(*model) << " is not accepted: a catalogue id or an object is");
  }
  if (const CatalogueEntry* const entry = find_model(model->text); entry != nullptr) return model_of(*entry);
  return fail(ErrorCode::unknown_id, "model",
              Text() << json::describe(*model)
                     << " is not in the catalogue; a model can also be given as an object or by its config");
}

void read_gpu(Deployment& out, ObjectReader& root, const Path& at, std::optional<Error>& error) {
  const Value* const gpu = root.member("gpu");
  if (gpu != nullptr && gpu->is(Kind::object)) {
    const Path here{&at, "gpu"};
    ObjectReader in(*gpu, here, error);
    if (in.member("memory_bytes") == nullptr) {
      in.refuse(ErrorCode::missing, "memory_bytes", "says how much memory one GPU has");
    }
    out.stated_memory = Bytes{in.whole("memory_bytes", 1, 1, kMaxExact)};
    return;
  }
  out.gpu = find_gpu("80gb");
  if (gpu != nullptr) {
    if (!gpu->is(Kind::string)) {
      root.refuse_kind("gpu", *gpu, "a catalogue id or {\"memory_bytes\": n}");
    } else if (const Gpu* const found = find_gpu(gpu->text); found != nullptr) {
      out.gpu = found;
    } else {
      root.refuse(ErrorCode::unknown_id, "gpu",
                  Text() << json::describe(*gpu) << " is not in the catalogue; {\"memory_bytes\": n} is accepted too");
    }
  }
  out.gpu_id = out.gpu->id;
  out.gpu_name = out.gpu->name;
}

/// tensor_parallel defaults to the GPUs that the other sizes leave; llama.cpp splits by layers, so there it is
/// pipeline_parallel.
void read_sizes(Deployment& out, ObjectReader& root, EngineId engine) {
  const bool textbook = engine == EngineId::textbook;
  out.gpus = root.whole("gpus", 1, 1, kMaxGpus);
  out.tensor_parallel = root.whole("tensor_parallel", 1, 1, kMaxGpus);
  out.pipeline_parallel = root.whole("pipeline_parallel", 1, 1, kMaxGpus);
  out.data_parallel = root.whole("data_parallel", 1, 1, kMaxGpus);
  if (root.failed()) return;

  const bool gpus_given = root.member("gpus") != nullptr;
  const bool tensor_given = root.member("tensor_parallel") != nullptr;
  if (gpus_given && !tensor_given) {
    const bool by_layers = engine == EngineId::llama_cpp && root.member("pipeline_parallel") == nullptr;
    const u64 others = by_layers ? out.data_parallel : out.pipeline_parallel * out.data_parallel;
    if (out.gpus % others != 0 && !textbook) {
      root.refuse(ErrorCode::not_divisible, "gpus",
                  Text() << out.gpus << " GPUs are no whole number of copies of " << others
                         << " (pipeline_parallel × data_parallel)");
    }
    (by_layers ? out.pipeline_parallel : out.tensor_parallel) = std::max<u64>(1, out.gpus / others);
  }
  const Wide product = Wide{out.tensor_parallel} * out.pipeline_parallel * out.data_parallel;
  if (product > kMaxGpus) {
    root.refuse(ErrorCode::out_of_range, "tensor_parallel",
                Text() << "with the other sizes comes to more than " << kMaxGpus << " GPUs");
  }
  if (!gpus_given) out.gpus = static_cast<u64>(product);
  if (product != out.gpus && (tensor_given || !textbook)) {
    root.refuse(
        ErrorCode::conflict, "gpus",
        Text() << out.gpus << " is not tensor_parallel × pipeline_parallel × data_parallel, which is " << product);
  }
}

CacheFormats read_cache_formats(ObjectReader& root, const Path& at, const Model& model, std::optional<Error>& error) {
  const Format* const fallback = model.native_cache != nullptr ? model.native_cache : find_format("bf16");
  const Value* const kv = root.member("kv");
  if (kv == nullptr || !kv->is(Kind::object)) {
    const Format* const both = root.format("kv", true, fallback);
    return cache_formats(both, both);
  }
  const Path here{&at, "kv"};
  ObjectReader in(*kv, here, error);
  for (const Label name : {"k", "v"}) {
    if (in.member(name) == nullptr) in.refuse(ErrorCode::missing, name, "is needed: the formats of K and of V");
  }
  const Format* const k = in.format("k", true, fallback);
  return cache_formats(k, in.format("v", true, fallback));
}

/// Options that change what a conversation writes, not only what is reserved for it.
void apply_options(Request& request) {
  const Options& options = request.options;
  if (options.given("decode_context_parallel_size")) {
    request.deployment.context_parallel = options.whole("decode_context_parallel_size");
  }
  const u64 choice = std::max(options.whole("mamba_ssm_cache_dtype"), options.whole("mamba_ssm_dtype"));
  if (choice != 0) {
    constexpr Label kFormats[] = {"", "fp32", "fp16", "bf16"};  // in the order of the option's choices
    for (auto& run : request.model.layers) {
      if (run.kind == LayerKind::recurrent) run.state_format = find_format(kFormats[choice]);
    }
  }
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

Result<Request> parse_request(const Value& value, const Features& features) {
  const Path top;
  std::optional<Error> error;
  ObjectReader root(value, top, error);
  if (!value.is(Kind::object)) {
    return fail(ErrorCode::wrong_type, "request", Text() << json::describe(value) << " is not accepted: an object is");
  }
  Request request;

  const std::string_view engine = root.text("engine", "textbook");
  for (const auto& rules : features.engines) {
    if (rules.name == engine) request.engine = &rules;
  }
  if (request.engine == nullptr) {
    bool known = false;
    for (const std::string_view name : {"textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"}) {
      known = known || name == engine;
    }
    return fail(known ? ErrorCode::unsupported : ErrorCode::unknown_id, "engine",
                known ? "needs the kernel that knows the engines' rules"
                      : "is one of textbook, vllm, sglang, llama.cpp, tensorrt-llm");
  }

  auto model = read_model(root, features);
  if (!model) return std::unexpected(std::move(model.error()));
  request.model = std::move(*model);
  if (!has_cache(request.model.layers)) {
    return fail(ErrorCode::no_cache, root.member("config") != nullptr ? "config" : "model",
                "keeps no KV cache in any layer, so there is nothing to size");
  }
  if (root.member("parameters") != nullptr) {
    request.model.parameters = root.whole("parameters", 1, 1, kMaxExact);
    request.model.native_weight_bytes.reset();
  }
  request.weights = root.format("weights", false, nullptr);
  if (root.member("weight_bytes") != nullptr) {
    request.weight_bytes = Bytes{root.whole("weight_bytes", 0, 0, kMaxExact)};
  }
  request.kv = read_cache_formats(root, top, request.model, error);
  // Engines keep index keys as fp8 with a scale beside a cache of any format (vLLM and SGLang, DeepSeek-V3.2 indexer).
  if (request.kv.indexer == nullptr && request.engine->id != EngineId::textbook) {
    request.kv.indexer = find_format("fp8_indexer");
  }
  if (!error) error = check_formats(request.model.layers, request.kv);
  request.context = {root.whole("context", request.context.count, 1, kMaxTokens)};
  read_gpu(request.deployment, root, top, error);
  read_sizes(request.deployment, root, request.engine->id);
  if (error) return std::unexpected(std::move(*error));

  auto options = parse_options(request.engine->options, root.member("options"));
  if (!options) return std::unexpected(std::move(options.error()));
  request.options = std::move(*options);
  apply_options(request);
  return request;
}

}  // namespace kvcap
