// Products with a few compressed rows, in plain code with a few sums: gather instructions are slower.
//
// Two shapes of loop, chosen by the average length of the rows. Long rows are unrolled and their entries
// asked for ahead of time. Short rows lose their time at the end of the row, which the processor cannot
// guess: X w has one simple loop, and X' l first writes each row's coefficient next to its entries, then runs
// over all entries of the tile without looking at rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/views.hpp"

namespace bmrm::tile {

inline constexpr std::int64_t kAhead = 256;  // entries between the one worked on and the one asked for
inline constexpr std::int64_t kUnroll = 8;

template <class Value, class Index>
bool long_rows(const Csr<Value, Index>& X) {
  return X.n_entries() >= 32 * X.n_rows;
}

template <class Value, class Index>
BMRM_INLINE double short_dot(const Value* x, const Index* at, std::int64_t n, const double* w) {
  double s = 0.0;
  for (std::int64_t p = 0; p < n; ++p) {
    s += static_cast<double>(x[p]) * w[at[p]];
    BMRM_SCALAR(s);
  }
  return s;
}

// Four sums, kept in plain registers for double and in lanes for float, whichever was faster.
template <class Index>
BMRM_INLINE double long_dot(const double* x, const Index* at, std::int64_t n, const double* w) {
  double s[4] = {0.0, 0.0, 0.0, 0.0};
  std::int64_t p = 0;
  for (; p + kUnroll <= n; p += kUnroll) {
    prefetch(at + p + kAhead);
    prefetch(x + p + kAhead);
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      s[k % 4] += x[p + k] * w[at[p + k]];
      BMRM_SCALAR(s[k % 4]);
    }
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + short_dot(x + p, at + p, n - p, w);
}

template <class Index>
BMRM_INLINE double long_dot(const float* x, const Index* at, std::int64_t n, const double* w) {
  Lanes s = {}, t = {}, xs;
  std::int64_t p = 0;
  for (; p + kUnroll <= n; p += kUnroll) {
    prefetch(at + p + kAhead);
    prefetch(x + p + kAhead);
    const Index* a = at + p;
    load(x + p, xs);
    s += xs * Lanes{w[a[0]], w[a[1]], w[a[2]], w[a[3]]};
    load(x + p + kLanes, xs);
    t += xs * Lanes{w[a[4]], w[a[5]], w[a[6]], w[a[7]]};
  }
  return sum(s + t) + short_dot(x + p, at + p, n - p, w);
}

template <class Value, class Index>
BMRM_INLINE void dots_body(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* w,
                           double* __restrict f) {
  const bool is_long = long_rows(X);
  std::int64_t from = X.indptr[begin];
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t to = X.indptr[i + 1], n = to - from;
    f[i - begin] = is_long ? long_dot(X.values + from, X.indices + from, n, w)
                           : short_dot(X.values + from, X.indices + from, n, w);
    from = to;
  }
}

template <class Value, class Index>
BMRM_INLINE void scatter(const Value* x, const Index* at, std::int64_t n, double c, double* __restrict g) {
  std::int64_t p = 0;
  for (; p + kUnroll <= n; p += kUnroll) {
    prefetch(at + p + kAhead);
    prefetch(x + p + kAhead);
    for (std::int64_t k = 0; k < kUnroll; ++k) g[at[p + k]] += c * static_cast<double>(x[p + k]);
  }
  for (; p < n; ++p) g[at[p]] += c * static_cast<double>(x[p]);
}

// g += sum over the rows [begin, end) with l != 0 of l[i - begin] times the entries [from(i), to(i)) of row i
template <class Value, class Index, class From, class To>
BMRM_INLINE void scatter_rows(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* l,
                              const From& from, const To& to, double* g) {
  for (std::size_t i = begin; i < end; ++i) {
    if (l[i - begin] == 0.0) continue;
    const std::int64_t first = from(i);
    scatter(X.values + first, X.indices + first, to(i) - first, l[i - begin], g);
  }
}

// Short rows with few zeros among their coefficients.
template <class Value, class Index>
BMRM_INLINE void scatter_flat(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* l,
                              double* __restrict g) {
  constexpr std::int64_t kMost = 2048, kStep = 4 * kLanes;
  double c[kMost + kStep];
  for (std::size_t i = begin; i < end;) {
    const std::int64_t first = X.indptr[i];
    for (; i < end && X.indptr[i + 1] - first <= kMost; ++i) {
      const double li = l[i - begin];
      const Lanes v = {li, li, li, li};
      std::int64_t p = X.indptr[i] - first;
      const std::int64_t row_end = X.indptr[i + 1] - first;
      do {  // what is written beyond the end of the row is written again for the next one
        for (std::int64_t k = 0; k < kStep; k += kLanes) store(v, c + p + k);
        p += kStep;
      } while (p < row_end);
    }
    const std::int64_t n = X.indptr[i] - first;
    const Value* x = X.values + first;
    const Index* at = X.indices + first;
    for (std::int64_t p = 0; p < n; ++p) g[at[p]] += c[p] * static_cast<double>(x[p]);
    if (n > 0 || i == end) continue;
    if (l[i - begin] != 0.0) scatter(x, at, X.indptr[i + 1] - first, l[i - begin], g);  // longer than the list
    ++i;
  }
}

template <class Value, class Index>
BMRM_INLINE void axpys_body(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* l,
                            double* g) {
  const std::size_t n = end - begin;
  const auto zeros = static_cast<std::size_t>(std::count(l, l + n, 0.0));
  if (!long_rows(X) && 4 * zeros < 3 * n) return scatter_flat(X, begin, end, l, g);
  scatter_rows(
      X, begin, end, l, [&](std::size_t i) { return X.indptr[i]; }, [&](std::size_t i) { return X.indptr[i + 1]; }, g);
}

#define BMRM_SPARSE_TILE(Value, Index)                                                                                 \
  BMRM_CLONES static inline void dots(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* w, \
                                      double* f) {                                                                     \
    dots_body(X, begin, end, w, f);                                                                                    \
  }                                                                                                                    \
  BMRM_CLONES static inline void axpys(const Csr<Value, Index>& X, std::size_t begin, std::size_t end,                 \
                                       const double* l, double* g) {                                                   \
    axpys_body(X, begin, end, l, g);                                                                                   \
  }
BMRM_SPARSE_TILE(float, std::int32_t)
BMRM_SPARSE_TILE(float, std::int64_t)
BMRM_SPARSE_TILE(double, std::int32_t)
BMRM_SPARSE_TILE(double, std::int64_t)
#undef BMRM_SPARSE_TILE

}  // namespace bmrm::tile
