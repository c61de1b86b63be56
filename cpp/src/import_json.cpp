#include <optional>

#include "answer.hpp"
#include "kvcap/gguf.hpp"
#include "kvcap/import.hpp"
#include "kvcap/plan.hpp"
#include "kvcap/safetensors.hpp"

namespace kvcap {
namespace {

void write_checkpoint(json::Writer& out, const CheckpointSize& size) {
  out.begin_object().key("bytes").number(size.bytes.count).key("values");
  if (size.values) {
    out.number(*size.values);
  } else {
    out.null();
  }
  out.key("tensors").number(size.tensors).key("files").number(size.files).key("dtypes").begin_array();
  for (const DtypeSize& dtype : size.dtypes) {
    out.begin_object().key("dtype").text(dtype.dtype).key("values").number(dtype.values);
    out.key("bytes").number(dtype.bytes.count).end_object();
  }
  out.end_array().end_object();
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What a file is by its first bytes; empty when it is nothing that is read.
std::string_view kind_of(std::span<const std::byte> bytes) {
  std::string_view text = text_of(bytes.first(std::min<std::size_t>(bytes.size(), 4096)));
  if (text.starts_with("GGUF")) return "gguf";
  if (text.size() > 8 && text[8] == '{' && static_cast<unsigned char>(text[7]) == 0) return "safetensors";
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || (text[start] != '{' && text[start] != '/')) return {};
  return text.find("\"weight_map\"") != std::string_view::npos || text.find("\"total_size\"") != std::string_view::npos
             ? "index"
             : "config";
}

std::string need(std::string_view kind, u64 bytes) {
  json::Writer out;
  out.begin_object().key("kind").text(kind).key("need_bytes").number(bytes).end_object();
  return out.take();
}

std::string answer(std::string_view kind, const Model* model, const CheckpointSize* size) {
  json::Writer out;
  out.begin_object().key("kind").text(kind).key("model");
  if (model != nullptr) {
    write_model(out, *model);
  } else {
    out.null();
  }
  out.key("checkpoint");
  if (size != nullptr) {
    write_checkpoint(out, *size);
  } else {
    out.null();
  }
  out.end_object();
  return out.take();
}

std::string with_config(std::string_view kind, const CheckpointSize& size, std::string_view config) {
  if (config.empty()) return answer(kind, nullptr, &size);
  auto model = import_config_text(config);
  if (!model) return error_json(model.error());
  // A header sizes its own file, which may be one of several: then it holds much less than the model.
  Wide whole_bytes = 0;
  if (model->native_weight_bytes) {
    whole_bytes = model->native_weight_bytes->count;
  } else if (model->parameters && model->native_weights != nullptr) {
    whole_bytes = model->native_weights->bytes_of(*model->parameters);
  }
  if (kind == "safetensors" && Wide{size.bytes.count} * 10 < whole_bytes * 9) {
    model->note_codes.emplace_back("checkpoint_is_partial");
    return answer(kind, &*model, &size);
  }
  const Model whole = combine(std::move(*model), size);
  return answer(kind, &whole, &size);
}

}  // namespace

void write_model(json::Writer& out, const Model& model) {
  const auto known = [&](Label name, u64 value) {
    if (value != 0) out.key(name).number(value);
  };
  out.begin_object().key("name").text(model.name).key("family").text(model.family).key("source").text(model.source);
  known("parameters", model.parameters.value_or(0));
  known("active_parameters", model.active_parameters.value_or(0));
  known("max_context", model.max_context);
  known("layer_count", model.layer_count);
  known("query_heads", model.query_heads);
  known("vocabulary", model.vocabulary);
  if (model.multimodal) out.key("multimodal").boolean(true);
  out.key("native_weights");
  if (model.native_weights != nullptr) {
    out.text(model.native_weights->id);
  } else {
    out.null();
  }
  if (model.native_weight_bytes) {
    out.key("weight_bytes").number(model.native_weight_bytes->count);
    out.key("weight_bytes_estimated").boolean(model.native_weights_estimated);
  }
  if (model.native_cache != nullptr) out.key("native_cache").text(model.native_cache->id);
  out.key("layers").begin_array();
  for (const LayerRun& run : model.layers) write_run(out, run);
  out.end_array().key("notes").begin_array();
  for (const std::string& code : model.note_codes) out.text(code);
  out.end_array().key("fields");
  write_fields(out, model);
  out.end_object();
}

std::string import_json(std::string_view kind, std::span<const std::byte> bytes, u64 file_bytes,
                        std::string_view config) {
  const auto refuse = [](ErrorCode code, std::string_view field, std::string_view message) {
    return error_json(Error{code, field, message});
  };
  if (bytes.size() > file_bytes)
    return refuse(ErrorCode::conflict, "file_bytes", "is less than the bytes that were given");
  if (file_bytes == 0) return refuse(ErrorCode::malformed, "file", "is empty");
  if (bytes.empty()) return need(kind, std::min<u64>(file_bytes, 1u << 16));
  if (const std::string_view other = known_as(bytes); !other.empty())
    return refuse(ErrorCode::malformed, "file", other);
  if (kind == "auto") kind = kind_of(bytes);

  if (kind == "gguf") {
    const auto head = import_gguf(bytes, file_bytes);
    if (!head) return error_json(head.error());
    return head->need_bytes != 0 ? need(kind, head->need_bytes) : answer(kind, &head->model, nullptr);
  }
  if (kind == "safetensors") {
    const auto size = import_safetensors_header(bytes, file_bytes);
    if (!size) return error_json(size.error());
    return size->need_bytes != 0 ? need(kind, size->need_bytes) : with_config(kind, *size, config);
  }
  if (kind == "config" || kind == "index") {
    const u64 most = kind == "config" ? kMaxConfigBytes : kMaxIndexBytes;
    if (file_bytes > most) {
      return refuse(ErrorCode::too_large, kind,
                    Text() << "has " << file_bytes << " bytes; at most " << most << " are read");
    }
    if (bytes.size() < file_bytes) return need(kind, file_bytes);
    if (kind == "index") {
      const auto size = import_weight_index(text_of(bytes));
      return size ? with_config(kind, *size, config) : error_json(size.error());
    }
    const auto model = import_config_text(text_of(bytes));
    return model ? answer(kind, &*model, nullptr) : error_json(model.error());
  }
  return refuse(ErrorCode::malformed, "file",
                "is none of the files that are read: a config.json, a GGUF or safetensors file, or a "
                "model.safetensors.index.json");
}

}  // namespace kvcap
