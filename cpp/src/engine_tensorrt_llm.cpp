// TensorRT-LLM. The pool is a share of the memory that is free once the engine is loaded, rounded up to whole blocks
// (engine_rules 7). Its KvCacheConfig names the options.
#include <algorithm>
#include <array>

#include "engine_common.hpp"

namespace kvcap {
namespace {

constexpr u64 kSmallerBlocks =
    17'000;  // 0.17: blocks of 32 tokens, 64 before (records TR005, TR006, issue 2268 at 0.13)

constexpr std::array kOptions = {
    OptionSpec{.name = "free_gpu_memory_fraction",
               .aliases = "kv_cache_free_gpu_mem_fraction kv_cache_free_gpu_memory_fraction",
               .kind = OptionKind::fraction,
               .fallback = 900'000'000,
               .has_fallback = true,
               .min = 1,
               .max = Fraction::kOne,
               .choices = "",
               .unit = "",
               .offered = true,
               .source = "tensorrt_llm.llmapi.KvCacheConfig: 0.9"},
    OptionSpec{.name = "tokens_per_block",
               .aliases = "block_size",
               .kind = OptionKind::whole,
               .fallback = 32,
               .has_fallback = true,
               .min = 1,
               .max = 1 << 20,
               .choices = "",
               .unit = "tokens",
               .offered = true,
               .source = "tensorrt_llm.llmapi.KvCacheConfig: 32; 64 before 0.17"},
    OptionSpec{.name = "version",
               .aliases = "engine_version",
               .kind = OptionKind::version,
               .fallback = 0,
               .has_fallback = false,
               .min = 0,
               .max = kMaxExact,
               .choices = "",
               .unit = "",
               .offered = true,
               .source = "the start-up log's first line; the newest rules where it is not given"},
    OptionSpec{.name = "kv_memory_bytes",
               .aliases = "max_gpu_total_bytes",
               .kind = OptionKind::bytes,
               .fallback = 0,
               .has_fallback = false,
               .min = 0,
               .max = kMaxExact,
               .choices = "",
               .unit = "bytes",
               .offered = false,
               .source = "the pool on each GPU, as the log says what it allocated"},
    OptionSpec{.name = "free_memory_bytes",
               .aliases = "",
               .kind = OptionKind::bytes,
               .fallback = 0,
               .has_fallback = false,
               .min = 0,
               .max = kMaxExact,
               .choices = "",
               .unit = "bytes",
               .offered = false,
               .source = "the log's available memory when it sizes the pool"},
};

Result<Reservation> reserve(const EngineInput& in) {
  if (auto refused = check_tensor_parallel(in)) return std::unexpected(std::move(*refused));
  for (const Label option : {"kv_memory_bytes", "free_memory_bytes"}) {
    if (auto refused = check_pool(in, option)) return std::unexpected(std::move(*refused));
  }
  if (auto refused = check_other_inputs(in)) return std::unexpected(std::move(*refused));
  const u64 version = in.options.given("version") ? in.options.whole("version") : kMaxExact;
  u64 block_tokens = in.options.whole("tokens_per_block");
  if (!in.options.given("tokens_per_block") && version < kSmallerBlocks) block_tokens = 64;

  Reservation out;
  out.reserved_confidence = Confidence::engine_rule;
  const Wide t = in.deployment.tensor_parallel;
  const u64 stages = in.deployment.pipeline_parallel;
  const Wide blocks = ceil_div<Wide>(in.context.count, block_tokens);
  Wide block_bytes = 0;
  bool windows = false;
  for (const auto& run : merge_runs(in.model.layers)) {
    const Wide layers = run.count * t;
    const Wide written = layer_bytes(run, in.kv, in.deployment.tensor_parallel, in.context) * layers;
    if (run.kind == LayerKind::recurrent) {
      out.reserved_per_sequence += written;  // a slot of its own, beside the blocks
      continue;
    }
    const Wide token = row_of(run, in.kv, in.deployment.tensor_parallel).sum();
    if (token == 0) continue;
    const bool bounded = is_window(run);
    windows = windows || bounded;
    const Wide rows_in_block =
        run.kind == LayerKind::compressed ? ceil_div<Wide>(block_tokens, run.tokens_per_entry) : Wide{block_tokens};
    const Wide layer_blocks = run.kind == LayerKind::cross ? 0 : blocks;
    const Wide held = saturating(saturating(rows_in_block * token, layer_blocks), layers);
    const Wide rows = rows_kept(run, in.context);
    const Wide beyond = bounded ? (in.context.count - rows) * token * layers : 0;
    out.reserved_per_sequence += held;
    add_gap(out, "full_length", beyond);
    add_gap(out, "blocks", held - beyond - written);
    block_bytes += rows_in_block * token * ceil_div<u64>(run.count, stages);
  }
  if (block_bytes == 0) {
    return fail(ErrorCode::unsupported, "model", "keeps no rows, so TensorRT-LLM pages nothing for it");
  }

  const Fraction share = in.options.fraction("free_gpu_memory_fraction");
  const Wide memory = program_memory(in);
  if (in.options.given("kv_memory_bytes")) {
    out.pool_bytes_per_gpu = in.options.whole("kv_memory_bytes");
    out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
  } else if (in.options.given("free_memory_bytes")) {
    out.pool_confidence = Confidence::engine_rule;
    out.pool_bytes_per_gpu = share.of(in.options.whole("free_memory_bytes"));
    out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
    out.derivation.add("kv_memory_bytes_per_gpu", out.pool_bytes_per_gpu, "bytes").terms = {
        term("", in.options.whole("free_memory_bytes"), "free_bytes"), {"×", share.billionths / 1000, "usable_share"}};
  } else {
    out.pool_confidence = Confidence::estimate;
    const PeakInput peak{.model = in.model,
                         .version = version,
                         .memory_bytes = static_cast<u64>(memory),
                         .tensor_parallel = in.deployment.tensor_parallel};
    const Estimate runtime = tensorrt_llm_runtime(peak);
    const Wide weights = in.weight_bytes_per_gpu.count;
    const auto pool = [&](Wide total, Wide beside) { return share.of(without<Wide>(total, weights + beside)); };
    out.weights_fit = memory > weights;
    out.parts.push_back({"runtime", runtime.bytes, runtime.low, runtime.high, Confidence::estimate});
    out.pool_bytes_per_gpu = pool(memory, runtime.bytes);
    out.pool_low_per_gpu = pool(memory, runtime.high);
    out.pool_high_per_gpu = pool(memory_range(in).high, runtime.low);
    if (out.pool_bytes_per_gpu != 0 && in.weight_bytes) {
      const Wide free = memory - weights - runtime.bytes;
      out.derivation.add("free_bytes", free, "bytes").terms = {
          term("", memory, "bytes_per_gpu"), term("−", weights, "weight_bytes"), term("−", runtime.bytes, "runtime")};
      out.derivation.add("kv_memory_bytes_per_gpu", out.pool_bytes_per_gpu, "bytes").terms = {
          term("", free, "free_bytes"), {"×", share.billionths / 1000, "usable_share"}};
    }
  }
  fill_blocks(in, {block_bytes, blocks, true}, out);
  out.kv_tokens = *out.kv_blocks * block_tokens;
  out.block_tokens = block_tokens;
  note_copies(in, out);
  list_ranks(in, out);
  if (windows) out.notes.push_back({"windows_full_length", {}});
  return out;
}

}  // namespace

const EngineRules& tensorrt_llm_rules() noexcept {
  static constexpr EngineRules kRules{EngineId::tensorrt_llm, "tensorrt-llm", kOptions, reserve};
  return kRules;
}

}  // namespace kvcap
