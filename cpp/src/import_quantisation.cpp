// How a checkpoint is stored: its dtype, its quantisation block, and the modules that the block leaves at 16 bits.
#include <algorithm>

#include "kvcap/config.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

constexpr u64 kMaxGroup = u64{1} << 24;

bool has(std::string_view text, Label piece) { return text.find(piece) != std::string_view::npos; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

std::string_view text_of(const Value* object, Label name) {
  const Value* const value = object != nullptr ? object->get(name) : nullptr;
  return value != nullptr && value->is(Kind::string) ? value->text : std::string_view{};
}

u64 whole_of(const Value* object, Label name) {
  const Value* const value = object != nullptr ? object->get(name) : nullptr;
  if (value == nullptr) return 0;
  const auto whole = json::to_whole(*value, name, 0, kMaxGroup);
  return whole ? *whole : 0;
}

bool truth_of(const Value* object, Label name) {
  const Value* const value = object != nullptr ? object->get(name) : nullptr;
  return value != nullptr && value->is(Kind::boolean) && value->truth;
}

std::string known(const std::string& format) { return format.empty() ? "?" : format; }

/// MLX writes bits and a group's size, and no method.
bool is_mlx(const Value& block) {
  return text_of(&block, "quant_method").empty() && text_of(&block, "quant_algo").empty() &&
         block.get("w_bit") == nullptr && whole_of(&block, "bits") != 0;
}

/// Formats of "bits" and "group_size" pairs.
std::string grouped(std::string_view prefix, u64 bits, u64 group) {
  return std::string(prefix) + digits(bits) + "_g" + digits(group);
}

/// One of config_groups (compressed-tensors, ModelOpt); "" where it leaves weights as they are, "?" when not known.
std::string group_format(const Value& group) {
  const Value* const weights = group.get("weights");
  if (weights == nullptr || weights->is(Kind::null)) return {};
  const u64 width = whole_of(weights, "num_bits");
  const u64 size = whole_of(weights, "group_size");
  const bool floating = text_of(weights, "type") == "float";
  if (width == 8 && floating) return text_of(weights, "strategy") == "block" ? "fp8_block" : "fp8";
  if (width == 8) return "int8";
  if (width == 4 && floating) return size == 16 ? "nvfp4" : "mxfp4";
  if (width == 4) return size == 0 ? "int4" : grouped("int", 4, size);
  return "?";
}

/// The format that all groups share; "" where none converts weights, "?" where they differ or are not known.
std::string groups_format(const Value& groups) {
  std::string shared;
  for (const Value& group : groups) {
    const std::string one = group_format(group);
    if (one.empty()) continue;
    if (!shared.empty() && shared != one) return "?";
    shared = one;
  }
  return shared;
}

/// torchao says its type as a word or as a class with its data (torchao.quantization configs).
std::string torchao_format(const Value& block) {
  const Value* kind = block.get("quant_type");
  if (kind != nullptr && kind->is(Kind::object)) kind = kind->get("default");
  if (kind == nullptr) return {};
  const bool word = kind->is(Kind::string);
  const std::string name = lower(word ? kind->text : text_of(kind, "_type"));
  u64 group = whole_of(word ? block.get("quant_type_kwargs") : kind->get("_data"), "group_size");
  if (has(name, "float8weight") || has(name, "float8_weight")) return "fp8";
  if (has(name, "int8weight") || has(name, "int8_weight")) return "int8";
  if (has(name, "int4weightonly") || has(name, "int4_weight_only")) {
    if (group == 0) group = 128;  // the default of both
    return grouped("int", 4, group);
  }
  return {};
}

/// AMD Quark's global_quant_config.
std::string quark_format(const Value& block) {
  const Value* const all = block.get("global_quant_config");
  const Value* weight = all != nullptr ? all->get("weight") : nullptr;
  if (weight != nullptr && weight->is(Kind::array)) weight = weight->count() == 1 ? &*weight->begin() : nullptr;
  const std::string dtype = lower(text_of(weight, "dtype"));
  const u64 group = whole_of(weight, "group_size");
  if (has(dtype, "fp8")) return "fp8";
  if (dtype == "int8") return "int8";
  if (dtype == "fp4" && group == 32) return "mxfp4";
  if (dtype == "int4" || dtype == "uint4") return group == 0 ? "int4" : grouped("int", 4, group);
  return {};
}

/// The format id that a quantisation block asks for; empty where it leaves weights as they are, "?" or another word
/// that is no format when it is none of the known.
std::string format_of(const Value& block) {
  const std::string method = lower(text_of(&block, "quant_method"));
  const std::string algorithm = lower(text_of(&block, "quant_algo"));
  const u64 bits = whole_of(&block, block.get("bits") != nullptr ? "bits" : "w_bit");
  const u64 group = whole_of(&block, block.get("group_size") != nullptr ? "group_size" : "q_group_size");

  if (is_mlx(block)) {
    const std::string_view mode = text_of(&block, "mode");
    if (mode == "mxfp4" || mode == "nvfp4") return std::string(mode);
    return grouped("mlx", bits, group == 0 ? 64 : group);
  }
  if (method == "mxfp4") return "mxfp4";
  // Sparse files store fewer weights than the model has.
  if (const Value* const sparse = block.get("sparsity_config");
      sparse != nullptr && sparse->is(Kind::object) && sparse->count() != 0 && text_of(sparse, "format") != "dense") {
    return "?";
  }
  if (method == "torchao") return known(torchao_format(block));
  if (method == "quark") return known(quark_format(block));
  const std::string type = lower(text_of(&block, "data_type"));  // AutoRound
  if (bits == 4 && has(type, "mx_fp")) return "mxfp4";
  if (bits == 4 && has(type, "nv_fp")) return "nvfp4";
  if (bits == 8 && has(type, "fp8")) return "fp8";
  if (method == "gptq" || method == "awq" || method == "auto-round" || method == "auto_round" ||
      method == "gptq_marlin") {
    if (bits == 8) return "int8";
    if (bits != 4) return "?";
    return group == 0 ? "int4" : grouped("int", 4, group);
  }
  if (method == "bitsandbytes" || (method.empty() && block.get("bnb_4bit_quant_type") != nullptr)) {
    if (truth_of(&block, "load_in_8bit") || truth_of(&block, "_load_in_8bit")) return "int8";
    if (truth_of(&block, "load_in_4bit") || truth_of(&block, "_load_in_4bit")) {
      return truth_of(&block, "bnb_4bit_use_double_quant") ? "nf4_dq" : "nf4";
    }
    return "?";
  }
  if (method == "eetq") return "int8";
  if (method == "fbgemm_fp8") return "fp8";
  if (has(algorithm, "nvfp4") || lower(text_of(&block, "moe_quant_algo")) == "nvfp4") return "nvfp4";
  if (has(algorithm, "mxfp4")) return "mxfp4";
  if (has(algorithm, "w4a16") || has(algorithm, "w4a8")) return group == 0 ? "int4_g128" : grouped("int", 4, group);
  if (has(algorithm, "fp8")) return has(algorithm, "pb") || has(algorithm, "block") ? "fp8_block" : "fp8";
  if (method == "fp8") return block.get("weight_block_size") != nullptr ? "fp8_block" : "fp8";
  if (const Value* const groups = block.get("config_groups"); groups != nullptr && groups->count() != 0) {
    return groups_format(*groups);
  }
  return "?";
}

/// Modules that a pattern of an exclusion list names, as bits of ModuleClass and of the two below.
constexpr u32 kHeadBit = 1u << kModuleClasses;
constexpr u32 kEmbeddingBit = 1u << (kModuleClasses + 1);

u32 classes_of(std::string_view pattern, bool experts_beside) {
  for (const Label other : {"vision", "visual", "audio", "mtp", "projector", "connector"}) {
    if (has(pattern, other)) return 0;
  }
  while (!pattern.empty() && (pattern.back() == '*' || pattern.back() == '.' || pattern.back() == '$')) {
    pattern.remove_suffix(1);
  }
  const std::size_t dot = pattern.rfind('.');
  std::string_view last = dot == std::string_view::npos ? pattern : pattern.substr(dot + 1);
  while (!last.empty() && (last.front() == '*' || last.front() == '^')) last.remove_prefix(1);
  if (last == "lm_head" || last == "head" || last == "output" || last == "ff_out") return kHeadBit;
  if (in_list("embed_tokens|wte|word_embeddings|embed", last)) return kEmbeddingBit;
  if (last == "gate" || last == "router" || has(last, "shared_expert_gate")) return 1u << kRouter;
  constexpr u32 kFeedForward = 1u << kDense | 1u << kExperts | 1u << kShared;
  // A layer's number, or a star in its place: the whole layer.
  if (!last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos)
    return 1u << kAttention | kFeedForward;
  if (in_list("q_proj|k_proj|v_proj|o_proj|qkv_proj|q_a_proj|q_b_proj|kv_a_proj_with_mqa|kv_b_proj|in_proj|out_proj|"
              "self_attn|attn|attention|self_attention|linear_attn|mamba|mixer",
              last)) {
    return 1u << kAttention;
  }
  if (has(pattern, "shared_expert")) return 1u << kShared;
  if (has(pattern, "experts")) return 1u << kExperts;
  // A matrix right within "mlp" is one of a dense layer: those of experts have their number between.
  if (has(pattern, "mlp.") && last.ends_with("_proj")) return 1u << kDense;
  if (has(pattern, "mlp\\.") && last.ends_with("_proj")) return 1u << kDense;
  if (in_list("mlp|ffn|moe|block_sparse_moe|feed_forward|gate_proj|up_proj|down_proj|gate_up_proj", last)) {
    return experts_beside ? 1u << kDense : kFeedForward;
  }
  return 0;  // norms, biases and other small parts, which stay anyway
}

/// Layer number in a pattern; nothing when it holds for all.
std::optional<u64> layer_of(std::string_view pattern) {
  const std::size_t at = pattern.find("layers.");
  if (at == std::string_view::npos) return std::nullopt;
  u64 number = 0;
  std::size_t i = at + 7;
  for (; i < pattern.size() && i < at + 13 && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
    number = number * 10 + static_cast<u64>(pattern[i] - '0');
  }
  return i == at + 7 ? std::nullopt : std::optional<u64>(number);
}

/// Bytes of zero points, which the formats of int4 groups count and a symmetric compressed-tensors file does not store.
Wide zero_points(const Value& block, Wide values) {
  const Value* const groups = block.get("config_groups");
  if (groups == nullptr || groups->count() == 0) return 0;
  const Value* const weights = groups->begin()->get("weights");
  const u64 group = whole_of(weights, "group_size");
  if (group == 0 || whole_of(weights, "num_bits") != 4 || text_of(weights, "type") == "float") return 0;
  return truth_of(weights, "symmetric") ? values / group / 2 : 0;
}

/// Bytes of the checkpoint: modules that the block converts in its format, the rest at 16 bits.
Wide stored_bytes(const Value& block, const Format& format, const ParameterCount& count, bool experts_beside) {
  // Norms, biases and routers stay; embedding and head too, except in MLX files, whose block converts every matrix.
  const bool converts_all = is_mlx(block);
  const u32 always = (converts_all ? 0 : kHeadBit | kEmbeddingBit | 1u << kRouter) | 1u << kSmall;
  u32 kept = always;
  std::vector<u32> kept_in(count.layers.size(), 0);
  for (const Label name :
       {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules", "exclude"}) {
    const Value* const list = block.get(name);
    if (list == nullptr || !list->is(Kind::array)) continue;
    for (const Value& pattern : *list) {
      if (!pattern.is(Kind::string)) continue;
      const u32 classes = classes_of(pattern.text, experts_beside);
      const auto layer = layer_of(pattern.text);
      if (!layer) {
        kept |= classes;
      } else if (*layer < kept_in.size()) {
        kept_in[static_cast<std::size_t>(*layer)] |= classes;
      }
    }
  }
  // Files of mxfp4 and of mixed NVFP4 convert experts only.
  if (text_of(&block, "quant_method") == "mxfp4" || lower(text_of(&block, "quant_algo")) == "mixed_precision") {
    kept |= 1u << kAttention | 1u << kDense | 1u << kShared;
  }
  Wide converted = 0;
  for (std::size_t i = 0; i < count.layers.size(); ++i) {
    for (u32 part = 0; part < kModuleClasses; ++part) {
      if (((kept | kept_in[i]) >> part & 1u) == 0) converted += count.layers[i][part];
    }
  }
  if ((kept & kEmbeddingBit) == 0) converted += count.embedding;
  if ((kept & kHeadBit) == 0) converted += count.head;
  return format.bytes_of(converted) - zero_points(block, converted) + 2 * (count.total() - converted);
}

const Format* dtype_of(Fields& fields) {
  std::string_view name = fields.text("dtype");
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (!name.empty()) {
    const Format* const format = find_format(name);
    if (format != nullptr && format->weights) return format;
    fields.defaulted("dtype", "bf16",
                     "\"" + std::string(name) + "\" is no known format: 16 bits, as engines load models");
    return find_format("bf16");
  }
  for (const auto& [key, id] : {std::pair<Label, Label>{"bf16", "bf16"}, {"fp16", "fp16"}, {"fp32", "fp32"}}) {
    if (fields.find(key) != nullptr && fields.truth(key, false)) return find_format(id);
  }
  fields.defaulted("dtype", "bf16", "not stated: 16 bits, as engines load models");
  return find_format("bf16");
}

const Format* cache_format(const Value& block) {
  const Value* const scheme = block.get("kv_cache_scheme");
  if (scheme != nullptr && scheme->is(Kind::object)) {
    const u64 bits = whole_of(scheme, "num_bits");
    const bool floating = text_of(scheme, "type") == "float";
    if (bits == 8) return find_format(floating ? "fp8" : "int8");
    if (bits == 4 && floating) return find_format("nvfp4");
  }
  const std::string_view algorithm =
      scheme != nullptr && scheme->is(Kind::string) ? scheme->text : text_of(&block, "kv_cache_quant_algo");
  if (algorithm.empty()) return nullptr;
  const Format* const format = find_format(lower(algorithm));
  return format != nullptr && format->cache && !format->latent_only ? format : nullptr;
}

}  // namespace

void read_quantisation(Fields& fields, const ParameterCount& count, Model& model) {
  const Format* const dtype = dtype_of(fields);
  model.native_weights = dtype;
  const Value* const block = fields.get("quantization_config");
  if (block == nullptr || (block->is(Kind::object) && block->count() == 0)) return;
  if (const Format* const cache = cache_format(*block)) {
    model.native_cache = cache;
    model.note_codes.emplace_back("cache_format_from_config");
  }
  const std::string id = block->is(Kind::object) ? format_of(*block) : "?";
  if (id.empty()) return;
  const Format* const format = find_format(id);
  if (format == nullptr || !format->weights) {
    model.native_weights = nullptr;
    model.note_codes.emplace_back("weight_format_unknown");
    return;
  }
  model.native_weights = format;
  if (!count.known) return;
  const Wide bytes = stored_bytes(*block, *format, count, fields.has_trait(kDenseBeside));
  if (bytes > kMaxExact) return;
  model.native_weight_bytes = Bytes{static_cast<u64>(bytes)};
  model.native_weights_estimated = true;
}

}  // namespace kvcap
