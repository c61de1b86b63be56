// Checkpoint sizes from safetensors headers and weight indexes, and the facade that pages call.
#include <doctest/doctest.h>

#include <random>
#include <tuple>

#include "import_support.hpp"
#include "kvcap/import.hpp"
#include "kvcap/safetensors.hpp"

namespace kvcap {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string file_of(std::string_view header) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 0xFF);
  return out + std::string(header);
}

std::string error_of(std::string_view head, u64 file_bytes) {
  const auto size = import_safetensors_header(bytes_of(head), file_bytes);
  if (size) return size->need_bytes != 0 ? "needs more" : "accepted";
  return std::string(std::string_view(code_name(size.error().code))) + " " + size.error().field;
}

constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},)"
    R"("b":{"dtype":"F32","shape":[3],"data_offsets":[64,76]},"s":{"dtype":"BF16","shape":[],"data_offsets":[76,78]}})";

TEST_CASE("a header gives bytes and values by dtype") {
  const std::string head = file_of(kHeader);
  const u64 file_bytes = head.size() + 78;
  const auto size = import_safetensors_header(bytes_of(head), file_bytes);
  REQUIRE(size);
  CHECK(size->bytes == Bytes{78});
  CHECK(size->values == 36u);
  CHECK(size->tensors == 3);
  REQUIRE(size->dtypes.size() == 2);
  CHECK(size->dtypes[0].dtype == "BF16");
  CHECK(size->dtypes[0].values == 33);
  CHECK(size->dtypes[1].bytes == Bytes{12});

  for (std::size_t length = 0; length < head.size(); ++length) {
    const auto part = import_safetensors_header(bytes_of(std::string_view(head).substr(0, length)), file_bytes);
    REQUIRE(part);
    CHECK(part->need_bytes > length);
    CHECK_FALSE(import_safetensors_header(bytes_of(std::string_view(head).substr(0, length)), length));
  }
}

TEST_CASE("headers that do not hold together are refused") {
  const auto with = [](std::string_view header, u64 data) {
    const std::string head = file_of(header);
    return error_of(head, head.size() + data);
  };
  CHECK(with(kHeader, 77) == "malformed s");
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,9]}})", 100) == "malformed a");
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[8,0]}})", 100) == "malformed a");
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[4]}})", 100) == "malformed a");
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[9007199254740991,9007199254740991],"data_offsets":[0,8]}})", 100) ==
        "out_of_range a");
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[-4],"data_offsets":[0,8]}})", 100) == "out_of_range a");
  CHECK(with("{\"a\":", 100) == "malformed header");
  CHECK(with("{}", 0) == "accepted");
  CHECK(error_of("version https://git-lfs.github.com/spec/v1\noid", 135) == "malformed file");
  CHECK(error_of(std::string(8, '\xFF'), 1 << 20) == "malformed file");
  std::string long_header = file_of("{");
  long_header[3] = 2;  // a header of 32 MiB
  CHECK(error_of(long_header, u64{1} << 30) == "too_large file");
  CHECK(error_of("abc", 3) == "malformed file");
  CHECK(error_of("abcd", 3) == "conflict file_bytes");
}

TEST_CASE("random changes to a header never break the reader") {
  const std::string seed = file_of(kHeader);
  std::mt19937 random(20250103);
  for (int round = 0; round < 10'000; ++round) {
    std::string head = seed;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) head[random() % head.size()] = static_cast<char>(random());
    const auto size = import_safetensors_header(bytes_of(head), head.size() + 78);
    if (size && size->need_bytes == 0) CHECK(size->bytes.count <= 9'007'199'254'740'991);
  }
}

TEST_CASE("an index gives the total and the files") {
  const auto size = import_weight_index(
      R"({"metadata":{"total_size":246,"total_parameters":123},"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"1.safetensors"}})");
  REQUIRE(size);
  CHECK(size->bytes == Bytes{246});
  CHECK(size->values == 123u);
  CHECK(size->tensors == 3);
  CHECK(size->files == 2);
  const auto field = [](std::string_view text) {
    const auto read = import_weight_index(text);
    return read ? std::string("accepted") : read.error().field;
  };
  CHECK(field(R"({"metadata":{"total_size":246}})") == "weight_map");
  CHECK(field(R"({"weight_map":{}})") == "metadata.total_size");
  CHECK(field(R"({"metadata":{"total_size":1e40},"weight_map":{}})") == "metadata.total_size");
  const auto merged = import_weight_index("{\"metadata\":{\"total_size\":1},\"weight_map\":{}}\n=======\n{}");
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code == ErrorCode::malformed);
  CHECK(merged.error().message.find("merge") != std::string::npos);
}

TEST_CASE("a checkpoint makes the config's weights exact") {
  const auto config = test::read_file("tests/data/configs/plain-llama.json");
  REQUIRE(config);
  const std::string index = R"({"metadata":{"total_size":3422777344},"weight_map":{"a":"1"}})";
  const std::string answer = import_json("auto", bytes_of(index), index.size(), *config);
  CHECK(answer.find(R"("kind":"index")") != std::string::npos);
  CHECK(answer.find(R"("weight_bytes":3422777344,"weight_bytes_estimated":false)") != std::string::npos);
  CHECK(answer.find(R"("parameters":1711376384)") != std::string::npos);
  // The header of one of several files does not size the model.
  const std::string part = file_of(kHeader);
  const std::string partial = import_json("auto", bytes_of(part), part.size() + 78, *config);
  CHECK(partial.find("checkpoint_is_partial") != std::string::npos);
  CHECK(partial.find("\"weight_bytes\"") == std::string::npos);
  const std::string alone = import_json("auto", bytes_of(part), part.size() + 78, "");
  CHECK(alone.find(R"("model":null,"checkpoint":{"bytes":78,"values":36)") != std::string::npos);
  const std::string broken = import_json("auto", bytes_of(part), part.size() + 78, "{");
  CHECK(broken.find(R"("error":{"code":"malformed")") != std::string::npos);
}

TEST_CASE("files are known by their first bytes") {
  const auto answer = [](std::string_view text, u64 file_bytes) {
    return import_json("auto", bytes_of(text), file_bytes, "");
  };
  CHECK(answer("", 0).find("is empty") != std::string::npos);
  CHECK(answer("", 1 << 20) == R"({"kind":"auto","need_bytes":65536})");
  CHECK(answer("\xEF\xBB\xBF {\"model_type\":", 5000) == R"({"kind":"config","need_bytes":5000})");
  CHECK(answer("plain words", 11).find("none of the files") != std::string::npos);
  CHECK(answer("GGUF", 1 << 20) == R"({"kind":"gguf","need_bytes":1048576})");
  const auto config = test::read_file("tests/data/configs/plain-llama.json");
  REQUIRE(config);
  const std::string model = answer(*config, config->size());
  CHECK(model.find(R"({"kind":"config","model":{"name":"llama")") == 0);
  CHECK(import_json("config", bytes_of(*config), config->size(), "") == model);
  CHECK(import_json("gguf", bytes_of(*config), config->size(), "").find("malformed") != std::string::npos);
  CHECK(import_json("something", bytes_of(*config), config->size(), "").find("malformed") != std::string::npos);
}

TEST_CASE("entries of another form, and sums past what is kept exact, are refused") {
  const auto with = [](std::string_view header, u64 data) {
    const std::string head = file_of(header);
    return error_of(head, head.size() + data);
  };
  CHECK(with("[]", 0) == "malformed file");
  for (const char* const entry : {
           R"({"a":7})",
           R"({"a":{"shape":[4],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":7,"shape":[4],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"BF16","data_offsets":[0,8]}})",
           R"({"a":{"dtype":"BF16","shape":4,"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":8}})",
           R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[8]}})",
           R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,4,8]}})",
       }) {
    CAPTURE(entry);
    CHECK(with(entry, 100) == "malformed a");
  }
  CHECK(with(R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,"x"]}})", 100) == "wrong_type a");
  CHECK(with(R"({"a":{"dtype":"NEW","shape":[4],"data_offsets":[0,3]}})", 100) == "accepted");
  // Of a dtype that is not known: 2^53 - 1 values, and once more
  CHECK(with(R"({"a":{"dtype":"NEW","shape":[9007199254740991],"data_offsets":[0,8]},)"
             R"("b":{"dtype":"NEW","shape":[1],"data_offsets":[0,8]}})",
             100) == "out_of_range b");
  CHECK(with(R"({"a":{"dtype":"NEW","shape":[1],"data_offsets":[0,9007199254740991]},)"
             R"("b":{"dtype":"NEW","shape":[1],"data_offsets":[0,1]}})",
             u64{1} << 53) == "malformed b");
}

TEST_CASE("indexes of another form are refused") {
  const auto outcome = [](std::string_view text) {
    const auto size = import_weight_index(text);
    return size ? "accepted" : std::string(std::string_view(code_name(size.error().code))) + " " + size.error().field;
  };
  CHECK(outcome("<html>") == "malformed index");
  CHECK(outcome("{") == "malformed index");
  CHECK(outcome("{}") == "missing weight_map");
  CHECK(outcome(R"({"weight_map":7})") == "missing weight_map");
  CHECK(outcome(R"({"weight_map":{}})") == "missing metadata.total_size");
  CHECK(outcome(R"({"weight_map":{},"metadata":{}})") == "missing metadata.total_size");
  CHECK(outcome(R"({"weight_map":{},"metadata":{"total_size":0}})") == "out_of_range metadata.total_size");
  CHECK(outcome(R"({"weight_map":{},"metadata":{"total_size":8}})") == "accepted");
  const auto values = [](std::string_view count) {
    const auto size =
        import_weight_index(R"({"weight_map":{"a":"1","b":"1","c":"2","d":"1"},"metadata":{"total_size":8,)"
                            R"("total_parameters":)" +
                            std::string(count) + "}}");
    REQUIRE(size);
    CHECK(size->files == 2);
    CHECK(size->tensors == 4);
    return size->values.value_or(0);
  };
  CHECK(values("4") == 4);
  CHECK(values("\"many\"") == 0);
}

TEST_CASE("a checkpoint beside its config gives bytes, values and the dtype that all have") {
  const std::string known =
      R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":4,"num_attention_heads":1,"head_dim":4,)"
      R"("intermediate_size":4,"vocab_size":2,"torch_dtype":"float32"})";
  // One layer whose parameters are not counted, since its MLP is not stated
  const std::string uncounted =
      R"({"model_type":"llama","num_hidden_layers":1,"num_attention_heads":1,"head_dim":4,"torch_dtype":"float32"})";
  const auto model = [](std::string_view config, std::string_view header, u64 data) {
    const std::string head = file_of(header);
    return import_json("safetensors", bytes_of(head), head.size() + data, config);
  };
  const auto tensor = [](const char* dtype, int values, int bytes) {
    return R"({"a":{"dtype":")" + std::string(dtype) + R"(","shape":[)" + std::to_string(values) +
           R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  };
  const auto has = [](const std::string& answer, std::string_view part) {
    return answer.find(part) != std::string::npos;
  };
  for (const auto& [dtype, bytes, format] :
       {std::tuple{"BF16", 400, "bf16"}, std::tuple{"F16", 400, "fp16"}, std::tuple{"F32", 800, "fp32"}}) {
    CAPTURE(dtype);
    const std::string answer = model(uncounted, tensor(dtype, 200, bytes), 800);
    CHECK(has(answer, R"("parameters":200,)"));
    CHECK(has(answer, R"("native_weights":")" + std::string(format) + "\""));
    CHECK(has(answer, R"("weight_bytes":)" + std::to_string(bytes) + R"(,"weight_bytes_estimated":false)"));
  }
  // Packed values are fewer or more than parameters.
  for (const auto& [dtype, bytes] :
       {std::pair{"U8", 200}, std::pair{"I32", 800}, std::pair{"F8_E4M3", 200}, std::pair{"F4", 100}}) {
    CAPTURE(dtype);
    const std::string answer = model(uncounted, tensor(dtype, 200, bytes), 800);
    CHECK_FALSE(has(answer, "\"parameters\""));
    CHECK(has(answer, R"("native_weights":"fp32")"));
  }
  // A part of a model holds less than nine tenths of it: 136 values of 4 bytes.
  CHECK(has(model(known, tensor("BF16", 200, 400), 800), "checkpoint_is_partial"));
  CHECK_FALSE(has(model(known, tensor("F32", 136, 544), 800), "checkpoint_is_partial"));
  const std::string stored = known.substr(0, known.size() - 1) + R"(,"quantization_config":{"quant_method":"fp8"}})";
  CHECK(has(model(stored, tensor("F32", 10, 40), 800), "checkpoint_is_partial"));
  CHECK_FALSE(has(model(stored, tensor("F32", 136, 544), 800), "checkpoint_is_partial"));
  const std::string odd = known.substr(0, known.size() - 1) + R"(,"quantization_config":{"quant_method":"odd"}})";
  CHECK_FALSE(has(model(odd, tensor("F32", 10, 40), 800), "checkpoint_is_partial"));
  CHECK(has(model("{", tensor("F32", 10, 40), 800), R"("code":"malformed","field":"config")"));
  const std::string alone = model("", tensor("F32", 10, 40), 800);
  CHECK(has(alone, R"("model":null,"checkpoint":{"bytes":40,"values":10,"tensors":1)"));
}

TEST_CASE("the facade tells what it needs and what is wrong") {
  const auto ask = [](std::string_view kind, std::string_view text, u64 file_bytes, std::string_view config = "") {
    return import_json(kind, bytes_of(text), file_bytes, config);
  };
  const auto error = [](std::string_view code, std::string_view field) {
    return R"({"error":{"code":")" + std::string(code) + R"(","field":")" + std::string(field) + R"(",)";
  };
  CHECK(ask("auto", "abc", 2).find(error("conflict", "file_bytes")) == 0);
  CHECK(ask("auto", "<html>", 6).find(error("malformed", "file")) == 0);
  CHECK(ask("auto", "   ", 3).find(error("malformed", "file")) == 0);
  CHECK(ask("auto", "/* a comment */ {}", 18).find(error("missing", "num_hidden_layers")) == 0);
  CHECK(ask("config", "{", u64{1} << 40).find(error("too_large", "config")) == 0);
  CHECK(ask("auto", R"({"total_size":7})", u64{1} << 40).find(error("too_large", "index")) == 0);
  CHECK(ask("auto", R"({"weight_map":{}})", 17).find(error("missing", "metadata.total_size")) == 0);
  CHECK(ask("index", R"({"weight_map":{},"metadata":{"total_size":8}})", 45).find(R"({"kind":"index","model":null)") ==
        0);
  CHECK(ask("gguf", "GGUFxxxx", 8).find(error("unsupported", "version")) == 0);
  const std::string head = file_of(kHeader);
  CHECK(ask("auto", head, head.size() + 78).find(R"({"kind":"safetensors","model":null)") == 0);
  CHECK(ask("auto", head, head.size()).find(error("malformed", "")) != 0);
  CHECK(ask("auto", std::string_view(head).substr(0, 20), head.size() + 78)
            .find(R"({"kind":"safetensors","need_bytes":)") == 0);
  CHECK(ask("safetensors", "abc", 3).find(error("malformed", "file")) == 0);
  std::string large = head;
  large[7] = 1;  // a header of 2^56 bytes
  CHECK(ask("auto", large, large.size()).find(error("malformed", "file")) == 0);
}

TEST_CASE("indexes and headers found in the wild") {
  const std::string folder = "../shared/data/headers/";
  if (!test::read_file(folder + "index.tsv")) {
    MESSAGE("skipped: ../shared/data/headers is not here");
    return;
  }
  const auto index = [&](const char* name) {
    const auto text = test::read_file(folder + name);
    REQUIRE(text);
    return import_weight_index(*text);
  };
  const auto minimax = index("MiniMax-M1.model.safetensors.index.json");
  REQUIRE(minimax);
  CHECK(minimax->bytes == Bytes{912'210'767'872});
  CHECK(minimax->tensors == 8243);
  CHECK(minimax->files == 413);
  const auto smol = index("SmolLM3-3B.model.safetensors.index.json");
  REQUIRE(smol);
  CHECK(smol->bytes == Bytes{6'150'197'248});
  CHECK(smol->values == 3'075'098'624u);
  const auto wizard = index("WizardLM-2-8x22B.model.safetensors.index.json");
  REQUIRE(wizard);
  CHECK(wizard->bytes == Bytes{281'241'268'224});
  CHECK(wizard->files == 59);
  const auto bloom = index("bloom.model.safetensors.index.json");
  REQUIRE_FALSE(bloom);
  CHECK(bloom.error().message.find("merge") != std::string::npos);
  const auto phi = test::read_file(folder + "tiny-random-PhiModel.safetensors");
  REQUIRE(phi);
  const auto size = import_safetensors_header(bytes_of(*phi), phi->size());
  REQUIRE(size);
  CHECK(size->values == 46'282u);
  CHECK(size->bytes == Bytes{185'128});
  CHECK(size->tensors == 31);
  const auto pointer = test::read_file(folder + "bloom.lfs-pointer.safetensors");
  REQUIRE(pointer);
  CHECK_FALSE(import_safetensors_header(bytes_of(*pointer), pointer->size()));
}

}  // namespace
}  // namespace kvcap
