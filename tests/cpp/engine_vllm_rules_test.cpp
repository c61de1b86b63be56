// vLLM's rules worked out by hand: blocks, groups, what its versions hold of a window, and what its start-up takes.
#include <doctest/doctest.h>

#include "answer_words.hpp"

namespace kvcap {
namespace {

using namespace test;

Asked ask_runs(std::string_view runs, std::string_view options, u64 context, std::string_view more = "",
               std::string_view engine = "vllm") {
  Text text;
  text << R"({"engine":")" << engine << R"(","model":{"layers":[)" << runs << R"(]},"options":{)" << options
       << R"(},"weight_bytes":1,"gpu":{"memory_bytes":1000000000},"context":)" << context << more << "}";
  return Asked(text.take());
}

std::string both(std::string_view one, std::string_view other) {
  Text text;
  text << one << "," << other;
  return text.take();
}

/// Layers of 2 × (8 + 8) × 2 = 64 bytes a token unless they say otherwise
std::string layers(std::string_view kind, u64 count,
                   std::string_view more = R"("kv_heads":2,"key_width":8,"value_width":8)") {
  Text text;
  text << R"({"kind":")" << kind << R"(","count":)" << count << (more.empty() ? "" : ",") << more << "}";
  return text.take();
}
std::string window(u64 count, u64 tokens, std::string_view more = R"("kv_heads":2,"key_width":8,"value_width":8)",
                   std::string_view kind = "window") {
  Text text;
  text << R"("window":)" << tokens << "," << more;
  return layers(kind, count, text.take());
}

/// K of 30 bytes and V of 42 in each of 3 layers: 216 a token
constexpr const char* kFull = R"({"kind":"full","count":3,"kv_heads":3,"key_width":5,"value_width":7})";
/// 11 × 4 and 13 × 2 bytes in each of 3: 210 a conversation
constexpr const char* kState =
    R"({"kind":"recurrent","count":3,"state_values":11,"state_format":"fp32","conv_values":13,"conv_format":"bf16"})";
/// 1000 × 4 bytes
constexpr const char* kLargeState = R"({"kind":"recurrent","count":3,"state_values":1000,"state_format":"fp32"})";

TEST_CASE("vLLM's blocks of layers that are alike") {
  // A block of 16 tokens is 16 × 216 bytes.
  const Asked one = ask_runs(kFull, R"("kv_memory_bytes":100001)", 21);
  CHECK(one.whole("kv_blocks") == 28);
  CHECK(one.whole("block_tokens") == 16);
  CHECK(one.whole("sequences") == 14);  // of 2 blocks
  CHECK(one.words("concurrency") == "14");
  CHECK(one.whole("kv_tokens") == 294);        // 28 / 2 × 21
  CHECK(one.whole("kv_tokens_other") == 448);  // 28 × 16
  CHECK(one.whole("kv_reserved_per_sequence") == 2 * 3456);
  CHECK(gaps_of(one) == "blocks 2376; ");  // 11 × 216
  CHECK(steps_of(one, "kv_blocks") == "100001 bytes_left_per_gpu ÷ 3456 bytes_per_block ~ 28; ");
  CHECK(steps_of(one, "sequences") == "28 blocks ÷ 2 blocks_per_conversation ~ 14; ");
  CHECK(parts_of(one).empty());
  CHECK(range_of(one, "sequences_range").empty());
  // Older ones print blocks × block size, and V0 that over the length as the concurrency.
  const Asked older = ask_runs(kFull, R"("kv_memory_bytes":100001,"version":"0.20.999")", 21);
  CHECK(older.whole("kv_tokens") == 448);
  CHECK(older.whole("kv_tokens_other") == 294);
  CHECK(older.words("concurrency") == "14");
  CHECK(ask_runs(kFull, R"("kv_memory_bytes":100001,"version":"0.21")", 21).whole("kv_tokens") == 294);
  const Asked oldest = ask_runs(kFull, R"("kv_memory_bytes":100001,"version":"0.8.999")", 21, R"(,"data_parallel":3)");
  CHECK(oldest.whole("kv_tokens") == 448);
  CHECK(oldest.is_null("kv_tokens_other"));
  CHECK(oldest.words("concurrency") == "64");  // 3 × 448 / 21
  CHECK(ask_runs(kFull, R"("kv_memory_bytes":100001,"version":"0.9")", 21).whole("kv_tokens_other") == 294);

  // The first of two stages has 2 of the 3 layers.
  const Asked stages = ask_runs(kFull, R"("kv_memory_bytes":100001)", 21, R"(,"pipeline_parallel":2)");
  CHECK(stages.whole("kv_blocks") == 43);  // of 2304 bytes
  CHECK(stages.whole("kv_reserved_per_sequence") == 2 * 3456);
  CHECK(stages.whole("kv_memory_bytes") == 200'002);
  const Asked copies = ask_runs(kFull, R"("kv_memory_bytes":100001)", 33, R"(,"data_parallel":3)");
  CHECK(copies.whole("sequences") == 27);  // 28 / 3 in each of 3
  CHECK(copies.words("concurrency") == "28");
  CHECK(steps_of(copies, "sequences") == "28 blocks ÷ 3 blocks_per_conversation × 3 copies_of_the_model ~ 27; ");
  // On three GPUs each has one head; all of them hold a conversation.
  const Asked split = ask_runs(kFull, R"("kv_memory_bytes":100001)", 21, R"(,"tensor_parallel":3)");
  CHECK(split.whole("kv_blocks") == 86);  // of 1152
  CHECK(split.whole("kv_reserved_per_sequence") == 2 * 3456);
  CHECK(gaps_of(split) == "blocks 2376; ");

  const Asked set = ask_runs(kFull, R"("num_gpu_blocks_override":7)", 21);
  CHECK(set.whole("kv_memory_bytes_per_gpu") == 7 * 3456);
  CHECK(set.whole("kv_blocks") == 7);
  CHECK(set.whole("sequences") == 3);
  CHECK(set.words("concurrency") == "3.5");
  CHECK(range_of(set, "kv_memory_bytes_per_gpu_range").empty());
  const auto tight = [](u64 blocks) {
    Text text;
    text << R"({"engine":"vllm","model":{"layers":[)" << kFull << R"(]},"options":{"num_gpu_blocks_override":)"
         << blocks << R"(},"weight_bytes":1,"gpu":{"memory_bytes":24192},"context":21})";
    return Asked(text.take()).refused();
  };
  CHECK_FALSE(tight(7));
  CHECK(tight(8));
  // 1,000,000,000 / 3456
  CHECK_FALSE(ask_runs(kFull, R"("num_gpu_blocks_override":289351)", 21).refused());
  CHECK(ask_runs(kFull, R"("num_gpu_blocks_override":289352)", 21).words("error.message").find(" 289351 ") !=
        std::string::npos);
}

TEST_CASE("vLLM's layers of another input have blocks of their own") {
  const std::string cross = layers("cross", 2, R"("kv_heads":2,"key_width":8,"value_width":8,"source_tokens":40)");
  // Alone: 3 blocks of 2 × 1024 bytes
  CHECK(ask_runs(cross, R"("kv_memory_bytes":100000)", 21).whole("kv_reserved_per_sequence") == 3 * 2048);
  // Before groups: both have blocks for both, 2 + 3.
  const Asked older = ask_runs(both(kFull, cross), R"("kv_memory_bytes":100000,"version":"0.8")", 21);
  CHECK(older.whole("kv_blocks") == 18);  // of 3456 + 2048
  CHECK(older.whole("kv_reserved_per_sequence") == 5 * 5504);
  CHECK(older.whole("sequences") == 3);
  // Groups of 2 layers: 2 of the full ones, and one of 3 blocks
  const Asked groups = ask_runs(both(layers("full", 4), cross), R"("kv_memory_bytes":100000)", 21);
  CHECK(steps_of(groups, "blocks_per_sequence") ==
        "full: 2 groups × 2 blocks = 4; cross: 1 groups × 3 blocks = 3; 4 full + 3 cross = 7; ");
}

TEST_CASE("vLLM's groups of equally many layers, padded, with what versions hold of a window") {
  const auto groups = [](u64 full, u64 bounded, std::string_view options = "", u64 context = 100,
                         std::string_view more = "") {
    Text text;
    text << R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)" << options;
    return ask_runs(both(layers("full", full), window(bounded, 10)), text.take(), context, more);
  };
  // 4 full layers are one group, 6 windows two of 4: 9 + 2 × 32 tokens are 5 blocks, and one where it begins.
  const Asked padded = groups(4, 6);
  CHECK(steps_of(padded, "bytes_per_page") == "16 tokens_per_block × 64 bytes_per_token_and_layer = 1024; ");
  CHECK(steps_of(padded, "bytes_per_block") == "4 layers_per_group × 1024 bytes_per_page = 4096; ");
  CHECK(steps_of(padded, "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; window: 2 groups × 6 blocks = 12; 7 full + 12 window = 19; ");
  CHECK(padded.whole("kv_blocks") == 24);
  CHECK(padded.whole("sequences") == 1);
  CHECK(padded.whole("kv_tokens") == 126);        // 24 / 19 × 100
  CHECK(padded.whole("kv_tokens_other") == 128);  // 24 / 3 groups × 16
  CHECK(padded.whole("kv_reserved_per_sequence") == 19 * 4096);
  // Two layers of padding × 6 blocks; (73 − 10) × 64 × 6; what is left of blocks
  CHECK(gaps_of(padded) == "blocks 11904; padding 12288; in_flight 24192; ");
  // Groups as large as the larger kind where that is less than half as many again
  CHECK(steps_of(groups(4, 5), "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; window: 1 groups × 6 blocks = 6; 7 full + 6 window = 13; ");
  CHECK(steps_of(groups(6, 4), "blocks_per_sequence") ==
        "full: 2 groups × 7 blocks = 14; window: 1 groups × 6 blocks = 6; 14 full + 6 window = 20; ");
  CHECK(gaps_of(groups(6, 4)).starts_with("padding 14336; "));  // 2 layers × 7 blocks
  CHECK(groups(4, 6, R"(,"block_size":8)").whole("block_tokens") == 8);
  // On two GPUs each has one of the heads: the same bytes in all
  const Asked split = groups(4, 6, "", 100, R"(,"tensor_parallel":2)");
  CHECK(split.whole("kv_blocks") == 48);
  CHECK(split.whole("kv_reserved_per_sequence") == 19 * 4096);
  CHECK(gaps_of(split) == "blocks 11904; padding 12288; in_flight 24192; ");
  // Layers without rows are in no group.
  CHECK(steps_of(
            ask_runs(both(both(layers("full", 4), layers("shared", 5, "")), both(window(4, 10), layers("none", 6, ""))),
                     R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100),
            "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; window: 1 groups × 6 blocks = 6; 7 full + 6 window = 13; ");
  // Windows of other sizes, chunks and other inputs are groups of their own.
  const std::string rows = R"("kv_heads":2,"key_width":8,"value_width":8)";
  const auto grouped = [](std::string_view one, std::string_view other) {
    return steps_of(ask_runs(both(one, other), R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100),
                    "blocks_per_sequence");
  };
  CHECK(grouped(window(2, 10), window(2, 20)) ==
        "window: 1 groups × 6 blocks = 6; window: 1 groups × 7 blocks = 7; 6 window + 7 window = 13; ");
  CHECK(grouped(window(2, 10), window(2, 10, rows, "chunked")) ==
        "window: 1 groups × 6 blocks = 6; chunked: 1 groups × 5 blocks = 5; 6 window + 5 chunked = 11; ");
  CHECK(grouped(layers("cross", 2, rows + R"(,"source_tokens":40)"),
                layers("cross", 2, rows + R"(,"source_tokens":60)")) ==
        "cross: 1 groups × 3 blocks = 3; cross: 1 groups × 4 blocks = 4; 3 cross + 4 cross = 7; ");
  CHECK(grouped(window(2, 10), window(2, 10, R"("kv_heads":1,"key_width":8,"value_width":8)")).empty());

  const auto blocks = [&](std::string_view options, u64 context = 100, std::string_view more = "") {
    const std::string steps = steps_of(groups(4, 4, options, context, more), "blocks_per_sequence");
    const std::size_t at = steps.find("window: 1 groups × ");
    REQUIRE(at != std::string::npos);
    return std::stoi(steps.substr(at + std::string_view("window: 1 groups × ").size()));
  };
  CHECK(blocks("") == 6);
  CHECK(blocks(R"(,"version":"0.26")") == 6);
  CHECK(blocks(R"(,"version":"0.25.999")") == 4);  // 9 + 32
  CHECK(blocks(R"(,"version":"0.9")") == 4);
  CHECK(blocks(R"(,"async_scheduling":false)") == 4);
  CHECK(blocks("", 100, R"(,"pipeline_parallel":3)") == 8);  // 9 + 96, but no more than 100
  CHECK(blocks("", 200, R"(,"pipeline_parallel":3)") == 8);  // 9 + 96
  CHECK(blocks(R"(,"async_scheduling":false)", 200, R"(,"pipeline_parallel":2)") == 6);
  CHECK(blocks(R"(,"version":"0.25.999")", 200, R"(,"pipeline_parallel":3)") == 4);
  CHECK(blocks("", 73) == 6);
  CHECK(blocks("", 50) == 5);
  CHECK(blocks("", 8) == 2);
  // A chunk begins where a block does.
  CHECK(steps_of(
            ask_runs(both(layers("full", 4), window(4, 10, R"("kv_heads":2,"key_width":8,"value_width":8)", "chunked")),
                     R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100),
            "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; chunked: 1 groups × 5 blocks = 5; 7 full + 5 chunked = 12; ");
  CHECK(steps_of(
            ask_runs(both(layers("full", 4), window(4, 17, R"("kv_heads":2,"key_width":8,"value_width":8)", "chunked")),
                     R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100),
            "blocks_per_sequence")
            .find("chunked: 1 groups × 6 blocks = 6; ") != std::string::npos);  // 17 + 64
  // Windows alone: 6 blocks, and all of the conversation where there are no groups
  const auto alone = [](std::string_view options) {
    Text text;
    text << R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)" << options;
    return ask_runs(window(2, 10), text.take(), 100);
  };
  CHECK(alone("").whole("kv_reserved_per_sequence") == 6 * 2048);
  CHECK(gaps_of(alone("")) == "in_flight 8064; blocks 2944; ");  // (73 − 10) × 128, 6 × 2048 − 73 × 128
  for (const char* const options : {R"(,"version":"0.8.999")", R"(,"disable_hybrid_kv_cache_manager":true)"}) {
    CAPTURE(options);
    CHECK(alone(options).whole("kv_reserved_per_sequence") == 7 * 2048);
    CHECK(gaps_of(alone(options)) == "full_length 11520; blocks 1536; ");  // 90 × 128, 12 × 128
  }
}

TEST_CASE("vLLM's pages of unequal rows: more tokens where they divide, else padding") {
  const auto pages = [](std::string_view narrow) {
    return ask_runs(both(layers("full", 2), window(2, 10, narrow)),
                    R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100);
  };
  // 32 bytes: a page of 1024 holds 32 tokens; 73 are 3 blocks and one.
  const Asked half = pages(R"("kv_heads":1,"key_width":8,"value_width":8)");
  CHECK(steps_of(half, "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; window: 1 groups × 4 blocks = 4; 7 full + 4 window = 11; ");
  CHECK(half.whole("block_tokens") == 16);
  CHECK(gaps_of(half) == "blocks 5056; in_flight 4032; ");  // 12 × 128 + (128 − 73) × 64; 63 × 64
  // 24 bytes: 384 of a page of 1024
  const Asked third = pages(R"("kv_heads":1,"key_width":4,"value_width":8)");
  CHECK(steps_of(third, "blocks_per_sequence") ==
        "full: 1 groups × 7 blocks = 7; window: 1 groups × 6 blocks = 6; 7 full + 6 window = 13; ");
  CHECK(gaps_of(third) ==
        "blocks 2640; padding 7680; in_flight 3024; ");  // 1536 + (96 − 73) × 48; 6 × 640 × 2; 63 × 48
}

TEST_CASE("vLLM's groups on stages: the largest of each stage's groups counts") {
  // 5 and 7 layers are a group each of 7. On two stages 3 and 4 are on the first, 2 and 3 on the second.
  const auto on = [](u64 full, u64 bounded, u64 stages) {
    Text more;
    more << R"(,"pipeline_parallel":)" << stages;
    return ask_runs(both(layers("full", full), window(bounded, 10)),
                    R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)", 100, more.take());
  };
  const Asked two = on(5, 7, 2);
  CHECK(steps_of(two, "bytes_per_block") == "4 layers_per_group × 1024 bytes_per_page = 4096; ");
  CHECK(two.whole("kv_blocks") == 24);
  CHECK(two.whole("kv_reserved_per_sequence") == (7 + 6) * 7 * 1024);
  CHECK(gaps_of(two).find("padding 14336; ") != std::string::npos);  // 2 full layers × 7 blocks
  // Eight windows are two groups of 5, 4 of them on each stage: 2 of a group; of the full ones 3 and 2.
  const Asked other = on(5, 8, 2);
  CHECK(steps_of(other, "bytes_per_block") == "3 layers_per_group × 1024 bytes_per_page = 3072; ");
  CHECK(other.whole("kv_reserved_per_sequence") == (7 + 2 * 6) * 5 * 1024);
  // On three, of 4 full layers 2, 1 and 1, of 8 windows in two groups 3, 3 and 2: 2, 2 and 1 of a group
  CHECK(on(4, 8, 3).whole("kv_reserved_per_sequence") == (7 + 2 * 8) * 5 * 1024);
  // More stages than layers: the others have none.
  CHECK(on(1, 1, 3).whole("kv_reserved_per_sequence") == (7 + 8) * 1024);
  // On three: 2, 2 and 1 of 5, and 3, 2, 2 of 7
  const Asked three = on(5, 7, 3);
  CHECK(steps_of(three, "bytes_per_block") == "3 layers_per_group × 1024 bytes_per_page = 3072; ");
  CHECK(three.whole("kv_reserved_per_sequence") == (7 + 8) * 7 * 1024);
}

TEST_CASE("vLLM's states: a block that holds one, and how many a conversation keeps") {
  const auto mixed = [](std::string_view state, std::string_view options, u64 context = 300,
                        std::string_view more = "") {
    return ask_runs(both(layers("full", 2, R"("kv_heads":1,"key_width":8,"value_width":8)"), state),
                    R"("kv_memory_bytes":1000000)" + std::string(options), context, more);
  };
  // 4000 bytes are 8 × 16 tokens of 32 bytes; two layers a group, three states two groups.
  const Asked large = mixed(kLargeState, R"(,"enable_prefix_caching":false)");
  CHECK(large.whole("block_tokens") == 128);
  CHECK(steps_of(large, "bytes_per_page") == "128 tokens_per_block × 32 bytes_per_token_and_layer = 4096; ");
  CHECK(steps_of(large, "blocks_per_sequence") ==
        "full: 1 groups × 3 blocks = 3; recurrent: 2 groups × 1 blocks = 2; 3 full + 2 recurrent = 5; ");
  CHECK(large.whole("kv_blocks") == 122);
  CHECK(large.whole("kv_reserved_per_sequence") == 5 * 8192);
  CHECK(gaps_of(large) == "blocks 5376; padding 4096; states 288; ");  // 84 × 64; one layer; 3 × 96
  const auto states = [&](std::string_view options, u64 context = 300) {
    const std::string steps = steps_of(mixed(kLargeState, options, context), "blocks_per_sequence");
    const std::size_t at = steps.find("recurrent: 2 groups × ");
    REQUIRE(at != std::string::npos);
    return std::stoi(steps.substr(at + std::string_view("recurrent: 2 groups × ").size()));
  };
  CHECK(states("") == 2);
  CHECK(states(R"(,"version":"0.28")") == 2);
  CHECK(states(R"(,"version":"0.27.999")") == 1);
  CHECK(states(R"(,"version":"0.27.999","enable_prefix_caching":true)") == 2);
  CHECK(states(R"(,"mamba_cache_mode":"none")") == 1);
  CHECK(states(R"(,"mamba_cache_mode":"align","enable_prefix_caching":false)") == 2);
  CHECK(states(R"(,"mamba_cache_mode":"all")") == 3);
  CHECK(states(R"(,"mamba_cache_mode":"all")", 256) == 2);
  CHECK(states(R"(,"mamba_cache_mode":"all")", 257) == 3);
  // A state that is smaller than a block leaves it as it is: 70 of 16 × 32 bytes.
  const Asked small = mixed(kState, R"(,"enable_prefix_caching":false)");
  CHECK(small.whole("block_tokens") == 16);
  CHECK(gaps_of(small) == "blocks 256; padding 512; states 1326; ");  // 4 × 64; one layer; 3 × 442
  CHECK(mixed(R"({"kind":"recurrent","count":3,"state_values":128,"state_format":"fp32"})", "").whole("block_tokens") ==
        16);
  CHECK(mixed(R"({"kind":"recurrent","count":3,"state_values":129,"state_format":"fp32"})", "").whole("block_tokens") ==
        32);
  // States alone: one block for all of a conversation
  const Asked alone = ask_runs(kState, R"("kv_memory_bytes":100000,"enable_prefix_caching":false)", 300);
  CHECK(alone.whole("kv_blocks") == 476);
  CHECK(alone.whole("kv_reserved_per_sequence") == 210);
  CHECK(alone.whole("block_tokens") == 300);
  CHECK(ask_runs(kState, R"("kv_memory_bytes":100000)", 300).whole("kv_reserved_per_sequence") == 420);
  // V0 had them beside the blocks: 210 bytes for each sequence that may run, on each GPU half (3 × 38).
  const Asked beside = mixed(kState, R"(,"version":"0.8.999")");
  CHECK(beside.whole("kv_blocks") == 976);  // of 2 × 512
  CHECK(beside.whole("kv_reserved_per_sequence") == 19 * 1024 + 210);
  CHECK(gaps_of(beside) == "blocks 256; ");
  const Asked halves = mixed(kState, R"(,"version":"0.8.999")", 300, R"(,"tensor_parallel":2)");
  CHECK(halves.whole("kv_reserved_per_sequence") == 2 * (19 * 1024 + 114));
  CHECK(ask_runs(kState, R"("kv_memory_bytes":100000,"version":"0.8.999")", 300).whole("kv_reserved_per_sequence") ==
        210);
}

TEST_CASE("vLLM's compressed layers share blocks of 256 tokens, windows are dealt to their pages") {
  const auto packed = [](std::string_view options, u64 context = 1000, std::string_view more = "") {
    const std::string entries = layers("compressed", 2, R"("latent_width":8,"tokens_per_entry":3)") + "," +
                                layers("compressed", 4, R"("latent_width":8,"tokens_per_entry":128)");
    return ask_runs(both(entries, window(3, 10, R"("kv_heads":1,"key_width":4,"value_width":4)")),
                    R"("kv_memory_bytes":100000,"max_num_batched_tokens":32)" + std::string(options), context, more);
  };
  // 86 entries and 2 of 16 bytes: 2 × 1376 + 4 × 32. A window's page of 1376 holds 86 tokens: 73 are one, and one more.
  const Asked one = packed("");
  CHECK(one.whole("block_tokens") == 256);
  CHECK(one.whole("kv_blocks") == 34);  // of 2880
  CHECK(one.whole("sequences") == 4);   // of 4 + 2 groups of 2 layers × 2
  CHECK(one.whole("kv_reserved_per_sequence") == 8 * 2880);
  CHECK(one.whole("kv_tokens") == 4250);
  CHECK(one.whole("kv_tokens_other") == 34 / 3 * 256);
  CHECK(one.words("confidence.sequences") == "estimate");
  CHECK(notes_of(one) == "compressed_layout; ");
  // 334 and 8 entries of 16 bytes in 2 and 4 layers are written; windows: (73 − 10) × 16 × 3 in flight,
  // 4 × 2880 − 2 × 1376 × 3 padding, and 2 × 1376 × 3 − 73 × 16 × 3
  CHECK(one.whole("kv_bytes_per_sequence") == 334 * 32 + 8 * 64 + 10 * 48);
  CHECK(gaps_of(one).find("padding 3264; ") != std::string::npos);
  CHECK(gaps_of(one).find("in_flight 3024; ") != std::string::npos);
  // The first of two stages has 1 and 2 layers: 1376 + 2 × 32.
  CHECK(packed("", 1000, R"(,"pipeline_parallel":2)").whole("kv_blocks") == 69);
  CHECK(packed("", 1000, R"(,"pipeline_parallel":2)").whole("kv_reserved_per_sequence") == 8 * 2880);
  // On three 1 and 2: the same
  CHECK(packed("", 1000, R"(,"pipeline_parallel":3)").whole("kv_blocks") == 69);
  // A window's row that is as wide as the widest page is one of its tokens.
  const Asked widest = ask_runs(both(layers("compressed", 2, R"("latent_width":8,"tokens_per_entry":256)"),
                                     window(2, 10, R"("kv_heads":1,"key_width":4,"value_width":4)")),
                                R"("kv_memory_bytes":1000000,"max_num_batched_tokens":32)", 1000);
  CHECK(widest.whole("kv_blocks") == 31'250);  // of 2 × 16 bytes
  CHECK(widest.whole("kv_reserved_per_sequence") == (4 + 74) * 32);
  // Blocks of 16 tokens where they are set: 6 entries and one
  CHECK(packed(R"(,"block_size":16)").whole("block_tokens") == 16);
  CHECK(packed("", 256).whole("kv_reserved_per_sequence") == 5 * 2880);
  CHECK(packed("", 257).whole("kv_reserved_per_sequence") == 6 * 2880);
  // Windows whose rows are wider than the widest page are grouped as others are.
  const Asked wide =
      ask_runs(both(layers("compressed", 2, R"("latent_width":8,"tokens_per_entry":256)"), window(2, 10)),
               R"("kv_memory_bytes":1000000,"max_num_batched_tokens":32)", 1000);
  CHECK(steps_of(wide, "blocks_per_sequence").find("compressed: 1 groups") != std::string::npos);
}

// ---- what the start-up takes ---------------------------------------------------------------------------------------

/// Of one layer whose width follows from the parameters: 12 × 1000² are a width of 1000. Sampling takes 40 bytes for
/// each of `vocabulary` entries and sequences, a token 21 × width on one GPU of several and 8 × width on each.
Asked ask_budget(u64 vocabulary, std::string_view gpu, std::string_view options, u64 context = 1000,
                 std::string_view more = "") {
  Text text;
  text << R"({"engine":"vllm","model":{"parameters":12000000,"vocabulary":)" << vocabulary << R"(,"layers":[)"
       << layers("full", 1) << R"(]},"options":{)" << options << R"(},"weight_bytes":10000000000,"gpu":)" << gpu
       << R"(,"context":)" << context << more << "}";
  return Asked(text.take());
}
u64 activation(const Asked& answer, Label figure = "bytes") {
  for (const json::Value& part : *answer.at("parts")) {
    if (part.get("code")->text == "activation") return *json::to_whole(*part.get(figure), figure, 0, kMaxExact);
  }
  return 0;
}
constexpr const char* kSmall = R"({"memory_bytes":75161927679})";
constexpr const char* kLarge = R"({"memory_bytes":75161927680})";

TEST_CASE("vLLM profiles the batches that its version and card have by default") {
  const auto sequences = [](std::string_view gpu, std::string_view options, u64 context = 1000) {
    return activation(ask_budget(10'000'000, gpu, options, context)) / 400'000'000;
  };
  CHECK(sequences(kLarge, "") == 1024);  // 70 GiB
  CHECK(sequences(kSmall, "") == 256);
  CHECK(sequences("\"a100-sxm-80gb\"", "") == 256);
  CHECK(sequences("\"h100-sxm-80gb\"", "") == 1024);
  CHECK(sequences(kLarge, R"("version":"0.8")") == 1024);
  CHECK(sequences(kLarge, R"("version":"0.7.999")") == 256);
  CHECK(sequences(kLarge, R"("version":"0.7.999","use_v1":true)") == 1024);
  CHECK(sequences(kLarge, R"("use_v1":false)") == 256);
  CHECK(sequences(kLarge, R"("max_num_seqs":3)") == 3);

  const auto tokens = [](std::string_view gpu, std::string_view options, u64 context = 1000) {
    return activation(ask_budget(1, gpu, options, context)) / 29'000;
  };
  CHECK(tokens(kLarge, "") == 8192);
  CHECK(tokens(kSmall, "") == 2048);
  CHECK(tokens(kLarge, R"("max_num_batched_tokens":777)") == 777);
  CHECK(tokens(kLarge, "", 100'000) == 8192);
  // V0: the longest conversation, at least 2048; past 32k it chunked of itself.
  for (const char* const gpu : {kSmall, kLarge}) {
    CHECK(tokens(gpu, R"("version":"0.7")", 1000) == 2048);
    CHECK(tokens(gpu, R"("version":"0.7")", 2049) == 2049);
    CHECK(tokens(gpu, R"("version":"0.7")", 32'768) == 32'768);
    CHECK(tokens(gpu, R"("version":"0.7")", 32'769) == 2048);
    CHECK(tokens(gpu, R"("version":"0.7","max_num_batched_tokens":777)", 32'769) == 777);
    CHECK(tokens(gpu, R"("version":"0.7","use_v1":true)", 32'769) == (gpu == kSmall ? 2048 : 8192));
  }
  CHECK(activation(ask_budget(1, kLarge, "", 1000, R"(,"tensor_parallel":2)")) == 8192 * (10'500 + 8'000));

  // A card without a name could be one with the smaller defaults: 20 bytes a logit and 12 + 6 a token are the least.
  CHECK(activation(ask_budget(10'000'000, kLarge, ""), "low") == 256ull * 200'000'000);
  CHECK(activation(ask_budget(10'000'000, "\"h100-sxm-80gb\"", ""), "low") == 1024ull * 200'000'000);
  CHECK(activation(ask_budget(10'000'000, kLarge, R"("max_num_seqs":1000)"), "low") == 1000ull * 200'000'000);
  CHECK(activation(ask_budget(1, kLarge, ""), "low") == 2048 * 18'000);
  CHECK(activation(ask_budget(1, kLarge, R"("max_num_batched_tokens":777)"), "low") == 777 * 18'000);
}

TEST_CASE("vLLM's budget: the share of memory less weights, activation, other memory and graphs") {
  const auto budget = [](std::string_view options, std::string_view more = "") {
    Text text;
    text << R"("activation_bytes":2000000001,"non_torch_bytes":300000001)" << options;
    return ask_budget(1, R"({"memory_bytes":80000000000})", text.take(), 1000, more);
  };
  const Asked known = budget(R"(,"cuda_graph_bytes":70000001)");
  CHECK(known.whole("kv_memory_bytes_per_gpu") == 73'600'000'000 - 12'370'000'003);
  CHECK(parts_of(known) == "activation 2000000001; non_torch 300000001; cuda_graph 70000001; ");
  CHECK(range_of(known, "kv_memory_bytes_per_gpu_range").empty());
  CHECK(known.words("confidence.kv_memory_bytes") == "engine_rule");
  CHECK(steps_of(known, "kv_memory_bytes_per_gpu") ==
        "80000000000 bytes_per_gpu × 0.92 usable_share − 10000000000 weight_bytes − 2000000001 activation − 300000001 "
        "non_torch − 70000001 cuda_graph = 61229999997; ");
  // 1000 MiB (300 to 3500) on a large card
  const Asked estimated = budget("");
  CHECK(estimated.whole("kv_memory_bytes_per_gpu") == 73'600'000'000 - 12'300'000'002 - 1000 * 1'048'576ll);
  CHECK(range_of(estimated, "kv_memory_bytes_per_gpu_range") == "57629983998 60985427198 ");
  CHECK(estimated.words("confidence.kv_memory_bytes") == "estimate");
  CHECK(estimated.whole("kv_blocks") == estimated.whole("kv_memory_bytes_per_gpu") / 1024);
  CHECK(range_of(estimated, "sequences_range") ==
        std::to_string(57629983998 / 1024 / 63) + " " + std::to_string(60985427198 / 1024 / 63) + " ");
  const Asked twice = budget("", R"(,"data_parallel":2)");
  CHECK(range_of(twice, "sequences_range") ==
        std::to_string(57629983998 / 1024 / 63 * 2) + " " + std::to_string(60985427198 / 1024 / 63 * 2) + " ");
  CHECK(steps_of(twice, "sequences").find(" × 2 copies_of_the_model ~ ") != std::string::npos);
  // No graphs are counted before 0.21, and none are made where told; the share was 0.9.
  CHECK(budget(R"(,"version":"0.20.999")").whole("kv_memory_bytes_per_gpu") == 72'000'000'000 - 12'300'000'002);
  CHECK(budget(R"(,"version":"0.20.999","gpu_memory_utilization":0.92)").whole("kv_memory_bytes_per_gpu") ==
        73'600'000'000 - 12'300'000'002);
  CHECK(budget(R"(,"version":"0.21")").whole("kv_memory_bytes_per_gpu") == estimated.whole("kv_memory_bytes_per_gpu"));
  CHECK(budget(R"(,"enforce_eager":true)").whole("kv_memory_bytes_per_gpu") == 73'600'000'000 - 12'300'000'002);
  CHECK(budget(R"(,"enforce_eager":true,"gpu_memory_utilization":0.123456789)").whole("kv_memory_bytes_per_gpu") == 0);
  CHECK(steps_of(budget(R"(,"enforce_eager":true,"gpu_memory_utilization":0.523456789)"), "kv_memory_bytes_per_gpu")
            .find("× 0.523456 usable_share") != std::string::npos);
  // Weights in main memory: 3 GiB of them, or all
  CHECK(budget(R"(,"enforce_eager":true,"cpu_offload_gb":3)").whole("kv_memory_bytes_per_gpu") ==
        73'600'000'000 - 12'300'000'002 + 3 * 1'073'741'824ll);
  CHECK(budget(R"(,"enforce_eager":true,"cpu_offload_gb":10)").whole("kv_memory_bytes_per_gpu") ==
        73'600'000'000 - 2'300'000'002);
  // Weights that fill the share leave nothing.
  const auto limit = [&](u64 weights) {
    Text text;
    text << R"({"engine":"vllm","model":{"layers":[)" << layers("full", 1)
         << R"(]},"options":{"activation_bytes":0,"non_torch_bytes":0,"cuda_graph_bytes":0},"weight_bytes":)" << weights
         << R"(,"gpu":{"memory_bytes":1000000},"context":16})";
    return Asked(text.take()).words("limit");
  };
  CHECK(limit(920'000) == "weights_do_not_fit");
  CHECK(limit(919'999) == "one_sequence_too_long");
  CHECK(limit(920'000 - 1024) == "cache");
  const auto room = [&](u64 weights) {
    Text text;
    text << R"({"engine":"vllm","model":{"layers":[)" << layers("full", 1)
         << R"(]},"options":{"activation_bytes":0,"non_torch_bytes":0,"cuda_graph_bytes":0},"weight_bytes":)" << weights
         << R"(,"gpu":{"memory_bytes":1000000},"context":16})";
    return steps_of(Asked(text.take()), "kv_memory_bytes_per_gpu");
  };
  CHECK(room(920'000).empty());
  CHECK(room(919'999).ends_with(" = 1; "));
  // States beside the blocks: a slot of 210 bytes for each of 256 sequences
  Text text;
  text << R"({"engine":"vllm","model":{"layers":[)" << both(layers("full", 1), kState)
       << R"(]},"options":{"version":"0.7","activation_bytes":0,"non_torch_bytes":0},"weight_bytes":0,"gpu":)" << kLarge
       << "}";
  CHECK(parts_of(Asked(text.take())) == "activation 0; non_torch 0; states 53760; ");
}

TEST_CASE("vLLM deals tokens out only where tensor parallelism keeps copies") {
  const auto dealt = [](u64 heads, u64 tensor, u64 dcp) {
    Text options;
    options << R"("kv_memory_bytes":100000,"dcp":)" << dcp;
    Text more;
    more << R"(,"tensor_parallel":)" << tensor;
    Text rows;
    rows << R"("kv_heads":)" << heads << R"(,"key_width":8,"value_width":8)";
    return ask_runs(layers("full", 2, rows.take()), options.take(), 100, more.take());
  };
  // Each of 4 GPUs has the one head's rows of half of the tokens: 50 in 4 blocks.
  const Asked two = dealt(1, 4, 2);
  CHECK(two.whole("kv_blocks") == 97);  // of 16 × 64
  CHECK(two.whole("kv_tokens_other") == 97 * 16 * 2);
  CHECK(two.whole("sequences") == 24);
  CHECK(two.whole("kv_bytes_per_sequence") == 2 * 100 * 64);
  CHECK(two.whole("kv_reserved_per_sequence") == 4 * 4 * 1024);
  CHECK(gaps_of(two) == "blocks 3584; ");
  const Asked uneven = ask_runs(layers("full", 2, R"("kv_heads":1,"key_width":8,"value_width":8)"),
                                R"("kv_memory_bytes":100000,"dcp":2)", 97, R"(,"tensor_parallel":4)");
  CHECK(uneven.whole("sequences") == 24);  // 49 tokens are 4 blocks
  CHECK_FALSE(dealt(2, 4, 2).refused());
  CHECK(dealt(2, 4, 4).refused());
  CHECK(dealt(4, 4, 2).refused());
  CHECK_FALSE(dealt(4, 4, 1).refused());
  CHECK(dealt(1, 4, 3).refused());
}

TEST_CASE("vLLM says that --max-num-seqs ends it, in each replica") {
  const auto notes = [](u64 most, std::string_view more = "") {
    Text options;
    options << R"("kv_memory_bytes":100001,"max_num_seqs":)" << most;
    return notes_of(ask_runs(kFull, options.take(), 21, more));
  };
  CHECK(notes(13) == "max_num_seqs(max_num_seqs 13, fit 14); ");
  CHECK(notes(14).empty());
  CHECK(notes(13, R"(,"data_parallel":2)") == "max_num_seqs(max_num_seqs 13, fit 28); ");
  CHECK(notes(14, R"(,"data_parallel":2)").empty());
}

TEST_CASE("vLLM's layouts hold 64 shapes of layers") {
  const auto shapes = [](u64 count) {
    Text runs;
    for (u64 i = 1; i <= count; ++i) {
      Text rows;
      rows << R"("kv_heads":1,"key_width":)" << i << R"(,"value_width":1)";
      runs << (i > 1 ? "," : "") << layers("full", 1, rows.take());
    }
    return ask_runs(runs.take(), R"("kv_memory_bytes":1000000)", 16);
  };
  CHECK(shapes(64).whole("kv_blocks") == 1'000'000 / (16 * 2 * (65 * 32 + 64)));
  CHECK(shapes(65).words("error.message").starts_with("has 65 shapes of layers; up to 64 are"));
}

// ---- TensorRT-LLM --------------------------------------------------------------------------------------------------

Asked ask_trt(std::string_view runs, std::string_view options, u64 context = 33, std::string_view more = "") {
  return ask_runs(runs, options, context, more, "tensorrt-llm");
}

TEST_CASE("TensorRT-LLM's blocks: the last is whole, windows are as long as the rest") {
  // A block of 32 tokens is 32 × 216 bytes; 100001 bytes are 14.5 of them.
  const Asked one = ask_trt(kFull, R"("kv_memory_bytes":100001)");
  CHECK(one.whole("kv_blocks") == 15);
  CHECK(one.whole("kv_tokens") == 480);
  CHECK(one.whole("block_tokens") == 32);
  CHECK(one.whole("sequences") == 7);  // of 2 blocks
  CHECK(one.whole("kv_reserved_per_sequence") == 2 * 6912);
  CHECK(gaps_of(one) == "blocks 6696; ");  // 31 × 216
  CHECK(steps_of(one, "kv_blocks") == "100001 bytes_left_per_gpu ÷ 6912 bytes_per_block = 15; ");
  CHECK(notes_of(one).empty());
  CHECK(one.words("confidence.kv_memory_bytes") == "engine_rule");
  const auto block = [](std::string_view options) {
    return ask_trt(kFull, std::string(R"("kv_memory_bytes":100001,)") + std::string(options)).whole("block_tokens");
  };
  CHECK(block(R"("version":"0.17")") == 32);
  CHECK(block(R"("version":"0.16.999")") == 64);
  CHECK(block(R"("version":"0.16.999","tokens_per_block":32)") == 32);
  CHECK(block(R"("tokens_per_block":7)") == 7);

  for (const char* const kind : {"window", "chunked"}) {
    CAPTURE(kind);
    const Asked bounded =
        ask_trt(window(2, 10, R"("kv_heads":2,"key_width":8,"value_width":8)", kind), R"("kv_memory_bytes":100000)");
    CHECK(bounded.whole("kv_reserved_per_sequence") == 2 * 32 * 128);
    CHECK(gaps_of(bounded) == "full_length 2944; blocks 3968; ");  // 23 × 128, 31 × 128
    CHECK(notes_of(bounded) == "windows_full_length; ");
  }
  const std::string both_kinds = both(kFull, window(2, 10));
  CHECK(notes_of(ask_trt(both_kinds, R"("kv_memory_bytes":100000)")) == "windows_full_length; ");
  CHECK(notes_of(ask_trt(both(window(2, 10), kFull), R"("kv_memory_bytes":100000)")) == "windows_full_length; ");
  // Layers that would read another input have room in each block, and take none where there is no such input; where
  // there is, no rule says how much.
  const auto cross = [](const char* source) {
    return ask_trt(
        both(kFull, layers("cross", 2,
                           R"("kv_heads":2,"key_width":8,"value_width":8,"source_tokens":)" + std::string(source))),
        R"("kv_memory_bytes":100000)", 100);
  };
  CHECK(cross("0").whole("kv_reserved_per_sequence") == 4 * 6912);
  CHECK(cross("0").whole("kv_blocks") == 10);  // of 32 × (216 + 128) bytes, the last past the budget
  CHECK(cross("40").words("error.message").starts_with("keeps rows of another input (cross-attention)"));
  // 11 entries of 16 bytes for 32 tokens of which three have one
  const Asked entries =
      ask_trt(layers("compressed", 2, R"("latent_width":8,"tokens_per_entry":3)"), R"("kv_memory_bytes":100000)");
  CHECK(entries.whole("kv_blocks") == 285);  // of 352
  CHECK(entries.whole("kv_reserved_per_sequence") == 2 * 352);
  CHECK(gaps_of(entries) == "blocks 352; ");
  // States beside the blocks, rows of one byte, layers without any
  const Asked states = ask_trt(both(kFull, kState), R"("kv_memory_bytes":100001)");
  CHECK(states.whole("kv_reserved_per_sequence") == 2 * 6912 + 210);
  CHECK(gaps_of(states) == "blocks 6696; ");
  const Asked bytes =
      ask_trt(layers("latent", 1, R"("latent_width":1)"), R"("kv_memory_bytes":100000)", 33, R"(,"kv":"fp8")");
  CHECK(bytes.whole("kv_blocks") == 3125);
  CHECK(ask_trt(both(kFull, layers("none", 5, "")), R"("kv_memory_bytes":100001)").whole("kv_blocks") == 15);

  // On three GPUs a head each, on two stages 2 and 1 layers
  const Asked split = ask_trt(kFull, R"("kv_memory_bytes":100001)", 33, R"(,"tensor_parallel":3)");
  CHECK(split.whole("kv_blocks") == 44);  // of 2304
  CHECK(split.whole("kv_reserved_per_sequence") == 2 * 6912);
  CHECK(gaps_of(split) == "blocks 6696; ");
  CHECK(ask_trt(window(2, 10), R"("kv_memory_bytes":100000)", 33, R"(,"tensor_parallel":2)")
            .whole("kv_reserved_per_sequence") == 2 * 32 * 128);
  CHECK(gaps_of(ask_trt(window(2, 10), R"("kv_memory_bytes":100000)", 33, R"(,"tensor_parallel":2)")) ==
        "full_length 2944; blocks 3968; ");
  CHECK(ask_trt(both(kFull, kState), R"("kv_memory_bytes":100001)", 33, R"(,"tensor_parallel":3)")
            .whole("kv_reserved_per_sequence") == 2 * 6912 + 3 * 3 * 26);  // 4 × 4 + 5 × 2
  CHECK(ask_trt(kFull, R"("kv_memory_bytes":100001)", 33, R"(,"pipeline_parallel":2)").whole("kv_blocks") == 22);
}

TEST_CASE("TensorRT-LLM's room: a share of what weights and runtime leave") {
  const auto budget = [](u64 weights, std::string_view options = "",
                         std::string_view gpu = R"({"memory_bytes":104857600000})") {
    Text text;
    text << R"({"engine":"tensorrt-llm","model":{"layers":[)" << kFull << R"(]},"options":{)" << options
         << R"(},"weight_bytes":)" << weights << R"(,"gpu":)" << gpu << "}";
    return Asked(text.take());
  };
  // 3700 MiB (1500 to 5800) for the runtime
  const Asked one = budget(10'000'000'000);
  CHECK(parts_of(one) == "runtime 3879731200 (1572864000 to 6081740800); ");
  CHECK(one.whole("kv_memory_bytes_per_gpu") == 81'880'081'920);
  CHECK(range_of(one, "kv_memory_bytes_per_gpu_range") == "79898273280 83956262400 ");
  CHECK(steps_of(one, "free_bytes") ==
        "104857600000 bytes_per_gpu − 10000000000 weight_bytes − 3879731200 runtime = 90977868800; ");
  CHECK(steps_of(one, "kv_memory_bytes_per_gpu") == "90977868800 free_bytes × 0.9 usable_share = 81880081920; ");
  CHECK(one.words("confidence.kv_memory_bytes") == "estimate");
  CHECK(budget(10'000'000'000, R"("free_gpu_memory_fraction":0.5)").whole("kv_memory_bytes_per_gpu") == 45'488'934'400);
  const u64 free = 104'857'600'000 - 3'879'731'200;
  CHECK(budget(free).whole("kv_memory_bytes_per_gpu") == 0);
  CHECK(steps_of(budget(free), "kv_memory_bytes_per_gpu").empty());
  CHECK(steps_of(budget(free - 2), "kv_memory_bytes_per_gpu") == "2 free_bytes × 0.9 usable_share = 1; ");
  CHECK(budget(104'857'599'999).words("limit") == "one_sequence_too_long");
  CHECK(budget(104'857'600'000).words("limit") == "weights_do_not_fit");
  // What the log says is free, with no range
  const Asked known = budget(1, R"("free_memory_bytes":100003)");
  CHECK(known.whole("kv_memory_bytes_per_gpu") == 90'002);
  CHECK(range_of(known, "kv_memory_bytes_per_gpu_range").empty());
  CHECK(steps_of(known, "kv_memory_bytes_per_gpu") == "100003 free_bytes × 0.9 usable_share = 90002; ");
  CHECK(known.words("confidence.kv_memory_bytes") == "engine_rule");
  CHECK(parts_of(known).empty());
  const Gpu* const card = find_gpu("rtx-4090");
  REQUIRE(card != nullptr);
  CHECK(steps_of(budget(1, "", R"("rtx-4090")"), "free_bytes")
            .starts_with(std::to_string(card->runtime_mib << 20) + " bytes_per_gpu "));
  // Without weights nobody knows the room.
  CHECK(steps_of(Asked(R"({"engine":"tensorrt-llm","model":{"layers":[)" + std::string(kFull) + "]}}"), "free_bytes")
            .empty());
}

}  // namespace
}  // namespace kvcap
