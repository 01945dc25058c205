// The step of one row of the multiclass dual: the best point of a simplex for a quadratic with a diagonal matrix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace bmrm {

// argmax over t on the simplex of <g, t> - 1/2 sum_c q_c (t_c - theta_c)^2, which for equal q_c is the projection of
// theta + g / q: t_c = max(0, (u_c - tau) / q_c) with u = g + q theta.
//
// The level tau lies within q of the largest u, so that most classes drop out at once; of the others those at or below
// the level of all that are left drop out until none does (Michelot's method).
class SimplexStep {
 public:
  explicit SimplexStep(std::size_t k) : u_(k) { some_.reserve(k); }

  // q(c) gives q_c; the result is written to t. At q = 0 it is a vertex where g is largest.
  template <class Q>
  void operator()(const double* g, const double* theta, const Q& q, double* t) {
    const std::size_t k = u_.size();
    std::size_t top = 0;
    for (std::size_t c = 0; c < k; ++c) {
      u_[c] = g[c] + q(c) * theta[c];
      if (u_[c] > u_[top]) top = c;
    }
    const double largest = u_[top];
    std::fill_n(t, k, 0.0);
    some_.clear();
    for (std::size_t c = 0; c < k; ++c) {
      u_[c] -= largest;
      if (u_[c] > -q(top) && c != top) some_.push_back(c);
    }
    const double tau = level(q, q(top));
    double rest = 1.0;
    for (const std::size_t c : some_) {
      t[c] = (u_[c] - tau) / q(c);
      rest -= t[c];
    }
    t[top] = std::max(0.0, rest);  // so the sum is 1 to the last digit
  }

 private:
  // Leaves the classes above the level in the list, which gets shorter on each trip but the last.
  template <class Q>
  double level(const Q& q, double q_top) {
    for (;;) {
      double inverse = 1.0 / q_top, sum = 0.0;
      if (some_.empty()) return -q_top;
      for (const std::size_t c : some_) {
        inverse += 1.0 / q(c);
        sum += u_[c] / q(c);
      }
      const double tau = (sum - 1.0) / inverse;
      const std::size_t before = some_.size();
      std::erase_if(some_, [&](std::size_t c) { return u_[c] <= tau; });
      if (some_.size() == before) return tau;
    }
  }

  std::vector<double> u_;
  std::vector<std::size_t> some_;
};

}  // namespace bmrm
