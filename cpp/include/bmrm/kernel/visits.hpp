// One row at a time: its score, its entries, and the tangent of its loss. What the stochastic kernels share.
//
// The loss comes behind a pointer, not as a template parameter: a row costs far more than the call, and the
// kernels would otherwise be compiled once for each pair of loss and matrix.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "bmrm/kernel/product.hpp"
#include "bmrm/loss/list.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

// Slopes of these curved losses are bounded: no single step can go far.
template <class L>
inline constexpr bool kGentle =
    std::is_same_v<L, Logistic> || std::is_same_v<L, HuberHinge> || std::is_same_v<L, Huber>;
template <class L>
inline constexpr bool kSteep = Curved<L> && !kGentle<L>;

// How far a step may move the score of a row whose loss is steep: to where the tangent reaches 0, the smallest
// value of the losses; half a Newton step for a parabola, 1 for an exponential. A piecewise loss may be negative:
// there it is the Newton step. Where the loss has overflowed, back to 0.
template <class L>
double farthest(const L& loss, double f, double y, ValueSlope v) {
  if constexpr (std::is_same_v<L, PiecewiseQuadratic>) {
    const double c = loss.curvature(f, y);
    return c > 0.0 ? std::abs(v.slope) / c : kInfinity;
  } else {
    return std::isfinite(v.value) ? v.value / std::abs(v.slope) : std::abs(f);
  }
}

// A compiled loss, ready to be called for one row after the other.
class RowLoss {
 public:
  explicit RowLoss(const AnyScalarLoss& loss) {
    std::visit([this](const auto& one) { take(one); }, loss);
  }
  ValueSlope operator()(double f, double y) const { return value_(loss_, f, y); }
  bool steep() const { return farthest_ != nullptr; }
  double farthest(double f, double y, ValueSlope v) const { return farthest_(loss_, f, y, v); }

 private:
  template <class L>
  void take(const L& one) {
    loss_ = &one;
    value_ = [](const void* loss, double f, double y) { return (*static_cast<const L*>(loss))(f, y); };
    if constexpr (kSteep<L>)
      farthest_ = [](const void* loss, double f, double y, ValueSlope v) {
        return bmrm::farthest(*static_cast<const L*>(loss), f, y, v);
      };
  }
  const void* loss_ = nullptr;
  ValueSlope (*value_)(const void*, double, double) = nullptr;
  double (*farthest_)(const void*, double, double, ValueSlope) = nullptr;
};

// The rows to visit, in this order, and what goes with every row of the matrix.
struct Visits {
  std::span<const std::int64_t> order;
  std::span<const double> y;
  std::span<const double> factor;  // what the row counts, 1 on average; empty: 1 for all
  std::span<const double> shift;   // known shifts of the scores; may be empty
  double counts(std::size_t i) const { return factor.empty() ? 1.0 : factor[i]; }
  double shift_of(std::size_t i) const { return shift.empty() ? 0.0 : shift[i]; }
};

// The coordinates of w: one for each column and, with `constant`, one for a column of ones. `metric` divides
// the steps of each coordinate's own penalty out of it (all 1 if empty); `shrinks` says which are penalized (all
// if empty).
struct Coordinates {
  std::span<const double> metric;
  std::span<const double> shrinks;
  bool constant = false;
  double constant_metric = 1.0;
  bool constant_shrinks = false;

  bool plain() const { return metric.empty(); }
  double metric_of(std::size_t j, std::size_t n_cols) const {
    return j == n_cols ? constant_metric : (plain() ? 1.0 : metric[j]);
  }
  bool shrinks_at(std::size_t j, std::size_t n_cols) const {
    return j == n_cols ? constant_shrinks : (plain() || shrinks[j] != 0.0);
  }
  std::size_t dim(std::size_t n_cols) const { return n_cols + (constant ? 1 : 0); }
};

// |x_i|^2 in the metric of the steps, the constant included.
template <class View>
double row_length(const View& X, std::size_t i, const Coordinates& at) {
  double s = at.constant ? at.constant_metric : 0.0;
  if (at.plain()) {
    each_entry(X, i, [&](std::size_t, double x) { s += x * x; });
  } else {
    each_entry(X, i, [&](std::size_t j, double x) { s += at.metric[j] * x * x; });
  }
  return s;
}

struct Tangent {
  double slope;
  double offset;
};

// The tangent slope <x_i, w> + offset at the score f, less what rounding may have added to it; not finite where the
// loss has overflowed.
inline Tangent tangent_at(double f, double shift, ValueSlope v) {
  const double moved = v.slope * (f - shift);
  const double rounding = 8.0 * std::numeric_limits<double>::epsilon() * (std::abs(v.value) + std::abs(moved));
  return {v.slope, v.value - moved - rounding};
}

// A tangent of every row's loss: together a plane below the risk, a point of the dual problem.
//
// Without `u` the newest tangent of a row replaces the last one. With it, u = center - metric (sum_i share_i slope_i
// x_i) / lam, and whenever a row is in hand its tangent at u is mixed in with the weight that raises the dual objective
// most: a Frank-Wolfe step on the block of row i, for the hinge loss the exact coordinate step.
struct Tangents {
  std::span<double> slopes;
  std::span<double> offsets;
  double* u = nullptr;
  double lam = 1.0;
  double share = 0.0;  // what a row that counts 1 has in the risk

  void replace(std::size_t i, Tangent met) const {
    if (!std::isfinite(met.offset)) return;
    slopes[i] = met.slope;
    offsets[i] = met.offset;
  }

  // Moves toward the tangent met, for a row with that score and share and |x_i|^2; returns the change of the slope.
  double mix(std::size_t i, Tangent met, double score, double part, double length) const {
    const double change = met.slope - slopes[i];
    const double gain = (met.offset - offsets[i]) + change * score;
    if (!(gain > 0.0) || !std::isfinite(gain)) return 0.0;
    const double cost = part * change * change * length / lam;
    const double gamma = cost > gain ? gain / cost : 1.0;
    slopes[i] += gamma * change;
    offsets[i] +=
        gamma * (met.offset - offsets[i]) - 2.0 * std::numeric_limits<double>::epsilon() * std::abs(offsets[i]);
    return gamma * change;
  }
};

// Takes note of a row that was visited with score f and has the loss v there.
template <class View>
void note_tangent(const View& X, const RowLoss& loss, const Coordinates& at, const Visits& visits,
                  const Tangents& tangents, std::size_t i, double f, ValueSlope v) {
  const double shift = visits.shift_of(i);
  double* u = tangents.u;
  if (u == nullptr) return tangents.replace(i, tangent_at(f, shift, v));
  double score = at.constant ? u[X.n_cols] : 0.0;
  each_entry(X, i, [&](std::size_t j, double x) { score += x * u[j]; });
  const Tangent met = tangent_at(score + shift, shift, loss(score + shift, visits.y[i]));
  const double part = tangents.share * visits.counts(i);
  const double change = tangents.mix(i, met, score, part, row_length(X, i, at));
  if (change == 0.0) return;
  const double c = -part * change / tangents.lam;
  if (at.plain()) {
    each_entry(X, i, [&](std::size_t j, double x) { u[j] += c * x; });
  } else {
    each_entry(X, i, [&](std::size_t j, double x) { u[j] += c * at.metric[j] * x; });
  }
  if (at.constant) u[X.n_cols] += c * at.constant_metric;
}

// -eta times the slope of row i, what the row counts included; bounded where the loss is steep. `length` is
// asked for only then.
template <class Length>
double coefficient(const RowLoss& loss, const Visits& visits, std::size_t i, double f, ValueSlope v, double eta,
                   const Length& length) {
  if (v.slope == 0.0) return 0.0;
  double step = eta * visits.counts(i) * std::abs(v.slope);
  if (loss.steep()) {
    const double squared = length();
    const double most = loss.farthest(f, visits.y[i], v);
    if (step * squared > most) step = most / squared;
  }
  return v.slope > 0.0 ? -step : step;
}

// Looks for Ctrl-C now and then: a row takes well below a microsecond.
class Watch {
 public:
  void check() {
    if (++rows_ % 1024 == 0) patience_.check();
  }

 private:
  std::size_t rows_ = 0;
  Patience patience_;
};

// The running average of w with weights 1, 2, 3, ..., taken every `every` rows.
struct Averaging {
  double* average;  // null: none
  double every;
  double& taken;
  double& since;

  template <class At>
  void after(std::size_t rows, std::size_t dim, const At& at) {
    if (average == nullptr) return;
    since += static_cast<double>(rows);
    if (since < every) return;
    since = 0.0;
    taken += 1.0;
    const double rho = 2.0 / (taken + 1.0);
    for (std::size_t j = 0; j < dim; ++j) average[j] += rho * (at(j) - average[j]);
  }
};

}  // namespace bmrm
