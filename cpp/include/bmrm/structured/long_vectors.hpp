// Vectors as long as all scores: combined and multiplied by several threads, in blocks that do not depend on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/kernel/product.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

inline constexpr std::size_t kLongBlock = std::size_t{1} << 16;

template <class Body>
void each_long_block(std::size_t n, int n_threads, const Body& body) {
  const std::size_t n_blocks = (n + kLongBlock - 1) / kLongBlock;
  parallel_for(n_blocks, threads_for(n, n_threads),
               [&](std::size_t b) { body(b, b * kLongBlock, std::min(n, (b + 1) * kLongBlock)); });
}

BMRM_CLONES static inline void combine_block(const double* __restrict f, const double* __restrict d, double t,
                                             std::size_t n, double* __restrict out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = f[i] + t * d[i];
}

// out = f + t d
inline void combine(const double* f, const double* d, double t, std::size_t n, double* out, int n_threads) {
  each_long_block(n, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    combine_block(f + begin, d + begin, t, end - begin, out + begin);
  });
}

BMRM_CLONES static inline std::pair<double, double> inner_block(const double* x, const double* y, std::size_t n) {
  double sums[8] = {}, sizes[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) {
      const double term = x[i + k] * y[i + k];
      sums[k] += term;
      sizes[k] += std::abs(term);
    }
  }
  for (; i < n; ++i) sums[0] += x[i] * y[i], sizes[0] += std::abs(x[i] * y[i]);
  for (std::size_t k = 1; k < 8; ++k) sums[0] += sums[k], sizes[0] += sizes[k];
  return {sums[0], sizes[0]};
}

// sum_i x_i y_i and sum_i |x_i y_i|
inline std::pair<double, double> inner_and_size(const double* x, const double* y, std::size_t n, int n_threads) {
  std::vector<std::pair<double, double>> parts((n + kLongBlock - 1) / kLongBlock);
  each_long_block(n, n_threads, [&](std::size_t b, std::size_t begin, std::size_t end) {
    parts[b] = inner_block(x + begin, y + begin, end - begin);
  });
  std::pair<double, double> total{0.0, 0.0};
  for (const auto& part : parts) total.first += part.first, total.second += part.second;
  return total;
}

}  // namespace bmrm
