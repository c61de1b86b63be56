// Errors are values: which field, what was wrong, what is accepted.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "kvcap/units.hpp"

namespace kvcap {

enum class ErrorCode : unsigned char {
  missing,        ///< a field that the answer needs is not there
  wrong_type,     ///< text for a number, a list for an object, …
  not_whole,      ///< a fraction where a count is meant
  out_of_range,   ///< below or above what is accepted
  unknown_id,     ///< no model, GPU, format, engine or layer kind of that name
  conflict,       ///< two fields contradict each other
  not_divisible,  ///< heads or layers that cannot be split over that many GPUs
  unsupported,    ///< understood, but not something this answer can size
  malformed,      ///< text or bytes that do not parse
  too_large,      ///< more input than is read
  no_cache,       ///< an encoder: it keeps no KV cache
};

/// The code as it stands in an answer, e.g. "out_of_range".
[[nodiscard]] Label code_name(ErrorCode code) noexcept;

#ifdef KVCAP_CORE_KERNEL
/// The core kernel has no words: an empty message sends the page to the full one. The page has words of its own for a
/// field that is wrong by itself, so that its name is told.
struct Error {
  static constexpr ErrorCode code = ErrorCode::unsupported;
  static constexpr std::string_view message = "";
  std::string_view field = "request";
  constexpr Error(ErrorCode why, std::string_view where, std::string_view) noexcept {
    if (why == ErrorCode::out_of_range || why == ErrorCode::unknown_id) field = where;
  }
};
#else
/// Its members are defined out of line: every check in the core carries one, and their code would stand at each.
struct Error {
  ErrorCode code = ErrorCode::malformed;
  std::string field;    ///< path in the request, e.g. "model.layers[2].kv_heads"
  std::string message;  ///< one English sentence

  Error(ErrorCode why, std::string_view where, std::string_view what);
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error();
};
#endif

template <class T>
using Result = std::expected<T, Error>;

#ifdef KVCAP_CORE_KERNEL
/// Takes the pieces of a message that nobody reads.
struct Text {
  template <class Piece>
  constexpr Text& operator<<(const Piece&) noexcept {
    return *this;
  }
  constexpr operator std::string_view() const noexcept { return {}; }  // NOLINT(google-explicit-constructor)
};

[[nodiscard]] constexpr std::unexpected<Error> fail(ErrorCode code, std::string_view field, std::string_view message) {
  return std::unexpected(Error{code, field, message});
}
#else
/// Puts a text together from pieces.
class Text {
 public:
  Text& operator<<(Label piece);
  Text& operator<<(std::string_view piece);
  Text& operator<<(Wide number);
  operator std::string_view() const noexcept { return text_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::string take() noexcept { return std::move(text_); }

 private:
  std::string text_;
};

[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, std::string_view field, std::string_view message);
#endif

/// Narrows a product to a byte count; `out_of_range` when it is past 2^53 - 1.
[[nodiscard]] Result<Bytes> to_bytes(Wide value, std::string_view field);

/// Room for any number's decimal text.
inline constexpr std::size_t kDecimalRoom = 80;
/// Writes scaled / one in decimals without trailing zeros, `one` being a power of ten, to the end of `room`; gives the
/// text's place in it.
[[nodiscard]] std::string_view write_decimals(char (&room)[kDecimalRoom], Wide scaled, Wide one) noexcept;
/// Decimal digits of an integer.
[[nodiscard]] std::string digits(Wide value);
/// scaled / one in decimals without trailing zeros; `one` is a power of ten.
[[nodiscard]] std::string decimals(Wide scaled, Wide one);

}  // namespace kvcap
