// llama.cpp's caches against what builds of it and of its fork printed: cells equal, MiB to the printed digit.
#include <algorithm>
#include <cmath>

#include "engine_records.hpp"

using namespace kvcap;
using namespace records;

namespace {

std::string request_of(const Json& record) {
  json::Writer out;
  out.begin_object();
  const NamedModel* const model = model_of(record);
  REQUIRE_MESSAGE(model != nullptr, text_of(record.get("id")));
  write_model(out, *model);
  out.key("engine").text("llama.cpp");
  out.key("gpu").begin_object().key("memory_bytes").number(Wide{1} << 40).end_object();
  if (const auto* context = record.get("max_model_len")) out.key("context").number(std::stoull(text_of(context)));
  const json::Value& details = *record.get("kv_detail");
  if (details.count() != 0) {
    const json::Value& detail = *details.begin();
    const std::string k = text_of(detail.get("k_type"));
    const std::string v = detail.get("v_type") != nullptr ? text_of(detail.get("v_type")) : k;
    out.key("kv").begin_object().key("k").text(std::string_view(k)).key("v").text(std::string_view(v)).end_object();
  }
  out.key("options").begin_object();
  const auto whole = [&](const char* field, const char* option) {
    if (const auto* value = record.get(field)) out.key(option).number(std::stoull(text_of(value)));
  };
  whole("n_ubatch", "n_ubatch");
  whole("n_seq_max", "n_seq_max");
  whole("rs_seq", "n_rs_seq");
  whole("mla_attn", "mla_attn");
  if (const auto* flash = record.get("flash_attn")) out.key("flash_attn").boolean(flash->text == "1");
  if (const auto* version = record.get("engine_version")) out.key("version").text(version->text);
  if (text_of(record.get("engine")).starts_with("ik_")) out.key("fork").text("ik_llama.cpp");
  out.end_object().end_object();
  return out.take();
}

/// Whether `bytes` print as these MiB with two decimals.
bool prints_as(double bytes, double mib) { return std::abs(bytes / 1048576 - mib) <= 0.005 + 1e-9; }

/// The cache that a record's kind names.
const json::Value* cache_of(const Json& answer, const std::string& kind) {
  if (kind == "swa") return cache_named(answer, "window");
  if (kind == "mla") return cache_named(answer, "latent");
  const json::Value* const full = cache_named(answer, "full");
  return full != nullptr ? full : cache_named(answer, "latent");
}

std::string ask_text(const std::string& model, const std::string& context, const std::string& options,
                     const std::string& more = "") {
  return R"({"engine":"llama.cpp","gpu":"rtx-3090","model":")" + model + R"(","context":)" + context +
         R"(,"options":{)" + options + "}" + more + "}";
}

double cells_in(const std::string& model, const std::string& context, const std::string& options,
                const std::string& cache) {
  const Json answer = ask(ask_text(model, context, options));
  const json::Value* const found = cache_named(answer, cache);
  return found == nullptr ? 0 : number_of(found->get("cells"));
}

}  // namespace

TEST_CASE("every record of llama.cpp, ik_llama.cpp and ollama: cells equal, MiB to the printed digit") {
  Summary summary;
  std::size_t records = 0;
  std::vector<double> errors;
  std::printf("%-7s %-10s %16s %16s %9s\n", "record", "cache", "printed MiB", "computed MiB", "ratio");
  for (const Json& record : read_records("llama")) {
    const std::string id = text_of(record.get("id"));
    CAPTURE(id);
    ++records;
    const Json answer = ask(request_of(record));
    const std::string group = text_of(record.get("engine")) + " " + text_of(record.get("attention_kind"));
    const auto compare = [&](const char* what, double printed, double bytes) {
      const bool same = prints_as(bytes, printed);
      const double ratio = printed == 0 ? 1 + bytes : bytes / 1048576 / printed;
      std::printf("%-7s %-10s %16.2f %16.4f %9.5f\n", id.c_str(), what, printed, bytes / 1048576, ratio);
      summary[group].add(same, ratio);
      errors.push_back(std::abs(ratio - 1));
      CHECK_MESSAGE(same, id << " " << what << ": printed " << printed << " MiB, computed " << bytes / 1048576);
    };
    for (const json::Value& detail : *record.get("kv_detail")) {
      const std::string kind = text_of(detail.get("kind"));
      const json::Value* const cache = cache_of(answer, kind);
      REQUIRE_MESSAGE(cache != nullptr, id << " " << kind);
      CHECK(number_of(cache->get("cells")) == number_of(detail.get("cells")));
      const json::Value& width = *detail.get("n_embd_k");
      // With a list of widths the printed count takes in layers of width 0.
      if (width.is(json::Kind::number)) CHECK(number_of(cache->get("layers")) == number_of(detail.get("layers")));
      if (detail.get("n_seqs") != nullptr) {
        CHECK(number_of(cache->get("streams")) == number_of(detail.get("n_seqs")));
      }
      compare((kind + " K").c_str(), number_of(detail.get("k_mib")), number_of(cache->get("k_bytes")));
      compare((kind + " V").c_str(), number_of(detail.get("v_mib")), number_of(cache->get("v_bytes")));
    }
    if (const json::Value* const states = record.get("recurrent_mib")) {
      const json::Value* const cache = cache_named(answer, "recurrent");
      REQUIRE_MESSAGE(cache != nullptr, id);
      const double all = number_of(cache->get("state_bytes"));
      const double conv = number_of(cache->get("conv_bytes"));
      compare("states", number_of(states->get("total")), all);
      compare("conv", number_of(states->get("r")), conv);
      compare("state", number_of(states->get("s")), all - conv);
    }
  }
  print(summary);
  // The caches hang on model, length and flags alone: no printed memory went into them.
  std::ranges::sort(errors);
  const auto percent = [&](double share) {
    return errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))] * 100;
  };
  std::printf(
      "End to end: %zu figures of %zu records, median error %.3f %%, 90th percentile %.3f %%, largest %.3f %%\n",
      errors.size(), records, percent(0.5), percent(0.9), percent(1));
  CHECK(records >= 80);
  CHECK(percent(0.9) <= 0.1);
}

TEST_CASE("compute buffers: the estimate's range holds what plain models printed") {
  int within = 0;
  int compared = 0;
  std::printf("%-7s %12s %12s %12s %12s\n", "record", "printed MiB", "estimate", "low", "high");
  for (const Json& record : read_records("llama")) {
    const json::Value* const buffers = record.get("compute_buffer_mib");
    if (buffers == nullptr) continue;
    double printed = 0;
    for (const json::Value& one : *buffers) printed = std::max(printed, number_of(&one));
    const Json answer = ask(request_of(record).insert(1, R"("weight_bytes":1,)"));
    for (const json::Value& part : *answer.get("parts")) {
      if (text_of(part.get("code")) != "compute_buffer") continue;
      const double mib = 1048576;
      const double low = number_of(part.get("low")) / mib;
      const double high = number_of(part.get("high")) / mib;
      std::printf("%-7s %12.2f %12.2f %12.2f %12.2f\n", text_of(record.get("id")).c_str(), printed,
                  number_of(part.get("bytes")) / mib, low, high);
      CHECK(low <= high);
      ++compared;
      within += printed >= low - 0.01 && printed <= high + 0.01 ? 1 : 0;
    }
  }
  std::printf("%d of %d within the range\n", within, compared);
  CHECK(compared > 40);
  CHECK(within * 10 >= compared * 7);
}

TEST_CASE("window caches hold the windows of their stream and a micro-batch, padded to 256") {
  const auto window = [](const std::string& model, const std::string& options) {
    return cells_in(model, "32768", options, "window");
  };
  CHECK(window("gpt-oss-20b", "") == 768);
  CHECK(window("gemma-3-4b", "") == 1536);
  CHECK(window("gemma-3n-e4b", "") == 1024);
  CHECK(window("gpt-oss-120b", R"("n_ubatch":1024,"parallel":2)") == 1280);
  CHECK(window("gemma-3-4b", R"("n_parallel":2,"kv_unified":true)") == 2560);
  CHECK(window("gemma-3-4b", R"("swa_full":true)") == 32768);
  // Before, and in the fork, there is one cache for all layers.
  for (const char* options : {R"("version":"b5400")", R"("fork":"ik_llama.cpp")"}) {
    const Json answer = ask(ask_text("gemma-3-4b", "32768", options));
    CHECK(cache_named(answer, "window") == nullptr);
    CHECK(number_of(cache_named(answer, "full")->get("layers")) == 34);
  }
  CHECK(window("gemma-3-4b", R"("version":"b5500")") == 1024 + 2048);
  CHECK(cells_in("gemma-3-4b", "1024", "", "window") == 1024);
  // A model without a full layer has no window in its GGUF.
  CHECK(cells_in("mistral-7b-v0.1", "32768", "", "full") == 32768);
}

TEST_CASE("a context is a multiple of 256 cells, in builds before b6980 of 32 unless there is flash attention") {
  const auto cells = [](const std::string& options) { return cells_in("llama-3.1-8b", "10000", options, "full"); };
  CHECK(cells("") == 10240);
  CHECK(cells(R"("flash_attn":false)") == 10240);
  CHECK(cells(R"("version":"b6980")") == 10240);
  CHECK(cells(R"("version":"b6979")") == 10016);
  CHECK(cells(R"("version":"b6979","flash_attn":true)") == 10240);
  CHECK(cells(R"("fork":"ik_llama.cpp")") == 10016);
  CHECK(cells(R"("fork":"ik_llama.cpp","flash_attn":true)") == 10240);
}

TEST_CASE("streams: one for each sequence, or one for all") {
  const auto pool = [](const std::string& options) {
    const Json answer = ask(ask_text("llama-3.1-8b", "8192", options));
    const json::Value& full = *cache_named(answer, "full");
    return std::pair(number_of(full.get("streams")), number_of(full.get("k_bytes")));
  };
  const double one = 32.0 * 8192 * 1024 * 2;
  CHECK(pool(R"("n_seq_max":4)") == std::pair(4.0, 4 * one));
  CHECK(pool(R"("n_seq_max":4,"kv_unified":true)") == std::pair(1.0, one));
  CHECK(pool(R"("n_seq_max":4,"engine_version":"b5273")") == std::pair(1.0, one));
  CHECK(pool(R"("n_seq_max":4,"n_ctx":65536)") == std::pair(4.0, 8 * one));
  CHECK(pool(R"("n_seq_max":4,"n_ctx":65536,"kv_unified":true)") == std::pair(1.0, 8 * one));
}

TEST_CASE("latent layers by build") {
  const auto caches = [](const std::string& options) {
    const Json answer = ask(ask_text("deepseek-v3", "4096", options));
    const json::Value* cache = cache_named(answer, "latent");
    if (cache == nullptr) cache = cache_named(answer, "full");
    return std::pair(number_of(cache->get("k_bytes")), number_of(cache->get("v_bytes")));
  };
  const double row = 61.0 * 4096 * 2;
  CHECK(caches(R"("version":"b4436")") == std::pair(row * 24576, row * 16384));
  CHECK(caches(R"("version":"b5614")") == std::pair(row * 576, row * 512));
  CHECK(caches("") == std::pair(row * 576, 0.0));
  CHECK(caches(R"("fork":"ik_llama.cpp","mla":1,"flash_attn":false)") == std::pair(row * 576, row * 512));
  CHECK(caches(R"("fork":"ik_llama.cpp","mla":1,"flash_attn":true)") == std::pair(row * 576, 0.0));
  CHECK(caches(R"("fork":"ik_llama.cpp","mla":3)") == std::pair(row * 576, 0.0));
  const std::string bare =
      R"({"engine":"llama.cpp","model":{"layers":[{"kind":"latent","count":2,"latent_width":576}]},"options":{"version":")";
  CHECK(error_of(bare + R"(b4436"}})") == "missing model.layers");
  CHECK(error_of(bare + R"(b5614"}})") == "missing model.layers");
  CHECK(error_of(bare + R"(b9000"}})").empty());
}

TEST_CASE("index keys are written in K's format, as they are stored") {
  for (const auto& entry : catalogue()) {
    for (const char* kv : {R"("bf16")", R"("q8_0")", R"("q4_0")", R"({"k":"iq4_nl","v":"fp32"})"}) {
      CAPTURE(entry.id);
      CAPTURE(kv);
      const std::string more = std::string(R"(,"weight_bytes":1,"kv":)") + kv;
      const Json answer = ask(ask_text(std::string(entry.id), "512", "", more));
      if (cache_named(answer, "indexer") == nullptr) continue;
      double gaps = 0;
      for (const json::Value& gap : *answer.get("gaps")) gaps += number_of(gap.get("bytes"));
      CHECK(gaps == number_of(answer.get("kv_reserved_per_sequence")) - number_of(answer.get("kv_bytes_per_sequence")));
    }
  }
  const auto written = [](const char* kv) {
    return number_of(ask(ask_text("deepseek-v3.2", "1", "", std::string(R"(,"weight_bytes":1,"kv":)") + kv))
                         .get("kv_bytes_per_token"));
  };
  CHECK(written(R"("bf16")") == 61 * (576 + 128) * 2);
  CHECK(written(R"("q4_0")") == 61 * (576 + 128) * 18 / 32.0);
}

TEST_CASE("layers on the CPU leave room on the GPU") {
  const auto answer = [](const std::string& options) {
    return ask(ask_text("llama-3.1-8b", "8192", options, R"(,"weights":"bf16","parameters":8030261248)"));
  };
  const Json all = answer("");
  const Json half = answer(R"("n_gpu_layers":16)");
  CHECK(number_of(half.get("kv_memory_bytes_per_gpu")) - number_of(all.get("kv_memory_bytes_per_gpu")) == 8030261248.0);
  CHECK(number_of(half.get("sequences")) > 2 * number_of(all.get("sequences")));
  CHECK(number_of(half.get("kv_reserved_per_sequence")) == number_of(all.get("kv_reserved_per_sequence")));
  // As many layers as there are, or more, are all of them.
  CHECK(number_of(answer(R"("n_gpu_layers":99)").get("sequences")) == number_of(all.get("sequences")));
}

TEST_CASE("as many conversations as fit beside weights and buffer, on the GPU with the most layers") {
  const Json one = ask(ask_text("llama-3.1-8b", "8192", R"("kv_memory_bytes":10737418240)"));
  CHECK(number_of(one.get("sequences")) == 10);
  // 32 layers on 3 GPUs: the fullest has 11.
  const Json three = ask(ask_text("llama-3.1-8b", "8192", R"("kv_memory_bytes":10737418240)", R"(,"gpus":3)"));
  CHECK(number_of(three.get("sequences")) == 29);
  const Json unified = ask(ask_text("gemma-3-4b", "8192", R"("kv_memory_bytes":10737418240,"kv_unified":true)"));
  const Json streams = ask(ask_text("gemma-3-4b", "8192", R"("kv_memory_bytes":10737418240)"));
  CHECK(number_of(unified.get("sequences")) >= number_of(streams.get("sequences")));
}

TEST_CASE("what llama.cpp cannot do is refused by field") {
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", "", R"(,"kv":"fp8")")) == "unsupported kv.k");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", "", R"(,"kv":{"k":"q8_0","v":"nvfp4"})")) == "unsupported kv.v");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", "", R"(,"tensor_parallel":2)")) == "unsupported tensor_parallel");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("n_ctx":4096)")) == "conflict options.n_ctx");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("n_ctx":16384,"n_seq_max":4)")) == "conflict options.n_ctx");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("n_ubatch":0)")) == "out_of_range options.n_ubatch");
  CHECK(error_of(ask_text("llama-3.1-8b", "2147483648", R"("n_seq_max":65536)")) == "out_of_range options.n_seq_max");
  CHECK(error_of(ask_text("llama-3.1-8b", "2147483648", R"("n_ubatch":16777216,"flash_attn":false)",
                          R"(,"weight_bytes":1)")) == "out_of_range options.n_ubatch");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("n_gpu_layers":0)")) == "out_of_range options.n_gpu_layers");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("fork":"koboldcpp")")) == "unknown_id options.fork");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("version":"newest")")) == "malformed options.version");
  CHECK(error_of(ask_text("llama-3.1-8b", "8192", R"("kv_memory_bytes":99000000000)")) ==
        "out_of_range options.kv_memory_bytes");
}

TEST_CASE("every model: reserved is at least written, the gaps are the difference, longer contexts cost no less") {
  for (const auto& entry : catalogue()) {
    for (const char* options : {"", R"("version":"b4436")", R"("version":"b5614")", R"("fork":"ik_llama.cpp","mla":0)",
                                R"("kv_unified":true)", R"("n_rs_seq":2)"}) {
      CAPTURE(entry.id);
      CAPTURE(options);
      double before = 0;
      double sequences_before = 1e18;
      for (const char* context : {"1", "1000", "100000"}) {
        const Json answer(plan_json(R"({"engine":"llama.cpp","gpu":{"memory_bytes":1099511627776},"model":")" +
                                        std::string(entry.id) + R"(","context":)" + context + R"(,"options":{)" +
                                        options + R"(},"weight_bytes":1000000000})",
                                    full_features()));
        if (const json::Value* const error = answer.get("error")) {
          // An MLA model that no such build could load.
          CHECK(text_of(error->get("field")) == "model.layers");
          continue;
        }
        const double reserved = number_of(answer.get("kv_reserved_per_sequence"));
        const double written = number_of(answer.get("kv_bytes_per_sequence"));
        double gaps = 0;
        for (const json::Value& gap : *answer.get("gaps")) gaps += number_of(gap.get("bytes"));
        CHECK(reserved >= written);
        CHECK(reserved - written == gaps);
        CHECK(reserved >= before);
        CHECK(number_of(answer.get("sequences")) <= sequences_before);
        before = reserved;
        sequences_before = number_of(answer.get("sequences"));
      }
    }
  }
}
