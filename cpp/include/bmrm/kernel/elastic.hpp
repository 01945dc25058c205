// The dual of absolute values and squares between bounds, one coordinate at a time: what every bound ends in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace bmrm {

// Numbers for every coordinate: one for all, or one each.
struct Each {
  std::span<const double> values;
  double operator[](std::size_t i) const { return values.size() == 1 ? values[0] : values[i]; }
};

// lam (u |w| + v w^2 / 2) on [lower, upper], cut to |w| <= box
struct ElasticParts {
  Each u, v, lower, upper, box;
};

// w_i = argmin of lam (u |w| + v w^2 / 2) + c_i w; returns the sum of the minima, -inf if one is not finite.
// Added up in blocks, so that rounding errors grow with their number and not with that of the coordinates.
inline double elastic_dual(std::span<const double> c, double lam, const ElasticParts& parts, std::span<double> w) {
  constexpr std::size_t kBlock = 128;
  double total = 0.0;
  for (std::size_t first = 0; first < c.size(); first += kBlock) {
    double sum = 0.0;
    for (std::size_t i = first; i < std::min(c.size(), first + kBlock); ++i) {
      const double u = lam * parts.u[i], v = lam * parts.v[i], box = parts.box[i];
      const double excess = std::max(std::abs(c[i]) - u, 0.0);
      double x = excess == 0.0 ? 0.0 : std::copysign(excess / v, -c[i]);
      x = std::min(std::max(x, std::max(parts.lower[i], -box)), std::min(parts.upper[i], box));
      w[i] = x;
      const double size = std::abs(x), curved = v > 0.0 ? 0.5 * v * size : 0.0;
      if (x != 0.0) sum += (u + std::copysign(1.0, x) * c[i] + curved) * size;
    }
    total += sum;
  }
  return total;
}

}  // namespace bmrm
