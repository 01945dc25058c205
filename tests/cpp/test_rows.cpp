// Stochastic epochs on small data of every kind: they end with numbers, and the tangents lie below the losses.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "bmrm/kernel/shrinkage.hpp"
#include "bmrm/matrix.hpp"

namespace {

using namespace bmrm;

std::mt19937_64 rng(3);
double uniform() { return std::uniform_real_distribution<double>(-1.0, 1.0)(rng); }

struct Run {
  std::size_t m, dim;
  std::vector<double> y, factor, shift, slopes, offsets, metric, shrinks, w, average, u, h;
  std::vector<std::int64_t> order;
  Clock clock;

  Run(std::size_t rows, std::size_t cols, bool constant)
      : m(rows),
        dim(cols + (constant ? 1 : 0)),
        y(m),
        factor(m),
        shift(m),
        slopes(m),
        offsets(m),
        metric(dim, 1.0),
        shrinks(dim, 1.0),
        w(dim),
        average(dim),
        u(dim),
        h(dim),
        order(m) {
    for (double& v : y) v = uniform() < 0.0 ? -1.0 : 1.0;
    for (double& v : factor) v = 1.0 + 0.5 * uniform();
    for (double& v : shift) v = 0.1 * uniform();
    for (std::size_t j = 0; j < dim; ++j) metric[j] = 1.0 + 0.5 * uniform();
    if (dim > 0) shrinks[dim - 1] = 0.0;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::shuffle(order.begin(), order.end(), rng);
    clock.reach = 1.0;
  }

  Coordinates coordinates(std::size_t cols, bool plain) const {
    Coordinates at;
    const std::span<const double> all_metric(metric), all_shrinks(shrinks);
    if (!plain) {
      at.metric = all_metric.first(cols);
      at.shrinks = all_shrinks.first(cols);
    }
    at.constant = dim > cols;
    return at;
  }

  void check(const RowLoss& loss) const {
    for (const double v : w) assert(std::isfinite(v));
    for (const double v : average) assert(std::isfinite(v));
    for (std::size_t i = 0; i < m; ++i)
      for (double z : {-3.0, -0.5, 0.0, 1.0, 2.5})
        assert(slopes[i] * z + offsets[i] <= loss(z + shift[i], y[i]).value + 1e-12);
  }
};

void check_matrix(const Matrix& X) {
  for (const AnyScalarLoss& any : {AnyScalarLoss{Hinge{}}, AnyScalarLoss{Logistic{}}, AnyScalarLoss{LeastSquares{}},
                                   AnyScalarLoss{Exponential{}}, AnyScalarLoss{SquaredHinge{}}})
    for (const bool constant : {false, true})
      for (const bool plain : {false, true})
        for (const bool mixed : {false, true}) {
          const RowLoss loss(any);
          for (const Rule rule : {Rule::kSgd, Rule::kFolos, Rule::kPegasos, Rule::kAdaptive, Rule::kProximal}) {
            Run run(X.n_rows(), X.n_cols(), constant);
            const Visits visits{run.order, run.y, run.factor, run.shift};
            const Tangents tangents{run.slopes, run.offsets, mixed ? run.u.data() : nullptr, 0.1,
                                    1.0 / static_cast<double>(run.m)};
            const Coordinates at = run.coordinates(X.n_cols(), plain);
            const RowDescent descent{rule, 0.1, 3.0, 2.0, rule == Rule::kPegasos ? std::size_t{3} : std::size_t{1},
                                     4.0};
            for (int epoch = 0; epoch < 3; ++epoch)
              std::visit(
                  [&](const auto& rows) {
                    DescentEpoch(rows, loss, visits, tangents, at, descent, run.w.data(), run.average.data(), run.clock)
                        .run();
                  },
                  X.view());
            run.check(loss);
          }
          for (const bool quasi_newton : {false, true}) {
            Run run(X.n_rows(), X.n_cols(), constant);
            const Visits visits{run.order, run.y, {}, run.shift};
            const Tangents tangents{run.slopes, run.offsets, mixed ? run.u.data() : nullptr, 0.1,
                                    1.0 / static_cast<double>(run.m)};
            const Coordinates at = run.coordinates(X.n_cols(), true);
            const Splitting splitting{0.1, 0.05, 10.0, 0.5, 4.0, true};
            for (int epoch = 0; epoch < 3; ++epoch)
              std::visit(
                  [&](const auto& rows) {
                    if (!quasi_newton)
                      return splitting_epoch(rows, loss, visits, tangents, at, run.shrinks, splitting, run.w.data(),
                                             run.average.data(), run.clock);
                    QuasiNewtonEpoch(rows, loss, visits, tangents, at, run.shrinks, splitting, run.w.data(),
                                     run.average.data(), run.h.data(), run.clock)
                        .run();
                  },
                  X.view());
            run.check(loss);
          }
        }
}

}  // namespace

int main() {
  const std::size_t m = 23, d = 7;
  std::vector<double> values(m * d);
  for (double& v : values) v = uniform() < 0.0 ? 0.0 : uniform();
  std::vector<float> floats(values.begin(), values.end());
  check_matrix(DenseMatrix<double>({m, d, values.data()}));
  check_matrix(DenseMatrix<float>({m, d, floats.data()}));
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<double> entries;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < d; ++j)
      if (values[i * d + j] != 0.0) {
        indices.push_back(static_cast<std::int32_t>(j));
        entries.push_back(values[i * d + j]);
      }
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  check_matrix(CsrMatrix<double, std::int32_t>({m, d, indptr.data(), indices.data(), entries.data()}));
  std::puts("rows: ok");
}
