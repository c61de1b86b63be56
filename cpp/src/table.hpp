// Tables compiled in as text by cpp/data/generate.mjs, which has checked them. They stand column after column, one cell
// a line, and leave out what repeats or follows from another cell: that compresses to two thirds of rows of plain text.
#pragma once

#include <algorithm>
#include <string_view>

#include "kvcap/units.hpp"

namespace kvcap {

/// Rows of a table of that many columns.
[[nodiscard]] constexpr u32 row_count(std::string_view table, u32 columns) noexcept {
  return static_cast<u32>(std::count(table.begin(), table.end(), '\n')) / columns;
}

/// Goes through a table row by row.
class TableReader {
 public:
  static constexpr u32 kMaxColumns = 16;

  /// An empty cell of the first `repeating` columns stands for the one above it.
  TableReader(std::string_view table, u32 columns, u32 repeating) noexcept : columns_(columns), repeating_(repeating) {
    const u32 rows = row_count(table, columns);
    const char* at = table.data();
    for (u32 column = 0; column < columns; ++column) {
      next_[column] = at;
      for (u32 row = 0; row < rows; ++row) at = end_of(at) + 1;
    }
  }

  void next_row() noexcept {
    for (u32 column = 0; column < columns_; ++column) {
      const char* const start = next_[column];
      const char* const end = end_of(start);
      if (start != end || column >= repeating_) cells_[column] = {start, end};
      next_[column] = end + 1;
    }
  }
  [[nodiscard]] std::string_view text(u32 column) const noexcept { return cells_[column]; }
  /// 0 of an empty cell.
  [[nodiscard]] u64 whole(u32 column) const noexcept {
    u64 value = 0;
    for (const char digit : cells_[column]) value = value * 10 + static_cast<u64>(digit - '0');
    return value;
  }
  [[nodiscard]] u32 count(u32 column) const noexcept { return static_cast<u32>(whole(column)); }

 private:
  static const char* end_of(const char* cell) noexcept {
    while (*cell != '\n') ++cell;
    return cell;
  }

  u32 columns_;
  u32 repeating_;
  const char* next_[kMaxColumns];
  std::string_view cells_[kMaxColumns];
};

/// Keeps texts that are put together from cells.
class TextPool {
 public:
  explicit TextPool(char* room) noexcept : at_(room), start_(room) {}
  TextPool& put(std::string_view text) noexcept {
    for (const char c : text) *at_++ = c;
    return *this;
  }
  /// A name as ids have it: dashes for spaces, and small letters.
  TextPool& put_dashed(std::string_view name, bool lower) noexcept {
    for (const char c : name) *at_++ = c == ' ' ? '-' : lower && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return *this;
  }
  /// What was put since the last call.
  std::string_view take() noexcept {
    const char* const from = start_;
    start_ = at_;
    return {from, at_};
  }
  /// The id of a row: its cell, or where that is empty, its name.
  std::string_view id(std::string_view cell, std::string_view name) noexcept {
    return cell.empty() ? put_dashed(name, true).take() : cell;
  }

 private:
  char* at_;
  const char* start_;
};

}  // namespace kvcap
