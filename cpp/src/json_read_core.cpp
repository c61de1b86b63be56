// The core kernel's reader of JSON: what pages write with JSON.stringify, of which a request needs objects, plain text
// and plain numbers. It reads nothing differently from json_read.cpp, which takes all the rest.
#include "kvcap/json.hpp"

namespace kvcap::json {
namespace {

constexpr u32 kMaxNodes = 64;
constexpr u32 kMaxDepth = 4;
/// Digits before and after the point; see kMaxFigure.
constexpr std::ptrdiff_t kMaxDigits = 12;
constexpr std::ptrdiff_t kMaxDecimals = 9;

}  // namespace

/// Reads from left to right and links nodes.
class Builder {
 public:
  Builder(Value* nodes, std::string_view text) noexcept
      : nodes_(nodes), at_(text.data()), end_(text.data() + text.size()) {}

  /// A value into the next node; nothing when the text is for the full kernel.
  Value* value(u32 depth) noexcept {
    if (used_ == kMaxNodes || depth == kMaxDepth) return nullptr;
    Value* const out = &nodes_[used_++];
    if (take('{')) return object(*out, depth) ? out : nullptr;
    if (next() == '"') {
      out->kind = Kind::string;
      return string(out->text) ? out : nullptr;
    }
    out->kind = Kind::number;
    return number(out->text) ? out : nullptr;
  }
  [[nodiscard]] bool done() const noexcept { return at_ == end_; }

 private:
  /// NUL at the end, which no reading goes past.
  [[nodiscard]] char next() const noexcept { return done() ? '\0' : *at_; }

  bool take(char c) noexcept {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  bool object(Value& out, u32 depth) noexcept {
    out.kind = Kind::object;
    const Value** link = &out.first_;
    if (take('}')) return true;
    do {
      std::string_view key;
      if (!string(key) || !take(':')) return false;
      Value* const member = value(depth + 1);
      if (member == nullptr) return false;
      member->key = key;
      *link = member;
      link = &member->next_;
      ++out.count_;
    } while (take(','));
    return take('}');
  }

  bool string(std::string_view& out) noexcept {
    if (!take('"')) return false;
    const char* const start = at_;
    for (char c = next(); c != '"'; c = next()) {
      // Escapes, what must be one, and the end.
      if (c == '\\' || static_cast<unsigned char>(c) < 0x20) return false;
      ++at_;
    }
    out = {start, at_++};
    return true;
  }

  bool number(std::string_view& out) noexcept {
    const char* const start = at_;
    if (!digits(kMaxDigits) || (*start == '0' && at_ - start != 1)) return false;
    if (take('.') && !digits(kMaxDecimals)) return false;
    out = {start, at_};
    return true;
  }

  /// At least one digit and at most `most`.
  bool digits(std::ptrdiff_t most) noexcept {
    const char* const start = at_;
    while (next() >= '0' && next() <= '9') ++at_;
    return at_ != start && at_ - start <= most;
  }

  Value* nodes_;
  const char* at_;
  const char* end_;
  u32 used_ = 0;
};

Result<Document> Document::parse(std::string_view text, std::string_view field, u64) {
  Document document;
  document.pages_.push_back(std::make_unique<Value[]>(kMaxNodes));
  Builder builder(document.pages_.back().get(), text);
  document.root_ = builder.value(0);
  if (document.root_ == nullptr || !builder.done()) return fail(ErrorCode::unsupported, field, "");
  return document;
}

std::string describe(const Value&) { return {}; }

namespace {

/// A number × 10^decimals; one that has more of them or would not fit is for the full kernel.
std::optional<u64> scaled(const Value& value, int decimals) noexcept {
  if (!value.is(Kind::number)) return std::nullopt;
  u64 number = 0;
  bool fraction = false;
  for (const char c : value.text) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    if (fraction && decimals-- == 0) return std::nullopt;
    number = number * 10 + static_cast<u64>(c - '0');
  }
  if (decimals > 0 && number >= 1'000'000'000) return std::nullopt;
  for (; decimals > 0; --decimals) number *= 10;
  return number;
}

}  // namespace

Result<u64> to_whole(const Value& value, std::string_view field, u64 min, u64 max) {
  const auto number = scaled(value, 0);
  if (!number || *number < min || *number > max) return fail(ErrorCode::unsupported, field, "");
  return *number;
}

Result<Fraction> to_fraction(const Value& value, std::string_view field, Fraction min, Fraction max) {
  const auto number = scaled(value, 9);
  if (!number || *number < min.billionths || *number > max.billionths) return fail(ErrorCode::unsupported, field, "");
  return Fraction{*number};
}

}  // namespace kvcap::json
