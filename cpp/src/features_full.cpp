#include "kvcap/plan.hpp"

namespace kvcap {

const Features& full_features() noexcept {
  static const EngineRules kEngines[] = {textbook_rules(), vllm_rules(), llama_cpp_rules(), tensorrt_llm_rules()};
  static const Features kFeatures{.engines = kEngines};
  return kFeatures;
}

}  // namespace kvcap
