// How a config says that its weights and its cache are stored: every method, and the modules that a block leaves alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "kvcap/import.hpp"

namespace kvcap {
namespace {

/// Two layers of 36,864 matrix values each: 12,288 of attention and 24,576 of the MLP (hidden size 64, 4 query heads
/// and 2 KV heads of 16, MLP 128).
constexpr u64 kAttentionValues = 64 * 64 + 2 * 64 * 32 + 64 * 64;
constexpr u64 kMlpValues = 3 * 64 * 128;
/// Embedding and head of 100 words, three norms a pair of layers and one at the end.
constexpr u64 kTotal = 2 * (kAttentionValues + kMlpValues) + 2 * 100 * 64 + 5 * 64;

std::string plain(std::string_view rest) {
  return R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,)"
         R"("num_key_value_heads":2,"head_dim":16,"intermediate_size":128,"vocab_size":100,"dtype":"bfloat16")" +
         std::string(rest) + "}";
}

Model import(std::string_view rest) {
  const auto model = import_config_text(plain(rest));
  if (!model) FAIL(rest << ": " << model.error().field << " " << model.error().message);
  return *model;
}

std::string weights_of(const Model& model) {
  return model.native_weights != nullptr ? std::string(model.native_weights->id) : "?";
}

TEST_CASE("each method of quantisation gives its format, or is said to be unknown") {
  struct Row {
    const char* block;
    const char* format;
  };
  for (
      const auto& [block, format] : {
          // GPTQ, AWQ and AutoRound
          Row{R"({"quant_method":"gptq","bits":4})", "int4"},
          Row{R"({"quant_method":"gptq","bits":4,"group_size":64})", "int4_g64"},
          Row{R"({"quant_method":"gptq_marlin","bits":4,"group_size":128})", "int4_g128"},
          Row{R"({"quant_method":"gptq","bits":8,"group_size":128})", "int8"},
          Row{R"({"quant_method":"gptq","bits":3,"group_size":128})", "?"},
          Row{R"({"quant_method":"awq","w_bit":4,"q_group_size":32})", "int4_g32"},
          Row{R"({"quant_method":"auto-round","bits":4,"group_size":128})", "int4_g128"},
          Row{R"({"quant_method":"auto_round","bits":4,"group_size":128})", "int4_g128"},
          Row{R"({"quant_method":"auto-round","bits":4,"group_size":32,"data_type":"MX_FP"})", "mxfp4"},
          Row{R"({"quant_method":"auto-round","bits":4,"group_size":16,"data_type":"nv_fp4_with_static_gs"})", "nvfp4"},
          Row{R"({"quant_method":"auto-round","bits":8,"data_type":"fp8_e4m3"})", "fp8"},
          Row{R"({"quant_method":"auto-round","bits":2,"data_type":"mx_fp"})", "?"},
          // bitsandbytes and others
          Row{R"({"quant_method":"bitsandbytes","load_in_8bit":true})", "int8"},
          Row{R"({"quant_method":"bitsandbytes","_load_in_8bit":true})", "int8"},
          Row{R"({"quant_method":"bitsandbytes","load_in_4bit":true})", "nf4"},
          Row{R"({"quant_method":"bitsandbytes","_load_in_4bit":true,"bnb_4bit_use_double_quant":true})", "nf4_dq"},
          Row{R"({"quant_method":"bitsandbytes","load_in_4bit":false})", "?"},
          Row{R"({"bnb_4bit_quant_type":"nf4","load_in_4bit":true})", "nf4"},
          Row{R"({"quant_method":"eetq"})", "int8"},
          Row{R"({"quant_method":"fbgemm_fp8"})", "fp8"},
          Row{R"({"quant_method":"fp8"})", "fp8"},
          Row{R"({"quant_method":"fp8","weight_block_size":[128,128]})", "fp8_block"},
          Row{R"({"quant_method":"mxfp4"})", "mxfp4"},
          Row{R"({"quant_method":"aqlm"})", "?"},
          Row{R"("gptq")", "?"},
          Row{R"({})", "bf16"},
          // ModelOpt
          Row{R"({"quant_algo":"NVFP4"})", "nvfp4"},
          Row{R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4"})", "nvfp4"},
          Row{R"({"quant_algo":"MXFP4"})", "mxfp4"},
          Row{R"({"quant_algo":"W4A16_AWQ"})", "int4_g128"},
          Row{R"({"quant_algo":"W4A8_AWQ","group_size":64})", "int4_g64"},
          Row{R"({"quant_algo":"FP8"})", "fp8"},
          Row{R"({"quant_algo":"FP8_PB_WO"})", "fp8_block"},
          Row{R"({"quant_algo":"FP8_BLOCK_SCALES"})", "fp8_block"},
          // MLX
          Row{R"({"bits":8})", "mlx8_g64"},
          Row{R"({"bits":4,"group_size":32,"mode":"mxfp4"})", "mxfp4"},
          Row{R"({"bits":4,"group_size":16,"mode":"nvfp4"})", "nvfp4"},
          Row{R"({"bits":4,"group_size":128,"mode":"affine"})", "mlx4_g128"},
          Row{R"({"bits":7,"group_size":64})", "?"},
          // Quark
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp8_e4m3"}}})", "fp8"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"int8"}}})", "int8"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":[{"dtype":"fp4","group_size":32}]}})",
              "mxfp4"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":[{"dtype":"int8"},{"dtype":"fp8"}]}})", "?"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4","group_size":16}}})", "?"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"int4"}}})", "int4"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"uint4","group_size":128}}})",
              "int4_g128"},
          Row{R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"int2"}}})", "?"},
          Row{R"({"quant_method":"quark","global_quant_config":{}})", "?"},
          Row{R"({"quant_method":"quark"})", "?"},
          // torchao
          Row{R"({"quant_method":"torchao","quant_type":{"default":{"_type":"Float8WeightOnlyConfig"}}})", "fp8"},
          Row{R"({"quant_method":"torchao","quant_type":{"default":{"_type":"Float8DynamicActivationFloat8WeightConfig"}}})",
              "fp8"},
          Row{R"({"quant_method":"torchao","quant_type":"float8_weight_only"})", "fp8"},
          Row{R"({"quant_method":"torchao","quant_type":{"default":{"_type":"Int8WeightOnlyConfig"}}})", "int8"},
          Row{R"({"quant_method":"torchao","quant_type":"int8_weight_only"})", "int8"},
          Row{R"({"quant_method":"torchao","quant_type":"int4_weight_only"})", "int4_g128"},
          Row{R"({"quant_method":"torchao","quant_type":"int4_weight_only","quant_type_kwargs":{"group_size":64}})",
              "int4_g64"},
          Row{R"({"quant_method":"torchao","quant_type":{"default":{"_type":"Int4WeightOnlyConfig","_data":{"group_size":32}}}})",
              "int4_g32"},
          Row{R"({"quant_method":"torchao","quant_type":"autoquant"})", "?"},
          Row{R"({"quant_method":"torchao"})", "?"},
          Row{R"({"quant_method":"torchao","quant_type":{}})", "?"},
          // compressed-tensors
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":8,"type":"float"}}}})", "fp8"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":8,"type":"float","strategy":"block"}}}})", "fp8_block"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":8,"type":"int"}}}})", "int8"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":4,"type":"float","group_size":16}}}})", "nvfp4"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":4,"type":"float","group_size":32}}}})", "mxfp4"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":4,"type":"int","group_size":128}}}})", "int4_g128"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":4,"type":"int"}}}})", "int4"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":2,"type":"int"}}}})", "?"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":8}},"b":{"weights":{"num_bits":8}}}})", "int8"},
          Row{R"({"config_groups":{"a":{"weights":{"num_bits":8}},"b":{"weights":{"num_bits":4}}}})", "?"},
          Row{R"({"config_groups":{"a":{"weights":null},"b":{}}})", "bf16"},
          Row{R"({"config_groups":{}})", "?"},
          // Sparse files store fewer weights than the model has.
          Row{R"({"quant_method":"fp8","sparsity_config":{"format":"sparse-24-bitmask"}})", "?"},
          Row{R"({"quant_method":"fp8","sparsity_config":{"format":"dense"}})", "fp8"},
          Row{R"({"quant_method":"fp8","sparsity_config":{}})", "fp8"},
          Row{R"({"quant_method":"fp8","sparsity_config":"none"})", "fp8"},
      }) {
    CAPTURE(block);
    const Model model = import(R"(,"quantization_config":)" + std::string(block));
    CHECK(weights_of(model) == format);
    const bool told = std::ranges::find(model.note_codes, "weight_format_unknown") != model.note_codes.end();
    CHECK(told == (std::string_view(format) == "?"));
    if (told) CHECK_FALSE(model.native_weight_bytes);
  }
}

TEST_CASE("the dtype is taken from every way of stating it, and 16 bits are said to be assumed") {
  struct Row {
    const char* rest;
    const char* format;
    bool assumed;
  };
  for (const auto& [rest, format, assumed] : {
           Row{R"(,"dtype":"torch.float32")", "fp32", false},
           Row{R"(,"dtype":"float16")", "fp16", false},
           Row{R"(,"dtype":"int3")", "bf16", true},
           Row{R"(,"dtype":"fp8_ds_mla")", "bf16", true},
           Row{R"(,"dtype":"auto")", "bf16", true},
           Row{R"(,"dtype":null)", "bf16", true},
           Row{R"(,"dtype":null,"fp16":true)", "fp16", false},
           Row{R"(,"dtype":null,"fp16":false,"fp32":true)", "fp32", false},
       }) {
    CAPTURE(rest);
    const Model model = import(rest);
    CHECK(weights_of(model) == format);
    CHECK(std::ranges::any_of(model.defaulted, [](const ImportedField& one) { return one.name == "dtype"; }) ==
          assumed);
  }
}

TEST_CASE("a block may say how the cache is stored") {
  struct Row {
    const char* block;
    const char* format;
  };
  for (const auto& [block, format] : {
           Row{R"({"kv_cache_scheme":{"num_bits":8,"type":"float"}})", "fp8"},
           Row{R"({"kv_cache_scheme":{"num_bits":8,"type":"int"}})", "int8"},
           Row{R"({"kv_cache_scheme":{"num_bits":4,"type":"float"}})", "nvfp4"},
           Row{R"({"kv_cache_scheme":{"num_bits":4,"type":"int"}})", ""},
           Row{R"({"kv_cache_scheme":{"num_bits":2,"type":"float"},"kv_cache_quant_algo":"FP8"})", "fp8"},
           Row{R"({"kv_cache_scheme":"FP8"})", "fp8"}, Row{R"({"kv_cache_scheme":[8]})", ""},
           Row{R"({"kv_cache_quant_algo":"NVFP4"})", "nvfp4"}, Row{R"({"kv_cache_quant_algo":"q99"})", ""},
           Row{R"({"kv_cache_quant_algo":"nf4"})", ""},         // of weights
           Row{R"({"kv_cache_quant_algo":"fp8_ds_mla"})", ""},  // of latent rows
       }) {
    CAPTURE(block);
    const Model model = import(R"(,"quantization_config":)" + std::string(block));
    CHECK((model.native_cache != nullptr ? std::string(model.native_cache->id) : "") == format);
    CHECK((std::ranges::find(model.note_codes, "cache_format_from_config") != model.note_codes.end()) ==
          (model.native_cache != nullptr));
  }
}

TEST_CASE("modules that a block leaves alone stay at 16 bits") {
  constexpr u64 kAttentionOfAll = 2 * kAttentionValues, kMlpOfAll = 2 * kMlpValues;
  constexpr u64 kLayer = kAttentionValues + kMlpValues;
  struct Row {
    const char* lists;
    u64 kept;  ///< values of layers that stay
  };
  for (const auto& [lists, kept] : {
           Row{R"("ignore":[])", 0},
           Row{R"("ignore":"lm_head")", 0},
           Row{R"("ignore":[7,null])", 0},
           Row{R"("ignore":["lm_head","head","output","ff_out","model.embed_tokens","wte"])", 0},
           Row{R"("ignore":["model.layers.0.mlp.gate","router","mlp.shared_expert_gate"])", 0},
           Row{R"("ignore":["model.norm","input_layernorm","mlp.norm","mlp\\.norm","","***","^^"])", 0},
           Row{R"("ignore":["vision_tower.mlp","audio.self_attn","mtp.mlp","visual.mlp"])", 0},
           Row{R"("modules_to_not_convert":["self_attn"])", kAttentionOfAll},
           Row{R"("ignored_layers":["model.layers.1.self_attn"])", kAttentionValues},
           Row{R"("exclude_modules":["*mixer*","attn$"])", kAttentionOfAll},
           Row{R"("llm_int8_skip_modules":["q_proj"])", kAttentionOfAll},
           Row{R"("exclude":["model.layers.0.*"])", kLayer},
           Row{R"("ignore":["model.layers.1"])", kLayer},
           Row{R"("ignore":["model.layers.1","model.layers.0.mlp"])", kLayer + kMlpValues},
           Row{R"("ignore":["model.layers.9.mlp","model.layers.1234567.mlp"])", 0},
           Row{R"("ignore":["layers."])", 0},
           Row{R"("ignore":["model.layers.*.mlp"])", kMlpOfAll},
           Row{R"("ignore":["model.layers.x.mlp.gate_proj"])", kMlpOfAll},
           Row{R"("ignore":["re:.*mlp\\.up_proj$"])", kMlpOfAll},
           Row{R"("ignore":["^mlp"])", kMlpOfAll},
           Row{R"("ignore":["feed_forward"],"exclude":["linear_attn"])", kMlpOfAll + kAttentionOfAll},
           // There are neither experts nor shared ones here.
           Row{R"("ignore":["mlp.experts","mlp.shared_experts"])", 0},
       }) {
    CAPTURE(lists);
    const Model model = import(R"(,"quantization_config":{"quant_method":"fp8",)" + std::string(lists) + "}");
    REQUIRE(model.native_weight_bytes);
    const u64 converted = 2 * kLayer - kept;
    CHECK(model.native_weight_bytes->count == converted + 2 * (kTotal - converted));
    CHECK(model.native_weights_estimated);
  }
}

TEST_CASE("an MLX block converts embedding and head too, unless it names them") {
  constexpr u64 kMatrices = 2 * (kAttentionValues + kMlpValues) + 2 * 6400;
  const auto bytes = [](const char* ignored) {
    const Model model =
        import(R"(,"quantization_config":{"bits":8,"group_size":64,"ignore":)" + std::string(ignored) + "}");
    return model.native_weight_bytes.value_or(Bytes{0}).count;
  };
  // 68 bytes for each 64 values.
  const auto expected = [](u64 kept) { return (kMatrices - kept) / 64 * 68 + 2 * (kTotal - kMatrices + kept); };
  CHECK(bytes("[]") == expected(0));
  for (const char* const head : {R"(["lm_head"])", R"(["head"])", R"(["output"])", R"(["transformer.ff_out"])"}) {
    CAPTURE(head);
    CHECK(bytes(head) == expected(6400));
  }
  CHECK(bytes(R"(["model.embed_tokens"])") == expected(6400));
  CHECK(bytes(R"(["lm_head","wte"])") == expected(12800));
}

TEST_CASE("experts convert by themselves, and their router stays") {
  // Per layer 4 experts of 3 × 64 × 128 values, and a router of 64 × 4.
  constexpr u64 kExperts = 2 * 4 * kMlpValues;
  constexpr u64 kAll = kExperts + 2 * kAttentionValues + 2 * 64 * 4 + 2 * 100 * 64 + 5 * 64;
  const auto bytes = [&](const char* block) {
    const auto model = import_config_text(
        R"({"model_type":"mixtral","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,)"
        R"("num_key_value_heads":2,"head_dim":16,"intermediate_size":128,"vocab_size":100,"num_local_experts":4,)"
        R"("sliding_window":null,"quantization_config":)" +
        std::string(block) + "}");
    REQUIRE(model);
    CHECK(model->parameters == kAll);
    return model->native_weight_bytes.value_or(Bytes{0}).count;
  };
  const auto fp8 = [](u64 converted) { return converted + 2 * (kAll - converted); };
  CHECK(bytes(R"({"quant_method":"fp8"})") == fp8(kExperts + 2 * kAttentionValues));
  CHECK(bytes(R"({"quant_method":"fp8","ignore":["block_sparse_moe.gate"]})") == fp8(kExperts + 2 * kAttentionValues));
  CHECK(bytes(R"({"quant_method":"fp8","ignore":["mlp.experts"]})") == fp8(2 * kAttentionValues));
  CHECK(bytes(R"({"quant_method":"fp8","ignore":["moe"]})") == fp8(2 * kAttentionValues));
  // Files of mxfp4 and of mixed precision convert experts only: 17 bytes for 32 values, 9 for 16.
  CHECK(bytes(R"({"quant_method":"mxfp4"})") == kExperts / 32 * 17 + 2 * (kAll - kExperts));
  CHECK(bytes(R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4"})") ==
        kExperts / 16 * 9 + 2 * (kAll - kExperts));
}

TEST_CASE("symmetric groups of int4 store no zero points") {
  const auto bytes = [](const char* weights) {
    const Model model =
        import(R"(,"quantization_config":{"config_groups":{"a":{"weights":)" + std::string(weights) + "}}}");
    return model.native_weight_bytes.value_or(Bytes{0}).count;
  };
  constexpr u64 kConverted = 2 * (kAttentionValues + kMlpValues);
  constexpr u64 kRest = 2 * (kTotal - kConverted);
  // 133 bytes for 256 values: 128 of values, 4 of scales and 1 of two zero points.
  CHECK(bytes(R"({"num_bits":4,"type":"int","group_size":128,"symmetric":false})") == kConverted / 256 * 133 + kRest);
  CHECK(bytes(R"({"num_bits":4,"type":"int","group_size":128,"symmetric":true})") == kConverted / 256 * 132 + kRest);
  CHECK(bytes(R"({"num_bits":4,"type":"int","symmetric":true})") == kConverted / 2 + kRest);
  CHECK(bytes(R"({"num_bits":8,"type":"int","group_size":128,"symmetric":true})") == kConverted + kRest);
  CHECK(bytes(R"({"num_bits":4,"type":"float","group_size":16,"symmetric":true})") == kConverted / 16 * 9 + kRest);
}

TEST_CASE("more parameters than are counted exactly are not stated") {
  const auto model = import_config_text(
      R"({"model_type":"llama","num_hidden_layers":4096,"hidden_size":16777216,"num_attention_heads":64,)"
      R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":16777216,"vocab_size":100,)"
      R"("quantization_config":{"quant_method":"fp8"}})");
  REQUIRE(model);
  CHECK_FALSE(model->parameters);
  CHECK_FALSE(model->native_weight_bytes);
  CHECK(weights_of(*model) == "fp8");
}

}  // namespace
}  // namespace kvcap
