#include "kvcap/derivation.hpp"

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

}  // namespace kvcap
