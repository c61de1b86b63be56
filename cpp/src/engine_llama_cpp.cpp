// llama.cpp and its fork ik_llama.cpp. A context allocates its caches at start for the longest conversation: cells ×
// row width × layers, K and V apart, in ggml's block formats (src/llama-kv-cache*.cpp, src/llama-memory-recurrent.cpp).
// Layers are dealt out to the GPUs, so that a layer's cache stands beside its weights.
#include <algorithm>
#include <array>

#include "engine_common.hpp"
#include "kvcap/engine.hpp"

namespace kvcap {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "n_ctx",
               .aliases = "ctx_size ctx-size",
               .min = 1,
               .max = kMaxTokens,
               .unit = "tokens",
               .offered = false,
               .source = "--ctx-size: all sequences together; common/arg.cpp"},
    OptionSpec{.name = "n_seq_max",
               .aliases = "n_parallel parallel",
               .fallback = 1,
               .has_fallback = true,
               .min = 1,
               .max = 1 << 16,
               .unit = "conversations",
               .source = "--parallel; llama_context_default_params in src/llama-context.cpp: 1"},
    OptionSpec{.name = "n_ubatch",
               .aliases = "ubatch_size ubatch-size",
               .fallback = 512,
               .has_fallback = true,
               .min = 1,
               .max = 1 << 24,
               .unit = "tokens",
               .source = "--ubatch-size; llama_context_default_params: 512"},
    OptionSpec{.name = "n_batch",
               .aliases = "batch_size batch-size",
               .fallback = 2048,
               .has_fallback = true,
               .min = 1,
               .max = 1 << 24,
               .unit = "tokens",
               .offered = false,
               .source = "--batch-size; llama_context_default_params: 2048"},
    OptionSpec{.name = "n_gpu_layers",
               .aliases = "n-gpu-layers gpu_layers gpu-layers",
               .min = 1,
               .max = kMaxLayers,
               .unit = "layers",
               .source = "--n-gpu-layers; all of them unless given"},
    OptionSpec{.name = "flash_attn",
               .aliases = "flash-attn",
               .kind = OptionKind::truth,
               .max = 1,
               .source = "--flash-attn; auto since b6325 (pull request 15434), off before"},
    OptionSpec{.name = "kv_unified",
               .aliases = "kv-unified",
               .kind = OptionKind::truth,
               .max = 1,
               .source = "--kv-unified; one buffer for all sequences was the only layout before b6040 (14363, 14959)"},
    OptionSpec{.name = "swa_full",
               .aliases = "swa-full",
               .kind = OptionKind::truth,
               .has_fallback = true,
               .max = 1,
               .source = "--swa-full; pull request 13194: off"},
    OptionSpec{
        .name = "n_rs_seq",
        .aliases = "rs_seq rs-seq",
        .has_fallback = true,
        .max = 1 << 16,
        .unit = "copies",
        .offered = false,
        .source = "src/llama-cparams.h: snapshots of a recurrent state for each sequence, for rolling back drafts"},
    OptionSpec{.name = "fork",
               .aliases = "",
               .kind = OptionKind::choice,
               .has_fallback = true,
               .max = 1,
               .choices = "llama.cpp ik_llama.cpp",
               .source = "ik_llama.cpp keeps every layer full length"},
    OptionSpec{
        .name = "mla_attn",
        .aliases = "mla mla_use mla-use",
        .max = 3,
        .offered = false,
        .source = "--mla-use of ik_llama.cpp (pull request 235): 0 heads, 1 latent and a second V, 2 and 3 latent"},
    OptionSpec{.name = "version",
               .aliases = "engine_version build",
               .kind = OptionKind::version,
               .offered = false,
               .source = "build number as in b5614; the newest unless given"},
    OptionSpec{.name = "kv_memory_bytes",
               .aliases = "",
               .kind = OptionKind::bytes,
               .unit = "bytes",
               .offered = false,
               .source = "a known room for the cache on each GPU"},
};

/// What a build caches of a latent (MLA) layer.
enum class LatentCache : unsigned char { heads, latent_and_value, latent };

/// The rules of one build with its flags.
struct Build {
  LatentCache latent;
  bool windows_full;      ///< window layers keep every token,
  bool one_cache;         ///< in the cache of the full layers
  bool unified;           ///< one stream holds all sequences
  bool value_beside_key;  ///< a layer whose K serves as V stores the row twice
  u64 pad;                ///< cells of a stream are a multiple of it
  u64 window_pad;
  u64 in_flight;  ///< tokens that a window cache holds beside its windows
  u64 state_copies;
};

Build build_of(const EngineInput& in) {
  const Options& options = in.options;
  const bool fork = options.whole("fork") == 1;
  const auto since = [&](u64 build) {
    return !options.given("version") || options.whole("version") >= build * 1'000'000;
  };
  const bool flash = options.truth("flash_attn");

  // Windows have caches of their own since pull request 13194 (20 May 2025); a build before 13833 (31 May 2025) kept
  // n_batch tokens beside the window. A model without a full layer is read as one without windows: the GGUF of
  // Mistral 7B v0.1, Phi-3 or StarCoder2 carries none that llama.cpp uses.
  const auto other = [](const LayerRun& run) {
    return !is_window(run) && run.kind != LayerKind::shared && run.kind != LayerKind::none;
  };
  const auto& runs = in.model.layers;
  const bool one_cache = fork || !since(5430) || std::ranges::none_of(runs, other);
  u64 in_flight = options.whole("n_ubatch");
  if (options.given("n_batch")) in_flight = std::min(in_flight, options.whole("n_batch"));
  if (!since(5554)) in_flight = options.whole("n_batch");

  // The context is a multiple of 32, of 256 under flash attention (7257) and in every build since b6980 (17046).
  const bool rounds_to_256 = flash || (since(6980) && !fork);
  const bool off = options.given("flash_attn") && !flash;

  // Heads until pull request 12801 (15 April 2025); a second V beside the latent until 19067 (25 January 2026).
  LatentCache latent = LatentCache::latent;
  if (options.given("mla_attn")) {
    const u64 mode = options.whole("mla_attn");
    latent = mode == 0                       ? LatentCache::heads
             : mode == 1 && !(fork && flash) ? LatentCache::latent_and_value
                                             : LatentCache::latent;
  } else if (!fork && !since(5140)) {
    latent = LatentCache::heads;
  } else if (!fork && !since(7830)) {
    latent = LatentCache::latent_and_value;
  }

  // Rows beside compressed ones (DeepSeek V4) are latent rows of one head; elsewhere V is written out (Gemma 4).
  const auto is_latent = [](const LayerRun& run) { return run.latent_width != 0; };
  return {.latent = latent,
          .windows_full = one_cache || options.truth("swa_full"),
          .one_cache = one_cache,
          .unified = options.given("kv_unified") ? options.truth("kv_unified") : fork || !since(6040),
          .value_beside_key = std::ranges::none_of(runs, is_latent),
          .pad = rounds_to_256 ? u64{256} : 32,
          .window_pad = off && !since(6980) ? u64{32} : 256,
          .in_flight = in_flight,
          .state_copies = 1 + options.whole("n_rs_seq")};
}

constexpr Wide pad_to(Wide value, Wide unit) noexcept { return ceil_div(value, unit) * unit; }

constexpr u64 kStateBytes = 4;  ///< of each value: always fp32 (src/llama-model.cpp, create_memory)

/// One layer's cache in one stream.
struct LayerCache {
  Label name = "";
  Wide cells;
  Wide k_row = 0;
  Wide v_row = 0;
  Wide indexer_row;
  Wide state = 0;  ///< bytes of all sequences' recurrent states, convolution included
  [[nodiscard]] Wide bytes() const noexcept { return cells * (k_row + v_row + indexer_row) + state; }
};

/// `tokens` cells for full layers, shared by `sequences`.
LayerCache cache_of(const LayerRun& run, CacheFormats kv, const Build& build, Wide tokens, Wide sequences) {
  LayerCache cache{.cells = tokens, .indexer_row = kv.k->bytes_of(run.indexer_width)};
  const auto rows = [&](Wide heads, Wide key_width, Wide value_width) {
    cache.k_row = kv.k->bytes_of(heads * key_width);
    const Wide stored = value_width == 0 && build.value_beside_key ? key_width : value_width;
    cache.v_row = kv.v->bytes_of(heads * stored);
  };
  const auto latent = [&] {
    if (build.latent == LatentCache::heads) {
      rows(run.expanded_heads, run.expanded_key_width, run.expanded_value_width);
      return;
    }
    cache.k_row = kv.k->bytes_of(run.latent_width);
    if (build.latent == LatentCache::latent_and_value) cache.v_row = kv.v->bytes_of(run.latent_value_width);
  };
  switch (run.kind) {
    case LayerKind::full:
      cache.name = "full";
      rows(run.kv_heads, run.key_width, run.value_width);
      break;
    case LayerKind::window:
    case LayerKind::chunked:
      cache.name = build.one_cache ? "full" : "window";
      rows(run.kv_heads, run.key_width, run.value_width);
      if (!build.windows_full) {
        cache.cells = std::min(tokens, pad_to(run.window_tokens * sequences + build.in_flight, build.window_pad));
      }
      break;
    case LayerKind::latent:
      cache.name = build.latent == LatentCache::heads ? "full" : "latent";
      latent();
      break;
    case LayerKind::compressed:
      cache.name = "compressed";
      cache.cells = ceil_div<Wide>(tokens, run.tokens_per_entry);
      if (run.latent_width != 0) {
        cache.k_row = kv.k->bytes_of(run.latent_width);
      } else {
        rows(run.kv_heads, run.key_width, run.value_width);
      }
      break;
    case LayerKind::cross:
      cache.name = "cross";
      rows(run.kv_heads, run.key_width, run.value_width);
      cache.cells = run.source_tokens * sequences;
      break;
    case LayerKind::recurrent:
      cache.name = "recurrent";
      cache.cells = sequences * build.state_copies;
      cache.state = cache.cells * (run.state_values + run.conv_values) * kStateBytes;
      break;
    case LayerKind::shared:
    case LayerKind::none: break;
  }
  return cache;
}

/// Bytes that `sequences` conversations of `context` tokens need in these layers.
Wide bytes_for(std::span<const LayerRun> runs, CacheFormats kv, const Build& build, Tokens context, Wide sequences) {
  const Wide cells = pad_to(context.count, build.pad);
  Wide bytes = 0;
  for (const auto& run : runs) {
    bytes += run.count * (build.unified ? cache_of(run, kv, build, cells * sequences, sequences).bytes()
                                        : sequences * cache_of(run, kv, build, cells, 1).bytes());
  }
  return bytes;
}

/// The caches that a context of `cells` cells a stream allocates, as the engine lists them.
std::vector<CachePool> list_caches(std::span<const LayerRun> runs, CacheFormats kv, const Build& build, Wide cells,
                                   u64 sequences) {
  std::vector<CachePool> pools;
  const auto pool_of = [&](Label name, Wide of_stream, u64 streams) -> CachePool& {
    const auto same = [&](const CachePool& pool) { return pool.name == name && pool.cells == of_stream; };
    const auto found = std::ranges::find_if(pools, same);
    if (found != pools.end()) return *found;
    CachePool& pool = pools.emplace_back();
    pool.name = name;
    pool.cells = static_cast<u64>(of_stream);
    pool.streams = streams;
    return pool;
  };
  const u64 streams = build.unified ? 1 : sequences;
  for (const auto& run : runs) {
    const LayerCache cache = cache_of(run, kv, build, cells, build.unified ? sequences : 1);
    if (cache.bytes() == 0) continue;
    if (run.kind == LayerKind::recurrent) {
      CachePool& states = pool_of(cache.name, cache.cells * streams, 1);
      states.layers += run.count;
      states.state_bytes += Wide{run.count} * streams * cache.state;
      states.conv_bytes += Wide{run.count} * streams * cache.cells * run.conv_values * kStateBytes;
      continue;
    }
    CachePool& pool = pool_of(cache.name, cache.cells, streams);
    const Wide rows = Wide{run.count} * streams * cache.cells;
    pool.layers += run.count;
    pool.k_bytes += rows * cache.k_row;
    pool.v_bytes += rows * cache.v_row;
    if (cache.indexer_row != 0) {
      CachePool& keys = pool_of("indexer", cache.cells, streams);
      keys.layers += run.count;
      keys.k_bytes += rows * cache.indexer_row;
    }
  }
  return pools;
}

/// Why more is set aside for one conversation than it writes.
std::vector<MemoryPart> gaps_of(std::span<const LayerRun> runs, CacheFormats kv, const Build& build, Tokens context) {
  MemoryPart padding{.code = "padding"};
  MemoryPart in_flight{.code = "window_in_flight"};
  MemoryPart full_length{.code = "window_full_length"};
  MemoryPart values{.code = "value_copy"};
  MemoryPart heads{.code = "expanded_heads"};
  MemoryPart states{.code = "states"};
  const Wide cells = pad_to(context.count, build.pad);
  for (const auto& run : runs) {
    const LayerCache cache = cache_of(run, kv, build, cells, 1);
    const Wide written = layer_bytes(run, kv, 1, context);
    const Wide reserved = cache.bytes();
    if (run.kind == LayerKind::recurrent) {
      states.bytes += run.count * (reserved - written);
      continue;
    }
    const Wide row = cache.k_row + cache.v_row + cache.indexer_row;
    const Wide kept = rows_kept(run, context);
    const Wide spare = run.count * (cache.cells - kept) * row;
    (is_window(run) ? build.windows_full ? full_length : in_flight : padding).bytes += spare;
    const bool expanded = run.kind == LayerKind::latent && build.latent == LatentCache::heads;
    (expanded ? heads : values).bytes += run.count * (kept * row - written);
  }
  std::vector<MemoryPart> gaps;
  for (MemoryPart part : {padding, in_flight, full_length, values, heads, states}) {
    if (part.bytes == 0) continue;
    part.low = part.high = part.bytes;
    part.confidence = Confidence::engine_rule;
    gaps.push_back(part);
  }
  return gaps;
}

/// The device's compute buffer: the larger of a micro-batch's logits (n_ubatch × vocabulary × 4 bytes) and, without
/// flash attention, its attention scores (n_ubatch × cells × query heads × 4 bytes), and some more for each of its
/// tokens. The latter was 6 to 440 KiB, mostly near 100, in 30 of the 34 start-up logs of llama.cpp b1761 to b5897 that
/// state the heads; with latent rows 1.8 to 12 MiB in nine logs of ik_llama.cpp and llama.cpp b5614. A model that is
/// partly on the CPU may need a copy of its output layer beside.
MemoryPart compute_buffer(const EngineInput& in, const Build& build, Wide cells) {
  const Options& options = in.options;
  const Wide batch = options.whole("n_ubatch");
  const bool fork = options.whole("fork") == 1;
  const bool late = !options.given("version") || options.whole("version") >= u64{6325} * 1'000'000;
  const bool flash = options.given("flash_attn") ? options.truth("flash_attn") : !fork && late;
  const auto latent = [](const LayerRun& run) { return run.latent_width != 0; };
  const bool absorbed = build.latent != LatentCache::heads && std::ranges::any_of(in.model.layers, latent);
  // How much of latent layers' scores stands at once is another setting (--attention-max-batch), hence only at most.
  const auto bytes = [&](Wide heads, Wide vocabulary, Wide more_kib, bool with_scores) {
    const Wide scores = cells * (in.model.query_heads != 0 ? in.model.query_heads : heads);
    const Wide logits = in.model.vocabulary != 0 ? in.model.vocabulary : vocabulary;
    return batch * ((with_scores ? std::max(scores, logits) : logits) * 4 + more_kib * 1024);
  };
  MemoryPart part{.code = "compute_buffer", .confidence = Confidence::estimate};
  part.bytes = bytes(32, 128'256, absorbed ? 3072 : 100, !flash && !absorbed);
  part.low = bytes(8, 32'000, absorbed ? 1024 : 6, !flash && !absorbed);
  part.high = bytes(128, 262'144, absorbed ? 12288 : 448, !flash);
  return part;
}

/// The largest n of which need(n) is within `room`, as far as numbers go.
template <class Need>
Wide most_that_fit(Wide room, Need need) {
  Wide low = 0;
  Wide high = 1;
  while (high <= kMaxExact && need(high) <= room) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const Wide middle = low + (high - low) / 2;
    (need(middle) <= room ? low : high) = middle;
  }
  return low;
}

std::optional<Error> refusal(const EngineInput& in, const Build& build) {
  for (const auto& [field, format] : {std::pair{"kv.k", in.kv.k}, std::pair{"kv.v", in.kv.v}}) {
    constexpr std::string_view kTypes = "fp32 fp16 bf16 q8_0 q6_0 q5_1 q5_0 q4_1 q4_0 iq4_nl";
    bool known = false;
    for (std::string_view rest = kTypes; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      known = known || rest.substr(0, end) == format->id;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!known) {
      return Error{ErrorCode::unsupported, field,
                   Text() << format->id << " is not a type of llama.cpp's cache; these are: " << kTypes};
    }
  }
  if (in.deployment.tensor_parallel != 1) {
    return Error{ErrorCode::unsupported, "tensor_parallel",
                 "must be 1: llama.cpp deals out layers, which is pipeline_parallel"};
  }
  for (const auto& run : in.model.layers) {
    if (run.kind != LayerKind::latent) continue;
    if (build.latent == LatentCache::heads &&
        (run.expanded_heads == 0 || run.expanded_key_width == 0 || run.expanded_value_width == 0)) {
      return Error{ErrorCode::missing, "model.layers",
                   "this build caches the heads of a latent layer: expanded_heads, expanded_key_width and "
                   "expanded_value_width are needed"};
    }
    if (build.latent == LatentCache::latent_and_value && run.latent_value_width == 0) {
      return Error{ErrorCode::missing, "model.layers",
                   "this build caches a second V beside the latent: latent_value_width is needed"};
    }
  }
  return std::nullopt;
}

/// The layers that stand on GPUs when only `on_gpus` of `all` do: every kind is dealt evenly, rounded up.
std::vector<LayerRun> offloaded(std::vector<LayerRun> runs, u64 on_gpus, u64 all) {
  for (auto& run : runs) run.count = static_cast<u32>(ceil_div<u64>(run.count * on_gpus, all));
  return runs;
}

Result<Reservation> reserve(const EngineInput& in) {
  const Build build = build_of(in);
  if (auto refused = refusal(in, build)) return std::unexpected(std::move(*refused));
  if (auto refused = check_pool(in, "kv_memory_bytes")) return std::unexpected(std::move(*refused));
  const Options& options = in.options;
  const std::vector<LayerRun> merged = merge_runs(in.model.layers);
  const u64 reserved_sequences = options.whole("n_seq_max");

  Wide cells = pad_to(in.context.count, build.pad);
  if (options.given("n_ctx")) {
    const Wide own = build.unified ? options.whole("n_ctx") : options.whole("n_ctx") / reserved_sequences;
    if (own < in.context.count) {
      return fail(ErrorCode::conflict, "options.n_ctx",
                  Text() << "leaves " << own << " cells to a conversation of " << in.context.count << " tokens");
    }
    cells = pad_to(own, build.pad);
  }

  Reservation out;
  out.reserved_confidence = Confidence::engine_rule;
  out.pool_confidence = Confidence::engine_rule;
  out.caches = list_caches(merged, in.kv, build, cells, reserved_sequences);
  for (const auto& pool : out.caches) {
    const auto exact = to_bytes(pool.k_bytes + pool.v_bytes + pool.state_bytes, "options.n_seq_max");
    if (!exact) return std::unexpected(exact.error());
  }
  out.reserved_per_sequence = bytes_for(merged, in.kv, build, in.context, 1);
  out.gaps = gaps_of(merged, in.kv, build, in.context);
  out.kv_tokens = cells * (build.unified ? 1 : reserved_sequences);

  u64 layers = 0;
  for (const auto& run : merged) layers += run.count;
  layers = std::max<u64>(layers, in.model.layer_count);
  const u64 on_gpus = options.given("n_gpu_layers") ? std::min(options.whole("n_gpu_layers"), layers) : layers;
  const std::vector<LayerRun> held = stage_runs(offloaded(merged, on_gpus, layers), in.deployment.pipeline_parallel, 0);
  const auto need = [&](Wide sequences) { return bytes_for(held, in.kv, build, in.context, sequences); };

  if (options.given("kv_memory_bytes")) {
    out.pool_bytes_per_gpu = out.pool_low_per_gpu = out.pool_high_per_gpu = options.whole("kv_memory_bytes");
  } else {
    const Wide memory = program_memory(in);
    const Wide weights = ceil_div(Wide{in.weight_bytes_per_gpu.count} * on_gpus, Wide{layers});
    const MemoryPart buffer = compute_buffer(in, build, cells);
    if (const auto exact = to_bytes(buffer.high, "options.n_ubatch"); !exact) return std::unexpected(exact.error());
    out.weights_fit = weights + buffer.bytes <= memory;
    out.pool_bytes_per_gpu = without<Wide>(memory, weights + buffer.bytes);
    out.pool_low_per_gpu = without<Wide>(memory, weights + buffer.high);
    out.pool_high_per_gpu = without<Wide>(memory, weights + buffer.low);
    out.pool_confidence = Confidence::estimate;
    out.parts.push_back(buffer);
    if (in.weight_bytes && on_gpus < layers) {
      out.weight_bytes_on_gpus = weights * in.deployment.pipeline_parallel;
    }
    if (out.weights_fit) {
      out.derivation.add("kv_memory_bytes_per_gpu", out.pool_bytes_per_gpu, "bytes").terms = {
          term("", memory, "bytes_per_gpu"), term("−", weights, "weight_bytes"),
          term("−", buffer.bytes, "compute_buffer")};
    }
  }

  const u64 copies = in.deployment.data_parallel;
  out.pool_bytes = out.pool_bytes_per_gpu * in.deployment.gpus;
  const auto fits = [&](Wide room) { return out.weights_fit ? most_that_fit(room, need) : 0; };
  const Wide count = fits(out.pool_bytes_per_gpu);
  out.sequences = count * copies;
  out.sequences_low = fits(out.pool_low_per_gpu) * copies;
  out.sequences_high = fits(out.pool_high_per_gpu) * copies;
  // Between whole conversations the next one's share of its own cost counts.
  const Wide taken = need(count);
  out.concurrency_den = need(count + 1) - taken;
  out.concurrency_num =
      out.weights_fit ? (count * out.concurrency_den + (out.pool_bytes_per_gpu - taken)) * copies : Wide{0};

  std::vector<Term> sum;
  for (const auto& run : merged) {
    const LayerCache cache = cache_of(run, in.kv, build, pad_to(in.context.count, build.pad), 1);
    if (cache.bytes() == 0) continue;
    Step& step = out.derivation.add("kv_reserved_per_sequence", run.count * cache.bytes(), "bytes", cache.name);
    step.terms.push_back(term("", run.count, "layers"));
    step.terms.push_back(term("×", cache.cells, "cells"));
    step.terms.push_back(run.kind == LayerKind::recurrent
                             ? term("×", cache.state / cache.cells, "bytes_per_state")
                             : term("×", cache.k_row + cache.v_row + cache.indexer_row, "bytes_per_row"));
    sum.push_back({sum.empty() ? "" : "+", step.value_millionths, cache.name});
  }
  if (sum.size() == 1) {
    out.derivation.steps.back().part = "";
  } else if (!sum.empty()) {
    out.derivation.add("kv_reserved_per_sequence", out.reserved_per_sequence, "bytes").terms = std::move(sum);
  }
  if (count != 0) {
    Step& step = out.derivation.add("sequences", out.sequences, "conversations");
    step.terms = {term("", out.pool_bytes_per_gpu, "bytes_left"),
                  term("÷", ceil_div(need(count), count), "bytes_per_conversation")};
    if (copies > 1) step.terms.push_back(term("×", copies, "copies"));
    step.rounded_down = true;
  }

  if (build.windows_full && std::ranges::any_of(merged, is_window)) out.notes.push_back({"windows_stored_full", {}});
  if (std::ranges::any_of(merged, [](const LayerRun& run) { return run.kind == LayerKind::latent; })) {
    if (build.latent == LatentCache::heads) out.notes.push_back({"latent_stored_as_heads", {}});
    if (build.latent == LatentCache::latent_and_value) out.notes.push_back({"latent_stored_twice", {}});
  }
  if (on_gpus < layers) {
    out.notes.push_back({"layers_on_cpu", {{"layers", digits(layers - on_gpus)}, {"of", digits(layers)}}});
  }
  list_ranks(in, out);
  out.notes.push_back({"reserves_at_start", {{"sequences", digits(reserved_sequences)}}});
  return out;
}

}  // namespace

const EngineRules& llama_cpp_rules() noexcept {
  static constexpr EngineRules kRules{EngineId::llama_cpp, "llama.cpp", kOptions, reserve};
  return kRules;
}

}  // namespace kvcap
