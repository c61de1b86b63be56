// Answers requests natively: one JSON request a line in, one JSON answer a line out, as `kv-capacity plan --jsonl`.
// tests/oracle/same.test.mjs holds what it prints against the other builds.
#include <iostream>
#include <string>

#include "kvcap/plan.hpp"

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << kvcap::plan_json(line, kvcap::full_features()) << '\n';
  }
  return std::cout.good() ? 0 : 1;
}
