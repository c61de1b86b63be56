// Quantities of the arithmetic: bytes and tokens as strong integer types, and the readings of a byte count that a
// person sees (KiB, GB, GiB). Intermediate products are 128-bit; a result leaves the core only if it is a whole number
// of at most 2^53 - 1, which JSON and JavaScript carry exactly.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace kvcap {

/// True in the core kernel, the one that a page loads first and that has to be small: the textbook's arithmetic for
/// requests as pages write them. Whatever else it is asked it refuses as `unsupported`, without words of its own, and
/// the page asks the full kernel. Set by the build for all sources of a program.
#ifdef KVCAP_CORE_KERNEL
inline constexpr bool kCoreKernel = true;
#else
inline constexpr bool kCoreKernel = false;
#endif

using u64 = std::uint64_t;
using u32 = std::uint32_t;

/// Text of static storage that ends in NUL: a code, a key, a name. One machine word, where a string_view takes two and
/// a copy on the stack at every call in wasm.
using Label = const char*;

/// Text that a value keeps. In the core kernel all of it stands in compiled tables, so that a view does.
using Name = std::conditional_t<kCoreKernel, std::string_view, std::string>;

/// An intermediate product. The input limits below keep every product of the arithmetic under 2^127. The core kernel
/// reads no number of more than 12 digits, which keeps its products under 2^64.
__extension__ using Wide = std::conditional_t<kCoreKernel, u64, unsigned __int128>;

/// The largest integer that a double, and so a JSON number in JavaScript, holds without gaps.
inline constexpr u64 kMaxExact = (u64{1} << 53) - 1;
/// The largest byte count that is answered. The core kernel holds 10^6 times it in 64 bits.
inline constexpr u64 kMaxFigure = kCoreKernel ? u64{1} << 44 : kMaxExact;

/// Input limits. Larger values are errors, so that no product of the arithmetic can wrap.
inline constexpr u64 kMaxTokens = u64{1} << 31;  ///< context length, windows
inline constexpr u64 kMaxWidth = u64{1} << 24;   ///< values of one head, latent or indexer row
inline constexpr u64 kMaxHeads = u64{1} << 16;   ///< KV heads of one layer
inline constexpr u64 kMaxLayers = u64{1} << 16;  ///< layers of one run
inline constexpr u64 kMaxRuns = 16384;           ///< runs of one model
inline constexpr u64 kMaxGpus = 1'000'000;       ///< GPUs of a deployment
inline constexpr u64 kMaxState = u64{1} << 48;   ///< values of one layer's recurrent state

/// A whole number of bytes. GB (10^9) and GiB (2^30) are two readings of the same count.
struct Bytes {
  u64 count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

/// A whole number of tokens.
struct Tokens {
  u64 count = 0;
  friend constexpr auto operator<=>(Tokens, Tokens) = default;
};

/// a / b rounded up; b must not be 0.
template <class T>
[[nodiscard, gnu::noinline]] constexpr T ceil_div(T a, T b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// What is left of `all`, nothing where more is taken.
template <class T>
[[nodiscard]] constexpr T without(T all, T taken) noexcept {
  return all - std::min(all, taken);
}

/// A share of one, in billionths: flags such as 0.9 are held exactly, without binary fractions.
struct Fraction {
  static constexpr u64 kOne = 1'000'000'000;
  u64 billionths = 0;
  friend constexpr auto operator<=>(Fraction, Fraction) = default;
  /// `whole` × this, rounded down; no product is larger than the larger of `whole` and 10^18.
  [[nodiscard, gnu::noinline]] constexpr Wide of(Wide whole) const noexcept {
    return whole / kOne * billionths + whole % kOne * billionths / kOne;
  }
};

/// A byte count as a person reads it: `millionths` / 10^6 of `unit`.
struct Reading {
  u64 millionths = 0;
  Label unit = "";
};

/// B, kB, MB, GB, TB: powers of 1000, the largest unit that gives at least 1.
[[nodiscard]] Reading read_decimal(Bytes bytes) noexcept;
/// B or KiB: the unit of one token's cache.
[[nodiscard]] Reading read_per_token(Bytes bytes) noexcept;
/// B, KiB, MiB or GiB: powers of 1024, as engines print them.
[[nodiscard]] Reading read_binary(Bytes bytes) noexcept;

}  // namespace kvcap
