#include "kvcap/plan.hpp"

namespace kvcap {

const Features& textbook_features() noexcept {
  static const EngineRules kEngines[] = {textbook_rules()};
  static const Features kFeatures{.engines = kEngines};
  return kFeatures;
}

}  // namespace kvcap
