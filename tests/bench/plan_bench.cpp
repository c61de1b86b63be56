// How long a plan takes natively, text to text.
//
//   kvcap_bench <milliseconds> <request> …     prints the nanoseconds of one call for each request, a line each
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "kvcap/plan.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Asks again and again for as long as `least`; the clock is read once in a batch.
double nanoseconds_per_call(std::string_view request, Clock::duration least) {
  constexpr int kBatch = 64;
  std::size_t bytes = 0;
  std::int64_t calls = 0;
  const auto start = Clock::now();
  Clock::duration spent{};
  do {
    for (int i = 0; i < kBatch; ++i) bytes += kvcap::plan_json(request, kvcap::textbook_features()).size();
    calls += kBatch;
    spent = Clock::now() - start;
  } while (spent < least);
  if (bytes == 0) return 0;
  return std::chrono::duration<double, std::nano>(spent).count() / static_cast<double>(calls);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned milliseconds = 0;
  if (argc > 1) {
    const std::string_view text = argv[1];
    std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  }
  if (argc < 3 || milliseconds == 0) {
    std::fputs("Usage: kvcap_bench <milliseconds> <request> …\n", stderr);
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    std::printf("%.0f\n", nanoseconds_per_call(argv[i], std::chrono::milliseconds(milliseconds)));
  }
  return 0;
}
