// What an engine's settings change, each held against the engine's own rule, and what they may not be.
#include <doctest/doctest.h>

#include "plan_helpers.hpp"

using namespace kvcap;
using kvcap::test::Asked;

namespace {

Asked ask(std::string_view engine, std::string_view model, std::string_view options, std::string_view more = "") {
  const bool object = model.starts_with('{');
  return Asked(R"({"engine":")" + std::string(engine) + R"(","model":)" + (object ? "" : "\"") + std::string(model) +
               (object ? "" : "\"") + R"(,"options":{)" + std::string(options) + "}" + std::string(more) + "}");
}

std::string refusal(const Asked& answer) {
  return answer.refused() ? answer.words("error.code") + " " + answer.words("error.field") : "";
}

bool noted(const Asked& answer, std::string_view code) {
  for (const json::Value& note : *answer.at("notes")) {
    if (note.get("code")->text == code) return true;
  }
  return false;
}

/// A cache of an answer by name; nullptr when there is none.
const json::Value* cache_named(const Asked& answer, std::string_view name) {
  for (const json::Value& cache : *answer.at("caches")) {
    if (cache.get("name")->text == name) return &cache;
  }
  return nullptr;
}

std::string cells_of(const Asked& answer, std::string_view name) {
  const json::Value* const cache = cache_named(answer, name);
  return cache == nullptr ? "none" : std::string(cache->get("cells")->text);
}

}  // namespace

TEST_CASE("SGLang keeps a share by version, GPUs and memory") {
  // With 10^12 bytes free and no weights, the pool is the share itself.
  const auto share = [](std::string_view gpu, std::string_view version, int tensor, std::string_view more = "") {
    return ask("sglang", "qwen3-32b",
               R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000,"version":")" +
                   std::string(version) + "\"" + std::string(more),
               R"(,"weight_bytes":1,"gpu":)" + std::string(gpu) + R"(,"tensor_parallel":)" + std::to_string(tensor))
               .whole("kv_memory_bytes_per_gpu") /
           1'000'000'000;
  };
  const char* const kH100 = "\"h100-sxm-80gb\"";
  const char* const k4090 = "\"rtx-4090\"";
  const char* const kL40s = "\"l40s-48gb\"";
  // Before 0.4.7 by GPUs alone (server_args.py)
  CHECK(share(kH100, "0.4.3", 1) == 880);
  CHECK(share(kH100, "0.4.3", 2) == 870);
  CHECK(share(kH100, "0.4.3", 4) == 850);
  CHECK(share(kH100, "0.4.3", 16) == 790);
  // Before 0.5.3 by memory (pull request 7054): 2867 MiB and a tenth of a GiB, 9728 and 512, 12288 and 512, or 32768
  CHECK(share(k4090, "0.5.0", 1) == 879);                 // (24564 - 2969) / 24564
  CHECK(share(kH100, "0.5.0", 1) == 874);                 // (81559 - 10240) / 81559
  CHECK(share("\"h200-sxm-141gb\"", "0.5.0", 1) == 911);  // (143771 - 12800) / 143771
  CHECK(share("\"b200-180gb\"", "0.5.0", 1) == 821);      // (183359 - 32768) / 183359
  // Since then by what prefill and graphs take (pull request 10975)
  CHECK(share("\"t4-16gb\"", "0.5.6", 1) == 757);  // 512 + 3072 + 2 × 8 + 128 of 15360
  CHECK(share(k4090, "0.5.6", 1) == 847);          // 512 + 3072 + 2 × 24 + 128 of 24564
  CHECK(share(k4090, "0.5.6", 4) == 827);          // 512 + 3072 + 2 × 80 + 512
  CHECK(share(kL40s, "0.5.6", 1) == 851);          // 512 + 6144 + 2 × 32 + 128 of 46068
  CHECK(share(kL40s, "0.5.6", 4) == 837);          // 512 + 6144 + 2 × 160 + 512
  CHECK(share(kL40s, "0.5.6", 1, R"(,"chunked_prefill_size":2048,"cuda_graph_max_bs":8)") == 919);  // 3728
  // A stated size stands for the driver's; one that is smaller than what is kept leaves nothing.
  CHECK(share(R"({"memory_bytes":25757220864})", "0.5.6", 1) == 847);  // 24564 MiB
  CHECK(share(R"({"memory_bytes":1073741824})", "0.5.6", 1) == 0);
}

TEST_CASE("SGLang cut the share of models that see, by version") {
  const auto pool = [](std::string_view model, std::string_view version) {
    return ask("sglang", model,
               R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000,)"
               R"("mem_fraction_static":0.8,"version":")" +
                   std::string(version) + "\"",
               R"(,"weight_bytes":1,"gpu":"h100-sxm-80gb")")
               .whole("kv_memory_bytes_per_gpu") /
           1'000'000'000;
  };
  CHECK(pool("gemma-3-27b", "0.4.4") == 760);  // × 0.95
  CHECK(pool("gemma-3-27b", "0.4.6") == 720);  // × 0.9
  CHECK(pool("gemma-3-27b", "0.4.9") == 800);
  CHECK(pool("qwen3-32b", "0.4.4") == 800);
}

TEST_CASE("SGLang's pool from whichever of the log's figures are known") {
  const auto pool = [](std::string_view options, std::string_view more = R"(,"gpu":"h100-sxm-80gb")") {
    return ask("sglang", "llama-3.1-8b", R"("mem_fraction_static":0.9)" + std::string(options),
               R"(,"weight_bytes":16000000000)" + std::string(more))
        .whole("kv_memory_bytes_per_gpu");
  };
  // pool = free after − (1 − share) × free before; one is the other and the weights
  CHECK(pool(R"(,"avail_before_load_bytes":80000000000,"avail_after_load_bytes":60000000000)") == 52'000'000'000);
  CHECK(pool(R"(,"avail_before_load_bytes":80000000000)") == 56'000'000'000);
  CHECK(pool(R"(,"avail_after_load_bytes":64000000000)") == 56'000'000'000);
  // Free memory at the end alone tells nothing of the pool.
  CHECK(pool(R"(,"avail_before_load_bytes":80000000000,"avail_pool_end_bytes":1)") == 56'000'000'000);
  CHECK(pool("", R"(,"gpu":{"memory_bytes":1000000})") == 0);
  // What left the GPU: less than one request's table is no pool.
  CHECK(pool(R"(,"avail_after_load_bytes":2000000,"avail_pool_end_bytes":1999999)") == 0);
}

TEST_CASE("SGLang's states take their slots from the room, or as told") {
  const auto slots = [](std::string_view model, std::string_view options) {
    return cells_of(ask("sglang", model, options, R"(,"gpu":"h100-sxm-80gb","weight_bytes":1000000000)"), "recurrent");
  };
  CHECK(slots("qwen3.6-27b", R"("kv_memory_bytes":17179869184,"max_mamba_cache_size":9)") == "9");
  CHECK(slots("qwen3.6-27b", R"("kv_memory_bytes":17179869184,"disable_radix_cache":true,"max_running_requests":7)") ==
        "7");
  // Without rows all of it: 24 layers of 24,576 and 4,608 values of two bytes
  CHECK(slots("mamba-130m", R"("kv_memory_bytes":1400832000)") == "1000");
  // From what left the GPU; one slot more is made than is counted.
  const Asked dropped =
      ask("sglang", "mamba-130m", R"("avail_after_load_bytes":60000000000,"avail_pool_end_bytes":58599168000)",
          R"(,"gpu":"h100-sxm-80gb","weight_bytes":1000000000)");
  CHECK(cells_of(dropped, "recurrent") == "1000");
  const auto tokens = [](std::string_view options) {
    return ask("sglang", "qwen3.6-27b", options, R"(,"gpu":"h100-sxm-80gb","weight_bytes":1000000000)")
        .whole("kv_tokens");
  };
  const u64 all = tokens(R"("avail_after_load_bytes":60000000000,"avail_pool_end_bytes":50000000000)");
  const u64 fewer =
      tokens(R"("avail_after_load_bytes":60000000000,"avail_pool_end_bytes":50000000000,"max_mamba_cache_size":20)");
  CHECK(all > 0);
  CHECK(fewer > 0);
  CHECK(refusal(ask("sglang", "llama-3.1-8b", R"("page_size":1048577,"kv_memory_bytes":9007199254740991)",
                    R"(,"gpu":{"memory_bytes":9007199254740991},"tensor_parallel":1)")) ==
        "out_of_range options.page_size");
}

TEST_CASE("vLLM says where --max-num-seqs ends it, and takes V0's batches as they were") {
  const Asked few = ask("vllm", "llama-3.1-8b", R"("max_num_seqs":4)", R"(,"gpu":"h100-sxm-80gb","context":128)");
  CHECK(few.whole("sequences") > 4);
  CHECK(noted(few, "max_num_seqs"));
  CHECK_FALSE(noted(ask("vllm", "llama-3.1-8b", R"("max_num_seqs":100000)", R"(,"gpu":"h100-sxm-80gb","context":128)"),
                    "max_num_seqs"));
  CHECK_FALSE(noted(ask("vllm", "llama-3.1-8b", "", R"(,"gpu":"h100-sxm-80gb","context":128)"), "max_num_seqs"));
  // V0 ran its start-up profile over the longest conversation, or over the batch that was set: more tokens, less room.
  const auto pool = [](std::string_view options) {
    return ask("vllm", "llama-3.1-8b", R"("version":"0.6.0")" + std::string(options),
               R"(,"gpu":"h100-sxm-80gb","context":40000)")
        .whole("kv_memory_bytes_per_gpu");
  };
  CHECK(pool(R"(,"max_num_batched_tokens":2048)") == pool(""));
  CHECK(pool(R"(,"max_num_batched_tokens":40000)") < pool(""));
  // Graphs that are not captured take nothing.
  const auto graphs = [](std::string_view options) {
    return ask("vllm", "llama-3.1-8b", options, R"(,"gpu":"h100-sxm-80gb")").whole("kv_memory_bytes_per_gpu");
  };
  CHECK(graphs(R"("enforce_eager":true)") > graphs(""));
  CHECK(graphs(R"("enforce_eager":true,"cuda_graph_bytes":1000000000)") + 1'000'000'000 ==
        graphs(R"("enforce_eager":true)"));
}

TEST_CASE("vLLM holds the tokens of one batch where scheduling is not ahead") {
  const auto reserved = [](std::string_view options) {
    return ask("vllm", "gpt-oss-20b", R"("max_num_batched_tokens":2048)" + std::string(options),
               R"(,"gpu":"h100-sxm-80gb","context":65536)")
        .whole("kv_reserved_per_sequence");
  };
  CHECK(reserved(R"(,"async_scheduling":false)") < reserved(""));
  CHECK(reserved(R"(,"async_scheduling":false)") == reserved(R"(,"version":"0.25.0")"));
}

TEST_CASE("vLLM refuses layouts that it does not make") {
  CHECK(refusal(ask("vllm", "gemma-3-27b", R"("dcp":2)", R"(,"gpu":"h100-sxm-80gb","tensor_parallel":32)")) ==
        "unsupported options.decode_context_parallel_size");
  std::string runs;
  for (int heads = 1; heads <= 65; ++heads) {
    runs += (heads > 1 ? "," : "") + (R"({"kind":"full","count":1,"kv_heads":)" + std::to_string(heads) +
                                      R"(,"key_width":64,"value_width":64})");
  }
  const std::string model = R"({"layers":[)" + runs + "]}";
  CHECK(refusal(ask("vllm", model, "", R"(,"weight_bytes":1,"gpu":"h100-sxm-80gb")")) == "unsupported model");
}

TEST_CASE("vLLM groups layers that need the same, and others apart") {
  const auto groups = [](std::string_view runs) {
    const Asked answer = ask("vllm", R"({"layers":[)" + std::string(runs) + "]}",
                             R"("kv_memory_bytes":10000000000,"max_num_batched_tokens":2048)",
                             R"(,"weight_bytes":1,"gpu":"h100-sxm-80gb","context":65536)");
    CAPTURE(answer.text());
    return answer.refused() ? 0 : answer.whole("kv_reserved_per_sequence");
  };
  const std::string rows = R"("kv_heads":8,"key_width":128,"value_width":128})";
  const std::string full = R"({"kind":"full","count":4,)" + rows;
  const auto window = [&](const char* size) {
    return R"({"kind":"window","count":4,"window":)" + std::string(size) + "," + rows;
  };
  const auto cross = [&](const char* source) {
    return R"({"kind":"cross","count":4,"source_tokens":)" + std::string(source) + "," + rows;
  };
  // A page of 16 tokens of one layer is 64 KiB. Windows of one size are one group, of two sizes two.
  const u64 alone = groups(window("1024"));
  CHECK(alone > 0);
  CHECK(groups(window("1024") + "," + window("1024")) == 2 * alone);
  CHECK(groups(window("1024") + "," + window("2048")) > 2 * alone);
  CHECK(groups(full + "," + cross("1500")) > groups(full));
  CHECK(groups(cross("1500") + "," + cross("3000")) > groups(cross("1500")) + groups(cross("1500")));
}

TEST_CASE("vLLM's blocks of compressed rows are of 256 tokens unless they are set") {
  const auto block = [](std::string_view options) {
    return ask("vllm", "deepseek-v4-flash", options, R"(,"gpu":"b200-180gb","gpus":8)").text();
  };
  CHECK(block("").find("\"refused\"") == std::string::npos);
  const Asked own = ask("vllm", "deepseek-v4-flash", R"("block_size":64)", R"(,"gpu":"b200-180gb","gpus":8)");
  const Asked usual = ask("vllm", "deepseek-v4-flash", "", R"(,"gpu":"b200-180gb","gpus":8)");
  REQUIRE_FALSE(own.refused());
  CHECK(own.whole("block_tokens") == 64);
  CHECK(usual.whole("block_tokens") == 256);
}

TEST_CASE("llama.cpp's caches by kind of layer") {
  const auto model = [](std::string_view runs) { return R"({"layers":[)" + std::string(runs) + "]}"; };
  const std::string rows = R"("kv_heads":8,"key_width":128,"value_width":128})";
  // Windows alone, or beside layers without a cache, are kept whole: such files carry no window.
  const auto caches = [&](std::string_view runs, std::string_view options = "") {
    const Asked answer =
        ask("llama.cpp", model(runs), options, R"(,"weight_bytes":1,"gpu":"h100-sxm-80gb","context":8192)");
    return cells_of(answer, "full") + " " + cells_of(answer, "window") + " " + cells_of(answer, "compressed");
  };
  const std::string window = R"({"kind":"window","count":2,"window":1024,)" + rows;
  const std::string chunked = R"({"kind":"chunked","count":2,"window":1024,)" + rows;
  const std::string full = R"({"kind":"full","count":2,)" + rows;
  CHECK(caches(window) == "8192 none none");
  CHECK(caches(window + R"(,{"kind":"none","count":1},{"kind":"shared","count":1})") == "8192 none none");
  // A window, the 512 tokens in flight, and up to 256
  CHECK(caches(full + "," + window) == "8192 1536 none");
  CHECK(caches(full + "," + chunked) == "8192 1536 none");
  CHECK(caches(full + "," + chunked, R"("swa_full":true)") == "8192 8192 none");
  CHECK(caches(R"({"kind":"compressed","count":2,"tokens_per_entry":4,)" + rows) == "none none 2048");
  CHECK(caches(R"({"kind":"compressed","count":2,"tokens_per_entry":4,"latent_width":512})") == "none none 2048");
  // Builds that cached the heads of latent layers need all three of their sizes.
  for (const char* const sizes :
       {R"("expanded_heads":8)", R"("expanded_heads":8,"expanded_key_width":192)",
        R"("expanded_heads":8,"expanded_value_width":128)", R"("expanded_key_width":192,"expanded_value_width":128)"}) {
    CAPTURE(sizes);
    const std::string latent = R"({"kind":"latent","count":2,"latent_width":576,)" + std::string(sizes) + "}";
    CHECK(refusal(ask("llama.cpp", model(latent), R"("version":"b4436")", R"(,"weight_bytes":1)")) ==
          "missing model.layers");
  }
  // --mla 1 keeps V beside the latent, but for the fork with flash attention.
  const auto v_bytes = [](std::string_view options) {
    return std::string(
        cache_named(ask("llama.cpp", "deepseek-v3", options, R"(,"context":4096,"weight_bytes":1)"), "latent")
            ->get("v_bytes")
            ->text);
  };
  CHECK(v_bytes(R"("mla":1)") == std::to_string(61ull * 4096 * 2 * 512));
  CHECK(v_bytes(R"("mla":1,"flash_attn":true)") == std::to_string(61ull * 4096 * 2 * 512));
  CHECK(v_bytes(R"("fork":"ik_llama.cpp","mla":1,"flash_attn":true)") == "0");
}

TEST_CASE("versions are read as engines print them") {
  const auto outcome = [](std::string_view version) {
    return refusal(
        ask("vllm", "llama-3.1-8b", R"("version":")" + std::string(version) + "\"", R"(,"gpu":"h100-sxm-80gb")"));
  };
  for (const char* const version :
       {"0.11.2", "v0.11.2", "0.11", "1", "b999999", "0.11.2rc1", "0.11.2.dev7", "0.999.999"}) {
    CAPTURE(version);
    CHECK(outcome(version).empty());
  }
  for (const char* const version : {"", "v", "new", ".5", "1000000", "0.1000.1", "0.1.1000"}) {
    CAPTURE(version);
    CHECK(outcome(version) == "malformed options.version");
  }
}

TEST_CASE("an option that is given by both of its names must say the same") {
  CHECK(refusal(ask("vllm", "llama-3.1-8b", R"("decode_context_parallel_size":1,"dcp":2)",
                    R"(,"gpu":"h100-sxm-80gb")")) == "conflict options.dcp");
  CHECK(refusal(ask("vllm", "llama-3.1-8b", R"("decode_context_parallel_size":1,"dcp":1)", R"(,"gpu":"h100-sxm-80gb")"))
            .empty());
}

TEST_CASE("sizes that GPUs cannot be split into") {
  const auto sizes = [](std::string_view engine, std::string_view more) {
    return refusal(ask(engine, "llama-3.1-8b", "", R"(,"gpu":"h100-sxm-80gb")" + std::string(more)));
  };
  CHECK(sizes("vllm", R"(,"gpus":4,"data_parallel":3)") == "not_divisible gpus");
  CHECK(sizes("textbook", R"(,"gpus":4,"data_parallel":3)").empty());
  CHECK(sizes("vllm", R"(,"gpus":4,"tensor_parallel":3)") == "conflict gpus");
  CHECK(sizes("textbook", R"(,"gpus":4,"tensor_parallel":3)") == "conflict gpus");
  CHECK(sizes("vllm", R"(,"gpus":4,"tensor_parallel":2,"pipeline_parallel":2)").empty());
}

TEST_CASE("widths that a kind of layer does not have are refused") {
  const auto run = [](std::string_view keys) {
    return refusal(ask("textbook", R"({"layers":[{"count":1,)" + std::string(keys) + "}]}", ""));
  };
  CHECK(run(R"("kind":"full","kv_heads":1,"key_width":1,"value_width":1,"latent_width":8)") ==
        "conflict model.layers[0].latent_width");
  CHECK(run(R"("kind":"latent","latent_width":8,"latent_value_width":9)") ==
        "out_of_range model.layers[0].latent_value_width");
  CHECK(run(R"("kind":"latent","latent_width":8,"latent_value_width":8)").empty());
  std::string many;
  for (int i = 0; i <= 16384; ++i) many += std::string(i > 0 ? "," : "") + R"({"kind":"none","count":1})";
  CHECK(refusal(ask("textbook", R"({"layers":[)" + many + "]}", "")) == "out_of_range model.layers");
  // Notes that are no list, or no texts, are passed over.
  const auto notes = [](std::string_view list) {
    return ask("textbook",
               R"({"layers":[{"kind":"full","count":1,"kv_heads":1,"key_width":1,"value_width":1}],"notes":)" +
                   std::string(list) + "}",
               "");
  };
  CHECK(noted(notes(R"(["k_serves_as_v",7])"), "k_serves_as_v"));
  CHECK_FALSE(noted(notes(R"("k_serves_as_v")"), "k_serves_as_v"));
}

TEST_CASE("the first kernel says that models as objects and configs are for the other") {
  for (const char* const request :
       {R"({"model":{"layers":[{"kind":"full","count":1,"kv_heads":1,"key_width":1,"value_width":1}]}})",
        R"({"config":{"model_type":"llama"}})", R"({"config":"{}"})"}) {
    CAPTURE(request);
    const Asked answer(request, textbook_features());
    CHECK(answer.words("error.code") == "unsupported");
  }
}

TEST_CASE("an option takes its least and its largest, and nothing beyond") {
  const auto taken = [](const EngineRules& rules, std::string_view name, u64 value) {
    const std::string text = R"({")" + std::string(name) + R"(":)" + std::to_string(value) + "}";
    const auto object = json::Document::parse(text, "options", 1000);
    REQUIRE(object);
    const auto options = parse_options(rules.options, &object->root());
    if (!options) {
      CHECK(options.error().code == ErrorCode::out_of_range);
      return false;
    }
    const std::string option(name);
    CHECK((*options)[option.c_str()].present);
    return options->given(option.c_str()) && options->whole(option.c_str()) == value;
  };
  for (const EngineRules* const rules :
       {&textbook_rules(), &vllm_rules(), &sglang_rules(), &llama_cpp_rules(), &tensorrt_llm_rules()}) {
    for (const OptionSpec& spec : rules->options) {
      if (spec.kind != OptionKind::whole && spec.kind != OptionKind::bytes) continue;
      CAPTURE(rules->name);
      CAPTURE(spec.name);
      CHECK(taken(*rules, spec.name, spec.min));
      CHECK(taken(*rules, spec.name, spec.max));
      if (spec.min > 0) CHECK_FALSE(taken(*rules, spec.name, spec.min - 1));
      CHECK_FALSE(taken(*rules, spec.name, spec.max + 1));
    }
  }
}
