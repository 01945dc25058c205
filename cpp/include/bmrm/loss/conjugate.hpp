// The conjugates of the losses with second derivatives: l*(s) = sup_f s f - l(f, y), +infinity outside the range
// of the slopes; that range; and the largest second derivative. Every s in the range gives a plane below the
// loss, s f - l*(s) <= l(f, y), so these are what lower bounds are made of.
#pragma once

#include "bmrm/loss/list.hpp"

namespace bmrm {

// x log x, 0 at 0
inline double entropy(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }
inline double outside(bool feasible, double value) { return feasible ? value : kInfinity; }

// Of losses of the margin y f: l*(s) is that of the margin's loss at t = s y; the range of s is y times its own.
inline Interval labeled(double lower, double upper, double y) {
  return y > 0.0 ? Interval{lower, upper} : Interval{-upper, -lower};
}

template <int rho>
double conjugate(const SquaredMarginLoss<rho>&, double s, double y) {
  const double t = s * y;
  return outside(t <= 0.0, t * (0.5 * t + rho));
}
template <int rho>
Interval slope_range(const SquaredMarginLoss<rho>&, double y) {
  return labeled(-kInfinity, 0.0, y);
}
template <int rho>
double largest_curvature(const SquaredMarginLoss<rho>&) {
  return 1.0;
}

inline double conjugate(const HuberHinge& loss, double s, double y) {
  const double t = s * y;
  return outside(t <= 0.0 && t >= -1.0, t * (loss.h * t + 1.0 + loss.h));
}
inline Interval slope_range(const HuberHinge&, double y) { return labeled(-1.0, 0.0, y); }
inline double largest_curvature(const HuberHinge& loss) { return 1.0 / (2.0 * loss.h); }

inline double conjugate(const Exponential&, double s, double y) {
  const double x = -s * y;
  return outside(x >= 0.0, entropy(x) - x);
}
inline Interval slope_range(const Exponential&, double y) { return labeled(-kInfinity, 0.0, y); }
inline double largest_curvature(const Exponential&) { return kInfinity; }

inline double conjugate(const Logistic&, double s, double y) {
  const double x = -s * y;
  return outside(x >= 0.0 && x <= 1.0, entropy(x) + (x < 1.0 ? (1.0 - x) * std::log1p(-x) : 0.0));
}
inline Interval slope_range(const Logistic&, double y) { return labeled(-1.0, 0.0, y); }
inline double largest_curvature(const Logistic&) { return 0.25; }

inline double conjugate(const LeastSquares&, double s, double y) { return s * (0.5 * s + y); }
inline Interval slope_range(const LeastSquares&, double) { return {-kInfinity, kInfinity}; }
inline double largest_curvature(const LeastSquares&) { return 1.0; }

inline double conjugate(const SquaredEpsilonInsensitive& loss, double s, double y) {
  return s * (0.5 * s + y) + loss.eps * std::abs(s);
}
inline Interval slope_range(const SquaredEpsilonInsensitive&, double) { return {-kInfinity, kInfinity}; }
inline double largest_curvature(const SquaredEpsilonInsensitive&) { return 1.0; }

inline double conjugate(const Huber& loss, double s, double y) {
  return outside(std::abs(s) <= loss.delta, s * (0.5 * s + y));
}
inline Interval slope_range(const Huber& loss, double) { return {-loss.delta, loss.delta}; }
inline double largest_curvature(const Huber&) { return 1.0; }

// With u = s / y, x log x - x - (y log y - y) of x = s + y is s log y + y ((1 + u) log(1 + u) - u).
inline double conjugate(const Poisson&, double s, double y) {
  if (y <= 0.0) return outside(s >= 0.0, entropy(s) - s);
  const double u = s / y;
  return outside(u >= -1.0, s * std::log(y) + y * ((u > -1.0 ? (1.0 + u) * std::log1p(u) : 0.0) - u));
}
inline Interval slope_range(const Poisson&, double y) { return {-y, kInfinity}; }
inline double largest_curvature(const Poisson&) { return kInfinity; }

// Where the sup is attained, +-infinity if it is not: on the piece whose slopes enclose t, or at a knot.
struct Attained {
  std::size_t k;
  double z;
};
inline Attained attained(const PiecewiseQuadratic& loss, double t) {
  std::size_t k = 0;
  while (k < loss.knots.size() && t > loss.on_piece(static_cast<int>(k), loss.knots[k]).slope) ++k;
  const double from = k > 0 ? loss.knots[k - 1] : -kInfinity;
  const double to = k < loss.knots.size() ? loss.knots[k] : kInfinity;
  const double* p = loss.coefficients.data() + 3 * k;
  double z = p[0] > 0.0 ? std::clamp((t - p[1]) / (2.0 * p[0]), from, to) : (t > p[1] ? to : from);
  if (p[0] <= 0.0 && t == p[1] && !std::isfinite(from)) z = std::isfinite(to) ? to : 0.0;
  return {k, z};
}
inline double conjugate(const PiecewiseQuadratic& loss, double s, double y) {
  const double t = s * loss.inner_slope(y);
  const auto [k, z] = attained(loss, t);
  if (!std::isfinite(z)) return kInfinity;
  const double of_argument = t * z - loss.on_piece(static_cast<int>(k), z).value;
  return of_argument + (loss.of == PiecewiseQuadratic::Of::kResidual ? s * y : 0.0);
}
inline Interval slope_range(const PiecewiseQuadratic& loss, double y) {
  const double* first = loss.coefficients.data();
  const double* last = first + 3 * loss.knots.size();
  const double lower = first[0] > 0.0 ? -kInfinity : first[1], upper = last[0] > 0.0 ? kInfinity : last[1];
  return loss.inner_slope(y) > 0.0 ? Interval{lower, upper} : Interval{-upper, -lower};
}
inline double largest_curvature(const PiecewiseQuadratic& loss) {
  double largest = 0.0;
  for (std::size_t k = 0; k <= loss.knots.size(); ++k) largest = std::max(largest, 2.0 * loss.coefficients[3 * k]);
  return largest;
}

// How large the terms are that cancel in a conjugate: what its rounding is measured by.
template <class L>
double conjugate_size(const L& loss, double s, double y) {
  return std::abs(conjugate(loss, s, y));
}
inline double conjugate_size(const Exponential&, double s, double y) {
  const double x = -s * y;
  return std::abs(entropy(x)) + x;
}
inline double conjugate_size(const SquaredEpsilonInsensitive& loss, double s, double y) {
  return std::abs(s) * (0.5 * std::abs(s) + std::abs(y) + loss.eps);
}
inline double conjugate_size(const Poisson& loss, double s, double y) {
  const double log = y > 0.0 ? std::abs(std::log(y)) : 0.0;
  return std::abs(conjugate(loss, s, y)) + std::abs(s) * (1.0 + 2.0 * log);
}
inline double conjugate_size(const PiecewiseQuadratic& loss, double s, double y) {
  const auto [k, z] = attained(loss, s * loss.inner_slope(y));
  if (!std::isfinite(z)) return kInfinity;
  const double* p = loss.coefficients.data() + 3 * k;
  return std::abs(s) * (std::abs(z) + std::abs(y)) + (p[0] * std::abs(z) + std::abs(p[1])) * std::abs(z) +
         std::abs(p[2]);
}

template <class L>
concept Conjugated = requires(const L& loss, double s, double y) {
  { conjugate(loss, s, y) } -> std::same_as<double>;
};

}  // namespace bmrm
