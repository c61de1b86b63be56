// Lists of values.
#pragma once

#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "kvcap/units.hpp"

namespace kvcap {

/// Twice the room, with what is there.
[[nodiscard, gnu::noinline]] inline void* grow(void* data, u32& room, std::size_t each) {
  const std::size_t held = room * each;
  room = room == 0 ? 8 : 2 * room;
  void* const larger = ::operator new(room * each);
  if (held != 0) std::memcpy(larger, data, held);
  return larger;
}

/// What the core kernel keeps lists in. Its memory is taken back as a whole after each answer, so the elements are
/// never freed and a copy shares them; they are moved as bytes. A third of a vector's code.
template <class T>
class ArenaList {
 public:
  using value_type = T;
  [[gnu::noinline]] void push_back(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (size_ == room_) data_ = static_cast<T*>(grow(data_, room_, sizeof(T)));
    ::new (static_cast<void*>(data_ + size_++)) T(value);
  }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return data_[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return data_[at]; }
  [[nodiscard]] T& back() noexcept { return data_[size_ - 1]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }

 private:
  T* data_ = nullptr;
  u32 size_ = 0;
  u32 room_ = 0;
};

template <class T>
using List = std::conditional_t<kCoreKernel, ArenaList<T>, std::vector<T>>;

}  // namespace kvcap
