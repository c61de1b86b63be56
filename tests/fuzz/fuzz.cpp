// What libFuzzer feeds to the kernel's doors: any bytes to every function that reads what people bring.
// KVCAP_FUZZ_<door> says which. Beyond the sanitizers, an answer has to be one JSON object, the same when asked again,
// and no internal fault.
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

/// A file's start, and how long it claims to be: the first two bytes say how much longer than what is there.
[[maybe_unused]] std::string import(std::string_view kind, std::string_view bytes) {
  u64 more = 0;
  if (bytes.size() >= 2) {
    more = static_cast<unsigned char>(bytes[0]) * u64{1} << (static_cast<unsigned char>(bytes[1]) % 56);
    bytes.remove_prefix(2);
  }
  return kvcap::import_json(kind, std::as_bytes(std::span(bytes)), bytes.size() + more, {});
}

/// A request made of bytes: every byte pair chooses a key and a value for it, so that most are nearly right.
[[maybe_unused]] std::string request_of(std::string_view bytes) {
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

std::string ask(std::string_view bytes) {
#if defined(KVCAP_FUZZ_config)
  return import("config", bytes);
#elif defined(KVCAP_FUZZ_index)
  return import("index", bytes);
#elif defined(KVCAP_FUZZ_gguf)
  return import("gguf", bytes);
#elif defined(KVCAP_FUZZ_safetensors)
  return import("safetensors", bytes);
#elif defined(KVCAP_FUZZ_log)
  return kvcap::read_log_json(bytes, kvcap::full_features());
#elif defined(KVCAP_FUZZ_request)
  return kvcap::plan_json(bytes, kvcap::full_features());
#elif defined(KVCAP_FUZZ_built)
  return kvcap::plan_json(request_of(bytes), kvcap::full_features());
#elif defined(KVCAP_FUZZ_wish)
  return kvcap::wish_json(bytes, kvcap::full_features());
#elif defined(KVCAP_FUZZ_paging)
  return kvcap::paging_json(bytes);
#elif defined(KVCAP_FUZZ_quiz)
  return kvcap::quiz_json(bytes);
#endif
}

void demand(bool right, const char* what, const std::string& answer) {
  if (right) return;
  std::fprintf(stderr, "%s: %.2000s\n", what, answer.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t count) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), count};
  const std::string answer = ask(bytes);
  const auto document = kvcap::json::Document::parse(answer, "answer", kvcap::kMaxRequestBytes);
  demand(document.has_value(), "the answer is no JSON", answer);
  demand(answer.find("\"code\":\"internal\"") == std::string::npos, "an internal fault", answer);
  demand(ask(bytes) == answer, "another answer to the same question", answer);
  return 0;
}
