// The proximal map of every compiled loss, from tiny to huge q and v: meant to run under sanitizers.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "bmrm/loss/list.hpp"

namespace {

using namespace bmrm;

bool takes_parameter(std::string_view name) {
  return name == "huber_hinge" || name == "novelty" || name == "quantile" || name.ends_with("epsilon_insensitive") ||
         name == "huber";
}

// z + q s = v up to rounding, and s lies between the slopes on both sides of z.
template <class L>
void check_point(const L& loss, double v, double y, double q) {
  const ProxPoint p = prox(loss, v, y, q);
  assert(std::isfinite(p.z) && std::isfinite(p.slope) && p.dslope >= 0.0);
  assert(std::abs(p.z + q * p.slope - v) <= 1e-9 * (1.0 + std::abs(v) + std::abs(p.z) + q * (1.0 + std::abs(y))));
  const double step = 1e-9 * (1.0 + std::abs(p.z) + std::abs(y));
  const double before = subdifferential(loss, p.z - step, y).lower, after = subdifferential(loss, p.z + step, y).upper;
  const double slack = 1e-9 * (1.0 + std::abs(p.slope) + std::abs(y));
  assert(before <= p.slope + slack && p.slope <= after + slack);
}

// From the plane that touches l at `at`: the plane of the step touches l, and the dual value does not fall.
template <class L>
void check_step(const L& loss, double f, double y, double q, double at) {
  const ValueSlope old = loss(at, y);
  const DualStep next = dual_step(loss, f, old.slope, y, q);
  const double size = 1.0 + std::abs(f) + std::abs(at) + std::abs(next.z) + std::abs(old.value) + std::abs(next.b);
  assert(std::abs(next.value - loss(f, y).value) <= 1e-14 * (1.0 + std::abs(next.value)));
  assert(std::abs(next.b + next.slope * next.z - loss(next.z, y).value) <= 1e-9 * size);
  const Interval slopes = subdifferential(loss, next.z, y);
  if constexpr (!Kinked<L>) assert(std::abs(next.slope - slopes.lower) <= 1e-9 * (1.0 + std::abs(next.slope)));
  const double change = next.slope - old.slope, b = old.value - old.slope * at;
  const double gain = next.b - b + change * f - 0.5 * q * change * change;
  assert(gain >= -1e-9 * (size + q * change * change));
}

void check_steps(const AnyScalarLoss& loss) {
  for (const double q : {0.0, 1e-3, 0.3, 4.0, 50.0, 1e4})
    for (const double f : {0.0, 0.2, -0.2, 1.0, -1.0, 5.0, -5.0, 40.0, -40.0})
      for (const double at : {0.0, 0.7, -0.7, 6.0, -6.0, 30.0, -30.0})
        for (const double y : {1.0, -1.0})
          std::visit(
              [&](const auto& one) {
                using L = std::decay_t<decltype(one)>;
                if constexpr (std::is_same_v<L, Logistic> || PiecewiseQuadraticLoss<L>) check_step(one, f, y, q, at);
              },
              loss);
}

void check_loss(const AnyScalarLoss& loss) {
  const std::vector<double> sizes{0.0, 1e-12, 1e-3, 0.3, 1.0, 1.3, 20.0, 1e3, 1e6, 1e12};
  std::visit(
      [&](const auto& one) {
        for (const double q : sizes)
          for (const double size : sizes)
            for (const double v : {size, -size})
              for (const double y : {1.0, -1.0}) {
                if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Poisson>) {
                  if (q == 0.0 && v > 300.0) continue;
                  check_point(one, v, y + 1.0, q);
                } else if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Exponential>) {
                  if (q > 0.0 || y * v > -300.0) check_point(one, v, y, q);
                } else {
                  check_point(one, v, y, q);
                }
              }
      },
      loss);
}

}  // namespace

int main() {
  for (const std::string_view name : kLossNames) {
    const AnyScalarLoss loss = make_loss(name, takes_parameter(name) ? std::vector{0.3} : std::vector<double>{});
    check_loss(loss);
    check_steps(loss);
  }
  const std::vector<double> knots{-1.0, 0.5, 2.0};
  const std::vector<double> pieces{0.0, -2.0, -1.0, 0.5, 0.0, 0.5, 0.0, 1.5, -0.125, 1.0, 0.0, -1.125};
  using Of = PiecewiseQuadratic::Of;
  for (const Of of : {Of::kMargin, Of::kResidual, Of::kScore}) check_loss(PiecewiseQuadratic{of, knots, pieces});
  std::puts("prox: ok");
}
