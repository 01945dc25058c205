// What is asked of data before anything is computed with them, without a branch for each entry.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bmrm/kernel/lanes.hpp"

namespace bmrm {

// Whether all entries are finite: 0 x is 0 for those, and NaN for the others. Four places are read at a time, which
// memory delivers faster than one.
template <class Value>
BMRM_INLINE bool all_finite_body(const Value* x, std::size_t n) {
  constexpr std::size_t kStreams = 4;
  const std::size_t each = n / kStreams / kLanes * kLanes;
  Lanes sums[kStreams] = {}, v;
  for (std::size_t i = 0; i < each; i += kLanes) {
    for (std::size_t k = 0; k < kStreams; ++k) {
      load(x + k * each + i, v);
      sums[k] += 0.0 * v;
    }
  }
  double rest = 0.0;
  for (std::size_t i = kStreams * each; i < n; ++i) rest += 0.0 * static_cast<double>(x[i]);
  return sum(sums[0] + sums[1]) + sum(sums[2] + sums[3]) + rest == 0.0;
}

BMRM_CLONES static inline bool all_finite(const double* x, std::size_t n) { return all_finite_body(x, n); }
BMRM_CLONES static inline bool all_finite(const float* x, std::size_t n) { return all_finite_body(x, n); }

struct IndexCheck {
  bool in_range;
  std::size_t n_falls;  // places where an index is not larger than the one before
};

template <class Index>
BMRM_INLINE IndexCheck check_range_body(const Index* at, std::size_t n, Index last) {
  constexpr std::size_t kChunk = 4096;  // counted in numbers as wide as the indices
  Index bad = n > 0 && (at[0] < 0 || at[0] > last);
  std::size_t falls = 0;
  for (std::size_t first = 1; first < n; first += kChunk) {
    const std::size_t end = std::min(n, first + kChunk);
    Index some = 0;
    for (std::size_t p = first; p < end; ++p) {
      bad |= static_cast<Index>(at[p] < 0) | static_cast<Index>(at[p] > last);
      some += static_cast<Index>(at[p] <= at[p - 1]);
    }
    falls += static_cast<std::size_t>(some);
  }
  return {bad == 0, falls};
}

BMRM_CLONES static inline IndexCheck check_range(const std::int32_t* at, std::size_t n, std::int32_t last) {
  return check_range_body(at, n, last);
}
BMRM_CLONES static inline IndexCheck check_range(const std::int64_t* at, std::size_t n, std::int64_t last) {
  return check_range_body(at, n, last);
}

// Whether all numbers are -1 or 1.
BMRM_CLONES static inline bool all_signs(const double* y, std::size_t n) {
  std::int64_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) bad |= static_cast<std::int64_t>(std::abs(y[i]) != 1.0);
  return bad == 0;
}

}  // namespace bmrm
