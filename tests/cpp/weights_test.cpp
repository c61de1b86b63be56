// Bytes of a model's weights: as the checkpoint has them, or as parameters in a format.
#include "kvcap/weights.hpp"

#include <doctest/doctest.h>

namespace kvcap {
namespace {

/// 8,001 parameters at 16 bits.
Model small() {
  Model model;
  model.parameters = 8'001;
  model.native_weights = find_format("bf16");
  return model;
}

WeightBytes bytes(const Model& model, const char* format) {
  const auto found = weight_bytes_of(model, format != nullptr ? find_format(format) : nullptr);
  REQUIRE(found);
  REQUIRE(*found);
  return **found;
}

void check(const WeightBytes& weights, u64 count, bool exact) {
  CHECK(weights.bytes.count == count);
  CHECK(weights.exact == exact);
  CHECK(weights.low.count == 0);
  CHECK(weights.high.count == 0);
}

TEST_CASE("weights are parameters in a format, exact where nothing is scaled") {
  const Model model = small();
  check(bytes(model, nullptr), 2 * 8'001, true);
  check(bytes(model, "bf16"), 2 * 8'001, true);
  check(bytes(model, "fp32"), 4 * 8'001, true);
  check(bytes(model, "fp8"), 8'001, false);
  check(bytes(model, "q8_0"), 251 * 34, false);  // 250 blocks of 32, and one value more
}

TEST_CASE("a checkpoint's own bytes are those of its own format alone") {
  Model model = small();
  model.native_weight_bytes = Bytes{16'123};
  check(bytes(model, nullptr), 16'123, true);
  check(bytes(model, "bf16"), 16'123, true);
  check(bytes(model, "fp16"), 2 * 8'001, true);
  check(bytes(model, "fp8"), 8'001, false);
  model.native_weights_estimated = true;
  check(bytes(model, nullptr), 16'123, false);
  // They are enough where the parameters are not known.
  model.parameters.reset();
  check(bytes(model, "bf16"), 16'123, false);
}

TEST_CASE("a mix has a range") {
  // Two blocks of 8,000 values
  const WeightBytes mix = bytes(small(), "q4_k_m");
  CHECK(mix.bytes.count == 2 * 4'850);
  CHECK(mix.low.count == 2 * 4'800);
  CHECK(mix.high.count == 2 * 4'890);
  CHECK_FALSE(mix.exact);
}

TEST_CASE("weights that are not known, or too many to count") {
  const auto nothing = [](const Model& model, const Format* format) {
    const auto found = weight_bytes_of(model, format);
    return found && !*found;
  };
  Model model = small();
  model.parameters.reset();
  CHECK(nothing(model, nullptr));
  CHECK(nothing(model, find_format("fp8")));
  model = small();
  model.native_weights = nullptr;
  CHECK(nothing(model, nullptr));
  CHECK_FALSE(nothing(model, find_format("fp8")));

  model = small();
  model.parameters = kMaxExact / 4;
  CHECK(weight_bytes_of(model, find_format("fp32")));
  model.parameters = kMaxExact / 4 + 1;
  const auto many = weight_bytes_of(model, find_format("fp32"));
  REQUIRE_FALSE(many);
  CHECK(many.error().code == ErrorCode::out_of_range);
  // Of a mix the highest figure too has to be counted.
  model.parameters = kMaxExact / 4'890 * 8'000;
  CHECK(weight_bytes_of(model, find_format("q4_k_m")));
  model.parameters = (kMaxExact / 4'890 + 1) * 8'000;
  const auto high = weight_bytes_of(model, find_format("q4_k_m"));
  REQUIRE_FALSE(high);
  CHECK(high.error().code == ErrorCode::out_of_range);
}

}  // namespace
}  // namespace kvcap
