// X' diag(c) X over some of the rows, as a dense matrix: what Newton's method needs of the data.
//
// Rows are cut into blocks by their number and by the width of the data, never by the number of threads. Each
// block has a matrix of its own, these are added in order. Only the lower triangle is computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {
namespace tile {

// H += sum of c x x' over n compressed rows
template <class Value, class Index>
BMRM_INLINE void outer_body(const Csr<Value, Index>& X, const std::int64_t* rows, const double* c, std::size_t n,
                            double* __restrict H) {
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t from = X.indptr[rows[k]], n_entries = X.indptr[rows[k] + 1] - from;
    const Value* x = X.values + from;
    const Index* at = X.indices + from;
    for (std::int64_t p = 0; p < n_entries; ++p) {
      const double h = c[k] * static_cast<double>(x[p]);
      double* row = H + static_cast<std::size_t>(at[p]) * X.n_cols;
      for (std::int64_t q = 0; q <= p; ++q) row[at[q]] += h * static_cast<double>(x[q]);
    }
  }
}

inline constexpr std::size_t kPanelRows = 128, kPanelColumns = 8, kHalf = 4;
inline constexpr double kNearlyDense = 0.35;  // share of entries from which panels are faster than single products

// Rows as strips of eight columns, so that the sums below read memory in order; beyond the last column are zeros.
template <class Value>
BMRM_INLINE void pack(const Dense<Value>& X, const std::int64_t* rows, const double* c, std::size_t n, double* plain,
                      double* scaled) {
  for (std::size_t k = 0; k < n; ++k) {
    const Value* x = X.row(static_cast<std::size_t>(rows[k]));
    for (std::size_t j = 0; j < X.n_cols; ++j) {
      const std::size_t to = (j / kPanelColumns * kPanelRows + k) * kPanelColumns + j % kPanelColumns;
      plain[to] = static_cast<double>(x[j]);
      scaled[to] = c[k] * plain[to];
    }
  }
}

template <class Value, class Index>
BMRM_INLINE void pack(const Csr<Value, Index>& X, const std::int64_t* rows, const double* c, std::size_t n,
                      double* plain, double* scaled) {
  for (std::size_t strip = 0; strip < X.n_cols; strip += kPanelColumns) {
    std::fill_n(plain + strip * kPanelRows, n * kPanelColumns, 0.0);
    std::fill_n(scaled + strip * kPanelRows, n * kPanelColumns, 0.0);
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::int64_t p = X.indptr[rows[k]]; p < X.indptr[rows[k] + 1]; ++p) {
      const auto j = static_cast<std::size_t>(X.indices[p]);
      const std::size_t to = (j / kPanelColumns * kPanelRows + k) * kPanelColumns + j % kPanelColumns;
      plain[to] = static_cast<double>(X.values[p]);
      scaled[to] = c[k] * plain[to];
    }
}

// sums[i][j] = sum over n rows of a[i] b[j]: four columns against eight
BMRM_INLINE void four_by_eight(const double* a, const double* b, std::size_t n, double* sums) {
  Lanes left[kHalf] = {}, right[kHalf] = {}, x, y;
  for (std::size_t k = 0; k < n; ++k, a += kPanelColumns, b += kPanelColumns) {
    load(b, x);
    load(b + kLanes, y);
    for (std::size_t i = 0; i < kHalf; ++i) {
      left[i] += a[i] * x;
      right[i] += a[i] * y;
    }
  }
  for (std::size_t i = 0; i < kHalf; ++i) {
    store(left[i], sums + i * kPanelColumns);
    store(right[i], sums + i * kPanelColumns + kLanes);
  }
}

// H += A' B for n packed rows: some strips of B stay in the first-level cache while those of A go by.
BMRM_INLINE void add_panel_body(const double* plain, const double* scaled, std::size_t n, std::size_t n_cols,
                                double* __restrict H) {
  constexpr std::size_t kStrip = kPanelRows * kPanelColumns, kKept = 4 * kPanelColumns;
  double sums[kHalf * kPanelColumns];
  for (std::size_t kept = 0; kept < n_cols; kept += kKept)
    for (std::size_t first = kept; first < n_cols; first += kHalf)
      for (std::size_t other = kept; other < std::min(kept + kKept, first + kHalf); other += kPanelColumns) {
        const double* a = scaled + first / kPanelColumns * kStrip + first % kPanelColumns;
        four_by_eight(a, plain + other / kPanelColumns * kStrip, n, sums);
        for (std::size_t i = first; i < std::min(first + kHalf, n_cols); ++i)
          for (std::size_t j = other; j < std::min(other + kPanelColumns, i + 1); ++j)
            H[i * n_cols + j] += sums[(i - first) * kPanelColumns + (j - other)];
      }
}

BMRM_CLONES static inline void add_panel(const double* plain, const double* scaled, std::size_t n, std::size_t n_cols,
                                         double* H) {
  add_panel_body(plain, scaled, n, n_cols, H);
}

template <class View>
void outer_by_panels(const View& X, const std::int64_t* rows, const double* c, std::size_t n, double* H) {
  const std::size_t size = (X.n_cols + kPanelColumns - 1) / kPanelColumns * kPanelRows * kPanelColumns;
  std::vector<double> plain(size, 0.0), scaled(size, 0.0);
  for (std::size_t first = 0; first < n; first += kPanelRows) {
    const std::size_t some = std::min(kPanelRows, n - first);
    pack(X, rows + first, c + first, some, plain.data(), scaled.data());
    add_panel(plain.data(), scaled.data(), some, X.n_cols, H);
  }
}

template <class Value, class Index>
void outer(const Csr<Value, Index>& X, const std::int64_t* rows, const double* c, std::size_t n, double* H) {
  double entries = 0.0;
  for (std::size_t k = 0; k < n; ++k) entries += static_cast<double>(X.indptr[rows[k] + 1] - X.indptr[rows[k]]);
  if (entries > kNearlyDense * static_cast<double>(n * X.n_cols))
    outer_by_panels(X, rows, c, n, H);
  else
    outer_body(X, rows, c, n, H);
}

template <class Value>
void outer(const Dense<Value>& X, const std::int64_t* rows, const double* c, std::size_t n, double* H) {
  outer_by_panels(X, rows, c, n, H);
}

// g += sum of c x^2 over the rows [begin, end)
template <class Value, class Index>
void squares(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* c, double* g) {
  for (std::size_t i = begin; i < end; ++i) {
    if (c[i] == 0.0) continue;
    for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      const auto x = static_cast<double>(X.values[p]);
      g[X.indices[p]] += c[i] * x * x;
    }
  }
}

template <class Value>
void squares(const Dense<Value>& X, std::size_t begin, std::size_t end, const double* c, double* g) {
  for (std::size_t i = begin; i < end; ++i) {
    if (c[i] == 0.0) continue;
    for (std::size_t j = 0; j < X.n_cols; ++j) {
      const auto x = static_cast<double>(X.row(i)[j]);
      g[j] += c[i] * x * x;
    }
  }
}

}  // namespace tile

// Products for one pair of columns of one row, all rows together: what the sums below cost.
template <class Value, class Index>
std::size_t outer_work(const Csr<Value, Index>& X, std::span<const std::int64_t> rows) {
  std::size_t work = 0;
  for (const std::int64_t i : rows) {
    const auto n = static_cast<std::size_t>(X.indptr[i + 1] - X.indptr[i]);
    work += n * (n + 1) / 2;
  }
  return work;
}
template <class Value>
std::size_t outer_work(const Dense<Value>& X, std::span<const std::int64_t> rows) {
  return rows.size() * (X.n_cols * (X.n_cols + 1) / 2) / 8;  // lanes
}

inline constexpr std::size_t kGramBytes = std::size_t{1} << 26;  // for the blocks' own matrices
inline constexpr std::size_t kWorkPerTask = std::size_t{1} << 21;

// H (n_cols x n_cols, lower triangle) = sum over rows[k] of c[k] x x'
template <class View>
void weighted_gram(const View& X, std::span<const std::int64_t> rows, const double* c, std::vector<double>& scratch,
                   double* H, int n_threads) {
  const std::size_t size = X.n_cols * X.n_cols, n = rows.size(), work = outer_work(X, rows);
  const std::size_t affordable = std::max<std::size_t>(2, kGramBytes / (8 * std::max<std::size_t>(1, size)));
  const std::size_t n_blocks =
      std::clamp<std::size_t>(work / (4 * size + (1 << 15)), 1, std::min<std::size_t>(32, affordable));
  scratch.resize((n_blocks - 1) * size);
  const auto own = [&](std::size_t k) { return k == 0 ? H : scratch.data() + (k - 1) * size; };
  // Ctrl-C is seen between chunks; they are whole panels, so that packing pays.
  const std::size_t n_chunks = std::min(work / (n_blocks * kWorkPerTask), n / (n_blocks * tile::kPanelRows)) + 1;
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk)
    parallel_for(n_blocks, n_threads, [&](std::size_t k) {
      if (chunk == 0) std::fill(own(k), own(k) + size, 0.0);
      const std::size_t first = n * k / n_blocks, mine = n * (k + 1) / n_blocks - first;
      const std::size_t begin = first + mine * chunk / n_chunks, end = first + mine * (chunk + 1) / n_chunks;
      tile::outer(X, rows.data() + begin, c + begin, end - begin, own(k));
    });
  parallel_for(n_blocks > 1 ? X.n_cols : 0, n_threads, [&](std::size_t i) {
    double* row = H + i * X.n_cols;
    for (std::size_t k = 1; k < n_blocks; ++k)
      for (std::size_t j = 0; j <= i; ++j) row[j] += own(k)[i * X.n_cols + j];
  });
}

}  // namespace bmrm
