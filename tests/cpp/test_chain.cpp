// Chains: scores and gradients, sums over all labelings and best ones, against enumeration. Meant to run under
// sanitizers.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "bmrm/structured/chain.hpp"
#include "bmrm/structured/emissions.hpp"

namespace {

using namespace bmrm;
using namespace bmrm::chain;

std::mt19937_64 rng(11);
double uniform() { return std::uniform_real_distribution<double>(-1.0, 1.0)(rng); }

// Scores of all parts, drawn; the padding stays 0.
std::vector<double> drawn(const Layout& layout, double scale) {
  std::vector<double> f(layout.size());
  for (std::size_t e = 0; e < f.size(); ++e)
    if (e % layout.row() < layout.k) f[e] = scale * uniform();
  return f;
}

// Calls body(labels, score) for every labeling of sequence i.
template <class Body>
void enumerate(const Layout& layout, const std::vector<double>& f, std::size_t i, const Body& body) {
  const Scores scores{f.data(), nullptr, 0.0};
  const Shared shared(layout, scores);
  Sequence sequence;
  sequence.load(layout, scores, shared, i);
  std::vector<std::int32_t> y(sequence.n, 0);
  for (;;) {
    double score = shared.end[label(y.data(), sequence.n - 1)];
    for (std::size_t t = 0; t < sequence.n; ++t) score += score_of(layout, shared, sequence, y.data(), t);
    body(y, score);
    std::size_t t = 0;
    while (t < y.size() && ++y[t] == static_cast<std::int32_t>(layout.k)) y[t++] = 0;
    if (t == y.size()) return;
  }
}

double own_score(const Layout& layout, const std::vector<double>& f, std::size_t i, const std::int32_t* y) {
  double own = 0.0;
  enumerate(layout, f, i, [&](const std::vector<std::int32_t>& other, double score) {
    if (std::equal(other.begin(), other.end(), y)) own = score;
  });
  return own;
}

void check_losses(std::size_t k, bool pairs, double scale) {
  const std::vector<std::int64_t> starts{0, 1, 4, 6};
  const Layout layout{k, starts, pairs};
  const std::vector<double> f = drawn(layout, scale), d = drawn(layout, 1.0), p{0.5, 0.3, 0.2};
  std::vector<double> moved(f), costs(k * k, 1.5), slopes(layout.size(), 7.0);
  for (std::size_t e = 0; e < f.size(); ++e) moved[e] += 0.25 * d[e];
  for (std::size_t c = 0; c < k; ++c) costs[c * k + c] = 0.0;
  std::vector<std::int32_t> y(6);
  for (std::size_t t = 0; t < 6; ++t) y[t] = static_cast<std::int32_t>(t * t % k);
  double log_value = 0.0, margin = 0.0, slack = 0.0;
  std::vector<double> log_z(3);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int32_t* true_labels = y.data() + starts[i];
    const double own = own_score(layout, moved, i, true_labels);
    double top = own, sum = 0.0, most = 0.0, most_slack = 0.0;
    enumerate(layout, moved, i, [&](const auto&, double score) { top = std::max(top, score); });
    enumerate(layout, moved, i, [&](const std::vector<std::int32_t>& other, double score) {
      double cost = 0.0;
      for (std::size_t t = 0; t < other.size(); ++t) cost += other[t] == true_labels[t] ? 0.0 : 1.5;
      sum += std::exp(score - top);
      most = std::max(most, cost + score - own);
      most_slack = std::max(most_slack, cost * (1.0 + score - own));
    });
    log_z[i] = top + std::log(sum);
    log_value += p[i] * (log_z[i] - own);
    margin += p[i] * most;
    slack += p[i] * most_slack;
  }
  const Scores scores{f.data(), d.data(), 0.25};
  const double error = 1e-11 * (1.0 + scale);
  const auto check = [&](const ValueAndSlope& found, double value) {
    double slope = 0.0;
    for (std::size_t e = 0; e < d.size(); ++e) slope += slopes[e] * d[e];
    assert(std::abs(found.value - value) < error);
    assert(std::abs(found.slope - slope) < error);
    for (std::size_t e = 0; e < slopes.size(); ++e)
      if (e % layout.row() >= k) assert(slopes[e] == 0.0);
  };
  check(log_loss(layout, y, p, scores, slopes, 2), log_value);
  check(hinge_loss(layout, y, p, {costs.data(), 0.0}, scores, slopes, 2), margin);
  if (k > 1) check(hinge_loss(layout, y, p, {costs.data(), 1.5}, scores, slopes, 2), slack);
  std::vector<double> shares(layout.transitions()), found(3);
  marginals_of(layout, {moved.data(), nullptr, 0.0}, shares, found, 2);
  for (std::size_t i = 0; i < 3; ++i) assert(std::abs(found[i] - log_z[i]) < error);
  for (std::size_t t = 0; t < 6; ++t) {
    double sum = 0.0;
    for (std::size_t c = 0; c < k; ++c) sum += shares[t * layout.row() + c];
    assert(std::abs(sum - 1.0) < 1e-9);
  }
  std::vector<std::int32_t> best(6);
  best_labels(layout, {}, {nullptr, 0.0}, {moved.data(), nullptr, 0.0}, best, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const double score = own_score(layout, moved, i, best.data() + starts[i]);
    enumerate(layout, moved, i, [&](const auto&, double other) { assert(other <= score + error); });
  }
}

void check_emissions(std::size_t k, bool values, bool seen) {
  const std::size_t n_tokens = 700, n_attributes = 30, row = padded(k);
  std::vector<std::int64_t> indptr{0}, starts{0};
  std::vector<std::int32_t> attributes, labels;
  std::vector<double> x;
  for (std::size_t t = 0; t < n_tokens; ++t) {
    for (std::size_t a = t % 3; a < n_attributes; a += 1 + t % 7) {
      attributes.push_back(static_cast<std::int32_t>(a));
      x.push_back(values ? uniform() : 1.0);
    }
    indptr.push_back(static_cast<std::int64_t>(attributes.size()));
  }
  for (std::size_t a = 0; a < n_attributes; ++a) {
    for (std::size_t c = 0; c < k; ++c)
      if (!seen || (a % 5 != 4 && c % (a + 1) == 0)) labels.push_back(static_cast<std::int32_t>(c));
    starts.push_back(static_cast<std::int64_t>(labels.size()));
  }
  const std::span<const double> given = values ? std::span<const double>(x) : std::span<const double>();
  const std::span<const std::int32_t> pattern =
      seen ? std::span<const std::int32_t>(labels) : std::span<const std::int32_t>();
  Emissions emissions({indptr, attributes, given}, starts, pattern, k);
  std::vector<double> w(labels.size()), F(n_tokens * row), L(n_tokens * row), g(w.size());
  for (double& one : w) one = uniform();
  for (int sparse = 0; sparse < 2; ++sparse) {
    for (std::size_t e = 0; e < L.size(); ++e)
      L[e] = e % row >= k || (sparse == 1 && (e / row) % 5 != 0) ? 0.0 : uniform();
    emissions.scores(w.data(), F.data(), 2);
    emissions.gradient(L.data(), g.data(), 2);
    std::vector<double> expected(w.size());
    for (std::size_t t = 0; t < n_tokens; ++t) {
      std::vector<double> f(row);
      for (auto p = static_cast<std::size_t>(indptr[t]); p < static_cast<std::size_t>(indptr[t + 1]); ++p) {
        const auto a = static_cast<std::size_t>(attributes[p]);
        for (auto e = static_cast<std::size_t>(starts[a]); e < static_cast<std::size_t>(starts[a + 1]); ++e) {
          f[static_cast<std::size_t>(labels[e])] += x[p] * w[e];
          expected[e] += x[p] * L[t * row + static_cast<std::size_t>(labels[e])];
        }
      }
      for (std::size_t c = 0; c < row; ++c) assert(std::abs(F[t * row + c] - f[c]) < 1e-12);
    }
    for (std::size_t e = 0; e < g.size(); ++e) assert(std::abs(g[e] - expected[e]) < 1e-10);
  }
}

void check_edges(std::size_t k) {
  const std::vector<std::int64_t> indptr{0, 2, 2, 3};
  const std::vector<std::int32_t> attributes{0, 1, 1};
  const std::vector<double> values{0.5, -2.0, 3.0};
  const EdgeScores edges({indptr, attributes, values}, 2, k);
  std::vector<double> w(2 * k * k), L(3 * edges.table()), F(L.size()), g(w.size());
  for (double& one : w) one = uniform();
  for (double& one : L) one = uniform();
  edges.scores(w.data(), F.data(), 2);
  edges.gradient(L.data(), g.data(), 2);
  const std::size_t row = padded(k);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      const std::size_t c = i * k + j, e = i * row + j;
      assert(std::abs(F[e] - (0.5 * w[c] - 2.0 * w[k * k + c])) < 1e-14);
      assert(F[edges.table() + e] == 0.0);
      assert(std::abs(g[k * k + c] - (-2.0 * L[e] + 3.0 * L[2 * edges.table() + e])) < 1e-14);
    }
  }
}

}  // namespace

int main() {
  for (const std::size_t k : {1, 2, 3, 4, 5, 9}) {
    for (const double scale : {0.5, 100.0, 2000.0}) {
      check_losses(k, false, scale);
      check_losses(k, true, scale);
    }
    check_edges(k);
  }
  for (const std::size_t k : {1, 3, 4, 22, 37}) {
    for (const bool values : {false, true}) {
      check_emissions(k, values, false);
      check_emissions(k, values, true);
    }
  }
  std::puts("chain: ok");
}
