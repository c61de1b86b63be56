// Heads of GGUF files: made here for every kind of key, those found in the wild, and hostile bytes.
#include <doctest/doctest.h>

#include <random>

#include "import_support.hpp"
#include "kvcap/gguf.hpp"
#include "kvcap/import.hpp"

namespace kvcap {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Writes a GGUF head.
class Gguf {
 public:
  Gguf() = default;
  explicit Gguf(std::string_view architecture) { text("general.architecture", architecture); }

  /// A value as its bytes stand in the file.
  Gguf& raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    name(key, type);
    keys_ += bytes;
    return *this;
  }

  Gguf& number(std::string_view key, std::uint32_t value) {
    name(key, 4);
    put(keys_, value, 4);
    return *this;
  }
  Gguf& own(std::string_view architecture, std::initializer_list<std::pair<const char*, std::uint32_t>> values) {
    for (const auto& [key, value] : values) number(std::string(architecture) + "." + key, value);
    return *this;
  }
  Gguf& text(std::string_view key, std::string_view value) {
    name(key, 8);
    string(keys_, value);
    return *this;
  }
  Gguf& truth(std::string_view key, bool value) {
    name(key, 7);
    put(keys_, value ? 1 : 0, 1);
    return *this;
  }
  Gguf& list(std::string_view key, const std::vector<std::uint32_t>& values, std::uint32_t type = 4) {
    name(key, 9);
    put(keys_, type, 4);
    put(keys_, values.size(), 8);
    for (const auto value : values) put(keys_, value, type == 7 ? 1 : 4);
    return *this;
  }
  Gguf& texts(std::string_view key, std::size_t count) {
    name(key, 9);
    put(keys_, 8, 4);
    put(keys_, count, 8);
    for (std::size_t i = 0; i < count; ++i) string(keys_, "token" + std::to_string(i));
    return *this;
  }
  Gguf& tensor(std::string_view key, std::initializer_list<std::uint64_t> shape, std::uint32_t type) {
    ++tensor_count_;
    string(tensors_, key);
    put(tensors_, shape.size(), 4);
    for (const auto size : shape) put(tensors_, size, 8);
    put(tensors_, type, 4);
    put(tensors_, 0, 8);
    return *this;
  }
  [[nodiscard]] std::string head() const {
    std::string out = "GGUF";
    put(out, 3, 4);
    put(out, tensor_count_, 8);
    put(out, key_count_, 8);
    return out + keys_ + tensors_;
  }

  static void put(std::string& out, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  static void string(std::string& out, std::string_view value) {
    put(out, value.size(), 8);
    out += value;
  }

 private:
  void name(std::string_view key, std::uint32_t type) {
    ++key_count_;
    string(keys_, key);
    put(keys_, type, 4);
  }
  std::string keys_, tensors_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0;
};

constexpr u64 kLarge = u64{1} << 40;

Model model_of(const Gguf& file) {
  const std::string head = file.head();
  auto read = import_gguf(bytes_of(head), kLarge);
  if (!read) FAIL(read.error().field << ": " << read.error().message);
  REQUIRE(read->need_bytes == 0);
  return std::move(read->model);
}

std::string layers_of(const Gguf& file) { return test::notation(model_of(file).layers); }

std::string error_of(std::string_view head, u64 file_bytes = kLarge) {
  const auto read = import_gguf(bytes_of(head), file_bytes);
  if (read) return read->need_bytes != 0 ? "needs more" : "accepted";
  return std::string(std::string_view(code_name(read.error().code))) + " " + read.error().field;
}
std::string error_of(const Gguf& file) { return error_of(file.head()); }

Gguf plain(std::string_view architecture) {
  Gguf file(architecture);
  file.own(architecture, {{"block_count", 4},
                          {"embedding_length", 512},
                          {"context_length", 4096},
                          {"attention.head_count", 8},
                          {"attention.head_count_kv", 2}});
  return file;
}

TEST_CASE("weights are the exact sum over the tensor table") {
  Gguf file = plain("llama");
  file.number("general.file_type", 15).text("general.name", "a model").texts("tokenizer.ggml.tokens", 100);
  file.tensor("token_embd.weight", {512, 100}, 12).tensor("blk.0.attn_q.weight", {512, 512}, 14);
  file.tensor("output_norm.weight", {512}, 0);
  const Model model = model_of(file);
  CHECK(test::notation(model.layers) == "4 full 2x64");
  CHECK(model.parameters == 512u * 100 + 512 * 512 + 512);
  // q4_k: 144 bytes for 256 values, q6_k: 210, fp32: 4 a value.
  CHECK(model.native_weight_bytes == Bytes{200 * 144 + 1024 * 210 + 512 * 4});
  CHECK_FALSE(model.native_weights_estimated);
  REQUIRE(model.native_weights);
  CHECK(model.native_weights->id == "q4_k_m");
  CHECK(model.name == "a model");
  CHECK(model.vocabulary == 100);
  CHECK(model.max_context == 4096);
  CHECK(model.query_heads == 8);
}

TEST_CASE("the layers of every kind of key") {
  SUBCASE("no KV heads stated: one for each query head") {
    Gguf file("gpt2");
    file.own("gpt2", {{"block_count", 12}, {"embedding_length", 768}, {"attention.head_count", 12}});
    CHECK(layers_of(file) == "12 full 12x64");
  }
  SUBCASE("K and V of their own width") {
    CHECK(layers_of(plain("llama").own("llama", {{"attention.key_length", 192}, {"attention.value_length", 128}})) ==
          "4 full 2x192/128");
  }
  SUBCASE("heads by layer") {
    Gguf file("deci");
    file.own("deci", {{"block_count", 4}, {"embedding_length", 512}}).list("deci.attention.head_count", {8, 0, 8, 8});
    file.list("deci.attention.head_count_kv", {2, 0, 1, 1});
    CHECK(layers_of(file) == "1 full 2x64; 1 none; 2 full 1x64");
  }
  SUBCASE("windows by a list, with widths of their own and shared layers") {
    Gguf file("gemma4");
    file.own("gemma4", {{"block_count", 6},
                        {"embedding_length", 2560},
                        {"context_length", 131072},
                        {"attention.head_count", 8},
                        {"attention.head_count_kv", 2},
                        {"attention.key_length", 512},
                        {"attention.value_length", 512},
                        {"attention.key_length_swa", 256},
                        {"attention.value_length_swa", 256},
                        {"attention.sliding_window", 512},
                        {"attention.shared_kv_layers", 2}});
    file.list("gemma4.attention.sliding_window_pattern", {1, 1, 0, 1, 1, 0}, 7);
    CHECK(layers_of(file) == "3 window 512 2x256; 1 full 2x512; 2 shared");
  }
  SUBCASE("windows by the architecture's period") {
    CHECK(layers_of(plain("gpt-oss").own("gpt-oss", {{"attention.sliding_window", 128}})) ==
          "2 window 128 2x64; 2 full 2x64");
  }
  SUBCASE("windows by a stated period") {
    CHECK(layers_of(plain("somenew").own(
              "somenew", {{"attention.sliding_window", 128}, {"attention.sliding_window_pattern", 4}})) ==
          "3 window 128 2x64; 1 full 2x64");
  }
  SUBCASE("a window above the context never fills") {
    CHECK(layers_of(plain("phi3").own("phi3", {{"attention.sliding_window", 262144}})) == "4 full 2x64");
  }
  SUBCASE("chunks") {
    CHECK(layers_of(plain("llama4").own("llama4", {})) == "4 full 2x64");
    Gguf file("llama4");
    file.own("llama4", {{"block_count", 4},
                        {"embedding_length", 512},
                        {"context_length", 1048576},
                        {"attention.head_count", 8},
                        {"attention.head_count_kv", 2}});
    CHECK(layers_of(file) == "3 chunked 8192 2x64; 1 full 2x64");
  }
  SUBCASE("latent rows, with the keys of today and without") {
    Gguf file("deepseek2");
    file.own("deepseek2", {{"block_count", 3},
                           {"embedding_length", 7168},
                           {"attention.head_count", 128},
                           {"attention.head_count_kv", 1},
                           {"attention.key_length", 576},
                           {"attention.value_length", 512},
                           {"attention.key_length_mla", 192},
                           {"attention.value_length_mla", 128},
                           {"attention.kv_lora_rank", 512},
                           {"rope.dimension_count", 64}});
    const Model now = model_of(file);
    CHECK(test::notation(now.layers) == "3 latent 576");
    CHECK(now.layers.front().expanded_heads == 128);
    CHECK(now.layers.front().expanded_key_width == 192);
    CHECK(now.layers.front().expanded_value_width == 128);
    CHECK(now.layers.front().latent_value_width == 512);
    CHECK(now.note_codes.empty());

    Gguf old("deepseek2");
    old.own("deepseek2", {{"block_count", 3},
                          {"embedding_length", 7168},
                          {"attention.head_count", 128},
                          {"attention.head_count_kv", 128},
                          {"attention.key_length", 192},
                          {"attention.value_length", 128},
                          {"attention.kv_lora_rank", 512},
                          {"rope.dimension_count", 64}});
    const Model before = model_of(old);
    CHECK(test::notation(before.layers) == "3 latent 576");
    CHECK(before.layers.front().expanded_key_width == 192);
    CHECK(before.note_codes == std::vector<std::string>{"gguf_without_mla_keys"});
  }
  SUBCASE("layers for prediction ahead hold no cache") {
    CHECK(layers_of(plain("glm4moe").own("glm4moe", {{"nextn_predict_layers", 1}})) == "3 full 2x64");
  }
  SUBCASE("gated delta net by interval: Qwen3.6 27B, whose state llama.cpp keeps in fp32") {
    Gguf file("qwen35");
    file.own("qwen35", {{"block_count", 64},
                        {"embedding_length", 5120},
                        {"attention.head_count", 24},
                        {"attention.head_count_kv", 4},
                        {"attention.key_length", 256},
                        {"attention.value_length", 256},
                        {"full_attention_interval", 4},
                        {"ssm.conv_kernel", 4},
                        {"ssm.inner_size", 6144},
                        {"ssm.state_size", 128},
                        {"ssm.group_count", 16},
                        {"ssm.time_step_rank", 48}});
    const Model model = model_of(file);
    CHECK(test::notation(model.layers) == "48 recurrent 786432:fp32 30720:fp32; 16 full 4x256");
    // tests/data/reported_faults: 65,536 tokens at q8_0 are 2.125 GiB; the state is 156,893,184 bytes.
    const Format* const q8 = find_format("q8_0");
    Wide cache = 0, state = 0;
    for (const LayerRun& run : model.layers) {
      if (run.kind == LayerKind::full) cache += run.count * layer_bytes(run, {.k = q8, .v = q8}, 1, Tokens{65536});
      state += run.count * state_of(run, 1);
    }
    CHECK(cache == Wide{2281701376});
    CHECK(state == Wide{156893184});
  }
  SUBCASE("short convolutions where there are no KV heads: LFM2 1.2B") {
    Gguf file("lfm2");
    file.own("lfm2",
             {{"block_count", 16}, {"embedding_length", 2048}, {"attention.head_count", 32}, {"shortconv.l_cache", 3}});
    file.list("lfm2.attention.head_count_kv", {0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0}, 5);
    const Model model = model_of(file);
    CHECK(test::notation(model.layers) == "10 recurrent 0:fp32 4096:fp32; 6 full 8x64");
    const Format* const half = find_format("fp16");
    Wide cache = 0;
    for (const LayerRun& run : model.layers) {
      if (run.kind == LayerKind::full) cache += run.count * layer_bytes(run, {.k = half, .v = half}, 1, Tokens{32768});
    }
    CHECK(cache == Wide{384} << 20);
  }
  SUBCASE("short convolutions of one token keep nothing") {
    Gguf file("lfm2");
    file.own("lfm2",
             {{"block_count", 3}, {"embedding_length", 2048}, {"attention.head_count", 32}, {"shortconv.l_cache", 1}});
    CHECK(layers_of(file.list("lfm2.attention.head_count_kv", {0, 0, 8}, 5)) == "2 none; 1 full 8x64");
  }
  SUBCASE("Mamba-2, attention and feed-forward blocks: Nemotron-H") {
    Gguf file("nemotron_h");
    file.own("nemotron_h", {{"block_count", 4},
                            {"embedding_length", 4480},
                            {"attention.head_count", 40},
                            {"attention.key_length", 128},
                            {"attention.value_length", 128},
                            {"ssm.conv_kernel", 4},
                            {"ssm.inner_size", 10240},
                            {"ssm.state_size", 128},
                            {"ssm.group_count", 8},
                            {"ssm.time_step_rank", 128}});
    file.list("nemotron_h.attention.head_count_kv", {0, 0, 8, 0})
        .list("nemotron_h.feed_forward_length", {0, 15680, 0, 15680});
    CHECK(layers_of(file) == "1 recurrent 1310720:fp32 36864:fp32; 2 none; 1 full 8x128");
  }
  SUBCASE("Mamba alone and side by side with attention") {
    Gguf file("mamba");
    file.own("mamba", {{"block_count", 2},
                       {"embedding_length", 768},
                       {"attention.head_count", 0},
                       {"ssm.conv_kernel", 4},
                       {"ssm.inner_size", 1536},
                       {"ssm.state_size", 16}});
    CHECK(layers_of(file) == "2 recurrent 24576:fp32 4608:fp32");
    CHECK(layers_of(plain("falcon-h1")
                        .own("falcon-h1", {{"ssm.conv_kernel", 4},
                                           {"ssm.inner_size", 1536},
                                           {"ssm.state_size", 128},
                                           {"ssm.group_count", 1}})) ==
          "4 full 2x64; 4 recurrent 196608:fp32 5376:fp32");
  }
  SUBCASE("KDA and RWKV") {
    Gguf kimi("kimi-linear");
    kimi.own("kimi-linear", {{"block_count", 4},
                             {"embedding_length", 2304},
                             {"attention.head_count", 32},
                             {"attention.key_length", 576},
                             {"attention.value_length", 512},
                             {"attention.key_length_mla", 192},
                             {"attention.value_length_mla", 128},
                             {"attention.kv_lora_rank", 512},
                             {"rope.dimension_count", 64},
                             {"kda.head_dim", 128},
                             {"ssm.conv_kernel", 4}});
    kimi.list("kimi-linear.attention.head_count_kv", {0, 0, 0, 1});
    CHECK(layers_of(kimi) == "3 recurrent 524288:fp32 36864:fp32; 1 latent 576");
    Gguf rwkv("rwkv6");
    rwkv.own("rwkv6",
             {{"block_count", 32}, {"embedding_length", 2560}, {"attention.head_count", 0}, {"wkv.head_size", 64}});
    CHECK(layers_of(rwkv) == "32 recurrent 163840:fp32 5120:fp32");
  }
}

TEST_CASE("what cannot be sized is refused by name") {
  CHECK(error_of(Gguf("llama")) == "missing llama.block_count");
  CHECK(error_of(plain("bert")) == "no_cache general.architecture");
  CHECK(error_of(plain("llama").truth("llama.attention.causal", false)) == "no_cache llama.attention.causal");
  CHECK(error_of(plain("t5")) == "unsupported general.architecture");
  CHECK(error_of(plain("clip")) == "unsupported general.architecture");
  CHECK(error_of(plain("somenew").own("somenew", {{"attention.sliding_window", 128}})) ==
        "unsupported somenew.attention.sliding_window");
  CHECK(error_of(plain("llama").own("llama", {{"attention.key_length", 0x7FFFFFFF}})) ==
        "out_of_range llama.attention.key_length");
  Gguf shared("llama");
  shared.own(
      "llama",
      {{"block_count", 4}, {"embedding_length", 512}, {"attention.head_count", 8}, {"attention.shared_kv_layers", 4}});
  CHECK(error_of(shared) == "conflict attention.shared_kv_layers");
  Gguf shorter("llama");
  shorter.own("llama", {{"block_count", 4}, {"embedding_length", 512}, {"attention.head_count", 8}});
  CHECK(error_of(shorter.list("llama.attention.head_count_kv", {2, 2})) == "conflict llama.attention.head_count_kv");
  Gguf odd("llama");
  odd.own("llama", {{"block_count", 4}, {"embedding_length", 513}, {"attention.head_count", 8}});
  CHECK(error_of(odd) == "missing llama.attention.key_length");
  CHECK(error_of(plain("llama").own("llama", {{"attention.key_length", 0}})) == "missing llama.attention.key_length");
}

TEST_CASE("files that are split, cut or of unknown types are told apart") {
  Gguf split = plain("llama").number("split.count", 3).tensor("a", {256}, 0);
  CHECK(model_of(split).note_codes == std::vector<std::string>{"split_file"});
  CHECK_FALSE(model_of(split).native_weight_bytes);
  CHECK_FALSE(model_of(split).parameters);

  // What a request would refuse is not given: 0 bytes of weights.
  const Model none = model_of(plain("llama").tensor("a", {256, 0}, 0));
  CHECK_FALSE(none.native_weight_bytes);
  CHECK_FALSE(none.parameters);

  const std::string head = plain("llama").tensor("a", {256, 4}, 0).head();
  const u64 start = (head.size() + 31) / 32 * 32;
  const auto whole = import_gguf(bytes_of(head), start + 4096);
  REQUIRE(whole);
  CHECK(whole->model.note_codes.empty());
  const auto cut = import_gguf(bytes_of(head), start + 4095);
  REQUIRE(cut);
  CHECK(cut->model.note_codes == std::vector<std::string>{"file_is_cut"});

  const std::string other = plain("llama").tensor("a", {256}, 199).head();
  const auto unknown = import_gguf(bytes_of(other), 100'000);
  REQUIRE(unknown);
  CHECK(unknown->model.note_codes == std::vector<std::string>{"tensor_type_unknown"});
  CHECK(unknown->model.native_weights_estimated);
  CHECK(unknown->model.parameters == 256u);
}

TEST_CASE("a head comes in growing slices, and a file that ends within it is malformed") {
  Gguf file = plain("llama");
  file.text("general.name", "sliced").texts("tokenizer.ggml.tokens", 50).list("tokenizer.ggml.types", {1, 2, 3}, 5);
  file.tensor("token_embd.weight", {512, 50}, 8).tensor("output_norm.weight", {512}, 0);
  const std::string head = file.head();
  for (std::size_t length = 0; length < head.size(); ++length) {
    CAPTURE(length);
    const auto part = import_gguf(bytes_of(std::string_view(head).substr(0, length)), kLarge);
    REQUIRE(part);
    CHECK(part->need_bytes > length);
    CHECK(part->need_bytes <= kLarge);
    const auto ended = import_gguf(bytes_of(std::string_view(head).substr(0, length)), length);
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == ErrorCode::malformed);
  }
  CHECK(import_gguf(bytes_of(head), head.size())->need_bytes == 0);
}

TEST_CASE("hostile heads end in errors at once") {
  CHECK(error_of("GGML\3\0\0\0") == "malformed file");
  CHECK(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n") == "malformed file");
  CHECK(error_of("<!DOCTYPE html><html>") == "malformed file");
  CHECK(error_of(std::string_view("PK\x03\x04"
                                  "aaaa",
                                  8)) == "malformed file");
  CHECK(error_of("GGUF", 3) == "conflict file_bytes");

  const auto start = [](std::uint64_t version, std::uint64_t tensors, std::uint64_t keys) {
    std::string out = "GGUF";
    Gguf::put(out, version, 4);
    Gguf::put(out, tensors, 8);
    Gguf::put(out, keys, 8);
    return out;
  };
  CHECK(error_of(start(1, 0, 0)) == "unsupported version");
  CHECK(error_of(start(0x03000000, 0, 0)) == "unsupported version");
  CHECK(error_of(start(3, ~u64{0}, 0)) == "too_large tensor_count");
  CHECK(error_of(start(3, 0, ~u64{0})) == "too_large metadata_kv_count");
  CHECK(error_of(start(3, 0, 0)) == "missing general.architecture");

  std::string long_key = start(3, 0, 1);
  Gguf::put(long_key, ~u64{0}, 8);
  CHECK(error_of(long_key) == "malformed key");
  std::string far_key = start(3, 0, 1);
  Gguf::put(far_key, u64{1} << 39, 8);
  CHECK(error_of(far_key) == "too_large file");

  const auto with_value = [&](std::uint64_t type, std::initializer_list<std::pair<std::uint64_t, int>> numbers) {
    std::string out = start(3, 0, 1);
    Gguf::string(out, "k");
    Gguf::put(out, type, 4);
    for (const auto& [value, size] : numbers) Gguf::put(out, value, size);
    return out;
  };
  CHECK(error_of(with_value(13, {})) == "malformed k");
  CHECK(error_of(with_value(9, {{9, 4}, {1, 8}})) == "malformed k");
  CHECK(error_of(with_value(9, {{4, 4}, {~u64{0}, 8}})) == "malformed k");
  CHECK(error_of(with_value(9, {{8, 4}, {~u64{0}, 8}})) == "malformed k");
  CHECK(error_of(with_value(8, {{~u64{0}, 8}})) == "malformed k");

  CHECK(error_of(plain("llama").tensor("t", {u64{1} << 32, u64{1} << 32}, 0)) == "out_of_range t");
  CHECK(error_of(plain("llama").tensor("t", {1, 1, 1, 1, 1}, 0)) == "malformed t");
  CHECK(error_of(plain("llama").tensor("t", {255}, 12)) == "malformed t");

  // 100 MB that begin like nothing known: the first slice decides.
  const std::string nonsense(65536, 'x');
  CHECK(import_json("auto", bytes_of(nonsense), 100'000'000, "").find("malformed") != std::string::npos);
  const std::string open(65536, '{');
  CHECK(import_json("auto", bytes_of(open), 100'000'000, "").find("too_large") != std::string::npos);
}

TEST_CASE("random changes to heads give a model, a wish for more, or an error") {
  Gguf file("nemotron_h");
  file.own("nemotron_h", {{"block_count", 4},
                          {"embedding_length", 512},
                          {"context_length", 4096},
                          {"attention.head_count", 8},
                          {"attention.sliding_window", 64},
                          {"attention.sliding_window_pattern", 2},
                          {"ssm.conv_kernel", 4},
                          {"ssm.inner_size", 1024},
                          {"ssm.state_size", 16}});
  file.list("nemotron_h.attention.head_count_kv", {0, 2, 2, 0}).texts("tokenizer.ggml.tokens", 5);
  file.number("general.alignment", 32).tensor("a", {256, 4}, 12).tensor("b", {512}, 0);
  const std::string seed = file.head();
  std::mt19937 random(20250102);
  int counts[3] = {};
  for (int round = 0; round < 20'000; ++round) {
    std::string head = seed;
    const auto changes = 1 + random() % 4;
    for (unsigned i = 0; i < changes; ++i) head[random() % head.size()] = static_cast<char>(random());
    if (random() % 4 == 0) head.resize(random() % head.size());
    const auto read = import_gguf(bytes_of(head), head.size() + random() % 5000);
    if (!read) {
      ++counts[0];
      CHECK_FALSE(read.error().message.empty());
    } else if (read->need_bytes != 0) {
      ++counts[1];
      CHECK(read->need_bytes > head.size());
    } else {
      ++counts[2];
      CHECK_FALSE(read->model.layers.empty());
    }
  }
  for (const int count : counts) CHECK(count > 100);
}

TEST_CASE("heads found in the wild") {
  const std::string folder = "../shared/data/headers/";
  if (!test::read_file(folder + "index.tsv")) {
    MESSAGE("skipped: ../shared/data/headers is not here");
    return;
  }
  const auto read = [&](const char* name, u64 file_bytes = 0) {
    const auto text = test::read_file(folder + name);
    REQUIRE(text);
    return import_gguf(bytes_of(*text), file_bytes != 0 ? file_bytes : text->size());
  };
  const auto llama = read("ggml-vocab-llama-spm.gguf");
  REQUIRE(llama);
  CHECK(test::notation(llama->model.layers) == "32 full 32x128");
  CHECK(llama->model.vocabulary == 32000);
  CHECK_FALSE(llama->model.native_weight_bytes);
  const auto phi = read("ggml-vocab-phi-3.gguf");
  REQUIRE(phi);
  CHECK(test::notation(phi->model.layers) == "32 full 32x96");
  CHECK(phi->model.vocabulary == 32064);
  const auto bge = read("ggml-vocab-bert-bge.gguf");
  REQUIRE_FALSE(bge);
  CHECK(bge.error().code == ErrorCode::no_cache);
  const auto tiny = read("llama-2-tiny-random.header-only.gguf", 1'750'560);
  REQUIRE(tiny);
  // The head ends at 724,416 and the file at 1,750,560.
  CHECK(tiny->model.native_weight_bytes == Bytes{1'750'560 - 724'416});
  CHECK(tiny->model.note_codes.empty());
  const auto gpt2 = read("ggml-vocab-gpt-2.first-64KiB.gguf", 1'766'807);
  REQUIRE(gpt2);
  CHECK(gpt2->need_bytes > 65536);
  CHECK_FALSE(read("ggml-vocab-gpt-2.first-64KiB.gguf"));
  CHECK_FALSE(read("test.6-bytes.gguf"));
  CHECK_FALSE(read("bloom.lfs-pointer.safetensors"));
}

TEST_CASE("keys of other types than those that are written") {
  const auto with = [](std::string_view key, std::uint32_t type, std::string_view bytes) {
    // plain() but block_count, which is of the type given.
    Gguf file("llama");
    file.own("llama", {{"embedding_length", 512}, {"attention.head_count", 8}, {"attention.head_count_kv", 2}});
    file.raw(key, type, bytes);
    return error_of(file);
  };
  const std::string_view zeros("\0\0\0\0\0\0\0", 7);
  const auto number = [&](char low, std::size_t size) {
    return std::string(1, low) + std::string(zeros.substr(0, size - 1));
  };
  for (const std::uint32_t type : {0u, 1u}) CHECK(with("llama.block_count", type, number(4, 1)) == "accepted");
  for (const std::uint32_t type : {2u, 3u}) CHECK(with("llama.block_count", type, number(4, 2)) == "accepted");
  for (const std::uint32_t type : {4u, 5u}) CHECK(with("llama.block_count", type, number(4, 4)) == "accepted");
  for (const std::uint32_t type : {10u, 11u}) CHECK(with("llama.block_count", type, number(4, 8)) == "accepted");
  // Below zero, and floating-point numbers
  CHECK(with("llama.block_count", 1, "\xFF") == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 3, "\xFF\xFF") == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 5, "\xFF\xFF\xFF\xFF") == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 11, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF") == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 6, std::string_view("\0\0\x80\x40", 4)) == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 12, std::string_view("\0\0\0\0\0\0\x10\x40", 8)) == "out_of_range llama.block_count");
  CHECK(with("llama.block_count", 13, "\x04") == "malformed llama.block_count");
  CHECK(with("llama.other", 6, std::string_view("\0\0\x80\x40", 4)) == "missing llama.block_count");
}

TEST_CASE("an architecture is a text, and names what it is of") {
  Gguf nothing;
  CHECK(error_of(nothing) == "missing general.architecture");
  CHECK(error_of(Gguf().number("general.architecture", 7)) == "missing general.architecture");
  CHECK(error_of(Gguf().texts("general.architecture", 2)) == "missing general.architecture");
  CHECK(error_of(Gguf("")) == "missing general.architecture");
  CHECK(error_of(plain("clip")) == "unsupported general.architecture");
  CHECK(error_of(plain("t5")) == "unsupported general.architecture");
  CHECK(error_of(plain("bert")) == "no_cache general.architecture");
  CHECK(error_of(plain("qwen2").truth("qwen2.attention.causal", false)) == "no_cache qwen2.attention.causal");
  CHECK(error_of(plain("qwen2").truth("qwen2.attention.causal", true)) == "accepted");
  CHECK(error_of(plain("qwen2").number("qwen2.attention.causal", 0)) == "accepted");
}

TEST_CASE("versions that are not read are told apart") {
  const auto version = [](std::uint32_t number) {
    std::string head = plain("llama").head();
    for (std::size_t i = 0; i < 4; ++i) head[4 + i] = static_cast<char>(number >> (8 * i) & 0xFF);
    const auto read = import_gguf(bytes_of(head), kLarge);
    return read ? std::string("accepted") : read.error().field + " " + read.error().message;
  };
  CHECK(version(2) == "accepted");
  CHECK(version(3) == "accepted");
  CHECK(version(0x03000000).find("version is big-endian") == 0);
  CHECK(version(0).find("version is not 2 or 3") == 0);
  CHECK(version(1).find("version is not 2 or 3") == 0);
}

TEST_CASE("layers that a file does not describe are refused") {
  const auto with = [](std::string_view architecture,
                       std::initializer_list<std::pair<const char*, std::uint32_t>> values) {
    return error_of(plain(architecture).own(architecture, values));
  };
  CHECK(with("glm4moe", {{"nextn_predict_layers", 4}}) == "conflict nextn_predict_layers");
  CHECK(with("glm4moe", {{"nextn_predict_layers", 3}}) == "accepted");
  CHECK(with("gemma3n", {{"attention.shared_kv_layers", 4}}) == "conflict attention.shared_kv_layers");
  CHECK(with("mamba", {}) == "unsupported general.architecture");
  CHECK(with("mamba", {{"ssm.state_size", 16}, {"ssm.inner_size", 1024}}) == "missing mamba.ssm.conv_kernel");
  CHECK(with("llama", {{"attention.sliding_window", 128}}) == "unsupported llama.attention.sliding_window");
  Gguf headless("llama");
  headless.own("llama", {{"block_count", 4}, {"embedding_length", 512}});
  CHECK(error_of(headless) == "missing llama.attention.head_count");
  headless.own("llama", {{"attention.head_count", 0}, {"attention.head_count_kv", 2}});
  CHECK(error_of(headless) == "missing llama.attention.head_count");
  CHECK(error_of(plain("gemma3")
                     .own("gemma3", {{"attention.sliding_window", 128}})
                     .list("gemma3.attention.sliding_window_pattern", {1, 0, 1}, 7)) ==
        "conflict gemma3.attention.sliding_window_pattern");
  // 2^24 × 2^24 × 2^16 values of one state
  Gguf wide("kimi-linear");
  wide.own("kimi-linear", {{"block_count", 2},
                           {"embedding_length", 512},
                           {"attention.head_count", 65536},
                           {"attention.head_count_kv", 0},
                           {"kda.head_dim", 16777216},
                           {"ssm.conv_kernel", 4}});
  CHECK(error_of(wide) == "out_of_range ssm.state_size");
  // 2^24 of the model by 2^24 - 1 of the convolution fit; three of 2^16 heads of 2^24 do not.
  Gguf long_convolution("kimi-linear");
  long_convolution.own("kimi-linear", {{"block_count", 2},
                                       {"embedding_length", 512},
                                       {"attention.head_count", 65536},
                                       {"attention.head_count_kv", 0},
                                       {"kda.head_dim", 1},
                                       {"ssm.conv_kernel", 16777216}});
  CHECK(error_of(long_convolution) == "accepted");
  Gguf groups("mamba2");
  groups.own("mamba2", {{"block_count", 2},
                        {"ssm.conv_kernel", 16777216},
                        {"ssm.inner_size", 1},
                        {"ssm.state_size", 16777216},
                        {"ssm.group_count", 65536}});
  CHECK(error_of(groups) == "out_of_range ssm.state_size");
}

TEST_CASE("layers without KV heads keep a state, or nothing") {
  const auto layers = [](std::string_view architecture, const std::vector<std::uint32_t>& kv,
                         const std::vector<std::uint32_t>& ffn,
                         std::initializer_list<std::pair<const char*, std::uint32_t>> more) {
    const std::string name(architecture);
    Gguf file(name);
    file.own(name, {{"block_count", static_cast<std::uint32_t>(kv.size())},
                    {"embedding_length", 512},
                    {"attention.head_count", 8}});
    file.list(name + ".attention.head_count_kv", kv);
    if (ffn.size() > 1) {
      file.list(name + ".feed_forward_length", ffn);
    } else if (ffn.size() == 1) {
      file.number(name + ".feed_forward_length", ffn.front());
    }
    file.own(name, more);
    return layers_of(file);
  };
  const auto mamba = {
      std::pair<const char*, std::uint32_t>{"ssm.state_size", 16}, {"ssm.inner_size", 1024}, {"ssm.conv_kernel", 4}};
  const std::string state = "16384:fp32 3072:fp32";
  // Blocks of an MLP alone are told by others that have none.
  CHECK(layers("nemotron_h", {2, 0, 0}, {0, 0, 2048}, mamba) == "1 full 2x64; 1 recurrent " + state + "; 1 none");
  CHECK(layers("nemotron_h", {2, 0, 0}, {64, 64, 64}, mamba) == "1 full 2x64; 2 recurrent " + state);
  CHECK(layers("nemotron_h", {2, 0, 0}, {64}, mamba) == "1 full 2x64; 2 recurrent " + state);
  CHECK(layers("nemotron_h", {2, 0, 0}, {}, mamba) == "1 full 2x64; 2 recurrent " + state);
  CHECK(layers("deci", {2, 0, 0}, {0, 0, 2048}, {}) == "1 full 2x64; 2 none");
  CHECK(layers("lfm2", {2, 0, 0}, {64, 64, 0}, {{"shortconv.l_cache", 3}}) ==
        "1 full 2x64; 2 recurrent 0:fp32 1024:fp32");
  CHECK(layers("rwkvish", {2, 0, 0}, {}, {{"wkv.head_size", 64}, {"token_shift_count", 2}}) ==
        "1 full 2x64; 2 recurrent 32768:fp32 1024:fp32");
}

TEST_CASE("windows by lists and periods") {
  CHECK(layers_of(plain("phi3").own("phi3", {{"attention.sliding_window", 128}})) == "4 window 128 2x64");
  CHECK(layers_of(plain("gemma3")
                      .own("gemma3", {{"attention.sliding_window", 128}})
                      .list("gemma3.attention.sliding_window_pattern", {1, 0, 0, 1}, 7)) ==
        "2 window 128 2x64; 2 full 2x64");
  CHECK(layers_of(plain("gemma3").own("gemma3", {{"attention.sliding_window", 128},
                                                 {"attention.sliding_window_pattern", 0}})) == "4 window 128 2x64");
  Gguf shared("gemma3n");
  shared.own(
      "gemma3n",
      {{"block_count", 24}, {"embedding_length", 512}, {"attention.head_count", 8}, {"attention.head_count_kv", 2}});
  CHECK(layers_of(shared) == "20 full 2x64; 4 shared");
}

TEST_CASE("names, vocabularies and what is left unread") {
  CHECK(model_of(plain("llama").number("general.name", 7)).name == "llama");
  CHECK(model_of(plain("llama").texts("general.name", 2)).name == "llama");
  CHECK(model_of(plain("llama").text("general.name", "seven")).name == "seven");
  CHECK(model_of(plain("llama").number("tokenizer.ggml.tokens", 7)).vocabulary == 0);
  CHECK(model_of(plain("llama").number("llama.vocab_size", 9).texts("tokenizer.ggml.tokens", 7)).vocabulary == 9);
  Gguf many = plain("llama");
  for (int i = 0; i < 300; ++i) many.number("llama.unknown" + std::to_string(i), 1);
  CHECK(model_of(many).ignored.size() == 200);
}

TEST_CASE("weights of files of unknown types, of parts, and of no tensors") {
  const auto weights = [](const Gguf& file) {
    const Model model = model_of(file);
    return model.native_weights != nullptr ? std::string(model.native_weights->id) : "?";
  };
  CHECK(weights(plain("llama").number("general.file_type", 7)) == "q8_0");
  CHECK(weights(plain("llama").number("general.file_type", 999)) == "?");
  CHECK(weights(plain("llama").list("general.file_type", {7})) == "?");
  CHECK(weights(plain("llama").raw("general.file_type", 6, std::string_view("\0\0\xE0\x40", 4))) == "?");
  CHECK(weights(plain("llama").text("general.file_type", "q8_0")) == "?");

  const auto notes = [](const Model& model) { return model.note_codes; };
  const auto tensor = [](Gguf file, std::uint32_t type) { return file.tensor("a", {512, 4}, type); };
  CHECK(notes(model_of(tensor(plain("llama").number("split.count", 2), 0))) == std::vector<std::string>{"split_file"});
  CHECK(model_of(tensor(plain("llama").number("split.count", 1), 0)).native_weight_bytes == Bytes{512 * 4 * 4});
  const std::string head = tensor(plain("llama"), 99).head();
  const auto unknown = import_gguf(bytes_of(head), 1 << 20);
  REQUIRE(unknown);
  CHECK(notes(unknown->model) == std::vector<std::string>{"tensor_type_unknown"});
  CHECK(unknown->model.native_weight_bytes == Bytes{(1 << 20) - (head.size() + 31) / 32 * 32});
  const auto empty = import_gguf(bytes_of(head), head.size());
  REQUIRE(empty);
  CHECK_FALSE(empty->model.native_weight_bytes);
  const std::string whole = tensor(plain("llama"), 0).head();
  const auto cut = import_gguf(bytes_of(whole), whole.size() + 100);
  REQUIRE(cut);
  CHECK(notes(cut->model) == std::vector<std::string>{"file_is_cut"});
}

TEST_CASE("other files are known by their first words") {
  for (const char* const text : {"<!DOCTYPE html>", "<!doctype html>", "<html>", " \r\n\t<html lang=\"en\">"}) {
    CAPTURE(text);
    CHECK(known_as(bytes_of(text)).find("web page") != std::string_view::npos);
  }
  CHECK(known_as(bytes_of("version https://git-lfs.github.com/spec/v1")).find("Git LFS") != std::string_view::npos);
  CHECK(known_as(bytes_of("PK\x03\x04")).find("zip") != std::string_view::npos);
  for (const char* const text : {"", " ", "GGUF", "<xml>", "{}"}) {
    CAPTURE(text);
    CHECK(known_as(bytes_of(text)).empty());
  }
}

TEST_CASE("lengths near 2^64 do not wrap") {
  std::string head = Gguf("llama").head();
  head[16] = 2;  // a second key, of a name that passes all numbers
  Gguf::put(head, ~std::uint64_t{0}, 8);
  CHECK(error_of(head, ~u64{0}) == "too_large file");
  CHECK(error_of(head, kLarge) == "malformed key");
}

}  // namespace
}  // namespace kvcap
