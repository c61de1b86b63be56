// The paging simulation: properties over many seeds, a run by hand and a golden one.
#include "kvcap/paging.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "plan_helpers.hpp"

namespace {

using namespace kvcap;

/// Requests of all kinds: short and long, alone and at once, as long as the longest.
PagingSetup some_setup(u32 seed) {
  u64 state = seed * 2'654'435'761u + 12'345u;
  const auto below = [&](u32 count) {
    state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return static_cast<u32>((state >> 33) % count);
  };
  PagingSetup setup;
  setup.page_tokens = 1 + below(40);
  setup.prefix_tokens = below(3) == 0 ? 0 : below(90);
  setup.longest_answer = 1 + below(120);
  const u32 longest_prompt = 1 + below(60);
  const u32 largest = ceil_div(setup.prefix_tokens + longest_prompt + setup.longest_answer, setup.page_tokens);
  setup.pages = largest + below(6 * largest);
  u32 arrival = 0;
  for (u32 i = 0; i < 30; ++i) {
    arrival += below(12);
    const u32 answer = below(4) == 0 ? setup.longest_answer : 1 + below(setup.longest_answer);
    setup.conversations.push_back({arrival, setup.prefix_tokens + 1 + below(longest_prompt), answer});
  }
  return setup;
}

u64 total(const PagingServer& server, std::optional<MemoryKind> kind = {}) {
  u64 tokens = 0;
  for (const auto& one : server.stretches()) {
    if (!kind || one.kind == *kind) tokens += one.tokens;
  }
  return tokens;
}

/// Everything that can be seen of a server.
std::string seen(const PagingServer& server) {
  Text text;
  text << server.running() << "/" << server.waiting() << "/" << server.finished() << "/" << server.preempted();
  for (const auto& one : server.stretches())
    text << " " << memory_kind_name(one.kind) << one.owner << ":" << one.tokens;
  return text.take();
}

constexpr u32 kSeeds = 60;

}  // namespace

TEST_CASE("no page is owned twice, and only the common prefix is referred to by several") {
  for (u32 seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const PagingSetup setup = some_setup(seed);
    for (const auto policy : {PagingPolicy::contiguous, PagingPolicy::paged, PagingPolicy::shared}) {
      PagingServer server(setup, policy);
      const u32 shared = policy == PagingPolicy::shared ? setup.prefix_tokens / setup.page_tokens : 0;
      bool more = true;
      while (more) {
        more = server.step();
        std::vector<u32> holders(setup.pages, 0);
        std::set<u32> prefix;
        u64 held = 0;
        for (const auto& table : server.tables()) {
          for (std::size_t i = 0; i < table.size(); ++i) {
            if (i < shared) {
              held += prefix.insert(table[i]).second ? 1 : 0;
            } else {
              ++holders.at(table[i]);
              ++held;
            }
          }
        }
        REQUIRE(prefix.size() == (server.running() == 0 ? 0 : shared));
        for (const u32 page : prefix) ++holders.at(page);
        REQUIRE(*std::ranges::max_element(holders) <= 1);
        REQUIRE(server.spared_pages() == (server.running() == 0 ? 0 : u64{server.running() - 1} * shared));
        REQUIRE(total(server, kFree) + total(server, kFragmentation) == (setup.pages - held) * setup.page_tokens);
      }
      CHECK(server.finished() == setup.conversations.size());
    }
  }
}

TEST_CASE("memory adds up, and each server wastes in its own ways alone") {
  for (u32 seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const PagingSetup setup = some_setup(seed);
    for (const auto policy : {PagingPolicy::contiguous, PagingPolicy::paged, PagingPolicy::shared}) {
      PagingServer server(setup, policy);
      bool more = true;
      while (more) {
        more = server.step();
        REQUIRE(total(server) == u64{setup.pages} * setup.page_tokens);
        if (policy == PagingPolicy::contiguous) {
          REQUIRE(total(server, kLastPage) == 0);
          REQUIRE(total(server, kPrefix) == u64{setup.prefix_tokens} * server.running());
          // Whoever waits found no hole.
          if (server.waiting() != 0) REQUIRE(total(server, kFree) == 0);
        } else {
          REQUIRE(total(server, kReserved) + total(server, kFragmentation) == 0);
          REQUIRE(total(server, kLastPage) < u64{setup.page_tokens} * (server.running() + 1));
        }
      }
    }
  }
}

TEST_CASE("pages never serve fewer than blocks, whatever the step") {
  u32 more_at_once = 0;
  for (u32 seed = 0; seed < 5 * kSeeds; ++seed) {
    CAPTURE(seed);
    const PagingSetup setup = some_setup(seed);
    PagingServer blocks(setup, PagingPolicy::contiguous);
    PagingServer pages(setup, PagingPolicy::paged);
    PagingServer shared(setup, PagingPolicy::shared);
    bool more = true;
    while (more) {
      more = blocks.step();
      pages.step();
      shared.step();
      REQUIRE(pages.served() >= blocks.served());
      REQUIRE(pages.finished() >= blocks.finished());
      REQUIRE(shared.served() >= blocks.served());
    }
    CHECK(pages.now() <= blocks.now());
    more_at_once += pages.peak() > blocks.peak() ? 1 : 0;
  }
  CHECK(more_at_once > kSeeds);
}

TEST_CASE("without a common page sharing is plain paging") {
  u32 compared = 0;
  for (u32 seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const PagingSetup setup = some_setup(seed);
    if (setup.prefix_tokens >= setup.page_tokens) continue;
    ++compared;
    PagingServer pages(setup, PagingPolicy::paged);
    PagingServer shared(setup, PagingPolicy::shared);
    bool more = true;
    while (more) {
      more = pages.step();
      CHECK(shared.step() == more);
      REQUIRE(seen(shared) == seen(pages));
      REQUIRE(shared.spared_pages() == 0);
    }
  }
  CHECK(compared > kSeeds / 4);
}

namespace {

/// The same servers again, as plainly as can be: every page looked at every time, memory written down token by token.
struct PlainServer {
  struct Run {
    u32 id, tokens;
    std::vector<u32> pages;
  };
  const PagingSetup& setup;
  PagingPolicy policy;
  std::vector<bool> taken = std::vector<bool>(setup.pages);
  std::vector<u32> prefix{};
  std::vector<Run> running{};
  std::vector<u32> waiting{};
  std::vector<u32> generated = std::vector<u32>(setup.conversations.size());
  u32 arrived = 0, now = 0, finished = 0, preempted = 0, peak = 0;

  [[nodiscard]] u32 shared() const {
    return policy == PagingPolicy::shared ? setup.prefix_tokens / setup.page_tokens : 0;
  }
  [[nodiscard]] u32 pages_for(u32 tokens) const { return (tokens + setup.page_tokens - 1) / setup.page_tokens; }
  [[nodiscard]] u32 block(u32 id) const { return pages_for(setup.conversations[id].prompt + setup.longest_answer); }
  [[nodiscard]] u32 free() const { return static_cast<u32>(std::ranges::count(taken, false)); }
  u32 take() {
    const auto at = std::ranges::find(taken, false);
    *at = true;
    return static_cast<u32>(at - taken.begin());
  }
  void leave(std::size_t index) {
    for (const u32 page : running[index].pages) taken[page] = false;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
    if (!running.empty()) return;
    for (const u32 page : prefix) taken[page] = false;
    prefix.clear();
  }
  bool let_in(u32 id) {
    Run run{id, setup.conversations[id].prompt + generated[id], {}};
    if (policy == PagingPolicy::contiguous) {
      for (u32 first = 0; first + block(id) <= setup.pages; ++first) {
        bool hole = true;
        for (u32 page = first; page < first + block(id); ++page) hole = hole && !taken[page];
        if (!hole) continue;
        for (u32 page = first; page < first + block(id); ++page) {
          taken[page] = true;
          run.pages.push_back(page);
        }
        running.push_back(run);
        return true;
      }
      return false;
    }
    const u32 missing = prefix.empty() ? shared() : 0;
    if (pages_for(run.tokens + 1) - shared() + missing > free()) return false;
    for (u32 i = 0; i < missing; ++i) prefix.push_back(take());
    for (u32 i = shared(); i < pages_for(run.tokens); ++i) run.pages.push_back(take());
    running.push_back(run);
    return true;
  }
  void step() {
    ++now;
    for (std::size_t i = 0; i < running.size();) {
      if (generated[running[i].id] < setup.conversations[running[i].id].answer) {
        ++i;
        continue;
      }
      ++finished;
      leave(i);
    }
    while (arrived < setup.conversations.size() && setup.conversations[arrived].arrival <= now) {
      waiting.push_back(arrived++);
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (pages_for(running[i].tokens + 1) > shared() + running[i].pages.size()) {
        while (free() == 0 && i < running.size()) {
          waiting.insert(waiting.begin(), running.back().id);
          leave(running.size() - 1);
          ++preempted;
        }
        if (i == running.size()) break;
        running[i].pages.push_back(take());
      }
      ++running[i].tokens;
      ++generated[running[i].id];
    }
    while (!waiting.empty() && let_in(waiting.front())) waiting.erase(waiting.begin());
    peak = std::max(peak, static_cast<u32>(running.size()));
  }

  using Token = std::pair<MemoryKind, u32>;
  [[nodiscard]] std::vector<Token> memory() const {
    const u32 size = setup.page_tokens;
    std::vector<Token> tokens(std::size_t{setup.pages} * size, {kFree, 0});
    for (const u32 page : prefix) std::fill_n(tokens.data() + page * size, size, Token{kPrefix, 0});
    for (const auto& run : running) {
      for (u32 i = 0; i < run.pages.size() * size; ++i) {
        const u32 place = shared() * size + i;
        const MemoryKind kind = place < setup.prefix_tokens          ? kPrefix
                                : place < run.tokens                 ? kUsed
                                : policy == PagingPolicy::contiguous ? kReserved
                                                                     : kLastPage;
        tokens[run.pages[i / size] * size + i % size] = {kind, run.id + 1};
      }
    }
    if (policy != PagingPolicy::contiguous) return tokens;
    const u32 next =
        waiting.empty() ? pages_for(setup.prefix_tokens + 1 + setup.longest_answer) : block(waiting.front());
    for (u32 page = 0; page < setup.pages; ++page) {
      u32 end = page;
      while (end < setup.pages && !taken[end]) ++end;
      if (end - page < next)
        std::fill(tokens.data() + page * size, tokens.data() + end * size, Token{kFragmentation, 0});
      page = end;
    }
    return tokens;
  }
};

}  // namespace

TEST_CASE("servers do as a plain simulation does, step by step and token by token") {
  u32 preempted = 0;
  for (u32 seed = 0; seed < kSeeds; seed += 10) {
    CAPTURE(seed);
    const PagingSetup setup = some_setup(seed);
    for (const auto policy : {PagingPolicy::contiguous, PagingPolicy::paged, PagingPolicy::shared}) {
      PagingServer server(setup, policy);
      PlainServer plain{setup, policy};
      while (server.step()) {
        plain.step();
        REQUIRE(server.now() == plain.now);
        REQUIRE(server.running() == plain.running.size());
        REQUIRE(server.waiting() == plain.waiting.size());
        REQUIRE(server.finished() == plain.finished);
        REQUIRE(server.served() == plain.running.size() + plain.finished);
        REQUIRE(server.preempted() == plain.preempted);
        REQUIRE(server.peak() == plain.peak);
        std::vector<PlainServer::Token> memory;
        bool merged = true;
        for (const auto& one : server.stretches()) {
          const PlainServer::Token token{one.kind, one.owner};
          merged = merged && one.tokens > 0 && (memory.empty() || memory.back() != token);
          memory.insert(memory.end(), one.tokens, token);
        }
        REQUIRE(merged);
        REQUIRE((memory == plain.memory()));
        std::vector<std::vector<u32>> tables;
        for (const auto& run : plain.running) {
          tables.push_back(plain.prefix);
          tables.back().insert(tables.back().end(), run.pages.begin(), run.pages.end());
        }
        REQUIRE(server.tables() == tables);
      }
      plain.step();
      CHECK(server.now() == plain.now);
      CHECK(plain.finished == setup.conversations.size());
      CHECK_FALSE(server.step());
      CHECK(server.now() == plain.now);
      preempted += plain.preempted;
    }
  }
  CHECK(preempted > 5);
}

TEST_CASE("an idle server's memory is free where the smallest block fits") {
  // The prefix, one token of a prompt, and the longest answer: 3 + 1 + 4 tokens.
  PagingSetup setup{.page_tokens = 1, .prefix_tokens = 3, .longest_answer = 4, .conversations = {}};
  setup.pages = 8;
  CHECK(seen(PagingServer(setup, PagingPolicy::contiguous)) == "0/0/0/0 free0:8");
  setup.pages = 7;
  CHECK(seen(PagingServer(setup, PagingPolicy::contiguous)) == "0/0/0/0 fragmentation0:7");
  CHECK(seen(PagingServer(setup, PagingPolicy::paged)) == "0/0/0/0 free0:7");
}

TEST_CASE("a small run by hand") {
  // 8 pages of 4 tokens. A: prompt 6, answer 3. B: prompt 3, answer 5. Blocks are for answers of up to 6.
  PagingSetup setup{8, 4, 4, 6, {{1, 6, 3}, {1, 5, 5}, {2, 6, 1}}};
  PagingServer blocks(setup, PagingPolicy::contiguous);
  blocks.step();
  // 12 tokens are 3 pages, 11 tokens are 3 pages, 2 pages are left, and there the next of 3 pages does not fit.
  CHECK(seen(blocks) == "2/0/0/0 prefix1:4 used1:2 reserved1:6 prefix2:4 used2:1 reserved2:7 fragmentation0:8");
  blocks.step();
  CHECK(seen(blocks) == "2/1/0/0 prefix1:4 used1:3 reserved1:5 prefix2:4 used2:2 reserved2:6 fragmentation0:8");
  blocks.step();
  blocks.step();
  CHECK(blocks.finished() == 0);
  blocks.step();  // A had its three tokens at step 4.
  CHECK(seen(blocks) == "2/0/1/0 prefix3:4 used3:2 reserved3:6 prefix2:4 used2:5 reserved2:3 fragmentation0:8");

  PagingServer pages(setup, PagingPolicy::paged);
  pages.step();
  CHECK(seen(pages) == "2/0/0/0 prefix1:4 used1:2 last_page1:2 prefix2:4 used2:1 last_page2:3 free0:16");
  pages.step();
  CHECK(seen(pages) ==
        "3/0/0/0 prefix1:4 used1:3 last_page1:1 prefix2:4 used2:2 last_page2:2 prefix3:4 used3:2 "
        "last_page3:2 free0:8");

  PagingServer shared(setup, PagingPolicy::shared);
  shared.step();
  CHECK(seen(shared) == "2/0/0/0 prefix0:4 used1:2 last_page1:2 used2:1 last_page2:3 free0:20");
  CHECK(shared.spared_pages() == 1);
}

TEST_CASE("where pages run out the latest waits again, and is not lost") {
  PagingSetup setup{4, 4, 0, 12, {{1, 4, 12}, {1, 4, 12}, {1, 4, 12}}};
  PagingServer pages(setup, PagingPolicy::paged);
  u32 most_waiting = 0;
  while (pages.step()) most_waiting = std::max(most_waiting, pages.waiting());
  CHECK(pages.peak() == 3);
  CHECK(most_waiting == 2);
  CHECK(pages.preempted() == 3);
  CHECK(pages.finished() == 3);
}

namespace {

/// An answer of paging_json with what plan_helpers' Asked can look up.
class Answered {
 public:
  explicit Answered(std::string_view question) : text(paging_json(question)), document_(parse(text)) {}
  std::string text;
  [[nodiscard]] const json::Value& root() const { return document_.root(); }
  [[nodiscard]] std::string error(Label part) const {
    const json::Value* const found = root().find("error");
    return found == nullptr ? "" : std::string(found->find(part)->text);
  }
  [[nodiscard]] u64 of(std::size_t server, std::string_view figure) const {
    auto at = root().find("servers")->begin();
    while (server-- > 0) ++at;
    const json::Value* value = at->find(figure);
    if (value == nullptr) value = at->find("totals")->find(figure)->find("tokens");
    return *json::to_whole(*value, figure, 0, kMaxExact);
  }

 private:
  static json::Document parse(const std::string& answer) {
    auto document = json::Document::parse(answer, "answer", kMaxRequestBytes);
    REQUIRE_MESSAGE(document, answer);
    return std::move(*document);
  }
  json::Document document_;
};

}  // namespace

TEST_CASE("hostile questions are refused by field") {
  const struct {
    const char* question;
    const char* code;
    const char* field;
  } kRows[] = {
      {"7", "wrong_type", "request"},
      {"{", "malformed", "request"},
      {R"({"step":-1})", "out_of_range", "step"},
      {R"({"step":1e30})", "out_of_range", "step"},
      {R"({"seed":"x"})", "wrong_type", "seed"},
      {R"({"page_tokens":0})", "out_of_range", "page_tokens"},
      {R"({"page_tokens":1.5})", "not_whole", "page_tokens"},
      {R"({"requests":501})", "out_of_range", "requests"},
      {R"({"every":0})", "out_of_range", "every"},
      {R"({"longest_answer":0})", "out_of_range", "longest_answer"},
      {R"({"longest_answer":4097})", "out_of_range", "longest_answer"},
      {R"({"memory_tokens":2047})", "out_of_range", "memory_tokens"},
      {R"({"memory_tokens":9007199254740991})", "out_of_range", "memory_tokens"},
      {R"({"memory_bytes":1073741824})", "missing", "bytes_per_token"},
      {R"({"memory_bytes":1073741824,"bytes_per_token":0})", "out_of_range", "bytes_per_token"},
      {R"({"memory_bytes":1000,"bytes_per_token":131072})", "out_of_range", "memory_bytes"},
      {R"({"memory_bytes":1,"memory_tokens":8192,"bytes_per_token":1})", "conflict", "memory_tokens"},
      {R"({"lengths":"wikipedia"})", "unknown_id", "lengths"},
      {R"({"lengths":7})", "wrong_type", "lengths"},
      {R"({"lengths":{"prompt":0}})", "out_of_range", "lengths.prompt"},
      {R"({"history":1})", "wrong_type", "history"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.question);
    const Answered answer(row.question);
    CHECK(answer.error("code") == row.code);
    CHECK(answer.error("field") == row.field);
  }
}

TEST_CASE("the same question gives the same answer, another seed another one") {
  const std::string question = R"({"seed":3,"step":400,"prefix_tokens":128,"history":true})";
  CHECK(paging_json(question) == paging_json(question));
  CHECK(paging_json(R"({"seed":4,"step":400})") != paging_json(R"({"seed":3,"step":400})"));
  // A memory in bytes is read as tokens.
  CHECK(Answered(R"({"memory_bytes":1073741824,"bytes_per_token":131072,"step":50})").of(1, "used") ==
        Answered(R"({"memory_tokens":8192,"step":50})").of(1, "used"));
}

TEST_CASE("drawn lengths have the means that they are named for") {
  const struct {
    const char* lengths;
    double prompt, answer;
  } kRows[] = {
      {R"("sharegpt")", 161.31, 337.99}, {R"("alpaca")", 19.31, 58.45}, {R"({"prompt":50,"answer":9})", 50, 9}};
  for (const auto& row : kRows) {
    CAPTURE(row.lengths);
    double prompt = 0;
    double answer = 0;
    double arrival = 0;
    int count = 0;
    for (int seed = 0; seed < 20; ++seed) {
      Text question;
      question << R"({"longest_prompt":4096,"longest_answer":4096,"memory_tokens":65536,"requests":500,"lengths":)";
      question << row.lengths << R"(,"seed":)" << static_cast<u64>(seed) << "}";
      const Answered drawn(question);
      u64 last = 0;
      for (const auto& one : *drawn.root().find("requests")) {
        prompt += static_cast<double>(*json::to_whole(*one.find("prompt"), "", 1, 4096));
        answer += static_cast<double>(*json::to_whole(*one.find("answer"), "", 1, 4096));
        last = *json::to_whole(*one.find("arrival"), "", 1, kMaxExact);
        ++count;
      }
      arrival += static_cast<double>(last) / 500;
    }
    CHECK(prompt / count == doctest::Approx(row.prompt).epsilon(0.04));
    CHECK(answer / count == doctest::Approx(row.answer).epsilon(0.04));
    CHECK(arrival / 20 == doctest::Approx(8).epsilon(0.04));
  }
}

TEST_CASE("a golden run: ShareGPT's lengths, a prefix of 128 tokens, 8,192 tokens of memory") {
  static constexpr const char* kFigures[] = {"running", "waiting", "finished", "preempted", "spared_tokens",
                                             "used",    "prefix",  "reserved", "last_page", "fragmentation",
                                             "free",    "peak",    "last_step"};
  const struct {
    u64 step;
    std::size_t server;
    u64 figures[std::size(kFigures)];
  } kRows[] = {
      {400, 0, {5, 45, 3, 0, 0, 2407, 640, 3401, 0, 1744, 0, 6, 5089}},
      {400, 1, {12, 30, 11, 12, 0, 6512, 1536, 0, 96, 0, 48, 22, 2183}},
      {400, 2, {14, 25, 14, 18, 1664, 7598, 128, 0, 114, 0, 352, 31, 1936}},
      {800, 0, {4, 47, 9, 0, 0, 2079, 512, 2769, 0, 2832, 0, 6, 5089}},
      {800, 1, {14, 17, 29, 30, 0, 6155, 1792, 0, 101, 0, 144, 22, 2183}},
      {800, 2, {17, 5, 38, 60, 2048, 7932, 128, 0, 116, 0, 16, 31, 1936}},
  };
  for (const auto& row : kRows) {
    Text question;
    question << R"({"prefix_tokens":128,"history":true,"step":)" << row.step << "}";
    const Answered answer(question);
    for (std::size_t i = 0; i < std::size(kFigures); ++i) {
      CAPTURE(row.step);
      CAPTURE(row.server);
      CAPTURE(kFigures[i]);
      CHECK(answer.of(row.server, kFigures[i]) == row.figures[i]);
    }
  }
}
