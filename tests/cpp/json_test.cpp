// What people paste is read; what is not JSON is refused with its place.
#include "kvcap/json.hpp"

#include <doctest/doctest.h>

using namespace kvcap;
using namespace kvcap::json;

namespace {

Result<Document> parse(std::string_view text) { return Document::parse(text, "text", 1 << 20); }

}  // namespace

TEST_CASE("BOM, CRLF, comments, trailing commas, bare numbers that JSON has not") {
  const auto document =
      parse("\xEF\xBB\xBF{\r\n // a comment\r\n \"a\": [1, 2,], /* another */ \"b\": Infinity, \"c\": NaN,}\r\n");
  REQUIRE(document);
  CHECK(document->root().find("a")->count() == 2);
  CHECK_FALSE(to_whole(*document->root().find("b"), "b", 0, 10));
  CHECK(to_whole(*document->root().find("c"), "c", 0, 10).error().code == ErrorCode::not_whole);
}

TEST_CASE("escapes are decoded, and of repeated names the last counts") {
  const auto document = parse(R"({"a":"x","a":"\u00e9\n\"\\\ud83d\ude00","":null})");
  REQUIRE(document);
  CHECK(document->root().find("a")->text == "\xC3\xA9\n\"\\\xF0\x9F\x98\x80");
  CHECK(document->root().find("")->is(Kind::null));
  CHECK(document->root().get("") == nullptr);
  CHECK(document->root().find("b") == nullptr);
}

TEST_CASE("every cut of a text is refused or read, never more") {
  const std::string whole = R"({"model":{"layers":[{"count":32,"kind":"full"}],"x":[true,false,null,-1.5e3,"é"]}})";
  for (std::size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(parse(whole.substr(0, length)));
  CHECK(parse(whole));
}

TEST_CASE("limits of size, depth and number") {
  CHECK(Document::parse("[1,2,3]", "text", 6).error().code == ErrorCode::too_large);
  CHECK(parse(std::string(64, '[') + std::string(64, ']')));
  CHECK(parse(std::string(65, '[') + std::string(65, ']')).error().message.find("64 levels") != std::string::npos);
  std::string many = "[";
  for (int i = 0; i < 1 << 20; ++i) many += "0,";
  many += "0]";
  CHECK(Document::parse(many, "text", 1 << 24).error().code == ErrorCode::too_large);
}

TEST_CASE("fractions are exact") {
  const auto share = [](std::string_view text) {
    const auto document = parse(text);
    REQUIRE(document);
    return to_fraction(document->root(), "share", {0}, {Fraction::kOne});
  };
  CHECK(share("0.9")->billionths == 900'000'000);
  CHECK(share("9e-1")->billionths == 900'000'000);
  CHECK(share("1")->billionths == Fraction::kOne);
  CHECK(share("0.1234567891")->billionths == 123'456'789);
  CHECK(share("1e-400")->billionths == 0);
  CHECK(share("0.3333333333333333333333333333333333333333333333333333")->billionths == 333'333'333);
  CHECK_FALSE(share("1.000000001"));
  CHECK_FALSE(share("-0.1"));
  CHECK_FALSE(share("1e300"));
  CHECK_FALSE(share("\"0.9\""));
}

TEST_CASE("the writer's text can be read back") {
  Writer out;
  out.begin_object()
      .key(std::string_view("a\"b"))
      .text(std::string_view("line\nend\x01\\"))
      .key("n")
      .number(Wide{1} << 100);
  out.key("d")
      .decimal(1'073'741)
      .key("list")
      .begin_array()
      .boolean(true)
      .null()
      .begin_object()
      .end_object()
      .end_array();
  out.end_object();
  const std::string text = out.take();
  const auto document = parse(text);
  REQUIRE_MESSAGE(document, text);
  CHECK(document->root().find("a\"b")->text == "line\nend\x01\\");
  CHECK(document->root().find("n")->text == "1267650600228229401496703205376");
  CHECK(document->root().find("d")->text == "1.073741");
  CHECK(document->root().find("list")->count() == 3);
}

TEST_CASE("messages cut what was typed at a character's edge") {
  const auto document = parse("\"" + std::string(39, 'a') + "\xC3\xA9\xC3\xA9\"");
  REQUIRE(document);
  CHECK(describe(document->root()) == "the text \"" + std::string(39, 'a') + "…\"");
}

TEST_CASE("the last value that is read is the 2^20th, of whatever kind") {
  std::string many = "[";
  for (int i = 0; i < (1 << 20) - 8; ++i) many += "0,";
  CHECK(Document::parse(many + "0,0,\"x\",true,null,[],{}]", "text", 1 << 24));
  for (const char* const last : {"0", "\"x\"", "true", "null", "[]", "{}"}) {
    CAPTURE(last);
    CHECK(Document::parse(many + "0,0,0,0,0,0,0," + last + "]", "text", 1 << 24).error().code == ErrorCode::too_large);
  }
}

TEST_CASE("a value that is none is told from what is accepted") {
  const auto told = [](std::string_view text) {
    const auto document = parse(text);
    REQUIRE(document);
    return describe(document->root());
  };
  CHECK(told("true") == "true");
  CHECK(told("false") == "false");
  CHECK(told("null") == "null");
  CHECK(told("[1]") == "a list");
  CHECK(told("{}") == "an object");
  CHECK(told("-1.50") == "the number -1.50");
  CHECK(told("\"x\"") == "the text \"x\"");
  // No character begins in the first 40 bytes.
  CHECK(told("\"" + std::string(50, '\x80') + "\"") == "the text \"…\"");
}

TEST_CASE("numbers of any length and sign") {
  const auto whole = [](std::string_view text) {
    const auto document = parse(text);
    REQUIRE(document);
    const auto value = to_whole(document->root(), "n", 0, kMaxExact);
    return value ? digits(*value) : std::string(std::string_view(code_name(value.error().code)));
  };
  CHECK(whole("-0") == "0");
  CHECK(whole("-0.0e5") == "0");
  CHECK(whole("-1") == "out_of_range");
  CHECK(whole("1e+3") == "1000");
  CHECK(whole("1000e-3") == "1");
  CHECK(whole("1e-3") == "not_whole");
  CHECK(whole("1e35") == "out_of_range");
  CHECK(whole(std::string(60, '9')) == "out_of_range");
  CHECK(whole("0." + std::string(60, '0')) == "0");
  CHECK(whole("7." + std::string(60, '0')) == "7");
  const auto share = [](std::string_view text) {
    const auto document = parse(text);
    REQUIRE(document);
    const auto value = to_fraction(document->root(), "n", {0}, {Fraction::kOne});
    return value ? digits(value->billionths) : std::string(std::string_view(code_name(value.error().code)));
  };
  CHECK(share("-0.0000000001") == "0");
  CHECK(share("-0.000000001") == "out_of_range");
  CHECK(share(std::string(60, '9')) == "out_of_range");
  CHECK(share("1e35") == "out_of_range");
  CHECK(share("\"0.5\"") == "wrong_type");
}

TEST_CASE("an error is kept through copies and moves") {
  Result<u64> first = fail(ErrorCode::missing, "a", "is not there");
  const Result<u64> second = fail(ErrorCode::conflict, "b", "says another thing");
  first = second;
  CHECK(first.error().field == "b");
  CHECK(second.error().message == "says another thing");
  Result<u64> third = fail(ErrorCode::missing, "c", "is not there");
  third = std::move(first);
  CHECK(third.error().code == ErrorCode::conflict);
  CHECK(third.error().message == "says another thing");
}
