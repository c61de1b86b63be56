// Checks every field of a request before any arithmetic sees it.
#include <algorithm>

#include "kvcap/catalogue.hpp"
#include "kvcap/plan.hpp"
#include "reader.hpp"

namespace kvcap {
namespace {

using json::Kind;
using json::Value;

std::optional<Error> take(Result<Model> read, Model& out) {
  if (!read) return std::move(read.error());
  out = std::move(*read);
  return std::nullopt;
}

/// Fills `out`, or says why not.
std::optional<Error> read_model(const ObjectReader& root, const Features& features, Model& out) {
  const Value* const model = root.member("model");
  const Value* const config = root.member("config");
  if (config != nullptr) {
    if (model != nullptr) {
      return Error(ErrorCode::conflict, "config", "is given beside model: one of the two is accepted");
    }
    const bool text = config->is(Kind::string);
    if (!text && !config->is(Kind::object)) {
      return Error(ErrorCode::wrong_type, "config",
                   Text() << json::describe(*config) << " is not accepted: a config.json as an object or as text is");
    }
    if (features.config_object == nullptr || features.config_text == nullptr) {
      return Error(ErrorCode::unsupported, "config", "needs the kernel that reads configs");
    }
    return take(text ? features.config_text(config->text) : features.config_object(*config), out);
  }
  if (model == nullptr) {
    return Error(ErrorCode::missing, "model", "is needed: a catalogue id, a model as an object, or config instead");
  }
  if (model->is(Kind::object)) {
    if (features.model_object == nullptr) {
      return Error(ErrorCode::unsupported, "model", "needs the kernel that reads models as objects");
    }
    return take(features.model_object(*model, "model"), out);
  }
  if (!model->is(Kind::string)) {
    return Error(ErrorCode::wrong_type, "model",
                 Text() << json::describe(*model) << " is not accepted: a catalogue id or an object is");
  }
  if (const CatalogueEntry* const entry = find_model(model->text); entry != nullptr) return fill_model(*entry, out);
  return Error(ErrorCode::unknown_id, "model",
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

/// The same model with another number of KV heads: what grouped queries save.
void change_kv_heads(Request& request, ObjectReader& root) {
  if (root.member("kv_heads") == nullptr) return;
  request.kv_heads = root.whole("kv_heads", 1, 1, kMaxHeads);
  bool any = false;
  for (auto& run : request.model.layers) {
    if (run.kv_heads == 0) continue;
    run.kv_heads = static_cast<u32>(request.kv_heads);
    any = true;
  }
  if (!any) root.refuse(ErrorCode::conflict, "kv_heads", "cannot be set: no layer of this model has KV heads");
}

/// Fills `request`, or says why not.
std::optional<Error> read_request(const Value& value, const Features& features, Request& request) {
  const Path top;
  std::optional<Error> error;
  ObjectReader root(value, top, error);
  if (!value.is(Kind::object)) {
    return Error(ErrorCode::wrong_type, "request", Text() << json::describe(value) << " is not accepted: an object is");
  }

  const std::string_view engine = root.text("engine", "textbook");
  for (const auto& rules : features.engines) {
    if (rules.name == engine) request.engine = &rules;
  }
  if (request.engine == nullptr) {
    bool known = false;
    for (const std::string_view name : {"textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"}) {
      known = known || name == engine;
    }
    return Error(known ? ErrorCode::unsupported : ErrorCode::unknown_id, "engine",
                 known ? "needs the kernel that knows the engines' rules"
                       : "is one of textbook, vllm, sglang, llama.cpp, tensorrt-llm");
  }

  if (auto refused = read_model(root, features, request.model)) return refused;
  if (!has_cache(request.model.layers)) {
    return Error(ErrorCode::no_cache, root.member("config") != nullptr ? "config" : "model",
                 "keeps no KV cache in any layer, so there is nothing to size");
  }
  if (root.member("parameters") != nullptr) {
    request.model.parameters = root.whole("parameters", 1, 1, kMaxExact);
    request.model.native_weight_bytes.reset();
  }
  change_kv_heads(request, root);
  request.weights = root.format("weights", false, nullptr);
  if (root.member("weight_bytes") != nullptr) {
    request.weight_bytes = Bytes{root.whole("weight_bytes", 0, 0, kMaxExact)};
  }
  request.kv = read_cache_formats(root, top, request.model, error);
  // Engines keep index keys as fp8 with a scale beside a cache of any format (vLLM and SGLang, DeepSeek-V3.2 indexer);
  // llama.cpp in K's own (src/llama-kv-cache-dsa.cpp).
  if constexpr (!kCoreKernel) {
    if (request.engine->id == EngineId::llama_cpp) {
      request.kv.indexer = request.kv.k;
    } else if (request.kv.indexer == nullptr && request.engine->id != EngineId::textbook) {
      request.kv.indexer = find_format("fp8_indexer");
    }
  }
  if (!error) error = check_formats(request.model.layers, request.kv);
  request.context = {root.whole("context", request.context.count, 1, kMaxTokens)};
  read_gpu(request.deployment, root, top, error);
  read_sizes(request.deployment, root, request.engine->id);
  if (error) return error;

  auto options = parse_options(request.engine->options, root.member("options"));
  if (!options) return std::move(options.error());
  request.options = std::move(*options);
  apply_options(request);
  return std::nullopt;
}

}  // namespace

Result<Request> parse_request(const Value& value, const Features& features) {
  Result<Request> request(std::in_place);
  if (auto refused = read_request(value, features, *request)) request = std::unexpected(std::move(*refused));
  return request;
}

}  // namespace kvcap
