// From a checked request to its outcome.
#include "kvcap/plan.hpp"

#include "answer.hpp"
#include "search.hpp"

namespace kvcap {
namespace {

Written written(const Request& request, std::span<const LayerRun> merged) {
  const Deployment& on = request.deployment;
  Written out;
  if (pooled(request)) {
    out.together = sequence_cost(merged, request.kv, 1, request.context);
    out.per_token_per_gpu = ceil_div<Wide>(out.together.per_token, on.gpus);
    return out;
  }
  const SequenceCost rank = sequence_cost(merged, request.kv, on.tensor_parallel, request.context);
  const u64 dealt = on.context_parallel;
  const auto copies = [&](Wide bytes) { return bytes * on.tensor_parallel / dealt; };
  out.together = {copies(rank.total), copies(rank.per_token), copies(rank.fixed)};
  const auto fullest = stage_runs(merged, on.pipeline_parallel, 0);
  const SequenceCost most = sequence_cost(fullest, request.kv, on.tensor_parallel, request.context);
  out.per_token_per_gpu = ceil_div<Wide>(most.per_token, dealt);
  return out;
}

Result<json::Written> answer(const Request& request) {
  const auto computed = weights_of(request);
  if (!computed) return std::unexpected(computed.error());
  const std::optional<WeightBytes>& weights = *computed;
  const auto reserved = reserve_with(request, weights, request.deployment, request.context);
  if (!reserved) return std::unexpected(reserved.error());
  Outcome outcome{.reserved = *reserved, .weights = weights};
  if (weights) outcome.weight_total = Wide{weights->bytes.count} * request.deployment.data_parallel;
  outcome.merged = merge_runs(request.model.layers);
  outcome.cost = written(request, outcome.merged);
  outcome.pool_known = weights || pool_stated(request);

  if (outcome.pool_known) {
    const Search search(request, outcome.weights);
    const bool weights_fit = outcome.reserved.weights_fit;
    const bool fits = weights_fit && outcome.reserved.sequences != 0;
    outcome.limit = fits ? "cache" : weights_fit ? "one_sequence_too_long" : "weights_do_not_fit";
    if (!weights_fit) outcome.remedy.gpus_for_weights = search.fewest_gpus(true);
    if (!fits) {
      outcome.remedy.gpus_for_one_sequence = search.fewest_gpus(false);
      outcome.remedy.longest_context = search.longest_context();
    }
  }
  return write_answer(request, outcome);
}

}  // namespace

bool pool_stated(const Request& request) {
  const Options& options = request.options;
  const bool measured = options.given("avail_after_load_bytes") &&
                        (options.given("avail_before_load_bytes") || options.given("avail_pool_end_bytes"));
  return measured || options.given("kv_memory_bytes") || options.given("num_gpu_blocks_override") ||
         options.given("free_memory_bytes");
}

json::Written error_json(const Error& error) {
  json::Writer out;
  out.begin_object().key("error").begin_object().key("code").text(code_name(error.code));
  out.key("field").text(std::string_view(error.field)).key("message").text(std::string_view(error.message));
  out.end_object().end_object();
  return out.take();
}

json::Written plan_json(std::string_view request_text, const Features& features) {
  const auto document = json::Document::parse(request_text, "request", kMaxRequestBytes);
  if (!document) return error_json(document.error());
  const auto request = parse_request(document->root(), features);
  if (!request) return error_json(request.error());
  const auto text = answer(*request);
  return text ? *text : error_json(text.error());
}

}  // namespace kvcap
