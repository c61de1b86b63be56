#include "kvcap/deployment.hpp"

#include <algorithm>
#include <utility>
#include <vector>

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

namespace {

/// Of a run's shape, whatever its count (FNV-1a over the fields that differ from run to run).
[[maybe_unused]] u32 hash_of(const LayerRun& run) noexcept {
  u32 hash = 0x811C'9DC5;
  for (const u32 field : {run.kv_heads, run.key_width, run.value_width, run.latent_width, run.window_tokens,
                          run.tokens_per_entry, run.source_tokens, static_cast<u32>(run.state_values)}) {
    hash = (hash ^ field) * 0x0100'0193;
  }
  return hash ^ hash >> 15;
}

/// Adds a run to one of the same shape.
bool joins(LayerRun run, LayerRun& other) noexcept {
  const u32 count = std::exchange(run.count, other.count);
  if (run != other) return false;
  other.count += count;
  return true;
}

}  // namespace

List<LayerRun> merge_runs(std::span<const LayerRun> runs) {
  List<LayerRun> merged;
  // The catalogue's models, which are all that the core kernel has, are of a few runs.
  if constexpr (kCoreKernel) {
    for (const auto& run : runs) {
      if (std::ranges::none_of(merged, [&](LayerRun& other) { return joins(run, other); })) merged.push_back(run);
    }
    return merged;
  }
  // Where in `merged` a shape stands, from 1, by its hash: to compare each run with all before it takes seconds for
  // thousands of them.
  std::size_t slots = 4;
  while (slots < 2 * runs.size()) slots *= 2;
  std::vector<u32> places(slots);
  for (const auto& run : runs) {
    std::size_t at = hash_of(run) % slots;
    while (places[at] != 0 && !joins(run, merged[places[at] - 1])) at = (at + 1) % slots;
    if (places[at] != 0) continue;
    merged.push_back(run);
    places[at] = static_cast<u32>(merged.size());
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
