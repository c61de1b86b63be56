// The parts of the quiz: what is asked, its value, and the mistakes that people make on the way.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "answer.hpp"
#include "random.hpp"

namespace kvcap::quiz {

enum class Kind : unsigned char {
  bytes_per_token,
  sequence_bytes,
  room,
  sequences,
  costlier,
  longest_context,
  fewest_gpus,
  lever,
  shape,
  weights,      ///< of the interview alone, as the next
  ask_context,  ///< what has to be asked before one can go on
};
inline constexpr Kind kQuizKinds[] = {Kind::bytes_per_token, Kind::sequence_bytes, Kind::room,
                                      Kind::sequences,       Kind::costlier,       Kind::longest_context,
                                      Kind::fewest_gpus,     Kind::lever,          Kind::shape};
[[nodiscard]] Label kind_id(Kind kind) noexcept;

enum class Unit : unsigned char { bytes, tokens, conversations, gpus, choice };
[[nodiscard]] Unit unit_of(Kind kind) noexcept;
[[nodiscard]] Label unit_id(Unit unit) noexcept;

/// What a question is about. Mistakes change it.
struct Scene {
  Kind kind = Kind::bytes_per_token;
  Request request;
  std::optional<Request> other;  ///< the second of two models; what stood before a lever was pulled
  Label lever = "";              ///< one of kLevers
  u64 users = 1;                 ///< conversations at once, where they are given
};
inline constexpr Label kLevers[] = {"kv", "weights", "gpus", "context"};

/// The number that is asked for; of a choice the position of what is right. Nothing where it has none, as the room for
/// the cache where the weights do not fit.
[[nodiscard]] std::optional<Wide> value_of(const Scene& scene);

/// A known mistake, made.
struct Wrong {
  Label code = "";
  Wide value = 0;
};
/// The known mistakes that give another value than the right one, as far from it as is told apart.
[[nodiscard]] std::vector<Wrong> mistakes_of(const Scene& scene, Wide right);

/// How far an answer may be from a value, as a share of it: 1 / divisor, rounded up to whole numbers or down.
struct Tolerance {
  u64 divisor = 50;
  bool up = false;
  [[nodiscard]] Wide of(Wide value) const noexcept { return up ? ceil_div<Wide>(value, divisor) : value / divisor; }
};
[[nodiscard]] Tolerance tolerance_of(Kind kind, bool interview) noexcept;

struct Question {
  Scene scene;
  Wide value = 0;
  Tolerance tolerance;
};

/// Draws the questions of a level; `topics` in the order in which they are asked.
[[nodiscard]] std::vector<Question> draw_questions(u64 seed, u64 count, u64 level, const std::vector<Kind>& topics);
/// One deployment, and the chain that leads from it to a number of conversations.
[[nodiscard]] std::vector<Question> draw_interview(u64 seed);

/// The way to the right answer.
[[nodiscard]] Derivation derivation_of(const Question& question);

}  // namespace kvcap::quiz
