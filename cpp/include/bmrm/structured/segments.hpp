// Segmentations of a sequence: each segment has a label and at most so many tokens.
//
// The score of a segmentation adds up, for each segment from s to before e with label l,
//     sum_{s <= t < e} token(t, l) + first(s, l) + last(e - 1, l) + length(e - s, l),
// and pair(l, l') for each two neighbors. The best one and the sum over all take O(T (L k + k^2)).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bmrm/pool.hpp"
#include "bmrm/structured/log_sum.hpp"

namespace bmrm {

struct SegmentScores {
  std::size_t n_tokens, n_labels, max_length;
  const double *token, *first, *last;  // n_tokens x n_labels
  const double* length;                // max_length x n_labels: of 1, 2, ... tokens
  const double* pair;                  // n_labels x n_labels: from one label to the next
};

// Expected counts of what the scores belong to, in the same shapes.
struct SegmentCounts {
  double *token, *first, *last, *length, *pair;
};

struct Segment {
  std::int64_t start, end, label;
};

// Before(t, l): the total of all segmentations of the first t tokens, with what leads from the last of them to l.
// Upto(t, l): the total of those whose last segment has label l.
template <class Sum>
class Segmentations {
 public:
  explicit Segmentations(const SegmentScores& scores)
      : s_(scores),
        before_((scores.n_tokens + 1) * scores.n_labels, 0.0),
        upto_((scores.n_tokens + 1) * scores.n_labels, kNever) {
    Patience patience;
    for (std::size_t t = 1; t <= s_.n_tokens; ++t) {
      end_at(t);
      lead_on(t);
      patience.check();
    }
  }

  double total() const {
    Sum sum;
    for (std::size_t l = 0; l < s_.n_labels; ++l) sum.add(upto(s_.n_tokens, l));
    return sum.total();
  }

  double before(std::size_t t, std::size_t l) const { return before_[t * s_.n_labels + l]; }
  double upto(std::size_t t, std::size_t l) const { return upto_[t * s_.n_labels + l]; }

  // Calls take(score with all before it, start) for each segment with label l that ends before t.
  template <class Take>
  void each_ending(std::size_t t, std::size_t l, const Take& take) const {
    const std::size_t k = s_.n_labels;
    double tokens = s_.last[(t - 1) * k + l];
    for (std::size_t n = 1; n <= std::min(s_.max_length, t); ++n) {
      const std::size_t start = t - n;
      tokens += s_.token[start * k + l];
      take(before(start, l) + (tokens + s_.first[start * k + l] + s_.length[(n - 1) * k + l]), start);
    }
  }

 private:
  void end_at(std::size_t t) {
    for (std::size_t l = 0; l < s_.n_labels; ++l) {
      Sum sum;
      each_ending(t, l, [&](double score, std::size_t) { sum.add(score); });
      upto_[t * s_.n_labels + l] = sum.total();
    }
  }

  void lead_on(std::size_t t) {
    const std::size_t k = s_.n_labels;
    for (std::size_t l = 0; l < k; ++l) {
      Sum sum;
      for (std::size_t from = 0; from < k; ++from) sum.add(upto(t, from) + s_.pair[from * k + l]);
      before_[t * k + l] = sum.total();
    }
  }

  SegmentScores s_;
  std::vector<double> before_, upto_;
};

// The best segmentation, from left to right.
inline std::vector<Segment> best_segments(const SegmentScores& s) {
  const Segmentations<Largest> all(s);
  std::vector<Segment> found;
  std::size_t t = s.n_tokens, label = 0;
  for (std::size_t l = 1; l < s.n_labels; ++l)
    if (all.upto(t, l) > all.upto(t, label)) label = l;
  while (t > 0) {
    Largest::Shares shares(all.upto(t, label));
    std::size_t start = t - 1;
    all.each_ending(t, label, [&](double score, std::size_t from) { start = shares.of(score) > 0.0 ? from : start; });
    found.push_back({std::int64_t(start), std::int64_t(t), std::int64_t(label)});
    t = start;
    Largest::Shares leads(all.before(t, label));
    std::size_t next = 0;
    for (std::size_t from = 0; t > 0 && from < s.n_labels; ++from)
      if (leads.of(all.upto(t, from) + s.pair[from * s.n_labels + label]) > 0.0) next = from;
    label = next;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// The share of each segmentation is passed back from the end: a segment that ends at t gives what it has to its start,
// and a start to the segments that end there. The shares of a cell are divided by their sum: they are those of some
// distribution of segmentations, whatever the totals are rounded by, and so their plane is valid everywhere.
class SegmentShares {
 public:
  SegmentShares(const SegmentScores& scores, const Segmentations<LogSum>& all, const SegmentCounts& counts)
      : s_(scores),
        all_(all),
        counts_(counts),
        mass_(scores.n_labels),
        leading_(scores.n_labels),
        ending_(scores.max_length) {
    for (std::size_t l = 0; l < s_.n_labels; ++l) mass_[l] = std::exp(all_.upto(s_.n_tokens, l) - all_.total());
    scale_to(1.0, mass_.data(), s_.n_labels);
    Patience patience;
    for (std::size_t t = s_.n_tokens; t > 0; --t) {
      if (t < s_.n_tokens) lead_back(t);
      for (std::size_t l = 0; l < s_.n_labels; ++l) start_from(t, l);
      patience.check();
    }
  }

 private:
  void lead_back(std::size_t t) {
    const std::size_t k = s_.n_labels;
    std::fill(mass_.begin(), mass_.end(), 0.0);
    for (std::size_t l = 0; l < k; ++l) {
      LogSum::Shares shares(all_.before(t, l));
      for (std::size_t from = 0; from < k; ++from)
        leading_[from] = shares.of(all_.upto(t, from) + s_.pair[from * k + l]);
      scale_to(counts_.first[t * k + l], leading_.data(), k);
      for (std::size_t from = 0; from < k; ++from) {
        counts_.pair[from * k + l] += leading_[from];
        mass_[from] += leading_[from];
      }
    }
  }

  void start_from(std::size_t t, std::size_t l) {
    const std::size_t k = s_.n_labels;
    LogSum::Shares shares(all_.upto(t, l));
    std::size_t n = 0;
    all_.each_ending(t, l, [&](double score, std::size_t) { ending_[n++] = shares.of(score); });
    scale_to(mass_[l], ending_.data(), n);
    counts_.last[(t - 1) * k + l] += mass_[l];
    double longer = 0.0;  // of the segments that reach at least so far back
    for (; n > 0; --n) {
      const std::size_t at = (t - n) * k + l;
      longer += ending_[n - 1];
      counts_.token[at] += longer;
      counts_.first[at] += ending_[n - 1];
      counts_.length[(n - 1) * k + l] += ending_[n - 1];
    }
  }

  const SegmentScores& s_;
  const Segmentations<LogSum>& all_;
  const SegmentCounts& counts_;
  std::vector<double> mass_, leading_, ending_;
};

// log of the sum of exp(score) over all segmentations; the counts, 0 before, become their expected values.
inline double segment_expectations(const SegmentScores& scores, const SegmentCounts& counts) {
  const Segmentations<LogSum> all(scores);
  SegmentShares(scores, all, counts);
  return all.total();
}

}  // namespace bmrm
