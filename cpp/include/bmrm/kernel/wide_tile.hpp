// The k scores of one row side by side: f += W' x and G += x l', with W and G (d x k) row by row.
//
// Scores are taken in blocks of up to 32, kept in registers while the row is read; a block's last four lanes overlap
// the ones before where k is no multiple of four. Each sum runs over the row's entries in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/views.hpp"

// A lambda must be compiled for the same instruction set as its caller.
#if defined(__GNUC__)
#define BMRM_INLINED __attribute__((always_inline))
#else
#define BMRM_INLINED
#endif

namespace bmrm::wide {

inline constexpr std::size_t kMostLanes = 8;  // vectors of a block

template <std::size_t N>
using Size = std::integral_constant<std::size_t, N>;

// A row's entries: their values, and the columns they stand in.
template <class Value, class Index>
struct Entries {
  const Value* x;
  const Index* at;
  std::size_t n;
  BMRM_INLINE std::size_t column(std::size_t p) const { return static_cast<std::size_t>(at[p]); }
};
template <class Value>
struct Entries<Value, void> {
  const Value* x;
  std::size_t n;
  BMRM_INLINE std::size_t column(std::size_t p) const { return p; }
};

template <class Value, class Index>
BMRM_INLINE Entries<Value, Index> entries_of(const Csr<Value, Index>& X, std::size_t i) {
  const std::int64_t from = X.indptr[i];
  return {X.values + from, X.indices + from, static_cast<std::size_t>(X.indptr[i + 1] - from)};
}
template <class Value>
BMRM_INLINE Entries<Value, void> entries_of(const Dense<Value>& X, std::size_t i) {
  return {X.row(i), X.n_cols};
}

// f[c] += sum_p x_p W[column_p, c] for the 4 B scores at W and f, the last four of them at `last`.
template <std::size_t B, class Row>
BMRM_INLINE void block_scores(const Row& row, const double* W, std::size_t k, std::size_t last, double* f) {
  constexpr std::size_t kChains = B < 5 ? 2 : 1;  // so many sums hide each other's latency
  Lanes s[kChains][B] = {}, a;
  std::size_t p = 0;
  for (; p + kChains <= row.n; p += kChains) {
    for (std::size_t h = 0; h < kChains; ++h) {
      const double x = static_cast<double>(row.x[p + h]);
      const double* w = W + row.column(p + h) * k;
      for (std::size_t b = 0; b < B; ++b) {
        load(w + (b + 1 < B ? b * kLanes : last), a);
        s[h][b] += x * a;
      }
    }
  }
  for (; p < row.n; ++p) {
    const double x = static_cast<double>(row.x[p]);
    const double* w = W + row.column(p) * k;
    for (std::size_t b = 0; b < B; ++b) {
      load(w + (b + 1 < B ? b * kLanes : last), a);
      s[0][b] += x * a;
    }
  }
  for (std::size_t b = 0; b < B; ++b) {  // all are read before one is written: the last ones overlap
    load(f + (b + 1 < B ? b * kLanes : last), a);
    s[0][b] += a;
    if constexpr (kChains == 2) s[0][b] += s[1][b];
  }
  for (std::size_t b = 0; b < B; ++b) store(s[0][b], f + (b + 1 < B ? b * kLanes : last));
}

// Calls body(B, c, last) for blocks of 4 B scores that begin at c, the last four of a block at c + last; false if fewer
// than four scores are left, which begin at c.
template <class Body>
BMRM_INLINE bool each_block(std::size_t k, std::size_t& c, const Body& body) {
  constexpr std::size_t kWhole = kMostLanes * kLanes;
  for (c = 0; c + kWhole <= k; c += kWhole) body(Size<kMostLanes>{}, c, kWhole - kLanes);
  const std::size_t rest = k - c, last = rest - kLanes;
  if (rest < kLanes) return rest == 0;
  switch ((rest + kLanes - 1) / kLanes) {
    case 1: body(Size<1>{}, c, last); break;
    case 2: body(Size<2>{}, c, last); break;
    case 3: body(Size<3>{}, c, last); break;
    case 4: body(Size<4>{}, c, last); break;
    case 5: body(Size<5>{}, c, last); break;
    case 6: body(Size<6>{}, c, last); break;
    case 7: body(Size<7>{}, c, last); break;
    default: body(Size<8>{}, c, last); break;
  }
  return true;
}

template <class Row>
BMRM_INLINE void scores_body(const Row& row, const double* W, std::size_t k, double* f) {
  std::size_t c;
  if (each_block(k, c, [&](auto size, std::size_t begin, std::size_t last) BMRM_INLINED {
        block_scores<decltype(size)::value>(row, W + begin, k, last, f + begin);
      }))
    return;
  for (std::size_t p = 0; p < row.n; ++p) {
    const double x = static_cast<double>(row.x[p]);
    const double* w = W + row.column(p) * k;
    for (std::size_t e = c; e < k; ++e) f[e] += x * w[e];
  }
}

// G[column_p, c] += sum_r x_rp l_r[c] for R rows with the same columns; l_r and G begin at the first of 4 B scores.
template <std::size_t R, std::size_t B, class Row>
BMRM_INLINE void block_outer(const Row (&rows)[R], const double* const (&l)[R], std::size_t k, std::size_t last,
                             double* G) {
  Lanes ls[R][B], a[B];
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t b = 0; b < B; ++b) load(l[r] + (b + 1 < B ? b * kLanes : last), ls[r][b]);
  for (std::size_t p = 0; p < rows[0].n; ++p) {
    double* g = G + rows[0].column(p) * k;
    for (std::size_t b = 0; b < B; ++b) load(g + (b + 1 < B ? b * kLanes : last), a[b]);
    for (std::size_t r = 0; r < R; ++r) {
      const double x = static_cast<double>(rows[r].x[p]);
      for (std::size_t b = 0; b < B; ++b) a[b] += x * ls[r][b];
    }
    for (std::size_t b = 0; b < B; ++b) store(a[b], g + (b + 1 < B ? b * kLanes : last));
  }
}

template <std::size_t R, class Row>
BMRM_INLINE void outer_body(const Row (&rows)[R], const double* const (&l)[R], std::size_t k, double* G) {
  std::size_t c;
  if (each_block(k, c, [&](auto size, std::size_t begin, std::size_t last) BMRM_INLINED {
        const double* from[R];
        for (std::size_t r = 0; r < R; ++r) from[r] = l[r] + begin;
        block_outer<R, decltype(size)::value>(rows, from, k, last, G + begin);
      }))
    return;
  for (std::size_t p = 0; p < rows[0].n; ++p) {
    double* g = G + rows[0].column(p) * k;
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t e = c; e < k; ++e) g[e] += static_cast<double>(rows[r].x[p]) * l[r][e];
  }
}

// Rows [begin, end) of a matrix: F = X W, and G += X' L; rows of slopes that are all 0 are left out.
template <class View>
BMRM_INLINE void dots_body(const View& X, std::size_t begin, std::size_t end, const double* W, std::size_t k,
                           double* F) {
  for (std::size_t i = begin; i < end; ++i) {
    std::fill_n(F + i * k, k, 0.0);
    scores_body(entries_of(X, i), W, k, F + i * k);
  }
}

template <class Value, class Index>
BMRM_INLINE void outers_body(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* L,
                             std::size_t k, double* G) {
  for (std::size_t i = begin; i < end; ++i) {
    const Entries<Value, Index> rows[1] = {entries_of(X, i)};
    const double* const l[1] = {L + i * k};
    outer_body<1>(rows, l, k, G);
  }
}
template <class Value>
BMRM_INLINE void outers_body(const Dense<Value>& X, std::size_t begin, std::size_t end, const double* L, std::size_t k,
                             double* G) {
  std::size_t i = begin;
  for (; i + 2 <= end; i += 2) {
    const Entries<Value, void> rows[2] = {entries_of(X, i), entries_of(X, i + 1)};
    const double* const l[2] = {L + i * k, L + (i + 1) * k};
    outer_body<2>(rows, l, k, G);
  }
  if (i == end) return;
  const Entries<Value, void> rows[1] = {entries_of(X, i)};
  const double* const l[1] = {L + i * k};
  outer_body<1>(rows, l, k, G);
}

#define BMRM_WIDE_TILE(View)                                                                                          \
  BMRM_CLONES static inline void row_scores(const View& X, std::size_t i, const double* W, std::size_t k, double* f) { \
    scores_body(entries_of(X, i), W, k, f);                                                                           \
  }                                                                                                                   \
  BMRM_CLONES static inline void dots(const View& X, std::size_t begin, std::size_t end, const double* W,             \
                                      std::size_t k, double* F) {                                                     \
    dots_body(X, begin, end, W, k, F);                                                                                \
  }                                                                                                                   \
  BMRM_CLONES static inline void outers(const View& X, std::size_t begin, std::size_t end, const double* L,           \
                                        std::size_t k, double* G) {                                                   \
    outers_body(X, begin, end, L, k, G);                                                                              \
  }
#define BMRM_COMMA ,
BMRM_WIDE_TILE(Dense<double>)
BMRM_WIDE_TILE(Dense<float>)
BMRM_WIDE_TILE(Csr<double BMRM_COMMA std::int32_t>)
BMRM_WIDE_TILE(Csr<double BMRM_COMMA std::int64_t>)
BMRM_WIDE_TILE(Csr<float BMRM_COMMA std::int32_t>)
BMRM_WIDE_TILE(Csr<float BMRM_COMMA std::int64_t>)
#undef BMRM_COMMA
#undef BMRM_WIDE_TILE

}  // namespace bmrm::wide
