#include <algorithm>
#include <cstring>

#include "kvcap/json.hpp"

#define RAPIDJSON_ASSERT(condition) static_cast<void>(0)
#include <rapidjson/reader.h>

namespace kvcap::json {
namespace {

constexpr u32 kPageNodes = 64;
constexpr u32 kMaxNodes = 1u << 20;
constexpr u32 kMaxDepth = 64;

}  // namespace

/// Takes the parser's events and links nodes. Numbers come as text, never by the events for numbers that it inherits.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  explicit Builder(Document& document) : document_(document) {}

  bool Null() { return add(Kind::null) != nullptr; }
  bool Bool(bool truth) {
    Value* const value = add(Kind::boolean);
    if (value != nullptr) value->truth = truth;
    return value != nullptr;
  }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) { return add_text(Kind::number, text, length); }
  bool String(const char* text, rapidjson::SizeType length, bool) { return add_text(Kind::string, text, length); }
  bool StartObject() { return open(Kind::object); }
  bool StartArray() { return open(Kind::array); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_ = {text, length};
    return true;
  }

  [[nodiscard]] bool too_deep() const noexcept { return too_deep_; }
  [[nodiscard]] bool too_many() const noexcept { return nodes_ == kMaxNodes; }

 private:
  struct Open {
    Value* node;
    Value* last;
  };

  Value* add(Kind kind) {
    if (nodes_ == kMaxNodes) return nullptr;
    if (nodes_ % kPageNodes == 0) document_.pages_.push_back(std::make_unique<Value[]>(kPageNodes));
    Value* const value = &document_.pages_.back()[nodes_ % kPageNodes];
    ++nodes_;
    value->kind = kind;
    value->key = key_;
    key_ = {};
    if (depth_ == 0) {
      document_.root_ = value;
    } else {
      Open& parent = stack_[depth_ - 1];
      (parent.last == nullptr ? parent.node->first_ : parent.last->next_) = value;
      parent.last = value;
      ++parent.node->count_;
    }
    return value;
  }

  bool add_text(Kind kind, const char* text, rapidjson::SizeType length) {
    Value* const value = add(kind);
    if (value != nullptr) value->text = {text, length};
    return value != nullptr;
  }

  bool open(Kind kind) {
    if (depth_ == kMaxDepth) {
      too_deep_ = true;
      return false;
    }
    Value* const value = add(kind);
    if (value == nullptr) return false;
    stack_[depth_++] = {value, nullptr};
    return true;
  }

  bool close() {
    --depth_;
    return true;
  }

  Document& document_;
  std::string_view key_;
  Open stack_[kMaxDepth] = {};
  u32 depth_ = 0;
  u32 nodes_ = 0;
  bool too_deep_ = false;
};

Result<Document> Document::parse(std::string_view text, std::string_view field, u64 max_bytes) {
  if (text.size() > max_bytes) {
    return fail(ErrorCode::too_large, field,
                Text() << "has " << text.size() << " bytes; at most " << max_bytes << " are read");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Document document;
  document.text_ = std::make_unique<char[]>(text.size() + 1);
  if (!text.empty()) std::memcpy(document.text_.get(), text.data(), text.size());

  constexpr unsigned kFlags = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseCommentsFlag |
                              rapidjson::kParseTrailingCommasFlag | rapidjson::kParseNanAndInfFlag;
  Builder builder(document);
  rapidjson::InsituStringStream stream(document.text_.get());
  rapidjson::Reader reader;
  const auto outcome = reader.Parse<kFlags>(stream, builder);
  // A NUL ends the reader's stream: what stands behind one was not read.
  const bool whole = outcome.IsError() || stream.Tell() >= text.size();
  if (outcome.IsError() || !whole || document.root_ == nullptr) {
    if (builder.too_deep()) return fail(ErrorCode::malformed, field, "is nested more than 64 levels deep");
    if (builder.too_many()) return fail(ErrorCode::too_large, field, "has more than 1048576 values");
    const std::size_t at = std::min(outcome.IsError() ? outcome.Offset() : stream.Tell(), text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = static_cast<u64>(std::ranges::count(before, '\n')) + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
    return fail(ErrorCode::malformed, field,
                Text() << "is not JSON: line " << line << ", column " << column
                       << (at == text.size() ? " (the text ends too early)" : ""));
  }
  return document;
}

std::string describe(const Value& value) {
  constexpr std::size_t kLongest = 40;
  const auto cut = [](std::string_view text) {
    if (text.size() <= kLongest) return std::string(text);
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
  };
  switch (value.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return value.truth ? "true" : "false";
    case Kind::number: return "the number " + cut(value.text);
    case Kind::string: return "the text \"" + cut(value.text) + "\"";
    case Kind::array: return "a list";
    case Kind::object: break;
  }
  return "an object";
}

namespace {

/// A number as written: digits × 10^exponent.
struct Decimal {
  bool negative = false;
  bool finite = true;
  bool fits = true;  ///< digits fit 2^64 × 10 and the exponent is sane
  Wide significand = 0;
  int exponent = 0;
};

Decimal read_decimal_text(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  if (at < text.size() && text[at] == '-') {
    number.negative = true;
    ++at;
  }
  if (at < text.size() && (text[at] == 'N' || text[at] == 'I')) {
    number.finite = false;
    return number;
  }
  constexpr Wide kMost = Wide{1} << 120;
  bool fraction = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<unsigned>(text[at] - '0');
    if (number.significand >= kMost) {
      // Past 36 digits a fraction's tail no longer matters; a whole number is
      // out of any range.
      if (!fraction) number.fits = false;
      continue;
    }
    number.significand = number.significand * 10 + digit;
    if (fraction) --number.exponent;
  }
  if (at < text.size()) {
    ++at;
    bool down = false;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) down = text[at++] == '-';
    int exponent = 0;
    for (; at < text.size(); ++at) exponent = std::min(exponent * 10 + (text[at] - '0'), 100000);
    number.exponent += down ? -exponent : exponent;
  }
  if (number.significand == 0) number.exponent = 0;
  for (; number.exponent < 0 && number.significand % 10 == 0 && number.significand != 0; ++number.exponent) {
    number.significand /= 10;
  }
  return number;
}

/// significand × 10^power, or nothing when it passes 2^120.
std::optional<Wide> scale_up(Wide significand, int power) {
  constexpr Wide kMost = Wide{1} << 120;
  for (; power > 0 && significand != 0; --power) {
    if (significand >= kMost / 10) return std::nullopt;
    significand *= 10;
  }
  return significand;
}

}  // namespace

Result<u64> to_whole(const Value& value, std::string_view field, u64 min, u64 max) {
  const auto refuse = [&](ErrorCode code) {
    return fail(code, field,
                Text() << describe(value) << " is not accepted: a whole number from " << min << " to " << max << " is");
  };
  if (!value.is(Kind::number)) return refuse(ErrorCode::wrong_type);
  const Decimal number = read_decimal_text(value.text);
  if (!number.finite) return refuse(ErrorCode::not_whole);
  if (number.fits && number.exponent < 0) return refuse(ErrorCode::not_whole);
  const auto whole = number.fits ? scale_up(number.significand, number.exponent) : std::nullopt;
  if (!whole || (number.negative && *whole != 0) || *whole < min || *whole > max) {
    return refuse(ErrorCode::out_of_range);
  }
  return static_cast<u64>(*whole);
}

Result<Fraction> to_fraction(const Value& value, std::string_view field, Fraction min, Fraction max) {
  const auto refuse = [&](ErrorCode code) {
    return fail(code, field,
                Text() << describe(value) << " is not accepted: a number from "
                       << decimals(min.billionths, Fraction::kOne) << " to " << decimals(max.billionths, Fraction::kOne)
                       << " is");
  };
  if (!value.is(Kind::number)) return refuse(ErrorCode::wrong_type);
  const Decimal number = read_decimal_text(value.text);
  if (!number.finite || !number.fits) return refuse(ErrorCode::out_of_range);
  Wide billionths = 0;
  if (const int power = number.exponent + 9; power >= 0) {
    const auto scaled = scale_up(number.significand, power);
    if (!scaled) return refuse(ErrorCode::out_of_range);
    billionths = *scaled;
  } else {
    billionths = number.significand;
    for (int i = power; i < 0 && billionths != 0; ++i) billionths /= 10;
  }
  if ((number.negative && billionths != 0) || billionths < min.billionths || billionths > max.billionths) {
    return refuse(ErrorCode::out_of_range);
  }
  return Fraction{static_cast<u64>(billionths)};
}

}  // namespace kvcap::json
