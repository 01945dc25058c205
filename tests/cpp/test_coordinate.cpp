// Coordinate descent, selected Gram matrices and conjugates on their own, for the sanitizers.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "bmrm/kernel/conjugate_sum.hpp"
#include "bmrm/matrix.hpp"

namespace {

using Vector = std::vector<double>;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

struct Data {
  std::size_t m, d;
  std::vector<float> dense;
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values;

  Data(std::size_t rows, std::size_t cols, std::mt19937& random) : m(rows), d(cols), dense(rows * cols, 0.0f) {
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        if (random() % 3 == 0 || j == 2) continue;  // column 2 is empty
        dense[i * d + j] = normal(random);
        indices.push_back(static_cast<std::int32_t>(j));
        values.push_back(dense[i * d + j]);
      }
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }
  bmrm::DenseMatrix<float> as_dense() const { return bmrm::DenseMatrix<float>({m, d, dense.data()}); }
  bmrm::CsrMatrix<float, std::int32_t> as_csr() const {
    return bmrm::CsrMatrix<float, std::int32_t>({m, d, indptr.data(), indices.data(), values.data()});
  }
  double at(std::size_t i, std::int64_t j) const {
    return static_cast<std::size_t>(j) == d ? 1.0 : static_cast<double>(dense[i * d + static_cast<std::size_t>(j)]);
  }
};

void check_descents(const bmrm::Matrix& X, const Data& data, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const std::vector<std::int64_t> working{0, 2, 3, 6, static_cast<std::int64_t>(data.d)};
  const std::size_t k = working.size();
  Vector D(data.m), g(k), H(k * k);
  for (double& x : D) x = random() % 5 == 0 ? 0.0 : uniform(random);
  for (double& x : g) x = 4.0 * (uniform(random) - 0.5);
  g[1] = 0.0;
  for (const int n_threads : {1, 3}) X.selected_gram(working, D.data(), H.data(), n_threads);
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < k; ++b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < data.m; ++i) sum += D[i] * data.at(i, working[a]) * data.at(i, working[b]);
      check(std::abs(sum - H[a * k + b]) < 1e-9 * (1.0 + std::abs(sum)), "the selected Gram matrix");
    }
  const Vector u{0.5, 0.5, 0.5, 0.5, 0.0}, v{0.0, 0.0, 0.1, 0.0, 0.0}, lower(k, -0.2), upper(k, 5.0);
  const bmrm::Penalty penalty{u, v, lower, upper};
  Vector formed(k, 0.0), by_columns(k, 0.0), slope = g, q(data.m, 0.0);
  bmrm::descend_with_matrix(H, penalty, slope, formed, 1e-13, 10000);
  X.columns()->descend(working, D.data(), g, penalty, by_columns, q.data(), 1e-13, 10000, 2);
  for (std::size_t a = 0; a < k; ++a) {
    check(std::abs(formed[a] - by_columns[a]) < 1e-8, "both descents end at the same point");
    check(formed[a] >= lower[a] && formed[a] <= upper[a], "bounds are respected");
  }
  check(formed[1] == 0.0, "an empty column stays at 0");
  const bmrm::SelectedSize size = X.selected_size(working);
  check(size.entries > 0.0 && size.pairs > 0.0, "sizes are positive");
  const std::vector<std::int64_t> none;
  X.selected_gram(none, D.data(), H.data(), 1);
}

void check_conjugates(std::mt19937& random) {
  std::normal_distribution<double> normal;
  for (const auto name : bmrm::kLossNames) {
    const Vector parameters = name == "huber_hinge" || name == "squared_epsilon_insensitive" || name == "huber" ||
                                      name == "novelty" || name == "quantile" || name == "epsilon_insensitive"
                                  ? Vector{0.5}
                                  : Vector{};
    const bmrm::AnyScalarLoss loss = bmrm::make_loss(name, parameters);
    const bool curved = std::visit([](const auto& one) { return bmrm::Conjugated<std::decay_t<decltype(one)>>; }, loss);
    Vector s(50), y(50), f(50);
    for (std::size_t i = 0; i < s.size(); ++i) {
      s[i] = normal(random);
      f[i] = 2.0 * normal(random);
      y[i] = name == "poisson" ? static_cast<double>(random() % 4) : (random() % 2 == 0 ? 1.0 : -1.0);
    }
    const bmrm::Rows rows{y, {}, 0.02};
    bool refused = false;
    try {
      bmrm::clip_slopes(loss, s, y);
      const double value = bmrm::conjugate_sum(loss, s, 1.0, rows).value;
      Vector slopes(50);
      double product = 0.0;
      for (std::size_t i = 0; i < s.size(); ++i) product += 0.02 * s[i] * f[i];
      const double risk = bmrm::evaluate_loss(loss, f, rows, slopes, 1).value;
      check(product - value <= risk + 1e-12, "the plane lies below the loss");
      check(bmrm::any_largest_curvature(loss) > 0.0, "a curvature");
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    check(refused != curved, "losses without curvature are refused");
  }
}

}  // namespace

int main() {
  std::mt19937 random(1);
  for (const std::size_t m : {1, 7, 64, 500}) {
    const Data data(m, 8, random);
    auto dense = data.as_dense();
    auto csr = data.as_csr();
    check_descents(dense, data, random);
    check_descents(csr, data, random);
  }
  check_conjugates(random);
  std::puts("coordinate: ok");
}
