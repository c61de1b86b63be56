// What pages save: the same requests under servers that hand out a cache's memory in different ways, step by step.
// Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kvcap/json.hpp"

namespace kvcap {

/// How a server hands out memory. All deal in whole pages, so that they differ in nothing else.
enum class PagingPolicy : unsigned char {
  contiguous,  ///< at admission one block for prompt and longest answer, in the first hole that is large enough
  paged,       ///< a page when it is needed, wherever one is free
  shared,      ///< the same, and whole pages of the common prefix are held once for all who refer to them
};

/// One request: whole numbers of tokens and the step at which it arrives.
struct Conversation {
  u32 arrival = 0;
  u32 prompt = 0;  ///< with the common prefix
  u32 answer = 0;
};

/// What arrives, and the memory there is. Bounds keep a whole run under 10^7 page operations.
struct PagingSetup {
  u32 pages = 0;
  u32 page_tokens = 16;  ///< vLLM's default block size
  u32 prefix_tokens = 0;
  u32 longest_answer = 1024;
  std::vector<Conversation> conversations;  ///< in order of arrival
};

/// What memory is for. Over a server these add up to all of it.
enum MemoryKind : unsigned char {
  kUsed,           ///< rows that were written, the common prefix's apart
  kPrefix,         ///< rows of the common prefix, each copy of it
  kReserved,       ///< set aside for an answer that may become as long
  kLastPage,       ///< the rest of a page that is being filled
  kFragmentation,  ///< holes in which the next block does not fit
  kFree,
};
inline constexpr MemoryKind kMemoryKinds[] = {kUsed, kPrefix, kReserved, kLastPage, kFragmentation, kFree};

/// The kind as it stands in an answer, e.g. "last_page".
[[nodiscard]] Label memory_kind_name(MemoryKind kind) noexcept;

/// A stretch of memory, in its order.
struct PagingStretch {
  MemoryKind kind = kFree;
  u32 owner = 0;  ///< 1 + position in `conversations`; 0: nobody, or all who refer to the prefix
  u32 tokens = 0;
};

/// A server that takes requests in the order in which they arrive. A step: those who finished leave; each that runs
/// writes one token; those who wait are let in while the first of them fits. Where no page is left for a token, the
/// latest that runs goes back to wait and is computed anew when it is let in (vLLM's recompute preemption).
class PagingServer {
 public:
  PagingServer(const PagingSetup& setup, PagingPolicy policy);

  /// One step on. False when everything is finished.
  bool step();

  [[nodiscard]] u32 now() const noexcept { return now_; }
  [[nodiscard]] u32 running() const noexcept { return static_cast<u32>(running_.size()); }
  [[nodiscard]] u32 waiting() const noexcept { return static_cast<u32>(waiting_.size()); }
  [[nodiscard]] u32 finished() const noexcept { return finished_; }
  /// Requests that run or are finished.
  [[nodiscard]] u32 served() const noexcept { return running() + finished_; }
  [[nodiscard]] u32 preempted() const noexcept { return preempted_; }
  [[nodiscard]] u32 peak() const noexcept { return peak_; }
  /// Pages that sharing spares at this step: references to the prefix's pages beyond the first.
  [[nodiscard]] u64 spared_pages() const noexcept;
  [[nodiscard]] std::vector<PagingStretch> stretches() const;
  /// Pages of those who run, in the order of their tokens; the prefix's shared pages come first.
  [[nodiscard]] std::vector<std::vector<u32>> tables() const;

 private:
  /// What a page holds: nothing, rows of one request, or rows of the prefix that all refer to.
  enum class Use : unsigned char { none, own, prefix };

  struct Run {
    u32 id = 0;
    u32 tokens = 0;
    std::vector<u32> pages;  ///< its own, in the order of their tokens
  };

  [[nodiscard]] u32 shared_pages() const noexcept;
  [[nodiscard]] u32 block_pages(u32 id) const noexcept;
  /// First page of the first hole of `count` pages; `pages` when there is none.
  [[nodiscard]] u32 hole(u32 count) const noexcept;
  u32 take_page(Use use) noexcept;
  void give_back(const std::vector<u32>& pages) noexcept;
  void release(const Run& run) noexcept;
  bool admit(u32 id);
  void grow();
  void preempt_last();

  const PagingSetup& setup_;
  PagingPolicy policy_;
  std::vector<Use> uses_;          ///< of each page
  std::vector<u32> prefix_pages_;  ///< shared; empty while nobody refers to them
  u32 references_ = 0;
  u32 free_ = 0;
  u32 first_free_ = 0;          ///< no page before it is free
  std::vector<Run> running_;    ///< by arrival
  std::vector<u32> waiting_;    ///< by arrival
  std::vector<u32> generated_;  ///< tokens of its answer that each request has
  bool retry_ = false;          ///< the first that waits may fit
  u32 arrived_ = 0;
  u32 now_ = 0;
  u32 finished_ = 0;
  u32 preempted_ = 0;
  u32 peak_ = 0;
};

/// One JSON question to one JSON answer: {"seed", "memory_tokens" or "memory_bytes" with "bytes_per_token",
/// "page_tokens", "lengths", "longest_prompt", "longest_answer", "prefix_tokens", "requests", "every", "step"} to each
/// server's memory and counts at that step. "lengths" is "sharegpt", "alpaca" or {"prompt": mean, "answer": mean}.
/// Errors: `out_of_range`, `unknown_id`, `missing`, `conflict`, as {"error": …}.
[[nodiscard]] std::string paging_json(std::string_view question);

}  // namespace kvcap
