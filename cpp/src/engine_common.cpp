#include "engine_common.hpp"

#include <algorithm>

namespace kvcap {

Wide saturating(Wide a, Wide b) noexcept {
  constexpr Wide kTooMuch = Wide{1} << 100;
  Wide product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMuch : std::min(product, kTooMuch);
}

void add_gap(Reservation& to, Label code, Wide bytes) {
  if (bytes == 0) return;
  for (auto& gap : to.gaps) {
    if (std::string_view(gap.code) == code) {
      gap.bytes += bytes;
      gap.low = gap.high = gap.bytes;
      return;
    }
  }
  to.gaps.push_back({code, bytes, bytes, bytes, to.reserved_confidence});
}

MemoryPart part_of(const Options& options, Label option, Label code, const Estimate& estimate) {
  if (options.given(option)) {
    const Wide bytes = options.whole(option);
    return {code, bytes, bytes, bytes, Confidence::exact};
  }
  return {code, estimate.bytes, estimate.low, estimate.high, Confidence::estimate};
}

std::optional<Error> check_pool(const EngineInput& in, Label option) {
  const Wide most = memory_range(in).high;
  if (!in.options.given(option) || in.options.whole(option) <= most) return std::nullopt;
  Text field;
  field << "options." << option;
  Text message;
  message << digits(in.options.whole(option)) << " is more than the GPU's memory; at most " << digits(most)
          << " is accepted";
  return Error{ErrorCode::out_of_range, field, message};
}

std::optional<Error> check_other_inputs(const EngineInput& in) {
  const auto reads_other = [](const LayerRun& run) { return run.kind == LayerKind::cross && run.source_tokens != 0; };
  if (std::ranges::none_of(in.model.layers, reads_other)) return std::nullopt;
  return Error{
      ErrorCode::unsupported, "model",
      "keeps rows of another input (cross-attention), of which this engine has no rule here; vllm and llama.cpp "
      "have"};
}

void note_copies(const EngineInput& in, Reservation& to) {
  const u64 t = in.deployment.tensor_parallel;
  if (t <= in.deployment.context_parallel) return;
  bool heads_noted = false;
  bool latent_noted = false;
  for (const auto& run : in.model.layers) {
    if (run.latent_width != 0 && !latent_noted) {
      latent_noted = true;
      to.notes.push_back({"latent_on_each_gpu", {{"gpus", digits(t)}}});
    }
    if (run.kv_heads != 0 && run.kv_heads < t && !heads_noted) {
      heads_noted = true;
      to.notes.push_back(
          {"heads_copied",
           {{"kv_heads", digits(run.kv_heads)}, {"gpus", digits(t)}, {"copies", digits(t / run.kv_heads)}}});
    }
  }
}

void list_ranks(const EngineInput& in, Reservation& to) {
  const u64 t = in.deployment.tensor_parallel;
  const u64 stages = in.deployment.pipeline_parallel;
  const std::vector<LayerRun> merged = merge_runs(in.model.layers);
  for (u64 gpu = 0; gpu < std::min(t * stages, kMostRanks); ++gpu) {
    GpuShare rank;
    rank.gpu = gpu;
    rank.stage = gpu / t;
    const std::vector<LayerRun> held = stage_runs(merged, stages, rank.stage);
    for (const auto& run : held) {
      if (run.kind == LayerKind::shared || run.kind == LayerKind::none) continue;
      Share share{.kind = run.kind, .layers = run.count};
      if (run.kv_heads != 0) {
        share.of_heads = run.kv_heads;
        share.heads = heads_per_gpu(run.kv_heads, t);
        share.first_head = gpu % t * run.kv_heads / t;
        share.copies = std::max<u64>(t / run.kv_heads, 1);
      }
      if (run.latent_width != 0) share.copies = t;
      rank.shares.push_back(share);
    }
    rank.kv_bytes_per_sequence =
        ceil_div<Wide>(sequence_cost(held, in.kv, t, in.context).total, in.deployment.context_parallel);
    to.ranks.push_back(std::move(rank));
  }
  const auto fullest = std::ranges::max_element(to.ranks, {}, &GpuShare::kv_bytes_per_sequence);
  const Wide most = fullest->kv_bytes_per_sequence;
  for (auto& rank : to.ranks) rank.fullest = rank.kv_bytes_per_sequence == most;

  u64 layers = 0;
  for (const auto& run : merged) layers += run.count;
  if (in.model.layer_count != 0) layers = in.model.layer_count;
  if (stages > layers) {
    to.notes.push_back({"gpus_without_layers",
                        {{"gpus", digits(Wide{stages - layers} * t * in.deployment.data_parallel)},
                         {"layers", digits(layers)},
                         {"stages", digits(stages)}}});
  }
}

u64 program_memory(const EngineInput& in) noexcept { return in.deployment.memory(false).bytes.count; }

MemoryRange memory_range(const EngineInput& in) noexcept {
  const GpuMemory memory = in.deployment.memory(false);
  MemoryRange range{memory.bytes.count, memory.bytes.count};
  if (memory.basis == MemoryBasis::runtime) {
    range.high = std::max(range.high, Wide{in.deployment.gpu->runtime_mib_max} << 20);
  }
  return range;
}

void fill_blocks(const EngineInput& in, const BlockPlan& plan, Reservation& to) {
  const Wide replicas = in.deployment.data_parallel;
  const auto blocks_in = [&](Wide pool) {
    return plan.rounds_up ? ceil_div(pool, plan.block_bytes) : pool / plan.block_bytes;
  };
  const Wide blocks = to.kv_blocks ? *to.kv_blocks : blocks_in(to.pool_bytes_per_gpu);
  to.kv_blocks = blocks;
  to.pool_bytes = to.pool_bytes_per_gpu * in.deployment.gpus;
  to.concurrency_num = blocks * replicas;
  to.concurrency_den = plan.blocks_per_sequence;
  to.sequences = blocks / plan.blocks_per_sequence * replicas;
  to.sequences_low = to.sequences_high = to.sequences;
  if (to.pool_low_per_gpu != to.pool_high_per_gpu) {
    to.sequences_low = blocks_in(to.pool_low_per_gpu) / plan.blocks_per_sequence * replicas;
    to.sequences_high = blocks_in(to.pool_high_per_gpu) / plan.blocks_per_sequence * replicas;
  }
  if (!in.weight_bytes && to.pool_bytes_per_gpu == 0) return;

  if (blocks == blocks_in(to.pool_bytes_per_gpu)) {
    Step& step = to.derivation.add("kv_blocks", blocks, "blocks");
    step.terms = {term("", to.pool_bytes_per_gpu, "bytes_left_per_gpu"),
                  term("÷", plan.block_bytes, "bytes_per_block")};
    step.rounded_down = !plan.rounds_up;
  }
  Step& fit = to.derivation.add("sequences", to.sequences, "conversations");
  fit.terms = {term("", blocks, "blocks"), term("÷", plan.blocks_per_sequence, "blocks_per_conversation")};
  if (replicas > 1) fit.terms.push_back(term("×", replicas, "copies_of_the_model"));
  fit.rounded_down = true;
}

}  // namespace kvcap
