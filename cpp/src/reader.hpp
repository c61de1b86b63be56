// Reads the members of an object, one call a field, and keeps the first error.
#pragma once

#include <optional>
#include <string>

#include "kvcap/format.hpp"
#include "kvcap/json.hpp"

namespace kvcap {

/// Where a value stands in the request; written out only for an error.
struct Path {
  const Path* parent = nullptr;
  Label name = "";
  u64 index = 0;
  bool indexed = false;

  [[nodiscard]] std::string text() const;
};

/// After an error the readers return fallbacks, which nobody looks at: the request is refused.
class ObjectReader {
 public:
  ObjectReader(const json::Value& object, const Path& at, std::optional<Error>& error)
      : object_(object), at_(at), error_(error) {}

  [[nodiscard]] const json::Value* member(Label name) const noexcept { return object_.find(name); }
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }

  /// A whole number from min to max, or `fallback` where it is not given.
  u64 whole(Label name, u64 fallback, u64 min, u64 max);
  /// A share in billionths, or `fallback`.
  u64 fraction(Label name, u64 fallback, Fraction min, Fraction max);
  bool truth(Label name, bool fallback);
  std::string_view text(Label name, std::string_view fallback);
  /// A format for weights or for the cache.
  const Format* format(Label name, bool cache, const Format* fallback);

  void refuse(ErrorCode code, Label name, std::string_view message);
  /// `value` is not of a kind that is accepted here: "… is not accepted: `accepted` is".
  void refuse_kind(Label name, const json::Value& value, Label accepted);

 private:
  const json::Value& object_;
  const Path& at_;
  std::optional<Error>& error_;
};

}  // namespace kvcap
