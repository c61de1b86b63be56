#include "kvcap/deployment.hpp"

#include <algorithm>
#include <utility>

namespace kvcap {

Label basis_name(MemoryBasis basis) noexcept {
  switch (basis) {
    case MemoryBasis::sold: break;
    case MemoryBasis::driver: return "driver";
    case MemoryBasis::runtime: return "runtime";
    case MemoryBasis::stated: return "stated";
  }
  return "sold";
}

GpuMemory Deployment::memory(bool textbook) const noexcept {
  if (stated_memory) return {*stated_memory, MemoryBasis::stated};
  constexpr u64 kMiB = 1 << 20;
  if (!textbook && gpu->runtime_mib != 0) return {{gpu->runtime_mib * kMiB}, MemoryBasis::runtime};
  if (!textbook && gpu->driver_mib != 0) return {{gpu->driver_mib * kMiB}, MemoryBasis::driver};
  return {{gpu->sold_gb_thousandths * 1'000'000}, MemoryBasis::sold};
}

List<LayerRun> merge_runs(std::span<const LayerRun> runs) {
  List<LayerRun> merged;
  for (LayerRun run : runs) {
    const u32 count = std::exchange(run.count, 0);
    const auto same = std::ranges::find_if(merged, [&](LayerRun other) {
      other.count = 0;
      return other == run;
    });
    if (same != merged.end()) {
      same->count += count;
    } else {
      run.count = count;
      merged.push_back(run);
    }
  }
  return merged;
}

List<LayerRun> stage_runs(std::span<const LayerRun> merged, u64 stages, u64 stage) {
  List<LayerRun> held;
  for (LayerRun run : merged) {
    run.count = static_cast<u32>(run.count / stages + (stage < run.count % stages ? 1 : 0));
    if (run.count != 0) held.push_back(run);
  }
  return held;
}

}  // namespace kvcap
