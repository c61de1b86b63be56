// An answer as steps of arithmetic, with the numbers in place.
#pragma once

#include <string>
#include <string_view>

#include "kvcap/list.hpp"

namespace kvcap {

/// One number in a step: `op` joins it to what stands before ("", "×", "+", "−", "÷"), `of` says what it counts
/// ("layers", "kv_heads", "key_width", "bytes", …; empty for a plain number).
struct Term {
  Label op = "";
  Wide value_millionths = 0;
  Label of = "";
};

/// name = term op term … = value unit
struct Step {
  Label name = "";  ///< "kv_bytes_per_token", "weight_bytes", "sequences", …
  Label part = "";  ///< the kind of layers that this is a part of the sum for; empty for the whole
  List<Term> terms;
  Wide value_millionths = 0;
  Label unit = "";  ///< "bytes", "tokens", "conversations"
  bool rounded_down = false;

  /// Appends a term of a whole number; the first term of a step stands without its `op`.
  Step& put(Label op, Wide value, Label of = "");
};

class Derivation {
 public:
  List<Step> steps;
  /// The returned step is valid until the next is added.
  Step& add(Label name, Wide value, Label unit, Label part = "");
};

/// A term of a whole number.
[[nodiscard]] Term term(Label op, Wide value, Label of = "");

}  // namespace kvcap
