// Rows that order label sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bmrm/kernel/joint_rows.hpp"
#include "bmrm/kernel/vector_rows.hpp"

namespace bmrm {

// Label sets: vertices e_c - e_z at the cost `margin`, z a true label and c another one, and 0. theta is the slope:
// beta_c >= 0 for others, -alpha_z <= 0 for true ones, sum beta = sum alpha = rho <= 1.
class LabelRows {
 public:
  LabelRows(std::vector<std::int64_t> indptr, std::vector<std::int32_t> labels, std::size_t k, double margin)
      : indptr_(std::move(indptr)), labels_(std::move(labels)), k_(k), margin_(margin) {}

  std::size_t n_rows() const { return indptr_.size() - 1; }
  std::size_t n_scores() const { return k_; }
  std::size_t width() const { return k_; }  // of theta

  JointValue value(std::size_t i, const double* f, const double* theta) const {
    const Ends e = ends(i, f, theta);
    const double most = e.orders ? std::max(0.0, e.up(margin_)) : 0.0;
    return {most, margin_ * e.rho, lead(theta, e)};
  }

  void slopes(std::size_t, const double* theta, double c, double* l) const {
    for (std::size_t v = 0; v < k_; ++v) l[v] = c * theta[v];
  }

  // Makes theta the best vertex.
  void best(std::size_t i, const double* f, double* theta) const {
    std::fill_n(theta, k_, 0.0);
    const Ends e = ends(i, f, theta);
    if (!e.orders || e.up(margin_) <= 0.0) return;
    theta[e.wrong] = 1.0;
    theta[e.right] = -1.0;
  }

  // One move along the edge that gains most, if that is more than `least`; returns the gain, or 0.
  double move(std::size_t i, double* theta, JointRow& row, double least) const {
    const Ends e = ends(i, row.f, theta);
    if (!e.orders) return 0.0;
    JointMove moves[4];
    const double *f = row.f, *q = row.q;
    moves[0] = {e.up(margin_), q[e.wrong] + q[e.right], 1.0 - e.rho, e.right, e.wrong, 0};
    if (e.in_use()) {
      moves[1] = {-(margin_ + f[e.idle_wrong] - f[e.idle_right]),
                  q[e.idle_wrong] + q[e.idle_right],
                  std::min(theta[e.idle_wrong], -theta[e.idle_right]),
                  e.idle_wrong,
                  e.idle_right,
                  1};
      moves[2] = {
          f[e.wrong] - f[e.idle_wrong], q[e.wrong] + q[e.idle_wrong], theta[e.idle_wrong], e.idle_wrong, e.wrong, 2};
      moves[3] = {
          f[e.idle_right] - f[e.right], q[e.right] + q[e.idle_right], -theta[e.idle_right], e.right, e.idle_right, 3};
    }
    const JointMove* best = nullptr;
    for (const JointMove& one : moves)
      if (one.slope > 0.0 && one.most > 0.0 && one.gain() > (best == nullptr ? least : best->gain())) best = &one;
    if (best == nullptr) return 0.0;
    const double t = best->length(), gain = best->gain();
    put(theta, row, best->from, -t);
    put(theta, row, best->to, t);
    return gain;
  }

  double offset(std::size_t, const double* theta) const {
    double rho = 0.0;
    for (std::size_t v = 0; v < k_; ++v) rho += std::max(0.0, theta[v]);
    return margin_ * rho;
  }

  // Makes the slopes of each label add up to 0 in theta (m x width) but for rounding, or to less.
  void level(double* theta, const Shares& shares) const;

  // Makes the sums of alpha and beta equal again, and at most 1, but for the last digit.
  void mend(double* theta, JointRow& row) const {
    double alpha = 0.0, beta = 0.0;
    for (std::size_t v = 0; v < k_; ++v) (theta[v] > 0.0 ? beta : alpha) += theta[v];
    const double rho = std::min({beta, -alpha, 1.0});
    const double least = -rho;
    if (beta > rho) put(theta, row, largest(theta, 1.0), rho - beta);
    if (alpha < least) put(theta, row, largest(theta, -1.0), least - alpha);
  }

  // Calls body(z) for the true labels of a row.
  template <class Body>
  void each_true(std::size_t i, const Body& body) const {
    for (auto p = indptr_[i]; p < indptr_[i + 1]; ++p)
      body(static_cast<std::size_t>(labels_[static_cast<std::size_t>(p)]));
  }

  template <class Body>
  void each_wrong(std::size_t i, const Body& body) const {
    std::size_t c = 0;
    each_true(i, [&](std::size_t z) {
      for (; c < z; ++c) body(c);
      c = z + 1;
    });
    for (; c < k_; ++c) body(c);
  }

 private:
  struct Ends {
    std::size_t wrong = 0, right = 0, idle_wrong = 0, idle_right = 0;  // best ones; worst ones in use
    double best_wrong = -kHuge, best_right = kHuge, second_wrong = -kHuge, second_right = kHuge;
    double worst_wrong = kHuge, worst_right = -kHuge, rho = 0.0;
    bool orders = false;
    double up(double margin) const { return margin + best_wrong - best_right; }
    bool in_use() const { return worst_wrong < kHuge && worst_right > -kHuge; }
  };

  Ends ends(std::size_t i, const double* f, const double* theta) const {
    Ends e;
    auto p = static_cast<std::size_t>(indptr_[i]);
    const auto end = static_cast<std::size_t>(indptr_[i + 1]);
    e.orders = p < end && end - p < k_;
    for (std::size_t v = 0; v < k_; ++v) {
      if (p < end && static_cast<std::size_t>(labels_[p]) == v) {
        ++p;
        if (f[v] < e.best_right) {
          e.second_right = e.best_right;
          e.best_right = f[v], e.right = v;
        } else {
          e.second_right = std::min(e.second_right, f[v]);
        }
        if (theta[v] < 0.0 && f[v] > e.worst_right) e.worst_right = f[v], e.idle_right = v;
      } else {
        if (f[v] > e.best_wrong) {
          e.second_wrong = e.best_wrong;
          e.best_wrong = f[v], e.wrong = v;
        } else {
          e.second_wrong = std::max(e.second_wrong, f[v]);
        }
        if (theta[v] > 0.0) {
          e.rho += theta[v];
          if (f[v] < e.worst_wrong) e.worst_wrong = f[v], e.idle_wrong = v;
        }
      }
    }
    return e;
  }

  double lead(const double* theta, const Ends& e) const {
    if (!e.orders) return kHuge;
    const double up = e.up(margin_);
    if (e.rho == 0.0) return -up;
    if (theta[e.wrong] != 1.0 || theta[e.right] != -1.0) return -1.0;
    return std::min({up, e.best_wrong - e.second_wrong, e.second_right - e.best_right});
  }

  static void put(double* theta, JointRow& row, std::size_t v, double by) {
    const double before = theta[v];
    theta[v] = before == -by ? 0.0 : before + by;
    row.add(v, theta[v] - before);
  }

  std::size_t largest(const double* theta, double sign) const {
    std::size_t best = 0;
    for (std::size_t v = 1; v < k_; ++v)
      if (sign * theta[v] > sign * theta[best]) best = v;
    return best;
  }

  std::vector<std::int64_t> indptr_;  // the labels of row i, increasing: labels[indptr[i]] ...
  std::vector<std::int32_t> labels_;
  std::size_t k_;
  double margin_;
};

}  // namespace bmrm
