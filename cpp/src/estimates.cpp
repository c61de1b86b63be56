#include "kvcap/estimates.hpp"

#include <algorithm>

namespace kvcap {
namespace {

/// One measured quantity: typical, lowest and highest of the logs named beside it.
struct Measured {
  u32 typical, low, high;
  [[nodiscard]] constexpr Estimate times(Wide unit) const noexcept { return {unit * typical, unit * low, unit * high}; }
};

constexpr Wide kMiB = Wide{1} << 20;
constexpr u64 kLargeCardGiB = 70;  // cards from 70 GiB on get the larger defaults (vllm/engine/arg_utils.py)

/// Bytes for each logit (sequence × vocabulary entry) while vLLM samples a full batch at start-up: the logits in 16 and
/// 32 bits, the sorted copy with 64-bit indices, probabilities and their sums. tests/data/engine_logs.jsonl, peak over
/// sequences × vocabulary: 41 (VL027 OPT-125M 0.8.1 H200), 41 (VL049 Llama-3-8B H100), 39 (VL025 Qwen2.5-32B 0.7.4),
/// 39 (VL041 Qwen2.5-7B, 16 GB card), 40 (VL090 Llama-3.3-70B TP 2 H100), 35 (AP002 Pixtral-12B), 49 (VL085 Phi-4),
/// 49 (VL084 Qwen2.5-0.5B), 27 to 60 (VL028, VL032 Gemma-3-27B), 19 to 29 (VL097 to VL105, T4 notebooks that lower
/// max_num_seqs).
constexpr Measured kBytesPerLogit{40, 20, 55};

/// Bytes for each profiled token and unit of hidden width on one of tensor_parallel GPUs: gate and up projections and
/// their product (3 × 3.5 × 2 bytes) shared out, residual stream and norms whole. VL028, VL032, VL046 and the shapes.
constexpr Measured kSplitBytesPerActivation{21, 12, 30};
constexpr Measured kWholeBytesPerActivation{8, 6, 12};

/// KiB for each profiled token of a mixture of experts, beside the rest: rows sorted and gathered by expert. 7.4 GiB
/// against 5.8 for the logits on H100 with 8192 tokens (engine_rules 8); 0.37 GiB in all (pull 14447, DeepSeek-R1 AWQ).
/// Under V1; V0's peaks show none of it (VL016).
constexpr Measured kMixtureKibPerToken{200, 0, 400};

/// Percent. Before 0.6.5 (pull 10511) the peak was what the card had lost: torch's cached pages beside its tensors.
/// Record against formula: 1.5 (VL016), 2.0 (VL009), 2.1 (VL007), about 4 (VL023).
constexpr u64 kCountsTensors = 6'005;
constexpr Measured kCachedPercent{170, 100, 400};

/// MiB of a model that reads images or sound under V0, whose profile runs the largest of them and, in their stead, few
/// sequences: 0.51 GiB (VL033), 1.08 (AP002), 1.66 (VL028), 2.51 (VL046), 3.73 (VL032), 8.27 (AP001, larger images).
constexpr Measured kMultimodal{1'800, 500, 4'000};

/// Entries of the output layer where the model does not say: between Llama 2's and Gemma's, mostly 128k to 152k.
constexpr Measured kVocabulary{131'072, 32'000, 262'144};

/// MiB. One GPU: 0.00 to 0.35 GiB (VL021, VL025, VL027, VL033, VL041, VL084, VL085, VL095 to VL105), once 1.79 (VL049).
/// With NCCL: 0.11 to 0.55 (VL028, VL032, VL043, VL046, VL090); more between hosts.
constexpr Measured kNonTorchAlone{130, 0, 1'830};
constexpr Measured kNonTorchWithPeers{480, 110, 1'800};

/// The same before 0.6.5, with the CUDA context and what its libraries load (VL007, VL009, VL023).
constexpr Measured kOlderNonTorchAlone{500, 250, 1'000};
constexpr Measured kOlderNonTorchWithPeers{1'000, 400, 3'000};

/// MiB. 0.17 GiB (4 × RTX 3090, 0.21 nightly: noonghunna/club-3090 issue 127), 0.36 GiB (0.27.1, two cards:
/// gpustack/runner pull request 251), about 4 % of an 80 GB class card (engine_rules 8).
constexpr Measured kGraphSmallCard{370, 150, 1'100};
constexpr Measured kGraphLargeCard{1'000, 300, 3'500};

/// MiB between total, weights and printed free memory: 1.7 GiB (TR008 Qwen3-0.6B H100), 4.0 (TR005 LLaVA-7B TP 2), 5.4
/// (TR006 Llama-3.1-8B RTX 5090).
constexpr Measured kTensorRtRuntime{3'700, 1'500, 5'800};

/// MiB that are taken before SGLang loads weights: the CUDA context alone 0.5 to 0.75 GiB (SG030 H200, SG008 8 × L4,
/// SG032 and SG036 2 × RTX 3090), with NCCL on large cards 1.4 GiB (SG017 16 × H800) and 1.6 (SG009 8 × H100).
constexpr Measured kSglangContext{614, 410, 1'229};
constexpr Measured kSglangContextWithPeers{1'500, 600, 2'150};
/// MiB that loading takes beside the weights where several GPUs share them: 0 (SG008 8 × L4), 0.24 (SG018 2 × A100),
/// 0.28 (SG016, 4 GPUs); on large cards 0.9 (SG009), about 1.0 (SG028 4 × H100), 2.0 (SG017, with MLA's unpacked
/// projections).
constexpr Measured kSglangLoading{250, 0, 500};
constexpr Measured kSglangLoadingLargeCard{950, 200, 2'100};

/// Rounded down, by Newton's method from above.
u64 square_root(u64 value) noexcept {
  if (value == 0) return 0;
  u64 root = value;
  while (root > value / root) root = (root + value / root) / 2;
  return root;
}

/// The hidden width that a transformer of so many active parameters and layers has: parameters = 12 × layers × width²
/// (attention 4, MLP 8; Kaplan et al. 2020, "Scaling laws", section 2.1). Within a fifth for what is served today.
u64 hidden_width(const Model& model) noexcept {
  const u64 active = model.active_parameters.value_or(model.parameters.value_or(0));
  u64 layers = model.layer_count;
  if (layers == 0) {
    for (const auto& run : model.layers) layers += run.count;
  }
  return layers == 0 ? 0 : square_root(active / (12 * layers));
}

}  // namespace

Estimate vllm_activation(const PeakInput& in) noexcept {
  if (in.model.multimodal && !in.v1) return kMultimodal.times(kMiB);
  Estimate sampler;
  if (in.model.vocabulary != 0) {
    sampler = kBytesPerLogit.times(Wide{in.max_num_seqs} * in.model.vocabulary);
  } else {
    sampler = {Wide{in.max_num_seqs} * kVocabulary.typical * kBytesPerLogit.typical,
               Wide{in.max_num_seqs} * kVocabulary.low * kBytesPerLogit.low,
               Wide{in.max_num_seqs} * kVocabulary.high * kBytesPerLogit.high};
  }
  const Wide cells = Wide{in.batched_tokens} * hidden_width(in.model);
  const Estimate split = kSplitBytesPerActivation.times(cells);
  const Estimate whole = kWholeBytesPerActivation.times(cells);
  const Wide t = in.tensor_parallel;
  Estimate peak{std::max(sampler.bytes, split.bytes / t + whole.bytes),
                std::max(sampler.low, split.low / t + whole.low), std::max(sampler.high, split.high / t + whole.high)};
  if (in.model.active_parameters && in.v1) {
    const Estimate mixture = kMixtureKibPerToken.times(Wide{in.batched_tokens} << 10);
    peak = {peak.bytes + mixture.bytes, peak.low + mixture.low, peak.high + mixture.high};
  }
  if (in.version < kCountsTensors) {
    peak = {peak.bytes * kCachedPercent.typical / 100, peak.low * kCachedPercent.low / 100,
            peak.high * kCachedPercent.high / 100};
  }
  return peak;
}

Estimate vllm_non_torch(const PeakInput& in) noexcept {
  const bool peers = in.tensor_parallel > 1;
  if (in.version < kCountsTensors) return (peers ? kOlderNonTorchWithPeers : kOlderNonTorchAlone).times(kMiB);
  return (peers ? kNonTorchWithPeers : kNonTorchAlone).times(kMiB);
}

Estimate vllm_cuda_graph(const PeakInput& in) noexcept {
  const bool large = in.memory_bytes >> 30 >= kLargeCardGiB;
  return (large ? kGraphLargeCard : kGraphSmallCard).times(kMiB);
}

Estimate sglang_context(const PeakInput& in) noexcept {
  const bool large = in.tensor_parallel > 2 && in.memory_bytes >> 30 >= kLargeCardGiB;
  return (large ? kSglangContextWithPeers : kSglangContext).times(kMiB);
}

Estimate sglang_loading(const PeakInput& in) noexcept {
  if (in.tensor_parallel == 1) return {};
  const bool large = in.tensor_parallel > 2 && in.memory_bytes >> 30 >= kLargeCardGiB;
  return (large ? kSglangLoadingLargeCard : kSglangLoading).times(kMiB);
}

Estimate tensorrt_llm_runtime(const PeakInput&) noexcept { return kTensorRtRuntime.times(kMiB); }

}  // namespace kvcap
