#include "kvcap/import.hpp"
#include "kvcap/plan.hpp"

namespace kvcap {

const Features& full_features() noexcept {
  static const EngineRules kEngines[] = {textbook_rules(), vllm_rules(), sglang_rules(), llama_cpp_rules(),
                                         tensorrt_llm_rules()};
  static const Features kFeatures{.engines = kEngines,
                                  .model_object = parse_model,
                                  .config_object = import_config,
                                  .config_text = import_config_text};
  return kFeatures;
}

}  // namespace kvcap
