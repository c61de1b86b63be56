// SGLang: at start the pool takes what is free after the weights are loaded, less a share of what was free before
// (python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py). Slots of one token, or of pages; window layers and
// recurrent states have pools of their own.
#include <algorithm>
#include <array>

#include "engine_common.hpp"
#include "kvcap/engine.hpp"
#include "kvcap/estimates.hpp"

namespace kvcap {
namespace {

constexpr u64 kMiB = 1 << 20;

constexpr std::array kOptions = {
    OptionSpec{
        .name = "mem_fraction_static",
        .aliases = "mem-fraction-static",
        .kind = OptionKind::fraction,
        .min = 1'000'000,
        .max = Fraction::kOne,
        .source = "--mem-fraction-static; by version, GPU memory and parallel sizes unless given (server_args.py)"},
    OptionSpec{.name = "max_running_requests",
               .aliases = "max-running-requests",
               .min = 1,
               .max = 1 << 24,
               .unit = "conversations",
               .source = "--max-running-requests; tokens / context × 512 within 2048 and 4096 unless given"},
    OptionSpec{.name = "max_total_tokens",
               .aliases = "max-total-tokens",
               .min = 1,
               .unit = "tokens",
               .offered = false,
               .source = "--max-total-tokens: a smaller pool than memory allows"},
    OptionSpec{.name = "page_size",
               .aliases = "page-size",
               .fallback = 1,
               .has_fallback = true,
               .min = 1,
               .max = 1 << 16,
               .unit = "tokens",
               .source = "--page-size; server_args.py: 1, some attention backends want 64 or 128"},
    OptionSpec{.name = "chunked_prefill_size",
               .aliases = "chunked-prefill-size",
               .min = 1,
               .max = 1 << 24,
               .unit = "tokens",
               .source = "--chunked-prefill-size; 2048 to 16384 by GPU memory unless given"},
    OptionSpec{.name = "cuda_graph_max_bs",
               .aliases = "cuda-graph-max-bs",
               .min = 1,
               .max = 1 << 16,
               .offered = false,
               .source = "--cuda-graph-max-bs; 8 to 512 by GPU memory unless given"},
    OptionSpec{.name = "swa_full_tokens_ratio",
               .aliases = "swa-full-tokens-ratio",
               .kind = OptionKind::fraction,
               .fallback = 800'000'000,
               .has_fallback = true,
               .min = 1'000'000,
               .max = Fraction::kOne,
               .source = "--swa-full-tokens-ratio; server_args.py: 0.8"},
    OptionSpec{.name = "disable_hybrid_swa_memory",
               .aliases = "disable-hybrid-swa-memory",
               .kind = OptionKind::truth,
               .max = 1,
               .source = "--disable-hybrid-swa-memory; window pools since 0.4.10 (pull request 7367)"},
    OptionSpec{.name = "max_mamba_cache_size",
               .aliases = "max-mamba-cache-size",
               .min = 1,
               .max = 1 << 24,
               .unit = "states",
               .source = "--max-mamba-cache-size; by mamba_full_memory_ratio unless given"},
    OptionSpec{.name = "mamba_full_memory_ratio",
               .aliases = "mamba-full-memory-ratio",
               .kind = OptionKind::fraction,
               .fallback = 900'000'000,
               .has_fallback = true,
               .min = 1'000'000,
               .max = 1000 * Fraction::kOne,
               .source = "--mamba-full-memory-ratio; server_args.py: 0.9"},
    OptionSpec{.name = "mamba_ssm_dtype",
               .aliases = "mamba-ssm-dtype",
               .kind = OptionKind::choice,
               .has_fallback = true,
               .max = 3,
               .choices = "auto float32 float16 bfloat16",
               .offered = false,
               .source = "--mamba-ssm-dtype; the model's own unless given"},
    OptionSpec{.name = "disable_radix_cache",
               .aliases = "disable-radix-cache",
               .kind = OptionKind::truth,
               .has_fallback = true,
               .max = 1,
               .source = "--disable-radix-cache; server_args.py: off"},
    OptionSpec{.name = "avail_before_load_bytes",
               .kind = OptionKind::bytes,
               .unit = "bytes",
               .offered = false,
               .source = "\"Load weight begin. avail mem\""},
    OptionSpec{.name = "avail_after_load_bytes",
               .kind = OptionKind::bytes,
               .unit = "bytes",
               .offered = false,
               .source = "\"Load weight end. … avail mem\""},
    OptionSpec{.name = "avail_pool_end_bytes",
               .kind = OptionKind::bytes,
               .unit = "bytes",
               .offered = false,
               .source = "\"Memory pool end. avail mem\": what is free when the pools stand"},
    OptionSpec{.name = "version",
               .aliases = "engine_version",
               .kind = OptionKind::version,
               .offered = false,
               .source = "as in 0.4.6; the newest unless given"},
    OptionSpec{.name = "kv_memory_bytes",
               .kind = OptionKind::bytes,
               .unit = "bytes",
               .offered = false,
               .source = "a known pool on each GPU"},
};

/// Release 0.minor.patch or a later one.
bool since(const Options& options, u64 minor, u64 patch) {
  return !options.given("version") || options.whole("version") >= minor * 1000 + patch;
}

/// Sizes that SGLang chooses by a GPU's memory (pull request 10975).
struct GraphSizes {
  u64 chunked_prefill, graph_batch;
};
GraphSizes graph_sizes(u64 memory_mib, u64 tensor_parallel) {
  const bool narrow = tensor_parallel < 4;
  if (memory_mib < 20 * 1024) return {2048, 8};
  if (memory_mib < 35 * 1024) return {2048, narrow ? u64{24} : 80};
  if (memory_mib < 60 * 1024) return {4096, narrow ? u64{32} : 160};
  if (memory_mib < 160 * 1024) return {8192, narrow ? u64{256} : 512};
  return {16384, 512};
}

/// How many sizes up to `largest` are captured as piecewise graphs: steps of 4, 16, 32, 128 and 256 tokens.
u64 piecewise_graphs(u64 largest) {
  struct Steps {
    u64 first, last, step;
  };
  u64 count = 0;
  for (const Steps s : {Steps{4, 32, 4}, {48, 256, 16}, {288, 512, 32}, {640, 4096, 128}, {4352, largest, 256}}) {
    const u64 last = std::min(s.last, largest);
    if (last >= s.first) count += (last - s.first) / s.step + 1;
  }
  return count;
}

/// MiB that are kept from weights and cache, since 0.4.7.
u64 kept_mib(const EngineInput& in, u64 memory_mib) {
  const u64 tensor = in.deployment.tensor_parallel;
  const u64 parallel = tensor * in.deployment.pipeline_parallel;
  if (!since(in.options, 5, 3)) {
    // Pull request 7054.
    if (memory_mib < 35 * 1024) return 2867 + parallel * 1024 / 10;
    if (memory_mib < 90 * 1024) return 9728 + parallel * 512;
    return memory_mib < 160 * 1024 ? 12288 + parallel * 512 : 32768;
  }
  GraphSizes sizes = graph_sizes(memory_mib, tensor);
  if (in.options.given("chunked_prefill_size")) sizes.chunked_prefill = in.options.whole("chunked_prefill_size");
  if (in.options.given("cuda_graph_max_bs")) sizes.graph_batch = in.options.whole("cuda_graph_max_bs");
  u64 kept = 512 + std::max<u64>(sizes.chunked_prefill, 2048) * 3 / 2 + sizes.graph_batch * 2 + parallel * 128;
  if (since(in.options, 5, 10)) {
    const auto latent = [](const LayerRun& run) { return run.latent_width != 0; };
    kept += 8 * piecewise_graphs(std::ranges::any_of(in.model.layers, latent) ? 2048 : sizes.chunked_prefill);
  }
  return memory_mib > 60 * 1024 ? std::max<u64>(kept, 10 * 1024) : kept;
}

/// --mem-fraction-static where it is not given. Memory as the driver states it; the cut for vision models, which
/// depends on their towers, is left out.
Fraction default_fraction(const EngineInput& in) {
  const Deployment& on = in.deployment;
  const u64 tensor = on.tensor_parallel;
  if (!since(in.options, 4, 7)) {
    const u64 percent = tensor >= 16  ? 79
                        : tensor >= 8 ? since(in.options, 4, 0) ? 81 : 83
                        : tensor >= 4 ? 85
                        : tensor >= 2 ? 87
                                      : 88;
    return {percent * 10'000'000};
  }
  const u64 driver = on.gpu != nullptr ? on.gpu->driver_mib : 0;
  const u64 memory = std::max<u64>(driver != 0 ? driver : program_memory(in) / kMiB, 1);
  const u64 left = without(memory, kept_mib(in, memory));
  return {(left * 1000 + memory / 2) / memory * 1'000'000};
}

/// Models that read images got less, whatever share was asked for, until the cut became a matter of the default alone
/// (model_runner.py; pull request 6881).
Fraction share_of_cut(const EngineInput& in, Fraction share) {
  if (!in.model.multimodal || since(in.options, 4, 9)) return share;
  return {share.billionths / 100 * (since(in.options, 4, 5) ? 90 : 95)};
}

/// Rows of one layer on one GPU. A layer whose K serves as V stores both (Gemma 4), unless the model's rows are latent.
Row stored_row(const EngineInput& in, LayerRun run) {
  const auto latent = [](const LayerRun& other) { return other.latent_width != 0; };
  if (run.kv_heads != 0 && run.value_width == 0 && std::ranges::none_of(in.model.layers, latent)) {
    run.value_width = run.key_width;
  }
  return row_of(run, in.kv, in.deployment.tensor_parallel);
}

/// What one slot costs on a GPU, by pool.
struct Cells {
  Wide full = 0;    ///< bytes of a token in the layers that keep every token
  Wide window = 0;  ///< bytes of a token in window layers with a pool of their own
  Wide state = 0;   ///< bytes of one conversation's recurrent states
};

class Pools {
 public:
  Pools(const EngineInput& in, std::vector<LayerRun> runs)
      : in_(in), runs_(std::move(runs)), page_(in.options.whole("page_size")) {
    const bool has_full = std::ranges::any_of(
        runs_, [&](const LayerRun& run) { return !is_window(run) && stored_row(in_, run).sum() != 0; });
    const bool off = in.options.given("disable_hybrid_swa_memory") ? in.options.truth("disable_hybrid_swa_memory")
                                                                   : !since(in.options, 4, 10);
    own_windows_ = has_full && !off;
    for (const auto& run : runs_) {
      const Wide row = run.count * stored_row(in_, run).sum();
      if (in_window_pool(run)) {
        cells_.window += row;
      } else if (run.kind == LayerKind::recurrent) {
        cells_.state += run.count * state_bytes(run) + run.count * conv_bytes(run);
      } else if (run.kind == LayerKind::compressed) {
        cells_.full += ceil_div<Wide>(row, run.tokens_per_entry);
      } else if (run.kind != LayerKind::cross) {
        cells_.full += row;
      }
    }
  }

  [[nodiscard]] const Cells& cells() const noexcept { return cells_; }
  [[nodiscard]] const std::vector<LayerRun>& runs() const noexcept { return runs_; }
  [[nodiscard]] bool in_window_pool(const LayerRun& run) const noexcept { return own_windows_ && is_window(run); }
  [[nodiscard]] Wide to_page(Wide tokens) const noexcept { return tokens / page_ * page_; }
  [[nodiscard]] Wide up_to_page(Wide tokens) const noexcept { return ceil_div<Wide>(tokens, page_) * page_; }
  [[nodiscard]] u64 page() const noexcept { return page_; }

  [[nodiscard]] Wide conv_bytes(const LayerRun& run) const noexcept {
    LayerRun conv = run;
    conv.state_values = 0;
    return state_of(conv, in_.deployment.tensor_parallel);
  }
  [[nodiscard]] Wide state_bytes(const LayerRun& run) const noexcept {
    LayerRun state = run;
    state.conv_values = 0;
    return state_of(state, in_.deployment.tensor_parallel);
  }

  /// Slots of a conversation in a window pool: rows that left the window are freed by pages.
  [[nodiscard]] Wide window_slots(const LayerRun& run) const noexcept {
    return up_to_page(std::min<Wide>(Wide{run.window_tokens} + page_, in_.context.count));
  }

  /// Allocations that the pools are made of: K and V of each layer have one each.
  [[nodiscard]] Wide buffers() const {
    Wide count = 0;
    for (const auto& run : runs_) {
      const Row row = stored_row(in_, run);
      for (const Wide width : {row.k, row.v, row.indexer}) count += width != 0 ? run.count : 0;
    }
    return count;
  }

 private:
  const EngineInput& in_;
  std::vector<LayerRun> runs_;
  u64 page_;
  bool own_windows_;
  Cells cells_;
};

/// How many slots the pools have.
struct Slots {
  Wide tokens, window, states, requests;
};

Wide default_requests(Wide tokens, Tokens context) {
  return std::min<Wide>(std::max<Wide>(tokens * 512 / context.count, 2048), 4096);
}

Wide requests_for(const EngineInput& in, Wide tokens) {
  return in.options.given("max_running_requests") ? in.options.whole("max_running_requests")
                                                  : default_requests(tokens, in.context);
}

/// The table of each request's slots: four bytes for every position of the context.
Wide request_table(const EngineInput& in, Wide requests) { return requests * (in.context.count + 4) * 4; }

/// Window slots beside `tokens` full ones, where windows have slots.
Wide window_beside(const EngineInput& in, Wide tokens) {
  return in.options.fraction("swa_full_tokens_ratio").of(tokens);
}

/// States first, then tokens from the rest; full and window slots share it by their ratio.
Slots slots_in(const EngineInput& in, const Pools& pools, Wide room) {
  Slots slots{};
  const Cells& cells = pools.cells();
  const Options& options = in.options;
  if (cells.state != 0) {
    if (options.given("max_mamba_cache_size")) {
      slots.states = options.whole("max_mamba_cache_size");
    } else if (options.truth("disable_radix_cache") && options.given("max_running_requests")) {
      slots.states = options.whole("max_running_requests");
    } else if (cells.full == 0 && cells.window == 0) {
      slots.states = room / cells.state;
    } else {
      const Wide ratio = options.fraction("mamba_full_memory_ratio").billionths;
      slots.states = room * ratio / (Fraction::kOne + ratio) / cells.state;
    }
    room = without<Wide>(room, slots.states * cells.state);
  }
  if (cells.full != 0) {
    const Wide whole = (cells.full + cells.window) * Fraction::kOne;
    const Wide share =
        cells.full * Fraction::kOne + cells.window * options.fraction("swa_full_tokens_ratio").billionths;
    Wide tokens = pools.to_page(room / (cells.full + cells.window));
    if (options.given("max_total_tokens"))
      tokens = std::min<Wide>(tokens, pools.to_page(options.whole("max_total_tokens")));
    tokens = tokens * whole / share;
    slots.window = pools.to_page(window_beside(in, tokens));
    slots.tokens = pools.to_page(tokens);
  }
  slots.requests = requests_for(in, slots.tokens);
  if (cells.state != 0) {
    slots.requests = std::min<Wide>(slots.requests, slots.states / (options.truth("disable_radix_cache") ? 1 : 3));
  }
  return slots;
}

/// The most tokens whose pools and request table fit into what left the GPU while they were made. Page 0 is one more,
/// and each buffer is rounded up to 2 MiB, by half of that on the average (engine_rules 9).
Slots slots_of_drop(const EngineInput& in, const Pools& pools, Wide drop) {
  Slots slots = slots_in(in, pools, drop);
  const Cells& cells = pools.cells();
  if (cells.full == 0) return slots;
  const Wide other = (slots.states + 1) * cells.state + pools.buffers() * kMiB;
  const auto need = [&](Wide tokens) {
    return (tokens + pools.page()) * cells.full + (window_beside(in, tokens) + pools.page()) * cells.window + other +
           request_table(in, requests_for(in, tokens));
  };
  Wide low = 0;
  Wide high = drop;
  while (high - low > 1) {
    const Wide middle = low + (high - low) / 2;
    (need(middle) <= drop ? low : high) = middle;
  }
  slots.tokens = pools.to_page(low);
  slots.window = pools.to_page(window_beside(in, low));
  slots.requests = requests_for(in, slots.tokens);
  return slots;
}

struct Ratio {
  Wide num, den;
};

/// What the pools hold of conversations of `context` tokens, and which pool runs out first.
struct Capacity {
  Ratio ratio;
  Label limit;
};

Capacity capacity_of(const EngineInput& in, const Pools& pools, const Slots& slots) {
  Capacity least{{slots.requests, 1}, "max_running_requests"};
  const auto consider = [&](Label limit, Wide num, Wide den) {
    if (num * least.ratio.den <= least.ratio.num * den) least = {{num, den}, limit};
  };
  if (pools.cells().state != 0) consider("recurrent", slots.states, in.options.truth("disable_radix_cache") ? 1 : 3);
  for (const auto& run : pools.runs()) {
    if (pools.in_window_pool(run)) consider("window", slots.window, pools.window_slots(run));
  }
  if (pools.cells().full != 0) consider("full", slots.tokens, pools.up_to_page(in.context.count));
  return least;
}

std::vector<CachePool> list_caches(const EngineInput& in, const Pools& pools, const Slots& slots) {
  std::vector<CachePool> out;
  const auto pool_of = [&](Label name, Wide cells) -> CachePool& {
    const auto found = std::ranges::find(out, name, &CachePool::name);
    if (found != out.end()) return *found;
    CachePool& pool = out.emplace_back();
    pool.name = name;
    pool.cells = static_cast<u64>(cells);
    return pool;
  };
  for (const auto& run : pools.runs()) {
    if (run.kind == LayerKind::recurrent) {
      CachePool& pool = pool_of("recurrent", slots.states);
      const Wide states = run.count * (slots.states + 1);
      pool.layers += run.count;
      pool.state_bytes += states * (pools.state_bytes(run) + pools.conv_bytes(run));
      pool.conv_bytes += states * pools.conv_bytes(run);
      continue;
    }
    const Row row = stored_row(in, run);
    if (row.sum() == 0 || run.kind == LayerKind::cross) continue;
    const bool window = pools.in_window_pool(run);
    const Wide cells = window ? slots.window : slots.tokens;
    CachePool& pool = pool_of(window ? "window" : run.kind == LayerKind::latent ? "latent" : "full", cells);
    Wide rows = cells + pools.page();
    if (run.kind == LayerKind::compressed) rows = ceil_div<Wide>(rows, run.tokens_per_entry);
    pool.layers += run.count;
    pool.k_bytes += run.count * rows * (row.k + row.indexer);
    pool.v_bytes += run.count * rows * row.v;
  }
  return out;
}

/// One conversation's slots on all GPUs of a replica, and why they are more than it writes.
void reserve_sequence(const EngineInput& in, const Pools& all, Reservation& out) {
  MemoryPart blocks{.code = "blocks"};
  MemoryPart in_flight{.code = "window_in_flight"};
  MemoryPart full_length{.code = "window_full_length"};
  MemoryPart values{.code = "value_copy"};
  MemoryPart states{.code = "states"};
  const u64 ranks = in.deployment.tensor_parallel;
  const Wide copies = in.options.truth("disable_radix_cache") ? 1 : 3;
  Wide total = 0;
  for (const auto& run : all.runs()) {
    const Wide written = run.count * layer_bytes(run, in.kv, ranks, in.context);
    const Wide count = run.count;
    Wide reserved = written;
    if (run.kind == LayerKind::recurrent) {
      reserved = copies * count * (all.state_bytes(run) + all.conv_bytes(run));
      states.bytes += (reserved - written) * ranks;
    } else if (run.kind != LayerKind::cross) {
      const Wide row = stored_row(in, run).sum();
      const Wide kept = rows_kept(run, in.context);
      Wide slots = all.up_to_page(in.context.count);
      if (all.in_window_pool(run)) slots = all.window_slots(run);
      if (run.kind == LayerKind::compressed) slots = ceil_div<Wide>(slots, run.tokens_per_entry);
      reserved = count * slots * row;
      const Wide spare = count * (slots - kept) * row;
      MemoryPart& cause = !is_window(run) ? blocks : all.in_window_pool(run) ? in_flight : full_length;
      cause.bytes += spare * ranks;
      values.bytes += (reserved - spare - written) * ranks;
    }
    total += reserved * ranks;
  }
  out.reserved_per_sequence = total;
  for (MemoryPart part : {blocks, in_flight, full_length, values, states}) {
    if (part.bytes == 0) continue;
    part.low = part.high = part.bytes;
    part.confidence = Confidence::engine_rule;
    out.gaps.push_back(part);
  }
}

/// Free memory before and after the weights are loaded, on the poorest GPU.
struct Free {
  Wide before, after;
  bool known;
};

Free free_memory(const EngineInput& in, Wide context_bytes, Wide loading_bytes) {
  const Options& options = in.options;
  const Wide weights = in.weight_bytes_per_gpu.count;
  const bool after_known = options.given("avail_after_load_bytes");
  const Wide after = options.whole("avail_after_load_bytes");
  if (options.given("avail_before_load_bytes")) {
    const Wide before = options.whole("avail_before_load_bytes");
    return {before, after_known ? after : without<Wide>(before, weights), true};
  }
  if (after_known) return {after + weights, after, true};
  const Wide before = without<Wide>(program_memory(in), context_bytes);
  return {before, without<Wide>(before, weights + loading_bytes), false};
}

Result<Reservation> reserve(const EngineInput& in) {
  if (auto refused = check_tensor_parallel(in)) return std::unexpected(std::move(*refused));
  if (auto refused = check_pool(in, "kv_memory_bytes")) return std::unexpected(std::move(*refused));
  if (auto refused = check_other_inputs(in)) return std::unexpected(std::move(*refused));
  const Options& options = in.options;
  const std::vector<LayerRun> merged = merge_runs(in.model.layers);
  const Pools pools(in, stage_runs(merged, in.deployment.pipeline_parallel, 0));
  const Pools all(in, merged);

  Reservation out;
  out.reserved_confidence = Confidence::engine_rule;
  out.pool_confidence = Confidence::engine_rule;
  reserve_sequence(in, all, out);

  const auto pool_with = [&](Wide context_bytes, Wide loading_bytes, Fraction share) {
    const Free free = free_memory(in, context_bytes, loading_bytes);
    return without<Wide>(free.after, free.before - share.of(free.before));
  };
  const bool known = options.given("kv_memory_bytes");
  const bool drop_known = options.given("avail_pool_end_bytes") && options.given("avail_after_load_bytes");
  Slots slots;
  Slots low_slots;
  Slots high_slots;
  if (known) {
    out.pool_bytes_per_gpu = out.pool_low_per_gpu = out.pool_high_per_gpu = options.whole("kv_memory_bytes");
    slots = low_slots = high_slots = slots_in(in, pools, out.pool_bytes_per_gpu);
  } else if (drop_known) {
    const u64 end = options.whole("avail_pool_end_bytes");
    const u64 after = options.whole("avail_after_load_bytes");
    if (end > after) {
      return fail(ErrorCode::conflict, "options.avail_pool_end_bytes",
                  Text() << end << " is more than avail_after_load_bytes, which is " << after);
    }
    slots = low_slots = high_slots = slots_of_drop(in, pools, after - end);
    const Wide table = request_table(in, slots.requests);
    out.pool_bytes_per_gpu = without<Wide>(after - end, table);
    out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
  } else {
    if (options.given("avail_before_load_bytes") && options.given("avail_after_load_bytes") &&
        options.whole("avail_after_load_bytes") > options.whole("avail_before_load_bytes")) {
      return fail(ErrorCode::conflict, "options.avail_after_load_bytes",
                  Text() << options.whole("avail_after_load_bytes")
                         << " is more than avail_before_load_bytes, which is "
                         << options.whole("avail_before_load_bytes"));
    }
    const Fraction share = share_of_cut(
        in, options.given("mem_fraction_static") ? options.fraction("mem_fraction_static") : default_fraction(in));
    const PeakInput peak{
        .model = in.model, .memory_bytes = program_memory(in), .tensor_parallel = in.deployment.tensor_parallel};
    const Estimate context = sglang_context(peak);
    const Estimate loading = sglang_loading(peak);
    const Free free = free_memory(in, context.bytes, loading.bytes);
    out.weights_fit = free.after > free.before - share.of(free.before);
    out.pool_bytes_per_gpu = pool_with(context.bytes, loading.bytes, share);
    out.pool_low_per_gpu = pool_with(context.high, loading.high, share);
    out.pool_high_per_gpu = pool_with(context.low, loading.low, share);
    if (!free.known) {
      out.pool_confidence = Confidence::estimate;
      out.parts.push_back({"non_torch", context.bytes + loading.bytes, context.low + loading.low,
                           context.high + loading.high, Confidence::estimate});
    }
    slots = slots_in(in, pools, out.pool_bytes_per_gpu);
    low_slots = slots_in(in, pools, out.pool_low_per_gpu);
    high_slots = slots_in(in, pools, out.pool_high_per_gpu);
    if (out.weights_fit) {
      out.derivation.add("kv_memory_bytes_per_gpu", out.pool_bytes_per_gpu, "bytes").terms = {
          term("", free.after, "free_after_load"),
          term("−", free.before, "free_before_load"),
          {"×", (Fraction::kOne - share.billionths) / 1000, "share_kept_free"}};
    }
  }

  const Wide table = request_table(in, slots.requests);
  if (const auto exact = to_bytes(table, "options.max_running_requests"); !exact) return std::unexpected(exact.error());
  out.parts.push_back({"request_table", table, table, table, Confidence::engine_rule});
  out.kv_tokens = slots.tokens;
  out.caches = list_caches(in, pools, slots);
  for (const auto& pool : out.caches) {
    const auto exact = to_bytes(pool.k_bytes + pool.v_bytes + pool.state_bytes, "options.page_size");
    if (!exact) return std::unexpected(exact.error());
  }
  if (pools.page() > 1) out.block_tokens = pools.page();

  const u64 copies = in.deployment.data_parallel;
  out.pool_bytes = out.pool_bytes_per_gpu * in.deployment.gpus;
  const auto whole = [&](const Slots& held) {
    const Ratio ratio = capacity_of(in, pools, held).ratio;
    return out.weights_fit ? ratio.num / ratio.den * copies : Wide{0};
  };
  const Capacity capacity = capacity_of(in, pools, slots);
  out.sequences = whole(slots);
  out.sequences_low = whole(low_slots);
  out.sequences_high = whole(high_slots);
  out.concurrency_num = out.weights_fit ? capacity.ratio.num * copies : Wide{0};
  out.concurrency_den = capacity.ratio.den;

  if (pools.cells().full != 0 && slots.tokens != 0) {
    Step& step = out.derivation.add("kv_tokens", slots.tokens, "tokens");
    const Wide states = slots.states * pools.cells().state;
    step.terms.push_back(term("", out.pool_bytes_per_gpu, "bytes_left"));
    if (states != 0) step.terms.push_back(term("−", states, "state_bytes"));
    const Fraction ratio = options.fraction("swa_full_tokens_ratio");
    step.terms.push_back(term("÷", pools.cells().full + ratio.of(pools.cells().window), "bytes_per_token"));
    step.rounded_down = true;
  }
  if (out.sequences != 0) {
    Step& step = out.derivation.add("sequences", out.sequences, "conversations", capacity.limit);
    step.terms = {term("", capacity.ratio.num, "slots"), term("÷", capacity.ratio.den, "slots_per_conversation")};
    if (copies > 1) step.terms.push_back(term("×", copies, "copies"));
    step.rounded_down = true;
  }
  if (std::ranges::any_of(merged, is_window) && pools.cells().window == 0)
    out.notes.push_back({"windows_stored_full", {}});
  note_copies(in, out);
  list_ranks(in, out);
  if (std::string_view(capacity.limit) != "full") out.notes.push_back({"pool_limit", {{"pool", capacity.limit}}});
  return out;
}

}  // namespace

const EngineRules& sglang_rules() noexcept {
  static constexpr EngineRules kRules{EngineId::sglang, "sglang", kOptions, reserve};
  return kRules;
}

}  // namespace kvcap
