// The core kernel natively: it answers as the full one does (tests/web/kernel.test.mjs compares them), or leaves it to
// it.
#include <doctest/doctest.h>

#include <string>

#include "kvcap/catalogue.hpp"
#include "kvcap/plan.hpp"

namespace {

using namespace kvcap;

std::string ask(std::string_view request) { return std::string(plan_json(request, textbook_features())); }

bool holds(const std::string& answer, std::string_view part) { return answer.find(part) != std::string::npos; }

/// It has no words; of a field that is wrong by itself it tells the name.
bool left_to_the_full_kernel(std::string_view request, std::string_view field = "request") {
  return ask(request) == R"({"error":{"code":"unsupported","field":")" + std::string(field) + R"(","message":""}})";
}

}  // namespace

TEST_CASE("the core kernel answers as pages ask") {
  const std::string answer = ask(R"({"model":"llama-3-8b","context":8192,"gpus":1,"options":{"reserve":0.1}})");
  CHECK(holds(answer, R"("kv_bytes_per_token":131072,)"));
  CHECK(holds(answer, R"("kv_bytes_per_sequence":1073741824,)"));
  CHECK(holds(answer, R"("weight_bytes":16060522496,)"));
  CHECK(holds(answer, R"("kv_memory_bytes":55939477504,)"));
  CHECK(holds(answer, R"("sequences":52,)"));
  CHECK(holds(ask(R"({"model":"llama-3-70b","gpus":4,"kv":{"k":"q8_0","v":"q4_0"}})"),
              R"("kv":{"k":"q8_0","v":"q4_0"})"));
  CHECK(holds(ask(R"({"model":"llama-3-8b","gpu":{"memory_bytes":24000000000}})"), R"("basis":"stated")"));
  CHECK(holds(ask(R"({"model":"meta-llama/llama-3.1-8b-instruct"})"), R"("id":"llama-3.1-8b")"));
}

TEST_CASE("every model and GPU of the catalogue is answered") {
  for (const auto& entry : catalogue()) {
    CAPTURE(entry.id);
    CHECK(holds(ask("{\"model\":\"" + std::string(entry.id) + "\"}"), "\"kv_bytes_per_token\":"));
    CHECK(find_model(entry.hub_id) == &entry);
  }
  for (const auto& gpu : gpus()) {
    CAPTURE(gpu.id);
    CHECK(holds(ask("{\"model\":\"llama-3-8b\",\"gpu\":\"" + std::string(gpu.id) + "\"}"), "\"sequences\":"));
  }
}

TEST_CASE("what the core kernel does not read is left to the full one") {
  for (const char* const text : {
           "",
           "{",
           "[]",
           "null",
           "7",
           "\"llama-3-8b\"",
           "{}",
           R"({"model":"llama-3-8b"} )",
           R"({ "model":"llama-3-8b"})",
           R"({"model":"llama-3-8b",})",
           R"({"model":"llama\u002d3-8b"})",
           R"({"model":"llama-3-8b","x":true})",
           R"({"model":"llama-3-8b","x":null})",
           R"({"model":"llama-3-8b","x":[]})",
           R"({"model":"llama-3-8b","context":08192})",
           R"({"model":"llama-3-8b","context":8192.})",
           R"({"model":"llama-3-8b","context":.5})",
           R"({"model":"llama-3-8b","context":8e3})",
           R"({"model":"llama-3-8b","context":-1})",
           R"({"model":"llama-3-8b","context":1234567890123})",
           R"({"model":"llama-3-8b","x":{"x":{"x":{"x":1}}}})",
           R"({"model":{"layers":[]}})",
           R"({"config":{}})",
           R"({"model":"llama-3-8b","engine":"vllm"})",
           R"({"model":"llama-3-8b","options":{"x":1}})",
           R"({"model":"llama-3-8b","options":{"reserve":1}})",
           R"({"model":"llama-3-8b","options":{"reserve":0.0123456789}})",
           R"({"model":"llama-3-8b","kv":{"k":"bf16"}})",
       }) {
    CAPTURE(text);
    CHECK(left_to_the_full_kernel(text));
  }
  CHECK(left_to_the_full_kernel(std::string_view("{\"model\":\"llama-3-8b\"}\0", 23)));
  CHECK(left_to_the_full_kernel("{\"model\":\"llama-3-8b\",\"x\":\"\n\"}"));
}

TEST_CASE("a field that is wrong by itself is named") {
  CHECK(left_to_the_full_kernel(R"({"model":"no-such-model"})", "model"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","gpu":"no-such-gpu"})", "gpu"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","kv":"q6_k"})", "kv"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","context":8.5})", "context"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","context":0})", "context"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","context":2147483649})", "context"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","context":"8192"})", "context"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","gpus":1000001})", "gpus"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","gpus":4,"tensor_parallel":3})"));
}

TEST_CASE("no product wraps: what would not fit is left to the full kernel") {
  const std::string most = "999999999999";
  CHECK(left_to_the_full_kernel(R"({"model":"llama-2-7b","kv":"fp32","context":2147483648})"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","gpus":1000000,"gpu":{"memory_bytes":)" + most + "}}"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","data_parallel":1000000,"weight_bytes":)" + most + "}"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","gpus":1000000,"options":{"kv_memory_bytes":)" + most + "}}"));
  const std::string large =
      ask(R"({"model":"llama-3-8b","gpus":17,"gpu":{"memory_bytes":)" + most + R"(},"parameters":)" + most + "}");
  CHECK(holds(large, R"("weight_bytes":1999999999998,)"));
  CHECK(holds(large, R"("kv_memory_bytes":13299999999986,)"));
  // More weights than any number of GPUs holds: the search goes to its end.
  CHECK(holds(ask(R"({"model":"llama-3-8b","gpu":{"memory_bytes":1},"weight_bytes":)" + most + "}"),
              R"("gpus_for_weights":null)"));
}

TEST_CASE("more values than a page asks with, and figures past its digits, are left to the full kernel") {
  std::string members = R"("model":"llama-3-8b")";
  for (int i = 0; i < 62; ++i) members += R"(,"x":1)";
  CHECK(holds(ask("{" + members + "}"), "\"sequences\":"));
  CHECK(left_to_the_full_kernel("{" + members + R"(,"x":1})"));
  CHECK(left_to_the_full_kernel(R"({"model"})"));
  CHECK(left_to_the_full_kernel(R"({model:"llama-3-8b"})"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","options":{"reserve":999999999999}})"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","options":{"reserve":"much"}})"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","options":{"reserve":2}})"));
  CHECK(left_to_the_full_kernel(R"({"model":"llama-3-8b","weight_bytes":1.5})", "weight_bytes"));
}

TEST_CASE("a list keeps its elements while it grows") {
  List<u64> list;
  for (u64 i = 0; i < 100; ++i) list.push_back(i * i);
  REQUIRE(list.size() == 100);
  for (u64 i = 0; i < 100; ++i) CHECK(list[static_cast<std::size_t>(i)] == i * i);
}

TEST_CASE("a page is offered the textbook and all models and GPUs") {
  const std::string offered(catalogue_json(textbook_features()));
  CHECK(holds(offered, R"("id":"textbook")"));
  CHECK(holds(offered, R"({"name":"reserve","kind":"fraction","fallback":0.1,)"));
  for (const auto& entry : catalogue()) CHECK(holds(offered, "\"" + std::string(entry.id) + "\""));
  for (const auto& gpu : gpus()) CHECK(holds(offered, "\"" + std::string(gpu.id) + "\""));
}
