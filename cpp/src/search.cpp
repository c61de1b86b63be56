#include "search.hpp"

#include "answer.hpp"

namespace kvcap {

Result<std::optional<WeightBytes>> weights_of(const Request& request) {
  if (request.weight_bytes) return WeightBytes{*request.weight_bytes, true, {}, {}};
  return weight_bytes_of(request.model, request.weights);
}

Result<Reservation> reserve_with(const Request& request, const std::optional<WeightBytes>& weights,
                                 const Deployment& on, Tokens context) {
  std::optional<Bytes> bytes;
  Bytes per_gpu;
  if (weights) {
    bytes = weights->bytes;
    per_gpu.count = ceil_div(weights->bytes.count, on.tensor_parallel * on.pipeline_parallel);
  }
  return request.engine->reserve({request.model, request.kv, on, context, bytes, per_gpu, request.options});
}

std::optional<u64> Search::fewest_gpus(bool weights_only) const {
  u64 high = 1;
  while (!fits_on(high, weights_only)) {
    high *= 2;
    if (high > kMaxGpus) return std::nullopt;
  }
  if (!pooled(request_)) return high;
  u64 low = high / 2;
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (fits_on(middle, weights_only) ? high : low) = middle;
  }
  return high;
}

std::optional<u64> Search::longest_context() const {
  u64 low = 0;
  u64 high = kMaxTokens + 1;
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (fits(request_.deployment, {middle}, false) ? low : high) = middle;
  }
  return low != 0 ? std::optional(low) : std::nullopt;
}

Deployment Search::deployment_of(u64 gpus) const {
  Deployment on = request_.deployment;
  on.gpus = gpus;
  on.tensor_parallel = on.pipeline_parallel = on.data_parallel = 1;
  (request_.engine->id == EngineId::llama_cpp ? on.pipeline_parallel : on.tensor_parallel) = gpus;
  return on;
}

bool Search::fits(const Deployment& on, Tokens context, bool weights_only) const {
  const auto reserved = reserve_with(request_, weights_, on, context);
  return reserved && reserved->weights_fit && (weights_only || reserved->sequences >= wanted_);
}

bool Search::fits_on(u64 gpus, bool weights_only) const {
  return fits(deployment_of(gpus), request_.context, weights_only);
}

}  // namespace kvcap
