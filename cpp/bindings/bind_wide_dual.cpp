// The sequential dual method for losses that compare k classes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bmrm/kernel/class_level.hpp"
#include "bmrm/kernel/wide_dual.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

using OptionalMatrix = std::optional<InMatrix<double>>;

MaxMargin loss_of(const In<std::int32_t>& y, std::size_t k, const OptionalMatrix& delta) {
  const auto bad = std::find_if(y.data(), y.data() + y.size(), [k](auto c) { return c < 0 || std::size_t(c) >= k; });
  require(bad == y.data() + y.size(), "y has a class that does not exist");
  if (!delta) return {k, view(y), {}, {}};
  require_size(delta->shape(0), k, "delta");
  require_size(delta->shape(1), k, "delta");
  return {k, view(y), {delta->data(), k * k}, {}};
}

std::span<const double> shaped(const OptionalMatrix& values, std::size_t rows, std::size_t columns, const char* name) {
  if (!values) return {};
  require_size(values->shape(0), rows, name);
  require_size(values->shape(1), columns, name);
  return {values->data(), rows * columns};
}

std::tuple<double, double, double, std::size_t, std::size_t, std::size_t> epoch(
    const Matrix& X, In<std::int32_t> y, OptionalMatrix delta, OptionalIn weight, double scale, InMatrix<double> q,
    OptionalMatrix inverse, OptionalIn constant, double lam, OutMatrix<double> W, OutMatrix<double> theta,
    Out<std::int64_t> active, std::uint64_t key, double reach) {
  const std::size_t m = X.n_rows(), d = X.n_cols(), k = W.shape(1);
  const MaxMargin loss = loss_of(y, k, delta);
  require_size(y.size(), m, "y");
  require_size(q.shape(0), m, "q");
  require(q.shape(1) == 1 || q.shape(1) == k, "q has a wrong number of columns");
  require_size(W.shape(0), d + (constant ? 1 : 0), "W");
  require_size(theta.shape(0), m, "theta");
  require_size(theta.shape(1), k, "theta");
  require_rows(view(active), m);
  const WideDualProblem problem{loss,
                                {optional_view(weight, m, "weight"), scale},
                                {q.data(), q.size()},
                                shaped(inverse, d, k, "inverse"),
                                optional_view(constant, k, "constant"),
                                lam};
  const WideDualPoint point{{W.data(), W.size()}, {theta.data(), theta.size()}};
  nb::gil_scoped_release unlocked;
  const DualEpoch e = std::visit(
      [&](const auto& view_of_X) { return WideDual(view_of_X, problem, point).epoch(view(active), key, reach); },
      X.view());
  return {e.estimate, e.movement, e.variation, e.n_updates, e.n_active, e.n_entries};
}

std::tuple<double, double, double, double, std::size_t> check(InMatrix<double> F, In<std::int32_t> y,
                                                              OptionalMatrix delta, OptionalIn weight, double scale,
                                                              InMatrix<double> theta, double reach,
                                                              Out<std::int64_t> active) {
  const std::size_t m = F.shape(0), k = F.shape(1);
  const MaxMargin loss = loss_of(y, k, delta);
  require_size(y.size(), m, "y");
  require_size(theta.shape(0), m, "theta");
  require_size(theta.shape(1), k, "theta");
  require_size(active.size(), m, "active");
  const Shares shares{optional_view(weight, m, "weight"), scale};
  nb::gil_scoped_release unlocked;
  const DualCheck c = wide_dual_check(loss, F.data(), shares, {theta.data(), theta.size()}, reach, view(active));
  return {c.value, c.gap, c.offset, c.size, c.n_active};
}

void simplex_step(In<double> g, In<double> theta, In<double> q, Out<double> out) {
  require(g.size() > 0, "g has length 0, expected at least 1");
  require_size(theta.size(), g.size(), "theta");
  require_size(q.size(), g.size(), "q");
  require_size(out.size(), g.size(), "out");
  SimplexStep step(g.size());
  step(g.data(), theta.data(), [&](std::size_t c) { return q.data()[c]; }, out.data());
}

void level_classes(OutMatrix<double> theta, In<std::int32_t> y, OptionalIn weight, double scale) {
  const std::size_t m = theta.shape(0), k = theta.shape(1);
  require_size(y.size(), m, "y");
  loss_of(y, k, {});
  const Shares shares{optional_view(weight, m, "weight"), scale};
  nb::gil_scoped_release unlocked;
  level_of_classes(theta.data(), view(y), k, shares);
}

}  // namespace

void bind_wide_dual(nb::module_& m) {
  m.def("level_classes", &level_classes, "theta"_a, "y"_a, "weight"_a.none(), "scale"_a,
        "Change theta so that each class has its own share of the rows, sum_i p_i theta_i = sum_i p_i e_y.");
  m.def("wide_dual_epoch", &epoch, "X"_a, "y"_a, "delta"_a.none(), "weight"_a.none(), "scale"_a, "q"_a,
        "inverse"_a.none(), "constant"_a.none(), "lam"_a, "W"_a, "theta"_a, "active"_a, "key"_a, "reach"_a,
        "One visit to each active row in random order; changes W, theta and the order of active.\n\n"
        "Returns what `dual_epoch` does.");
  m.def("wide_dual_check", &check, "F"_a, "y"_a, "delta"_a.none(), "weight"_a.none(), "scale"_a, "theta"_a, "reach"_a,
        "active"_a, "Sums over all rows with true scores F; fills active with all rows, settled ones last.");
  m.def("simplex_step", &simplex_step, "g"_a, "theta"_a, "q"_a, "out"_a,
        "out = argmax over t on the simplex of <g, t> - 1/2 sum_c q_c (t_c - theta_c)^2.");
}

}  // namespace bmrm::py
