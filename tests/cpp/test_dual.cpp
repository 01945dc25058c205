// Epochs of dual coordinate descent on small data, for every loss and layout: meant to run under sanitizers.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "bmrm/kernel/dual.hpp"
#include "bmrm/loss/list.hpp"

namespace {

using namespace bmrm;

constexpr std::size_t kRows = 23, kColumns = 5;
constexpr double kLam = 0.1;

std::mt19937_64 rng(11);
double uniform() { return std::uniform_real_distribution<double>(-1.0, 1.0)(rng); }

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

// How rows are visited: by one block, by two with the sigma that always rises, or with one that is chosen.
enum class By { kOne, kSafe, kChosen };

// The dual value rises, the gap falls to 0, and w stays what the slopes say. Returns w.
template <class L, class View>
std::vector<double> check(const L& loss, const View& X, bool intercept, bool weighted, By by = By::kOne,
                          int n_threads = 1) {
  const std::size_t d = kColumns + intercept;
  std::vector<double> y(kRows), weight(kRows), offset(kRows), inverse(d), q(kRows), zero(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    y[i] = i % 2 == 0 ? 1.0 : (std::is_same_v<L, Poisson> ? 0.0 : -1.0);
    weight[i] = i % 5 == 0 ? 0.0 : 1.0 / kRows;
    offset[i] = 0.1 * uniform();
  }
  for (double& one : inverse) one = 1.5 + uniform();
  const Rows rows{y, weight, 1.0};
  const std::span<const double> D = weighted ? std::span<const double>(inverse) : std::span<const double>();
  dual_steps(X, rows, D, kLam, intercept, q, 2);
  std::vector<double> w(d), s(kRows), b(kRows), f(kRows);
  const DualPoint point{w, s, b};
  dual_start(loss, zero, y, 1e12, point, 2);
  const DualProblem problem{rows, offset, q, D, kLam, intercept};
  std::vector<std::int64_t> active(kRows);
  const auto recomputed = [&] {
    std::vector<double> fresh(d);
    for (std::size_t i = 0; i < kRows; ++i) {
      row_axpy(X, i, -weight[i] * s[i] / kLam, D, fresh.data());
      if (intercept) fresh[kColumns] -= weight[i] * s[i] / kLam * (D.empty() ? 1.0 : D[kColumns]);
    }
    return fresh;
  };
  const std::vector<double> first = recomputed();
  std::copy(first.begin(), first.end(), w.begin());  // the point looks at this very array
  double reach = kInfinity, value = -kInfinity, sigma = by == By::kSafe ? 2.0 : 1.0, least = sigma;
  std::vector<double> scratch(2 * d);
  for (std::uint64_t round = 0; round < 3000; ++round) {
    for (std::size_t i = 0; i < kRows; ++i)
      f[i] = row_dot(X, i, w.data()) + (intercept ? w[kColumns] : 0.0) + offset[i];
    const DualCheck sums = dual_check(loss, f, rows, offset, point, reach, active, 2);
    double norm = 0.0;
    for (std::size_t j = 0; j < d; ++j) norm += w[j] * w[j] / (D.empty() ? 1.0 : D[j]);
    const double dual = sums.offset - 0.5 * kLam * norm;
    assert(std::abs(sums.value + 0.5 * kLam * norm - dual - sums.gap) <= 1e-8 * (1.0 + std::abs(sums.value)));
    assert(by == By::kChosen || dual >= value - 1e-9 * (1.0 + std::abs(value)));
    value = dual;
    std::vector<std::int64_t> sorted = active;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < kRows; ++i) assert(sorted[i] == static_cast<std::int64_t>(i));
    if (sums.gap <= 1e-5) break;
    assert(round < 2999);
    const std::span<std::int64_t> some(active.data(), sums.n_active);
    DualCoordinates rows_of_X(X, loss, problem, point);
    const DualEpoch epoch = by == By::kOne ? rows_of_X.epoch(some, round, reach)
                                           : rows_of_X.epoch(some, round, reach, {3, sigma, least, scratch, n_threads});
    assert(epoch.n_active <= sums.n_active && sigma >= least && sigma <= 2.0);
    reach = epoch.movement;
  }
  const std::vector<double> fresh = recomputed();
  for (std::size_t j = 0; j < d; ++j) assert(std::abs(fresh[j] - w[j]) <= 1e-9 * (1.0 + std::abs(w[j])));
  return w;
}

// Two blocks find the same on one thread and on two.
template <class L, class View>
void check_blocks(const L& loss, const View& X) {
  for (const By by : {By::kSafe, By::kChosen})
    for (const bool intercept : {false, true}) {
      rng.seed(5);  // for the same offsets and weights
      const std::vector<double> w = check(loss, X, intercept, intercept, by, 1);
      rng.seed(5);
      assert(w == check(loss, X, intercept, intercept, by, 2));
    }
}

void check_merges() {
  assert(dual_merges(3 * kEntriesPerTask, 10) == 0 && dual_merges(4 * kEntriesPerTask, 10) == 4);
  assert(dual_merges(1000 * kEntriesPerTask, 10) == 256);
  assert(dual_merges(1000 * kEntriesPerTask, 100 * kEntriesPerTask) == 0);
}

// Every loss on dense data, and one loss on every layout: all pairs would take minutes to compile.
void check_loss(const AnyScalarLoss& loss, const Data& data) {
  const Dense<double> X{kRows, kColumns, data.dense.data()};
  for (const bool intercept : {false, true})
    std::visit([&](const auto& one) { check(one, X, intercept, intercept); }, loss);
}

template <class Value, class Index>
void check_csr(const Data& data) {
  const std::vector<Value> values(data.values.begin(), data.values.end());
  const std::vector<Index> indices(data.indices.begin(), data.indices.end());
  const Csr<Value, Index> X{kRows, kColumns, data.indptr.data(), indices.data(), values.data()};
  for (const bool intercept : {false, true}) check(Hinge{}, X, intercept, !intercept);
  check_blocks(SquaredHinge{}, X);
}

void check_layouts(const Data& data) {
  const std::vector<float> narrow(data.dense.begin(), data.dense.end());
  check(Hinge{}, Dense<float>{kRows, kColumns, narrow.data()}, true, false);
  const Dense<double> X{kRows, kColumns, data.dense.data()};
  check_blocks(Hinge{}, X);
  check_blocks(Logistic{}, X);
  check_blocks(LeastAbsolute{}, X);
  check_csr<float, std::int32_t>(data);
  check_csr<float, std::int64_t>(data);
  check_csr<double, std::int32_t>(data);
  check_csr<double, std::int64_t>(data);
}

// Many rows are cut into tasks: the same sums and rows for any number of threads, and those of all rows at once.
void check_many_rows() {
  const std::size_t m = 3 * kRowsPerTask + 5;
  std::vector<double> y(m), v(m), f(m), weight(m), s(m), b(m);
  for (std::size_t i = 0; i < m; ++i) {
    y[i] = i % 3 == 0 ? -1.0 : 1.0;
    v[i] = i % 4 == 0 ? uniform() : 0.25;  // some are alike
    f[i] = 3.0 * uniform();
    weight[i] = i % 11 == 0 ? 0.0 : 1.0 + uniform();
  }
  const DualPoint point{{}, s, b};
  dual_start(Hinge{}, v, y, 0.5, point, 2);
  for (std::size_t i = 0; i < m; ++i) assert(s[i] == Hinge{}.prox(v[i], y[i], 0.5).slope);
  const Rows rows{y, weight, 1.0};
  std::vector<std::int64_t> first(m), second(m), whole(m);
  const DualCheck one = dual_check(Hinge{}, f, rows, {}, point, 0.1, first, 1);
  const DualCheck two = dual_check(Hinge{}, f, rows, {}, point, 0.1, second, 2);
  assert(first == second && one.value == two.value && one.gap == two.gap && one.offset == two.offset);
  assert(one.size == two.size && one.n_active == two.n_active && one.n_active < m);
  const DualCheck all = dual_check_rows(Hinge{}, f, rows, {}, point, 0.1, 0, m, whole);
  assert(all.n_active == one.n_active && std::abs(all.gap - one.gap) <= 1e-10 * all.gap);
  assert(std::abs(all.value - one.value) <= 1e-13 * all.value && std::abs(all.offset - one.offset) <= 1e-13 * all.size);
  const auto n = static_cast<std::ptrdiff_t>(all.n_active);
  assert(std::equal(whole.begin(), whole.begin() + n, first.begin()));
  std::sort(whole.begin() + n, whole.end());
  std::sort(first.begin() + n, first.end());
  assert(first == whole);
}

// Rows in random order, `each` neighbors at a time; what is left over comes last.
void check_order(std::size_t each) {
  std::vector<std::int64_t> rows(100), again(100);
  std::iota(rows.begin(), rows.end(), 0);
  again = rows;
  RandomOrder first(rows, 5, each), second(again, 5, each);
  for (std::size_t k = 0; k < rows.size(); ++k) assert(first.draw(k) == second.draw(k));
  std::size_t unmoved = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) unmoved += rows[k] == static_cast<std::int64_t>(k);
  assert(unmoved < 20);
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (k % each > 0) assert(rows[k] == rows[k - 1] + 1);
  std::sort(rows.begin(), rows.end());
  for (std::size_t k = 0; k < rows.size(); ++k) assert(rows[k] == static_cast<std::int64_t>(k));
}

}  // namespace

int main() {
  const Data data;
  for (const std::string_view name : kLossNames) {
    const bool parameter = name == "huber_hinge" || name == "novelty" || name == "quantile" ||
                           name.ends_with("epsilon_insensitive") || name == "huber";
    check_loss(make_loss(name, parameter ? std::vector{0.3} : std::vector<double>{}), data);
  }
  check_loss(PiecewiseQuadratic{PiecewiseQuadratic::Of::kMargin, {0.0, 1.0}, {0, -3, 1, 0, -1, 1, 0, 0, 0}}, data);
  check_layouts(data);
  check_many_rows();
  check_merges();
  for (const std::size_t each : {1, 3, 4}) check_order(each);
  std::puts("dual: ok");
}
