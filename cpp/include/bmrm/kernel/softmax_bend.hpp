// Second derivatives of the soft-max: p_i (diag(pi_i) - pi_i pi_i') for each row, as a product with k numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/loss/vector.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

inline constexpr std::size_t kBendBlock = 512;

template <class Body>
void each_bend_row(std::size_t n_rows, int n_threads, const Body& body) {
  const std::size_t n_blocks = n_rows / kBendBlock + 1;
  parallel_for(n_blocks, n_blocks < 4 ? 1 : n_threads, [&](std::size_t b) {
    for (std::size_t i = b * kBendBlock; i < std::min(n_rows, (b + 1) * kBendBlock); ++i) body(i);
  });
}

// pi_i = exp(f_i) / sum exp(f_i)
inline void softmax_shares(const double* F, std::size_t n_rows, std::size_t k, double* shares, int n_threads) {
  each_bend_row(n_rows, n_threads, [&](std::size_t i) {
    const double* f = F + i * k;
    double* e = shares + i * k;
    const double factor = 1.0 / (1.0 + SoftmaxRows::shares(f, k, e).others);
    for (std::size_t c = 0; c < k; ++c) e[c] *= factor;
  });
}

// u_i = p_i pi_i (g_i - <pi_i, g_i>), written over g.
inline void softmax_bend(const double* shares, std::span<const double> p, std::size_t k, double* G, int n_threads) {
  each_bend_row(p.size(), n_threads, [&](std::size_t i) {
    const double* e = shares + i * k;
    double* g = G + i * k;
    double mean = 0.0;
    for (std::size_t c = 0; c < k; ++c) mean += e[c] * g[c];
    for (std::size_t c = 0; c < k; ++c) g[c] = p[i] * e[c] * (g[c] - mean);
  });
}

}  // namespace bmrm
