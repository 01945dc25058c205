// The sequential dual method for sum_i p_i max_c (f_ic - f_iy + Delta(y, c)) + lam/2 <W, S W>, f_i = W' x_i.
//
// A dual point has theta_i on the simplex of the classes for each row: the slopes p_i (theta_i - e_y). Its W is
// center - S^-1 sum_i p_i x_i (theta_i - e_y)' / lam, kept up to date. The step for row i is exact: with
// g_c = f_ic + Delta(y, c) and q_c = p_i <x_i, S_c^-1 x_i> / lam, see SimplexStep.
// The gap of (W, theta) is the sum of p_i (max_c g_c - <theta_i, g>), terms that are never negative; an epoch adds them
// up with the g it meets. A row is settled when theta_i is a vertex whose class leads all others by more than `reach`:
// epochs leave it out until the next check of all rows (Keerthi et al. 2008).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/dual.hpp"
#include "bmrm/kernel/simplex_step.hpp"
#include "bmrm/kernel/vector_rows.hpp"
#include "bmrm/kernel/wide.hpp"
#include "bmrm/loss/vector.hpp"

namespace bmrm {

struct WideDualProblem {
  MaxMargin loss;  // without factors
  Shares shares;
  std::span<const double> q;         // of every row, or of every class of every row
  std::span<const double> inverse;   // the diagonal of S^-1 of the columns, d x k; empty: ones
  std::span<const double> constant;  // that of the constant, k; empty: there is none
  double lam;
};

struct WideDualPoint {
  std::span<double> W;      // (d, or with a constant d + 1) x k
  std::span<double> theta;  // m x k
};

// The largest g, the class that has it, and the next largest.
struct Lead {
  std::size_t first = 0;
  double largest = -std::numeric_limits<double>::infinity();
  double second = -std::numeric_limits<double>::infinity();
  Lead(const double* g, std::size_t k) {
    for (std::size_t c = 0; c < k; ++c) {
      if (g[c] > largest) {
        second = largest;
        largest = g[c];
        first = c;
      } else {
        second = std::max(second, g[c]);
      }
    }
  }
  bool settles(const double* theta, double reach) const { return theta[first] == 1.0 && largest - second > reach; }
};

// <theta, largest - g>
inline double excess_on_simplex(const double* theta, const double* g, std::size_t k, double largest) {
  double sum = 0.0;
  for (std::size_t c = 0; c < k; ++c) sum += theta[c] * (largest - g[c]);
  return sum;
}

template <class View>
class WideDual {
 public:
  WideDual(const View& X, const WideDualProblem& problem, const WideDualPoint& point)
      : X_(X), problem_(problem), point_(point), k_(problem.loss.k), g_(k_), next_(k_), simplex_(k_) {}

  // Visits the active rows once, in random order; those that turn out to be settled are moved to the end.
  DualEpoch epoch(std::span<std::int64_t> active, std::uint64_t key, double reach) {
    constexpr std::size_t kAhead = 4;
    RandomOrder order(active, key);
    const std::size_t n = active.size();
    for (std::size_t r = 0; r < std::min(n, 2 * kAhead); ++r) prefetch_start(X_, order.draw(r));
    std::vector<std::int64_t> settled;
    DualEpoch sums;
    Patience patience;
    for (std::size_t r = 0; r < n; ++r) {
      if (r + 2 * kAhead < n) prefetch_start(X_, order.draw(r + 2 * kAhead));
      if (r + kAhead < n) ask_for(static_cast<std::size_t>(active[r + kAhead]));
      if (r % 64 == 63) patience.check();
      const std::int64_t i = active[r];
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
  static constexpr double kLeast = 1e-15;  // changes of theta below are rounding

  // Moves theta of row i; true if the row is settled.
  bool step(std::size_t i, double reach, DualEpoch& sums) {
    double* theta = point_.theta.data() + i * k_;
    const double p = problem_.shares.at(i);
    if (p == 0.0) return true;
    costly_scores(i);
    sums.n_entries += row_entries(X_, i);
    const Lead lead(g_.data(), k_);
    if (theta[lead.first] == 1.0) return lead.settles(theta, reach);  // a vertex that is the best point
    sums.estimate += p * excess_on_simplex(theta, g_.data(), k_, lead.largest);
    const double* q = problem_.q.data() + (problem_.q.size() == X_.n_rows ? i : i * k_);
    if (problem_.q.size() == X_.n_rows)
      simplex_(g_.data(), theta, [q](std::size_t) { return *q; }, next_.data());
    else
      simplex_(g_.data(), theta, [q](std::size_t c) { return q[c]; }, next_.data());
    move(i, p, theta, q, problem_.q.size() == X_.n_rows ? 0 : 1, sums);
    return false;
  }

  void costly_scores(std::size_t i) {
    const std::size_t y = problem_.loss.label(i);
    if (problem_.constant.empty())
      std::fill(g_.begin(), g_.end(), 0.0);
    else
      std::copy_n(point_.W.data() + X_.n_cols * k_, k_, g_.begin());
    wide::row_scores(X_, i, point_.W.data(), k_, g_.data());
    for (std::size_t c = 0; c < k_; ++c) g_[c] += problem_.loss.cost(y, c);
  }

  void move(std::size_t i, double p, double* theta, const double* q, std::size_t apart, DualEpoch& sums) {
    changed_.clear();
    double largest = 0.0, highest = 0.0, lowest = 0.0, square = 0.0;
    for (std::size_t c = 0; c < k_; ++c) {
      const double change = next_[c] - theta[c];
      if (change == 0.0) continue;
      changed_.push_back({c, -p * change / problem_.lam});
      const double moved = q[c * apart] * change;
      largest = std::max(largest, std::abs(change));
      highest = std::max(highest, moved);
      lowest = std::min(lowest, moved);
      square += moved * change;
    }
    if (largest <= kLeast) return;
    std::copy(next_.begin(), next_.end(), theta);
    ++sums.n_updates;
    sums.movement = std::max(sums.movement, highest - lowest);
    sums.variation += p / problem_.lam * square;
    add(i);
  }

  // W += S^-1 x_i times the changes.
  void add(std::size_t i) {
    double* W = point_.W.data();
    const double* D = problem_.inverse.empty() ? nullptr : problem_.inverse.data();
    each_entry(X_, i, [&](std::size_t j, double x) {
      for (const Change& one : changed_) W[j * k_ + one.c] += x * one.by * (D == nullptr ? 1.0 : D[j * k_ + one.c]);
    });
    if (problem_.constant.empty()) return;
    for (const Change& one : changed_) W[X_.n_cols * k_ + one.c] += one.by * problem_.constant[one.c];
  }

  void ask_for(std::size_t i) const {
    prefetch_row(X_, i);
    prefetch(point_.theta.data() + i * k_);
  }

  struct Change {
    std::size_t c;
    double by;
  };

  const View& X_;
  WideDualProblem problem_;
  WideDualPoint point_;
  std::size_t k_;
  std::vector<double> g_, next_;
  SimplexStep simplex_;
  std::vector<Change> changed_;
};

// Looks at all rows with their true scores F (m x k), and sorts the settled ones out.
inline DualCheck wide_dual_check(const MaxMargin& loss, const double* F, const Shares& shares,
                                 std::span<const double> theta, double reach, std::span<std::int64_t> active) {
  DualCheck check;
  Sum value, plane;
  const std::size_t k = loss.k;
  std::size_t end = active.size();
  std::vector<double> g(k);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const double p = shares.at(i), *f = F + i * k, *t = theta.data() + i * k;
    const std::size_t y = loss.label(i);
    double offset = 0.0, size = std::abs(f[y]);
    for (std::size_t c = 0; c < k; ++c) {
      const double cost = loss.cost(y, c);
      g[c] = f[c] + cost;
      offset += t[c] * cost;
      size += t[c] * (std::abs(f[c]) + cost);
    }
    const Lead lead(g.data(), k);
    if (p > 0.0) {
      value.add(p * (lead.largest - f[y]));
      check.gap += p * excess_on_simplex(t, g.data(), k, lead.largest);
      plane.add(p * offset);
      check.size += p * size;
    }
    const bool out = p == 0.0 || lead.settles(t, reach);
    active[out ? --end : check.n_active++] = static_cast<std::int64_t>(i);
  }
  check.value = value.value(), check.offset = plane.value();
  return check;
}

}  // namespace bmrm
