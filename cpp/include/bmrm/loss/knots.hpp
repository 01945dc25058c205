// Where the pieces of a piecewise linear-quadratic loss end, in its own argument z: the margin y f, the residual
// f - y, or the score f. The loss is l(f, y) = l(z), and l(z) is what it is for y = 1 (margin) or y = 0.
#pragma once

#include <optional>
#include <vector>

#include "bmrm/loss/list.hpp"

namespace bmrm {

struct Knots {
  PiecewiseQuadratic::Of of;
  std::vector<double> at;  // increasing
};

template <int rho>
std::optional<Knots> knots(const LinearMarginLoss<rho>& loss) {
  return Knots{PiecewiseQuadratic::Of::kMargin, {loss.margin.rho}};
}
template <int rho>
std::optional<Knots> knots(const SquaredMarginLoss<rho>& loss) {
  return Knots{PiecewiseQuadratic::Of::kMargin, {loss.margin.rho}};
}
inline std::optional<Knots> knots(const HuberHinge& loss) {
  return Knots{PiecewiseQuadratic::Of::kMargin, {1.0 - loss.h, 1.0 + loss.h}};
}
inline std::optional<Knots> knots(const Novelty& loss) { return Knots{PiecewiseQuadratic::Of::kScore, {loss.rho}}; }
inline std::optional<Knots> knots(const LeastSquares&) { return Knots{PiecewiseQuadratic::Of::kResidual, {}}; }
inline std::optional<Knots> knots(const LeastAbsolute&) { return Knots{PiecewiseQuadratic::Of::kResidual, {0.0}}; }
inline std::optional<Knots> knots(const Quantile&) { return Knots{PiecewiseQuadratic::Of::kResidual, {0.0}}; }

inline Knots symmetric(double half) {
  if (half == 0.0) return {PiecewiseQuadratic::Of::kResidual, {0.0}};
  return {PiecewiseQuadratic::Of::kResidual, {-half, half}};
}
inline std::optional<Knots> knots(const EpsilonInsensitive& loss) { return symmetric(loss.eps); }
inline std::optional<Knots> knots(const SquaredEpsilonInsensitive& loss) { return symmetric(loss.eps); }
inline std::optional<Knots> knots(const Huber& loss) { return symmetric(loss.delta); }
inline std::optional<Knots> knots(const PiecewiseQuadratic& loss) { return Knots{loss.of, loss.knots}; }

// Losses that bend everywhere have no pieces.
inline std::optional<Knots> knots(const Exponential&) { return std::nullopt; }
inline std::optional<Knots> knots(const Logistic&) { return std::nullopt; }
inline std::optional<Knots> knots(const Poisson&) { return std::nullopt; }

inline std::optional<Knots> knots(const AnyScalarLoss& loss) {
  return std::visit([](const auto& one) { return knots(one); }, loss);
}

}  // namespace bmrm
