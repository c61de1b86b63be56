// Every field of a request is checked, and what is refused names the field.
#include <doctest/doctest.h>

#include "plan_helpers.hpp"

using namespace kvcap;
using kvcap::test::Asked;
using kvcap::test::request_for;

namespace {

void check_refused(const std::string& request, const std::string& code, const std::string& field) {
  CAPTURE(request.substr(0, 300));
  const Asked answer(request);
  CAPTURE(answer.text().substr(0, 400));
  REQUIRE(answer.refused());
  CHECK(answer.words("error.code") == code);
  CHECK(answer.words("error.field") == field);
  CHECK(answer.words("error.message").size() > 10);
  CHECK(answer.at("sequences") == nullptr);
}

const char* const kCounts[] = {"context",       "gpus",       "tensor_parallel", "pipeline_parallel",
                               "data_parallel", "parameters", "kv_heads"};

}  // namespace

TEST_CASE("counts that are no counts") {
  for (const std::string field : kCounts) {
    const auto with = [&](const std::string& value) { return request_for("llama-3-8b", "\"" + field + "\":" + value); };
    check_refused(with("0"), "out_of_range", field);
    check_refused(with("-1"), "out_of_range", field);
    check_refused(with("1.5"), "not_whole", field);
    check_refused(with("1e-3"), "not_whole", field);
    check_refused(with("NaN"), "not_whole", field);
    check_refused(with("Infinity"), "not_whole", field);
    check_refused(with("-Infinity"), "not_whole", field);
    check_refused(with("\"8192\""), "wrong_type", field);
    check_refused(with("\"\""), "wrong_type", field);
    check_refused(with("null"), "wrong_type", field);
    check_refused(with("true"), "wrong_type", field);
    check_refused(with("[8192]"), "wrong_type", field);
    check_refused(with("{}"), "wrong_type", field);
    check_refused(with("9007199254740993"), "out_of_range", field);
    check_refused(with("1e300"), "out_of_range", field);
    check_refused(with(std::string(200, '9')), "out_of_range", field);
    // Beyond what a double can hold, the reader may call the number itself no JSON.
    for (const std::string& absurd : {std::string("1e99999999999999999999"), std::string(500, '9')}) {
      const Asked answer(with(absurd));
      REQUIRE(answer.refused());
      CHECK((answer.words("error.field") == field || answer.words("error.code") == "malformed"));
    }
    check_refused(with("340282366920938463463374607431768211457"), "out_of_range", field);
  }
  check_refused(request_for("llama-3-8b", R"("context":2147483649)"), "out_of_range", "context");
  CHECK_FALSE(Asked(request_for("llama-3-8b", R"("context":2147483648)")).refused());
}

TEST_CASE("a whole number may be written in any way that JSON has") {
  for (const char* spelling : {"8192", "8192.0", "8.192e3", "81920e-1", "0.8192E+4"}) {
    const Asked answer(request_for("llama-3-8b", std::string(R"("context":)") + spelling));
    REQUIRE_FALSE(answer.refused());
    CHECK(answer.whole("context") == 8192);
  }
}

TEST_CASE("ids") {
  check_refused("{}", "missing", "model");
  check_refused(R"({"model":null})", "wrong_type", "model");
  check_refused(R"({"model":7})", "wrong_type", "model");
  check_refused(request_for("llama-9"), "unknown_id", "model");
  check_refused(request_for(""), "unknown_id", "model");
  check_refused(request_for("llama-3-8b", R"("gpu":"h1000")"), "unknown_id", "gpu");
  check_refused(request_for("llama-3-8b", R"("gpu":80)"), "wrong_type", "gpu");
  check_refused(request_for("llama-3-8b", R"("gpu":{})"), "missing", "gpu.memory_bytes");
  check_refused(request_for("llama-3-8b", R"("gpu":{"memory_bytes":0})"), "out_of_range", "gpu.memory_bytes");
  check_refused(request_for("llama-3-8b", R"("gpu":{"memory_bytes":1e16})"), "out_of_range", "gpu.memory_bytes");
  check_refused(request_for("llama-3-8b", R"("weights":"bf17")"), "unknown_id", "weights");
  check_refused(request_for("llama-3-8b", R"("weights":16)"), "wrong_type", "weights");
  check_refused(request_for("llama-3-8b", R"("weights":"fp8_ds_mla")"), "unknown_id", "weights");
  check_refused(request_for("llama-3-8b", R"("kv":"mxfp4")"), "unknown_id", "kv");
  check_refused(request_for("llama-3-8b", R"("kv":{"k":"bf16"})"), "missing", "kv.v");
  check_refused(request_for("llama-3-8b", R"("kv":{"k":"bf16","v":"none"})"), "unknown_id", "kv.v");
  check_refused(request_for("llama-3-8b", R"("kv":"fp8_ds_mla")"), "conflict", "kv");
  check_refused(request_for("llama-3-8b", R"("engine":"tgi")"), "unknown_id", "engine");
  check_refused(request_for("llama-3-8b", R"("engine":3)"), "wrong_type", "engine");
  check_refused(R"({"model":"llama-3-8b","config":{}})", "conflict", "config");
  check_refused(R"({"config":7})", "wrong_type", "config");
  CHECK(Asked(request_for("meta-llama/Meta-Llama-3-8B")).words("model.id") == "llama-3-8b");
  CHECK(Asked(request_for("META-LLAMA/META-LLAMA-3-8B")).words("model.id") == "llama-3-8b");
}

TEST_CASE("sizes that contradict each other") {
  check_refused(request_for("llama-3-8b", R"("gpus":4,"tensor_parallel":3)"), "conflict", "gpus");
  check_refused(request_for("llama-3-8b", R"("gpus":4,"pipeline_parallel":3,"engine":"vllm")"), "not_divisible",
                "gpus");
  check_refused(request_for("llama-3-8b", R"("tensor_parallel":1000000,"pipeline_parallel":1000000)"), "out_of_range",
                "tensor_parallel");
  CHECK(Asked(request_for("llama-3-8b", R"("tensor_parallel":2,"pipeline_parallel":2)")).whole("deployment.gpus") == 4);
  CHECK(Asked(request_for("llama-3-8b", R"("gpus":7)")).whole("deployment.gpus") == 7);
}

TEST_CASE("another number of KV heads") {
  const Asked own(request_for("llama-3-70b", R"("gpus":4)"));
  const Asked each(request_for("llama-3-70b", R"("gpus":4,"kv_heads":64)"));
  CHECK(each.whole("kv_bytes_per_token") == 8 * own.whole("kv_bytes_per_token"));
  CHECK(each.whole("weight_bytes") == own.whole("weight_bytes"));
  CHECK(each.text().find("kv_heads_changed") != std::string::npos);
  CHECK(own.text().find("kv_heads_changed") == std::string::npos);
  CHECK(Asked(request_for("llama-3-70b", R"("gpus":4,"kv_heads":8)")).whole("kv_bytes_per_token") ==
        own.whole("kv_bytes_per_token"));
  // In windows too, and never in what has no heads.
  const Asked windows(request_for("gpt-oss-20b", R"("kv_heads":64)"));
  CHECK(windows.whole("kv_bytes_per_sequence") == 8 * Asked(request_for("gpt-oss-20b")).whole("kv_bytes_per_sequence"));
  check_refused(request_for("deepseek-v3", R"("kv_heads":8)"), "conflict", "kv_heads");
}

TEST_CASE("options") {
  check_refused(request_for("llama-3-8b", R"("options":7)"), "wrong_type", "options");
  check_refused(request_for("llama-3-8b", R"("options":{"resrve":0.1})"), "unknown_id", "options.resrve");
  check_refused(request_for("llama-3-8b", R"("options":{"reserve":1})"), "out_of_range", "options.reserve");
  check_refused(request_for("llama-3-8b", R"("options":{"reserve":-0.1})"), "out_of_range", "options.reserve");
  check_refused(request_for("llama-3-8b", R"("options":{"reserve":"0.1"})"), "wrong_type", "options.reserve");
  check_refused(request_for("llama-3-8b", R"("options":{"reserve":NaN})"), "out_of_range", "options.reserve");
  CHECK(Asked(request_for("llama-3-8b", R"("options":{"reserve":0})")).whole("sequences") == 59);
  CHECK(Asked(request_for("llama-3-8b", R"("options":{"reserve":0.25})")).whole("sequences") == 40);
}

TEST_CASE("models as objects") {
  const auto with = [](const std::string& run) { return R"({"model":{"layers":[)" + run + "]}}"; };
  check_refused(R"({"model":{}})", "missing", "model.layers");
  check_refused(R"({"model":{"layers":{}}})", "wrong_type", "model.layers");
  check_refused(R"({"model":{"layers":[]}})", "out_of_range", "model.layers");
  check_refused(with("7"), "wrong_type", "model.layers[0]");
  check_refused(with(R"({"count":1})"), "missing", "model.layers[0].kind");
  check_refused(with(R"({"count":1,"kind":"spiral"})"), "unknown_id", "model.layers[0].kind");
  check_refused(with(R"({"kind":"full"})"), "missing", "model.layers[0].count");
  check_refused(with(R"({"count":0,"kind":"full"})"), "out_of_range", "model.layers[0].count");
  check_refused(with(R"({"count":1,"kind":"full","kv_heads":8,"key_width":128})"), "missing",
                "model.layers[0].value_width");
  check_refused(with(R"({"count":1,"kind":"full","kv_heads":8,"key_width":128,"value_width":128},
                        {"count":1,"kind":"window","kv_heads":8,"key_width":128,"value_width":128})"),
                "missing", "model.layers[1].window");
  check_refused(with(R"({"count":1,"kind":"latent"})"), "missing", "model.layers[0].latent_width");
  check_refused(with(R"({"count":1,"kind":"recurrent"})"), "missing", "model.layers[0].state_values");
  check_refused(with(R"({"count":1,"kind":"compressed","latent_width":512})"), "missing",
                "model.layers[0].tokens_per_entry");
  check_refused(with(R"({"count":1,"kind":"full","kv_heads":-8,"key_width":128,"value_width":128})"), "out_of_range",
                "model.layers[0].kv_heads");
  check_refused(with(R"({"count":54,"kind":"none"})"), "no_cache", "model");
}

TEST_CASE("figures past 2^53 are refused, never wrapped") {
  const std::string wide = R"({"model":{"parameters":1,"layers":[{"count":65536,"kind":"full","kv_heads":65536,
      "key_width":16777216,"value_width":16777216}]},"context":2147483648,"gpus":1000000})";
  check_refused(wide, "out_of_range", "context");
  check_refused(R"({"model":"llama-3-8b","parameters":9007199254740991})", "out_of_range", "weights");
  check_refused(request_for("llama-3-8b", R"("gpu":{"memory_bytes":9007199254740991},"gpus":2)"), "out_of_range",
                "gpus");
  check_refused(request_for("llama-3-8b", R"("weight_bytes":9007199254740991,"data_parallel":2)"), "out_of_range",
                "data_parallel");
}

TEST_CASE("text that is not JSON says where") {
  check_refused("", "malformed", "request");
  check_refused("{", "malformed", "request");
  check_refused("[]", "wrong_type", "request");
  check_refused("{\"model\":\n\"llama-3-8b\",,}", "malformed", "request");
  CHECK(Asked("{\n  \"model\": }").words("error.message").find("line 2, column 12") != std::string::npos);
  check_refused(std::string(100, '[') + std::string(100, ']'), "malformed", "request");
  check_refused(std::string("{\"model\":\"llama-3-8b\"}\0{}", 25), "malformed", "request");
  check_refused(R"({"model":"llama-3-8b"} trailing)", "malformed", "request");
}

TEST_CASE("the small kernel defers what it does not hold") {
  const Asked engine(request_for("llama-3-8b", R"("engine":"vllm")"), textbook_features());
  CHECK(engine.words("error.code") == "unsupported");
  CHECK(engine.words("error.field") == "engine");
  const Asked config(R"({"config":{}})", textbook_features());
  CHECK(config.words("error.code") == "unsupported");
  CHECK(config.words("error.field") == "config");
}

TEST_CASE("the same request gives the same bytes") {
  const std::string request = request_for("gemma-3-27b", R"("gpus":2,"context":32768)");
  const std::string first = plan_json(request, full_features());
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(plan_json(R"({"model":"llama-3-70b","gpus":3})", full_features()));
    CHECK(plan_json(request, full_features()) == first);
  }
  CHECK(plan_json(request, textbook_features()) == first);
}

TEST_CASE("GPUs of stages that are left without a layer are named, in every engine with stages") {
  for (const std::string engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
    CAPTURE(engine);
    const auto ask = [&](u64 stages) {
      const std::string number = digits(stages);
      return Asked(R"({"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "engine": ")" + engine +
                   R"(", "tensor_parallel": 1, "gpus": )" + number + R"(, "pipeline_parallel": )" + number + "}");
    };
    CHECK(ask(32).text().find("gpus_without_layers") == std::string::npos);
    CHECK(ask(40).text().find(R"({"code":"gpus_without_layers","values":{"gpus":"8","layers":"32","stages":"40"}})") !=
          std::string::npos);
  }
}
