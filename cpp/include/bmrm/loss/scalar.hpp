// What a scalar loss is: l(f, y) for one score f and one target y, convex in f.
//
// A loss is a small struct with its parameters and
//   ValueSlope operator()(double f, double y) const    value and one subgradient
// and, where they differ from the defaults below,
//   Interval subdifferential(f, y)   both ends, for losses with kinks in the value
//   double curvature(f, y)           (generalised) second derivative; piecewise linear losses have none
//   int piece(f, y)                  for piecewise quadratic losses: which piece f lies in
//   ProxPoint prox(v, y, q)          the proximal map, q >= 0
//   DualStep dual_step(f, s, y, q)   the same for dual coordinate descent, where an approximation is cheaper
// Weights, sums, threads and matrices are the kernels' business.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>

namespace bmrm {

struct ValueSlope {
  double value;
  double slope;
};

struct Interval {
  double lower;
  double upper;
};

// z = argmin q l(z, y) + (z - v)^2 / 2, the slope s = (v - z) / q of l at z, and ds/dv. The plane of slope s through
// (z, l(z)) lies below l: that is -l*(s) = l(z) - s z, without a formula for l*.
struct ProxPoint {
  double z;
  double slope;
  double dslope;
};

template <class L>
concept ScalarLoss = requires(const L& loss, double f, double y) {
  { loss(f, y) } -> std::same_as<ValueSlope>;
};

template <class L>
concept Curved = requires(const L& loss, double f, double y) {
  { loss.curvature(f, y) } -> std::same_as<double>;
};

template <class L>
concept Kinked = requires(const L& loss, double f, double y) {
  { loss.subdifferential(f, y) } -> std::same_as<Interval>;
};

template <class L>
concept PiecewiseQuadraticLoss = requires(const L& loss, double f, double y) {
  { loss.piece(f, y) } -> std::same_as<int>;
};

template <class L>
concept Proximal = requires(const L& loss, double v, double y, double q) {
  { loss.prox(v, y, q) } -> std::same_as<ProxPoint>;
};

template <Proximal L>
ProxPoint prox(const L& loss, double v, double y, double q) {
  return loss.prox(v, y, q);
}

// The step of one row: with the score f and the slope s it moves to the proximal point z of f + q s, or near it, as
// long as the plane of slope `slope` and offset b touches l at z.
struct DualStep {
  double value;  // l(f)
  double z;
  double slope;
  double b;
  double dslope;
};

template <Proximal L>
DualStep dual_step(const L& loss, double f, double s, double y, double q) {
  if constexpr (requires { loss.dual_step(f, s, y, q); }) {
    return loss.dual_step(f, s, y, q);
  } else {
    const ProxPoint p = loss.prox(f + q * s, y, q);
    return {loss(f, y).value, p.z, p.slope, loss(p.z, y).value - p.slope * p.z, p.dslope};
  }
}

template <ScalarLoss L>
Interval subdifferential(const L& loss, double f, double y) {
  if constexpr (Kinked<L>) {
    return loss.subdifferential(f, y);
  } else {
    const double slope = loss(f, y).slope;
    return {slope, slope};
  }
}

template <ScalarLoss L>
double curvature(const L& loss, double f, double y) {
  if constexpr (Curved<L>) {
    return loss.curvature(f, y);
  } else {
    return 0.0;
  }
}

// Beyond this exponent exp() is +infinity in double precision, and slopes stay at its value there.
inline constexpr double kLargestExponent = 709.0;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline ValueSlope capped_exp(double x) {
  if (x > kLargestExponent) return {kInfinity, std::exp(kLargestExponent)};
  const double e = std::exp(x);
  return {e, e};
}

// The proximal map at a kink where the slope jumps from lower to upper; v is measured from the kink, and so is z.
// Without branches: on which side of the kink a row lies cannot be guessed, and loops over rows compile to vector code.
inline ProxPoint prox_of_kink(double v, double q, double lower, double upper) {
  const bool below = v <= q * lower, within = !below & (v < q * upper);
  const double ratio = v / q, bend = 1.0 / q;  // of no account where q is 0: nothing lies within
  const double inside = std::min(std::max(ratio, lower), upper), at_end = below ? lower : upper;
  const double z = std::min(0.0, v - q * lower) + std::max(0.0, v - q * upper);
  return {z, within ? inside : at_end, within ? bend : 0.0};
}

// The t with t + exp(t) = c. From this side Newton's steps never overshoot.
inline double log_lambert(double c) {
  double t = c > 1.0 ? std::log(c) : c;
  for (int step = 0; step < 50; ++step) {
    const double e = std::exp(t), next = t - (t + e - c) / (1.0 + e);
    if (!(next < t - 1e-16 * std::abs(t))) break;
    t = next;
  }
  return t;
}

// The z with z - v = q exp(-z), for every q > 0: with u = z - v it is u + log(u) = log(q) - v.
inline double prox_of_exp(double v, double q) {
  const double log_q = std::log(q), c = log_q - v, t = log_lambert(c);
  return c > 1.0 ? log_q - t : v + std::exp(t);
}

}  // namespace bmrm
