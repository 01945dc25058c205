// The only list of compiled losses. A new one: its struct, its line in kNames, its case in make_loss.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bmrm/loss/margin.hpp"
#include "bmrm/loss/piecewise.hpp"
#include "bmrm/loss/regression.hpp"

namespace bmrm {

using AnyScalarLoss = std::variant<Perceptron, SquaredPerceptron, Hinge, SquaredHinge, HuberHinge, Exponential,
                                   Logistic, Novelty, LeastSquares, LeastAbsolute, Quantile, EpsilonInsensitive,
                                   SquaredEpsilonInsensitive, Huber, Poisson, PiecewiseQuadratic>;

template <class Variant>
inline constexpr bool kAllProximal = false;
template <class... L>
inline constexpr bool kAllProximal<std::variant<L...>> = (Proximal<L> && ...);
static_assert(kAllProximal<AnyScalarLoss>, "every compiled loss has its proximal map");

inline constexpr std::array<std::string_view, 15> kLossNames{"perceptron",
                                                             "squared_perceptron",
                                                             "hinge",
                                                             "squared_hinge",
                                                             "huber_hinge",
                                                             "exponential",
                                                             "logistic",
                                                             "novelty",
                                                             "least_squares",
                                                             "least_absolute",
                                                             "quantile",
                                                             "epsilon_insensitive",
                                                             "squared_epsilon_insensitive",
                                                             "huber",
                                                             "poisson"};

inline AnyScalarLoss make_loss(std::string_view name, const std::vector<double>& p) {
  const auto parameter = [&]() -> double {
    if (p.size() != 1) throw std::invalid_argument("loss '" + std::string(name) + "' takes one parameter");
    return p[0];
  };
  if (name == "perceptron") return Perceptron{};
  if (name == "squared_perceptron") return SquaredPerceptron{};
  if (name == "hinge") return Hinge{};
  if (name == "squared_hinge") return SquaredHinge{};
  if (name == "huber_hinge") return HuberHinge{parameter()};
  if (name == "exponential") return Exponential{};
  if (name == "logistic") return Logistic{};
  if (name == "novelty") return Novelty{parameter()};
  if (name == "least_squares") return LeastSquares{};
  if (name == "least_absolute") return LeastAbsolute{};
  if (name == "quantile") return Quantile{parameter()};
  if (name == "epsilon_insensitive") return EpsilonInsensitive{parameter()};
  if (name == "squared_epsilon_insensitive") return SquaredEpsilonInsensitive{parameter()};
  if (name == "huber") return Huber{parameter()};
  if (name == "poisson") return Poisson{};
  throw std::invalid_argument("no compiled loss named '" + std::string(name) + "'");
}

}  // namespace bmrm
