// A plan's steps, remedies and shares of a GPU, worked out by hand on small models.
#include <doctest/doctest.h>

#include "answer_words.hpp"

namespace kvcap {
namespace {

using namespace test;

Asked ask(std::string_view runs, std::string_view more, std::string_view sizes = "") {
  Text text;
  text << R"({"model":{"layers":[)" << runs << "]" << sizes << "}," << more << "}";
  return Asked(text.take());
}
std::string both(std::string_view one, std::string_view other) {
  Text text;
  text << one << "," << other;
  return text.take();
}

constexpr const char* kFull = R"({"kind":"full","count":3,"kv_heads":4,"key_width":5,"value_width":7})";
constexpr const char* kEven = R"({"kind":"full","count":3,"kv_heads":4,"key_width":8,"value_width":8})";
constexpr const char* kShared = R"({"kind":"full","count":3,"kv_heads":4,"key_width":8,"value_width":0})";
constexpr const char* kWindow = R"({"kind":"window","count":2,"window":10,"kv_heads":1,"key_width":8,"value_width":8})";
constexpr const char* kLatent = R"({"kind":"latent","count":2,"latent_width":9})";
constexpr const char* kEntries = R"({"kind":"compressed","count":2,"latent_width":8,"tokens_per_entry":3})";
constexpr const char* kState =
    R"({"kind":"recurrent","count":3,"state_values":11,"state_format":"fp32","conv_values":13,"conv_format":"bf16"})";
constexpr const char* kCross =
    R"({"kind":"cross","count":2,"source_tokens":6,"kv_heads":1,"key_width":8,"value_width":8})";

TEST_CASE("a token's bytes as the product of what it is made of") {
  const auto steps = [](std::string_view runs, std::string_view more = R"("context":21)") {
    return steps_of(ask(runs, more), "kv_bytes_per_token");
  };
  CHECK(steps(kEven) == "2 k_and_v × 3 layers × 4 kv_heads × 8 head_dimension × 2 bytes = 384; ");
  CHECK(steps(kFull) == "3 layers × 4 kv_heads × 12 key_and_value_width × 2 bytes = 288; ");
  CHECK(steps(kShared) == "3 layers × 4 kv_heads × 8 key_width × 2 bytes = 192; ");
  CHECK(steps(kLatent) == "2 layers × 9 latent_width × 2 bytes = 36; ");
  CHECK(steps(kEven, R"("kv":"q8_0")") ==
        "2 k_and_v × 3 layers × 4 kv_heads × 8 head_dimension × 34 bytes_per_block ÷ 32 values_per_block = 204; ");
  // Rows that are no whole blocks, or K and V apart, stand as their bytes.
  CHECK(steps(kFull, R"("kv":"q8_0")") == "3 layers × 68 bytes_per_row = 204; ");
  CHECK(steps(kEven, R"("kv":{"k":"bf16","v":"fp8"})") == "3 layers × 96 bytes_per_row = 288; ");
  CHECK(steps(kEntries) == "2 layers × 6 bytes_per_token = 12; ");  // 16 / 3, rounded up
  CHECK(steps(both(kEven, kLatent)) ==
        "full: 2 k_and_v × 3 layers × 4 kv_heads × 8 head_dimension × 2 bytes = 384; "
        "latent: 2 layers × 9 latent_width × 2 bytes = 36; 384 full + 36 latent = 420; ");
  // A window grows until it is full.
  CHECK(steps(kWindow, R"("context":9)") == "2 k_and_v × 2 layers × 1 kv_heads × 8 head_dimension × 2 bytes = 64; ");
  CHECK(steps(kWindow, R"("context":10)").empty());
  CHECK(steps(kState).empty());
  // Two runs of one shape are one.
  CHECK(steps(both(kEven, kEven)) == "2 k_and_v × 6 layers × 4 kv_heads × 8 head_dimension × 2 bytes = 768; ");
  // On two GPUs each has half of the heads, and a latent row whole.
  CHECK(steps(both(kEven, kLatent), R"("engine":"vllm","tensor_parallel":2,"context":21)") ==
        "full: 2 k_and_v × 3 layers × 2 kv_heads × 8 head_dimension × 2 bytes × 2 gpus = 384; "
        "latent: 2 layers × 9 latent_width × 2 bytes × 2 gpus = 72; 384 full + 72 latent = 456; ");
  CHECK(steps(kLatent, R"("engine":"vllm","tensor_parallel":4,"options":{"dcp":2})") ==
        "2 layers × 9 latent_width × 2 bytes × 4 gpus ÷ 2 context_parallel = 72; ");
  // The textbook splits nothing.
  CHECK(steps(kEven, R"("gpus":2)") == "2 k_and_v × 3 layers × 4 kv_heads × 8 head_dimension × 2 bytes = 384; ");
}

TEST_CASE("what does not grow with a conversation, and the whole of it") {
  const auto steps = [](std::string_view runs, Label name, std::string_view more = R"("context":21)") {
    return steps_of(ask(runs, more), name);
  };
  CHECK(steps(kWindow, "kv_fixed_bytes") == "2 layers × 10 tokens × 32 bytes_per_row = 640; ");
  CHECK(steps(kCross, "kv_fixed_bytes") == "2 layers × 6 tokens × 32 bytes_per_row = 384; ");
  CHECK(steps(kState, "kv_fixed_bytes") == "3 layers × 70 bytes_per_layer = 210; ");
  CHECK(steps(both(kWindow, kState), "kv_fixed_bytes") ==
        "window: 2 layers × 10 tokens × 32 bytes_per_row = 640; recurrent: 3 layers × 70 bytes_per_layer = 210; "
        "640 window + 210 recurrent = 850; ");
  CHECK(steps(kEven, "kv_fixed_bytes").empty());
  CHECK(steps(both(kEven, kWindow), "kv_bytes_per_sequence") ==
        "384 bytes_per_token × 21 tokens + 640 fixed_bytes = 8704; ");
  CHECK(steps(kEven, "kv_bytes_per_sequence") == "384 bytes_per_token × 21 tokens = 8064; ");
  // One token of three has an entry of 16 bytes; 6 are its mean, and 10 are fixed.
  CHECK(steps(kEntries, "kv_fixed_bytes", R"("context":1)") == "2 layers × 10 bytes_per_layer = 20; ");
  CHECK(steps(kEntries, "kv_fixed_bytes", R"("context":3)").empty());
  CHECK(steps(kEntries, "kv_fixed_bytes", R"("context":4)") == "2 layers × 8 bytes_per_layer = 16; ");
  const Asked entries = ask(kEntries, R"("context":4)");
  CHECK(entries.whole("kv_bytes_per_sequence") == 64);
  CHECK(entries.whole("kv_fixed_bytes") == 16);
  CHECK(steps(kState, "kv_fixed_bytes", R"("engine":"vllm","tensor_parallel":2)") ==
        "3 layers × 38 bytes_per_layer × 2 gpus = 228; ");
}

TEST_CASE("weights as parameters and their format, where they are that") {
  const auto steps = [](std::string_view more, std::string_view sizes = R"(,"parameters":1001)") {
    return steps_of(ask(kEven, more, sizes), "weight_bytes");
  };
  CHECK(steps(R"("weights":"bf16")") == "1001 parameters × 2 bytes = 2002; ");
  CHECK(steps(R"("weights":"q4_0")") == "1001 parameters × 18 bytes_per_block ÷ 32 values_per_block = 576; ");
  CHECK(steps(R"("context":1)", R"(,"parameters":1001,"native_weights":"fp8")") ==
        "1001 parameters × 1 bytes = 1001; ");
  CHECK(steps(R"("weight_bytes":2002,"weights":"bf16")").empty());
  CHECK(steps(R"("context":1)", "").empty());
  CHECK(ask(kEven, R"("weight_bytes":2002)").words("confidence.weight_bytes") == "exact");
}

TEST_CASE("one GPU's share of a token and of a conversation, rounded up") {
  const Asked pooled = ask(kEven, R"("gpus":5,"context":21)");
  CHECK(pooled.whole("kv_bytes_per_token_per_gpu") == 77);  // 384 / 5
  CHECK(pooled.whole("kv_bytes_per_sequence") == 8064);
  const Asked split =
      ask(both(kEven, kWindow), R"("engine":"vllm","tensor_parallel":2,"pipeline_parallel":2,"context":21)");
  CHECK(split.whole("kv_bytes_per_token") == 384);
  CHECK(split.whole("kv_bytes_per_token_per_gpu") == 128);  // 2 of 3 layers, half of the heads
  CHECK(split.whole("kv_fixed_bytes") == 2 * 640);          // the one head on both
  const Asked dealt = ask(R"({"kind":"latent","count":1,"latent_width":5})",
                          R"("engine":"vllm","kv":"fp8","tensor_parallel":4,"options":{"dcp":2},"context":21)");
  CHECK(dealt.whole("kv_bytes_per_token") == 10);  // 4 × 5 / 2
  CHECK(dealt.whole("kv_bytes_per_token_per_gpu") == 3);
}

TEST_CASE("a count needs the weights, or a pool that is known") {
  const auto counted = [](std::string_view engine, std::string_view options) {
    Text more;
    more << R"("engine":")" << engine << R"(","gpu":{"memory_bytes":1000000000},"options":{)" << options << "}";
    const Asked answer = ask(kEven, more.take());
    REQUIRE_FALSE(answer.refused());
    CHECK(answer.is_null("limit") == answer.is_null("sequences"));
    return !answer.is_null("sequences");
  };
  CHECK_FALSE(counted("sglang", ""));
  CHECK_FALSE(counted("sglang", R"("avail_after_load_bytes":1000000)"));
  CHECK_FALSE(counted("sglang", R"("avail_before_load_bytes":1000000)"));
  CHECK_FALSE(counted("sglang", R"("avail_before_load_bytes":1000000,"avail_pool_end_bytes":1000)"));
  CHECK(counted("sglang", R"("avail_after_load_bytes":1000000,"avail_before_load_bytes":1000000)"));
  CHECK(counted("sglang", R"("avail_after_load_bytes":1000000,"avail_pool_end_bytes":1000)"));
  CHECK(counted("sglang", R"("kv_memory_bytes":1000000)"));
  CHECK_FALSE(counted("vllm", ""));
  CHECK(counted("vllm", R"("num_gpu_blocks_override":3)"));
  CHECK_FALSE(counted("tensorrt-llm", ""));
  CHECK(counted("tensorrt-llm", R"("free_memory_bytes":1000000)"));
}

TEST_CASE("the fewest GPUs for the weights and for one conversation, and the longest that fits") {
  // 1000 bytes each, a token takes 384.
  const auto pooled = [](u64 weights, u64 context) {
    Text more;
    more << R"("gpu":{"memory_bytes":1000},"options":{"reserve":0},"weight_bytes":)" << weights << R"(,"context":)"
         << context;
    return ask(kEven, more.take());
  };
  CHECK(pooled(1000, 1).words("limit") == "one_sequence_too_long");
  CHECK(pooled(1000, 1).is_null("remedy.gpus_for_weights"));
  CHECK(pooled(1000, 1).whole("remedy.gpus_for_one_sequence") == 2);
  CHECK(pooled(1000, 1).is_null("remedy.longest_context"));
  CHECK(pooled(616, 1).words("limit") == "cache");
  CHECK(pooled(616, 1).is_null("remedy.gpus_for_one_sequence"));
  CHECK(pooled(616, 1).is_null("remedy.longest_context"));
  CHECK(pooled(617, 1).words("limit") == "one_sequence_too_long");
  CHECK(pooled(616, 2).whole("remedy.longest_context") == 1);
  CHECK(pooled(232, 3).whole("remedy.longest_context") == 2);
  CHECK(pooled(1001, 1).words("limit") == "weights_do_not_fit");
  CHECK(pooled(1001, 1).whole("remedy.gpus_for_weights") == 2);
  CHECK(pooled(1001, 1).whole("remedy.gpus_for_one_sequence") == 2);
  CHECK(pooled(3000, 1).whole("remedy.gpus_for_weights") == 3);
  CHECK(pooled(3000, 1).whole("remedy.gpus_for_one_sequence") == 4);
  CHECK(pooled(5000, 1).whole("remedy.gpus_for_weights") == 5);
  CHECK(pooled(7000, 1).whole("remedy.gpus_for_weights") == 7);
  CHECK(pooled(524'288'000, 1).whole("remedy.gpus_for_weights") == 524'288);
  CHECK(pooled(524'288'001, 1).is_null("remedy.gpus_for_weights"));
  CHECK(pooled(524'287'616, 1).whole("remedy.gpus_for_one_sequence") == 524'288);
  CHECK(pooled(524'287'617, 1).is_null("remedy.gpus_for_one_sequence"));

  // Engines take powers of two: of a GPU's 92000 bytes the weights leave room for 4 layers' blocks.
  const auto split = [](std::string_view engine, u64 weights, std::string_view options) {
    Text more;
    more << R"("engine":")" << engine << R"(","gpu":{"memory_bytes":100000},"options":{)" << options
         << R"(},"weight_bytes":)" << weights << R"(,"context":16)";
    return ask(R"({"kind":"full","count":4,"kv_heads":4,"key_width":8,"value_width":8})", more.take());
  };
  constexpr const char* kNothing = R"("activation_bytes":0,"non_torch_bytes":0,"cuda_graph_bytes":0)";
  CHECK(split("vllm", 91'999, kNothing).whole("remedy.gpus_for_one_sequence") == 2);
  CHECK(split("vllm", 92'000, kNothing).whole("remedy.gpus_for_weights") == 2);
  CHECK(split("vllm", 250'000, kNothing).whole("remedy.gpus_for_weights") == 4);
  CHECK(split("vllm", 250'000, kNothing).whole("remedy.gpus_for_one_sequence") == 4);
  // llama.cpp deals layers out: 4 of 256 cells × 128 bytes beside the weights and a buffer of 4 × 128256 + 100 KiB
  const auto dealt = [](u64 weights) {
    Text more;
    more << R"("engine":"llama.cpp","gpu":{"memory_bytes":1000000},"options":{"n_ubatch":1},"weight_bytes":)" << weights
         << R"(,"context":16)";
    return ask(R"({"kind":"full","count":4,"kv_heads":4,"key_width":8,"value_width":8})", more.take());
  };
  CHECK(dealt(1'000'000 - 615'424 - 131'072).words("limit") == "cache");
  CHECK(dealt(1'000'000 - 615'424 - 131'071).whole("remedy.gpus_for_one_sequence") == 2);
  CHECK(dealt(4 * (1'000'000 - 615'424 - 32'768)).whole("remedy.gpus_for_one_sequence") == 4);
}

TEST_CASE("a model that cannot be split so is told the sizes that work") {
  const auto message = [](std::string_view heads, std::string_view tensor, std::string_view sizes = "") {
    Text runs;
    runs << R"({"kind":"full","count":1,"kv_heads":)" << heads << R"(,"key_width":8,"value_width":8})";
    Text more;
    more << R"("engine":"vllm","tensor_parallel":)" << tensor;
    const Asked answer = ask(runs.take(), more.take(), sizes);
    return answer.refused() ? answer.words("error.message") : "";
  };
  const auto sizes = [&](std::string_view heads, std::string_view tensor, std::string_view more = "") {
    const std::string text = message(heads, tensor, more);
    const std::size_t at = text.find("these do: ");
    return at == std::string::npos ? text : text.substr(at + 10);
  };
  CHECK(sizes("6", "4") == "1, 2, 3, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60");
  CHECK(sizes("64", "3") == "1, 2, 4, 8, 16, 32, 64");
  CHECK(sizes("6", "4", R"(,"query_heads":12)") == "1, 2, 3, 6, 12");
  CHECK(sizes("6", "24", R"(,"query_heads":12)") == "1, 2, 3, 6, 12");
  CHECK(sizes("6", "12", R"(,"query_heads":12)").empty());
  CHECK(sizes("6", "2").empty());
  CHECK(sizes("6", "18").empty());
}

TEST_CASE("the textbook's room: all memory less a share and the weights") {
  const Asked two = ask(kEven, R"("gpus":3,"gpu":{"memory_bytes":100001},"weight_bytes":1000,"context":21)");
  CHECK(steps_of(two, "kv_memory_bytes") ==
        "3 gpus × 100001 bytes_per_gpu × 0.9 usable_share − 1000 weight_bytes = 269002; ");
  CHECK(two.whole("kv_memory_bytes") == 269'002);  // 270002.7 − 1000
  CHECK(two.whole("kv_memory_bytes_per_gpu") == 89'667);
  CHECK(parts_of(two) == "reserve 10000; ");  // 30001 / 3
  CHECK(two.whole("sequences") == 33);        // of 8064
  CHECK(two.words("concurrency") == "33.358382");
  CHECK(notes_of(two).empty());
  CHECK(notes_of(ask(kEven, R"("gpus":4,"weight_bytes":1)")).empty());
  CHECK(notes_of(ask(kEven, R"("gpus":5,"weight_bytes":1)")) == "pool_flatters_heads(kv_heads 4, gpus 5); ");
  CHECK(notes_of(ask(both(kEven, kWindow), R"("gpus":5,"weight_bytes":1)")) ==
        "pool_flatters_heads(kv_heads 4, gpus 5); ");
  CHECK(notes_of(ask(kLatent, R"("gpus":2,"weight_bytes":1)")) == "pool_flatters_latent(gpus 2); ");
  CHECK(notes_of(ask(kLatent, R"("weight_bytes":1)")).empty());
  CHECK(notes_of(ask(both(kLatent, kWindow), R"("gpus":2,"weight_bytes":1)")) == "pool_flatters_latent(gpus 2); ");
  CHECK(notes_of(ask(R"({"kind":"latent","count":1,"latent_width":1})", R"("gpus":2,"weight_bytes":1)")) ==
        "pool_flatters_latent(gpus 2); ");
  CHECK(notes_of(ask(kState, R"("gpus":2,"weight_bytes":1)")).empty());
  CHECK(ask(kEven, R"("gpu":"rtx-4090","weight_bytes":1000)").whole("kv_memory_bytes") == 21'600'000'000 - 1000);
  const Asked copies = ask(kEven, R"("gpus":4,"data_parallel":2,"gpu":{"memory_bytes":100000},"weight_bytes":1000)");
  CHECK(copies.whole("kv_memory_bytes") == 360'000 - 2000);
  const Asked full = ask(kEven, R"("gpu":{"memory_bytes":100000},"weight_bytes":90000)");
  CHECK(full.words("limit") == "one_sequence_too_long");
  CHECK(full.whole("kv_memory_bytes") == 0);
  CHECK(ask(kEven, R"("gpu":{"memory_bytes":100000},"weight_bytes":90001)").words("limit") == "weights_do_not_fit");
  CHECK(steps_of(ask(kEven, R"("gpu":{"memory_bytes":100000},"options":{"reserve":0.123456789},"weight_bytes":0)"),
                 "kv_memory_bytes")
            .starts_with("1 gpus × 100000 bytes_per_gpu × 0.876543 usable_share "));
  CHECK(steps_of(ask(kEven, R"("gpu":{"memory_bytes":100000},"options":{"reserve":0.999999},"weight_bytes":0)"),
                 "kv_memory_bytes")
            .starts_with("1 gpus × 100000 bytes_per_gpu × 0.000001 usable_share "));
}

TEST_CASE("a GPU's memory: as sold for the textbook, as programs see it for engines") {
  const auto memory = [](std::string_view gpu, std::string_view engine) {
    Text more;
    more << R"("gpu":")" << gpu << R"(","engine":")" << engine << "\"";
    const Asked answer = ask(kEven, more.take());
    return answer.words("gpu.basis") + " " + answer.words("gpu.memory_bytes");
  };
  for (const Gpu& gpu : gpus()) {
    CAPTURE(gpu.id);
    const u64 sold = gpu.sold_gb_thousandths * 1'000'000;
    CHECK(memory(gpu.id, "textbook") == "sold " + std::to_string(sold));
    CHECK(memory(gpu.id, "vllm") == (gpu.runtime_mib != 0  ? "runtime " + std::to_string(gpu.runtime_mib << 20)
                                     : gpu.driver_mib != 0 ? "driver " + std::to_string(gpu.driver_mib << 20)
                                                           : "sold " + std::to_string(sold)));
  }
  CHECK(ask(kEven, R"("gpu":{"memory_bytes":7})").words("gpu.basis") == "stated");
}

TEST_CASE("heads that a tensor parallel size does not divide are refused with the sizes that do, up to 64") {
  const auto message = [](std::string_view heads) {
    Text run;
    run << R"({"kind":"full","count":1,"kv_heads":)" << heads << R"(,"key_width":8,"value_width":8})";
    Text sizes;
    sizes << R"(,"query_heads":)" << heads;
    return ask(run.take(), R"("engine":"vllm","gpu":"h100-sxm-80gb","gpus":2,"tensor_parallel":2)", sizes.take())
        .words("error.message");
  };
  CHECK(message("65").ends_with(": 1, 5, 13"));
  // One KV head could be copied, one query head cannot.
  CHECK(message("1").ends_with(": 1"));
}

TEST_CASE("a choice that an option has not is refused with those that it has") {
  CHECK(ask(kEven, R"("engine":"sglang","options":{"mamba_ssm_dtype":"odd"})")
            .words("error.message")
            .find("auto, float32, float16, bfloat16") != std::string::npos);
}

TEST_CASE("a request of as many bytes as are read is answered, and of one more refused") {
  std::string request = R"({"model":"llama-3.1-8b"})";
  request.resize(kMaxRequestBytes, ' ');
  CHECK(plan_json(request, full_features()).find("\"error\"") == std::string::npos);
  request += ' ';
  CHECK(plan_json(request, full_features()).find("\"too_large\"") != std::string::npos);
}

}  // namespace
}  // namespace kvcap
