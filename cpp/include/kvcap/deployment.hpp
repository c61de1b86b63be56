// GPUs, their memory, and how a model is split over them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvcap/footprint.hpp"

namespace kvcap {

/// One accelerator and its three sizes, never mixed: sold (10^9 bytes each "GB"), what the vendor's tool prints, and
/// the total that a program gets. 0 = nobody has seen it.
struct Gpu {
  std::string_view id;
  std::string_view vendor;
  std::string_view name;
  std::string_view kind;  ///< "datacenter", "consumer", "workstation", "unified", "tpu", …
  u64 sold_gb_thousandths = 0;
  u64 driver_mib = 0;
  u64 runtime_mib = 0;      ///< lowest total seen by a program
  u64 runtime_mib_max = 0;  ///< highest, by driver branch; equal to the lowest where only one is known
  u32 year = 0;
};

[[nodiscard]] std::span<const Gpu> gpus() noexcept;
[[nodiscard]] const Gpu* find_gpu(std::string_view id) noexcept;

/// Which of the sizes an answer used.
enum class MemoryBasis : unsigned char { sold, driver, runtime, stated };
[[nodiscard]] Label basis_name(MemoryBasis basis) noexcept;

struct GpuMemory {
  Bytes bytes;
  MemoryBasis basis = MemoryBasis::sold;
};

struct Deployment {
  Name gpu_id;  ///< empty when the memory was stated in bytes
  Name gpu_name;
  const Gpu* gpu = nullptr;
  std::optional<Bytes> stated_memory;
  u64 gpus = 1;
  u64 tensor_parallel = 1;
  u64 pipeline_parallel = 1;
  u64 data_parallel = 1;
  u64 context_parallel = 1;  ///< ranks of tensor parallelism that a token's copies are dealt to instead (vLLM's DCP)

  /// Memory of one GPU as the textbook reads it (sold figure) or as engines do (runtime, else driver, else sold).
  [[nodiscard]] GpuMemory memory(bool textbook) const noexcept;
};

/// Equal runs put together, in order of first appearance.
[[nodiscard]] List<LayerRun> merge_runs(std::span<const LayerRun> runs);

/// The layers that pipeline stage `stage` of `stages` holds: every kind is dealt evenly, since the kinds of a mixed
/// model alternate; what is over goes to the first stages, so that stage 0 is the fullest. Takes merged runs.
[[nodiscard]] List<LayerRun> stage_runs(std::span<const LayerRun> merged, u64 stages, u64 stage);

}  // namespace kvcap
