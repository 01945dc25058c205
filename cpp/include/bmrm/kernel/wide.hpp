// X W and X' L for k scores of each row: W (d x k), F and L (m x k), all row by row.
//
// X W: the k scores of a row are summed together, so that W is read in runs of k. X' L: a thread owns a range of the
// k scores and walks all rows in order, so that each sum is the serial one; slopes that are 0 cost nothing, and of the
// losses that compare classes all but two of a row are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bmrm/kernel/product.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

namespace wide {

inline void axpy(double x, const double* __restrict a, double* __restrict out, std::size_t n) {
  for (std::size_t c = 0; c < n; ++c) out[c] += x * a[c];
}

template <class Value, class Index>
void row_scores(const Csr<Value, Index>& X, std::size_t i, const double* W, std::size_t k, double* f) {
  for (auto p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
    axpy(static_cast<double>(X.values[p]), W + static_cast<std::size_t>(X.indices[p]) * k, f, k);
}

template <class Value>
void row_scores(const Dense<Value>& X, std::size_t i, const double* W, std::size_t k, double* f) {
  const Value* x = X.row(i);
  std::size_t j = 0;
  for (; j + 4 <= X.n_cols; j += 4) {  // four columns at a time: the scores are loaded and stored once for them
    const double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    const double *a0 = W + j * k, *a1 = a0 + k, *a2 = a1 + k, *a3 = a2 + k;
    for (std::size_t c = 0; c < k; ++c) f[c] += (x0 * a0[c] + x1 * a1[c]) + (x2 * a2[c] + x3 * a3[c]);
  }
  for (; j < X.n_cols; ++j) axpy(static_cast<double>(x[j]), W + j * k, f, k);
}

// Adds the slopes of one row for the scores [begin, end); `some` lists those that are not 0.
template <class Value, class Index, class Scatter>
void each_entry(const Csr<Value, Index>& X, std::size_t i, const Scatter& scatter) {
  for (auto p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
    scatter(static_cast<std::size_t>(X.indices[p]), static_cast<double>(X.values[p]));
}

template <class Value, class Scatter>
void each_entry(const Dense<Value>& X, std::size_t i, const Scatter& scatter) {
  const Value* x = X.row(i);
  for (std::size_t j = 0; j < X.n_cols; ++j) scatter(j, static_cast<double>(x[j]));
}

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
      each_entry(X, i, [&](std::size_t j, double x) { axpy(x, l + begin, G + j * k + begin, end - begin); });
    } else {
      each_entry(X, i, [&](std::size_t j, double x) {
        for (const std::size_t c : some) G[j * k + c] += x * l[c];
      });
    }
  }
}

}  // namespace wide

// F = X W
template <class Matrix>
void dot_wide(const Matrix& X, const double* W, std::size_t k, double* F, int n_threads) {
  const std::size_t work = X.n_entries() * k;
  const std::size_t n_tasks = std::clamp<std::size_t>(work / kEntriesPerTask, 1, X.n_rows ? X.n_rows : 1);
  parallel_for(n_tasks, threads_for(work, n_threads), [&](std::size_t task) {
    for (std::size_t i = X.n_rows * task / n_tasks; i < X.n_rows * (task + 1) / n_tasks; ++i) {
      std::fill_n(F + i * k, k, 0.0);
      wide::row_scores(X, i, W, k, F + i * k);
    }
  });
}

// G = X' L. Rows are walked in chunks so that the pool can look for Ctrl-C in between.
template <class Matrix>
void tdot_wide(const Matrix& X, const double* L, std::size_t k, double* G, int n_threads) {
  std::fill_n(G, X.n_cols * k, 0.0);
  const std::size_t work = X.n_entries() * k;
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
