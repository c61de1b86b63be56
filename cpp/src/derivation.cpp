#include "kvcap/derivation.hpp"

#include "kvcap/error.hpp"

namespace kvcap {

Step& Derivation::add(Label name, Wide value, Label unit, Label part) {
  steps.push_back({name, part, {}, value * 1'000'000, unit, false});
  return steps.back();
}

Step& Step::put(Label op, Wide value, Label of) {
  terms.push_back(term(terms.empty() ? "" : op, value, of));
  return *this;
}

Term term(Label op, Wide value, Label of) { return {op, value * 1'000'000, of}; }

std::string expression(const Step& step) {
  std::string text;
  for (const auto& term : step.terms) {
    if (*term.op != 0) {
      text += ' ';
      text += term.op;
      text += ' ';
    }
    text += decimals(term.value_millionths, 1'000'000);
    if (*term.of != 0) {
      text += ' ';
      text += term.of;
    }
  }
  return text;
}

}  // namespace kvcap
