// Sums that keep their digits: Neumaier's compensated sum, used where few large terms are added, and sums by halves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bmrm {

// A sum of two finite numbers as computed, and what it lacks: exact, without branches (Knuth).
struct Rounded {
  double value;
  double error;
};

inline Rounded two_sum(double a, double b) {
  const double value = a + b, of_b = value - a;
  return {value, (a - (value - of_b)) + (b - of_b)};
}

class Sum {
 public:
  void add(double x) {
    const double t = total_ + x;
    if (std::isfinite(t)) {
      rest_ += std::abs(total_) >= std::abs(x) ? (total_ - t) + x : (x - t) + total_;
    }
    total_ = t;
  }
  double value() const { return total_ + rest_; }

 private:
  double total_ = 0.0;
  double rest_ = 0.0;
};

// The sum of the first n of at most N numbers, a power of two, by halves: log2(N) roundings. Overwrites all of them.
template <std::size_t N>
double sum_by_halves(double (&x)[N], std::size_t n) {
  static_assert((N & (N - 1)) == 0);
  std::fill(x + n, x + N, 0.0);
  for (std::size_t half = N / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) x[i] += x[i + half];
  return x[0];
}

}  // namespace bmrm
