// The Cholesky factor L L' of a matrix that gains and loses rows one at a time, in O(s^2) each.
//
// L is kept by rows, packed: row i holds its i + 1 entries. Both triangular solves then run over contiguous
// memory, and a new row goes to the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bmrm/kernel/archive.hpp"
#include "bmrm/kernel/gram.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

class UpdatableCholesky {
 public:
  std::size_t size() const { return s_; }

  void clear() {
    s_ = 0;
    entries_.clear();
  }

  // Appends the row (a, diagonal) of the matrix. A pivot that rounding made too small is raised to `least`:
  // the factor is then that of a matrix with a slightly larger diagonal, and never breaks down.
  void append(std::vector<double>& a, double diagonal, double least) {
    forward(a.data());
    const double pivot = diagonal - dot(a.data(), a.data(), s_);
    entries_.insert(entries_.end(), a.begin(), a.begin() + static_cast<std::ptrdiff_t>(s_));
    entries_.push_back(std::sqrt(std::max(pivot, least)));
    ++s_;
  }

  // Removes row and column k. Each later row has then one entry beyond its diagonal: Givens rotations of
  // neighboring columns clear them, and the rows move up by one as they go.
  void remove(std::size_t k) {
    cosines_.resize(s_);
    sines_.resize(s_);
    for (std::size_t i = k + 1; i < s_; ++i) {
      const double* from = row(i);
      double* to = row(i - 1);
      double carried = from[k];
      std::copy_n(from, k, to);
      for (std::size_t j = k; j + 1 < i; ++j) {
        const double next = from[j + 1];
        to[j] = cosines_[j] * carried + sines_[j] * next;
        carried = cosines_[j] * next - sines_[j] * carried;
      }
      const double last = from[i];
      const double radius = std::hypot(carried, last);
      cosines_[i - 1] = carried / radius;
      sines_[i - 1] = last / radius;
      to[i - 1] = radius;
    }
    --s_;
    entries_.resize(start(s_));
  }

  void pack(Packer& to) const { to.numbers(entries_); }

  void unpack(Unpacker& from, std::size_t s) {
    s_ = s;
    entries_ = from.vector(start(s));
  }

  // y := L^{-1} y
  void forward(double* y) const {
    for (std::size_t i = 0; i < s_; ++i) {
      const double* l = row(i);
      y[i] = (y[i] - dot(l, y, i)) / l[i];
    }
  }

  // y := L^{-T} y
  void backward(double* y) const {
    for (std::size_t i = s_; i-- > 0;) {
      const double* l = row(i);
      y[i] /= l[i];
      add_scaled(-y[i], l, y, i);
    }
  }

 private:
  static std::size_t start(std::size_t i) { return i * (i + 1) / 2; }
  const double* row(std::size_t i) const { return entries_.data() + start(i); }
  double* row(std::size_t i) { return entries_.data() + start(i); }

  std::vector<double> entries_;
  std::vector<double> cosines_, sines_;
  std::size_t s_ = 0;
};

// Solves K y = y for a small dense positive semidefinite K (q x q, destroyed). A direction in which K
// vanishes is undetermined: the entry of y is then zero.
inline void solve_semidefinite(std::vector<double>& K, std::vector<double>& y) {
  constexpr double kVanishing = 1e-13;
  const std::size_t q = y.size();
  Patience patience;
  for (std::size_t i = 0; i < q; ++i) {
    if (i % 64 == 63) patience.check();
    double* row = &K[i * q];
    const double whole = row[i];
    for (std::size_t j = 0; j < i; ++j) {
      const double rest = row[j] - dot(row, &K[j * q], j);
      row[j] = K[j * q + j] > 0.0 ? rest / K[j * q + j] : 0.0;
    }
    const double pivot = whole - dot(row, row, i);
    row[i] = pivot > kVanishing * whole ? std::sqrt(pivot) : 0.0;
    y[i] = row[i] > 0.0 ? (y[i] - dot(row, y.data(), i)) / row[i] : 0.0;
  }
  for (std::size_t i = q; i-- > 0;) {
    const double* row = &K[i * q];
    y[i] = row[i] > 0.0 ? y[i] / row[i] : 0.0;
    add_scaled(-y[i], row, y.data(), i);
  }
}

}  // namespace bmrm
