// The kernel for pages: JSON text in, JSON text out. Nothing is computed here.
#include <emscripten/bind.h>

#include "kvcap/catalogue.hpp"
#include "kvcap/plan.hpp"

EMSCRIPTEN_BINDINGS(kvcap) {
  emscripten::function(
      "plan", +[](const std::string& request) { return kvcap::plan_json(request, kvcap::textbook_features()); });
  emscripten::function("catalogue", +[] { return kvcap::catalogue_json(kvcap::textbook_features()); });
}
