#include <array>

#include "kvcap/deployment.hpp"
#include "table.hpp"

namespace kvcap {
namespace {

constexpr std::string_view kTable =
#ifdef KVCAP_CORE_KERNEL
#include "gpus_first_data.inc"
#else
#include "gpus_data.inc"
#endif
    ;
struct Column {
  enum : u32 {
    vendor,
    kind,
    id,  // from here on empty cells are empty
    name,
    sold,
    count
  };
};
constexpr u32 kCount = row_count(kTable, Column::count);

/// What only engines look at.
constexpr std::string_view kSizes =
#include "gpu_sizes_data.inc"
    ;
struct SizeColumn {
  enum : u32 { driver, runtime, runtime_max, year, count };
};

constexpr u32 kIdRoom = 64;  // as the generator checks

struct Table {
  std::array<Gpu, kCount> rows{};
  char texts[kCount * kIdRoom]{};

  Table() noexcept {
    TableReader cells(kTable, Column::count, Column::id);
    TextPool pool(texts);
    for (auto& gpu : rows) {
      cells.next_row();
      gpu.name = cells.text(Column::name);
      gpu.id = pool.id(cells.text(Column::id), gpu.name);
      gpu.vendor = cells.text(Column::vendor) == "-" ? "" : cells.text(Column::vendor);
      gpu.kind = cells.text(Column::kind);
      gpu.sold_gb_thousandths = cells.whole(Column::sold) * 1000;
    }
    if constexpr (!kCoreKernel) {
      TableReader sizes(kSizes, SizeColumn::count, 0);
      for (auto& gpu : rows) {
        sizes.next_row();
        gpu.driver_mib = sizes.whole(SizeColumn::driver);
        gpu.runtime_mib = sizes.whole(SizeColumn::runtime);
        gpu.runtime_mib_max = sizes.whole(SizeColumn::runtime_max);
        gpu.year = sizes.count(SizeColumn::year);
      }
    }
  }
};

}  // namespace

std::span<const Gpu> gpus() noexcept {
  static const Table table;
  return table.rows;
}

const Gpu* find_gpu(std::string_view id) noexcept {
  for (const auto& gpu : gpus()) {
    if (gpu.id == id) return &gpu;
  }
  return nullptr;
}

}  // namespace kvcap
