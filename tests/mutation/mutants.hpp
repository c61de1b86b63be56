// Compiled into every source of a build for mutation testing, before anything else: what the rewritten operators call.
// One build holds all mutants, and KVCAP_MUTANT in the environment says which of them is alive; none is without it.
// KVCAP_REACHED names a file that takes a byte for each mutant: 1 where the program came by. KVCAP_SECONDS bounds the
// processor's time, since a mutant may run for ever.
#pragma once

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace kvcap {
template <class A>
constexpr A ceil_div(A a, A b) noexcept;
}

namespace kvm {

inline constexpr unsigned kMost = 1 << 16;

struct State {
  unsigned alive = 0;
  unsigned char reached[kMost] = {};
};
inline State state;

__attribute__((constructor(101))) inline void begin() {
  if (const char* const text = std::getenv("KVCAP_MUTANT")) state.alive = static_cast<unsigned>(std::atoi(text));
  if (const char* const text = std::getenv("KVCAP_SECONDS")) {
    const rlim_t seconds = static_cast<rlim_t>(std::atoi(text));
    const rlimit time{seconds, seconds};
    setrlimit(RLIMIT_CPU, &time);
  }
  const rlimit memory{rlim_t{1} << 31, rlim_t{1} << 31};
  setrlimit(RLIMIT_AS, &memory);
  const rlimit core{0, 0};
  setrlimit(RLIMIT_CORE, &core);
  if (std::getenv("KVCAP_REACHED") != nullptr) {
    std::atexit([] {
      if (std::FILE* const file = std::fopen(std::getenv("KVCAP_REACHED"), "wb")) {
        std::fwrite(state.reached, 1, kMost, file);
        std::fclose(file);
      }
    });
  }
}

/// Whether that mutant is alive. Constant expressions are never changed.
constexpr bool on(unsigned id) noexcept {
  if (__builtin_is_constant_evaluated()) return false;
  state.reached[id] = 1;
  return state.alive == id;
}

/// Keeps a constant with which a variable is made from being known before the program runs.
template <class A>
[[gnu::always_inline]] inline A at_run_time(A a) {
  return a;
}

// An operator and the one that stands in for it.
#define KVM_BINARY(name, op, other)                                                 \
  template <class A, class B>                                                       \
  [[gnu::always_inline]] constexpr auto name(unsigned id, const A& a, const B& b) { \
    return on(id) ? (a other b) : (a op b);                                         \
  }
KVM_BINARY(add, +, -)
KVM_BINARY(sub, -, +)
KVM_BINARY(mul, *, /)
KVM_BINARY(div, /, *)
KVM_BINARY(rem, %, /)
KVM_BINARY(shl, <<, >>)
KVM_BINARY(shr, >>, <<)
KVM_BINARY(band, &, |)
KVM_BINARY(bor, |, &)
KVM_BINARY(bxor, ^, &)
KVM_BINARY(eq, ==, !=)
KVM_BINARY(ne, !=, ==)
#undef KVM_BINARY

// A comparison, with its bound moved (id) and turned round (id + 1).
#define KVM_COMPARISON(name, op, moved, turned)                                     \
  template <class A, class B>                                                       \
  [[gnu::always_inline]] constexpr bool name(unsigned id, const A& a, const B& b) { \
    return on(id) ? (a moved b) : on(id + 1) ? (a turned b) : (a op b);             \
  }
KVM_COMPARISON(lt, <, <=, >=)
KVM_COMPARISON(le, <=, <, >)
KVM_COMPARISON(gt, >, >=, <=)
KVM_COMPARISON(ge, >=, >, <)
#undef KVM_COMPARISON

#define KVM_ASSIGNMENT(name, op, other)                                     \
  template <class A, class B>                                               \
  [[gnu::always_inline]] constexpr A& name(unsigned id, A& a, const B& b) { \
    return on(id) ? (a other b) : (a op b);                                 \
  }
KVM_ASSIGNMENT(add_to, +=, -=)
KVM_ASSIGNMENT(sub_from, -=, +=)
KVM_ASSIGNMENT(mul_by, *=, /=)
KVM_ASSIGNMENT(div_by, /=, *=)
KVM_ASSIGNMENT(rem_by, %=, /=)
KVM_ASSIGNMENT(shl_by, <<=, >>=)
KVM_ASSIGNMENT(shr_by, >>=, <<=)
KVM_ASSIGNMENT(and_by, &=, |=)
KVM_ASSIGNMENT(or_by, |=, &=)
KVM_ASSIGNMENT(xor_by, ^=, &=)
#undef KVM_ASSIGNMENT

template <class A>
[[gnu::always_inline]] constexpr A& before_up(unsigned id, A& a) {
  return on(id) ? --a : ++a;
}
template <class A>
[[gnu::always_inline]] constexpr A& before_down(unsigned id, A& a) {
  return on(id) ? ++a : --a;
}
template <class A>
[[gnu::always_inline]] constexpr A after_up(unsigned id, A& a) {
  return on(id) ? a-- : a++;
}
template <class A>
[[gnu::always_inline]] constexpr A after_down(unsigned id, A& a) {
  return on(id) ? a++ : a--;
}
template <class A>
[[gnu::always_inline]] constexpr auto minus(unsigned id, const A& a) {
  return on(id) ? +a : -a;
}

/// A constant and the next; 1 is 0 as well (id + 1).
template <class A>
[[gnu::always_inline]] constexpr A next(unsigned id, A a) {
  return on(id) ? static_cast<A>(a + 1) : a;
}
template <class A>
[[gnu::always_inline]] constexpr A near_one(unsigned id, A a) {
  return on(id) ? static_cast<A>(a + 1) : on(id + 1) ? static_cast<A>(a - 1) : a;
}

// A function of the arithmetic and one that could be mistaken for it.
template <unsigned id, class A>
[[gnu::always_inline]] constexpr A ceil_div(A a, A b) noexcept {
  return on(id) ? a / b : kvcap::ceil_div<A>(a, b);
}
template <unsigned id, class A>
[[gnu::always_inline]] constexpr A min(const A& a, const A& b) {
  return on(id) == (b < a) ? a : b;
}
template <unsigned id, class A>
[[gnu::always_inline]] constexpr A max(const A& a, const A& b) {
  return on(id) == (a < b) ? a : b;
}
template <class F, class A, class B>
[[gnu::always_inline]] constexpr auto product(unsigned id, F&& f, const A& a, const B& b) {
  return on(id) ? decltype(f(a, b))(a) + b : f(a, b);
}

}  // namespace kvm
