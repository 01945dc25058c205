// What a scalar loss is: l(f, y) for one score f and one target y, convex in f.
//
// A loss is a small struct with its parameters and
//   ValueSlope operator()(double f, double y) const    value and one subgradient
// and, where they differ from the defaults below,
//   Interval subdifferential(f, y)   both ends, for losses with kinks in the value
//   double curvature(f, y)           (generalised) second derivative; piecewise linear losses have none
//   int piece(f, y)                  for piecewise quadratic losses: which piece f lies in
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

// Beyond this exponent exp() counts as +infinity: sums of slopes below it cannot overflow.
inline constexpr double kLargestExponent = 345.0;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline ValueSlope capped_exp(double x) {
  if (x > kLargestExponent) return {kInfinity, std::exp(kLargestExponent)};
  const double e = std::exp(x);
  return {e, e};
}

}  // namespace bmrm
