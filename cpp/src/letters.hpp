// Letter case of ASCII, whatever the locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace kvcap {

[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether two texts differ in nothing but letter case.
[[nodiscard]] inline bool same_letters(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace kvcap
