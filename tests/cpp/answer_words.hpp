// What an answer lists, in one line each, so that a test holds all of it at once.
#pragma once

#include "plan_helpers.hpp"

namespace kvcap::test {

/// "name cells x layers: K + V; " of each cache, or its states "(convolutions)" instead; streams where there are
/// several.
inline std::string caches_of(const Asked& answer) {
  Text text;
  for (const json::Value& cache : *answer.at("caches")) {
    const auto figure = [&](Label name) { return cache.get(name)->text; };
    text << figure("name") << " " << figure("cells");
    if (figure("streams") != "1") text << " x " << figure("streams") << " streams";
    text << " x " << figure("layers") << ": ";
    if (figure("state_bytes") != "0") {
      text << figure("state_bytes") << " (" << figure("conv_bytes") << "); ";
    } else {
      text << figure("k_bytes") << " + " << figure("v_bytes") << "; ";
    }
  }
  return text.take();
}

/// "cause bytes; " of what is reserved beyond what is written.
inline std::string gaps_of(const Asked& answer) {
  Text text;
  for (const json::Value& gap : *answer.at("gaps")) {
    text << gap.get("code")->text << " " << gap.get("bytes")->text << "; ";
    CHECK(gap.get("low")->text == gap.get("bytes")->text);
    CHECK(gap.get("high")->text == gap.get("bytes")->text);
    CHECK(gap.get("confidence")->text == answer.words("confidence.kv_reserved_per_sequence"));
  }
  return text.take();
}

/// "code bytes; " of what a GPU holds beside weights and cache, an estimate with its range "low to high".
inline std::string parts_of(const Asked& answer) {
  Text text;
  for (const json::Value& part : *answer.at("parts")) {
    text << part.get("code")->text << " " << part.get("bytes")->text;
    if (part.get("confidence")->text == "estimate") {
      text << " (" << part.get("low")->text << " to " << part.get("high")->text << ")";
    } else {
      CHECK(part.get("low")->text == part.get("bytes")->text);
      CHECK(part.get("high")->text == part.get("bytes")->text);
    }
    text << "; ";
  }
  return text.take();
}

/// "code(name value, …); "
inline std::string notes_of(const Asked& answer) {
  Text text;
  for (const json::Value& note : *answer.at("notes")) {
    text << note.get("code")->text;
    bool first = true;
    for (const json::Value& value : *note.get("values")) {
      text << (first ? "(" : ", ") << value.key << " " << value.text;
      first = false;
    }
    text << (first ? "; " : "); ");
  }
  return text.take();
}

/// The steps of that name: "part: expression = value; ", "~" where the value is rounded down.
inline std::string steps_of(const Asked& answer, std::string_view name) {
  Text text;
  for (const json::Value& step : *answer.at("derivation")) {
    if (step.get("name")->text != name) continue;
    if (!step.get("part")->text.empty()) text << step.get("part")->text << ": ";
    text << step.get("expression")->text << (step.get("rounded_down")->truth ? " ~ " : " = ") << step.get("value")->text
         << "; ";
  }
  return text.take();
}

/// "stage: kind layers, heads from first of all, copies; …= bytes" of each GPU of a replica; "*" marks the fullest.
inline std::string ranks_of(const Asked& answer) {
  Text text;
  for (const json::Value& rank : *answer.at("ranks")) {
    const auto figure = [](const json::Value& from, Label name) { return from.get(name)->text; };
    text << figure(rank, "stage") << ": ";
    for (const json::Value& share : *rank.get("shares")) {
      text << figure(share, "kind") << " " << figure(share, "layers");
      if (figure(share, "of_heads") != "0") {
        text << " heads " << figure(share, "heads") << " from " << figure(share, "first_head") << " of "
             << figure(share, "of_heads");
      }
      text << " x " << figure(share, "copies") << ", ";
    }
    text << figure(rank, "kv_bytes_per_sequence") << (rank.get("fullest")->truth ? "*; " : "; ");
  }
  return text.take();
}

/// The two ends of a range, "" where it has none.
inline std::string range_of(const Asked& answer, std::string_view name) {
  Text text;
  if (answer.is_null(name)) return "";
  for (const json::Value& end : *answer.at(name)) text << end.text << " ";
  return text.take();
}

}  // namespace kvcap::test
