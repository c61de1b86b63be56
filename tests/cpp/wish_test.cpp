// The calculator asked backwards: what is found fits, and the next does not.
#include "kvcap/wish.hpp"

#include <doctest/doctest.h>

#include "plan_helpers.hpp"

namespace {

using namespace kvcap;
using test::Asked;

std::string object(std::string_view rest) {
  Text text;
  text << "{" << rest << "}";
  return text.take();
}

class Wished {
 public:
  Wished(std::string_view request, std::string_view wish) : text_(ask(request, wish)), document_(parse(text_)) {}
  [[nodiscard]] const json::Value* at(Label name) const { return document_.root().get(name); }
  [[nodiscard]] u64 whole(Label name) const { return number(at(name)); }
  [[nodiscard]] u64 whole(Label name, Label part) const { return number(at(name)->find(part)); }
  [[nodiscard]] std::string error(Label part) const {
    const json::Value* const found = at("error");
    return found == nullptr ? "" : std::string(found->find(part)->text);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static std::string ask(std::string_view request, std::string_view wish) {
    Text question;
    question << R"("request":)" << object(request) << "," << wish;
    return wish_json(object(question), full_features());
  }
  static json::Document parse(const std::string& answer) {
    auto document = json::Document::parse(answer, "answer", kMaxRequestBytes);
    REQUIRE_MESSAGE(document, answer);
    return std::move(*document);
  }
  static u64 number(const json::Value* value) {
    REQUIRE(value != nullptr);
    return *json::to_whole(*value, "answer", 0, kMaxExact);
  }
  std::string text_;
  json::Document document_;
};

/// Whole conversations of a plan, 0 where it is refused.
u64 sequences(std::string_view request, std::string_view more) {
  Text text;
  text << request << more;
  const Asked plan(object(text));
  return plan.refused() ? 0 : plan.whole("sequences");
}

std::string with(Label key, u64 value) {
  Text text;
  text << ",\"" << key << "\":" << value;
  return text.take();
}

constexpr const char* kRequests[] = {
    R"("model":"llama-3-8b")",
    R"("model":"llama-3-70b","gpus":4)",
    R"("model":"mixtral-8x7b","gpus":2,"weights":"int4")",
    R"("model":"gemma-3-27b","gpus":1)",
    R"("model":"deepseek-v3","gpus":16)",
    R"("model":"qwen3-next-80b-a3b","gpus":3)",
    R"("model":"llama-3.1-8b","engine":"vllm","gpu":"h100-sxm-80gb")",
    R"("model":"llama-3.1-70b","engine":"sglang","gpu":"h100-sxm-80gb","gpus":4)",
    R"("model":"llama-3.1-8b","engine":"llama.cpp","gpu":"rtx-4090","weights":"q4_k_m")",
    R"("model":"llama-3.1-8b","engine":"tensorrt-llm","gpu":"h100-sxm-80gb")",
};

}  // namespace

TEST_CASE("what is found fits, and the next does not") {
  u32 smaller_caches = 0;
  for (const char* const request : kRequests) {
    CAPTURE(request);
    const bool textbook = std::string_view(request).find("engine") == std::string_view::npos;
    for (const u64 wanted : {1u, 7u, 64u, 300u}) {
      for (const u64 context : {2048u, 32'768u, 100'001u}) {
        Text wish;
        wish << R"("sequences":)" << wanted << R"(,"context":)" << context;
        const Wished found(request, wish);
        CAPTURE(found.text());
        REQUIRE(found.error("code") == "");
        const u64 now = sequences(request, with("context", context));
        CHECK(found.whole("sequences_now") == now);
        CHECK(found.at("fits")->truth == (now >= wanted));

        if (found.at("longest_context") != nullptr) {
          const u64 longest = found.whole("longest_context");
          CHECK(sequences(request, with("context", longest)) >= wanted);
          CHECK(sequences(request, with("context", longest + 1)) < wanted);
          CHECK((longest >= context) == (now >= wanted));
        } else {
          CHECK(sequences(request, with("context", 1)) < wanted);
        }

        const bool by_layers = std::string_view(request).find("llama.cpp") != std::string_view::npos;
        const auto on = [&](u64 each, u64 copies) {
          // The last of two same keys counts.
          std::string more = with("context", context) + with("gpus", each * copies);
          if (!textbook) more += with(by_layers ? "pipeline_parallel" : "tensor_parallel", each);
          return sequences(request, more + with("data_parallel", copies));
        };
        REQUIRE(found.at("gpus") != nullptr);
        const u64 gpus = found.whole("gpus", "count");
        const u64 copies = found.whole("gpus", "copies");
        CHECK(on(gpus / copies, copies) >= wanted);
        CHECK(on(gpus / copies, copies) == found.whole("gpus", "sequences"));
        if (textbook) {
          if (gpus > 1) CHECK(on(gpus - 1, 1) < wanted);
        } else {
          for (u64 each = 1; each < gpus && each <= 64; ++each) CHECK(on(each, (gpus - 1) / each) < wanted);
        }

        if (const json::Value* const kv = found.at("kv"); kv != nullptr) {
          ++smaller_caches;
          CHECK(now < wanted);
          Text change;
          change << with("context", context) << R"(,"kv":")" << kv->find("format")->text << "\"";
          CHECK(sequences(request, change) == found.whole("kv", "sequences"));
          CHECK(found.whole("kv", "sequences") >= wanted);
        }
      }
    }
  }
  CHECK(smaller_caches >= 10);
}

TEST_CASE("the smallest change of the cache's format is named") {
  const struct {
    const char* request;
    u64 wanted;
    const char* format;
  } kRows[] = {
      // 52 of bf16, 104 of fp8 and 208 of int4 at 8,192 tokens.
      {R"("model":"llama-3-8b")", 52, ""},
      {R"("model":"llama-3-8b")", 53, "fp8"},
      {R"("model":"llama-3-8b")", 104, "fp8"},
      {R"("model":"llama-3-8b")", 105, "int4"},
      {R"("model":"llama-3-8b")", 208, "int4"},
      {R"("model":"llama-3-8b")", 209, ""},
      {R"("model":"llama-3-8b","kv":"fp8")", 105, "int4"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.wanted);
    Text wish;
    wish << R"("context_k":8,"sequences":)" << row.wanted;
    const Wished found(row.request, wish);
    CHECK(found.whole("context") == 8192);
    const json::Value* const kv = found.at("kv");
    CHECK((kv == nullptr ? "" : kv->find("format")->text) == row.format);
  }
}

TEST_CASE("hostile wishes are refused by field") {
  const struct {
    const char* request;
    const char* wish;
    const char* code;
    const char* field;
  } kRows[] = {
      {R"("model":"llama-3-8b")", R"("context":8192)", "missing", "sequences"},
      {R"("model":"llama-3-8b")", R"("sequences":0)", "out_of_range", "sequences"},
      {R"("model":"llama-3-8b")", R"("sequences":1.5)", "not_whole", "sequences"},
      {R"("model":"llama-3-8b")", R"("sequences":"many")", "wrong_type", "sequences"},
      {R"("model":"llama-3-8b")", R"("sequences":9,"context":0)", "out_of_range", "context"},
      {R"("model":"llama-3-8b")", R"("sequences":9,"context_k":99999999)", "out_of_range", "context_k"},
      {R"("model":"llama-3-8b")", R"("sequences":9,"context":1,"context_k":1)", "conflict", "context_k"},
      {R"("model":"no-such-model")", R"("sequences":9)", "unknown_id", "model"},
      {R"("model":"bert-like","gpus":0)", R"("sequences":9)", "unknown_id", "model"},
      {R"("model":{"layers":[{"count":1,"kind":"full","kv_heads":1,"key_width":8,"value_width":8}]})",
       R"("sequences":9)", "missing", "parameters"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.request);
    CAPTURE(row.wish);
    const Wished found(row.request, row.wish);
    CHECK(found.error("code") == row.code);
    CHECK(found.error("field") == row.field);
  }
  for (const char* const text : {"", "[]", "7", "{}", R"({"sequences":1})"}) {
    CHECK(wish_json(text, full_features()).find("\"error\"") != std::string::npos);
  }
  // As many as a number can say: an answer, not a fault.
  const Wished many(R"("model":"llama-3-8b")", R"("sequences":9007199254740991)");
  CHECK(many.error("code") == "");
  CHECK(many.at("gpus") == nullptr);
}

namespace {

/// A layer of 2 heads × (8 + 8) × 2 bytes: 64 a token, on vLLM in blocks of 1024 bytes.
std::string small(Label engine, std::string_view heads, std::string_view options, std::string_view more = "") {
  Text text;
  text << R"("engine":")" << engine << R"(","model":{"layers":[{"kind":"full","count":1,"kv_heads":)" << heads
       << R"(,"key_width":8,"value_width":8}]},"options":{)" << options << "}" << more;
  return text.take();
}

/// "GPUs in copies for sequences", or "none".
std::string gpus_of(const Wished& found) {
  if (found.at("gpus") == nullptr) return "none";
  Text text;
  text << found.whole("gpus", "count") << " in " << found.whole("gpus", "copies") << " for "
       << found.whole("gpus", "sequences");
  return text.take();
}

}  // namespace

TEST_CASE("the fewest GPUs, in as few more copies as reach the number") {
  const auto vllm = [](u64 wanted) {
    Text wish;
    wish << R"("context":16,"sequences":)" << wanted;
    // Ten blocks, of which a conversation takes one; on two GPUs that split the heads twenty.
    return gpus_of(
        Wished(small("vllm", "2", R"("kv_memory_bytes":10240)", R"(,"weight_bytes":1,"gpu":{"memory_bytes":20000})"),
               wish.take()));
  };
  CHECK(vllm(1) == "1 in 1 for 10");
  CHECK(vllm(10) == "1 in 1 for 10");
  CHECK(vllm(11) == "2 in 2 for 20");
  CHECK(vllm(20) == "2 in 2 for 20");
  CHECK(vllm(21) == "3 in 3 for 30");
  CHECK(vllm(10'000'000) == "1000000 in 1000000 for 10000000");
  CHECK(vllm(10'000'001) == "none");
  // Two GPUs hold more than five, each of which has all of the weights: 5000 − 2600 and 2 × (5000 − 1300) bytes.
  CHECK(gpus_of(
            Wished(small("vllm", "2",
                         R"("activation_bytes":0,"non_torch_bytes":0,"cuda_graph_bytes":0,"gpu_memory_utilization":1)",
                         R"(,"gpu":{"memory_bytes":5000},"weight_bytes":2600)"),
                   R"("context":16,"sequences":7)")) == "2 in 1 for 7");
  CHECK(vllm(9'999'991) == "1000000 in 1000000 for 10000000");
  // A copy is split over 64 GPUs at most. 65 heads go on 1, 5, 13 or 65, 64 on every power of two.
  const auto split = [](std::string_view heads) {
    return gpus_of(Wished(small("vllm", heads, R"("activation_bytes":0,"non_torch_bytes":0,"cuda_graph_bytes":0)",
                                R"(,"gpu":{"memory_bytes":100000},"weight_bytes":5800000)"),
                          R"("context":16,"sequences":1)"));
  };
  CHECK(split("64") == "64 in 1 for 2");  // 92000 − 90625 bytes are two blocks of 512
  CHECK(split("65") == "none");
  // The textbook pools any number: 1000 − 1 bytes are 6 conversations of 160 bytes.
  const auto pooled = [](u64 wanted) {
    Text wish;
    wish << R"("context":10,"sequences":)" << wanted;
    Text request;
    request << R"("model":{"layers":[{"kind":"full","count":1,"kv_heads":1,"key_width":4,"value_width":4}]},)"
            << R"("options":{"reserve":0},"weight_bytes":1,"gpu":{"memory_bytes":1000})";
    return Wished(request.take(), wish.take());
  };
  CHECK(gpus_of(pooled(6)) == "1 in 1 for 6");
  CHECK(pooled(6).at("fits")->truth);
  CHECK(pooled(6).at("kv") == nullptr);
  CHECK(pooled(6).whole("longest_context") == 10);
  CHECK(gpus_of(pooled(7)) == "2 in 1 for 12");
  CHECK_FALSE(pooled(7).at("fits")->truth);
  CHECK(pooled(7).at("kv")->find("format")->text == "fp8");
  CHECK(pooled(7).whole("kv", "sequences") == 12);
  CHECK(pooled(7).whole("longest_context") == 8);
  CHECK(gpus_of(pooled(12)) == "2 in 1 for 12");
  CHECK(gpus_of(pooled(13)) == "3 in 1 for 18");
  CHECK(pooled(12).at("kv")->find("format")->text == "fp8");
  CHECK(pooled(13).at("kv")->find("format")->text == "int4");
  CHECK(pooled(24).at("kv")->find("format")->text == "int4");
  CHECK(pooled(25).at("kv") == nullptr);
  CHECK(pooled(62).whole("longest_context") == 1);
  CHECK(pooled(63).at("longest_context") == nullptr);
}

TEST_CASE("a cache of another format has to be smaller, and the engine's own") {
  const auto kv = [](std::string_view engine, std::string_view now, u64 wanted) -> std::string {
    Text request;
    request << R"("engine":")" << engine << R"(","kv":")" << now
            << R"(","model":{"layers":[{"kind":"full","count":1,"kv_heads":1,"key_width":64,"value_width":64}]},)"
            << R"("options":{"kv_memory_bytes":2560000},"weight_bytes":1,"gpu":{"memory_bytes":3000000})";
    Text wish;
    wish << R"("context":256,"sequences":)" << wanted;
    const Wished found(request.take(), wish.take());
    return found.at("kv") == nullptr ? "none" : std::string(found.at("kv")->find("format")->text);
  };
  // 256 tokens take 131072 bytes of fp32, 65536 of 16 bits, 34816 of q8_0, 24576 and 22528 of q5_1 and q5_0, 18432.
  CHECK(kv("llama.cpp", "fp32", 19) == "none");  // as it is
  CHECK(kv("llama.cpp", "fp32", 20) == "fp16");
  CHECK(kv("llama.cpp", "fp32", 39) == "fp16");
  CHECK(kv("llama.cpp", "fp32", 40) == "q8_0");
  CHECK(kv("llama.cpp", "fp16", 40) == "q8_0");
  CHECK(kv("llama.cpp", "bf16", 40) == "q8_0");
  CHECK(kv("llama.cpp", "bf16", 74) == "q5_1");
  CHECK(kv("llama.cpp", "bf16", 105) == "q5_0");
  CHECK(kv("llama.cpp", "bf16", 114) == "q4_0");
  CHECK(kv("llama.cpp", "bf16", 138) == "q4_0");
  CHECK(kv("llama.cpp", "bf16", 139) == "none");
  // Of 2 heads of 16 values all are in one block: 34 bytes of q8_0 for 64 of fp16.
  const Wished blocks(R"("engine":"llama.cpp","kv":"fp16","options":{"kv_memory_bytes":34816},"weight_bytes":1,)"
                      R"("gpu":{"memory_bytes":3000000},"model":{"layers":[)"
                      R"({"kind":"full","count":1,"kv_heads":2,"key_width":16,"value_width":16}]})",
                      R"("context":256,"sequences":2)");
  CHECK(blocks.at("kv")->find("format")->text == "q8_0");
  CHECK(kv("vllm", "bf16", 40) == "fp8");
  CHECK(kv("vllm", "fp8", 79) == "none");
  CHECK(kv("sglang", "bf16", 40) == "fp8");
  CHECK(kv("tensorrt-llm", "bf16", 79) == "nvfp4");
}

TEST_CASE("the bounds of a wish") {
  // No conversation is longer than a request may ask for, whatever fits.
  CHECK(Wished(R"("model":"llama-3-8b","gpus":100000)", R"("sequences":1)").whole("longest_context") == 2'147'483'648);
  const auto outcome = [](std::string_view wish) {
    const Wished found(R"("model":"llama-3-8b")", wish);
    return found.error("field") + (found.error("field").empty() ? std::to_string(found.whole("context")) : "");
  };
  CHECK(outcome(R"("sequences":1)") == "8192");
  CHECK(outcome(R"("sequences":9007199254740992)") == "sequences");
  CHECK(outcome(R"("sequences":1,"context":1)") == "1");
  CHECK(outcome(R"("sequences":1,"context":2147483648)") == "2147483648");
  CHECK(outcome(R"("sequences":1,"context":2147483649)") == "context");
  CHECK(outcome(R"("sequences":1,"context_k":1)") == "1024");
  CHECK(outcome(R"("sequences":1,"context_k":0)") == "context_k");
  CHECK(outcome(R"("sequences":1,"context_k":2097152)") == "2147483648");
  CHECK(outcome(R"("sequences":1,"context_k":2097153)") == "context_k");
  const std::string long_text = "{" + std::string(kMaxRequestBytes - 1, ' ') + "}";
  CHECK(wish_json(long_text, full_features()).find("\"field\":\"request\"") != std::string::npos);
  CHECK(wish_json(long_text, full_features()).find("16777216") != std::string::npos);
  // A pool that is stated needs no weights.
  CHECK(Wished(R"("model":{"layers":[{"kind":"full","count":1,"kv_heads":1,"key_width":8,"value_width":8}]},)"
               R"("options":{"kv_memory_bytes":1000})",
               R"("sequences":1,"context":1)")
            .error("code")
            .empty());
}
