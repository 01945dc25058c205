// Stochastic epochs: the matrix comes as any of its six kinds.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "arrays.hpp"
#include "bmrm/kernel/shrinkage.hpp"
#include "bmrm/matrix.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

constexpr std::size_t kClock = 7;

Clock clock_of(const Out<double>& a) {
  require_size(a.size(), kClock, "clock");
  const double* c = a.data();
  return {c[0], c[1], c[2], c[3], c[4], c[5], c[6]};
}

void store(const Clock& clock, Out<double>& a) {
  const double values[kClock] = {clock.t,   clock.taken, clock.since,   clock.phase,
                                 clock.tau, clock.reach, clock.steepest};
  std::copy(values, values + kClock, a.data());
}

Rule rule_named(const std::string& name) {
  if (name == "sgd") return Rule::kSgd;
  if (name == "folos") return Rule::kFolos;
  if (name == "pegasos") return Rule::kPegasos;
  if (name == "adaptive") return Rule::kAdaptive;
  require(name == "proximal", "no rule named '" + name + "'");
  return Rule::kProximal;
}

Visits visits_of(const Matrix& X, const In<std::int64_t>& order, const In<double>& y, const OptionalIn& factor,
                 const OptionalIn& shift) {
  const std::size_t m = X.n_rows();
  require_rows(view(order), m);
  require_size(y.size(), m, "y");
  return {view(order), view(y), optional_view(factor, m, "factor"), optional_view(shift, m, "shift")};
}

// w (and metric, shrinks) may have one entry more than X has columns: the constant's.
Coordinates coordinates_of(const Matrix& X, std::size_t dim, const In<double>& metric, const In<double>& shrinks,
                           bool plain) {
  const std::size_t d = X.n_cols();
  require(dim == d || dim == d + 1,
          "w has length " + std::to_string(dim) + ", but X has " + std::to_string(d) + " columns");
  require_size(metric.size(), dim, "metric");
  require_size(shrinks.size(), dim, "shrinks");
  Coordinates at;
  if (!plain) {
    at.metric = view(metric).first(d);
    at.shrinks = view(shrinks).first(d);
  }
  at.constant = dim > d;
  if (at.constant) {
    at.constant_metric = view(metric)[d];
    at.constant_shrinks = view(shrinks)[d] != 0.0;
  }
  return at;
}

double* optional_out(std::optional<Out<double>>& array, std::size_t n, const char* name) {
  if (!array) return nullptr;
  require_size(array->size(), n, name);
  return array->data();
}

using OptionalOut = std::optional<Out<double>>;

Tangents tangents_of(const Matrix& X, const Out<double>& slopes, const Out<double>& offsets, OptionalOut& u,
                     std::size_t dim, double lam, double share) {
  require_size(slopes.size(), X.n_rows(), "slopes");
  require_size(offsets.size(), X.n_rows(), "offsets");
  return {view(slopes), view(offsets), optional_out(u, dim, "u"), lam, share};
}

void descent_epoch(const Matrix& X, const AnyScalarLoss& loss, In<std::int64_t> order, In<double> y, OptionalIn factor,
                   OptionalIn shift, Out<double> slopes, Out<double> offsets, OptionalOut u, double share,
                   In<double> metric, In<double> shrinks, bool plain, double lam, const std::string& rule, double t0,
                   double radius, std::size_t batch, double every, Out<double> w, OptionalOut average,
                   Out<double> clock) {
  require(batch >= 1, "batch must be at least 1");
  const Visits visits = visits_of(X, order, y, factor, shift);
  const Tangents tangents = tangents_of(X, slopes, offsets, u, w.size(), lam, share);
  const Coordinates at = coordinates_of(X, w.size(), metric, shrinks, plain);
  // Buffers are as long as a batch, which has no more rows than there are.
  const RowDescent descent{
      rule_named(rule), lam, t0, radius, std::min(batch, std::max<std::size_t>(1, order.size())), every};
  Clock now = clock_of(clock);
  double* mean = optional_out(average, w.size(), "average");
  {
    nb::gil_scoped_release unlocked;
    const RowLoss row_loss(loss);
    std::visit(
        [&](const auto& rows) {
          DescentEpoch(rows, row_loss, visits, tangents, at, descent, w.data(), mean, now).run();
        },
        X.view());
  }
  store(now, clock);
}

void shrinkage_epoch(const Matrix& X, const AnyScalarLoss& loss, In<std::int64_t> order, In<double> y,
                     OptionalIn factor, OptionalIn shift, Out<double> slopes, Out<double> offsets, OptionalOut u,
                     double share, In<double> metric, In<double> shrinks, bool plain, double lam, In<double> weights,
                     double eta0, double t0, double power, double every, bool learns, Out<double> w,
                     OptionalOut average, OptionalOut curvature, Out<double> clock) {
  const Visits visits = visits_of(X, order, y, factor, shift);
  const Tangents tangents = tangents_of(X, slopes, offsets, u, w.size(), lam, share);
  const Coordinates at = coordinates_of(X, w.size(), metric, shrinks, plain);
  require_size(weights.size(), w.size(), "weights");
  const Splitting splitting{lam, eta0, t0, power, every, learns};
  Clock now = clock_of(clock);
  double* mean = optional_out(average, w.size(), "average");
  double* h = optional_out(curvature, w.size(), "curvature");
  {
    nb::gil_scoped_release unlocked;
    const RowLoss row_loss(loss);
    std::visit(
        [&](const auto& rows) {
          if (h == nullptr)
            return splitting_epoch(rows, row_loss, visits, tangents, at, view(weights), splitting, w.data(), mean, now);
          QuasiNewtonEpoch(rows, row_loss, visits, tangents, at, view(weights), splitting, w.data(), mean, h, now)
              .run();
        },
        X.view());
  }
  store(now, clock);
}

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("descent_epoch", &descent_epoch, "X"_a, "loss"_a, "order"_a, "y"_a, "factor"_a.none(), "shift"_a.none(),
        "slopes"_a, "offsets"_a, "u"_a.none(), "share"_a, "metric"_a, "shrinks"_a, "plain"_a, "lam"_a, "rule"_a, "t0"_a,
        "radius"_a, "batch"_a, "every"_a, "w"_a, "average"_a.none(), "clock"_a,
        "Visit the rows in order with one of the rules sgd, folos, pegasos, adaptive, proximal; w, average and clock "
        "go on.\n\nslopes and offsets hold a tangent of each row's loss, which the one met now replaces or, given u, "
        "improves.");
  m.def("shrinkage_epoch", &shrinkage_epoch, "X"_a, "loss"_a, "order"_a, "y"_a, "factor"_a.none(), "shift"_a.none(),
        "slopes"_a, "offsets"_a, "u"_a.none(), "share"_a, "metric"_a, "shrinks"_a, "plain"_a, "lam"_a, "weights"_a,
        "eta0"_a, "t0"_a, "power"_a, "every"_a, "learns"_a, "w"_a, "average"_a.none(), "curvature"_a.none(), "clock"_a,
        "Visit the rows in order by forward-backward splitting with l1 or, given a curvature, by the diagonal "
        "quasi-Newton method with l2.");
}

}  // namespace bmrm::py
