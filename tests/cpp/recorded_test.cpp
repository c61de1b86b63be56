// Whole answers against tests/data/recorded.jsonl, which tests/oracle/recorded.mjs writes: no figure changes unseen.
#include <fstream>

#include "plan_helpers.hpp"

namespace kvcap {
namespace {

/// Checks what is recorded of a value; members of an object that are not recorded are left alone.
void check_same(const json::Value& recorded, const json::Value& given, const std::string& path) {
  CAPTURE(path);
  REQUIRE(recorded.kind == given.kind);
  CHECK(std::string(recorded.text) == std::string(given.text));
  CHECK(recorded.truth == given.truth);
  if (recorded.is(json::Kind::object)) {
    for (const auto& member : recorded) {
      const json::Value* const found = given.find(member.key);
      REQUIRE_MESSAGE(found != nullptr, std::string(member.key));
      check_same(member, *found, path + "." + std::string(member.key));
    }
  } else if (recorded.is(json::Kind::array)) {
    REQUIRE(recorded.count() == given.count());
    auto other = given.begin();
    for (const auto& element : recorded) check_same(element, *other, path), ++other;
  }
}

TEST_CASE("recorded answers, with their estimates, parts, gaps, ranks, notes and steps") {
  std::ifstream in("tests/data/recorded.jsonl");
  REQUIRE_MESSAGE(in, "tests run in the project's folder, which has tests/data/recorded.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const auto record = json::Document::parse(line, "record", kMaxRequestBytes);
    REQUIRE(record);
    const std::string request = line.substr(11, line.find(",\"answer\":") - 11);
    CAPTURE(request);
    check_same(*record->root().find("answer"), test::Asked(request).root(), "answer");
  }
  CHECK(count > 150);
}

}  // namespace
}  // namespace kvcap
