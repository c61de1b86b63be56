// What arrives at the servers, and what their memory looks like at a step.
#include <optional>

#include "kvcap/paging.hpp"
#include "kvcap/plan.hpp"
#include "random.hpp"
#include "reader.hpp"

namespace kvcap {
namespace {

using json::Kind;
using json::Value;

/// Mean lengths in hundredths of a token.
struct Lengths {
  u64 prompt = 0;
  u64 answer = 0;
};

struct NamedLengths {
  std::string_view name;
  Lengths mean;
  [[no_unique_address]] Source source;
};
constexpr NamedLengths kLengths[] = {
    {"sharegpt", {161'31, 337'99}, "Kwon et al. (2023), figure 11: means of ShareGPT's inputs and outputs"},
    {"alpaca", {19'31, 58'45}, "Kwon et al. (2023), figure 11: means of Alpaca's inputs and outputs"},
};

constexpr u64 kMostPages = 1u << 16;
constexpr u64 kMostRequests = 500;
constexpr u64 kLongest = 4096;
constexpr u64 kMostSteps = 10'000'000;
constexpr std::size_t kMostSamples = 512;

struct Question {
  PagingSetup setup;
  std::optional<u64> bytes_per_token;
  u64 memory_tokens = 0;
  u64 step = 0;
  bool history = false;
};

/// A length of which each next token is the last with the same chance, so that it has this mean and, as the measured
/// ones, a long tail; cut at `longest`.
u32 draw_length(Random& random, u64 mean_hundredths, u64 longest) {
  u32 length = 1;
  while (length < longest && random.below(mean_hundredths) >= 100) ++length;
  return length;
}

Lengths read_lengths(ObjectReader& root, const Path& at, std::optional<Error>& error) {
  const Value* const lengths = root.member("lengths");
  if (lengths != nullptr && lengths->is(Kind::object)) {
    const Path here{&at, "lengths"};
    ObjectReader in(*lengths, here, error);
    return {100 * in.whole("prompt", 161, 1, kLongest), 100 * in.whole("answer", 338, 1, kLongest)};
  }
  const std::string_view name = root.text("lengths", kLengths[0].name);
  for (const auto& one : kLengths) {
    if (one.name == name) return one.mean;
  }
  root.refuse(ErrorCode::unknown_id, "lengths",
              "is one of sharegpt, alpaca, or an object with the means of prompt and answer");
  return {};
}

u64 read_memory(ObjectReader& root, std::optional<u64>& bytes_per_token) {
  if (root.member("bytes_per_token") != nullptr) bytes_per_token = root.whole("bytes_per_token", 1, 1, kMaxExact);
  if (root.member("memory_bytes") == nullptr) return root.whole("memory_tokens", 8192, 1, kMaxExact);
  if (root.member("memory_tokens") != nullptr) {
    root.refuse(ErrorCode::conflict, "memory_tokens", "is given beside memory_bytes: one of the two is accepted");
  } else if (!bytes_per_token) {
    root.refuse(ErrorCode::missing, "bytes_per_token", "is needed to read memory_bytes as tokens");
  }
  const u64 bytes = root.whole("memory_bytes", 0, 1, kMaxExact);
  return root.failed() ? 0 : bytes / *bytes_per_token;
}

std::optional<Error> read_question(const Value& value, Question& out) {
  if (!value.is(Kind::object)) {
    return Error(ErrorCode::wrong_type, "request", Text() << json::describe(value) << " is not accepted: an object is");
  }
  const Path top;
  std::optional<Error> error;
  ObjectReader root(value, top, error);
  PagingSetup& setup = out.setup;
  const u64 seed = root.whole("seed", 1, 0, kMaxExact);
  out.memory_tokens = read_memory(root, out.bytes_per_token);
  setup.page_tokens = static_cast<u32>(root.whole("page_tokens", 16, 1, kLongest));
  const Lengths mean = read_lengths(root, top, error);
  const u64 longest_prompt = root.whole("longest_prompt", 1024, 1, kLongest);
  setup.longest_answer = static_cast<u32>(root.whole("longest_answer", 1024, 1, kLongest));
  setup.prefix_tokens = static_cast<u32>(root.whole("prefix_tokens", 0, 0, kLongest));
  const u64 requests = root.whole("requests", 60, 1, kMostRequests);
  const u64 every = root.whole("every", 8, 1, 10'000);
  out.step = root.whole("step", 0, 0, kMostSteps);
  out.history = root.truth("history", false);
  if (error) return error;

  const Label memory = root.member("memory_bytes") != nullptr ? "memory_bytes" : "memory_tokens";
  const u64 pages = out.memory_tokens / setup.page_tokens;
  const u64 longest = setup.prefix_tokens + longest_prompt + setup.longest_answer;
  if (pages > kMostPages) {
    root.refuse(ErrorCode::out_of_range, memory,
                Text() << "comes to " << pages << " pages; at most " << kMostPages << " are simulated");
  } else if (pages < ceil_div<u64>(longest, setup.page_tokens)) {
    root.refuse(ErrorCode::out_of_range, memory,
                Text() << "comes to " << pages << " pages of " << setup.page_tokens
                       << " tokens; the longest request (prefix, prompt and answer) takes " << longest << " tokens");
  }
  if (error) return error;

  setup.pages = static_cast<u32>(pages);
  Random random(seed);
  u32 arrival = 0;
  for (u64 i = 0; i < requests; ++i) {
    arrival += draw_length(random, 100 * every, 20 * every);
    const u32 prompt = setup.prefix_tokens + draw_length(random, mean.prompt, longest_prompt);
    setup.conversations.push_back({arrival, prompt, draw_length(random, mean.answer, setup.longest_answer)});
  }
  return std::nullopt;
}

/// How many ran at each step, or at every second, fourth, … so that few numbers tell it.
class History {
 public:
  void add(const PagingServer& server) {
    if (server.now() % every_ != 0) return;
    if (running_.size() == kMostSamples) {
      for (std::size_t i = 0; i < kMostSamples / 2; ++i) running_[i] = running_[2 * i];
      running_.resize(kMostSamples / 2);
      every_ *= 2;
    }
    running_.push_back(server.running());
  }
  void write(json::Writer& out) const {
    out.key("history").begin_object().key("every").number(every_).key("running").begin_array();
    for (const u32 one : running_) out.number(one);
    out.end_array().end_object();
  }

 private:
  std::vector<u32> running_;
  u32 every_ = 1;
};

void write_memory(json::Writer& out, const PagingServer& server, const Question& question) {
  const auto stretches = server.stretches();
  const u64 all = u64{question.setup.pages} * question.setup.page_tokens;
  out.key("totals").begin_object();
  for (const MemoryKind kind : kMemoryKinds) {
    u64 tokens = 0;
    for (const auto& one : stretches) tokens += one.kind == kind ? one.tokens : 0;
    out.key(memory_kind_name(kind)).begin_object().key("tokens").number(tokens);
    out.key("share").decimal(Wide{tokens} * 1'000'000 / all).end_object();
  }
  out.end_object().key("stretches").begin_array();
  for (const auto& one : stretches) {
    out.begin_object().key("kind").text(memory_kind_name(one.kind)).key("owner").number(one.owner);
    out.key("tokens").number(one.tokens).end_object();
  }
  out.end_array();
}

void write_server(json::Writer& out, const Question& question, PagingPolicy policy, Label name) {
  PagingServer server(question.setup, policy);
  while (server.now() < question.step && server.step()) {
  }
  out.begin_object().key("policy").text(name).key("running").number(server.running());
  out.key("waiting").number(server.waiting()).key("finished").number(server.finished());
  out.key("preempted").number(server.preempted()).key("spared_pages").number(server.spared_pages());
  out.key("spared_tokens").number(Wide{server.spared_pages()} * question.setup.page_tokens);
  write_memory(out, server, question);
  if (question.history) {
    PagingServer whole(question.setup, policy);
    History history;
    do history.add(whole);
    while (whole.step());
    history.write(out);
    out.key("peak").number(whole.peak()).key("last_step").number(whole.now());
  }
  out.end_object();
}

}  // namespace

std::string paging_json(std::string_view text) {
  const auto document = json::Document::parse(text, "request", kMaxRequestBytes);
  if (!document) return error_json(document.error());
  Question question;
  if (const auto refused = read_question(document->root(), question)) return error_json(*refused);
  const PagingSetup& setup = question.setup;
  const u64 managed = u64{setup.pages} * setup.page_tokens;
  json::Writer out;
  out.begin_object().key("step").number(question.step).key("pages").number(setup.pages);
  out.key("page_tokens").number(setup.page_tokens).key("memory_tokens").number(managed);
  out.key("memory_reading");
  if (question.bytes_per_token && Wide{managed} * *question.bytes_per_token <= kMaxExact) {
    const Reading reading = read_binary({managed * *question.bytes_per_token});
    out.begin_object().key("value").decimal(reading.millionths).key("unit").text(reading.unit).end_object();
  } else {
    out.null();
  }
  out.key("requests").begin_array();
  for (const auto& one : setup.conversations) {
    out.begin_object().key("arrival").number(one.arrival).key("prompt").number(one.prompt);
    out.key("answer").number(one.answer).end_object();
  }
  out.end_array().key("servers").begin_array();
  write_server(out, question, PagingPolicy::contiguous, "contiguous");
  write_server(out, question, PagingPolicy::paged, "paged");
  write_server(out, question, PagingPolicy::shared, "shared");
  out.end_array().end_object();
  return out.take();
}

}  // namespace kvcap
