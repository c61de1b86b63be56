// What every engine says of its GPUs: which layers and heads each of them holds, what they keep copies of, and which of
// them have nothing to do.
#include <doctest/doctest.h>

#include "answer_words.hpp"

namespace kvcap {
namespace {

using namespace test;

Asked ask_runs(std::string_view engine, std::string_view runs, std::string_view more, std::string_view options = "",
               std::string_view sizes = R"("parameters":1)") {
  Text text;
  text << R"({"engine":")" << engine << R"(","model":{)" << sizes << R"(,"layers":[)" << runs << R"(]},"options":{)"
       << options << R"(},"gpu":{"memory_bytes":1000000000},"context":5)" << more << "}";
  return Asked(text.take());
}
constexpr const char* kPool = R"("kv_memory_bytes":100000)";
/// 8 bytes of each head
constexpr const char* kHeads = R"({"kind":"full","count":3,"kv_heads":4,"key_width":2,"value_width":2})";
constexpr const char* kLatent = R"({"kind":"latent","count":2,"latent_width":1})";
constexpr const char* kNothing = R"({"kind":"shared","count":1},{"kind":"none","count":1})";

TEST_CASE("each GPU's layers, heads and copies") {
  Text all;
  all << kHeads << "," << kLatent << "," << kNothing;
  const std::string runs = all.take();
  const auto ranks = [&](std::string_view more) { return ranks_of(ask_runs("vllm", runs, more, kPool)); };
  CHECK(ranks("") == "0: full 3 heads 4 from 0 of 4 x 1, latent 2 x 1, 500*; ");  // 5 × (3 × 32 + 2 × 2)
  CHECK(
      ranks(R"(,"tensor_parallel":2)") ==
      "0: full 3 heads 2 from 0 of 4 x 1, latent 2 x 2, 260*; 0: full 3 heads 2 from 2 of 4 x 1, latent 2 x 2, 260*; ");
  CHECK(ranks(R"(,"tensor_parallel":4)").starts_with("0: full 3 heads 1 from 0 of 4 x 1, latent 2 x 4, 140*; "));
  // Eight GPUs: each head twice
  const std::string eight = ranks(R"(,"tensor_parallel":8)");
  CHECK(
      eight.starts_with("0: full 3 heads 1 from 0 of 4 x 2, latent 2 x 8, 140*; "
                        "0: full 3 heads 1 from 0 of 4 x 2, latent 2 x 8, 140*; "
                        "0: full 3 heads 1 from 1 of 4 x 2, latent 2 x 8, 140*; "));
  CHECK(eight.ends_with("0: full 3 heads 1 from 3 of 4 x 2, latent 2 x 8, 140*; "));
  // Two stages: 2 and 1 of the full layers, 1 and 1 of the latent ones
  CHECK(
      ranks(R"(,"pipeline_parallel":2)") ==
      "0: full 2 heads 4 from 0 of 4 x 1, latent 1 x 1, 330*; 1: full 1 heads 4 from 0 of 4 x 1, latent 1 x 1, 170; ");
  CHECK(ranks(R"(,"tensor_parallel":2,"pipeline_parallel":2)") ==
        "0: full 2 heads 2 from 0 of 4 x 1, latent 1 x 2, 170*; 0: full 2 heads 2 from 2 of 4 x 1, latent 1 x 2, 170*; "
        "1: full 1 heads 2 from 0 of 4 x 1, latent 1 x 2, 90; 1: full 1 heads 2 from 2 of 4 x 1, latent 1 x 2, 90; ");
  // Of a token's 2 bytes in 2 layers each of two GPUs keeps those of half of the 5 tokens.
  const Asked dealt =
      ask_runs("vllm", kLatent, R"(,"kv":"fp8","tensor_parallel":4)", R"("kv_memory_bytes":100000,"dcp":4)");
  CHECK(ranks_of(dealt).starts_with("0: latent 2 x 4, 3*; "));  // 10 / 4
  // No more than 64 are listed.
  const auto listed = [&](Label stages) {
    const Asked answer = ask_runs("llama.cpp", kHeads, std::string(R"(,"pipeline_parallel":)") + stages, kPool);
    return answer.at("ranks")->count();
  };
  CHECK(listed("63") == 63);
  CHECK(listed("64") == 64);
  CHECK(listed("65") == 64);
}

TEST_CASE("what GPUs keep copies of is noted, and GPUs without a layer") {
  const auto notes = [](std::string_view runs, std::string_view more, std::string_view options = kPool,
                        std::string_view sizes = R"("parameters":1)") {
    return notes_of(ask_runs("vllm", runs, more, options, sizes));
  };
  CHECK(notes(kHeads, R"(,"tensor_parallel":4)").empty());
  CHECK(notes(kHeads, R"(,"tensor_parallel":8)") == "heads_copied(kv_heads 4, gpus 8, copies 2); ");
  CHECK(notes(kHeads, R"(,"tensor_parallel":12)") == "heads_copied(kv_heads 4, gpus 12, copies 3); ");
  CHECK(notes(kLatent, "").empty());
  CHECK(notes(kLatent, R"(,"tensor_parallel":2)") == "latent_on_each_gpu(gpus 2); ");
  CHECK(notes(kLatent, R"(,"tensor_parallel":2)", R"("kv_memory_bytes":100000,"dcp":2)").empty());
  CHECK(notes(kLatent, R"(,"tensor_parallel":4)", R"("kv_memory_bytes":100000,"dcp":2)") ==
        "latent_on_each_gpu(gpus 4); ");
  // Once each, of the first such layers
  Text both;
  both << kHeads << "," << kLatent << R"(,{"kind":"latent","count":1,"latent_width":3},)"
       << R"({"kind":"full","count":1,"kv_heads":2,"key_width":2,"value_width":2})";
  CHECK(notes(both.take(), R"(,"tensor_parallel":8)") ==
        "heads_copied(kv_heads 4, gpus 8, copies 2); latent_on_each_gpu(gpus 8); ");

  CHECK(notes(kHeads, R"(,"pipeline_parallel":3)").empty());
  CHECK(notes(kHeads, R"(,"pipeline_parallel":5,"tensor_parallel":2,"data_parallel":3)") ==
        "gpus_without_layers(gpus 12, layers 3, stages 5); ");
  CHECK(notes(kHeads, R"(,"pipeline_parallel":4)") == "gpus_without_layers(gpus 1, layers 3, stages 4); ");
  CHECK(notes(kHeads, R"(,"pipeline_parallel":4)", kPool, R"("parameters":1,"layer_count":4)").empty());
  CHECK(notes(kHeads, R"(,"pipeline_parallel":3)", kPool, R"("parameters":1,"layer_count":1)") ==
        "gpus_without_layers(gpus 2, layers 1, stages 3); ");
}

TEST_CASE("layers of another input that is empty keep nothing, alone or beside others") {
  constexpr const char* kEmpty =
      R"({"kind":"cross","count":2,"source_tokens":0,"kv_heads":4,"key_width":2,"value_width":2})";
  for (const char* const engine : {"textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"}) {
    CAPTURE(engine);
    for (const char* const options : {"", kPool}) {
      const Asked alone = ask_runs(engine, kEmpty, "", options);
      REQUIRE(alone.refused());
      CHECK(alone.words("error.code") == "no_cache");
      Text runs;
      runs << kHeads << "," << kEmpty;
      const Asked beside = ask_runs(engine, runs.take(), "", options);
      REQUIRE_FALSE(beside.refused());
      CHECK(beside.whole("kv_bytes_per_sequence") == 5 * 96);
      CHECK(caches_of(beside).find("cross") == std::string::npos);
    }
  }
}

TEST_CASE("without weights there is no room to speak of, unless it is stated") {
  const auto steps = [](std::string_view options) {
    return steps_of(ask_runs("vllm", kHeads, "", options, R"("query_heads":4)"), "kv_blocks");
  };
  CHECK(steps("").empty());
  CHECK(steps(R"("kv_memory_bytes":0)").empty());
  CHECK(steps(R"("kv_memory_bytes":1)") == "1 bytes_left_per_gpu ÷ 1536 bytes_per_block ~ 0; ");
  // A pool as large as the GPU, by the highest total that a program may see
  const auto refused = [](std::string_view gpu, u64 pool) {
    Text text;
    text << R"({"engine":"vllm","model":"llama-3.1-8b","gpu":)" << gpu << R"(,"options":{"kv_memory_bytes":)" << pool
         << "}}";
    return Asked(text.take()).refused();
  };
  CHECK_FALSE(refused(R"({"memory_bytes":80000000000})", 80'000'000'000));
  CHECK(refused(R"({"memory_bytes":80000000000})", 80'000'000'001));
  const Gpu* const card = find_gpu("dgx-spark-128gb");
  REQUIRE(card != nullptr);
  REQUIRE(card->runtime_mib_max > card->runtime_mib);
  CHECK_FALSE(refused(R"("dgx-spark-128gb")", card->runtime_mib_max << 20));
  CHECK(refused(R"("dgx-spark-128gb")", (card->runtime_mib_max << 20) + 1));
  const Gpu* const sold = find_gpu("80gb");
  REQUIRE(sold != nullptr);
  CHECK_FALSE(refused(R"("80gb")", 80'000'000'000));
  CHECK(refused(R"("80gb")", 80'000'000'001));
}

}  // namespace
}  // namespace kvcap
