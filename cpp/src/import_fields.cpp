#include <algorithm>
#include <array>

#include "kvcap/config.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

struct Spellings {
  std::string_view name;
  std::string_view others;  ///< tried in order after the name; dots lead into objects
  bool outside = false;     ///< may stand beside the language model, not only within it
};

constexpr std::array kSpellings = {
    Spellings{"num_hidden_layers", "n_layer|n_layers|num_layers|num_transformer_layers|num_blocks"},
    Spellings{"hidden_size", "n_embd|n_embed|d_model|dim|model_dim"},
    Spellings{"num_attention_heads",
              "n_head|n_heads|num_heads|num_query_heads|attn_cfg.num_heads|decoder_attention_heads"},
    Spellings{"num_key_value_heads",
              "num_key_value_heads_per_layer|num_kv_heads|n_head_kv|n_kv_heads|multi_query_group_num|"
              "attn_config.kv_n_heads|attn_cfg.num_heads_kv|num_attention_groups"},
    Spellings{"head_dim", "attention_head_dim|kv_channels|d_kv|attn_cfg.head_dim|head_size"},
    Spellings{"intermediate_size",
              "ffn_hidden_size|n_inner|ffn_dim|d_ff|ff_intermediate_size|ffn_config.ffn_hidden_size|decoder_ffn_dim"},
    Spellings{"vocab_size", "padded_vocab_size|embedding_size", true},
    Spellings{"max_position_embeddings",
              "max_target_positions|n_positions|max_seq_len|max_sequence_length|max_context_length|seq_length|"
              "model_max_length|n_ctx|context_length",
              true},
    Spellings{"tie_word_embeddings", "tie_embeddings|weight_tying", true},
    Spellings{"dtype", "torch_dtype|params_dtype", true},
    Spellings{"quantization_config", "compression_config|quantization", true},
    Spellings{"num_experts",
              "num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts|ffn_config.moe_num_experts"},
    Spellings{"num_experts_per_tok",
              "num_experts_per_token|experts_per_token|moe_topk|moe_k|moe_top_k|top_k_experts|ffn_config.moe_top_k"},
    Spellings{"moe_intermediate_size", "expert_intermediate_size"},
    Spellings{"n_shared_experts", "num_shared_experts|num_shared_expert|moe_num_shared_experts"},
    Spellings{"layer_types", "layers_block_type|layer_block_types"},
    Spellings{"attn_layer_indices", "attn_layer_idx|full_attn_idxs"},
    Spellings{"sliding_window", "sliding_window_size|window_size|attn_config.sliding_window_size"},
    Spellings{"sliding_window_pattern", "_sliding_window_pattern|global_attn_every_n_layers"},
    Spellings{"first_k_dense_replace", "moe_layer_start_index|moe_layer_num_skipped"},
    Spellings{"decoder_sparse_step", "moe_layer_interval"},
    Spellings{"mamba_num_heads", "mamba_n_heads|n_mamba_heads|num_heads"},
    Spellings{"mamba_head_dim", "mamba_d_head|mamba_headdim|ssm_cfg.headdim|head_dim"},
    Spellings{"mamba_d_state", "ssm_state_size|state_size|ssm_cfg.d_state"},
    Spellings{"mamba_n_groups", "mamba_ngroups|n_groups|ssm_cfg.ngroups"},
    Spellings{"mamba_d_conv", "conv_kernel|mamba_conv_kernel|ssm_cfg.d_conv"},
    Spellings{"mamba_expand", "expand|ssm_cfg.expand"},
    Spellings{"mamba_inner", "mamba_d_ssm|mamba_intermediate_size"},
    Spellings{"mamba_dt_rank", "time_step_rank|ssm_cfg.dt_rank"},
    Spellings{"mamba_conv_bias", "use_conv_bias"},
    Spellings{"mamba_proj_bias", "use_bias"},
    Spellings{"state_dtype", "mamba_ssm_cache_dtype|mamba_ssm_dtype"},
    Spellings{"conv_L_cache", "conv_l_cache"},
    Spellings{"index_head_dim", "indexer_head_dim"},
    Spellings{"num_kv_shared_layers", "num_shared_kv_layers"},
    Spellings{"head_size", "head_dim"},
};

constexpr std::string_view kNested[] = {"text_config", "llm_config", "language_config", "llm_cfg", "thinker_config"};

/// Pieces of field names that speak of a cache other than one row of K and V for each token. A config of an unknown
/// type with such a field, read by none of the rules, is refused.
constexpr std::string_view kHints[] = {
    "window",
    "sliding",
    "chunk_size",
    "ssm",
    "mamba",
    "state_size",
    "linear_attn",
    "linear_num",
    "lru_",
    "rwkv",
    "lora_rank",
    "layer_type",
    "block_type",
    "compress",
    "index_",
    "sparse_attention",
    "recurr",
    "retention",
    "hybrid",
    "kv_shared",
    "share_kv",
    "cla_",
    "use_cla",
    "kv_source",
    "cross_attention_layers",
    "global_head",
    "swa_",
    "time_mix",
    "short_conv",
    "conv_kernel",
    "conv_l_cache",
    "attention_types",
    "attn_layer",
    "attention_pattern",
    "block_pattern",
    "layer_pattern",
    "memory_tokens",
    "latent",
    "block_config",
    "full_attention",
    "conv_size",
    "expand_k",
    "expand_v",
    "layer_group",
    "global_attn",
    "local_attn",
    "delta_net",
    "gla_",
    "xlstm",
    "slstm",
};
/// Names that contain a piece and mean something else.
constexpr std::string_view kHarmless =
    "chunk_size_feed_forward|max_window_layers|use_sliding_window|quantization_config|q_lora_rank|o_lora_rank|"
    "encoder_no_repeat_ngram_size|compression_config|index_topk|index_n_heads|sliding_window_pattern|mamba_chunk_size|"
    "lora_rank|index_share_for_mtp_iteration|mm_window_size|cla_share_factor";
/// Rules that a list of layer_types has taken the place of.
constexpr std::string_view kPatterns =
    "full_attention_interval|_sliding_window_pattern|global_attn_every_n_layers|attn_layer_period|attn_layer_offset|"
    "hybrid_override_pattern|hybrid_layer_pattern|no_rope_layer_interval";

std::string_view strip_text(std::string_view model_type) {
  for (const std::string_view tail : {"_text_model", "_text", "_language"}) {
    if (model_type.size() > tail.size() && model_type.ends_with(tail)) {
      model_type.remove_suffix(tail.size());
      break;
    }
  }
  return model_type;
}

const Value* walk(const Value& object, std::string_view dotted) {
  const Value* at = &object;
  while (at != nullptr) {
    const std::size_t dot = dotted.find('.');
    at = at->find(dotted.substr(0, dot));
    if (dot == std::string_view::npos) break;
    dotted.remove_prefix(dot + 1);
  }
  return at;
}

const Spellings* spellings_of(std::string_view name) {
  for (const Spellings& row : kSpellings) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool counts_layers(const Value& object) {
  for (const std::string_view name :
       {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers", "layers_block_type",
        "layer_types", "block_configs", "decoder_layers"}) {
    if (object.get(name) != nullptr) return true;
  }
  return false;
}

/// What every element of a list of numbers says; `value` itself where they differ or it is no list.
const Value* only_element(const Value* value) {
  if (!value->is(Kind::array)) return value;
  const Value* first = nullptr;
  for (const Value& element : *value) {
    if (first == nullptr) first = &element;
    if (!element.is(Kind::number) || element.text != first->text) return value;
  }
  return first != nullptr ? first : value;
}

std::string show(const Value& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is(Kind::boolean)) return value.truth ? "true" : "false";
  if (value.is(Kind::array)) return "[" + digits(value.count()) + "]";
  if (value.is(Kind::object)) return "{" + digits(value.count()) + "}";
  return std::string(value.text.substr(0, kLongest));
}

/// Whether a field says that its feature is there.
bool switched_on(const Value& value) {
  switch (value.kind) {
    case Kind::null: return false;
    case Kind::boolean: return value.truth;
    case Kind::number: return value.text.find_first_of("123456789I") != std::string_view::npos;
    case Kind::string: return !value.text.empty();
    case Kind::array:
    case Kind::object: break;
  }
  return value.count() != 0;
}

}  // namespace

const Value* element_at(const Value& list, u64 i) noexcept {
  for (const Value& element : list) {
    if (i-- == 0) return &element;
  }
  return nullptr;
}

Fields::Fields(const Value& root) : root_(root) {
  levels_.push_back({&root, ""});
  for (bool deeper = true; deeper && levels_.size() < 5;) {
    deeper = false;
    for (const std::string_view name : kNested) {
      const Value* const inner = levels_.front().object->get(name);
      if (inner == nullptr || !inner->is(Kind::object)) continue;
      levels_.insert(levels_.begin(), Level{inner, levels_.front().path + std::string(name) + "."});
      deeper = true;
      break;
    }
  }
  // A language model that counts no layers, beside a config that does: the flat file is the model.
  const auto counted = std::ranges::find_if(levels_, [](const Level& level) { return counts_layers(*level.object); });
  if (counted != levels_.end()) std::rotate(levels_.begin(), counted, counted + 1);

  for (const Level& level : levels_) {
    const Value* const type = level.object->get("model_type");
    if (type == nullptr || !type->is(Kind::string)) continue;
    model_type_ = strip_text(type->text);
    use({type, level.path + "model_type"});
    break;
  }
  if (model_type_.empty() && root.get("ssm_cfg") != nullptr) {
    const Value* const kind = walk(root, "ssm_cfg.layer");
    model_type_ = kind != nullptr && kind->text == "Mamba2" ? "mamba2_ssm" : "mamba_ssm";
    defaulted("model_type", model_type_, "ssm_cfg: a config in the style of state-spaces/mamba");
  }
  family_ = find_family(model_type_);
}

Fields::Known& Fields::lookup(Label name) {
  // Names are literals, so the same question comes with the same address: layer after layer, hence the guess.
  unsigned char& guess = guess_[(reinterpret_cast<std::uintptr_t>(name) * 2654435761u >> 16) % guess_.size()];
  if (guess != 0 && looked_up_[guess - 1u].name == name) return looked_up_[guess - 1u];
  for (std::size_t i = 0; i < looked_up_.size() && i < 255; ++i) {
    if (looked_up_[i].name != name) continue;
    guess = static_cast<unsigned char>(i + 1);
    return looked_up_[i];
  }
  const auto keep = [&](Hit hit) -> Known& {
    const Value* const said = hit.value;
    const bool open = said == nullptr || (said->is(Kind::string) && said->text == "auto");
    looked_up_.push_back({name, std::move(hit), open ? find_default(model_type_, name) : nullptr});
    return looked_up_.back();
  };
  const Spellings* const row = spellings_of(name);
  const std::size_t depth = row != nullptr && row->outside ? levels_.size() : 1;
  Hit null;
  for (std::size_t i = 0; i < depth; ++i) {
    const Level& level = levels_[i];
    std::string_view rest = row != nullptr ? row->others : std::string_view{};
    for (std::string_view one = name; !one.empty();) {
      if (const Value* const found = walk(*level.object, one)) {
        Hit hit{found, level.path + std::string(one)};
        if (!found->is(Kind::null)) return keep(std::move(hit));
        if (null.value == nullptr) null = std::move(hit);
      }
      const std::size_t bar = rest.find('|');
      one = rest.substr(0, bar);
      rest = bar == std::string_view::npos ? std::string_view{} : rest.substr(bar + 1);
    }
  }
  return keep(std::move(null));
}

void Fields::use(const Hit& hit) {
  if (std::ranges::find(read_, hit.value) != read_.end()) return;
  read_.push_back(hit.value);
  used_.push_back({hit.path, show(*hit.value), {}});
}

const Value* Fields::find(Label name) { return lookup(name).hit.value; }

const Value* Fields::get(Label name) {
  Known& known = lookup(name);
  const Value* const value = known.hit.value;
  if (value == nullptr || value->is(Kind::null)) return nullptr;
  if (value->is(Kind::string) && value->text == "auto") return nullptr;
  if (!known.noted) use(known.hit);
  known.noted = true;
  return value;
}

std::string Fields::path_of(Label name) {
  const Hit& hit = lookup(name).hit;
  return hit.value != nullptr ? hit.path : levels_.front().path + std::string(name);
}

void Fields::refuse(ErrorCode code, Label name, std::string_view message) {
  if (!error_) error_ = Error{code, path_of(name), message};
}

void Fields::defaulted(Label name, std::string_view value, std::string_view source) {
  for (const ImportedField& field : defaulted_) {
    if (field.name == name) return;
  }
  defaulted_.push_back({name, std::string(value), std::string(source)});
}

void Fields::defaulted(Label name, u64 value, Label source) {
  defaulted(name, std::string_view(digits(value)), source);
}

const FieldDefault* Fields::fall_back(Label name) {
  Known& known = lookup(name);
  if (known.fallback != nullptr && !known.noted) defaulted(name, known.fallback->value, known.fallback->source);
  known.noted = known.noted || known.fallback != nullptr;
  return known.fallback;
}

u64 Fields::read_whole(const Value& value, std::string_view path, u64 max) {
  const auto whole = json::to_whole(value, path, 0, max);
  if (whole) return *whole;
  if (!error_) error_ = whole.error();
  return 0;
}

u64 Fields::whole(Label name, u64 max) {
  if (const Value* const value = get(name)) return read_whole(*only_element(value), lookup(name).hit.path, max);
  const FieldDefault* const row = fall_back(name);
  if (row == nullptr) return 0;
  u64 number = 0;
  for (const char digit : row->value) number = number * 10 + static_cast<u64>(digit - '0');
  return number;
}

u64 Fields::need(Label name, u64 max) {
  const u64 number = whole(name, max);
  if (number == 0 && !error_) {
    if (lookup(name).hit.value != nullptr && !lookup(name).hit.value->is(Kind::null)) {
      refuse(ErrorCode::out_of_range, name, "is 0: at least 1 is accepted");
    } else {
      refuse(ErrorCode::missing, name,
             Text() << "is not in this config, and no default of model type \"" << model_type_ << "\" is known");
    }
  }
  return number;
}

bool Fields::truth(Label name, bool fallback) {
  const Value* const value = get(name);
  if (value != nullptr) {
    if (value->is(Kind::boolean)) return value->truth;
    return read_whole(*value, lookup(name).hit.path, 1) != 0;
  }
  const FieldDefault* const row = fall_back(name);
  return row != nullptr ? row->value == "true" : fallback;
}

std::string_view Fields::text(Label name) {
  if (const Value* const value = get(name)) {
    if (value->is(Kind::string)) return value->text;
    refuse(ErrorCode::wrong_type, name, Text() << json::describe(*value) << " is not accepted: text is");
    return {};
  }
  const FieldDefault* const row = fall_back(name);
  return row != nullptr ? row->value : std::string_view{};
}

std::optional<u64> Fields::whole_at(Label name, u64 index, u64 max) {
  const Value* const value = get(name);
  if (value == nullptr) {
    const u64 number = whole(name, max);
    return number != 0 ? std::optional<u64>(number) : std::nullopt;
  }
  if (!value->is(Kind::array)) return read_whole(*value, lookup(name).hit.path, max);
  if (const Value* const element = element_at(*value, index)) {
    if (element->is(Kind::null)) return std::nullopt;
    return read_whole(*element, path_of(name) + "[" + digits(index) + "]", max);
  }
  refuse(ErrorCode::conflict, name, Text() << "has " << value->count() << " elements, fewer than there are layers");
  return std::nullopt;
}

u64 Fields::stated_context() {
  const Value* const value = find("max_position_embeddings");
  return value != nullptr ? json::to_whole(*value, {}, 0, kMaxTokens).value_or(0) : 0;
}

std::string Fields::unread_hint() const {
  const Level& level = levels_.front();
  const Value* const words = level.object->get("layer_types");
  const bool listed = words != nullptr && words->is(Kind::array);
  for (const Value& member : *level.object) {
    if (listed && in_list(kPatterns, member.key)) continue;
    if (!switched_on(member) || std::ranges::find(read_, &member) != read_.end() || in_list(kHarmless, member.key)) {
      continue;
    }
    for (const std::string_view hint : kHints) {
      if (member.key.find(hint) != std::string_view::npos) return level.path + std::string(member.key);
    }
  }
  return {};
}

void Fields::report(Model& model) {
  for (const Level& level : levels_) {
    for (const Value& member : *level.object) {
      const std::string path = level.path + std::string(member.key);
      const auto within = [&](const ImportedField& field) {
        return field.name == path || field.name.starts_with(path + ".");
      };
      if (!std::ranges::any_of(used_, within) &&
          !std::ranges::any_of(levels_, [&](const Level& other) { return other.object == &member; })) {
        model.ignored.push_back(path);
      }
    }
  }
  model.used = std::move(used_);
  model.defaulted = std::move(defaulted_);
}

}  // namespace kvcap
