// The steps that an answer is explained with: each comes to the value that it states, for every model and engine.
#include <cmath>
#include <fstream>

#include "kvcap/catalogue.hpp"
#include "plan_helpers.hpp"

namespace kvcap {
namespace {

long double number_of(const json::Value& value) { return std::strtold(std::string(value.text).c_str(), nullptr); }

/// Sums up the products of the terms, as a reader does.
void check_step(const json::Value& step) {
  CAPTURE(std::string(step.find("name")->text));
  CAPTURE(std::string(step.find("expression")->text));
  const std::string_view name = step.find("name")->text;
  const bool rounded_down = step.find("rounded_down")->truth;
  long double before = 0;
  long double product = 0;
  long double divisor = 0;
  bool has_share = false;
  for (const auto& term : *step.find("terms")) {
    const std::string_view op = term.find("op")->text;
    const long double value = number_of(*term.find("value"));
    has_share = has_share || term.find("value")->text.contains('.');
    if (op == "×") {
      product *= value;
    } else if (op == "÷") {
      // What is left of the memory is divided, not what was taken from it last.
      product = (before + product) / value;
      before = 0;
      divisor = value;
      if (rounded_down && name != "kv_tokens") product = std::floor(product);
    } else {
      before += product;
      product = op == "−" ? -value : value;
    }
  }
  const auto sum = static_cast<double>(before + product);
  const auto stated = static_cast<double>(number_of(*step.find("value")));
  if (name == "kv_tokens" && divisor != 0) {
    // SGLang's bytes of a token need not be whole where windows keep a share of the tokens; pages are whole.
    CHECK(stated <= sum);
    CHECK(stated >= sum * static_cast<double>(divisor / (divisor + 1)) - 128);
  } else if (name == "kv_blocks" && !rounded_down) {
    // TensorRT-LLM's last block may pass the budget.
    CHECK(stated == std::ceil(sum));
  } else if (name == "weight_bytes") {
    // The last block of a format is whole.
    CHECK(stated >= sum);
    CHECK(stated <= sum + 16'388);
  } else {
    CHECK(stated == doctest::Approx(sum).epsilon(has_share ? 2e-6 : 1e-14));
  }
}

/// Checks every step; gives how many there are.
std::size_t check_steps(const std::string& request) {
  CAPTURE(request);
  const test::Asked answer(request);
  const json::Value* const steps = answer.at("derivation");
  if (steps == nullptr) return 0;
  for (const auto& step : *steps) check_step(step);
  return steps->count();
}

TEST_CASE("every step of a derivation comes to its value: the conformance file") {
  std::ifstream in("tests/data/vectors.jsonl");
  REQUIRE(in);
  std::size_t steps = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t request = line.find("\"request\":") + 10;
    steps += check_steps(line.substr(request, line.rfind(",\"answer\":") - request));
  }
  CHECK(steps > 2000);
}

TEST_CASE("every step of a derivation comes to its value: the catalogue on every engine") {
  std::size_t steps = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    for (const char* engine : {"textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"}) {
      for (const char* more : {R"("context":5000,"gpus":1)", R"("context":40001,"gpus":8)"}) {
        steps += check_steps(test::request_for(
            std::string_view(entry.id),
            std::string(R"("gpu":{"memory_bytes":141000000000},"engine":")") + engine + R"(",)" + more));
      }
    }
  }
  CHECK(steps > 2000);
}

}  // namespace
}  // namespace kvcap