// Numbers that the arithmetic takes from elsewhere, a second time from where they stand: layouts of formats, engines'
// flags with their defaults and bounds, and the measured parts of a budget.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "kvcap/engine.hpp"
#include "kvcap/estimates.hpp"

namespace kvcap {
namespace {

constexpr u64 kMiB = 1'048'576;
constexpr u64 kGiB = 1'073'741'824;

TEST_CASE("every format: the values and bytes of its block, piece by piece, and what it is for") {
  struct Layout {
    const char* id;
    u32 values;
    u32 bytes;
    u32 bits;
    const char* use;  // w: weights, c: cache, l: latent rows alone
    u32 low = 0;
    u32 high = 0;
  };
  const Layout kLayouts[] = {
      {"fp32", 1, 4, 32, "wc"},
      {"bf16", 1, 2, 16, "wc"},
      {"fp16", 1, 2, 16, "wc"},
      {"fp8", 1, 1, 8, "wc"},
      {"fp8_block", 128 * 128, 128 * 128 + 4, 8, "w"},
      {"int8", 1, 1, 8, "wc"},
      {"int4", 2, 1, 4, "wc"},
      // Groups with a scale of 2 bytes and a zero point of 4 bits: two groups are whole bytes.
      {"int4_g128", 2 * 128, 128 + 2 * 2 + 1, 4, "w"},
      {"int4_g64", 2 * 64, 64 + 2 * 2 + 1, 4, "w"},
      {"int4_g32", 2 * 32, 32 + 2 * 2 + 1, 4, "w"},
      {"nf4", 64, 32 + 4, 4, "w"},
      {"nf4_dq", 256 * 64, 256 * (32 + 1) + 4, 4, "w"},
      // Groups with a scale and a bias of 2 bytes each.
      {"mlx8_g64", 64, 64 + 4, 8, "w"},
      {"mlx6_g64", 64, 48 + 4, 6, "w"},
      {"mlx5_g64", 64, 40 + 4, 5, "w"},
      {"mlx4_g32", 32, 16 + 4, 4, "w"},
      {"mlx4_g64", 64, 32 + 4, 4, "w"},
      {"mlx4_g128", 128, 64 + 4, 4, "w"},
      {"mlx3_g64", 64, 24 + 4, 3, "w"},
      {"mxfp4", 32, 16 + 1, 4, "w"},
      {"nvfp4", 16, 8 + 1, 4, "wc"},
      // ggml-common.h: scales of 2 bytes, high bits apart; of 256 values with scales within scales.
      {"q8_0", 32, 2 + 32, 8, "wc"},
      {"q6_k", 256, 128 + 64 + 16 + 2, 6, "w"},
      {"q6_0", 32, 2 + 8 + 16, 6, "c"},
      {"q5_k", 256, 4 + 12 + 32 + 128, 5, "w"},
      {"q5_1", 32, 4 + 4 + 16, 5, "wc"},
      {"q5_0", 32, 2 + 4 + 16, 5, "wc"},
      {"q4_k", 256, 4 + 12 + 128, 4, "w"},
      {"q4_1", 32, 4 + 16, 4, "wc"},
      {"q4_0", 32, 2 + 16, 4, "wc"},
      {"iq4_nl", 32, 2 + 16, 4, "wc"},
      {"iq4_xs", 256, 2 + 2 + 4 + 128, 4, "w"},
      {"q3_k", 256, 32 + 64 + 12 + 2, 3, "w"},
      {"iq3_s", 256, 2 + 64 + 8 + 32 + 4, 3, "w"},
      {"iq3_xxs", 256, 2 + 96, 3, "w"},
      {"q2_k", 256, 16 + 64 + 4, 2, "w"},
      {"iq2_s", 256, 2 + 64 + 8 + 8, 2, "w"},
      {"iq2_xs", 256, 2 + 64 + 8, 2, "w"},
      {"iq2_xxs", 256, 2 + 64, 2, "w"},
      {"iq1_m", 256, 32 + 16 + 8, 1, "w"},
      {"iq1_s", 256, 2 + 32 + 16, 1, "w"},
      // Mixes: thousandths of a bit for each weight, with the range of published files.
      {"q5_k_m", 8000, 5680, 5, "w", 5650, 6030},
      {"q5_k_s", 8000, 5520, 5, "w", 5500, 5570},
      {"q4_k_m", 8000, 4850, 4, "w", 4800, 4890},
      {"q4_k_s", 8000, 4580, 4, "w", 4530, 4670},
      {"q3_k_l", 8000, 4260, 3, "w", 4190, 4300},
      {"q3_k_m", 8000, 3910, 3, "w", 3850, 4000},
      {"q3_k_s", 8000, 3500, 3, "w", 3470, 3640},
      {"q2_k_m", 8000, 3350, 2, "w", 2910, 3410},
      // 512 values of 8 bits, four scales of 4 bytes, and 64 values of 16 bits for the position.
      {"fp8_ds_mla", 512 + 64, 512 + 4 * 4 + 64 * 2, 8, "cl"},
      {"fp8_indexer", 128, 128 + 4, 8, ""},
  };
  CHECK(formats().size() == std::size(kLayouts));
  for (const auto& layout : kLayouts) {
    CAPTURE(layout.id);
    const Format* const format = find_format(layout.id);
    REQUIRE(format != nullptr);
    CHECK(format->block_values == layout.values);
    CHECK(format->block_bytes == layout.bytes);
    CHECK(format->bits == layout.bits);
    const std::string use(layout.use);
    CHECK(format->weights == use.contains('w'));
    CHECK(format->cache == use.contains('c'));
    CHECK(format->latent_only == use.contains('l'));
    CHECK(format->low_bytes == layout.low);
    CHECK(format->high_bytes == layout.high);
    CHECK(format->is_mix() == (layout.values == 8000));
  }
}

TEST_CASE("every engine's flags: defaults and bounds") {
  struct Flag {
    const char* engine;
    const char* name;
    OptionKind kind;
    bool has_fallback;
    u64 fallback, min, max;
    bool offered;
  };
  constexpr u64 kMost = 9'007'199'254'740'991;
  constexpr u64 kTokens = 2'147'483'648;
  constexpr u64 kMillion = 1'048'576;
  constexpr u64 kSizes = 16'777'216;
  const Flag kFlags[] = {
      {"textbook", "reserve", OptionKind::fraction, true, 100'000'000, 0, 999'999'999, true},
      {"textbook", "kv_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},

      {"vllm", "gpu_memory_utilization", OptionKind::fraction, true, 920'000'000, 1, 1'000'000'000, true},
      {"vllm", "max_num_batched_tokens", OptionKind::whole, false, 0, 1, kTokens, true},
      {"vllm", "max_num_seqs", OptionKind::whole, false, 0, 1, kTokens, true},
      {"vllm", "block_size", OptionKind::whole, true, 16, 1, kMillion, true},
      {"vllm", "enable_prefix_caching", OptionKind::truth, false, 1, 0, 1, true},
      {"vllm", "enforce_eager", OptionKind::truth, true, 0, 0, 1, true},
      {"vllm", "disable_hybrid_kv_cache_manager", OptionKind::truth, true, 0, 0, 1, true},
      {"vllm", "version", OptionKind::version, false, 0, 0, kMost, true},
      {"vllm", "decode_context_parallel_size", OptionKind::whole, true, 1, 1, 1'000'000, true},
      {"vllm", "cpu_offload_gb", OptionKind::whole, true, 0, 0, kMillion, false},
      {"vllm", "use_v1", OptionKind::truth, false, 1, 0, 1, false},
      {"vllm", "async_scheduling", OptionKind::truth, true, 1, 0, 1, false},
      {"vllm", "mamba_cache_mode", OptionKind::choice, false, 0, 0, kMost, false},
      {"vllm", "mamba_ssm_cache_dtype", OptionKind::choice, true, 0, 0, kMost, false},
      {"vllm", "num_gpu_blocks_override", OptionKind::whole, false, 0, 1, kMost, false},
      {"vllm", "kv_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"vllm", "activation_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"vllm", "non_torch_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"vllm", "cuda_graph_bytes", OptionKind::bytes, false, 0, 0, kMost, false},

      {"sglang", "mem_fraction_static", OptionKind::fraction, false, 0, 1'000'000, 1'000'000'000, true},
      {"sglang", "max_running_requests", OptionKind::whole, false, 0, 1, kSizes, true},
      {"sglang", "max_total_tokens", OptionKind::whole, false, 0, 1, kMost, false},
      {"sglang", "page_size", OptionKind::whole, true, 1, 1, 65'536, true},
      {"sglang", "chunked_prefill_size", OptionKind::whole, false, 0, 1, kSizes, true},
      {"sglang", "cuda_graph_max_bs", OptionKind::whole, false, 0, 1, 65'536, false},
      {"sglang", "swa_full_tokens_ratio", OptionKind::fraction, true, 800'000'000, 1'000'000, 1'000'000'000, true},
      {"sglang", "disable_hybrid_swa_memory", OptionKind::truth, false, 0, 0, 1, true},
      {"sglang", "max_mamba_cache_size", OptionKind::whole, false, 0, 1, kSizes, true},
      {"sglang", "mamba_full_memory_ratio", OptionKind::fraction, true, 900'000'000, 1'000'000, 1'000'000'000'000,
       true},
      {"sglang", "mamba_ssm_dtype", OptionKind::choice, true, 0, 0, 3, false},
      {"sglang", "disable_radix_cache", OptionKind::truth, true, 0, 0, 1, true},
      {"sglang", "avail_before_load_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"sglang", "avail_after_load_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"sglang", "avail_pool_end_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"sglang", "version", OptionKind::version, false, 0, 0, kMost, false},
      {"sglang", "kv_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},

      {"llama.cpp", "n_ctx", OptionKind::whole, false, 0, 1, kTokens, false},
      {"llama.cpp", "n_seq_max", OptionKind::whole, true, 1, 1, 65'536, true},
      {"llama.cpp", "n_ubatch", OptionKind::whole, true, 512, 1, kSizes, true},
      {"llama.cpp", "n_batch", OptionKind::whole, true, 2048, 1, kSizes, false},
      {"llama.cpp", "n_gpu_layers", OptionKind::whole, false, 0, 1, 65'536, true},
      {"llama.cpp", "flash_attn", OptionKind::truth, false, 0, 0, 1, true},
      {"llama.cpp", "kv_unified", OptionKind::truth, false, 0, 0, 1, true},
      {"llama.cpp", "swa_full", OptionKind::truth, true, 0, 0, 1, true},
      {"llama.cpp", "n_rs_seq", OptionKind::whole, true, 0, 0, 65'536, false},
      {"llama.cpp", "fork", OptionKind::choice, true, 0, 0, 1, true},
      {"llama.cpp", "mla_attn", OptionKind::whole, false, 0, 0, 3, false},
      {"llama.cpp", "version", OptionKind::version, false, 0, 0, kMost, false},
      {"llama.cpp", "kv_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},

      {"tensorrt-llm", "free_gpu_memory_fraction", OptionKind::fraction, true, 900'000'000, 1, 1'000'000'000, true},
      {"tensorrt-llm", "tokens_per_block", OptionKind::whole, true, 32, 1, kMillion, true},
      {"tensorrt-llm", "version", OptionKind::version, false, 0, 0, kMost, true},
      {"tensorrt-llm", "kv_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
      {"tensorrt-llm", "free_memory_bytes", OptionKind::bytes, false, 0, 0, kMost, false},
  };
  std::size_t seen = 0;
  for (const EngineRules* rules :
       {&textbook_rules(), &vllm_rules(), &sglang_rules(), &llama_cpp_rules(), &tensorrt_llm_rules()}) {
    for (const OptionSpec& option : rules->options) {
      CAPTURE(std::string(rules->name));
      CAPTURE(std::string(option.name));
      REQUIRE(seen < std::size(kFlags));
      const Flag& flag = kFlags[seen++];
      CHECK(rules->name == flag.engine);
      CHECK(option.name == flag.name);
      CHECK(option.kind == flag.kind);
      CHECK(option.has_fallback == flag.has_fallback);
      CHECK(option.fallback == flag.fallback);
      CHECK(option.min == flag.min);
      CHECK(option.max == flag.max);
      CHECK(option.offered == flag.offered);
    }
  }
  CHECK(seen == std::size(kFlags));
}

// ---- the measured parts of a budget --------------------------------------------------------------------------------

constexpr u64 version_of(u64 second, u64 third) { return second * 1'000 + third; }

void check_estimate(const Estimate& estimate, Wide typical, Wide low, Wide high) {
  CHECK(digits(estimate.bytes) == digits(typical));
  CHECK(digits(estimate.low) == digits(low));
  CHECK(digits(estimate.high) == digits(high));
}

/// 12 × 32 layers × 4096² parameters: a hidden width of 4096.
Model dense() {
  Model model;
  model.layer_count = 32;
  model.parameters = u64{12} * 32 * 4096 * 4096;
  model.vocabulary = 128'256;
  return model;
}

TEST_CASE("vLLM's peak while it profiles: the sampler's logits or one forward pass, whichever is more") {
  Model model = dense();
  PeakInput in{.model = model, .version = version_of(20, 0)};
  in.max_num_seqs = 256;
  in.batched_tokens = 2048;
  check_estimate(vllm_activation(in), 40ULL * 256 * 128'256, 20ULL * 256 * 128'256, 55ULL * 256 * 128'256);

  // One sequence: the pass is more. 21 and 8 bytes for each token and unit of width, the 21 shared out.
  in.max_num_seqs = 1;
  const u64 cells = 2048 * 4096;
  check_estimate(vllm_activation(in), 29 * cells, 18 * cells, 42 * cells);
  in.tensor_parallel = 3;
  check_estimate(vllm_activation(in), 7 * cells + 8 * cells, 4 * cells + 6 * cells, 10 * cells + 12 * cells);
  in.tensor_parallel = 1;

  // The width comes from the active parameters where they are known, and from the runs where the layers are not.
  model.active_parameters = *model.parameters / 4;
  const u64 half = 2048 * 2048;
  const u64 mixture = 2048 * 1024;
  check_estimate(vllm_activation(in), 29 * half + 200 * mixture, 18 * half, 42 * half + 400 * mixture);
  in.v1 = false;
  check_estimate(vllm_activation(in), 29 * half, 18 * half, 42 * half);
  in.v1 = true;
  model.active_parameters.reset();
  model.layer_count = 0;
  model.layers = {LayerRun{.count = 20}, LayerRun{.count = 12}};
  check_estimate(vllm_activation(in), 29 * cells, 18 * cells, 42 * cells);

  // Nothing is known of the model but its vocabulary, or not even that.
  model.layers.clear();
  check_estimate(vllm_activation(in), 40 * 128'256, 20 * 128'256, 55 * 128'256);
  model.vocabulary = 0;
  check_estimate(vllm_activation(in), 40 * 131'072, 20 * 32'000, 55 * 262'144);
  in.max_num_seqs = 3;
  check_estimate(vllm_activation(in), 3 * 40 * 131'072, 3 * 20 * 32'000, 3 * 55 * 262'144);

  // Before 0.6.5 torch's cached pages were counted too.
  in.version = version_of(6, 5);
  check_estimate(vllm_activation(in), 3 * 40 * 131'072, 3 * 20 * 32'000, 3 * 55 * 262'144);
  in.version = version_of(6, 4);
  check_estimate(vllm_activation(in), 3 * 40 * 131'072 * 17 / 10, 3 * 20 * 32'000, 3 * 55 * 262'144 * 4);

  // Under V0 a model that reads images profiles with them.
  in.version = version_of(7, 3);
  model.multimodal = true;
  check_estimate(vllm_activation(in), 3 * 40 * 131'072, 3 * 20 * 32'000, 3 * 55 * 262'144);
  in.v1 = false;
  check_estimate(vllm_activation(in), 1800 * kMiB, 500 * kMiB, 4000 * kMiB);
}

TEST_CASE("the hidden width is the root of parameters / (12 × layers), rounded down") {
  Model model;
  model.layer_count = 1;
  const PeakInput in{.model = model, .version = version_of(20, 0), .max_num_seqs = 0, .batched_tokens = 1};
  for (const u64 width : {u64{0}, u64{1}, u64{2}, u64{3}, u64{1000}, u64{65'535}, u64{1'000'000}}) {
    CAPTURE(width);
    model.parameters = 12 * width * width;
    CHECK(digits(vllm_activation(in).bytes) == digits(29 * width));
    model.parameters = 12 * (width + 1) * (width + 1) - 1;
    CHECK(digits(vllm_activation(in).bytes) == digits(29 * width));
  }
}

TEST_CASE("what torch does not know of, and CUDA graphs, by version, peers and card") {
  const Model model;
  PeakInput in{.model = model, .version = version_of(6, 5)};
  check_estimate(vllm_non_torch(in), 130 * kMiB, 0, 1830 * kMiB);
  in.tensor_parallel = 2;
  check_estimate(vllm_non_torch(in), 480 * kMiB, 110 * kMiB, 1800 * kMiB);
  in.version = version_of(6, 4);
  check_estimate(vllm_non_torch(in), 1000 * kMiB, 400 * kMiB, 3000 * kMiB);
  in.tensor_parallel = 1;
  check_estimate(vllm_non_torch(in), 500 * kMiB, 250 * kMiB, 1000 * kMiB);

  in.memory_bytes = 70 * kGiB - 1;
  check_estimate(vllm_cuda_graph(in), 370 * kMiB, 150 * kMiB, 1100 * kMiB);
  in.memory_bytes = 70 * kGiB;
  check_estimate(vllm_cuda_graph(in), 1000 * kMiB, 300 * kMiB, 3500 * kMiB);
}

TEST_CASE("what SGLang and TensorRT-LLM take before the cache") {
  const Model model;
  PeakInput in{.model = model};
  for (const u64 memory : {70 * kGiB - 1, 70 * kGiB}) {
    const bool large = memory >= 70 * kGiB;
    in.memory_bytes = memory;
    for (const u64 gpus : {u64{1}, u64{2}, u64{3}}) {
      CAPTURE(memory);
      CAPTURE(gpus);
      in.tensor_parallel = gpus;
      const bool many = large && gpus > 2;
      const Estimate context = sglang_context(in);
      const Estimate loading = sglang_loading(in);
      many ? check_estimate(context, 1500 * kMiB, 600 * kMiB, 2150 * kMiB)
           : check_estimate(context, 614 * kMiB, 410 * kMiB, 1229 * kMiB);
      gpus == 1 ? check_estimate(loading, 0, 0, 0)
      : many    ? check_estimate(loading, 950 * kMiB, 200 * kMiB, 2100 * kMiB)
                : check_estimate(loading, 250 * kMiB, 0, 500 * kMiB);
    }
  }
  check_estimate(tensorrt_llm_runtime(in), 3700 * kMiB, 1500 * kMiB, 5800 * kMiB);
}

}  // namespace
}  // namespace kvcap
