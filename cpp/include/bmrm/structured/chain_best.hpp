// The best labeling of a chain: plain, with the costs of wrong labels added, or with costs that multiply.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/structured/layout.hpp"

namespace bmrm::chain {

// Best scores D of paths that end in each label of each token; f is a sequence's, `edges` the tables of its edges or
// null where one serves them all.
BMRM_CLONES static inline void best_ends(std::size_t n, std::size_t k, std::size_t row, const double* start,
                                         const double* M, const double* edges, const double* f, double* D) {
  for (std::size_t t = 0; t < n; ++t) {
    double* d = D + t * row;
    if (t == 0) {
      std::copy_n(start, row, d);
    } else {
      row_max(d - row, k, edges == nullptr ? M : edges + (t - 1) * k * row, row, d);
    }
    for (std::size_t c = 0; c < row; ++c) d[c] += f[t * row + c];
  }
}

// Where x[i] + M[i, j] is largest; the first of equal ones.
inline std::size_t best_from(const double* x, const double* M, std::size_t k, std::size_t step) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < k; ++i)
    if (x[i] + M[i * step] > x[best] + M[best * step]) best = i;
  return best;
}

class Best {
 public:
  Best(const Layout& layout, const Shared& shared) : layout_(layout), shared_(shared) {}

  // Viterbi's recursion; labels are found on the way back.
  void operator()(const Sequence& sequence, std::int32_t* out) {
    const std::size_t n = sequence.n, k = layout_.k, row = layout_.row();
    D_.resize(std::max(D_.size(), n * row));
    best_ends(n, k, row, shared_.start.data(), shared_.transitions.data(),
              layout_.pairs ? sequence.edges.data() : nullptr, sequence.f.data(), D_.data());
    std::size_t c = best_from(D_.data() + (n - 1) * row, shared_.end.data(), k, 1);
    for (std::size_t t = n; t-- > 0;) {
      out[t] = static_cast<std::int32_t>(c);
      if (t > 0) c = best_from(D_.data() + (t - 1) * row, sequence.to(layout_, shared_, t) + c, k, row);
    }
  }

  // The same with costs[y_t, c] added to the score of label c.
  void with_costs(Sequence& sequence, const std::int32_t* y, const double* costs, std::int32_t* out) {
    const std::size_t k = layout_.k, row = layout_.row();
    plain_.assign(sequence.f.begin(), sequence.f.begin() + static_cast<std::ptrdiff_t>(sequence.n * row));
    for (std::size_t t = 0; t < sequence.n; ++t)
      for (std::size_t c = 0; c < k; ++c) sequence.f[t * row + c] += costs[label(y, t) * k + c];
    (*this)(sequence, out);
    std::copy(plain_.begin(), plain_.end(), sequence.f.begin());
  }

  // The labels with the largest c (1 + score - score of y), c the number of wrong ones times a cost: the best score for
  // each number of wrong labels, by one recursion for all numbers.
  void with_count(const Sequence& sequence, const std::int32_t* y, double cost, std::int32_t* out) {
    const std::size_t n = sequence.n, k = layout_.k;
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    std::vector<double> now((n + 1) * k, kNone), before;
    from_.resize(std::max(from_.size(), n * (n + 1) * k));
    for (std::size_t c = 0; c < k; ++c) now[(c == label(y, 0) ? 0 : k) + c] = shared_.start[c] + sequence.f[c];
    for (std::size_t t = 1; t < n; ++t) {
      before.swap(now);
      now.assign((n + 1) * k, kNone);
      const double* M = sequence.to(layout_, shared_, t);
      for (std::size_t wrong = 0; wrong <= t; ++wrong) {
        for (std::size_t c = 0; c < k; ++c) {
          const double* x = before.data() + wrong * k;
          const std::size_t i = best_from(x, M + c, k, layout_.row()), to = wrong + (c == label(y, t) ? 0 : 1);
          now[to * k + c] = x[i] + M[i * layout_.row() + c] + sequence.f[t * layout_.row() + c];
          from_[(t * (n + 1) + to) * k + c] = static_cast<std::uint32_t>(i);
        }
      }
    }
    trace(sequence, y, cost, now, out);
  }

 private:
  void trace(const Sequence& sequence, const std::int32_t* y, double cost, const std::vector<double>& ends,
             std::int32_t* out) const {
    const std::size_t n = sequence.n, k = layout_.k;
    double own = shared_.end[label(y, n - 1)], most = 0.0;
    for (std::size_t t = 0; t < n; ++t) own += score_of(layout_, shared_, sequence, y, t);
    std::size_t wrong = 0, last = label(y, n - 1);
    for (std::size_t count = 1; count <= n; ++count) {
      const std::size_t c = best_from(ends.data() + count * k, shared_.end.data(), k, 1);
      const double value = cost * static_cast<double>(count) * (1.0 + (ends[count * k + c] + shared_.end[c] - own));
      if (value > most) most = value, wrong = count, last = c;
    }
    if (wrong == 0) {
      std::copy_n(y, n, out);
      return;
    }
    for (std::size_t t = n; t-- > 0;) {
      out[t] = static_cast<std::int32_t>(last);
      const std::size_t at = (t * (n + 1) + wrong) * k + last;
      wrong -= last == label(y, t) ? 0 : 1;
      if (t > 0) last = from_[at];
    }
  }

  const Layout& layout_;
  const Shared& shared_;
  std::vector<double> D_, plain_;
  std::vector<std::uint32_t> from_;
};

}  // namespace bmrm::chain
