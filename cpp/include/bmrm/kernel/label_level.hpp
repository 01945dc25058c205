// Dual points of label sets whose slopes add up to 0 in each label: planes without a slope in the constants.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bmrm/kernel/label_rows.hpp"
#include "bmrm/kernel/sum.hpp"
#include "bmrm/kernel/vector_rows.hpp"

namespace bmrm {

// Moves beta between labels so that sum_i p_i theta_i comes nearer to 0: from labels above to labels below, within
// rows where both are wrong, in proportion to the beta there. Where most of a label's beta has to go, or nearly all
// rows have it, beta and alpha of its rows get smaller instead. Exact but for rounding where neither is the case.
class LabelLevel {
 public:
  LabelLevel(const LabelRows& rows, const Shares& shares, double* theta)
      : rows_(rows), shares_(shares), theta_(theta), m_(rows.n_rows()), k_(rows.n_scores()) {}

  // False if nothing but rounding was left to move.
  bool step() {
    if (!(add_up() > kRounded * used_)) return false;
    if (!shrink()) move(portions());
    return true;
  }

 private:
  static constexpr double kMost = 0.5, kRare = 0.05, kThin = 0.01, kRounded = 4e-16;

  // Fills e, alpha, beta, wrong and used; returns the sum of what is above 0 of e.
  double add_up() {
    std::vector<Sum> sums(k_);
    e_.assign(k_, 0.0), beta_.assign(k_, 0.0), alpha_.assign(k_, 0.0), wrong_.assign(k_, 0.0);
    double everything = 0.0;
    for (std::size_t i = 0; i < m_; ++i) {
      const double p = shares_.at(i), *l = theta_ + i * k_;
      for (std::size_t v = 0; v < k_; ++v) {
        if (l[v] == 0.0) continue;
        sums[v].add(p * l[v]);
        (l[v] > 0.0 ? beta_ : alpha_)[v] += p * std::abs(l[v]);
      }
      everything += p;
      rows_.each_true(i, [&](std::size_t z) { wrong_[z] -= p; });
    }
    total_ = used_ = 0.0;
    for (std::size_t v = 0; v < k_; ++v) {
      e_[v] = sums[v].value();
      wrong_[v] += everything;
      used_ += beta_[v];
      total_ += std::max(0.0, e_[v]);
    }
    return total_;
  }

  // Takes parts of the labels' alpha or beta away where that is needed, and of the other side of each row as much.
  bool shrink() {
    std::vector<double> cut(k_, 0.0);
    bool cuts = false;
    for (std::size_t v = 0; v < k_; ++v) {
      if (e_[v] > kMost * beta_[v]) cut[v] = std::min(1.0, e_[v] / beta_[v]);
      if (e_[v] < 0.0 && (wrong_[v] < kRare || -e_[v] > kMost * alpha_[v])) cut[v] = std::min(1.0, -e_[v] / alpha_[v]);
      cuts |= cut[v] > 0.0;
    }
    for (std::size_t i = 0; cuts && i < m_; ++i) {
      double *l = theta_ + i * k_, alpha = 0.0, beta = 0.0;
      for (std::size_t v = 0; v < k_; ++v) {
        if (l[v] != 0.0) l[v] *= 1.0 - cut[v];
        (l[v] > 0.0 ? beta : alpha) += std::abs(l[v]);
      }
      const double rho = std::min(alpha, beta);
      for (std::size_t v = 0; v < k_; ++v)
        if (l[v] != 0.0) l[v] *= rho / (l[v] > 0.0 ? beta : alpha);
    }
    return cuts;
  }

  // Of the beta of j, what goes to v in the rows where v is wrong: k x k.
  std::vector<double> portions() const {
    std::vector<double> portion(k_ * k_, 0.0);  // first the beta of j in rows where v is true
    for (std::size_t i = 0; i < m_; ++i) {
      const double p = shares_.at(i), *l = theta_ + i * k_;
      for (std::size_t j = 0; j < k_; ++j)
        if (e_[j] > 0.0 && l[j] > 0.0) rows_.each_true(i, [&](std::size_t z) { portion[j * k_ + z] += p * l[j]; });
    }
    double most = 0.0;
    for (std::size_t j = 0; j < k_; ++j) {
      double given = 0.0;
      for (std::size_t v = 0; v < k_; ++v) {
        double& share = portion[j * k_ + v];
        const double room = beta_[j] - share;
        share = e_[j] > 0.0 && e_[v] < 0.0 && room > kThin * beta_[j] ? e_[j] * (-e_[v] / total_) / room : 0.0;
        given += share;
      }
      most = std::max(most, given);
    }
    if (most > 0.9)
      for (double& share : portion) share *= 0.9 / most;
    return portion;
  }

  void move(const std::vector<double>& portion) {
    std::vector<double> gain(k_);
    for (std::size_t i = 0; i < m_; ++i) {
      double* l = theta_ + i * k_;
      std::fill(gain.begin(), gain.end(), 0.0);
      bool gives = false;
      for (std::size_t j = 0; j < k_; ++j) {
        if (!(e_[j] > 0.0 && l[j] > 0.0)) continue;
        gives = true;
        double given = 0.0;
        rows_.each_wrong(i, [&](std::size_t v) {
          const double one = l[j] * portion[j * k_ + v];
          gain[v] += one;
          given += one;
        });
        gain[j] -= given;
      }
      for (std::size_t v = 0; gives && v < k_; ++v)
        if (gain[v] != 0.0) l[v] = std::max(0.0, l[v] + gain[v]);
    }
  }

  const LabelRows& rows_;
  const Shares& shares_;
  double* theta_;
  std::size_t m_, k_;
  std::vector<double> e_, beta_, alpha_, wrong_;  // e = sum_i p_i theta_i; wrong: how much weight is not the label's
  double used_ = 0.0, total_ = 0.0;               // sums of beta, and of what is above 0 of e
};

inline void LabelRows::level(double* theta, const Shares& shares) const {
  constexpr int kLevels = 8;  // passes: one is exact but for rounding, unless labels are rare or in nearly all rows
  LabelLevel rows(*this, shares, theta);
  for (int n = 0; n < kLevels && rows.step(); ++n) {
  }
}

}  // namespace bmrm
