// Losses of the residual r = f - y, and Poisson regression.
#pragma once

#include "bmrm/loss/scalar.hpp"

namespace bmrm {

inline double sign(double r) { return (r > 0.0 ? 1.0 : 0.0) - (r < 0.0 ? 1.0 : 0.0); }

inline ProxPoint from_target(const ProxPoint& p, double y) { return {y + p.z, p.slope, p.dslope}; }

struct LeastSquares {
  ValueSlope operator()(double f, double y) const { return {0.5 * (f - y) * (f - y), f - y}; }
  double curvature(double, double) const { return 1.0; }
  int piece(double, double) const { return 0; }
  ProxPoint prox(double v, double y, double q) const {
    const double r = (v - y) / (1.0 + q);
    return {y + r, r, 1.0 / (1.0 + q)};
  }
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
  ProxPoint prox(double v, double y, double q) const { return from_target(prox_of_kink(v - y, q, -tau, 1.0 - tau), y); }
};

struct LeastAbsolute {
  ValueSlope operator()(double f, double y) const { return {std::abs(f - y), sign(f - y)}; }
  Interval subdifferential(double f, double y) const {
    return {2.0 * static_cast<double>(f > y) - 1.0, 2.0 * static_cast<double>(f >= y) - 1.0};
  }
  int piece(double f, double y) const { return f >= y; }
  ProxPoint prox(double v, double y, double q) const { return from_target(prox_of_kink(v - y, q, -1.0, 1.0), y); }
};

struct EpsilonInsensitive {
  double eps;
  ValueSlope operator()(double f, double y) const {
    const double r = f - y;
    const double excess = std::abs(r) - eps;
    return {std::max(0.0, excess), excess > 0.0 ? sign(r) : 0.0};
  }
  Interval subdifferential(double f, double y) const {
    const double r = f - y;
    return {static_cast<double>(r > eps) - static_cast<double>(r <= -eps),
            static_cast<double>(r >= eps) - static_cast<double>(r < -eps)};
  }
  int piece(double f, double y) const { return (f - y >= -eps) + (f - y >= eps); }
  ProxPoint prox(double v, double y, double q) const {
    const double r = v - y, side = sign(r);
    const ProxPoint p = prox_of_kink(std::abs(r) - eps, q, 0.0, 1.0);  // within the tube: below the kink, slope 0
    const double outside = y + side * (eps + p.z);
    return {std::abs(r) <= eps ? v : outside, side * p.slope, p.dslope};
  }
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
  ProxPoint prox(double v, double y, double q) const {
    const double r = v - y, excess = (std::abs(r) - eps) / (1.0 + q);
    if (excess <= 0.0) return {v, 0.0, 0.0};
    return {y + sign(r) * (eps + excess), sign(r) * excess, 1.0 / (1.0 + q)};
  }
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
  ProxPoint prox(double v, double y, double q) const {
    const double r = (v - y) / (1.0 + q), s = std::clamp(r, -delta, delta);
    const double beyond = v - y - q * s, z = s > 0.0 ? std::max(delta, beyond) : std::min(-delta, beyond);
    return {y + (s == r ? r : z), s, s == r ? 1.0 / (1.0 + q) : 0.0};
  }
};

// exp(f) - y f + (y log y - y): the constant makes the smallest value 0. With d = f - log y it is y (exp(d) - 1 - d),
// which keeps its digits where large terms cancel.
struct Poisson {
  ValueSlope operator()(double f, double y) const {
    const double d = y > 0.0 ? f - std::log(y) : kInfinity;
    if (d <= 1.0) {
      const double grown = std::expm1(d);
      return {y * (grown - d), y * grown};
    }
    const ValueSlope e = capped_exp(f);
    return {y > 0.0 ? e.value - y * (1.0 + d) : e.value, e.slope - y};
  }
  double curvature(double f, double) const { return capped_exp(f).slope; }
  ProxPoint prox(double v, double y, double q) const {
    const double z = std::min(q > 0.0 ? -prox_of_exp(-(v + q * y), q) : v, kLargestExponent), e = std::exp(z);
    return {z, e - y, e / (1.0 + q * e)};
  }
};

}  // namespace bmrm
