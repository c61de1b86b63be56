#include "kvcap/wish.hpp"

#include <algorithm>
#include <array>

#include "answer.hpp"
#include "reader.hpp"
#include "search.hpp"

namespace kvcap {
namespace {

/// The formats that an engine offers for its cache, the largest first.
struct CacheChoice {
  EngineId engine;
  std::array<Label, 6> formats;
  [[no_unique_address]] Source source;
};
constexpr CacheChoice kChoices[] = {
    {EngineId::textbook, {"fp32", "bf16", "fp8", "int4"}, "whole steps of bits, as a person would on paper"},
    {EngineId::vllm, {"bf16", "fp8"}, "vLLM: --kv-cache-dtype"},
    {EngineId::sglang, {"bf16", "fp8"}, "SGLang: --kv-cache-dtype"},
    {EngineId::llama_cpp,
     {"fp32", "fp16", "q8_0", "q5_1", "q5_0", "q4_0"},
     "llama.cpp: --cache-type-k, --cache-type-v"},
    {EngineId::tensorrt_llm, {"bf16", "fp8", "nvfp4"}, "TensorRT-LLM: quantised KV cache"},
};

/// Whole conversations of what an engine answers; 0 where it refuses.
Wide sequences_of(const Result<Reservation>& reserved) { return reserved ? reserved->sequences : 0; }

Wide sequences_of(const Request& request, const std::optional<WeightBytes>& weights, const Deployment& on) {
  return sequences_of(reserve_with(request, weights, on, request.context));
}

struct Machines {
  u64 each;    ///< GPUs of one copy of the model
  u64 copies;  ///< copies side by side
  Wide sequences;
};

/// The textbook pools any number of GPUs. Engines take splits that their rules allow, and as many copies as it needs.
std::optional<Machines> fewest_gpus(const Request& request, const std::optional<WeightBytes>& weights, u64 wanted) {
  const Search search(request, weights, wanted);
  if (pooled(request)) {
    const auto gpus = search.fewest_gpus(false);
    if (!gpus) return std::nullopt;
    return Machines{*gpus, 1, sequences_of(request, weights, search.deployment_of(*gpus))};
  }
  constexpr u64 kMostSplit = 64;
  std::optional<Machines> best;
  for (u64 each = 1; each <= kMostSplit; ++each) {
    Deployment on = search.deployment_of(each);
    const Wide alone = sequences_of(request, weights, on);
    if (alone == 0) continue;
    const Wide copies = ceil_div<Wide>(wanted, alone);
    const Wide total = copies * each;
    if (total > kMaxGpus || (best && total >= Wide{best->each} * best->copies)) continue;
    on.data_parallel = static_cast<u64>(copies);
    on.gpus = static_cast<u64>(total);
    const Wide together = sequences_of(request, weights, on);
    if (together >= wanted) best = Machines{each, on.data_parallel, together};
  }
  return best;
}

struct Fit {
  std::string_view format;
  Wide sequences;
};

Wide bytes_of(const Request& request) {
  return sequence_cost(request.model.layers, request.kv, 1, request.context).total;
}

std::optional<Fit> smaller_cache(const Request& request, const std::optional<WeightBytes>& weights, u64 wanted) {
  const Wide now = bytes_of(request);
  const auto choice =
      std::ranges::find_if(kChoices, [&](const CacheChoice& one) { return one.engine == request.engine->id; });
  for (const Label id : choice->formats) {
    const Format* const format = id == nullptr ? nullptr : find_format(id);
    if (format == nullptr) break;
    Request with = request;
    with.kv.k = with.kv.v = format;
    if (bytes_of(with) >= now) continue;
    const Wide sequences = sequences_of(with, weights, with.deployment);
    if (sequences >= wanted) return Fit{format->id, sequences};
  }
  return std::nullopt;
}

Result<std::string> answer(const json::Value& question, const Features& features) {
  if (!question.is(json::Kind::object)) {
    return fail(ErrorCode::wrong_type, "request",
                Text() << json::describe(question) << " is not accepted: an object is");
  }
  const Path top;
  std::optional<Error> error;
  ObjectReader root(question, top, error);
  const json::Value* const asked = root.member("request");
  if (asked == nullptr) root.refuse(ErrorCode::missing, "request", "is needed: the deployment as it is");
  if (root.member("sequences") == nullptr) {
    root.refuse(ErrorCode::missing, "sequences", "is needed: how many conversations at once");
  }
  const u64 wanted = root.whole("sequences", 1, 1, kMaxExact);
  if (root.member("context") != nullptr && root.member("context_k") != nullptr) {
    root.refuse(ErrorCode::conflict, "context_k", "is given beside context: one of the two is accepted");
  }
  const u64 thousands = root.whole("context_k", 0, 1, kMaxTokens / 1024);
  const u64 tokens = root.whole("context", thousands * 1024, 1, kMaxTokens);
  if (error) return std::unexpected(std::move(*error));

  auto request = parse_request(*asked, features);
  if (!request) return std::unexpected(std::move(request.error()));
  if (tokens != 0) request->context = {tokens};
  const auto weights = weights_of(*request);
  if (!weights) return std::unexpected(weights.error());
  if (!*weights && !pool_stated(*request)) {
    return fail(ErrorCode::missing, "parameters", "is needed: without the weights nobody knows the room");
  }
  const auto reserved = reserve_with(*request, *weights, request->deployment, request->context);
  if (!reserved) return std::unexpected(reserved.error());

  const Wide now = sequences_of(reserved);
  const auto gpus = fewest_gpus(*request, *weights, wanted);
  const auto longest = Search(*request, *weights, wanted).longest_context();
  json::Writer out;
  out.begin_object().key("sequences").number(wanted).key("context").number(request->context.count);
  out.key("engine").text(request->engine->name).key("gpus_now").number(request->deployment.gpus);
  out.key("kv_now").text(request->kv.k->id).key("sequences_now").number(now);
  out.key("fits").boolean(now >= wanted).key("longest_context");
  if (longest) {
    out.number(*longest);
  } else {
    out.null();
  }
  out.key("gpus");
  if (gpus) {
    out.begin_object().key("count").number(Wide{gpus->each} * gpus->copies).key("copies").number(gpus->copies);
    out.key("sequences").number(gpus->sequences).end_object();
  } else {
    out.null();
  }
  out.key("kv");
  const auto smaller = now >= wanted ? std::nullopt : smaller_cache(*request, *weights, wanted);
  if (smaller) {
    out.begin_object().key("format").text(smaller->format).key("sequences").number(smaller->sequences).end_object();
  } else {
    out.null();
  }
  out.end_object();
  return out.take();
}

}  // namespace

std::string wish_json(std::string_view text, const Features& features) {
  const auto document = json::Document::parse(text, "request", kMaxRequestBytes);
  if (!document) return error_json(document.error());
  const auto answered = answer(document->root(), features);
  return answered ? *answered : error_json(answered.error());
}

}  // namespace kvcap
