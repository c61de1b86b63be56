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
    case ErrorCode::malformed: break;
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::no_cache: return "no_cache";
  }
  return "malformed";
}

#ifndef KVCAP_CORE_KERNEL
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
#endif

Result<Bytes> to_bytes(Wide value, std::string_view field) {
  if (value > kMaxFigure) {
    return fail(kCoreKernel ? ErrorCode::unsupported : ErrorCode::out_of_range, field,
                "comes to more than 9007199254740991 bytes (2^53 - 1), the "
                "largest count that is kept exact");
  }
  return Bytes{static_cast<u64>(value)};
}

namespace {

template <class Number>
std::string_view write_before(char* const end, Number scaled, Number one) noexcept {
  char* at = end;
  // WebAssembly has no division that gives the remainder too, and a division is what takes the time here.
  const auto last_digit = [](Number& number) {
    const Number tenth = number / 10;
    const auto digit = static_cast<char>('0' + static_cast<int>(number - tenth * 10));
    number = tenth;
    return digit;
  };
  Number whole = scaled / one;
  for (Number part = scaled - whole * one; one > 1; one /= 10) {
    const char digit = last_digit(part);
    if (at != end || digit != '0') *--at = digit;
  }
  if (at != end) *--at = '.';
  do {
    *--at = last_digit(whole);
  } while (whole != 0);
  return {at, end};
}

}  // namespace

std::string_view write_decimals(char (&room)[kDecimalRoom], Wide scaled, Wide one) noexcept {
  // Almost every number has 64 bits, and to divide more is ten times the work.
  if (scaled == static_cast<u64>(scaled) && one == static_cast<u64>(one)) {
    return write_before(room + kDecimalRoom, static_cast<u64>(scaled), static_cast<u64>(one));
  }
  return write_before(room + kDecimalRoom, scaled, one);
}

std::string digits(Wide value) { return decimals(value, 1); }

std::string decimals(Wide scaled, Wide one) {
  char room[kDecimalRoom];
  return std::string(write_decimals(room, scaled, one));
}

}  // namespace kvcap
