#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bmrm/kernel/simplex_qp_state.hpp"

namespace nb = nanobind;

namespace bmrm::py {
namespace {

std::span<const double> finite(const In<double>& array, std::size_t expected, const char* name) {
  require_size(array.size(), expected, name);
  const auto values = view(array);
  require(std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }),
          std::string(name) + " has entries that are not finite");
  return values;
}

void construct(ActiveSetQp* self, const In<double>& c) { new (self) ActiveSetQp(finite(c, c.size(), "c")); }

void restore(ActiveSetQp* self, const In<double>& state) {
  new (self) ActiveSetQp(ActiveSetQp::unpacked(Unpacker(view(state))));
}

void add(ActiveSetQp& self, const In<double>& h, const In<double>& column) {
  self.add(finite(h, self.size() + 1, "h"), finite(column, self.rows(), "column"));
}

auto solve(ActiveSetQp& self, const In<double>& b, double tol, std::optional<std::size_t> max_steps) {
  const auto linear = finite(b, self.size(), "b");
  require(tol >= 0.0, "tol must not be negative");
  std::vector<double> x;
  {
    nb::gil_scoped_release unlocked;
    x = self.solve(linear, tol, max_steps.value_or(20 * self.size() + 200));
  }
  return give(std::move(x));
}

}  // namespace

void bind_qp(nb::module_& m) {
  nb::class_<ActiveSetQp>(m, "ActiveSetQp",
                          "Minimizes 1/2 x'H x - b'x subject to x >= 0 and C x = c, for a positive semidefinite H.\n\n"
                          "A primal active-set method that keeps its point, its support and the factor on it\n"
                          "between solves. c: right-hand side of the equality rows. Not for use by two threads\n"
                          "at a time.")
      .def("__init__", &construct, nb::arg("c"))
      .def(
          "__deepcopy__", [](const ActiveSetQp& self, const nb::object&) { return ActiveSetQp(self); }, nb::arg("memo"),
          "A copy with the same point, support and factor: it goes on as this one does, to the last digit.")
      .def(
          "__getstate__", [](const ActiveSetQp& self) { return give(self.packed()); },
          "All of it as one array of numbers.")
      .def("__setstate__", &restore, nb::arg("state"),
           "Become what `__getstate__` was asked of; ValueError for an array of anything else.")
      .def("add", &add, nb::arg("h"), nb::arg("column"),
           "Append a variable at zero.\n\nh: its entries of H with the variables there are, then with "
           "itself.\n"
           "column: its coefficients in the rows of C.")
      .def(
          "remove", [](ActiveSetQp& self, const In<std::int64_t>& indices) { self.remove(view(indices)); },
          nb::arg("indices"),
          "Remove variables, given in ascending order; ValueError unless each of them is zero.\n\n"
          "The others keep their order and values.")
      .def(
          "set_start", [](ActiveSetQp& self, const In<double>& x) { self.set_start(finite(x, self.size(), "x")); },
          nb::arg("x"), "Start the next solve from a feasible point; ValueError if it is not feasible.")
      .def("solve", &solve, nb::arg("b"), nb::arg("tol") = 1e-14, nb::arg("max_steps") = nb::none(),
           "Solve for the linear term b from the current point and return the minimizer.\n\n"
           "tol: reduced costs above -tol, relative to the terms they are made of, count as nonnegative.\n"
           "max_steps: the current point, feasible too, is returned after this many (default 20 n + 200).\n"
           "RuntimeError if the problem is unbounded.")
      .def(
          "multipliers", [](const ActiveSetQp& self) { return give(std::vector<double>(self.multipliers())); },
          "Multipliers nu of the rows: H x - b - C'nu is nonnegative, and zero where x is positive.")
      .def_prop_ro("size", &ActiveSetQp::size, "Number of variables.")
      .def_prop_ro(
          "x", [](const ActiveSetQp& self) { return give(std::vector<double>(self.x())); }, nb::rv_policy::automatic,
          "The current point (a copy).")
      .def_prop_ro("steps", &ActiveSetQp::steps, "Active-set steps of the last solve.")
      .def_prop_ro("optimal", &ActiveSetQp::optimal,
                   "Whether the last solve ended with an optimal point, and not at the limit of steps.")
      .def_prop_ro("violation", &ActiveSetQp::violation,
                   "Most negative reduced cost after the last solve, relative to the terms it is made of.");
}

}  // namespace bmrm::py
