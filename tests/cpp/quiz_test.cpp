// The quiz: its answers are the plan's, its mistakes are really made, and what people type is understood.
#include "kvcap/quiz.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>

#include "kvcap/catalogue.hpp"
#include "plan_helpers.hpp"

namespace {

using namespace kvcap;
using test::Asked;

class Quiz {
 public:
  explicit Quiz(const std::string& request) : request_(request), text_(quiz_json(request)), document_(parse(text_)) {}
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const json::Value& root() const { return document_.root(); }
  [[nodiscard]] std::vector<const json::Value*> questions() const {
    std::vector<const json::Value*> out;
    for (const auto& one : *root().find("questions")) out.push_back(&one);
    return out;
  }
  [[nodiscard]] std::string error(Label part) const {
    const json::Value* const found = root().find("error");
    return found == nullptr ? "" : std::string(found->find(part)->text);
  }
  /// The answer to the same quiz with `check`, which is {"question": index, `answer`}.
  [[nodiscard]] Quiz check(std::size_t index, std::string_view answer) const {
    Text asked;
    asked << std::string_view(request_).substr(0, request_.size() - 1) << R"(,"check":{"question":)" << u64{index};
    asked << "," << answer << "}}";
    return Quiz(asked.take());
  }
  [[nodiscard]] bool right() const {
    REQUIRE_MESSAGE(root().find("verdict") != nullptr, text_);
    return root().find("verdict")->text == "right";
  }
  [[nodiscard]] std::set<std::string> diagnoses() const {
    std::set<std::string> out;
    REQUIRE_MESSAGE(root().find("diagnoses") != nullptr, text_);
    for (const auto& one : *root().find("diagnoses")) out.emplace(one.text);
    return out;
  }

 private:
  static json::Document parse(const std::string& answer) {
    auto document = json::Document::parse(answer, "answer", kMaxRequestBytes);
    REQUIRE_MESSAGE(document, answer);
    return std::move(*document);
  }
  std::string request_, text_;
  json::Document document_;
};

u64 whole(const json::Value& in, Label name) {
  const json::Value* const value = in.find(name);
  REQUIRE(value != nullptr);
  return *json::to_whole(*value, name, 0, kMaxExact);
}

std::string_view words(const json::Value& in, Label name) { return in.find(name)->text; }

/// A number that a question gives; 0 where it gives none.
u64 given(const json::Value& question, std::string_view name) {
  for (const auto& one : *question.find("given")) {
    if (words(one, "name") == name && one.find("value") != nullptr) return whole(one, "value");
  }
  return 0;
}

/// An object's members as the JSON text of a request, and `more`.
std::string request_text(const json::Value& request, std::string_view more = "") {
  Text text;
  text << "{";
  bool first = true;
  for (const auto& one : request) {
    text << (first ? "\"" : ",\"") << one.key << "\":";
    if (one.is(json::Kind::string)) {
      text << "\"" << one.text << "\"";
    } else {
      text << one.text;
    }
    first = false;
  }
  text << more << "}";
  return text.take();
}

std::string quiz_of(u64 seed, u64 level, std::string_view more = "") {
  Text text;
  text << R"({"seed":)" << seed << R"(,"level":)" << level << more << "}";
  return text.take();
}

std::string answer_of(const json::Value& from) {
  Text text;
  if (from.find("choice") != nullptr) {
    text << R"("choice":")" << words(from, "choice") << "\"";
  } else {
    text << R"("value":)" << whole(from, "value");
  }
  return text.take();
}

constexpr u64 kSeeds = 16;

}  // namespace

TEST_CASE("right answers are the plan's") {
  std::map<std::string, int> kinds;
  for (u64 level = 1; level <= 3; ++level) {
    for (u64 seed = 0; seed < kSeeds; ++seed) {
      const Quiz quiz(quiz_of(seed, level));
      const auto questions = quiz.questions();
      CHECK(questions.size() == (level == 1 ? 4 : level == 2 ? 8 : 9));
      for (const auto* const question : questions) {
        const std::string kind(words(*question, "kind"));
        CAPTURE(kind);
        ++kinds[kind];
        const Asked plan(request_text(*question->find("request")));
        REQUIRE_MESSAGE(!plan.refused(), plan.text());
        const auto sequences = [&](std::string_view more) {
          return Asked(request_text(*question->find("request"), more)).whole("sequences");
        };
        if (kind == "costlier") {
          const Asked other(request_text(*question->find("other")));
          const bool first = plan.whole("kv_bytes_per_sequence") > other.whole("kv_bytes_per_sequence");
          CHECK(words(*question, "choice") == (first ? plan : other).words("model.id"));
          continue;
        }
        const u64 value = whole(*question, "value");
        const u64 users = whole(*question, "users");
        CHECK(value > 0);
        Text with;
        if (kind == "bytes_per_token") CHECK(value == plan.whole("kv_bytes_per_token"));
        if (kind == "sequence_bytes" || kind == "shape") CHECK(value == plan.whole("kv_bytes_per_sequence"));
        if (kind == "room") CHECK(value == plan.whole("kv_memory_bytes"));
        if (kind == "sequences" || kind == "lever") CHECK(value == plan.whole("sequences"));
        if (kind == "lever") {
          CHECK(given(*question, "sequences_before") ==
                Asked(request_text(*question->find("other"))).whole("sequences"));
        }
        if (kind == "longest_context") {
          with << R"(,"context":)" << value;
          CHECK(sequences(with) >= users);
          with << R"(,"context":)" << value + 1;
          CHECK(sequences(with) < users);
        }
        if (kind == "fewest_gpus") {
          with << R"(,"gpus":)" << value;
          CHECK(sequences(with) >= users);
          with << R"(,"gpus":)" << value - 1;
          CHECK(sequences(with) < users);
        }
      }
    }
  }
  CHECK(kinds.size() == 9);
}

TEST_CASE("every derivation ends at the answer") {
  for (u64 seed = 0; seed < kSeeds; ++seed) {
    const Quiz quiz(quiz_of(seed, 3));
    for (const auto* const question : quiz.questions()) {
      if (words(*question, "unit") == "choice") continue;
      const json::Value* last = nullptr;
      for (const auto& step : *question->find("derivation")) last = &step;
      REQUIRE(last != nullptr);
      CAPTURE(words(*question, "kind"));
      CHECK(whole(*last, "value") == whole(*question, "value"));
    }
  }
}

TEST_CASE("a right answer is right, and a known mistake is told from it and named") {
  std::map<std::string, int> seen;
  for (u64 level = 1; level <= 3; ++level) {
    for (u64 seed = 0; seed < kSeeds; ++seed) {
      const Quiz quiz(quiz_of(seed, level));
      const auto questions = quiz.questions();
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const Quiz right = quiz.check(i, answer_of(*questions[i]));
        CHECK(right.right());
        CHECK(right.diagnoses().empty());
        for (const auto& mistake : *questions[i]->find("mistakes")) {
          const std::string code(words(mistake, "code"));
          CAPTURE(code);
          const Quiz wrong = quiz.check(i, answer_of(mistake));
          REQUIRE_MESSAGE(!wrong.right(), quiz.text());
          CHECK(wrong.diagnoses().contains(code));
          ++seen[code];
        }
      }
    }
  }
  for (const char* const code : {"query_heads", "hidden_over_heads", "factor_two", "bits_for_bytes", "gb_for_gib",
                                 "weight_bits_on_cache", "active_parameters", "one_layer", "reserve_forgotten"}) {
    CAPTURE(code);
    CHECK(seen[code] >= 5);
  }
}

TEST_CASE("mistakes are what somebody gets who makes them") {
  std::map<std::string, int> held;
  const auto hold = [&](const json::Value& question, std::string_view code, u64 value) {
    for (const auto& mistake : *question.find("mistakes")) {
      if (words(mistake, "code") != code || whole(mistake, "value") != value) continue;
      ++held[std::string(code)];
      return;
    }
  };
  for (u64 seed = 0; seed < 5 * kSeeds; ++seed) {
    const Quiz quiz(quiz_of(seed, 2, R"(,"topics":["bytes_per_token","room"])"));
    const auto questions = quiz.questions();
    const json::Value& token = *questions.at(0);
    const u64 layers = given(token, "layers"), heads = given(token, "kv_heads"), width = given(token, "head_dimension");
    const u64 queries = given(token, "query_heads"), bits = given(token, "kv");
    CHECK(whole(token, "value") == 2 * layers * heads * width * bits / 8);
    hold(token, "query_heads", 2 * layers * queries * width * bits / 8);
    hold(token, "hidden_over_heads", 2 * layers * heads * (given(token, "hidden_size") / queries) * bits / 8);
    hold(token, "factor_two", layers * heads * width * bits / 8);
    hold(token, "bits_for_bytes", 2 * layers * heads * width * bits);
    hold(token, "one_layer", 2 * heads * width * bits / 8);
    hold(token, "weight_bits_on_cache", 2 * layers * heads * width * given(token, "weights") / 8);

    const json::Value& room = *questions.at(1);
    const Asked plan(request_text(*room.find("request")));
    const u64 memory = given(room, "gpus") * plan.whole("gpu.memory_bytes");
    const u64 weights = given(room, "parameters") * given(room, "weights") / 8;
    CHECK(whole(room, "value") == memory / 10 * 9 - weights);
    hold(room, "reserve_forgotten", memory - weights);
    hold(room, "active_parameters", memory / 10 * 9 - given(room, "active_parameters") * given(room, "weights") / 8);
  }
  for (const char* const code : {"query_heads", "hidden_over_heads", "factor_two", "bits_for_bytes", "one_layer",
                                 "weight_bits_on_cache", "reserve_forgotten", "active_parameters"}) {
    CAPTURE(code);
    CHECK(held[code] >= 10);
  }
}

TEST_CASE("answers are read with their units") {
  // The first question of which 131,072 bytes, 128 KiB, is the answer.
  std::optional<Quiz> found;
  for (u64 seed = 0; seed < 200 && !found; ++seed) {
    Quiz quiz(quiz_of(seed, 1, R"(,"count":1)"));
    if (whole(*quiz.questions().at(0), "value") == 131'072) found.emplace(std::move(quiz));
  }
  REQUIRE(found);
  const struct {
    const char* value;
    const char* unit;
    const char* verdict;  ///< a diagnosis where it is wrong
  } kRows[] = {
      {"131072", "", "right"},
      {"131072", "bytes", "right"},
      {"131072.0", "B", "right"},
      {"1.31072e5", "b", "right"},
      {"128", "KiB", "right"},
      {"128", "kib", "right"},
      {"128", "KIB", "right"},
      {"0.125", "MiB", "right"},
      {"131", "kB", "right"},
      {"131.072", "KB", "right"},
      {"0.131072", "mb", "right"},
      {"0.000131072", "GB", "right"},
      {"1048576", "bits", "right"},
      {"1.048576", "Mbit", "right"},
      {"1.048576", "Mb", "right"},
      {"128", "KiByte", "right"},
      {"128", "Kib", "right"},
      {"131.072", "kbyte", "right"},
      {"131.072", "kilobytes", "refused"},
      {"131.072", "KBytes", "right"},
      {"1048.576", "kbits", "right"},
      {"1048.576", "kbit", "right"},
      {"1", "k", "refused"},
      {"7", "Mbit", ""},
      {"128", "kB", "gb_for_gib"},
      {"128", "KB", "gb_for_gib"},
      {"131.072", "KiB", "gb_for_gib"},
      {"0.125", "MB", "gb_for_gib"},
      {"128", "", "unit_missing"},
      {"131.072", "", "unit_missing"},
      {"1048576", "", "bits_for_bytes"},
      {"1", "MiB", "bits_for_bytes"},
      {"131072", "bits", ""},
      {"131.072", "Kb", "bits_for_bytes"},
      {"64", "KiB", "factor_two"},
      {"0", "", ""},
      {"9007199254740991", "", ""},
      {"0.000000001", "B", ""},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.value);
    CAPTURE(row.unit);
    Text answer;
    answer << R"("value":)" << row.value << R"(,"unit":")" << row.unit << "\"";
    const Quiz checked = found->check(0, answer);
    const std::string_view verdict = row.verdict;
    if (verdict == "refused") {
      CHECK(checked.error("field") == "check.unit");
      continue;
    }
    CHECK(checked.right() == (verdict == "right"));
    if (verdict.empty()) CHECK(checked.diagnoses().empty());
    if (!verdict.empty() && verdict != "right") CHECK(checked.diagnoses().contains(std::string(verdict)));
  }
}

TEST_CASE("answers that are none are refused by field") {
  const Quiz quiz(quiz_of(1, 2));
  const struct {
    std::size_t index;
    const char* answer;
    const char* code;
    const char* field;
  } kRows[] = {
      {0, R"("value":"much")", "wrong_type", "check.value"},
      {0, R"("value":-1)", "out_of_range", "check.value"},
      {0, R"("value":1e300)", "out_of_range", "check.value"},
      {0, R"("value":9007199254740991,"unit":"TiB")", "out_of_range", "check.value"},
      {0, R"("value":12345678901.5,"unit":"TiB")", "out_of_range", "check.value"},
      {0, R"("value":NaN)", "out_of_range", "check.value"},
      {0, R"("unit":"kB")", "missing", "check.value"},
      {0, R"("value":1,"unit":"elephants")", "unknown_id", "check.unit"},
      {0, R"("value":1,"unit":"KiK")", "unknown_id", "check.unit"},
      {0, R"("value":1,"unit":7)", "wrong_type", "check.unit"},
      {3, R"("value":1,"unit":"kB")", "unknown_id", "check.unit"},
      {4, R"("value":1)", "unknown_id", "check.choice"},
      {4, R"("choice":"both")", "unknown_id", "check.choice"},
      {99, R"("value":1)", "out_of_range", "check.question"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.answer);
    const Quiz checked = quiz.check(row.index, row.answer);
    CHECK_MESSAGE(checked.error("code") == row.code, checked.text());
    CHECK(checked.error("field") == row.field);
  }
  for (const char* const text :
       {"", "[]", "7", R"({"seed":-1})", R"({"count":0})", R"({"count":101})", R"({"level":4})", R"({"topics":"room"})",
        R"({"topics":["rooms"]})", R"({"topics":[7]})", R"({"interview":"yes"})", R"({"check":7})"}) {
    CAPTURE(text);
    CHECK(Quiz(text).error("code") != "");
  }
}

TEST_CASE("a seed names a quiz, and a topic its questions") {
  CHECK(Quiz(quiz_of(5, 2)).text() == Quiz(quiz_of(5, 2)).text());
  CHECK(Quiz(quiz_of(5, 2)).text() != Quiz(quiz_of(6, 2)).text());
  for (u64 level = 1; level <= 3; ++level) {
    const Quiz quiz(quiz_of(3, level, R"(,"topics":["shape","lever"],"count":12)"));
    const auto questions = quiz.questions();
    REQUIRE(questions.size() == 12);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      CHECK(words(*questions[i], "kind") == (i % 2 == 0 ? "shape" : "lever"));
    }
  }
}

TEST_CASE("an interview is a chain over one deployment, and rough answers count") {
  for (u64 seed = 0; seed < kSeeds; ++seed) {
    const Quiz quiz(quiz_of(seed, 2, R"(,"interview":true)"));
    const auto links = quiz.questions();
    REQUIRE(links.size() == 6);
    const Asked plan(request_text(*links[0]->find("request")));
    const char* const figures[] = {"weight_bytes", "kv_memory_bytes",       "kv_bytes_per_token",
                                   nullptr,        "kv_bytes_per_sequence", "sequences"};
    for (std::size_t i = 0; i < links.size(); ++i) {
      CHECK(request_text(*links[i]->find("request")) == request_text(*links[0]->find("request")));
      if (figures[i] == nullptr) {
        CHECK(quiz.check(i, R"("choice":"context")").right());
        CHECK(!quiz.check(i, R"("choice":"batch")").right());
        continue;
      }
      const u64 value = whole(*links[i], "value");
      CHECK(value == plan.whole(figures[i]));
      const auto right = [&](u64 answer) {
        Text text;
        text << R"("value":)" << answer;
        return quiz.check(i, text).right();
      };
      CHECK(right(value));
      CHECK(right(value + value / 10));
      CHECK(right(value - value / 10));
      CHECK(!right(value + value / 8 + 2));
      CHECK(!right(value > value / 8 + 2 ? value - value / 8 - 2 : 0));
      // Mistakes that lie near each other are told apart all the same.
      for (const auto& mistake : *links[i]->find("mistakes")) {
        const Quiz wrong = quiz.check(i, answer_of(mistake));
        if (wrong.right()) continue;
        const json::Value& first = *wrong.root().find("diagnoses")->begin();
        const u64 made = whole(mistake, "value");
        bool exact = false;
        for (const auto& other : *links[i]->find("mistakes")) {
          const u64 value_of_other = whole(other, "value");
          const u64 apart = value_of_other > made ? value_of_other - made : made - value_of_other;
          exact = exact || (words(other, "code") == first.text && apart <= value_of_other / 50);
        }
        CHECK((exact || first.text == "gb_for_gib" || first.text == "unit_missing" || first.text == "bits_for_bytes"));
      }
    }
  }
}

TEST_CASE("tokens may be answered in k, which is 1024") {
  const Quiz quiz(R"({"seed":3,"count":1,"level":1,"topics":["longest_context"]})");
  const u64 value = whole(*quiz.questions().at(0), "value");
  Text answer;
  answer << R"("value":)" << decimals(Wide{value} * 1'000'000'000 / 1024, 1'000'000'000) << R"(,"unit":"k")";
  CHECK(quiz.check(0, answer).right());
  answer << R"(,"unit":"tokens")";
  CHECK_FALSE(quiz.check(0, answer).right());
}
