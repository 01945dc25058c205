// Compiled losses on arrays of scores.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bmrm/kernel/evaluate.hpp"
#include "bmrm/kernel/prox.hpp"
#include "bmrm/loss/knots.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

std::pair<double, double> evaluate(const AnyScalarLoss& loss, In<double> f, In<double> y, OptionalIn weight,
                                   double scale, Out<double> slopes, int n_threads) {
  require_size(slopes.size(), f.size(), "slopes");
  const Rows rows = rows_of(y, weight, scale, f.size());
  nb::gil_scoped_release unlocked;
  const LossSum sum = evaluate_loss(loss, view(f), rows, view(slopes), n_threads);
  return {sum.value, sum.slope};
}

double steepest(const AnyScalarLoss& loss, In<double> f, In<double> y, OptionalIn weight, double scale, double e) {
  const Rows rows = rows_of(y, weight, scale, f.size());
  nb::gil_scoped_release unlocked;
  return std::visit([&](const auto& one) { return bmrm::steepest(one, view(f), rows, e); }, loss);
}

// slopes_i = weight_i times the end of the subdifferential that is largest in direction g_i
void extreme(const AnyScalarLoss& loss, In<double> f, In<double> g, In<double> y, OptionalIn weight, double scale,
             Out<double> slopes) {
  require_size(g.size(), f.size(), "g");
  require_size(slopes.size(), f.size(), "slopes");
  const Rows rows = rows_of(y, weight, scale, f.size());
  nb::gil_scoped_release unlocked;
  std::visit(
      [&](const auto& one) {
        for (std::size_t i = 0; i < f.size(); ++i) {
          const Interval s = subdifferential(one, f.data()[i], rows.y[i]);
          slopes.data()[i] = rows.at(i) * (g.data()[i] >= 0.0 ? s.upper : s.lower);
        }
      },
      loss);
}

void curvature(const AnyScalarLoss& loss, In<double> f, In<double> y, OptionalIn weight, double scale,
               Out<double> out) {
  require_size(out.size(), f.size(), "out");
  const Rows rows = rows_of(y, weight, scale, f.size());
  nb::gil_scoped_release unlocked;
  std::visit(
      [&]<class L>(const L& one) {
        if constexpr (std::is_same_v<L, bmrm::Logistic>) {
          bmrm::logistic_curvature(f.data(), bmrm::counts_from(rows, 0), f.size(), out.data());
        } else {
          for (std::size_t i = 0; i < f.size(); ++i)
            out.data()[i] = rows.at(i) * bmrm::curvature(one, f.data()[i], rows.y[i]);
        }
      },
      loss);
}

// One q for all rows or one for each.
void prox_with(const AnyScalarLoss& loss, In<double> v, In<double> y, std::span<const double> q, Out<double> z,
               Out<double> slopes, std::optional<Out<double>> dslopes) {
  const std::size_t m = v.size();
  require_size(y.size(), m, "y");
  require_size(z.size(), m, "z");
  require_size(slopes.size(), m, "slopes");
  if (dslopes) require_size(dslopes->size(), m, "dslopes");
  const auto bad = std::find_if(q.begin(), q.end(), [](double one) { return !(one >= 0.0); });
  if (bad != q.end()) require(false, "q must be at least 0, got " + std::to_string(*bad));
  nb::gil_scoped_release unlocked;
  double* bends = dslopes ? dslopes->data() : nullptr;
  std::visit([&](const auto& one) { prox_of_rows(one, view(v), y.data(), q, z.data(), slopes.data(), bends); }, loss);
}

void prox(const AnyScalarLoss& loss, In<double> v, In<double> y, double q, Out<double> z, Out<double> slopes,
          std::optional<Out<double>> dslopes) {
  prox_with(loss, v, y, {&q, 1}, z, slopes, dslopes);
}

void prox_by_row(const AnyScalarLoss& loss, In<double> v, In<double> y, In<double> q, Out<double> z, Out<double> slopes,
                 std::optional<Out<double>> dslopes) {
  require_size(q.size(), v.size(), "q");
  prox_with(loss, v, y, view(q), z, slopes, dslopes);
}

const char* name_of(PiecewiseQuadratic::Of of) {
  if (of == PiecewiseQuadratic::Of::kMargin) return "margin";
  return of == PiecewiseQuadratic::Of::kResidual ? "residual" : "score";
}

std::optional<std::pair<std::string, std::vector<double>>> knots(const AnyScalarLoss& loss) {
  const auto found = bmrm::knots(loss);
  if (!found) return std::nullopt;
  return std::pair{std::string(name_of(found->of)), found->at};
}

PiecewiseQuadratic::Of argument_named(const std::string& of) {
  if (of == "margin") return PiecewiseQuadratic::Of::kMargin;
  if (of == "residual") return PiecewiseQuadratic::Of::kResidual;
  require(of == "score", "of must be 'margin', 'residual' or 'score', got '" + of + "'");
  return PiecewiseQuadratic::Of::kScore;
}

}  // namespace

void bind_losses(nb::module_& m) {
  auto loss = nb::class_<AnyScalarLoss>(m, "ScalarLoss", "A compiled scalar loss.");
  loss.def("evaluate", &evaluate, "f"_a, "y"_a, "weight"_a.none(), "scale"_a, "slopes"_a, "n_threads"_a = 1,
           "Weighted value and the sum of the slopes; slopes[i] = weight[i] * dl/df.")
      .def("steepest", &steepest, "f"_a, "y"_a, "weight"_a.none(), "scale"_a, "e"_a,
           "The norm of the weighted slopes, each the steeper one of those at f[i] - e and f[i] + e.")
      .def("extreme", &extreme, "f"_a, "g"_a, "y"_a, "weight"_a.none(), "scale"_a, "slopes"_a,
           "slopes[i] = weight[i] * the subgradient that is largest in direction g[i].")
      .def("curvature", &curvature, "f"_a, "y"_a, "weight"_a.none(), "scale"_a, "out"_a,
           "out[i] = weight[i] * second derivative.")
      .def("prox", &prox, "v"_a, "y"_a, "q"_a, "z"_a, "slopes"_a, "dslopes"_a.none() = nb::none(),
           "z[i] = argmin of q l(z) + (z - v[i])^2 / 2, slopes[i] = (v[i] - z[i]) / q, a slope of l at z[i],\n"
           "and dslopes[i] = d slopes[i] / d v[i], which is 1 / q on a kink. No weights.")
      .def("prox", &prox_by_row, "v"_a, "y"_a, "q"_a, "z"_a, "slopes"_a, "dslopes"_a.none() = nb::none(),
           "The same with a q for each row.");
  loss.def("knots", &knots,
           "('margin' | 'residual' | 'score', knots): of what the loss is piecewise quadratic, and where its pieces "
           "end.\n\nNone if it is not.");
  m.def("loss_names", [] { return std::vector<std::string>(kLossNames.begin(), kLossNames.end()); });
  m.def(
      "scalar_loss",
      [](const std::string& name, const std::vector<double>& parameters) { return make_loss(name, parameters); },
      "name"_a, "parameters"_a = std::vector<double>{}, "The compiled loss of that name.");
  m.def(
      "piecewise_quadratic",
      [](std::vector<double> knots, std::vector<double> coefficients, const std::string& of) -> AnyScalarLoss {
        require_size(coefficients.size(), 3 * (knots.size() + 1), "coefficients");
        return PiecewiseQuadratic{argument_named(of), std::move(knots), std::move(coefficients)};
      },
      "knots"_a, "coefficients"_a, "of"_a, "a z^2 + b z + c between increasing knots.");
}

}  // namespace bmrm::py
