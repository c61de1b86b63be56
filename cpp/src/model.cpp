#include "kvcap/model.hpp"

#include <array>

namespace kvcap {
namespace {

constexpr std::array<Label, 9> kKindNames = {"full",      "window", "chunked", "latent", "compressed",
                                             "recurrent", "shared", "none",    "cross"};

}  // namespace

Label kind_name(LayerKind kind) noexcept { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<LayerKind> find_kind(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (name == kKindNames[i]) return static_cast<LayerKind>(i);
  }
  return std::nullopt;
}

}  // namespace kvcap
