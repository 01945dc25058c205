// Losses of the order of the documents of a query: the worst permutation by linear assignment, or by sorting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/order.hpp"
#include "bmrm/kernel/queries.hpp"
#include "bmrm/kernel/sum.hpp"

namespace bmrm {

// Queries with their documents in order of decreasing grade; document i of a query has the margin c_i of its place.
// Margins are given as the documents are, query by query.
struct Ranked {
  Sets sets;
  std::span<const double> margin;

  std::span<const double> margins(std::size_t q) const { return margin.subspan(sets.first(q), sets.size(q)); }
};

// min over permutations of sum over documents i of d_r g_i - c_r f_i, r the rank of i; d, g >= 0, c decreasing.
//
// Without the first term this is a sort, by the rearrangement inequality. The dual solution of the sorted problem,
// v_{r+1} - v_r = (c_r - c_{r+1}) h_r with h_r between neighboring scores, stays feasible when d_r g_i >= 0 is added,
// and is still tight where d_r g_i = 0. So the documents in their sorted places with g = 0 or d = 0 are assigned, and
// one shortest augmenting path remains for each of the others: at most k of them where d_r = 0 for r >= k.
class Assignment {
 public:
  // f in decreasing order. Afterwards rank(i) is the rank of document i.
  void solve(std::span<const double> f, std::span<const double> g, std::span<const double> c,
             std::span<const double> d) {
    n_ = f.size();
    f_ = f, g_ = g, c_ = c, d_ = d;
    u_.resize(n_), v_.assign(n_, 0.0);
    rank_.assign(n_, kNone), document_.assign(n_, kNone);
    for (std::size_t r = 0; r + 1 < n_; ++r) v_[r + 1] = v_[r] + (c[r] - c[r + 1]) * (0.5 * f[r] + 0.5 * f[r + 1]);
    for (std::size_t i = 0; i < n_; ++i) {
      u_[i] = -c[i] * f[i] - v_[i];
      if (d[i] * g[i] == 0.0) rank_[i] = document_[i] = i;
    }
    distance_.resize(n_), before_.resize(n_), open_.resize(n_);
    for (std::size_t i = 0; i < n_; ++i)
      if (rank_[i] == kNone) augment(i);
  }

  std::size_t rank(std::size_t i) const { return rank_[i]; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // Dijkstra's method on the reduced costs from document i to a rank that nobody has.
  void augment(std::size_t start) {
    std::fill(distance_.begin(), distance_.end(), std::numeric_limits<double>::infinity());
    std::fill(before_.begin(), before_.end(), kNone);
    for (std::size_t r = 0; r < n_; ++r) open_[r] = r;
    reached_.clear();
    std::size_t n_open = n_, i = start, r = kNone;
    double length = 0.0;
    for (;;) {  // each trip takes an open rank, and one of the n is free
      const std::size_t place = nearest(i, length, n_open);
      r = open_[place];
      length = distance_[r];
      open_[place] = open_[--n_open];
      if (document_[r] == kNone) break;
      reached_.push_back(r);
      i = document_[r];
    }
    u_[start] += length;
    for (const std::size_t s : reached_) {
      u_[document_[s]] += length - distance_[s];
      v_[s] -= length - distance_[s];
    }
    for (std::size_t next = r; next != kNone;) {
      const std::size_t owner = before_[next], left = rank_[owner];
      rank_[owner] = next;
      document_[next] = owner;
      next = owner == start ? kNone : left;
    }
  }

  // Shortens the distances over document i; returns the place of the nearest open rank, a free one where there is one.
  std::size_t nearest(std::size_t i, double length, std::size_t n_open) {
    const double base = length - u_[i], f = f_[i], g = g_[i];
    double least = std::numeric_limits<double>::infinity();
    std::size_t place = 0;
    for (std::size_t k = 0; k < n_open; ++k) {
      const std::size_t r = open_[k];
      const double through = std::max(length, base + (d_[r] * g - c_[r] * f) - v_[r]);
      if (through < distance_[r] || before_[r] == kNone) distance_[r] = through, before_[r] = i;
      const bool tie = distance_[r] == least && document_[r] == kNone;
      if (distance_[r] < least || tie) least = distance_[r], place = k;
    }
    return place;
  }

  std::size_t n_ = 0;
  std::span<const double> f_, g_, c_, d_;
  std::vector<double> u_, v_, distance_;
  std::vector<std::size_t> rank_, document_, before_, open_, reached_;
};

// What the losses of permutations share: the documents of a query in order of decreasing score.
class Shelf {
 public:
  // What the scratch space holds.
  std::size_t n_items() const { return 4 * keyed_.capacity() + order_.n_items(); }

 protected:
  // document_[k] is the place (by grade) of the document with the k-th highest score f_[k]. What is common to all of
  // the query's scores is left out: what ranks add to the documents' margins adds up to 0.
  void arrange(std::span<const double> scores, const Ranked& ranked, std::size_t q) {
    const std::size_t first = ranked.sets.first(q), n = ranked.sets.size(q);
    keyed_.resize(n);
    order_.sort(keyed_, [&](std::size_t i) {
      const auto row = static_cast<std::size_t>(ranked.sets.rows[first + i]);
      return Keyed{~key_of(scores[row]), static_cast<std::int64_t>(i)};
    });
    f_.clear(), document_.clear();
    const double common = common_part(score_of(~keyed_.back().key), score_of(~keyed_.front().key));
    for (const Keyed& item : keyed_) {
      f_.push_back(score_of(~item.key) - common);
      document_.push_back(static_cast<std::size_t>(item.row));
    }
  }

  // Gives document k (by score) the rank r: its slope, and what it adds to sum_i c_i (f_pi(i) - f_i).
  double put(const Ranked& ranked, std::size_t q, std::size_t k, std::size_t r, std::span<double> slopes) const {
    const std::size_t first = ranked.sets.first(q);
    const double moved = ranked.margin[first + r] - ranked.margin[first + document_[k]];
    const auto row = static_cast<std::size_t>(ranked.sets.rows[first + document_[k]]);
    slopes[row] = ranked.sets.share[q] * moved;
    return moved * f_[k];
  }

  Order order_;
  std::vector<Keyed> keyed_;
  std::vector<double> f_;
  std::vector<std::size_t> document_;
};

// max over pi of sum_i c_i (f_pi(i) - f_i) + sum_i (d_i - d_r(i)) g_i, r(i) the rank of document i in pi.
class GainLoss : public Shelf {
 public:
  double operator()(std::span<const double> scores, const Ranked& ranked, std::size_t q, std::span<const double> gain,
                    std::span<const double> discount, std::span<double> slopes) {
    const std::size_t first = ranked.sets.first(q), n = ranked.sets.size(q);
    arrange(scores, ranked, q);
    g_.clear();
    for (std::size_t k = 0; k < n; ++k) g_.push_back(gain[first + document_[k]]);
    assignment_.solve(f_, g_, ranked.margins(q), discount.first(n));
    Sum sum;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t r = assignment_.rank(k);
      sum.add(put(ranked, q, k, r, slopes));
      sum.add((discount[document_[k]] - discount[r]) * g_[k]);
    }
    return sum.value();
  }

 private:
  Assignment assignment_;
  std::vector<double> g_;
};

// max over pi of sum_i c_i (f_pi(i) - f_i) + 1 - 1 / (1 + number of documents before the first relevant one).
//
// If t irrelevant documents at least stand before all relevant ones, the best order has the t highest-scored of them
// first and the rest sorted, by the rearrangement inequality. That order is found for t = 0, 1, ... by moving one
// document at a time; it ends when what is lost exceeds what 1 / (1 + t) can still give.
class ReciprocalRankLoss : public Shelf {
 public:
  double operator()(std::span<const double> scores, const Ranked& ranked, std::size_t q, std::size_t n_relevant,
                    std::span<double> slopes) {
    arrange(scores, ranked, q);
    const std::size_t n = f_.size();
    relevant_.clear(), other_.clear();
    for (std::size_t k = 0; k < n; ++k) (document_[k] < n_relevant ? relevant_ : other_).push_back(k);
    const std::size_t best = best_lead(ranked.margins(q));
    Sum sum;
    for (std::size_t r = 0, a = 0, b = 0; r < n; ++r) {
      const bool lead = b < best || a == relevant_.size() || (b < other_.size() && other_[b] < relevant_[a]);
      sum.add(put(ranked, q, lead ? other_[b++] : relevant_[a++], r, slopes));
    }
    // With ties, more documents than asked for may stand in front: that only adds to the loss.
    std::size_t t = best;
    while (t < other_.size() && other_[t] < relevant_[0]) ++t;
    sum.add(1.0 - 1.0 / (1.0 + double(t)));
    return sum.value();
  }

 private:
  // The number t of irrelevant documents in front that makes the loss largest.
  std::size_t best_lead(std::span<const double> c) const {
    std::size_t best = 0, above = 0;  // relevant documents scored above irrelevant document t
    double lost = 0.0, most = 0.0;    // against the sorted order with t = 0, whose 1 - 1 / 1 is 0
    for (std::size_t t = 0; t < other_.size(); ++t) {
      while (above < relevant_.size() && relevant_[above] < other_[t]) ++above;
      // the document goes from rank t + above to rank t, and those above it one rank down: no term is negative
      const double f = f_[other_[t]];
      for (std::size_t a = 0; a < above; ++a) lost += (c[t + a] - c[t + a + 1]) * (f_[relevant_[a]] - f);
      const double value = 1.0 - 1.0 / (2.0 + double(t)) - lost;
      if (value > most) most = value, best = t + 1;
      if (1.0 - lost <= most) break;
    }
    return best;
  }

  std::vector<std::size_t> relevant_, other_;
};

inline double gain_loss(std::span<const double> scores, const Ranked& ranked, std::span<const double> gain,
                        std::span<const double> discount, std::span<double> slopes, int n_threads) {
  return sum_over_sets<GainLoss>(ranked.sets, n_threads, [&](std::size_t q, GainLoss& desk) {
    return desk(scores, ranked, q, gain, discount, slopes);
  });
}

inline double reciprocal_rank_loss(std::span<const double> scores, const Ranked& ranked,
                                   std::span<const std::int64_t> n_relevant, std::span<double> slopes, int n_threads) {
  return sum_over_sets<ReciprocalRankLoss>(ranked.sets, n_threads, [&](std::size_t q, ReciprocalRankLoss& desk) {
    return desk(scores, ranked, q, static_cast<std::size_t>(n_relevant[q]), slopes);
  });
}

}  // namespace bmrm
