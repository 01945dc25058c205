// The logistic loss on consecutive rows, compiled for each instruction set: its exponentials are most of the work of a
// pass over short rows.
#pragma once

#include <cstddef>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/loss/margin.hpp"

namespace bmrm {

// What a row counts: its own weight, or the scale that all rows share.
struct Counts {
  const double* weight;  // null: none
  double scale;
};

template <class Body>
BMRM_INLINE void each_counted(Counts counts, std::size_t n, const Body& body) {
  if (counts.weight == nullptr) {
    for (std::size_t i = 0; i < n; ++i) body(i, counts.scale);
  } else {
    for (std::size_t i = 0; i < n; ++i) body(i, counts.weight[i]);
  }
}

BMRM_CLONES static inline void logistic_terms(const double* __restrict f, const double* __restrict y, Counts counts,
                                              std::size_t n, double* __restrict value, double* __restrict slope) {
  each_counted(counts, n, [=](std::size_t i, double c) BMRM_INLINE_BODY {
    const ValueSlope v = Logistic{}(f[i], y[i]);
    value[i] = c != 0.0 ? c * v.value : 0.0;
    slope[i] = c * v.slope;
  });
}

// The derivatives of c l(f + t g) by t.
BMRM_CLONES static inline void logistic_along(const double* __restrict f, const double* __restrict g,
                                              const double* __restrict y, Counts counts, double t, std::size_t n,
                                              double* __restrict slope, double* __restrict curvature) {
  each_counted(counts, n, [=](std::size_t i, double c) BMRM_INLINE_BODY {
    const double z = f[i] + t * g[i], cg = c * g[i];
    slope[i] = cg * Logistic{}.slope(z, y[i]);
    curvature[i] = cg * g[i] * Logistic{}.curvature(z, y[i]);
  });
}

BMRM_CLONES static inline void logistic_curvature(const double* __restrict f, Counts counts, std::size_t n,
                                                  double* __restrict curvature) {
  each_counted(counts, n,
               [=](std::size_t i, double c) BMRM_INLINE_BODY { curvature[i] = c * Logistic{}.curvature(f[i], 1.0); });
}

}  // namespace bmrm
