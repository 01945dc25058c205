// exp(x) for x <= 0 and log(1 + e) for 0 <= e <= 1, without calls or branches, so that loops over rows compile to
// vector code. Relative errors are below 3e-16 and 5e-16. The polynomials interpolate at Chebyshev's points.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "bmrm/kernel/lanes.hpp"

namespace bmrm {

// By Horner's rule, the highest power first.
template <std::size_t n>
BMRM_INLINE double polynomial(const double (&coefficients)[n], double x) {
  double p = coefficients[0];
  for (std::size_t k = 1; k < n; ++k) p = p * x + coefficients[k];
  return p;
}

// exp(x) = 2^n exp(r) with |r| <= log(2) / 2. Below -708 it stands still at 3e-308.
BMRM_INLINE double exp_of_negative(double x) {
  constexpr double kRound = 0x1.8p52;  // added to a number, it leaves the nearest integer in the last bits
  constexpr double kLog2High = 0x1.62e42fee00000p-1, kLog2Low = 0x1.a39ef35793c76p-33;
  x = x < -708.0 ? -708.0 : x;
  const double shifted = x * 0x1.71547652b82fep0 + kRound, n = shifted - kRound;
  const double r = (x - n * kLog2High) - n * kLog2Low;
  const double tail = polynomial({2.50955459817002206e-8, 2.76137955545198587e-7, 2.75572800826846843e-6,
                                  2.48015364090640865e-5, 1.98412698543307696e-4, 1.38888889058713456e-3,
                                  8.33333333333215669e-3, 4.16666666666513673e-2, 1.66666666666666667e-1, 0.5},
                                 r);
  const double p = tail * (r * r) + r + 1.0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + (std::bit_cast<std::uint64_t>(shifted) << 52));
}

struct LogAndInverse {
  double log;      // log(1 + e)
  double inverse;  // 1 / (1 + e)
};

// log(u) = 2 artanh(s), s = (u - 1) / (u + 1), of u = 1 + e or, where that is nearer to 1, of half of it. One division
// serves s and the inverse.
BMRM_INLINE LogAndInverse log1p_of_share(double e) {
  const bool halved = e > 0.4142135623730951;
  const double u = 1.0 + e, difference = halved ? e - 1.0 : e, sum = halved ? e + 3.0 : e + 2.0;
  const double inverse = 1.0 / (u * sum);
  const double s = difference * (u * inverse), q = s * s;
  const double p =
      polynomial({7.3082250383000322e-2, 7.66586078443891251e-2, 9.09144456310737038e-2, 1.11111055673909998e-1,
                  1.42857143129877825e-1, 1.99999999999497522e-1, 3.33333333333333484e-1},
                 q);
  const double log = 2.0 * (s + s * q * p);
  return {halved ? log + 0.6931471805599453 : log, sum * inverse};
}

}  // namespace bmrm
