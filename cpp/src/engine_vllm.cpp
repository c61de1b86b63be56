// vLLM. Cited files are vLLM's own: vllm/v1/core/kv_cache_utils.py (groups, blocks, printed tokens),
// vllm/v1/kv_cache_interface.py (blocks of one request), vllm/v1/worker/gpu_worker.py (budget),
// vllm/engine/arg_utils.py (defaults by card), vllm/platforms/interface.py (blocks that hold a state).
#include <algorithm>
#include <array>

#include "engine_common.hpp"

namespace kvcap {
namespace {

consteval u64 version_of(u64 first, u64 second) { return first * 1'000'000 + second * 1'000; }

constexpr u64 kGroups = version_of(0, 9);            ///< hybrid cache manager: windows hold a window (pull 17996)
constexpr u64 kGraphsCounted = version_of(0, 21);    ///< graphs in the budget, utilisation 0.92 (pull 38284)
constexpr u64 kTokensByRequest = version_of(0, 21);  ///< prints concurrency × length (pull 40694 and its successor)
constexpr u64 kTwoBatches = version_of(0, 26);       ///< windows hold the tokens of every batch in flight (pull 47728)
constexpr u64 kHybridPrefixes = version_of(0, 28);   ///< prefix caching is on for models with states
constexpr u64 kNewest = kMaxExact;

constexpr u64 kBlockAlignment = 16;  ///< attention kernels want multiples of it (vllm/platforms/interface.py)

consteval OptionSpec count_option(std::string_view name, std::string_view aliases, u64 fallback, bool has_fallback,
                                  u64 max, std::string_view unit, bool offered, std::string_view source) {
  return {.name = name,
          .aliases = aliases,
          .kind = OptionKind::whole,
          .fallback = fallback,
          .has_fallback = has_fallback,
          .min = 1,
          .max = max,
          .choices = "",
          .unit = unit,
          .offered = offered,
          .source = source};
}
consteval OptionSpec truth_option(std::string_view name, std::string_view aliases, bool fallback, bool has_fallback,
                                  bool offered, std::string_view source) {
  return {.name = name,
          .aliases = aliases,
          .kind = OptionKind::truth,
          .fallback = fallback,
          .has_fallback = has_fallback,
          .min = 0,
          .max = 1,
          .choices = "",
          .unit = "",
          .offered = offered,
          .source = source};
}
consteval OptionSpec bytes_option(std::string_view name, std::string_view aliases, std::string_view source) {
  return {.name = name,
          .aliases = aliases,
          .kind = OptionKind::bytes,
          .fallback = 0,
          .has_fallback = false,
          .min = 0,
          .max = kMaxExact,
          .choices = "",
          .unit = "bytes",
          .offered = false,
          .source = source};
}
consteval OptionSpec choice_option(std::string_view name, std::string_view choices, bool has_fallback,
                                   std::string_view source) {
  return {.name = name,
          .aliases = "",
          .kind = OptionKind::choice,
          .fallback = 0,
          .has_fallback = has_fallback,
          .min = 0,
          .max = kMaxExact,
          .choices = choices,
          .unit = "",
          .offered = false,
          .source = source};
}

constexpr std::array kOptions = {
    OptionSpec{.name = "gpu_memory_utilization",
               .aliases = "",
               .kind = OptionKind::fraction,
               .fallback = 920'000'000,
               .has_fallback = true,
               .min = 1,
               .max = Fraction::kOne,
               .choices = "",
               .unit = "",
               .offered = true,
               .source = "vllm/config/cache.py: 0.92; 0.9 before 0.21"},
    count_option("max_num_batched_tokens", "", 0, false, kMaxTokens, "tokens", true,
                 "arg_utils.py: 8192 on cards from 70 GiB but the A100, else 2048"),
    count_option("max_num_seqs", "", 0, false, kMaxTokens, "conversations", true,
                 "arg_utils.py: 1024 on cards from 70 GiB but the A100, else 256"),
    count_option("block_size", "", 16, true, 1 << 20, "tokens", true, "vllm/config/cache.py: DEFAULT_BLOCK_SIZE"),
    truth_option("enable_prefix_caching", "prefix_caching", true, false, true,
                 "vllm/config/model.py: on; with recurrent states off before 0.28"),
    truth_option("enforce_eager", "", false, true, true, "vllm/config/model.py"),
    truth_option("disable_hybrid_kv_cache_manager", "", false, true, true, "vllm/config/scheduler.py"),
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
               .source = "the start-up log's first lines; the newest rules where it is not given"},
    count_option("decode_context_parallel_size", "dcp dcp_size", 1, true, kMaxGpus, "GPUs", true,
                 "vllm/config/parallel.py"),
    OptionSpec{.name = "cpu_offload_gb",
               .aliases = "",
               .kind = OptionKind::whole,
               .fallback = 0,
               .has_fallback = true,
               .min = 0,
               .max = 1 << 20,
               .choices = "",
               .unit = "GiB",
               .offered = false,
               .source = "vllm/config/cache.py: weights kept in main memory, on each GPU"},
    truth_option("use_v1", "VLLM_USE_V1", true, false, false,
                 "vllm/envs.py: V1 since 0.8; V0 prints a line of GPU and CPU blocks"),
    truth_option("async_scheduling", "", true, true, false, "vllm/config/scheduler.py: on since 0.14"),
    choice_option("mamba_cache_mode", "none align all", false,
                  "vllm/config/cache.py: align where prefix caching is on, else none"),
    choice_option("mamba_ssm_cache_dtype", "auto float32 float16 bfloat16", true, "vllm/config/cache.py"),
    count_option("num_gpu_blocks_override", "", 0, false, kMaxExact, "blocks", false, "vllm/config/cache.py"),
    bytes_option("kv_memory_bytes", "kv_cache_memory_bytes",
                 "vllm/config/cache.py: kv_cache_memory_bytes, on each GPU"),
    bytes_option("activation_bytes", "", "the log's activation peak"),
    bytes_option("non_torch_bytes", "", "the log's non-torch memory"),
    bytes_option("cuda_graph_bytes", "", "the log's estimated CUDA graph memory"),
};

/// Settings that depend on version and card.
struct Setting {
  u64 version;
  bool v1;
  u64 batched_tokens;
  u64 profiled_tokens;  ///< tokens that the start-up profile runs
  u64 max_num_seqs;
  u64 in_flight;  ///< tokens scheduled but not settled
  Fraction utilization;
  u64 state_blocks;  ///< blocks of one recurrent group, apart from mode "all"
  bool state_per_block;
  bool full_length;  ///< windows keep every token
  [[nodiscard]] bool since(u64 other) const noexcept { return version >= other; }
  [[nodiscard]] bool grouped() const noexcept { return v1 && since(kGroups); }
};

Setting setting_of(const EngineInput& in) {
  const Options& options = in.options;
  Setting out{};
  out.version = options.given("version") ? options.whole("version") : kNewest;
  const bool large = program_memory(in) >> 30 >= 70 && in.deployment.gpu_name.find("A100") == std::string::npos;
  out.v1 = options.given("use_v1") ? options.truth("use_v1") : out.since(version_of(0, 8));
  // Before chunked prefill was the rule, one batch held the longest conversation (V0: vllm/config.py, SchedulerConfig).
  const bool chunked = out.v1;
  const u64 batched = large ? 8192 : 2048;
  out.batched_tokens = chunked ? batched : std::max<u64>(in.context.count, 2048);
  if (options.given("max_num_batched_tokens")) out.batched_tokens = options.whole("max_num_batched_tokens");
  out.max_num_seqs = large && chunked ? 1024 : 256;
  if (options.given("max_num_seqs")) out.max_num_seqs = options.whole("max_num_seqs");
  // V0 chunked of itself past 32k tokens.
  out.profiled_tokens =
      !chunked && in.context.count > 32'768 && !options.given("max_num_batched_tokens") ? 2048 : out.batched_tokens;
  const u64 batches = in.deployment.pipeline_parallel > 1 ? in.deployment.pipeline_parallel
                      : options.truth("async_scheduling") ? u64{2}
                                                          : u64{1};
  out.in_flight = out.batched_tokens * (out.since(kTwoBatches) ? batches : 1);
  out.utilization = options.fraction("gpu_memory_utilization");
  if (!options.given("gpu_memory_utilization") && !out.since(kGraphsCounted)) out.utilization = {900'000'000};

  const bool prefixes =
      options.given("enable_prefix_caching") ? options.truth("enable_prefix_caching") : out.since(kHybridPrefixes);
  u64 mode = prefixes ? 1 : 0;
  if (options.given("mamba_cache_mode")) mode = options.whole("mamba_cache_mode");
  out.state_blocks = mode == 1 ? 2 : 1;
  out.state_per_block = mode == 2;
  out.full_length = !out.grouped() || options.truth("disable_hybrid_kv_cache_manager");
  return out;
}

// ---- layout --------------------------------------------------------------------------------------------------------

/// Layers of one shape as the cache manager sees them.
struct Shape {
  LayerRun run;
  Wide state;  ///< bytes of one layer's state, on one GPU
  Wide token;  ///< bytes of one token (or entry) in one layer, on one GPU
  Wide block_tokens;
  Wide block;        ///< bytes of one layer's share of a block that hold anything
  Wide blocks;       ///< of one group, for one conversation
  Wide kept_tokens;  ///< tokens that are kept, before they are rounded to blocks
  u64 groups;        ///< where layers are grouped
  [[nodiscard]] bool recurrent() const noexcept { return run.kind == LayerKind::recurrent; }
  [[nodiscard]] bool bounded() const noexcept { return is_window(run); }
  [[nodiscard]] bool grows() const noexcept { return !recurrent() && !bounded() && run.kind != LayerKind::cross; }
};

struct Layout {
  std::vector<Shape> shapes;
  Wide page;          ///< of one layer where all are unified; 0 where layers keep pages of their own
  Wide block_bytes;   ///< on the fullest GPU
  bool packed;        ///< growing layers keep pages of their own, and windows take whole blocks of them
  Wide packed_bytes;  ///< of one such block, over all stages
  u64 slots;          ///< layers of a group on each stage, over all stages
  u64 groups;
  Wide printed_block;  ///< tokens
  Wide blocks_per_sequence;
  Wide states_outside;  ///< bytes of one conversation's states beside the blocks, over all stages, one GPU of each
};

bool same_need(const Shape& a, const Shape& b) {
  if (a.grows() && b.grows()) return true;
  return a.run.kind == b.run.kind && a.run.window_tokens == b.run.window_tokens &&
         a.run.source_tokens == b.run.source_tokens;
}

/// Bytes of one layer's share of a block of so many tokens.
Wide share_of_block(const Shape& shape, Wide tokens) {
  if (shape.recurrent()) return shape.state;
  const Wide rows =
      shape.run.kind == LayerKind::compressed ? ceil_div<Wide>(tokens, shape.run.tokens_per_entry) : tokens;
  return saturating(rows, shape.token);
}

/// Blocks that one conversation takes in one group of these layers (kv_cache_interface.py, max_memory_usage_bytes).
void count_blocks(Shape& shape, const EngineInput& in, const Setting& setting) {
  const Wide length = in.context.count;
  const Wide own = ceil_div<Wide>(length, in.deployment.context_parallel);
  shape.kept_tokens = own;
  if (shape.run.kind == LayerKind::cross) {
    shape.kept_tokens = shape.run.source_tokens;
  } else if (shape.bounded() && !setting.full_length) {
    const Wide window = shape.run.window_tokens - (shape.run.kind == LayerKind::window ? 1 : 0);
    shape.kept_tokens = std::min<Wide>(window + setting.in_flight, length);
  }
  if (shape.recurrent()) {
    shape.blocks = setting.state_per_block ? ceil_div<Wide>(length, shape.block_tokens) : setting.state_blocks;
    return;
  }
  shape.blocks = ceil_div<Wide>(shape.kept_tokens, shape.block_tokens);
  // A window need not begin where a block does.
  if (shape.run.kind == LayerKind::window && !setting.full_length) shape.blocks += 1;
}

/// Layers of one group, where the largest of a stage's groups sets the count.
struct Slots {
  u64 all_stages, fullest;
};
Slots slots_of(const std::vector<Shape>& shapes, u64 stages) {
  std::vector<u64> steps{0};
  for (const auto& shape : shapes) steps.push_back(shape.run.count % stages);
  std::ranges::sort(steps);
  steps.push_back(stages);
  Slots slots{};
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    u64 most = 0;
    for (const auto& shape : shapes) {
      const u64 held = shape.run.count / stages + (steps[i] < shape.run.count % stages ? 1 : 0);
      most = std::max(most, ceil_div(held, shape.groups));
    }
    slots.all_stages += most * (steps[i + 1] - steps[i]);
    slots.fullest = std::max(slots.fullest, most);
  }
  return slots;
}

/// One pool in which a block spans all layers, each with a page of its own width.
void lay_out_alike(Layout& out, const EngineInput& in, const Setting& setting, u64 block_tokens) {
  Wide cross_blocks = 0;
  Wide other_blocks = 0;
  for (auto& shape : out.shapes) {
    shape.block_tokens = shape.recurrent() ? in.context.count : block_tokens;
    shape.block = share_of_block(shape, shape.block_tokens);
    count_blocks(shape, in, setting);
    const u64 held = ceil_div<u64>(shape.run.count, in.deployment.pipeline_parallel);
    out.block_bytes += saturating(shape.block, held);
    Wide& most = shape.run.kind == LayerKind::cross ? cross_blocks : other_blocks;
    most = std::max(most, shape.blocks);
    out.printed_block = shape.block_tokens;
  }
  out.blocks_per_sequence = cross_blocks + other_blocks;
  for (auto& shape : out.shapes) shape.blocks = out.blocks_per_sequence;
}

/// Equal groups over unified pages (kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size and
/// unify_kv_cache_spec_page_size).
void lay_out_groups(Layout& out, const EngineInput& in, const Setting& setting, u64 block_tokens) {
  const Wide state = std::ranges::max_element(out.shapes, {}, &Shape::state)->state;
  const Wide token = std::ranges::max_element(out.shapes, {}, &Shape::token)->token;
  // A block grows until an attention layer's page holds a state (vllm/platforms/interface.py).
  const Wide block = std::max<Wide>(block_tokens, kBlockAlignment * ceil_div<Wide>(state, kBlockAlignment * token));
  for (auto& shape : out.shapes) {
    shape.block_tokens = block;
    shape.block = share_of_block(shape, block);
    out.page = std::max(out.page, shape.block);
  }
  const auto [least, largest] =
      std::ranges::minmax_element(out.shapes, {}, [](const Shape& shape) { return shape.run.count; });
  const u64 fewest = least->run.count;
  const u64 most = largest->run.count;
  const u64 size = most * 2 < fewest * 3 ? most : fewest;
  out.groups = 0;
  out.printed_block = block;
  for (auto& shape : out.shapes) {
    if (!shape.recurrent() && out.page % shape.block == 0) {
      const Wide larger = out.page / shape.block;
      shape.block_tokens = saturating(block, larger);
      shape.block = out.page;
    }
    count_blocks(shape, in, setting);
    shape.groups = ceil_div<u64>(shape.run.count, size);
    out.groups += shape.groups;
    out.blocks_per_sequence += shape.blocks * shape.groups;
  }
  const Slots slots = slots_of(out.shapes, in.deployment.pipeline_parallel);
  out.slots = slots.all_stages;
  out.block_bytes = saturating(out.page, slots.fullest);
}

/// Compressed rows: all growing layers share one group whose block holds a page of each; the windows' layers are dealt
/// to those pages (kv_cache_utils.py, _get_kv_cache_groups_uniform_groups). The compressors' own states are not
/// counted.
void lay_out_packed(Layout& out, const EngineInput& in, const Setting& setting, u64 block_tokens) {
  out.packed = true;
  out.printed_block = block_tokens;
  for (auto& shape : out.shapes) {
    if (!shape.grows()) continue;
    shape.block_tokens = block_tokens;
    shape.block = share_of_block(shape, block_tokens);
    count_blocks(shape, in, setting);
    out.block_bytes += saturating(shape.block, ceil_div<u64>(shape.run.count, in.deployment.pipeline_parallel));
    out.packed_bytes += saturating(shape.block, shape.run.count);
    out.blocks_per_sequence = std::max(out.blocks_per_sequence, shape.blocks);
  }
  const auto widest = std::ranges::max_element(out.shapes, {}, &Shape::block);
  const Wide largest = widest->block;
  const u64 pages = widest->run.count;  // of that size, in one block
  for (auto& shape : out.shapes) {
    if (shape.grows()) continue;
    shape.block_tokens = largest / shape.token;
    shape.block = share_of_block(shape, shape.block_tokens);
    count_blocks(shape, in, setting);
    shape.groups = ceil_div<u64>(shape.run.count, pages);
    out.groups += shape.groups;
    out.blocks_per_sequence += shape.blocks * shape.groups;
  }
}

Result<Layout> lay_out(const EngineInput& in, const Setting& setting) {
  Layout out{};
  out.groups = 1;
  bool rows = false;
  bool compressed = false;
  for (const auto& run : merge_runs(in.model.layers)) {
    if (run.count == 0 || run.kind == LayerKind::shared || run.kind == LayerKind::none) continue;
    Shape shape{};
    shape.run = run;
    shape.state = state_of(run, in.deployment.tensor_parallel);
    shape.token = row_of(run, in.kv, in.deployment.tensor_parallel).sum();
    rows = rows || !shape.recurrent();
    compressed = compressed || run.kind == LayerKind::compressed;
    out.shapes.push_back(shape);
  }
  constexpr std::size_t kMostShapes = 64;
  if (out.shapes.size() > kMostShapes) {
    return fail(ErrorCode::unsupported, "model",
                Text() << "has " << digits(out.shapes.size()) << " shapes of layers; up to " << digits(kMostShapes)
                       << " are laid out");
  }
  if (rows && !setting.grouped()) {
    // V0 kept recurrent states in tensors of their own (engine_rules 12).
    std::erase_if(out.shapes, [&](const Shape& shape) {
      if (shape.recurrent()) out.states_outside += shape.state * shape.run.count;
      return shape.recurrent();
    });
  }
  const bool alike =
      std::ranges::all_of(out.shapes, [&](const Shape& shape) { return same_need(shape, out.shapes.front()); });
  u64 block_tokens = in.options.whole("block_size");
  // Compressed entries are kept in blocks of 256 tokens (vLLM's DeepSeek V4 blog and kv_cache_utils.py).
  if (compressed && !in.options.given("block_size")) block_tokens = 256;
  if (alike || setting.full_length) {
    const bool states = std::ranges::any_of(out.shapes, &Shape::recurrent);
    if (!alike && states) {
      return fail(ErrorCode::conflict, "options.disable_hybrid_kv_cache_manager",
                  "is not possible for a model that has recurrent states beside rows");
    }
    lay_out_alike(out, in, setting, block_tokens);
  } else {
    if (in.deployment.context_parallel > 1) {
      return fail(ErrorCode::unsupported, "options.decode_context_parallel_size",
                  "works only where all layers keep rows of the whole context");
    }
    // Packing needs the windows' rows to be the smaller ones.
    const auto fits_a_page = [&](const Shape& shape) {
      const auto holds = [&](const Shape& other) {
        return other.grows() && shape.token <= share_of_block(other, block_tokens);
      };
      return !shape.recurrent() && (shape.grows() || std::ranges::any_of(out.shapes, holds));
    };
    const bool fits = std::ranges::all_of(out.shapes, fits_a_page);
    if (compressed && fits) {
      lay_out_packed(out, in, setting, block_tokens);
      return out;
    }
    lay_out_groups(out, in, setting, block_tokens);
  }
  return out;
}

// ---- what is reserved ----------------------------------------------------------------------------------------------

/// What one conversation takes, over all GPUs of one replica, and why that is more than it writes.
void reserve_sequence(const EngineInput& in, const Setting& setting, const Layout& layout, Reservation& out) {
  const Wide t = in.deployment.tensor_parallel;
  out.reserved_per_sequence = saturating(layout.states_outside, t);
  for (const auto& shape : layout.shapes) {
    const Wide layers = shape.run.count * t;
    const Wide page = layout.page != 0 ? layout.page : shape.block;
    const Wide blocks = shape.blocks;
    Wide padding = 0;
    if (layout.packed && !shape.grows()) {
      padding = saturating(saturating(layout.packed_bytes, blocks * shape.groups), t) -
                saturating(saturating(page, blocks), layers);
    } else if (layout.page != 0) {
      padding = saturating(saturating(page, blocks), (Wide{layout.slots} * shape.groups - shape.run.count) * t);
    }
    const Wide held = saturating(saturating(page, blocks), layers);
    out.reserved_per_sequence += padding + held;
    const Wide written = layer_bytes(shape.run, in.kv, in.deployment.tensor_parallel, in.context) * layers /
                         in.deployment.context_parallel;
    if (shape.recurrent()) {
      add_gap(out, "padding", padding);
      add_gap(out, "states", held - written);
      continue;
    }
    const Wide unused = saturating(saturating(page - shape.block, blocks), layers);
    const Wide rows = rows_kept(shape.run, in.context);
    const Wide beyond = shape.bounded() ? without<Wide>(shape.kept_tokens, rows) * shape.token * layers : 0;
    add_gap(out, "padding", padding + unused);
    add_gap(out, setting.full_length ? "full_length" : "in_flight", beyond);
    add_gap(out, "blocks", held - unused - beyond - written);
  }
}

/// Room for the cache on the poorest GPU: total × utilisation - weights - activation peak - non-torch - graphs
/// (engine_rules 8).
void budget(const EngineInput& in, const Setting& setting, Wide states_outside, Reservation& out) {
  const MemoryRange memory = memory_range(in);
  PeakInput peak{.model = in.model,
                 .version = setting.version,
                 .v1 = setting.v1,
                 .memory_bytes = static_cast<u64>(memory.low),
                 .tensor_parallel = in.deployment.tensor_parallel,
                 .max_num_seqs = setting.max_num_seqs,
                 .batched_tokens = setting.profiled_tokens};
  Estimate activation = vllm_activation(peak);
  if (in.deployment.gpu == nullptr && !in.options.given("max_num_seqs")) {
    // Whether the defaults of large cards apply hangs on the card's name, which was not given.
    peak.max_num_seqs = 256;
    peak.batched_tokens = std::min<u64>(peak.batched_tokens, 2048);
    activation.low = std::min(activation.low, vllm_activation(peak).low);
  }
  out.parts.push_back(part_of(in.options, "activation_bytes", "activation", activation));
  out.parts.push_back(part_of(in.options, "non_torch_bytes", "non_torch", vllm_non_torch(peak)));
  if (in.options.given("cuda_graph_bytes") || (setting.since(kGraphsCounted) && !in.options.truth("enforce_eager"))) {
    out.parts.push_back(part_of(in.options, "cuda_graph_bytes", "cuda_graph", vllm_cuda_graph(peak)));
  }
  if (states_outside != 0) {
    // A slot for every sequence that may run at once, allocated before the cache is.
    const Wide slots = states_outside * setting.max_num_seqs;
    out.parts.push_back({"states", slots, slots, slots, Confidence::engine_rule});
  }
  const Wide weights = without<Wide>(in.weight_bytes_per_gpu.count, Wide{in.options.whole("cpu_offload_gb")} << 30);
  Wide taken = weights;
  Wide taken_low = weights;
  Wide taken_high = weights;
  out.pool_confidence = Confidence::engine_rule;
  for (const auto& part : out.parts) {
    taken += part.bytes;
    taken_low += part.low;
    taken_high += part.high;
    out.pool_confidence = std::max(out.pool_confidence, part.confidence);
  }
  const auto left = [&](Wide total, Wide beside) { return without<Wide>(setting.utilization.of(total), beside); };
  out.weights_fit = left(memory.high, weights) != 0;
  out.pool_bytes_per_gpu = left(memory.low, taken);
  out.pool_low_per_gpu = left(memory.low, taken_high);
  out.pool_high_per_gpu = left(memory.high, taken_low);
  if (out.pool_bytes_per_gpu == 0 || !in.weight_bytes) return;
  Step& room = out.derivation.add("kv_memory_bytes_per_gpu", out.pool_bytes_per_gpu, "bytes");
  room.terms = {term("", memory.low, "bytes_per_gpu"),
                {"×", setting.utilization.billionths / 1000, "usable_share"},
                term("−", weights, "weight_bytes")};
  for (const auto& part : out.parts) room.terms.push_back(term("−", part.bytes, part.code));
}

/// Tokens as vLLM's log states them. `blocks` of 0 print as 0.
void print_tokens(const EngineInput& in, const Setting& setting, const Layout& layout, Reservation& out) {
  const Wide blocks = *out.kv_blocks;
  const Wide by_groups = blocks / layout.groups * layout.printed_block * in.deployment.context_parallel;
  // The engine's own arithmetic is in doubles: int(blocks / blocks_per_request * length).
  const double requests = static_cast<double>(blocks) / static_cast<double>(layout.blocks_per_sequence);
  const auto by_requests = static_cast<Wide>(requests * static_cast<double>(in.context.count));
  const bool newer = setting.since(kTokensByRequest);
  out.kv_tokens = newer ? by_requests : by_groups;
  out.kv_tokens_other = newer ? by_groups : by_requests;
  out.block_tokens = layout.printed_block;
  if (!setting.grouped()) {
    // Older ones printed blocks × block size / length as the concurrency.
    out.concurrency_num = by_groups * in.deployment.data_parallel;
    out.concurrency_den = in.context.count;
    out.kv_tokens_other.reset();
  }
}

void derive_layout(const Layout& layout, Derivation& to) {
  if (layout.page == 0) return;
  to.add("bytes_per_page", layout.page, "bytes").terms = {
      term("", layout.printed_block, "tokens_per_block"),
      term("×", layout.page / layout.printed_block, "bytes_per_token_and_layer")};
  if (layout.page % layout.printed_block != 0) to.steps.pop_back();
  to.add("bytes_per_block", layout.block_bytes, "bytes").terms = {
      term("", layout.block_bytes / layout.page, "layers_per_group"), term("×", layout.page, "bytes_per_page")};
  std::vector<Term> sum;
  for (const auto& shape : layout.shapes) {
    Step& step = to.add("blocks_per_sequence", shape.blocks * shape.groups, "blocks", kind_name(shape.run.kind));
    step.terms = {term("", shape.groups, "groups"), term("×", shape.blocks, "blocks")};
    sum.push_back(term(sum.empty() ? "" : "+", shape.blocks * shape.groups, kind_name(shape.run.kind)));
  }
  to.add("blocks_per_sequence", layout.blocks_per_sequence, "blocks").terms = std::move(sum);
}

std::optional<Error> check_context_parallel(const EngineInput& in) {
  const u64 dcp = in.deployment.context_parallel;
  if (dcp == 1) return std::nullopt;
  const u64 t = in.deployment.tensor_parallel;
  bool works = t % dcp == 0;
  for (const auto& run : in.model.layers) {
    // It deals out what tensor parallelism would keep as copies.
    if (run.kv_heads != 0) works = works && t % (run.kv_heads * dcp) == 0;
  }
  if (works) return std::nullopt;
  return Error{ErrorCode::not_divisible, "options.decode_context_parallel_size",
               Text() << digits(dcp) << " does not divide the copies that " << digits(t)
                      << " GPUs keep of each KV head (of a latent row: one on each GPU)"};
}

Result<Reservation> reserve(const EngineInput& in) {
  if (auto refused = check_tensor_parallel(in)) return std::unexpected(std::move(*refused));
  if (auto refused = check_context_parallel(in)) return std::unexpected(std::move(*refused));
  if (auto refused = check_pool(in, "kv_memory_bytes")) return std::unexpected(std::move(*refused));
  const Setting setting = setting_of(in);
  const auto layout = lay_out(in, setting);
  if (!layout) return std::unexpected(layout.error());

  Reservation out;
  const bool compressed =
      std::ranges::any_of(layout->shapes, [](const Shape& shape) { return shape.run.kind == LayerKind::compressed; });
  out.reserved_confidence = compressed ? Confidence::estimate : Confidence::engine_rule;
  reserve_sequence(in, setting, *layout, out);

  if (in.options.given("num_gpu_blocks_override")) {
    out.kv_blocks = in.options.whole("num_gpu_blocks_override");
    out.pool_bytes_per_gpu = saturating(*out.kv_blocks, layout->block_bytes);
    if (out.pool_bytes_per_gpu > memory_range(in).high) {
      return fail(ErrorCode::out_of_range, "options.num_gpu_blocks_override",
                  Text() << "takes more than the GPU's memory; at most "
                         << digits(memory_range(in).high / layout->block_bytes) << " is accepted");
    }
    out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
  } else if (in.options.given("kv_memory_bytes")) {
    out.pool_bytes_per_gpu = in.options.whole("kv_memory_bytes");
    out.pool_low_per_gpu = out.pool_high_per_gpu = out.pool_bytes_per_gpu;
  } else {
    budget(in, setting, layout->states_outside, out);
  }
  derive_layout(*layout, out.derivation);
  fill_blocks(in, {layout->block_bytes, layout->blocks_per_sequence}, out);
  print_tokens(in, setting, *layout, out);

  note_copies(in, out);
  list_ranks(in, out);
  if (in.options.given("max_num_seqs") && out.sequences > Wide{setting.max_num_seqs} * in.deployment.data_parallel) {
    out.notes.push_back(
        {"max_num_seqs", {{"max_num_seqs", digits(setting.max_num_seqs)}, {"fit", digits(out.sequences)}}});
  }
  if (compressed) out.notes.push_back({"compressed_layout", {}});
  return out;
}

}  // namespace

const EngineRules& vllm_rules() noexcept {
  static constexpr EngineRules kRules{EngineId::vllm, "vllm", kOptions, reserve};
  return kRules;
}

}  // namespace kvcap
