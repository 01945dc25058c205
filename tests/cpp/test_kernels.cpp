// Every kernel on small data, on one and on several threads: meant to run under sanitizers.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <vector>

#include "bmrm/kernel/line_search.hpp"
#include "bmrm/matrix.hpp"

namespace {

using namespace bmrm;

std::mt19937_64 rng(7);
double uniform() { return std::uniform_real_distribution<double>(-1.0, 1.0)(rng); }
bool near(double a, double b, double scale = 1.0) { return std::abs(a - b) <= 1e-11 * (scale + std::abs(b)); }

std::vector<double> randoms(std::size_t n) {
  std::vector<double> x(n);
  for (double& v : x) v = uniform();
  return x;
}

// Rows with every length from 0 to `longest`, in turn.
template <class Value, class Index>
struct OwnedCsr {
  std::vector<Value> values;
  std::vector<Index> indices;
  std::vector<std::int64_t> indptr{0};
  std::size_t n_cols;

  OwnedCsr(std::size_t m, std::size_t d, std::size_t longest) : n_cols(d) {
    for (std::size_t i = 0; i < m; ++i) {
      const std::size_t n = std::min(d, i % (longest + 1));
      for (std::size_t k = 0; k < n; ++k) {
        indices.push_back(static_cast<Index>(k * d / n));
        values.push_back(static_cast<Value>(uniform()));
      }
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }
  Csr<Value, Index> view() const { return {indptr.size() - 1, n_cols, indptr.data(), indices.data(), values.data()}; }
  void plain(const std::vector<double>& w, const std::vector<double>& l, std::vector<double>& f,
             std::vector<double>& g) const {
    for (std::size_t i = 0; i + 1 < indptr.size(); ++i)
      for (auto p = static_cast<std::size_t>(indptr[i]); p < static_cast<std::size_t>(indptr[i + 1]); ++p) {
        const auto j = static_cast<std::size_t>(indices[p]);
        f[i] += static_cast<double>(values[p]) * w[j];
        g[j] += static_cast<double>(values[p]) * l[i];
      }
  }
};

template <class Value>
struct OwnedDense {
  std::size_t m, d;
  std::vector<Value> values;
  OwnedDense(std::size_t rows, std::size_t cols) : m(rows), d(cols), values(rows * cols) {
    for (Value& v : values) v = static_cast<Value>(uniform());
  }
  Dense<Value> view() const { return {m, d, values.data()}; }
  void plain(const std::vector<double>& w, const std::vector<double>& l, std::vector<double>& f,
             std::vector<double>& g) const {
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        f[i] += static_cast<double>(values[i * d + j]) * w[j];
        g[j] += static_cast<double>(values[i * d + j]) * l[i];
      }
  }
};

void check_evaluate(Matrix& X, const std::vector<double>& w, int n_threads) {
  const std::size_t m = X.n_rows(), d = X.n_cols();
  std::vector<double> y = randoms(m), weight = randoms(m), offset = randoms(m);
  std::vector<double> f(m), l(m), g(d), f2(m), l2(m), g2(d), norms(m);
  for (double& v : y) v = v < 0 ? -1.0 : 1.0;
  for (double& v : weight) v = std::max(0.0, v);
  const Rows rows{y, weight, 1.0};
  for (const AnyScalarLoss& loss : {AnyScalarLoss{Hinge{}}, AnyScalarLoss{Logistic{}}}) {
    const LossSum sum = X.evaluate(loss, w.data(), Shift{0.25, offset}, rows, f.data(), l.data(), g.data(), n_threads);
    X.dot(w.data(), f2.data(), 1);
    for (std::size_t i = 0; i < m; ++i) f2[i] += 0.25 + offset[i];
    const LossSum two = evaluate_loss(loss, f2, rows, l2, 1);
    X.tdot(l2.data(), g2.data(), 1);
    const double scale = static_cast<double>(m);
    assert(near(sum.value, two.value, scale) && near(sum.slope, two.slope, scale));
    for (std::size_t j = 0; j < d; ++j) assert(near(g[j], g2[j], scale));
  }
  X.row_norms(norms.data(), n_threads);
  for (const double norm : norms) assert(norm >= 0.0);
  assert(!X.first_nonfinite(n_threads));
}

// v' H v = sum c <x, v>^2 for H = X' diag(c) X over some rows, the same for any number of threads.
void check_gram(Matrix& X, const std::vector<std::int64_t>& rows, const std::vector<double>& v) {
  const std::size_t d = X.n_cols();
  std::vector<double> c = randoms(rows.size()), f(rows.size()), H(d * d), again(d * d), all(X.n_rows(), 0.0), g(d);
  X.gram(rows, c.data(), H.data(), 1);
  X.gram(rows, c.data(), again.data(), 3);
  X.dot_rows(rows, v.data(), f.data(), 2);
  double expected = 0.0, size = 1.0, found = 0.0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    all[static_cast<std::size_t>(rows[k])] = c[k];
    expected += c[k] * f[k] * f[k];
    size += std::abs(c[k]) * f[k] * f[k];
  }
  X.squares(all.data(), g.data(), 2);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      assert(H[i * d + j] == again[i * d + j]);
      found += (i == j ? 1.0 : 2.0) * H[i * d + j] * v[i] * v[j];
    }
    assert(near(g[i], H[i * d + i], static_cast<double>(rows.size())));
  }
  assert(near(found, expected, size * static_cast<double>(d * d)));
}

template <class Owned>
void check_matrix(const Owned& owned, Matrix& X) {
  const std::size_t m = X.n_rows(), d = X.n_cols();
  const std::vector<double> w = randoms(d);
  std::vector<double> l = randoms(m);
  for (int zeros : {0, 1}) {
    for (std::size_t i = 0; zeros && i < m; ++i) l[i] = i % 5 == 0 ? l[i] : 0.0;
    std::vector<double> f0(m), g0(d), f(m), g(d), f1(m), g1(d);
    owned.plain(w, l, f0, g0);
    X.dot(w.data(), f1.data(), 1);
    X.tdot(l.data(), g1.data(), 1);
    for (std::size_t i = 0; i < m; ++i) assert(near(f1[i], f0[i], static_cast<double>(d)));
    for (std::size_t j = 0; j < d; ++j) assert(near(g1[j], g0[j], static_cast<double>(m)));
    for (int n_threads : {2, 4}) {
      X.dot(w.data(), f.data(), n_threads);
      X.tdot(l.data(), g.data(), n_threads);
      assert(f == f1 && g == g1);
    }
  }
  std::vector<std::int64_t> picked;
  for (std::size_t i = 0; i < m; i += 3) picked.push_back(static_cast<std::int64_t>(i));
  std::vector<double> some(picked.size()), all(m);
  X.dot_rows(picked, w.data(), some.data(), 1);
  X.dot(w.data(), all.data(), 1);
  for (std::size_t k = 0; k < picked.size(); ++k) assert(some[k] == all[static_cast<std::size_t>(picked[k])]);
  if (d <= 500) check_gram(X, picked, w);
  check_evaluate(X, w, 1);
  check_evaluate(X, w, 3);
}

template <class Value, class Index>
void check_csr(std::size_t m, std::size_t d, std::size_t longest) {
  const OwnedCsr<Value, Index> owned(m, d, longest);
  CsrMatrix<Value, Index> X(owned.view());
  check_matrix(owned, X);
  bool sorted = false;
  const auto bad =
      first_out_of_range(std::span(owned.indptr), std::span(owned.indices), static_cast<std::int64_t>(d), sorted, 2);
  assert(!bad && sorted);
}

template <class Value>
void check_dense(std::size_t m, std::size_t d) {
  const OwnedDense<Value> owned(m, d);
  DenseMatrix<Value> X(owned.view());
  check_matrix(owned, X);
}

void check_products() {
  for (const std::size_t m : {0, 1, 2, 5, 37}) {
    for (const std::size_t d : {1, 3, 4, 9, 54}) {
      check_dense<float>(m, d);
      check_dense<double>(m, d);
      check_csr<float, std::int32_t>(m, d, 9);
      check_csr<double, std::int64_t>(m, d, 90);
    }
  }
  check_dense<double>(3, 0);
  check_dense<double>(6000, 54);  // blocks of rows
  check_dense<float>(20, 20001);  // ranges of columns
  check_csr<double, std::int32_t>(30000, 60, 20);
  check_csr<float, std::int64_t>(30000, 60, 20);
  check_csr<double, std::int32_t>(5000, 50000, 100);
  check_csr<float, std::int32_t>(5000, 50000, 100);
  check_csr<double, std::int32_t>(80, 4000, 3000);
  check_csr<double, std::int32_t>(3000, 4000, 3);
}

// A few rows longer than the list of coefficients among many short ones.
void check_mixed_lengths() {
  OwnedCsr<double, std::int32_t> owned(20000, 5000, 2);
  for (const std::size_t n : {2047, 2048, 2049, 5000}) {
    for (std::size_t j = 0; j < n; ++j) {
      owned.indices.push_back(static_cast<std::int32_t>(j));
      owned.values.push_back(uniform());
    }
    owned.indptr.push_back(static_cast<std::int64_t>(owned.indices.size()));
    owned.indptr.push_back(static_cast<std::int64_t>(owned.indices.size()));
  }
  CsrMatrix<double, std::int32_t> X(owned.view());
  check_matrix(owned, X);
}

void check_lines() {
  const std::size_t m = 40000;
  const std::vector<double> f = randoms(m), g = randoms(m);
  std::vector<double> y = randoms(m);
  for (double& v : y) v = v < 0 ? -1.0 : 1.0;
  for (const std::string_view name : kLossNames) {
    const bool parameter = name == "huber_hinge" || name == "novelty" || name == "quantile" ||
                           name.ends_with("epsilon_insensitive") || name == "huber";
    const AnyScalarLoss loss = make_loss(name, parameter ? std::vector{0.3} : std::vector<double>{});
    const auto term = make_line(loss, f, g, {y, {}, 1.0});
    LineTerm* terms[] = {term.get()};
    const LineMinimum one = LineSearch(terms, -100.0, 1000.0, 1).minimize(1.0);
    const LineMinimum four = LineSearch(terms, -100.0, 1000.0, 4).minimize(1.0);
    assert(one.bounded && one.t == four.t && one.slope == four.slope);
    const auto value = [&](double t) { return term->evaluate(t, 4).value - 100.0 * t + 500.0 * t * t; };
    for (const double step : {-1e-2, 1e-2})
      if (one.t + step >= 0.0) assert(value(one.t + step) >= value(one.t) - 1e-9 * std::abs(value(one.t)));
  }
}

bool always_stop() { return true; }

void check_pool() {
  for (const int n_threads : {1, 4}) {
    bool caught = false;
    try {
      parallel_for(64, n_threads, [](std::size_t k) {
        if (k == 17) throw std::logic_error("17");
      });
    } catch (const std::logic_error&) {
      caught = true;
    }
    assert(caught);
    poll_hook() = &always_stop;
    caught = false;
    try {
      parallel_for(1000, n_threads, [](std::size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    } catch (const Interrupted&) {
      caught = true;
    }
    poll_hook() = nullptr;
    assert(caught);
    std::vector<int> hits(100, 0);
    parallel_for(hits.size(), n_threads, [&](std::size_t k) { ++hits[k]; });
    for (const int hit : hits) assert(hit == 1);
  }
  parallel_for(0, 4, [](std::size_t) { assert(false); });
}

}  // namespace

int main() {
  check_products();
  check_mixed_lengths();
  check_lines();
  check_pool();
  std::puts("kernels: ok");
}
