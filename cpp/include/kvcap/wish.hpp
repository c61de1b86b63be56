// The calculator asked backwards: what would it take?
#pragma once

#include <string>
#include <string_view>

#include "kvcap/plan.hpp"

namespace kvcap {

/// {"request": a plan's request, "sequences": N, "context": L or "context_k": L / 1024} to
/// {"sequences", "context", "sequences_now", "fits",
///  "longest_context":  tokens of which N conversations fit as it is deployed, or null,
///  "gpus": {"count", "copies", "sequences"}: the fewest of this kind on which N of L fit, and into how many copies of
///  the
///          model they are divided, or null,
///  "kv": {"format", "sequences"}: of the engine's cache formats that are smaller, the largest in which they fit; null
///        where none does, or where it fits as it is,
///  "gpus_now", "kv_now", "engine"}.
/// Found by search over the exact plan. Errors as a plan's, and `missing` where the weights are unknown.
[[nodiscard]] std::string wish_json(std::string_view question, const Features& features);

}  // namespace kvcap
