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
  const std::size_t room = 2 * size + least + 4096;
  auto larger = std::make_unique_for_overwrite<char[]>(room);
  std::copy(text_.get(), at_, larger.get());
  text_ = std::move(larger);
  at_ = text_.get() + size;
  end_ = text_.get() + room;
}

void Writer::put(char c) {
  if (at_ == end_) grow(1);
  *at_++ = c;
}

void Writer::put(const std::string_view& text) {
  if (static_cast<std::size_t>(end_ - at_) < text.size()) grow(text.size());
  at_ = std::copy(text.begin(), text.end(), at_);
}

void Writer::put(Label plain) {
  // Most are short: to copy until the end is faster than to measure first.
  char* at = at_;
  for (; *plain != 0; ++plain) {
    if (at == end_) {
      at_ = at;
      grow(1);
      at = at_;
    }
    *at++ = *plain;
  }
  at_ = at;
}

void Writer::separate() {
  if (comma_) put(',');
  comma_ = true;
}

Writer& Writer::open(char bracket) {
  separate();
  put(bracket);
  comma_ = false;
  return *this;
}

Writer& Writer::close(char bracket) {
  put(bracket);
  comma_ = true;
  return *this;
}

Writer& Writer::key(const std::string_view& name) {
  text(name);
  put(':');
  comma_ = false;
  return *this;
}

Writer& Writer::key(Label name) {
  begin_text().piece(name).put("\":");
  comma_ = false;
  return *this;
}

Writer& Writer::text(Label value) { return text(std::string_view(value)); }

Writer& Writer::text(const std::string_view& value) {
  begin_text();
  // Stretches of plain characters are copied at once.
  const char* plain = value.data();
  const char* const end = plain + value.size();
  for (const char* at = plain; at != end; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    put(std::string_view(plain, at));
    plain = at;
    put('\\');
    if (byte < 0x20) {
      constexpr Label kHex = "0123456789abcdef";
      put("u00");
      put(kHex[byte >> 4]);
      put(kHex[byte & 15]);
      ++plain;
    }
  }
  put(std::string_view(plain, end));
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
  put('-');
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
  return piece("\"");
}

Writer& Writer::piece(Label plain) {
  put(plain);
  return *this;
}

Writer& Writer::decimal_piece(Wide millionths) {
  char room[kDecimalRoom];
  put(write_decimals(room, millionths, 1'000'000));
  return *this;
}

Writer& Writer::end_text() { return piece("\""); }

}  // namespace kvcap::json
