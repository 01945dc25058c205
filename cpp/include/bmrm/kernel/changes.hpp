// Which numbers of a vector are not 0, or are no longer a multiple of what they were: without a branch for each.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bmrm {

// The i below n for which is(i), in order.
template <class Is>
std::vector<std::int64_t> those(std::size_t n, const Is& is) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += static_cast<std::size_t>(is(i));
  std::vector<std::int64_t> found(count + 1);  // one more is written, and not kept
  std::size_t last = 0;
  for (std::size_t i = 0; i < n; ++i) {
    found[last] = static_cast<std::int64_t>(i);
    last += static_cast<std::size_t>(is(i));
  }
  found.resize(count);
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
