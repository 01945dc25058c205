// The rows of the proximal point method: every loss replaced by its envelope around a slope,
//   M_i(f) = min_z l_i(z) + s_i (f - z) + (f - z)^2 / (2 q),
// whose slope at f is that of l_i at the proximal point z of f + q s_i.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "bmrm/kernel/evaluate.hpp"
#include "bmrm/kernel/prox.hpp"
#include "bmrm/kernel/sum.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

inline constexpr std::size_t kEnvelopeStep = 256;

// body(begin, end) for tasks of rows whose number depends on the rows only, and the sum of what it returns.
template <class Sums, class Body>
Sums sum_over_rows(std::size_t m, int n_threads, const Body& body) {
  const std::size_t n_tasks = (m + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<Sums> parts(n_tasks);
  parallel_for(n_tasks, n_tasks < 4 ? 1 : n_threads,
               [&](std::size_t k) { parts[k] = body(k * kRowsPerTask, std::min(m, (k + 1) * kRowsPerTask)); });
  Sums sums;
  for (const Sums& part : parts) sums += part;
  return sums;
}

struct SmoothedRows {
  std::span<double> z, slopes, bends;
};

struct AlongSums {
  double slope = 0.0, bend = 0.0;
  AlongSums& operator+=(const AlongSums& other) {
    slope += other.slope, bend += other.bend;
    return *this;
  }
};

// The rows of the envelope at the scores f + t u, and first and second derivative of sum p M(f + t u) in t. An empty u
// is 0.
template <class L>
AlongSums envelope_along(const L& loss, std::span<const double> f, std::span<const double> u, double t,
                         std::span<const double> center, double q, const Rows& rows, const SmoothedRows& out,
                         int n_threads) {
  return sum_over_rows<AlongSums>(f.size(), n_threads, [&](std::size_t begin, std::size_t end) {
    double v[kEnvelopeStep], slope[kEnvelopeStep], bend[kEnvelopeStep];
    AlongSums sums;
    for (std::size_t first = begin; first < end; first += kEnvelopeStep) {
      const std::size_t some = std::min(kEnvelopeStep, end - first);
      const double *g = f.data() + first, *s = center.data() + first, *d = u.empty() ? nullptr : u.data() + first;
      for (std::size_t k = 0; k < some; ++k) v[k] = d == nullptr ? g[k] : g[k] + t * d[k];
      for (std::size_t k = 0; k < some; ++k) v[k] += q * s[k];  // last: a run that is taken up begins with f + t u
      double *slopes = out.slopes.data() + first, *bends = out.bends.data() + first;
      prox_of_rows(loss, {v, some}, rows.y.data() + first, {&q, 1}, out.z.data() + first, slopes, bends);
      if (d == nullptr) continue;
      each_counted(counts_from(rows, first), some, [&](std::size_t k, double p) {
        slope[k] = p * d[k] * slopes[k];
        bend[k] = p * d[k] * d[k] * bends[k];
      });
      sums += {sum_by_halves(slope, some), sum_by_halves(bend, some)};
    }
    return sums;
  });
}

// Sums over the rows of p l(z), p s (z - offset) and the sizes of its terms, p s, and p s (f - z).
struct PlaneSums {
  double loss = 0.0, cross = 0.0, size = 0.0, total = 0.0, moved = 0.0;
  PlaneSums& operator+=(const PlaneSums& other) {
    loss += other.loss, cross += other.cross, size += other.size, total += other.total, moved += other.moved;
    return *this;
  }
};

// What the plane is made of that slopes s of the losses at z prove, and the slopes times the rows' weights.
template <class L>
PlaneSums envelope_plane(const L& loss, std::span<const double> z, std::span<const double> s, std::span<const double> f,
                         std::span<const double> offset, const Rows& rows, std::span<double> weighted, int n_threads) {
  return sum_over_rows<PlaneSums>(z.size(), n_threads, [&](std::size_t begin, std::size_t end) {
    double value[kEnvelopeStep], slope[kEnvelopeStep], cross[kEnvelopeStep], size[kEnvelopeStep], moved[kEnvelopeStep];
    PlaneSums sums;
    for (std::size_t first = begin; first < end; first += kEnvelopeStep) {
      const std::size_t some = std::min(kEnvelopeStep, end - first);
      const double *at = z.data() + first, *own = s.data() + first, *g = f.data() + first;
      double* out = weighted.data() + first;
      loss_terms(loss, at, rows.y.data() + first, counts_from(rows, first), some, value, slope);
      each_counted(counts_from(rows, first), some, [&](std::size_t k, double p) {
        slope[k] = p * own[k];
        cross[k] = slope[k] * at[k];
        moved[k] = slope[k] * (g[k] - at[k]);
      });
      if (!offset.empty())
        for (std::size_t k = 0; k < some; ++k) cross[k] = slope[k] * (at[k] - offset[first + k]);
      for (std::size_t k = 0; k < some; ++k) size[k] = std::abs(cross[k]);
      std::copy_n(slope, some, out);
      sums += {sum_by_halves(value, some), sum_by_halves(cross, some), sum_by_halves(size, some),
               sum_by_halves(slope, some), sum_by_halves(moved, some)};
    }
    return sums;
  });
}

}  // namespace bmrm
