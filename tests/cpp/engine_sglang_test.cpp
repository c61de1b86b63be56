// SGLang's pools against what its versions printed: tokens within 1 %, pool sizes to the printed digit.
#include <algorithm>
#include <cmath>
#include <set>

#include "engine_records.hpp"

using namespace kvcap;
using namespace records;

namespace {

constexpr double kGib = 1073741824;

u64 gib_bytes(const json::Value* value) { return static_cast<u64>(std::llround(number_of(value) * kGib)); }

/// What is known of the pool: its printed size, what left the GPU while it was made, or the budget before it.
enum class Basis { size, drop, budget };

bool has(const Json& record, const char* field) { return record.get(field) != nullptr; }

double printed_pool(const Json& record) {
  if (has(record, "kv_size_gib")) return number_of(record.get("kv_size_gib"));
  return number_of(record.get("k_gib")) + number_of(record.get("v_gib"));
}

bool can(const Json& record, Basis basis) {
  if (!has(record, "kv_tokens") || model_of(record) == nullptr) return false;
  switch (basis) {
    case Basis::size: return printed_pool(record) != 0;
    case Basis::drop: return has(record, "avail_after_load") && has(record, "avail_pool_end");
    case Basis::budget:
      return has(record, "avail_after_load") && has(record, "weights_gib") && has(record, "mem_fraction_static");
  }
  return false;
}

std::string request_of(const Json& record, Basis basis) {
  json::Writer out;
  out.begin_object();
  const NamedModel* const model = model_of(record);
  write_model(out, *model);
  out.key("engine").text("sglang");
  out.key("gpu").begin_object().key("memory_bytes").number(Wide{1} << 40).end_object();
  if (has(record, "tp")) out.key("tensor_parallel").number(std::stoull(text_of(record.get("tp"))));
  const bool context = has(record, "max_model_len");
  out.key("context").number(context ? std::stoull(text_of(record.get("max_model_len"))) : 8192);
  const std::string format = text_of(record.get("kv_dtype"));
  if (format != "auto" && !format.empty()) out.key("kv").text(std::string_view(format));
  out.key("options").begin_object();
  if (has(record, "engine_version")) out.key("version").text(record.get("engine_version")->text);
  if (text_of(record.get("kv_layout")) == "all_full") out.key("disable_hybrid_swa_memory").boolean(true);
  const auto copy = [&](const char* field, const char* option) {
    if (has(record, field)) out.key(option).decimal(static_cast<u64>(number_of(record.get(field)) * 1e6 + 0.5));
  };
  copy("swa_full_ratio", "swa_full_tokens_ratio");
  copy("mem_fraction_static", "mem_fraction_static");
  copy("mamba_slots", "max_mamba_cache_size");
  copy("max_running_requests", "max_running_requests");
  // One state type of two bytes is seen in the printed sizes.
  if (number_of(record.get("mamba_ssm_gib")) < 4 && has(record, "mamba_ssm_gib"))
    out.key("mamba_ssm_dtype").text("bfloat16");
  if (basis == Basis::size) {
    u64 bytes = static_cast<u64>(std::llround(printed_pool(record) * kGib));
    if (has(record, "mamba_ssm_gib")) {
      // States stand in a pool beside, one more than the slots that the budget counts.
      const double states = number_of(record.get("mamba_ssm_gib")) + number_of(record.get("mamba_conv_gib"));
      const double slots = number_of(record.get("mamba_slots"));
      bytes += static_cast<u64>(states * slots / (slots + 1) * kGib);
    }
    out.key("kv_memory_bytes").number(bytes);
  } else {
    out.key("avail_after_load_bytes").number(gib_bytes(record.get("avail_after_load")));
    if (basis == Basis::drop) {
      out.key("avail_pool_end_bytes").number(gib_bytes(record.get("avail_pool_end")));
    } else {
      const u64 weights = gib_bytes(record.get("weights_gib"));
      out.key("avail_before_load_bytes").number(gib_bytes(record.get("avail_after_load")) + weights);
    }
  }
  out.end_object().end_object();
  return out.take();
}

std::string ask_text(const std::string& model, const std::string& options, const std::string& more = "") {
  return R"({"engine":"sglang","model":")" + model + R"(","options":{)" + options + "}" + more + "}";
}

}  // namespace

TEST_CASE("every record of SGLang: tokens within 1 % of the printed") {
  // Where the page of rules says why a record stands apart.
  const std::set<std::string> apart = {
      "SG005",  // 0.46 GiB of other buffers, in a pool of 3 GiB
      "SG011",  // a fork that stores scales beside int8
      "SG019",  // 4096 tokens: the printed size has two digits
  };
  // Memory of one rank, tokens of the poorest: 1 to 2.5 % at most (rules 6 and 9).
  Summary summary;
  std::printf("%-7s %-7s %12s %12s %9s\n", "record", "from", "printed", "computed", "ratio");
  for (const Json& record : read_records("sglang")) {
    const std::string id = text_of(record.get("id"));
    CAPTURE(id);
    for (const auto& [basis, name] :
         {std::pair{Basis::size, "size"}, std::pair{Basis::drop, "drop"}, std::pair{Basis::budget, "budget"}}) {
      if (!can(record, basis)) continue;
      // A later pool was made between the two lines.
      if (basis == Basis::drop && printed_pool(record) != 0) continue;
      const Json answer = ask(request_of(record, basis));
      const double printed = number_of(record.get("kv_tokens"));
      const double computed = number_of(answer.get("kv_tokens"));
      const double ratio = computed / printed;
      const bool one_rank = basis == Basis::budget && number_of(record.get("tp")) > 1;
      const bool holds = std::abs(ratio - 1) <= (one_rank ? 0.025 : 0.01);
      std::printf("%-7s %-7s %12.0f %12.0f %9.5f%s\n", id.c_str(), name, printed, computed, ratio,
                  apart.contains(id) ? "  (explained)" : "");
      summary[std::string(name) + " " + text_of(record.get("attention_kind"))].add(holds, ratio);
      if (!apart.contains(id)) CHECK_MESSAGE(holds, id << " " << name << ": " << printed << ", " << computed);
    }
  }
  print(summary);
}

TEST_CASE("end to end: tokens from model, GPU, flags and version alone") {
  // The catalogue's names for what records call their GPUs; A800 and H800 differ from A100 and H100 in their links.
  const std::map<std::string, const char*> gpus = {
      {"L4", "l4-24gb"},          {"H100 80GB", "h100-sxm-80gb"},
      {"H800", "h100-sxm-80gb"},  {"A800-SXM4-80GB", "a100-sxm-80gb"},
      {"H200", "h200-sxm-141gb"}, {"RTX 3090", "rtx-3090"},
  };
  // Versions by date where a record names none.
  const auto version_of = [](const Json& record) -> std::string {
    if (has(record, "engine_version")) return text_of(record.get("engine_version"));
    return text_of(record.get("date")) < "2025-04" ? "0.4.4" : text_of(record.get("date")) < "2025-08" ? "0.4.9" : "";
  };
  std::vector<double> errors;
  std::size_t inside = 0;
  std::printf("%-7s %-26s %-15s %10s %10s %8s   range\n", "record", "model", "GPU", "printed", "computed", "error");
  for (const Json& record : read_records("sglang")) {
    const std::string id = text_of(record.get("id"));
    CAPTURE(id);
    const auto gpu = gpus.find(text_of(record.get("gpu")));
    const NamedModel* const model = model_of(record);
    if (gpu == gpus.end() || model == nullptr || !has(record, "kv_tokens")) continue;
    json::Writer out;
    out.begin_object();
    write_model(out, *model);
    out.key("engine").text("sglang").key("gpu").text(gpu->second);
    out.key("tensor_parallel").number(std::stoull(text_of(record.get("tp"))));
    if (has(record, "max_model_len")) out.key("context").number(std::stoull(text_of(record.get("max_model_len"))));
    const std::string format = text_of(record.get("kv_dtype"));
    if (format.starts_with("fp8")) out.key("kv").text("fp8");
    const std::string weights = text_of(record.get("weight_format"));
    if (id == "SG006") {
      out.key("parameters").number(25'800'000'000);  // its model card
    } else if (weights.find("int4") != std::string::npos) {
      // The file's size: what such files keep at 16 bits is no rule.
      const double bytes = number_of(record.get("weights_gib")) * number_of(record.get("tp")) * kGib;
      out.key("weight_bytes").number(static_cast<u64>(bytes));
    } else {
      out.key("weights").text(weights == "fp8" ? "fp8" : "bf16");
    }
    out.key("options").begin_object();
    if (const std::string version = version_of(record); !version.empty()) {
      out.key("version").text(std::string_view(version));
    }
    for (const auto& [field, option] :
         {std::pair{"mem_fraction_static", "mem_fraction_static"}, {"swa_full_ratio", "swa_full_tokens_ratio"}}) {
      if (!has(record, field)) continue;
      out.key(option).decimal(static_cast<u64>(number_of(record.get(field)) * 1e6 + 0.5));
    }
    if (has(record, "max_running_requests")) {
      out.key("max_running_requests").number(std::stoull(text_of(record.get("max_running_requests"))));
    }
    out.end_object().end_object();
    const Json answer = ask(out.take());
    const double printed = number_of(record.get("kv_tokens"));
    const double computed = number_of(answer.get("kv_tokens"));
    const double pool = number_of(answer.get("kv_memory_bytes_per_gpu"));
    std::vector<double> range;
    for (const json::Value& bound : *answer.get("kv_memory_bytes_per_gpu_range")) {
      range.push_back(computed * number_of(&bound) / pool);
    }
    REQUIRE(range.size() == 2);
    const bool within = range[0] <= printed && printed <= range[1];
    std::printf("%-7s %-26s %-15s %10.0f %10.0f %+7.1f%%   %.0f to %.0f%s\n", id.c_str(),
                text_of(record.get("model")).substr(0, 26).c_str(), gpu->first.c_str(), printed, computed,
                (computed / printed - 1) * 100, range[0], range[1], within ? "" : "  OUTSIDE");
    errors.push_back(std::abs(computed / printed - 1));
    inside += within ? 1 : 0;
  }
  std::ranges::sort(errors);
  const auto percentile = [&](double share) {
    return errors[static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size()))) - 1];
  };
  REQUIRE(errors.size() >= 9);
  std::printf("%zu records: median error %.1f %%, 90th percentile %.1f %%, %zu inside the range\n", errors.size(),
              percentile(0.5) * 100, percentile(0.9) * 100, inside);
  CHECK(percentile(0.5) <= 0.05);
  CHECK(percentile(0.9) <= 0.15);
  CHECK(inside * 10 >= errors.size() * 8);
}

TEST_CASE("pools of full layers, windows and states to the printed digit") {
  const auto gib = [](const json::Value* cache, const char* key) { return number_of(cache->get(key)) / kGib; };
  for (const Json& record : read_records("sglang")) {
    const std::string id = text_of(record.get("id"));
    CAPTURE(id);
    if (!can(record, Basis::size) || id == "SG019") continue;
    const Json answer = ask(request_of(record, Basis::size));
    if (const json::Value* const window = cache_named(answer, "window")) {
      CHECK(std::abs(number_of(window->get("cells")) / number_of(record.get("swa_tokens")) - 1) < 0.01);
      CHECK(gib(window, "k_bytes") == doctest::Approx(number_of(record.get("swa_k_gib"))).epsilon(0.005));
      CHECK(gib(window, "v_bytes") == doctest::Approx(number_of(record.get("swa_v_gib"))).epsilon(0.005));
    }
    if (has(record, "k_gib")) {
      const json::Value* const full = cache_named(answer, "full");
      CHECK(gib(full, "k_bytes") == doctest::Approx(number_of(record.get("k_gib"))).epsilon(0.01));
      CHECK(gib(full, "v_bytes") == doctest::Approx(number_of(record.get("v_gib"))).epsilon(0.01));
    }
    if (const json::Value* const states = cache_named(answer, "recurrent")) {
      const double conv = gib(states, "conv_bytes");
      CHECK(std::abs(conv - number_of(record.get("mamba_conv_gib"))) <= 0.005);
      CHECK(std::abs(gib(states, "state_bytes") - conv - number_of(record.get("mamba_ssm_gib"))) <= 0.005);
    }
  }
}

TEST_CASE("the share that SGLang keeps for itself, by version and GPU") {
  // pool = free after − free before × (1 − share): with 1000 GiB free and no weights, the pool is the share itself.
  const auto share = [](const std::string& gpu, const std::string& options, const std::string& more = "") {
    const std::string free = R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000)";
    const std::string own = options.empty() ? "" : "," + options;
    const Json answer = ask(ask_text("qwen3-32b", free + own, R"(,"weight_bytes":0,"gpu":")" + gpu + "\"" + more));
    return std::round(number_of(answer.get("kv_memory_bytes_per_gpu")) / 1e9);
  };
  CHECK(share("h100-sxm-80gb", R"("version":"0.4.3")") == 880);
  CHECK(share("h100-sxm-80gb", R"("version":"0.4.3")", R"(,"tensor_parallel":8)") == 810);
  CHECK(share("h100-sxm-80gb", R"("version":"0.3.0")", R"(,"tensor_parallel":8)") == 830);
  CHECK(share("h100-sxm-80gb", R"("version":"0.5.6")") == 835);
  // Issue 29092: Qwen3 32B on an H100.
  CHECK(share("h100-sxm-80gb", "") == 828);
  CHECK(share("h100-sxm-80gb", R"("mem_fraction_static":0.9)") == 900);
}

TEST_CASE("pages, request limits and pools bound the conversations") {
  const auto ask_pool = [](const std::string& model, const std::string& options, const std::string& more = "") {
    return ask(ask_text(model, R"("kv_memory_bytes":17179869184)" + options, R"(,"gpu":"h100-sxm-80gb")" + more));
  };
  // 16 GiB at 128 KiB a token.
  const Json plain = ask_pool("llama-3.1-8b", "", R"(,"context":1000)");
  CHECK(number_of(plain.get("kv_tokens")) == 131072);
  CHECK(number_of(plain.get("sequences")) == 131);
  const Json paged = ask_pool("llama-3.1-8b", R"(,"page_size":64)", R"(,"context":1000)");
  CHECK(number_of(paged.get("sequences")) == 128);
  CHECK(number_of(paged.get("kv_reserved_per_sequence")) == 1024.0 * 131072);
  CHECK(number_of(ask_pool("llama-3.1-8b", R"(,"max_running_requests":7)", R"(,"context":1000)").get("sequences")) ==
        7);
  CHECK(number_of(ask_pool("llama-3.1-8b", R"(,"max_total_tokens":10240)").get("kv_tokens")) == 10240);
  // Eight GPUs hold one head each; the tokens are the same on all.
  CHECK(number_of(ask_pool("llama-3.1-8b", "", R"(,"tensor_parallel":8)").get("kv_tokens")) == 8 * 131072);
  CHECK(number_of(ask_pool("llama-3.1-8b", "", R"(,"data_parallel":2,"context":1000)").get("sequences")) == 262);

  const Json window = ask_pool("gemma-4-31b", "");
  const double full_cells = number_of(cache_named(window, "full")->get("cells"));
  CHECK(number_of(cache_named(window, "window")->get("cells")) == std::floor(full_cells * 0.8));
  const Json one_pool = ask_pool("gemma-4-31b", R"(,"disable_hybrid_swa_memory":true)");
  CHECK(cache_named(one_pool, "window") == nullptr);
  CHECK(number_of(one_pool.get("kv_tokens")) < full_cells);

  const Json states = ask_pool("qwen3.6-27b", R"(,"max_mamba_cache_size":9)", R"(,"context":1000)");
  CHECK(number_of(cache_named(states, "recurrent")->get("cells")) == 9);
  CHECK(number_of(states.get("sequences")) == 3);
  const Json no_radix =
      ask_pool("qwen3.6-27b", R"(,"max_mamba_cache_size":9,"disable_radix_cache":true)", R"(,"context":1000)");
  CHECK(number_of(no_radix.get("sequences")) == 9);
}

TEST_CASE("bad settings are refused by field") {
  CHECK(error_of(ask_text("llama-3.1-8b", R"("mem_fraction_static":0)")) == "out_of_range options.mem_fraction_static");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("mem_fraction_static":1.1)")) ==
        "out_of_range options.mem_fraction_static");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("page_size":0)")) == "out_of_range options.page_size");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("swa_full_tokens_ratio":0)")) ==
        "out_of_range options.swa_full_tokens_ratio");
  CHECK(error_of(ask_text("llama-3.1-8b", "", R"(,"tensor_parallel":3)")) == "not_divisible tensor_parallel");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("kv_memory_bytes":990000000000)", R"(,"gpu":"h100-sxm-80gb")")) ==
        "out_of_range options.kv_memory_bytes");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("avail_before_load_bytes":1,"avail_after_load_bytes":2)")) ==
        "conflict options.avail_after_load_bytes");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("avail_after_load_bytes":1,"avail_pool_end_bytes":2)")) ==
        "conflict options.avail_pool_end_bytes");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("max_running_requests":16777216)", R"(,"context":2147483648)")) ==
        "out_of_range options.max_running_requests");
  CHECK(error_of(ask_text("llama-3.1-8b", R"("utilization":1)")) == "unknown_id options.utilization");
}

TEST_CASE("every model: reserved is at least written, the gaps are the difference, longer contexts fit no more often") {
  for (const auto& entry : catalogue()) {
    for (const char* options : {"", R"("page_size":64)", R"("disable_radix_cache":true)", R"("version":"0.4.0")"}) {
      CAPTURE(entry.id);
      CAPTURE(options);
      double before = 0;
      double sequences_before = 1e18;
      for (const char* context : {"1", "1000", "100000"}) {
        const Json answer = ask(ask_text(
            std::string(entry.id), options,
            R"(,"weight_bytes":1000000000,"gpu":{"memory_bytes":1099511627776},"context":)" + std::string(context)));
        const double reserved = number_of(answer.get("kv_reserved_per_sequence"));
        double gaps = 0;
        for (const json::Value& gap : *answer.get("gaps")) gaps += number_of(gap.get("bytes"));
        CHECK(reserved - number_of(answer.get("kv_bytes_per_sequence")) == gaps);
        CHECK(reserved >= before);
        CHECK(number_of(answer.get("sequences")) <= sequences_before);
        before = reserved;
        sequences_before = number_of(answer.get("sequences"));
      }
    }
  }
}
