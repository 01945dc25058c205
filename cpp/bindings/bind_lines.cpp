// Compiled losses on lines, and the exact search. A file of its own because it is long to compile.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bmrm/kernel/line_search.hpp"
#include "held_line.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

std::unique_ptr<HeldLine> make_held_line(const AnyScalarLoss& loss, In<double> f, In<double> g, In<double> y,
                                         OptionalIn weight, double scale) {
  require_size(g.size(), f.size(), "g");
  const Rows rows = rows_of(y, weight, scale, f.size());
  return hold(make_line(loss, view(f), view(g), rows), f, g, y, weight);
}

std::tuple<double, double, double> evaluate_line(const HeldLine& line, double t, int n_threads) {
  nb::gil_scoped_release unlocked;
  const AlongValue v = line.term->evaluate(t, n_threads);
  return {v.value, v.left, v.right};
}

std::tuple<double, double, int, bool> minimize(const std::vector<HeldLine*>& lines, double p, double q, double guess,
                                               int n_threads, double accuracy) {
  require(guess > 0.0, "guess must be positive");
  std::vector<LineTerm*> terms;
  for (HeldLine* line : lines) {
    require(line != nullptr, "lines has None in it; expected lines");
    terms.push_back(line->term.get());
  }
  nb::gil_scoped_release unlocked;
  const LineMinimum best = LineSearch(terms, p, q, n_threads, accuracy).minimize(guess);
  return {best.t, best.slope, best.trials, best.bounded};
}

}  // namespace

void bind_lines(nb::module_& m) {
  nb::class_<HeldLine>(m, "Line", "t -> sum_i weight_i l(f_i + t g_i, y_i).")
      .def("evaluate", &evaluate_line, "t"_a, "n_threads"_a = 1, "Value, left slope, right slope.");
  m.def("line", &make_held_line, "loss"_a, "f"_a, "g"_a, "y"_a, "weight"_a.none(), "scale"_a,
        "The loss on a line through scores f in direction g.");
  m.def("minimize_on_line", &minimize, "lines"_a, "p"_a, "q"_a, "guess"_a = 1.0, "n_threads"_a = 1, "accuracy"_a = 1e-9,
        "Minimum over t >= 0 of p t + q t^2/2 + the lines: (t, right slope, trials, bounded).\n\n"
        "The slope there is no more than accuracy times that at 0.");
}

}  // namespace bmrm::py
