// What an engine reserves for a sequence and what it leaves for the cache. An engine is a set of stated rules over the
// same runs of layers; the textbook reserves what is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kvcap/deployment.hpp"
#include "kvcap/derivation.hpp"
#include "kvcap/json.hpp"

namespace kvcap {

enum class EngineId : unsigned char { textbook, vllm, sglang, llama_cpp, tensorrt_llm };

/// How sure a figure is.
enum class Confidence : unsigned char {
  exact,        ///< arithmetic
  engine_rule,  ///< this engine, this version, these flags
  estimate,     ///< a measured typical value, with its range
};
[[nodiscard]] Label confidence_name(Confidence confidence) noexcept;

enum class OptionKind : unsigned char { whole, fraction, truth, choice, bytes, version };

/// Where an option's name and its default stand; the core kernel does not carry it.
using OptionSource = std::conditional_t<kCoreKernel, Source, std::string_view>;

/// A setting under the engine's own flag name.
struct OptionSpec {
  std::string_view name;          ///< as in requests: "gpu_memory_utilization"
  std::string_view aliases = {};  ///< other spellings, separated by spaces
  OptionKind kind = OptionKind::whole;
  u64 fallback = 0;           ///< default: a whole number, billionths, 0/1 or index of the choice
  bool has_fallback = false;  ///< false: absent unless given, as a version is
  u64 min = 0, max = kMaxExact;
  std::string_view choices = {};  ///< of a choice, separated by spaces
  std::string_view unit = {};     ///< "tokens", "bytes", "" …
  bool offered = true;            ///< shown in the advanced panel
  [[no_unique_address]] OptionSource source = {};
};

/// Parsed options of one engine, by position of the specification.
struct OptionValue {
  bool given = false;
  bool present = false;  ///< given, or has a default
  u64 value = 0;
};

class Options {
 public:
  std::span<const OptionSpec> specs;
  List<OptionValue> values;
  [[nodiscard]] const OptionValue& operator[](Label name) const noexcept;
  [[nodiscard]] u64 whole(Label name) const noexcept { return (*this)[name].value; }
  [[nodiscard]] bool truth(Label name) const noexcept { return (*this)[name].value != 0; }
  [[nodiscard]] Fraction fraction(Label name) const noexcept { return {(*this)[name].value}; }
  [[nodiscard]] bool given(Label name) const noexcept { return (*this)[name].given; }
};

/// Reads the `options` object of a request against an engine's list. An unknown name is `unknown_id` and names the
/// options there are.
[[nodiscard]] Result<Options> parse_options(std::span<const OptionSpec> specs, const json::Value* object);

/// Everything an engine's rules look at.
struct EngineInput {
  const Model& model;
  CacheFormats kv;
  const Deployment& deployment;
  Tokens context;                     ///< tokens of one conversation (the engine's maximum model length)
  std::optional<Bytes> weight_bytes;  ///< of one copy of the model; none when the parameter count is unknown
  Bytes weight_bytes_per_gpu;         ///< on the fullest GPU; 0 when unknown
  const Options& options;
};

/// Refuses tensor parallel sizes that an engine cannot run: query heads must divide evenly, KV heads must divide evenly
/// or be divided by the size (`not_divisible`, naming the sizes that work).
[[nodiscard]] std::optional<Error> check_tensor_parallel(const EngineInput& input);

/// One cache as llama.cpp or SGLang allocate it.
struct CachePool {
  Name name;        ///< "full", "window", "latent", "recurrent"
  u64 cells = 0;    ///< cells or slots of one stream
  u64 streams = 1;  ///< sequences with a stream of their own; 1 when unified
  u64 layers = 0;
  Wide k_bytes = 0;
  Wide v_bytes = 0;
  Wide state_bytes = 0;  ///< recurrent states (with the convolution's part)
  Wide conv_bytes = 0;   ///< the convolution's part of `state_bytes`
};

/// A part of a GPU's memory that is neither weights nor cache, or a share of the cache's cost that is not payload.
struct MemoryPart {
  Label code;              ///< "reserve", "activation", "non_torch", "cuda_graph", "compute_buffer", …
  Wide bytes = 0;          ///< on one GPU
  Wide low = 0, high = 0;  ///< of an estimate: the range; equal to `bytes` otherwise
  Confidence confidence = Confidence::exact;
};

/// A note: a code and its values, worded by the page.
struct NoteValue {
  Label name;
  Name text;  ///< digits or an id
};
struct Note {
  Name code;
  List<NoteValue> values;
  Note& with(Label value_name, Wide number);
};

/// What one GPU of a replica holds of some layers.
struct Share {
  LayerKind kind = LayerKind::full;
  u64 layers = 0;
  u64 first_head = 0, heads = 0;  ///< KV heads; none of a latent row or a state
  u64 of_heads = 0;               ///< KV heads that the model has
  u64 copies = 1;                 ///< GPUs that hold the same
};
struct GpuShare {
  u64 gpu = 0, stage = 0;
  List<Share> shares;
  Wide kv_bytes_per_sequence = 0;  ///< what one conversation writes here
  bool fullest = false;
};

/// What the rules of an engine give for a deployment.
struct Reservation {
  Wide reserved_per_sequence = 0;  ///< set aside for one conversation of `context` tokens, all GPUs of one replica
  Wide pool_bytes_per_gpu = 0;     ///< room for the cache on the poorest GPU
  Wide pool_bytes = 0;             ///< the same over all GPUs
  Wide pool_low_per_gpu = 0, pool_high_per_gpu = 0;  ///< range, equal to the pool when nothing is estimated
  bool weights_fit = true;
  std::optional<Wide> weight_bytes_on_gpus;  ///< of one copy, where a part of the weights stays on the CPU
  /// Conversations at once, unrounded, over all replicas: numerator / denominator. 0/1 when nothing fits.
  Wide concurrency_num = 0, concurrency_den = 1;
  Wide sequences_low = 0, sequences_high = 0;  ///< range of whole conversations; equal when nothing is estimated
  Wide sequences = 0;
  std::optional<Wide> kv_tokens;        ///< as the engine prints
  std::optional<Wide> kv_tokens_other;  ///< by the other convention of printing, where there are two
  std::optional<Wide> kv_blocks;
  std::optional<Wide> block_tokens;
  List<CachePool> caches;
  List<MemoryPart> parts;  ///< of one GPU, beside weights and cache
  List<MemoryPart> gaps;   ///< reserved - written of one conversation, by cause
  List<GpuShare> ranks;    ///< the GPUs of one replica, at most kMostRanks of them
  Confidence pool_confidence = Confidence::exact;
  Confidence reserved_confidence = Confidence::exact;
  List<Note> notes;
  Derivation derivation;

  /// Adds a note; valid until the next.
  Note& note(Label note_code);
};

struct EngineRules {
  EngineId id;
  std::string_view name;  ///< as in requests
  std::span<const OptionSpec> options;
  Result<Reservation> (*reserve)(const EngineInput& input);
};

/// Each engine's rules, in a file of its own.
[[nodiscard]] const EngineRules& textbook_rules() noexcept;
[[nodiscard]] const EngineRules& vllm_rules() noexcept;
[[nodiscard]] const EngineRules& sglang_rules() noexcept;
[[nodiscard]] const EngineRules& llama_cpp_rules() noexcept;
[[nodiscard]] const EngineRules& tensorrt_llm_rules() noexcept;

}  // namespace kvcap
