// Dual coordinate descent for sum_i p_i max_v (<v, f_i> + cost_i(v)) + lam/2 <W, S W>, f_i = W' x_i, where the vertices
// v of a row have few entries that are not 0: label sets and classes of a tree.
//
// A dual point has for each row a point theta_i of the hull of its vertices; its slopes are p_i l(theta_i). Its W is
// center - S^-1 sum_i p_i x_i l_i' / lam, kept up to date. The step for row i moves theta_i along edges of that hull,
// from the worst vertex in use to the best one, exactly, at most kMoves times: the row's own scores follow by
// f_v -= q_v dl_v, q_v = p_i <x_i, S_v^-1 x_i> / lam, so that a move costs no product with x_i.
// The gap of (W, theta) is the sum of p_i (loss_i(f) - offset_i(theta) - <l_i, f>), terms that are never negative.
// A row is settled when theta_i is a vertex that leads all others by more than `reach`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/dual.hpp"
#include "bmrm/kernel/joint_rows.hpp"
#include "bmrm/kernel/vector_rows.hpp"
#include "bmrm/kernel/wide.hpp"

namespace bmrm {
struct JointProblem {
  Shares shares;
  std::span<const double> q;         // of every row, the constant left out; or of every score of every row
  std::span<const double> inverse;   // the diagonal of S^-1 of the columns, d x k; empty: ones
  std::span<const double> constant;  // that of the constant, k; empty: there is none
  double lam;
};

template <class View, class Rows>
class JointDual {
 public:
  JointDual(const View& X, const Rows& rows, const JointProblem& problem, std::span<double> W, std::span<double> theta)
      : X_(X),
        rows_(rows),
        problem_(problem),
        W_(W),
        theta_(theta),
        k_(rows.n_scores()),
        f_(k_),
        q_(k_),
        changes_(k_) {}

  // Visits the active rows once, in random order; those that turn out to be settled are moved to the end.
  DualEpoch epoch(std::span<std::int64_t> active, std::uint64_t key, double reach) {
    RandomOrder order(active, key);
    std::vector<std::int64_t> settled;
    DualEpoch sums;
    Patience patience;
    for (std::size_t r = 0; r < active.size(); ++r) {
      if (r % 64 == 63) patience.check();
      const auto i = static_cast<std::int64_t>(order.draw(r));
      if (step(static_cast<std::size_t>(i), reach, sums))
        settled.push_back(i);
      else
        active[sums.n_active++] = i;
    }
    sums.variation = std::sqrt(static_cast<double>(sums.n_updates) * sums.variation);
    std::copy(settled.begin(), settled.end(), active.begin() + static_cast<std::ptrdiff_t>(sums.n_active));
    return sums;
  }

 private:
  static constexpr int kMoves =
      4;  // in a visit: with 8 or 16 epochs are 1.3 times slower, and no fewer (350 classes of a tree)
  static constexpr double kShare = 0.05;   // of the first move's gain: moves that gain less wait for the next visit
  static constexpr double kLeast = 1e-15;  // changes of slopes below are rounding

  // Moves theta of row i; true if the row is settled.
  bool step(std::size_t i, double reach, DualEpoch& sums) {
    double* theta = theta_.data() + i * rows_.width();
    const double p = problem_.shares.at(i);
    if (p == 0.0) return true;
    scores(i);
    sums.n_entries += row_entries(X_, i);
    const JointValue value = rows_.value(i, f_.data(), theta);
    if (value.lead >= 0.0) return value.lead > reach;  // a vertex that is the best point
    double plane = value.offset;
    rows_.slopes(i, theta, 1.0, changes_.data());
    for (std::size_t v = 0; v < k_; ++v) plane += changes_[v] * f_[v];
    sums.estimate += p * std::max(0.0, value.loss - plane);
    std::fill(changes_.begin(), changes_.end(), 0.0);
    steepness(i, p);
    JointRow row{f_.data(), q_.data(), changes_.data()};
    const double first = rows_.move(i, theta, row, 0.0);
    if (!(first > 0.0)) return false;
    for (int n = 1; n < kMoves && rows_.move(i, theta, row, kShare * first) > 0.0; ++n) {
    }
    rows_.mend(theta, row);
    add(i, p, sums);
    return false;
  }

  void scores(std::size_t i) {
    if (problem_.constant.empty())
      std::fill(f_.begin(), f_.end(), 0.0);
    else
      std::copy_n(W_.data() + X_.n_cols * k_, k_, f_.begin());
    wide::row_scores(X_, i, W_.data(), k_, f_.data());
  }

  void steepness(std::size_t i, double p) {
    const bool one = problem_.q.size() == X_.n_rows;
    for (std::size_t v = 0; v < k_; ++v) {
      q_[v] = one ? problem_.q[i] : problem_.q[i * k_ + v];
      if (!problem_.constant.empty()) q_[v] += p * problem_.constant[v] / problem_.lam;
    }
  }

  // W -= S^-1 x_i times the changes of the row's slopes, p / lam times.
  void add(std::size_t i, double p, DualEpoch& sums) {
    changed_.clear();
    double largest = 0.0, up = 0.0, down = 0.0, square = 0.0;
    for (std::size_t v = 0; v < k_; ++v) {
      if (changes_[v] == 0.0) continue;
      changed_.push_back({v, -p * changes_[v] / problem_.lam});
      const double moved = q_[v] * changes_[v];
      largest = std::max(largest, std::abs(changes_[v]));
      (moved > 0.0 ? up : down) += moved;
      square += moved * changes_[v];
    }
    if (largest > kLeast) ++sums.n_updates;
    sums.movement = std::max(sums.movement, up - down);
    sums.variation += p / problem_.lam * square;
    const double* D = problem_.inverse.empty() ? nullptr : problem_.inverse.data();
    each_entry(X_, i, [&](std::size_t j, double x) {
      for (const Change& one : changed_) W_[j * k_ + one.v] += x * one.by * (D == nullptr ? 1.0 : D[j * k_ + one.v]);
    });
    if (problem_.constant.empty()) return;
    for (const Change& one : changed_) W_[X_.n_cols * k_ + one.v] += one.by * problem_.constant[one.v];
  }

  struct Change {
    std::size_t v;
    double by;
  };

  const View& X_;
  const Rows& rows_;
  JointProblem problem_;
  std::span<double> W_, theta_;
  std::size_t k_;
  std::vector<double> f_, q_, changes_;
  std::vector<Change> changed_;
};

// Looks at all rows with their true scores F (m x k), and sorts the settled ones out.
template <class Rows>
DualCheck joint_dual_check(const Rows& rows, const double* F, const Shares& shares, std::span<const double> theta,
                           double reach, std::span<std::int64_t> active) {
  DualCheck check;
  Sum value, plane;
  const std::size_t k = rows.n_scores();
  std::size_t end = active.size();
  std::vector<double> l(k);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const double p = shares.at(i), *f = F + i * k, *t = theta.data() + i * rows.width();
    const JointValue found = rows.value(i, f, t);
    if (p > 0.0) {
      rows.slopes(i, t, 1.0, l.data());
      double below = found.offset, size = std::abs(found.offset);
      for (std::size_t v = 0; v < k; ++v) below += l[v] * f[v], size += std::abs(l[v] * f[v]);
      value.add(p * found.loss);
      check.gap += p * std::max(0.0, found.loss - below);
      plane.add(p * found.offset);
      check.size += p * size;
    }
    const bool out = p == 0.0 || found.lead > reach;
    active[out ? --end : check.n_active++] = static_cast<std::int64_t>(i);
  }
  check.value = value.value(), check.offset = plane.value();
  return check;
}

}  // namespace bmrm
