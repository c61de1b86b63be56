// The quiz as JSON: its questions, and the verdict on an answer.
#include "kvcap/quiz.hpp"

#include <algorithm>

#include "kvcap/catalogue.hpp"
#include "letters.hpp"
#include "quiz.hpp"
#include "reader.hpp"

namespace kvcap {
namespace {

using json::Value;
using json::Writer;
using namespace quiz;

constexpr u64 kMostQuestions = 100;
constexpr Label kAskChoices[] = {"context", "batch", "vocabulary", "temperature"};
constexpr Wide kOne = 1'000'000'000;  ///< answers are held in billionths

void write_reading(Writer& out, const Reading& reading) {
  out.begin_object().key("value").decimal(reading.millionths).key("unit").text(reading.unit).end_object();
}

/// A byte count in powers of 1000 and of 1024.
void write_readings(Writer& out, Unit unit, Wide value) {
  out.key("readings").begin_array();
  if (unit == Unit::bytes) {
    const Bytes bytes{static_cast<u64>(std::min<Wide>(value, kMaxExact))};
    write_reading(out, read_decimal(bytes));
    write_reading(out, bytes.count < (1u << 20) ? read_per_token(bytes) : read_binary(bytes));
  }
  out.end_array();
}

void write_request(Writer& out, const Request& request) {
  out.begin_object().key("model").text(std::string_view(request.model.id)).key("kv").text(request.kv.k->id);
  out.key("weights").text(request.weights->id);
  out.key("gpu").text(std::string_view(request.deployment.gpu_id)).key("gpus").number(request.deployment.gpus);
  out.key("context").number(request.context.count).end_object();
}

void write_runs(Writer& out, Label key, const std::optional<Request>& request) {
  out.key(key).begin_array();
  if (request) {
    for (const auto& run : merge_runs(request->model.layers)) write_run(out, run);
  }
  out.end_array();
}

/// The numbers that a question gives, in the order of the way to the answer; some of them lead astray.
class GivenWriter {
 public:
  GivenWriter(Writer& out, const Scene& scene) : out_(out), scene_(scene) {}

  void write() {
    out_.key("given").begin_array();
    model(scene_.request, "");
    if (scene_.kind == Kind::costlier) model(*scene_.other, "other_");
    if (scene_.kind == Kind::lever) {
      cache(*scene_.other);
      format("weights", *scene_.other->weights);
      machines(*scene_.other);
      Scene before = scene_;
      before.request = *scene_.other;
      number("sequences_before", *value_of(before));
    } else {
      if (needs_cache()) cache(scene_.request);
      // Where it does not matter it still may lead astray.
      const bool other_bits = scene_.request.weights->bits != scene_.request.kv.k->bits;
      if (needs_weights() || (scene_.kind != Kind::costlier && other_bits)) format("weights", *scene_.request.weights);
      if (needs_machines()) machines(scene_.request);
    }
    if (scene_.users > 1) number("users", scene_.users);
    out_.end_array();
  }

 private:
  [[nodiscard]] bool needs_cache() const { return scene_.kind != Kind::room && scene_.kind != Kind::weights; }
  [[nodiscard]] bool needs_context() const {
    switch (scene_.kind) {
      case Kind::bytes_per_token:
      case Kind::longest_context:
      case Kind::ask_context: return false;
      default: return true;
    }
  }
  [[nodiscard]] bool needs_weights() const {
    switch (scene_.kind) {
      case Kind::bytes_per_token:
      case Kind::sequence_bytes:
      case Kind::shape:
      case Kind::costlier: return false;
      default: return true;
    }
  }
  [[nodiscard]] bool needs_machines() const { return needs_weights() && scene_.kind != Kind::weights; }

  void open(Label name) { out_.begin_object().key("name").text(name); }
  void number(Label name, Wide value) {
    open(name);
    out_.key("value").number(value).end_object();
  }
  void format(Label name, const Format& stored) {
    open(name);
    out_.key("text").text(stored.id).key("value").number(stored.bits).end_object();
  }

  void model(const Request& request, std::string_view prefix) {
    const Model& model = request.model;
    const auto named = [&](Label name) {
      out_.begin_object().key("name").text(Text() << prefix << name);
      return true;
    };
    named("model");
    out_.key("text").text(std::string_view(model.name)).end_object();
    const CatalogueEntry* const entry = find_model(model.id);
    const auto& run = model.layers[0];
    if (model.layers.size() == 1 && run.latent_width == 0 && scene_.kind != Kind::weights &&
        scene_.kind != Kind::room) {
      const struct {
        Label name;
        u64 value;
      } kShape[] = {{"layers", run.count},      {"hidden_size", entry->hidden_size}, {"query_heads", model.query_heads},
                    {"kv_heads", run.kv_heads}, {"head_dimension", run.key_width},   {"window", run.window_tokens}};
      for (const auto& one : kShape) {
        if (one.value == 0) continue;
        named(one.name);
        out_.key("value").number(one.value).end_object();
      }
    }
    if (needs_weights() || scene_.kind == Kind::costlier) {
      named("parameters");
      out_.key("value").number(model.parameters.value_or(0)).end_object();
      if (model.active_parameters) {
        named("active_parameters");
        out_.key("value").number(*model.active_parameters).end_object();
      }
    }
  }
  void cache(const Request& request) {
    format("kv", *request.kv.k);
    if (needs_context()) number("context", request.context.count);
  }
  void machines(const Request& request) {
    if (scene_.kind != Kind::fewest_gpus) number("gpus", request.deployment.gpus);
    open("gpu");
    out_.key("text").text(std::string_view(request.deployment.gpu_name)).key("reading");
    write_reading(out_, read_decimal(request.deployment.memory(true).bytes));
    out_.end_object();
    open("reserve");
    out_.key("value").decimal(request.options.fraction("reserve").billionths / 1000).end_object();
  }

  Writer& out_;
  const Scene& scene_;
};

/// The codes that an answer may choose among; empty for an answer in numbers.
std::vector<std::string_view> choices_of(const Scene& scene) {
  if (scene.kind == Kind::costlier) return {scene.request.model.id, scene.other->model.id};
  if (scene.kind == Kind::ask_context) return {std::begin(kAskChoices), std::end(kAskChoices)};
  return {};
}

void write_question(Writer& out, const Question& question) {
  const Scene& scene = question.scene;
  const Unit unit = unit_of(scene.kind);
  const auto choices = choices_of(scene);
  const auto value = [&](Wide of) {
    if (unit == Unit::choice) {
      out.key("choice").text(choices[static_cast<std::size_t>(of)]);
    } else {
      out.key("value").number(of);
    }
    write_readings(out, unit, of);
  };
  out.begin_object().key("kind").text(kind_id(scene.kind)).key("request");
  write_request(out, scene.request);
  out.key("other");
  if (scene.other) {
    write_request(out, *scene.other);
  } else {
    out.null();
  }
  GivenWriter(out, scene).write();
  write_runs(out, "runs", scene.request);
  write_runs(out, "other_runs", scene.kind == Kind::costlier ? scene.other : std::nullopt);
  out.key("users").number(scene.users).key("lever").text(scene.lever).key("unit").text(unit_id(unit));
  out.key("choices").begin_array();
  for (const auto choice : choices) out.text(choice);
  out.end_array();
  value(question.value);
  const Wide apart = question.tolerance.of(question.value);
  out.key("low").number(question.value - apart).key("high").number(question.value + apart);
  write_steps(out, derivation_of(question));
  out.key("mistakes").begin_array();
  for (const auto& wrong : mistakes_of(scene, question.value)) {
    out.begin_object().key("code").text(wrong.code);
    value(wrong.value);
    out.end_object();
  }
  out.end_array().end_object();
}

/// A unit as a person types it, and what it multiplies by: numerator / denominator.
struct UnitName {
  std::string_view name;
  u64 numerator = 1;
  u64 denominator = 1;
  u64 base = 0;  ///< 1000 or 1024; 0 for none
  unsigned power = 0;
};

constexpr u64 power_of(u64 base, unsigned power) noexcept { return power == 0 ? 1 : base * power_of(base, power - 1); }

/// Reads "KiB", "MB", "bits", "k" … Letter case counts only where a b after a capital is a bit ("Gb"): people write
/// "gb" for bytes.
std::optional<UnitName> read_unit(std::string_view text, Unit unit) {
  if (unit != Unit::bytes) {
    if (same_letters(text, "k")) return UnitName{text, 1024, 1, 1024, 1};
    for (const std::string_view name :
         {"", "token", "tokens", "conversation", "conversations", "user", "users", "gpu", "gpus", "x"}) {
      if (same_letters(text, name)) return UnitName{text};
    }
    return std::nullopt;
  }
  for (const std::string_view name : {"", "b", "byte", "bytes"}) {
    if (same_letters(text, name)) return UnitName{text};
  }
  for (const std::string_view name : {"bit", "bits"}) {
    if (same_letters(text, name)) return UnitName{text, 1, 8};
  }
  constexpr std::string_view kPrefixes = "kmgt";
  for (unsigned power = 1; power <= kPrefixes.size() && !text.empty(); ++power) {
    if (!same_letters(text.substr(0, 1), kPrefixes.substr(power - 1, 1))) continue;
    const bool binary = text.size() > 1 && (text[1] == 'i' || text[1] == 'I');
    const u64 base = binary ? 1024 : 1000;
    const std::string_view rest = text.substr(binary ? 2 : 1);
    const bool capital = text[0] >= 'A' && text[0] <= 'Z';
    UnitName out{text, power_of(base, power), 1, base, power};
    if (rest == "B" || (rest == "b" && !capital) || same_letters(rest, "byte") || same_letters(rest, "bytes") ||
        (rest == "b" && binary)) {
      return out;
    }
    if (rest == "b" || same_letters(rest, "bit") || same_letters(rest, "bits")) {
      out.denominator = 8;
      return out;
    }
  }
  return std::nullopt;
}

/// A number in billionths.
Result<Wide> read_number(const Value& value) {
  if (const auto whole = json::to_whole(value, "check.value", 0, kMaxExact)) return Wide{*whole} * kOne;
  constexpr Fraction kMost{~u64{0}};
  const auto fraction = json::to_fraction(value, "check.value", {0}, kMost);
  if (!fraction) return std::unexpected(fraction.error());
  return Wide{fraction->billionths};
}

/// Whether `answer` billionths are as near to `value` as the tolerance asks for.
bool matches(Wide answer, Wide value, Tolerance tolerance) noexcept {
  const Wide scaled = value * kOne;
  const Wide apart = tolerance.of(value) * kOne;
  return answer + apart >= scaled && answer <= scaled + apart;
}

struct Verdict {
  bool right = false;
  std::vector<Label> diagnoses;
};

/// What a number without its unit, or with one of the other base, would have meant.
void diagnose_units(const Question& question, Wide number, const UnitName& unit, Verdict& verdict) {
  if (unit_of(question.scene.kind) != Unit::bytes) return;
  const auto is_right = [&](u64 factor) {
    return number <= (~Wide{0} >> 1) / factor && matches(number * factor, question.value, question.tolerance);
  };
  if (unit.base != 0 && unit.denominator == 1) {
    const u64 other = unit.base == 1000 ? 1024 : 1000;
    if (is_right(power_of(other, unit.power))) verdict.diagnoses.push_back("gb_for_gib");
    return;
  }
  if (unit.base != 0 && is_right(unit.numerator)) verdict.diagnoses.push_back("bits_for_bytes");
  if (!unit.name.empty()) return;
  for (const u64 base : {1000u, 1024u}) {
    for (unsigned power = 1; power <= 4; ++power) {
      if (!is_right(power_of(base, power))) continue;
      verdict.diagnoses.push_back("unit_missing");
      return;
    }
  }
}

Result<std::string> check(const std::vector<Question>& questions, const Value& asked) {
  const Path top;
  const Path here{&top, "check"};
  std::optional<Error> error;
  ObjectReader in(asked, here, error);
  if (!asked.is(json::Kind::object)) in.refuse_kind("", asked, "an object");
  const auto index = static_cast<std::size_t>(in.whole("question", 0, 0, questions.size() - 1));
  if (error) return std::unexpected(std::move(*error));
  const Question& question = questions[index];
  const Unit unit = unit_of(question.scene.kind);
  const auto mistakes = mistakes_of(question.scene, question.value);

  Verdict verdict;
  Writer out;
  out.begin_object().key("question").number(u64{index});
  const auto diagnose = [&](auto&& fits) {
    for (const auto& wrong : mistakes) {
      const bool known = std::ranges::find(verdict.diagnoses, wrong.code) != verdict.diagnoses.end();
      if (!verdict.right && !known && fits(wrong.value)) verdict.diagnoses.push_back(wrong.code);
    }
  };
  if (unit == Unit::choice) {
    const auto choices = choices_of(question.scene);
    const std::string_view chosen = in.text("choice", "");
    const auto place = std::ranges::find(choices, chosen);
    if (place == choices.end()) {
      in.refuse(ErrorCode::unknown_id, "choice", "is one of the question's choices");
      return std::unexpected(std::move(*error));
    }
    const Wide position = static_cast<u64>(place - choices.begin());
    verdict.right = position == question.value;
    diagnose([&](Wide wrong) { return wrong == position; });
    out.key("choice").text(chosen);
  } else {
    const Value* const given = in.member("value");
    if (given == nullptr) in.refuse(ErrorCode::missing, "value", "is needed: a number");
    const std::string_view typed = in.text("unit", "");
    if (error) return std::unexpected(std::move(*error));
    const auto number = read_number(*given);
    if (!number) return std::unexpected(number.error());
    const auto named = read_unit(typed, unit);
    if (!named) {
      in.refuse(
          ErrorCode::unknown_id, "unit",
          unit == Unit::bytes ? "is one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, bits" : "is not one for a count");
      return std::unexpected(std::move(*error));
    }
    const Wide most = Wide{kMaxExact} * kOne;
    if (*number > most / named->numerator) {
      in.refuse(ErrorCode::out_of_range, "value", Text() << "comes to more than " << kMaxExact);
      return std::unexpected(std::move(*error));
    }
    const Wide answer = *number * named->numerator / named->denominator;
    verdict.right = matches(answer, question.value, question.tolerance);
    if (!verdict.right) diagnose_units(question, *number, *named, verdict);
    // What is near comes before what an interview's tolerance takes in.
    for (const Tolerance tolerance : {tolerance_of(question.scene.kind, false), question.tolerance}) {
      diagnose([&](Wide wrong) { return matches(answer, wrong, tolerance); });
    }
    out.key("value").decimal(answer / 1000);
    write_readings(out, unit, answer / kOne);
  }
  out.key("verdict").text(verdict.right ? "right" : "wrong").key("diagnoses").begin_array();
  for (const Label code : verdict.diagnoses) out.text(code);
  out.end_array().end_object();
  return out.take();
}

std::vector<Kind> default_topics(u64 level) {
  const std::size_t count = level == 1 ? 4 : level == 2 ? 8 : std::size(kQuizKinds);
  return {std::begin(kQuizKinds), std::begin(kQuizKinds) + count};
}

Result<std::string> answer(const Value& asked) {
  const Path top;
  std::optional<Error> error;
  ObjectReader root(asked, top, error);
  if (!asked.is(json::Kind::object)) {
    return fail(ErrorCode::wrong_type, "request", Text() << json::describe(asked) << " is not accepted: an object is");
  }
  const u64 seed = root.whole("seed", 1, 0, kMaxExact);
  const u64 level = root.whole("level", 2, 1, 3);
  std::vector<Kind> topics;
  if (const Value* const list = root.member("topics"); list != nullptr && list->is(json::Kind::array)) {
    for (const auto& one : *list) {
      const auto known = std::ranges::find_if(kQuizKinds, [&](Kind kind) { return one.text == kind_id(kind); });
      if (!one.is(json::Kind::string) || known == std::end(kQuizKinds)) {
        Text message;
        message << "has " << json::describe(one) << "; these are known:";
        for (const Kind kind : kQuizKinds) message << (kind == kQuizKinds[0] ? " " : ", ") << kind_id(kind);
        root.refuse(ErrorCode::unknown_id, "topics", message);
        break;
      }
      topics.push_back(*known);
    }
  } else if (list != nullptr) {
    root.refuse_kind("topics", *list, "a list of kinds of questions");
  }
  if (topics.empty()) topics = default_topics(level);
  const u64 count = root.whole("count", topics.size(), 1, kMostQuestions);
  const bool interview = root.truth("interview", false);
  if (error) return std::unexpected(std::move(*error));

  const auto questions = interview ? draw_interview(seed) : draw_questions(seed, count, level, topics);
  if (const Value* const checked = root.member("check"); checked != nullptr) return check(questions, *checked);
  Writer out;
  out.begin_object().key("seed").number(seed).key("level").number(level).key("questions").begin_array();
  for (const auto& question : questions) write_question(out, question);
  out.end_array().end_object();
  return out.take();
}

}  // namespace

std::string quiz_json(std::string_view text) {
  const auto document = json::Document::parse(text, "request", kMaxRequestBytes);
  if (!document) return error_json(document.error());
  const auto answered = answer(document->root());
  return answered ? *answered : error_json(answered.error());
}

}  // namespace kvcap
