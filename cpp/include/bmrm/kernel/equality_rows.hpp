// The rows C x = c of the quadratic program: how well a point meets them, and how to repair the last digits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "bmrm/kernel/support_kkt.hpp"

namespace bmrm {

class EqualityRows {
 public:
  explicit EqualityRows(std::span<const double> c) : c_(c.begin(), c.end()) {}

  std::size_t size() const { return c_.size(); }
  void pack(Packer& to) const { to.numbers(c_); }

  // Whether C x = c up to what a caller's own rounding explains.
  bool feasible(const QpMatrices& data, std::span<const double> x) const {
    Patience patience;
    for (std::size_t i = 0; i < size(); ++i) {
      if (i % 64 == 63) patience.check();
      double sum = -c_[i], size_of_terms = std::abs(c_[i]);
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double term = data.column(j)[i] * x[j];
        sum += term;
        size_of_terms += std::abs(term);
      }
      if (!(std::abs(sum) <= 1e-9 * size_of_terms)) return false;
    }
    return true;
  }

  // c - C x, summed with the rounding errors of the sum carried along.
  std::vector<double> residuals(const QpMatrices& data, const std::vector<std::size_t>& S,
                                const std::vector<double>& x) const {
    std::vector<double> e(c_), lost(size(), 0.0);
    for (const std::size_t j : S) {
      for (std::size_t i = 0; i < size(); ++i) {
        const double term = -data.column(j)[i] * x[j], sum = e[i] + term;
        lost[i] += std::abs(e[i]) >= std::abs(term) ? (e[i] - sum) + term : (term - sum) + e[i];
        e[i] = sum;
      }
    }
    for (std::size_t i = 0; i < size(); ++i) e[i] += lost[i];
    return e;
  }

  // Changes each x_j by a tiny factor so that C x = c to rounding: zero stays zero, positive stays positive.
  void restore(const QpMatrices& data, const std::vector<std::size_t>& S, std::vector<double>& x) const {
    const std::size_t q = size();
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<double> y = residuals(data, S, x), K(q * q, 0.0);
      Patience patience;
      for (const std::size_t j : S) {
        if (q > kManyRows) patience.check();
        const double* C = data.column(j);
        for (std::size_t i = 0; i < q; ++i) add_scaled(x[j] * C[i], C, &K[i * q], q);
      }
      solve_semidefinite(K, y);
      for (const std::size_t j : S) x[j] += x[j] * std::max(-0.5, dot(y.data(), data.column(j), q));
    }
  }

  // Whether the step p, given on S, has C p = e up to `part` of its terms and `part_of_x` of those of x.
  static bool met(const QpMatrices& data, const std::vector<std::size_t>& S, const std::vector<double>& p,
                  const std::vector<double>& e, double part, const std::vector<double>& x, double part_of_x) {
    for (std::size_t i = 0; i < e.size(); ++i) {
      double sum = -e[i], tolerance = 0.0;
      for (std::size_t k = 0; k < S.size(); ++k) {
        const double coefficient = data.column(S[k])[i];
        sum += coefficient * p[k];
        tolerance += std::abs(coefficient) * (part * std::abs(p[k]) + part_of_x * x[S[k]]);
      }
      if (std::abs(sum) > tolerance) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kManyRows = 20;  // a variable costs their square
  std::vector<double> c_;
};

}  // namespace bmrm
