// Losses of the residual r = f - y, and Poisson regression.
#pragma once

#include "bmrm/loss/scalar.hpp"

namespace bmrm {

inline double sign(double r) { return (r > 0.0) - (r < 0.0); }

struct LeastSquares {
  ValueSlope operator()(double f, double y) const { return {0.5 * (f - y) * (f - y), f - y}; }
  double curvature(double, double) const { return 1.0; }
  int piece(double, double) const { return 0; }
};

// max(tau (y - f), (1 - tau)(f - y)); least absolute deviation is this at tau = 1/2, doubled.
struct Quantile {
  double tau;
  ValueSlope operator()(double f, double y) const {
    const double r = f - y;
    const double slope = static_cast<double>(r > 0.0) * (1.0 - tau) - static_cast<double>(r < 0.0) * tau;
    return {slope * r, slope};
  }
  Interval subdifferential(double f, double y) const {
    return {static_cast<double>(f > y) - tau, static_cast<double>(f >= y) - tau};
  }
  int piece(double f, double y) const { return f >= y; }
};

struct LeastAbsolute {
  ValueSlope operator()(double f, double y) const { return {std::abs(f - y), sign(f - y)}; }
  Interval subdifferential(double f, double y) const {
    return {2.0 * static_cast<double>(f > y) - 1.0, 2.0 * static_cast<double>(f >= y) - 1.0};
  }
  int piece(double f, double y) const { return f >= y; }
};

struct EpsilonInsensitive {
  double eps;
  ValueSlope operator()(double f, double y) const {
    const double r = f - y;
    const double excess = std::abs(r) - eps;
    return {std::max(0.0, excess), static_cast<double>(excess > 0.0) * sign(r)};
  }
  Interval subdifferential(double f, double y) const {
    const double r = f - y;
    return {static_cast<double>(r > eps) - static_cast<double>(r <= -eps),
            static_cast<double>(r >= eps) - static_cast<double>(r < -eps)};
  }
  int piece(double f, double y) const { return (f - y >= -eps) + (f - y >= eps); }
};

struct SquaredEpsilonInsensitive {
  double eps;
  ValueSlope operator()(double f, double y) const {
    const double r = f - y;
    const double excess = std::max(0.0, std::abs(r) - eps);
    return {0.5 * excess * excess, sign(r) * excess};
  }
  double curvature(double f, double y) const { return std::abs(f - y) > eps ? 1.0 : 0.0; }
  int piece(double f, double y) const { return (f - y >= -eps) + (f - y > eps); }
};

struct Huber {
  double delta;
  ValueSlope operator()(double f, double y) const {
    const double r = f - y;
    const double s = std::clamp(r, -delta, delta);
    return {s * (r - 0.5 * s), s};
  }
  double curvature(double f, double y) const { return std::abs(f - y) < delta ? 1.0 : 0.0; }
  int piece(double f, double y) const { return (f - y > -delta) + (f - y >= delta); }
};

// exp(f) - y f + (y log y - y): the constant makes the smallest value 0.
struct Poisson {
  ValueSlope operator()(double f, double y) const {
    const ValueSlope e = capped_exp(f);
    const double constant = y > 0.0 ? y * std::log(y) - y : 0.0;
    return {e.value - y * f + constant, e.slope - y};
  }
  double curvature(double f, double) const { return capped_exp(f).slope; }
};

}  // namespace bmrm
