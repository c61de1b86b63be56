// Parameters by the standard components of a decoder: embeddings, attention, MLP or experts, norms, states.
#include <algorithm>
#include <array>
#include <limits>

#include "kvcap/config.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

class Counter {
 public:
  Counter(Fields& fields, const LayerShapes& shapes) : f_(fields), shapes_(shapes) {}

  ParameterCount count() {
    ParameterCount out;
    if (f_.family() == nullptr || f_.has_trait(kNoCount)) return out;
    // Parts whose formula is not known here.
    for (const Label part : {"hidden_size_per_layer_input", "cross_attention_layers", "use_cla",
                             "sparse_attention_config", "ffn_multipliers"}) {
      const Value* const value = f_.find(part);
      if (value != nullptr && !value->is(Kind::null) && !(value->is(Kind::number) && value->text == "0") &&
          !(value->is(Kind::boolean) && !value->truth)) {
        return out;
      }
    }
    if (const u64 projected = f_.width("word_embed_proj_dim"); projected != 0 && projected != hidden()) return out;

    const u64 h = hidden();
    u64 vocabulary = f_.width("vocab_size");
    if (const u64 pad = f_.width("pad_vocab_size_multiple"); pad != 0) {
      vocabulary = ceil_div(vocabulary, pad) * pad;
    }
    if (h == 0 || vocabulary == 0) return out;
    out.embedding = Wide{vocabulary} * h;
    if (!f_.truth("tie_word_embeddings", f_.has_trait(kTied))) out.head = out.embedding;
    if (f_.truth("lm_head_bias", f_.has_trait(kHeadBias))) out.rest += vocabulary;
    if (f_.has_trait(kPositions)) {
      const u64 spare = f_.has_trait(kSpareRows) ? 2 : 0;
      out.rest += Wide{f_.need_tokens("max_position_embeddings") + spare} * h;
    }
    if (f_.has_trait(kEmbeddingNorm)) out.rest += norm(h);
    out.rest += norm(h);
    // Whether layers that share another's indexer hold weights for one is not known.
    const auto owns = [](const LayerSpec& spec) { return spec.runs.front().indexer_width != 0; };
    unknown_ = f_.width("index_head_dim") != 0 && !std::ranges::all_of(shapes_.layers, owns);
    read_mlp();
    u64 i = 0;
    for (const LayerSpec& spec : shapes_.layers) {
      if (unknown_) break;
      out.layers.push_back(layer(i++, spec, out.inactive_experts));
    }
    out.known = !unknown_ && !f_.error();
    return out;
  }

 private:
  using Parts = std::array<Wide, kModuleClasses>;

  u64 hidden() { return f_.width("hidden_size"); }

  [[nodiscard]] Wide norm(Wide width) const { return f_.has_trait(kNormBias) ? 2 * width : width; }

  void read_mlp() {
    dense_ = f_.width("intermediate_size");
    if (dense_ == 0 && f_.has_trait(kFourTimes)) {
      u64 ratio = f_.whole("expansion_ratio", 1024);
      if (ratio == 0) ratio = 4;
      dense_ = ratio * hidden();
      f_.defaulted("intermediate_size", u64{dense_}, "not stated: 4 × hidden_size, as the model's code has it");
    }
    if (f_.has_trait(kHalfMlp)) dense_ /= 2;
    if (f_.has_trait(kAdjustedMlp) && f_.truth("block_auto_adjust_ff_dim", true)) {
      const u64 multiple = std::max<u64>(f_.width("block_multiple_of"), 1);
      dense_ = ceil_div(dense_ * 2 / 3, multiple) * multiple;
    }
    experts_ = f_.experts("num_experts");
    expert_width_ = f_.width("moe_intermediate_size");
    if (expert_width_ == 0) expert_width_ = f_.width("intermediate_size");
    if (const u64 own = f_.width("dense_intermediate_size"); own != 0) dense_ = own;
    if (const u64 own = f_.width("intermediate_size_mlp"); own != 0) dense_ = own;
    // Experts that every token visits, by each way of stating them.
    if (const u64 width = f_.width("shared_expert_intermediate_size"); width != 0) {
      shared_ = width;
    } else if (const u64 each = f_.width("moe_shared_expert_intermediate_size"); each != 0) {
      shared_ = each * std::max<u64>(f_.experts("n_shared_experts"), 1);
    } else if (const u64 all = f_.width("shared_intermediate_size"); all != 0) {
      shared_ = all;
    } else if (const u64 number = f_.experts("n_shared_experts"); number != 0) {
      shared_ = number * expert_width_;
    } else if (f_.has_trait(kSharedExpert)) {
      shared_ = expert_width_;
    }
  }

  Parts layer(u64 i, const LayerSpec& spec, Wide& inactive) {
    Parts parts{};
    const u64 h = hidden();
    switch (spec.role) {
      case Role::full:
      case Role::window:
      case Role::chunked: attention(spec, parts); break;
      case Role::linear: recurrent(shapes_.recurrent, parts); break;
      case Role::conv: recurrent(shapes_.conv, parts); break;
      case Role::both:
        attention(spec, parts);
        recurrent(shapes_.recurrent, parts);
        break;
      case Role::none:
      case Role::feed_forward:
      case Role::experts: break;
      default: unknown_ = true; return parts;
    }
    if (f_.has_trait(kMixerOnly)) {
      parts[kSmall] += norm(h);
      if (spec.role == Role::feed_forward) dense(dense_, parts);
      if (spec.role == Role::experts) moe(parts, inactive);
      return parts;
    }
    if (const Value* const blocks = f_.find("block_configs")) {
      pruned(*blocks, i, spec.role == Role::none, parts);
      return parts;
    }
    u64 norms = f_.has_trait(kFourNorms) ? 4 : f_.has_trait(kOneNorm) ? 1 : 2;
    if (f_.has_trait(kParallelNorm) && !f_.truth("new_decoder_architecture", false) &&
        f_.truth("parallel_attn", true)) {
      norms = 1;
    }
    parts[kSmall] += norms * norm(h);
    if (is_moe(i)) {
      moe(parts, inactive);
      if (f_.has_trait(kDenseBeside)) {
        dense(dense_, parts);
        parts[kSmall] += 3 * norm(h) + h + experts_;
      }
    } else if (shared_ != 0 && f_.has_trait(kSharedMlp)) {
      dense(shared_, parts);
    } else {
      dense(dense_, parts);
    }
    return parts;
  }

  void attention(const LayerSpec& spec, Parts& parts) {
    const Wide h = hidden();
    const LayerRun& run = spec.runs.front();
    const Wide queries = spec.query_heads;
    Wide small = 0;
    if (run.kind == LayerKind::latent) {
      const Wide rank = run.latent_value_width;
      const Wide rope = run.latent_width - rank;
      const Wide nope = run.expanded_key_width - rope;
      const Wide value = run.expanded_value_width;
      const Wide query_rank = f_.width("q_lora_rank");
      const Wide query_width = queries * (nope + rope);
      parts[kAttention] += query_rank != 0 ? h * query_rank + query_rank * query_width : h * query_width;
      parts[kAttention] += h * (rank + rope) + rank * queries * (nope + value) + queries * value * h;
      small += query_rank + rank;
      if (run.indexer_width != 0) {
        const Wide heads = f_.heads("index_n_heads");
        const Wide width = run.indexer_width;
        parts[kAttention] += query_rank * heads * width + h * width + h * heads;
        small += 2 * width;
      }
      if (nope == 0 || value == 0) unknown_ = true;
      parts[kSmall] += small;
      return;
    }
    // Which projections a layer has that reads another's cache is not known.
    if (f_.width("kv_lora_rank") != 0 || run.indexer_width != 0 || run.kind == LayerKind::shared) unknown_ = true;
    const Wide q = queries * run.key_width;
    const Wide k = Wide{run.kv_heads} * run.key_width;
    const Wide v = Wide{run.kv_heads} * run.value_width;
    const Wide o = queries * (run.value_width != 0 ? run.value_width : run.key_width);
    const bool gate = f_.has_trait(kOutputGate) && f_.truth("attn_output_gate", true);
    parts[kAttention] += h * (gate ? 2 * q : q) + h * k + h * v + o * h;
    const bool key = f_.truth("attention_bias", false) || f_.truth("add_qkv_bias", false) ||
                     f_.truth("use_qkv_bias", false) || f_.truth("qkv_bias", false);
    const bool all = f_.truth("bias", false);
    if (key || all || f_.has_trait(kQkvBias)) small += q + k + v;
    if ((key && f_.has_trait(kBiasKeyOut)) || all || f_.has_trait(kOutBias)) small += h;
    if (f_.has_trait(kNormRows) || (f_.has_trait(kNormRowsKey) && f_.truth("use_qk_norm", false))) {
      small += q + k;
    } else if (f_.has_trait(kNormHeads) && f_.truth("use_qk_norm", true)) {
      small += 2 * Wide{run.key_width};
    }
    if (f_.has_trait(kSinks)) small += queries;
    parts[kSmall] += small;
  }

  void dense(Wide width, Parts& parts) {
    const Wide h = hidden();
    const bool plain = f_.has_trait(kPlainMlp);
    if (width == 0) unknown_ = true;
    parts[kDense] += (plain ? 2 : 3) * h * width;
    const bool biased = f_.has_trait(kMlpBias) || f_.truth("mlp_bias", false) || f_.truth("bias", false);
    if (biased) parts[kSmall] += (plain ? 1 : 2) * width + h;
  }

  void moe(Parts& parts, Wide& inactive) {
    const Wide h = hidden();
    const u64 matrices = f_.has_trait(kPlainMlp) ? 2 : 3;
    if (experts_ == 0 || expert_width_ == 0) unknown_ = true;
    const Wide each = matrices * h * expert_width_;
    parts[kExperts] += experts_ * each;
    const u64 visited = f_.experts("num_experts_per_tok");
    if (visited != 0) inactive += (experts_ - std::min(visited, experts_)) * each;
    parts[kShared] += matrices * h * shared_;
    parts[kRouter] += h * experts_;
    if (shared_ != 0 && f_.has_trait(kSharedGate)) parts[kRouter] += h;
    if (f_.has_trait(kRouterBias)) parts[kSmall] += experts_;
    if (f_.has_trait(kExpertBias)) parts[kSmall] += experts_ + experts_ * (2 * Wide{expert_width_} + h);
  }

  bool is_moe(u64 i) {
    if (experts_ < 2 || !f_.truth("enable_moe_block", true)) return false;
    if (const Value* const kinds = f_.get("mlp_layer_types"); kinds != nullptr && kinds->is(Kind::array)) {
      if (const Value* const kind = element_at(*kinds, i)) return kind->text != "dense";
    }
    if (const Value* const numbers = f_.get("mlp_only_layers"); numbers != nullptr && numbers->is(Kind::array)) {
      for (const Value& number : *numbers) {
        const auto one = json::to_whole(number, {}, 0, std::numeric_limits<u64>::max());
        if (one && *one == i) return false;
      }
    }
    if (i < f_.layers("first_k_dense_replace")) return false;
    if (f_.find("moe_layer_freq") != nullptr) {
      const Value* const frequency = f_.get("moe_layer_freq");
      if (frequency != nullptr && frequency->is(Kind::array)) {
        const auto flag = f_.whole_at("moe_layer_freq", i, 1);
        return flag && *flag == 1;
      }
      const u64 every = f_.layers("moe_layer_freq");
      return every == 0 || i % every == 0;
    }
    if (const u64 step = f_.layers("decoder_sparse_step"); step != 0) return (i + 1) % step == 0;
    if (const u64 step = f_.layers("interleave_moe_layer_step"); step != 0) return (i + 1) % step == 0;
    if (const u64 period = f_.layers("expert_layer_period"); period != 0) {
      const u64 offset = f_.layers("expert_layer_offset");
      return i >= offset && (i - offset) % period == 0;
    }
    return true;
  }

  void recurrent(const RecurrentShape& s, Parts& parts) {
    using S = RecurrentShape::Kind;
    const Wide h = hidden();
    switch (s.kind) {
      case S::mamba1: {
        Wide rank = f_.width("mamba_dt_rank");
        if (rank == 0) rank = ceil_div<Wide>(h, 16);
        const Wide d = s.inner;
        parts[kAttention] += h * 2 * d + d * (rank + Wide{2} * s.state) + rank * d + d * h;
        parts[kSmall] += d * s.kernel + d + d * s.state + d;
        if (f_.truth("mamba_conv_bias", true)) parts[kSmall] += d;
        if (f_.has_trait(kStateNorms)) parts[kSmall] += rank + Wide{2} * s.state;
        break;
      }
      case S::mamba2: {
        const Wide d = s.inner;
        const Wide channels = d + 2 * Wide{s.groups} * s.state;
        parts[kAttention] += h * (d + channels + s.heads) + d * h;
        parts[kSmall] += channels * s.kernel + 3 * Wide{s.heads};
        if (f_.truth("mamba_conv_bias", true)) parts[kSmall] += channels;
        if (f_.truth("mamba_rms_norm", !f_.has_trait(kNoGatedNorm))) parts[kSmall] += d;
        break;
      }
      case S::delta: {
        const Wide key = Wide{s.key_heads} * s.key_width;
        const Wide value = Wide{s.heads} * s.value_width;
        parts[kAttention] += h * (2 * key + 2 * value) + h * 2 * s.heads + value * h;
        parts[kSmall] += (2 * key + value) * s.kernel + 2 * Wide{s.heads} + s.value_width;
        break;
      }
      case S::kda: {
        const Wide width = Wide{s.heads} * s.key_width;
        parts[kAttention] += 3 * h * width + width * h;  // q, k, v, o
        parts[kAttention] +=
            2 * (h * s.key_width + s.key_width * width) + h * s.heads;  // decay and gate of low rank, beta
        parts[kSmall] += 3 * width * s.kernel + width + s.heads + s.key_width;
        break;
      }
      case S::conv:
        parts[kAttention] += h * 3 * s.inner + Wide{s.inner} * h;
        parts[kSmall] += Wide{s.inner} * s.kernel;
        break;
      default: unknown_ = true;
    }
  }

  /// Blocks of block_configs: an MLP of its own width, a norm for each part that is left.
  void pruned(const Value& blocks, u64 i, bool attention_gone, Parts& parts) {
    const Value* const block = element_at(blocks, i);
    const Value* const ffn = block != nullptr ? block->get("ffn") : nullptr;
    const auto on = [&](std::string_view name) {
      const Value* const value = ffn->get(name);
      return value != nullptr && value->is(Kind::boolean) && value->truth;
    };
    if (ffn == nullptr || on("replace_with_linear")) {
      unknown_ = true;
      return;
    }
    const Wide h = hidden();
    if (!attention_gone) parts[kSmall] += norm(h);
    if (on("no_op")) return;
    parts[kSmall] += norm(h);
    u64 width = 0;
    if (const Value* const own = ffn->get("intermediate_size")) {
      width = json::to_whole(*own, "block_configs", 0, kMaxWidth).value_or(0);
    } else if (const Value* const times = ffn->get("ffn_mult")) {
      const auto fraction = json::to_fraction(*times, "block_configs", {}, {1000 * Fraction::kOne});
      // Two thirds of the multiple of the width, rounded up to 256 (DeciLM's modelling code).
      if (fraction) width = ceil_div<u64>(static_cast<u64>(fraction->of(2 * h)) / 3, 256) * 256;
    }
    dense(width, parts);
  }

  Fields& f_;
  const LayerShapes& shapes_;
  u64 dense_ = 0, experts_ = 0, expert_width_ = 0, shared_ = 0;
  bool unknown_ = false;
};

}  // namespace

Wide ParameterCount::total() const noexcept {
  Wide sum = embedding + head + rest;
  for (const auto& layer : layers) {
    for (const Wide part : layer) sum += part;
  }
  return sum;
}

ParameterCount count_parameters(Fields& fields, const LayerShapes& shapes) { return Counter(fields, shapes).count(); }

}  // namespace kvcap
