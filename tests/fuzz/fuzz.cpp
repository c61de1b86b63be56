// What libFuzzer feeds to the kernel's doors: any bytes to every function that reads what people bring. The environment
// variable KV_FUZZ_DOOR says which. Beyond the sanitizers, an answer has to be one JSON object, the same when asked
// again, and no internal fault; of a file's start no more is asked for than there is; and what an import gives, a
// request takes.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "kvcap/import.hpp"
#include "kvcap/json.hpp"
#include "kvcap/log.hpp"
#include "kvcap/paging.hpp"
#include "kvcap/plan.hpp"
#include "kvcap/quiz.hpp"
#include "kvcap/wish.hpp"

namespace {

using kvcap::u64;
namespace json = kvcap::json;

/// The bytes of an input, one by one; zeros after the last.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool done() const noexcept { return left_.empty(); }
  unsigned next() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  /// One of a list.
  template <typename List>
  auto& one_of(const List& list) {
    return list[next() % std::size(list)];
  }

 private:
  std::string_view left_;
};

void demand(bool right, const char* what, std::string_view answer) {
  if (right) return;
  std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(std::min<std::size_t>(answer.size(), 2000)), answer.data());
  std::abort();
}

/// Asks with the first of `bytes` of a file that claims to be `more` bytes longer.
std::string import(std::string_view kind, std::string_view bytes, u64 more) {
  const u64 file_bytes = bytes.size() + more;
  const std::string answer = kvcap::import_json(kind, std::as_bytes(std::span(bytes)), file_bytes, {});
  const auto document = json::Document::parse(answer, "answer", ~u64{0});
  demand(document.has_value(), "an import is no JSON", answer);
  if (const json::Value* const need = document->root().get("need_bytes")) {
    demand(json::to_whole(*need, "need_bytes", bytes.size() + 1, file_bytes).has_value(), "asks for the wrong bytes",
           answer);
  }
  if (document->root().get("model") != nullptr) {
    const std::size_t start = answer.find("\"model\":") + 8;
    const std::string model = answer.substr(start, answer.rfind(",\"checkpoint\":") - start);
    const std::string plan =
        kvcap::plan_json("{\"weight_bytes\":1,\"context\":1,\"model\":" + model + "}", kvcap::full_features());
    // Sizes that are possible one by one can come to more bytes than are counted, and a model may keep no cache.
    demand(!plan.starts_with("{\"error\"") ||
               plan.starts_with("{\"error\":{\"code\":\"out_of_range\",\"field\":\"context\"") ||
               plan.starts_with("{\"error\":{\"code\":\"no_cache\""),
           "what was imported is refused", plan + model);
  }
  return answer;
}

/// A file's start, and how long it claims to be: the first two bytes say how much longer than what is there.
std::string import(std::string_view kind, std::string_view bytes) {
  Bytes size(bytes.substr(0, 2));
  const u64 more = u64{size.next()} << (size.next() % 46);
  return import(kind, bytes.substr(std::min<std::size_t>(bytes.size(), 2)), more);
}

/// Appends a little-endian number.
void put(std::string& out, u64 value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}
void put(std::string& out, std::string_view text) {
  put(out, text.size(), 8);
  out += text;
}

/// Numbers at and around what decides something.
constexpr auto kNumbers = std::to_array<u64>({0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              6,
                                              8,
                                              16,
                                              24,
                                              32,
                                              64,
                                              96,
                                              127,
                                              128,
                                              255,
                                              256,
                                              512,
                                              1023,
                                              1024,
                                              4096,
                                              8192,
                                              65535,
                                              65536,
                                              u64{1} << 24,
                                              (u64{1} << 24) + 1,
                                              u64{1} << 31,
                                              (u64{1} << 32) - 1,
                                              u64{1} << 48,
                                              (u64{1} << 53) - 1,
                                              u64{1} << 53,
                                              u64{1} << 60,
                                              ~u64{0}});

/// The head of a GGUF file made of bytes: keys, values and tensors of the format's own form, so that what is tried is
/// what they mean. A byte in eight breaks the form.
std::string gguf_of(std::string_view bytes) {
  constexpr std::string_view architectures[] = {
      "llama",       "phi3",          "gemma2",  "gpt-oss",    "cohere2",   "llama4", "gemma3n",    "gemma3",
      "gemma4",      "qwen3next",     "qwen35",  "mamba",      "mamba2",    "rwkv6",  "rwkv7",      "bert",
      "t5",          "clip",          "arwkv7",  "falcon-h1",  "deepseek2", "jamba",  "nemotron_h", "lfm2",
      "kimi-linear", "granitehybrid", "glm-dsa", "unheard-of", "",          "."};
  constexpr std::string_view own[] = {"block_count",
                                      "attention.head_count",
                                      "attention.head_count_kv",
                                      "embedding_length",
                                      "context_length",
                                      "attention.key_length",
                                      "attention.value_length",
                                      "attention.key_length_mla",
                                      "attention.value_length_mla",
                                      "attention.key_length_swa",
                                      "attention.value_length_swa",
                                      "attention.kv_lora_rank",
                                      "attention.sliding_window",
                                      "attention.sliding_window_pattern",
                                      "attention.shared_kv_layers",
                                      "attention.causal",
                                      "attention.indexer.key_length",
                                      "rope.dimension_count",
                                      "nextn_predict_layers",
                                      "layers_with_cache",
                                      "full_attention_interval",
                                      "feed_forward_length",
                                      "vocab_size",
                                      "shortconv.l_cache",
                                      "wkv.head_size",
                                      "token_shift_count",
                                      "kda.head_dim",
                                      "ssm.conv_kernel",
                                      "ssm.inner_size",
                                      "ssm.state_size",
                                      "ssm.group_count"};
  constexpr std::string_view general[] = {"general.architecture", "general.name", "general.file_type",
                                          "general.alignment",    "split.count",  "tokenizer.ggml.tokens"};
  constexpr std::array<unsigned, 13> sizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  Bytes from(bytes);
  const std::string_view architecture = from.one_of(architectures);
  const unsigned keys = from.next() % 40, tensors = from.next() % 6, twist = from.next();
  std::string out = twist % 64 == 1 ? "GGUX" : "GGUF";
  put(out, twist % 64 == 2 ? from.next() : 2 + twist % 2, 4);
  put(out, twist % 64 == 3 ? from.one_of(kNumbers) : tensors, 8);
  put(out, twist % 64 == 4 ? from.one_of(kNumbers) : keys + 1, 8);
  put(out, "general.architecture");
  put(out, 8, 4);
  put(out, architecture);
  const auto value = [&](u64 type) {
    if (type == 8) {
      put(out, from.one_of(architectures));
    } else {
      put(out, from.one_of(kNumbers), type < sizes.size() ? sizes[type] : 4);
    }
  };
  for (unsigned i = 0; i < keys; ++i) {
    const unsigned which = from.next();
    std::string name;
    if (which < 200) {
      (name += architecture) += '.';
      name += own[which % std::size(own)];
    } else {
      name = general[which % std::size(general)];
    }
    put(out, name);
    const unsigned form = from.next();
    // Mostly what files have: numbers of 32 bits, lists of them, truths.
    const u64 type = form < 120 ? 4 : form < 150 ? 7 : form % 14;
    if (form % 5 == 4 && type != 9) {
      put(out, 9, 4);
      put(out, type, 4);
      const u64 count = from.next() % 40;
      put(out, form % 32 == 31 ? from.one_of(kNumbers) : count, 8);
      for (u64 j = 0; j < count; ++j) value(type);
    } else {
      put(out, type, 4);
      value(type);
    }
  }
  for (unsigned i = 0; i < tensors; ++i) {
    put(out, "blk.0.attn_k.weight");
    const unsigned dimensions = from.next() % 6;
    put(out, dimensions, 4);
    for (unsigned j = 0; j < dimensions; ++j) put(out, from.one_of(kNumbers), 8);
    put(out, from.next() % 42, 4);
    put(out, from.one_of(kNumbers), 8);
  }
  const std::size_t kept = twist >= 224 ? out.size() * from.next() / 256 : out.size();
  return out.substr(0, kept);
}

std::string gguf_built(std::string_view bytes) {
  Bytes size(bytes.substr(0, 2));
  const u64 more = u64{size.next()} << (size.next() % 46);
  return import("gguf", gguf_of(bytes.substr(std::min<std::size_t>(bytes.size(), 2))), more);
}

/// A request made of bytes: every byte pair chooses a key and a value for it, so that most are nearly right.
std::string request_of(std::string_view bytes) {
  constexpr std::string_view keys[] = {"model",
                                       "weights",
                                       "kv",
                                       "gpu",
                                       "gpus",
                                       "context",
                                       "engine",
                                       "tensor_parallel",
                                       "pipeline_parallel",
                                       "data_parallel",
                                       "kv_heads",
                                       "parameters",
                                       "weight_bytes",
                                       "options"};
  constexpr std::string_view values[] = {
      "\"llama-3.1-8b\"",
      "\"deepseek-v3\"",
      "\"gemma-3-27b\"",
      "\"qwen3-next-80b-a3b\"",
      "\"gpt-oss-20b\"",
      "\"jamba-v0.1\"",
      "\"whisper-large-v3\"",
      "\"bf16\"",
      "\"fp8\"",
      "\"q4_0\"",
      "\"fp8_ds_mla\"",
      "\"nvfp4\"",
      "{\"k\":\"q8_0\",\"v\":\"q4_0\"}",
      "\"80gb\"",
      "\"h100-sxm-80gb\"",
      "{\"memory_bytes\":17000000000}",
      "0",
      "1",
      "2",
      "3",
      "4",
      "8",
      "16",
      "64",
      "72",
      "1000",
      "8192",
      "131072",
      "4294967296",
      "9007199254740991",
      "9007199254740993",
      "-1",
      "1.5",
      "null",
      "true",
      "[]",
      "{}",
      "\"textbook\"",
      "\"vllm\"",
      "\"sglang\"",
      "\"llama.cpp\"",
      "\"tensorrt-llm\"",
      "{\"kv_memory_bytes\":1000000000}",
      "{\"reserve\":0.5}",
      "{\"gpu_memory_utilization\":0.95,\"block_size\":32}",
      "{\"mem_fraction_static\":0.8,\"page_size\":64}",
      "{\"n_ubatch\":512,\"n_parallel\":4}",
      "{\"name\":\"x\",\"layers\":[{\"count\":2,\"kind\":\"full\",\"kv_heads\":3,\"key_width\":5,\"value_width\":7},"
      "{\"count\":4,\"kind\":\"window\",\"kv_heads\":1,\"key_width\":64,\"value_width\":64,\"window\":17}]}",
      "{\"name\":\"y\",\"layers\":[{\"count\":9,\"kind\":\"latent\",\"latent_width\":576,\"indexer_width\":128},"
      "{\"count\":3,\"kind\":\"recurrent\",\"state_values\":4096,\"state_format\":\"fp32\",\"conv_values\":96,"
      "\"conv_format\":\"bf16\"},{\"count\":1,\"kind\":\"shared\"},{\"count\":1,\"kind\":\"none\"}]}"};
  std::string out = "{";
  for (std::size_t i = 0; i + 1 < bytes.size() && i < 60; i += 2) {
    const auto key = static_cast<unsigned char>(bytes[i]);
    const auto value = static_cast<unsigned char>(bytes[i + 1]);
    if (out.size() > 1) out += ',';
    out += '"';
    out += keys[key % std::size(keys)];
    out += "\":";
    out += values[value % std::size(values)];
  }
  return out + "}";
}

struct Door {
  std::string_view name;
  std::string (*ask)(std::string_view bytes);
};
constexpr Door kDoors[] = {
    {"config", [](std::string_view bytes) { return import("config", bytes); }},
    {"index", [](std::string_view bytes) { return import("index", bytes); }},
    {"safetensors", [](std::string_view bytes) { return import("safetensors", bytes); }},
    {"gguf", [](std::string_view bytes) { return import("gguf", bytes); }},
    {"gguf_built", gguf_built},
    {"log", [](std::string_view bytes) { return kvcap::read_log_json(bytes, kvcap::full_features()); }},
    {"request", [](std::string_view bytes) { return kvcap::plan_json(bytes, kvcap::full_features()); }},
    {"request_built",
     [](std::string_view bytes) { return kvcap::plan_json(request_of(bytes), kvcap::full_features()); }},
    {"wish", [](std::string_view bytes) { return kvcap::wish_json(bytes, kvcap::full_features()); }},
    {"paging", [](std::string_view bytes) { return kvcap::paging_json(bytes); }},
    {"quiz", [](std::string_view bytes) { return kvcap::quiz_json(bytes); }},
};

const Door& door() {
  static const Door* const chosen = [] {
    const char* const name = std::getenv("KV_FUZZ_DOOR");
    for (const Door& one : kDoors) {
      if (name != nullptr && one.name == name) return &one;
    }
    std::fputs("KV_FUZZ_DOOR names one of:", stderr);
    for (const Door& one : kDoors) std::fprintf(stderr, " %s", one.name.data());
    std::fputc('\n', stderr);
    std::exit(2);
  }();
  return *chosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t count) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), count};
  const std::string answer = door().ask(bytes);
  const auto document = json::Document::parse(answer, "answer", ~u64{0});
  demand(document.has_value() && document->root().is(json::Kind::object), "the answer is no JSON object", answer);
  demand(answer.find("\"code\":\"internal\"") == std::string::npos, "an internal fault", answer);
  demand(door().ask(bytes) == answer, "another answer to the same question", answer);
  return 0;
}
