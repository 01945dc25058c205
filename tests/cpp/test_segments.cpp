// Segmentations against brute force, and long sequences: under sanitizers.
#undef NDEBUG
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "bmrm/structured/segments.hpp"

namespace {

using namespace bmrm;
using Numbers = std::vector<double>;

std::mt19937_64 random_bits(11);

void check_close(double a, double b) { assert(std::abs(a - b) <= 1e-10 * (1.0 + std::abs(a) + std::abs(b))); }

// Scores of a size, or counts of the same shapes, that live as long as this.
struct Tables {
  std::size_t n, k, longest;
  Numbers token, first, last, length, pair;

  Tables(std::size_t n_tokens, std::size_t n_labels, std::size_t max_length, double size)
      : n(n_tokens), k(n_labels), longest(max_length) {
    std::normal_distribution<double> normal;
    for (Numbers* part : {&token, &first, &last}) part->resize(n * k);
    length.resize(longest * k), pair.resize(k * k);
    for (Numbers* part : {&token, &first, &last, &length, &pair})
      for (double& x : *part) x = size * normal(random_bits);
  }

  SegmentScores scores() const {
    return {n, k, longest, token.data(), first.data(), last.data(), length.data(), pair.data()};
  }
  SegmentCounts counts() { return {token.data(), first.data(), last.data(), length.data(), pair.data()}; }

  void add(const std::vector<Segment>& segments, double share) {
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const auto start = std::size_t(segments[s].start), end = std::size_t(segments[s].end);
      const auto l = std::size_t(segments[s].label);
      for (std::size_t t = start; t < end; ++t) token[t * k + l] += share;
      first[start * k + l] += share, last[(end - 1) * k + l] += share, length[(end - start - 1) * k + l] += share;
      if (s > 0) pair[std::size_t(segments[s - 1].label) * k + l] += share;
    }
  }

  double inner(const Tables& other) const {
    double sum = 0.0;
    const auto add_up = [&](const Numbers& a, const Numbers& b) {
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    };
    add_up(token, other.token), add_up(first, other.first), add_up(last, other.last);
    add_up(length, other.length), add_up(pair, other.pair);
    return sum;
  }
};

using Visit = std::function<void(const std::vector<Segment>&)>;

void all_segmentations(const Tables& t, std::vector<Segment>& so_far, const Visit& visit) {
  const std::size_t start = so_far.empty() ? 0 : std::size_t(so_far.back().end);
  if (start == t.n) return visit(so_far);
  for (std::size_t end = start + 1; end <= std::min(t.n, start + t.longest); ++end)
    for (std::size_t l = 0; l < t.k; ++l) {
      so_far.push_back({std::int64_t(start), std::int64_t(end), std::int64_t(l)});
      all_segmentations(t, so_far, visit);
      so_far.pop_back();
    }
}

double score_of(const Tables& scores, const std::vector<Segment>& segments) {
  Tables once(scores.n, scores.k, scores.longest, 0.0);
  once.add(segments, 1.0);
  return scores.inner(once);
}

void check_brute_force() {
  for (std::size_t n = 1; n <= 5; ++n)
    for (std::size_t k = 1; k <= 3; ++k)
      for (const std::size_t longest : {1, 2, 3, 7})
        for (const double size : {0.0, 1.0, 300.0}) {
          const Tables scores(n, k, longest, size);
          Numbers found;
          std::vector<Segment> so_far;
          all_segmentations(scores, so_far, [&](const auto& y) { found.push_back(score_of(scores, y)); });
          const double top = *std::max_element(found.begin(), found.end());
          check_close(score_of(scores, best_segments(scores.scores())), top);
          double sum = 0.0;
          for (const double score : found) sum += std::exp(score - top);
          Tables expected(n, k, longest, 0.0), counts(n, k, longest, 0.0);
          all_segmentations(scores, so_far,
                            [&](const auto& y) { expected.add(y, std::exp(score_of(scores, y) - top) / sum); });
          check_close(segment_expectations(scores.scores(), counts.counts()), top + std::log(sum));
          for (std::size_t i = 0; i < n * k; ++i) {
            check_close(counts.token[i], expected.token[i]);
            check_close(counts.first[i], expected.first[i]);
            check_close(counts.last[i], expected.last[i]);
          }
          for (std::size_t i = 0; i < longest * k; ++i) check_close(counts.length[i], expected.length[i]);
          for (std::size_t i = 0; i < k * k; ++i) check_close(counts.pair[i], expected.pair[i]);
        }
}

// A long sequence with large scores: shares stay shares.
void check_long() {
  const Tables scores(700, 5, 40, 20.0);
  Tables counts(700, 5, 40, 0.0);
  const double value = segment_expectations(scores.scores(), counts.counts());
  assert(std::isfinite(value) && value >= score_of(scores, best_segments(scores.scores())));
  for (std::size_t t = 0; t < 700; ++t) {
    double sum = 0.0;
    for (std::size_t l = 0; l < 5; ++l) sum += counts.token[t * 5 + l];
    check_close(sum, 1.0);
  }
}

}  // namespace

int main() {
  check_brute_force();
  check_long();
  std::puts("segments: ok");
}
