// Numbers in text. The scanners stop at the first byte that cannot continue the number, so the text must end
// with a byte that never does (a line feed); they look at nothing behind it.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

namespace bmrm::io {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// A whole number without sign. `end` is the start when there is no digit; `fits` says: at most 2^63 - 1.
struct Whole {
  const char* end;
  std::uint64_t value;
  bool fits;
};

inline Whole scan_whole(const char* p) {
  const char* const start = p;
  std::uint64_t value = 0;
  for (; is_digit(*p); ++p) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  if (p - start <= 18) return {p, value, true};
  const char* first = start;  // only now do leading zeros matter
  while (first < p - 1 && *first == '0') ++first;
  // Nineteen digits cannot overflow 64 bits; twenty or more can, and never fit.
  constexpr auto top = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return {p, value, p - first <= 19 && value <= top};
}

// A decimal number. `end` is the start when there is none; an infinite value says that it is too large.
struct Real {
  const char* end;
  double value;
};

namespace detail {

inline constexpr std::array<double, 23> powers_of_ten = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The library reports too large and too small alike: the place of the first digit that counts tells which.
inline double out_of_range(const char* p, std::int64_t whole_digits, std::int64_t exponent) {
  std::int64_t zeros = 0;
  for (; *p == '0' || *p == '.'; ++p) zeros += *p == '0';
  return whole_digits - zeros + exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

inline double read_decimal(const char* p, const char* end, std::int64_t whole_digits, std::int64_t exponent) {
  double value = 0.0;
  const auto result = std::from_chars(p, end, value);
  return result.ec == std::errc::result_out_of_range ? out_of_range(p, whole_digits, exponent) : value;
}

// Reads e+12 and the like behind the digits; leaves p alone when no digit follows the letter.
inline std::int64_t scan_exponent(const char*& p) {
  const char* q = p + 1;
  const bool negative = *q == '-';
  if (*q == '-' || *q == '+') ++q;
  if (!is_digit(*q)) return 0;
  constexpr std::int64_t enough = std::int64_t{1} << 50;
  std::int64_t exponent = 0;
  for (; is_digit(*q); ++q) exponent = exponent < enough ? exponent * 10 + (*q - '0') : exponent;
  p = q;
  return negative ? -exponent : exponent;
}

}  // namespace detail

// Rounds correctly: a mantissa below 2^53 and a power of ten up to 10^22 are exact doubles, so one operation
// rounds once; everything else goes to the library.
inline Real scan_real(const char* const start) {
  const bool negative = *start == '-';
  const char* const digits = start + (*start == '-' || *start == '+');
  const char* p = digits;
  std::uint64_t mantissa = 0;
  for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
  const std::int64_t whole_digits = p - digits;
  std::int64_t n_digits = whole_digits;
  if (*p == '.') {
    const char* const fraction = ++p;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
    n_digits += p - fraction;
  }
  if (n_digits == 0) return {start, 0.0};
  const std::int64_t exponent = (*p | 0x20) == 'e' ? detail::scan_exponent(p) : 0;
  const std::int64_t power = exponent - (n_digits - whole_digits);
  double value = static_cast<double>(mantissa);
  if (n_digits > 19 || mantissa >> 53 != 0 || power < -22 || power > 22) {
    value = detail::read_decimal(digits, p, whole_digits, exponent);
  } else if (power < 0) {
    value /= detail::powers_of_ten[static_cast<std::size_t>(-power)];
  } else {
    value *= detail::powers_of_ten[static_cast<std::size_t>(power)];
  }
  return {p, negative ? -value : value};
}

}  // namespace bmrm::io
