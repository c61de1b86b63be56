#include "kvcap/engine.hpp"

#include <algorithm>
#include <array>

namespace kvcap {

Label confidence_name(Confidence confidence) noexcept {
  switch (confidence) {
    case Confidence::exact: return "exact";
    case Confidence::engine_rule: return "engine_rule";
    case Confidence::estimate: return "estimate";
  }
  return "exact";
}

namespace {

/// The words of a list that is separated by spaces.
template <class Visit>
void each_word(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end != 0) visit(list.substr(0, end));
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

/// "0.11.2" or "b5614" as a number that orders as versions do: 1000^2 × first +
/// 1000 × second + third.
Result<u64> to_version(std::string_view text, std::string_view field) {
  const auto refuse = [&] {
    return fail(
        ErrorCode::malformed, field,
        Text() << "the text \"" << text.substr(0, 40) << "\" is not accepted: a version such as 0.11.2 or b5614 is");
  };
  std::string_view rest = text;
  if (rest.starts_with('b') || rest.starts_with('v')) rest.remove_prefix(1);
  u64 version = 0;
  unsigned parts = 0;
  while (parts < 3 && !rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    u64 part = 0;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
      part = part * 10 + static_cast<u64>(rest.front() - '0');
      if (part > 999'999) return refuse();
      rest.remove_prefix(1);
    }
    // A build number stands alone ("b5614"); parts of a dotted version are
    // below 1000.
    if (parts != 0 && part > 999) return refuse();
    version = parts == 0 ? part * 1'000'000 : version + part * (parts == 1 ? 1000 : 1);
    ++parts;
    if (rest.empty() || rest.front() != '.') break;
    rest.remove_prefix(1);
  }
  if (parts == 0) return refuse();
  return version;
}

Result<u64> read_option(const OptionSpec& spec, const json::Value& value, std::string_view field) {
  switch (spec.kind) {
    case OptionKind::whole:
    case OptionKind::bytes: return json::to_whole(value, field, spec.min, spec.max);
    case OptionKind::fraction: {
      const auto share = json::to_fraction(value, field, {spec.min}, {spec.max});
      if (!share) return std::unexpected(share.error());
      return share->billionths;
    }
    case OptionKind::truth: {
      const auto truth = json::to_truth(value, field);
      if (!truth) return std::unexpected(truth.error());
      return u64{*truth};
    }
    case OptionKind::version: {
      const auto version = json::to_text(value, field);
      if (!version) return std::unexpected(version.error());
      return to_version(*version, field);
    }
    case OptionKind::choice: break;
  }
  const auto text = json::to_text(value, field);
  if (!text) return std::unexpected(text.error());
  u64 index = 0;
  std::optional<u64> found;
  each_word(spec.choices, [&](std::string_view choice) {
    if (choice == *text) found = index;
    ++index;
  });
  if (!found) {
    return fail(ErrorCode::unknown_id, field,
                Text() << json::describe(value) << " is not accepted: one of " << joined(spec.choices) << " is");
  }
  return *found;
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
  if (!object->is(json::Kind::object)) {
    return fail(ErrorCode::wrong_type, "options",
                Text() << json::describe(*object) << " is not accepted: an object is");
  }
  for (const json::Value& member : *object) {
    std::string field = "options.";
    field += member.key;
    const auto spec = std::ranges::find_if(
        specs, [&](const OptionSpec& one) { return one.name == member.key || lists(one.aliases, member.key); });
    if (spec == specs.end()) {
      std::string names;
      for (const auto& one : specs) {
        if (!names.empty()) names += ", ";
        names += one.name;
      }
      return fail(ErrorCode::unknown_id, field, Text() << "is not an option of this engine, which has " << names);
    }
    OptionValue& slot = options.values[static_cast<std::size_t>(spec - specs.begin())];
    const auto value = read_option(*spec, member, field);
    if (!value) return std::unexpected(value.error());
    if (slot.given && slot.value != *value) {
      return fail(ErrorCode::conflict, field, "is given twice, with different values");
    }
    slot = {true, true, *value};
  }
  return options;
}

std::optional<Error> check_tensor_parallel(const EngineInput& input) {
  const u64 size = input.deployment.tensor_parallel;
  const auto works = [&](u64 t) {
    if (input.model.query_heads != 0 && input.model.query_heads % t != 0) return false;
    return std::ranges::all_of(input.model.layers, [&](const LayerRun& run) {
      return run.kv_heads == 0 || run.kv_heads % t == 0 || t % run.kv_heads == 0;
    });
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
