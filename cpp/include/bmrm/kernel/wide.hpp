// X W and X' L for k scores of each row: W (d x k), F and L (m x k), all row by row.
//
// X W: the k scores of a row are summed together, so that W is read in runs of k. X' L: slopes that are 0 cost nothing,
// where most of them are, as of the losses that compare classes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bmrm/kernel/product.hpp"
#include "bmrm/kernel/wide_tile.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

namespace wide {

// Adds the slopes of rows for the scores [begin, end); `some` lists those of a row that are not 0.
template <class Matrix>
void scatter_range(const Matrix& X, std::size_t first, std::size_t last, const double* L, std::size_t k,
                   std::size_t begin, std::size_t end, double* G) {
  std::vector<std::size_t> some;
  for (std::size_t i = first; i < last; ++i) {
    const double* l = L + i * k;
    some.clear();
    for (std::size_t c = begin; c < end; ++c)
      if (l[c] != 0.0) some.push_back(c);
    if (some.empty()) continue;
    if (2 * some.size() > end - begin) {
      each_entry(X, i, [&](std::size_t j, double x) {
        for (std::size_t c = begin; c < end; ++c) G[j * k + c] += x * l[c];
      });
    } else {
      each_entry(X, i, [&](std::size_t j, double x) {
        for (const std::size_t c : some) G[j * k + c] += x * l[c];
      });
    }
  }
}

template <class Matrix>
void by_blocks(const Matrix& X, const double* L, std::size_t k, double* G, std::size_t n_blocks, int n_threads) {
  const std::size_t size = X.n_cols * k;
  std::vector<double> more((n_blocks - 1) * size, 0.0);
  parallel_for(n_blocks, threads_for(X.n_entries() * k, n_threads), [&](std::size_t b) {
    outers(X, X.n_rows * b / n_blocks, X.n_rows * (b + 1) / n_blocks, L, k, b ? more.data() + (b - 1) * size : G);
  });
  for (std::size_t b = 1; b < n_blocks; ++b)
    for (std::size_t e = 0; e < size; ++e) G[e] += more[(b - 1) * size + e];
}

}  // namespace wide

inline constexpr std::size_t kWideBlocks = 64;

// F = X W
template <class Matrix>
void dot_wide(const Matrix& X, const double* W, std::size_t k, double* F, int n_threads) {
  const std::size_t work = X.n_entries() * k;
  const std::size_t n_tasks = std::clamp<std::size_t>(work / kEntriesPerTask, 1, X.n_rows ? X.n_rows : 1);
  parallel_for(n_tasks, threads_for(work, n_threads), [&](std::size_t task) {
    wide::dots(X, X.n_rows * task / n_tasks, X.n_rows * (task + 1) / n_tasks, W, k, F);
  });
}

// Whether most slopes are 0, by a sample of the rows: losses that compare classes have two in each row.
inline bool mostly_zero(const double* L, std::size_t n_rows, std::size_t k) {
  constexpr std::size_t kSample = 64;
  const std::size_t apart = std::max<std::size_t>(1, n_rows / kSample);
  std::size_t seen = 0, zeros = 0;
  for (std::size_t i = 0; i < n_rows; i += apart, seen += k)
    zeros += static_cast<std::size_t>(std::count(L + i * k, L + (i + 1) * k, 0.0));
  return 2 * zeros > seen;
}

// G = X' L, by blocks of rows with a G of their own, which are added in order, where that costs little; otherwise a
// thread owns a range of the scores. Rows are walked in chunks so that the pool can look for Ctrl-C in between.
template <class Matrix>
void tdot_wide(const Matrix& X, const double* L, std::size_t k, double* G, int n_threads) {
  const std::size_t work = X.n_entries() * k, size = X.n_cols * k;
  std::fill_n(G, size, 0.0);
  if (!mostly_zero(L, X.n_rows, k)) {
    const std::size_t n_blocks = std::clamp<std::size_t>(work / std::max<std::size_t>(1, 8 * size), 1, kWideBlocks);
    if (n_blocks > 1 || work < 2 * kEntriesPerTask) return wide::by_blocks(X, L, k, G, n_blocks, n_threads);
  }
  const std::size_t n_ranges = std::min(k, static_cast<std::size_t>(threads_for(work, n_threads)));
  const std::size_t n_chunks = std::max<std::size_t>(1, work / (kEntriesPerTask * 64));
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const std::size_t first = X.n_rows * chunk / n_chunks, last = X.n_rows * (chunk + 1) / n_chunks;
    parallel_for(n_ranges, n_threads, [&](std::size_t r) {
      wide::scatter_range(X, first, last, L, k, k * r / n_ranges, k * (r + 1) / n_ranges, G);
    });
  }
}

}  // namespace bmrm
