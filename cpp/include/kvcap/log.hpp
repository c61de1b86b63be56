// Reads the start-up log of a serving engine: what it printed, which deployment that is, and where the rules agree.
// Vocabulary of messages: the engines' own sources and public logs of vLLM 0.2 to 0.24, SGLang 0.2 to 0.5, llama.cpp
// b1700 to b8500, ik_llama.cpp, ollama and TensorRT-LLM 0.5 to 1.x.
#pragma once

#include <string>
#include <string_view>

#include "kvcap/plan.hpp"

namespace kvcap {

/// Longest log that is read, in bytes.
inline constexpr u64 kMaxLogBytes = u64{64} << 20;

/// Any text to one JSON answer:
/// {"engine", "variant", "engine_version", "ranks",
///  "lines": [{"line", "rank", "field", "value", "unit", "tolerance", "text"}], "lines_left_out",
///  "printed": {field: value, …}, "readings": {field: {"value", "unit"}}, "memory": as in a plan's answer, or null,
///  "request": a plan's request or null, "missing": [field],
///  "contradictions": [{"code", "values", "readings"}], "findings": likewise,
///  "comparison": [{"figure", "of", "printed", "computed", "ratio", "agrees", "unit"}],
///  "alternatives": [{"change", "value", "concurrency", "gain", "same_gpus_and_length"}]}
/// Byte counts carry half a unit of their last printed digit as tolerance. Bytes that are no text are passed over; the
/// only error is `too_large`. Time and memory grow linearly with the text, whatever it holds.
[[nodiscard]] std::string read_log_json(std::string_view text, const Features& features);

}  // namespace kvcap
