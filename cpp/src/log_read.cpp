// From the figures of a log to one answer: what was printed, which deployment it is, and how the rules compare.
#include <algorithm>

#include "answer.hpp"
#include "kvcap/log.hpp"
#include "log_figures.hpp"

namespace kvcap {
namespace {

using json::Writer;
using log::Cache;
using log::Family;
using log::Field;
using log::Figures;
using log::Found;
using log::Kind;
using log::Merge;
using enum log::Field;

constexpr u64 kBillion = 1'000'000'000;
constexpr u64 kMillion = 1'000'000;

u64 apart(u64 a, u64 b) { return a > b ? a - b : b - a; }
u64 at_least_one(u64 n) { return n != 0 ? n : 1; }

// ---- the deployment that a log describes ---------------------------------------------------------------------------

/// A request before it is written.
struct Question {
  struct Option {
    const OptionSpec* spec;
    u64 value;
    std::string_view text;
  };

  const EngineRules* engine = nullptr;
  std::string_view model_id;
  std::string_view name;
  std::vector<LayerRun> layers;
  std::string_view gpu_id;
  u64 memory = 0;
  u64 tensor = 0, pipeline = 0, data = 0;
  u64 context = 0;
  u64 weight_bytes = 0;
  const Format* k = nullptr;
  const Format* v = nullptr;
  std::vector<Option> options;

  /// Sets an option if the engine has one of that name (or alias) and takes that value.
  void set(std::string_view option, u64 value, std::string_view text = {}) {
    for (const auto& spec : engine->options) {
      if (spec.name != option && !log::lists(spec.aliases, option)) continue;
      const bool word = spec.kind == OptionKind::choice || spec.kind == OptionKind::version;
      if (!word && (value < spec.min || value > spec.max)) return;
      if (spec.kind == OptionKind::choice && !log::lists(spec.choices, text)) return;
      std::erase_if(options, [&](const Option& one) { return one.spec == &spec; });
      options.push_back({&spec, value, text});
    }
  }
  [[nodiscard]] bool has_model() const { return !model_id.empty() || !layers.empty(); }
  [[nodiscard]] bool has_gpu() const { return memory != 0 || !gpu_id.empty(); }
  [[nodiscard]] u64 split() const { return at_least_one(tensor) * at_least_one(pipeline); }
};

void write_question(Writer& out, const Question& question) {
  out.begin_object();
  if (!question.model_id.empty()) {
    out.key("model").text(question.model_id);
  } else if (!question.layers.empty()) {
    out.key("model").begin_object().key("name").text(question.name).key("layers").begin_array();
    for (const auto& run : question.layers) write_run(out, run);
    out.end_array().end_object();
  }
  out.key("engine").text(question.engine->name);
  if (question.memory != 0) {
    out.key("gpu").begin_object().key("memory_bytes").number(question.memory).end_object();
  } else if (!question.gpu_id.empty()) {
    out.key("gpu").text(question.gpu_id);
  }
  const std::pair<Label, u64> counts[] = {{"tensor_parallel", question.tensor},
                                          {"pipeline_parallel", question.pipeline},
                                          {"data_parallel", question.data},
                                          {"context", question.context},
                                          {"weight_bytes", question.weight_bytes}};
  for (const auto& [key, value] : counts) {
    if (value != 0) out.key(key).number(value);
  }
  if (question.k != nullptr && question.k == question.v) {
    out.key("kv").text(question.k->id);
  } else if (question.k != nullptr && question.v != nullptr) {
    out.key("kv").begin_object().key("k").text(question.k->id).key("v").text(question.v->id).end_object();
  }
  out.key("options").begin_object();
  for (const auto& [spec, value, text] : question.options) {
    out.key(spec->name);
    switch (spec->kind) {
      case OptionKind::fraction: out.decimal(ceil_div<u64>(value, 1000)); break;
      case OptionKind::truth: out.boolean(value != 0); break;
      case OptionKind::version:
      case OptionKind::choice: out.text(text); break;
      case OptionKind::whole:
      case OptionKind::bytes: out.number(value); break;
    }
  }
  out.end_object().end_object();
}

/// A figure that becomes an option.
struct OptionOf {
  Label engine;
  Field field;
  Label option;
};
constexpr OptionOf kOptionsOf[] = {
    {"vllm", utilization, "gpu_memory_utilization"},
    {"vllm", batched_tokens, "max_num_batched_tokens"},
    {"vllm", max_num_seqs, "max_num_seqs"},
    {"vllm", block_size, "block_size"},
    {"vllm", context_parallel, "decode_context_parallel_size"},
    {"vllm", activation, "activation_bytes"},
    {"vllm", non_torch, "non_torch_bytes"},
    {"vllm", graph_estimate, "cuda_graph_bytes"},
    {"vllm", prefix_caching, "enable_prefix_caching"},
    {"vllm", ssm_dtype, "mamba_ssm_cache_dtype"},
    {"vllm", enforce_eager, "enforce_eager"},
    {"vllm", no_hybrid_manager, "disable_hybrid_kv_cache_manager"},
    {"vllm", mamba_mode, "mamba_cache_mode"},
    {"vllm", cpu_offload, "cpu_offload_gb"},
    {"vllm", blocks_override, "num_gpu_blocks_override"},
    {"sglang", static_fraction, "mem_fraction_static"},
    {"sglang", max_requests, "max_running_requests"},
    {"sglang", swa_ratio, "swa_full_tokens_ratio"},
    {"sglang", mamba_slots, "max_mamba_cache_size"},
    {"sglang", page_size, "page_size"},
    {"sglang", max_total_tokens, "max_total_tokens"},
    {"sglang", chunked_prefill, "chunked_prefill_size"},
    {"sglang", graph_batch, "cuda_graph_max_bs"},
    {"sglang", mamba_ratio, "mamba_full_memory_ratio"},
    {"sglang", no_radix_cache, "disable_radix_cache"},
    {"sglang", no_window_pool, "disable_hybrid_swa_memory"},
    {"sglang", ssm_dtype, "mamba_ssm_dtype"},
    {"tensorrt-llm", free_fraction, "free_gpu_memory_fraction"},
    {"tensorrt-llm", block_size, "tokens_per_block"},
    {"tensorrt-llm", available, "free_memory_bytes"},
    {"llama.cpp", n_ctx, "n_ctx"},
    {"llama.cpp", n_seq_max, "n_seq_max"},
    {"llama.cpp", n_ubatch, "n_ubatch"},
    {"llama.cpp", n_batch, "n_batch"},
    {"llama.cpp", flash_attn, "flash_attn"},
    {"llama.cpp", kv_unified, "kv_unified"},
    {"llama.cpp", swa_full, "swa_full"},
};

/// A log, understood.
struct Reader {
  const log::Scan& scan;
  const Features& features;
  Figures figures;
  std::string_view engine_name;
  std::string_view variant;
  std::string version;
  const CatalogueEntry* entry = nullptr;
  const Gpu* gpu_found = nullptr;
  Question question;

  Reader(const log::Scan& read, const Features& with) : scan(read), features(with), figures(read) {
    name_engine();
    if (question.engine != nullptr) describe();
  }

  [[nodiscard]] bool is(std::string_view name) const { return engine_name == name; }
  [[nodiscard]] bool llama() const { return is("llama.cpp"); }

  void name_engine() {
    const auto votes = [&](Family family) { return scan.votes[static_cast<std::size_t>(family)]; };
    const std::pair<std::string_view, u32> candidates[] = {
        {"vllm", votes(Family::vllm) + votes(Family::aphrodite) + votes(Family::ascend)},
        {"sglang", votes(Family::sglang)},
        {"llama.cpp", votes(Family::llama_cpp) + votes(Family::ik) + votes(Family::ollama)},
        {"tensorrt-llm", votes(Family::tensorrt_llm)},
    };
    u32 most = 0;
    for (const auto& [name, count] : candidates) {
      if (count <= most) continue;
      most = count;
      engine_name = name;
    }
    for (const auto& rules : features.engines) {
      if (is(rules.name)) question.engine = &rules;
    }
    if (is("vllm"))
      variant = votes(Family::aphrodite) != 0 ? "aphrodite" : votes(Family::ascend) != 0 ? "vllm-ascend" : "";
    if (llama()) variant = votes(Family::ik) != 0 ? "ik_llama.cpp" : votes(Family::ollama) != 0 ? "ollama" : "";
    for (const Found* one : figures.all(Field::version)) {
      std::string_view text = one->text;
      if (text.starts_with('v') || text.starts_with('b')) text.remove_prefix(1);
      if (!version.empty() || text.empty() || text.front() < '0' || text.front() > '9') continue;
      if (llama()) {
        version = 'b';
        text = text.substr(0, text.find('-'));
      }
      version += text.substr(0, text.find('\\'));  // a line's end as a container's JSON writes it
    }
  }

  /// The pool of one GPU (all of llama.cpp's caches), as printed; 0 where it is not.
  [[nodiscard]] u64 pool_bytes() const {
    if (llama()) return figures.cache_bytes();
    if (!is("sglang")) return figures.number(kv_memory);
    if (figures.has(swa_total)) return figures.number(swa_total);
    return figures.pools.empty() ? 0 : figures.pools.front().bytes();
  }
  /// How far it may be off by the digits that were left out.
  [[nodiscard]] u64 pool_tolerance() const {
    const Found* const printed = figures.get(is("sglang") ? swa_total : kv_memory);
    if (printed != nullptr) return printed->tolerance;
    return figures.pools.empty() ? 0 : figures.pools.front().tolerance;
  }

  [[nodiscard]] u64 ranks() const {
    const u64 by_flags =
        figures.number(tensor_parallel, 1) * figures.number(pipeline_parallel, 1) * figures.number(data_parallel, 1);
    return std::max(
        {by_flags, u64{llama() ? figures.gpu_devices() : figures.ranks.size()}, figures.number(world_size), u64{1}});
  }

  void describe() {
    for (const Field field : {Field::model, Field::model_name, Field::meta_path}) {
      const std::string_view name = figures.text(field);
      if (entry == nullptr && !name.empty()) entry = log::find_named_model(name);
    }
    const u64 layer_count = figures.number(n_layer);
    if (entry != nullptr && layer_count != 0 && entry->layer_count != 0 && entry->layer_count != layer_count) {
      entry = nullptr;  // another model of that name
    }
    // Where no total is printed, what was free at the start is nearly that.
    const u64 free_at_start = llama() ? figures.number(device_free) : figures.number(avail_before_load);
    const u64 total = figures.number(total_memory, figures.number(driver_memory, free_at_start));
    if (figures.has(Field::gpu)) gpu_found = log::find_printed_gpu(figures.text(Field::gpu), total);

    if (entry != nullptr) {
      question.model_id = entry->id;
    } else if (llama()) {
      question.layers = log::layers_of(figures);
      question.name = figures.text(figures.has(model_name) ? model_name : arch);
    }
    if (gpu_found != nullptr && (llama() || !figures.has(total_memory))) {
      question.gpu_id = gpu_found->id;
    } else {
      question.memory = total;
    }
    if (llama()) {
      question.context = figures.number(n_ctx_seq, figures.number(n_ctx) / at_least_one(figures.number(n_seq_max)));
      question.pipeline = figures.gpu_devices();
      question.weight_bytes = figures.number(model_size);
    } else {
      question.context = figures.number(max_model_len);
      question.tensor = figures.number(tensor_parallel);
      question.pipeline = figures.number(pipeline_parallel);
      question.data = figures.number(data_parallel);
      if (question.tensor + question.pipeline + question.data == 0 && !figures.ranks.empty()) {
        question.tensor = figures.tensor_ranks;
        question.pipeline = figures.pipeline_ranks;
      }
      if (const u64 all = figures.number(world_size); question.tensor == 0) {
        question.tensor = all / at_least_one(question.pipeline);
      }
      const u64 loaded = figures.number(weights);
      if (loaded <= kMaxExact / question.split()) question.weight_bytes = loaded * question.split();
    }
    set_formats();
    set_options();
  }

  void set_formats() {
    std::string_view k = figures.text(kv_dtype);
    if (k.empty() || k == "auto") k = figures.text(dtype);
    std::string_view v = k;
    if (llama()) {
      k = figures.text(type_k);
      v = figures.has(type_v) ? figures.text(type_v) : "f16";
      for (const Cache& cache : figures.caches) {
        if (cache.recurrent()) continue;
        k = cache.k_type;
        v = cache.v_type.empty() ? k : cache.v_type;
        break;
      }
    }
    question.k = log::cache_format(k);
    question.v = log::cache_format(v);
    if (question.k == nullptr || question.v == nullptr) question.k = question.v = nullptr;
  }

  void set_options() {
    if (!version.empty()) question.set("version", 0, version);
    for (const auto& [name, field, option] : kOptionsOf) {
      const Found* const one = figures.get(field);
      if (one == nullptr || !is(name) || one->value < 0) continue;
      auto value = static_cast<u64>(one->value);
      if (log::spec_of(field).kind == Kind::text && field != ssm_dtype && field != mamba_mode) {
        const auto truth = log::truth_of(one->text);
        if (!truth) continue;
        value = *truth ? 1 : 0;
      }
      question.set(option, value, one->text);
    }
    if (!llama()) {
      if (pool_bytes() != 0) {
        question.set("kv_memory_bytes", pool_bytes());
      } else if (figures.has(kv_blocks) && is("vllm")) {
        // The printed blocks are the pool; their bytes follow from the model.
        question.set("num_gpu_blocks_override", figures.number(kv_blocks));
      }
      return;
    }
    if (variant == "ik_llama.cpp") question.set("fork", 0, variant);
    if (figures.has(mla_attn)) {
      const auto mode = figures.list(mla_attn);
      if (!mode.empty()) question.set("mla_attn", mode.front());
    }
    for (const Cache& cache : figures.caches) {
      if (cache.copies != 0) question.set("n_rs_seq", cache.copies);
      if (!cache.recurrent() && cache.streams > 1) question.set("kv_unified", 0);  // each sequence has a stream
    }
  }
};

// ---- writing -------------------------------------------------------------------------------------------------------

void write_reading(Writer& out, u64 bytes) {
  const Reading reading = read_binary(Bytes{bytes});
  out.begin_object().key("value").decimal(reading.millionths).key("unit").text(reading.unit).end_object();
}

void put(Writer& out, Label key, u64 value, bool known) {
  out.key(key);
  if (known) {
    out.number(value);
  } else {
    out.null();
  }
}
/// null for 0, which stands for a figure that was not printed.
void put_printed(Writer& out, Label key, u64 value) { put(out, key, value, value != 0); }

void put_text(Writer& out, Label key, std::string_view text) {
  out.key(key);
  if (text.empty()) {
    out.null();
  } else {
    out.text(text);
  }
}

void put_rank(Writer& out, int rank) { put(out, "rank", static_cast<u64>(rank), rank >= 0); }

void write_value(Writer& out, const Found& one) {
  switch (log::spec_of(one.field).kind) {
    case Kind::decimal: out.decimal(static_cast<u64>(std::max<std::int64_t>(one.value, 0)) / 1000); break;
    case Kind::text: out.text(one.text); break;
    default: out.integer(one.value); break;
  }
}

/// A note that is written as its values are named: texts, and byte counts as people read them beside.
class NoteWriter {
 public:
  NoteWriter(Writer& out, Label code) : out_(out) {
    out_.begin_object().key("code").text(code).key("values").begin_object();
  }
  NoteWriter(const NoteWriter&) = delete;
  NoteWriter& operator=(const NoteWriter&) = delete;
  ~NoteWriter() {
    out_.end_object().key("readings").begin_object();
    for (std::size_t i = 0; i < count_; ++i) {
      out_.key(bytes_[i].first);
      write_reading(out_, bytes_[i].second);
    }
    out_.end_object().end_object();
  }
  NoteWriter& with(Label name, std::string_view text) {
    out_.key(name).text(text);
    return *this;
  }
  NoteWriter& with(Label name, u64 value) {
    if (std::string_view(name).ends_with("bytes") && count_ < bytes_.size()) bytes_[count_++] = {name, value};
    return with(name, digits(value));
  }
  NoteWriter& with(Label name, const Found& one) {
    const Kind kind = log::spec_of(one.field).kind;
    if (kind == Kind::text) return with(name, one.text);
    if (one.value < 0) return with(name, "-" + digits(static_cast<u64>(-one.value)));
    const auto value = static_cast<u64>(one.value);
    return kind == Kind::decimal ? with(name, decimals(value, kBillion)) : with(name, value);
  }

 private:
  Writer& out_;
  std::array<std::pair<Label, u64>, 8> bytes_{};
  std::size_t count_ = 0;
};

Label unit_of(Field field) {
  const auto& spec = log::spec_of(field);
  if (spec.kind == Kind::bytes) return "bytes";
  if (spec.name.ends_with("tokens") || spec.name.starts_with("n_ctx") || field == max_model_len ||
      field == block_size) {
    return "tokens";
  }
  if (spec.name.ends_with("blocks")) return "blocks";
  return spec.name.ends_with("cells") ? "cells" : "";
}

void write_lines(Writer& out, const Reader& reader) {
  constexpr std::size_t kShown = 400;
  constexpr std::size_t kShownOfField = 24;
  std::array<std::size_t, log::kFields> shown{};
  std::size_t total = 0;
  u64 left_out = reader.scan.left_out;
  out.key("lines").begin_array();
  for (const auto& one : reader.scan.found) {
    const auto& spec = log::spec_of(one.field);
    if (spec.name.empty()) continue;
    std::size_t& count = shown[static_cast<std::size_t>(one.field)];
    if (count >= kShownOfField || total >= kShown) {
      ++left_out;
      continue;
    }
    ++count;
    ++total;
    out.begin_object().key("line").number(one.line);
    put_rank(out, reader.figures.rank_of(one));
    out.key("field").text(spec.name).key("value");
    write_value(out, one);
    out.key("unit").text(unit_of(one.field)).key("tolerance");
    if (spec.kind == Kind::decimal) {
      out.decimal(one.tolerance / 1000);
    } else {
      out.number(one.tolerance);
    }
    out.key("text").text(one.excerpt).end_object();
  }
  out.end_array().key("lines_left_out").number(left_out);
}

void write_pools(Writer& out, const Figures& figures) {
  const u64 window_slots = figures.number(swa_tokens);
  const u64 full_slots = figures.number(full_tokens);
  const std::size_t kinds = figures.has(swa_tokens) ? 2 : 1;
  std::size_t written = 0;
  out.key("pools").begin_array();
  for (const auto& pool : figures.pools) {
    // Every rank prints the same pools; a draft model's follow the main one's.
    if (pool.rank != figures.pools.front().rank || written == kinds) continue;
    const bool of_windows = pool.tokens != 0 ? pool.tokens == window_slots && pool.tokens != full_slots : written == 0;
    ++written;
    out.begin_object().key("kind").text(kinds == 2 && of_windows ? "window" : "full");
    put_printed(out, "tokens", pool.tokens);
    put_printed(out, "k_bytes", pool.k);
    put_printed(out, "v_bytes", pool.v);
    out.key("bytes").number(pool.bytes()).end_object();
  }
  out.end_array();
}

void write_caches(Writer& out, const Figures& figures) {
  out.key("caches").begin_array();
  for (const auto& cache : figures.caches) {
    out.begin_object().key("kind").text(cache.kind).key("cells").number(cache.cells);
    out.key("layers").number(cache.layers).key("n_seqs").number(cache.seqs).key("streams").number(cache.streams);
    if (cache.recurrent()) {
      out.key("copies").number(cache.copies);
    } else {
      put_text(out, "k_type", cache.k_type);
      put_text(out, "v_type", cache.v_type);
    }
    put_printed(out, cache.recurrent() ? "r_bytes" : "k_bytes", cache.k);
    put_printed(out, cache.recurrent() ? "s_bytes" : "v_bytes", cache.v);
    out.key("bytes").number(cache.bytes()).end_object();
  }
  out.end_array().key("devices").begin_array();
  for (const auto& device : figures.devices) {
    out.begin_object();
    put_text(out, "device", device.name);
    put_printed(out, "model_bytes", device.model);
    put_printed(out, "kv_bytes", device.kv);
    put_printed(out, "state_bytes", device.state);
    put_printed(out, "compute_bytes", device.compute);
    out.end_object();
  }
  out.end_array();
}

void write_printed(Writer& out, const Reader& reader) {
  const Figures& figures = reader.figures;
  const bool summed = reader.llama() || reader.is("sglang");
  const auto skipped = [&](Field field) {
    const auto& spec = log::spec_of(field);
    return !figures.has(field) || spec.name.empty() || (spec.merge == Merge::parts && field != swa_total) ||
           (field == kv_memory && summed);
  };
  out.key("printed").begin_object();
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const auto field = static_cast<Field>(i);
    if (skipped(field) || field == Field::version) continue;
    out.key(log::spec_of(field).name);
    write_value(out, *figures.get(field));
  }
  if (summed && reader.pool_bytes() != 0) out.key("kv_memory_bytes").number(reader.pool_bytes());
  // Each rank's pool once; some say it again when all is done.
  std::vector<const Found*> by_rank;
  for (const Found* one : figures.all(kv_memory)) {
    bool again = false;
    for (const Found* other : by_rank) {
      again = again || (other->rank == one->rank && (one->rank.said() || other->value == one->value));
    }
    if (!again) by_rank.push_back(one);
  }
  if (by_rank.size() > 1 && !summed) {
    out.key("kv_memory_by_rank").begin_array();
    for (const Found* one : by_rank) {
      out.begin_object();
      put_rank(out, figures.rank_of(*one));
      out.key("bytes").integer(one->value).end_object();
    }
    out.end_array();
  }
  if (!figures.pools.empty()) write_pools(out, figures);
  if (reader.llama()) write_caches(out, figures);
  out.end_object();

  out.key("readings").begin_object();
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const auto field = static_cast<Field>(i);
    if (skipped(field) || log::spec_of(field).kind != Kind::bytes || figures.get(field)->value < 0) continue;
    out.key(log::spec_of(field).name);
    write_reading(out, figures.number(field));
  }
  if (summed && reader.pool_bytes() != 0) {
    out.key("kv_memory_bytes");
    write_reading(out, reader.pool_bytes());
  }
  out.end_object();
}

// ---- the computed side ---------------------------------------------------------------------------------------------

/// What a plan answers, as far as it is compared; 0 where it says nothing.
struct Computed {
  bool answered = false;
  u64 tokens = 0, tokens_other = 0, blocks = 0;
  u64 block_tokens = 0;
  u64 pool = 0, pool_low = 0, pool_high = 0;  ///< bytes on one GPU
  bool pool_estimated = false;
  u64 reserved = 0;     ///< bytes of one conversation, on all GPUs
  u64 concurrency = 0;  ///< millionths
  struct Part {
    char kind = 0;  ///< first letter of the cache's name
    u64 cells = 0, bytes = 0;
  };
  std::vector<Part> caches;
};

u64 whole_of(const json::Value& object, Label key) {
  const json::Value* const value = object.get(key);
  if (value == nullptr) return 0;
  const auto read = json::to_whole(*value, key, 0, kMaxExact);
  return read ? *read : 0;
}

/// Asks for the plan of a request; a refusal becomes a note.
Computed compute(const Question& question, const Features& features, Writer* refusals = nullptr) {
  Writer request;
  Question asked = question;
  if (!asked.has_gpu()) {
    // A card that just holds what was printed: from a known pool nothing is budgeted.
    Wide bytes = ceil_div(asked.weight_bytes, asked.split());
    for (const auto& option : asked.options) {
      if (option.spec->kind == OptionKind::bytes) bytes += option.value;
      if (option.spec->name == "num_gpu_blocks_override") bytes = kMaxExact >> 10;  // their bytes are asked for
    }
    asked.memory = static_cast<u64>(std::min<Wide>(bytes, kMaxExact));
  }
  write_question(request, asked);
  Computed out;
  const auto document = json::Document::parse(plan_json(request.take(), features), "answer", kMaxRequestBytes);
  if (!document) return out;
  const json::Value& root = document->root();
  if (const json::Value* const error = root.find("error"); error != nullptr) {
    if (refusals == nullptr) return out;
    NoteWriter note(*refusals, "request_refused");
    for (const Label key : {"code", "field", "message"}) note.with(key, error->find(key)->text);
    return out;
  }
  out.answered = true;
  out.tokens = whole_of(root, "kv_tokens");
  out.tokens_other = whole_of(root, "kv_tokens_other");
  out.blocks = whole_of(root, "kv_blocks");
  out.block_tokens = whole_of(root, "block_tokens");
  out.reserved = whole_of(root, "kv_reserved_per_sequence");
  out.pool = out.pool_low = out.pool_high = whole_of(root, "kv_memory_bytes_per_gpu");
  if (const json::Value* const range = root.get("kv_memory_bytes_per_gpu_range"); range != nullptr) {
    u64* bound = &out.pool_low;
    for (const json::Value& one : *range) {
      const auto read = json::to_whole(one, "range", 0, kMaxExact);
      if (read) *bound = *read;
      bound = &out.pool_high;
    }
  }
  const json::Value* const sure = root.find("confidence");
  const json::Value* const sure_of_pool = sure != nullptr ? sure->get("kv_memory_bytes") : nullptr;
  out.pool_estimated = sure_of_pool == nullptr || sure_of_pool->text == "estimate";
  if (const json::Value* const times = root.get("concurrency"); times != nullptr) {
    const auto read = json::to_fraction(*times, "concurrency", {0}, {kMaxExact});
    if (read) out.concurrency = read->billionths / 1000;
  }
  for (const json::Value& one : *root.find("caches")) {
    out.caches.push_back({one.find("name")->text.front(), whole_of(one, "cells"),
                          whole_of(one, "k_bytes") + whole_of(one, "v_bytes") + whole_of(one, "state_bytes")});
  }
  return out;
}

// ---- the printed side ----------------------------------------------------------------------------------------------

/// The bar of one GPU (of all, for llama.cpp) from the printed figures.
void write_memory(Writer& out, const Reader& reader, const Computed& base) {
  const Figures& figures = reader.figures;
  std::vector<std::pair<Label, u64>> segments;
  Wide drawn = 0;
  const auto add = [&](Label kind, u64 bytes) {
    if (bytes == 0) return;
    segments.emplace_back(kind, bytes);
    drawn += bytes;
  };
  u64 total = reader.llama() ? 0 : figures.number(total_memory, figures.number(avail_before_load));
  if (total == 0 && reader.gpu_found != nullptr) {
    Deployment on;
    on.gpu = reader.gpu_found;
    total = on.memory(false).bytes.count * (reader.llama() ? at_least_one(figures.gpu_devices()) : 1);
  }
  if (reader.llama()) {
    log::Device sum;
    for (const auto& device : figures.devices) {
      if (device.host()) continue;
      sum.model += device.model;
      sum.kv += device.kv + device.state;
      sum.compute += device.compute;
    }
    add("weights", sum.model != 0 ? sum.model : figures.number(model_size));
    add("compute_buffer", sum.compute);
    add("cache", sum.kv != 0 ? sum.kv : figures.cache_bytes());
  } else {
    add("weights", figures.number(weights));
    add("activation", figures.number(activation));
    add("non_torch", figures.number(non_torch));
    add("cuda_graph", figures.number(figures.has(cuda_graph) ? cuda_graph : graph_estimate));
    add("states", figures.number(mamba_conv) + figures.number(mamba_state));
    if (figures.has(available) && !figures.has(weights)) add("in_use", without(total, figures.number(available)));
    // Blocks without their bytes: as many as the model's blocks take.
    add("cache", figures.has(kv_blocks) && reader.pool_bytes() == 0 ? base.pool : reader.pool_bytes());
  }
  out.key("memory");
  if (segments.empty() || drawn > kMaxExact) {
    out.null();
    return;
  }
  const auto scale = std::max(total, static_cast<u64>(drawn));
  add("left", without(total, static_cast<u64>(drawn)));
  out.begin_object();
  put_printed(out, "total_bytes", total);
  out.key("total_reading");
  if (total != 0) {
    write_reading(out, total);
  } else {
    out.null();
  }
  out.key("total_share").decimal(Wide{total != 0 ? total : scale} * kMillion / scale).key("segments").begin_array();
  for (const auto& [kind, bytes] : segments) {
    out.begin_object().key("kind").text(kind).key("bytes").number(bytes).key("reading");
    write_reading(out, bytes);
    out.key("share").decimal(Wide{bytes} * kMillion / scale).end_object();
  }
  out.end_array().end_object();
}

// ---- what is not there, and what contradicts itself ----------------------------------------------------------------

void write_missing(Writer& out, const Reader& reader) {
  const Question& question = reader.question;
  const Figures& figures = reader.figures;
  const bool server = question.engine != nullptr && !reader.llama();
  const bool vllm = reader.is("vllm");
  const struct {
    Label field;
    bool lacking;
  } asked[] = {
      {"engine", question.engine == nullptr},
      {"model", !question.has_model()},
      {"gpu", !question.has_gpu()},
      {"context", question.context == 0},
      {"kv", !server && question.k == nullptr},
      {"weight_bytes", question.weight_bytes == 0},
      {"kv_memory_bytes", reader.pool_bytes() == 0 && !figures.has(kv_tokens) && !figures.has(kv_blocks)},
      {"tensor_parallel", server && question.tensor == 0 && reader.ranks() == 1},
      {"gpu_memory_utilization", vllm && !figures.has(utilization)},
      {"version", vllm && reader.version.empty()},
      {"mem_fraction_static", reader.is("sglang") && !figures.has(static_fraction)},
      {"free_gpu_memory_fraction", reader.is("tensorrt-llm") && !figures.has(free_fraction)},
  };
  out.key("missing").begin_array();
  for (const auto& [field, lacking] : asked) {
    if (!lacking) continue;
    out.text(field);
    if (question.engine == nullptr) break;
  }
  out.end_array();
}

/// Tokens are blocks × block, or blocks // groups × block, or concurrency × length.
bool tokens_are_blocks(const Figures& figures) {
  const u64 tokens = figures.number(kv_tokens);
  const Wide blocks = figures.number(kv_blocks);
  const u64 block = figures.number(block_size);
  if (tokens == 0 || blocks == 0 || block == 0) return true;
  for (unsigned groups = 1; groups <= 64; ++groups) {
    const Wide product = blocks / groups * block;
    if (product == tokens || product * figures.number(context_parallel, 1) == tokens) return true;
  }
  const Found* const times = figures.get(concurrency);
  if (times == nullptr) return false;
  const u64 printed = figures.number(concurrency);
  const Wide length = figures.number(max_model_len);
  return without(printed, times->tolerance) * length / kBillion <= tokens &&
         tokens <= (printed + times->tolerance) * length / kBillion + 1;
}

/// vLLM: total × utilisation − weights − activation − non-torch (− graphs) = pool. Says so where it holds (`holds`), or
/// where it does not.
void check_budget(Writer& out, const Reader& reader, bool holds) {
  const Found* terms[6] = {};
  std::size_t count = 0;
  for (const Field field : {total_memory, utilization, kv_memory, weights, activation, non_torch}) {
    terms[count++] = reader.figures.get(field);
    if (!reader.is("vllm") || terms[count - 1] == nullptr) return;
  }
  const auto& [total, share, pool, loaded, peak, other] = terms;
  const Wide whole = static_cast<u64>(total->value);
  const Found* const graphs = reader.figures.get(graph_estimate);
  const std::int64_t left = static_cast<std::int64_t>(whole * static_cast<u64>(share->value) / kBillion) -
                            loaded->value - peak->value - other->value - (graphs != nullptr ? graphs->value : 0);
  // A utilisation printed with two digits is off by up to half of the last; 64 MiB is what the rest leaves open.
  const u64 slack = static_cast<u64>(whole * share->tolerance / kBillion) + total->tolerance + pool->tolerance +
                    loaded->tolerance + peak->tolerance + other->tolerance + (u64{64} << 20);
  const auto difference = static_cast<u64>(left > pool->value ? left - pool->value : pool->value - left);
  if ((difference <= slack) != holds) return;
  NoteWriter note(out, holds ? "budget_closes" : "budget_does_not_close");
  for (const Found* one : terms) note.with(log::spec_of(one->field).name.data(), *one);
  if (left < 0) {
    note.with("left_bytes", "-" + digits(static_cast<u64>(-left)));
  } else {
    note.with("left_bytes", static_cast<u64>(left));
  }
  note.with("difference_bytes", difference);
}

void write_contradictions(Writer& out, const Reader& reader) {
  const Figures& figures = reader.figures;
  out.key("contradictions").begin_array();
  // Flags are said once or said alike.
  for (std::size_t i = 0; i < log::kFields; ++i) {
    const auto field = static_cast<Field>(i);
    const auto& spec = log::spec_of(field);
    const auto& all = figures.all(field);
    if (spec.merge != Merge::last || spec.name.empty()) continue;
    for (const Found* one : all) {
      const Found& last = *all.back();
      const bool differs =
          spec.kind == Kind::text
              ? one->text != last.text && one->text != "auto" && last.text != "auto" &&
                    log::truth_of(one->text) != log::truth_of(last.text)
              : apart(static_cast<u64>(one->value), static_cast<u64>(last.value)) > one->tolerance + last.tolerance;
      if (!differs) continue;
      NoteWriter(out, "two_values")
          .with("field", spec.name)
          .with("first", *one)
          .with("first_line", one->line)
          .with("second", last)
          .with("second_line", last.line);
      break;
    }
  }
  if (!tokens_are_blocks(figures)) {
    NoteWriter(out, "tokens_are_not_blocks")
        .with("tokens", figures.number(kv_tokens))
        .with("blocks", figures.number(kv_blocks))
        .with("block_size", figures.number(block_size));
  }
  check_budget(out, reader, false);
  const u64 total = figures.number(total_memory);
  const std::pair<Label, Field> parts[] = {{"pool_above_total", kv_memory}, {"available_above_total", available}};
  for (const auto& [code, part] : parts) {
    if (total == 0 || figures.number(part) <= total) continue;
    NoteWriter(out, code).with(log::spec_of(part).name.data(), figures.number(part)).with("total_memory_bytes", total);
  }
  for (const auto& cache : figures.caches) {
    if (cache.size == 0 || cache.k == 0 || cache.v == 0 ||
        apart(cache.k + cache.v, cache.size) <= 3 * std::max(cache.k_tolerance, cache.v_tolerance)) {
      continue;
    }
    NoteWriter(out, "parts_are_not_the_sum")
        .with("line", cache.line)
        .with("k_bytes", cache.k)
        .with("v_bytes", cache.v)
        .with("bytes", cache.size);
  }
  out.end_array();
}

// ---- what a reader should know -------------------------------------------------------------------------------------

/// Tokens ÷ length is the concurrency of plain attention alone.
void explain_concurrency(Writer& out, const Figures& figures, u64 usual_block) {
  const Found* const times = figures.get(concurrency);
  const u64 tokens = figures.number(kv_tokens, figures.number(kv_blocks) * figures.number(block_size, usual_block));
  const u64 length = figures.number(max_model_len);
  if (times == nullptr || tokens == 0 || length == 0) return;
  const Wide exact = Wide{tokens} * kBillion / length;
  const u64 printed = figures.number(concurrency);
  const bool same = exact + times->tolerance + 1 >= printed && exact <= Wide{printed} + times->tolerance + 1;
  NoteWriter(out, same ? "concurrency_is_tokens_over_length" : "concurrency_is_not_tokens_over_length")
      .with("max_concurrency", *times)
      .with("tokens_over_length", decimals(exact / 10'000'000, 100))
      .with("kv_tokens", tokens)
      .with("max_model_len", length);
}

void write_facts(Writer& out, const Reader& reader, const Computed& base) {
  const Figures& figures = reader.figures;
  const std::pair<Label, bool> plain[] = {
      {"nothing_found", reader.question.engine == nullptr},
      {"gb_means_gib", figures.decimal_labels},
      {"draft_model", figures.draft},
      {"window_full_length", log::truth_of(figures.text(swa_full)).value_or(false)},
  };
  for (const auto& [code, holds] : plain) {
    if (holds) NoteWriter(out, code);
  }
  const auto count = [&](Label code, Label name, u64 value) {
    if (value != 0) NoteWriter(out, code).with(name, value);
  };
  count("several_starts", "count", reader.scan.starts > 1 ? reader.scan.starts : 0);
  const auto& pools = figures.all(kv_memory);
  if (!pools.empty()) {
    const Found& poorest = *figures.get(kv_memory);
    const Found* richest = &poorest;
    for (const Found* one : pools) {
      if (one->value > richest->value) richest = one;
    }
    if (richest != &poorest) {
      NoteWriter note(out, "poorest_rank");
      note.with("kv_memory_bytes", poorest).with("richest_bytes", *richest);
      if (poorest.rank.said()) note.with("rank", static_cast<u64>(figures.rank_of(poorest)));
    }
  }
  if (figures.has(kv_needed)) {
    NoteWriter note(out, "cache_too_small");
    for (const Field field : {kv_needed, kv_memory, longest_model_len}) {
      if (const Found* const one = figures.get(field)) note.with(log::spec_of(field).name.data(), *one);
    }
  }
  count("padding_layers", "layers", figures.number(padding_layers));
  explain_concurrency(out, figures, base.block_tokens);
  check_budget(out, reader, true);
  const u64 block = figures.number(block_size);
  count("block_holds_a_state", "block_size", reader.is("vllm") && block > 128 ? block : 0);
  const Wide table = Wide{figures.number(max_requests)} * figures.number(max_model_len) * 4;
  count("request_table", "bytes", table <= kMaxExact ? static_cast<u64>(table) : 0);
  for (const auto& cache : figures.caches) count("rollback_copies", "copies", cache.copies);
  for (const auto& cache : figures.caches) {
    if (cache.streams < 2) continue;
    NoteWriter(out, "streams").with("streams", cache.streams).with("cells", cache.cells);
    break;
  }
}

// ---- the computed side ---------------------------------------------------------------------------------------------

/// One printed figure beside the computed one, which lies between `low` and `high` by what the printed digits leave
/// open.
void write_comparison(Writer& out, Label figure, std::string_view of, Label unit, u64 printed, u64 computed, u64 low,
                      u64 high) {
  if (printed == 0 || computed == 0) return;
  const bool fraction = unit[0] == 'c' && unit[1] == 'o';
  const auto value = [&](u64 number) { fraction ? out.decimal(number) : out.number(number); };
  out.begin_object().key("figure").text(figure);
  put_text(out, "of", of);
  out.key("printed");
  value(printed);
  out.key("computed");
  value(computed);
  out.key("ratio").decimal(std::min<Wide>(Wide{computed} * kMillion / printed, kMaxExact));
  out.key("agrees").boolean(low <= printed && printed <= high).key("unit").text(unit);
  if (unit[0] == 'b' && unit[1] == 'y') {
    out.key("printed_reading");
    write_reading(out, printed);
    out.key("computed_reading");
    write_reading(out, computed);
  }
  out.end_object();
}

void compare_caches(Writer& out, const Reader& reader, Computed computed) {
  u64 slack_of_all = 0;
  u64 all = 0;
  for (const auto& other : computed.caches) all += other.bytes;
  for (const Cache& cache : reader.figures.caches) {
    const u64 slack = cache.k_tolerance + cache.v_tolerance;
    slack_of_all += slack;
    for (auto& other : computed.caches) {
      if (other.kind != cache.kind.front()) continue;
      other.kind = 0;  // each once
      if (!cache.recurrent()) {
        write_comparison(out, "cells", cache.kind, "cells", cache.cells, other.cells, other.cells, other.cells);
      }
      write_comparison(out, "bytes", cache.kind, "bytes", cache.bytes(), other.bytes, without(other.bytes, slack),
                       other.bytes + slack);
      break;
    }
  }
  write_comparison(out, "kv_memory_bytes", "", "bytes", reader.pool_bytes(), all, without(all, slack_of_all),
                   all + slack_of_all);
}

/// The pool by the engine's budget, where the log states all its terms.
void compare_budget(Writer& out, const Reader& reader) {
  const Figures& figures = reader.figures;
  Question question = reader.question;
  std::erase_if(question.options, [](const Question::Option& one) { return one.spec->name == "kv_memory_bytes"; });
  if (reader.is("sglang")) {
    for (const auto& [field, option] : {std::pair<Field, Label>{avail_before_load, "avail_before_load_bytes"},
                                        {avail_after_load, "avail_after_load_bytes"}}) {
      if (!figures.has(field)) return;
      question.set(option, figures.number(field));
    }
  }
  const Field share = reader.is("vllm") ? utilization : reader.is("sglang") ? static_fraction : free_fraction;
  const Found* const stated = figures.get(share);
  if (stated == nullptr || !question.has_gpu() || reader.pool_bytes() == 0) return;
  const Computed computed = compute(question, reader.features);
  if (!computed.answered || computed.pool_estimated) return;
  // Fractions are printed with two digits, ranks differ, and engines round pools to blocks or to 2 MiB a layer.
  u64 slack = reader.pool_tolerance() + (u64{64} << 20) + computed.pool / 500;
  for (const Field field :
       {total_memory, weights, activation, non_torch, avail_before_load, avail_after_load, available}) {
    if (const Found* const one = figures.get(field)) slack += one->tolerance;
  }
  const u64 of = figures.number(reader.is("vllm") ? total_memory : reader.is("sglang") ? avail_before_load : available);
  slack += static_cast<u64>(Wide{of} * stated->tolerance / kBillion);
  write_comparison(out, "kv_memory_bytes", "", "bytes", reader.pool_bytes(), computed.pool,
                   without(computed.pool_low, slack), computed.pool_high + slack);
}

void compare_pool(Writer& out, const Reader& reader, const Computed& computed) {
  compare_budget(out, reader);
  if (const Found* const needed = reader.figures.get(kv_needed)) {
    const u64 own = ceil_div(computed.reserved, reader.question.split());
    write_comparison(out, "kv_needed_bytes", "", "bytes", reader.figures.number(kv_needed), own,
                     without(own, needed->tolerance), own + needed->tolerance);
  }
  // The same from the least and the most memory that prints as it did.
  Computed low = computed;
  Computed high = computed;
  if (const u64 pool = reader.pool_bytes(); pool != 0) {
    Question question = reader.question;
    question.set("kv_memory_bytes", without(pool, reader.pool_tolerance()));
    low = compute(question, reader.features);
    question.set("kv_memory_bytes", pool + reader.pool_tolerance());
    high = compute(question, reader.features);
  }
  const u64 tokens = reader.figures.number(kv_tokens);
  // Two conventions of printing tokens; the nearer one is meant.
  const bool other =
      computed.tokens_other != 0 && apart(computed.tokens_other, tokens) < apart(computed.tokens, tokens);
  const auto convention = other ? &Computed::tokens_other : &Computed::tokens;
  write_comparison(out, "kv_tokens", "", "tokens", tokens, computed.*convention, low.*convention, high.*convention);
  write_comparison(out, "kv_blocks", "", "blocks", reader.figures.number(kv_blocks), computed.blocks, low.blocks,
                   high.blocks);
  if (const Found* const times = reader.figures.get(concurrency)) {
    const u64 replicas = at_least_one(reader.question.data);
    const u64 half = times->tolerance / 1000;
    write_comparison(out, "max_concurrency", "", "conversations", reader.figures.number(concurrency) / 1000,
                     computed.concurrency / replicas, without(low.concurrency / replicas, half),
                     high.concurrency / replicas + half);
  }
}

// ---- what would buy more -------------------------------------------------------------------------------------------

struct Alternative {
  Label change = "";
  std::string value;
  u64 concurrency = 0;  ///< millionths
  bool free = false;    ///< the same GPUs and the same length
};

std::vector<Alternative> alternatives(const Reader& reader) {
  std::vector<Alternative> out;
  const Figures& figures = reader.figures;
  const Question& now = reader.question;
  const auto attempt = [&](Label change, std::string value, bool free, const Question& question) {
    const Computed answer = compute(question, reader.features);
    if (answer.concurrency != 0) out.push_back({change, std::move(value), answer.concurrency, free});
  };
  if (now.k == nullptr || now.k->bits > 8) {
    Question question = now;
    question.k = question.v = find_format(reader.llama() ? "q8_0" : "fp8");
    attempt("kv", std::string(question.k->id), true, question);
  }
  if (now.context >= 2048) {
    Question question = now;
    question.context /= 2;
    if (reader.llama()) question.set("n_ctx", figures.number(n_ctx) / 2);
    attempt("context", digits(question.context), false, question);
  }
  const u64 pool = reader.pool_bytes();
  if (reader.llama() || pool == 0) return out;

  const auto with_pool = [&](Wide more) {
    Question question = now;
    question.set("kv_memory_bytes", static_cast<u64>(std::min<Wide>(pool + more, kMaxExact)));
    return question;
  };
  constexpr u64 kHigh = 950'000'000;
  const struct {
    Field share, of;
  } shares[] = {{utilization, total_memory}, {static_fraction, avail_before_load}, {free_fraction, available}};
  for (const auto& [share, of] : shares) {
    const u64 more = without(kHigh, figures.number(share, kHigh));
    if (more == 0 || !figures.has(of)) continue;
    Question question = with_pool(Wide{figures.number(of)} * more / kBillion);
    const Label name = log::spec_of(share).name.data();
    question.set(name, kHigh);
    attempt(name, "0.95", true, question);
  }
  if (const u64 loaded = figures.number(weights); loaded != 0) {
    Question question = with_pool(loaded / 2);
    question.tensor = 2 * at_least_one(question.tensor);
    attempt("tensor_parallel", digits(question.tensor), false, question);
    const u64 parameters = reader.entry != nullptr ? reader.entry->parameters : 0;
    if (parameters != 0 && now.weight_bytes / 2 > parameters / 10 * 9)
      attempt("weights", "fp8", true, with_pool(loaded / 2));
  }
  if (const u64 tokens = figures.number(batched_tokens) / 2; tokens >= 512) {
    // The peak of activations grows with the tokens of a batch.
    Question question = with_pool(figures.number(activation) / 2);
    question.set("max_num_batched_tokens", tokens);
    attempt("max_num_batched_tokens", digits(tokens), true, question);
  }
  return out;
}

}  // namespace

std::string read_log_json(std::string_view text, const Features& features) {
  if (text.size() > kMaxLogBytes) {
    return error_json({ErrorCode::too_large, "log",
                       "is " + digits(text.size()) + " bytes long; at most " + digits(kMaxLogBytes) + " are read"});
  }
  const log::Scan scan = log::scan(text);
  const Reader reader(scan, features);
  const bool asks = reader.question.engine != nullptr && reader.question.has_model();
  const Computed base = asks ? compute(reader.question, features) : Computed{};
  Writer out;
  out.begin_object();
  put_text(out, "engine", reader.engine_name);
  put_text(out, "variant", reader.variant);
  put_text(out, "engine_version", reader.version);
  out.key("ranks").number(reader.ranks());
  write_lines(out, reader);
  write_printed(out, reader);
  write_memory(out, reader, base);
  out.key("request");
  if (reader.question.engine != nullptr) {
    write_question(out, reader.question);
  } else {
    out.null();
  }
  write_missing(out, reader);
  write_contradictions(out, reader);
  out.key("findings").begin_array();
  write_facts(out, reader, base);
  std::vector<Alternative> others;
  if (asks && !base.answered) compute(reader.question, features, &out);  // says why
  if (base.concurrency != 0) others = alternatives(reader);
  const Alternative* best = nullptr;
  for (const auto& one : others) {
    if (one.free && one.concurrency > (best != nullptr ? best->concurrency : base.concurrency)) best = &one;
  }
  const auto gain = [&](const Alternative& one) { return Wide{one.concurrency} * kMillion / base.concurrency; };
  if (best != nullptr) {
    NoteWriter(out, "best_change")
        .with("change", best->change)
        .with("value", best->value)
        .with("concurrency", decimals(base.concurrency, kMillion))
        .with("concurrency_then", decimals(best->concurrency, kMillion))
        .with("gain", decimals(gain(*best), kMillion));
  }
  out.end_array().key("comparison").begin_array();
  if (base.answered && reader.llama()) compare_caches(out, reader, base);
  if (base.answered && !reader.llama()) compare_pool(out, reader, base);
  out.end_array().key("alternatives").begin_array();
  for (const auto& one : others) {
    out.begin_object().key("change").text(one.change).key("value").text(one.value);
    out.key("concurrency").decimal(one.concurrency).key("gain").decimal(gain(one));
    out.key("same_gpus_and_length").boolean(one.free).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

}  // namespace kvcap
