#include "kvcap/error.hpp"

namespace kvcap {

Label code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::missing: return "missing";
    case ErrorCode::wrong_type: return "wrong_type";
    case ErrorCode::not_whole: return "not_whole";
    case ErrorCode::out_of_range: return "out_of_range";
    case ErrorCode::unknown_id: return "unknown_id";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::not_divisible: return "not_divisible";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::malformed: return "malformed";
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::no_cache: return "no_cache";
  }
  return "malformed";
}

Error::Error(ErrorCode why, std::string_view where, std::string_view what) : code(why), field(where), message(what) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Text& Text::operator<<(Label piece) {
  text_ += piece;
  return *this;
}

Text& Text::operator<<(std::string_view piece) {
  text_ += piece;
  return *this;
}

Text& Text::operator<<(Wide number) {
  text_ += digits(number);
  return *this;
}

std::unexpected<Error> fail(ErrorCode code, std::string_view field, std::string_view message) {
  return std::unexpected(Error{code, field, message});
}

Result<Bytes> to_bytes(Wide value, std::string_view field) {
  if (value > kMaxExact) {
    return fail(ErrorCode::out_of_range, field,
                "comes to more than 9007199254740991 bytes (2^53 - 1), the "
                "largest count that is kept exact");
  }
  return Bytes{static_cast<u64>(value)};
}

char* write_digits(char* end, Wide value) noexcept {
  const auto put = [&end](unsigned digit) { *--end = static_cast<char>('0' + digit); };
  // Almost every number has 64 bits, and to divide more is ten times the work.
  u64 low = static_cast<u64>(value);
  for (; value != low; low = static_cast<u64>(value)) {
    put(static_cast<unsigned>(value % 10));
    value /= 10;
  }
  do {
    put(static_cast<unsigned>(low % 10));
    low /= 10;
  } while (low != 0);
  return end;
}

std::string digits(Wide value) {
  char buffer[kMostDigits];
  char* const end = buffer + sizeof buffer;
  return {write_digits(end, value), end};
}

std::string decimals(Wide scaled, Wide one) {
  std::string text = digits(scaled / one);
  if (const Wide part = scaled % one; part != 0) {
    std::string tail = digits(one + part);
    tail.erase(tail.find_last_not_of('0') + 1);
    tail.front() = '.';
    text += tail;
  }
  return text;
}

}  // namespace kvcap
