// Products with a few dense rows, compiled for several instruction sets and chosen when the library loads.
//
// Each sum runs over fixed lanes in a fixed order, so it does not depend on threads or on the tile's size.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && !defined(BMRM_SANITIZED)
#define BMRM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BMRM_CLONES
#endif
#if defined(__GNUC__)
#define BMRM_INLINE inline __attribute__((always_inline))
#else
#define BMRM_INLINE inline
#endif

namespace bmrm::tile {

inline constexpr std::size_t kLanes = 16;

template <class Value>
BMRM_INLINE double row_dot(const Value* __restrict x, const double* __restrict w, std::size_t n) {
  double lanes[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(x[j + k]) * w[j + k];
  for (std::size_t k = 0; j < n; ++j, ++k) lanes[k] += static_cast<double>(x[j]) * w[j];
  for (std::size_t width = kLanes / 2; width > 0; width /= 2)
    for (std::size_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  return lanes[0];
}

template <class Value>
BMRM_INLINE void dots_body(const Value* x, std::size_t n_rows, std::size_t n_cols, const double* w, double* f) {
  for (std::size_t i = 0; i < n_rows; ++i) f[i] = row_dot(x + i * n_cols, w, n_cols);
}

// g[j] += sum over the rows with l != 0, four rows at a time, of l_i x_ij for columns [begin, end).
template <class Value>
BMRM_INLINE void axpys_body(const Value* x, std::size_t n_rows, std::size_t stride, std::size_t begin, std::size_t end,
                            const double* l, double* __restrict g) {
  const Value* rows[4];
  double c[4];
  std::size_t n = 0;
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (l[i] != 0.0) {
      rows[n] = x + i * stride;
      c[n++] = l[i];
    }
    if (n == 4) {
      const Value *a0 = rows[0], *a1 = rows[1], *a2 = rows[2], *a3 = rows[3];
      const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
      for (std::size_t j = begin; j < end; ++j)
        g[j] += (c0 * static_cast<double>(a0[j]) + c1 * static_cast<double>(a1[j])) +
                (c2 * static_cast<double>(a2[j]) + c3 * static_cast<double>(a3[j]));
      n = 0;
    }
  }
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t j = begin; j < end; ++j) g[j] += c[r] * static_cast<double>(rows[r][j]);
}

BMRM_CLONES static inline void dots(const double* x, std::size_t n_rows, std::size_t n_cols, const double* w,
                                    double* f) {
  dots_body(x, n_rows, n_cols, w, f);
}
BMRM_CLONES static inline void dots(const float* x, std::size_t n_rows, std::size_t n_cols, const double* w,
                                    double* f) {
  dots_body(x, n_rows, n_cols, w, f);
}
BMRM_CLONES static inline void axpys(const double* x, std::size_t n_rows, std::size_t stride, std::size_t begin,
                                     std::size_t end, const double* l, double* g) {
  axpys_body(x, n_rows, stride, begin, end, l, g);
}
BMRM_CLONES static inline void axpys(const float* x, std::size_t n_rows, std::size_t stride, std::size_t begin,
                                     std::size_t end, const double* l, double* g) {
  axpys_body(x, n_rows, stride, begin, end, l, g);
}

}  // namespace bmrm::tile
