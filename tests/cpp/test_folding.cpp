// Foldings against brute force, and sequences of honest length: under sanitizers.
#undef NDEBUG
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bmrm/structured/fold_features.hpp"
#include "bmrm/structured/folding.hpp"

namespace {

using namespace bmrm;
using Numbers = std::vector<double>;
using Bases = std::vector<std::uint8_t>;
using Partners = std::vector<std::int64_t>;

std::mt19937_64 random_bits(13);

void check_close(double a, double b) { assert(std::abs(a - b) <= 1e-9 * (1.0 + std::abs(a) + std::abs(b))); }

Bases coded(const std::string& letters) {
  Bases bases;
  for (const char letter : letters) bases.push_back(std::uint8_t(std::string("ACGU").find(letter)));
  return bases;
}

Bases draw(std::size_t n) {
  Bases bases(n);
  for (auto& base : bases) base = std::uint8_t(random_bits() % 4);
  return bases;
}

Numbers draw_weights(std::size_t n, double size) {
  std::normal_distribution<double> normal;
  Numbers w(n);
  for (double& x : w) x = size * normal(random_bits);
  return w;
}

Numbers features(const FoldWeights& weights, const Bases& bases, const Partners& partner) {
  Numbers counts(weights.dim(), 0.0);
  fold_loops(weights, bases, partner, [&](std::size_t index, double count) { counts[index] += count; });
  return counts;
}

double inner(const Numbers& a, const Numbers& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// All structures: the base at `at` stays unpaired or pairs with one to the right of it.
void all_structures(const Bases& bases, std::size_t at, Partners& partner, std::vector<Partners>& found) {
  if (at == bases.size()) return found.push_back(partner);
  if (partner[at] >= 0) return all_structures(bases, at + 1, partner, found);
  all_structures(bases, at + 1, partner, found);
  for (std::size_t j = at + 1; j < bases.size(); ++j) {
    if (partner[j] >= 0) break;  // an enclosing pair ends there
    if (j - at <= kMinHairpin || pair_type(bases[at], bases[j]) == kNoPair) continue;
    partner[at] = std::int64_t(j), partner[j] = std::int64_t(at);
    all_structures(bases, at + 1, partner, found);
    partner[at] = partner[j] = -1;
  }
}

double cost(const Partners& y, const Partners& other) {
  double wrong = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i] != other[i]) wrong += (y[i] > std::int64_t(i)) + (other[i] > std::int64_t(i));
  return wrong;
}

Partners best(const Foldings<Largest>& all, std::size_t n) {
  Partners partner(n, -1);
  all.share_out([&](int i, int j, double) { partner[std::size_t(i)] = j, partner[std::size_t(j)] = i; },
                [](std::size_t, double) {});
  return partner;
}

void check_against_all(const FoldWeights& weights, const Bases& bases, double size) {
  const Numbers w = draw_weights(weights.dim(), size);
  std::vector<Partners> found, kept;
  Partners partner(bases.size(), -1);
  all_structures(bases, 0, partner, found);
  std::vector<Numbers> counts;
  for (const Partners& y : found) {
    try {
      counts.push_back(features(weights, bases, y));
      kept.push_back(y);
    } catch (const std::invalid_argument&) {  // a loop is too long
    }
  }
  const Partners& truth = kept[random_bits() % kept.size()];
  double pairs = 0.0;
  for (std::size_t i = 0; i < truth.size(); ++i) pairs += truth[i] > std::int64_t(i);
  Numbers scores;
  double top = kNever, worst = kNever, sum = 0.0;
  for (std::size_t s = 0; s < kept.size(); ++s) {
    scores.push_back(inner(w, counts[s]));
    top = std::max(top, scores.back());
    worst = std::max(worst, scores.back() + cost(truth, kept[s]));
  }
  const Foldings<Largest> plain(weights, w.data(), bases, {}), augmented(weights, w.data(), bases, truth);
  check_close(plain.value(), top);
  check_close(inner(w, features(weights, bases, best(plain, bases.size()))), top);
  check_close(augmented.value() + pairs, worst);
  const Partners answer = best(augmented, bases.size());
  check_close(inner(w, features(weights, bases, answer)) + cost(truth, answer), worst);
  for (const double score : scores) sum += std::exp(score - top);
  Numbers expected(weights.dim(), 0.0), shares(weights.dim(), 0.0);
  for (std::size_t s = 0; s < kept.size(); ++s)
    for (std::size_t i = 0; i < weights.dim(); ++i)
      if (counts[s][i] != 0.0) expected[i] += counts[s][i] * std::exp(scores[s] - top) / sum;
  const Foldings<LogSum> all(weights, w.data(), bases, {});
  check_close(all.value(), top + std::log(sum));
  all.share_out([](int, int, double) {}, [&](std::size_t index, double count) { shares[index] += count; });
  for (std::size_t i = 0; i < shares.size(); ++i) check_close(shares[i], expected[i]);
}

void check_brute_force() {
  for (const auto& [loop, hairpin] : {std::pair{2, 3}, std::pair{3, 5}, std::pair{30, 30}}) {
    const FoldWeights weights(loop, hairpin);
    for (const double size : {0.0, 1.0, 100.0}) {
      for (std::size_t n = 1; n <= 12; ++n) check_against_all(weights, draw(n), size);
      for (const char* letters : {"GGAAACGAAACC", "GAGAAACAGAAACAC", "AGCAAGGAAACAAGC"})
        check_against_all(weights, coded(letters), size);
    }
  }
}

// Long sequences: the value is the score of the structure that was found, and shares of pairs are at most 1.
void check_long() {
  const FoldWeights weights(30, 30);
  assert(weights.dim() == 367);
  for (const std::size_t n : {60, 130}) {
    const Bases bases = draw(n);
    const Numbers w = draw_weights(weights.dim(), 1.0);
    const Foldings<Largest> plain(weights, w.data(), bases, {});
    check_close(plain.value(), inner(w, features(weights, bases, best(plain, n))));
    const Foldings<LogSum> all(weights, w.data(), bases, {});
    assert(all.value() >= plain.value());
    Numbers shares(n, 0.0);
    all.share_out([&](int i, int j, double share) { shares[std::size_t(i)] += share, shares[std::size_t(j)] += share; },
                  [](std::size_t, double) {});
    for (const double share : shares) assert(share >= 0.0 && share <= 1.0 + 1e-9);
  }
}

}  // namespace

int main() {
  check_brute_force();
  check_long();
  std::puts("folding: ok");
}
