// Looks for what would fit, on the exact rules.
#pragma once

#include <optional>

#include "kvcap/plan.hpp"
#include "kvcap/weights.hpp"

namespace kvcap {

/// What the request's weights take: as it states them, or of its format.
[[nodiscard]] Result<std::optional<WeightBytes>> weights_of(const Request& request);

/// An engine's answer for the same request with other sizes.
[[nodiscard]] Result<Reservation> reserve_with(const Request& request, const std::optional<WeightBytes>& weights,
                                               const Deployment& on, Tokens context);

/// Searches for `wanted` conversations of a request.
class Search {
 public:
  Search(const Request& request, const std::optional<WeightBytes>& weights, u64 wanted = 1)
      : request_(request), weights_(weights), wanted_(wanted) {}

  /// The least GPU count: of the textbook any number, of an engine the least power of two, since sizes divide heads.
  [[nodiscard]] std::optional<u64> fewest_gpus(bool weights_only) const;
  /// The longest context that fits; nothing when not even one token does.
  [[nodiscard]] std::optional<u64> longest_context() const;
  /// The request's deployment with another number of GPUs, in one copy of the model.
  [[nodiscard]] Deployment deployment_of(u64 gpus) const;

 private:
  [[nodiscard]] bool fits(const Deployment& on, Tokens context, bool weights_only) const;
  [[nodiscard]] bool fits_on(u64 gpus, bool weights_only) const;

  const Request& request_;
  const std::optional<WeightBytes>& weights_;
  u64 wanted_;
};

}  // namespace kvcap
