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
  const ProxPoint guessed = prox(loss, v, y, q, 0.5 * (v + p.z));
  assert(std::abs(guessed.z - p.z) <= 1e-9 * (1.0 + std::abs(p.z) + (q > 1.0 ? std::abs(v) / q : 0.0)));
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
  for (const std::string_view name : kLossNames)
    check_loss(make_loss(name, takes_parameter(name) ? std::vector{0.3} : std::vector<double>{}));
  const std::vector<double> knots{-1.0, 0.5, 2.0};
  const std::vector<double> pieces{0.0, -2.0, -1.0, 0.5, 0.0, 0.5, 0.0, 1.5, -0.125, 1.0, 0.0, -1.125};
  using Of = PiecewiseQuadratic::Of;
  for (const Of of : {Of::kMargin, Of::kResidual, Of::kScore}) check_loss(PiecewiseQuadratic{of, knots, pieces});
  std::puts("prox: ok");
}
