// What configs say of their layers: the forms that the fixtures do not have, the refusals of each, and the terms of the
// parameter count.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "import_support.hpp"
#include "kvcap/import.hpp"

namespace kvcap {
namespace {

/// Two layers, hidden size 64, 4 query heads and 2 KV heads of 16, MLP 128, 100 words. What `rest` says again counts.
std::string config(std::string_view type, std::string_view rest) {
  return R"({"model_type":")" + std::string(type) +
         R"(","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,)"
         R"("intermediate_size":128,"vocab_size":100)" +
         std::string(rest.empty() ? "" : ",") + std::string(rest) + "}";
}

/// The layers in the catalogue's notation, or the refusal's code and field.
std::string outcome(std::string_view text) {
  const auto model = import_config_text(text);
  if (model) return test::notation(model->layers);
  CHECK_FALSE(model.error().message.empty());
  return std::string(std::string_view(code_name(model.error().code))) + ": " + model.error().field;
}

std::string parameters(std::string_view text) {
  const auto model = import_config_text(text);
  if (!model) return std::string(std::string_view(code_name(model.error().code))) + ": " + model.error().field;
  return model->parameters ? digits(*model->parameters) : "unknown";
}

struct Row {
  const char* type;
  const char* rest;
  const char* outcome;
};

TEST_CASE("forms of stating layers") {
  for (
      const auto& [type, rest, expected] : {
          // Lists of words
          Row{"llama", R"("layer_types":7)", "wrong_type: layer_types"},
          Row{"llama", R"("layer_types":["full_attention"])", "conflict: layer_types"},
          Row{"llama", R"("layer_types":[7,"full_attention"])", "unsupported: layer_types"},
          Row{"llama", R"("layer_types":["full_attention","odd"])", "unsupported: layer_types"},
          Row{"llama", R"("layer_types":["full_attention","mlp","odd"])", "1 full 2x16; 1 none"},
          Row{"llama", R"("block_types":"attention")", "2 full 2x16"},
          Row{"llama", R"("block_types":[])", "2 full 2x16"},
          Row{"llama", R"("block_types":["attention"])", "2 full 2x16"},
          Row{"llama", R"("block_types":["odd"])", "unsupported: block_types"},
          Row{"llama", R"("block_types":["attention","none","mlp"])", "1 full 2x16; 1 none"},
          // Letters and flags
          Row{"nemotron_h", R"("hybrid_override_pattern":"")", "wrong_type: hybrid_override_pattern"},
          Row{"nemotron_h", R"("hybrid_override_pattern":7)", "wrong_type: hybrid_override_pattern"},
          Row{"nemotron_h", R"("hybrid_override_pattern":"*-*")", "conflict: hybrid_override_pattern"},
          Row{"nemotron_h", R"("hybrid_override_pattern":"*?")", "unsupported: hybrid_override_pattern"},
          Row{"nemotron_h", R"("hybrid_override_pattern":"*E")", "1 full 2x16; 1 none"},
          Row{"llama", R"("hybrid_layer_pattern":[2,0])", "out_of_range: hybrid_layer_pattern"},
          Row{"llama", R"("hybrid_layer_pattern":[0,1],"sliding_window":8)", "1 full 2x16; 1 window 8 2x16"},
          // Numbers of layers
          Row{"llama", R"("attn_layer_indices":7)", "wrong_type: attn_layer_indices"},
          Row{"llama", R"("attn_layer_indices":[2])", "out_of_range: attn_layer_indices"},
          Row{"llama", R"("attn_layer_indices":[0,1])", "2 full 2x16"},
          Row{"mamba2_ssm", R"("attn_layer_idx":[0,1],"attn_cfg":{"d_conv":4})", "unsupported: attn_cfg.d_conv"},
          Row{"llama", R"("linear_attn_config":7)", "2 full 2x16"},
          Row{"llama", R"("linear_attn_config":{"num_heads":2})", "missing: linear_attn_config.kda_layers"},
          Row{"llama", R"("linear_attn_config":{"kda_layers":[0]})", "out_of_range: linear_attn_config.kda_layers"},
          // Windows
          Row{"llama", R"("sliding_window":-1)", "2 full 2x16"},
          Row{"mistral", R"("sliding_window":-1)", "2 full 2x16"},
          Row{"mistral", R"("sliding_window":-2)", "out_of_range: sliding_window"},
          Row{"mistral", R"("sliding_window":8,"max_position_embeddings":8)", "2 full 2x16"},
          Row{"mistral", R"("sliding_window":8,"max_position_embeddings":"long")", "2 window 8 2x16"},
          Row{"llama", R"("layer_types":["local","local"],"sliding_window":8,"max_position_embeddings":8)",
              "2 full 2x16"},
          Row{"llama", R"("layer_types":["local","full"],"sliding_window":8,"use_sliding_window":null)",
              "1 window 8 2x16; 1 full 2x16"},
          Row{"smollm3", R"("use_sliding_window":true,"sliding_window":8)", "2 full 2x16"},
          Row{"smollm3", R"("use_sliding_window":true,"sliding_window":8,"max_window_layers":1)",
              "1 full 2x16; 1 window 8 2x16"},
          Row{"mistral", R"("sliding_window":8,"swa_v_head_dim":8)", "2 window 8 2x16/8"},
          Row{"mistral", R"("sliding_window":8,"swa_head_dim":32,"swa_v_head_dim":8)", "2 window 8 2x32/8"},
          Row{"llama", R"("layer_types":["sliding_attention","full_attention"])", "missing: sliding_window"},
          Row{"llama",
              R"("layer_types":["sliding_attention","full_attention"],"sliding_window":8,"use_sliding_window":false)",
              "conflict: use_sliding_window"},
          // GPT-Neo's words with the number of their repeats
          Row{"gpt_neo", R"("attention_types":[[["global","local"],1]],"window_size":8)",
              "1 full 2x16; 1 window 8 2x16"},
          Row{"gpt_neo", R"("attention_types":[[["global","local","global"],2]],"window_size":8)",
              "1 full 2x16; 1 window 8 2x16"},
          Row{"gpt_neo", R"("attention_types":null)", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":7)", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[7])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[["global"]]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[["global"],0]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[["global"],0],[["global"],2]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[["global",2]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[[],2]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[["global"],1]])", "conflict: attention_types"},
          Row{"gpt_neo", R"("attention_types":[[["odd"],2]])", "unsupported: attention_types"},
          // Llama 4's chunks
          Row{"llama", R"("attention_chunk_size":8)", "unsupported: attention_chunk_size"},
          Row{"llama4", R"("attention_chunk_size":8,"no_rope_layers":[1,0])", "1 chunked 8 2x16; 1 full 2x16"},
          Row{"llama4", R"("attention_chunk_size":8,"no_rope_layers":[1,7])", "out_of_range: no_rope_layers"},
          Row{"llama4", R"("attention_chunk_size":8,"no_rope_layers":[],"no_rope_layer_interval":2)",
              "1 chunked 8 2x16; 1 full 2x16"},
          // Blocks of pruned models
          Row{"deci", R"("block_configs":[{},{"attention":{}}])", "missing: block_configs"},
          Row{"deci", R"("block_configs":[{"attention":{"num_key_value_heads":1}},{"attention":{"no_op":true}}])",
              "1 full 1x16; 1 none"},
          Row{"deci", R"("block_configs":[{"attention":{"n_heads_in_group":4}},{"attention":{"no_op":false}}])",
              "1 full 1x16; 1 full 2x16"},
          Row{"deci", R"("block_configs":[{"attention":{"n_heads_in_group":3}},{"attention":{}}])",
              "not_divisible: block_configs"},
          Row{"deci", R"("block_configs":[{"attention":{"n_heads_in_group":0}},{"attention":{}}])",
              "out_of_range: block_configs"},
          Row{"deci",
              R"("block_configs":[{"attention":{"window_length":8}},{"attention":{"replace_with_linear":true}}])",
              "1 window 8 2x16; 1 none"},
          Row{"deci", R"("block_configs":[{"attention":{"window_length":"x"}},{"attention":{}}])",
              "wrong_type: block_configs"},
          Row{"deci",
              R"("block_configs":[{"attention":{"mamba":{}}},{"attention":{}}],"mamba_num_heads":2,"mamba_head_dim":4,)"
              R"("mamba_d_state":8,"mamba_d_conv":4,"mamba_n_groups":1)",
              "1 recurrent 64:bf16 72:bf16; 1 full 2x16"},
          // Encoders beside a decoder
          Row{"t5", R"("decoder_layers":0,"cross_attention_layers":[0])", "out_of_range: decoder_layers"},
          Row{"t5", R"("num_decoder_layers":1)", "1 full 2x16"},
          Row{"t5", R"("is_encoder_decoder":true)", "unsupported: is_encoder_decoder"},
          Row{"whisper", R"("is_encoder_decoder":true,"max_source_positions":1500)", "2 full 2x16; 2 cross 1500 2x16"},
          Row{"llama", R"("cross_attention_layers":[1])", "1 full 2x16; 1 cross 0 2x16"},
          // Layers that read another's cache
          Row{"llama", R"("use_cla":true)", "missing: cla_share_factor"},
          Row{"llama", R"("use_cla":true,"cla_share_factor":2)", "1 full 2x16; 1 shared"},
          Row{"llama", R"("num_kv_shared_layers":2)", "conflict: num_kv_shared_layers"},
          Row{"llama", R"("num_kv_shared_layers":1)", "1 full 2x16; 1 shared"},
      }) {
    CAPTURE(type);
    CAPTURE(rest);
    CHECK(outcome(config(type, rest)) == expected);
  }
}

/// A letter for each layer in order: full, window, chunked, recurrent, shared, none, latent, x for cross attention.
std::string order(std::string_view text) {
  const auto model = import_config_text(text);
  if (!model) return std::string(std::string_view(code_name(model.error().code))) + ": " + model.error().field;
  std::string out;
  for (const LayerRun& run : model->layers) {
    out.append(run.count, run.kind == LayerKind::cross ? 'x' : *kind_name(run.kind));
  }
  return out;
}

TEST_CASE("which layers are which") {
  const std::string delta =
      R"("linear_attn_config":{"num_heads":2,"head_dim":8,"short_conv_kernel_size":4,"kda_layers":)";
  for (const auto& [type, rest, expected] : {
           std::tuple{"jamba", std::string(R"("attn_layer_period":3,"attn_layer_offset":2)"), "rrfrrfrr"},
           std::tuple{"jamba", std::string(R"("attn_layer_period":3,"attn_layer_offset":0)"), "frrfrrfr"},
           std::tuple{"jamba", std::string(R"("attn_layer_period":7,"attn_layer_offset":5)"), "rrrrrfrr"},
           std::tuple{"qwen3_next", std::string(R"("full_attention_interval":3)"), "rrfrrfrr"},
           std::tuple{"kimi_linear", delta + "[1,2,4,8]}", "rrfrfffr"},
           std::tuple{"kimi_linear", delta + R"([1,2,4,8],"full_attn_layers":[3,5,6,7]})", "rrfrfffr"},
           std::tuple{"kimi_linear", delta + R"([1,2,4,8],"full_attn_layers":[3,5,6]})",
                      "conflict: linear_attn_config.full_attn_layers"},
           std::tuple{"llama", std::string(R"("attn_type_list":[1,1,0,1,1,1,0,1],"linear_kind":"lightning")"),
                      "ffrfffrf"},
           std::tuple{"lfm2", std::string(R"("full_attn_idxs":[2,6],"conv_L_cache":3)"), "rrfrrrfr"},
           std::tuple{"mamba2_ssm", std::string(R"("attn_layer_idx":[2,6])"), "rrfrrrfr"},
           std::tuple{"mamba2_ssm", std::string(R"("attn_layer_idx":[],"attn_cfg":{"d_conv":4})"), "rrrrrrrr"},
           std::tuple{"mamba2_ssm", std::string(R"("attn_layer_idx":[3],"attn_cfg":{"d_conv":0})"), "rrrfrrrr"},
           std::tuple{"llama", std::string(R"("cross_attention_layers":[0,5])"), "xffffxff"},
           std::tuple{"recurrent_gemma", std::string(R"("block_types":["recurrent","recurrent","attention"])"),
                      "rrwrrwrr"},
           std::tuple{"llama", std::string(R"("block_types":["none","attention"],"attention_window_size":0)"),
                      "nfnfnfnf"},
           std::tuple{"nemotron_h", std::string(R"("hybrid_override_pattern":"M*-EM*--","mamba_num_heads":4)"),
                      "rfnnrfnn"},
           std::tuple{"exaone4", std::string(R"("sliding_window":8,"sliding_window_pattern":"LLG")"), "wwfwwfww"},
           std::tuple{"gemma3", std::string(R"("sliding_window":8,"sliding_window_pattern":3)"), "wwfwwfww"},
           std::tuple{"smollm3", std::string(R"("use_sliding_window":true,"sliding_window":8,"max_window_layers":5)"),
                      "fffffwww"},
           std::tuple{"qwen2", std::string(R"("use_sliding_window":true,"sliding_window":8,"num_hidden_layers":30)"),
                      "ffffffffffffffffffffffffffffww"},
           std::tuple{"gpt_neo",
                      std::string(R"("attention_types":[[["global","local"],3],[["local"],4]],"window_size":8)"),
                      "fwfwfwww"},
           std::tuple{"gpt_neo", std::string(R"("attention_types":[[["global","local"],4]],"window_size":8)"),
                      "fwfwfwfw"},
           std::tuple{"gpt_neo", std::string(R"("attention_types":[[["global"],4096]])"), "ffffffff"},
           std::tuple{"gpt_neo", std::string(R"("attention_types":[[["global"],4097]])"), "conflict: attention_types"},
           std::tuple{"gpt_neo", std::string(R"("attention_types":[[["global"],7]])"), "conflict: attention_types"},
           std::tuple{"gpt_neo", std::string(R"("attention_types":[[["global"],8,1]])"), "conflict: attention_types"},
           std::tuple{"llama4", std::string(R"("attention_chunk_size":8,"no_rope_layer_interval":3)"), "ccfccfcc"},
           std::tuple{"llama4", std::string(R"("attention_chunk_size":8,"no_rope_layers":[1,1,0,1,1,1,0,1])"),
                      "ccfcccfc"},
           std::tuple{"llama", std::string(R"("num_kv_shared_layers":3)"), "fffffsss"},
           std::tuple{"llama", std::string(R"("num_kv_shared_layers":7)"), "fsssssss"},
           std::tuple{"llama", std::string(R"("num_kv_shared_layers":8)"), "conflict: num_kv_shared_layers"},
           std::tuple{"llama", std::string(R"("use_cla":true,"cla_share_factor":3)"), "fssfssfs"},
           std::tuple{"llama", std::string(R"("use_cla":true,"cla_share_factor":1)"), "ffffffff"},
           std::tuple{"t5", std::string(R"("num_decoder_layers":3,"decoder_layers":5)"), "fff"},
           std::tuple{"t5", std::string(R"("decoder_layers":5)"), "fffff"},
           // A window as long as the context never fills; where nothing says which layers slide, only such a one is
           // read.
           std::tuple{"odd", std::string(R"("sliding_window":8,"max_position_embeddings":8)"), "ffffffff"},
           std::tuple{"odd", std::string(R"("sliding_window":8,"max_position_embeddings":9)"),
                      "unsupported: sliding_window"},
           std::tuple{"odd", std::string(R"("sliding_window":0)"), "ffffffff"},
           std::tuple{"mistral", std::string(R"("sliding_window":8,"max_position_embeddings":9)"), "wwwwwwww"},
           std::tuple{"llama",
                      std::string(R"("layer_types":["local","full","local","full","full","full","full","full"],)"
                                  R"("sliding_window":8,"max_position_embeddings":8)"),
                      "ffffffff"},
           // The indexer of GLM-5.2: the first layers own one, then one layer of each so many.
           std::tuple{"glm_moe_dsa", std::string(R"("kv_lora_rank":8,"qk_rope_head_dim":4)"), "llllllll"},
           // LongCat-Flash counts pairs.
           std::tuple{"longcat_flash", std::string(R"("num_hidden_layers":null,"num_layers":3)"), "ffffff"},
           // Caches side by side become runs of their own.
           std::tuple{"falcon_h1", std::string(R"("mamba_n_heads":4)"), "ffffffffrrrrrrrr"},
       }) {
    CAPTURE(type);
    CAPTURE(rest);
    CHECK(order(config(type, R"("num_hidden_layers":8,)" + rest)) == expected);
  }
}

TEST_CASE("which layers own an indexer") {
  const auto owners = [](std::string_view rest) {
    const auto model = import_config_text(config(
        "glm_moe_dsa",
        R"("num_hidden_layers":9,"kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":32,)" + std::string(rest)));
    REQUIRE(model);
    std::string out;
    for (const LayerRun& run : model->layers) out.append(run.count, run.indexer_width == 32 ? 'i' : '.');
    return out;
  };
  CHECK(owners(R"("index_topk":2048)") == "iiiiiiiii");
  CHECK(owners(R"("index_topk_freq":1)") == "iiiiiiiii");
  CHECK(owners(R"("index_topk_freq":0)") == "iiiiiiiii");
  // From the layer before the offset on, one of each so many; all of those before it
  CHECK(owners(R"("index_topk_freq":3,"index_skip_topk_offset":1)") == "i..i..i..");
  CHECK(owners(R"("index_topk_freq":4,"index_skip_topk_offset":3)") == "iii...i..");
  CHECK(owners(R"("index_topk_freq":3,"indexer_types":["full","shared","full","full","shared","full","full","full",)"
               R"("full"])") == "i.ii.iiii");
}

TEST_CASE("heads and widths") {
  for (
      const auto& [type, rest, expected] : {
          Row{"llama", R"("num_key_value_heads":null,"n_kv_heads":null)", "2 full 4x16"},
          Row{"llama", R"("num_key_value_heads":0)", "out_of_range: num_key_value_heads"},
          Row{"llama", R"("num_key_value_heads":[null,2])", "1 full 4x16; 1 full 2x16"},
          Row{"llama", R"("num_key_value_heads":[2])", "conflict: num_key_value_heads"},
          Row{"llama", R"("num_key_value_heads":[2,"x"])", "wrong_type: num_key_value_heads[1]"},
          Row{"llama", R"("num_key_value_heads":3)", "not_divisible: num_key_value_heads"},
          Row{"llama", R"("num_attention_heads":0)", "out_of_range: num_attention_heads"},
          Row{"llama", R"("num_attention_heads":null)", "missing: num_attention_heads"},
          Row{"llama", R"("num_attention_heads":null,"num_key_value_heads":null)", "missing: num_attention_heads"},
          Row{"llama", R"("head_dim":null)", "2 full 2x16"},
          Row{"llama", R"("head_dim":0,"hidden_size":128)", "2 full 2x32"},
          Row{"llama", R"("head_dim":1)", "2 full 2x1"},
          Row{"llama", R"("head_dim":null,"hidden_size":62)", "missing: head_dim"},
          Row{"llama", R"("head_dim":null,"hidden_size":null)", "missing: hidden_size"},
          Row{"llama", R"("head_dim":null,"num_attention_heads":[4,8])", "missing: head_dim"},
          Row{"gpt_bigcode", "", "2 full 1x16"},
          Row{"gpt_bigcode", R"("multi_query":false)", "2 full 2x16"},
          Row{"chatglm", R"("multi_query_attention":false)", "2 full 4x16"},
          Row{"chatglm", R"("multi_query_attention":true)", "2 full 2x16"},
          Row{"chatglm", R"("multi_query_attention":null)", "2 full 2x16"},
          Row{"mpt", R"("attn_config":{"attn_type":"multiquery_attention"})", "2 full 1x16"},
          Row{"llama", R"("attention_k_eq_v":true)", "2 full 2x16/0"},
          // Latent rows
          Row{"deepseek_v3", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"qk_nope_head_dim":16,"v_head_dim":16)",
              "2 latent 12"},
          Row{"deepseek_v3", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"use_mla":false)", "2 full 2x16"},
          Row{"minicpm3", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"hidden_size":62)", "2 latent 12"},
          // Indexers
          Row{"deepseek_v32", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":1)", "2 latent 12+1"},
          Row{"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":1})", "2 full 2x16+1"},
          Row{"deepseek_v32",
              R"("kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":32,"indexer_types":["full","shared"])",
              "1 latent 12+32; 1 latent 12"},
          Row{"deepseek_v32", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":32,"indexer_types":["full"])",
              "conflict: indexer_types"},
          Row{"deepseek_v32", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":32,"indexer_types":"full")",
              "conflict: indexer_types"},
          Row{"deepseek_v32",
              R"("kv_lora_rank":8,"qk_rope_head_dim":4,"index_head_dim":32,"indexer_types":["full","odd"])",
              "unsupported: indexer_types"},
          Row{"minimax_m3", R"("sparse_attention_config":7)", "2 full 2x16"},
          Row{"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":0})", "2 full 2x16"},
          Row{"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":32})", "2 full 2x16+32"},
          Row{"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":32,"use_sparse_attention":false})",
              "2 full 2x16"},
          Row{"minimax_m3", R"("sparse_attention_config":{"sparse_index_dim":32,"use_sparse_attention":1})",
              "2 full 2x16+32"},
          Row{"minimax_m3",
              R"("sparse_attention_config":{"sparse_index_dim":32,"use_sparse_attention":true,"sparse_attention_freq":[null,1]})",
              "1 full 2x16; 1 full 2x16+32"},
          // Compressed rows: a raw window beside one entry for each group of tokens; of the smallest groups an indexer
          Row{"deepseek_v4", R"("compress_ratios":[8,16],"sliding_window":4,"index_head_dim":32)",
              "2 window 4 2x16/0; 1 compressed 8 latent 32+32; 1 compressed 16 latent 32"},
          Row{"deepseek_v4", R"("compress_ratios":[16,8],"sliding_window":4,"index_head_dim":32)",
              "2 window 4 2x16/0; 1 compressed 16 latent 32; 1 compressed 8 latent 32+32"},
          Row{"deepseek_v4", R"("compress_ratios":[1,2],"sliding_window":4,"index_head_dim":32)",
              "2 window 4 2x16/0; 1 compressed 1 latent 32+32; 1 compressed 2 latent 32"},
          Row{"deepseek_v4", R"("compress_ratios":[0,4],"sliding_window":4)",
              "2 window 4 2x16/0; 1 compressed 4 latent 32"},
          Row{"deepseek_v4", R"("compress_ratios":["x",4],"sliding_window":4)", "wrong_type: compress_ratios"},
          Row{"deepseek_v4",
              R"("layer_types":["compressed_sparse_attention","full"],"compress_ratios":[0,4],"sliding_window":4)",
              "conflict: compress_ratios"},
          Row{"deepseek_v4",
              R"("layer_types":["compressed_sparse_attention","full"],"compress_ratios":[null,4],"sliding_window":4)",
              "conflict: compress_ratios"},
          Row{"deepseek_v4",
              R"("layer_types":["compressed_sparse_attention","full"],"compress_ratios":[4],"sliding_window":4)",
              "conflict: compress_ratios"},
      }) {
    CAPTURE(type);
    CAPTURE(rest);
    CHECK(outcome(config(type, rest)) == expected);
  }
}

TEST_CASE("as many compressed layers as there may be are read before one gives up waiting") {
  std::string ratios = R"("num_hidden_layers":4096,"sliding_window":4,"index_head_dim":32,"compress_ratios":[16)";
  for (int i = 1; i < 4096; ++i) ratios += ",8";
  CHECK(outcome(config("deepseek_v4", ratios + "]")) ==
        "4096 window 4 2x16/0; 1 compressed 16 latent 32; 4095 compressed 8 latent 32+32");
}

TEST_CASE("what a latent row stands for") {
  const auto run = [](std::string_view type, std::string_view rest) {
    const auto model =
        import_config_text(config(type, R"("kv_lora_rank":8,"qk_rope_head_dim":4,)" + std::string(rest)));
    REQUIRE(model);
    REQUIRE(model->layers.size() == 1);
    for (const ImportedField& field : model->defaulted) {
      if (field.name == "v_head_dim") CHECK(field.value == digits(model->layers.front().expanded_value_width));
    }
    const bool noted = std::ranges::any_of(model->defaulted, [](const auto& one) { return one.name == "v_head_dim"; });
    return std::pair(model->layers.front(), noted);
  };
  LayerRun latent{.count = 2, .kind = LayerKind::latent, .latent_width = 12, .latent_value_width = 8};
  latent.expanded_heads = 4;
  latent.expanded_key_width = 4 + 5;
  latent.expanded_value_width = 7;
  CHECK(run("deepseek_v3", R"("qk_nope_head_dim":5,"v_head_dim":7)") == std::pair(latent, false));
  // MiniCPM3 leaves out how wide V is: hidden_size ÷ heads, where that is whole.
  latent.expanded_value_width = 16;
  CHECK(run("minicpm3", R"("qk_nope_head_dim":5)") == std::pair(latent, true));
  latent.expanded_value_width = 0;
  CHECK(run("minicpm3", R"("qk_nope_head_dim":5,"hidden_size":62)") == std::pair(latent, false));
  CHECK(run("minicpm3", R"("qk_nope_head_dim":5,"hidden_size":null)") == std::pair(latent, false));
  CHECK(run("minicpm3", R"("qk_nope_head_dim":5,"hidden_size":1)") == std::pair(latent, false));
}

TEST_CASE("the query heads of a model are the most of any layer, and none where no layer attends") {
  const auto heads = [](std::string_view type, std::string_view rest) {
    const auto model = import_config_text(config(type, rest));
    REQUIRE(model);
    return model->query_heads;
  };
  CHECK(heads("llama", "") == 4);
  CHECK(heads("llama", R"("num_attention_heads":[4,8])") == 8);
  CHECK(heads("mistral", R"("sliding_window":8,"swa_num_attention_heads":6)") == 6);
  CHECK(heads("mamba", "") == 0);
}

TEST_CASE("defaults that follow from other fields are stated") {
  const auto defaulted = [](std::string_view rest, std::string_view name) {
    const auto model = import_config_text(config("llama", rest));
    REQUIRE(model);
    for (const ImportedField& field : model->defaulted) {
      if (field.name == name) return field.value;
    }
    return std::string("none");
  };
  CHECK(defaulted(R"("head_dim":null,"hidden_size":72)", "head_dim") == "18");
  CHECK(defaulted(R"("num_key_value_heads":null)", "num_key_value_heads") == "4");
}

TEST_CASE("refusals of layers say what was found") {
  const auto message = [](std::string_view type, std::string_view rest) {
    const auto model = import_config_text(config(type, rest));
    REQUIRE_FALSE(model);
    return model.error().message;
  };
  CHECK(message("nemotron_h", R"("hybrid_override_pattern":"*?")") ==
        R"(has the letter "?", a kind of layer that is not known)");
  CHECK(message("kimi_linear", R"("linear_attn_config":{"kda_layers":[1],"full_attn_layers":[1,2]})") ==
        "and kda_layers name 3 layers of 2");
  CHECK(message("deepseek_v4", R"("compress_ratios":[8,16],"sliding_window":4,"head_dim":8388609)") ==
        "comes to entries of 16777218 values: at most 2^24 are accepted");
}

TEST_CASE("states of recurrent layers") {
  const char* const kHuge =
      R"("mamba_num_heads":1,"mamba_head_dim":1,"mamba_d_state":16777216,"mamba_n_groups":65536,"mamba_d_conv":16777216)";
  for (
      const auto& [type, rest, expected] : {
          // RWKV: heads of 64 × 64, and two rows of shifted tokens
          Row{"rwkv6", "", "2 recurrent 1024:fp32 128:bf16"},
          Row{"rwkv6", R"("attention_hidden_size":128)", "2 recurrent 2048:fp32 128:bf16"},
          Row{"rwkv6", R"("head_dim":48)", "not_divisible: head_dim"},
          Row{"rwkv6", R"("hidden_size":null)", "missing: hidden_size"},
          // RecurrentGemma: one value a channel, and a convolution of four
          Row{"recurrent_gemma", R"("block_types":["recurrent"],"lru_width":96)", "2 recurrent 96:fp32 288:bf16"},
          Row{"recurrent_gemma", R"("block_types":["recurrent"])", "2 recurrent 64:fp32 192:bf16"},
          // Mamba in its two forms
          Row{"llama",
              R"("layer_types":["mamba","full"],"mamba_d_state":8,"mamba_dt_rank":4,"mamba_d_conv":4,"mamba_expand":2)",
              "1 recurrent 1024:bf16 384:bf16; 1 full 2x16"},
          Row{"llama",
              R"("layer_types":["mamba","full"],"mamba_d_state":8,"mamba_d_conv":4,"mamba_d_ssm":128,"mamba_head_dim":16,"mamba_n_groups":1)",
              "1 recurrent 1024:bf16 432:bf16; 1 full 2x16"},
          Row{"llama",
              R"("layer_types":["mamba","full"],"mamba_d_state":8,"mamba_d_conv":4,"mamba_d_ssm":100,"mamba_head_dim":16,"mamba_n_groups":1)",
              "not_divisible: mamba_expand"},
          Row{"llama",
              R"("layer_types":["mamba","full"],"mamba_num_heads":2,"mamba_d_state":8,"mamba_d_conv":4,"head_dim":null)",
              "missing: mamba_n_groups"},
          // The rank of the steps alone tells Mamba, unless the type or a number of heads says Mamba-2.
          Row{"mamba2", R"("mamba_d_state":8,"mamba_dt_rank":4,"mamba_n_groups":1,"mamba_d_ssm":128,"head_dim":16)",
              "2 recurrent 1024:bf16 432:bf16"},
          Row{"llama",
              R"("layer_types":["mamba","full"],"mamba_num_heads":8,"mamba_d_state":8,"mamba_dt_rank":4,"mamba_d_conv":4,)"
              R"("mamba_expand":2,"mamba_n_groups":1)",
              "1 recurrent 1024:bf16 432:bf16; 1 full 2x16"},
          Row{"llama", R"("layer_types":["mamba","full"])", "unsupported: layer_types"},
          Row{"mamba2", kHuge, "out_of_range: mamba_d_state"},
          Row{"jamba", R"("layer_types":["mamba","full"],"mamba_ssm_dtype":"float8")", "unsupported: mamba_ssm_dtype"},
          Row{"jamba", R"("layer_types":["mamba","full"],"mamba_ssm_dtype":"fp8")", "unsupported: mamba_ssm_dtype"},
          Row{"jamba", R"("layer_types":["mamba","full"],"mamba_ssm_dtype":"float16")",
              "1 recurrent 2048:fp16 384:bf16; 1 full 2x16"},
          Row{"jamba", R"("layer_types":["mamba","full"],"mamba_ssm_dtype":"float32")",
              "1 recurrent 2048:fp32 384:bf16; 1 full 2x16"},
          // Lightning attention by its word
          Row{"minimax_m1", R"("layer_types":["linear_attention","full"])", "1 recurrent 1024:bf16; 1 full 2x16"},
          // … of the first layer's heads
          Row{"minimax_m1",
              R"("layer_types":["linear_attention","full"],"num_attention_heads":[4,8],"head_dim":[16,32])",
              "1 recurrent 1024:bf16; 1 full 2x32"},
          // LFM2's short convolution
          Row{"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3)", "1 recurrent 0:bf16 128:bf16; 1 full 2x16"},
          Row{"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3,"conv_dim":32)",
              "1 recurrent 0:bf16 64:bf16; 1 full 2x16"},
          Row{"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":16777217)", "out_of_range: conv_L_cache"},
      }) {
    CAPTURE(type);
    CAPTURE(rest);
    CHECK(outcome(config(type, rest)) == expected);
  }
}

TEST_CASE("where no count of layers is given, the lists of layers are counted") {
  const auto without = [](std::string_view rest) {
    return outcome(R"({"model_type":"llama","hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,)" +
                   std::string(rest) + "}");
  };
  CHECK(without(R"("layer_types":["full_attention","full_attention","none"])") == "2 full 2x16; 1 none");
  CHECK(without(R"("block_configs":[{"attention":{}}])") == "1 full 2x16");
  CHECK(without(R"("layer_types":[])") == "missing: num_hidden_layers");
  CHECK(without(R"("layer_types":7)") == "missing: num_hidden_layers");
  std::string many = R"("layer_types":["none")";
  for (int i = 1; i < 4096; ++i) many += R"(,"none")";
  CHECK(without(many + "]") == "4096 none");
  CHECK(without(many + R"(,"none"])") == "missing: num_hidden_layers");
}

TEST_CASE("the language model is found within the config, and other files are named") {
  for (const auto& [text, expected] : {
           std::pair{
               R"({"text_config":{"text_config":{"text_config":{"text_config":{"text_config":{"model_type":"llama",)"
               R"("num_hidden_layers":1,"num_attention_heads":2,"head_dim":8}}}}}})",
               "missing: text_config.text_config.text_config.text_config.num_hidden_layers"},
           std::pair{
               R"({"text_config":7,"model_type":"llama","num_hidden_layers":1,"num_attention_heads":2,"head_dim":8})",
               "1 full 2x8"},
           std::pair{R"({"ssm_cfg":{"layer":"Mamba2"},"d_model":64,"n_layer":2})", "2 recurrent 16384:bf16 1152:bf16"},
           std::pair{R"({"ssm_cfg":{"layer":"Mamba1"},"d_model":64,"n_layer":2})", "2 recurrent 2048:bf16 384:bf16"},
           std::pair{R"({"ssm_cfg":{},"d_model":64,"n_layer":2})", "2 recurrent 2048:bf16 384:bf16"},
           std::pair{R"({"producer":{"name":"modelopt"},"quantization":{}})", "unsupported: quantization"},
           std::pair{R"({"producer":{"name":"modelopt"}})", "missing: num_hidden_layers"},
           std::pair{R"({"weight_map":{}})", "unsupported: weight_map"},
           std::pair{R"({"peft_type":"LORA"})", "unsupported: peft_type"},
           std::pair{R"({"added_tokens":[]})", "unsupported: tokenizer_class"},
           std::pair{R"({"tokenizer_class":"LlamaTokenizer"})", "unsupported: tokenizer_class"},
           std::pair{R"({"tokenizer_class":"LlamaTokenizer","model_type":"llama"})", "missing: num_hidden_layers"},
           std::pair{"7", "wrong_type: config"},
           // Of an unknown model type, an encoder is known by its class.
           std::pair{R"({"model_type":"odd","architectures":["OddForMaskedLM"]})", "no_cache: architectures"},
           std::pair{R"({"model_type":"odd","architectures":["OddForCausalLM"]})", "missing: num_hidden_layers"},
           std::pair{R"({"model_type":"odd","architectures":[7]})", "missing: num_hidden_layers"},
           std::pair{R"({"model_type":"odd","architectures":[]})", "missing: num_hidden_layers"},
           std::pair{R"({"model_type":"odd","architectures":"OddForMaskedLM"})", "missing: num_hidden_layers"},
           std::pair{R"({"model_type":"llama","is_causal":false})", "no_cache: is_causal"},
           std::pair{R"({"model_type":"bert"})", "no_cache: model_type"},
           std::pair{
               R"({"model_type":"odd","num_hidden_layers":1,"num_attention_heads":2,"head_dim":8,"memory_tokens":4})",
               "unsupported: memory_tokens"},
       }) {
    CAPTURE(text);
    CHECK(outcome(text) == expected);
  }
}

TEST_CASE("a model is named by where it comes from, or by its type") {
  const auto name = [](std::string_view rest) {
    const auto model = import_config_text(config("llama", rest));
    return model ? model->name : "refused";
  };
  CHECK(name(R"("_name_or_path":"meta-llama/Llama-3.1-8B")") == "meta-llama/Llama-3.1-8B");
  CHECK(name(R"("_name_or_path":"")") == "llama");
  CHECK(name(R"("_name_or_path":7)") == "llama");
  const auto untyped = import_config_text(R"({"ssm_cfg":{},"d_model":64,"n_layer":2})");
  REQUIRE(untyped);
  CHECK(untyped->name == "mamba_ssm");
}

// The plain model: 2 × (12,288 of attention + 24,576 of the MLP + 2 norms) + embedding, head and the last norm.
constexpr u64 kAttention = 12'288, kMlp = 24'576, kPlain = 2 * (kAttention + kMlp + 128) + 12'800 + 64;

TEST_CASE("terms of the parameter count") {
  struct Term {
    const char* type;
    const char* rest;
    u64 count;
  };
  constexpr u64 kUnknown = 0;
  for (
      const auto& [type, rest, count] : {
          Term{"llama", "", kPlain},
          Term{"llama", R"("tie_word_embeddings":true)", kPlain - 6'400},
          Term{"llama", R"("pad_vocab_size_multiple":64)", kPlain + 2 * 28 * 64},
          Term{"llama", R"("lm_head_bias":true)", kPlain + 100},
          Term{"llama", R"("dense_intermediate_size":256)", kPlain + 2 * kMlp},
          // Biases: of Q, K and V (128 values) and of the output (64); of the MLP (256 and 64)
          Term{"llama", R"("attention_bias":true)", kPlain + 2 * 192},
          Term{"llama", R"("use_qkv_bias":true)", kPlain + 2 * 192},
          Term{"llama", R"("qkv_bias":true)", kPlain + 2 * 192},
          Term{"llama", R"("mlp_bias":true)", kPlain + 2 * 320},
          Term{"llama", R"("bias":true)", kPlain + 2 * 512},
          Term{"llama", R"("bias":false)", kPlain},
          // Norms of Q and K: by head, over all heads, or none
          Term{"qwen3", "", kPlain + 2 * 32},
          Term{"qwen3", R"("use_qk_norm":true)", kPlain + 2 * 32},
          Term{"qwen3", R"("use_qk_norm":false)", kPlain},
          Term{"cohere", "", kPlain - 6'400 - 2 * 64},
          Term{"cohere", R"("use_qk_norm":true)", kPlain - 6'400 - 2 * 64 + 2 * 96},
          Term{"qwen3_5", R"("layer_types":["full","full"])", kPlain + 2 * (64 * 64 + 32)},
          Term{"qwen3_5", R"("layer_types":["full","full"],"attn_output_gate":false)", kPlain + 2 * 32},
          // Falcon: norms with a bias, a plain MLP, one norm a layer where both parts run side by side
          Term{"falcon", R"("multi_query":false)", 2 * (kAttention + 16'384 + 128) + 6'400 + 128},
          Term{"falcon", R"("multi_query":false,"parallel_attn":false)", 2 * (kAttention + 16'384 + 256) + 6'400 + 128},
          Term{"falcon", R"("multi_query":false,"new_decoder_architecture":true)",
               2 * (kAttention + 16'384 + 256) + 6'400 + 128},
          // Mamba: in 16,384, x 128 × 36, dt 512 and out 8,192; convolution, dt bias, A and D 2,816, its bias 128
          Term{"mamba", R"("head_dim":null)", 2 * (16'384 + 4'608 + 512 + 8'192 + 2'816 + 128 + 64) + 6'400 + 64},
          Term{"mamba", R"("time_step_rank":4,"use_conv_bias":false)",
               2 * (16'384 + 4'608 + 512 + 8'192 + 2'816 + 64) + 6'400 + 64},
          // Which layers have experts (4 of the MLP's size and a router): all, or those that the config says
          Term{"mixtral", R"("num_local_experts":4)", kPlain + 2 * (3 * kMlp + 256)},
          Term{"mixtral", R"("num_local_experts":1)", kPlain},
          Term{"mixtral", R"("num_local_experts":4,"mlp_layer_types":["dense","sparse"])", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"mlp_layer_types":["dense"])", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"mlp_layer_types":"sparse")", kPlain + 2 * (3 * kMlp + 256)},
          Term{"mixtral", R"("num_local_experts":4,"mlp_only_layers":[1])", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"mlp_only_layers":["x"])", kPlain + 2 * (3 * kMlp + 256)},
          Term{"mixtral", R"("num_local_experts":4,"mlp_only_layers":1)", kPlain + 2 * (3 * kMlp + 256)},
          Term{"mixtral", R"("num_local_experts":4,"first_k_dense_replace":1)", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"moe_layer_freq":[0,1])", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"moe_layer_freq":[null,1])", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"moe_layer_freq":2)", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"moe_layer_freq":null)", kPlain + 2 * (3 * kMlp + 256)},
          Term{"mixtral", R"("num_local_experts":4,"decoder_sparse_step":2)", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"interleave_moe_layer_step":2)", kPlain + 3 * kMlp + 256},
          Term{"mixtral", R"("num_local_experts":4,"expert_layer_period":2,"expert_layer_offset":1)",
               kPlain + 3 * kMlp + 256},
          // Pruned blocks: an MLP of its own width, two thirds of a multiple rounded up to 256, or none
          Term{
              "deci",
              R"("block_configs":[{"attention":{},"ffn":{"intermediate_size":128}},{"attention":{},"ffn":{"no_op":true}}])",
              2 * kAttention + kMlp + 3 * 64 + 12'864},
          Term{
              "deci",
              R"("block_configs":[{"attention":{},"ffn":{"ffn_mult":1.5}},{"attention":{"no_op":true},"ffn":{"ffn_mult":1.5}}])",
              kAttention + 4 * kMlp + 3 * 64 + 12'864},
          // What is not known is not guessed.
          Term{"llama", R"("num_kv_shared_layers":1)", kUnknown},
          Term{"llama", R"("hidden_size_per_layer_input":0)", kPlain},
          Term{"llama", R"("hidden_size_per_layer_input":8)", kUnknown},
          Term{"llama", R"("use_cla":false)", kPlain},
          Term{"llama", R"("use_cla":true,"cla_share_factor":1)", kUnknown},
          Term{"llama", R"("word_embed_proj_dim":32)", kUnknown},
          Term{"llama", R"("word_embed_proj_dim":64)", kPlain},
          Term{"llama", R"("vocab_size":0)", kUnknown},
          Term{"llama", R"("intermediate_size":0)", kUnknown},
          Term{"llama", R"("index_head_dim":8)", kUnknown},
          Term{"llama", R"("kv_lora_rank":8,"use_mla":false)", kUnknown},
          Term{"llama", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"qk_nope_head_dim":16,"v_head_dim":0)", kUnknown},
          Term{"llama", R"("kv_lora_rank":8,"qk_rope_head_dim":4,"qk_nope_head_dim":0,"v_head_dim":16)", kUnknown},
          Term{"llama", R"("layer_types":["cross_attention","full"])", kUnknown},
          Term{"llama", R"("layer_types":["linear_attention","full"],"linear_kind":"lightning")", kUnknown},
          Term{"mixtral", R"("num_local_experts":4,"intermediate_size":0)", kUnknown},
          Term{"deci", R"("block_configs":[{"attention":{}},{"attention":{},"ffn":{"no_op":true}}])", kUnknown},
          Term{
              "deci",
              R"("block_configs":[{"attention":{},"ffn":{"replace_with_linear":true}},{"attention":{},"ffn":{"no_op":true}}])",
              kUnknown},
          Term{
              "deci",
              R"("block_configs":[{"attention":{},"ffn":{"intermediate_size":"x"}},{"attention":{},"ffn":{"no_op":true}}])",
              kUnknown},
          Term{"falcon_h1", R"("block_configs":[],"mamba_n_heads":4)", kUnknown},
          Term{"odd", "", kUnknown},
      }) {
    CAPTURE(type);
    CAPTURE(rest);
    CHECK(parameters(config(type, rest)) == (count == kUnknown ? "unknown" : digits(count)));
  }
  CHECK(parameters(config("llama", R"("vocab_size":"x")")) == "wrong_type: vocab_size");
  CHECK(parameters(config("llama", R"("pad_vocab_size_multiple":"x")")) == "wrong_type: pad_vocab_size_multiple");
}

}  // namespace
}  // namespace kvcap
