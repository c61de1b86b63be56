// What several engines' rules share. Private to the core.
#pragma once

#include "kvcap/engine.hpp"
#include "kvcap/estimates.hpp"

namespace kvcap {

/// a × b, or a number that no answer accepts where that would wrap.
[[nodiscard]] Wide saturating(Wide a, Wide b) noexcept;

/// Adds bytes to the gap of that cause; nothing for 0.
void add_gap(Reservation& to, Label code, Wide bytes);

/// The size of a part of the budget: what the option states (exact), or the estimate.
[[nodiscard]] MemoryPart part_of(const Options& options, Label option, Label code, const Estimate& estimate);

/// Refuses a pool that the option states as larger than one GPU's memory.
[[nodiscard]] std::optional<Error> check_pool(const EngineInput& in, Label option);

/// Refuses layers that keep rows of another input, as an encoder's, for an engine that has no rule here for where they
/// lie: a count that left them out would promise more conversations than there is memory for.
[[nodiscard]] std::optional<Error> check_other_inputs(const EngineInput& in);

/// Notes that GPUs keep copies: KV heads past their count, and latent rows, which tensor parallelism does not divide.
void note_copies(const EngineInput& in, Reservation& to);

/// Lists what each GPU of a replica holds: stages take layers, tensor parallel GPUs whole heads or copies of them.
/// Notes the GPUs of stages that are left without a layer.
inline constexpr u64 kMostRanks = 64;
void list_ranks(const EngineInput& in, Reservation& to);

/// Bytes of one GPU's memory as engines read it: the total that a program gets, or what is nearest to it.
[[nodiscard]] u64 program_memory(const EngineInput& in) noexcept;

/// Lowest and highest total that a program may see of this GPU.
struct MemoryRange {
  Wide low, high;
};
[[nodiscard]] MemoryRange memory_range(const EngineInput& in) noexcept;

/// Completes what follows from the pool, the cost of a block and the blocks that one conversation takes: blocks, whole
/// conversations with their range, concurrency, and their steps. Ranges come from the pool's.
struct BlockPlan {
  Wide block_bytes;  ///< of one block on the fullest GPU
  Wide blocks_per_sequence;
  bool rounds_up = false;  ///< TensorRT-LLM: the last block may pass the budget
};
void fill_blocks(const EngineInput& in, const BlockPlan& plan, Reservation& to);

}  // namespace kvcap
