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
