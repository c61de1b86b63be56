#include <algorithm>
#include <array>

#include "kvcap/gguf.hpp"
#include "kvcap/import.hpp"
#include "kvcap/json.hpp"
#include "kvcap/safetensors.hpp"

namespace kvcap {

using json::Kind;
using json::Value;

namespace {

struct Dtype {
  std::string_view name;
  u32 bits;
};
constexpr std::array kDtypes = {
    Dtype{"F64", 64},        Dtype{"F32", 32},        Dtype{"F16", 16}, Dtype{"BF16", 16},   Dtype{"F8_E4M3", 8},
    Dtype{"F8_E5M2", 8},     Dtype{"F8_E8M0", 8},     Dtype{"I64", 64}, Dtype{"I32", 32},    Dtype{"I16", 16},
    Dtype{"I8", 8},          Dtype{"U64", 64},        Dtype{"U32", 32}, Dtype{"U16", 16},    Dtype{"U8", 8},
    Dtype{"BOOL", 8},        Dtype{"C64", 64},        Dtype{"F4", 4},   Dtype{"F6_E2M3", 6}, Dtype{"F6_E3M2", 6},
    Dtype{"F8_E4M3FNUZ", 8}, Dtype{"F8_E5M2FNUZ", 8},
};

std::string at(std::string_view name) { return std::string(name.substr(0, 80)); }

/// One tensor's entry; returns an error or adds to the sum.
std::optional<Error> add_tensor(const Value& tensor, u64 data_bytes, CheckpointSize& out) {
  const auto wrong = [&](ErrorCode code, std::string_view message) { return Error{code, at(tensor.key), message}; };
  const Value* const dtype = tensor.get("dtype");
  const Value* const shape = tensor.get("shape");
  const Value* const offsets = tensor.get("data_offsets");
  if (dtype == nullptr || !dtype->is(Kind::string) || shape == nullptr || !shape->is(Kind::array) ||
      offsets == nullptr || !offsets->is(Kind::array) || offsets->count() != 2) {
    return wrong(ErrorCode::malformed, "is not described by dtype, shape and two data_offsets");
  }
  u64 ends[2] = {};
  std::size_t i = 0;
  for (const Value& offset : *offsets) {
    const auto whole = json::to_whole(offset, at(tensor.key), 0, kMaxExact);
    if (!whole) return whole.error();
    ends[i++] = *whole;
  }
  if (ends[0] > ends[1] || ends[1] > data_bytes) return wrong(ErrorCode::malformed, "lies outside of the file");
  Wide values = 1;
  for (const Value& size : *shape) {
    const auto whole = json::to_whole(size, at(tensor.key), 0, kMaxExact);
    if (!whole) return whole.error();
    values *= *whole;
    if (values > kMaxExact) return wrong(ErrorCode::out_of_range, "has more than 2^53 values");
  }
  const auto known = std::ranges::find(kDtypes, dtype->text, &Dtype::name);
  if (known != kDtypes.end() && ceil_div<Wide>(values * known->bits, 8) != ends[1] - ends[0]) {
    return wrong(ErrorCode::malformed, "has other bytes than its shape and dtype come to");
  }
  auto sum = std::ranges::find(out.dtypes, dtype->text, &DtypeSize::dtype);
  if (sum == out.dtypes.end()) sum = out.dtypes.insert(sum, DtypeSize{at(dtype->text), 0, {}});
  const auto count = static_cast<u64>(values);
  if (sum->values + count > kMaxExact)
    return wrong(ErrorCode::out_of_range, "brings the file to more than 2^53 values");
  sum->values += count;
  sum->bytes.count += ends[1] - ends[0];
  out.bytes.count += ends[1] - ends[0];
  if (out.bytes.count > kMaxExact)
    return wrong(ErrorCode::malformed, "overlaps with others: all together pass the file's size");
  ++out.tensors;
  return std::nullopt;
}

}  // namespace

Result<CheckpointSize> import_safetensors_header(std::span<const std::byte> head, u64 file_bytes) {
  if (head.size() > file_bytes)
    return fail(ErrorCode::conflict, "file_bytes", "is less than the bytes that were given");
  if (const std::string_view other = known_as(head); !other.empty()) return fail(ErrorCode::malformed, "file", other);
  CheckpointSize out;
  if (head.size() < 8) {
    if (file_bytes < 8) return fail(ErrorCode::malformed, "file", "is too short for a safetensors file");
    out.need_bytes = std::min<u64>(file_bytes, 1u << 16);
    return out;
  }
  u64 length = 0;
  for (u32 i = 0; i < 8; ++i) length |= std::to_integer<u64>(head[i]) << (8 * i);
  if (length < 2 || length > file_bytes - 8 || (head.size() > 8 && head[8] != std::byte{'{'})) {
    return fail(ErrorCode::malformed, "file",
                "is no safetensors file: its first 8 bytes are not the length of a header within it");
  }
  if (length > kMaxSafetensorsHeader)
    return fail(ErrorCode::too_large, "file", "has a header of more than 16 MiB, which is not read");
  if (head.size() < 8 + length) {
    out.need_bytes = 8 + length;
    return out;
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + 8, static_cast<std::size_t>(length));
  const auto document = json::Document::parse(text, "header", kMaxSafetensorsHeader);
  if (!document) return std::unexpected(document.error());
  if (!document->root().is(Kind::object)) return fail(ErrorCode::malformed, "header", "is not an object");
  for (const Value& tensor : document->root()) {
    if (tensor.key == "__metadata__") continue;
    if (auto wrong = add_tensor(tensor, file_bytes - 8 - length, out)) return std::unexpected(std::move(*wrong));
  }
  u64 values = 0;
  for (const DtypeSize& dtype : out.dtypes) values += dtype.values;
  out.values = values;
  return out;
}

Result<CheckpointSize> import_weight_index(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  if (const std::string_view other = known_as(bytes); !other.empty()) return fail(ErrorCode::malformed, "index", other);
  const auto document = json::Document::parse(text, "index", kMaxIndexBytes);
  if (!document) return std::unexpected(name_merge_marks(document.error(), text));
  const Value& root = document->root();
  const Value* const map = root.get("weight_map");
  if (map == nullptr || !map->is(Kind::object))
    return fail(ErrorCode::missing, "weight_map", "is not in this file: it is no weight index");
  const Value* const metadata = root.get("metadata");
  const Value* const size = metadata != nullptr ? metadata->get("total_size") : nullptr;
  if (size == nullptr)
    return fail(ErrorCode::missing, "metadata.total_size", "is not in this index, so the bytes are not known");
  const auto total = json::to_whole(*size, "metadata.total_size", 1, kMaxExact);
  if (!total) return std::unexpected(total.error());
  CheckpointSize out;
  out.bytes = Bytes{*total};
  out.tensors = map->count();
  if (const Value* const count = metadata->get("total_parameters")) {
    const auto values = json::to_whole(*count, "metadata.total_parameters", 1, kMaxExact);
    if (values) out.values = *values;
  }
  std::string_view last;
  std::vector<std::string_view> files;
  for (const Value& file : *map) {
    // Tensors of one file mostly stand together.
    if (file.text == last) continue;
    last = file.text;
    if (files.size() < 4096 && std::ranges::find(files, last) == files.end()) files.push_back(last);
  }
  out.files = std::max<u64>(files.size(), 1);
  return out;
}

Model combine(Model model, const CheckpointSize& size) {
  model.native_weight_bytes = size.bytes;
  model.native_weights_estimated = false;
  const auto packed = [](const DtypeSize& dtype) {
    return dtype.dtype.starts_with("U") || dtype.dtype.starts_with("I") || dtype.dtype.starts_with("F8") ||
           dtype.dtype == "F4";
  };
  if (!model.parameters && size.values && std::ranges::none_of(size.dtypes, packed)) model.parameters = size.values;
  if (size.dtypes.size() == 1) {
    const std::string& only = size.dtypes.front().dtype;
    if (only == "BF16") model.native_weights = find_format("bf16");
    if (only == "F16") model.native_weights = find_format("fp16");
    if (only == "F32") model.native_weights = find_format("fp32");
  }
  return model;
}

}  // namespace kvcap
