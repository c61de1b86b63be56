// SGLang's own choices at the edges where they change: the share that it keeps, slots, pages, states and limits.
#include <doctest/doctest.h>

#include "answer_words.hpp"

namespace kvcap {
namespace {

using namespace test;

constexpr u64 kMiB = 1 << 20;
constexpr u64 kBillion = 1'000'000'000;

Asked ask(std::string_view model, std::string_view options, std::string_view more) {
  Text text;
  text << R"({"engine":"sglang","model":)" << model << R"(,"options":{)" << options << "}" << more << "}";
  return Asked(text.take());
}

/// The share in thousandths that is left to weights and cache: of 10^12 free bytes and no weights it is the pool.
u64 share(u64 memory_mib, std::string_view version, std::string_view more, std::string_view options = "",
          std::string_view model = R"("qwen3-32b")") {
  Text text;
  text << R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000,"version":")" << version
       << "\"" << options;
  Text rest;
  rest << R"(,"weight_bytes":1,"gpu":{"memory_bytes":)" << memory_mib * kMiB << "}" << more;
  const u64 pool = ask(model, text.take(), rest.take()).whole("kv_memory_bytes_per_gpu");
  CHECK(pool % kBillion == 0);
  return pool / kBillion;
}

constexpr const char* kOne = "";
constexpr const char* kTwo = R"(,"tensor_parallel":2)";
constexpr const char* kFour = R"(,"tensor_parallel":4)";
constexpr const char* kEight = R"(,"tensor_parallel":8)";

TEST_CASE("SGLang keeps 512 MiB, a prefill, graphs and 128 MiB for each GPU since 0.5.3, by memory") {
  const struct {
    u64 memory_mib;
    const char* split;
    u64 share;
  } kRows[] = {
      // Below 20 GiB: 512 + 2048 × 3/2 + 8 × 2 + 128 = 3728. Of 4003 MiB one MiB more would be another thousandth.
      {20479, kOne, 818},
      {4003, kOne, 69},
      // From 20 GiB, 24 graphs (3760), or 80 from tensor parallel 4 on (4256 with its 512)
      {20480, kOne, 816},
      {20491, kOne, 817},
      {35839, kOne, 895},
      {20480, kFour, 792},
      {20511, kFour, 793},
      {20480, R"(,"tensor_parallel":2,"pipeline_parallel":2)", 798},  // 512 + 3072 + 48 + 4 × 128
      // From 35 GiB, 4096 tokens and 32 graphs (6848) or 160 (7488)
      {35840, kOne, 809},
      {35948, kOne, 810},
      {61439, kOne, 889},
      {35840, kFour, 791},
      {35914, kFour, 792},
      // From 60 GiB, 8192 tokens and 256 graphs (13440) or 512 (14336)
      {61440, kOne, 781},
      {61511, kOne, 782},
      {163839, kOne, 918},
      {61440, kFour, 767},
      {61661, kFour, 768},
      // From 160 GiB, 16384 tokens and 512 graphs (26240)
      {163840, kOne, 840},
      {164515, kOne, 841},
      {163840, kFour, 838},
      // Less memory than is kept
      {3728, kOne, 0},
      {3727, kOne, 0},
      {1, kOne, 0},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.memory_mib);
    CAPTURE(row.split);
    CHECK(share(row.memory_mib, "0.5.6", row.split) == row.share);
  }
  // The settings themselves where they are given, a prefill of at least 2048 tokens; 10 GiB at least above 60 GiB.
  constexpr const char* kSmall = R"(,"chunked_prefill_size":2048,"cuda_graph_max_bs":8)";
  CHECK(share(61440, "0.5.6", kOne, kSmall) == 939);  // 3728
  CHECK(share(61441, "0.5.6", kOne, kSmall) == 833);  // 10240
  CHECK(share(61502, "0.5.6", kOne, kSmall) == 834);
  CHECK(share(4003, "0.5.6", kOne, R"(,"chunked_prefill_size":1)") == 69);
  CHECK(share(4003, "0.5.6", kOne, R"(,"chunked_prefill_size":2047)") == 69);
  CHECK(share(4003, "0.5.6", kOne, R"(,"chunked_prefill_size":2049)") == 68);
  CHECK(share(4003, "0.5.6", kOne, R"(,"cuda_graph_max_bs":9)") == 68);
}

TEST_CASE("SGLang keeps by memory and GPUs from 0.4.7 on, by GPUs alone before") {
  const struct {
    const char* version;
    u64 memory_mib;
    const char* split;
    u64 share;
  } kRows[] = {
      // Pull request 7054: 2867 MiB and a tenth of a GiB for each GPU, 9728 and 512, 12288 and 512, or 32768
      {"0.5.2", 35839, kOne, 917},
      {"0.5.2", 4005, kOne, 259},
      {"0.5.2", 5005, kEight, 264},
      {"0.5.2", 35840, kOne, 714},
      {"0.5.2", 35867, kOne, 715},
      {"0.5.2", 40012, kEight, 655},
      {"0.5.2", 92159, kOne, 889},
      {"0.5.2", 92160, kOne, 861},
      {"0.5.2", 92419, kOne, 862},
      {"0.5.2", 163839, kOne, 922},
      {"0.5.2", 163840, kOne, 800},
      {"0.5.2", 164251, kOne, 801},
      {"0.5.2", 163840, kEight, 800},
      {"0.5.3", 35840, kOne, 809},
      {"0.4.7", 35840, kOne, 714},
      {"0.4.6", 35840, kOne, 880},
      {"0.4.0", 35840, kEight, 810},
      {"0.3.999", 35840, kEight, 830},
      {"0.4.0", 35840, kFour, 850},
      {"0.4.0", 35840, kTwo, 870},
      {"0.4.0", 35840, R"(,"tensor_parallel":16)", 790},
      {"0.4.0", 35840, R"(,"tensor_parallel":2,"pipeline_parallel":2)", 870},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.version);
    CAPTURE(row.memory_mib);
    CAPTURE(row.split);
    CHECK(share(row.memory_mib, row.version, row.split) == row.share);
  }
  // Where nobody has seen the driver's figure, what a program gets: (122502 - 12800) / 122502
  CHECK(ask(R"("qwen3-32b")",
            R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000,"version":"0.5.2")",
            R"(,"weight_bytes":1,"gpu":"dgx-spark-128gb")")
            .whole("kv_memory_bytes_per_gpu") == 896 * kBillion);
  CHECK(ask(R"("qwen3-32b")", R"("avail_before_load_bytes":1000,"avail_after_load_bytes":1000)",
            R"(,"weight_bytes":1,"gpu":{"memory_bytes":1000})")
            .whole("kv_memory_bytes_per_gpu") == 0);
  // Sizes between two steps belong to the lower.
  constexpr const char* kDivisible =
      R"({"layers":[{"kind":"full","count":1,"kv_heads":630,"key_width":64,"value_width":64}]})";
  for (const auto& [tensor, expected] : {std::pair{3, 870}, {7, 850}, {9, 810}, {15, 810}, {18, 790}}) {
    CAPTURE(tensor);
    CHECK(share(35840, "0.4.6", R"(,"tensor_parallel":)" + std::to_string(tensor), "", kDivisible) ==
          static_cast<u64>(expected));
  }
}

TEST_CASE("SGLang keeps 8 MiB for each piecewise graph since 0.5.10") {
  // Of 8000 MiB each is a thousandth: 512 + 3072 + 16 + 128 and 8 × graphs are kept.
  const auto graphs = [](u64 chunk) {
    return 534 - share(8000, "0.5.10", kOne, R"(,"chunked_prefill_size":)" + std::to_string(chunk));
  };
  const std::pair<u64, u64> kRows[] = {
      {1, 0},    {3, 0},    {4, 1},    {7, 1},    {8, 2},    {31, 7},   {32, 8},   {47, 8},    {48, 9},
      {63, 9},   {64, 10},  {255, 21}, {256, 22}, {287, 22}, {288, 23}, {319, 23}, {320, 24},  {511, 29},
      {512, 30}, {639, 30}, {640, 31}, {767, 31}, {768, 32}, {895, 32}, {896, 33}, {1920, 41}, {2048, 42},
  };
  for (const auto& [chunk, count] : kRows) {
    CAPTURE(chunk);
    CHECK(graphs(chunk) == count);
  }
  CHECK(share(8000, "0.5.9", kOne, R"(,"chunked_prefill_size":2048)") == 534);
  // Longer prefills, which themselves take more: 512 + tokens × 3/2 + 144 + 8 × graphs
  const auto longer = [](u64 memory_mib, u64 chunk, std::string_view model = R"("qwen3-32b")") {
    return share(memory_mib, "0.5.10", kOne, R"(,"chunked_prefill_size":)" + std::to_string(chunk), model);
  };
  CHECK(longer(8000, 4096) == 92);   // 6800 + 8 × 58
  CHECK(longer(8000, 4351) == 44);   // 7182 + 8 × 58
  CHECK(longer(8000, 4352) == 43);   // 7184 + 8 × 59
  CHECK(longer(9000, 4608) == 106);  // 7568 + 8 × 60
  CHECK(longer(14006, 8192) == 34);  // 12944 + 8 × 74
  CHECK(longer(14000, 8192) == 33);
  // Models with latent rows capture up to 2048 tokens, whatever a prefill is.
  CHECK(longer(8000, 4096, R"("deepseek-v3")") == 108);  // 6800 + 8 × 42
  CHECK(longer(8000, 4096,
               R"({"layers":[{"kind":"full","count":1,"kv_heads":8,"key_width":128,"value_width":128},)"
               R"({"kind":"latent","count":1,"latent_width":576}]})") == 108);
}

TEST_CASE("SGLang's cut for models that see: 95 % before 0.4.5, 90 % before 0.4.9, exactly") {
  const auto pool = [](std::string_view model, std::string_view version) {
    Text options;
    options << R"("avail_before_load_bytes":1000000000000,"avail_after_load_bytes":1000000000000,)"
            << R"("mem_fraction_static":0.8,"version":")" << version << "\"";
    return ask(model, options.take(), R"(,"weight_bytes":1,"gpu":"h100-sxm-80gb")").whole("kv_memory_bytes_per_gpu");
  };
  CHECK(pool(R"("gemma-3-27b")", "0.4.4") == 760'000'000'000);
  CHECK(pool(R"("gemma-3-27b")", "0.4.5") == 720'000'000'000);
  CHECK(pool(R"("gemma-3-27b")", "0.4.8") == 720'000'000'000);
  CHECK(pool(R"("gemma-3-27b")", "0.4.9") == 800'000'000'000);
  CHECK(pool(R"("qwen3-32b")", "0.4.4") == 800'000'000'000);
}

// ---- pools worked out by hand ---------------------------------------------------------------------------------------

u64 request_table(const Asked& answer) {
  for (const json::Value& part : *answer.at("parts")) {
    if (part.get("code")->text == "request_table") return *json::to_whole(*part.get("bytes"), "bytes", 0, kMaxExact);
  }
  return 0;
}

std::string limit_of(const Asked& answer) {
  for (const json::Value& note : *answer.at("notes")) {
    if (note.get("code")->text == "pool_limit") return std::string(note.get("values")->get("pool")->text);
  }
  return "full";
}

bool noted(const Asked& answer, std::string_view code) { return notes_of(answer).find(code) != std::string::npos; }

Asked ask_runs(std::string_view runs, std::string_view options, u64 context, std::string_view more = "") {
  Text model;
  model << R"({"layers":[)" << runs << "]}";
  Text rest;
  rest << R"(,"weight_bytes":1,"gpu":{"memory_bytes":1000000000},"context":)" << context << more;
  return ask(model.take(), options, rest.take());
}

/// K of 30 bytes and V of 42 in each of 3 layers: 216 a token
constexpr const char* kFull = R"({"kind":"full","count":3,"kv_heads":3,"key_width":5,"value_width":7})";
/// 16 and 16 in each of 2: 64 a token
constexpr const char* kWindow = R"({"kind":"window","count":2,"kv_heads":2,"key_width":4,"value_width":4,"window":10})";
/// 16 and 16 in each of 2: 64 a token
constexpr const char* kNarrow = R"({"kind":"full","count":2,"kv_heads":1,"key_width":8,"value_width":8})";
/// 11 × 4 and 13 × 2 bytes in each of 3: 210 a conversation
constexpr const char* kState =
    R"({"kind":"recurrent","count":3,"state_values":11,"state_format":"fp32","conv_values":13,"conv_format":"bf16"})";

std::string both(std::string_view one, std::string_view other) {
  Text text;
  text << one << "," << other;
  return text.take();
}

TEST_CASE("SGLang shares a pool between full and window slots, in whole pages") {
  // 100001 / 280 is 357 tokens, 356 in pages of 4; × 280 / (216 + 64 / 2) is 401, and half of that 200.
  const Asked half =
      ask_runs(both(kFull, kWindow), R"("kv_memory_bytes":100001,"page_size":4,"swa_full_tokens_ratio":0.5)", 21);
  CHECK(caches_of(half) == "full 400 x 3: 36360 + 50904; window 200 x 2: 6528 + 6528; ");  // one page more each
  CHECK(half.whole("kv_tokens") == 400);
  CHECK(half.whole("block_tokens") == 4);
  // 24 full slots, and a window with a page, 14, in whole pages: 400 / 24 is more than 200 / 16.
  CHECK(half.words("concurrency") == "12.5");
  CHECK(half.whole("sequences") == 12);
  CHECK(limit_of(half) == "window");
  CHECK(steps_of(half, "kv_tokens") == "100001 bytes_left ÷ 248 bytes_per_token ~ 400; ");
  CHECK(steps_of(half, "sequences") == "window: 200 slots ÷ 16 slots_per_conversation ~ 12; ");
  CHECK(notes_of(half) == "pool_limit(pool window); ");
  CHECK(half.whole("kv_reserved_per_sequence") == 3 * 24 * 72 + 2 * 16 * 32);
  CHECK(gaps_of(half) == "blocks 648; window_in_flight 384; ");  // 3 × 3 × 72, 2 × 6 × 32
  CHECK(request_table(half) == 4096 * (21 + 4) * 4);

  const auto slots = [](std::string_view options) {
    return caches_of(ask_runs(both(kFull, kWindow), R"("kv_memory_bytes":100001,)" + std::string(options), 21));
  };
  // 0.8 unless it is given: 356 × 280 / (216 + 51.2) is 373.
  CHECK(slots(R"("page_size":4)") == "full 372 x 3: 33840 + 47376; window 296 x 2: 9600 + 9600; ");
  // No more than 203 tokens, which are 200 in pages: × 280 / 248 is 225, and half of it 112
  CHECK(slots(R"("page_size":4,"swa_full_tokens_ratio":0.5,"max_total_tokens":203)") ==
        "full 224 x 3: 20520 + 28728; window 112 x 2: 3712 + 3712; ");
  CHECK(slots(R"("swa_full_tokens_ratio":0.123)") == "full 446 x 3: 40230 + 56322; window 54 x 2: 1760 + 1760; ");
  // With equal pools tokens are those that fit were all layers full: 100001 / 280, and 2.8 × 10^12 / 280.
  CHECK(slots(R"("swa_full_tokens_ratio":1)") == "full 357 x 3: 32220 + 45108; window 357 x 2: 11456 + 11456; ");
  CHECK(ask(R"({"layers":[)" + both(kFull, kWindow) + "]}",
            R"("kv_memory_bytes":2800000000000,"swa_full_tokens_ratio":1)",
            R"(,"weight_bytes":1,"gpu":{"memory_bytes":3000000000000})")
            .whole("kv_tokens") == 10'000'000'000);
  const Asked single = ask_runs(both(kFull, kWindow), R"("kv_memory_bytes":100001)", 21);
  CHECK(single.is_null("block_tokens"));
  CHECK(single.whole("kv_reserved_per_sequence") == 3 * 21 * 72 + 2 * 11 * 32);
  CHECK(ask_runs(both(kFull, kWindow), R"("kv_memory_bytes":100001,"page_size":2)", 21).whole("block_tokens") == 2);

  // What a window holds by the length of the conversation: itself and a page, as far as there are tokens
  const auto held = [](u64 context, u64 page) {
    Text options;
    options << R"("kv_memory_bytes":100001,"page_size":)" << page;
    const u64 all = ask_runs(both(kFull, kWindow), options.take(), context).whole("kv_reserved_per_sequence");
    return (all - 216 * ceil_div(context, page) * page) / 64;
  };
  CHECK(held(9, 1) == 9);
  CHECK(held(10, 1) == 10);
  CHECK(held(11, 1) == 11);
  CHECK(held(12, 1) == 11);
  CHECK(held(11, 4) == 12);
  CHECK(held(14, 4) == 16);
  CHECK(held(100, 4) == 16);
  CHECK(held(100, 3) == 15);
}

TEST_CASE("SGLang keeps windows whole before 0.4.10, where told, and where no layer is full") {
  const auto reserved = [](std::string_view runs, std::string_view options) {
    return ask_runs(runs, R"("kv_memory_bytes":100001)" + std::string(options), 21);
  };
  for (const char* const options : {R"(,"version":"0.4.9")", R"(,"disable_hybrid_swa_memory":true)",
                                    R"(,"disable_hybrid_swa_memory":true,"version":"0.4.10")"}) {
    CAPTURE(options);
    const Asked whole = reserved(both(kFull, kWindow), options);
    CHECK(caches_of(whole) == "full 357 x 5: 43676 + 56564; ");  // 358 × (90 + 32), 358 × (126 + 32)
    CHECK(gaps_of(whole) == "window_full_length 704; ");         // 11 × 64
    CHECK(noted(whole, "windows_stored_full"));
  }
  for (const char* const options :
       {"", R"(,"version":"0.4.10")", R"(,"disable_hybrid_swa_memory":false,"version":"0.4.9")"}) {
    CAPTURE(options);
    const Asked apart = reserved(both(kFull, kWindow), options);
    CHECK(gaps_of(apart) == "window_in_flight 64; ");
    CHECK_FALSE(noted(apart, "windows_stored_full"));
  }
  CHECK(caches_of(reserved(kWindow, "")) == "full 1562 x 2: 50016 + 50016; ");
  CHECK(noted(reserved(kWindow, ""), "windows_stored_full"));
  CHECK_FALSE(noted(reserved(kFull, ""), "windows_stored_full"));
  // Layers without rows are no full layers.
  CHECK(caches_of(reserved(both(kWindow, R"({"kind":"none","count":1})"), "")) == "full 1562 x 2: 50016 + 50016; ");
  std::string chunked(kWindow);
  chunked.replace(chunked.find("window"), 6, "chunked");
  CHECK(gaps_of(reserved(both(kFull, chunked), "")) == "window_in_flight 64; ");
}

TEST_CASE("SGLang's states: from a share of the room, or as many as told; three for a conversation with prefixes") {
  const auto pools = [](std::string_view options, u64 context = 21, std::string_view more = "") {
    return ask_runs(both(kNarrow, kState), R"("kv_memory_bytes":100000)" + std::string(options), context, more);
  };
  // 9 × 210 off 100000, the rest over 64; one state and one token more are made.
  const Asked nine = pools(R"(,"max_mamba_cache_size":9)");
  CHECK(caches_of(nine) == "full 1532 x 2: 49056 + 49056; recurrent 9 x 3: 2100 (780); ");
  CHECK(nine.whole("sequences") == 3);
  CHECK(nine.words("concurrency") == "3");
  CHECK(limit_of(nine) == "recurrent");
  CHECK(steps_of(nine, "kv_tokens") == "100000 bytes_left − 1890 state_bytes ÷ 64 bytes_per_token ~ 1532; ");
  CHECK(steps_of(nine, "sequences") == "recurrent: 9 slots ÷ 3 slots_per_conversation ~ 3; ");
  CHECK(nine.whole("kv_reserved_per_sequence") == 21 * 64 + 3 * 210);
  CHECK(gaps_of(nine) == "states 420; ");
  CHECK(request_table(nine) == 3 * 25 * 4);
  const Asked one_each = pools(R"(,"max_mamba_cache_size":9,"disable_radix_cache":true)");
  CHECK(one_each.whole("sequences") == 9);
  CHECK(limit_of(one_each) == "recurrent");
  CHECK(one_each.whole("kv_reserved_per_sequence") == 21 * 64 + 210);
  CHECK(gaps_of(one_each).empty());
  CHECK(request_table(one_each) == 9 * 25 * 4);
  CHECK(pools(R"(,"max_mamba_cache_size":11)").words("concurrency") == "3");  // 11 / 3, but 3 requests
  CHECK(pools(R"(,"max_mamba_cache_size":9,"max_running_requests":2)").whole("sequences") == 2);
  CHECK(limit_of(pools(R"(,"max_mamba_cache_size":9,"max_running_requests":2)")) == "max_running_requests");

  const auto states = [&](std::string_view options) {
    const Asked answer = pools(options);
    for (const json::Value& cache : *answer.at("caches")) {
      if (cache.get("name")->text == "recurrent") return std::string(cache.get("cells")->text);
    }
    return std::string();
  };
  CHECK(states("") == "225");  // 100000 × 0.9 / 1.9 / 210
  CHECK(caches_of(ask_runs(both(kNarrow, kState), R"("kv_memory_bytes":99960,"mamba_full_memory_ratio":1)", 21)) ==
        "full 780 x 2: 24992 + 24992; recurrent 238 x 3: 50190 (18642); ");  // 49980 / 210, 49980 / 64
  CHECK(states(R"(,"mamba_full_memory_ratio":0.5)") == "158");               // 33333 / 210
  CHECK(states(R"(,"mamba_full_memory_ratio":2)") == "317");                 // 66666 / 210
  CHECK(states(R"(,"disable_radix_cache":true,"max_running_requests":7)") == "7");
  CHECK(states(R"(,"disable_radix_cache":true)") == "225");
  CHECK(states(R"(,"max_running_requests":7)") == "225");
  // No room for tokens is left.
  CHECK(caches_of(pools(R"(,"max_mamba_cache_size":1000)")) ==
        "full 0 x 2: 32 + 32; recurrent 1000 x 3: 210210 (78078); ");
  CHECK(pools(R"(,"max_mamba_cache_size":1000)").whole("sequences") == 0);
  CHECK(caches_of(pools(R"(,"max_mamba_cache_size":476)")) ==
        "full 0 x 2: 32 + 32; recurrent 476 x 3: 100170 (37206); ");

  // On two GPUs each has half of a state, rounded up (6 × 4 + 7 × 2 bytes), and the one head.
  const Asked split = pools(R"(,"max_mamba_cache_size":9)", 21, R"(,"tensor_parallel":2)");
  CHECK(split.whole("kv_reserved_per_sequence") == 2 * (21 * 64 + 3 * 3 * 38));
  CHECK(gaps_of(split) == "states 456; ");                                                   // 2 × 2 × 114
  CHECK(caches_of(split) == "full 1546 x 2: 49504 + 49504; recurrent 9 x 3: 1140 (420); ");  // 98974 / 64

  // States alone take all of the room: 100000 / 210.
  const Asked alone = ask_runs(kState, R"("kv_memory_bytes":100000)", 21);
  CHECK(caches_of(alone) == "recurrent 476 x 3: 100170 (37206); ");
  CHECK(alone.whole("sequences") == 158);
  CHECK(alone.whole("kv_tokens") == 0);
  CHECK(steps_of(alone, "kv_tokens").empty());
}

TEST_CASE("SGLang stores compressed entries, K that serves as V, index keys and nothing of other inputs") {
  const auto pools = [](std::string_view runs, std::string_view options = "") {
    return ask_runs(runs, R"("kv_memory_bytes":10000)" + std::string(options), 21);
  };
  // 2 × 16 bytes for 3 tokens are 11 a token, and 8 of another layer: 526 tokens; 527 are 176 entries.
  constexpr const char* kEntries = R"({"kind":"compressed","count":2,"latent_width":8,"tokens_per_entry":3})";
  constexpr const char* kSmall = R"({"kind":"full","count":1,"kv_heads":1,"key_width":2,"value_width":2})";
  const Asked entries = pools(both(kEntries, kSmall));
  CHECK(caches_of(entries) == "full 526 x 3: 7740 + 2108; ");  // 2 × 176 × 16 + 527 × 4
  CHECK(entries.whole("kv_reserved_per_sequence") == 7 * 32 + 21 * 8);
  CHECK(gaps_of(pools(both(kEntries, kSmall), R"(,"page_size":4)")) == "blocks 56; ");  // 32 + 3 × 8
  const Asked begun = ask_runs(both(kEntries, kSmall), R"("kv_memory_bytes":10000)", 22);
  CHECK(begun.whole("kv_reserved_per_sequence") == 8 * 32 + 22 * 8);
  CHECK(gaps_of(begun).empty());

  // K of 16 bytes is stored twice: 32 a token.
  constexpr const char* kShared = R"({"kind":"full","count":1,"kv_heads":1,"key_width":8,"value_width":0})";
  const Asked twice = pools(kShared, R"(,"page_size":4)");
  CHECK(caches_of(twice) == "full 312 x 1: 5056 + 5056; ");  // 316 × 16
  CHECK(gaps_of(twice) == "blocks 96; value_copy 336; ");    // 3 × 32, 21 × 16
  // On two GPUs each holds the one head, on three a head each: 2 × (24 − 21) × 32, 2 × 21 × 16; 3 × 3 × 3 × 24.
  const Asked copied = ask_runs(kShared, R"("kv_memory_bytes":10000,"page_size":4)", 21, R"(,"tensor_parallel":2)");
  CHECK(gaps_of(copied) == "blocks 192; value_copy 672; ");
  CHECK(copied.whole("kv_reserved_per_sequence") == 2 * 24 * 32);
  CHECK(gaps_of(ask_runs(kFull, R"("kv_memory_bytes":10000,"page_size":4)", 21, R"(,"tensor_parallel":3)")) ==
        "blocks 648; ");
  // Beside latent rows it is one of their kind.
  const Asked latent = pools(both(kShared, R"({"kind":"latent","count":1,"latent_width":8,"indexer_width":128})"));
  CHECK(caches_of(latent) == "full 60 x 1: 976 + 0; latent 60 x 1: 9028 + 0; ");  // 61 × 16, 61 × (16 + 132)
  CHECK(gaps_of(latent).empty());

  // Layers that would read another input have no slots where there is none; where there is, no rule says which.
  const auto cross = [&](const char* source) {
    return pools(
        both(kSmall, R"({"kind":"cross","count":1,"kv_heads":1,"key_width":2,"value_width":2,"source_tokens":)" +
                         std::string(source) + "}"));
  };
  CHECK(caches_of(cross("0")) == "full 1250 x 1: 5004 + 5004; ");
  CHECK(cross("0").whole("kv_reserved_per_sequence") == 21 * 8);
  CHECK(gaps_of(cross("0")).empty());
  CHECK(cross("5").words("error.message").starts_with("keeps rows of another input (cross-attention)"));
}

TEST_CASE("SGLang's requests: 512 for each context that fits, within 2048 and 4096") {
  const auto requests = [](u64 tokens, u64 context, std::string_view options = "") {
    Text text;
    text << R"("kv_memory_bytes":)" << tokens * 64 << options;
    return request_table(ask_runs(kNarrow, text.take(), context)) / ((context + 4) * 4);
  };
  CHECK(requests(83, 21) == 2048);   // 2023.6
  CHECK(requests(84, 21) == 2048);   // 2048
  CHECK(requests(85, 21) == 2072);   // 2072.4
  CHECK(requests(167, 21) == 4071);  // 4071.6
  CHECK(requests(168, 21) == 4096);  // 4096
  CHECK(requests(169, 21) == 4096);
  CHECK(requests(85, 21, R"(,"max_running_requests":5)") == 5);
  CHECK(requests(0, 21) == 2048);
}

TEST_CASE("SGLang's pools from what left the GPU: one page more, 1 MiB for each buffer, the states and the table") {
  const auto drop = [](std::string_view runs, std::string_view options, u64 context = 21) {
    return ask_runs(runs, R"("avail_after_load_bytes":50000000,"avail_pool_end_bytes":30000000)" + std::string(options),
                    context);
  };
  // Ten buffers: (t + 4) × 216 + (t / 2 + 4) × 64 + 10 MiB + 4096 × 100 is at most 20,000,000 for 36707 tokens.
  const Asked windows = drop(both(kFull, kWindow), R"(,"page_size":4,"swa_full_tokens_ratio":0.5)");
  CHECK(windows.whole("kv_tokens") == 36704);
  CHECK(caches_of(windows) == "full 36704 x 3: 3303720 + 4625208; window 18352 x 2: 587392 + 587392; ");
  CHECK(windows.whole("kv_memory_bytes_per_gpu") == 20'000'000 - 4096 * 100);
  CHECK(request_table(windows) == 4096 * 100);
  const Asked few = drop(both(kFull, kWindow), R"(,"max_running_requests":7)");
  CHECK(few.whole("kv_tokens") == 35603);
  CHECK(few.whole("kv_memory_bytes_per_gpu") == 20'000'000 - 7 * 100);
  // Four buffers, and ten states of 210 bytes
  const Asked states = drop(both(kNarrow, kState), R"(,"max_mamba_cache_size":9)");
  CHECK(states.whole("kv_tokens") == 240'530);
  CHECK(drop(both(kNarrow, kState), R"(,"max_mamba_cache_size":9,"page_size":16)", 4000).whole("kv_tokens") == 0);
}

TEST_CASE("SGLang's pool from what left the GPU, to the byte") {
  // (t + 1) × 64 + 4 MiB + 25 × 4 bytes for one request
  const auto tokens = [](u64 drop, std::string_view runs = kNarrow, std::string_view more = "") {
    Text options;
    options << R"("max_running_requests":1,"avail_pool_end_bytes":0,"avail_after_load_bytes":)" << drop;
    return ask_runs(runs, options.take(), 21, more).whole("kv_tokens");
  };
  CHECK(tokens(1001 * 64 + 4 * kMiB + 100) == 1000);
  CHECK(tokens(1001 * 64 + 4 * kMiB + 99) == 999);
  CHECK(tokens(2 * 64 + 4 * kMiB + 100) == 1);
  CHECK(tokens(2 * 64 + 4 * kMiB + 99) == 0);
  CHECK(tokens(0) == 0);
  // Rows of one byte
  constexpr const char* kByte = R"({"kind":"latent","count":1,"latent_width":1})";
  CHECK(tokens(1001 + kMiB + 100, kByte, R"(,"kv":"fp8")") == 1000);
  CHECK(steps_of(ask_runs(kByte, R"("kv_memory_bytes":1000)", 21, R"(,"kv":"fp8")"), "kv_tokens") ==
        "1000 bytes_left ÷ 1 bytes_per_token ~ 1000; ");
  const Asked nothing = ask_runs(kNarrow, R"("avail_after_load_bytes":5,"avail_pool_end_bytes":5)", 21);
  CHECK(nothing.whole("kv_memory_bytes_per_gpu") == 0);
  CHECK(steps_of(nothing, "sequences") == "0 bytes_left ÷ 1344 bytes_per_conversation ~ 0; ");
}

TEST_CASE("SGLang's budget: what is free after loading, less a share of what was free before, with its range") {
  // 100000 MiB and 10^10 bytes of weights, of which each GPU has its part
  const auto budget = [](std::string_view share, std::string_view split) {
    Text options;
    options << R"("max_running_requests":1,"mem_fraction_static":)" << share;
    Text rest;
    rest << R"(,"weight_bytes":10000000000,"gpu":{"memory_bytes":104857600000},"context":21)" << split;
    return ask(R"({"layers":[{"kind":"full","count":2,"kv_heads":4,"key_width":8,"value_width":8}]})", options.take(),
               rest.take());
  };
  // 614 MiB (410 to 1229) are taken before.
  const Asked one = budget("0.9", "");
  CHECK(parts_of(one) == "non_torch 643825664 (429916160 to 1288699904); request_table 100; ");
  CHECK(steps_of(one, "kv_memory_bytes_per_gpu") ==
        "94213774336 free_after_load − 104213774336 free_before_load × 0.1 share_kept_free = 83792396902; ");
  CHECK(range_of(one, "kv_memory_bytes_per_gpu_range") == "83212010086 83984915456 ");
  CHECK(one.whole("kv_tokens") == 83792396902 / 256);
  CHECK(range_of(one, "sequences_range").empty());  // one request each
  CHECK(steps_of(budget("0.900000001", ""), "kv_memory_bytes_per_gpu") ==
        "94213774336 free_after_load − 104213774336 free_before_load × 0.099999 share_kept_free = 83792397006; ");
  // Two GPUs: 250 MiB (0 to 500) more while loading. Four that are large: 1500 (600 to 2150) and 950 (200 to 2100).
  const Asked two = budget("0.9", R"(,"tensor_parallel":2)");
  CHECK(parts_of(two) == "non_torch 905969664 (429916160 to 1812987904); request_table 100; ");
  CHECK(range_of(two, "kv_memory_bytes_per_gpu_range") == "87687722086 88984915456 ");
  CHECK(two.whole("kv_memory_bytes_per_gpu") == 88'530'252'902);
  CHECK(two.whole("kv_memory_bytes") == 2 * 88'530'252'902);
  const Asked four = budget("0.9", R"(,"tensor_parallel":4)");
  CHECK(parts_of(four) == "non_torch 2569011200 (838860800 to 4456448000); request_table 100; ");
  CHECK(range_of(four, "kv_memory_bytes_per_gpu_range") == "87640835840 91095893760 ");
  CHECK(four.whole("kv_memory_bytes_per_gpu") == 89'460'115'200);

  // What is known is no estimate; the weights fit where anything is left.
  const auto left = [](u64 after) {
    Text options;
    options << R"("mem_fraction_static":0.9,"avail_before_load_bytes":1000000,"avail_after_load_bytes":)" << after;
    return ask_runs(kNarrow, options.take(), 21);
  };
  CHECK(left(100'000).words("limit") == "weights_do_not_fit");
  CHECK(steps_of(left(100'000), "kv_memory_bytes_per_gpu").empty());
  CHECK(left(100'000).whole("sequences") == 0);
  CHECK(left(100'000).words("concurrency") == "0");
  CHECK(range_of(left(100'000), "sequences_range").empty());
  CHECK(left(100'001).words("limit") == "one_sequence_too_long");
  CHECK(left(100'001).words("confidence.kv_memory_bytes") == "engine_rule");
  // One of the two figures is enough: the other is that and the weights.
  const Asked loaded = ask_runs(kNarrow, R"("mem_fraction_static":0.9,"avail_after_load_bytes":100000)", 21);
  CHECK(parts_of(loaded) == "request_table 409600; ");
  CHECK(loaded.words("confidence.kv_memory_bytes") == "engine_rule");
  CHECK(left(100'001).whole("kv_memory_bytes_per_gpu") == 1);
  CHECK(parts_of(left(100'001)) == "request_table 204800; ");
  CHECK(left(101'343).whole("sequences") == 0);
  CHECK(left(101'344).whole("sequences") == 1);  // 21 × 64
  CHECK(steps_of(left(101'344), "sequences") == "full: 21 slots ÷ 21 slots_per_conversation ~ 1; ");
  CHECK(steps_of(left(100'064), "kv_tokens") == "64 bytes_left ÷ 64 bytes_per_token ~ 1; ");
  CHECK(steps_of(left(100'063), "kv_tokens").empty());
}

TEST_CASE("SGLang's stages share the layers, replicas copy everything") {
  // The first of two stages has 2 of 3 layers: 100001 / 144.
  const Asked stages = ask_runs(kFull, R"("kv_memory_bytes":100001)", 21, R"(,"pipeline_parallel":2)");
  CHECK(stages.whole("kv_tokens") == 694);
  CHECK(stages.whole("kv_memory_bytes") == 200'002);
  CHECK(stages.whole("sequences") == 33);
  const Asked copies = ask_runs(kFull, R"("kv_memory_bytes":100001)", 21, R"(,"data_parallel":3)");
  CHECK(copies.whole("kv_tokens") == 462);
  CHECK(copies.whole("sequences") == 66);
  CHECK(copies.words("concurrency") == "66");
  CHECK(copies.whole("kv_memory_bytes") == 300'003);
  CHECK(steps_of(ask_runs(kFull, R"("kv_memory_bytes":100001)", 21, R"(,"data_parallel":2)"), "sequences") ==
        "full: 462 slots ÷ 21 slots_per_conversation × 2 copies ~ 44; ");
  CHECK(steps_of(copies, "sequences") == "full: 462 slots ÷ 21 slots_per_conversation × 3 copies ~ 66; ");
}

}  // namespace
}  // namespace kvcap
