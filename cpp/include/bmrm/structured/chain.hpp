// Losses of chains, summed over sequences: values, slopes by the scores, and the slope along a direction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/checks.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/structured/chain_best.hpp"
#include "bmrm/structured/chain_sums.hpp"
#include "bmrm/structured/layout.hpp"

namespace bmrm::chain {

struct ValueAndSlope {
  double value = 0.0, slope = 0.0;
};

// The costs of wrong labels: a table (k x k), or a number for each wrong label that multiplies instead of being added.
struct Costs {
  const double* table;
  double each;  // 0: the table is added
};

BMRM_CLONES static inline double inner_of(const double* x, const double* y, std::size_t n) {
  Lanes s = {}, v, w;
  for (std::size_t i = 0; i < n; i += kLanes) {
    load(x + i, v);
    load(y + i, w);
    s += v * w;
  }
  return sum(s);
}

// Calls make(begin, end, share) for each block of sequences, in parallel; adds the shares up in order.
template <class Make>
ValueAndSlope over_blocks(const Layout& layout, const Scores& scores, std::span<double> slopes, int n_threads,
                          const Make& make) {
  const std::vector<std::size_t> blocks = blocks_of(layout);
  std::vector<Share> shares(blocks.size() - 1, Share(layout));
  parallel_for(shares.size(), n_threads, [&](std::size_t b) { make(blocks[b], blocks[b + 1], shares[b]); });
  ValueAndSlope total;
  std::fill(slopes.begin() + static_cast<std::ptrdiff_t>(layout.transitions()),
            slopes.begin() + static_cast<std::ptrdiff_t>(layout.edges()), 0.0);
  double *T = slopes.data() + layout.transitions(), *start = slopes.data() + layout.start();
  for (const Share& share : shares) {
    total.value += share.value;
    total.slope += share.slope;
    for (std::size_t e = 0; e < layout.table(); ++e) T[e] += share.transitions[e];
    for (std::size_t c = 0; c < layout.k; ++c) start[c] += share.start[c];
    for (std::size_t c = 0; c < layout.k; ++c) start[layout.row() + c] += share.end[c];
  }
  if (scores.d != nullptr)
    total.slope += inner_of(T, scores.d + layout.transitions(), layout.edges() - layout.transitions());
  return total;
}

// The slopes of sequence i, of its tokens and of its edges.
struct Slopes {
  double *L, *edges;
  Slopes(const Layout& layout, std::size_t i, std::span<double> slopes)
      : L(slopes.data() + layout.first(i) * layout.row()),
        edges(layout.pairs ? slopes.data() + layout.edge(i) : nullptr) {}
};

inline double along(const Layout& layout, const Scores& scores, std::size_t i, const Slopes& at) {
  if (scores.d == nullptr) return 0.0;
  const std::size_t n = layout.length(i);
  double slope = inner_of(at.L, scores.d + layout.first(i) * layout.row(), n * layout.row());
  if (layout.pairs) slope += inner_of(at.edges, scores.d + layout.edge(i), (n - 1) * layout.table());
  return slope;
}

// sum_i p_i (log Z_i - score of y_i). NaN where scores are not finite: they have no sum.
inline ValueAndSlope log_loss(const Layout& layout, std::span<const std::int32_t> y, std::span<const double> p,
                              const Scores& scores, std::span<double> slopes, int n_threads) {
  const Shared shared(layout, scores);
  const SharedShares shares(layout, shared);
  const Marginals marginals(layout, shared, shares);
  return over_blocks(layout, scores, slopes, n_threads, [&](std::size_t begin, std::size_t end, Share& share) {
    Sequence sequence;
    Room room;
    for (std::size_t i = begin; i < end; ++i) {
      sequence.load(layout, scores, shared, i);
      const Slopes at(layout, i, slopes);
      share.value += p[i] * marginals(sequence, y.data() + layout.first(i), p[i], room, at.L, at.edges, share);
    }
    marginals.finish(share);
    for (std::size_t i = begin; i < end; ++i) {
      const Slopes at(layout, i, slopes);
      add_path(layout, y.data() + layout.first(i), layout.length(i), -p[i], at.L, at.edges, share);
      share.slope += along(layout, scores, i, at);
    }
  });
}

// What the labels `other` add to the loss: their score less that of y, without costs; term by term.
inline double difference(const Layout& layout, const Shared& shared, const Sequence& sequence, const std::int32_t* y,
                         const std::int32_t* other) {
  double sum = shared.end[label(other, sequence.n - 1)] - shared.end[label(y, sequence.n - 1)];
  for (std::size_t t = 0; t < sequence.n; ++t) {
    if (y[t] == other[t] && (t == 0 || y[t - 1] == other[t - 1])) continue;
    sum += score_of(layout, shared, sequence, other, t) - score_of(layout, shared, sequence, y, t);
  }
  return sum;
}

inline void find_worst(Best& best, Sequence& sequence, const std::int32_t* y, const Costs& costs, std::int32_t* out) {
  if (costs.each > 0.0) {
    best.with_count(sequence, y, costs.each, out);
  } else {
    best.with_costs(sequence, y, costs.table, out);
  }
}

inline double cost_of(const Layout& layout, const Costs& costs, const std::int32_t* y, const std::int32_t* other,
                      std::size_t n) {
  double sum = 0.0;
  for (std::size_t t = 0; t < n; ++t) {
    if (costs.each > 0.0) {
      sum += y[t] == other[t] ? 0.0 : costs.each;
    } else {
      sum += costs.table[label(y, t) * layout.k + label(other, t)];
    }
  }
  return sum;
}

// sum_i p_i max over labels of cost + score - score of y_i, or of cost (1 + score - score of y_i)
inline ValueAndSlope hinge_loss(const Layout& layout, std::span<const std::int32_t> y, std::span<const double> p,
                                const Costs& costs, const Scores& scores, std::span<double> slopes, int n_threads) {
  const Shared shared(layout, scores);
  return over_blocks(layout, scores, slopes, n_threads, [&](std::size_t begin, std::size_t end, Share& share) {
    Best best(layout, shared);
    Sequence sequence;
    std::vector<std::int32_t> other;
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t* own = y.data() + layout.first(i);
      const Slopes at(layout, i, slopes);
      sequence.load(layout, scores, shared, i);
      other.resize(std::max(other.size(), sequence.n));
      find_worst(best, sequence, own, costs, other.data());
      std::fill_n(at.L, sequence.n * layout.row(), 0.0);
      if (layout.pairs) std::fill_n(at.edges, (sequence.n - 1) * layout.table(), 0.0);
      const double cost = cost_of(layout, costs, own, other.data(), sequence.n);
      const double more = difference(layout, shared, sequence, own, other.data());
      const double loss = costs.each > 0.0 ? cost * (1.0 + more) : cost + more;
      if (loss <= 0.0) continue;  // the true labels have 0
      share.value += p[i] * loss;
      const double s = costs.each > 0.0 ? p[i] * cost : p[i];
      add_path(layout, other.data(), sequence.n, s, at.L, at.edges, share);
      add_path(layout, own, sequence.n, -s, at.L, at.edges, share);
      share.slope += along(layout, scores, i, at);
    }
  });
}

// Calls start(begin, end) for each block of sequences, in parallel.
template <class Start>
void each_block(const Layout& layout, int n_threads, const Start& start) {
  const std::vector<std::size_t> blocks = blocks_of(layout);
  parallel_for(blocks.size() - 1, n_threads, [&](std::size_t b) { start(blocks[b], blocks[b + 1]); });
}

// The best labels; with y, the ones that make the hinge loss.
inline void best_labels(const Layout& layout, std::span<const std::int32_t> y, const Costs& costs, const Scores& scores,
                        std::span<std::int32_t> out, int n_threads) {
  const Shared shared(layout, scores);
  each_block(layout, n_threads, [&](std::size_t begin, std::size_t end) {
    Best best(layout, shared);
    Sequence sequence;
    for (std::size_t i = begin; i < end; ++i) {
      sequence.load(layout, scores, shared, i);
      std::int32_t* found = out.data() + layout.first(i);
      if (y.empty()) {
        best(sequence, found);
      } else {
        find_worst(best, sequence, y.data() + layout.first(i), costs, found);
      }
    }
  });
}

// Marginals of tokens, rows padded as scores are, and log Z of each sequence.
inline void marginals_of(const Layout& layout, const Scores& scores, std::span<double> out, std::span<double> log_z,
                         int n_threads) {
  const Shared shared(layout, scores);
  const SharedShares shares(layout, shared);
  const Marginals marginals(layout, shared, shares);
  each_block(layout, n_threads, [&](std::size_t begin, std::size_t end) {
    Sequence sequence;
    Room room;
    Share share(layout);
    for (std::size_t i = begin; i < end; ++i) {
      sequence.load(layout, scores, shared, i);
      double* L = out.data() + layout.first(i) * layout.row();
      log_z[i] = marginals(sequence, nullptr, 1.0, room, L, nullptr, share);
    }
  });
}

}  // namespace bmrm::chain
