// What model types leave unsaid: defaults of their configuration classes, and the terms of their parameter counts.
#include <array>

#include "kvcap/config.hpp"

namespace kvcap {
namespace {

constexpr std::string_view kHf = "transformers configuration class of this model type";
constexpr std::string_view kHfModel = "transformers model code of this model type";
constexpr std::string_view kEncoder = "an encoder by its model type";
constexpr std::string_view kRepository = "configuration class in the model's repository";
constexpr std::string_view kVllmState = "vLLM model_executor/layers/mamba/mamba_utils.py";
constexpr std::string_view kMambaSsm = "state-spaces/mamba: MambaConfig, Mamba and Mamba2 modules";
constexpr std::string_view kMlcRwkv = "mlc-llm rwkv5 and rwkv6 models: state in fp32, two shift rows";

// Sources: the model classes of transformers or of the model's own repository; each count was checked against the exact
// total of a published checkpoint (tests/data/models.tsv, column params_check).
constexpr std::array kFamilies = {
    Family{"llama|yi|mistral|mixtral|ministral|ministral3|mistral3|smollm3|seed_oss|deepseek|arcee|internlm3|"
           "multi_modality|mllama",
           kBiasKeyOut},
    Family{"granite|granitemoe|granitemoehybrid|granitemoeshared", kBiasKeyOut | kSharedMlp},
    Family{"baichuan|xverse|internlm2|internlm2_5|olmo3_plain|phi3|phi4mm|nemotron-nas|deci|exaone|ernie4_5", 0},
    Family{"internlm", kQkvBias | kOutBias},
    Family{"qwen2|qwen2_vl|qwen2_5_vl|qwen2_5_omni|qwen2_5_omni_thinker|qwen2_audio", kQkvBias},
    Family{"qwen2_moe", kQkvBias | kSharedGate},
    Family{"qwen3|qwen3_moe|qwen3_vl|qwen3_vl_moe|qwen3_omni_moe|qwen3_omni_moe_thinker", kNormHeads | kBiasKeyOut},
    Family{"qwen3_next|qwen3_5|qwen3_5_moe", kNormHeads | kOutputGate | kSharedGate},
    Family{"qwen", kQkvBias | kHalfMlp},
    Family{"molmo", kQkvBias | kHalfMlp | kNoCount},
    Family{"gemma", kTied},
    Family{"gemma2", kTied | kFourNorms},
    Family{"gemma3|gemma3n", kTied | kFourNorms | kNormHeads},
    Family{"gemma4", kTied | kFourNorms | kNormHeads | kDenseBeside},
    Family{"glm|chatglm", kQkvBias},
    Family{"glm4|glm4v", kQkvBias | kFourNorms},
    Family{"glm4_moe|glm4v_moe|dots1|bailing_moe_v2", kNormHeads | kRouterBias},
    Family{"hunyuan_v1_moe|hunyuan_v1_dense", kNormHeads},
    Family{"glm_moe_dsa|glm4_moe_lite|deepseek_v3|deepseek_v32|kimi_k2|kimi_k25|ernie4_5_moe", kRouterBias},
    Family{"deepseek_v2|minicpm3|mimo", 0},
    Family{"minicpm", 0},
    Family{"kimi_linear", kRouterBias},
    Family{
        "deepseek_v4|kimi_k3|mimo_v2_flash|minimax_m3|step3p5|step3p7|step3p7_flash|falcon_perception|t5|mt5|umt5|"
        "whisper|bart|mbart|rwkv|rwkv5|rwkv6|rwkv7|minimax|minimax_m1|minimax_text_01|recurrent_gemma|openelm|gpt_neo|"
        "zamba2|olmo_hybrid|longcat_flash|longcat_flash_ngram|afmoe|apertus|bailing_moe|hunyuan|exaone_moe",
        kNoCount},
    Family{"minimax_m2", kNormRows | kRouterBias},
    Family{"gpt_oss", kSinks | kExpertBias | kBiasKeyOut},
    Family{"gpt2|gpt_bigcode",
           kNormBias | kPlainMlp | kQkvBias | kOutBias | kMlpBias | kPositions | kTied | kFourTimes},
    Family{"gptj", kNormBias | kPlainMlp | kOneNorm | kMlpBias | kHeadBias | kFourTimes},
    Family{"gpt_neox", kNormBias | kPlainMlp | kQkvBias | kOutBias | kMlpBias},
    Family{"opt", kNormBias | kPlainMlp | kQkvBias | kOutBias | kMlpBias | kPositions | kTied | kSpareRows},
    Family{"bloom", kNormBias | kPlainMlp | kQkvBias | kOutBias | kMlpBias | kEmbeddingNorm | kTied | kFourTimes},
    Family{"falcon|RefinedWeb|RefinedWebModel", kNormBias | kPlainMlp | kTied | kParallelNorm | kFourTimes},
    Family{"mpt", kPlainMlp | kTied | kFourTimes},
    Family{"dbrx", 0},
    Family{"phi", kNormBias | kPlainMlp | kOneNorm | kQkvBias | kOutBias | kMlpBias | kHeadBias},
    Family{"phi3small", kNormBias | kQkvBias | kOutBias | kMlpBias | kTied},
    Family{"phimoe", kNormBias | kBiasKeyOut},
    Family{"starcoder2", kNormBias | kPlainMlp | kQkvBias | kOutBias | kMlpBias | kTied},
    Family{"stablelm", kNormBias},
    Family{"cohere|cohere2", kOneNorm | kTied | kNormRowsKey},
    Family{"olmo2|olmo3|olmoe", kNormRows},
    Family{"exaone4", kNormHeads},
    Family{"nemotron", kNormBias | kPlainMlp},
    Family{"llama4", kSharedExpert},
    Family{"jamba", kStateNorms},
    Family{"nemotron_h", kMixerOnly | kPlainMlp},
    Family{"falcon_h1", kNoGatedNorm},
    Family{"bamba", kBiasKeyOut},
    Family{"mamba|falcon_mamba|mamba2|mamba_ssm|mamba2_ssm", kMixerOnly},
    Family{"lfm2|lfm2_moe", kNormHeads | kTied | kAdjustedMlp},
};

constexpr std::array kDefaults = {
    // Heads and widths that nested text configs leave out.
    FieldDefault{"llama|mistral|qwen2|mixtral|ministral3", "num_attention_heads", "32", kHf},
    FieldDefault{"mistral|mixtral|ministral3", "num_key_value_heads", "8", kHf},
    FieldDefault{"qwen2", "num_key_value_heads", "32", kHf},
    FieldDefault{"gemma", "num_attention_heads", "16", kHf},
    FieldDefault{"gemma", "num_key_value_heads", "16", kHf},
    FieldDefault{"gemma2|gemma3|gemma3n", "num_attention_heads", "8", kHf},
    FieldDefault{"gemma2|gemma3", "num_key_value_heads", "4", kHf},
    FieldDefault{"gemma3n", "num_key_value_heads", "2", kHf},
    FieldDefault{"gemma|gemma2|gemma3|gemma3n|gemma4", "head_dim", "256", kHf},
    FieldDefault{"gemma4", "global_head_dim", "512", kHf},
    FieldDefault{"gemma|gemma2", "vocab_size", "256000", kHf},
    FieldDefault{"gemma3", "vocab_size", "262208", kHf},
    FieldDefault{"gpt_oss", "head_dim", "64", kHf},
    FieldDefault{"qwen3|qwen3_moe|llama4|exaone4", "head_dim", "128", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "head_dim", "256", kHf},
    FieldDefault{"gpt_bigcode|falcon|RefinedWebModel", "multi_query", "true", kHf},
    FieldDefault{"gpt2|gpt_bigcode", "max_position_embeddings", "1024", kHf},
    FieldDefault{"opt|falcon", "max_position_embeddings", "2048", kHf},
    FieldDefault{"gemma3", "max_position_embeddings", "131072", kHf},
    // Which layers slide.
    FieldDefault{"mistral|ministral|gemma2|starcoder2|cohere2", "sliding_window", "4096", kHf},
    FieldDefault{"gemma3", "sliding_window", "4096", kHf},
    FieldDefault{"gemma3n|gemma4", "sliding_window", "512", kHf},
    FieldDefault{"gpt_oss", "sliding_window", "128", kHf},
    FieldDefault{"qwen2|qwen2_moe|qwen2_vl|qwen2_5_vl|qwen2_5_omni|qwen3|qwen3_moe|qwen3_vl|qwen3_vl_moe|mimo|smollm3",
                 "use_sliding_window", "false", kHf},
    FieldDefault{"qwen2|qwen2_moe|qwen3|qwen3_moe", "max_window_layers", "28", kHf},
    FieldDefault{"mistral|ministral|mixtral|phi3|phi4mm|phimoe|starcoder2|mpt", "sliding_layers", "all", kHfModel},
    FieldDefault{"gemma2", "sliding_window_pattern", "2", kHfModel},
    FieldDefault{"gemma3|gemma4", "sliding_window_pattern", "6", kHf},
    FieldDefault{"gemma3n", "sliding_window_pattern", "5", kHf},
    FieldDefault{"cohere2|exaone4|exaone_moe|olmo3|afmoe", "sliding_window_pattern", "4", kHf},
    FieldDefault{"gpt_oss", "sliding_window_pattern", "2", kHf},
    FieldDefault{"recurrent_gemma", "attention_window_size", "2048", kHf},
    FieldDefault{"llama4", "attention_chunk_size", "8192", kHf},
    FieldDefault{"llama4", "no_rope_layer_interval", "4", kHf},
    // Which layers attend.
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "full_attention_interval", "4", kHf},
    FieldDefault{"jamba", "attn_layer_period", "8", kHf},
    FieldDefault{"jamba", "attn_layer_offset", "4", kHf},
    FieldDefault{"falcon_h1", "layer_pattern", "both", kHfModel},
    FieldDefault{"mamba|falcon_mamba|mamba2|mamba_ssm|mamba2_ssm|rwkv|rwkv5|rwkv6|rwkv7", "layer_pattern", "linear",
                 kHfModel},
    FieldDefault{
        "bert|roberta|xlm-roberta|distilbert|albert|electra|deberta|deberta-v2|mpnet|modernbert|nomic_bert|new|"
        "camembert|longformer|big_bird|layoutlm|layoutlmv2|layoutlmv3|ernie|ernie_m|convbert|funnel|eurobert|jina_bert|"
        "t5encoder|xlm-roberta-xl|xlm-roberta-flash|roberta-prelayernorm|mobilebert|squeezebert|rembert|megatron-bert|"
        "nezha|luke|mluke|ibert|fnet|canine|splinter|flaubert|xlm|data2vec-text|markuplm|lilt|nystromformer|yoso|mra|"
        "dinov3_vit|deit|beit|vit_mae|swin|swinv2|clap|audio-spectrogram-transformer|wav2vec2-bert|wavlm|"
        "vit|clip|siglip|siglip2|dinov2|wav2vec2|hubert|esm|gte|neobert",
        "layer_pattern", "encoder", kEncoder},
    FieldDefault{"longcat_flash|longcat_flash_ngram", "attentions_per_layer", "2", kHfModel},
    // Which state a recurrent layer keeps.
    FieldDefault{"minimax|minimax_m1|minimax_text_01", "linear_kind", "lightning", kRepository},
    FieldDefault{"rwkv5|rwkv6|rwkv7", "linear_kind", "rwkv", kMlcRwkv},
    FieldDefault{"rwkv5|rwkv6|rwkv7", "head_size", "64", kMlcRwkv},
    FieldDefault{"recurrent_gemma", "linear_kind", "griffin", kHf},
    FieldDefault{"mamba2|mamba2_ssm", "linear_kind", "mamba2", kHf},
    FieldDefault{"mamba|falcon_mamba|mamba_ssm|jamba", "linear_kind", "mamba1", kHf},
    FieldDefault{"recurrent_gemma", "conv1d_width", "4", kHf},
    FieldDefault{"mamba|falcon_mamba|mamba_ssm|jamba", "mamba_d_state", "16", kHf},
    FieldDefault{"mamba2|mamba2_ssm|nemotron_h", "mamba_d_state", "128", kMambaSsm},
    FieldDefault{"falcon_h1|granitemoehybrid|bamba", "mamba_d_state", "256", kHf},
    FieldDefault{
        "mamba|falcon_mamba|mamba2|mamba_ssm|mamba2_ssm|jamba|nemotron_h|falcon_h1|granitemoehybrid|bamba|zamba2",
        "mamba_d_conv", "4", kHf},
    FieldDefault{
        "mamba|falcon_mamba|mamba2|mamba_ssm|mamba2_ssm|jamba|nemotron_h|falcon_h1|granitemoehybrid|bamba|zamba2",
        "mamba_expand", "2", kHf},
    FieldDefault{"mamba2|nemotron_h", "mamba_n_groups", "8", kHf},
    FieldDefault{"mamba2_ssm|falcon_h1|granitemoehybrid|bamba|zamba2", "mamba_n_groups", "1", kHf},
    FieldDefault{"mamba2|mamba2_ssm|nemotron_h", "mamba_head_dim", "64", kHf},
    FieldDefault{"granitemoehybrid|bamba|falcon_h1", "mamba_num_heads", "128", kHf},
    FieldDefault{"mamba|falcon_mamba|mamba2|mamba_ssm|mamba2_ssm", "use_conv_bias", "true", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "linear_conv_kernel_dim", "4", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "linear_key_head_dim", "128", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "linear_value_head_dim", "128", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "linear_num_key_heads", "16", kHf},
    FieldDefault{"qwen3_next|qwen3_5|qwen3_5_moe", "linear_num_value_heads", "32", kHf},
    FieldDefault{"rwkv5|rwkv6|rwkv7", "state_dtype", "fp32", kMlcRwkv},
    FieldDefault{"recurrent_gemma", "state_dtype", "fp32", kHfModel},
    FieldDefault{"kimi_linear|kimi_k3", "state_dtype", "fp32", kVllmState},
    // Parameters.
    FieldDefault{"mpt", "expansion_ratio", "4", kHf},
    FieldDefault{"falcon|RefinedWeb|RefinedWebModel", "parallel_attn", "true", kHf},
    FieldDefault{"granitemoehybrid|bamba", "mamba_conv_bias", "true", kHf},
    FieldDefault{"RefinedWeb", "new_decoder_architecture", "true",
                 "the first Falcon 40B file, of that model type alone"},
    FieldDefault{"qwen3_moe|qwen3_next|qwen2_moe", "decoder_sparse_step", "1", kHf},
    FieldDefault{"jamba", "expert_layer_period", "2", kHf},
    FieldDefault{"jamba", "expert_layer_offset", "1", kHf},
    FieldDefault{"phimoe", "lm_head_bias", "false", kHf},
    FieldDefault{"gpt_oss", "attention_bias", "true", kHf},
    FieldDefault{"minicpm3", "tie_word_embeddings", "true", kHf},
    FieldDefault{"smollm3|granitemoehybrid|mamba2_ssm|mamba_ssm|mamba|xglm", "tie_word_embeddings", "true", kHf},
};

}  // namespace

bool in_list(std::string_view list, std::string_view name) noexcept {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (list.substr(0, bar) == name) return true;
    if (bar == std::string_view::npos) break;
    list.remove_prefix(bar + 1);
  }
  return false;
}

const Family* find_family(std::string_view model_type) noexcept {
  for (const Family& family : kFamilies) {
    if (in_list(family.model_types, model_type)) return &family;
  }
  return nullptr;
}

const FieldDefault* find_default(std::string_view model_type, std::string_view field) noexcept {
  for (const FieldDefault& row : kDefaults) {
    if (row.field == field && in_list(row.model_types, model_type)) return &row;
  }
  return nullptr;
}

}  // namespace kvcap
