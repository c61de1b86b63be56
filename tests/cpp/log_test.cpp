// The reader of start-up logs: whole logs with what must be read from them (tests/data/logs), every record of
// tests/data/engine_logs.jsonl rendered in its engine's own words and read back, and texts that mean harm.
#include "kvcap/log.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "kvcap/json.hpp"

using namespace kvcap;
using json::Kind;
using json::Value;

namespace {

constexpr u64 kAnySize = u64{1} << 30;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

json::Document parse(std::string_view text) {
  auto document = json::Document::parse(text, "test", kAnySize);
  REQUIRE_MESSAGE(document.has_value(), std::string(text.substr(0, 400)));
  return std::move(*document);
}

json::Document read(std::string_view log) { return parse(read_log_json(log, full_features())); }

/// The value at a path such as "printed.caches.0.k_bytes"; nullptr where there is none.
const Value* at(const Value& root, std::string_view path) {
  const Value* value = &root;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (value->is(Kind::array)) {
      std::size_t index = std::stoul(std::string(name));
      const Value* found = nullptr;
      for (const Value& one : *value) {
        if (index-- == 0) {
          found = &one;
          break;
        }
      }
      value = found;
    } else {
      value = value->find(name);
    }
  }
  return value;
}

std::string text_at(const Value& root, std::string_view path) {
  const Value* const value = at(root, path);
  return value == nullptr ? "(absent)" : std::string(value->text);
}

/// A value as JSON again.
std::string shown(const Value& value) {
  switch (value.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return value.truth ? "true" : "false";
    case Kind::number: return std::string(value.text);
    case Kind::string: return json::Writer().text(value.text).take();
    case Kind::array:
    case Kind::object: {
      std::string out = value.is(Kind::array) ? "[" : "{";
      for (const Value& one : value) {
        if (out.size() > 1) out += ", ";
        if (value.is(Kind::object)) out += json::Writer().text(one.key).take() + ": ";
        out += shown(one);
      }
      return out + (value.is(Kind::array) ? "]" : "}");
    }
  }
  return "";
}

/// Where `is` lacks what `wanted` says; empty where it holds all of it. Lists are held when each wanted element is
/// found, in order; an empty list wants an empty list.
std::string lacking(const Value& wanted, const Value& is, const std::string& path) {
  if (wanted.kind != is.kind) return path + ": wanted " + shown(wanted) + ", is " + shown(is);
  if (wanted.is(Kind::object)) {
    for (const Value& one : wanted) {
      const Value* const other = is.find(one.key);
      const std::string inner = path + "." + std::string(one.key);
      if (other == nullptr) return inner + ": absent";
      if (auto fault = lacking(one, *other, inner); !fault.empty()) return fault;
    }
    return "";
  }
  if (wanted.is(Kind::array)) {
    const bool whole = wanted.count() == 0 || path.ends_with(".missing");
    if (whole && wanted.count() != is.count()) return path + ": wanted " + shown(wanted) + ", is " + shown(is);
    auto next = is.begin();
    for (const Value& one : wanted) {
      bool found = false;
      for (; !found && next != is.end(); ++next) found = lacking(one, *next, path).empty();
      if (!found) return path + ": no " + shown(one) + " in " + shown(is);
    }
    return "";
  }
  if (wanted.is(Kind::boolean)) return wanted.truth == is.truth ? "" : path + ": wanted " + shown(wanted);
  return wanted.text == is.text ? "" : path + ": wanted " + shown(wanted) + ", is " + shown(is);
}

std::vector<std::filesystem::path> logs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/logs")) {
    if (entry.path().extension() == ".log") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  REQUIRE(paths.size() >= 20);
  return paths;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// ---- records in their engines' words -------------------------------------------------------------------------------

/// A decimal number of `unit` bytes (or billionths), rounded half up, without floating point.
std::string scaled(std::string_view decimal, u64 unit) {
  const bool negative = decimal.starts_with('-');
  if (negative) decimal.remove_prefix(1);
  Wide value = 0;
  Wide ten = 1;
  bool fraction = false;
  for (const char c : decimal) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (fraction) ten *= 10;
  }
  return (negative ? "-" : "") + digits((value * unit * 2 + ten) / (ten * 2));
}

constexpr u64 kGiB = u64{1} << 30;
constexpr u64 kMiB = u64{1} << 20;

struct Rendered {
  std::string text;
  std::vector<std::pair<std::string, std::string>> expected;  ///< path in the answer and its text

  void line(const std::string& one) { text += one + "\n"; }
  void expect(const std::string& path, std::string value) {
    expected.emplace_back("printed." + path, std::move(value));
  }
};

class Record {
 public:
  explicit Record(const Value& value) : value_(value) {}
  [[nodiscard]] bool has(std::string_view name) const { return value_.get(name) != nullptr; }
  [[nodiscard]] std::string text(std::string_view name) const {
    const Value* const one = value_.get(name);
    return one == nullptr ? "" : one->is(Kind::array) ? shown(*one) : std::string(one->text);
  }
  [[nodiscard]] const Value* get(std::string_view name) const { return value_.get(name); }

 private:
  const Value& value_;
};

std::string trimmed(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  while (number.ends_with('0')) number.pop_back();
  if (number.ends_with('.')) number.pop_back();
  return number;
}

void name_gpu(Rendered& out, const Record& record) {
  if (!record.has("gpu")) return;
  out.line("GPU 0: " + record.text("gpu"));
  out.expect("gpu", record.text("gpu"));
}

Rendered render_vllm(const Record& record) {
  Rendered out;
  const std::string version = record.text("engine_version");
  const std::string prefix = "INFO 09-25 14:20:00 [core.py:77] ";
  name_gpu(out, record);
  std::string config = "model='" + record.text("model") + "', speculative_config=None, dtype=torch.bfloat16";
  out.expect("model", record.text("model"));
  const auto setting = [&](const char* field, const char* flag, const char* path) {
    if (!record.has(field)) return;
    config += std::string(", ") + flag + "=" + record.text(field);
    out.expect(path, record.text(field));
  };
  setting("max_model_len", "max_seq_len", "max_model_len");
  setting("tp", "tensor_parallel_size", "tensor_parallel");
  setting("pp", "pipeline_parallel_size", "pipeline_parallel");
  setting("dp", "data_parallel_size", "data_parallel");
  setting("dcp", "decode_context_parallel_size", "decode_context_parallel_size");
  setting("weight_format", "quantization", "weight_format");
  setting("kv_dtype", "kv_cache_dtype", "kv_dtype");
  if (record.has("prefix_caching")) {
    config += ", enable_prefix_caching=True";
    out.expect("enable_prefix_caching", "True");
  }
  out.line(prefix + "Initializing an LLM engine " + (version.empty() ? "" : "(v" + version + ") ") +
           "with config: " + config);
  if (!version.empty()) out.expected.emplace_back("engine_version", version);
  std::string command = "vllm serve";
  if (record.has("block_size")) {
    command += " --block-size " + record.text("block_size");
    out.expect("block_size", record.text("block_size"));
  }
  if (record.has("mamba_ssm_dtype")) {
    command += " --mamba-ssm-cache-dtype " + record.text("mamba_ssm_dtype");
    out.expect("mamba_ssm_dtype", record.text("mamba_ssm_dtype"));
  }
  out.line(command);
  const auto gib = [&](const char* field, const char* path) {
    if (record.has(field)) out.expect(path, scaled(record.text(field), kGiB));
  };
  gib("weights_gib", "weights_bytes");
  gib("total_gpu_mem_gib", "total_memory_bytes");
  gib("kv_mem_gib", "kv_memory_bytes");
  gib("non_torch_gib", "non_torch_bytes");
  gib("activation_gib", "activation_bytes");
  gib("peak_torch_gib", "peak_torch_bytes");
  gib("cuda_graph_gib", "cuda_graph_bytes");
  if (record.has("gpu_memory_utilization")) {
    out.expect("gpu_memory_utilization", trimmed(record.text("gpu_memory_utilization")));
  }
  if (record.has("weights_gib")) {
    out.line(prefix + (record.has("kv_tokens")
                           ? "Model loading took " + record.text("weights_gib") + " GiB and 3.1 seconds"
                           : "Loading model weights took " + record.text("weights_gib") + " GB"));
  }
  if (record.has("peak_torch_gib")) {
    out.line(prefix + "Memory profiling results: total_gpu_memory=" + record.text("total_gpu_mem_gib") +
             "GiB initial_memory_usage=0.62GiB peak_torch_memory=" + record.text("peak_torch_gib") +
             "GiB memory_usage_post_profile=15.36Gib non_torch_memory=" + record.text("non_torch_gib") +
             "GiB kv_cache_size=" + record.text("kv_mem_gib") +
             "GiB gpu_memory_utilization=" + record.text("gpu_memory_utilization"));
  } else {
    if (record.has("total_gpu_mem_gib")) {
      out.line(prefix + "the current vLLM instance can use total_gpu_memory (" + record.text("total_gpu_mem_gib") +
               "GiB) x gpu_memory_utilization (" + record.text("gpu_memory_utilization") + ") = 1.00GiB");
    } else if (record.has("gpu_memory_utilization")) {
      out.line("vllm serve --gpu-memory-utilization " + record.text("gpu_memory_utilization"));
    }
    if (record.has("non_torch_gib"))
      out.line(prefix + "non_torch_memory takes " + record.text("non_torch_gib") + "GiB;");
    if (record.has("activation_gib")) {
      out.line(prefix + "PyTorch activation peak memory takes " + record.text("activation_gib") + "GiB;");
    }
    if (record.has("kv_mem_gib")) {
      out.line(prefix + (record.has("kv_tokens") ? "Available KV cache memory: " + record.text("kv_mem_gib") + " GiB"
                                                 : "the rest of the memory reserved for KV Cache is " +
                                                       record.text("kv_mem_gib") + "GiB."));
    }
  }
  if (record.has("kv_blocks")) {
    out.expect("kv_blocks", record.text("kv_blocks"));
    if (record.has("cpu_blocks")) out.expect("cpu_blocks", record.text("cpu_blocks"));
    out.line(prefix + "# GPU blocks: " + record.text("kv_blocks") +
             (record.has("cpu_blocks") ? ", # CPU blocks: " + record.text("cpu_blocks") : ""));
  }
  if (record.has("kv_tokens")) {
    std::string tokens = record.text("kv_tokens");
    out.expect("kv_tokens", tokens);
    for (std::size_t i = tokens.size(); i > 3;) tokens.insert(i -= 3, ",");
    out.line(prefix + "GPU KV cache size: " + tokens + " tokens");
  }
  if (record.has("max_concurrency") && record.has("max_model_len")) {
    out.expect("max_concurrency", trimmed(record.text("max_concurrency")));
    out.line(prefix + "Maximum concurrency for " + record.text("max_model_len") +
             " tokens per request: " + record.text("max_concurrency") + "x");
  }
  if (record.has("cuda_graph_gib")) {
    out.line(prefix + "Graph capturing finished in 20 secs, took " + record.text("cuda_graph_gib") + " GiB");
  }
  return out;
}

Rendered render_sglang(const Record& record) {
  Rendered out;
  name_gpu(out, record);
  if (record.has("engine_version")) {
    out.line("sglang: " + record.text("engine_version"));
    out.expected.emplace_back("engine_version", record.text("engine_version"));
  }
  std::string args = "model_path='" + record.text("model") + "'";
  out.expect("model", record.text("model"));
  const auto setting = [&](const char* field, const char* flag, const char* path) {
    if (!record.has(field)) return;
    args += std::string(", ") + flag + "='" + record.text(field) + "'";
    out.expect(path, record.text(field));
  };
  setting("weight_format", "quantization", "weight_format");
  setting("kv_dtype", "kv_cache_dtype", "kv_dtype");
  const auto number = [&](const char* field, const char* flag, const char* path) {
    if (!record.has(field)) return;
    args += std::string(", ") + flag + "=" + record.text(field);
    out.expect(path, trimmed(record.text(field)));
  };
  number("tp", "tp_size", "tensor_parallel");
  number("pp", "pp_size", "pipeline_parallel");
  number("mem_fraction_static", "mem_fraction_static", "mem_fraction_static");
  number("swa_full_ratio", "swa_full_tokens_ratio", "swa_full_tokens_ratio");
  out.line("[2026-01-01 10:00:00] server_args=ServerArgs(" + args + ")");
  const std::string prefix = "[2026-01-01 10:00:10 TP0] ";
  const auto gib = [&](const char* field, const std::string& path) {
    if (record.has(field)) out.expect(path, scaled(record.text(field), kGiB));
  };
  gib("avail_after_load", "avail_after_load_bytes");
  gib("weights_gib", "weights_bytes");
  gib("avail_pool_end", "avail_pool_end_bytes");
  if (record.has("avail_after_load") || record.has("weights_gib")) {
    out.line(prefix + "Load weight end. type=Model, dtype=torch.bfloat16" +
             (record.has("avail_after_load") ? ", avail mem=" + record.text("avail_after_load") + " GB" : "") +
             (record.has("weights_gib") ? ", mem usage=" + record.text("weights_gib") + " GB." : ""));
  }
  if (record.has("mamba_slots")) {
    out.expect("max_mamba_cache_size", record.text("mamba_slots"));
    gib("mamba_conv_gib", "mamba_conv_bytes");
    gib("mamba_ssm_gib", "mamba_state_bytes");
    out.line(prefix + "Mamba Cache is allocated. max_mamba_cache_size: " + record.text("mamba_slots") +
             ", conv_state size: " + record.text("mamba_conv_gib") +
             "GB, ssm_state size: " + record.text("mamba_ssm_gib") + "GB ");
  }
  const bool two = record.has("swa_tokens");
  if (two) {
    out.expect("swa_tokens", record.text("swa_tokens"));
    gib("swa_k_gib", "pools.0.k_bytes");
    gib("swa_v_gib", "pools.0.v_bytes");
    gib("kv_size_gib", "swa_pool_bytes");
    out.expect("pools.0.kind", "window");
    out.expect("pools.1.kind", "full");
    out.line(prefix + "KV Cache is allocated. #tokens: " + record.text("swa_tokens") +
             ", K size: " + record.text("swa_k_gib") + " GB, V size: " + record.text("swa_v_gib") + " GB");
  }
  if (record.has("k_gib")) {
    const std::string pool = two ? "pools.1." : "pools.0.";
    gib("k_gib", pool + "k_bytes");
    gib("v_gib", pool + "v_bytes");
    // Before 0.4.6 the message had no token count.
    const bool counted = two || record.has("weights_gib") || record.has("mamba_slots");
    out.line(prefix + "KV Cache is allocated. " + (counted ? "#tokens: " + record.text("kv_tokens") + ", " : "") +
             "K size: " + record.text("k_gib") + " GB, V size: " + record.text("v_gib") + " GB");
  } else if (record.has("kv_size_gib")) {
    gib("kv_size_gib", "pools.0.bytes");
    out.line(prefix + "KV Cache is allocated. #tokens: " + record.text("kv_tokens") +
             ", KV size: " + record.text("kv_size_gib") + " GB");
  }
  if (two) {
    out.line(prefix + "SWAKVPool mem usage: " + record.text("kv_size_gib") +
             " GB, swa size: " + record.text("swa_tokens") + ", full size: " + record.text("kv_tokens"));
  }
  if (record.has("avail_pool_end"))
    out.line(prefix + "Memory pool end. avail mem=" + record.text("avail_pool_end") + " GB");
  out.expect("kv_tokens", record.text("kv_tokens"));
  std::string last = "max_total_num_tokens=" + record.text("kv_tokens") + ", max_prefill_tokens=16384";
  if (record.has("max_running_requests")) {
    out.expect("max_running_requests", record.text("max_running_requests"));
    last += ", max_running_requests=" + record.text("max_running_requests");
  }
  if (record.has("max_model_len")) {
    out.expect("max_model_len", record.text("max_model_len"));
    last += ", context_len=" + record.text("max_model_len");
  }
  out.line(prefix + last);
  return out;
}

Rendered render_tensorrt_llm(const Record& record) {
  Rendered out;
  name_gpu(out, record);
  const std::string prefix = "[TensorRT-LLM][INFO] ";
  if (record.has("engine_version")) {
    out.line("[TensorRT-LLM] TensorRT-LLM version: " + record.text("engine_version"));
    out.expected.emplace_back("engine_version", record.text("engine_version"));
  }
  std::string args = "model='" + record.text("model") + "', quantization='" + record.text("weight_format") +
                     "', kv_cache_dtype='" + record.text("kv_dtype") + "', tensor_parallel_size=" + record.text("tp") +
                     ", pipeline_parallel_size=" + record.text("pp");
  out.expect("model", record.text("model"));
  out.expect("weight_format", record.text("weight_format"));
  out.expect("kv_dtype", record.text("kv_dtype"));
  out.expect("tensor_parallel", record.text("tp"));
  out.expect("pipeline_parallel", record.text("pp"));
  if (record.has("free_gpu_memory_fraction")) {
    args += ", free_gpu_memory_fraction=" + record.text("free_gpu_memory_fraction");
    out.expect("free_gpu_memory_fraction", trimmed(record.text("free_gpu_memory_fraction")));
  }
  out.line(prefix + "LLM Args: " + args);
  if (record.has("total_gpu_mem_gib")) {
    out.line(prefix + "Memory usage when calculating max tokens in paged kv cache: total: " +
             record.text("total_gpu_mem_gib") + " GiB, available: " + record.text("avail_gib") + " GiB");
    out.expect("total_memory_bytes", scaled(record.text("total_gpu_mem_gib"), kGiB));
    out.expect("available_bytes", scaled(record.text("avail_gib"), kGiB));
  }
  if (record.has("kv_blocks")) {
    out.line(prefix + "Number of blocks in KV cache primary pool: " + record.text("kv_blocks"));
    out.expect("kv_blocks", record.text("kv_blocks"));
  }
  if (record.has("block_size")) {
    out.line(prefix + "Number of tokens per block: " + record.text("block_size") + ".");
    out.expect("block_size", record.text("block_size"));
  }
  if (record.has("kv_mem_gib")) {
    out.line(prefix + "[MemUsageChange] Allocated " + record.text("kv_mem_gib") +
             " GiB for max tokens in paged KV cache (" + record.text("kv_tokens") + ").");
    out.expect("kv_memory_bytes", scaled(record.text("kv_mem_gib"), kGiB));
  } else {
    out.line(prefix + "Using " + record.text("kv_tokens") + " tokens in paged KV cache.");
  }
  out.expect("kv_tokens", record.text("kv_tokens"));
  return out;
}

/// How a build of llama.cpp prints: its oldest words, the middle ones, and those with streams.
enum class Words { old, unified, streams };

Rendered render_llama_cpp(const Record& record, bool ik) {
  Rendered out;
  Words words = ik ? Words::old : Words::streams;
  if (record.has("engine_version") && !ik) {
    const unsigned long build = std::stoul(record.text("engine_version").substr(1));
    words = build < 5300 ? Words::old : build < 5900 ? Words::unified : Words::streams;
  }
  // A record without a stream count comes from a build that printed none.
  const Value* const caches = record.get("kv_detail");
  if (caches->count() != 0 && at(*caches, "0")->get("n_seqs") == nullptr) words = Words::old;
  const std::string meta = words == Words::old ? "llm_load_print_meta: " : "print_info: ";
  const std::string context = words == Words::old ? "llama_new_context_with_model: " : "llama_context: ";
  if (record.has("engine_version")) {
    out.line("build: " + record.text("engine_version").substr(1) + " (a5b57b08) with cc for x86_64-linux-gnu");
    out.expected.emplace_back("engine_version", record.text("engine_version"));
  }
  if (record.has("gpu")) {
    out.line("  Device 0: " + record.text("gpu") + ", compute capability 8.6, VMM: yes");
    out.expect("gpu", record.text("gpu"));
  }
  out.line("llama_model_loader: - kv   1:      general.name str              = " + record.text("model"));
  out.expect("model_name", record.text("model"));
  out.line(meta + "arch             = " + record.text("arch_key"));
  out.expect("arch", record.text("arch_key"));
  const auto key = [&](const char* field, const char* name, const std::string& head) {
    if (!record.has(field)) return;
    out.line(head + name + "          = " + record.text(field));
    out.expect(name, record.text(field));
  };
  key("n_layer", "n_layer", meta);
  key("n_head", "n_head", meta);
  key("n_head_kv", "n_head_kv", meta);
  key("n_swa", "n_swa", meta);
  if (record.has("weight_format")) {
    out.line(meta + (words == Words::old ? "model ftype      = " : "file type   = ") + record.text("weight_format"));
    out.expect("file_type", record.text("weight_format"));
  }
  if (record.has("weights_gib") && record.has("weight_bpw")) {
    out.line(meta + (words == Words::old ? "model size       = " : "file size   = ") + record.text("weights_gib") +
             " GiB (" + record.text("weight_bpw") + " BPW) ");
    out.expect("model_size_bytes", scaled(record.text("weights_gib"), kGiB));
    out.expect("bits_per_weight", trimmed(record.text("weight_bpw")));
  }
  key("n_seq_max", "n_seq_max", context);
  if (record.has("max_model_len")) {
    out.line(context + "n_ctx         = " + record.text("max_model_len"));
    out.expect("n_ctx", record.text("max_model_len"));
  }
  key("n_ubatch", "n_ubatch", context);
  key("flash_attn", "flash_attn", context);
  key("mla_attn", "mla_attn", context);
  if (ik) out.line(context + "fused_moe  = 1");

  const std::string device = "CUDA0";
  std::size_t index = 0;
  for (const Value& one : *caches) {
    const Record cache(one);
    const std::string path = "caches." + std::to_string(index++) + ".";
    const std::string kind = cache.text("kind");
    out.expect(path + "kind", kind == "mla" ? "latent" : kind == "swa" ? "window" : "full");
    out.expect(path + "cells", cache.text("cells"));
    // The oldest words give the model's layers alone.
    if (words != Words::old || cache.text("layers") == record.text("n_layer"))
      out.expect(path + "layers", cache.text("layers"));
    out.expect(path + "k_type", cache.text("k_type"));
    out.expect(path + "k_bytes", scaled(cache.text("k_mib"), kMiB));
    const std::string k = cache.text("k_mib");
    const std::string v = cache.text("v_mib");
    if (kind == "mla") {
      out.line(context + "KV self size  = " + k + " MiB, c^KV (" + cache.text("k_type") + "): " + k +
               " MiB, kv^T: not used");
      continue;
    }
    out.expect(path + "v_type", cache.text("v_type"));
    out.expect(path + "v_bytes", scaled(v, kMiB));
    // The sum as printed: half-up of two decimals is near enough for the check of the parts.
    const std::string sum =
        decimals((std::stoull(scaled(k, 100)) + std::stoull(scaled(v, 100))) * Wide{10'000}, 1'000'000);
    const std::string types =
        "K (" + cache.text("k_type") + "):  " + k + " MiB, V (" + cache.text("v_type") + "):  " + v + " MiB";
    if (words == Words::old) {
      out.line("llama_kv_cache_init: kv_size = " + cache.text("cells") +
               ", offload = 1, n_layer = " + cache.text("layers"));
      out.line(context + "KV self size  = " + sum + " MiB, " + types);
      continue;
    }
    out.expect(path + "n_seqs", cache.text("n_seqs"));
    out.line(std::string("llama_kv_cache_iswa: creating ") + (kind == "swa" ? "    SWA" : "non-SWA") +
             " KV cache, size = " + cache.text("cells") + " cells");
    const std::string streams = words == Words::streams
                                    ? "  " + cache.text("n_seqs") + "/" + cache.text("n_seqs") + " seqs"
                                    : "  " + cache.text("n_seqs") + " seqs";
    out.line("llama_kv_cache: size =  " + sum + " MiB ( " + cache.text("cells") + " cells,  " + cache.text("layers") +
             " layers," + streams + "), " + types);
  }
  if (record.has("recurrent_mib")) {
    const Record state(*record.get("recurrent_mib"));
    const std::string path = "caches." + std::to_string(index) + ".";
    out.expect(path + "kind", "recurrent");
    out.expect(path + "r_bytes", scaled(state.text("r"), kMiB));
    out.expect(path + "s_bytes", scaled(state.text("s"), kMiB));
    const std::string copies = record.text("rs_seq");
    const std::string sequences = record.has("n_seq_max") ? record.text("n_seq_max") : "1";
    if (record.text("n_head_kv") == "0") {
      out.line(context + "KV self size  = " + state.text("total") + " MiB, K (f32): " + state.text("r") +
               " MiB, V (f32): " + state.text("s") + " MiB");
    } else {
      out.line("llama_memory_recurrent: size = " + state.text("total") + " MiB (  " + sequences +
               " cells,  64 layers,  " + sequences + " seqs" + (copies.empty() ? "" : "  " + copies + " rs_seq") +
               "), R (f32): " + state.text("r") + " MiB, S (f32): " + state.text("s") + " MiB");
      out.expect(path + "cells", sequences);
      out.expect(path + "copies", copies.empty() ? "0" : copies);
    }
  }
  if (const Value* const buffers = record.get("compute_buffer_mib"); buffers != nullptr) {
    std::size_t number = 0;
    for (const Value& one : *buffers) {
      out.line(context + "     " + std::string(one.key) + " compute buffer size =  " + std::string(one.text) + " MiB");
      const std::string path = "devices." + std::to_string(number++) + ".";
      out.expect(path + "device", std::string(one.key));
      out.expect(path + "compute_bytes", scaled(one.text, kMiB));
    }
  }
  return out;
}

/// Terminal output broken at a column.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string out;
  for (const auto& line : lines_of(text)) {
    for (std::size_t i = 0; i == 0 || i < line.size(); i += width) out += line.substr(i, width) + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("every log gives what stands beside it") {
  for (const auto& path : logs()) {
    CAPTURE(path.string());
    const auto answer = read(read_file(path));
    std::filesystem::path beside = path;
    const std::string wanted_text = read_file(beside.replace_extension(".json"));
    const auto wanted = parse(wanted_text);
    const std::string fault = lacking(wanted.root(), answer.root(), "");
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("every figure of every record is read back from its engine's words") {
  std::ifstream file("tests/data/engine_logs.jsonl");
  REQUIRE(file.good());
  std::size_t records = 0;
  std::size_t figures = 0;
  for (std::string line; std::getline(file, line); ++records) {
    const auto document = parse(line);
    const Record record(document.root());
    const std::string engine = record.text("engine");
    CAPTURE(record.text("id"));
    std::string name = "vllm";
    Rendered rendered;
    if (engine == "sglang") {
      name = "sglang";
      rendered = render_sglang(record);
    } else if (engine == "tensorrt-llm") {
      name = "tensorrt-llm";
      rendered = render_tensorrt_llm(record);
    } else if (engine.find("llama.cpp") != std::string::npos) {
      name = "llama.cpp";
      rendered = render_llama_cpp(record, engine == "ik_llama.cpp");
    } else {
      rendered = render_vllm(record);
    }
    const auto answer = read(rendered.text);
    CHECK(text_at(answer.root(), "engine") == name);
    CHECK_MESSAGE(at(answer.root(), "contradictions")->count() == 0, shown(*at(answer.root(), "contradictions")));
    for (const auto& [path, value] : rendered.expected) {
      CAPTURE(path);
      CHECK(text_at(answer.root(), path) == value);
      ++figures;
    }
  }
  CHECK(records == 173);
  CHECK(figures > 1500);
}

TEST_CASE("clocks, containers, line ends and other programs change nothing") {
  for (const auto& path : logs()) {
    CAPTURE(path.string());
    const std::string text = read_file(path);
    const auto plain = read(text);
    const auto same = [&](const std::string& other) {
      const auto answer = read(other);
      for (const std::string key :
           {"engine", "engine_version", "printed", "request", "missing", "findings", "comparison"}) {
        CAPTURE(key);
        CHECK(shown(*at(answer.root(), key)) == shown(*at(plain.root(), key)));
      }
    };
    // A wrapped or joined text has no lines of its own to put anything before.
    const std::string stem = path.stem().string();
    if (stem.find("wrapped") != std::string::npos || stem.find("without") != std::string::npos) continue;
    std::string clocks, mixed, returns, doubled, journal, pod, docker;
    for (const auto& line : lines_of(text)) {
      clocks += "vllm-1  | 2025-09-25T14:20:00.123456789Z " + line + "\n";
      mixed += line + "\n10.0.0.7 - - \"GET /healthz HTTP/1.1\" 200 2\nnginx: worker process 33 started\n";
      returns += line + "\r\n";
      doubled += line + "\n\n";
      journal += "Sep 25 14:20:00 gpu-01 serve[4242]: " + line + "\n";
      pod += "[pod/serve-7d9f5/serve] 2025-09-25T14:20:00.1Z stdout F " + line + "\n";
      docker += R"({"log":)" + json::Writer().text(line + "\n").take() +
                R"(,"stream":"stderr","time":"2025-09-25T14:20:00.1Z"})" + "\n";
    }
    same(clocks);
    same(mixed);
    same(returns);
    same(doubled);
    same(journal);
    same(pod);
    same(docker);
  }
}

TEST_CASE("of several logs in one text the last counts, whatever engine the others are of") {
  std::size_t pairs = 0;
  std::size_t turn = 0;
  for (const auto& last : logs()) {
    const std::string text = read_file(last);
    const std::string stem = last.stem().string();
    // A text that was broken or joined cannot be told apart from what stands before it.
    if (stem.find("wrapped") != std::string::npos || stem.find("without") != std::string::npos) continue;
    const auto alone = read(text);
    // Lines of a start that another engine's cache can stand before.
    const auto opens = [&](const char* words) { return text.substr(0, 400).find(words) != std::string::npos; };
    const bool starts = opens("vLLM API server version") || opens("Initializing a") || opens("server_args=") ||
                        opens("TensorRT-LLM version:") || opens("build: ") || opens("build=");
    if (!starts) continue;
    for (const auto& first : logs()) {
      // One in five, and not the same for each: all would take a minute under the sanitizers.
      if (turn++ % 5 != 0) continue;
      const std::string before = read_file(first);
      if (before.size() > 40'000 || first.stem().string().find("wrapped") != std::string::npos) continue;
      const auto answer = read(before + "\n" + text);
      CAPTURE(first.string());
      CAPTURE(last.string());
      CHECK(text_at(answer.root(), "engine") == text_at(alone.root(), "engine"));
      for (const std::string figure :
           {"kv_memory_bytes", "kv_tokens", "kv_blocks", "n_ctx", "model", "weights_bytes"}) {
        CAPTURE(figure);
        CHECK(text_at(answer.root(), "printed." + figure) == text_at(alone.root(), "printed." + figure));
      }
      ++pairs;
    }
  }
  CHECK(pairs > 60);
}

TEST_CASE("what an engine took outweighs \"auto\"") {
  const auto vllm = read(
      "args: Namespace(dtype='auto', kv_cache_dtype='auto', model='meta-llama/Llama-3.1-8B')\n"
      "Initializing an LLM engine (v0.6.3) with config: dtype=torch.float32, kv_cache_dtype=fp8\n");
  CHECK(text_at(vllm.root(), "printed.dtype") == "torch.float32");
  CHECK(text_at(vllm.root(), "printed.kv_dtype") == "fp8");
  const auto sglang = read(
      "server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B', kv_cache_dtype='auto')\n"
      "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 100, K size: 0.01 GB, V size: 0.01 GB\n");
  CHECK(text_at(sglang.root(), "request.kv") == "fp8");
  const auto llama =
      read("llama_context: flash_attn = auto\nllama_context: Flash Attention was auto, set to disabled\n");
  CHECK(text_at(llama.root(), "printed.flash_attn") == "disabled");
  CHECK(at(llama.root(), "contradictions")->count() == 0);
}

TEST_CASE("a version ends where its digits do") {
  for (const std::string after : {"\\n", "\\n\"", "\\r\\n(APIServer pid=1)", " ", ","}) {
    const auto answer = read("vLLM API server version 0.12.0" + after + "\nGPU KV cache size: 16 tokens\n");
    CHECK(text_at(answer.root(), "engine_version") == "0.12.0");
  }
}

TEST_CASE("a build's number does not make a fork of it") {
  const auto server =
      read("INFO [ main] build info | tid=\"140\" timestamp=1724000000 build=3600 commit=\"2fb92678\"\n");
  CHECK(text_at(server.root(), "engine") == "llama.cpp");
  CHECK(text_at(server.root(), "engine_version") == "b3600");
  CHECK(at(server.root(), "variant")->is(Kind::null));
}

TEST_CASE("blocks without their bytes are a pool as well") {
  const auto answer = read(
      "Initializing an LLM engine (v0.5.4) with config: model='meta-llama/Meta-Llama-3-8B', dtype=torch.bfloat16, "
      "max_seq_len=8192, tensor_parallel_size=1\n# GPU blocks: 1000, # CPU blocks: 2048\n");
  CHECK(text_at(answer.root(), "request.options.num_gpu_blocks_override") == "1000");
  CHECK(text_at(answer.root(), "memory.segments.0.kind") == "cache");
  CHECK(text_at(answer.root(), "memory.segments.0.bytes") == std::to_string(1000 * 16 * 131072));
  CHECK(text_at(answer.root(), "comparison.0.figure") == "kv_blocks");
}

TEST_CASE("the pool is computed by the budget wherever its terms are printed") {
  const auto budget_of = [](const std::string& log) {
    const auto answer = read(log);
    std::string found;
    for (const Value& one : *at(answer.root(), "comparison")) {
      if (text_at(one, "figure") == "kv_memory_bytes")
        found = shown(*at(one, "agrees")) + " " + text_at(one, "computed");
    }
    return found;
  };
  const std::string vllm =
      "Initializing a V0 LLM engine (v0.7.1) with config: model='Qwen/Qwen2.5-7B-Instruct', max_seq_len=8192\n"
      "the current vLLM instance can use total_gpu_memory (80.00GiB) x gpu_memory_utilization (0.90) = 72.00GiB\n"
      "model weights take 14.00GiB; non_torch_memory takes 1.00GiB; PyTorch activation peak memory takes 2.00GiB; the "
      "rest of the memory reserved for KV Cache is ";
  const std::string computed = std::to_string(u64{55} << 30);
  CHECK(budget_of(vllm + "55.00GiB.\n") == "true " + computed);
  CHECK(budget_of(vllm + "50.00GiB.\n") == "false " + computed);
  const std::string sglang =
      "server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B', mem_fraction_static=0.8, context_length=8192)\n"
      "Load weight begin. avail mem=80.00 GB\nLoad weight end. type=L, avail mem=64.00 GB, mem usage=16.00 GB.\n";
  const std::string pool = "KV Cache is allocated. #tokens: 393216, K size: 24.00 GB, V size: 24.00 GB\n";
  CHECK(budget_of(sglang + pool) == "true " + std::to_string(u64{48} << 30));
  CHECK(budget_of(sglang + "KV Cache is allocated. #tokens: 327680, K size: 20.00 GB, V size: 20.00 GB\n")
            .starts_with("false "));
  // Without one of them there is nothing to compute it from.
  CHECK(budget_of("server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B', mem_fraction_static=0.8)\n" + pool)
            .empty());
  const std::string needed =
      "ValueError: To serve at least one request with the models's max seq len (32768), (6.00 GiB KV cache is needed, "
      "which is larger than the available KV cache memory (2.31 GiB). Based on the available memory, the estimated "
      "maximum model length is 12608.\nmodel='Qwen/Qwen2.5-14B-Instruct', dtype=torch.float16, max_seq_len=32768\n";
  const auto answer = read(needed);
  CHECK(text_at(answer.root(), "comparison.0.figure") == "kv_needed_bytes");
  CHECK(at(answer.root(), "comparison.0.agrees")->truth);
}

TEST_CASE("a machine is named by what it had free, where nothing else names it") {
  const auto metal = read(
      "using device Metal (Apple M2 Max) (unknown id) - 53083 MiB free\n"
      "load_tensors: Metal_Mapped model buffer size = 8300.20 MiB\n"
      "load_tensors: CPU_Mapped model buffer size = 630.59 MiB\n"
      "llama_kv_cache: Metal KV buffer size = 5760.00 MiB\n");
  CHECK(text_at(metal.root(), "request.gpu") == "apple-m2-max-64gb");
  CHECK(text_at(metal.root(), "ranks") == "1");
  CHECK(text_at(metal.root(), "printed.devices.0.device") == "Metal");
  const auto unknown = read("using device ROCm0 (AMD Radeon Graphics of Tomorrow) - 24000 MiB free\n");
  CHECK(text_at(unknown.root(), "request.gpu.memory_bytes") == std::to_string(u64{24000} << 20));
  const auto sglang = read("server_args=ServerArgs(model_path='x')\nLoad weight begin. avail mem=139.00 GB\n");
  CHECK(text_at(sglang.root(), "request.gpu.memory_bytes") == std::to_string(u64{139} << 30));
}

TEST_CASE("flags that shape the pools are set") {
  const auto answer = read(
      "server_args=ServerArgs(model_path='Qwen/Qwen3-Next-80B-A3B-Instruct', page_size=64, max_total_tokens=65536, "
      "chunked_prefill_size=4096, cuda_graph_max_bs=32, mamba_full_memory_ratio=0.7, disable_radix_cache=True)\n");
  const Value& options = *at(answer.root(), "request.options");
  CHECK(text_at(options, "page_size") == "64");
  CHECK(text_at(options, "max_total_tokens") == "65536");
  CHECK(text_at(options, "chunked_prefill_size") == "4096");
  CHECK(text_at(options, "cuda_graph_max_bs") == "32");
  CHECK(text_at(options, "mamba_full_memory_ratio") == "0.7");
  CHECK(at(options, "disable_radix_cache")->truth);
  const auto vllm = read(
      "non-default args: {'model': 'Qwen/Qwen3-8B', 'enforce_eager': True, 'cpu_offload_gb': 4, "
      "'disable_hybrid_kv_cache_manager': True, 'mamba_cache_mode': 'all'}\n# GPU blocks: 16\n");
  const Value& flags = *at(vllm.root(), "request.options");
  CHECK(at(flags, "enforce_eager")->truth);
  CHECK(at(flags, "disable_hybrid_kv_cache_manager")->truth);
  CHECK(text_at(flags, "cpu_offload_gb") == "4");
  CHECK(text_at(flags, "mamba_cache_mode") == "all");
  // Processes of MPI are GPUs, and the size of the weights is one's.
  const auto tensorrt = read(
      "[TensorRT-LLM][INFO] MPI size: 2, MPI local size: 2, rank: 0\n"
      "[TensorRT-LLM][INFO] Loaded engine size: 7667 MiB\n");
  CHECK(text_at(tensorrt.root(), "request.tensor_parallel") == "2");
  CHECK(text_at(tensorrt.root(), "request.weight_bytes") == std::to_string(u64{2 * 7667} << 20));
}

TEST_CASE("a terminal's width changes nothing") {
  for (const auto& path : logs()) {
    const std::string text = read_file(path);
    const std::string stem = path.stem().string();
    // Colours are not columns, and a text that is already broken is not broken anew.
    if (text.find('\x1b') != std::string::npos || stem.find("wrapped") != std::string::npos) continue;
    const auto plain = read(text);
    for (const std::size_t width : {80U, 100U, 132U}) {
      CAPTURE(path.string());
      CAPTURE(width);
      const std::string broken = wrapped(text, width);
      // One line that reaches the edge does not tell a terminal's width from a long line.
      const auto full = std::ranges::count(lines_of(broken), width, &std::string::size);
      if (full < 2) continue;
      const auto answer = read(broken);
      CHECK(shown(*at(answer.root(), "printed")) == shown(*at(plain.root(), "printed")));
    }
  }
}

TEST_CASE("any part of a log is read") {
  for (const auto& path : logs()) {
    CAPTURE(path.string());
    const auto lines = lines_of(read_file(path));
    for (std::size_t from = 0; from < lines.size(); ++from) {
      std::string part;
      for (std::size_t i = from; i < std::min(from + 3, lines.size()); ++i) part += lines[i] + "\n";
      const auto answer = read(part);
      CHECK(at(answer.root(), "lines") != nullptr);
    }
  }
}

TEST_CASE("bytes keep the tolerance of what was printed") {
  const auto answer = read("INFO Available KV cache memory: 4.94 GiB\n");
  const Value& line = *at(answer.root(), "lines.0");
  CHECK(text_at(line, "value") == "5304284611");   // 4.94 × 2^30, rounded
  CHECK(text_at(line, "tolerance") == "5368710");  // half of 0.01 GiB, rounded up
  CHECK(text_at(line, "unit") == "bytes");
  CHECK(text_at(line, "text") == "INFO Available KV cache memory: 4.94 GiB");
}

TEST_CASE("numbers are written in many ways") {
  const auto tokens = [](const std::string& number) {
    return text_at(read("GPU KV cache size: " + number + " tokens").root(), "printed.kv_tokens");
  };
  CHECK(tokens("89994") == "89994");
  CHECK(tokens("89,994") == "89994");
  CHECK(tokens("89_994") == "89994");
  CHECK(tokens("1,234,567") == "1234567");
  CHECK(tokens("99999999999999999999999") == "(absent)");
  CHECK(tokens("9007199254740993") == "(absent)");
  CHECK(tokens("-5") == "(absent)");
  CHECK(tokens("1.5") == "(absent)");
  const auto memory = [](const std::string& size) {
    return text_at(read("Available KV cache memory: " + size).root(), "printed.kv_memory_bytes");
  };
  CHECK(memory("1 GiB") == "1073741824");
  CHECK(memory("1GB") == "1073741824");
  CHECK(memory("1,5 GiB") == "1610612736");
  CHECK(memory("1024 KiB") == "1048576");
  CHECK(memory("512B") == "512");
  CHECK(memory("0.00 GiB") == "0");
  CHECK(memory("12") == "(absent)");
  CHECK(memory("12 Gallons") == "(absent)");
  CHECK(memory("9999999999999 GiB") == "(absent)");
}

TEST_CASE("a text that holds no log says so") {
  for (const std::string text : {"", "\n\n\n", "hello world", "{\"architectures\": [\"LlamaForCausalLM\"]}"}) {
    const auto answer = read(text);
    CHECK(at(answer.root(), "engine")->is(Kind::null));
    CHECK(at(answer.root(), "request")->is(Kind::null));
    CHECK(text_at(answer.root(), "missing.0") == "engine");
    CHECK(text_at(answer.root(), "findings.0.code") == "nothing_found");
  }
}

TEST_CASE("hostile texts end in an answer") {
  std::vector<std::string> texts;
  const auto repeated = [](std::string_view piece, std::size_t bytes) {
    std::string text;
    text.reserve(bytes + piece.size());
    while (text.size() < bytes) text += piece;
    return text;
  };
  // Enough for what grows with the square to be noticed: it would take minutes.
  constexpr std::size_t kOneMB = 1'000'000;
  texts.push_back(repeated("x", 10 * kOneMB));
  texts.push_back(repeated("9", kOneMB));
  texts.push_back(repeated("9,", kOneMB));
  texts.push_back(repeated(std::string_view("\0", 1), kOneMB));
  texts.push_back(repeated("\r", kOneMB));
  texts.push_back(repeated(std::string(100, '\r') + std::string(60, 'x'), kOneMB));
  texts.push_back(repeated(R"({"log":"\u001b[)", kOneMB));
  texts.push_back(repeated("{\"log\":\"\\\\\n", kOneMB));
  texts.push_back(repeated("build: 1 (\nself size = 1 MiB\n", kOneMB));
  texts.push_back(repeated("\x1b[", kOneMB));
  texts.push_back(repeated("\x1b]0;", kOneMB));
  texts.push_back(repeated("\xff\xc3", kOneMB));
  texts.push_back(repeated("GPU KV cache size: 1 tokens\n", 28'000'000));  // a million candidates
  texts.push_back(repeated("GPU KV cache size: 1,\n", kOneMB));
  texts.push_back(repeated("GPU KV cache size: ", kOneMB));
  texts.push_back(
      repeated("size = 1.00 MiB (1 cells, 1 layers, 1 seqs), K (f16): 1.00 MiB, V (f16): 1.00 MiB\n", kOneMB));
  texts.push_back(repeated("n_head_kv = [", kOneMB));
  texts.push_back(repeated("model='", kOneMB));
  texts.push_back(repeated("model=\"\n", kOneMB));
  texts.push_back(repeated("Device 0: ", kOneMB));
  texts.push_back(repeated("(((((((([[[[[[[[", kOneMB));
  texts.push_back(repeated("Load weight end. \n", kOneMB));
  texts.push_back(repeated("Initializing a\nGPU KV cache size: 7 tokens\n", kOneMB));
  texts.push_back(repeated("llama_model_loader: loaded meta data with 1 from a\n", kOneMB));
  for (const auto& text : texts) {
    CAPTURE(text.substr(0, 60));
    const std::string answer = read_log_json(text, full_features());
    CHECK(answer.size() < 400'000);
    CHECK(json::Document::parse(answer, "answer", kAnySize).has_value());
  }
  // Random bytes between fragments of real messages.
  std::mt19937 random(20260101);
  const std::string seed = read_file("tests/data/logs/vllm-0.11.0-mistral-small-debug.log") +
                           read_file("tests/data/logs/llama.cpp-b3802-gemma-2-27b.log") +
                           read_file("tests/data/logs/sglang-gemma-4-12b-two-pools.log");
  for (int round = 0; round < 400; ++round) {
    std::string text = seed.substr(random() % seed.size(), 1 + random() % 4000);
    for (int change = 0; change < 40; ++change) text[random() % text.size()] = static_cast<char>(random());
    const std::string answer = read_log_json(text, full_features());
    CHECK_MESSAGE(json::Document::parse(answer, "answer", kAnySize).has_value(), answer.substr(0, 200));
  }
}

TEST_CASE("answers to any bytes are text") {
  const auto well_formed = [](std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const std::size_t length = byte < 0x80   ? 1
                                 : byte < 0xC2 ? 0
                                 : byte < 0xE0 ? 2
                                 : byte < 0xF0 ? 3
                                 : byte < 0xF5 ? 4
                                               : 0;
      if (length == 0 || i + length > text.size()) return false;
      for (std::size_t k = 1; k < length; ++k) {
        if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
      }
      i += length;
    }
    return true;
  };
  std::string long_line = "model='";
  for (int i = 0; i < 60; ++i) long_line += "\xc3\xa9\xe2\x82\xac";
  long_line += "' GPU KV cache size: 12 tokens";
  for (int i = 0; i < 60; ++i) long_line += "\xf0\x9f\x90\x99\xff\xc3";
  for (std::size_t cut = 0; cut < long_line.size(); ++cut) {
    const std::string answer = read_log_json(std::string_view(long_line).substr(cut), full_features());
    CHECK(well_formed(answer));
  }
}

TEST_CASE("more than is read is refused") {
  const std::string text(kMaxLogBytes + 1, 'x');
  const auto answer = read(text);
  CHECK(text_at(answer.root(), "error.code") == "too_large");
  CHECK(text_at(answer.root(), "error.field") == "log");
}

TEST_CASE("the request that a log describes is answered") {
  std::size_t answered = 0;
  for (const auto& path : logs()) {
    CAPTURE(path.string());
    const auto answer = read(read_file(path));
    for (const Value& finding : *at(answer.root(), "findings")) {
      CHECK_MESSAGE(text_at(finding, "code") != "request_refused", shown(finding));
    }
    if (at(answer.root(), "missing")->count() != 0) continue;
    const auto plan = parse(plan_json(shown(*at(answer.root(), "request")), full_features()));
    CHECK(at(plan.root(), "error") == nullptr);
    CHECK(at(plan.root(), "sequences") != nullptr);
    ++answered;
  }
  CHECK(answered >= 3);
}
