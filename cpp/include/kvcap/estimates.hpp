// What engines keep beside weights and cache, where only a measurement can tell: typical values with the range in which
// start-up logs put them. Data, not rules; an answer that rests on one says so.
#pragma once

#include "kvcap/model.hpp"

namespace kvcap {

/// A measured typical value and its range.
struct Estimate {
  Wide bytes = 0;
  Wide low = 0, high = 0;
};

/// What the size of a peak hangs on.
struct PeakInput {
  const Model& model;
  u64 version = 0;       ///< as options hold it: 1000^2 × first + 1000 × second + third
  bool v1 = true;        ///< of vLLM: the engine that is the default since 0.8
  u64 memory_bytes = 0;  ///< of one GPU
  u64 tensor_parallel = 1;
  u64 max_num_seqs = 256;     ///< sequences that the start-up profile samples for
  u64 batched_tokens = 2048;  ///< tokens that the start-up profile runs
};

/// vLLM's peak of torch memory while it profiles: the larger of the sampler's copies of the logits and of one forward
/// pass.
[[nodiscard]] Estimate vllm_activation(const PeakInput& in) noexcept;
/// Memory that torch does not know of: CUDA context beyond the snapshot, NCCL buffers, kernel workspaces.
[[nodiscard]] Estimate vllm_non_torch(const PeakInput& in) noexcept;
/// What vLLM estimates for CUDA graphs and takes off the budget.
[[nodiscard]] Estimate vllm_cuda_graph(const PeakInput& in) noexcept;
/// What is taken on a GPU before SGLang loads the weights, and what loading takes beside them.
[[nodiscard]] Estimate sglang_context(const PeakInput& in) noexcept;
[[nodiscard]] Estimate sglang_loading(const PeakInput& in) noexcept;
/// What TensorRT-LLM holds beside the weights when it measures the free memory.
[[nodiscard]] Estimate tensorrt_llm_runtime(const PeakInput& in) noexcept;

}  // namespace kvcap
