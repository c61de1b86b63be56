#include "kvcap/weights.hpp"

namespace kvcap {

Result<std::optional<WeightBytes>> weight_bytes_of(const Model& model, const Format* format) {
  const bool native = format == nullptr || format == model.native_weights;
  if (native && model.native_weight_bytes) {
    return WeightBytes{*model.native_weight_bytes, !model.native_weights_estimated};
  }
  const Format* const stored = format != nullptr ? format : model.native_weights;
  if (!model.parameters || stored == nullptr) return std::nullopt;
  const auto bytes = to_bytes(stored->bytes_of(*model.parameters), "weights");
  if (!bytes) return std::unexpected(bytes.error());
  // A quantised checkpoint keeps some tensors at 16 bits; which, only its files say.
  return WeightBytes{*bytes, stored->bits >= 16};
}

}  // namespace kvcap
