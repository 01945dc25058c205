// Cholesky factors of k matrices of one size, one for each of k scores: the preconditioner of wide problems.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "bmrm/kernel/cholesky.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

class BlockFactors {
 public:
  // H: k matrices d x d, of which the lower triangles are read. They are scaled so that their diagonals are 1; a pivot
  // that rounding made smaller than `ridge` is raised to it. A diagonal of 0 counts as 1.
  BlockFactors(const double* H, std::size_t k, std::size_t d, double ridge, int n_threads)
      : d_(d), factors_(k), scaling_(k * d) {
    parallel_for(k, n_threads, [&](std::size_t c) {
      const double* block = H + c * d * d;
      double* s = scaling_.data() + c * d;
      std::vector<double> row(d);
      for (std::size_t i = 0; i < d; ++i) {
        const double diagonal = block[i * d + i];
        s[i] = diagonal > 0.0 ? 1.0 / std::sqrt(diagonal) : 1.0;
        for (std::size_t j = 0; j < i; ++j) row[j] = block[i * d + j] * s[i] * s[j];
        factors_[c].append(row, 1.0 + ridge, ridge);
      }
    });
  }

  std::size_t n_blocks() const { return factors_.size(); }
  std::size_t size() const { return d_; }

  // Column c of out (d x k) is the solution for column c of V.
  void solve(const double* V, double* out, int n_threads) const {
    const std::size_t k = factors_.size();
    const bool worth = k * d_ * d_ > (std::size_t{1} << 17);
    parallel_for(k, worth ? n_threads : 1, [&](std::size_t c) {
      std::vector<double> y(d_);
      const double* s = scaling_.data() + c * d_;
      for (std::size_t j = 0; j < d_; ++j) y[j] = s[j] * V[j * k + c];
      factors_[c].forward(y.data());
      factors_[c].backward(y.data());
      for (std::size_t j = 0; j < d_; ++j) out[j * k + c] = s[j] * y[j];
    });
  }

 private:
  std::size_t d_;
  std::vector<UpdatableCholesky> factors_;
  std::vector<double> scaling_;
};

}  // namespace bmrm
