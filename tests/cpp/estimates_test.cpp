// What engines keep beside weights and cache: the formulas around the measured figures, and where one figure takes the
// place of another.
#include "kvcap/estimates.hpp"

#include <doctest/doctest.h>

namespace kvcap {
namespace {

constexpr u64 kMib = 1 << 20, kGib = 1 << 30;

/// 3 layers of width 101 by the rule parameters = 12 × layers × width².
Model small() {
  Model model;
  model.layer_count = 3;
  model.parameters = 12 * 3 * 101 * 101;
  model.vocabulary = 1009;
  return model;
}

void check(const Estimate& estimate, u64 low, u64 typical, u64 high) {
  CHECK(estimate.low == low);
  CHECK(estimate.bytes == typical);
  CHECK(estimate.high == high);
}

TEST_CASE("vLLM's peak is that of the sampler or that of the forward pass") {
  const Model model = small();
  // 7 sequences × 1009 logits against 11 tokens × 101 values
  check(vllm_activation({.model = model, .version = 11'000, .max_num_seqs = 7, .batched_tokens = 11}), 20 * 7 * 1009,
        40 * 7 * 1009, 55 * 7 * 1009);
  // 1013 tokens × 101 values against 2 sequences
  constexpr u64 kCells = 1013 * 101;
  PeakInput forward{.model = model, .version = 11'000, .max_num_seqs = 2, .batched_tokens = 1013};
  check(vllm_activation(forward), 18 * kCells, 29 * kCells, 42 * kCells);
  // Projections are shared out among the GPUs, the residual stream is not.
  forward.tensor_parallel = 3;
  check(vllm_activation(forward), 12 * kCells / 3 + 6 * kCells, 21 * kCells / 3 + 8 * kCells,
        30 * kCells / 3 + 12 * kCells);
  forward.tensor_parallel = 1;
  // Before 0.6.5 the cached pages of torch counted too.
  forward.version = 6'004;
  check(vllm_activation(forward), 18 * kCells, 29 * kCells * 170 / 100, 42 * kCells * 4);
  forward.version = 6'005;
  check(vllm_activation(forward), 18 * kCells, 29 * kCells, 42 * kCells);
}

TEST_CASE(
    "what is not said of a peak: one GPU of no known memory, and vLLM's batches of 256 sequences and 2048 tokens") {
  Model model = small();
  const PeakInput in{.model = model};
  CHECK(in.version == 0);
  CHECK(in.v1);
  CHECK(in.memory_bytes == 0);
  CHECK(in.tensor_parallel == 1);
  CHECK(in.max_num_seqs == 256);
  CHECK(in.batched_tokens == 2048);
  check(Estimate{}, 0, 0, 0);
}

TEST_CASE("a vocabulary that is not known may be any between those of Llama 2 and of Gemma") {
  Model model = small();
  model.vocabulary = 0;
  check(vllm_activation({.model = model, .version = 11'000, .max_num_seqs = 7, .batched_tokens = 11}), 20 * 7 * 32'000,
        u64{40} * 7 * 131'072, u64{55} * 7 * 262'144);
}

TEST_CASE("a mixture of experts gathers rows under vLLM's V1") {
  Model model = small();
  model.active_parameters = 12 * 3 * 53 * 53;
  constexpr u64 kCells = 1013 * 53;
  PeakInput in{.model = model, .version = 11'000, .max_num_seqs = 2, .batched_tokens = 1013};
  check(vllm_activation(in), 18 * kCells, 29 * kCells + 1013 * 200 * 1024, 42 * kCells + 1013 * 400 * 1024);
  in.v1 = false;
  check(vllm_activation(in), 18 * kCells, 29 * kCells, 42 * kCells);
}

TEST_CASE("a model that reads images is profiled with them under vLLM's V0") {
  Model model = small();
  model.multimodal = true;
  PeakInput in{.model = model, .version = 8'000, .v1 = false, .max_num_seqs = 7, .batched_tokens = 11};
  check(vllm_activation(in), 500 * kMib, 1'800 * kMib, 4'000 * kMib);
  in.v1 = true;
  check(vllm_activation(in), 20 * 7 * 1009, 40 * 7 * 1009, 55 * 7 * 1009);
}

TEST_CASE("the hidden width follows from parameters and layers") {
  const auto width = [](const Model& model) {
    const Estimate peak = vllm_activation({.model = model, .version = 11'000, .max_num_seqs = 0, .batched_tokens = 1});
    CHECK(peak.bytes % 29 == 0);
    return static_cast<u64>(peak.bytes / 29);
  };
  Model model = small();
  CHECK(width(model) == 101);
  model.parameters = 12 * 3 * (102 * 102) - 1;
  CHECK(width(model) == 101);
  model.parameters = 12 * 3 * (102 * 102);
  CHECK(width(model) == 102);
  model.parameters = 12 * 3;
  CHECK(width(model) == 1);
  model.parameters = 12 * 3 * 2;
  CHECK(width(model) == 1);
  model.parameters = 12 * 3 * 3;
  CHECK(width(model) == 1);
  model.parameters = 12 * 3 - 1;
  CHECK(width(model) == 0);
  model.parameters.reset();
  CHECK(width(model) == 0);
  model.parameters = kMaxExact;  // 2^53 ÷ 36 = 15,817,800²
  CHECK(width(model) == 15'817'710);
  // Where the layers are not counted, the runs are.
  model.parameters = 12 * 5 * 97 * 97;
  model.layer_count = 0;
  CHECK(width(model) == 0);
  LayerRun run;
  run.count = 3;
  model.layers.push_back(run);
  run.count = 2;
  model.layers.push_back(run);
  CHECK(width(model) == 97);
}

TEST_CASE("memory that torch does not know of, by peers and version") {
  const Model model = small();
  PeakInput in{.model = model, .version = 6'005, .tensor_parallel = 1};
  check(vllm_non_torch(in), 0, 130 * kMib, 1'830 * kMib);
  in.version = 6'004;
  check(vllm_non_torch(in), 250 * kMib, 500 * kMib, 1'000 * kMib);
  in.tensor_parallel = 2;
  check(vllm_non_torch(in), 400 * kMib, 1'000 * kMib, 3'000 * kMib);
  in.version = 6'005;
  check(vllm_non_torch(in), 110 * kMib, 480 * kMib, 1'800 * kMib);
}

TEST_CASE("cards from 70 GiB on, and more than two of them, take more") {
  const Model model = small();
  PeakInput in{.model = model, .memory_bytes = 70 * kGib - 1, .tensor_parallel = 3};
  check(vllm_cuda_graph(in), 150 * kMib, 370 * kMib, 1'100 * kMib);
  check(sglang_context(in), 410 * kMib, 614 * kMib, 1'229 * kMib);
  check(sglang_loading(in), 0, 250 * kMib, 500 * kMib);
  in.memory_bytes = 70 * kGib;
  check(vllm_cuda_graph(in), 300 * kMib, 1'000 * kMib, 3'500 * kMib);
  check(sglang_context(in), 600 * kMib, 1'500 * kMib, 2'150 * kMib);
  check(sglang_loading(in), 200 * kMib, 950 * kMib, 2'100 * kMib);
  in.tensor_parallel = 2;
  check(vllm_cuda_graph(in), 300 * kMib, 1'000 * kMib, 3'500 * kMib);
  check(sglang_context(in), 410 * kMib, 614 * kMib, 1'229 * kMib);
  check(sglang_loading(in), 0, 250 * kMib, 500 * kMib);
  in.tensor_parallel = 1;
  check(sglang_context(in), 410 * kMib, 614 * kMib, 1'229 * kMib);
  check(sglang_loading(in), 0, 0, 0);
  check(tensorrt_llm_runtime(in), 1'500 * kMib, 3'700 * kMib, 5'800 * kMib);
}

}  // namespace
}  // namespace kvcap
