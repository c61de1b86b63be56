// Tables compiled in as text by cpp/data/generate.mjs: one row a line, fields separated by tabs, zeros left out.
#pragma once

#include <string_view>

#include "kvcap/units.hpp"

namespace kvcap {

/// Takes the fields of a table one after the other. The generator has checked their number and that they are whole
/// numbers where one is taken.
class TableReader {
 public:
  explicit constexpr TableReader(std::string_view rows) noexcept : rest_(rows) {}
  [[nodiscard]] constexpr bool done() const noexcept { return rest_.empty(); }
  constexpr std::string_view text() noexcept {
    const std::size_t end = rest_.find_first_of("\t\n");
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return field;
  }
  constexpr u64 whole() noexcept {
    u64 value = 0;
    for (const char digit : text()) value = value * 10 + static_cast<u64>(digit - '0');
    return value;
  }
  constexpr u32 count() noexcept { return static_cast<u32>(whole()); }

 private:
  std::string_view rest_;
};

}  // namespace kvcap
