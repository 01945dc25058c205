// The hinge over pairs of rows of different grades, by sorting: ROC area, ordinal regression, ranking by pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/kernel/order.hpp"
#include "bmrm/kernel/queries.hpp"
#include "bmrm/kernel/sum.hpp"

namespace bmrm {

// One set of rows for each query, in blocks of equal grade from the lowest to the highest: query q has the blocks
// queries[q] .. queries[q + 1], block b the places blocks[b] .. blocks[b + 1] of the set's rows.
struct Graded {
  Sets sets;
  std::span<const std::int64_t> blocks;
  std::span<const std::int64_t> queries;
};

// The sum over i of a higher grade and j of a lower one of p_i p_j max(0, 1 - (f_i - f_j)), and its slopes.
//
// Blocks are sorted by score and merged two by two, lower grades with higher ones. Where two meet, the pairs between
// them are counted with one finger on each: j counts for i if f_j > f_i - 1. The sum grows by terms that are never
// negative, so no digits are lost. Time m log m for the sort and m log g for g grades.
class PairSum {
 public:
  // Returns the sum divided by the total of p_i p_j over those pairs; slopes are multiplied by the query's share.
  double mean(std::span<const double> scores, const Graded& graded, std::size_t q, std::span<const double> weight,
              std::span<double> slopes) {
    weight_.clear();
    if (!weight.empty())
      for (const std::int64_t row : graded.sets.rows.subspan(graded.sets.first(q), graded.sets.size(q)))
        weight_.push_back(weight[static_cast<std::size_t>(row)]);
    arrange(scores, graded, q);
    double lower = 0.0, pairs = 0.0;  // weight of the blocks so far, of the pairs so far
    for (std::size_t b = 0; b + 1 < ends_.size(); ++b) {
      const double here = weight_of(items(b));
      pairs += here * lower;
      lower += here;
    }
    if (pairs > 0.0) join(0, ends_.size() - 1, false);
    return divided(graded, q, pairs, slopes);
  }

  // The sum itself with (g_a - g_b) (d_a - d_b) in the place of p_i p_j for rows of blocks a and b; g and d are given
  // by block and rise. Blocks with d = 0 are not compared with each other: n log n, and n for each block with d > 0.
  double sum_by_gain(std::span<const double> scores, const Graded& graded, std::size_t q, std::span<const double> gain,
                     std::span<const double> discount, std::span<double> slopes) {
    weight_.assign(graded.sets.size(q), 1.0);
    arrange(scores, graded, q);
    const auto block = static_cast<std::size_t>(graded.queries[q]);
    const double *g = gain.data() + block, *d = discount.data() + block;
    for (std::size_t high = 1; high + 1 < ends_.size(); ++high) {
      const auto weight = std::span(weight_).subspan(ends_[high], items(high).size());
      for (std::size_t low = 0; low < high && d[high] > 0.0; ++low) {
        std::fill(weight.begin(), weight.end(), (g[high] - g[low]) * (d[high] - d[low]));
        count(items(low), items(high));
      }
      std::fill(weight.begin(), weight.end(), 1.0);
    }
    return divided(graded, q, 1.0, slopes);
  }

  // What the scratch space holds.
  std::size_t n_items() const { return items_.capacity() + order_.n_items(); }

 private:
  static constexpr std::ptrdiff_t kAhead = 16;  // items whose slopes are asked for before they are needed
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // Sorts the blocks of the query by score, and begins the sum and the slopes.
  void arrange(std::span<const double> scores, const Graded& graded, std::size_t q) {
    const auto rows = graded.sets.rows.subspan(graded.sets.first(q), graded.sets.size(q));
    const auto block = static_cast<std::size_t>(graded.queries[q]),
               end = static_cast<std::size_t>(graded.queries[q + 1]);
    sum_ = {};
    items_.resize(rows.size());
    slopes_.assign(rows.size(), 0.0);
    ends_.assign(1, 0);
    for (std::size_t b = block; b < end; ++b) {
      const std::size_t first = ends_.back(), n = static_cast<std::size_t>(graded.blocks[b + 1] - graded.blocks[b]);
      order_.sort(std::span(items_).subspan(first, n), [&, first](std::size_t k) {
        const auto row = static_cast<std::size_t>(rows[first + k]);
        return Keyed{key_of(scores[row]), static_cast<std::int64_t>(first + k)};
      });
      ends_.push_back(first + n);
    }
  }

  // The rows of a block, by score.
  std::span<Keyed> items(std::size_t b) { return std::span(items_).subspan(ends_[b], ends_[b + 1] - ends_[b]); }

  // Returns the sum divided by the weight of the pairs, and writes the slopes.
  double divided(const Graded& graded, std::size_t q, double pairs, std::span<double> slopes) const {
    if (!(pairs > 0.0)) return 0.0;
    const auto rows = graded.sets.rows.subspan(graded.sets.first(q), graded.sets.size(q));
    const double scale = graded.sets.share[q] / pairs;
    for (std::size_t k = 0; k < rows.size(); ++k) slopes[static_cast<std::size_t>(rows[k])] = scale * slopes_[k];
    return sum_.value() / pairs;
  }

  double p(const Keyed& item) const { return weight_.empty() ? 1.0 : weight_[static_cast<std::size_t>(item.row)]; }

  double weight_of(std::span<const Keyed> items) const {
    if (weight_.empty()) return double(items.size());
    Sum total;
    for (const Keyed& item : items) total.add(p(item));
    return total.value();
  }

  // Counts the pairs among some blocks, and merges their rows where others are still to be counted against.
  void join(std::size_t block, std::size_t end, bool merged) {
    if (end - block < 2) return;
    const std::size_t half = block + (end - block) / 2;
    join(block, half, true);
    join(half, end, true);
    const auto low = std::span(items_).subspan(ends_[block], ends_[half] - ends_[block]);
    const auto high = std::span(items_).subspan(ends_[half], ends_[end] - ends_[half]);
    count(low, high);
    if (!merged) return;
    const auto spare = order_.spare(low.size() + high.size());
    const auto last = std::merge(low.begin(), low.end(), high.begin(), high.end(), spare.begin());
    std::copy(spare.begin(), last, low.begin());
  }

  // Goes through the f_j and the f_i - 1 together in increasing order; equal ones are no pair. There is no branch on
  // which of the two comes next: it cannot be predicted. Scores are subtracted from each other first, the margin comes
  // on top: f_i - 1 would have no digit of the 1 left where all scores share a huge constant.
  void count(std::span<const Keyed> low, std::span<const Keyed> high) {
    const Keyed* at[2] = {high.data(), low.data()};
    const Keyed* const end[2] = {at[0] + high.size(), at[1] + low.size()};
    double passed = 0.0, rest = weight_of(low);     // weight of the f_i - 1 behind, of the f_j ahead
    double d = 0.0, last = 0.0, last_margin = 0.0;  // the sum of p_i (here - (f_i - 1)) over those behind
    double lost = 0.0;                              // what rounding has taken off d
    Sum total;
    const double* const weights = weight_.empty() ? nullptr : weight_.data();
    double* const slopes = slopes_.data();
    for (std::size_t k = low.size() + high.size(); k > 0; --k) {
      const double upper = at[0] != end[0] ? score_of(at[0]->key) : kInfinity;
      const double lower = at[1] != end[1] ? score_of(at[1]->key) : kInfinity;
      const bool is_low = upper - lower >= 1.0;
      const Keyed& item = *at[is_low]++;
      const Keyed& later = at[is_low] + kAhead < end[is_low] ? at[is_low][kAhead] : item;
      prefetch(slopes + later.row);
      if (weights != nullptr) prefetch(weights + later.row);
      const double here = is_low ? lower : upper, weight = weights == nullptr ? 1.0 : weights[item.row];
      const double of_low = static_cast<double>(is_low) * weight, of_high = weight - of_low;
      const double margin = 1.0 - static_cast<double>(is_low);
      const Rounded moved = two_sum(here, -last);
      const Rounded next = two_sum(d, passed * ((moved.value - (margin - last_margin)) + moved.error));
      d = next.value, lost += next.error;
      last = here, last_margin = margin;
      rest -= of_low;
      total.add(of_low * (d + lost));
      slopes[item.row] += of_low * passed - of_high * rest;
      passed += of_high;
    }
    sum_.add(total.value());
  }

  Order order_;
  std::vector<Keyed> items_;
  std::vector<std::size_t> ends_;
  std::vector<double> weight_, slopes_;  // by place among the query's rows: neighbors in grade are neighbors here
  Sum sum_;
};

// The sum over queries of share_q times the mean of the hinge over the query's pairs; slopes of other rows stay.
inline double pair_hinge(std::span<const double> scores, const Graded& graded, std::span<const double> weight,
                         std::span<double> slopes, int n_threads) {
  return sum_over_sets<PairSum>(graded.sets, n_threads, [&](std::size_t q, PairSum& desk) {
    return desk.mean(scores, graded, q, weight, slopes);
  });
}

// The same with sums in the place of means, each pair times the differences of its gains and of its discounts.
inline double gain_pairs(std::span<const double> scores, const Graded& graded, std::span<const double> gain,
                         std::span<const double> discount, std::span<double> slopes, int n_threads) {
  return sum_over_sets<PairSum>(graded.sets, n_threads, [&](std::size_t q, PairSum& desk) {
    return desk.sum_by_gain(scores, graded, q, gain, discount, slopes);
  });
}

}  // namespace bmrm
