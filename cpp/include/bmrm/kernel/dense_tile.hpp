// Products with a few dense rows. A row's sum runs over fixed lanes in a fixed order: it depends neither on
// threads nor on the row's place in the tile.
#pragma once

#include <algorithm>
#include <cstddef>

#include "bmrm/kernel/lanes.hpp"

namespace bmrm::tile {

// f[r] = <x_r, w> for R rows side by side: the loads of w are shared and R sums hide each other's latency.
template <std::size_t R, class Value>
BMRM_INLINE void dots_of(const Value* __restrict x, std::size_t apart, std::size_t n, const double* __restrict w,
                         double (&f)[R]) {
  Lanes even[R] = {}, odd[R] = {}, a, b, xs;
  std::size_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    load(w + j, a);
    load(w + j + kLanes, b);
    for (std::size_t r = 0; r < R; ++r) {
      load(x + r * apart + j, xs);
      even[r] += xs * a;
      load(x + r * apart + j + kLanes, xs);
      odd[r] += xs * b;
    }
  }
  if (j + kLanes <= n) {
    load(w + j, a);
    for (std::size_t r = 0; r < R; ++r) {
      load(x + r * apart + j, xs);
      even[r] += xs * a;
    }
    j += kLanes;
  }
  for (std::size_t r = 0; r < R; ++r) f[r] = sum(even[r] + odd[r]);
  for (; j < n; ++j)
    for (std::size_t r = 0; r < R; ++r) f[r] += static_cast<double>(x[r * apart + j]) * w[j];
}

// The rows side by side come from the four quarters of the tile: four streams read 1.4 times as many bytes
// per second from memory as one.
template <class Value>
BMRM_INLINE void dots_body(const Value* x, std::size_t n_rows, std::size_t n_cols, const double* w, double* f) {
  const std::size_t quarter = n_rows / 4;
  for (std::size_t i = 0; i < quarter; ++i) {
    double s[4];
    dots_of(x + i * n_cols, quarter * n_cols, n_cols, w, s);
    for (std::size_t r = 0; r < 4; ++r) f[i + r * quarter] = s[r];
  }
  for (std::size_t i = 4 * quarter; i < n_rows; ++i) {
    double s[1];
    dots_of(x + i * n_cols, 0, n_cols, w, s);
    f[i] = s[0];
  }
}

// g[j] += sum_r c_r a_rj for R rows and columns [begin, end).
template <std::size_t R, class Value>
BMRM_INLINE void axpys_of(const Value* const* rows, const double* c, std::size_t begin, std::size_t end,
                          double* __restrict g) {
  const Value* a[R];
  double cr[R];
  for (std::size_t r = 0; r < R; ++r) a[r] = rows[r], cr[r] = c[r];
  std::size_t j = begin;
  for (; j + kLanes <= end; j += kLanes) {
    Lanes s, xs;
    load(g + j, s);
    for (std::size_t r = 0; r < R; ++r) {
      load(a[r] + j, xs);
      s += cr[r] * xs;
    }
    store(s, g + j);
  }
  for (; j < end; ++j) {
    double s = g[j];
    for (std::size_t r = 0; r < R; ++r) s += cr[r] * static_cast<double>(a[r][j]);
    g[j] = s;
  }
}

inline constexpr std::size_t kRowsPerList = 256;

// The rows with coefficient 0 are left out without a branch for each: they come in no order that a processor
// could guess.
BMRM_INLINE std::size_t nonzero(const double* l, std::size_t n, unsigned (&kept)[kRowsPerList]) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    kept[count] = static_cast<unsigned>(i);
    count += l[i] != 0.0;
  }
  return count;
}

// g[j] += sum over the rows with l != 0 of l_i x_ij for columns [begin, end).
template <class Value>
BMRM_INLINE void axpys_body(const Value* x, std::size_t n_rows, std::size_t stride, std::size_t begin, std::size_t end,
                            const double* l, double* g) {
  unsigned kept[kRowsPerList];
  const Value* rows[4];
  double c[4];
  for (std::size_t first = 0; first < n_rows; first += kRowsPerList) {
    const std::size_t n = nonzero(l + first, std::min(kRowsPerList, n_rows - first), kept);
    const auto take = [&](std::size_t r, std::size_t k) {
      rows[r] = x + (first + kept[k]) * stride;
      c[r] = l[first + kept[k]];
    };
    const std::size_t quarter = n / 4;
    for (std::size_t k = 0; k < quarter; ++k) {
      for (std::size_t r = 0; r < 4; ++r) take(r, k + r * quarter);
      axpys_of<4>(rows, c, begin, end, g);
    }
    for (std::size_t k = 4 * quarter; k < n; ++k) {
      take(0, k);
      axpys_of<1>(rows, c, begin, end, g);
    }
  }
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
