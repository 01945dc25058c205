// Losses with k scores for each row, and scores along the paths of a tree.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>

#include "arrays.hpp"
#include "bmrm/kernel/vector_rows.hpp"
#include "held_line.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

// The rows together with the arrays they look at.
struct HeldRows {
  std::unique_ptr<VectorRows> rows;
  std::vector<nb::object> held;
};

using OptionalMatrix = std::optional<InMatrix<double>>;

std::span<const double> square_view(const OptionalMatrix& matrix, std::size_t k, const char* name) {
  if (!matrix) return {};
  require_size(matrix->shape(0), k, name);
  require_size(matrix->shape(1), k, name);
  return {matrix->data(), k * k};
}

void require_classes(std::span<const std::int32_t> y, std::size_t k) {
  const auto bad = std::find_if(y.begin(), y.end(), [k](std::int32_t c) { return c < 0 || std::size_t(c) >= k; });
  if (bad != y.end()) require(false, "class " + std::to_string(*bad) + " does not exist");
}

template <class Family, class... Objects>
std::unique_ptr<HeldRows> held_rows(Family family, std::size_t n_rows, const Objects&... objects) {
  return std::make_unique<HeldRows>(
      HeldRows{std::make_unique<VectorRowsOf<Family>>(family, n_rows), {nb::cast(objects)...}});
}

std::unique_ptr<HeldRows> max_margin(In<std::int32_t> y, std::size_t k, OptionalMatrix delta, OptionalMatrix factor) {
  require_classes(view(y), k);
  const MaxMargin family{k, view(y), square_view(delta, k, "delta"), square_view(factor, k, "factor")};
  return held_rows(family, y.size(), y, delta, factor);
}

std::unique_ptr<HeldRows> multilabel(In<std::int64_t> indptr, In<std::int32_t> labels, std::size_t k, double margin,
                                     OptionalMatrix delta) {
  require_classes(view(labels), k);
  require_rising(view(indptr), labels.size(), "indptr");
  const MultilabelMargin family{k, view(indptr), view(labels), margin, square_view(delta, k, "delta")};
  return held_rows(family, indptr.size() - 1, indptr, labels, delta);
}

std::unique_ptr<HeldRows> softmax(In<std::int32_t> y, std::size_t k) {
  require_classes(view(y), k);
  return held_rows(SoftmaxRows{k, view(y)}, y.size(), y);
}

void require_scores(const HeldRows& self, std::size_t n, std::size_t k, const char* name) {
  require_size(n, self.rows->n_rows(), name);
  require_size(k, self.rows->n_scores(), name);
}

Shares shares_of(const HeldRows& self, const OptionalIn& weight, double scale) {
  return {optional_view(weight, self.rows->n_rows(), "weight"), scale};
}

double evaluate(const HeldRows& self, InMatrix<double> scores, OptionalIn weight, double scale,
                OutMatrix<double> slopes, int n_threads) {
  require_scores(self, scores.shape(0), scores.shape(1), "scores");
  require_scores(self, slopes.shape(0), slopes.shape(1), "slopes");
  const Shares shares = shares_of(self, weight, scale);
  nb::gil_scoped_release unlocked;
  return self.rows->evaluate(scores.data(), shares, slopes.data(), n_threads);
}

void extreme(const HeldRows& self, InMatrix<double> scores, InMatrix<double> along, OptionalIn weight, double scale,
             OutMatrix<double> slopes) {
  require_scores(self, scores.shape(0), scores.shape(1), "scores");
  require_scores(self, along.shape(0), along.shape(1), "along");
  require_scores(self, slopes.shape(0), slopes.shape(1), "slopes");
  const Shares shares = shares_of(self, weight, scale);
  nb::gil_scoped_release unlocked;
  self.rows->extreme(scores.data(), along.data(), shares, slopes.data());
}

std::unique_ptr<HeldLine> line(nb::handle_t<HeldRows> self, InMatrix<double> f, InMatrix<double> g, OptionalIn weight,
                               double scale) {
  const auto& rows = nb::cast<const HeldRows&>(self);
  require_scores(rows, f.shape(0), f.shape(1), "f");
  require_scores(rows, g.shape(0), g.shape(1), "g");
  const Shares shares = shares_of(rows, weight, scale);
  return hold(rows.rows->line(f.data(), g.data(), shares), nb::borrow(self), f, g, weight);
}

void check_tree(In<std::int64_t> parent, std::size_t n) {
  require_size(parent.size(), n, "parent");
  for (std::size_t v = 0; v < n; ++v)
    require(parent.data()[v] < std::int64_t(v), "a parent must come before its child");
}

// S_v = F_v + S_parent(v), in place; a root's parent is negative.
void path_sums(In<std::int64_t> parent, OutMatrix<double> scores) {
  const std::size_t m = scores.shape(0), n = scores.shape(1);
  check_tree(parent, n);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < m; ++i) {
    double* s = scores.data() + i * n;
    for (std::size_t v = 0; v < n; ++v)
      if (parent.data()[v] >= 0) s[v] += s[parent.data()[v]];
  }
}

// The transposed map: the slope of a node is the sum of those below it and its own, in place.
void path_slopes(In<std::int64_t> parent, OutMatrix<double> slopes) {
  const std::size_t m = slopes.shape(0), n = slopes.shape(1);
  check_tree(parent, n);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < m; ++i) {
    double* l = slopes.data() + i * n;
    for (std::size_t v = n; v-- > 0;)
      if (parent.data()[v] >= 0) l[parent.data()[v]] += l[v];
  }
}

}  // namespace

void bind_wide(nb::module_& m) {
  nb::class_<HeldRows>(m, "VectorRows", "A sum of losses with k scores for each row.")
      .def("evaluate", &evaluate, "scores"_a, "weight"_a.none(), "scale"_a, "slopes"_a, "n_threads"_a = 1,
           "The weighted sum; its slopes are written.")
      .def("extreme", &extreme, "scores"_a, "along"_a, "weight"_a.none(), "scale"_a, "slopes"_a,
           "Write the slopes that are steepest in the direction `along`.")
      .def("line", &line, "f"_a, "g"_a, "weight"_a.none(), "scale"_a, "The sum on a line through f in direction g.");
  m.def("max_margin", &max_margin, "y"_a, "k"_a, "delta"_a.none(), "factor"_a.none(),
        "max over c of factor(y, c) (f_c - f_y) + delta(y, c).");
  m.def("multilabel", &multilabel, "indptr"_a, "labels"_a, "k"_a, "margin"_a, "delta"_a.none(),
        "max over true z and others z' of delta(z, z') + f_z' - f_z, at least 0.");
  m.def("softmax", &softmax, "y"_a, "k"_a, "log sum exp f_c - f_y.");
  m.def("path_sums", &path_sums, "parent"_a, "scores"_a, "Add to each node's score those above it, in place.");
  m.def("path_slopes", &path_slopes, "parent"_a, "slopes"_a, "Add to each node's slope those below it, in place.");
}

}  // namespace bmrm::py
