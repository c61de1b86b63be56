// The kernel that also holds the engines' rules and reads models that people bring along.
#include <emscripten/bind.h>

#include "kvcap/catalogue.hpp"
#include "kvcap/import.hpp"
#include "kvcap/log.hpp"
#include "kvcap/paging.hpp"
#include "kvcap/plan.hpp"
#include "kvcap/quiz.hpp"
#include "kvcap/wish.hpp"

namespace {

/// A count from JavaScript; anything else is 0, which the core refuses.
kvcap::u64 whole(double number) {
  return number >= 0 && number <= static_cast<double>(kvcap::kMaxExact) ? static_cast<kvcap::u64>(number) : 0;
}

}  // namespace

EMSCRIPTEN_BINDINGS(kvcap) {
  emscripten::function(
      "plan", +[](const std::string& request) { return kvcap::plan_json(request, kvcap::full_features()); });
  emscripten::function("catalogue", +[] { return kvcap::catalogue_json(kvcap::full_features()); });
  // `bytes` is the start of a file, given as a Uint8Array; it is copied into the module's memory once.
  emscripten::function(
      "importModel",
      +[](const std::string& kind, const std::string& bytes, double file_bytes, const std::string& config) {
        return kvcap::import_json(kind, std::as_bytes(std::span(bytes)), whole(file_bytes), config);
      });
  emscripten::function(
      "readLog", +[](const std::string& text) { return kvcap::read_log_json(text, kvcap::full_features()); });
  emscripten::function("paging", +[](const std::string& question) { return kvcap::paging_json(question); });
  emscripten::function("quiz", +[](const std::string& question) { return kvcap::quiz_json(question); });
  emscripten::function(
      "wish", +[](const std::string& question) { return kvcap::wish_json(question, kvcap::full_features()); });
}
