#include <algorithm>

#include "kvcap/deployment.hpp"
#include "table.hpp"

namespace kvcap {
namespace {

constexpr std::string_view kRows =
#include "gpus_data.inc"
    ;

std::vector<Gpu> read_rows() {
  std::vector<Gpu> rows;
  rows.reserve(static_cast<std::size_t>(std::ranges::count(kRows, '\n')));
  for (TableReader field(kRows); !field.done();) {
    Gpu gpu;
    gpu.id = field.text();
    gpu.vendor = field.text();
    gpu.name = field.text();
    gpu.kind = field.text();
    gpu.sold_gb_thousandths = field.whole() * 1000;
    gpu.driver_mib = field.whole();
    gpu.runtime_mib = field.whole();
    gpu.runtime_mib_max = field.whole();
    gpu.year = field.count();
    rows.push_back(gpu);
  }
  return rows;
}

}  // namespace

std::span<const Gpu> gpus() noexcept {
  static const std::vector<Gpu> rows = read_rows();
  return rows;
}

const Gpu* find_gpu(std::string_view id) noexcept {
  for (const auto& gpu : gpus()) {
    if (gpu.id == id) return &gpu;
  }
  return nullptr;
}

}  // namespace kvcap
