// Any convex piecewise linear-quadratic loss of the margin y f, the residual f - y, or the score f,
// given by its knots and, on each piece, a z^2 + b z + c. A user's loss runs compiled this way.
#pragma once

#include <cstddef>
#include <vector>

#include "bmrm/loss/scalar.hpp"

namespace bmrm {

struct PiecewiseQuadratic {
  enum class Of { kMargin, kResidual, kScore };
  Of of;
  std::vector<double> knots;         // increasing, p of them
  std::vector<double> coefficients;  // (p + 1) times (a, b, c)

  double argument(double f, double y) const { return of == Of::kMargin ? y * f : (of == Of::kResidual ? f - y : f); }
  double inner_slope(double y) const { return of == Of::kMargin ? y : 1.0; }

  int piece_of(double z) const {
    return static_cast<int>(std::upper_bound(knots.begin(), knots.end(), z) - knots.begin());
  }
  ValueSlope on_piece(int k, double z) const {
    const double* p = coefficients.data() + 3 * static_cast<std::size_t>(k);
    return {(p[0] * z + p[1]) * z + p[2], 2.0 * p[0] * z + p[1]};
  }

  ValueSlope operator()(double f, double y) const {
    const double z = argument(f, y);
    const ValueSlope v = on_piece(piece_of(z), z);
    return {v.value, inner_slope(y) * v.slope};
  }
  Interval subdifferential(double f, double y) const {
    const double z = argument(f, y);
    const int k = piece_of(z);
    double upper = on_piece(k, z).slope;
    double lower = k > 0 && knots[static_cast<std::size_t>(k) - 1] == z ? on_piece(k - 1, z).slope : upper;
    const double s = inner_slope(y);
    return s > 0 ? Interval{s * lower, s * upper} : Interval{s * upper, s * lower};
  }
  double curvature(double f, double y) const {
    const double s = inner_slope(y);
    return 2.0 * s * s * coefficients[3 * static_cast<std::size_t>(piece_of(argument(f, y)))];
  }
  int piece(double f, double y) const { return piece_of(argument(f, y)); }

  ProxPoint prox_on_piece(int k, double v, double q) const {
    const auto n = static_cast<std::size_t>(k);
    const double a = coefficients[3 * n], b = coefficients[3 * n + 1];
    double z = (v - q * b) / (1.0 + 2.0 * a * q);
    if (n > 0) z = std::max(z, knots[n - 1]);
    if (n < knots.size()) z = std::min(z, knots[n]);
    return {z, 2.0 * a * z + b, 2.0 * a / (1.0 + 2.0 * a * q)};
  }
  // z + q l'(z) increases from knot to knot and jumps at kinks: v falls into a piece or into a jump.
  ProxPoint prox_of_argument(double v, double q) const {
    int k = 0;
    for (const double knot : knots) {
      const double left = on_piece(k, knot).slope, right = std::max(left, on_piece(k + 1, knot).slope);
      if (v < knot + q * left) break;
      if (v < knot + q * right) return {knot, std::clamp((v - knot) / q, left, right), 1.0 / q};
      ++k;
    }
    return prox_on_piece(k, v, q);
  }
  ProxPoint prox(double v, double y, double q) const {
    const ProxPoint p = prox_of_argument(argument(v, y), q);
    const double z = of == Of::kMargin ? y * p.z : (of == Of::kResidual ? y + p.z : p.z);
    return {z, inner_slope(y) * p.slope, p.dslope};
  }
};

}  // namespace bmrm
