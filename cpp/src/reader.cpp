#include "reader.hpp"

namespace kvcap {

std::string Path::text() const {
  std::string out;
  if (parent != nullptr) {
    out = parent->text();
    if (!out.empty() && !indexed) out += '.';
  }
  return indexed ? out + '[' + digits(index) + ']' : out + name;
}

void ObjectReader::refuse(ErrorCode code, Label name, std::string_view message) {
  if (error_) return;
  if constexpr (kCoreKernel) {
    // Only of the request's own fields: what is inside them has no words on the page either.
    error_.emplace(*at_.name == 0 ? code : ErrorCode::unsupported, name, message);
  } else {
    const Path field{&at_, name};
    error_.emplace(code, *name == 0 ? at_.text() : field.text(), message);
  }
}

void ObjectReader::refuse_kind(Label name, const json::Value& value, Label accepted) {
  refuse(ErrorCode::wrong_type, name, Text() << json::describe(value) << " is not accepted: " << accepted << " is");
}

u64 ObjectReader::whole(Label name, u64 fallback, u64 min, u64 max) {
  const json::Value* const value = member(name);
  if (value == nullptr) return fallback;
  const auto read = json::to_whole(*value, {}, min, max);
  if (read) return *read;
  refuse(kCoreKernel ? ErrorCode::out_of_range : read.error().code, name, read.error().message);
  return fallback;
}

u64 ObjectReader::fraction(Label name, u64 fallback, Fraction min, Fraction max) {
  const json::Value* const value = member(name);
  if (value == nullptr) return fallback;
  const auto read = json::to_fraction(*value, {}, min, max);
  if (read) return read->billionths;
  refuse(read.error().code, name, read.error().message);
  return fallback;
}

bool ObjectReader::truth(Label name, bool fallback) {
  const json::Value* const value = member(name);
  if (value == nullptr) return fallback;
  if (value->is(json::Kind::boolean)) return value->truth;
  refuse_kind(name, *value, "true or false");
  return fallback;
}

std::string_view ObjectReader::text(Label name, std::string_view fallback) {
  const json::Value* const value = member(name);
  if (value == nullptr) return fallback;
  if (value->is(json::Kind::string)) return value->text;
  refuse_kind(name, *value, "text");
  return fallback;
}

const Format* ObjectReader::format(Label name, bool cache, const Format* fallback) {
  const json::Value* const value = member(name);
  if (value == nullptr) return fallback;
  if (!value->is(json::Kind::string)) {
    refuse_kind(name, *value, "the name of a format");
    return fallback;
  }
  const Format* const found = find_format(value->text);
  if (found != nullptr && (cache ? found->cache : found->weights)) return found;
  Text message;
  message << json::describe(*value) << (cache ? " is no format for a KV cache" : " is no format for weights")
          << "; these are:";
  Label separator = " ";
  for (const auto& one : formats()) {
    if (kCoreKernel || !(cache ? one.cache : one.weights)) continue;
    message << separator << one.id;
    separator = ", ";
  }
  refuse(ErrorCode::unknown_id, name, message);
  return fallback;
}

}  // namespace kvcap
