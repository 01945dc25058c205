// Dual coordinate descent: every loss with every layout of the data.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bmrm/kernel/dual.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

void steps(const Matrix& X, OptionalIn weight, double scale, OptionalIn inverse, double lam, bool intercept,
           Out<double> q, int n_threads) {
  require_size(q.size(), X.n_rows(), "q");
  const Rows rows{{}, optional_view(weight, X.n_rows(), "weight"), scale};
  const auto D = optional_view(inverse, X.n_cols() + intercept, "inverse");
  nb::gil_scoped_release unlocked;
  std::visit([&](const auto& view_of_X) { dual_steps(view_of_X, rows, D, lam, intercept, view(q), n_threads); },
             X.view());
}

void start(const AnyScalarLoss& loss, In<double> v, In<double> y, double q, Out<double> s, Out<double> b,
           int n_threads) {
  require_size(y.size(), v.size(), "y");
  require_size(s.size(), v.size(), "s");
  require_size(b.size(), v.size(), "b");
  nb::gil_scoped_release unlocked;
  std::visit([&](const auto& one) { dual_start(one, view(v), view(y), q, DualPoint{{}, view(s), view(b)}, n_threads); },
             loss);
}

std::tuple<double, double, double, std::size_t, std::size_t, std::size_t, std::size_t> epoch(
    const Matrix& X, const AnyScalarLoss& loss, In<double> y, OptionalIn weight, double scale, OptionalIn offset,
    In<double> q, OptionalIn inverse, double lam, bool intercept, Out<double> w, Out<double> s, Out<double> b,
    Out<std::int64_t> active, std::uint64_t key, double reach, Out<double> pace, Out<double> scratch, int n_threads) {
  const std::size_t m = X.n_rows(), d = X.n_cols() + intercept;
  const Rows rows = rows_of(y, weight, scale, m);
  require_size(q.size(), m, "q");
  require_size(w.size(), d, "w");
  require_size(s.size(), m, "s");
  require_size(b.size(), m, "b");
  require_rows(view(active), m);
  require_size(pace.size(), 2, "pace");
  require_size(scratch.size(), 2 * d, "scratch");
  const double visited = static_cast<double>(X.n_entries()) * static_cast<double>(active.size());
  const std::size_t entries = m > 0 ? static_cast<std::size_t>(visited / static_cast<double>(m)) : 0;
  const DualProblem problem{
      rows, optional_view(offset, m, "offset"), view(q), optional_view(inverse, d, "inverse"), lam, intercept};
  nb::gil_scoped_release unlocked;
  const DualPoint point{view(w), view(s), view(b)};
  const DualBlocks by{dual_merges(entries, d), view(pace)[0], view(pace)[1], view(scratch), n_threads};
  const DualEpoch e = std::visit(
      [&](const auto& one, const auto& view_of_X) {
        DualCoordinates rows_of_X(view_of_X, one, problem, point);
        return by.n_merges > 0 ? rows_of_X.epoch(view(active), key, reach, by)
                               : rows_of_X.epoch(view(active), key, reach);
      },
      loss, X.view());
  return {e.estimate, e.movement, e.variation, e.n_updates, e.n_active, e.n_entries, by.n_merges};
}

std::tuple<double, double, double, double, std::size_t> check(const AnyScalarLoss& loss, In<double> f, In<double> y,
                                                              OptionalIn weight, double scale, OptionalIn offset,
                                                              Out<double> s, Out<double> b, double reach,
                                                              Out<std::int64_t> active, int n_threads) {
  const std::size_t m = f.size();
  const Rows rows = rows_of(y, weight, scale, m);
  require_size(s.size(), m, "s");
  require_size(b.size(), m, "b");
  require_size(active.size(), m, "active");
  nb::gil_scoped_release unlocked;
  const DualCheck c = std::visit(
      [&](const auto& one) {
        return dual_check(one, view(f), rows, optional_view(offset, m, "offset"), DualPoint{{}, view(s), view(b)},
                          reach, view(active), n_threads);
      },
      loss);
  return {c.value, c.gap, c.offset, c.size, c.n_active};
}

}  // namespace

void bind_dual(nb::module_& m) {
  m.def("dual_steps", &steps, "X"_a, "weight"_a.none(), "scale"_a, "inverse"_a.none(), "lam"_a, "intercept"_a, "q"_a,
        "n_threads"_a, "q[i] = weight[i] <x_i, inverse x_i> / lam, the constant included.");
  m.def("dual_start", &start, "loss"_a, "v"_a, "y"_a, "q"_a, "s"_a, "b"_a, "n_threads"_a,
        "s[i] and b[i] of the plane that touches l at the proximal point of v[i].");
  m.def("dual_epoch", &epoch, "X"_a, "loss"_a, "y"_a, "weight"_a.none(), "scale"_a, "offset"_a.none(), "q"_a,
        "inverse"_a.none(), "lam"_a, "intercept"_a, "w"_a, "s"_a, "b"_a, "active"_a, "key"_a, "reach"_a, "pace"_a,
        "scratch"_a, "n_threads"_a,
        "One visit to each active row in random order; changes w, s, b, pace and the order of active.\n\n"
        "Returns the estimated gap, the largest change of a score by its own row, the length of the way of w, the\n"
        "numbers of changed rows, of rows still active (they come first), of entries visited, and of merges of two\n"
        "blocks of rows.");
  m.def("dual_check", &check, "loss"_a, "f"_a, "y"_a, "weight"_a.none(), "scale"_a, "offset"_a.none(), "s"_a, "b"_a,
        "reach"_a, "active"_a, "n_threads"_a,
        "Sums over all rows with true scores f; fills active with all rows, settled ones last.\n\n"
        "Returns the weighted sums of l(f), of l(f) - s f - b, of b + s offset, of the sizes of those terms, and the\n"
        "number of active rows.");
}

}  // namespace bmrm::py
