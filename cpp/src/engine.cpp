#include "kvcap/engine.hpp"

#include <algorithm>

#include "reader.hpp"

namespace kvcap {

Label confidence_name(Confidence confidence) noexcept {
  switch (confidence) {
    case Confidence::exact: break;
    case Confidence::engine_rule: return "engine_rule";
    case Confidence::estimate: return "estimate";
  }
  return "exact";
}

Note& Note::with(Label value_name, Wide number) {
  if constexpr (kCoreKernel) {
    values.push_back({value_name, *new std::string(digits(number))});  // the arena's
  } else {
    values.push_back({value_name, digits(number)});
  }
  return *this;
}

Note& Reservation::note(Label note_code) {
  notes.push_back({note_code, {}});
  return notes.back();
}

namespace {

/// The words of a list, with one space between each.
template <class Visit>
void each_word(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    visit(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

bool lists(std::string_view list, std::string_view word) {
  bool found = false;
  each_word(list, [&](std::string_view one) { found = found || one == word; });
  return found;
}

std::string joined(std::string_view list) {
  std::string text;
  each_word(list, [&](std::string_view one) {
    if (!text.empty()) text += ", ";
    text += one;
  });
  return text;
}

/// "0.11.2" or "b5614" as a number that orders as versions do: 1000^2 × first + 1000 × second + third. Nothing for
/// other text.
std::optional<u64> to_version(std::string_view rest) {
  if (rest.starts_with('b') || rest.starts_with('v')) rest.remove_prefix(1);
  u64 version = 0;
  u64 unit = 1'000'000;
  do {
    u64 part = 0;
    std::size_t digit_count = 0;
    while (digit_count < rest.size() && rest[digit_count] >= '0' && rest[digit_count] <= '9') {
      part = part * 10 + static_cast<u64>(rest[digit_count++] - '0');
      // A build number stands alone ("b5614"); later parts of a dotted version are below 1000.
      if (part > (unit == 1'000'000 ? 999'999 : 999)) return std::nullopt;
    }
    if (digit_count == 0) break;
    version += part * unit;
    unit /= 1000;
    rest.remove_prefix(digit_count);
    if (!rest.starts_with('.')) break;
    rest.remove_prefix(1);
  } while (unit != 0);
  return unit == 1'000'000 ? std::nullopt : std::optional(version);
}

u64 read_option(const OptionSpec& spec, Label name, ObjectReader& in) {
  switch (spec.kind) {
    case OptionKind::whole:
    case OptionKind::bytes: return in.whole(name, 0, spec.min, spec.max);
    case OptionKind::fraction: return in.fraction(name, 0, {spec.min}, {spec.max});
    case OptionKind::truth: return in.truth(name, false) ? 1 : 0;
    case OptionKind::version:
    case OptionKind::choice: break;
  }
  const std::string_view text = in.text(name, "");
  if constexpr (kCoreKernel) return 0;  // the textbook has none of these
  if (spec.kind == OptionKind::version) {
    const auto version = to_version(text);
    if (!version) in.refuse(ErrorCode::malformed, name, "is a version such as 0.11.2 or b5614");
    return version.value_or(0);
  }
  u64 index = 0;
  std::optional<u64> found;
  each_word(spec.choices, [&](std::string_view choice) {
    if (choice == text) found = index;
    ++index;
  });
  if (!found) in.refuse(ErrorCode::unknown_id, name, Text() << "is one of " << joined(spec.choices));
  return found.value_or(0);
}

}  // namespace

const OptionValue& Options::operator[](Label name) const noexcept {
  static constexpr OptionValue kAbsent{};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == name) return values[i];
  }
  return kAbsent;
}

Result<Options> parse_options(std::span<const OptionSpec> specs, const json::Value* object) {
  Options options{specs, {}};
  for (const auto& spec : specs) options.values.push_back({false, spec.has_fallback, spec.fallback});
  if (object == nullptr) return options;
  const Path at{nullptr, "options"};
  std::optional<Error> error;
  ObjectReader in(*object, at, error);
  if (!object->is(json::Kind::object)) in.refuse_kind("", *object, "an object");
  for (const json::Value& member : *object) {
    const std::string name(member.key);
    const auto spec = std::ranges::find_if(
        specs, [&](const OptionSpec& one) { return one.name == member.key || lists(one.aliases, member.key); });
    if (spec == specs.end()) {
      Text message;
      message << "is no option of this engine; these are:";
      for (const auto& one : specs) message << " " << one.name;
      in.refuse(ErrorCode::unknown_id, name.c_str(), message);
      break;
    }
    OptionValue& slot = options.values[static_cast<std::size_t>(spec - specs.begin())];
    const u64 value = read_option(*spec, name.c_str(), in);
    if (slot.given && slot.value != value) {
      in.refuse(ErrorCode::conflict, name.c_str(), "is given twice, with different values");
    }
    slot = {true, true, value};
  }
  if (error) return std::unexpected(std::move(*error));
  return options;
}

std::optional<Error> check_tensor_parallel(const EngineInput& input) {
  const u64 size = input.deployment.tensor_parallel;
  const auto works = [&](u64 t) {
    if (input.model.query_heads % t != 0) return false;
    return std::ranges::all_of(input.model.layers,
                               [&](const LayerRun& run) { return run.kv_heads % t == 0 || t % run.kv_heads == 0; });
  };
  if (works(size)) return std::nullopt;
  std::string sizes;
  for (u64 t = 1; t <= 64; ++t) {
    if (!works(t)) continue;
    if (!sizes.empty()) sizes += ", ";
    sizes += digits(t);
  }
  return Error{ErrorCode::not_divisible, "tensor_parallel",
               Text() << size
                      << " does not divide this model's heads; of the sizes to "
                         "64 these do: "
                      << sizes};
}

}  // namespace kvcap
