// Two stochastic kernels whose shrinkage is not one factor for all: forward-backward splitting with l1, applied
// to a coordinate when its column is next met, and the diagonal quasi-Newton method, applied now and then.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "bmrm/kernel/descent.hpp"
#include "bmrm/kernel/visits.hpp"

namespace bmrm {

inline double soft(double w, double by) { return w > by ? w - by : (w < -by ? w + by : 0.0); }

// eta = eta0 (1 + t / t0)^-power
struct Splitting {
  double lam = 1.0;
  double eta0 = 1.0;
  double t0 = 1.0;
  double power = 0.5;
  double every = 1.0;
  bool learns = false;  // whether the curvature is learned
  double at(double t) const { return eta0 * std::pow(1.0 + t / t0, -power); }
};

// w = soft(w - eta s x_i, eta lam weights): the thresholds of the rows between two visits of a column add up.
template <class View>
void splitting_epoch(const View& X, const RowLoss& loss, const Visits& visits, const Tangents& tangents,
                     const Coordinates& at, std::span<const double> weights, const Splitting& splitting, double* w,
                     double* average, Clock& clock) {
  const std::size_t dim = at.dim(X.n_cols);
  std::vector<double> seen(dim, 0.0);  // the sum of eta lam when the coordinate was last made current
  double total = 0.0;
  Averaging averaging{average, splitting.every, clock.taken, clock.since};
  Watch watch;
  const auto current = [&](std::size_t j) {
    if (seen[j] != total) {
      w[j] = soft(w[j], weights[j] * (total - seen[j]));
      seen[j] = total;
    }
    return w[j];
  };
  for (const std::int64_t row : visits.order) {
    const auto i = static_cast<std::size_t>(row);
    double f = visits.shift_of(i);
    each_entry(X, i, [&](std::size_t j, double x) { f += x * current(j); });
    if (at.constant) f += current(X.n_cols);
    const ValueSlope v = loss(f, visits.y[i]);
    note_tangent(X, loss, at, visits, tangents, i, f, v);
    const double eta = splitting.at(clock.t);
    const double c = coefficient(loss, visits, i, f, v, eta, [&] { return row_length(X, i, at); });
    if (c != 0.0) {
      each_entry(X, i, [&](std::size_t j, double x) { w[j] += c * x; });
      if (at.constant) w[X.n_cols] += c;
    }
    total += eta * splitting.lam;
    clock.t += 1.0;
    averaging.after(1, dim, current);
    watch.check();
  }
  for (std::size_t j = 0; j < dim; ++j) current(j);
}

// w_j -= eta D_j (lam weights_j w_j + s x_ij), D_j = 1 / (lam weights_j + h_j); h is the running mean of what the
// slopes of a row, before and after its step, say of its curvature. The penalty is applied, and h renewed, every
// `every` rows.
template <class View>
class QuasiNewtonEpoch {
 public:
  QuasiNewtonEpoch(const View& X, const RowLoss& loss, const Visits& visits, const Tangents& tangents,
                   const Coordinates& at, std::span<const double> weights, const Splitting& splitting, double* w,
                   double* average, double* curvature, Clock& clock)
      : X_(X),
        loss_(loss),
        visits_(visits),
        tangents_(tangents),
        at_(at),
        weights_(weights),
        splitting_(splitting),
        w_(w),
        h_(curvature),
        clock_(clock),
        averaging_{average, splitting.every, clock.taken, clock.since},
        metric_(at.dim(X.n_cols)) {
    renew();
  }

  void run() {
    Watch watch;
    double rows = 0.0;
    for (const std::int64_t row : visits_.order) {
      const auto i = static_cast<std::size_t>(row);
      const double eta = splitting_.at(clock_.t);
      const bool last = (rows += 1.0) >= splitting_.every || &row == &visits_.order.back();
      step(i, eta, last && splitting_.learns);
      clock_.t += 1.0;
      if (last) {
        shrink(rows * eta);
        renew();
        rows = 0.0;
      }
      averaging_.after(1, metric_.size(), [this](std::size_t j) { return w_[j]; });
      watch.check();
    }
  }

 private:
  double dot(std::size_t i) const {
    double f = visits_.shift_of(i);
    each_entry(X_, i, [&](std::size_t j, double x) { f += x * w_[j]; });
    return at_.constant ? f + w_[X_.n_cols] : f;
  }

  double length(std::size_t i) const {
    double s = at_.constant ? metric_[X_.n_cols] : 0.0;
    each_entry(X_, i, [&](std::size_t j, double x) { s += metric_[j] * x * x; });
    return s;
  }

  void step(std::size_t i, double eta, bool with_secant) {
    const double f = dot(i);
    const ValueSlope v = loss_(f, visits_.y[i]);
    note_tangent(X_, loss_, at_, visits_, tangents_, i, f, v);
    const double c = coefficient(loss_, visits_, i, f, v, eta, [&] { return length(i); });
    if (c != 0.0) {
      each_entry(X_, i, [&](std::size_t j, double x) { w_[j] += c * metric_[j] * x; });
      if (at_.constant) w_[X_.n_cols] += c * metric_[X_.n_cols];
    }
    if (with_secant) secant(i, f, v.slope);
  }

  // h_j moves toward (change of the slope) / (change of the score) x_ij^2: the diagonal of the row's own curvature. The
  // ratio (change of the subgradient)_j / (change of w_j) would divide by D_j, which then falls ever faster.
  void secant(std::size_t i, double f, double slope) {
    clock_.phase += 1.0;
    const double share = 2.0 / (clock_.phase + 1.0);
    const double moved = dot(i), change = loss_(moved, visits_.y[i]).slope - slope;
    const double bent = moved == f ? 0.0 : std::max(0.0, visits_.counts(i) * change / (moved - f));
    if (!std::isfinite(bent)) return;
    for (std::size_t j = 0; j < metric_.size(); ++j) h_[j] -= share * h_[j];
    if (bent == 0.0) return;
    each_entry(X_, i, [&](std::size_t j, double x) { h_[j] += share * bent * x * x; });
    if (at_.constant) h_[X_.n_cols] += share * bent;
  }

  // The penalty of so many rows at once, as a backward step: that one is never too long.
  void shrink(double eta) {
    for (std::size_t j = 0; j < metric_.size(); ++j) w_[j] /= 1.0 + eta * metric_[j] * splitting_.lam * weights_[j];
  }

  // D_j is at least 1 / (100 lam weights_j), as Bordes et al. have it.
  void renew() {
    if (weights_.empty()) return;
    const double most = splitting_.lam * *std::max_element(weights_.begin(), weights_.end());
    for (std::size_t j = 0; j < metric_.size(); ++j) {
      const double penalty = weights_[j] > 0.0 ? splitting_.lam * weights_[j] : most;
      metric_[j] = 1.0 / (penalty + std::min(h_[j], 99.0 * penalty));
    }
  }

  const View& X_;
  const RowLoss& loss_;
  const Visits& visits_;
  const Tangents& tangents_;
  const Coordinates& at_;
  std::span<const double> weights_;
  const Splitting& splitting_;
  double* w_;
  double* h_;
  Clock& clock_;
  Averaging averaging_;
  std::vector<double> metric_;
};

}  // namespace bmrm
