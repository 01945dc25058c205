// A growing symmetric matrix, stored in full with spare capacity: each row is contiguous, so that products
// with a sparse vector are sums of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace bmrm {

// Four accumulators: strict floating point forbids the compiler to split one sum by itself.
inline double dot(const double* a, const double* b, std::size_t n) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sum[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

inline void add_scaled(double alpha, const double* a, double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += alpha * a[i];
}

class Gram {
 public:
  Gram() = default;
  Gram(const Gram& other) : n_(other.n_), capacity_(other.n_) {
    entries_ = std::make_unique_for_overwrite<double[]>(capacity_ * capacity_);
    for (std::size_t i = 0; i < n_; ++i) std::copy_n(other.row(i), n_, entries_.get() + i * capacity_);
  }
  Gram(Gram&&) = default;
  Gram& operator=(Gram other) {
    std::swap(entries_, other.entries_);
    n_ = other.n_;
    capacity_ = other.capacity_;
    return *this;
  }

  std::size_t size() const { return n_; }
  const double* row(std::size_t i) const { return entries_.get() + i * capacity_; }
  double diagonal(std::size_t i) const { return row(i)[i]; }

  // h: products with the rows there are, then with itself.
  void append(std::span<const double> h) {
    if (n_ == capacity_) grow();
    for (std::size_t i = 0; i < n_; ++i) at(i, n_) = at(n_, i) = h[i];
    at(n_, n_) = h[n_];
    ++n_;
  }

  // kept: ascending indices of the rows that stay.
  void keep(const std::vector<std::size_t>& kept) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      for (std::size_t j = 0; j < kept.size(); ++j) at(i, j) = at(kept[i], kept[j]);
    }
    n_ = kept.size();
  }

  // y += sum over k of weights[k] times row indices[k]; four rows at once, to pass over y less often.
  void accumulate(const std::vector<std::size_t>& indices, const double* weights, double* y) const {
    std::size_t k = 0;
    for (; k + 4 <= indices.size(); k += 4) {
      const double* h0 = row(indices[k]);
      const double* h1 = row(indices[k + 1]);
      const double* h2 = row(indices[k + 2]);
      const double* h3 = row(indices[k + 3]);
      const double w0 = weights[k], w1 = weights[k + 1], w2 = weights[k + 2], w3 = weights[k + 3];
      for (std::size_t i = 0; i < n_; ++i) {
        y[i] += (w0 * h0[i] + w1 * h1[i]) + (w2 * h2[i] + w3 * h3[i]);
      }
    }
    for (; k < indices.size(); ++k) add_scaled(weights[k], row(indices[k]), y, n_);
  }

 private:
  double& at(std::size_t i, std::size_t j) { return entries_[i * capacity_ + j]; }

  void grow() {
    const std::size_t capacity = std::max<std::size_t>(16, capacity_ + capacity_ / 2);
    auto entries = std::make_unique_for_overwrite<double[]>(capacity * capacity);
    for (std::size_t i = 0; i < n_; ++i) std::copy_n(row(i), n_, entries.get() + i * capacity);
    entries_ = std::move(entries);
    capacity_ = capacity;
  }

  std::unique_ptr<double[]> entries_;
  std::size_t n_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace bmrm
