// Which cache each layer keeps, from every form in which configs say so.
#include <algorithm>
#include <array>
#include <limits>

#include "kvcap/config.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

struct RoleWords {
  std::string_view words;
  Role role;
};

/// Words of layer_types, layers_block_type and block_types.
constexpr std::array kRoleWords = {
    RoleWords{"full_attention|attention|full|global|global_attention|deepseek_sparse_attention|sparse_attention|"
              "multi_latent_attention|mla|softmax_attention",
              Role::full},
    RoleWords{"sliding_attention|sliding_window_attention|sliding|swa|local|local_attention|window_attention|"
              "sliding_window",
              Role::window},
    RoleWords{"chunked_attention", Role::chunked},
    RoleWords{"linear_attention|mamba|mamba2|linear|recurrent|kda|gated_delta_net|gdn|lightning_attention|rwkv|ssm",
              Role::linear},
    RoleWords{"conv|short_conv", Role::conv},
    RoleWords{"mlp|ffn", Role::feed_forward},
    RoleWords{"moe", Role::experts},
    RoleWords{"none|no_op|noop", Role::none},
    RoleWords{"compressed_sparse_attention", Role::sparse_entries},
    RoleWords{"heavily_compressed_attention", Role::heavy_entries},
    RoleWords{"cross_attention", Role::cross},
    RoleWords{"hybrid|parallel_hybrid", Role::both},
};

std::optional<Role> role_of_word(std::string_view word) {
  for (const RoleWords& row : kRoleWords) {
    if (in_list(row.words, word)) return row.role;
  }
  return std::nullopt;
}

/// Letters of hybrid_override_pattern (Nemotron-H) and of sliding_window_pattern as text (EXAONE 4).
std::optional<Role> role_of_letter(char letter) {
  switch (letter) {
    case '*':
    case 'G': return Role::full;
    case 'L': return Role::window;
    case 'M': return Role::linear;
    case '-': return Role::feed_forward;
    case 'E': return Role::experts;
    default: return std::nullopt;
  }
}

class LayerReader {
 public:
  explicit LayerReader(Fields& fields) : f_(fields) {}

  LayerShapes read() {
    if (f_.find("num_hidden_layers") == nullptr && count_from_lists()) {
      f_.defaulted("num_hidden_layers", u64{count_}, "the length of the list of layers");
    } else {
      // T5 counts its encoder first; the decoder holds the cache.
      if (f_.get("num_decoder_layers") != nullptr || f_.get("decoder_layers") != nullptr) {
        count_ = f_.need_layers(f_.get("num_decoder_layers") != nullptr ? "num_decoder_layers" : "decoder_layers");
      } else {
        count_ = f_.need_layers("num_hidden_layers");
      }
    }
    if (f_.error()) return {};
    out_.layers.resize(static_cast<std::size_t>(count_));
    read_roles();
    if (f_.error()) return {};
    for (u64 i = 0; i < count_ && !f_.error(); ++i) fill(i);
    if (!f_.error()) share();
    return std::move(out_);
  }

 private:
  [[nodiscard]] LayerSpec& layer_at(u64 i) { return out_.layers[static_cast<std::size_t>(i)]; }

  bool count_from_lists() {
    for (const Label name : {"layer_types", "block_configs"}) {
      const Value* const list = f_.find(name);
      if (list != nullptr && list->is(Kind::array) && list->count() != 0 && list->count() <= kMaxConfigLayers) {
        count_ = list->count();
        return true;
      }
    }
    return false;
  }

  /// Gives each layer the role that `role_of(i)` says.
  template <class RoleOf>
  void set_roles(RoleOf role_of) {
    u64 i = 0;
    for (LayerSpec& layer : out_.layers) layer.role = role_of(i++);
  }

  void set_all(Role role) {
    set_roles([&](u64) { return role; });
  }

  /// The last of each `every` layers attends to everything.
  void set_every(u64 every, Role other) {
    set_roles([&](u64 i) { return (i + 1) % every == 0 ? Role::full : other; });
  }

  /// Calls `each(i, element)` for one element a layer. A list may be longer: the rest is of layers for prediction.
  template <class Each>
  void for_layers(Label name, const Value& list, Each each) {
    if (!list.is(Kind::array)) {
      f_.refuse(ErrorCode::wrong_type, name,
                Text() << json::describe(list) << " is not accepted: a list with one element a layer is");
      return;
    }
    if (list.count() < count_) {
      f_.refuse(ErrorCode::conflict, name, Text() << "has " << list.count() << " elements for " << count_ << " layers");
      return;
    }
    u64 i = 0;
    for (const Value& element : list) {
      if (i == count_ || f_.error()) break;
      each(i, element);
      ++i;
    }
  }

  /// The same for a list of layer numbers, counted from `base`.
  template <class Each>
  void for_numbers(Label name, const Value& list, u64 base, Each each) {
    if (!list.is(Kind::array)) {
      f_.refuse(ErrorCode::wrong_type, name,
                Text() << json::describe(list) << " is not accepted: a list of layer numbers is");
      return;
    }
    for (const Value& element : list) {
      const auto number = json::to_whole(element, f_.path_of(name), base, count_ - 1 + base);
      if (!number) {
        f_.refuse(number.error().code, name, number.error().message);
        return;
      }
      each(*number - base);
    }
  }

  void read_roles() {
    const std::string_view pattern = f_.text("layer_pattern");
    if (pattern == "linear") return set_all(Role::linear), attention_numbers(Role::full);
    if (pattern == "both") return set_all(Role::both);

    if (const Value* const blocks = f_.get("block_configs")) return read_blocks(*blocks);
    if (const Value* const words = f_.get("layer_types")) {
      return for_layers("layer_types", *words, [&](u64 i, const Value& word) { set_word("layer_types", i, word); });
    }
    if (const Value* const words = f_.get("block_types");
        words != nullptr && words->is(Kind::array) && words->count() != 0) {
      // A short list repeats.
      auto word = words->begin();
      for (u64 i = 0; i != count_; ++i) {
        if (word == words->end()) word = words->begin();
        set_word("block_types", i, *word);
        ++word;
      }
      // RecurrentGemma's attention is local.
      for (LayerSpec& layer : out_.layers) {
        if (layer.role == Role::full && f_.tokens("attention_window_size") != 0) layer.role = Role::window;
      }
      return;
    }
    if (const Value* const letters = f_.get("hybrid_override_pattern"))
      return read_letters("hybrid_override_pattern", *letters, false);
    if (const Value* const ints = f_.get("hybrid_layer_pattern")) {
      return for_layers("hybrid_layer_pattern", *ints, [&](u64 i, const Value& one) {
        set_flag("hybrid_layer_pattern", i, one, Role::full, Role::window);
      });
    }
    if (const Value* const ints = f_.get("attn_type_list")) {
      return for_layers("attn_type_list", *ints,
                        [&](u64 i, const Value& one) { set_flag("attn_type_list", i, one, Role::linear, Role::full); });
    }
    if (const Value* const kda = f_.get("linear_attn_config"); kda != nullptr && kda->is(Kind::object)) {
      // Both lists count from 1; what is not linear attends.
      const Value* const linear = f_.get("linear_attn_config.kda_layers");
      if (linear == nullptr) {
        return f_.refuse(ErrorCode::missing, "linear_attn_config.kda_layers", "says which layers are linear");
      }
      for_numbers("linear_attn_config.kda_layers", *linear, 1, [&](u64 i) { layer_at(i).role = Role::linear; });
      const Value* const full = f_.get("linear_attn_config.full_attn_layers");
      if (full == nullptr) return;
      if (const u64 named = u64{full->count()} + linear->count(); named != count_) {
        f_.refuse(ErrorCode::conflict, "linear_attn_config.full_attn_layers",
                  Text() << "and kda_layers name " << named << " layers of " << count_);
      }
      return;
    }
    if (f_.layers("attn_layer_period") != 0) {
      const u64 period = f_.layers("attn_layer_period");
      const u64 offset = f_.layers("attn_layer_offset");
      return set_roles([&](u64 i) { return i >= offset && (i - offset) % period == 0 ? Role::full : Role::linear; });
    }
    if (const u64 interval = f_.layers("full_attention_interval"); interval != 0) {
      return set_every(interval, Role::linear);
    }
    if (f_.get("attn_layer_indices") != nullptr) {
      set_all(f_.find("conv_L_cache") != nullptr ? Role::conv : Role::linear);
      return attention_numbers(Role::full);
    }
    if (const Value* const ratios = f_.get("compress_ratios")) {
      return for_layers("compress_ratios", *ratios, [&](u64 i, const Value& one) {
        const auto ratio = json::to_whole(one, f_.path_of("compress_ratios"), 0, kMaxTokens);
        if (!ratio) return f_.refuse(ratio.error().code, "compress_ratios", ratio.error().message);
        layer_at(i).role = *ratio == 0 ? Role::window : Role::sparse_entries;
      });
    }
    if (const Value* const list = f_.get("cross_attention_layers")) {
      return for_numbers("cross_attention_layers", *list, 0, [&](u64 i) { layer_at(i).role = Role::cross; });
    }
    if (f_.find("attention_types") != nullptr) return read_gpt_neo();
    if (f_.tokens("attention_chunk_size") != 0) return read_chunks();
    read_windows();
  }

  void set_word(Label name, u64 i, const Value& word) {
    const auto role = word.is(Kind::string) ? role_of_word(word.text) : std::nullopt;
    if (!role) {
      return f_.refuse(
          ErrorCode::unsupported, name,
          Text() << "names " << json::describe(word) << " for layer " << i << ", a kind of layer that is not known");
    }
    layer_at(i).role = *role;
  }

  void set_flag(Label name, u64 i, const Value& value, Role zero, Role one) {
    const auto flag = json::to_whole(value, f_.path_of(name) + "[" + digits(i) + "]", 0, 1);
    if (!flag) return f_.refuse(flag.error().code, name, flag.error().message);
    layer_at(i).role = *flag == 0 ? zero : one;
  }

  void read_letters(Label name, const Value& value, bool repeats) {
    if (!value.is(Kind::string) || value.text.empty()) {
      return f_.refuse(ErrorCode::wrong_type, name,
                       Text() << json::describe(value) << " is not accepted: one letter a layer is");
    }
    if (!repeats && value.text.size() != count_) {
      return f_.refuse(ErrorCode::conflict, name,
                       Text() << "has " << value.text.size() << " letters for " << count_ << " layers");
    }
    set_roles([&](u64 i) {
      const char letter = value.text[i % value.text.size()];
      const auto role = role_of_letter(letter);
      if (!role) {
        f_.refuse(ErrorCode::unsupported, name,
                  Text() << "has the letter \"" << std::string(1, letter) << "\", a kind of layer that is not known");
      }
      return role.value_or(Role::none);
    });
  }

  void attention_numbers(Role role) {
    if (const Value* const list = f_.get("attn_layer_indices")) {
      for_numbers("attn_layer_indices", *list, 0, [&](u64 i) { layer_at(i).role = role; });
      if (list->count() != 0 && f_.width("attn_cfg.d_conv") != 0) {
        f_.refuse(ErrorCode::unsupported, "attn_cfg.d_conv",
                  "gives attention layers a convolution whose state is not known");
      }
    }
  }

  /// Pruned models (Nemotron, DeciLM): each block says what is left of its attention.
  void read_blocks(const Value& blocks) {
    for_layers("block_configs", blocks, [&](u64 i, const Value& block) {
      const Value* const attention = block.get("attention");
      if (attention == nullptr) {
        return f_.refuse(ErrorCode::missing, "block_configs", Text() << "has no attention in element " << i);
      }
      const auto on = [&](Label name) {
        const Value* const value = attention->get(name);
        return value != nullptr && !(value->is(Kind::boolean) && !value->truth);
      };
      layer_at(i).role = Role::full;
      if (on("no_op") || on("replace_with_linear")) {
        layer_at(i).role = Role::none;
      } else if (on("window_length")) {
        layer_at(i).role = Role::window;
      } else if (on("mamba")) {
        layer_at(i).role = Role::linear;
      }
    });
    blocks_ = &blocks;
  }

  /// attention_types [[["global", "local"], 12]]: the words, repeated so many times.
  void read_gpt_neo() {
    const Value* const types = f_.get("attention_types");
    u64 i = 0;
    if (types != nullptr && types->is(Kind::array)) {
      for (const Value& group : *types) {
        if (!group.is(Kind::array) || group.count() != 2) break;
        const Value& words = *group.begin();
        auto second = group.begin();
        ++second;
        const auto times = json::to_whole(*second, f_.path_of("attention_types"), 1, kMaxConfigLayers);
        if (!times || !words.is(Kind::array) || words.count() == 0) break;
        for (u64 repeat = 0; repeat < *times; ++repeat) {
          for (const Value& word : words) {
            if (i == count_) return;
            set_word("attention_types", i++, word);
          }
        }
      }
    }
    if (i < count_) f_.refuse(ErrorCode::conflict, "attention_types", "does not name a kind for every layer");
  }

  /// Llama 4: layers with rotary positions attend within a chunk, the others to everything.
  void read_chunks() {
    if (const Value* const flags = f_.get("no_rope_layers"); flags != nullptr && flags->count() != 0) {
      return for_layers("no_rope_layers", *flags, [&](u64 i, const Value& one) {
        set_flag("no_rope_layers", i, one, Role::full, Role::chunked);
      });
    }
    const u64 interval = f_.layers("no_rope_layer_interval");
    if (interval == 0) {
      return f_.refuse(ErrorCode::unsupported, "attention_chunk_size",
                       "is given, but not which layers attend within a chunk");
    }
    set_every(interval, Role::chunked);
  }

  void read_windows() {
    if (!f_.truth("use_sliding_window", true)) {
      f_.get("sliding_window");
      return;
    }
    const Value* const stated = f_.get("sliding_window");
    if (stated != nullptr && stated->is(Kind::number) && stated->text == "-1") return;  // off
    const u64 window = f_.tokens("sliding_window");
    if (window == 0) return;
    const u64 longest = f_.stated_context();
    if (longest != 0 && window >= longest) return;  // it never fills
    const Value* const pattern = f_.get("sliding_window_pattern");
    if (pattern != nullptr && pattern->is(Kind::string)) return read_letters("sliding_window_pattern", *pattern, true);
    if (const u64 every = f_.layers("sliding_window_pattern"); every != 0) return set_every(every, Role::window);
    if (f_.find("use_sliding_window") != nullptr &&
        (f_.get("max_window_layers") != nullptr || f_.has_default("max_window_layers"))) {
      const u64 from = f_.layers("max_window_layers");
      return set_roles([&](u64 i) { return i >= from ? Role::window : Role::full; });
    }
    if (f_.text("sliding_layers") == "all") return set_all(Role::window);
    if (f_.family() == nullptr) {
      f_.refuse(ErrorCode::unsupported, "sliding_window",
                Text() << "is given, but neither the config nor its model type \"" << f_.model_type()
                       << "\" says which layers slide");
    }
  }

  void fill(u64 i) {
    LayerSpec& layer = layer_at(i);
    switch (layer.role) {
      case Role::full: layer.runs.push_back(attention(i, LayerKind::full)); break;
      case Role::window: layer.runs.push_back(windowed(i)); break;
      case Role::chunked: {
        LayerRun run = attention(i, LayerKind::chunked);
        run.window_tokens = static_cast<u32>(f_.need_tokens("attention_chunk_size"));
        layer.runs.push_back(run);
        break;
      }
      case Role::linear: layer.runs.push_back(linear()); break;
      case Role::conv: layer.runs.push_back(short_convolution()); break;
      case Role::none:
      case Role::feed_forward:
      case Role::experts: layer.runs.push_back(one(LayerKind::none)); break;
      case Role::sparse_entries:
      case Role::heavy_entries: compressed(i); break;
      case Role::cross: layer.runs.push_back(attention(i, LayerKind::cross)); break;
      case Role::both:
        layer.runs.push_back(attention(i, LayerKind::full));
        layer.runs.push_back(linear());
        break;
    }
    // LongCat-Flash: num_layers counts pairs of attention and MLP; num_hidden_layers, where stated, counts each.
    if (f_.text_model().get("num_hidden_layers") == nullptr && f_.whole("attentions_per_layer", 2) == 2) {
      layer.runs.push_back(layer.runs.front());
    }
    if (f_.truth("is_encoder_decoder", false)) {
      LayerRun run = attention(i, LayerKind::cross);
      run.source_tokens = static_cast<u32>(f_.tokens("max_source_positions"));
      if (run.source_tokens == 0) {
        f_.refuse(
            ErrorCode::unsupported, "is_encoder_decoder",
            "each decoder layer also keeps K and V of the encoder's input, whose length the config does not state");
      }
      layer.runs.push_back(run);
    }
  }

  static LayerRun one(LayerKind kind) {
    LayerRun run;
    run.kind = kind;
    return run;
  }

  /// Stands for a number that was refused, and that others may divide by.
  static u64 refused() { return 1; }

  u64 query_heads(u64 i) {
    if (const u64 heads = f_.whole_at("num_attention_heads", i, kMaxHeads).value_or(0); heads != 0) return heads;
    f_.need_heads("num_attention_heads");
    return refused();
  }

  u64 kv_heads(u64 i, u64 queries) {
    if (blocks_ != nullptr) {
      const Value* const attention = element_at(*blocks_, i)->get("attention");  // which read_blocks found in each
      if (const Value* const own = attention->get("num_key_value_heads")) return whole_of(*own, "block_configs");
      if (const Value* const group = attention->get("n_heads_in_group")) {
        const u64 in_group = whole_of(*group, "block_configs");
        if (queries % in_group != 0) {
          f_.refuse(ErrorCode::not_divisible, "block_configs",
                    Text() << "has " << in_group << " heads in a group, which do not divide " << queries);
          return refused();
        }
        return queries / in_group;
      }
    }
    // Falcon and StarCoder: one head for all queries, whatever another field says.
    if (f_.truth("multi_query", false) && !f_.truth("new_decoder_architecture", false)) return 1;
    if (!f_.truth("multi_query_attention", true)) return queries;
    if (f_.text("attn_config.attn_type") == "multiquery_attention") return 1;  // MPT
    const auto heads = f_.whole_at("num_key_value_heads", i, kMaxHeads);
    if (heads && *heads != 0) return *heads;
    if (heads) {
      f_.refuse(ErrorCode::out_of_range, "num_key_value_heads",
                Text() << "is 0 for layer " << i << ", which attends: at least 1 is accepted");
      return refused();
    }
    f_.defaulted("num_key_value_heads", u64{queries}, "not stated: one for each query head");
    return queries;
  }

  u64 whole_of(const Value& value, Label name) {
    const auto whole = json::to_whole(value, f_.path_of(name), 1, kMaxHeads);
    if (whole) return *whole;
    f_.refuse(whole.error().code, name, whole.error().message);
    return refused();
  }

  u64 head_width(u64 i, u64 queries) {
    if (const u64 width = f_.whole_at("head_dim", i, kMaxWidth).value_or(0); width != 0) return width;
    const u64 hidden = f_.need_width("hidden_size");
    if (f_.error()) return refused();
    if (const Value* const heads = f_.find("num_attention_heads"); heads != nullptr && heads->is(Kind::array)) {
      f_.refuse(ErrorCode::missing, "head_dim",
                "is not in this config, and layers of different numbers of heads do not say how wide one is");
      return refused();
    }
    if (hidden % queries != 0) {
      f_.refuse(ErrorCode::missing, "head_dim",
                Text() << "is not in this config, and hidden_size " << hidden << " is no multiple of " << queries
                       << " heads");
      return refused();
    }
    f_.defaulted("head_dim", u64{hidden / queries}, "not stated: hidden_size ÷ num_attention_heads");
    return hidden / queries;
  }

  /// Width of V after its projection from the latent row.
  u64 latent_value_width(u64 queries) {
    const u64 value = f_.width("v_head_dim");
    if (value != 0 || f_.find("v_head_dim") != nullptr) return value;
    const u64 hidden = f_.width("hidden_size");
    if (hidden == 0 || hidden % queries != 0) return 0;
    f_.defaulted("v_head_dim", u64{hidden / queries},
                 "not stated: hidden_size ÷ num_attention_heads (MiniCPM3 configuration class)");
    return hidden / queries;
  }

  /// Whether layer i owns an indexer (DeepSeek V3.2, GLM-5; sparse attention over full K and V in MiniMax M3).
  u32 indexer(u64 i) {
    if (const Value* const sparse = f_.get("sparse_attention_config"); sparse != nullptr && sparse->is(Kind::object)) {
      const u64 width = f_.width("sparse_attention_config.sparse_index_dim");
      const Value* const on = f_.get("sparse_attention_config.use_sparse_attention");
      if (on != nullptr && on->is(Kind::boolean) && !on->truth) return 0;
      if (f_.find("sparse_attention_config.sparse_attention_freq") == nullptr) return static_cast<u32>(width);
      const auto owns = f_.whole_at("sparse_attention_config.sparse_attention_freq", i, 1);
      return owns && *owns == 1 ? static_cast<u32>(width) : 0;
    }
    const u64 width = f_.width("index_head_dim");
    if (width == 0) return 0;
    if (const Value* const types = f_.get("indexer_types")) {
      const Value* const type = types->is(Kind::array) ? element_at(*types, i) : nullptr;
      if (type == nullptr) {
        f_.refuse(ErrorCode::conflict, "indexer_types", "does not have one element a layer");
      } else if (type->text == "full") {
        return static_cast<u32>(width);
      } else if (type->text != "shared") {
        f_.refuse(ErrorCode::unsupported, "indexer_types",
                  Text() << "names " << json::describe(*type) << " for layer " << i << "; full and shared are known");
      }
      return 0;
    }
    if (const u64 every = f_.layers("index_topk_freq"); every != 0) {
      // The rule behind GLM-5.2's list: the first layers, then one of each `every`.
      const u64 offset = f_.layers("index_skip_topk_offset");
      const bool owns = (std::max(i + 1, offset) - offset) % every == 0;
      return owns ? static_cast<u32>(width) : 0;
    }
    return static_cast<u32>(width);
  }

  LayerRun attention(u64 i, LayerKind kind) {
    LayerRun run = one(kind);
    LayerSpec& layer = layer_at(i);
    const bool all = kind == LayerKind::full;
    const u64 rank = all && f_.truth("use_mla", true) ? f_.whole("kv_lora_rank", kMaxLatentPart) : 0;
    if (rank != 0) {
      const u64 rope = f_.whole("qk_rope_head_dim", kMaxLatentPart);
      run.kind = LayerKind::latent;
      run.latent_width = static_cast<u32>(rank + rope);
      run.latent_value_width = static_cast<u32>(rank);
      run.indexer_width = indexer(i);
      layer.query_heads = static_cast<u32>(query_heads(i));
      run.expanded_heads = layer.query_heads;
      run.expanded_key_width = static_cast<u32>(f_.whole("qk_nope_head_dim", kMaxLatentPart) + rope);
      run.expanded_value_width = static_cast<u32>(latent_value_width(layer.query_heads));
      return run;
    }
    const u64 queries = query_heads(i);
    layer.query_heads = static_cast<u32>(queries);
    u64 heads = kv_heads(i, queries);
    u64 key = 0, value = 0;
    if (kind == LayerKind::window) {
      if (const u64 own = f_.heads("swa_num_key_value_heads"); own != 0) heads = own;
      key = f_.width("swa_head_dim");
      value = f_.width("swa_v_head_dim");
      if (const u64 own = f_.heads("swa_num_attention_heads"); own != 0) layer.query_heads = static_cast<u32>(own);
    } else if (all) {
      key = f_.width("global_head_dim");
      if (const u64 own = f_.heads("num_global_key_value_heads"); own != 0) heads = own;
    }
    if (key == 0) {
      key = head_width(i, queries);
      // Zero where a config of latent attention has it switched off.
      if (value == 0) value = f_.width("v_head_dim");
    }
    if (layer.query_heads % heads != 0) {
      f_.refuse(ErrorCode::not_divisible, "num_key_value_heads",
                Text() << "comes to " << heads << " for layer " << i << ", which does not divide its "
                       << layer.query_heads << " query heads");
      return run;
    }
    run.kv_heads = static_cast<u32>(heads);
    run.key_width = static_cast<u32>(key);
    run.value_width = static_cast<u32>(value != 0 ? value : key);
    if (all && f_.truth("attention_k_eq_v", false)) run.value_width = 0;
    if (all) run.indexer_width = indexer(i);
    return run;
  }

  u64 window_of(u64 i) {
    if (blocks_ != nullptr) {
      return whole_of(*element_at(*blocks_, i)->get("attention")->get("window_length"), "block_configs");
    }
    if (f_.find("attention_window_size") != nullptr || f_.has_default("attention_window_size")) {
      return f_.need_tokens("attention_window_size");
    }
    if (f_.find("use_sliding_window") != nullptr && !f_.truth("use_sliding_window", true)) {
      f_.refuse(ErrorCode::conflict, "use_sliding_window",
                Text() << "is false, yet layer " << i << " is said to slide");
    }
    const u64 window = f_.whole_at("sliding_window", i, kMaxTokens).value_or(0);
    if (window == 0) {
      f_.refuse(ErrorCode::missing, "sliding_window", Text() << "says how long the window of layer " << i << " is");
    }
    return window;
  }

  LayerRun windowed(u64 i) {
    LayerRun run = attention(i, LayerKind::window);
    const u64 window = window_of(i);
    run.window_tokens = static_cast<u32>(window);
    // DeepSeek V4: one entry serves as K and V in the layers without compression too.
    if (f_.find("compress_ratios") != nullptr || f_.find("compress_rates") != nullptr) run.value_width = 0;
    const u64 longest = f_.stated_context();
    if (longest != 0 && window >= longest) {
      run.kind = LayerKind::full;  // it never fills
      run.window_tokens = 0;
    }
    return run;
  }

  /// DeepSeek V4 (transformers deepseek_v4): every layer keeps a window of raw entries; compressed layers one more
  /// entry for each group of tokens, and those of the small groups an indexer's key with it. K serves as V.
  void compressed(u64 i) {
    LayerSpec& layer = layer_at(i);
    u64 ratio = ratio_of(i);
    bool indexed = layer.role == Role::sparse_entries;
    if (f_.find("compress_ratios") != nullptr) {
      if (ratio == 0) {
        f_.refuse(ErrorCode::conflict, "compress_ratios",
                  Text() << "is 0 for layer " << i << ", which is said to compress");
        return;
      }
      indexed = ratio == smallest_ratio();
    } else {
      const Label name =
          indexed ? "compress_rates.compressed_sparse_attention" : "compress_rates.heavily_compressed_attention";
      ratio = f_.need_tokens(name);
    }
    const LayerRun window = windowed(i);
    layer.runs.push_back(window);
    LayerRun entries = one(LayerKind::compressed);
    const u64 width = u64{window.kv_heads} * window.key_width;
    if (width > kMaxWidth) {
      f_.refuse(ErrorCode::out_of_range, "head_dim",
                Text() << "comes to entries of " << width << " values: at most 2^24 are accepted");
      return;
    }
    entries.latent_width = static_cast<u32>(width);
    entries.tokens_per_entry = static_cast<u32>(ratio);
    if (indexed) entries.indexer_width = static_cast<u32>(f_.width("index_head_dim"));
    layer.runs.push_back(entries);
  }

  u64 ratio_of(u64 i) { return f_.whole_at("compress_ratios", i, kMaxTokens).value_or(0); }

  /// Sought once: the list is gone through for each of its elements.
  u64 smallest_ratio() {
    if (smallest_ratio_) return *smallest_ratio_;
    u64 smallest = std::numeric_limits<u64>::max();
    for (u64 i = 0; i < count_; ++i) {
      if (const u64 ratio = ratio_of(i); ratio != 0) smallest = std::min(smallest, ratio);
    }
    return smallest_ratio_.emplace(smallest);
  }

  const Format* state_format(const Format* fallback) {
    const std::string_view name = f_.text("state_dtype");
    if (name.empty()) {
      f_.defaulted("state_dtype", std::string(fallback->id),
                   "not stated: the dtype of the model (vLLM mamba_cache_dtype auto)");
      return fallback;
    }
    const Format* const format = find_format(name);
    if (format == nullptr || format->bits < 16) {
      f_.refuse(ErrorCode::unsupported, "state_dtype", Text() << "\"" << name << "\" is no known format of a state");
      return fallback;
    }
    return format;
  }

  const LayerRun& linear() {
    if (!linear_) linear_ = recurrent();
    return *linear_;
  }

  /// The shape behind every linear layer of the model (formulas: vLLM mamba_utils.py).
  LayerRun recurrent() {
    using S = RecurrentShape::Kind;
    RecurrentShape& s = out_.recurrent;
    const std::string_view stated = f_.text("linear_kind");
    LayerRun run = one(LayerKind::recurrent);
    run.conv_format = run.state_format = find_format("bf16");
    Wide state = 0, conv = 0;
    // One after the other: the arguments of one call are read in any order, and what is read is listed.
    const auto mamba_inner = [&] {
      const u64 expand = f_.need("mamba_expand", 1024);
      return expand * f_.need_width("hidden_size");
    };

    if (f_.find("linear_attn_config") != nullptr) {
      s.kind = S::kda;
      s.heads = f_.need_heads("linear_attn_config.num_heads");
      s.key_width = s.value_width = f_.need_width("linear_attn_config.head_dim");
      s.kernel = f_.need_width("linear_attn_config.short_conv_kernel_size");
      state = Wide{s.heads} * s.key_width * s.key_width;
      conv = Wide{3} * s.heads * s.key_width * (s.kernel - 1);
    } else if (f_.find("linear_num_value_heads") != nullptr || f_.has_default("linear_num_value_heads")) {
      s.kind = S::delta;
      s.heads = f_.need_heads("linear_num_value_heads");
      s.key_heads = f_.need_heads("linear_num_key_heads");
      s.key_width = f_.need_width("linear_key_head_dim");
      s.value_width = f_.need_width("linear_value_head_dim");
      s.kernel = f_.need_width("linear_conv_kernel_dim");
      state = Wide{s.heads} * s.key_width * s.value_width;
      conv = Wide{2 * s.key_heads * s.key_width + s.heads * s.value_width} * (s.kernel - 1);
    } else if (stated == "lightning") {
      s.kind = S::lightning;
      s.heads = query_heads(0);
      s.key_width = s.value_width = head_width(0, s.heads);
      state = Wide{s.heads} * s.key_width * s.key_width;
    } else if (stated == "rwkv") {
      s.kind = S::rwkv;
      s.value_width = s.key_width = f_.need_width("head_size");
      const u64 hidden = f_.need_width("hidden_size");
      u64 inner = f_.width("attention_hidden_size");
      if (inner == 0) inner = hidden;
      if (f_.error()) return run;
      if (inner % s.key_width != 0) {
        f_.refuse(ErrorCode::not_divisible, "head_size", "does not divide the width of the time mixing");
        return run;
      }
      s.heads = inner / s.key_width;
      state = Wide{s.heads} * s.key_width * s.key_width;
      conv = Wide{2} * hidden;
    } else if (stated == "griffin") {
      s.kind = S::griffin;
      s.inner = f_.width("lru_width");
      if (s.inner == 0) s.inner = f_.need_width("hidden_size");
      s.kernel = f_.need_width("conv1d_width");
      state = s.inner;
      conv = Wide{s.inner} * (s.kernel - 1);
    } else if (stated == "mamba1" || (stated.empty() && f_.find("mamba_num_heads") == nullptr &&
                                      f_.find("mamba_d_state") != nullptr && f_.find("mamba_dt_rank") != nullptr)) {
      s.kind = S::mamba1;
      s.state = f_.need_width("mamba_d_state");
      s.kernel = f_.need_width("mamba_d_conv");
      // Falcon-Mamba's expand contradicts intermediate_size, which counts; in a hybrid that is the MLP's.
      if (f_.find("layer_types") == nullptr && f_.text("layer_pattern") == "linear")
        s.inner = f_.width("intermediate_size");
      if (s.inner == 0) s.inner = mamba_inner();
      state = Wide{s.inner} * s.state;
      conv = Wide{s.inner} * (s.kernel - 1);
    } else if (stated == "mamba2" || f_.find("mamba_num_heads") != nullptr || f_.find("mamba_d_state") != nullptr ||
               f_.has_default("mamba_num_heads")) {
      s.kind = S::mamba2;
      s.state = f_.need_width("mamba_d_state");
      s.kernel = f_.need_width("mamba_d_conv");
      s.groups = f_.need_heads("mamba_n_groups");
      s.key_width = f_.width("mamba_head_dim");
      s.heads = f_.heads("mamba_num_heads");
      if (s.heads == 0 || s.key_width == 0) {
        u64 inner = f_.width("mamba_inner");
        if (inner == 0) inner = mamba_inner();
        const u64 by = s.heads != 0 ? s.heads : f_.need_width("mamba_head_dim");
        if (f_.error()) return run;
        if (inner % by != 0) {
          f_.refuse(ErrorCode::not_divisible, "mamba_expand", "× hidden_size is no whole number of heads");
          return run;
        }
        (s.heads != 0 ? s.key_width : s.heads) = inner / by;
      }
      s.inner = s.heads * s.key_width;
      state = Wide{s.inner} * s.state;
      conv = Wide{s.inner + 2 * s.groups * s.state} * (s.kernel - 1);
    } else {
      f_.refuse(ErrorCode::unsupported, f_.find("layer_types") != nullptr ? "layer_types" : "model_type",
                "has recurrent or linear layers of a kind whose state this config does not describe in known fields");
    }
    if (f_.error()) return run;
    if (state > kMaxState || conv > kMaxState) {
      f_.refuse(ErrorCode::out_of_range, "mamba_d_state",
                "and the other sizes come to a state of more than 2^48 values");
      return run;
    }
    run.state_values = static_cast<u64>(state);
    run.conv_values = static_cast<u64>(conv);
    run.state_format = state_format(run.state_format);
    return run;
  }

  LayerRun short_convolution() {
    LayerRun run = one(LayerKind::recurrent);
    run.state_format = run.conv_format = find_format("bf16");
    RecurrentShape& s = out_.conv;
    s.kind = RecurrentShape::Kind::conv;
    s.kernel = f_.need_width("conv_L_cache");
    s.inner = f_.width("conv_dim");
    if (s.inner == 0) s.inner = f_.need_width("hidden_size");
    static_assert(kMaxWidth * kMaxWidth <= kMaxState);
    run.conv_values = s.inner * (s.kernel - 1);
    return run;
  }

  /// Layers that read another layer's cache.
  void share() {
    const auto drop = [](LayerSpec& layer) {
      for (LayerRun& run : layer.runs) run = one(LayerKind::shared);
    };
    if (const u64 shared = f_.layers("num_kv_shared_layers"); shared != 0) {
      if (shared >= count_) {
        f_.refuse(ErrorCode::conflict, "num_kv_shared_layers", "leaves no layer that owns a cache");
        return;
      }
      for (LayerSpec& layer : std::span(out_.layers).last(static_cast<std::size_t>(shared))) drop(layer);
    }
    // Hunyuan: layers after the first of each group read the first one's cache.
    if (f_.truth("use_cla", false)) {
      const u64 factor = f_.need_layers("cla_share_factor");
      if (f_.error()) return;
      u64 i = 0;
      for (LayerSpec& layer : out_.layers) {
        if (i++ % factor != 0) drop(layer);
      }
    }
  }

  Fields& f_;
  u64 count_ = 0;
  const Value* blocks_ = nullptr;
  LayerShapes out_;
  std::optional<LayerRun> linear_;
  std::optional<u64> smallest_ratio_;
};

}  // namespace

LayerShapes read_layers(Fields& fields) { return LayerReader(fields).read(); }

std::vector<LayerRun> run_lengths(std::span<const LayerSpec> layers) {
  std::vector<LayerRun> out;
  for (auto begin = layers.begin(); begin != layers.end();) {
    const auto end =
        std::find_if(begin, layers.end(), [&](const LayerSpec& layer) { return layer.runs != begin->runs; });
    for (LayerRun run : begin->runs) {
      // A convolution over one token alone has nothing to keep.
      if (run.kind == LayerKind::recurrent && run.state_values == 0 && run.conv_values == 0) {
        run = {.kind = LayerKind::none};
      }
      run.count = static_cast<u32>(end - begin);
      if (!out.empty()) {
        LayerRun last = out.back();
        last.count = run.count;
        if (last == run) {
          out.back().count += run.count;
          continue;
        }
      }
      out.push_back(run);
    }
    begin = end;
  }
  return out;
}

}  // namespace kvcap
