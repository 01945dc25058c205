// Losses of several rows against brute force, with ties, one row, huge scores and threads: under sanitizers.
#undef NDEBUG
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "bmrm/kernel/order.hpp"
#include "bmrm/loss/contingency.hpp"
#include "bmrm/loss/pairs.hpp"
#include "bmrm/loss/ranking.hpp"

namespace {

using namespace bmrm;
using Numbers = std::vector<double>;
using Indices = std::vector<std::int64_t>;

std::mt19937_64 random_bits(7);

// Scores of a size: from a grid, where many are equal or exactly 1 apart, or any.
Numbers draw(std::size_t n, bool grid, double size = 1.0) {
  std::normal_distribution<double> normal;
  Numbers f(n);
  for (double& x : f) x = grid ? 0.5 * std::round(2.0 * normal(random_bits)) : size * normal(random_bits);
  return f;
}

void check_close(double a, double b) { assert(std::abs(a - b) <= 1e-11 * (1.0 + std::abs(a) + std::abs(b))); }

void check_order() {
  Order order;
  for (const std::size_t n : {0, 1, 2, 1000, 1025, 5000, 40000})
    for (const int kind : {0, 1, 2, 3}) {
      Numbers f = draw(n, kind == 0, kind == 3 ? 1e300 : 1.0);
      if (kind == 2)
        for (double& x : f) x = 1e8 + 1e-8 * x;  // equal in most leading bits
      if (n > 2) f[0] = -0.0, f[1] = 0.0;
      std::vector<Keyed> items(n);
      order.sort(items, [&](std::size_t k) { return Keyed{key_of(f[k]), std::int64_t(k)}; });
      assert(std::is_sorted(items.begin(), items.end()));
      std::vector<bool> seen(n, false);
      for (const Keyed& item : items) {
        assert(!seen[std::size_t(item.row)] && score_of(item.key) == f[std::size_t(item.row)]);
        seen[std::size_t(item.row)] = true;
      }
    }
}

// Queries of given sizes with random grades, as arrays that live as long as this.
struct Case {
  Indices rows, starts{0}, turns, blocks{0}, queries{0};
  Numbers share, grades;

  Case(const std::vector<std::size_t>& sizes, int n_grades) {
    for (const std::size_t n : sizes) {
      Numbers y(n);
      for (double& g : y) g = double(random_bits() % std::uint64_t(n_grades));
      std::sort(y.begin(), y.end());
      for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && y[i] != y[i - 1]) blocks.push_back(std::int64_t(rows.size()));
        rows.push_back(std::int64_t(rows.size()));
        grades.push_back(y[i]);
      }
      blocks.push_back(std::int64_t(rows.size()));
      queries.push_back(std::int64_t(blocks.size()) - 1);
      starts.push_back(std::int64_t(rows.size()));
      turns.push_back(std::int64_t(turns.size()));
      share.push_back(1.0 / double(sizes.size()));
    }
    std::sort(turns.begin(), turns.end(),
              [&](auto a, auto b) { return sizes[std::size_t(a)] > sizes[std::size_t(b)]; });
  }

  Graded graded() const { return {{rows, starts, turns, share}, blocks, queries}; }
};

double all_pairs(const Case& c, const Numbers& f, const Numbers& p, Numbers& slopes) {
  double total = 0.0;
  std::fill(slopes.begin(), slopes.end(), 0.0);
  for (std::size_t q = 0; q + 1 < c.starts.size(); ++q) {
    double value = 0.0, pairs = 0.0;
    Numbers s(f.size(), 0.0);
    for (auto i = std::size_t(c.starts[q]); i < std::size_t(c.starts[q + 1]); ++i)
      for (auto j = std::size_t(c.starts[q]); j < std::size_t(c.starts[q + 1]); ++j) {
        if (c.grades[i] <= c.grades[j]) continue;
        const double weight = p.empty() ? 1.0 : p[i] * p[j];
        pairs += weight;
        if (!(f[j] > f[i] - 1.0)) continue;
        value += weight * (f[j] - (f[i] - 1.0));
        s[i] -= weight, s[j] += weight;
      }
    if (pairs == 0.0) continue;
    total += c.share[q] * value / pairs;
    for (std::size_t i = 0; i < f.size(); ++i) slopes[i] += c.share[q] * s[i] / pairs;
  }
  return total;
}

void check_pairs() {
  for (const int n_grades : {1, 2, 3, 7, 1000})
    for (const std::vector<std::size_t>& sizes :
         {std::vector<std::size_t>{1}, {2}, {60}, {3, 1, 40, 7}, std::vector<std::size_t>(50, 5)})
      for (const bool grid : {true, false})
        for (const bool weighted : {true, false}) {
          const Case c(sizes, n_grades);
          const Numbers f = draw(c.rows.size(), grid);
          Numbers p;
          for (std::size_t i = 0; weighted && i < f.size(); ++i) p.push_back(double(random_bits() % 4));
          Numbers slopes(f.size(), 0.0), expected(f.size());
          const double value = pair_hinge(f, c.graded(), p, slopes, 2);
          check_close(value, all_pairs(c, f, p, expected));
          for (std::size_t i = 0; i < f.size(); ++i) check_close(slopes[i], expected[i]);
        }
}

// The largest value over all labelings, given by their bits.
template <class Delta>
double all_labelings(const Numbers& f, std::size_t n_plus, const Delta& delta) {
  double best = -1e300;
  for (unsigned bits = 0; bits < (1u << f.size()); ++bits) {
    std::size_t a = 0, b = 0;
    double sum = 0.0;
    for (std::size_t i = 0; i < f.size(); ++i) {
      const bool positive = (bits >> i & 1u) != 0, truly = i < n_plus;
      a += positive && truly, b += positive && !truly;
      sum += positive == truly ? 0.0 : positive ? f[i] : -f[i];
    }
    best = std::max(best, delta(a, b) + sum / double(f.size()));
  }
  return best;
}

void check_tables() {
  constexpr double kNever = -1e300;
  for (int trial = 0; trial < 120; ++trial) {
    const std::size_t m = 2 + trial % 8, plus = 1 + random_bits() % (m - 1);
    const Numbers f = draw(m, trial % 2 == 0, trial % 3 == 0 ? 10.0 : 1.0);
    Indices positives(plus), negatives(m - plus);
    std::iota(positives.begin(), positives.end(), 0);
    std::iota(negatives.begin(), negatives.end(), std::int64_t(plus));
    const Tables tables(f, positives, negatives);
    Numbers slopes(m);
    for (const double beta : {0.3, 1.0, 3.0})
      check_close(fbeta(tables, beta, slopes), all_labelings(f, plus, [&](std::size_t a, std::size_t b) {
                    const double w = beta * beta;
                    return 1.0 - (1.0 + w) * double(a) / (double(a) + double(b) + w * double(plus));
                  }));
    for (std::size_t k = 1; k <= m; ++k) {
      check_close(at_k(tables, k, double(k), slopes), all_labelings(f, plus, [&](std::size_t a, std::size_t b) {
                    return a + b == k ? 1.0 - double(a) / double(k) : kNever;
                  }));
      check_close(std::accumulate(slopes.begin(), slopes.end(), 0.0), (double(k) - double(plus)) / double(m));
    }
  }
}

void check_search() {
  for (std::size_t last = 0; last < 40; ++last)
    for (std::size_t answer = 0; answer <= last; ++answer)
      for (std::size_t guess = 0; guess <= last + 2; ++guess)
        assert(first_from(guess, last, [&](std::size_t n) {
                 assert(n < last);
                 return n >= answer;
               }) == answer);
}

template <class Delta>
double all_permutations(const Numbers& f, const Numbers& c, const Delta& delta) {
  std::vector<std::size_t> order(f.size());
  std::iota(order.begin(), order.end(), 0u);
  double best = -1e300;
  do {
    double value = delta(order);
    for (std::size_t r = 0; r < f.size(); ++r) value += c[r] * (f[order[r]] - f[r]);
    best = std::max(best, value);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void check_permutations() {
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + trial % 7, k = 1 + random_bits() % n, relevant = 1 + random_bits() % n;
    const Numbers f = draw(n, trial % 2 == 0, trial % 3 == 0 ? 3.0 : 0.3);
    Numbers c, d, g;
    for (std::size_t r = 0; r < n; ++r) {
      c.push_back(std::pow(double(r + 1), -0.25));
      d.push_back(r < k ? 1.0 / std::log2(double(r + 2)) : 0.0);
      g.push_back(double(n - r) * double(random_bits() % 2));
    }
    const Indices starts{0, std::int64_t(n)}, turns{0}, relevants{std::int64_t(relevant)};
    Indices rows(n);
    std::iota(rows.begin(), rows.end(), 0);
    const Numbers share{1.0};
    const Ranked ranked{{rows, starts, turns, share}, c};
    Numbers slopes(n);
    check_close(gain_loss(f, ranked, g, d, slopes, 1), all_permutations(f, c, [&](const auto& order) {
                  double lost = 0.0;
                  for (std::size_t r = 0; r < n; ++r) lost += d[r] * (g[r] - g[order[r]]);
                  return lost;
                }));
    check_close(reciprocal_rank_loss(f, ranked, relevants, slopes, 1), all_permutations(f, c, [&](const auto& order) {
                  std::size_t r = 0;
                  while (order[r] >= relevant) ++r;
                  return 1.0 - 1.0 / double(r + 1);
                }));
  }
}

// Large queries on threads: the same to the last bit for any number of them; huge scores stay numbers.
void check_threads() {
  const Case c({3000, 1, 5000, 40, 700}, 4);
  const std::size_t m = c.rows.size();
  for (const double size : {1.0, 1e300}) {
    const Numbers f = draw(m, false, size);
    Numbers one(m, 0.0), four(m, 0.0);
    assert(pair_hinge(f, c.graded(), {}, one, 1) == pair_hinge(f, c.graded(), {}, four, 4) && one == four);
    const Sets sets = c.graded().sets;
    Numbers margin(m), discount(5000, 0.0), gain(m, 0.0);
    for (std::size_t q = 0; q < 5; ++q)
      for (std::size_t r = 0; r < sets.size(q); ++r) margin[sets.first(q) + r] = 1.0 / double(r + 1);
    for (std::size_t r = 0; r < 5; ++r) discount[r] = 1.0 / double(r + 1);
    for (std::size_t i = 0; i < m; i += 7) gain[i] = 0.1;
    const Ranked ranked{sets, margin};
    const double value = gain_loss(f, ranked, gain, discount, one, 1);
    assert(value == gain_loss(f, ranked, gain, discount, four, 4) && one == four);
    assert(!std::isnan(value) || size > 1.0);
  }
}

}  // namespace

int main() {
  check_order();
  check_pairs();
  check_tables();
  check_search();
  check_permutations();
  check_threads();
  std::puts("sets: ok");
}
