// Servers that hand out the same memory in different ways.
#include "kvcap/paging.hpp"

#include <algorithm>

namespace kvcap {

Label memory_kind_name(MemoryKind kind) noexcept {
  switch (kind) {
    case kUsed: return "used";
    case kPrefix: return "prefix";
    case kReserved: return "reserved";
    case kLastPage: return "last_page";
    case kFragmentation: return "fragmentation";
    case kFree: break;
  }
  return "free";
}

PagingServer::PagingServer(const PagingSetup& setup, PagingPolicy policy)
    : setup_(setup),
      policy_(policy),
      uses_(setup.pages, Use::none),
      free_(setup.pages),
      generated_(setup.conversations.size(), 0) {}

u32 PagingServer::shared_pages() const noexcept {
  return policy_ == PagingPolicy::shared ? setup_.prefix_tokens / setup_.page_tokens : 0;
}

u32 PagingServer::block_pages(u32 id) const noexcept {
  return ceil_div(setup_.conversations[id].prompt + setup_.longest_answer, setup_.page_tokens);
}

u32 PagingServer::hole(u32 count) const noexcept {
  u32 length = 0;
  for (u32 page = first_free_; page < setup_.pages; ++page) {
    length = uses_[page] == Use::none ? length + 1 : 0;
    if (length == count) return page + 1 - count;
  }
  return setup_.pages;
}

u32 PagingServer::take_page(Use use) noexcept {
  while (uses_[first_free_] != Use::none) ++first_free_;
  uses_[first_free_] = use;
  --free_;
  return first_free_++;
}

void PagingServer::give_back(const std::vector<u32>& pages) noexcept {
  for (const u32 page : pages) {
    uses_[page] = Use::none;
    first_free_ = std::min(first_free_, page);
  }
  free_ += static_cast<u32>(pages.size());
}

/// Takes a request's memory back, and the prefix's with the last who refers to it.
void PagingServer::release(const Run& run) noexcept {
  give_back(run.pages);
  if (--references_ == 0) {
    give_back(prefix_pages_);
    prefix_pages_.clear();
  }
  retry_ = true;
}

bool PagingServer::admit(u32 id) {
  Run run{id, setup_.conversations[id].prompt + generated_[id], {}};
  if (policy_ == PagingPolicy::contiguous) {
    const u32 count = block_pages(id);
    const u32 first = hole(count);
    if (first == setup_.pages) return false;
    for (u32 page = first; page < first + count; ++page) {
      uses_[page] = Use::own;
      run.pages.push_back(page);
    }
    free_ -= count;
  } else {
    const u32 shared = shared_pages();
    const u32 own = ceil_div(run.tokens, setup_.page_tokens) - shared;
    // Room for one token more: else it would be sent back by its own next step.
    const u32 next = ceil_div(run.tokens + 1, setup_.page_tokens) - shared;
    if (next + (prefix_pages_.empty() ? shared : 0) > free_) return false;
    while (prefix_pages_.size() < shared) prefix_pages_.push_back(take_page(Use::prefix));
    while (run.pages.size() < own) run.pages.push_back(take_page(Use::own));
  }
  ++references_;
  running_.push_back(std::move(run));
  return true;
}

void PagingServer::preempt_last() {
  release(running_.back());
  // What waits came later: the running ones are the earliest.
  waiting_.insert(waiting_.begin(), running_.back().id);
  running_.pop_back();
  ++preempted_;
}

void PagingServer::grow() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const u32 room = (shared_pages() + static_cast<u32>(running_[i].pages.size())) * setup_.page_tokens;
    if (running_[i].tokens == room) {
      while (free_ == 0 && i < running_.size()) preempt_last();
      if (i == running_.size()) return;
      running_[i].pages.push_back(take_page(Use::own));
    }
    ++running_[i].tokens;
    ++generated_[running_[i].id];
  }
}

bool PagingServer::step() {
  const auto& all = setup_.conversations;
  if (finished_ == all.size()) return false;
  ++now_;
  std::erase_if(running_, [&](const Run& run) {
    if (generated_[run.id] < all[run.id].answer) return false;
    release(run);
    ++finished_;
    return true;
  });
  for (; arrived_ < all.size() && all[arrived_].arrival <= now_; ++arrived_) {
    if (waiting_.empty()) retry_ = true;
    waiting_.push_back(arrived_);
  }
  grow();
  // A block that did not fit does not until memory comes back.
  while (retry_ && !waiting_.empty()) {
    if (admit(waiting_.front())) {
      waiting_.erase(waiting_.begin());
    } else {
      retry_ = false;
    }
  }
  peak_ = std::max(peak_, running());
  return finished_ != all.size();
}

u64 PagingServer::spared_pages() const noexcept {
  return prefix_pages_.empty() ? 0 : u64{references_ - 1} * prefix_pages_.size();
}

std::vector<std::vector<u32>> PagingServer::tables() const {
  std::vector<std::vector<u32>> out;
  for (const auto& run : running_) {
    out.push_back(prefix_pages_);
    out.back().insert(out.back().end(), run.pages.begin(), run.pages.end());
  }
  return out;
}

std::vector<PagingStretch> PagingServer::stretches() const {
  const u32 size = setup_.page_tokens;
  struct Place {
    const Run* run = nullptr;
    u32 first = 0;  ///< position in the sequence of the page's first token
  };
  std::vector<Place> places(setup_.pages);
  for (const auto& run : running_) {
    u32 first = shared_pages() * size;
    for (const u32 page : run.pages) {
      places[page] = {&run, first};
      first += size;
    }
  }
  const bool blocks = policy_ == PagingPolicy::contiguous;
  const u32 smallest = ceil_div(setup_.prefix_tokens + 1 + setup_.longest_answer, size);
  const u32 next_block = waiting_.empty() ? smallest : block_pages(waiting_.front());

  std::vector<PagingStretch> out;
  const auto put = [&](MemoryKind kind, u32 owner, u32 tokens) {
    if (tokens == 0) return;
    if (!out.empty() && out.back().kind == kind && out.back().owner == owner) {
      out.back().tokens += tokens;
    } else {
      out.push_back({kind, owner, tokens});
    }
  };
  for (u32 page = 0; page < setup_.pages; ++page) {
    if (uses_[page] == Use::prefix) {
      put(kPrefix, 0, size);
    } else if (const auto& [run, first] = places[page]; run != nullptr) {
      const u32 filled = std::clamp(run->tokens, first, first + size) - first;
      const u32 prefix = std::clamp(setup_.prefix_tokens, first, first + filled) - first;
      put(kPrefix, run->id + 1, prefix);
      put(kUsed, run->id + 1, filled - prefix);
      put(blocks ? kReserved : kLastPage, run->id + 1, size - filled);
    } else {
      u32 end = page;
      while (end < setup_.pages && uses_[end] == Use::none) ++end;
      put(blocks && end - page < next_block ? kFragmentation : kFree, 0, (end - page) * size);
      page = end - 1;
    }
  }
  return out;
}

}  // namespace kvcap
