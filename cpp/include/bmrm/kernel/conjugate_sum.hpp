// Sums of conjugates over the rows: the offset of the plane that given slopes prove.
#pragma once

#include <span>
#include <stdexcept>

#include "bmrm/kernel/sum.hpp"
#include "bmrm/loss/conjugate.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

struct ConjugateSum {
  double value = 0.0;
  double size = 0.0;  // of all terms: what rounding errors are measured by
};

template <class L, class Body>
void with_conjugate(const L& loss, const Body& body) {
  if constexpr (Conjugated<L>) {
    body(loss);
  } else {
    throw std::invalid_argument("this loss has no second derivatives");
  }
}

// sum_i weight_i l*(theta s_i, y_i); rows without weight do not count.
inline ConjugateSum conjugate_sum(const AnyScalarLoss& any, std::span<const double> s, double theta, const Rows& rows) {
  Sum value, size;
  std::visit(
      [&](const auto& one) {
        with_conjugate(one, [&](const auto& loss) {
          for (std::size_t i = 0; i < s.size(); ++i) {
            if (rows.at(i) == 0.0) continue;
            value.add(rows.at(i) * conjugate(loss, theta * s[i], rows.y[i]));
            size.add(rows.at(i) * conjugate_size(loss, theta * s[i], rows.y[i]));
          }
        });
      },
      any);
  return {value.value(), size.value()};
}

inline void clip_slopes(const AnyScalarLoss& any, std::span<double> s, std::span<const double> y) {
  std::visit(
      [&](const auto& one) {
        with_conjugate(one, [&](const auto& loss) {
          for (std::size_t i = 0; i < s.size(); ++i) {
            const Interval range = slope_range(loss, y[i]);
            s[i] = std::clamp(s[i], range.lower, range.upper);
          }
        });
      },
      any);
}

inline double any_largest_curvature(const AnyScalarLoss& any) {
  double largest = kInfinity;
  std::visit(
      [&](const auto& one) { with_conjugate(one, [&](const auto& loss) { largest = largest_curvature(loss); }); }, any);
  return largest;
}

}  // namespace bmrm
