// The fields of somebody's config.json under all their spellings, and what a model's type says about those it leaves
// out.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvcap/json.hpp"
#include "kvcap/model.hpp"

namespace kvcap {

/// Whether `name` is one of the words of a list like "llama|mistral|qwen2".
[[nodiscard]] bool in_list(std::string_view list, std::string_view name) noexcept;

/// Element i of a list, counted from 0; nullptr past its end.
[[nodiscard]] const json::Value* element_at(const json::Value& list, u64 i) noexcept;

/// What the parameter count of a family needs to know beside the config's numbers. Every trait is a term of the
/// formula.
enum Trait : u32 {
  kNormBias = 1u << 0,   ///< a norm is a weight and a bias
  kOneNorm = 1u << 1,    ///< one norm a layer: attention and MLP side by side
  kFourNorms = 1u << 2,  ///< norms before and after attention and MLP
  kPlainMlp = 1u << 3,   ///< two matrices, not gate, up and down
  kQkvBias = 1u << 4,
  kOutBias = 1u << 5,
  kMlpBias = 1u << 6,
  kBiasKeyOut = 1u << 7,  ///< attention_bias covers the output projection too
  kNormHeads = 1u << 8,   ///< Q and K normed head by head (one weight of a head's width each)
  kNormRows = 1u << 9,    ///< Q and K normed over all heads
  kTied = 1u << 10,       ///< the head is the embedding when tie_word_embeddings is absent
  kPositions = 1u << 11,  ///< a learned table of positions
  kEmbeddingNorm = 1u << 12,
  kHeadBias = 1u << 13,
  kHalfMlp = 1u << 14,       ///< intermediate_size counts gate and up together
  kExpertBias = 1u << 15,    ///< router and experts have biases
  kSinks = 1u << 16,         ///< one sink logit for each query head
  kRouterBias = 1u << 17,    ///< a correction bias for each expert
  kOutputGate = 1u << 18,    ///< the query projection also makes an output gate
  kStateNorms = 1u << 19,    ///< norms over the step, B and C of a state-space layer
  kSharedGate = 1u << 20,    ///< a gate of one output for the shared expert
  kNoGatedNorm = 1u << 21,   ///< no norm inside a Mamba-2 layer
  kAdjustedMlp = 1u << 22,   ///< intermediate_size × 2/3, rounded up to block_multiple_of
  kDenseBeside = 1u << 23,   ///< a dense MLP beside the experts, three norms more and scales of the router
  kMixerOnly = 1u << 24,     ///< a layer is one norm and one part: attention, state, MLP or experts
  kSharedExpert = 1u << 25,  ///< one shared expert as wide as the others, not stated
  kSpareRows = 1u << 26,     ///< the table of positions has two rows more
  kParallelNorm = 1u << 27,  ///< one norm where parallel_attn, unless new_decoder_architecture
  kFourTimes = 1u << 28,     ///< the MLP is expansion_ratio (4) times as wide as the model where it is not stated
  kSharedMlp = 1u << 29,     ///< shared_intermediate_size is the MLP of layers without experts
  kNormRowsKey = 1u << 30,   ///< kNormRows where use_qk_norm
  kNoCount = 1u << 31,       ///< the cache is known, the parameter count is not
};

/// A family by its model_type (without a closing "_text"); nullptr when unknown.
struct Family {
  std::string_view model_types;  ///< "llama|mistral"
  u32 traits;
};
[[nodiscard]] const Family* find_family(std::string_view model_type) noexcept;

/// What a model's type says about a field that a config leaves out.
struct FieldDefault {
  std::string_view model_types;
  std::string_view field;
  std::string_view value;
  std::string_view source;
};
[[nodiscard]] const FieldDefault* find_default(std::string_view model_type, std::string_view field) noexcept;

inline constexpr u64 kMaxConfigLayers = 4096;         ///< layers of a config, and places and steps among them
inline constexpr u64 kMaxExperts = u64{1} << 20;      ///< experts of one layer
inline constexpr u64 kMaxLatentPart = kMaxWidth / 2;  ///< values of a latent row or of its rotary key: two are added

/// A config's fields by canonical name. Reading marks a field as used or defaulted; the first fault stays in `error()`
/// and later reads give zeros, so that a caller checks once.
class Fields {
 public:
  /// Finds the language model within the config: the innermost of text_config, llm_config, … that counts layers.
  explicit Fields(const json::Value& root);

  [[nodiscard]] std::string_view model_type() const noexcept { return model_type_; }
  [[nodiscard]] const Family* family() const noexcept { return family_; }
  [[nodiscard]] bool has_trait(Trait trait) const noexcept {
    return family_ != nullptr && (family_->traits & trait) != 0;
  }
  [[nodiscard]] const json::Value& root() const noexcept { return root_; }
  [[nodiscard]] const json::Value& text_model() const noexcept { return *levels_.front().object; }

  /// The field under any of its spellings, null included; nullptr when absent. Marks nothing.
  [[nodiscard]] const json::Value* find(Label name);
  /// As `find`, but null, and the text "auto", count as absent; marks it used.
  const json::Value* get(Label name);
  /// A count; 0 when absent. Falls back on the default of the model's type unless the config says null.
  u64 whole(Label name, u64 max);
  /// As `whole`, but `missing` when there is none.
  u64 need(Label name, u64 max);
  /// The same by what is counted, with its limit.
  u64 layers(Label name) { return whole(name, kMaxConfigLayers); }
  u64 tokens(Label name) { return whole(name, kMaxTokens); }
  u64 width(Label name) { return whole(name, kMaxWidth); }
  u64 heads(Label name) { return whole(name, kMaxHeads); }
  u64 experts(Label name) { return whole(name, kMaxExperts); }
  u64 need_layers(Label name) { return need(name, kMaxConfigLayers); }
  u64 need_tokens(Label name) { return need(name, kMaxTokens); }
  u64 need_width(Label name) { return need(name, kMaxWidth); }
  u64 need_heads(Label name) { return need(name, kMaxHeads); }
  /// true or false (0 and 1 too); `fallback` when absent and the model's type has no default.
  bool truth(Label name, bool fallback);
  /// Text; empty when absent.
  std::string_view text(Label name);
  /// Element `index` of a list of counts, or the count itself when it is no list; nothing when absent or null there.
  std::optional<u64> whole_at(Label name, u64 index, u64 max);

  /// The context length in the config; 0 where that is no number of tokens: some files hold 10^30 for "no limit". Marks
  /// nothing.
  [[nodiscard]] u64 stated_context();
  /// Whether the model's type has a default for it.
  [[nodiscard]] bool has_default(Label name) const noexcept { return find_default(model_type_, name) != nullptr; }
  /// Notes a default that follows from other fields.
  void defaulted(Label name, std::string_view value, std::string_view source);
  void defaulted(Label name, u64 value, Label source);
  void refuse(ErrorCode code, Label name, std::string_view message);
  /// The name as the config spells it, with the path to it.
  [[nodiscard]] std::string path_of(Label name);
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  /// An unread field that hints at a cache of another kind and is not switched off; empty when there is none.
  [[nodiscard]] std::string unread_hint() const;
  /// Moves what was used, defaulted and ignored into the model.
  void report(Model& model);

 private:
  struct Level {
    const json::Value* object;
    std::string path;  ///< "text_config." or ""
  };
  struct Hit {
    const json::Value* value = nullptr;
    std::string path;
  };
  struct Known {
    Label name;
    Hit hit;
    const FieldDefault* fallback;  ///< of the model's type, where the config says nothing
    bool noted = false;            ///< stands among the used or defaulted fields
  };
  Known& lookup(Label name);
  void use(const Hit& hit);
  u64 read_whole(const json::Value& value, std::string_view path, u64 max);
  const FieldDefault* fall_back(Label name);

  const json::Value& root_;
  std::vector<Level> levels_;  ///< the language model first, then what it stands in
  std::string model_type_;
  const Family* family_ = nullptr;
  std::vector<Known> looked_up_;
  std::array<unsigned char, 256> guess_{};  ///< by address of the name: its place in looked_up_, from 1
  std::vector<const json::Value*> read_;
  std::vector<ImportedField> used_, defaulted_;
  std::optional<Error> error_;
};

/// What a layer does, in the words that configs use.
enum class Role : unsigned char {
  full,
  window,
  chunked,
  linear,
  conv,
  none,
  feed_forward,
  experts,
  sparse_entries,
  heavy_entries,
  cross,
  both
};

/// One layer as read from a config.
struct LayerSpec {
  Role role = Role::full;
  u32 query_heads = 0;
  std::vector<LayerRun> runs;  ///< one, or several caches that one layer keeps side by side
};

/// Sizes of a recurrent layer that both its state and its parameters follow from.
struct RecurrentShape {
  enum class Kind : unsigned char {
    none,
    mamba1,
    mamba2,
    delta,
    kda,
    lightning,
    rwkv,
    griffin,
    conv
  } kind = Kind::none;
  u64 heads = 0, key_width = 0, value_width = 0, key_heads = 0;
  u64 inner = 0, state = 0, groups = 0, kernel = 0;
};

struct LayerShapes {
  std::vector<LayerSpec> layers;
  RecurrentShape recurrent;  ///< of linear layers
  RecurrentShape conv;       ///< of short convolutions
};

/// Every layer in order; faults stay in `fields`.
[[nodiscard]] LayerShapes read_layers(Fields& fields);
/// Runs of equal layers in order; caches side by side in one layer become runs of their own.
[[nodiscard]] std::vector<LayerRun> run_lengths(std::span<const LayerSpec> layers);

/// Weights by the kind of module they sit in, as quantisation blocks tell them apart.
enum ModuleClass : u32 { kAttention, kDense, kExperts, kShared, kRouter, kSmall, kModuleClasses };
struct ParameterCount {
  bool known = false;
  Wide embedding = 0, head = 0;  ///< a tied head counts once
  std::vector<std::array<Wide, kModuleClasses>> layers;
  Wide rest = 0;              ///< norms and tables outside of the layers
  Wide inactive_experts = 0;  ///< routed experts that one token does not visit
  [[nodiscard]] Wide total() const noexcept;
};
/// The exact count for families whose formula is known.
[[nodiscard]] ParameterCount count_parameters(Fields& fields, const LayerShapes& shapes);

/// Stored formats: native_weights, native_weight_bytes and native_cache of the model.
void read_quantisation(Fields& fields, const ParameterCount& count, Model& model);

}  // namespace kvcap
