// The textbook's numbers: what the course page says, computed by hand on paper and held here.
#include <doctest/doctest.h>

#include "plan_helpers.hpp"

using namespace kvcap;
using kvcap::test::Asked;
using kvcap::test::request_for;

TEST_CASE("one token and one conversation of plain models") {
  const Asked small(request_for("llama-3-8b"));
  CHECK(small.whole("kv_bytes_per_token") == 131'072);
  CHECK(small.whole("kv_bytes_per_sequence") == 1'073'741'824);
  CHECK(small.whole("kv_fixed_bytes") == 0);
  CHECK(small.whole("weight_bytes") == 16'060'522'496);
  CHECK(small.whole("kv_memory_bytes") == 55'939'477'504);
  CHECK(small.words("readings.kv_bytes_per_token.value") == "128");
  CHECK(small.words("readings.kv_bytes_per_token.unit") == "KiB");

  const Asked large(request_for("llama-3-70b", R"("gpus":4)"));
  CHECK(large.whole("kv_bytes_per_token") == 327'680);
  CHECK(large.whole("kv_memory_bytes") == 288'000'000'000 - 141'107'412'992);
}

TEST_CASE("the counts of the course page") {
  const struct {
    const char* model;
    const char* more;
    u64 sequences;
  } kRows[] = {
      {"llama-3-8b", R"("context":8192)", 52},
      {"llama-3-8b", R"("context":32768)", 13},
      {"llama-3-8b", R"("context":131072)", 3},
      {"llama-3-70b", R"("gpus":4,"context":8192)", 54},
      {"llama-3-70b", R"("gpus":4,"context":131072)", 3},
      // Half the cache's bits: 131,072 / 2 × 8,192 = 536,870,912 bytes; 55,939,477,504 / that.
      {"llama-3-8b", R"("kv":"fp8")", 104},
      {"llama-3-8b", R"("kv":"int8")", 104},
  };
  for (const auto& row : kRows) {
    const Asked answer(request_for(row.model, row.more));
    CAPTURE(row.model);
    CAPTURE(row.more);
    CHECK(answer.whole("sequences") == row.sequences);
    CHECK(answer.words("limit") == "cache");
  }
}

TEST_CASE("without grouped heads the 70B needs eight times the cache") {
  const Asked answer(
      R"({"model":{"name":"70B with 64 KV heads","parameters":70553706496,"layers":[
          {"count":80,"kind":"full","kv_heads":64,"key_width":128,"value_width":128}]},"gpus":4})");
  CHECK(answer.whole("kv_bytes_per_token") == 2'621'440);
  CHECK(answer.whole("sequences") == 6);
}

TEST_CASE("the cache's format leaves the weights alone, and theirs the cache") {
  const Asked plain(request_for("llama-3-8b"));
  const Asked small_cache(request_for("llama-3-8b", R"("kv":"fp8")"));
  const Asked small_weights(request_for("llama-3-8b", R"("weights":"int8")"));
  CHECK(small_cache.whole("weight_bytes") == plain.whole("weight_bytes"));
  CHECK(small_cache.whole("kv_memory_bytes") == plain.whole("kv_memory_bytes"));
  CHECK(small_weights.whole("kv_bytes_per_token") == plain.whole("kv_bytes_per_token"));
  CHECK(small_weights.whole("weight_bytes") == 8'030'261'248);
}

TEST_CASE("weights that do not fit say how few GPUs would hold them") {
  for (const char* context : {"1024", "131072"}) {
    const Asked answer(request_for("llama-3-70b", std::string(R"("context":)") + context));
    CHECK(answer.words("limit") == "weights_do_not_fit");
    CHECK(answer.whole("sequences") == 0);
    CHECK(answer.whole("remedy.gpus_for_weights") == 2);
    CHECK(answer.whole("kv_memory_bytes") == 0);
    CHECK(answer.is_null("remedy.longest_context"));
  }
}

TEST_CASE("a conversation that is too long says which length would fit") {
  const Asked answer(request_for("llama-3-8b", R"("context":1000000)"));
  CHECK(answer.words("limit") == "one_sequence_too_long");
  CHECK(answer.whole("sequences") == 0);
  CHECK(answer.whole("remedy.longest_context") == 55'939'477'504 / 131'072);
  CHECK(answer.whole("remedy.gpus_for_one_sequence") == 3);
  const Asked shorter(request_for("llama-3-8b", R"("context":426784)"));
  CHECK(shorter.whole("sequences") == 1);
  const Asked longer(request_for("llama-3-8b", R"("context":426785)"));
  CHECK(longer.whole("sequences") == 0);
}

TEST_CASE("the derivation carries the numbers") {
  const Asked answer(request_for("llama-3-8b"));
  std::vector<std::string> expressions;
  for (const auto& step : *answer.at("derivation")) {
    expressions.push_back(std::string(step.find("name")->text) + " = " + std::string(step.find("expression")->text) +
                          " = " + std::string(step.find("value")->text));
  }
  CHECK(expressions ==
        std::vector<std::string>{
            "kv_bytes_per_token = 2 k_and_v × 32 layers × 8 kv_heads × 128 head_dimension × 2 bytes = 131072",
            "kv_bytes_per_sequence = 131072 bytes_per_token × 8192 tokens = 1073741824",
            "weight_bytes = 8030261248 parameters × 2 bytes = 16060522496",
            "kv_memory_bytes = 1 gpus × 80000000000 bytes_per_gpu × 0.9 usable_share − 16060522496 weight_bytes = "
            "55939477504",
            "sequences = 55939477504 bytes_left ÷ 1073741824 bytes_per_conversation = 52"});
}

TEST_CASE("the memory's segments fill the bar") {
  for (const char* more : {R"("context":8192)", R"("context":1000000)", R"("gpus":16)", R"("kv":"q4_0")"}) {
    const Asked answer(request_for("llama-3-8b", more));
    u64 bytes = 0;
    u64 millionths = 0;
    for (const auto& segment : *answer.at("memory.segments")) {
      bytes += *json::to_whole(*segment.find("bytes"), "bytes", 0, kMaxExact);
      millionths += json::to_fraction(*segment.find("share"), "share", {0}, {Fraction::kOne})->billionths / 1000;
    }
    CHECK(bytes == answer.whole("memory.total_bytes"));
    CHECK(millionths <= 1'000'000);
    CHECK(millionths >= 1'000'000 - 4);
  }
  // Weights beyond the memory stretch the bar, and the memory ends before it does.
  const Asked answer(request_for("llama-3-70b"));
  CHECK(answer.words("memory.total_share") == "0.566943");
}

TEST_CASE("a pool of cache that is pooled over GPUs says where that flatters") {
  const auto codes = [](const Asked& answer) {
    std::string all;
    for (const auto& note : *answer.at("notes")) all += std::string(note.find("code")->text) + " ";
    return all;
  };
  CHECK(codes(Asked(request_for("deepseek-v3", R"("gpus":16)"))).find("pool_flatters_latent") != std::string::npos);
  CHECK(codes(Asked(request_for("llama-3-8b", R"("gpus":16)"))).find("pool_flatters_heads") != std::string::npos);
  CHECK(codes(Asked(request_for("llama-3-8b", R"("gpus":8)"))).find("pool_flatters") == std::string::npos);
  CHECK(codes(Asked(request_for("llama-3-8b", R"("context":8193)"))).find("beyond_max_context") != std::string::npos);
}

TEST_CASE("a known pool replaces the budget") {
  const Asked answer(request_for("llama-3-8b", R"("options":{"kv_memory_bytes":2147483648},"gpus":2)"));
  CHECK(answer.whole("kv_memory_bytes") == 4'294'967'296);
  CHECK(answer.whole("sequences") == 4);
}

TEST_CASE("unknown weights give the cache and no count") {
  const std::string layers = R"("layers":[{"count":2,"kind":"full","kv_heads":1,"key_width":64,"value_width":64}])";
  const Asked answer(R"({"model":{)" + layers + "}}");
  CHECK(answer.whole("kv_bytes_per_token") == 512);
  CHECK(answer.is_null("weight_bytes"));
  CHECK(answer.is_null("sequences"));
  CHECK(answer.is_null("memory"));
  const Asked stated(R"({"model":{)" + layers + R"(},"weight_bytes":71999999999})");
  CHECK(stated.whole("kv_memory_bytes") == 1);
  CHECK(stated.words("limit") == "one_sequence_too_long");
  const Asked counted(R"({"model":{)" + layers + R"(},"parameters":1000})");
  CHECK(counted.whole("weight_bytes") == 2000);
}

TEST_CASE("more tokens, fewer GPUs or wider formats never fit more") {
  for (const char* model :
       {"llama-3-8b", "gpt-oss-20b", "gemma-3-27b", "deepseek-v3", "qwen3.5-27b", "falcon-mamba-7b"}) {
    CAPTURE(model);
    u64 before = kMaxExact;
    for (u64 context = 1; context <= 1u << 21; context *= 2) {
      const Asked answer(request_for(model, R"("gpus":12,"context":)" + digits(context)));
      CHECK(answer.whole("sequences") <= before);
      before = answer.whole("sequences");
    }
    before = 0;
    for (u64 gpus = 1; gpus <= 64; ++gpus) {
      const Asked answer(request_for(model, R"("gpus":)" + digits(gpus)));
      CHECK(answer.whole("sequences") >= before);
      before = answer.whole("sequences");
    }
    before = 0;
    for (const char* format : {"fp32", "bf16", "q8_0", "q6_0", "q5_1", "q5_0", "q4_1", "q4_0"}) {
      const Asked answer(request_for(model, std::string(R"("gpus":12,"kv":")") + format + "\""));
      CHECK(answer.whole("sequences") >= before);
      before = answer.whole("sequences");
    }
  }
}
