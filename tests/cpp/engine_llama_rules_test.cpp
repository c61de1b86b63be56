// llama.cpp's rules worked out by hand: cells, streams, windows and latent rows by build, the compute buffer, and
// layers that stay on the CPU.
#include <doctest/doctest.h>

#include "answer_words.hpp"

namespace kvcap {
namespace {

using namespace test;

/// Layers of K and V of 16 bytes each, unless they say otherwise
std::string layers(std::string_view kind, u64 count,
                   std::string_view more = R"("kv_heads":1,"key_width":8,"value_width":8)") {
  Text text;
  text << R"({"kind":")" << kind << R"(","count":)" << count << (more.empty() ? "" : ",") << more << "}";
  return text.take();
}
std::string window(u64 count, u64 tokens, std::string_view kind = "window") {
  Text text;
  text << R"("window":)" << tokens << R"(,"kv_heads":1,"key_width":8,"value_width":8)";
  return layers(kind, count, text.take());
}
std::string both(std::string_view one, std::string_view other) {
  Text text;
  text << one << "," << other;
  return text.take();
}

const std::string kFull = layers("full", 2);
const std::string kLatent = layers("latent", 2,
                                   R"("latent_width":12,"latent_value_width":8,"expanded_heads":3,)"
                                   R"("expanded_key_width":5,"expanded_value_width":7)");
/// (11 + 13) × 4 bytes in each of 3, whatever their own format is
const std::string kState =
    layers("recurrent", 3, R"("state_values":11,"state_format":"bf16","conv_values":13,"conv_format":"bf16")");

Asked ask(std::string_view runs, std::string_view options, u64 context = 1000, std::string_view more = "") {
  Text text;
  text << R"({"engine":"llama.cpp","model":{"layers":[)" << runs << R"(]},"options":{)" << options
       << R"(},"weight_bytes":1,"gpu":{"memory_bytes":1000000000},"context":)" << context << more << "}";
  return Asked(text.take());
}
std::string caches(std::string_view runs, std::string_view options, u64 context = 1000, std::string_view more = "") {
  return caches_of(ask(runs, options, context, more));
}

TEST_CASE("llama.cpp's cells by build: 32 or 256, windows and a batch") {
  const auto cells = [](std::string_view options, std::string_view name = "full") {
    const std::string all = caches(both(kFull, window(2, 10)), options, 1030);
    const std::size_t at = all.find(std::string(name) + " ");
    return at == std::string::npos ? 0 : std::stoi(all.substr(at + name.size()));
  };
  CHECK(cells("") == 1280);
  CHECK(cells(R"("version":"b6980")") == 1280);
  CHECK(cells(R"("version":"b6979")") == 1056);
  CHECK(cells(R"("version":"b6979","flash_attn":false)") == 1056);
  CHECK(cells(R"("version":"b6979","flash_attn":true)") == 1280);
  CHECK(cells(R"("version":"b6980","flash_attn":false)") == 1280);
  CHECK(cells(R"("fork":"ik_llama.cpp")") == 1056);
  CHECK(cells(R"("fork":"ik_llama.cpp","flash_attn":true)") == 1280);
  CHECK(cells(R"("fork":"llama.cpp")") == 1280);

  // 10 tokens and those of a micro-batch
  CHECK(cells("", "window") == 768);  // 522
  CHECK(cells(R"("n_ubatch":246)", "window") == 256);
  CHECK(cells(R"("n_ubatch":247)", "window") == 512);
  CHECK(cells(R"("n_batch":246)", "window") == 256);
  CHECK(cells(R"("n_batch":513)", "window") == 768);
  CHECK(cells(R"("n_batch":2048)", "window") == 768);
  CHECK(cells(R"("n_ubatch":1024)", "window") == 1280);  // no more than all
  CHECK(cells(R"("version":"b5554")", "window") == 768);
  CHECK(cells(R"("version":"b5553")", "window") == 1056);
  CHECK(cells(R"("version":"b5553","n_batch":300)", "window") == 512);
  CHECK(cells(R"("version":"b5553","n_batch":300,"n_ubatch":64)", "window") == 512);
  CHECK(cells(R"("version":"b6979","n_ubatch":64)", "window") == 256);
  CHECK(cells(R"("version":"b6979","n_ubatch":64,"flash_attn":false)", "window") == 96);
  CHECK(cells(R"("version":"b6979","n_ubatch":64,"flash_attn":true)", "window") == 256);
  CHECK(cells(R"("version":"b6980","n_ubatch":64,"flash_attn":false)", "window") == 256);

  // One cache for all layers: before b5430, in the fork, and where no layer is full
  const std::string whole = "full 1280 x 4: 81920 + 81920; ";
  CHECK(caches(both(kFull, window(2, 10)), R"("version":"b5429","flash_attn":true)", 1030) == whole);
  CHECK(caches(both(kFull, window(2, 10)), R"("fork":"ik_llama.cpp","flash_attn":true)", 1030) == whole);
  CHECK(caches(both(kFull, window(2, 10)), R"("version":"b5430","n_batch":64,"flash_attn":true)", 1030) ==
        "full 1280 x 2: 40960 + 40960; window 256 x 2: 8192 + 8192; ");
  CHECK(caches(both(kFull, window(2, 10)), R"("swa_full":true)", 1030) ==
        "full 1280 x 2: 40960 + 40960; window 1280 x 2: 40960 + 40960; ");
  CHECK(caches(both(window(2, 10), layers("none", 1, "")), "", 1030) == "full 1280 x 2: 40960 + 40960; ");
  CHECK(caches(both(window(2, 10), layers("shared", 1, "")), "", 1030) == "full 1280 x 2: 40960 + 40960; ");
  CHECK(caches(both(kFull, window(2, 10, "chunked")), "", 1030) ==
        "full 1280 x 2: 40960 + 40960; window 768 x 2: 24576 + 24576; ");
  // Windows of two sizes are two caches, rows of two widths one.
  CHECK(caches(both(kFull, both(window(2, 10), window(1, 300))), "", 1030) ==
        "full 1280 x 2: 40960 + 40960; window 768 x 2: 24576 + 24576; window 1024 x 1: 16384 + 16384; ");
  CHECK(caches(both(kFull, layers("full", 1, R"("kv_heads":3,"key_width":4,"value_width":2)")), "", 1000) ==
        "full 1024 x 3: 57344 + 45056; ");  // 1024 × (2 × 16 + 24), 1024 × (2 × 16 + 12)
}

TEST_CASE("llama.cpp's streams: one for each sequence since b6040, or one for all") {
  const std::string all =
      both(both(kFull, window(2, 300)),
           both(kState, layers("cross", 1, R"("source_tokens":7,"kv_heads":1,"key_width":8,"value_width":8)")));
  const std::string apart =
      "full 1024 x 3 streams x 2: 98304 + 98304; window 1024 x 3 streams x 2: 98304 + 98304; "
      "recurrent 3 x 3: 864 (468); cross 7 x 3 streams x 1: 336 + 336; ";
  const std::string unified =
      "full 1024 x 2: 32768 + 32768; window 1024 x 2: 32768 + 32768; "
      "recurrent 3 x 3: 864 (468); cross 21 x 1: 336 + 336; ";
  CHECK(caches(all, R"("n_seq_max":3)") == apart);
  CHECK(caches(all, R"("n_seq_max":3,"version":"b6040","flash_attn":true)") == apart);
  CHECK(caches(all, R"("n_seq_max":3,"version":"b6039","flash_attn":true)") == unified);
  CHECK(caches(all, R"("n_seq_max":3,"kv_unified":true)") == unified);
  CHECK(caches(all, R"("n_seq_max":3,"kv_unified":false,"version":"b6039","flash_attn":true)") == apart);
  CHECK(caches(kFull, R"("n_seq_max":3,"fork":"ik_llama.cpp","flash_attn":true)") == "full 1024 x 2: 32768 + 32768; ");
  // Windows of all sequences: 3 × 300 + 512 in one stream of 4096
  CHECK(caches(both(kFull, window(2, 300)), R"("n_seq_max":3,"kv_unified":true,"n_ctx":4096)") ==
        "full 4096 x 2: 131072 + 131072; window 1536 x 2: 49152 + 49152; ");
  // Three snapshots of a state for each of two sequences
  CHECK(caches(both(kFull, kState), R"("n_seq_max":2,"n_rs_seq":2)") ==
        "full 1024 x 2 streams x 2: 65536 + 65536; recurrent 6 x 3: 1728 (936); ");
  CHECK(caches(both(kFull, kState), R"("n_seq_max":2,"n_rs_seq":2,"kv_unified":true)") ==
        "full 1024 x 2: 32768 + 32768; recurrent 6 x 3: 1728 (936); ");

  const auto tokens = [](std::string_view options) { return ask(kFull, options).whole("kv_tokens"); };
  CHECK(tokens(R"("n_seq_max":3)") == 3072);
  CHECK(tokens(R"("n_seq_max":3,"kv_unified":true)") == 1024);
  CHECK(tokens(R"("n_seq_max":3,"n_ctx":4000)") == 3 * 1536);  // 1333 each
  CHECK(tokens(R"("n_seq_max":3,"n_ctx":4000,"kv_unified":true)") == 4096);
  CHECK(tokens(R"("n_seq_max":3,"n_ctx":3000)") == 3072);
  CHECK(ask(kFull, R"("n_seq_max":3,"n_ctx":2999)").words("error.field") == "options.n_ctx");
  CHECK(tokens(R"("n_seq_max":3,"n_ctx":1000,"kv_unified":true)") == 1024);
  CHECK(ask(kFull, R"("n_seq_max":3,"n_ctx":999,"kv_unified":true)").words("error.field") == "options.n_ctx");
  CHECK(notes_of(ask(kFull, R"("n_seq_max":3)")) == "reserves_at_start(sequences 3); ");
}

TEST_CASE("llama.cpp's latent rows by build: heads, a second V, or the latent alone") {
  const auto cached = [](std::string_view options) {
    const Asked answer = ask(kLatent, std::string(R"("flash_attn":true,)") + std::string(options));
    return caches_of(answer) + gaps_of(answer) + notes_of(answer);
  };
  // 1024 cells of 3 × 5 and 3 × 7 values, or of 12 and 8, in 2 layers; 1000 of 24 bytes are written.
  const std::string heads =
      "full 1024 x 2: 61440 + 86016; padding 3456; expanded_heads 96000; latent_stored_as_heads; "
      "reserves_at_start(sequences 1); ";
  const std::string second =
      "latent 1024 x 2: 49152 + 32768; padding 1920; value_copy 32000; latent_stored_twice; "
      "reserves_at_start(sequences 1); ";
  const std::string alone = "latent 1024 x 2: 49152 + 0; padding 1152; reserves_at_start(sequences 1); ";
  CHECK(cached(R"("version":"b5139")") == heads);
  CHECK(cached(R"("version":"b5140")") == second);
  CHECK(cached(R"("version":"b7829")") == second);
  CHECK(cached(R"("version":"b7830")") == alone);
  CHECK(cached(R"("mla_attn":0)") == heads);
  CHECK(cached(R"("mla_attn":1)") == second);
  CHECK(cached(R"("mla_attn":2)") == alone);
  CHECK(cached(R"("mla_attn":3,"version":"b5139")") == alone);
  CHECK(cached(R"("fork":"ik_llama.cpp")") == alone);
  CHECK(cached(R"("fork":"ik_llama.cpp","version":"b5139")") == alone);
  CHECK(cached(R"("fork":"ik_llama.cpp","version":"b5140")") == alone);
  CHECK(cached(R"("fork":"ik_llama.cpp","mla_attn":1)") == alone);
  CHECK(caches(kLatent, R"("fork":"ik_llama.cpp","mla_attn":1)") == "latent 1024 x 2: 49152 + 32768; ");
  CHECK(caches(kLatent, R"("mla_attn":1)") == "latent 1024 x 2: 49152 + 32768; ");
  // Index keys are in K's format; they are stored beside the rows.
  const std::string indexed = layers("latent", 2, R"("latent_width":12,"latent_value_width":8,"indexer_width":4)");
  CHECK(caches(indexed, "") == "latent 1024 x 2: 49152 + 0; indexer 1024 x 2: 16384 + 0; ");
  CHECK(ask(indexed, "").whole("kv_reserved_per_sequence") == 2 * 1024 * (24 + 8));
  CHECK(gaps_of(ask(indexed, "")) == "padding 1536; ");  // 24 × 64
  CHECK(steps_of(ask(indexed, ""), "kv_reserved_per_sequence") == "2 layers × 1024 cells × 32 bytes_per_row = 65536; ");
  CHECK(caches(layers("latent", 1, R"("latent_width":2,"latent_value_width":1)"), R"("mla_attn":1)") ==
        "latent 1024 x 1: 4096 + 2048; ");
  CHECK(caches(both(indexed, layers("latent", 1, R"("latent_width":12,"indexer_width":4)")), "") ==
        "latent 1024 x 3: 73728 + 0; indexer 1024 x 3: 24576 + 0; ");
  // K that serves as V is stored twice, but beside latent rows.
  const std::string shared = layers("full", 1, R"("kv_heads":1,"key_width":8,"value_width":0)");
  CHECK(caches(shared, "") == "full 1024 x 1: 16384 + 16384; ");
  CHECK(gaps_of(ask(shared, "")) == "padding 768; value_copy 16000; ");
  CHECK(caches(both(shared, layers("latent", 1, R"("latent_width":1)")), "") ==
        "full 1024 x 1: 16384 + 0; latent 1024 x 1: 2048 + 0; ");
  // V of one value is V.
  CHECK(caches(layers("full", 1, R"("kv_heads":1,"key_width":8,"value_width":1)"), "") ==
        "full 1024 x 1: 16384 + 2048; ");
  // Entries for 3 tokens: 342 of 1024
  CHECK(caches(layers("compressed", 2, R"("kv_heads":1,"key_width":8,"value_width":8,"tokens_per_entry":3)"), "") ==
        "compressed 342 x 2: 10944 + 10944; ");
  CHECK(caches(layers("compressed", 2, R"("latent_width":1,"tokens_per_entry":3)"), "") ==
        "compressed 342 x 2: 1368 + 0; ");
  const Asked entries =
      ask(layers("compressed", 2, R"("kv_heads":1,"key_width":8,"value_width":8,"tokens_per_entry":3)"), "");
  CHECK(gaps_of(entries) == "padding 512; ");  // 342 − 334
}

TEST_CASE("llama.cpp's gaps: cells beyond the tokens, windows in flight or whole, snapshots") {
  const auto gaps = [](std::string_view runs, std::string_view options) { return gaps_of(ask(runs, options)); };
  CHECK(gaps(both(kFull, window(2, 10)), "") == "padding 1536; window_in_flight 48512; ");  // 24 × 64, 758 × 64
  CHECK(gaps(both(kFull, window(2, 10)), R"("swa_full":true)") == "padding 1536; window_full_length 64896; ");
  CHECK(gaps(both(kFull, window(2, 10, "chunked")), "") == "padding 1536; window_in_flight 48512; ");
  // States of 24 values in 2 bytes are written, in 4 bytes reserved, with two snapshots three times.
  CHECK(gaps(kState, "") == "states 144; ");
  CHECK(gaps(kState, R"("n_rs_seq":2)") == "states 720; ");
  const auto noted = [](std::string_view runs, std::string_view options) {
    return notes_of(ask(runs, options)).find("windows_stored_full") != std::string::npos;
  };
  CHECK(noted(both(kFull, window(2, 10)), R"("swa_full":true)"));
  CHECK(noted(window(2, 10), ""));
  CHECK(noted(window(2, 10, "chunked"), ""));
  CHECK_FALSE(noted(both(kFull, window(2, 10)), ""));
  CHECK_FALSE(noted(kFull, R"("swa_full":true)"));
}

TEST_CASE("llama.cpp's compute buffer: logits or scores of a micro-batch, and more for each of its tokens") {
  const auto buffer = [](std::string_view runs, std::string_view options, std::string_view sizes = "") {
    Text text;
    text << R"({"engine":"llama.cpp","model":{"layers":[)" << runs << "]" << sizes << R"(},"options":{)" << options
         << R"(},"weight_bytes":1,"gpu":{"memory_bytes":100000000000},"context":8192})";
    return parts_of(Asked(text.take()));
  };
  const auto expected = [](u64 best, u64 low, u64 high) {
    Text text;
    text << "compute_buffer " << best << " (" << low << " to " << high << "); ";
    return text.take();
  };
  // With flash attention the logits of 512 tokens, of a vocabulary of 128256 (32000 to 262144), and 100 KiB (6 to 448)
  const std::string flash = expected(512ull * (128'256 * 4 + 100 * 1024), 512ull * (32'000 * 4 + 6 * 1024),
                                     512ull * (262'144 * 4 + 448 * 1024));
  CHECK(buffer(kFull, "") == flash);
  CHECK(buffer(kFull, R"("flash_attn":true,"version":"b6324")") == flash);
  CHECK(buffer(kFull, R"("version":"b6325")") == flash);
  CHECK(buffer(kFull, R"("fork":"ik_llama.cpp","flash_attn":true)") == flash);
  CHECK(buffer(kFull, "", R"(,"vocabulary":1)") ==
        expected(512ull * (4 + 100 * 1024), 512ull * (4 + 6 * 1024), 512ull * (4 + 448 * 1024)));
  CHECK(buffer(kFull, R"("n_ubatch":3)", R"(,"vocabulary":1000)") ==
        expected(3 * (4000 + 100 * 1024), 3 * (4000 + 6 * 1024), 3 * (4000 + 448 * 1024)));
  // Without it the scores of 32 heads (8 to 128) over 8192 cells, where those are more
  const std::string scores = expected(512ull * (8192 * 32 * 4 + 100 * 1024), 512ull * (8192 * 8 * 4 + 6 * 1024),
                                      512ull * (8192 * 128 * 4 + 448 * 1024));
  CHECK(buffer(kFull, R"("flash_attn":false)") == scores);
  CHECK(buffer(kFull, R"("version":"b6324")") == scores);
  CHECK(buffer(kFull, R"("fork":"ik_llama.cpp")") == scores);
  CHECK(buffer(kFull, R"("fork":"ik_llama.cpp","version":"b6325")") == scores);
  CHECK(buffer(kFull, R"("flash_attn":false)", R"(,"vocabulary":1,"query_heads":1)") ==
        expected(512ull * (8192 * 4 + 100 * 1024), 512ull * (8192 * 4 + 6 * 1024), 512ull * (8192 * 4 + 448 * 1024)));
  CHECK(buffer(kFull, R"("flash_attn":false)", R"(,"vocabulary":8193,"query_heads":1)") ==
        expected(512ull * (8193 * 4 + 100 * 1024), 512ull * (8193 * 4 + 6 * 1024), 512ull * (8193 * 4 + 448 * 1024)));
  // Latent rows: 3 MiB (1 to 12) for each token, scores at most
  const std::string latent =
      expected(512ull * (4 + 3072 * 1024), 512ull * (4 + 1024 * 1024), 512ull * (4 + 12288 * 1024));
  CHECK(buffer(kLatent, "", R"(,"vocabulary":1)") == latent);
  CHECK(buffer(both(kFull, kLatent), "", R"(,"vocabulary":1)") == latent);
  CHECK(buffer(kLatent, R"("flash_attn":false)", R"(,"vocabulary":1,"query_heads":2)") ==
        expected(512ull * (4 + 3072 * 1024), 512ull * (4 + 1024 * 1024), 512ull * (8192 * 2 * 4 + 12288 * 1024)));
  CHECK(buffer(kLatent, R"("mla_attn":0,"flash_attn":true)", R"(,"vocabulary":1)") ==
        expected(512ull * (4 + 100 * 1024), 512ull * (4 + 6 * 1024), 512ull * (4 + 448 * 1024)));
}

TEST_CASE("llama.cpp's conversations: as many caches as fit, to the byte, and a part of the next") {
  const auto fit = [](std::string_view runs, u64 pool, std::string_view options = "", std::string_view more = "") {
    Text text;
    text << R"("kv_memory_bytes":)" << pool << options;
    return ask(runs, text.take(), 1000, more);
  };
  // 1024 cells of 64 bytes each
  for (const u64 count : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 100u, 127u, 128u, 129u}) {
    CAPTURE(count);
    CHECK(fit(kFull, count * 65536).whole("sequences") == count);
    CHECK(fit(kFull, count * 65536 - 1).whole("sequences") == count - 1);
  }
  CHECK(fit(kFull, 0).whole("sequences") == 0);
  CHECK(fit(kFull, 0).words("concurrency") == "0");
  CHECK(fit(kFull, 32768).words("concurrency") == "0.5");
  CHECK(fit(kFull, 98304).words("concurrency") == "1.5");
  const Asked some = fit(kFull, 163840);
  CHECK(some.words("concurrency") == "2.5");
  CHECK(some.whole("kv_reserved_per_sequence") == 65536);
  CHECK(steps_of(some, "kv_reserved_per_sequence") == "2 layers × 1024 cells × 32 bytes_per_row = 65536; ");
  CHECK(steps_of(some, "sequences") == "163840 bytes_left ÷ 65536 bytes_per_conversation ~ 2; ");
  CHECK(range_of(some, "sequences_range").empty());
  // In one buffer 768 cells of windows are enough for 25 conversations, and one more is of full rows alone.
  const std::string mixed = both(kFull, window(2, 10));
  const Asked unified = fit(mixed, 49152 + 3 * 65536, R"(,"kv_unified":true)");
  CHECK(unified.whole("sequences") == 3);
  CHECK(unified.words("concurrency") == "3");
  CHECK(steps_of(unified, "sequences") == "245760 bytes_left ÷ 81920 bytes_per_conversation ~ 3; ");
  CHECK(fit(mixed, 49152 + 4 * 65536 - 1, R"(,"kv_unified":true)").whole("sequences") == 3);
  CHECK(fit(mixed, 49152 + 25 * 65536, R"(,"kv_unified":true)").whole("sequences") == 25);
  CHECK(fit(mixed, 49152 + 26 * 65536, R"(,"kv_unified":true)").whole("sequences") == 25);  // 1024 from the 26th on
  CHECK(fit(mixed, 65536 + 26 * 65536, R"(,"kv_unified":true)").whole("sequences") == 26);
  CHECK(fit(mixed, 49152 + 3 * 65536).whole("sequences") == 2);  // of 114688 each
  CHECK(steps_of(fit(mixed, 163840, R"(,"kv_unified":true)"), "sequences") ==
        "163840 bytes_left ÷ 114688 bytes_per_conversation ~ 1; ");
  CHECK(steps_of(fit(mixed, 49152 + 5 * 65536, R"(,"kv_unified":true)"), "sequences") ==
        "376832 bytes_left ÷ 75367 bytes_per_conversation ~ 5; ");
  CHECK(steps_of(fit(mixed, 180224, R"(,"kv_unified":true)"), "sequences") ==
        "180224 bytes_left ÷ 90112 bytes_per_conversation ~ 2; ");
  CHECK(steps_of(fit(mixed, 0), "kv_reserved_per_sequence") ==
        "full: 2 layers × 1024 cells × 32 bytes_per_row = 65536; window: 2 layers × 768 cells × 32 bytes_per_row = "
        "49152; 65536 full + 49152 window = 114688; ");
  CHECK(steps_of(fit(kState, 1000), "kv_reserved_per_sequence") == "3 layers × 1 cells × 96 bytes_per_state = 288; ");
  CHECK(steps_of(fit(kState, 1000, R"(,"n_rs_seq":2)"), "kv_reserved_per_sequence") ==
        "3 layers × 3 cells × 96 bytes_per_state = 864; ");
  CHECK(fit(kState, 1000).whole("sequences") == 3);
  CHECK(steps_of(fit(kState, 1000, R"(,"kv_unified":true)"), "sequences") ==
        "1000 bytes_left ÷ 288 bytes_per_conversation ~ 3; ");
  CHECK(steps_of(fit(kFull, 131072, "", R"(,"data_parallel":2)"), "sequences") ==
        "131072 bytes_left ÷ 65536 bytes_per_conversation × 2 copies ~ 4; ");
  // The first of two stages has 2 of 3 layers.
  const Asked stages = fit(layers("full", 3), 163840, "", R"(,"pipeline_parallel":2)");
  CHECK(stages.whole("sequences") == 2);
  CHECK(stages.whole("kv_reserved_per_sequence") == 98304);
  CHECK(stages.whole("kv_memory_bytes") == 327'680);
  const Asked copies = fit(kFull, 163840, "", R"(,"data_parallel":3)");
  CHECK(copies.whole("sequences") == 6);
  CHECK(copies.words("concurrency") == "7.5");
  CHECK(steps_of(copies, "sequences") == "163840 bytes_left ÷ 65536 bytes_per_conversation × 3 copies ~ 6; ");
}

TEST_CASE("llama.cpp's room: weights and buffer off the memory, less of both with layers on the CPU") {
  // A micro-batch of one token takes 4 + 100 KiB (6 to 448).
  const auto room = [](u64 weights, std::string_view options = "", std::string_view sizes = "",
                       std::string_view more = "") {
    Text text;
    text << R"({"engine":"llama.cpp","model":{"vocabulary":1,"layers":[)" << layers("full", 3) << "]" << sizes
         << R"(},"options":{"n_ubatch":1)" << options << R"(},"weight_bytes":)" << weights
         << R"(,"gpu":{"memory_bytes":10000000},"context":1000)" << more << "}";
    return Asked(text.take());
  };
  const Asked all = room(9'000'001);
  CHECK(all.whole("kv_memory_bytes_per_gpu") == 999'999 - 102'404);
  CHECK(range_of(all, "kv_memory_bytes_per_gpu_range") == "541243 993851 ");
  CHECK(steps_of(all, "kv_memory_bytes_per_gpu") ==
        "10000000 bytes_per_gpu − 9000001 weight_bytes − 102404 compute_buffer = 897595; ");
  CHECK(all.whole("sequences") == 9);  // of 98304
  CHECK(range_of(all, "sequences_range") == "5 10 ");
  CHECK(all.words("confidence.kv_memory_bytes") == "estimate");
  CHECK(room(9'897'596).words("limit") == "one_sequence_too_long");
  CHECK(room(9'897'596).whole("kv_memory_bytes_per_gpu") == 0);
  CHECK(room(9'897'597).words("limit") == "weights_do_not_fit");
  CHECK(room(9'897'597).words("concurrency") == "0");
  CHECK(room(9'897'597).whole("sequences") == 0);
  CHECK(range_of(room(9'000'001, "", "", R"(,"data_parallel":2)"), "sequences_range") == "10 20 ");
  CHECK(steps_of(room(9'897'597), "kv_memory_bytes_per_gpu").empty());
  CHECK(room(9'799'292).whole("sequences") == 1);  // 98304 are left
  CHECK(room(9'799'293).whole("sequences") == 0);

  // Two of three layers are on the GPU: 6,000,001 bytes of weights, rounded up, and two layers' cells.
  const Asked two = room(9'000'001, R"(,"n_gpu_layers":2)");
  CHECK(two.whole("kv_memory_bytes_per_gpu") == 10'000'000 - 6'000'001 - 102'404);
  CHECK(two.whole("sequences") == 59);  // of 65536
  CHECK(notes_of(two) == "layers_on_cpu(layers 1, of 3); reserves_at_start(sequences 1); ");
  CHECK(two.whole("kv_reserved_per_sequence") == 98304);
  CHECK(two.at("memory")->get("segments")->begin()->get("bytes")->text == "6000001");
  CHECK(notes_of(room(9'000'001, R"(,"n_gpu_layers":3)")) == "reserves_at_start(sequences 1); ");
  CHECK(room(9'000'001, R"(,"n_gpu_layers":4)").whole("kv_memory_bytes_per_gpu") == 897'595);
  CHECK(room(9'000'001).at("memory")->get("segments")->begin()->get("bytes")->text == "9000001");
  // Of five layers as the model's config counts them, with 3 that have a cache: 3 × 3 / 5 rounded up
  const Asked counted = room(9'000'001, R"(,"n_gpu_layers":3)", R"(,"layer_count":5)");
  CHECK(counted.whole("kv_memory_bytes_per_gpu") == 10'000'000 - 5'400'001 - 102'404);
  CHECK(counted.whole("sequences") == 68);  // of 65536
  CHECK(notes_of(counted) == "layers_on_cpu(layers 2, of 5); reserves_at_start(sequences 1); ");
  CHECK(room(9'000'001, R"(,"n_gpu_layers":1)", R"(,"layer_count":5)").whole("sequences") == 247);  // of 32768
  CHECK(room(9'000'001, "", R"(,"layer_count":2)").whole("kv_memory_bytes_per_gpu") == 897'595);
  const Asked halves = room(9'000'001, "", "", R"(,"pipeline_parallel":2)");
  CHECK(halves.at("memory")->get("segments")->begin()->get("bytes")->text == "9000001");
  // A card's memory is what programs see of it.
  const Gpu* const card = find_gpu("rtx-4090");
  REQUIRE(card != nullptr);
  const Asked named(R"({"engine":"llama.cpp","gpu":"rtx-4090","weight_bytes":1,"options":{"n_ubatch":1},"model":)"
                    R"({"vocabulary":1,"layers":[)" +
                    kFull + "]}}");
  CHECK(named.whole("kv_memory_bytes_per_gpu") == (card->runtime_mib << 20) - 1 - 102'404);
  // On two GPUs: each half of the weights, and two of three layers
  const Asked stages = room(9'000'001, R"(,"n_gpu_layers":2)", "", R"(,"pipeline_parallel":2)");
  CHECK(stages.whole("kv_memory_bytes_per_gpu") == 10'000'000 - 3'000'001 - 102'404);
  CHECK(stages.at("memory")->get("segments")->begin()->get("bytes")->text == "6000002");
  CHECK(stages.whole("sequences") == 210);  // of 32768
}

}  // namespace
}  // namespace kvcap
