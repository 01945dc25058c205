// I + B D B' for B = diag(sqrt(c)) X of some of the rows, scaled to a diagonal of ones: the system of Newton's method
// in the space of the rows, where those with curvature are far fewer than columns.
//
// Only the lower triangle is computed, each row of it by one task: what comes out does not depend on the threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/rows.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

// Calls body(k) for the rows of a triangle, a few at a time, the long ones first.
template <class Body>
void each_triangle_row(std::size_t n, int n_threads, const Body& body) {
  constexpr std::size_t kSome = 16;
  const std::size_t n_tasks = (n + kSome - 1) / kSome;
  parallel_for(n_tasks, n_threads, [&](std::size_t task) {
    const std::size_t at = n_tasks - 1 - task;
    for (std::size_t k = at * kSome; k < std::min(n, (at + 1) * kSome); ++k) body(k);
  });
}

struct RowSystem {
  std::span<const std::int64_t> rows;
  std::span<const double> c;  // of those rows
  std::span<const double> D;  // empty: ones
  double constant;            // D of a column of ones; 0: there is none
  double* M;                  // n x n
  double* weights;            // sqrt(c) times the scaling of each row
};

template <class View>
void find_weights(const View& X, const RowSystem& s) {
  for (std::size_t k = 0; k < s.rows.size(); ++k) {
    const double square = row_norm(X, static_cast<std::size_t>(s.rows[k]), s.D) + s.constant;
    s.weights[k] = std::sqrt(s.c[k] / (1.0 + s.c[k] * square));
  }
}

// By columns: the entries of each column that the rows have, in their order.
template <class Value, class Index>
void row_system(const Csr<Value, Index>& X, const RowSystem& s, int n_threads) {
  struct Entry {
    std::uint32_t row;
    double x;
  };
  const std::size_t n = s.rows.size();
  std::vector<std::size_t> starts(X.n_cols + 1, 0);
  for (const std::int64_t i : s.rows)
    for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) ++starts[static_cast<std::size_t>(X.indices[p]) + 1];
  for (std::size_t j = 0; j < X.n_cols; ++j) starts[j + 1] += starts[j];
  find_weights(X, s);
  std::vector<Entry> entries(starts.back());
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  for (std::size_t k = 0; k < n; ++k)
    for (std::int64_t p = X.indptr[s.rows[k]]; p < X.indptr[s.rows[k] + 1]; ++p) {
      const auto j = static_cast<std::size_t>(X.indices[p]);
      const double d = s.D.empty() ? s.weights[k] : s.weights[k] * s.D[j];
      entries[next[j]++] = {static_cast<std::uint32_t>(k), d * static_cast<double>(X.values[p])};
    }
  each_triangle_row(n, n_threads, [&](std::size_t k) {
    double* sums = s.M + k * n;
    for (std::size_t i = 0; i < k; ++i) sums[i] = s.weights[k] * s.weights[i] * s.constant;
    for (std::int64_t p = X.indptr[s.rows[k]]; p < X.indptr[s.rows[k] + 1]; ++p) {
      const double x = s.weights[k] * static_cast<double>(X.values[p]);
      for (const Entry* e = entries.data() + starts[static_cast<std::size_t>(X.indices[p])]; e->row < k; ++e)
        sums[e->row] += x * e->x;  // row k is in this column, so that the loop ends
    }
    sums[k] = 1.0;
  });
}

template <class Value>
void row_system(const Dense<Value>& X, const RowSystem& s, int n_threads) {
  const std::size_t n = s.rows.size();
  find_weights(X, s);
  each_triangle_row(n, n_threads, [&](std::size_t k) {
    const Value* x = X.row(static_cast<std::size_t>(s.rows[k]));
    std::vector<double> scaled(x, x + X.n_cols);
    for (std::size_t j = 0; j < s.D.size(); ++j) scaled[j] *= s.D[j];
    for (std::size_t i = 0; i < k; ++i) {
      const double inner = row_dot(X, static_cast<std::size_t>(s.rows[i]), scaled.data()) + s.constant;
      s.M[k * n + i] = s.weights[k] * s.weights[i] * inner;
    }
    s.M[k * n + k] = 1.0;
  });
}

}  // namespace bmrm
