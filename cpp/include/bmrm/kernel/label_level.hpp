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
    if (!shrink()) move();
    return true;
  }

 private:
  static constexpr double kMost = 0.5, kRare = 0.05, kThin = 0.01, kMostGiven = 0.9, kRounded = 4e-16;

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

  // Moves a_j l_j f_v from j to v in each row where v is wrong: O(k) a row, though there are k^2 pairs of labels. The
  // shares a_j give what j has too much if rows take F_i = sum_v f_v; then the f_v give v what it lacks. What is left
  // is in proportion to the square of how often labels are true: the next step moves that.
  void move() {
    std::vector<double> f(k_, 0.0), a(k_, 0.0);
    for (std::size_t v = 0; v < k_; ++v) f[v] = std::max(0.0, -e_[v]) / total_;
    shares_given(f, a);
    shares_taken(a, f);
    double most = 0.0, all = 0.0;
    for (std::size_t v = 0; v < k_; ++v) most = std::max(most, a[v]), all += f[v];
    const double less = most * all > kMostGiven ? kMostGiven / (most * all) : 1.0;
    std::vector<char> is_true(k_, 0);
    for (std::size_t i = 0; i < m_; ++i) {
      double *l = theta_ + i * k_, taken = all;
      const double given = less * given_by(l, a);
      if (!(given > 0.0)) continue;
      rows_.each_true(i, [&](std::size_t z) { is_true[z] = 1, taken -= f[z]; });
      for (std::size_t v = 0; v < k_; ++v) {
        if (a[v] > 0.0 && l[v] > 0.0) l[v] -= less * a[v] * l[v] * std::max(0.0, taken);
        if (f[v] > 0.0 && !is_true[v]) l[v] += given * f[v];
      }
      rows_.each_true(i, [&](std::size_t z) { is_true[z] = 0; });
    }
  }

  // a_j = e_j / sum_i p_i l_ij F_i; 0 where j is hardly ever wrong together with those that lack something.
  void shares_given(const std::vector<double>& f, std::vector<double>& a) const {
    std::vector<double> room(k_, 0.0);
    for (std::size_t i = 0; i < m_; ++i) {
      const double p = shares_.at(i), *l = theta_ + i * k_;
      double taken = 1.0;
      rows_.each_true(i, [&](std::size_t z) { taken -= f[z]; });
      for (std::size_t v = 0; v < k_; ++v)
        if (e_[v] > 0.0 && l[v] > 0.0) room[v] += p * l[v] * taken;
    }
    for (std::size_t v = 0; v < k_; ++v)
      if (e_[v] > 0.0 && room[v] > kThin * beta_[v]) a[v] = e_[v] / room[v];
  }

  // f_v = -e_v / sum of p_i sum_j a_j l_ij over the rows where v is wrong.
  void shares_taken(const std::vector<double>& a, std::vector<double>& f) const {
    std::vector<double> given(k_, 0.0);
    double all = 0.0;
    for (std::size_t i = 0; i < m_; ++i) {
      const double here = shares_.at(i) * given_by(theta_ + i * k_, a);
      all += here;
      if (here > 0.0) rows_.each_true(i, [&](std::size_t z) { given[z] += here; });
    }
    for (std::size_t v = 0; v < k_; ++v)
      f[v] = e_[v] < 0.0 && all - given[v] > kThin * all ? -e_[v] / (all - given[v]) : 0.0;
  }

  double given_by(const double* l, const std::vector<double>& a) const {
    double given = 0.0;
    for (std::size_t v = 0; v < k_; ++v)
      if (l[v] > 0.0) given += a[v] * l[v];
    return given;
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
