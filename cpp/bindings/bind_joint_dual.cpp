// Dual coordinate descent for losses whose rows order label sets or classes of a tree.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "bmrm/kernel/joint_dual.hpp"
#include "bmrm/kernel/label_level.hpp"
#include "bmrm/kernel/tree_rows.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

using OptionalMatrix = std::optional<InMatrix<double>>;

template <class T>
std::vector<T> copied(const In<T>& values) {
  return {values.data(), values.data() + values.size()};
}

struct JointRows {
  std::variant<LabelRows, TreeRows> rows;
};

JointRows of_labels(In<std::int64_t> indptr, In<std::int32_t> labels, std::size_t k, double margin) {
  require(indptr.size() > 0 && indptr.data()[0] == 0 && std::is_sorted(indptr.data(), indptr.data() + indptr.size()) &&
              indptr.data()[indptr.size() - 1] == static_cast<std::int64_t>(labels.size()),
          "indptr does not describe the labels");
  const auto bad = [k](std::int32_t c) { return c < 0 || static_cast<std::size_t>(c) >= k; };
  require(std::none_of(labels.data(), labels.data() + labels.size(), bad), "there is a label that does not exist");
  return {LabelRows(copied(indptr), copied(labels), k, margin)};
}

JointRows of_tree(In<std::int64_t> parents, In<std::int64_t> classes, In<std::int32_t> y, InMatrix<double> delta) {
  for (std::size_t v = 0; v < parents.size(); ++v)
    require(parents.data()[v] >= -1 && parents.data()[v] < static_cast<std::int64_t>(v), "parents come first");
  const auto within = [](auto values, std::size_t n) {
    return std::all_of(values.data(), values.data() + values.size(),
                       [n](auto c) { return c >= 0 && static_cast<std::size_t>(c) < n; });
  };
  require(within(classes, parents.size()), "there is a class that is no node");
  require(within(y, classes.size()), "y has a class that does not exist");
  require_size(delta.shape(0), classes.size(), "delta");
  require_size(delta.shape(1), classes.size(), "delta");
  return {TreeRows(copied(parents), copied(classes), copied(y), {delta.data(), delta.data() + delta.size()})};
}

template <class Rows>
void check_theta(const Rows& rows, std::size_t m, std::size_t width) {
  require_size(m, rows.n_rows(), "theta");
  require_size(width, rows.width(), "a row of theta");
}

std::tuple<double, double, double, std::size_t, std::size_t, std::size_t> epoch(
    const JointRows& rows, const Matrix& X, OptionalIn weight, double scale, InMatrix<double> q, OptionalMatrix inverse,
    OptionalIn constant, double lam, OutMatrix<double> W, OutMatrix<double> theta, Out<std::int64_t> active,
    std::uint64_t key, double reach) {
  const std::size_t m = X.n_rows(), d = X.n_cols(), k = W.shape(1);
  require_size(q.shape(0), m, "q");
  require(q.shape(1) == 1 || q.shape(1) == k, "q has a wrong number of columns");
  require_size(W.shape(0), d + (constant ? 1 : 0), "W");
  if (inverse) {
    require_size(inverse->shape(0), d, "inverse");
    require_size(inverse->shape(1), k, "inverse");
  }
  require_rows(view(active), m);
  const JointProblem problem{{optional_view(weight, m, "weight"), scale},
                             {q.data(), q.size()},
                             inverse ? std::span(inverse->data(), inverse->size()) : std::span<const double>(),
                             optional_view(constant, k, "constant"),
                             lam};
  const DualEpoch e = std::visit(
      [&](const auto& some, const auto& view_of_X) {
        require_size(some.n_scores(), k, "W");
        require_size(some.n_rows(), m, "X");
        check_theta(some, theta.shape(0), theta.shape(1));
        nb::gil_scoped_release unlocked;
        return JointDual(view_of_X, some, problem, {W.data(), W.size()}, {theta.data(), theta.size()})
            .epoch(view(active), key, reach);
      },
      rows.rows, X.view());
  return {e.estimate, e.movement, e.variation, e.n_updates, e.n_active, e.n_entries};
}

std::tuple<double, double, double, double, std::size_t> check(const JointRows& rows, InMatrix<double> F,
                                                              OptionalIn weight, double scale, InMatrix<double> theta,
                                                              double reach, Out<std::int64_t> active) {
  const std::size_t m = F.shape(0);
  require_size(active.size(), m, "active");
  const Shares shares{optional_view(weight, m, "weight"), scale};
  const DualCheck c = std::visit(
      [&](const auto& some) {
        require_size(F.shape(0), some.n_rows(), "F");
        require_size(F.shape(1), some.n_scores(), "a row of F");
        check_theta(some, theta.shape(0), theta.shape(1));
        nb::gil_scoped_release unlocked;
        return joint_dual_check(some, F.data(), shares, {theta.data(), theta.size()}, reach, view(active));
      },
      rows.rows);
  return {c.value, c.gap, c.offset, c.size, c.n_active};
}

void best(const JointRows& rows, InMatrix<double> F, OutMatrix<double> theta) {
  std::visit(
      [&](const auto& some) {
        require_size(F.shape(1), some.n_scores(), "F");
        require_size(F.shape(0), some.n_rows(), "F");
        check_theta(some, theta.shape(0), theta.shape(1));
        for (std::size_t i = 0; i < some.n_rows(); ++i)
          some.best(i, F.data() + i * some.n_scores(), theta.data() + i * some.width());
      },
      rows.rows);
}

void slopes(const JointRows& rows, InMatrix<double> theta, OptionalIn weight, double scale, OutMatrix<double> out) {
  const Shares shares{optional_view(weight, theta.shape(0), "weight"), scale};
  std::visit(
      [&](const auto& some) {
        require_size(out.shape(0), some.n_rows(), "out");
        require_size(out.shape(1), some.n_scores(), "out");
        check_theta(some, theta.shape(0), theta.shape(1));
        for (std::size_t i = 0; i < some.n_rows(); ++i)
          some.slopes(i, theta.data() + i * some.width(), shares.at(i), out.data() + i * some.n_scores());
      },
      rows.rows);
}

void offsets(const JointRows& rows, InMatrix<double> theta, Out<double> out) {
  std::visit(
      [&](const auto& some) {
        require_size(out.size(), some.n_rows(), "out");
        check_theta(some, theta.shape(0), theta.shape(1));
        for (std::size_t i = 0; i < some.n_rows(); ++i) out.data()[i] = some.offset(i, theta.data() + i * some.width());
      },
      rows.rows);
}

void level(const JointRows& rows, OutMatrix<double> theta, OptionalIn weight, double scale) {
  const Shares shares{optional_view(weight, theta.shape(0), "weight"), scale};
  std::visit(
      [&](const auto& some) {
        check_theta(some, theta.shape(0), theta.shape(1));
        nb::gil_scoped_release unlocked;
        some.level(theta.data(), shares);
      },
      rows.rows);
}

}  // namespace

void bind_joint_dual(nb::module_& m) {
  nb::class_<JointRows>(m, "JointRows", "Rows whose losses are the largest of few-entry linear functions.")
      .def_static("of_labels", &of_labels, "indptr"_a, "labels"_a, "k"_a, "margin"_a)
      .def_static("of_tree", &of_tree, "parents"_a, "classes"_a, "y"_a, "delta"_a)
      .def("epoch", &epoch, "X"_a, "weight"_a.none(), "scale"_a, "q"_a, "inverse"_a.none(), "constant"_a.none(),
           "lam"_a, "W"_a, "theta"_a, "active"_a, "key"_a, "reach"_a,
           "One visit to each active row in random order; changes W, theta and the order of active.\n\n"
           "Returns what `dual_epoch` does.")
      .def("check", &check, "F"_a, "weight"_a.none(), "scale"_a, "theta"_a, "reach"_a, "active"_a,
           "Sums over all rows with true scores F; fills active with all rows, settled ones last.")
      .def("best", &best, "F"_a, "theta"_a, "Write the vertices that are the loss at the scores F.")
      .def("level", &level, "theta"_a, "weight"_a.none(), "scale"_a,
           "Change theta so that the weighted slopes of each score add up to 0, to less where labels are rare.")
      .def("offsets", &offsets, "theta"_a, "out"_a, "Write what the rows' planes are at scores of 0.")
      .def("slopes", &slopes, "theta"_a, "weight"_a.none(), "scale"_a, "out"_a, "Write the weighted slopes of theta.");
}

}  // namespace bmrm::py
