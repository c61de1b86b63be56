// The limit of every number in a config: what is at the limit is read, what is one past it is refused by name.
#include <doctest/doctest.h>

#include <string>

#include "import_support.hpp"
#include "kvcap/import.hpp"

namespace kvcap {
namespace {

constexpr u64 kLayers = 4096, kExperts = u64{1} << 20, kLatentPart = kMaxWidth / 2;

struct Limit {
  const char* type;
  const char* rest;   ///< what the plain config says beside; # is the number
  const char* field;  ///< as the refusal names it
  u64 limit;
};

/// Two layers, hidden size 64, 4 query heads and 2 KV heads of 16, MLP 128, 100 words. What `rest` says again counts.
std::string outcome(const Limit& row, u64 number) {
  std::string text = R"({"model_type":")" + std::string(row.type) +
                     R"(","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,)"
                     R"("head_dim":16,"intermediate_size":128,"vocab_size":100,)" +
                     row.rest + "}";
  text.replace(text.find('#'), 1, digits(number));
  const auto model = import_config_text(text);
  return model ? "read" : std::string(std::string_view(code_name(model.error().code))) + ": " + model.error().field;
}

void check_limits(std::initializer_list<Limit> rows) {
  for (const Limit& row : rows) {
    CAPTURE(row.type);
    CAPTURE(row.rest);
    const std::string refused = std::string("out_of_range: ") + row.field;
    // Numbers that have to fit each other may be refused for that.
    const std::string at = outcome(row, row.limit);
    CHECK(at != refused);
    const bool read =
        !at.starts_with("out_of_range") || at == "out_of_range: mamba_d_state" || at == "out_of_range: head_dim";
    CHECK(read);
    CHECK(outcome(row, row.limit + 1) == refused);
  }
}

TEST_CASE("limits of what says how many layers there are, and which is which") {
  check_limits({
      {"llama", R"("num_hidden_layers":#)", "num_hidden_layers", kLayers},
      {"t5", R"("decoder_layers":#)", "decoder_layers", kLayers},
      {"t5", R"("num_decoder_layers":#)", "num_decoder_layers", kLayers},
      {"jamba", R"("attn_layer_period":#,"attn_layer_offset":0)", "attn_layer_period", kLayers},
      {"jamba", R"("attn_layer_period":2,"attn_layer_offset":#)", "attn_layer_offset", kLayers},
      {"qwen3_next", R"("full_attention_interval":#)", "full_attention_interval", kLayers},
      {"llama4", R"("attention_chunk_size":8,"no_rope_layer_interval":#)", "no_rope_layer_interval", kLayers},
      {"mistral", R"("sliding_window":8,"sliding_window_pattern":#)", "sliding_window_pattern", kLayers},
      {"smollm3", R"("use_sliding_window":true,"sliding_window":8,"max_window_layers":#)", "max_window_layers",
       kLayers},
      {"deepseek_v32", R"("kv_lora_rank":8,"index_head_dim":32,"index_topk_freq":#)", "index_topk_freq", kLayers},
      {"deepseek_v32", R"("kv_lora_rank":8,"index_head_dim":32,"index_topk_freq":2,"index_skip_topk_offset":#)",
       "index_skip_topk_offset", kLayers},
      {"llama", R"("num_kv_shared_layers":#)", "num_kv_shared_layers", kLayers},
      {"llama", R"("use_cla":true,"cla_share_factor":#)", "cla_share_factor", kLayers},
      {"longcat_flash", R"("num_hidden_layers":null,"num_layers":2,"attentions_per_layer":#)", "attentions_per_layer",
       2},
      {"mixtral", R"("num_experts":4,"first_k_dense_replace":#)", "first_k_dense_replace", kLayers},
      {"mixtral", R"("num_experts":4,"moe_layer_freq":#)", "moe_layer_freq", kLayers},
      {"mixtral", R"("num_experts":4,"moe_layer_freq":[#,1])", "moe_layer_freq[0]", 1},
      {"mixtral", R"("num_experts":4,"decoder_sparse_step":#)", "decoder_sparse_step", kLayers},
      {"mixtral", R"("num_experts":4,"interleave_moe_layer_step":#)", "interleave_moe_layer_step", kLayers},
      {"mixtral", R"("num_experts":4,"expert_layer_period":#)", "expert_layer_period", kLayers},
      {"mixtral", R"("num_experts":4,"expert_layer_period":2,"expert_layer_offset":#)", "expert_layer_offset", kLayers},
      {"llama", R"("hybrid_layer_pattern":[#,0],"sliding_window":8)", "hybrid_layer_pattern", 1},
      {"minimax_m1", R"("attn_type_list":[#,1])", "attn_type_list", 1},
      {"llama4", R"("attention_chunk_size":8,"no_rope_layers":[#,1])", "no_rope_layers", 1},
      {"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":32,"sparse_attention_freq":[1,#]})",
       "sparse_attention_config.sparse_attention_freq[1]", 1},
      {"llama", R"("cross_attention_layers":[#])", "cross_attention_layers", 1},
      {"kimi_linear",
       R"("linear_attn_config":{"kda_layers":[#],"num_heads":2,"head_dim":8,"short_conv_kernel_size":4})",
       "linear_attn_config.kda_layers", 2},
  });
}

TEST_CASE("limits of tokens") {
  check_limits({
      {"recurrent_gemma", R"("block_types":["attention"],"attention_window_size":#)", "attention_window_size",
       kMaxTokens},
      {"recurrent_gemma", R"("layer_types":["local","local"],"attention_window_size":#)", "attention_window_size",
       kMaxTokens},
      {"mistral", R"("sliding_window":#)", "sliding_window", kMaxTokens},
      {"llama", R"("layer_types":["local","local"],"sliding_window":#)", "sliding_window", kMaxTokens},
      {"llama", R"("layer_types":["local","local"],"sliding_window":[8,#])", "sliding_window[1]", kMaxTokens},
      {"llama4", R"("attention_chunk_size":#)", "attention_chunk_size", kMaxTokens},
      {"llama", R"("layer_types":["chunked_attention","full"],"attention_chunk_size":#)", "attention_chunk_size",
       kMaxTokens},
      {"whisper", R"("is_encoder_decoder":true,"max_source_positions":#)", "max_source_positions", kMaxTokens},
      {"deepseek_v4", R"("compress_ratios":[#,4],"sliding_window":4)", "compress_ratios", kMaxTokens},
      {"deepseek_v4",
       R"("layer_types":["heavily_compressed_attention","full"],"compress_ratios":[#,4],"sliding_window":4)",
       "compress_ratios[0]", kMaxTokens},
      {"deepseek_v4",
       R"("layer_types":["heavily_compressed_attention","heavily_compressed_attention"],"sliding_window":4,)"
       R"("compress_rates":{"heavily_compressed_attention":#})",
       "compress_rates.heavily_compressed_attention", kMaxTokens},
      {"opt", R"("max_position_embeddings":#)", "max_position_embeddings", kMaxTokens},
  });
}

TEST_CASE("a context length past the limit is none") {
  const auto context = [](const char* number) {
    const auto model = import_config_text(
        std::string(
            R"({"model_type":"llama","num_hidden_layers":1,"num_attention_heads":2,"head_dim":8,"max_position_embeddings":)") +
        number + "}");
    REQUIRE(model);
    return model->max_context;
  };
  CHECK(context("2147483648") == kMaxTokens);
  CHECK(context("2147483649") == 0);
  CHECK(context("1000000000000000019884624838656") == 0);
  CHECK(context("0") == 0);
  CHECK(context("1") == 1);
}

TEST_CASE("limits of heads and widths") {
  check_limits({
      {"llama", R"("num_attention_heads":#)", "num_attention_heads", kMaxHeads},
      {"llama", R"("num_attention_heads":[4,#])", "num_attention_heads[1]", kMaxHeads},
      {"llama", R"("num_key_value_heads":#)", "num_key_value_heads", kMaxHeads},
      {"mistral", R"("sliding_window":8,"swa_num_key_value_heads":#)", "swa_num_key_value_heads", kMaxHeads},
      {"mistral", R"("sliding_window":8,"swa_num_attention_heads":#)", "swa_num_attention_heads", kMaxHeads},
      {"gemma4", R"("layer_types":["full","full"],"num_global_key_value_heads":#)", "num_global_key_value_heads",
       kMaxHeads},
      {"deci", R"("block_configs":[{"attention":{"num_key_value_heads":#}},{"attention":{}}])", "block_configs",
       kMaxHeads},
      {"deci", R"("block_configs":[{"attention":{"n_heads_in_group":#}},{"attention":{}}])", "block_configs",
       kMaxHeads},
      {"deepseek_v32", R"("kv_lora_rank":8,"index_head_dim":32,"index_n_heads":#)", "index_n_heads", kMaxHeads},
      {"llama", R"("head_dim":#)", "head_dim", kMaxWidth},
      {"llama", R"("hidden_size":#)", "hidden_size", kMaxWidth},
      {"llama", R"("head_dim":null,"hidden_size":#)", "hidden_size", kMaxWidth},
      {"llama", R"("v_head_dim":#)", "v_head_dim", kMaxWidth},
      {"mistral", R"("sliding_window":8,"swa_head_dim":#)", "swa_head_dim", kMaxWidth},
      {"mistral", R"("sliding_window":8,"swa_v_head_dim":#)", "swa_v_head_dim", kMaxWidth},
      {"gemma4", R"("layer_types":["full","full"],"global_head_dim":#)", "global_head_dim", kMaxWidth},
      {"deepseek_v3", R"("kv_lora_rank":#)", "kv_lora_rank", kLatentPart},
      {"deepseek_v3", R"("kv_lora_rank":8,"qk_rope_head_dim":#)", "qk_rope_head_dim", kLatentPart},
      {"deepseek_v3", R"("kv_lora_rank":8,"qk_nope_head_dim":#)", "qk_nope_head_dim", kLatentPart},
      {"deepseek_v3", R"("kv_lora_rank":8,"v_head_dim":#)", "v_head_dim", kMaxWidth},
      {"deepseek_v3", R"("kv_lora_rank":8,"q_lora_rank":#)", "q_lora_rank", kMaxWidth},
      {"deepseek_v32", R"("kv_lora_rank":8,"index_head_dim":#)", "index_head_dim", kMaxWidth},
      {"deepseek_v4", R"("compress_ratios":[8,16],"sliding_window":4,"index_head_dim":#)", "index_head_dim", kMaxWidth},
      {"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":#})", "sparse_attention_config.sparse_index_dim",
       kMaxWidth},
      // All heads make one entry: 2 × 2^23 values, and 97 × 172,960, since 97 × 172,961 is 2^24 + 1
      {"deepseek_v4",
       R"("compress_ratios":[8,16],"sliding_window":4,"num_attention_heads":97,"num_key_value_heads":97,"head_dim":#)",
       "head_dim", 172'960},
      {"deepseek_v4", R"("compress_ratios":[8,16],"sliding_window":4,"head_dim":#)", "head_dim", kMaxWidth / 2},
  });
}

TEST_CASE("limits of recurrent layers") {
  check_limits({
      {"kimi_linear",
       R"("linear_attn_config":{"kda_layers":[1,2],"num_heads":#,"head_dim":8,"short_conv_kernel_size":4})",
       "linear_attn_config.num_heads", kMaxHeads},
      {"kimi_linear",
       R"("linear_attn_config":{"kda_layers":[1,2],"num_heads":1,"head_dim":#,"short_conv_kernel_size":4})",
       "linear_attn_config.head_dim", kMaxWidth},
      {"kimi_linear",
       R"("linear_attn_config":{"kda_layers":[1,2],"num_heads":1,"head_dim":8,"short_conv_kernel_size":#})",
       "linear_attn_config.short_conv_kernel_size", kMaxWidth},
      {"qwen3_next", R"("linear_num_value_heads":#)", "linear_num_value_heads", kMaxHeads},
      {"qwen3_next", R"("linear_num_key_heads":#)", "linear_num_key_heads", kMaxHeads},
      {"qwen3_next", R"("linear_key_head_dim":#)", "linear_key_head_dim", kMaxWidth},
      {"qwen3_next", R"("linear_value_head_dim":#)", "linear_value_head_dim", kMaxWidth},
      {"qwen3_next", R"("linear_conv_kernel_dim":#)", "linear_conv_kernel_dim", kMaxWidth},
      {"rwkv6", R"("head_dim":null,"head_size":#)", "head_size", kMaxWidth},
      {"rwkv6", R"("attention_hidden_size":#)", "attention_hidden_size", kMaxWidth},
      {"rwkv6", R"("hidden_size":#)", "hidden_size", kMaxWidth},
      {"recurrent_gemma", R"("block_types":["recurrent"],"lru_width":#)", "lru_width", kMaxWidth},
      {"recurrent_gemma", R"("block_types":["recurrent"],"hidden_size":#)", "hidden_size", kMaxWidth},
      {"recurrent_gemma", R"("block_types":["recurrent"],"conv1d_width":#)", "conv1d_width", kMaxWidth},
      {"mamba", R"("mamba_d_state":#)", "mamba_d_state", kMaxWidth},
      {"mamba", R"("mamba_d_conv":#)", "mamba_d_conv", kMaxWidth},
      {"mamba", R"("intermediate_size":#)", "intermediate_size", kMaxWidth},
      {"mamba", R"("mamba_dt_rank":#)", "mamba_dt_rank", kMaxWidth},
      {"mamba", R"("intermediate_size":null,"mamba_expand":#)", "mamba_expand", 1024},
      {"mamba2", R"("mamba_d_state":#)", "mamba_d_state", kMaxWidth},
      {"mamba2", R"("mamba_d_conv":#)", "mamba_d_conv", kMaxWidth},
      {"mamba2", R"("mamba_n_groups":#)", "mamba_n_groups", kMaxHeads},
      {"mamba2", R"("mamba_head_dim":#)", "mamba_head_dim", kMaxWidth},
      {"mamba2", R"("mamba_num_heads":#)", "mamba_num_heads", kMaxHeads},
      {"mamba2", R"("mamba_inner":#)", "mamba_inner", kMaxWidth},
      {"mamba2", R"("mamba_expand":#)", "mamba_expand", 1024},
      {"mamba2_ssm", R"("attn_layer_idx":[0],"attn_cfg":{"d_conv":#})", "attn_cfg.d_conv", kMaxWidth},
      {"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":#)", "conv_L_cache", kMaxWidth},
      {"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3,"conv_dim":#)", "conv_dim", kMaxWidth},
  });
}

TEST_CASE("limits of what only the parameter count reads") {
  check_limits({
      {"llama", R"("vocab_size":#)", "vocab_size", kMaxWidth},
      {"llama", R"("pad_vocab_size_multiple":#)", "pad_vocab_size_multiple", kMaxWidth},
      {"llama", R"("word_embed_proj_dim":#)", "word_embed_proj_dim", kMaxWidth},
      {"llama", R"("intermediate_size":#)", "intermediate_size", kMaxWidth},
      {"mpt", R"("intermediate_size":null,"expansion_ratio":#)", "expansion_ratio", 1024},
      {"lfm2", R"("full_attn_idxs":[0,1],"block_multiple_of":#)", "block_multiple_of", kMaxWidth},
      {"mixtral", R"("num_experts":#)", "num_experts", kExperts},
      {"mixtral", R"("num_experts":4,"num_experts_per_tok":#)", "num_experts_per_tok", kExperts},
      {"mixtral", R"("num_experts":4,"n_shared_experts":#)", "n_shared_experts", kExperts},
      {"mixtral", R"("num_experts":4,"moe_shared_expert_intermediate_size":8,"n_shared_experts":#)", "n_shared_experts",
       kExperts},
      {"mixtral", R"("num_experts":4,"moe_intermediate_size":#)", "moe_intermediate_size", kMaxWidth},
      {"mixtral", R"("dense_intermediate_size":#)", "dense_intermediate_size", kMaxWidth},
      {"mixtral", R"("intermediate_size_mlp":#)", "intermediate_size_mlp", kMaxWidth},
      {"mixtral", R"("shared_expert_intermediate_size":#)", "shared_expert_intermediate_size", kMaxWidth},
      {"mixtral", R"("moe_shared_expert_intermediate_size":#)", "moe_shared_expert_intermediate_size", kMaxWidth},
      {"mixtral", R"("shared_intermediate_size":#)", "shared_intermediate_size", kMaxWidth},
      {"llama", R"("index_head_dim":#)", "index_head_dim", kMaxWidth},
  });
}

TEST_CASE("a state has at most 2^48 values, and the convolution beside it too") {
  struct State {
    const char* type;
    const char* rest;  ///< # is the number that comes to 2^48
    u64 at;
  };
  for (const State& row : {
           State{"kimi_linear",
                 R"("linear_attn_config":{"kda_layers":[1,2],"num_heads":#,"head_dim":131072,)"
                 R"("short_conv_kernel_size":4})",
                 16'384},
           State{"qwen3_next",
                 R"("linear_num_value_heads":65536,"linear_num_key_heads":1,"linear_key_head_dim":512,)"
                 R"("linear_conv_kernel_dim":2,"linear_value_head_dim":#)",
                 u64{1} << 23},
           State{"mamba2",
                 R"("mamba_num_heads":65536,"mamba_head_dim":512,"mamba_n_groups":1,"mamba_d_conv":2,)"
                 R"("mamba_d_state":#)",
                 u64{1} << 23},
           // A convolution of 2^24 + 2 × 2^10 × 2^13 = 2^25 channels keeps 2^23 tokens of them.
           State{"mamba2",
                 R"("mamba_num_heads":65536,"mamba_head_dim":256,"mamba_n_groups":1024,"mamba_d_state":8192,)"
                 R"("mamba_d_conv":#)",
                 (u64{1} << 23) + 1},
           // 193 × 65,537 × 22,253,377 is 2^48 + 1: a convolution of so many channels, over 194 tokens
           State{"mamba2",
                 R"("mamba_num_heads":1,"mamba_head_dim":36673,"mamba_n_groups":65536,"mamba_d_state":11126858,)"
                 R"("mamba_d_conv":#)",
                 193},
       }) {
    CAPTURE(row.type);
    CAPTURE(row.rest);
    const Limit limit{row.type, row.rest, "", row.at};
    CHECK(outcome(limit, row.at) == "read");
    CHECK(outcome(limit, row.at + 1) == "out_of_range: mamba_d_state");
  }
}

}  // namespace
}  // namespace kvcap
