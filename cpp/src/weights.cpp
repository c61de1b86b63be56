#include "kvcap/weights.hpp"

namespace kvcap {

Result<std::optional<WeightBytes>> weight_bytes_of(const Model& model, const Format* format) {
  const bool native = format == nullptr || format == model.native_weights;
  if (native && model.native_weight_bytes) {
    return WeightBytes{*model.native_weight_bytes, !model.native_weights_estimated, {}, {}};
  }
  const Format* const stored = format != nullptr ? format : model.native_weights;
  if (!model.parameters || stored == nullptr) return std::nullopt;
  const auto bytes = to_bytes(stored->bytes_of(*model.parameters), "weights");
  if (!bytes) return std::unexpected(bytes.error());
  // A quantised checkpoint keeps some tensors at 16 bits; which, only its files say.
  WeightBytes out{*bytes, stored->bits >= 16, {}, {}};
  if (stored->is_mix()) {
    const Wide blocks = ceil_div<Wide>(*model.parameters, stored->block_values);
    const auto high = to_bytes(blocks * stored->high_bytes, "weights");
    if (!high) return std::unexpected(high.error());
    out.low = Bytes{static_cast<u64>(blocks * stored->low_bytes)};
    out.high = *high;
  }
  return out;
}

}  // namespace kvcap
