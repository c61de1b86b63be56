// How long a plan takes natively, text to text.
//
//   kvcap_bench <milliseconds> <together> <request> …
//
// takes so many requests together, asks them in turn, and prints the nanoseconds of one call, a line for each lot.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <span>
#include <string_view>

#include "kvcap/plan.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Asks again and again for as long as `least`; the clock is read once in a round of all.
double nanoseconds_per_call(std::span<const char* const> requests, Clock::duration least) {
  std::size_t bytes = 0;
  std::int64_t calls = 0;
  const auto start = Clock::now();
  Clock::duration spent{};
  do {
    for (const char* const request : requests) {
      bytes += kvcap::plan_json(request, kvcap::textbook_features()).size();
    }
    calls += std::ssize(requests);
    spent = Clock::now() - start;
  } while (spent < least);
  if (bytes == 0) return 0;
  return std::chrono::duration<double, std::nano>(spent).count() / static_cast<double>(calls);
}

/// A whole number; 0 where it is none.
unsigned whole(std::string_view text) {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  const unsigned milliseconds = words.size() > 1 ? whole(words[1]) : 0;
  const unsigned together = words.size() > 2 ? whole(words[2]) : 0;
  if (milliseconds == 0 || together == 0 || words.size() == 3 || (words.size() - 3) % together != 0) {
    std::fputs("Usage: kvcap_bench <milliseconds> <together> <request> …\n", stderr);
    return 2;
  }
  for (std::size_t i = 3; i < words.size(); i += together) {
    std::printf("%.0f\n", nanoseconds_per_call(words.subspan(i, together), std::chrono::milliseconds(milliseconds)));
  }
  return 0;
}
