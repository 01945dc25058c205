// Losses of the margin z = y f, y in {-1, 1}, and the novelty loss, which looks at f alone.
#pragma once

#include <utility>

#include "bmrm/loss/exponent.hpp"
#include "bmrm/loss/scalar.hpp"

namespace bmrm {

// Losses with linear pieces are written without branches: which piece a row lies in cannot be guessed.

// max(0, rho - z) and its square: perceptron (rho = 0), hinge (rho = 1) and novelty share one formula.
struct LinearMargin {
  double rho;
  ValueSlope operator()(double z) const { return {std::max(0.0, rho - z), -static_cast<double>(z < rho)}; }
  Interval subdifferential(double z) const { return {-static_cast<double>(z <= rho), -static_cast<double>(z < rho)}; }
  int piece(double z) const { return z >= rho; }
  ProxPoint prox(double v, double q) const {
    const ProxPoint p = prox_of_kink(v - rho, q, -1.0, 0.0);
    return {v >= rho ? v : rho + p.z, p.slope, p.dslope};
  }
};

struct SquaredMargin {
  double rho;
  ValueSlope operator()(double z) const {
    const double r = std::max(0.0, rho - z);
    return {0.5 * r * r, -r};
  }
  double curvature(double z) const { return z < rho ? 1.0 : 0.0; }
  int piece(double z) const { return z >= rho; }
  ProxPoint prox(double v, double q) const {
    if (v >= rho) return {v, 0.0, 0.0};
    const double r = (rho - v) / (1.0 + q);
    return {rho - r, -r, 1.0 / (1.0 + q)};
  }
};

inline ValueSlope times_label(ValueSlope of_margin, double y) { return {of_margin.value, y * of_margin.slope}; }
inline ProxPoint times_label(ProxPoint of_margin, double y) {
  return {y * of_margin.z, y * of_margin.slope, of_margin.dslope};
}
inline Interval times_label(Interval of_margin, double y) {
  const double center = 0.5 * (of_margin.lower + of_margin.upper), half = 0.5 * (of_margin.upper - of_margin.lower);
  return {y * center - half, y * center + half};
}

template <int rho>
struct LinearMarginLoss {
  static constexpr LinearMargin margin{static_cast<double>(rho)};
  ValueSlope operator()(double f, double y) const { return times_label(margin(y * f), y); }
  Interval subdifferential(double f, double y) const { return times_label(margin.subdifferential(y * f), y); }
  int piece(double f, double y) const { return margin.piece(y * f); }
  ProxPoint prox(double v, double y, double q) const { return times_label(margin.prox(y * v, q), y); }
};

template <int rho>
struct SquaredMarginLoss {
  static constexpr SquaredMargin margin{static_cast<double>(rho)};
  ValueSlope operator()(double f, double y) const { return times_label(margin(y * f), y); }
  double curvature(double f, double y) const { return margin.curvature(y * f); }
  int piece(double f, double y) const { return margin.piece(y * f); }
  ProxPoint prox(double v, double y, double q) const { return times_label(margin.prox(y * v, q), y); }
};

struct Perceptron : LinearMarginLoss<0> {};
struct Hinge : LinearMarginLoss<1> {};
struct SquaredPerceptron : SquaredMarginLoss<0> {};
struct SquaredHinge : SquaredMarginLoss<1> {};

struct Novelty {
  double rho;
  LinearMargin margin{rho};
  explicit Novelty(double rho_) : rho(rho_) {}
  ValueSlope operator()(double f, double) const { return margin(f); }
  Interval subdifferential(double f, double) const { return margin.subdifferential(f); }
  int piece(double f, double) const { return margin.piece(f); }
  ProxPoint prox(double v, double, double q) const { return margin.prox(v, q); }
};

// 0 beyond 1 + h, (1 + h - z)^2 / 4h on |1 - z| <= h, 1 - z below.
struct HuberHinge {
  double h;
  ValueSlope operator()(double f, double y) const {
    const double z = y * f;
    if (z >= 1.0 + h) return {0.0, 0.0};
    if (z <= 1.0 - h) return {1.0 - z, -y};
    const double r = 1.0 + h - z;
    return {r * r / (4.0 * h), -y * r / (2.0 * h)};
  }
  double curvature(double f, double y) const { return piece(f, y) == 1 ? 1.0 / (2.0 * h) : 0.0; }
  int piece(double f, double y) const { return y * f <= 1.0 - h ? 0 : (y * f < 1.0 + h ? 1 : 2); }
  ProxPoint prox(double v, double y, double q) const {
    const double z = y * v, r = (1.0 + h - z) / (1.0 + q / (2.0 * h));
    if (r <= 0.0) return {v, 0.0, 0.0};
    if (r >= 2.0 * h) return {y * std::min(z + q, 1.0 - h), -y, 0.0};
    return {y * (1.0 + h - r), -y * r / (2.0 * h), 1.0 / (2.0 * h + q)};
  }
};

struct Exponential {
  ValueSlope operator()(double f, double y) const {
    const ValueSlope e = capped_exp(-y * f);
    return {e.value, -y * e.slope};
  }
  double curvature(double f, double y) const { return capped_exp(-y * f).slope; }
  ProxPoint prox(double v, double y, double q) const {
    const double z = std::max(q > 0.0 ? prox_of_exp(y * v, q) : y * v, -kLargestExponent), e = std::exp(-z);
    return {y * z, -y * e, e / (1.0 + q * e)};
  }
};

struct Logistic {
  BMRM_INLINE ValueSlope operator()(double f, double y) const {
    const double z = y * f, e = exp_of_negative(-std::abs(z));
    const LogAndInverse of = log1p_of_share(e);  // the inverse is the larger of the two probabilities
    return {of.log + std::max(0.0, -z), -y * (z > 0 ? e * of.inverse : of.inverse)};
  }
  BMRM_INLINE double slope(double f, double y) const {
    const double z = y * f, e = exp_of_negative(-std::abs(z));
    return -y * (z > 0 ? e : 1.0) / (1.0 + e);
  }
  BMRM_INLINE double curvature(double f, double) const {
    const double e = exp_of_negative(-std::abs(f));
    return e / ((1.0 + e) * (1.0 + e));
  }
  // For z >= 0: the z with z - v = q / (1 + exp(z)). z - v - q / (1 + exp(z)) is concave, so that Newton's steps from
  // below never overshoot, and from above only the first does. 1 / (1 + exp(z)) >= exp(-z) / 2 gives a start.
  static ProxPoint prox_right_of_0(double v, double q) {
    const double start = std::max({0.0, v, q > 8.0 ? prox_of_exp(v, 0.5 * q) : 0.0});
    double z = start;
    for (int step = 0;; ++step) {
      const double e = std::exp(-z), slope = e / (1.0 + e), h = slope / (1.0 + e);
      const double next = std::max(start, z - (z - v - q * slope) / (1.0 + q * h));
      if (std::abs(next - z) <= 1e-15 * z || (step > 0 && next <= z) || step == 100)
        return {z, slope, h / (1.0 + q * h)};
      z = next;
    }
  }
  // Where z < 0 the same equation holds for -z with -v - q in place of v.
  ProxPoint prox(double v, double y, double q) const {
    const double u = y * v, side = u + 0.5 * q >= 0.0 ? 1.0 : -1.0;
    const ProxPoint p = prox_right_of_0(side > 0.0 ? u : -u - q, q);
    return {side * y * p.z, -y * (side > 0.0 ? p.slope : 1.0 - p.slope), p.dslope};
  }
  // Newton's steps as above, from f. The last one need not be exact: after a step of length c the distance is below
  // c^2 / 2, the plane touches l wherever z lies, and the row will be visited again.
  BMRM_INLINE DualStep dual_step(double f, double s, double y, double q) const {
    constexpr double kShort = 0.03;
    const double u = y * f, v = u + q * y * s, side = v + 0.5 * q >= 0.0 ? 1.0 : -1.0;
    const double from = side > 0.0 ? v : -v - q, start = std::max(0.0, from);
    const double at_f = std::exp(-std::abs(u));
    double z = std::max(start, side * u), e = side * u >= start ? at_f : std::exp(-z);
    for (int step = 0; step < 100; ++step) {
      const double share = 1.0 / (1.0 + e), slope = e * share;
      const double last = std::exchange(z, std::max(start, z - (z - from - q * slope) / (1.0 + q * slope * share)));
      e = std::exp(-z);
      if (std::abs(z - last) <= kShort) break;
    }
    const LogAndInverse of = log1p_of_share(e);
    const double value = log1p_of_share(at_f).log + std::max(0.0, -u), margin = side * z;
    const double slope = -y * (side > 0.0 ? e * of.inverse : of.inverse);
    return {value, y * margin, slope, of.log + std::max(0.0, -margin) - slope * y * margin, 1.0};
  }
};

}  // namespace bmrm
