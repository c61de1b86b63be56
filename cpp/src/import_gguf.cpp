#include <algorithm>
#include <array>
#include <cstring>

#include "kvcap/config.hpp"
#include "kvcap/gguf.hpp"

namespace kvcap {
namespace {

constexpr u64 kMaxKeys = 4096;
constexpr u64 kMaxTensors = 1u << 20;
constexpr u64 kMaxGgufLayers = 1024;
constexpr u32 kMaxDimensions = 4;

/// Value types of GGUF, by number, and their bytes; texts and lists have none.
constexpr std::array<u32, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr u32 kBool = 7, kText = 8, kList = 9;

struct TensorType {
  u32 number;
  u32 block_values;
  u32 block_bytes;
};
/// ggml_type and its blocks (ggml/src/ggml-common.h).
constexpr std::array kTensorTypes = {
    TensorType{0, 1, 4},      TensorType{1, 1, 2},      TensorType{2, 32, 18},    TensorType{3, 32, 20},
    TensorType{6, 32, 22},    TensorType{7, 32, 24},    TensorType{8, 32, 34},    TensorType{9, 32, 36},
    TensorType{10, 256, 84},  TensorType{11, 256, 110}, TensorType{12, 256, 144}, TensorType{13, 256, 176},
    TensorType{14, 256, 210}, TensorType{15, 256, 292}, TensorType{16, 256, 66},  TensorType{17, 256, 74},
    TensorType{18, 256, 98},  TensorType{19, 256, 50},  TensorType{20, 32, 18},   TensorType{21, 256, 110},
    TensorType{22, 256, 82},  TensorType{23, 256, 136}, TensorType{24, 1, 1},     TensorType{25, 1, 2},
    TensorType{26, 1, 4},     TensorType{27, 1, 8},     TensorType{28, 1, 8},     TensorType{29, 256, 56},
    TensorType{30, 1, 2},     TensorType{34, 256, 54},  TensorType{35, 256, 66},  TensorType{39, 32, 17},
    TensorType{40, 64, 36},
};

struct FileType {
  u32 number;
  std::string_view format;
};
/// llama_ftype: what most of a file's tensors are.
constexpr std::array kFileTypes = {
    FileType{0, "fp32"},     FileType{1, "fp16"},    FileType{2, "q4_0"},    FileType{3, "q4_1"},
    FileType{7, "q8_0"},     FileType{8, "q5_0"},    FileType{9, "q5_1"},    FileType{10, "q2_k_m"},
    FileType{11, "q3_k_s"},  FileType{12, "q3_k_m"}, FileType{13, "q3_k_l"}, FileType{14, "q4_k_s"},
    FileType{15, "q4_k_m"},  FileType{16, "q5_k_s"}, FileType{17, "q5_k_m"}, FileType{18, "q6_k"},
    FileType{19, "iq2_xxs"}, FileType{20, "iq2_xs"}, FileType{21, "q2_k"},   FileType{23, "iq3_xxs"},
    FileType{24, "iq1_s"},   FileType{25, "iq4_nl"}, FileType{26, "iq3_s"},  FileType{28, "iq2_s"},
    FileType{30, "iq4_xs"},  FileType{31, "iq1_m"},  FileType{32, "bf16"},   FileType{38, "mxfp4"},
};

constexpr std::string_view kHparams = "llama.cpp: what its loader sets for this architecture";

/// What an architecture leaves unsaid. `sliding`: every so manieth layer attends to everything, 0 = none does.
struct Architecture {
  std::string_view names;
  std::string_view key;
  u32 value;
};
constexpr std::array kArchitectures = {
    Architecture{"phi3", "sliding_period", 0},
    Architecture{"gemma2|gpt-oss", "sliding_period", 2},
    Architecture{"cohere2|exaone4|olmo2|llama4|afmoe", "sliding_period", 4},
    Architecture{"gemma3n", "sliding_period", 5},
    Architecture{"gemma3|gemma4", "sliding_period", 6},
    Architecture{"gemma2", "attention.sliding_window", 4096},
    Architecture{"llama4", "attention.sliding_window", 8192},
    Architecture{"llama4", "chunked", 1},
    Architecture{"gemma3n", "layers_with_cache", 20},
    Architecture{"qwen3next|qwen35|qwen35moe", "full_attention_interval", 4},
    Architecture{"mamba|mamba2|rwkv6|rwkv7|rwkv6qwen2|arwkv7", "recurrent_only", 1},
    Architecture{"falcon-h1", "side_by_side", 1},
    Architecture{"rwkv6|rwkv7", "token_shift_count", 2},
    Architecture{"rwkv6qwen2|arwkv7", "token_shift_count", 1},
    Architecture{
        "bert|nomic-bert|nomic-bert-moe|jina-bert-v2|jina-bert-v3|modern-bert|neo-bert|eurobert|gemma-embedding|"
        "t5encoder|llama-embed|wavtokenizer-dec",
        "encoder", 1},
    Architecture{"t5", "encoder_decoder", 1},
    Architecture{"clip", "projector", 1},
};

const Architecture* find_architecture(std::string_view name, std::string_view key) {
  for (const Architecture& row : kArchitectures) {
    if (row.key == key && in_list(row.names, name)) return &row;
  }
  return nullptr;
}

/// Little-endian reads that stop at the end of what was given.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] u64 at() const noexcept { return at_; }
  /// Bytes of the file up to and including what could not be read.
  [[nodiscard]] u64 wanted() const noexcept { return wanted_; }

  u64 number(u32 size) {
    if (!take(size)) return 0;
    return load(at_ - size, size);
  }
  std::string_view text(u64 length) {
    if (!take(length)) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + (at_ - length), static_cast<std::size_t>(length)};
  }
  bool take(u64 count) {
    if (ended_) return false;
    if (count > bytes_.size() - at_) {
      ended_ = true;
      const Wide wanted = Wide{at_} + count;
      wanted_ = wanted > ~u64{0} ? ~u64{0} : static_cast<u64>(wanted);
      return false;
    }
    at_ += count;
    return true;
  }
  [[nodiscard]] u64 load(u64 offset, u32 size) const {
    u64 value = 0;
    for (u32 i = 0; i < size; ++i)
      value |= std::to_integer<u64>(bytes_[static_cast<std::size_t>(offset) + i]) << (8 * i);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  u64 at_ = 0;
  u64 wanted_ = 0;
  bool ended_ = false;
};

/// A key of the file: one number or text, or where its list of numbers stands.
struct Key {
  std::string_view name;
  u32 type = 0;
  bool list = false;
  u64 count = 1;
  u64 offset = 0;
  std::string_view text;
};

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> head, u64 file_bytes) : cursor_(head), given_(head.size()), file_(file_bytes) {}

  Result<GgufHead> read() {
    read_head();
    if (!error_ && cursor_.ended()) {
      if (given_ < file_ && cursor_.wanted() <= file_) {
        if (cursor_.wanted() > kMaxGgufHead) {
          return fail(ErrorCode::too_large, "file", "has a head of more than 128 MiB, which is not read");
        }
        GgufHead more;
        // Doubling keeps the number of slices small.
        more.need_bytes = std::min(file_, std::max({cursor_.wanted(), 2 * given_, u64{1} << 20}));
        return more;
      }
      refuse(ErrorCode::malformed, "file",
             given_ < file_ ? "claims a length that passes its own end"
                            : "ends within its head: it is cut, or claims lengths that it does not have");
    }
    if (error_) return std::unexpected(*error_);
    GgufHead whole;
    build(whole.model);
    if (error_) return std::unexpected(*error_);
    return whole;
  }

 private:
  void refuse(ErrorCode code, std::string_view field, std::string_view message) {
    if (!error_) error_.emplace(code, field, message);
  }

  void read_head() {
    if (cursor_.text(4) != "GGUF") {
      if (!cursor_.ended()) refuse(ErrorCode::malformed, "file", "is no GGUF file: it does not begin with \"GGUF\"");
      return;
    }
    const u64 version = cursor_.number(4);
    if (cursor_.ended()) return;
    if (version != 2 && version != 3) {
      return refuse(ErrorCode::unsupported, "version",
                    version != 0 && (version & 0xFFFF) == 0
                        ? "is big-endian: little-endian files of version 2 and 3 are read"
                        : "is not 2 or 3, the versions that are read");
    }
    tensors_ = cursor_.number(8);
    const u64 keys = cursor_.number(8);
    if (cursor_.ended()) return;
    if (tensors_ > kMaxTensors || keys > kMaxKeys) {
      return refuse(ErrorCode::too_large, tensors_ > kMaxTensors ? "tensor_count" : "metadata_kv_count",
                    "is more than a model has");
    }
    for (u64 i = 0; i < keys && !cursor_.ended() && !error_; ++i) read_key();
    for (u64 i = 0; i < tensors_ && !cursor_.ended() && !error_; ++i) read_tensor();
  }

  std::string_view read_text(std::string_view what) {
    const u64 length = cursor_.number(8);
    if (length > file_) {
      refuse(ErrorCode::malformed, what, "claims a length that passes the file's end");
      return {};
    }
    return cursor_.text(length);
  }

  void read_key() {
    Key key;
    key.name = read_text("key");
    key.type = static_cast<u32>(cursor_.number(4));
    if (cursor_.ended() || error_) return;
    if (key.type == kList) {
      key.list = true;
      key.type = static_cast<u32>(cursor_.number(4));
      key.count = cursor_.number(8);
      if (cursor_.ended()) return;
    }
    if (key.type >= kValueBytes.size() || key.type == kList) {
      return refuse(ErrorCode::malformed, key.name.substr(0, 80), "has a value of unknown type");
    }
    key.offset = cursor_.at();
    if (key.type == kText) {
      // Each text takes at least its length's 8 bytes, so a list cannot claim more of them than the file could hold.
      if (key.count > file_ / 8)
        return refuse(ErrorCode::malformed, key.name.substr(0, 80),
                      "claims more texts than the file could hold: it is cut, or the length is not true");
      for (u64 i = 0; i < key.count && !cursor_.ended() && !error_; ++i) {
        const std::string_view text = read_text(key.name.substr(0, 80));
        if (!key.list) key.text = text;
      }
    } else {
      const Wide bytes = Wide{key.count} * kValueBytes[key.type];
      if (bytes > file_)
        return refuse(ErrorCode::malformed, key.name.substr(0, 80), "claims a length that passes the file's end");
      cursor_.take(static_cast<u64>(bytes));
    }
    if (!cursor_.ended() && !error_) keys_.push_back(key);
  }

  void read_tensor() {
    const std::string_view name = read_text("tensor");
    const u64 dimensions = cursor_.number(4);
    if (cursor_.ended() || error_) return;
    if (dimensions > kMaxDimensions)
      return refuse(ErrorCode::malformed, name.substr(0, 80), "has more than 4 dimensions");
    Wide values = 1;
    u64 row = 1;
    for (u64 i = 0; i < dimensions; ++i) {
      const u64 size = cursor_.number(8);
      if (i == 0) row = size;
      if (size != 0 && values > (Wide{1} << 60) / size) {
        return refuse(ErrorCode::out_of_range, name.substr(0, 80), "has more than 2^60 values");
      }
      values *= size;
    }
    const auto type = static_cast<u32>(cursor_.number(4));
    cursor_.number(8);  // where its data begins
    if (cursor_.ended()) return;
    values_ += values;
    if (values_ > kMaxExact)
      return refuse(ErrorCode::out_of_range, name.substr(0, 80), "brings the file to more than 2^53 values");
    const auto known = std::ranges::find(kTensorTypes, type, &TensorType::number);
    if (known == kTensorTypes.end()) {
      unknown_type_ = true;
      return;
    }
    if (row % known->block_values != 0) {
      return refuse(ErrorCode::malformed, name.substr(0, 80),
                    "has rows that are no whole number of blocks of its type");
    }
    bytes_ += values / known->block_values * known->block_bytes;
  }

  // What the keys say.

  [[nodiscard]] const Key* find(std::string_view name) const {
    for (const Key& key : keys_) {
      if (key.name == name) return &key;
    }
    return nullptr;
  }
  /// "<architecture>.<name>".
  const Key* own(Label label) {
    const std::string_view name = label;
    for (const Key& key : keys_) {
      if (key.name.size() == arch_.size() + 1 + name.size() && key.name.starts_with(arch_) &&
          key.name.ends_with(name) && key.name[arch_.size()] == '.') {
        return &key;
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::optional<u64> element(const Key& key, u64 index) const {
    if (key.type == kText || index >= key.count) return std::nullopt;
    const u32 size = kValueBytes[key.type];
    const u64 raw = cursor_.load(key.offset + index * size, size);
    if (key.type == 6 || key.type == 12) return std::nullopt;  // floats
    const bool is_signed = key.type == 1 || key.type == 3 || key.type == 5 || key.type == 11;
    if (is_signed && (raw >> (8 * size - 1) & 1) != 0) return std::nullopt;
    return raw;
  }

  /// Element i of a list, or the number itself; nothing when the key is absent.
  std::optional<u64> at(Label name, u64 index, u64 max) {
    const Key* const key = own(name);
    if (key == nullptr) {
      const Architecture* const row = find_architecture(arch_, name);
      if (row == nullptr) return std::nullopt;
      note_default(name, row->value);
      return row->value;
    }
    const auto value = element(*key, key->list ? index : 0);
    if (!value || *value > max) {
      refuse(key->list && index >= key->count ? ErrorCode::conflict : ErrorCode::out_of_range, key->name,
             key->list && index >= key->count ? "has fewer elements than there are layers"
                                              : "is not a count that is accepted");
      return 0;
    }
    note_used(*key);
    return value;
  }
  u64 whole(Label name, u64 max) { return at(name, 0, max).value_or(0); }
  u64 need(Label name, u64 max) {
    const u64 value = whole(name, max);
    if (value == 0) refuse(ErrorCode::missing, Text() << arch_ << "." << name, "is not in the file, or 0");
    return value;
  }

  void note_used(const Key& key) {
    for (const ImportedField& field : used_) {
      if (field.name == key.name) return;
    }
    const auto value = element(key, 0);
    used_.push_back({std::string(key.name),
                     key.list            ? "[" + digits(key.count) + "]"
                     : key.type == kText ? std::string(key.text.substr(0, 60))
                                         : digits(value.value_or(0)),
                     {}});
  }
  void note_default(Label name, u64 value, std::string_view source = kHparams) {
    const std::string full = (Text() << arch_ << "." << name).take();
    for (const ImportedField& field : defaulted_) {
      if (field.name == full) return;
    }
    defaulted_.push_back({full, digits(value), std::string(source)});
  }

  [[nodiscard]] bool is(Label trait) const { return find_architecture(arch_, trait) != nullptr; }

  void build(Model& model) {
    const Key* const architecture = find("general.architecture");
    if (architecture == nullptr || architecture->type != kText || architecture->list || architecture->text.empty()) {
      return refuse(ErrorCode::missing, "general.architecture", "is not in the file");
    }
    arch_ = architecture->text.substr(0, 80);
    note_used(*architecture);
    const Key* const causal = own("attention.causal");
    if (is("encoder") || (causal != nullptr && causal->type == kBool && element(*causal, 0) == 0u)) {
      return refuse(ErrorCode::no_cache, causal != nullptr ? causal->name : architecture->name,
                    "makes this an encoder: it reads a text at once and keeps no KV cache");
    }
    if (is("projector")) {
      return refuse(ErrorCode::unsupported, "general.architecture",
                    "is clip: the image part that goes beside a model, not a model");
    }
    if (is("encoder_decoder")) {
      return refuse(ErrorCode::unsupported, "general.architecture",
                    "is an encoder and decoder: its cross-attention depends on the length of the source, which the "
                    "file does not state");
    }

    u64 layers = need("block_count", kMaxGgufLayers);
    // Layers for prediction ahead are counted, and hold no cache in plain use.
    const u64 ahead = whole("nextn_predict_layers", kMaxGgufLayers);
    if (!error_ && ahead >= layers && ahead != 0)
      refuse(ErrorCode::conflict, "nextn_predict_layers", "leaves no layer");
    if (error_) return;
    layers -= ahead;

    std::vector<LayerSpec> specs(static_cast<std::size_t>(layers));
    u64 shared_from = layers;
    if (const u64 shared = whole("attention.shared_kv_layers", kMaxGgufLayers); shared != 0) {
      if (shared >= layers)
        return refuse(ErrorCode::conflict, "attention.shared_kv_layers", "leaves no layer with a cache");
      shared_from = layers - shared;
    } else if (const u64 first = whole("layers_with_cache", kMaxGgufLayers); first != 0) {
      shared_from = std::min(first, layers);
    }
    for (std::size_t i = 0; i < layers && !error_; ++i) {
      fill(specs[i], i);
      if (i >= shared_from) specs[i].runs.assign(1, run_of(LayerKind::shared));
      model.query_heads = std::max(model.query_heads, specs[i].query_heads);
    }
    if (error_) return;

    const Key* const name = find("general.name");
    if (name != nullptr) note_used(*name);
    model.name = name != nullptr && name->type == kText && !name->list ? std::string(name->text.substr(0, 200))
                                                                       : std::string(arch_);
    model.family = arch_;
    model.source = "GGUF";
    model.layers = run_lengths(specs);
    model.layer_count = static_cast<u32>(layers);
    model.max_context = whole("context_length", kMaxTokens);
    const Key* const tokens = find("tokenizer.ggml.tokens");
    u64 vocabulary = own("vocab_size") != nullptr ? whole("vocab_size", kMaxWidth) : 0;
    if (vocabulary == 0 && tokens != nullptr && tokens->list) vocabulary = std::min<u64>(tokens->count, kMaxWidth);
    model.vocabulary = static_cast<u32>(vocabulary);
    read_weights(model);
    if (old_latent_) model.note_codes.emplace_back("gguf_without_mla_keys");
    model.used = std::move(used_);
    model.defaulted = std::move(defaulted_);
    for (const Key& key : keys_) {
      const bool read =
          std::ranges::any_of(model.used, [&](const ImportedField& field) { return field.name == key.name; });
      if (!read && key.name.starts_with(arch_) && model.ignored.size() < 200) {
        model.ignored.emplace_back(key.name.substr(0, 80));
      }
    }
  }

  void read_weights(Model& model) {
    if (const Key* const type = find("general.file_type"); type != nullptr && !type->list) {
      const auto number = element(*type, 0);
      const auto known =
          std::ranges::find_if(kFileTypes, [&](const FileType& row) { return number && row.number == *number; });
      if (known != kFileTypes.end()) model.native_weights = find_format(known->format);
      note_used(*type);
    }
    const Key* const split = find("split.count");
    if (split != nullptr && element(*split, 0).value_or(1) > 1) {
      model.note_codes.emplace_back("split_file");
      return;
    }
    // Of tensors without values nothing is known, and 0 bytes are no weights.
    if (values_ == 0) return;
    model.parameters = static_cast<u64>(values_);
    u64 alignment = 32;
    if (const Key* const stated = find("general.alignment"))
      alignment = std::max<u64>(element(*stated, 0).value_or(32), 1);
    const Wide start = ceil_div<Wide>(cursor_.at(), alignment) * alignment;
    if (unknown_type_) {
      model.note_codes.emplace_back("tensor_type_unknown");
      if (file_ <= start) return;
      model.native_weight_bytes = Bytes{static_cast<u64>(file_ - start)};
      model.native_weights_estimated = true;
      return;
    }
    if (bytes_ > kMaxExact) return;
    model.native_weight_bytes = Bytes{static_cast<u64>(bytes_)};
    if (start + bytes_ > file_) model.note_codes.emplace_back("file_is_cut");
  }

  static LayerRun run_of(LayerKind kind) {
    LayerRun run;
    run.count = 1;
    run.kind = kind;
    return run;
  }

  void fill(LayerSpec& spec, u64 i) {
    if (is("recurrent_only")) return spec.runs.push_back(recurrent(i));
    const auto queries = at("attention.head_count", i, kMaxHeads);
    const auto stated =
        own("attention.head_count_kv") != nullptr ? at("attention.head_count_kv", i, kMaxHeads) : queries;
    if (error_) return;
    spec.query_heads = static_cast<u32>(queries.value_or(0));
    const u64 interval = own("ssm.conv_kernel") != nullptr ? whole("full_attention_interval", kMaxGgufLayers) : 0;
    if (interval != 0 && (i + 1) % interval != 0) return spec.runs.push_back(recurrent(i));
    if (stated && *stated == 0) {
      // No KV heads: a recurrent layer, or none where the layer is a feed-forward block by itself (Nemotron-H).
      const Key* const ffn = own("feed_forward_length");
      const bool mixer = ffn != nullptr && ffn->list && element(*ffn, i).value_or(0) != 0 &&
                         own("shortconv.l_cache") == nullptr && any_layer_without_ffn(*ffn);
      return spec.runs.push_back(mixer || !has_state() ? run_of(LayerKind::none) : recurrent(i));
    }
    if (!queries || *queries == 0) {
      return refuse(ErrorCode::missing, Text() << arch_ << ".attention.head_count", "is not in the file, or 0");
    }
    spec.runs.push_back(attention(i, *queries, *stated));
    if (is("side_by_side")) spec.runs.push_back(recurrent(i));
  }

  [[nodiscard]] bool any_layer_without_ffn(const Key& ffn) const {
    for (u64 i = 0; i < std::min(ffn.count, kMaxGgufLayers); ++i) {
      if (element(ffn, i) == 0u) return true;
    }
    return false;
  }

  bool has_state() {
    return own("ssm.state_size") != nullptr || own("shortconv.l_cache") != nullptr || own("kda.head_dim") != nullptr ||
           own("wkv.head_size") != nullptr;
  }

  /// Whether layer i attends within a window: llama.cpp's patterns, of a list or of a period.
  bool slides(u64 i) {
    if (const Key* const pattern = own("attention.sliding_window_pattern")) {
      note_used(*pattern);
      if (pattern->list) {
        const auto flag = element(*pattern, i);
        if (!flag) refuse(ErrorCode::conflict, pattern->name, "has fewer elements than there are layers");
        return flag && *flag != 0;
      }
      const u64 period = element(*pattern, 0).value_or(0);
      return period == 0 || i % period < period - 1;
    }
    const Architecture* const row = find_architecture(arch_, "sliding_period");
    if (row == nullptr) {
      refuse(ErrorCode::unsupported, Text() << arch_ << ".attention.sliding_window",
             "is given, but not which layers slide, and the architecture is not known");
      return false;
    }
    note_default("attention.sliding_window_pattern", row->value);
    return row->value == 0 || i % row->value < row->value - 1;
  }

  LayerRun attention(u64 i, u64 queries, u64 heads) {
    LayerRun run = run_of(LayerKind::full);
    const auto width = [&](Label name, u64 fallback) {
      const u64 stated = own(name) != nullptr ? at(name, i, kMaxWidth).value_or(0) : 0;
      return stated != 0 ? stated : fallback;
    };
    u64 by_width = 0;
    if (own("attention.key_length") == nullptr) {
      const u64 hidden = need("embedding_length", kMaxWidth);
      if (error_) return run;
      if (hidden % queries != 0) {
        refuse(ErrorCode::missing, Text() << arch_ << ".attention.key_length",
               "is not in the file, and embedding_length is no multiple of head_count");
        return run;
      }
      by_width = hidden / queries;
      note_default("attention.key_length", by_width, "not stated: embedding_length ÷ head_count");
    }
    u64 key = width("attention.key_length", by_width);
    u64 value = width("attention.value_length", by_width != 0 ? by_width : key);

    if (const u64 rank = whole("attention.kv_lora_rank", kMaxWidth / 2); rank != 0) {
      const u64 rope = need("rope.dimension_count", kMaxWidth / 2);
      old_latent_ = own("attention.key_length_mla") == nullptr;
      run.kind = LayerKind::latent;
      run.latent_width = static_cast<u32>(rank + rope);
      run.latent_value_width = static_cast<u32>(rank);
      run.expanded_heads = static_cast<u32>(queries);
      run.expanded_key_width = static_cast<u32>(width("attention.key_length_mla", key));
      run.expanded_value_width = static_cast<u32>(width("attention.value_length_mla", value));
      run.indexer_width = static_cast<u32>(width("attention.indexer.key_length", 0));
      return run;
    }
    if (key == 0) {
      refuse(ErrorCode::missing, Text() << arch_ << ".attention.key_length", "is 0");
      return run;
    }
    const u64 window = whole("attention.sliding_window", kMaxTokens);
    const u64 longest = whole("context_length", kMaxTokens);
    if (window != 0 && (longest == 0 || window < longest) && slides(i)) {
      run.kind = is("chunked") ? LayerKind::chunked : LayerKind::window;
      run.window_tokens = static_cast<u32>(window);
      key = width("attention.key_length_swa", key);
      value = width("attention.value_length_swa", value);
    }
    run.kv_heads = static_cast<u32>(heads);
    run.key_width = static_cast<u32>(key);
    run.value_width = static_cast<u32>(value);
    run.indexer_width = static_cast<u32>(width("attention.indexer.key_length", 0));
    return run;
  }

  /// llama.cpp's n_embd_r and n_embd_s; it keeps both in fp32.
  LayerRun recurrent(u64 i) {
    LayerRun run = run_of(LayerKind::recurrent);
    run.state_format = run.conv_format = find_format("fp32");
    Wide state = 0, conv = 0;
    if (own("shortconv.l_cache") != nullptr) {
      const u64 kernel = need("shortconv.l_cache", kMaxWidth);
      conv = Wide{need("embedding_length", kMaxWidth)} * (kernel - (kernel != 0));
    } else if (own("wkv.head_size") != nullptr) {
      const Wide hidden = need("embedding_length", kMaxWidth);
      state = hidden * need("wkv.head_size", kMaxWidth);
      conv = hidden * need("token_shift_count", 16);
    } else if (own("kda.head_dim") != nullptr) {
      const Wide width = need("kda.head_dim", kMaxWidth);
      const u64 kernel = need("ssm.conv_kernel", kMaxWidth);
      const Wide inner = width * at("attention.head_count", i, kMaxHeads).value_or(0);
      state = inner * width;
      conv = 3 * inner * (kernel - (kernel != 0));
    } else if (own("ssm.state_size") != nullptr) {
      const u64 kernel = need("ssm.conv_kernel", kMaxWidth);
      const Wide inner = need("ssm.inner_size", kMaxWidth);
      const Wide size = need("ssm.state_size", kMaxWidth);
      const Wide groups = own("ssm.group_count") != nullptr ? whole("ssm.group_count", kMaxHeads) : 0;
      state = inner * size;
      conv = (inner + 2 * groups * size) * (kernel - (kernel != 0));
    } else {
      refuse(ErrorCode::unsupported, "general.architecture",
             "keeps a recurrent state that the file's keys do not describe");
    }
    if (state > kMaxState || conv > kMaxState) {
      refuse(ErrorCode::out_of_range, "ssm.state_size", "and the other sizes come to a state of more than 2^48 values");
      return run;
    }
    run.state_values = static_cast<u64>(state);
    run.conv_values = static_cast<u64>(conv);
    note_default("state type", 32, "llama.cpp keeps recurrent states in fp32");
    return run;
  }

  Cursor cursor_;
  u64 given_, file_;
  u64 tensors_ = 0;
  std::vector<Key> keys_;
  std::string_view arch_;
  Wide values_ = 0, bytes_ = 0;
  bool unknown_type_ = false, old_latent_ = false;
  std::vector<ImportedField> used_, defaulted_;
  std::optional<Error> error_;
};

}  // namespace

std::string_view known_as(std::span<const std::byte> head) noexcept {
  std::string_view text(reinterpret_cast<const char*>(head.data()), std::min<std::size_t>(head.size(), 256));
  if (text.starts_with("version https://git-lfs")) {
    return "is a Git LFS pointer, a note of where the file lies: the file itself has to be fetched (git lfs pull)";
  }
  while (!text.empty() &&
         (text.front() == ' ' || text.front() == '\n' || text.front() == '\r' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  if (text.starts_with("<!DOCTYPE") || text.starts_with("<!doctype") || text.starts_with("<html")) {
    return "is a web page, not the file: the address leads to a page about it";
  }
  if (text.starts_with("PK\x03\x04")) return "is a zip archive or a PyTorch file, which is not read";
  return {};
}

Result<GgufHead> import_gguf(std::span<const std::byte> head, u64 file_bytes) {
  if (head.size() > file_bytes) {
    return fail(ErrorCode::conflict, "file_bytes", "is less than the bytes that were given");
  }
  if (const std::string_view other = known_as(head); !other.empty()) return fail(ErrorCode::malformed, "file", other);
  return GgufReader(head, file_bytes).read();
}

}  // namespace kvcap
