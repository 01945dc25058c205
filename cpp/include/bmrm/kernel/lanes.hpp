// Four doubles side by side, and how the hot loops are compiled: once for each instruction set, chosen when
// the library loads. Without compiler vectors the same sums run in plain code, in the same order.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && !defined(BMRM_SANITIZED)
#define BMRM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BMRM_CLONES
#endif
#if defined(__GNUC__)
#define BMRM_INLINE inline __attribute__((always_inline))
#define BMRM_INLINE_BODY __attribute__((always_inline))  // of a lambda: one that is called is compiled without clones
#else
#define BMRM_INLINE inline
#define BMRM_INLINE_BODY
#endif

// Keeps a sum of gathered terms out of vector code, which is slower than plain code there.
#if defined(__GNUC__) && defined(__x86_64__)
#define BMRM_SCALAR(s) __asm__("" : "+x"(s))
#else
#define BMRM_SCALAR(s) static_cast<void>(s)
#endif

namespace bmrm {

inline constexpr std::size_t kLanes = 4;

#if defined(__GNUC__)

using Lanes = double __attribute__((vector_size(32)));

// Vectors travel by reference: their place in registers differs between instruction sets.
BMRM_INLINE void load(const double* x, Lanes& v) { std::memcpy(&v, x, sizeof(v)); }
BMRM_INLINE void load(const float* x, Lanes& v) {
  using Narrow = float __attribute__((vector_size(16)));
  Narrow narrow;
  std::memcpy(&narrow, x, sizeof(narrow));
  v = __builtin_convertvector(narrow, Lanes);
}

#else

struct Lanes {
  double v[kLanes] = {};
  double operator[](std::size_t k) const { return v[k]; }
  Lanes& operator+=(const Lanes& other) {
    for (std::size_t k = 0; k < kLanes; ++k) v[k] += other.v[k];
    return *this;
  }
};

inline Lanes operator+(Lanes a, const Lanes& b) { return a += b; }
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  Lanes c;
  for (std::size_t k = 0; k < kLanes; ++k) c.v[k] = a.v[k] * b.v[k];
  return c;
}
inline Lanes operator*(double a, const Lanes& b) { return Lanes{{a, a, a, a}} * b; }

template <class Value>
void load(const Value* x, Lanes& v) {
  for (std::size_t k = 0; k < kLanes; ++k) v.v[k] = static_cast<double>(x[k]);
}

#endif

BMRM_INLINE void prefetch([[maybe_unused]] const void* x) {
#if defined(__GNUC__)
  __builtin_prefetch(x);
#endif
}

BMRM_INLINE void store(const Lanes& v, double* x) { std::memcpy(x, &v, sizeof(v)); }
BMRM_INLINE double sum(const Lanes& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

}  // namespace bmrm
