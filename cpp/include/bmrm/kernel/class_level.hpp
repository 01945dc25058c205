// Dual points on a simplex of classes for each row, made level: each class has its own share of the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/sum.hpp"
#include "bmrm/kernel/vector_rows.hpp"

namespace bmrm {

// Changes theta (m x k) so that sum_i p_i theta_i = sum_i p_i e_y. Classes with too much give it back, by a common
// factor and from rows that are split among classes where those have enough; the others get it, in the same rows, as
// they lack it. One pass is exact but for rounding.
class ClassLevel {
 public:
  ClassLevel(double* theta, std::span<const std::int32_t> y, std::size_t k, const Shares& shares)
      : theta_(theta), y_(y), k_(k), shares_(shares), factor_(k), gain_(k), from_split_(k) {}

  // False if nothing but rounding was left to move.
  bool step() {
    if (!add_up()) return false;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      double *theta = theta_ + i * k_, given = 0.0;
      const bool split = is_split(theta);
      for (std::size_t c = 0; c < k_; ++c) {
        if (theta[c] == 0.0 || factor_[c] == 0.0 || (from_split_[c] && !split)) continue;
        const double one = theta[c] * factor_[c];
        theta[c] -= one;
        given += one;
      }
      if (given == 0.0) continue;
      for (std::size_t c = 0; c < k_; ++c) theta[c] += given * gain_[c];
    }
    return true;
  }

 private:
  static constexpr double kRounded = 4e-16;  // of the slopes, which add up to 2 at most
  static constexpr double kTiny = 1e-300;

  bool is_split(const double* theta) const {
    return std::none_of(theta, theta + k_, [](double x) { return x >= 1.0; });
  }

  // Computes what part of theta classes give, and what part of it they get.
  bool add_up() {
    std::vector<Sum> surplus(k_);
    std::vector<double> all(k_, 0.0), in_split(k_, 0.0);
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double p = shares_.at(i), *theta = theta_ + i * k_;
      const bool split = is_split(theta);
      for (std::size_t c = 0; c < k_; ++c) {
        if (theta[c] == 0.0) continue;
        all[c] += p * theta[c];
        if (split) in_split[c] += p * theta[c];
        if (c != static_cast<std::size_t>(y_[i])) surplus[c].add(p * theta[c]);
      }
      const auto y = static_cast<std::size_t>(y_[i]);
      if (theta[y] != 1.0) surplus[y].add(p * (theta[y] - 1.0));
    }
    double much = 0.0, little = 0.0;
    for (const Sum& one : surplus) (one.value() > 0.0 ? much : little) += std::abs(one.value());
    if (std::min(much, little) <= kRounded) return false;
    for (std::size_t c = 0; c < k_; ++c) {
      const double own = surplus[c].value(), above = std::max(0.0, own);
      from_split_[c] = in_split[c] >= 2.0 * above;
      factor_[c] = above / std::max(from_split_[c] ? in_split[c] : all[c], above + kTiny);
      gain_[c] = std::max(0.0, -own) / little;
    }
    return true;
  }

  double* theta_;
  std::span<const std::int32_t> y_;
  std::size_t k_;
  const Shares& shares_;
  std::vector<double> factor_, gain_;  // of a class's theta, of what a row gives
  std::vector<bool> from_split_;
};

inline void level_of_classes(double* theta, std::span<const std::int32_t> y, std::size_t k, const Shares& shares) {
  constexpr int kLevels = 4;  // passes: one is exact but for rounding
  ClassLevel rows(theta, y, k, shares);
  for (int n = 0; n < kLevels && rows.step(); ++n) {
  }
}

}  // namespace bmrm
