// Losses of a whole labeling y' that see it only through its table: a true positives, b false ones.
//
// max over y' of Delta(a, b) + 1/m sum_i f_i (y'_i - y_i) / 2. For a given table the best y' drops the positives of
// the lowest scores and takes the negatives of the highest, so a sort and sums of prefixes leave the choice of a, b.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/order.hpp"
#include "bmrm/kernel/sum.hpp"

namespace bmrm {

class Tables {
 public:
  Tables(std::span<const double> scores, std::span<const std::int64_t> positives,
         std::span<const std::int64_t> negatives)
      : positives_(sorted(scores, positives)), negatives_(sorted(scores, negatives)), m_(double(scores.size())) {
    std::reverse(negatives_.begin(), negatives_.end());
    const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
    if (least != scores.end()) common_ = common_part(*least, *most);
    dropped_ = prefix_sums(positives_);
    taken_ = prefix_sums(negatives_);
  }

  std::size_t n_positives() const { return positives_.size(); }
  std::size_t n_negatives() const { return negatives_.size(); }

  // What the scores contribute: (scores of the b highest negatives - of the lowest positives but a) / m.
  double scored(std::size_t a, std::size_t b) const {
    return (taken_[b] - dropped_[n_positives() - a] + of_common(a, b)) / m_;
  }

  // What the b-th highest negative contributes, b from 1 on.
  double of_negative(std::size_t b) const { return score_of(negatives_[b - 1].key) / m_; }

  // Writes the slopes of the labeling and returns `scored` with all its digits.
  double write(std::size_t a, std::size_t b, std::span<double> slopes) const {
    std::fill(slopes.begin(), slopes.end(), 0.0);
    Sum sum;
    for (std::size_t k = 0; k < n_positives() - a; ++k) sum.add(-marked(positives_[k], -1.0 / m_, slopes));
    for (std::size_t k = 0; k < b; ++k) sum.add(marked(negatives_[k], 1.0 / m_, slopes));
    sum.add(of_common(a, b));
    return sum.value() / m_;
  }

 private:
  // What the common part of all scores adds: a labeling with as many positives as the true one does not see it.
  double of_common(std::size_t a, std::size_t b) const { return common_ * (double(b) - double(n_positives() - a)); }

  static std::vector<Keyed> sorted(std::span<const double> scores, std::span<const std::int64_t> rows) {
    std::vector<Keyed> items(rows.size());
    Order().sort(items,
                 [&](std::size_t k) { return Keyed{key_of(scores[static_cast<std::size_t>(rows[k])]), rows[k]}; });
    return items;
  }

  std::vector<double> prefix_sums(std::span<const Keyed> items) const {
    std::vector<double> sums{0.0};
    sums.reserve(items.size() + 1);
    Sum sum;
    for (const Keyed& item : items) {
      sum.add(score_of(item.key) - common_);
      sums.push_back(sum.value());
    }
    return sums;
  }

  double marked(const Keyed& item, double slope, std::span<double> slopes) const {
    slopes[static_cast<std::size_t>(item.row)] = slope;
    return score_of(item.key) - common_;
  }

  std::vector<Keyed> positives_, negatives_;
  std::vector<double> dropped_, taken_;
  double m_, common_ = 0.0;  // common_ is part of all scores, and left out of the sums
};

// The first n in [0, last] for which `ends(n)` holds (last if none), found near a guess; ends must be monotone.
template <class Ends>
std::size_t first_from(std::size_t guess, std::size_t last, const Ends& ends) {
  std::size_t low = 0, high = last, step = 1;
  guess = std::min(guess, last);
  if (guess < last && !ends(guess)) {
    low = guess + 1;
    for (; low + step < last && !ends(low + step); step *= 2) low += step + 1;
    high = std::min(last, low + step);
  } else {
    high = guess;
    for (; high >= step && ends(high - step); step *= 2) high -= step;
    low = high >= step ? high - step + 1 : 0;
  }
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (ends(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Delta = 1 - (1 + beta^2) a / (a + b + beta^2 m+). For a given a both Delta and the sum of the b highest scores are
// concave in b, so the best b is where the next negative no longer adds anything: a search near the last one.
inline double fbeta(const Tables& tables, double beta, std::span<double> slopes) {
  const double weight = 1.0 + beta * beta, constant = beta * beta * double(tables.n_positives());
  const auto delta = [&](std::size_t a, std::size_t b) {
    return 1.0 - weight * double(a) / (double(a) + double(b) + constant);
  };
  std::size_t best_a = 0, best_b = 0, b = 0;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a <= tables.n_positives(); ++a) {
    b = first_from(b, tables.n_negatives(), [&](std::size_t n) {
      const double size = double(a) + double(n) + constant;
      return tables.of_negative(n + 1) + weight * double(a) / (size * (size + 1.0)) <= 0.0;
    });
    const double value = delta(a, b) + tables.scored(a, b);
    if (value > best) best = value, best_a = a, best_b = b;
  }
  return delta(best_a, best_b) + tables.write(best_a, best_b, slopes);
}

// Delta = 1 - a / per for labelings with exactly k positives, a + b = k.
inline double at_k(const Tables& tables, std::size_t k, double per, std::span<double> slopes) {
  const std::size_t least = k > tables.n_negatives() ? k - tables.n_negatives() : 0;
  std::size_t best_a = least;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t a = least; a <= std::min(k, tables.n_positives()); ++a) {
    const double value = 1.0 - double(a) / per + tables.scored(a, k - a);
    if (value > best) best = value, best_a = a;
  }
  return 1.0 - double(best_a) / per + tables.write(best_a, k - best_a, slopes);
}

}  // namespace bmrm
