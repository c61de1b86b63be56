// Blocks are laid one after another and taken back all at once: nothing that a request allocates outlives its answer.
// So `delete` does nothing, which lets the compiler leave out every destructor; that and the missing allocator are a
// sixth of the core kernel. Linked with -sMALLOC=none.
#include "arena.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

extern "C" char __heap_base;  // by the linker: what is above is free

namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kPage = std::size_t{64} << 10;

char* next = &__heap_base;

void* take(std::size_t size) {
  size = (size + kAlignment - 1) & ~(kAlignment - 1);
  const std::size_t room = __builtin_wasm_memory_size(0) * kPage - reinterpret_cast<std::size_t>(next);
  if (size > room && __builtin_wasm_memory_grow(0, (size - room) / kPage + 1) == SIZE_MAX) std::abort();
  char* const block = next;
  next += size;
  return block;
}

}  // namespace

void kvcap_binding::clear_arena() noexcept { next = &__heap_base; }

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void operator delete(void*) noexcept {}
void operator delete[](void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
void operator delete[](void*, std::size_t) noexcept {}
