#include "kvcap/derivation.hpp"

#include "kvcap/error.hpp"

namespace kvcap {

Step& Derivation::add(std::string_view name, Wide value, std::string_view unit, std::string_view part) {
  steps.push_back({name, part, {}, value * 1'000'000, unit, false});
  return steps.back();
}

std::string expression(const Step& step) {
  std::string text;
  for (const auto& term : step.terms) {
    if (!term.op.empty()) {
      text += ' ';
      text += term.op;
      text += ' ';
    }
    text += decimals(term.value_millionths, 1'000'000);
    if (!term.of.empty()) {
      text += ' ';
      text += term.of;
    }
  }
  return text;
}

}  // namespace kvcap
