// What one sequence writes, kind by kind, against sums done by hand.
#include "kvcap/footprint.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kvcap/catalogue.hpp"
#include "kvcap/deployment.hpp"
#include "kvcap/weights.hpp"

using namespace kvcap;

namespace {

CacheFormats bf16() { return {find_format("bf16"), find_format("bf16")}; }

std::vector<LayerRun> runs(std::string_view notation) {
  const auto parsed = parse_layers(notation);
  REQUIRE_MESSAGE(parsed, notation);
  return *parsed;
}

SequenceCost cost(std::string_view notation, u64 context, CacheFormats kv = bf16(), u64 tensor_parallel = 1) {
  return sequence_cost(runs(notation), kv, tensor_parallel, {context});
}

}  // namespace

TEST_CASE("formats are bytes per block") {
  const struct {
    const char* id;
    u64 values, bytes;
  } kRows[] = {{"fp32", 1, 4},           {"bf16", 1, 2},     {"fp16", 1, 2},     {"fp8", 1, 1},    {"int8", 1, 1},
               {"int4", 2, 1},           {"q8_0", 32, 34},   {"q6_0", 32, 26},   {"q5_1", 32, 24}, {"q5_0", 32, 22},
               {"q4_1", 32, 20},         {"q4_0", 32, 18},   {"iq4_nl", 32, 18}, {"nvfp4", 16, 9}, {"mxfp4", 32, 17},
               {"fp8_ds_mla", 576, 656}, {"q4_k", 256, 144}, {"q6_k", 256, 210}};
  for (const auto& row : kRows) {
    CAPTURE(row.id);
    const Format* const format = find_format(row.id);
    REQUIRE(format != nullptr);
    CHECK(format->bytes_of(row.values) == row.bytes);
    CHECK(format->bytes_of(row.values * 1000) == row.bytes * 1000);
    CHECK(format->bytes_of(row.values + 1) == (row.values == 1 ? 2 * row.bytes : 2 * row.bytes));
    CHECK(format->bytes_of(0) == 0);
  }
  CHECK(find_format("q9_9") == nullptr);
  CHECK(find_format("float16") == find_format("fp16"));
}

TEST_CASE("each kind's bytes") {
  CHECK(cost("32 full 8x128", 8192).total == 1'073'741'824);
  CHECK(cost("2 full 4x192/128", 10).total == 2 * 10 * 4 * (192 + 128) * 2);
  CHECK(cost("3 full 4x512/0", 10).total == 3 * 10 * 4 * 512 * 2);
  CHECK(cost("2 window 128 8x64", 100).total == 2 * 100 * 8 * 128 * 2);
  CHECK(cost("2 window 128 8x64", 1000).total == 2 * 128 * 8 * 128 * 2);
  CHECK(cost("2 chunked 8192 8x128", 100'000).total == 2 * 8192 * 8 * 256 * 2);
  CHECK(cost("61 latent 576", 1).total == 70'272);
  // A 16-bit cache does not say how index keys are stored; an 8-bit one does.
  CHECK(cost("1 latent 576+128", 1).total == 2 * 576);
  CHECK(cost("1 latent 576+128", 1, cache_formats(find_format("fp8"), find_format("fp8"))).total == 576 + 132);
  CHECK(cost("1 compressed 4 latent 512", 4096).total == 1024 * 1024);
  CHECK(cost("1 compressed 4 latent 512", 4097).total == 1025 * 1024);
  CHECK(cost("48 recurrent 786432:fp32 30720:bf16", 1).total == 48 * (786'432 * 4 + 30'720 * 2));
  CHECK(cost("48 recurrent 786432:fp32 30720:bf16", 1'000'000).total == 48 * (786'432 * 4 + 30'720 * 2));
  CHECK(cost("8 cross 1601 8x128", 5).total == 8 * 1601 * 8 * 256 * 2);
  CHECK(cost("18 shared; 54 none", 8192).total == 0);
}

TEST_CASE("fp8 latent rows are 656 bytes and an indexer's key beside them 132") {
  const CacheFormats packed = cache_formats(find_format("fp8_ds_mla"), find_format("fp8_ds_mla"));
  // DeepSeek-V3.2, fp8: 61 × (656 + 132) = 48,068 bytes a token (engine rules 4).
  CHECK(cost("61 latent 576+128", 1, packed).total == 48'068);
  // GLM-5.2: 21 of 78 layers own an indexer.
  CHECK(cost("57 latent 576; 21 latent 576+128", 1, packed).total == 78 * 656 + 21 * 132);
  CHECK(check_formats(runs("61 latent 576"), packed) == std::nullopt);
  CHECK(check_formats(runs("61 latent 288"), packed) != std::nullopt);
  CHECK(check_formats(runs("32 full 8x128"), packed) != std::nullopt);
}

TEST_CASE("K and V may be stored differently") {
  const CacheFormats mixed{find_format("q8_0"), find_format("q4_0")};
  CHECK(cost("64 full 8x128", 12288, mixed).total == Wide{64} * 12288 * (1024 / 32 * 34 + 1024 / 32 * 18));
}

TEST_CASE("heads divide down to one on each GPU and then replicate; latent rows are whole on each") {
  for (const u64 t : {1U, 2U, 4U, 8U}) CHECK(cost("32 full 8x128", 1, bf16(), t).total * t == 131'072);
  CHECK(cost("32 full 8x128", 1, bf16(), 16).total == 131'072 / 8);
  CHECK(heads_per_gpu(8, 3) == 3);
  CHECK(heads_per_gpu(2, 4) == 1);
  for (const u64 t : {1U, 8U, 16U}) CHECK(cost("61 latent 576", 1, bf16(), t).total == 70'272);
  CHECK(cost("1 recurrent 1024:fp32 64:bf16", 1, bf16(), 4).total == 256 * 4 + 16 * 2);
}

TEST_CASE("fixed plus per token is the whole, and the slope changes where windows fill") {
  const auto model = runs("5 full 4x256; 29 window 1024 4x256; 3 recurrent 100:fp32 8:bf16");
  const auto changes = slope_changes(model);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].count == 1024);
  for (const u64 context : {1U, 1023U, 1024U, 1025U, 8192U}) {
    const SequenceCost now = sequence_cost(model, bf16(), 1, {context});
    const SequenceCost next = sequence_cost(model, bf16(), 1, {context + 1});
    CHECK(now.total == now.fixed + now.per_token * context);
    CHECK(next.total - now.total == now.per_token);
  }
  CHECK(slope_changes(runs("32 full 8x128")).empty());
}

TEST_CASE("random models: monotone in context, never cheaper split, one run or many") {
  std::mt19937 random(20260401);
  const auto pick = [&](u64 low, u64 high) { return low + random() % (high - low + 1); };
  for (int round = 0; round < 500; ++round) {
    std::vector<LayerRun> model;
    const u64 kinds = pick(1, 5);
    for (u64 i = 0; i < kinds; ++i) {
      LayerRun run;
      run.count = static_cast<u32>(pick(1, 40));
      run.kind = static_cast<LayerKind>(pick(0, 8));
      run.kv_heads = static_cast<u32>(1u << pick(0, 6));
      run.key_width = static_cast<u32>(32 * pick(1, 8));
      run.value_width = static_cast<u32>(32 * pick(0, 8));
      run.window_tokens = static_cast<u32>(pick(1, 5000));
      run.tokens_per_entry = static_cast<u32>(pick(1, 128));
      run.source_tokens = static_cast<u32>(pick(1, 2000));
      if (run.kind == LayerKind::latent) {
        run.latent_width = static_cast<u32>(32 * pick(1, 20));
        run.indexer_width = static_cast<u32>(32 * pick(0, 4));
      }
      run.state_values = pick(1, 1 << 20);
      run.conv_values = pick(0, 1 << 16);
      run.state_format = run.conv_format = find_format("fp32");
      model.push_back(run);
    }
    Wide before = 0;
    for (u64 context = 1; context < 20'000; context += pick(1, 3000)) {
      const SequenceCost whole = sequence_cost(model, bf16(), 1, {context});
      CHECK(whole.total >= before);
      before = whole.total;
      for (const u64 t : {2U, 3U, 8U, 64U}) CHECK(sequence_cost(model, bf16(), t, {context}).total * t >= whole.total);
      std::vector<LayerRun> single;
      for (LayerRun run : model) {
        for (u32 i = run.count; i > 0; --i) {
          run.count = 1;
          single.push_back(run);
        }
      }
      CHECK(sequence_cost(single, bf16(), 1, {context}).total == whole.total);
      CHECK(sequence_cost(merge_runs(single), bf16(), 1, {context}).total == whole.total);
    }
    // Pipeline stages hold every layer once, and the first is the fullest.
    const auto merged = merge_runs(model);
    for (const u64 stages : {1U, 2U, 3U, 7U}) {
      Wide sum = 0;
      const Wide first = sequence_cost(stage_runs(merged, stages, 0), bf16(), 1, {4096}).total;
      for (u64 stage = 0; stage < stages; ++stage) {
        const Wide bytes = sequence_cost(stage_runs(merged, stages, stage), bf16(), 1, {4096}).total;
        CHECK(bytes <= first);
        sum += bytes;
      }
      CHECK(sum == sequence_cost(merged, bf16(), 1, {4096}).total);
    }
  }
}

TEST_CASE("what is not stated is nothing") {
  CHECK(LayerRun{} == LayerRun{.count = 0,
                               .kind = LayerKind::full,
                               .kv_heads = 0,
                               .key_width = 0,
                               .value_width = 0,
                               .latent_width = 0,
                               .latent_value_width = 0,
                               .expanded_heads = 0,
                               .expanded_key_width = 0,
                               .expanded_value_width = 0,
                               .indexer_width = 0,
                               .window_tokens = 0,
                               .tokens_per_entry = 0,
                               .source_tokens = 0,
                               .state_values = 0,
                               .conv_values = 0});
  const Model model;
  CHECK(model.layer_count == 0);
  CHECK(model.query_heads == 0);
  CHECK(model.vocabulary == 0);
  CHECK(model.max_context == 0);
  CHECK_FALSE(model.multimodal);
  CHECK_FALSE(model.native_weights_estimated);
  CHECK(Bytes{}.count == 0);
  CHECK(Tokens{}.count == 0);
  CHECK(Fraction{}.billionths == 0);
  CHECK(Reading{}.millionths == 0);
  CHECK_FALSE(WeightBytes{}.exact);
}

TEST_CASE("every kind is known by its name") {
  for (const char* const name :
       {"full", "window", "chunked", "latent", "compressed", "recurrent", "shared", "none", "cross"}) {
    CAPTURE(name);
    const auto kind = find_kind(name);
    REQUIRE(kind);
    CHECK(std::string_view(kind_name(*kind)) == name);
  }
  CHECK_FALSE(find_kind("odd"));
  CHECK_FALSE(find_kind(""));
}

TEST_CASE("readings keep GB and GiB apart") {
  CHECK(read_decimal({1'073'741'824}).millionths == 1'073'741);
  CHECK(std::string_view(read_decimal({1'073'741'824}).unit) == "GB");
  CHECK(read_binary({1'073'741'824}).millionths == 1'000'000);
  CHECK(std::string_view(read_binary({1'073'741'824}).unit) == "GiB");
  CHECK(std::string_view(read_binary({1'073'741'823}).unit) == "MiB");
  // Small gaps are said in small units.
  CHECK(std::string_view(read_binary({1'048'575}).unit) == "KiB");
  CHECK(read_binary({36'864}).millionths == 36'000'000);
  CHECK(std::string_view(read_binary({1023}).unit) == "B");
  CHECK(std::string_view(read_decimal({999}).unit) == "B");
  CHECK(std::string_view(read_decimal({1000}).unit) == "kB");
  CHECK(std::string_view(read_decimal({kMaxExact}).unit) == "TB");
  CHECK(read_per_token({70'272}).millionths == 68'625'000);
  CHECK(std::string_view(read_per_token({512}).unit) == "B");
  CHECK(read_per_token({512}).millionths == 512'000'000);
  // Each unit begins at its own size.
  CHECK(std::string_view(read_per_token({1024}).unit) == "KiB");
  CHECK(read_per_token({1024}).millionths == 1'000'000);
  CHECK(std::string_view(read_binary({1'048'576}).unit) == "MiB");
  CHECK(read_binary({1'048'576}).millionths == 1'000'000);
}

TEST_CASE("what does not fit 2^53 is an error") {
  CHECK(to_bytes(kMaxExact, "x"));
  CHECK_FALSE(to_bytes(Wide{kMaxExact} + 1, "x"));
  CHECK(digits(Wide{1} << 127) == "170141183460469231731687303715884105728");
  CHECK(digits(0) == "0");
  CHECK(decimals(1'500'000, 1'000'000) == "1.5");
  CHECK(decimals(1, 1'000'000) == "0.000001");
}

TEST_CASE("the slope changes at every window once, from the smallest to the largest") {
  const auto changes = slope_changes(
      runs("1 window 4096 1x64; 1 window 1024 1x64; 1 chunked 8192 1x64; 1 window 4096 1x64; 1 full 1x64; "
           "1 window 1024 2x64; 1 window 2048 1x64"));
  REQUIRE(changes.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(changes[i].count == 1024u << i);
}

TEST_CASE("what keeps no rows has none, and a model of that alone has no cache") {
  for (const char* const kind : {"1 recurrent 8:fp32 8:fp32", "1 shared", "1 none"}) {
    CAPTURE(kind);
    CHECK(rows_kept(runs(kind).front(), {1000}) == 0);
    CHECK(heads_per_gpu(runs(kind).front().kv_heads, 4) == 0);
  }
  CHECK_FALSE(has_cache(runs("1 none; 1 shared")));
  CHECK(has_cache(runs("1 none; 1 recurrent 8:fp32 8:fp32")));
  CHECK(has_cache(runs("1 shared; 1 full 1x64")));
  // Nothing to attend to keeps nothing: a conversation without an image.
  auto cross = runs("1 cross 1 1x64; 1 none");
  CHECK(has_cache(cross));
  cross.front().count = 0;
  CHECK_FALSE(has_cache(cross));
  cross.front() = runs("1 cross 1 1x64").front();
  cross.front().source_tokens = 0;
  CHECK_FALSE(has_cache(cross));
  auto none = runs("1 full 1x64");
  none.front().count = 0;
  CHECK_FALSE(has_cache(none));
}

TEST_CASE("a format of packed latent rows is for rows of its width alone") {
  const CacheFormats packed{find_format("fp8_ds_mla"), find_format("fp8_ds_mla")};
  const auto refused = [&](std::string_view notation) {
    const auto error = check_formats(runs(notation), packed);
    return error ? std::string(std::string_view(code_name(error->code))) + " " + std::string(error->field) : "";
  };
  CHECK(refused("61 latent 576").empty());
  CHECK(refused("1 latent 576; 1 recurrent 8:fp32 8:fp32; 1 shared; 1 none").empty());
  CHECK(refused("61 latent 512") == "conflict kv");
  CHECK(refused("1 latent 576; 1 full 8x128") == "conflict kv");
  CHECK_FALSE(check_formats(runs("1 full 8x128"), bf16()));
}

TEST_CASE("a state of one value has its bytes, and so has a convolution of one") {
  CHECK(sequence_cost(runs("1 recurrent 1:fp32 1:bf16"), bf16(), 1, Tokens{9}).total == 4 + 2);
}
