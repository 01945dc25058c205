// Coordinate descent on a working set, and what lower bounds need of a loss: its conjugate.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include "arrays.hpp"
#include "bmrm/kernel/conjugate_sum.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

void check_columns(std::span<const std::int64_t> columns, std::size_t n_cols) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const bool in_range = columns[k] >= 0 && static_cast<std::size_t>(columns[k]) <= n_cols;
    require(in_range && (k == 0 || columns[k] > columns[k - 1]), "columns must increase, from 0 to n_cols at most");
  }
}

Penalty penalty_of(In<double> u, In<double> v, In<double> lower, In<double> upper, std::size_t k) {
  require_size(u.size(), k, "u");
  require_size(v.size(), k, "v");
  require_size(lower.size(), k, "lower");
  require_size(upper.size(), k, "upper");
  for (std::size_t j = 0; j < k; ++j)
    if (lower.data()[j] > upper.data()[j]) require(false, "lower lies above upper at place " + std::to_string(j));
  return {view(u), view(v), view(lower), view(upper)};
}

void selected_gram(const Matrix& X, In<std::int64_t> columns, In<double> D, Out<double> H, int n_threads) {
  require_size(D.size(), X.n_rows(), "D");
  require_size(H.size(), columns.size() * columns.size(), "H");
  check_columns(view(columns), X.n_cols());
  nb::gil_scoped_release unlocked;
  X.selected_gram(view(columns), D.data(), H.data(), n_threads);
}

std::pair<double, double> selected_size(const Matrix& X, In<std::int64_t> columns) {
  check_columns(view(columns), X.n_cols());
  nb::gil_scoped_release unlocked;
  const SelectedSize size = X.selected_size(view(columns));
  return {size.entries, size.pairs};
}

void column_sizes(const Matrix& X, OptionalIn weight, Out<double> squares, Out<std::int64_t> counts, int n_threads) {
  const auto p = optional_view(weight, X.n_rows(), "weight");
  require_size(squares.size(), X.n_cols(), "squares");
  require_size(counts.size(), X.n_cols(), "counts");
  nb::gil_scoped_release unlocked;
  X.column_sizes(p.empty() ? nullptr : p.data(), squares.data(), counts.data(), n_threads);
}

std::unique_ptr<Columns> columns_of(const Matrix& X) {
  nb::gil_scoped_release unlocked;
  return X.columns();
}

std::pair<int, double> descend_with_matrix(In<double> H, Out<double> slope, In<double> u, In<double> v,
                                           In<double> lower, In<double> upper, Out<double> z, double tol,
                                           int max_epochs) {
  require_size(H.size(), z.size() * z.size(), "H");
  require_size(slope.size(), z.size(), "slope");
  const Penalty penalty = penalty_of(u, v, lower, upper, z.size());
  nb::gil_scoped_release unlocked;
  const Descent done = bmrm::descend_with_matrix(view(H), penalty, view(slope), view(z), tol, max_epochs);
  return {done.epochs, done.violation};
}

std::pair<int, double> descend(const Columns& X, In<std::int64_t> working, In<double> D, In<double> g, In<double> u,
                               In<double> v, In<double> lower, In<double> upper, Out<double> z, Out<double> q,
                               double tol, int max_epochs, int n_threads) {
  check_columns(view(working), X.n_cols());
  require_size(D.size(), X.n_rows(), "D");
  require_size(g.size(), working.size(), "g");
  require_size(z.size(), working.size(), "z");
  require_size(q.size(), X.n_rows(), "q");
  const Penalty penalty = penalty_of(u, v, lower, upper, z.size());
  nb::gil_scoped_release unlocked;
  const Descent done =
      X.descend(view(working), D.data(), view(g), penalty, view(z), q.data(), tol, max_epochs, n_threads);
  return {done.epochs, done.violation};
}

std::pair<double, double> conjugate(const AnyScalarLoss& loss, In<double> s, double theta, In<double> y,
                                    OptionalIn weight, double scale) {
  const Rows rows = rows_of(y, weight, scale, s.size());
  nb::gil_scoped_release unlocked;
  const ConjugateSum sum = conjugate_sum(loss, view(s), theta, rows);
  return {sum.value, sum.size};
}

void clip_slopes(const AnyScalarLoss& loss, Out<double> s, In<double> y) {
  require_size(y.size(), s.size(), "y");
  nb::gil_scoped_release unlocked;
  bmrm::clip_slopes(loss, view(s), view(y));
}

}  // namespace

void bind_coordinate(nb::module_& m) {
  m.def("selected_gram", &selected_gram, "X"_a, "columns"_a, "D"_a, "H"_a, "n_threads"_a = 1,
        "H = X_W' D X_W, row after row, for increasing columns W; column n_cols is the constant one.");
  m.def("selected_size", &selected_size, "X"_a, "columns"_a,
        "Entries of the columns, and pairs of entries of the same row: about what an epoch and X'DX cost.");
  m.def("column_sizes", &column_sizes, "X"_a, "weight"_a.none(), "squares"_a, "counts"_a, "n_threads"_a = 1,
        "Adds sum_i weight_i x_ij^2, and writes the number of entries of each column.");
  m.def("descend_with_matrix", &descend_with_matrix, "H"_a, "slope"_a, "u"_a, "v"_a, "lower"_a, "upper"_a, "z"_a,
        "tol"_a, "max_epochs"_a,
        "Coordinate descent on <slope, z> + z'Hz/2 + u|z| + v z^2/2 around the given z: (epochs, violation).");
  nb::class_<Columns>(m, "Columns", "A copy of the data by columns.")
      .def_prop_ro("n_rows", &Columns::n_rows)
      .def_prop_ro("n_cols", &Columns::n_cols)
      .def("descend", &descend, "working"_a, "D"_a, "g"_a, "u"_a, "v"_a, "lower"_a, "upper"_a, "z"_a, "q"_a, "tol"_a,
           "max_epochs"_a, "n_threads"_a = 1,
           "As descend_with_matrix for H = X'DX, which is not formed; g belongs to w, and q holds D X (z - w).");
  m.def("columns", &columns_of, "X"_a, "Copies a matrix by columns.");
  m.def("conjugate", &conjugate, "loss"_a, "s"_a, "theta"_a, "y"_a, "weight"_a.none(), "scale"_a,
        "sum_i weight_i l*(theta s_i, y_i), and the sum of the absolute values.");
  m.def("clip_slopes", &clip_slopes, "loss"_a, "s"_a, "y"_a, "Moves each s_i into the range of the loss's slopes.");
  m.def("largest_curvature", &any_largest_curvature, "loss"_a, "A bound of the second derivative; inf if none.");
}

}  // namespace bmrm::py
