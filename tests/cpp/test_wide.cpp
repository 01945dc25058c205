// Losses of k scores: products, epochs of the multiclass dual, factors of blocks. Meant to run under sanitizers.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "bmrm/kernel/block_factors.hpp"
#include "bmrm/kernel/softmax_bend.hpp"
#include "bmrm/kernel/wide_dual.hpp"

namespace {

using namespace bmrm;

constexpr std::size_t kRows = 23, kColumns = 5;
constexpr double kLam = 0.1;

std::mt19937_64 rng(7);
double uniform() { return std::uniform_real_distribution<double>(-1.0, 1.0)(rng); }

std::vector<double> drawn(std::size_t n) {
  std::vector<double> values(n);
  for (double& one : values) one = uniform();
  return values;
}

struct Data {
  std::vector<double> dense = std::vector<double>(kRows * kColumns), values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr{0};
  Data() {
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        if (i % 7 == 3 || (i + j) % 3 == 0) continue;  // some rows are empty
        dense[i * kColumns + j] = uniform();
        values.push_back(dense[i * kColumns + j]);
        indices.push_back(static_cast<std::int32_t>(j));
      }
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }
};

template <class View>
void check_products(const View& X, const std::vector<double>& dense, std::size_t k) {
  const std::vector<double> W = drawn(kColumns * k), L = drawn(kRows * k);
  std::vector<double> F(kRows * k), G(kColumns * k);
  dot_wide(X, W.data(), k, F.data(), 2);
  tdot_wide(X, L.data(), k, G.data(), 2);
  for (std::size_t c = 0; c < k; ++c) {
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        F[i * k + c] -= dense[i * kColumns + j] * W[j * k + c];
        G[j * k + c] -= dense[i * kColumns + j] * L[i * k + c];
      }
  }
  for (const double rest : F) assert(std::abs(rest) < 1e-12);
  for (const double rest : G) assert(std::abs(rest) < 1e-12);
}

// The gap falls to 0, theta stays on the simplex, and W stays what theta says.
template <class View>
void check_dual(const View& X, const std::vector<double>& dense, std::size_t k, bool constant, bool weighted) {
  const std::size_t d = kColumns + constant;
  std::vector<std::int32_t> y(kRows);
  std::vector<double> weight(kRows), inverse(d * k, 1.0), q(kRows * (weighted ? k : 1)), delta(k * k);
  for (std::size_t i = 0; i < kRows; ++i) {
    y[i] = static_cast<std::int32_t>((i * i) % k);
    weight[i] = i % 5 == 0 ? 0.0 : 1.0 / kRows;
  }
  for (std::size_t c = 0; c < k * k; ++c) delta[c] = c % (k + 1) == 0 ? 0.0 : 1.5 + uniform();
  if (weighted)
    for (double& one : inverse) one = 1.5 + uniform();
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t c = 0; c < (weighted ? k : 1); ++c) {
      double sum = constant ? inverse[kColumns * k + c] : 0.0;
      for (std::size_t j = 0; j < kColumns; ++j)
        sum += dense[i * kColumns + j] * dense[i * kColumns + j] * inverse[j * k + c];
      q[i * (weighted ? k : 1) + c] = weight[i] * sum / kLam;
    }
  std::vector<double> W(d * k), theta(kRows * k), F(kRows * k);
  for (std::size_t i = 0; i < kRows; ++i) theta[i * k + static_cast<std::size_t>(y[i])] = 1.0;
  const std::span<const double> all = inverse;
  const WideDualProblem problem{{k, y, delta, {}},
                                {weight, 1.0},
                                q,
                                weighted ? all.subspan(0, kColumns * k) : std::span<const double>(),
                                constant ? all.subspan(kColumns * k) : std::span<const double>(),
                                kLam};
  std::vector<std::int64_t> active(kRows);
  std::iota(active.begin(), active.end(), 0);
  const auto gap = [&] {
    dot_wide(X, W.data(), k, F.data(), 1);
    if (constant)
      for (std::size_t e = 0; e < F.size(); ++e) F[e] += W[kColumns * k + e % k];
    return wide_dual_check(problem.loss, F.data(), problem.shares, theta, 0.0, active).gap;
  };
  const double first = gap();
  for (std::uint64_t key = 0; key < 400; ++key) WideDual(X, problem, {W, theta}).epoch(active, key, 1e300);
  assert(gap() < 1e-3 * first);
  std::vector<double> fresh(d * k);
  for (std::size_t i = 0; i < kRows; ++i) {
    double total = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
      const double t = theta[i * k + c], slope = weight[i] * (t - (c == static_cast<std::size_t>(y[i]) ? 1.0 : 0.0));
      assert(t >= 0.0);
      total += t;
      for (std::size_t j = 0; j < d; ++j)
        fresh[j * k + c] -= (j < kColumns ? dense[i * kColumns + j] : 1.0) * slope * inverse[j * k + c] / kLam;
    }
    assert(std::abs(total - 1.0) < 1e-14);
  }
  for (std::size_t e = 0; e < W.size(); ++e) assert(std::abs(W[e] - fresh[e]) < 1e-10);
}

void check_factors(std::size_t k, std::size_t d) {
  std::vector<double> H(k * d * d), V = drawn(d * k), out(d * k);
  for (std::size_t c = 0; c < k; ++c) {
    const std::vector<double> A = drawn(d * d);
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        double sum = i == j ? 0.5 : 0.0;
        for (std::size_t e = 0; e < d; ++e) sum += A[i * d + e] * A[j * d + e];
        H[(c * d + i) * d + j] = sum;
      }
  }
  BlockFactors(H.data(), k, d, 1e-14, 2).solve(V.data(), out.data(), 2);
  for (std::size_t c = 0; c < k; ++c)
    for (std::size_t i = 0; i < d; ++i) {
      double rest = V[i * k + c];
      for (std::size_t j = 0; j < d; ++j) rest -= H[(c * d + i) * d + j] * out[j * k + c];
      assert(std::abs(rest) < 1e-9);
    }
}

void check_bend(std::size_t k) {
  const std::vector<double> F = drawn(kRows * k), p(kRows, 0.5);
  std::vector<double> shares(kRows * k), G(kRows * k, 1.0);
  softmax_shares(F.data(), kRows, k, shares.data(), 2);
  assert(std::abs(std::accumulate(shares.begin(), shares.end(), 0.0) - kRows) < 1e-12);
  softmax_bend(shares.data(), p, k, G.data(), 2);  // scores that grow alike change nothing
  for (const double one : G) assert(std::abs(one) < 1e-14);
}

}  // namespace

int main() {
  const Data data;
  const Dense<double> dense{kRows, kColumns, data.dense.data()};
  const Csr<double, std::int32_t> csr{kRows, kColumns, data.indptr.data(), data.indices.data(), data.values.data()};
  for (const std::size_t k : {1, 2, 3, 4, 5, 10, 32, 33, 35, 36, 70}) {
    check_products(dense, data.dense, k);
    check_products(csr, data.dense, k);
    check_bend(k);
  }
  for (const std::size_t k : {2, 5, 34})
    for (const bool constant : {false, true})
      for (const bool weighted : {false, true}) {
        check_dual(dense, data.dense, k, constant, weighted);
        check_dual(csr, data.dense, k, constant, weighted);
      }
  check_factors(3, 7);
  std::puts("ok");
}
