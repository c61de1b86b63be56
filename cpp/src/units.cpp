#include "kvcap/units.hpp"

namespace kvcap {
namespace {

Reading scaled(u64 count, u64 base, Label unit) noexcept {
  return {static_cast<u64>(Wide{count} * 1'000'000 / base), unit};
}

}  // namespace

Reading read_decimal(Bytes bytes) noexcept {
  constexpr Label kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  u64 base = 1;
  unsigned step = 0;
  while (step < 4 && bytes.count / base >= 1000) {
    base *= 1000;
    ++step;
  }
  return scaled(bytes.count, base, kUnits[step]);
}

Reading read_per_token(Bytes bytes) noexcept {
  return bytes.count < 1024 ? scaled(bytes.count, 1, "B") : scaled(bytes.count, 1024, "KiB");
}

Reading read_binary(Bytes bytes) noexcept {
  constexpr u64 kMiB = 1 << 20;
  constexpr u64 kGiB = 1 << 30;
  if (bytes.count < kMiB) return read_per_token(bytes);
  return bytes.count < kGiB ? scaled(bytes.count, kMiB, "MiB") : scaled(bytes.count, kGiB, "GiB");
}

}  // namespace kvcap
