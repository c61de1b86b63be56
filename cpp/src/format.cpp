#include "kvcap/format.hpp"

#include <array>

namespace kvcap {
namespace {

constexpr std::string_view kGgml = "ggml block layouts: ggml/src/ggml-common.h (llama.cpp)";
constexpr std::string_view kIk = "ik_llama.cpp ggml-common.h: q6_0 is 26 bytes for 32 values";
constexpr std::string_view kIeee = "IEEE 754 / bfloat16 width";
constexpr std::string_view kOcp = "OCP Microscaling Formats v1.0: 32 values share one 8-bit scale";
constexpr std::string_view kNvfp4 = "NVFP4: 16 values of 4 bits share one fp8 scale (NVIDIA, 2025)";
constexpr std::string_view kDsMla =
    "vLLM fp8_ds_mla: 512 fp8 values, four fp32 scales and 64 bf16 rope values are 656 bytes";
constexpr std::string_view kIndexer = "DeepSeek-V3.2 indexer key: 128 fp8 values and one fp32 scale are 132 bytes";
constexpr std::string_view kBlock = "DeepSeek-V3 checkpoint: one fp32 scale for each 128 x 128 block";
constexpr std::string_view kNf4 =
    "bitsandbytes NF4: one fp32 scale for 64 values; scales of 8 bits and one fp32 for 256 of them when quantised "
    "again";
constexpr std::string_view kMlx = "MLX affine quantisation: one 16-bit scale and one 16-bit bias for each group";
constexpr std::string_view kMix =
    "bits per weight of published files: llama.cpp quantize README (Llama 2 and 3.1, 7B to 70B) and engine logs "
    "(models of 7B and more)";
constexpr std::string_view kGroup = "GPTQ and AWQ: one fp16 scale and one 4-bit zero point for each group";

// Two groups to a block where one group's zero point is half a byte.
constexpr std::array kFormats = {
    //      id            values bytes bits  weights cache latent indexer source
    Format{"fp32", 1, 4, 32, true, true, false, "", kIeee},
    Format{"bf16", 1, 2, 16, true, true, false, "", kIeee},
    Format{"fp16", 1, 2, 16, true, true, false, "", kIeee},
    Format{"fp8", 1, 1, 8, true, true, false, "fp8_indexer", "one byte a value, one scale a tensor"},
    Format{"fp8_block", 16384, 16388, 8, true, false, false, "", kBlock},
    Format{"int8", 1, 1, 8, true, true, false, "", "one byte a value, one scale a tensor"},
    Format{"int4", 2, 1, 4, true, true, false, "", "two values a byte, scales left out"},
    Format{"int4_g128", 256, 133, 4, true, false, false, "", kGroup},
    Format{"int4_g64", 128, 69, 4, true, false, false, "", kGroup},
    Format{"int4_g32", 64, 37, 4, true, false, false, "", kGroup},
    Format{"nf4", 64, 36, 4, true, false, false, "", kNf4},
    Format{"nf4_dq", 16384, 8452, 4, true, false, false, "", kNf4},
    Format{"mlx8_g64", 64, 68, 8, true, false, false, "", kMlx},
    Format{"mlx6_g64", 64, 52, 6, true, false, false, "", kMlx},
    Format{"mlx5_g64", 64, 44, 5, true, false, false, "", kMlx},
    Format{"mlx4_g32", 32, 20, 4, true, false, false, "", kMlx},
    Format{"mlx4_g64", 64, 36, 4, true, false, false, "", kMlx},
    Format{"mlx4_g128", 128, 68, 4, true, false, false, "", kMlx},
    Format{"mlx3_g64", 64, 28, 3, true, false, false, "", kMlx},
    Format{"mxfp4", 32, 17, 4, true, false, false, "", kOcp},
    Format{"nvfp4", 16, 9, 4, true, true, false, "", kNvfp4},
    Format{"q8_0", 32, 34, 8, true, true, false, "", kGgml},
    Format{"q6_k", 256, 210, 6, true, false, false, "", kGgml},
    Format{"q6_0", 32, 26, 6, false, true, false, "", kIk},
    Format{"q5_k", 256, 176, 5, true, false, false, "", kGgml},
    Format{"q5_1", 32, 24, 5, true, true, false, "", kGgml},
    Format{"q5_0", 32, 22, 5, true, true, false, "", kGgml},
    Format{"q4_k", 256, 144, 4, true, false, false, "", kGgml},
    Format{"q4_1", 32, 20, 4, true, true, false, "", kGgml},
    Format{"q4_0", 32, 18, 4, true, true, false, "", kGgml},
    Format{"iq4_nl", 32, 18, 4, true, true, false, "", kGgml},
    Format{"iq4_xs", 256, 136, 4, true, false, false, "", kGgml},
    Format{"q3_k", 256, 110, 3, true, false, false, "", kGgml},
    Format{"iq3_s", 256, 110, 3, true, false, false, "", kGgml},
    Format{"iq3_xxs", 256, 98, 3, true, false, false, "", kGgml},
    Format{"q2_k", 256, 84, 2, true, false, false, "", kGgml},
    Format{"iq2_s", 256, 82, 2, true, false, false, "", kGgml},
    Format{"iq2_xs", 256, 74, 2, true, false, false, "", kGgml},
    Format{"iq2_xxs", 256, 66, 2, true, false, false, "", kGgml},
    Format{"iq1_m", 256, 56, 1, true, false, false, "", kGgml},
    Format{"iq1_s", 256, 50, 1, true, false, false, "", kGgml},
    Format{"q5_k_m", 8000, 5680, 5, true, false, false, "", kMix, 5650, 6030},
    Format{"q5_k_s", 8000, 5520, 5, true, false, false, "", kMix, 5500, 5570},
    Format{"q4_k_m", 8000, 4850, 4, true, false, false, "", kMix, 4800, 4890},
    Format{"q4_k_s", 8000, 4580, 4, true, false, false, "", kMix, 4530, 4670},
    Format{"q3_k_l", 8000, 4260, 3, true, false, false, "", kMix, 4190, 4300},
    Format{"q3_k_m", 8000, 3910, 3, true, false, false, "", kMix, 3850, 4000},
    Format{"q3_k_s", 8000, 3500, 3, true, false, false, "", kMix, 3470, 3640},
    Format{"q2_k_m", 8000, 3350, 2, true, false, false, "", kMix, 2910, 3410},
    Format{"fp8_ds_mla", 576, 656, 8, false, true, true, "fp8_indexer", kDsMla},
    Format{"fp8_indexer", 128, 132, 8, false, false, false, "", kIndexer},
};

struct Spelling {
  std::string_view other;
  std::string_view id;
};
constexpr std::array kSpellings = {
    Spelling{"float32", "fp32"},    Spelling{"f32", "fp32"},      Spelling{"float", "fp32"},
    Spelling{"bfloat16", "bf16"},   Spelling{"float16", "fp16"},  Spelling{"f16", "fp16"},
    Spelling{"half", "fp16"},       Spelling{"fp8_e4m3", "fp8"},  Spelling{"fp8_e5m2", "fp8"},
    Spelling{"fp8_e4m3fn", "fp8"},  Spelling{"fp8_inc", "fp8"},   Spelling{"float8_e4m3fn", "fp8"},
    Spelling{"float8_e5m2", "fp8"}, Spelling{"f8_e4m3", "fp8"},   Spelling{"f8_e5m2", "fp8"},
    Spelling{"gptq", "int4_g128"},  Spelling{"awq", "int4_g128"}, Spelling{"q6_K", "q6_k"},
    Spelling{"q5_K", "q5_k"},       Spelling{"q4_K", "q4_k"},     Spelling{"q3_K", "q3_k"},
    Spelling{"q2_K", "q2_k"},
};

}  // namespace

std::span<const Format> formats() noexcept { return kFormats; }

CacheFormats cache_formats(const Format* k, const Format* v) noexcept { return {k, v, find_format(k->indexer)}; }

const Format* find_format(std::string_view id) noexcept {
  for (const auto& spelling : kSpellings) {
    if (spelling.other == id) id = spelling.id;
  }
  for (const auto& format : kFormats) {
    if (format.id == id) return &format;
  }
  return nullptr;
}

}  // namespace kvcap
