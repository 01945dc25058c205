// Data matrices: products, the fused pass, checks.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "arrays.hpp"
#include "bmrm/kernel/row_order.hpp"
#include "bmrm/kernel/row_system.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

void check_pointers(std::span<const std::int64_t> indptr, std::size_t n_entries) {
  require(!indptr.empty() && indptr[0] == 0, "indptr must start with 0");
  const auto falls = std::adjacent_find(indptr.begin(), indptr.end(), std::greater<>());
  if (falls != indptr.end()) require(false, "indptr decreases at row " + std::to_string(falls - indptr.begin()));
  require(static_cast<std::size_t>(indptr.back()) == n_entries, "indptr ends with " + std::to_string(indptr.back()) +
                                                                    ", but there are " + std::to_string(n_entries) +
                                                                    " entries");
}

// The kernels write where indices say, so that only a caller who has checked them may do without.
template <class Index>
void require_columns(std::span<const Index> indices, std::size_t n_cols) {
  const auto bad = [n_cols](Index j) { return j < 0 || static_cast<std::uint64_t>(j) >= n_cols; };
  const auto last = std::min<std::uint64_t>(n_cols, std::numeric_limits<Index>::max());
  if (check_range(indices.data(), indices.size(), static_cast<Index>(static_cast<std::int64_t>(last) - 1)).in_range)
    return;
  const auto first = std::find_if(indices.begin(), indices.end(), bad);
  if (first != indices.end())
    require(false, "index " + std::to_string(*first) +
                       " is no column; expected 0 to n_cols - 1, with n_cols = " + std::to_string(n_cols));
}

template <class Value, class Index>
std::unique_ptr<Matrix> csr(In<Value> values, In<Index> indices, In<std::int64_t> indptr, std::size_t n_cols,
                            bool checked) {
  require_size(values.size(), indices.size(), "values");
  check_pointers(view(indptr), indices.size());
  if (!checked) require_columns(view(indices), n_cols);
  return std::make_unique<CsrMatrix<Value, Index>>(
      Csr<Value, Index>{indptr.size() - 1, n_cols, indptr.data(), indices.data(), values.data()});
}

template <class Value>
std::unique_ptr<Matrix> dense(InMatrix<Value> X) {
  return std::make_unique<DenseMatrix<Value>>(Dense<Value>{X.shape(0), X.shape(1), X.data()});
}

void dot(const Matrix& X, In<double> w, Out<double> out, int n_threads) {
  require_size(w.size(), X.n_cols(), "w");
  require_size(out.size(), X.n_rows(), "out");
  nb::gil_scoped_release unlocked;
  X.dot(w.data(), out.data(), n_threads);
}

void tdot(Matrix& X, In<double> g, Out<double> out, int n_threads) {
  require_size(g.size(), X.n_rows(), "g");
  require_size(out.size(), X.n_cols(), "out");
  nb::gil_scoped_release unlocked;
  X.tdot(g.data(), out.data(), n_threads);
}

void dot_wide(const Matrix& X, InMatrix<double> W, OutMatrix<double> out, int n_threads) {
  require_size(W.shape(0), X.n_cols(), "W");
  require_size(out.shape(0), X.n_rows(), "out");
  require_size(out.shape(1), W.shape(1), "a row of out");
  nb::gil_scoped_release unlocked;
  X.dot_wide(W.data(), W.shape(1), out.data(), n_threads);
}

void tdot_wide(Matrix& X, InMatrix<double> L, OutMatrix<double> out, int n_threads) {
  require_size(L.shape(0), X.n_rows(), "L");
  require_size(out.shape(0), X.n_cols(), "out");
  require_size(out.shape(1), L.shape(1), "a row of out");
  nb::gil_scoped_release unlocked;
  X.tdot_wide(L.data(), L.shape(1), out.data(), n_threads);
}

void check_rows(const Matrix& X, std::span<const std::int64_t> rows) { require_rows(rows, X.n_rows()); }

void dot_rows(const Matrix& X, In<std::int64_t> rows, In<double> w, Out<double> out, int n_threads) {
  require_size(w.size(), X.n_cols(), "w");
  require_size(out.size(), rows.size(), "out");
  check_rows(X, view(rows));
  nb::gil_scoped_release unlocked;
  X.dot_rows(view(rows), w.data(), out.data(), n_threads);
}

void gram(Matrix& X, In<std::int64_t> rows, In<double> c, OutMatrix<double> out, int n_threads) {
  require_size(c.size(), rows.size(), "c");
  require_size(out.shape(0), X.n_cols(), "out");
  require_size(out.shape(1), X.n_cols(), "a row of out");
  check_rows(X, view(rows));
  nb::gil_scoped_release unlocked;
  X.gram(view(rows), c.data(), out.data(), n_threads);
}

void row_system(const Matrix& X, In<std::int64_t> rows, In<double> c, OptionalIn inverse, double constant,
                OutMatrix<double> out, Out<double> weights, int n_threads) {
  const std::size_t n = rows.size();
  require_size(c.size(), n, "c");
  require_size(weights.size(), n, "weights");
  require_size(out.shape(0), n, "out");
  require_size(out.shape(1), n, "a row of out");
  check_rows(X, view(rows));
  const auto D = optional_view(inverse, X.n_cols(), "inverse");
  const RowSystem system{view(rows), view(c), D, constant, out.data(), weights.data()};
  nb::gil_scoped_release unlocked;
  std::visit([&](const auto& some) { bmrm::row_system(some, system, n_threads); }, X.view());
}

void squares(Matrix& X, In<double> c, Out<double> out, int n_threads) {
  require_size(c.size(), X.n_rows(), "c");
  require_size(out.size(), X.n_cols(), "out");
  nb::gil_scoped_release unlocked;
  X.squares(c.data(), out.data(), n_threads);
}

void row_norms(const Matrix& X, Out<double> out, int n_threads) {
  require_size(out.size(), X.n_rows(), "out");
  nb::gil_scoped_release unlocked;
  X.row_norms(out.data(), n_threads);
}

double square_sum(const Matrix& X, int n_threads) {
  nb::gil_scoped_release unlocked;
  return X.square_sum(n_threads);
}

std::pair<double, double> evaluate(Matrix& X, const AnyScalarLoss& loss, In<double> w, double constant,
                                   OptionalIn offset, In<double> y, OptionalIn weight, double scale, Out<double> scores,
                                   Out<double> slopes, Out<double> gradient, int n_threads) {
  require_size(w.size(), X.n_cols(), "w");
  require_size(scores.size(), X.n_rows(), "scores");
  require_size(slopes.size(), X.n_rows(), "slopes");
  require_size(gradient.size(), X.n_cols(), "gradient");
  const Rows rows = rows_of(y, weight, scale, X.n_rows());
  const Shift shift{constant, optional_view(offset, X.n_rows(), "offset")};
  nb::gil_scoped_release unlocked;
  const LossSum sum = X.evaluate(loss, w.data(), shift, rows, scores.data(), slopes.data(), gradient.data(), n_threads);
  return {sum.value, sum.slope};
}

std::optional<std::pair<std::int64_t, std::int64_t>> first_nonfinite(const Matrix& X, int n_threads) {
  nb::gil_scoped_release unlocked;
  const auto position = X.first_nonfinite(n_threads);
  if (!position) return std::nullopt;
  return std::pair{position->row, position->column};
}

// (sorted, bad row or -1, bad index)
template <class Index>
std::tuple<bool, std::int64_t, std::int64_t> check_indices(In<std::int64_t> indptr, In<Index> indices,
                                                           std::int64_t n_cols, int n_threads) {
  require(n_cols >= 0, "n_cols must not be negative");
  check_pointers(view(indptr), indices.size());
  nb::gil_scoped_release unlocked;
  bool sorted = true;
  const auto bad = first_out_of_range(view(indptr), view(indices), n_cols, sorted, n_threads);
  if (!bad) return {sorted, -1, 0};
  return {sorted, bad->row, static_cast<std::int64_t>(indices.data()[bad->column])};
}

template <class Value, class Index>
bool order_rows(In<std::int64_t> indptr, In<Index> indices, In<Value> values, Out<Index> to_indices,
                Out<Value> to_values, int n_threads) {
  check_pointers(view(indptr), indices.size());
  require_size(values.size(), indices.size(), "values");
  require_size(to_indices.size(), indices.size(), "to_indices");
  require_size(to_values.size(), indices.size(), "to_values");
  nb::gil_scoped_release unlocked;
  return bmrm::order_rows(view(indptr), indices.data(), values.data(), to_indices.data(), to_values.data(), n_threads);
}

template <class Value, class Index>
void bind_csr(nb::module_& m) {
  m.def("csr", &csr<Value, Index>, "values"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_cols"_a,
        "checked"_a = false, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(),
        "A matrix of compressed rows over the arrays given; nothing is copied.\n\n"
        "checked: whether check_indices has found all indices within n_cols.");
  m.def("order_rows", &order_rows<Value, Index>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "to_indices"_a.noconvert(), "to_values"_a.noconvert(), "n_threads"_a = 1,
        "Copy rows with their indices increasing; False if an index occurs twice in a row.");
}

template <class Value>
void bind_dense(nb::module_& m) {
  m.def("dense", &dense<Value>, "X"_a.noconvert(), nb::keep_alive<0, 1>(),
        "A dense matrix over a C-ordered array; nothing is copied.");
}

template <class Index>
void bind_check(nb::module_& m) {
  m.def("check_indices", &check_indices<Index>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "n_cols"_a,
        "n_threads"_a = 1,
        "Whether rows increase strictly, and the first row (or -1) with an index outside [0, n_cols), and "
        "that index.");
}

}  // namespace

void bind_matrix(nb::module_& m) {
  nb::class_<Matrix>(m, "Matrix", "A data matrix, dense or of compressed rows, float32 or float64.")
      .def_prop_ro("n_rows", &Matrix::n_rows)
      .def_prop_ro("n_cols", &Matrix::n_cols)
      .def_prop_ro("n_entries", &Matrix::n_entries)
      .def_prop_ro("fuses", &Matrix::fuses, "Whether evaluate reads the data once instead of twice.")
      .def(
          "sum_depth", &Matrix::sum_depth, "k"_a = 1,
          "The most additions on the way of one row's term into an entry of X' g, or of X' G for k slopes of each row.")
      .def("dot", &dot, "w"_a, "out"_a, "n_threads"_a = 1, "out = X w")
      .def("tdot", &tdot, "g"_a, "out"_a, "n_threads"_a = 1, "out = X' g")
      .def("dot_wide", &dot_wide, "W"_a, "out"_a, "n_threads"_a = 1, "out = X W, for k scores of each row")
      .def("tdot_wide", &tdot_wide, "L"_a, "out"_a, "n_threads"_a = 1, "out = X' L, for k slopes of each row")
      .def("dot_rows", &dot_rows, "rows"_a, "w"_a, "out"_a, "n_threads"_a = 1, "out[k] = <x_rows[k], w>")
      .def("gram", &gram, "rows"_a, "c"_a, "out"_a, "n_threads"_a = 1,
           "The lower triangle of out = sum over k of c[k] x x', x the row rows[k].")
      .def("row_system", &row_system, "rows"_a, "c"_a, "inverse"_a.none(), "constant"_a, "out"_a, "weights"_a,
           "n_threads"_a = 1,
           "The lower triangle of I + diag(sqrt(c)) X D X' diag(sqrt(c)) for some rows, scaled to a diagonal of "
           "ones.\n\n"
           "D is the diagonal given or the identity, constant that of a column of ones; weights are sqrt(c), scaled.")
      .def("squares", &squares, "c"_a, "out"_a, "n_threads"_a = 1, "out[j] = sum over i of c[i] X[i, j]^2")
      .def("row_norms", &row_norms, "out"_a, "n_threads"_a = 1, "out[i] = |x_i|^2")
      .def("square_sum", &square_sum, "n_threads"_a = 1, "The sum of the squares of all entries.")
      .def("evaluate", &evaluate, "loss"_a, "w"_a, "constant"_a, "offset"_a.none(), "y"_a, "weight"_a.none(), "scale"_a,
           "scores"_a, "slopes"_a, "gradient"_a, "n_threads"_a = 1,
           "scores = X w + constant + offset, weighted slopes of the loss, gradient = X' slopes.\n\n"
           "Returns the weighted value and the sum of the slopes.")
      .def("first_nonfinite", &first_nonfinite, "n_threads"_a = 1, "(row, column) of the first NaN or infinity.");
  bind_csr<float, std::int32_t>(m);
  bind_csr<float, std::int64_t>(m);
  bind_csr<double, std::int32_t>(m);
  bind_csr<double, std::int64_t>(m);
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_check<std::int32_t>(m);
  bind_check<std::int64_t>(m);
}

}  // namespace bmrm::py
