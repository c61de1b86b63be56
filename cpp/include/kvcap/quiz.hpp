// Questions with exact answers, and what a wrong answer tells. Everything is the plan's own arithmetic: the right
// answer, and each known mistake, which is really made.
#pragma once

#include <string>
#include <string_view>

namespace kvcap {

/// {"seed", "count", "level": 1 to 3, "topics": [kind, …]} or {"interview": true, "seed"} to {"questions": [question,
/// …]}. A question is {"kind", "request": of a plan, "other": a second request or null, "given": [{"name", "value"} or
/// {"name", "text"} or {"name", "reading"}], "runs": the model's layers, "other_runs", "users", "lever", "unit":
/// "bytes", "tokens", "conversations", "gpus" or "choice", "choices": [id], "value", "choice", "readings", "low",
/// "high", "derivation": steps as of a plan, "mistakes": [{"code", "value" or "choice", "readings"}]}. With "check":
/// {"question": index, "value": a number, "unit": text} or {"question", "choice"} it is
/// {"question", "verdict": "right" or "wrong", "value", "readings", "diagnoses": [code, …]} instead.
/// Errors: `out_of_range`, `unknown_id` (topics, units), `wrong_type`, `missing`, as {"error": …}.
[[nodiscard]] std::string quiz_json(std::string_view text);

}  // namespace kvcap
