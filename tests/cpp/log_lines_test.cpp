// Lines of logs as terminals, containers and mails leave them: what is read, and what is not taken for a figure.
#include <doctest/doctest.h>

#include <string>

#include "kvcap/json.hpp"
#include "kvcap/log.hpp"

using namespace kvcap;

namespace {

/// A member of the answer by names and positions between dots; "(absent)" where there is none.
std::string figure(std::string_view log, std::string_view path) {
  const std::string text = read_log_json(log, full_features());
  const auto document = json::Document::parse(text, "answer", u64{1} << 30);
  REQUIRE_MESSAGE(document.has_value(), text);
  const json::Value* value = &document->root();
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (value->is(json::Kind::array)) {
      auto place = std::stoul(std::string(name));
      const json::Value* found = nullptr;
      for (const json::Value& one : *value) {
        if (place-- == 0) found = &one;
      }
      value = found;
    } else {
      value = value->find(name);
    }
  }
  return value == nullptr ? "(absent)" : std::string(value->text);
}

std::string tokens(std::string_view log) { return figure(log, "printed.kv_tokens"); }

const std::string kMessage = "GPU KV cache size: 5 tokens";

}  // namespace

TEST_CASE("escapes of terminals are stepped over, whole or cut") {
  for (const std::string& log : {
           "\x1b[32m" + kMessage + "\x1b[0m\n",
           "\x1b]0;a title\a" + kMessage + "\n",
           "\x1b]8;;https://example.org\x1b\\" + kMessage + "\n",
           "\x1b(" + kMessage + "\n",
           kMessage + "\x1b",
           kMessage + "\x1b[",
           kMessage + "\x1b[31",
           kMessage + "\x1b]0;a title",
           kMessage + "\x1b]0;a title\x1b",
           "> > " + kMessage + "\n> >\n>\n",
           "GPU\xC2\xA0KV\xC2\xA0" + std::string("cache size: 5 tokens\n"),
       }) {
    CAPTURE(log);
    CHECK(tokens(log) == "5");
  }
}

TEST_CASE("bytes that are no UTF-8 stand as question marks, one for each") {
  struct Row {
    const char* bytes;
    const char* shown;
  };
  for (const auto& [bytes, shown] : {
           Row{"\xC3\xA9", "\xC3\xA9"},
           Row{"\xE0\xA0\x80", "\xE0\xA0\x80"},
           Row{"\xED\x9F\xBF", "\xED\x9F\xBF"},
           Row{"\xF0\x90\x80\x80", "\xF0\x90\x80\x80"},
           Row{"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
           Row{"\x80", "?"},
           Row{"\xC0\xAF", "??"},
           Row{"\xC3", "?"},
           Row{"\xE2\x82", "??"},
           Row{"\xE0\x9F\x80", "???"},       // too long a form
           Row{"\xED\xA0\x80", "???"},       // half of a pair
           Row{"\xF0\x8F\x80\x80", "????"},  // too long a form
           Row{"\xF4\x90\x80\x80", "????"},  // past the last character
           Row{"\xF5\x80\x80\x80", "????"},
       }) {
    CAPTURE(shown);
    CHECK(figure(std::string(bytes) + " " + kMessage, "lines.0.text") == shown + (" " + kMessage));
  }
}

TEST_CASE("a container's lines are unwrapped, whole or cut") {
  for (const char* const line : {
           R"({"log":"INFO\tGPU KV cache size: 5 tokens\r\n","stream":"stderr","time":"2025-01-01"})",
           R"({"log":"GPU KV cache\u0020size: 5 tokens\n","stream":"stderr"})",
           R"({"log":"\"\u003e GPU KV cache size: 5 tokens\n"})",
           R"({"log":"\u4e00 GPU KV cache size: 5 tokens)",
           R"({"log":"GPU KV cache size: 5 tokens \u00)",
           R"({"log":"GPU KV cache size: 5 tokens \)",
       }) {
    CAPTURE(line);
    CHECK(tokens(line) == "5");
  }
}

TEST_CASE("figures of more digits than are kept, and texts without an end") {
  const auto memory = [](const std::string& size) {
    return figure("Available KV cache memory: " + size, "printed.kv_memory_bytes");
  };
  CHECK(memory("0.12345678901234567890 GiB") == "132560718");
  CHECK(memory("99,999,999,999,999,999,999,999 B") == "(absent)");
  CHECK(memory("99999999999999999999.5 B") == "(absent)");
  CHECK(memory("5 K") == "(absent)");
  CHECK(memory("5 Kx") == "(absent)");
  CHECK(memory("5 GiBs") == "(absent)");
  CHECK(memory("none") == "(absent)");
  CHECK(figure("Maximum concurrency for 8192 tokens per request: 5.5x", "printed.max_concurrency") == "5.5");
  CHECK(figure("Maximum concurrency for 8192 tokens per request: many", "printed.max_concurrency") == "(absent)");
  CHECK(figure("vLLM API server version 0.11.2\n" + kMessage, "engine_version") == "0.11.2");
  CHECK(figure("vLLM API server version " + std::string(400, '1') + "\n" + kMessage, "engine_version").size() <= 160);
  CHECK(figure("vLLM API server version .\n" + kMessage, "engine_version").empty());
  const std::string start = "build: 5000 (abc)\nllama_model_loader: loaded meta data with 5 keys from a.gguf\n";
  CHECK(figure(start + "print_info: n_head_kv = [8, 8, 4]\n", "printed.n_head_kv") == "[8, 8, 4]");
  CHECK(figure(start + "print_info: n_head_kv = [8, 8, 4\n", "printed.n_head_kv") == "(absent)");
  CHECK(figure(start + "print_info: n_head_kv = [8, 8, x]\n", "printed.n_head_kv") == "(absent)");
  std::string list = "print_info: n_head_kv = [8";
  for (int i = 0; i < 9'000; ++i) list += ",8";
  CHECK(figure(start + list + "]\n", "printed.n_head_kv") == "(absent)");
  CHECK(figure(kMessage + "\ndtype='" + std::string(400, 'x') + "\n", "printed.dtype") == "(absent)");
  CHECK(figure(kMessage + "\ndtype=''\n", "printed.dtype") == "(absent)");
  CHECK(figure(kMessage + "\ndtype='bfloat16'\n", "printed.dtype") == "bfloat16");
  CHECK(figure(kMessage + "\nGPU name:  \n", "printed.gpu") == "(absent)");
  CHECK(figure(kMessage + "\nGPU name: NVIDIA L4 \n", "printed.gpu") == "NVIDIA L4");
}

TEST_CASE("flags and settings are told from parts of other names") {
  const auto size = [](const std::string& line) { return figure(kMessage + "\n" + line + "\n", "printed.block_size"); };
  for (const char* const line : {"block_size=32", "--block-size 32", "--block-size=32", "'block_size': 32",
                                 "\"block_size\": 32", "--block_size 32", "(block_size=32)"}) {
    CAPTURE(line);
    CHECK(size(line) == "32");
  }
  for (const char* const line : {"my_block_size=32", "x.block_size=32", "-block-size=32", "block_size_k=32",
                                 "block_size 32", "block_size", "'block_size' 32", "block_size=None", "block_size=x"}) {
    CAPTURE(line);
    CHECK(size(line) == "(absent)");
  }
  CHECK(figure(kMessage + "\n--tp 4\n", "printed.tensor_parallel") == "4");
  CHECK(figure(kMessage + "\n--tp=4\n", "printed.tensor_parallel") == "4");
  CHECK(figure(kMessage + "\ntp 4\n", "printed.tensor_parallel") == "(absent)");
  CHECK(figure("vllm serve a --kv-cache-memory-bytes 1000000000\n" + kMessage, "printed.kv_memory_bytes") ==
        "1000000000");
}

TEST_CASE("a long line is quoted around its figure, at characters' edges") {
  const std::string line = kMessage + std::string(20, 'x');
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xC3\xA9";
  for (const std::string& log : {line + accents, line + "x" + accents, accents + " " + kMessage,
                                 "x" + accents + " " + kMessage, accents + " " + kMessage + " " + accents}) {
    const std::string quoted = figure(log, "lines.0.text");
    CAPTURE(quoted);
    CHECK(quoted.size() <= 120);
    CHECK(quoted.find("size: 5 tokens") != std::string::npos);
    CHECK(quoted.find('?') == std::string::npos);
    CHECK((static_cast<unsigned char>(quoted.front()) & 0xC0) != 0x80);
    CHECK(json::Document::parse("\"" + quoted + "\"", "quoted", 1000));
  }
}

TEST_CASE("a rank is told by the brackets at a line's head, as far as they name one") {
  const auto ranks = [](const std::string& head) {
    return figure(head + " INFO GPU KV cache size: 5 tokens\n" + head + "x INFO GPU KV cache size: 5 tokens\n",
                  "printed.kv_tokens");
  };
  for (const char* const head : {"(Worker_PP1 pid=9)", "(Worker_TP1 pid=9)", "[DP0 TP3]", "[rank=]", "[rank=a]",
                                 "[gpu=2]", "[RANK 1]", "[TP1234567]"}) {
    CAPTURE(head);
    CHECK(ranks(head) == "5");
  }
}

TEST_CASE("a model's folder in the hub's cache names it") {
  const auto model = [](const std::string& path) {
    return figure("Initializing an LLM engine (v0.11.0) with config: model='" + path +
                      "', dtype=torch.bfloat16, max_seq_len=8192\n" + kMessage + "\n",
                  "request.model");
  };
  CHECK(model("Qwen/Qwen3-8B") == "qwen3-8b");
  CHECK(model("/data/models/Qwen3-8B/") == "qwen3-8b");
  CHECK(model("/data/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd6066d109eabc6255188de91218") == "qwen3-8b");
  CHECK(model("/data/hub/models--Qwen3-8B") == "qwen3-8b");
  CHECK(model("/data/hub/models--Nobody--Nothing/snapshots/1") == "(absent)");
}

TEST_CASE("layers of a model that nobody knows are those that the loader printed") {
  const auto layer = [](const std::string& keys, const char* path) {
    return figure(
        "build: 5000 (abc)\nprint_info: arch = odd\nprint_info: n_layer = 2\n" + keys + "llama_context: n_ctx = 4096\n",
        "request.model.layers." + std::string(path));
  };
  const std::string widths = "print_info: n_embd_head_k = 64\nprint_info: n_embd_head_v = 32\n";
  const std::string listed = "print_info: n_head_kv = [8, 0]\n" + widths;
  CHECK(layer(listed, "0.kv_heads") == "8");
  CHECK(layer(listed, "0.key_width") == "64");
  CHECK(layer(listed, "0.value_width") == "32");
  CHECK(layer(listed, "1.kind") == "none");
  CHECK(layer("print_info: n_head_kv = 4\n" + widths, "0.count") == "2");
  CHECK(layer("print_info: n_head_kv = [8, 8, 8]\n" + widths, "0.kind") == "(absent)");
  CHECK(layer("print_info: n_head_kv = 4\nprint_info: n_embd_head_k = 99999999\n", "0.kind") == "(absent)");
  CHECK(layer("print_info: n_head_kv = 4\nprint_info: n_embd_head_k = 64\nprint_info: n_embd_head_v = 99999999\n",
              "0.kind") == "(absent)");
  CHECK(layer(listed + "print_info: n_swa = 128\n", "0.kind") == "(absent)");
}

TEST_CASE("a second file that is loaded beside the model is a draft, and its cache another's") {
  const auto cache = [](const char* file, const char* size, const char* layers) {
    return "llama_model_loader: loaded meta data with 5 key-value pairs from " + std::string(file) +
           " (version GGUF V3)\nllama_kv_cache_unified: size = " + size + " MiB (  4096 cells,  " + layers +
           " layers,  1/1 seqs), K (f16): " + size + " MiB, V (f16): 0.00 MiB\n";
  };
  const std::string log = "build: 5000 (abc)\n" + cache("a.gguf", "64.00", "32");
  CHECK(figure(log, "printed.caches.0.layers") == "32");
  const std::string both = log + cache("b.gguf", "8.00", "4");
  CHECK(figure(both, "printed.caches.0.layers") == "32");
  CHECK(figure(both, "printed.caches.1.layers") == "(absent)");
  // The same file once more: what came before was a trial.
  const std::string again = log + cache("a.gguf", "32.00", "16");
  CHECK(figure(again, "printed.caches.0.layers") == "16");
  CHECK(figure(again, "printed.caches.1.layers") == "(absent)");
}

TEST_CASE("terms that take more than there is do not close the budget") {
  const std::string log =
      "Initializing an LLM engine (v0.8.0) with config: model='Qwen/Qwen3-8B', max_seq_len=8192\n"
      "the current vLLM instance can use total_gpu_memory (10.00GiB) x gpu_memory_utilization (0.50) = 5.00GiB\n"
      "model weights take 8.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 0.50GiB; the "
      "rest of the memory reserved for KV Cache is 3.00GiB.\n" +
      kMessage + "\n";
  const std::string answer = read_log_json(log, full_features());
  const std::size_t note = answer.find("budget_does_not_close");
  REQUIRE(note != std::string::npos);
  CHECK(answer.find("\"-38654705", note) != std::string::npos);  // 5 − 8.6 GiB
}

TEST_CASE("what an option does not take is shown, and not asked for") {
  const std::string vllm =
      "Initializing an LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', max_seq_len=8192\n" + kMessage + "\n";
  CHECK(figure("vLLM API server version v0.9.1\n" + kMessage, "request.options.version") == "0.9.1");
  CHECK(figure("vLLM API server version unknown\n" + kMessage, "engine_version").empty());
  const std::string most = vllm + "max_num_seqs=99999999999\nmamba_cache_mode='odd'\n";
  CHECK(figure(most, "printed.max_num_seqs") == "99999999999");
  CHECK(figure(most, "request.options.max_num_seqs") == "(absent)");
  CHECK(figure(most, "printed.mamba_cache_mode") == "odd");
  CHECK(figure(most, "request.options.mamba_cache_mode") == "(absent)");
  // All GPUs' weights would be more bytes than are exact.
  const std::string heavy = vllm + "tensor_parallel_size=8\nModel loading took 5000000 GiB\n";
  CHECK(figure(heavy, "printed.weights_bytes") == "5368709120000000");
  CHECK(figure(heavy, "request.weight_bytes") == "(absent)");
  CHECK(figure(vllm + "Model loading took 6000000 GiB\nAvailable KV cache memory: 6000000 GiB\n",
               "memory.total_share") == "(absent)");
  const std::string llama = "build: 5000 (abc)\nllama_context: n_ctx = 4096\n";
  CHECK(figure(llama + "type_k = 'q8_0'\ntype_v = 'odd'\n", "printed.v_type") == "odd");
  CHECK(figure(llama + "type_k = 'q8_0'\ntype_v = 'odd'\n", "request.kv") == "(absent)");
  CHECK(figure(llama + "type_k = 'q8_0'\ntype_v = 'f16'\n", "request.kv.k") == "q8_0");
  CHECK(figure(llama + "type_k = 'q4_k'\ntype_v = 'f16'\n", "request.kv") == "(absent)");  // of weights alone
  CHECK(figure(llama + "attn_max_b = 0\nmla_attn = 3\n", "request.options.mla_attn") == "3");
  CHECK(figure(llama + "attn_max_b = 0\nmla_attn = none\n", "request.options.mla_attn") == "(absent)");
  // A card with far less memory than it is sold with is another.
  const auto card = [&](const char* name, const char* memory) {
    return figure("GPU name: " + std::string(name) + "\n" + memory + vllm, "request.gpu");
  };
  CHECK(card("NVIDIA H100 SXM5 80GB", "") == "h100-sxm-80gb");
  CHECK(card("NVIDIA A100-SXM4-80GB", "0MiB / 81920MiB |\n") == "a100-sxm-80gb");
  CHECK(card("NVIDIA A100-SXM4-80GB", "0MiB / 20480MiB |\n") != "a100-sxm-80gb");
  CHECK(figure("general.name str = Llama 3.1 8B\n" + llama + "print_info: n_layer = 32\n", "request.model") ==
        "llama-3.1-8b");
  CHECK(figure("general.name str = Llama 3.1 8B\n" + llama + "print_info: n_layer = 7\n", "request.model") ==
        "(absent)");
}

TEST_CASE("flags that are said twice are told where they differ in more than their spelling") {
  const auto code = [](const std::string& lines) { return figure(kMessage + "\n" + lines, "contradictions.0.code"); };
  CHECK(code("enforce_eager=True\nenforce_eager=False\n") == "two_values");
  CHECK(code("enforce_eager=True\nenforce_eager=true\n") == "(absent)");
  CHECK(code("enable_prefix_caching=auto\nenable_prefix_caching=True\n") == "(absent)");
  CHECK(code("enable_prefix_caching=True\nenable_prefix_caching=auto\n") == "(absent)");
}

TEST_CASE("tokens are held against blocks, groups, copies of contexts, and concurrency") {
  const auto code = [](const std::string& lines) {
    return figure("vllm serve a --block-size 16\n" + lines, "contradictions.0.code");
  };
  const std::string thousand = "# GPU blocks: 1000\n";
  CHECK(code(thousand + "GPU KV cache size: 16,000 tokens\n") == "(absent)");
  CHECK(code(thousand + "GPU KV cache size: 8,000 tokens\n") == "(absent)");  // two groups
  CHECK(code(thousand + "GPU KV cache size: 32,000 tokens\n") == "tokens_are_not_blocks");
  CHECK(code("--decode-context-parallel-size 2\n" + thousand + "GPU KV cache size: 32,000 tokens\n") == "(absent)");
  const std::string twice = "Maximum concurrency for 4096 tokens per request: 2.00x\n";
  CHECK(code(thousand + "GPU KV cache size: 8192 tokens\n" + twice) == "(absent)");
  CHECK(code(thousand + "GPU KV cache size: 7000 tokens\n" + twice) == "tokens_are_not_blocks");
  CHECK(code(thousand + "GPU KV cache size: 9000 tokens\n" + twice) == "tokens_are_not_blocks");
}

TEST_CASE("figures that are missing are missing from the notes") {
  const std::string needed = "5.00 GiB KV cache is needed\n" + kMessage + "\n";
  CHECK(figure(needed, "findings.0.code") == "cache_too_small");
  CHECK(figure(needed, "findings.0.values.kv_needed_bytes") == "5368709120");
  CHECK(figure(needed, "findings.0.values.kv_memory_bytes") == "(absent)");
  const std::string none = "Maximum concurrency for 0 tokens per request: 5.00x\n" + kMessage + "\n";
  CHECK(figure(none, "printed.max_concurrency") == "5");
  CHECK(figure(none, "findings.0.code") == "(absent)");
  // Two ranks whose names are not printed are told by what they have.
  const std::string ranks = "Available KV cache memory: 10 GiB\nAvailable KV cache memory: 11 GiB\n";
  CHECK(figure(ranks, "printed.kv_memory_by_rank.1.bytes") == "11811160064");
  CHECK(figure(ranks + ranks, "printed.kv_memory_by_rank.2.bytes") == "(absent)");
  const std::string sglang =
      "server_args=ServerArgs(model_path='Qwen/Qwen3-8B', context_length=4000000000)\n"
      "max_total_num_tokens=5000, max_running_requests=4000000000\n";
  CHECK(read_log_json(sglang, full_features()).find("\"request_table\"") == std::string::npos);
  // The budget is taken with what graphs will take, where that is printed.
  const std::string budget =
      "Initializing an LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', max_seq_len=8192\n"
      "can use total_gpu_memory (10.00GiB) x gpu_memory_utilization (0.50) = 5.00GiB\n"
      "model weights take 1.00GiB; non_torch_memory takes 0.50GiB; PyTorch activation peak memory takes 0.50GiB; the "
      "rest of the memory reserved for KV Cache is ";
  const std::string graphs = "Estimated CUDA graph memory: 1.00 GiB total\n" + kMessage + "\n";
  CHECK(read_log_json(budget + "3.00GiB.\n", full_features()).find("budget_closes") != std::string::npos);
  CHECK(read_log_json(budget + "2.00GiB.\n" + graphs, full_features()).find("budget_closes") != std::string::npos);
  CHECK(read_log_json(budget + "3.00GiB.\n" + graphs, full_features()).find("budget_does_not_close") !=
        std::string::npos);
}

TEST_CASE("caches tell the layers of a model that nobody knows, where their bytes can") {
  const auto layer = [](const std::string& lines, const char* path) {
    return figure("build: 5000 (abc)\nllama_context: n_ctx = 4096\nprint_info: n_layer = 2\n" + lines,
                  "request.model.layers." + std::string(path));
  };
  const auto cache = [](const char* cells, const char* k, const char* v) {
    return "size = 9.00 MiB (" + std::string(cells) + " cells, 2 layers, 1/1 seqs), K (f16): " + k + " MiB, V (" + v +
           " MiB\n";
  };
  const std::string plain = cache("4096", "2.00", "f16): 2.00");
  CHECK(layer("print_info: n_embd_head_k = 64\n" + plain, "0.kv_heads") == "2");
  CHECK(layer("print_info: n_embd_head_k = 64\n" + plain, "0.key_width") == "64");
  // Heads that do not divide K, or into which V does not part, are one.
  CHECK(layer("print_info: n_embd_head_k = 96\n" + plain, "0.kv_heads") == "1");
  CHECK(layer("print_info: n_embd_head_k = 96\n" + plain, "0.key_width") == "128");
  const std::string uneven = cache("4096", "3.00", "f16): 2.00");
  CHECK(layer("print_info: n_embd_head_k = 64\n" + uneven, "0.key_width") == "192");
  CHECK(layer("print_info: n_embd_head_k = 64\n" + uneven, "0.value_width") == "128");
  CHECK(layer(cache("4096", "2.00", "odd): 2.00"), "0.kind") == "(absent)");
  CHECK(layer(cache("1", "99999.00", "f16): 99999.00"), "0.kind") == "(absent)");
  const auto states = [](const char* r, const char* s) {
    return "size = 9.00 MiB (1 cells, 2 layers, 1 seqs), R (f32): " + std::string(r) + " MiB, S (f32): " + s + " MiB\n";
  };
  CHECK(layer(states("1.00", "2.00"), "0.kind") == "recurrent");
  CHECK(layer(states("0.00", "0.00"), "0.kind") == "(absent)");
  CHECK(layer(plain + states("1.00", "2.00"), "0.kind") == "(absent)");  // no layer is left for the states
  CHECK(layer("print_info: n_head_kv = 8\nprint_info: n_embd_head_k = 64\n", "0.count") == "2");
  CHECK(figure("build: 5000 (abc)\nprint_info: n_layer = 99999\nprint_info: n_head_kv = 8\n"
               "print_info: n_embd_head_k = 64\nllama_context: n_ctx = 4096\n",
               "request.model") == "(absent)");
}

TEST_CASE("caches without a byte are none, and buffers without a device are nobody's") {
  const auto printed = [](const std::string& lines, const char* path) {
    return figure("build: 5000 (abc)\nllama_context: n_ctx = 4096\n" + lines, "printed." + std::string(path));
  };
  CHECK(printed("self size = 0.00 MiB\n", "caches.0.bytes") == "(absent)");
  const std::string latent = "self size = 100.00 MiB, c^KV (q8_0): 60.00 MiB, kv^T (f16): 40.00 MiB\n";
  CHECK(printed(latent, "caches.0.kind") == "latent");
  CHECK(printed(latent, "caches.0.k_bytes") == "62914560");
  CHECK(printed(latent, "caches.0.v_bytes") == "41943040");
  const std::string buffers = "CUDA0 compute buffer size = 5.00 MiB\ncompute buffer total size = 10.00 MiB\n";
  CHECK(printed(buffers, "devices.0.device") == "CUDA0");
  CHECK(printed(buffers, "devices.1.compute_bytes") == "10485760");
  CHECK(printed(buffers, "devices.1.device").empty());
  // A device that holds nothing is not one of the model's.
  const std::string split =
      "build: 5000 (abc)\nCUDA0 KV buffer size = 1.00 MiB\nCUDA1 KV buffer size = 1.00 MiB\n"
      "CUDA2 KV buffer size = 0.00 MiB\n";
  CHECK(figure(split, "request.pipeline_parallel") == "2");
  // A model's weights that are loaded once more are a draft's.
  CHECK(read_log_json("server_args=ServerArgs(model_path='Qwen/Qwen3-8B')\nLoad weight begin. avail mem=70.00 GB\n"
                      "Load weight begin. avail mem=60.00 GB\nmax_total_num_tokens=5000\n",
                      full_features())
            .find("draft_model") != std::string::npos);
}
