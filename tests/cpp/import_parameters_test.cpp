// Parameter counts against the tensors of each architecture, written out by their shapes (modelling code of
// transformers or of the model's repository). All sizes are different primes, or products of them, so that no two can
// be exchanged unseen.
#include <doctest/doctest.h>

#include <string>

#include "import_support.hpp"
#include "kvcap/import.hpp"

namespace kvcap {
namespace {

// Hidden size, vocabulary, MLP; 6 query heads and 3 KV heads of 13; experts: 5 of 29, of which a token visits 2.
constexpr u64 kH = 67, kV = 97, kM = 101, kD = 13, kQ = 6 * kD, kK = 3 * kD;
constexpr u64 kEmbedding = kV * kH;
constexpr u64 kAttend = kH * kQ + 2 * kH * kK + kQ * kH;   // q, k, v, o
constexpr u64 kGated = 3 * kH * kM, kPlain = 2 * kH * kM;  // gate, up, down; up, down
constexpr u64 kExpert = 3 * kH * 29;

struct Count {
  const char* type;
  const char* rest;
  u64 parameters;
  u64 visited;  ///< by one token; 0 where it is all of them
};

std::string config(const Count& row, int layers) {
  const std::string rest = row.rest;
  return R"({"model_type":")" + std::string(row.type) + R"(","num_hidden_layers":)" + std::to_string(layers) +
         R"(,"hidden_size":67,"num_attention_heads":6,"num_key_value_heads":3,"head_dim":13,)"
         R"("intermediate_size":101,"vocab_size":97)" +
         (rest.empty() ? "" : ",") + rest + "}";
}

void check_counts(int layers, std::initializer_list<Count> rows) {
  for (const Count& row : rows) {
    CAPTURE(row.type);
    CAPTURE(row.rest);
    const auto model = import_config_text(config(row, layers));
    if (!model) {
      FAIL_CHECK(model.error().field << ": " << model.error().message);
      continue;
    }
    CHECK(model->parameters.value_or(0) == row.parameters);
    CHECK(model->active_parameters.value_or(0) == row.visited);
  }
}

TEST_CASE("parameters of dense decoders") {
  check_counts(
      3,
      {
          {"llama", "", 2 * kEmbedding + 3 * (kAttend + kGated + 2 * kH) + kH, 0},
          // V of another width than K
          {"llama", R"("v_head_dim":11)",
           2 * kEmbedding + 3 * (kH * kQ + kH * kK + kH * 3 * 11 + 6 * 11 * kH + kGated + 2 * kH) + kH, 0},
          // K serves as V: no projection of V, and an output as wide as the queries
          {"llama", R"("attention_k_eq_v":true)",
           2 * kEmbedding + 3 * (kH * kQ + kH * kK + kQ * kH + kGated + 2 * kH) + kH, 0},
          // Biases of q, k and v (of three widths), of o; of gate and up, and of down
          {"internlm", R"("v_head_dim":11)",
           2 * kEmbedding + 3 * (kH * kQ + kH * kK + kH * 33 + 66 * kH + kQ + kK + 33 + kH + kGated + 2 * kH) + kH, 0},
          {"qwen2", "", 2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kGated + 2 * kH) + kH, 0},
          {"llama", R"("attention_bias":true)",
           2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kH + kGated + 2 * kH) + kH, 0},
          {"exaone", R"("attention_bias":true)", 2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kGated + 2 * kH) + kH,
           0},
          {"exaone", R"("add_qkv_bias":true)", 2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kGated + 2 * kH) + kH, 0},
          {"llama", R"("mlp_bias":true)", 2 * kEmbedding + 3 * (kAttend + kGated + 2 * kM + kH + 2 * kH) + kH, 0},
          {"exaone", R"("bias":true)",
           2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kH + kGated + 2 * kM + kH + 2 * kH) + kH, 0},
          // Norms of Q and K: head by head, or over all heads
          {"qwen3", "", 2 * kEmbedding + 3 * (kAttend + 2 * kD + kGated + 2 * kH) + kH, 0},
          {"olmo2", "", 2 * kEmbedding + 3 * (kAttend + kQ + kK + kGated + 2 * kH) + kH, 0},
          {"cohere", R"("use_qk_norm":true)", kEmbedding + 3 * (kAttend + kQ + kK + kGated + kH) + kH, 0},
          {"gemma2", "", kEmbedding + 3 * (kAttend + kGated + 4 * kH) + kH, 0},
          {"gemma3", "", kEmbedding + 3 * (kAttend + 2 * kD + kGated + 4 * kH) + kH, 0},
          // The first Qwen counts gate and up together.
          {"qwen", R"("intermediate_size":202)", 2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kGated + 2 * kH) + kH,
           0},
          // Norms with a bias
          {"stablelm", "", 2 * kEmbedding + 3 * (kAttend + kGated + 4 * kH) + 2 * kH, 0},
          {"nemotron", "", 2 * kEmbedding + 3 * (kAttend + kPlain + 4 * kH) + 2 * kH, 0},
          // GPT-2: a table of positions, a bias everywhere, a tied head
          {"gpt2", R"("n_positions":41)",
           kEmbedding + 41 * kH + 3 * (kAttend + kQ + 2 * kK + kH + kPlain + kM + kH + 4 * kH) + 2 * kH, 0},
          // OPT's table has two rows more.
          {"opt", R"("max_position_embeddings":41)",
           kEmbedding + 43 * kH + 3 * (kAttend + kQ + 2 * kK + kH + kPlain + kM + kH + 4 * kH) + 2 * kH, 0},
          // BLOOM norms its embedding.
          {"bloom", "", kEmbedding + 2 * kH + 3 * (kAttend + kQ + 2 * kK + kH + kPlain + kM + kH + 4 * kH) + 2 * kH, 0},
          // GPT-J: one norm a layer, no bias in attention, one in the head
          {"gptj", "", 2 * kEmbedding + kV + 3 * (kAttend + kPlain + kM + kH + 2 * kH) + 2 * kH, 0},
          {"phi", "", 2 * kEmbedding + kV + 3 * (kAttend + kQ + 2 * kK + kH + kPlain + kM + kH + 2 * kH) + 2 * kH, 0},
          {"gpt_neox", "", 2 * kEmbedding + 3 * (kAttend + kQ + 2 * kK + kH + kPlain + kM + kH + 4 * kH) + 2 * kH, 0},
          // Falcon: one norm where attention and MLP run side by side
          {"falcon", R"("multi_query":false,"parallel_attn":null)",
           kEmbedding + 3 * (kAttend + kPlain + 2 * kH) + 2 * kH, 0},
          {"falcon", R"("multi_query":false,"parallel_attn":false)",
           kEmbedding + 3 * (kAttend + kPlain + 4 * kH) + 2 * kH, 0},
          // MPT: norms without a bias, and an MLP whose width is a multiple of the hidden size: 4 unless stated
          {"mpt", R"("intermediate_size":null)", kEmbedding + 3 * (kAttend + 2 * kH * 4 * kH + 2 * kH) + kH, 0},
          {"mpt", R"("intermediate_size":null,"expansion_ratio":3)",
           kEmbedding + 3 * (kAttend + 2 * kH * 3 * kH + 2 * kH) + kH, 0},
          {"gpt2", R"("n_positions":41,"intermediate_size":null)",
           kEmbedding + 41 * kH + 3 * (kAttend + kQ + 2 * kK + kH + 2 * kH * 4 * kH + 4 * kH + kH + 4 * kH) + 2 * kH,
           0},
          // A vocabulary padded to a multiple of 41: 123 rows
          {"llama", R"("pad_vocab_size_multiple":41)", 2 * 123 * kH + 3 * (kAttend + kGated + 2 * kH) + kH, 0},
          {"llama", R"("pad_vocab_size_multiple":97)", 2 * kEmbedding + 3 * (kAttend + kGated + 2 * kH) + kH, 0},
      });
}

TEST_CASE("parameters of the smallest model") {
  // One of everything: 2 embeddings, 3 norms, 4 projections of attention and 3 of the MLP
  const auto count = [](const char* hidden, const char* words) {
    const auto model =
        import_config_text(std::string(R"({"model_type":"llama","num_hidden_layers":1,"head_dim":1,)"
                                       R"("num_attention_heads":1,"intermediate_size":1,"hidden_size":)") +
                           hidden + R"(,"vocab_size":)" + words + "}");
    REQUIRE(model);
    return model->parameters.value_or(0);
  };
  CHECK(count("1", "1") == 2 + 3 + 4 + 3);
  CHECK(count("0", "1") == 0);
  CHECK(count("1", "0") == 0);
}

TEST_CASE("parameters of latent attention") {
  // Rank 17, rotary key 7, key 19 and value 11 of each head; queries by way of rank 23, or at once
  constexpr u64 kRows = kH * (17 + 7) + 17 * 6 * (19 + 11) + 6 * 11 * kH;
  constexpr u64 kByRank = kH * 23 + 23 * 6 * (19 + 7), kAtOnce = kH * 6 * (19 + 7);
  constexpr u64 kRest = 2 * kEmbedding + kH;
  constexpr const char* kLatent = R"("kv_lora_rank":17,"qk_rope_head_dim":7,"qk_nope_head_dim":19,"v_head_dim":11)";
  const std::string by_rank = std::string(kLatent) + R"(,"q_lora_rank":23)";
  const std::string indexed = by_rank + R"(,"index_head_dim":31,"index_n_heads":2)";
  const std::string partly = indexed + R"(,"indexer_types":["full","full","shared"])";
  check_counts(
      3, {
             {"deepseek_v3", kLatent, kRest + 3 * (kRows + kAtOnce + 17 + kGated + 2 * kH), 0},
             {"deepseek_v3", by_rank.c_str(), kRest + 3 * (kRows + kByRank + 23 + 17 + kGated + 2 * kH), 0},
             // The smallest widths
             {"deepseek_v3", R"("kv_lora_rank":17,"qk_rope_head_dim":7,"qk_nope_head_dim":1,"v_head_dim":1)",
              kRest + 3 * (kH * (17 + 7) + 17 * 6 * 2 + 6 * kH + kH * 6 * 8 + 17 + kGated + 2 * kH), 0},
             // An indexer: its queries from the rank, its key and the weights of its heads from the hidden state, and a
             // norm of the key that has a bias
             {"deepseek_v32", indexed.c_str(),
              kRest + 3 * (kRows + kByRank + 23 + 17 + 23 * 2 * 31 + kH * 31 + kH * 2 + 2 * 31 + kGated + 2 * kH), 0},
             {"deepseek_v32", (by_rank + R"(,"index_head_dim":1,"index_n_heads":2)").c_str(),
              kRest + 3 * (kRows + kByRank + 23 + 17 + 23 * 2 + kH + kH * 2 + 2 + kGated + 2 * kH), 0},
             // What layers hold that share an indexer is not known.
             {"deepseek_v32", partly.c_str(), 0, 0},
         });
}

TEST_CASE("parameters of mixtures of experts") {
  // 5 experts of 29: gate, up and down, and a row of the router for each
  constexpr u64 kDenseLayer = kAttend + kGated + 2 * kH, kRest = 2 * kEmbedding + kH;
  constexpr u64 kMixture = kAttend + 5 * kExpert + 5 * kH + 2 * kH;
  constexpr u64 kIdle = 3 * kExpert;
  check_counts(
      3,
      {
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":2)", kRest + 3 * kMixture,
           kRest + 3 * (kMixture - kIdle)},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":4)", kRest + 3 * kMixture,
           kRest + 3 * (kMixture - kExpert)},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":1)", kRest + 3 * kMixture,
           kRest + 3 * (kMixture - 4 * kExpert)},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":0)", kRest + 3 * kMixture, 0},
          // A token that visits all leaves none idle.
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":5)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"num_experts_per_tok":7)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29)", kRest + 3 * kMixture, 0},
          // Experts as wide as the MLP where they have no width of their own
          {"mixtral", R"("num_experts":5)", kRest + 3 * (kAttend + 5 * kGated + 5 * kH + 2 * kH), 0},
          {"mixtral", R"("num_experts":2,"moe_intermediate_size":29)",
           kRest + 3 * (kAttend + 2 * kExpert + 2 * kH + 2 * kH), 0},
          {"mixtral", R"("num_experts":1,"moe_intermediate_size":29)", kRest + 3 * kDenseLayer, 0},
          // Which layers have experts
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"first_k_dense_replace":1)",
           kRest + kDenseLayer + 2 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"moe_layer_freq":[0,0,1])",
           kRest + 2 * kDenseLayer + kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"moe_layer_freq":2)",
           kRest + kDenseLayer + 2 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"moe_layer_freq":0)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"decoder_sparse_step":0)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"decoder_sparse_step":1)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"decoder_sparse_step":2)",
           kRest + 2 * kDenseLayer + kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"interleave_moe_layer_step":0)",
           kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"interleave_moe_layer_step":1)",
           kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"expert_layer_period":0)", kRest + 3 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"expert_layer_period":2,"expert_layer_offset":1)",
           kRest + 2 * kDenseLayer + kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"expert_layer_period":2,"expert_layer_offset":0)",
           kRest + kDenseLayer + 2 * kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"mlp_only_layers":[2,0])",
           kRest + 2 * kDenseLayer + kMixture, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"mlp_layer_types":["sparse","dense","sparse"])",
           kRest + kDenseLayer + 2 * kMixture, 0},
          // Dense layers of another width
          {"mixtral",
           R"("num_experts":5,"moe_intermediate_size":29,"first_k_dense_replace":1,"dense_intermediate_size":37)",
           kRest + kAttend + 3 * kH * 37 + 2 * kH + 2 * kMixture, 0},
          {"llama4",
           R"("num_experts":5,"interleave_moe_layer_step":3,"intermediate_size_mlp":37,"layer_types":)"
           R"(["full","full","full"])",
           kRest + 2 * (kAttend + 3 * kH * 37 + 2 * kH) + kAttend + 6 * kGated + 5 * kH + 2 * kH, 0},
          // Shared experts: a width, a width for each, a number
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"shared_expert_intermediate_size":41)",
           kRest + 3 * (kMixture + 3 * kH * 41), 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"shared_intermediate_size":41)",
           kRest + 3 * (kMixture + 3 * kH * 41), 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"moe_shared_expert_intermediate_size":41)",
           kRest + 3 * (kMixture + 3 * kH * 41), 0},
          {"mixtral",
           R"("num_experts":5,"moe_intermediate_size":29,"moe_shared_expert_intermediate_size":41,"n_shared_experts":3)",
           kRest + 3 * (kMixture + 3 * kH * 41 * 3), 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"n_shared_experts":3)",
           kRest + 3 * (kMixture + 3 * kExpert), 0},
          // … with a gate (Qwen2-MoE, whose Q, K and V have biases)
          {"qwen2_moe", R"("num_experts":5,"moe_intermediate_size":29,"shared_expert_intermediate_size":41)",
           kRest + 3 * (kMixture + kQ + 2 * kK + 3 * kH * 41 + kH), 0},
          {"qwen2_moe", R"("num_experts":5,"moe_intermediate_size":29)", kRest + 3 * (kMixture + kQ + 2 * kK), 0},
          // Granite: that width is the MLP of layers without experts
          {"granitemoehybrid", R"("num_experts":0,"shared_intermediate_size":41,"tie_word_embeddings":false)",
           kRest + 3 * (kAttend + 3 * kH * 41 + 2 * kH), 0},
          {"granitemoehybrid", R"("num_experts":0,"tie_word_embeddings":false)", kRest + 3 * kDenseLayer, 0},
          // A correction bias for each expert (GLM-4.5, whose Q and K are normed)
          {"glm4_moe", R"("num_experts":5,"moe_intermediate_size":29)", kRest + 3 * (kMixture + 2 * kD + 5), 0},
          // gpt-oss: biases of attention, router and experts, and a sink for each query head
          {"gpt_oss", R"("num_experts":5,"moe_intermediate_size":29)",
           kRest + 3 * (kMixture + kQ + 2 * kK + kH + 6 + 5 + 5 * (2 * 29 + kH)), 0},
          // Gemma 4: a dense MLP beside the experts, three norms more, and scales of the router's input and experts
          {"gemma4", R"("num_experts":5,"moe_intermediate_size":29,"enable_moe_block":true,"global_head_dim":null)",
           kEmbedding + kH + 3 * (kAttend + 2 * kD + 5 * kExpert + 5 * kH + kGated + 4 * kH + 3 * kH + kH + 5), 0},
          {"gemma4", R"("num_experts":5,"moe_intermediate_size":29,"global_head_dim":null)",
           kEmbedding + kH + 3 * (kAttend + 2 * kD + 5 * kExpert + 5 * kH + kGated + 4 * kH + 3 * kH + kH + 5), 0},
          {"gemma4", R"("num_experts":5,"moe_intermediate_size":29,"enable_moe_block":false,"global_head_dim":null)",
           kEmbedding + kH + 3 * (kAttend + 2 * kD + kGated + 4 * kH), 0},
      });
}

TEST_CASE("which of five layers have experts") {
  constexpr u64 kRest = 2 * kEmbedding + kH;
  constexpr u64 kMore = 5 * kExpert + 5 * kH - kGated;  // of a layer with experts
  constexpr u64 kAll = kRest + 5 * (kAttend + kGated + 2 * kH);
  check_counts(
      5,
      {
          // Layer 2 alone, counted from 0: the last of each three
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"decoder_sparse_step":3)", kAll + kMore, 0},
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"interleave_moe_layer_step":3)", kAll + kMore, 0},
          // Layers 1 and 4
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"expert_layer_period":3,"expert_layer_offset":1)",
           kAll + 2 * kMore, 0},
          // Layers 0 and 3
          {"mixtral", R"("num_experts":5,"moe_intermediate_size":29,"moe_layer_freq":3)", kAll + 2 * kMore, 0},
      });
}

TEST_CASE("parameters of recurrent layers") {
  constexpr u64 kRest = 2 * kEmbedding + kH, kTied = kEmbedding + kH;
  // Mamba, 127 channels of 11 values, steps by way of rank 5: in, x, dt and out; convolution, dt bias, A and D
  constexpr u64 kMamba = kH * 2 * 127 + 127 * (5 + 2 * 11) + 5 * 127 + 127 * kH + 127 * 4 + 127 + 127 * 11 + 127;
  // Mamba-2, 7 heads of 19, 3 groups of 11 values: in, out; convolution, dt bias, A and D of each head
  constexpr u64 kInner = 7 * 19, kChannels = kInner + 2 * 3 * 11;
  constexpr u64 kMamba2 = kH * (kInner + kChannels + 7) + kInner * kH + kChannels * 4 + 3 * 7;
  constexpr const char* kSizes =
      R"("mamba_num_heads":7,"mamba_head_dim":19,"mamba_n_groups":3,"mamba_d_state":11,"mamba_d_conv":4)";
  const std::string hybrid = std::string(kSizes) + R"(,"layer_types":["mamba","full","mamba"])";
  const std::string letters = std::string(kSizes) + R"(,"hybrid_override_pattern":"M*-")";
  const std::string experts = std::string(kSizes) + R"(,"hybrid_override_pattern":"ME*","num_experts":5,)"
                                                    R"("moe_intermediate_size":29,"num_experts_per_tok":2)";
  const std::string unbiased = std::string(kSizes) + R"(,"use_conv_bias":false)";
  const std::string unnormed = std::string(kSizes) + R"(,"mamba_rms_norm":false)";
  const std::string normed = std::string(kSizes) + R"(,"mamba_rms_norm":true)";
  // Gated delta net, 2 key heads of 11 and 4 value heads of 17: q, k, v and the gate, beta and decay, out; convolution,
  // A and the step's bias, a norm as wide as a value head
  constexpr u64 kKeys = 2 * 11, kValues = 4 * 17;
  constexpr u64 kDelta =
      kH * (2 * kKeys + 2 * kValues) + kH * 2 * 4 + kValues * kH + (2 * kKeys + kValues) * 5 + 2 * 4 + 17;
  constexpr const char* kDeltaSizes =
      R"("linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":11,"linear_value_head_dim":17,)"
      R"("linear_conv_kernel_dim":5)";
  // Kimi Delta Attention, 4 heads of 11: q, k, v and o; decay and gate of rank 11, beta; three convolutions, the step's
  // bias, A of each head, a norm as wide as a head
  constexpr u64 kWidth = 4 * 11;
  constexpr u64 kKda = 4 * kH * kWidth + 2 * (kH * 11 + 11 * kWidth) + kH * 4 + 3 * kWidth * 5 + kWidth + 4 + 11;
  const std::string kda = R"("linear_attn_config":{"kda_layers":[1,3],"full_attn_layers":[2],"num_heads":4,)"
                          R"("head_dim":11,"short_conv_kernel_size":5})";
  check_counts(
      3, {
             {"falcon_mamba", R"("intermediate_size":127,"mamba_dt_rank":5,"mamba_d_state":11)",
              kRest + 3 * (kMamba + 127 + kH), 0},
             {"falcon_mamba", R"("intermediate_size":127,"mamba_dt_rank":5,"mamba_d_state":11,"use_conv_bias":false)",
              kRest + 3 * (kMamba + kH), 0},
             // A rank that is not stated is a sixteenth of the hidden size, rounded up: 5 of 67
             {"falcon_mamba", R"("intermediate_size":127,"mamba_d_state":11)", kRest + 3 * (kMamba + 127 + kH), 0},
             // Jamba's channels are a multiple of the hidden size; it norms the step, B and C.
             {"jamba", R"("attn_layer_period":3,"attn_layer_offset":1,"mamba_dt_rank":5,"mamba_d_state":11)",
              kRest +
                  2 * (kH * 2 * 134 + 134 * (5 + 2 * 11) + 5 * 134 + 134 * kH + 134 * 4 + 134 + 134 * 11 + 134 + 134 +
                       5 + 2 * 11) +
                  kAttend + 3 * (kGated + 2 * kH),
              0},
             {"mamba2", kSizes, kRest + 3 * (kMamba2 + kChannels + kInner + kH), 0},
             {"mamba2", unbiased.c_str(), kRest + 3 * (kMamba2 + kInner + kH), 0},
             {"mamba2", unnormed.c_str(), kRest + 3 * (kMamba2 + kChannels + kH), 0},
             {"bamba", hybrid.c_str(), kRest + 2 * (kMamba2 + kChannels + kInner) + kAttend + 3 * (kGated + 2 * kH), 0},
             // Nemotron-H: one part and one norm a layer, and a plain MLP
             {"nemotron_h", letters.c_str(), kRest + kMamba2 + kChannels + kInner + kAttend + kPlain + 3 * kH, 0},
             {"nemotron_h", experts.c_str(),
              kRest + kMamba2 + kChannels + kInner + 5 * 2 * kH * 29 + 5 * kH + kAttend + 3 * kH,
              kRest + kMamba2 + kChannels + kInner + 2 * 2 * kH * 29 + 5 * kH + kAttend + 3 * kH},
             {"nemotron_h", R"("hybrid_override_pattern":"*E*","num_experts":1,"moe_intermediate_size":29)",
              kRest + 2 * kAttend + 2 * kH * 29 + kH + 3 * kH, 0},
             {"nemotron_h", R"("hybrid_override_pattern":"*E*","num_experts":0,"moe_intermediate_size":29)", 0, 0},
             {"nemotron_h", R"("hybrid_override_pattern":"*E*","num_experts":1,"intermediate_size":0)", 0, 0},
             // Falcon-H1 has both side by side, and norms the state only where it is said.
             {"falcon_h1", kSizes, kRest + 3 * (kAttend + kMamba2 + kChannels + kGated + 2 * kH), 0},
             {"falcon_h1", normed.c_str(), kRest + 3 * (kAttend + kMamba2 + kChannels + kInner + kGated + 2 * kH), 0},
             // Qwen3-Next: the query projection makes a gate too.
             {"qwen3_next", (std::string(kDeltaSizes) + R"(,"full_attention_interval":2)").c_str(),
              kRest + 2 * kDelta + kAttend + kH * kQ + 2 * kD + 3 * (kGated + 2 * kH), 0},
             {"kimi_linear", kda.c_str(), kRest + 2 * kKda + kAttend + 3 * (kGated + 2 * kH), 0},
             // LFM2: in, convolution and out; an MLP of two thirds of the stated width (67 of 101), rounded up to 32s
             {"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3,"conv_dim":71,"block_multiple_of":32)",
              kTied + 2 * (kH * 3 * 71 + 71 * 3 + 71 * kH) + kAttend + 2 * kD + 3 * (3 * kH * 96 + 2 * kH), 0},
             {"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3)",
              kTied + 2 * (kH * 3 * kH + kH * 3 + kH * kH) + kAttend + 2 * kD + 3 * (3 * kH * 67 + 2 * kH), 0},
             {"lfm2", R"("full_attn_idxs":[1],"conv_L_cache":3,"block_auto_adjust_ff_dim":false)",
              kTied + 2 * (kH * 3 * kH + kH * 3 + kH * kH) + kAttend + 2 * kD + 3 * (kGated + 2 * kH), 0},
         });
}

TEST_CASE("parameters of pruned blocks") {
  const auto one_block = [](const std::string& ffn) {
    return R"("block_configs":[{"attention":{},"ffn":{)" + ffn +
           R"(}},{"attention":{"no_op":true},"ffn":{"no_op":true}},{"attention":{"no_op":true},"ffn":{"no_op":true}}])";
  };
  constexpr u64 kRest = 2 * kEmbedding + kH;
  check_counts(
      3, {
             // An MLP of a width of its own; a block without attention has one norm, one without both none.
             {"deci",
              R"("block_configs":[{"attention":{},"ffn":{"intermediate_size":37}},)"
              R"({"attention":{"no_op":true},"ffn":{"intermediate_size":41}},)"
              R"({"attention":{"no_op":true},"ffn":{"no_op":true}}])",
              kRest + kAttend + 3 * kH * 37 + 2 * kH + 3 * kH * 41 + kH, 0},
             // Two thirds of 67 × 4 (178) and of 67 × 5.76 (257), rounded up to 256s
             {"deci",
              R"("block_configs":[{"attention":{},"ffn":{"ffn_mult":4}},{"attention":{},"ffn":{"ffn_mult":5.76}},)"
              R"({"attention":{},"ffn":{"no_op":true}}])",
              kRest + 3 * kAttend + 3 * kH * 256 + 3 * kH * 512 + 5 * kH, 0},
             // Two thirds of 67,000 are 44,666, and 175 × 256 at least as much; a multiple past 1000 is none.
             {"deci", one_block(R"("ffn_mult":1000)").c_str(), kRest + kAttend + 3 * kH * 44'800 + 2 * kH, 0},
             {"deci", one_block(R"("ffn_mult":1000.000000001)").c_str(), 0, 0},
             {"deci", one_block(R"("intermediate_size":1)").c_str(), kRest + kAttend + 3 * kH + 2 * kH, 0},
             {"deci", one_block(R"("intermediate_size":16777216)").c_str(),
              kRest + kAttend + 3 * kH * kMaxWidth + 2 * kH, 0},
             {"deci", one_block(R"("intermediate_size":16777217)").c_str(), 0, 0},
             {"deci", one_block("").c_str(), 0, 0},
         });
}

}  // namespace
}  // namespace kvcap
