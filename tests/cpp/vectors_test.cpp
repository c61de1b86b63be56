// The conformance file tests/data/vectors.jsonl: figures that were published, printed or worked out apart from this
// code.
#include <fstream>

#include "plan_helpers.hpp"

namespace kvcap {
namespace {

/// Whether two values are the same; numbers as numbers, however they are written.
bool same(const json::Value& expected, const json::Value& given) {
  if (expected.kind != given.kind) return false;
  if (expected.is(json::Kind::number)) {
    return std::strtod(std::string(expected.text).c_str(), nullptr) ==
           std::strtod(std::string(given.text).c_str(), nullptr);
  }
  return expected.text == given.text && expected.truth == given.truth;
}

/// Checks each figure that `expected` names.
void check_answer(const json::Value& expected, const json::Value& given) {
  for (const auto& figure : expected) {
    CAPTURE(std::string(figure.key));
    const json::Value* const found = given.find(figure.key);
    REQUIRE(found != nullptr);
    if (figure.is(json::Kind::object)) {
      check_answer(figure, *found);
    } else {
      CHECK_MESSAGE(same(figure, *found), std::string(figure.text) << " became " << std::string(found->text));
    }
  }
}

TEST_CASE("every vector of the conformance file: the figures and refusals that it states") {
  std::ifstream in("tests/data/vectors.jsonl");
  REQUIRE_MESSAGE(in, "tests run in the project's folder, which has tests/data/vectors.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const auto vector = json::Document::parse(line, "vector", kMaxRequestBytes);
    REQUIRE(vector);
    CAPTURE(std::string(vector->root().find("id")->text));
    const std::size_t request = line.find("\"request\":") + 10;
    const test::Asked asked(std::string_view(line).substr(request, line.rfind(",\"answer\":") - request));
    const json::Value& expected = *vector->root().find("answer");
    CHECK(asked.refused() == (expected.find("error") != nullptr));
    check_answer(expected, asked.root());
  }
  CHECK(count > 500);
}

}  // namespace
}  // namespace kvcap
