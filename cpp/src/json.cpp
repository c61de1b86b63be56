#include "kvcap/json.hpp"

#include <algorithm>

namespace kvcap::json {

const Value* Value::find(std::string_view name) const noexcept {
  if (kind != Kind::object) return nullptr;
  const Value* found = nullptr;
  for (const Value& member : *this) {
    if (member.key == name) found = &member;
  }
  return found;
}

const Value* Value::find(Label name) const noexcept { return find(std::string_view(name)); }

const Value* Value::get(Label name) const noexcept { return get(std::string_view(name)); }

const Value* Value::get(std::string_view name) const noexcept {
  const Value* const found = find(name);
  return found == nullptr || found->is(Kind::null) ? nullptr : found;
}

void Writer::grow(std::size_t least) {
  const std::size_t size = static_cast<std::size_t>(at_ - text_.get());
  // An answer fits into the first room.
  const std::size_t room = 2 * size + least + 8192;
  auto larger = std::make_unique_for_overwrite<char[]>(room + kMarks);
  std::copy(text_.get(), at_, larger.get());
  text_ = std::move(larger);
  at_ = text_.get() + size;
  end_ = text_.get() + room;
}

void Writer::put(std::string_view text) {
  if (end_ - at_ < static_cast<std::ptrdiff_t>(text.size())) grow(text.size());
  // Most are too short to be worth a call.
  char* at = at_;
  for (const char c : text) *at++ = c;
  at_ = at;
}

void Writer::separate() {
  if (at_ >= end_) grow(1);
  if (comma_) *at_++ = ',';
  comma_ = true;
}

Writer& Writer::open(char bracket) {
  separate();
  *at_++ = bracket;
  comma_ = false;
  return *this;
}

Writer& Writer::close(char bracket) {
  if (at_ >= end_) grow(1);
  *at_++ = bracket;
  comma_ = true;
  return *this;
}

Writer& Writer::colon() {
  *at_++ = ':';
  comma_ = false;
  return *this;
}

Writer& Writer::key(const std::string_view& name) { return text(name).colon(); }

Writer& Writer::key(Label name) { return text(name).colon(); }

Writer& Writer::text(Label value) { return begin_text().piece(value).end_text(); }

Writer& Writer::text(const std::string_view& value) {
  begin_text();
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (at_ >= end_) grow(1);
    if (byte < 0x20) {
      constexpr Label kHex = "0123456789abcdef";
      put("\\u00");
      *at_++ = kHex[byte >> 4];
      *at_++ = kHex[byte & 15];
      continue;
    }
    if (byte == '"' || byte == '\\') *at_++ = '\\';
    *at_++ = c;
  }
  return end_text();
}

Writer& Writer::number(Wide value) {
  char room[kDecimalRoom];
  separate();
  put(write_decimals(room, value, 1));
  return *this;
}

Writer& Writer::integer(std::int64_t value) {
  if (value >= 0) return number(static_cast<u64>(value));
  separate();
  *at_++ = '-';
  comma_ = false;
  return number(0 - static_cast<u64>(value));
}

Writer& Writer::decimal(Wide millionths) {
  separate();
  return decimal_piece(millionths);
}

Writer& Writer::boolean(bool value) {
  separate();
  return piece(value ? "true" : "false");
}

Writer& Writer::null() {
  separate();
  return piece("null");
}

Writer& Writer::begin_text() {
  separate();
  *at_++ = '"';
  return *this;
}

Writer& Writer::piece(Label plain) {
  // To copy until the end is faster than to measure first.
  for (;;) {
    char* at = at_;
    char* const end = end_;
    for (; at < end && *plain != 0; ++plain) *at++ = *plain;
    at_ = at;
    if (*plain == 0) return *this;
    grow(1);
  }
}

Writer& Writer::decimal_piece(Wide millionths) {
  char room[kDecimalRoom];
  put(write_decimals(room, millionths, 1'000'000));
  return *this;
}

Writer& Writer::end_text() {
  *at_++ = '"';
  return *this;
}

}  // namespace kvcap::json
