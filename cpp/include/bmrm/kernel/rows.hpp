// One row at a time: what methods that visit rows in random order need of a matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bmrm/kernel/dense_tile.hpp"
#include "bmrm/kernel/sparse_tile.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

namespace tile {

template <class Value>
BMRM_INLINE double dense_dot_body(const Value* x, std::size_t n, const double* w) {
  double s[1];
  dots_of(x, 0, n, w, s);
  return s[0];
}
BMRM_CLONES static inline double dense_dot(const double* x, std::size_t n, const double* w) {
  return dense_dot_body(x, n, w);
}
BMRM_CLONES static inline double dense_dot(const float* x, std::size_t n, const double* w) {
  return dense_dot_body(x, n, w);
}
BMRM_CLONES static inline void dense_axpy(const double* x, std::size_t n, double c, double* g) {
  axpys_of<1>(&x, &c, 0, n, g);
}
BMRM_CLONES static inline void dense_axpy(const float* x, std::size_t n, double c, double* g) {
  axpys_of<1>(&x, &c, 0, n, g);
}

}  // namespace tile

inline constexpr std::int64_t kLongRow = 32;

template <class Value, class Index>
double row_dot(const Csr<Value, Index>& X, std::size_t i, const double* w) {
  const std::int64_t from = X.indptr[i], n = X.indptr[i + 1] - from;
  return n >= kLongRow ? tile::long_dot(X.values + from, X.indices + from, n, w)
                       : tile::short_dot(X.values + from, X.indices + from, n, w);
}
template <class Value>
double row_dot(const Dense<Value>& X, std::size_t i, const double* w) {
  return tile::dense_dot(X.row(i), X.n_cols, w);
}

// g += c D x_i with a diagonal matrix D; an empty one is the identity.
template <class Value, class Index>
void row_axpy(const Csr<Value, Index>& X, std::size_t i, double c, std::span<const double> D, double* g) {
  const std::int64_t from = X.indptr[i], n = X.indptr[i + 1] - from;
  if (D.empty()) return tile::scatter(X.values + from, X.indices + from, n, c, g);
  for (std::int64_t p = from; p < from + n; ++p) {
    const auto j = static_cast<std::size_t>(X.indices[p]);
    g[j] += c * D[j] * static_cast<double>(X.values[p]);
  }
}
template <class Value>
void row_axpy(const Dense<Value>& X, std::size_t i, double c, std::span<const double> D, double* g) {
  const Value* x = X.row(i);
  if (D.empty()) return tile::dense_axpy(x, X.n_cols, c, g);
  for (std::size_t j = 0; j < X.n_cols; ++j) g[j] += c * D[j] * static_cast<double>(x[j]);
}

// <x_i, D x_i>
template <class Value, class Index>
double row_norm(const Csr<Value, Index>& X, std::size_t i, std::span<const double> D) {
  double s = 0.0;
  for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
    const double x = static_cast<double>(X.values[p]);
    s += (D.empty() ? 1.0 : D[static_cast<std::size_t>(X.indices[p])]) * x * x;
  }
  return s;
}
template <class Value>
double row_norm(const Dense<Value>& X, std::size_t i, std::span<const double> D) {
  double s = 0.0;
  for (std::size_t j = 0; j < X.n_cols; ++j) {
    const double x = static_cast<double>(X.row(i)[j]);
    s += (D.empty() ? 1.0 : D[j]) * x * x;
  }
  return s;
}

template <class Value, class Index>
std::size_t row_entries(const Csr<Value, Index>& X, std::size_t i) {
  return static_cast<std::size_t>(X.indptr[i + 1] - X.indptr[i]);
}
template <class Value>
std::size_t row_entries(const Dense<Value>& X, std::size_t) {
  return X.n_cols;
}

// Asks for where a row starts, so that `prefetch_row` need not wait for it.
template <class Value, class Index>
void prefetch_start(const Csr<Value, Index>& X, std::size_t i) {
  prefetch(X.indptr + i);
}
template <class Value>
void prefetch_start(const Dense<Value>&, std::size_t) {}

// Asks for the beginning of a row that will be visited soon; the rest is read in order, which the processor sees.
template <class Value, class Index>
void prefetch_row(const Csr<Value, Index>& X, std::size_t i) {
  constexpr std::int64_t kIndices = 64 / sizeof(Index), kValues = 64 / sizeof(Value);  // in a cache line
  const std::int64_t from = X.indptr[i], last = X.indptr[i + 1] - 1;
  prefetch(X.indices + from);
  prefetch(X.indices + std::min(from + kIndices, last));
  prefetch(X.values + from);
  prefetch(X.values + std::min(from + kValues, last));
  prefetch(X.values + std::min(from + 2 * kValues, last));
}
template <class Value>
void prefetch_row(const Dense<Value>& X, std::size_t i) {
  prefetch(X.row(i));
  prefetch(X.row(i) + 64 / sizeof(Value));
}

// Draws a random order of the rows in place, a few rows ahead of the one in use. Neighbors stay together, `each` rows
// at a time. The numbers are a function of the key and the position only (SplitMix64), so that a run can be repeated
// and taken up again.
class RandomOrder {
 public:
  RandomOrder(std::span<std::int64_t> rows, std::uint64_t key, std::size_t each = 1)
      : rows_(rows), key_(key), each_(each) {}

  // Draws the row at position k, one position after the other.
  std::size_t draw(std::size_t k) {
    if (k == until_) {
      until_ += each_;
      const std::size_t n = (rows_.size() - k) / each_;  // what is left over stays last
      const double u = static_cast<double>(random(k) >> 11) * 0x1.0p-53;
      const std::size_t other = k + each_ * std::min(n - 1, static_cast<std::size_t>(u * static_cast<double>(n)));
      if (n > 0 && other != k) std::swap_ranges(&rows_[k], &rows_[k] + each_, &rows_[other]);
    }
    return static_cast<std::size_t>(rows_[k]);
  }

 private:
  std::uint64_t random(std::size_t k) const {
    std::uint64_t x = key_ + 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(k) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }

  std::span<std::int64_t> rows_;
  std::uint64_t key_;
  std::size_t each_, until_ = 0;
};

}  // namespace bmrm
