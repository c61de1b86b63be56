// The parts that an answer is put together from.
#pragma once

#include "kvcap/plan.hpp"
#include "kvcap/weights.hpp"

namespace kvcap {

/// What one conversation writes. The textbook pools its GPUs; engines split by their rules.
struct Written {
  SequenceCost together;       ///< all GPUs of one replica
  Wide per_token_per_gpu = 0;  ///< on the fullest GPU
};

/// What would make a request fit that does not; nothing where no size does, or where it was not asked.
struct Remedy {
  std::optional<u64> gpus_for_weights;
  std::optional<u64> gpus_for_one_sequence;
  std::optional<u64> longest_context;
};

/// Everything that is known about a request once it is worked out.
struct Outcome {
  const Reservation& reserved;
  std::optional<WeightBytes> weights{};  ///< of one copy
  Wide weight_total = 0;                 ///< of all copies; 0 when unknown
  List<LayerRun> merged{};
  Written cost{};
  bool pool_known = false;  ///< the room for the cache is: the weights are known, or the pool is stated
  Label limit = "";         ///< empty when the room is unknown
  Remedy remedy{};
};

[[nodiscard]] inline bool pooled(const Request& request) { return request.engine->id == EngineId::textbook; }

/// Whether the request states the room for the cache, so that it does not hang on the weights.
[[nodiscard]] bool pool_stated(const Request& request);

[[nodiscard]] Derivation derive(const Request& request, const Outcome& outcome);

/// The answer's JSON; `out_of_range` when a figure is past 2^53 - 1.
[[nodiscard]] Result<json::Written> write_answer(const Request& request, const Outcome& outcome);

/// The member "derivation" of an answer.
void write_steps(json::Writer& out, const Derivation& derivation);
/// A run of layers with the keys that requests use.
void write_run(json::Writer& out, const LayerRun& run);
/// {"used", "defaulted", "ignored"}: what became of the fields of somebody's config.
void write_fields(json::Writer& out, const Model& model);

}  // namespace kvcap
