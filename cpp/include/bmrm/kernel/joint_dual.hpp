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
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/dual.hpp"
#include "bmrm/kernel/vector_rows.hpp"
#include "bmrm/kernel/wide.hpp"

namespace bmrm {

inline constexpr double kHuge = std::numeric_limits<double>::infinity();

// What a row is worth at its scores.
struct JointValue {
  double loss, offset;  // offset + <l, f> lies below the loss
  double lead;          // of the best vertex before all others; below 0 where theta is another point
};

// A step in theta and what it gains: slope t - curvature t^2 / 2, t <= most.
struct JointMove {
  double slope = 0.0, curvature = 0.0, most = 0.0;
  std::size_t from = 0, to = 0;
  int kind = -1;
  double length() const { return curvature > 0.0 ? std::min(most, slope / curvature) : most; }
  double gain() const { return length() * (slope - 0.5 * curvature * length()); }
};

// The scores of one row, how strongly they answer its own steps, and what has changed of its slopes.
struct JointRow {
  double* f;
  const double* q;
  double* changes;
  void add(std::size_t v, double by) {
    f[v] -= q[v] * by;
    changes[v] += by;
  }
};

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

  // Makes the sums of alpha and beta equal again, and at most 1, but for the last digit.
  void mend(double* theta, JointRow& row) const {
    double alpha = 0.0, beta = 0.0;
    for (std::size_t v = 0; v < k_; ++v) (theta[v] > 0.0 ? beta : alpha) += theta[v];
    const double rho = std::min({beta, -alpha, 1.0});
    const double least = -rho;
    if (beta > rho) put(theta, row, largest(theta, 1.0), rho - beta);
    if (alpha < least) put(theta, row, largest(theta, -1.0), least - alpha);
  }

  // Moves beta between labels so that sum_i p_i theta_i comes nearer to 0: from labels above to labels below, within
  // rows where both are wrong, in proportion to the beta there. Where most of a label's beta has to go, or nearly all
  // rows have it, beta and alpha of its rows get smaller instead. Exact but for rounding where neither is the case.
  // False if nothing but rounding was left to move.
  bool level(double* theta, const Shares& shares) const;

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

  // Takes these parts of the labels' alpha or beta away, and of the other side of each row as much.
  void shrink(double* theta, const std::vector<double>& cut) const {
    for (std::size_t i = 0; i < n_rows(); ++i) {
      double *l = theta + i * k_, alpha = 0.0, beta = 0.0;
      for (std::size_t v = 0; v < k_; ++v) {
        if (l[v] != 0.0) l[v] *= 1.0 - cut[v];
        (l[v] > 0.0 ? beta : alpha) += std::abs(l[v]);
      }
      const double rho = std::min(alpha, beta);
      for (std::size_t v = 0; v < k_; ++v)
        if (l[v] != 0.0) l[v] *= rho / (l[v] > 0.0 ? beta : alpha);
    }
  }

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

inline bool LabelRows::level(double* theta, const Shares& shares) const {
  constexpr double kMost = 0.5, kRare = 0.05, kThin = 0.01, kRounded = 4e-16;
  std::vector<Sum> sums(k_);
  std::vector<double> e(k_), beta(k_, 0.0), alpha(k_, 0.0), wrong(k_, 0.0), cut(k_, 0.0);
  double everything = 0.0, used = 0.0, total = 0.0;
  for (std::size_t i = 0; i < n_rows(); ++i) {
    const double p = shares.at(i), *l = theta + i * k_;
    for (std::size_t v = 0; v < k_; ++v) {
      if (l[v] == 0.0) continue;
      sums[v].add(p * l[v]);
      (l[v] > 0.0 ? beta : alpha)[v] += p * std::abs(l[v]);
    }
    everything += p;
    each_true(i, [&](std::size_t z) { wrong[z] -= p; });
  }
  bool cuts = false;
  for (std::size_t v = 0; v < k_; ++v) {
    e[v] = sums[v].value();
    wrong[v] += everything;
    used += beta[v];
    total += std::max(0.0, e[v]);
  }
  if (!(total > kRounded * used)) return false;
  for (std::size_t v = 0; v < k_; ++v) {
    if (e[v] > kMost * beta[v]) cut[v] = std::min(1.0, e[v] / beta[v]);
    if (e[v] < 0.0 && (wrong[v] < kRare || -e[v] > kMost * alpha[v])) cut[v] = std::min(1.0, -e[v] / alpha[v]);
    cuts |= cut[v] > 0.0;
  }
  if (cuts) {
    shrink(theta, cut);
    return true;
  }
  std::vector<double> shared(k_ * k_, 0.0);  // of the beta of j, in rows where z is true
  for (std::size_t i = 0; i < n_rows(); ++i) {
    const double p = shares.at(i), *l = theta + i * k_;
    for (std::size_t j = 0; j < k_; ++j)
      if (e[j] > 0.0 && l[j] > 0.0) each_true(i, [&](std::size_t z) { shared[j * k_ + z] += p * l[j]; });
  }
  double most = 0.0;
  for (std::size_t j = 0; j < k_; ++j) {
    double given = 0.0;
    for (std::size_t v = 0; v < k_; ++v) {
      double& share = shared[j * k_ + v];
      const double room = beta[j] - share;
      share = e[j] > 0.0 && e[v] < 0.0 && room > kThin * beta[j] ? e[j] * (-e[v] / total) / room : 0.0;
      given += share;
    }
    most = std::max(most, given);
  }
  const double factor = most > 0.9 ? 0.9 / most : 1.0;
  std::vector<double> gain(k_);
  for (std::size_t i = 0; i < n_rows(); ++i) {
    double* l = theta + i * k_;
    std::fill(gain.begin(), gain.end(), 0.0);
    bool gives = false;
    for (std::size_t j = 0; j < k_; ++j) {
      if (!(e[j] > 0.0 && l[j] > 0.0)) continue;
      gives = true;
      double given = 0.0;
      each_wrong(i, [&](std::size_t v) {
        const double one = factor * l[j] * shared[j * k_ + v];
        gain[v] += one;
        given += one;
      });
      gain[j] -= given;
    }
    if (!gives) continue;
    for (std::size_t v = 0; v < k_; ++v)
      if (gain[v] != 0.0) l[v] = std::max(0.0, l[v] + gain[v]);
  }
  return true;
}

// Classes that are nodes of a tree: vertices path(c) - path(y) at the cost delta(y, c). theta lies on the simplex of
// the classes.
class TreeRows {
 public:
  TreeRows(std::vector<std::int64_t> parents, std::vector<std::int64_t> classes, std::vector<std::int32_t> y,
           std::vector<double> delta)
      : parents_(std::move(parents)), classes_(std::move(classes)), y_(std::move(y)), delta_(std::move(delta)) {}

  std::size_t n_rows() const { return y_.size(); }
  std::size_t n_scores() const { return parents_.size(); }
  std::size_t width() const { return classes_.size(); }

  JointValue value(std::size_t i, const double* f, const double* theta) const {
    const std::size_t y = label(i);
    sum_paths(f);
    double offset = 0.0, largest = -kHuge, second = -kHuge;
    std::size_t first = 0;
    for (std::size_t c = 0; c < width(); ++c) {
      const double g = costly(y, c);
      offset += theta[c] * cost(y, c);
      if (g > largest) {
        second = largest;
        largest = g, first = c;
      } else {
        second = std::max(second, g);
      }
    }
    const double own = sums_[static_cast<std::size_t>(classes_[y])];
    return {largest - own, offset, theta[first] == 1.0 ? largest - second : -1.0};
  }

  void slopes(std::size_t i, const double* theta, double c, double* l) const {
    std::fill_n(l, n_scores(), 0.0);
    for (std::size_t a = 0; a < width(); ++a) l[static_cast<std::size_t>(classes_[a])] = c * theta[a];
    l[static_cast<std::size_t>(classes_[label(i)])] -= c;
    for (std::size_t v = n_scores(); v-- > 0;)
      if (parents_[v] >= 0) l[static_cast<std::size_t>(parents_[v])] += l[v];
  }

  void best(std::size_t i, const double* f, double* theta) const {
    sum_paths(f);
    std::fill_n(theta, width(), 0.0);
    std::size_t first = 0;
    for (std::size_t c = 1; c < width(); ++c)
      if (costly(label(i), c) > costly(label(i), first)) first = c;
    theta[first] = 1.0;
  }

  double move(std::size_t i, double* theta, JointRow& row, double least) const {
    const std::size_t y = label(i);
    sum_paths(row.f);
    std::size_t to = 0, from = width();
    double largest = -kHuge, smallest = kHuge;
    for (std::size_t c = 0; c < width(); ++c) {
      const double g = costly(y, c);
      if (g > largest) largest = g, to = c;
      if (theta[c] > 0.0 && g < smallest) smallest = g, from = c;
    }
    if (from == width() || from == to) return 0.0;
    JointMove one{largest - smallest, 0.0, theta[from], from, to, 0};
    between(from, to, [&](std::size_t v, double) { one.curvature += row.q[v]; });
    const double gain = one.gain();
    if (!(gain > least)) return 0.0;
    put(theta, row, from, to, one.length());
    return gain;
  }

  // Makes theta add up to 1 again, but for the last digit.
  void mend(double* theta, JointRow&) const {
    double sum = 0.0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < width(); ++c) {
      sum += theta[c];
      if (theta[c] > theta[best]) best = c;
    }
    theta[best] += 1.0 - sum;
  }

 private:
  std::size_t label(std::size_t i) const { return static_cast<std::size_t>(y_[i]); }
  double cost(std::size_t y, std::size_t c) const { return delta_[y * width() + c]; }
  double costly(std::size_t y, std::size_t c) const {
    return sums_[static_cast<std::size_t>(classes_[c])] + cost(y, c);
  }

  // The scores of the paths, in sums_: a node comes after its parent.
  void sum_paths(const double* f) const {
    sums_.resize(n_scores());
    for (std::size_t v = 0; v < n_scores(); ++v)
      sums_[v] = f[v] + (parents_[v] < 0 ? 0.0 : sums_[static_cast<std::size_t>(parents_[v])]);
  }

  // Calls body(node, 1) on the path to class b and body(node, -1) on that to a, where only one of the two goes.
  template <class Body>
  void between(std::size_t a, std::size_t b, const Body& body) const {
    std::int64_t u = classes_[a], v = classes_[b];
    while (u != v) {
      if (v > u) {
        body(static_cast<std::size_t>(v), 1.0);
        v = parents_[static_cast<std::size_t>(v)];
      } else {
        body(static_cast<std::size_t>(u), -1.0);
        u = parents_[static_cast<std::size_t>(u)];
      }
    }
  }

  void put(double* theta, JointRow& row, std::size_t from, std::size_t to, double t) const {
    theta[to] += t;
    theta[from] = t == theta[from] ? 0.0 : theta[from] - t;
    between(from, to, [&](std::size_t v, double sign) { row.add(v, sign * t); });
  }

  std::vector<std::int64_t> parents_, classes_;
  std::vector<std::int32_t> y_;  // places among the classes
  std::vector<double> delta_;    // classes x classes
  mutable std::vector<double> sums_;
};

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
