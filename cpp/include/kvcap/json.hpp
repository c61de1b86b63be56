// JSON in and out. The reader takes what people paste: a BOM, CRLF, comments, trailing commas, bare NaN and Infinity.
// Numbers stay text until a field asks for an integer or a fraction, so that none is rounded on the way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvcap/error.hpp"

namespace kvcap::json {

enum class Kind : unsigned char { null, boolean, number, string, array, object };

/// A node of a parsed document. Nodes are owned by their Document; absent members read as nullptr.
class Value {
 public:
  Kind kind = Kind::null;
  bool truth = false;
  std::string_view key;   ///< name within the parent object
  std::string_view text;  ///< of a string (decoded) or a number (as written)

  [[nodiscard]] bool is(Kind k) const noexcept { return kind == k; }
  /// Member of an object by name; of repeated names the last, as JavaScript does. nullptr when absent or not an object.
  [[nodiscard]] const Value* find(std::string_view name) const noexcept;
  [[nodiscard]] const Value* find(Label name) const noexcept;
  /// As `find`, but a null member counts as absent.
  [[nodiscard]] const Value* get(std::string_view name) const noexcept;
  [[nodiscard]] const Value* get(Label name) const noexcept;
  /// Elements of an array or members of an object, in order.
  struct Iterator {
    const Value* at;
    const Value& operator*() const noexcept { return *at; }
    const Value* operator->() const noexcept { return at; }
    Iterator& operator++() noexcept {
      at = at->next_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  [[nodiscard]] Iterator begin() const noexcept { return {first_}; }
  [[nodiscard]] Iterator end() const noexcept { return {nullptr}; }
  [[nodiscard]] u32 count() const noexcept { return count_; }

 private:
  friend class Builder;
  const Value* first_ = nullptr;
  const Value* next_ = nullptr;
  u32 count_ = 0;
};

/// A parsed text and its nodes.
class Document {
 public:
  /// `malformed` (with line and column) for text that is not JSON or is nested deeper than 64, `too_large` past
  /// `max_bytes` of text or 2^20 nodes. `field` names the text in the error.
  [[nodiscard]] static Result<Document> parse(std::string_view text, std::string_view field, u64 max_bytes);
  [[nodiscard]] const Value& root() const noexcept { return *root_; }

 private:
  friend class Builder;
  std::unique_ptr<char[]> text_;
  std::vector<std::unique_ptr<Value[]>> pages_;
  const Value* root_ = nullptr;
};

/// A number's value as a whole number. "8192", "8192.0" and "8.192e3" are the same; errors: `wrong_type`, `not_whole`,
/// `out_of_range` (the message states min and max).
[[nodiscard]] Result<u64> to_whole(const Value& value, std::string_view field, u64 min, u64 max);
/// A number in billionths (digits past the ninth decimal must be zero or are rounded down).
[[nodiscard]] Result<Fraction> to_fraction(const Value& value, std::string_view field, Fraction min, Fraction max);

/// What a value is, for messages: `text "abc"`, `the number -1`, `a list`, cut to 40 characters.
[[nodiscard]] std::string describe(const Value& value);

/// JSON text that is written. The core kernel's stays in its arena until the next call, so there it is only pointed at.
using Written = std::conditional_t<kCoreKernel, std::string_view, std::string>;

/// Appends JSON text. Commas and quotes are its own business.
class Writer {
 public:
  Writer& begin_object() { return open('{'); }
  Writer& end_object() { return close('}'); }
  Writer& begin_array() { return open('['); }
  Writer& end_array() { return close(']'); }
  Writer& key(const std::string_view& name);
  /// A name of the contract: most of an answer is these, and nothing in them needs an escape.
  Writer& key(Label name);
  Writer& text(const std::string_view& value);
  /// Plain characters, as of codes and units.
  Writer& text(Label value);
  Writer& number(Wide value);
  /// A number that may be below zero.
  Writer& integer(std::int64_t value);
  /// millionths / 10^6, without trailing zeros.
  Writer& decimal(Wide millionths);
  Writer& boolean(bool value);
  Writer& null();
  /// A text put together from pieces of plain characters.
  Writer& begin_text();
  Writer& piece(Label plain);
  Writer& decimal_piece(Wide millionths);
  Writer& end_text();
  /// What is written; nothing may be written after. In the core kernel it is from then on the arena's.
  [[nodiscard]] Written take() {
    const char* const start = text_.get();
    if constexpr (kCoreKernel) static_cast<void>(text_.release());
    return Written(start, static_cast<std::size_t>(at_ - start));
  }

 private:
  /// Marks around a value (a comma, a quote, a colon, an escape) need not look for room: there is some past `end_`.
  static constexpr std::size_t kMarks = 8;

  void put(std::string_view text);
  void separate();
  Writer& colon();
  Writer& open(char bracket);
  Writer& close(char bracket);
  void grow(std::size_t least);
  std::unique_ptr<char[]> text_;
  char* at_ = nullptr;   ///< the end of what is written
  char* end_ = nullptr;  ///< of what may be filled; kMarks more are there
  bool comma_ = false;
};

}  // namespace kvcap::json
