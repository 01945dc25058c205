// Which numbers of a vector are not 0, or are no longer a multiple of what they were: without a branch for each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/sum.hpp"

namespace bmrm {

// The i below n for which is(i), in order. Answers are written down first, which compiles to vector code, and blocks
// without any are left alone.
template <class Is>
std::vector<std::int64_t> those(std::size_t n, const Is& is) {
  constexpr std::size_t kStep = 256;
  double yes[kStep], sums[kStep];
  std::vector<std::int64_t> found;
  for (std::size_t first = 0; first < n; first += kStep) {
    const std::size_t some = std::min(kStep, n - first);
    for (std::size_t k = 0; k < some; ++k) yes[k] = is(first + k) ? 1.0 : 0.0;
    std::copy_n(yes, some, sums);
    const auto count = static_cast<std::size_t>(sum_by_halves(sums, some));
    if (count == 0) continue;
    std::size_t last = found.size();
    found.resize(last + count + 1);  // one more is written, and not kept
    for (std::size_t k = 0; k < some; ++k) {
      found[last] = static_cast<std::int64_t>(first + k);
      last += static_cast<std::size_t>(yes[k]);
    }
    found.pop_back();
  }
  return found;
}

inline std::vector<std::int64_t> nonzero(std::span<const double> c) {
  return those(c.size(), [c](std::size_t i) { return c[i] != 0.0; });
}

struct Changes {
  double times = 0.0;  // 0: no row counts in both
  std::vector<std::int64_t> rows;
};

// The factor of one row that counts before and after, and the rows for which it is another one. The row is looked for
// from the middle on: the first ones may be special.
inline Changes changes(std::span<const double> c, std::span<const double> before, double same) {
  const std::size_t n = c.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = (n / 2 + k) % n;
    if (!(c[i] > 0.0 && before[i] > 0.0)) continue;
    const double times = c[i] / before[i];
    return {times, those(n, [=](std::size_t j) { return std::abs(c[j] - times * before[j]) > same * c[j]; })};
  }
  return {};
}

}  // namespace bmrm
