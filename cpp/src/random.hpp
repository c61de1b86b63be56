// Numbers that look drawn and are the same everywhere: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
// Number Generators", 2014).
#pragma once

#include "kvcap/units.hpp"

namespace kvcap {

class Random {
 public:
  explicit constexpr Random(u64 seed) noexcept : state_(seed) {}

  constexpr u64 next() noexcept {
    state_ += 0x9E37'79B9'7F4A'7C15;
    u64 mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58'476D'1CE4'E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EB;
    return mixed ^ (mixed >> 31);
  }
  /// One of 0 … count - 1; count must not be 0. The bias of the remainder is below count / 2^64.
  constexpr u64 below(u64 count) noexcept { return next() % count; }

 private:
  u64 state_;
};

}  // namespace kvcap
