// Vectors as long as w, or with a number for each row: sums, the dual of a regularizer, checks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bmrm/kernel/checks.hpp"
#include "bmrm/kernel/elastic.hpp"
#include "bmrm/kernel/gram.hpp"
#include "bmrm/kernel/sum.hpp"

namespace nb = nanobind;

namespace bmrm::py {
namespace {

Each each(const In<double>& values, std::size_t n, const char* name) {
  require(values.size() == 1 || values.size() == n,
          std::string(name) + " has length " + std::to_string(values.size()) + ", expected 1 or " + std::to_string(n));
  return {view(values)};
}

auto dual(const In<double>& c, double lam, const In<double>& u, const In<double>& v, const In<double>& lower,
          const In<double>& upper, const In<double>& box) {
  const std::size_t n = c.size();
  const ElasticParts parts{each(u, n, "u"), each(v, n, "v"), each(lower, n, "lower"), each(upper, n, "upper"),
                           each(box, n, "box")};
  std::vector<double> w(n);
  const double value = elastic_dual(view(c), lam, parts, w);
  return std::make_pair(value, give(std::move(w)));
}

// In blocks, whose sums are compensated: rounding errors do not grow with the number of entries.
double blocked_dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kBlock = 64;
  Sum sum;
  for (std::size_t i = 0; i < n; i += kBlock) sum.add(dot(a + i, b + i, std::min(kBlock, n - i)));
  return sum.value();
}

double inner(const In<double>& a, const In<double>& b) {
  require_size(b.size(), a.size(), "b");
  return blocked_dot(a.data(), b.data(), a.size());
}

double inner_of_sizes(const In<double>& a, const In<double>& b) {
  require_size(b.size(), a.size(), "b");
  constexpr std::size_t kBlock = 1024;
  double sum = 0.0, x[kBlock], y[kBlock];
  for (std::size_t i = 0; i < a.size(); i += kBlock) {
    const std::size_t n = std::min(kBlock, a.size() - i);
    for (std::size_t k = 0; k < n; ++k) x[k] = std::abs(a.data()[i + k]);
    for (std::size_t k = 0; k < n; ++k) y[k] = std::abs(b.data()[i + k]);
    sum += dot(x, y, n);
  }
  return sum;
}

bool signs(const In<double>& y) { return all_signs(y.data(), y.size()); }

bool finite(const In<double>& y) { return all_finite(y.data(), y.size()); }

bool within(const In<double>& a, double limit) {
  return std::all_of(a.data(), a.data() + a.size(), [limit](double x) { return std::abs(x) <= limit; });
}

// Rounding of what a plane's inequality is made of is charged to it.
double widest(const In<double>& slopes, const In<double>& offsets, const In<double>& reach, double upper) {
  const std::size_t n = slopes.size();
  require_size(offsets.size(), n, "offsets");
  require_size(reach.size(), n, "reach");
  double right = std::numeric_limits<double>::infinity(), left = right;
  for (std::size_t i = 0; i < n; ++i) {
    const double slope = slopes.data()[i], b = offsets.data()[i], r = reach.data()[i];
    const double room = upper - b + r + 1e-12 * (std::abs(upper) + std::abs(b) + r);
    if (slope > 0.0) right = std::min(right, room / slope);
    if (slope < 0.0) left = std::min(left, room / -slope);
  }
  return std::max({0.0, right, left});
}

}  // namespace

void bind_vectors(nb::module_& m) {
  m.def("elastic_dual", &dual, nb::arg("c"), nb::arg("lam"), nb::arg("u"), nb::arg("v"), nb::arg("lower"),
        nb::arg("upper"), nb::arg("box"),
        "min over w of sum_j lam (u_j |w_j| + v_j w_j^2 / 2) + c_j w_j, and where it is.\n\n"
        "w_j lies between lower_j and upper_j and within box_j of 0. One number stands for all coordinates.");
  m.def("inner", &inner, nb::arg("a"), nb::arg("b"), "The inner product of two vectors, on the calling thread.");
  m.def("inner_of_sizes", &inner_of_sizes, nb::arg("a"), nb::arg("b"), "sum_j |a_j| |b_j|, on the calling thread.");
  m.def("widest", &widest, nb::arg("slopes"), nb::arg("offsets"), nb::arg("reach"), nb::arg("upper"),
        "The largest |v| with slopes_i v <= upper - offsets_i + reach_i for all i; inf if a side is open.");
  m.def("all_signs", &signs, nb::arg("y"), "Whether all numbers are -1 or 1.");
  m.def("all_finite", &finite, nb::arg("y"), "Whether all numbers are finite.");
  m.def("within", &within, nb::arg("a"), nb::arg("limit"), "Whether |a_j| <= limit for all j; never with a NaN.");
}

}  // namespace bmrm::py
