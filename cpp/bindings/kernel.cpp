// The core kernel for pages: JSON text in, JSON text out. Nothing is computed here. embind, which binds the full
// kernel, would be an eighth of all that a page loads first; for two functions of texts kernel.mjs is enough.
#include <cstddef>

#include "arena.hpp"
#include "kvcap/catalogue.hpp"
#include "kvcap/plan.hpp"

namespace {

std::string_view request;
std::string_view answer;

/// The answer stays in the arena until the next call.
const std::string_view* keep(std::string_view text) {
  answer = text;
  return &answer;
}

}  // namespace

/// Begins a call: room for a request of that many bytes. The answer before is gone.
extern "C" [[clang::export_name("begin")]] char* begin(std::size_t size) {
  kvcap_binding::clear_arena();
  char* const room = new char[size];
  request = {room, size};
  return room;
}

/// Address and size of the answer, two words.
extern "C" [[clang::export_name("plan")]] const std::string_view* plan() {
  return keep(kvcap::plan_json(request, kvcap::textbook_features()));
}

extern "C" [[clang::export_name("catalogue")]] const std::string_view* catalogue() {
  kvcap_binding::clear_arena();
  return keep(kvcap::catalogue_json(kvcap::textbook_features()));
}
