// Asking the kernel from tests: JSON in, a parsed answer out.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "kvcap/json.hpp"
#include "kvcap/plan.hpp"

namespace kvcap::test {

/// A request's answer, kept with the text that its values point into.
class Asked {
 public:
  explicit Asked(std::string_view request, const Features& features = full_features())
      : text_(plan_json(request, features)), document_(parse(text_)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const json::Value& root() const { return document_.root(); }
  [[nodiscard]] bool refused() const { return root().find("error") != nullptr; }

  /// A member by path: "remedy.longest_context".
  [[nodiscard]] const json::Value* at(std::string_view path) const {
    const json::Value* value = &root();
    while (value != nullptr && !path.empty()) {
      const std::size_t dot = path.find('.');
      value = value->find(path.substr(0, dot));
      path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return value;
  }
  [[nodiscard]] u64 whole(std::string_view path) const {
    const json::Value* const value = at(path);
    REQUIRE_MESSAGE(value != nullptr, path << " in " << text_);
    REQUIRE_MESSAGE(value->is(json::Kind::number), path << " in " << text_);
    const auto read = json::to_whole(*value, path, 0, kMaxExact);
    REQUIRE(read);
    return *read;
  }
  [[nodiscard]] std::string words(std::string_view path) const {
    const json::Value* const value = at(path);
    REQUIRE_MESSAGE(value != nullptr, path << " in " << text_);
    return std::string(value->text);
  }
  [[nodiscard]] bool is_null(std::string_view path) const {
    const json::Value* const value = at(path);
    return value != nullptr && value->is(json::Kind::null);
  }

 private:
  static json::Document parse(const std::string& text) {
    auto document = json::Document::parse(text, "answer", kMaxRequestBytes);
    REQUIRE_MESSAGE(document, text);
    return std::move(*document);
  }

  std::string text_;
  json::Document document_;
};

/// {"model": "llama-3-8b", …more}
inline std::string request_for(std::string_view model, std::string_view more = "") {
  std::string text = R"({"model":")";
  text += model;
  text += '"';
  if (!more.empty()) {
    text += ',';
    text += more;
  }
  return text + "}";
}

}  // namespace kvcap::test
