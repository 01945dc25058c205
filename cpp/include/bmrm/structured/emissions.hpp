// Scores of tokens from weights of pairs (attribute, label), f[t, c] = sum_a x_ta w[a, c], and the way back.
//
// An attribute has weights for a run of labels: all of them, or those it was seen with. Attributes with at least a
// quarter of the labels are spread out into padded rows, which are added as vectors; the few weights of the others are
// added one by one. The way back sums over the tokens of an attribute, in order, so that no two threads write to one
// place and sums do not depend on their number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/kernel/product.hpp"
#include "bmrm/kernel/wide_tile.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/structured/layout.hpp"

namespace bmrm::chain {

// Rows with the columns that stand in them; no values where all are 1.
struct Incidence {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::uint32_t> columns;
  std::vector<double> values;

  std::size_t n_rows() const { return indptr.size() - 1; }
  std::size_t n_entries() const { return columns.size(); }
  std::size_t begin(std::size_t i) const { return static_cast<std::size_t>(indptr[i]); }
  std::size_t end(std::size_t i) const { return static_cast<std::size_t>(indptr[i + 1]); }
  void close_row() { indptr.push_back(static_cast<std::int64_t>(columns.size())); }
};

inline Incidence transposed(const Incidence& X, std::size_t n_columns) {
  Incidence out;
  out.indptr.assign(n_columns + 1, 0);
  for (const std::uint32_t j : X.columns) ++out.indptr[j + 1];
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.columns.resize(X.n_entries());
  out.values.resize(X.values.size());
  std::vector<std::int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  for (std::size_t i = 0; i < X.n_rows(); ++i) {
    for (std::size_t p = X.begin(i); p < X.end(i); ++p) {
      const auto to = static_cast<std::size_t>(next[X.columns[p]]++);
      out.columns[to] = static_cast<std::uint32_t>(i);
      if (!X.values.empty()) out.values[to] = X.values[p];
    }
  }
  return out;
}

// Rows in pieces of about as many entries, each row worth `extra` more of them.
inline std::vector<std::size_t> pieces_of(const Incidence& X, std::size_t extra, std::size_t most) {
  std::vector<std::size_t> pieces{0};
  std::size_t first = 0;
  for (std::size_t i = 0; i < X.n_rows(); ++i) {
    if (X.end(i) - X.begin(first) + (i + 1 - first) * extra < most) continue;
    pieces.push_back(first = i + 1);
  }
  if (pieces.back() < X.n_rows()) pieces.push_back(X.n_rows());
  return pieces;
}

inline constexpr std::size_t kAhead = 8;  // entries whose rows are asked for before they are needed

// out = sum over a row's entries of x M[column], for whole padded rows of M
template <bool kOnes>
BMRM_INLINE void sum_rows(const Incidence& X, std::size_t i, const double* M, std::size_t row, double* out) {
  const std::uint32_t* columns = X.columns.data();
  const double* values = X.values.data();
  const std::size_t from = X.begin(i), to = X.end(i);
  std::size_t rest;
  wide::each_block(row, rest, [&](auto size, std::size_t begin, std::size_t) BMRM_INLINED {
    constexpr std::size_t B = decltype(size)::value;
    Lanes s[B] = {}, v;
    for (std::size_t p = from; p < to; ++p) {
      const double* m = M + columns[p] * row + begin;
      if (p + kAhead < to)
        for (std::size_t b = 0; b < B; b += 2) prefetch(M + columns[p + kAhead] * row + begin + b * kLanes);
      for (std::size_t b = 0; b < B; ++b) {
        load(m + b * kLanes, v);
        if constexpr (kOnes) {
          s[b] += v;
        } else {
          s[b] += values[p] * v;
        }
      }
    }
    for (std::size_t b = 0; b < B; ++b) store(s[b], out + begin + b * kLanes);
  });
}

// The same, but rows of M that are marked as 0 are not read.
template <bool kOnes>
BMRM_INLINE void sum_some_rows(const Incidence& X, std::size_t i, const std::uint8_t* marks, const double* M,
                               std::size_t row, double* out) {
  std::fill_n(out, row, 0.0);
  for (std::size_t p = X.begin(i); p < X.end(i); ++p) {
    if (marks[X.columns[p]] == 0) continue;
    const double x = kOnes ? 1.0 : X.values[p];
    for (std::size_t c = 0; c < row; ++c) out[c] += x * M[X.columns[p] * row + c];
  }
}

BMRM_CLONES static inline void sum_range(const Incidence& X, std::size_t begin, std::size_t end, const double* M,
                                         std::size_t row, double* out) {
  if (X.values.empty()) {
    for (std::size_t i = begin; i < end; ++i) sum_rows<true>(X, i, M, row, out + (i - begin) * row);
  } else {
    for (std::size_t i = begin; i < end; ++i) sum_rows<false>(X, i, M, row, out + (i - begin) * row);
  }
}

BMRM_CLONES static inline void sum_some(const Incidence& X, std::size_t i, const std::uint8_t* marks, const double* M,
                                        std::size_t row, double* out) {
  if (X.values.empty()) {
    sum_some_rows<true>(X, i, marks, M, row, out);
  } else {
    sum_some_rows<false>(X, i, marks, M, row, out);
  }
}

// The attributes of tokens as they are given: compressed rows, no values where all are 1.
struct Tokens {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> attributes;
  std::span<const double> values;
};

class Emissions {
 public:
  // Attribute a has the weights starts[a] .. starts[a + 1], for these labels; no labels: each has all k.
  Emissions(const Tokens& tokens, std::span<const std::int64_t> starts, std::span<const std::int32_t> labels,
            std::size_t k)
      : k_(k), row_(padded(k)), n_weights_(static_cast<std::size_t>(starts.back())) {
    const std::size_t n = starts.size() - 1;
    std::vector<std::uint32_t> place(n);
    std::vector<std::uint8_t> kind(n, kUnseen);
    Patience patience;
    for (std::size_t t = 0; t + 1 < tokens.indptr.size(); ++t) {
      if (t % 4096 == 0) patience.check();
      for (auto p = static_cast<std::size_t>(tokens.indptr[t]); p < static_cast<std::size_t>(tokens.indptr[t + 1]);
           ++p) {
        const auto a = static_cast<std::size_t>(tokens.attributes[p]);
        if (kind[a] == kUnseen) place_of(a, starts, labels, kind, place);
        if (kind[a] == kNone) continue;
        Part& part = kind[a] == kHeavy ? heavy_ : light_;
        part.by_token.columns.push_back(place[a]);
        if (!tokens.values.empty()) part.by_token.values.push_back(tokens.values[p]);
      }
      heavy_.by_token.close_row();
      light_.by_token.close_row();
    }
  }

  std::size_t n_tokens() const { return heavy_.by_token.n_rows(); }
  std::size_t n_weights() const { return n_weights_; }
  std::size_t row() const { return row_; }

  // F (tokens x row) = scores at the weights w
  void scores(const double* w, double* F, int n_threads) const {
    std::vector<double> table(runs_.size() * row_);
    const std::size_t n_tasks = runs_.size() / 4096 + 1;
    parallel_for(n_tasks, threads_for(table.size(), n_threads), [&](std::size_t task) {
      const std::size_t n = runs_.size();
      for (std::size_t h = n * task / n_tasks; h < n * (task + 1) / n_tasks; ++h) {
        const Run& run = runs_[h];
        for (std::size_t r = 0; r < run.n; ++r) table[h * row_ + label_of(run, r)] = w[run.weights + r];
      }
    });
    const std::size_t n_pieces = n_tokens() / 1024 + 1;
    std::vector<double> packed(light_weights_.size());
    for (std::size_t q = 0; q < packed.size(); ++q) packed[q] = w[light_weights_[q]];
    parallel_for(n_pieces, n_threads, [&](std::size_t piece) {
      const std::size_t begin = n_tokens() * piece / n_pieces, end = n_tokens() * (piece + 1) / n_pieces;
      sum_range(heavy_.by_token, begin, end, table.data(), row_, F + begin * row_);
      for (std::size_t t = begin; t < end; ++t) add_light(t, packed.data(), F + t * row_);
    });
  }

  // g = the sum of slopes L (tokens x row) over the tokens of each attribute
  void gradient(const double* L, double* g, int n_threads) {
    prepare();
    std::fill_n(g, n_weights_, 0.0);
    std::vector<std::uint8_t> marks;
    if (mostly_zero_rows(L)) marks = marks_of(L, n_threads);
    each_piece(heavy_, n_threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> sum(row_);
      for (std::size_t a = begin; a < end; ++a) {
        if (marks.empty()) {
          sum_range(heavy_.by_attribute, a, a + 1, L, row_, sum.data());
        } else {
          sum_some(heavy_.by_attribute, a, marks.data(), L, row_, sum.data());
        }
        const Run& run = runs_[a];
        for (std::size_t r = 0; r < run.n; ++r) g[run.weights + r] = sum[label_of(run, r)];
      }
    });
    each_piece(light_, n_threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> sum(k_);
      for (std::size_t a = begin; a < end; ++a) pull_light(a, L, marks, sum.data(), g);
    });
  }

 private:
  enum Kind : std::uint8_t { kUnseen, kNone, kHeavy, kLight };

  // Weights of one attribute; its labels begin at `labels`, or are all.
  struct Run {
    std::size_t weights, labels;
    std::uint32_t n;
  };

  // Attributes in the order in which the tokens have them first: what is near in one is near in the other.
  struct Part {
    Incidence by_token, by_attribute;
    std::size_t n = 0;  // attributes
    std::vector<std::size_t> pieces;
  };

  void place_of(std::size_t a, std::span<const std::int64_t> starts, std::span<const std::int32_t> labels,
                std::vector<std::uint8_t>& kind, std::vector<std::uint32_t>& place) {
    const auto first = static_cast<std::size_t>(starts[a]), n = static_cast<std::size_t>(starts[a + 1]) - first;
    kind[a] = n == 0 ? kNone : 4 * n >= k_ ? kHeavy : kLight;
    if (n == 0) return;
    Part& part = kind[a] == kHeavy ? heavy_ : light_;
    place[a] = static_cast<std::uint32_t>(part.n++);
    if (kind[a] == kHeavy) {
      runs_.push_back({first, labels.empty() ? kAll : labels_.size(), static_cast<std::uint32_t>(n)});
      if (!labels.empty()) labels_.insert(labels_.end(), labels.begin() + first, labels.begin() + first + n);
      return;
    }
    for (std::size_t e = first; e < first + n; ++e) {
      light_weights_.push_back(e);
      light_labels_.push_back(static_cast<std::uint32_t>(labels[e]));
    }
    light_first_.push_back(light_weights_.size());
  }

  std::size_t label_of(const Run& run, std::size_t r) const {
    return run.labels == kAll ? r : static_cast<std::size_t>(labels_[run.labels + r]);
  }

  void add_light(std::size_t t, const double* packed, double* f) const {
    const Incidence& X = light_.by_token;
    for (std::size_t p = X.begin(t); p < X.end(t); ++p) {
      const std::size_t a = X.columns[p], end = light_first_[a + 1];
      const double x = X.values.empty() ? 1.0 : X.values[p];
      for (std::size_t q = light_first_[a]; q < end; ++q) f[light_labels_[q]] += x * packed[q];
    }
  }

  void pull_light(std::size_t a, const double* L, const std::vector<std::uint8_t>& marks, double* sum,
                  double* g) const {
    const Incidence& X = light_.by_attribute;
    const std::size_t first = light_first_[a], n = light_first_[a + 1] - first, end = X.end(a);
    const std::uint32_t* labels = light_labels_.data() + first;
    std::fill_n(sum, n, 0.0);
    for (std::size_t p = X.begin(a); p < end; ++p) {
      if (p + kAhead < end) prefetch(L + X.columns[p + kAhead] * row_ + labels[0]);
      if (!marks.empty() && marks[X.columns[p]] == 0) continue;
      const double x = X.values.empty() ? 1.0 : X.values[p];
      const double* l = L + X.columns[p] * row_;
      for (std::size_t r = 0; r < n; ++r) sum[r] += x * l[labels[r]];
    }
    for (std::size_t r = 0; r < n; ++r) g[light_weights_[first + r]] = sum[r];
  }

  template <class Body>
  void each_piece(const Part& part, int n_threads, const Body& body) const {
    parallel_for(part.pieces.size() - 1, n_threads, [&](std::size_t i) { body(part.pieces[i], part.pieces[i + 1]); });
  }

  void prepare() {
    std::lock_guard lock(mutex_);
    if (!heavy_.pieces.empty()) return;
    for (Part* part : {&light_, &heavy_}) {
      part->by_attribute = transposed(part->by_token, part->n);
      part->pieces = pieces_of(part->by_attribute, 8, 8192);
    }
  }

  bool is_zero(const double* l) const {
    return std::all_of(l, l + k_, [](double x) { return x == 0.0; });
  }

  // By a sample of the rows: losses that compare labelings have slopes for tokens with wrong labels only.
  bool mostly_zero_rows(const double* L) const {
    constexpr std::size_t kSample = 256;
    const std::size_t apart = n_tokens() / kSample + 1;
    std::size_t seen = 0, zeros = 0;
    for (std::size_t t = 0; t < n_tokens(); t += apart, ++seen) zeros += is_zero(L + t * row_);
    return 2 * zeros > seen;
  }

  std::vector<std::uint8_t> marks_of(const double* L, int n_threads) const {
    std::vector<std::uint8_t> marks(n_tokens());
    const std::size_t n_tasks = n_tokens() / 4096 + 1;
    parallel_for(n_tasks, n_threads, [&](std::size_t task) {
      for (std::size_t t = n_tokens() * task / n_tasks; t < n_tokens() * (task + 1) / n_tasks; ++t)
        marks[t] = is_zero(L + t * row_) ? 0 : 1;
    });
    return marks;
  }

  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);

  std::size_t k_, row_, n_weights_;
  Part heavy_, light_;
  std::vector<Run> runs_;  // of heavy attributes
  std::vector<std::int32_t> labels_;
  // Of light ones, in their order: attribute a has the places light_first_[a] .. light_first_[a + 1].
  std::vector<std::size_t> light_first_{0}, light_weights_;
  std::vector<std::uint32_t> light_labels_;
  std::mutex mutex_;
};

// Scores of edges, k x row each, from weights of triples (attribute, label, next label), k x k for each attribute.
class EdgeScores {
 public:
  EdgeScores(const Tokens& edges, std::size_t n_attributes, std::size_t k) : k_(k), row_(padded(k)), n_(n_attributes) {
    by_edge_.columns.assign(edges.attributes.begin(), edges.attributes.end());
    by_edge_.indptr.assign(edges.indptr.begin(), edges.indptr.end());
    by_edge_.values.assign(edges.values.begin(), edges.values.end());
    by_attribute_ = transposed(by_edge_, n_);
  }

  std::size_t n_edges() const { return by_edge_.n_rows(); }
  std::size_t n_weights() const { return n_ * k_ * k_; }
  std::size_t table() const { return k_ * row_; }

  void scores(const double* w, double* F, int n_threads) const {
    each(by_edge_, n_threads, [&](std::size_t e) {
      std::fill_n(F + e * table(), table(), 0.0);
      for (std::size_t p = by_edge_.begin(e); p < by_edge_.end(e); ++p) {
        const double* from = w + by_edge_.columns[p] * k_ * k_;
        for (std::size_t i = 0; i < k_; ++i)
          for (std::size_t j = 0; j < k_; ++j) F[e * table() + i * row_ + j] += x(by_edge_, p) * from[i * k_ + j];
      }
    });
  }

  void gradient(const double* L, double* g, int n_threads) const {
    std::fill_n(g, n_weights(), 0.0);
    each(by_attribute_, n_threads, [&](std::size_t a) {
      for (std::size_t p = by_attribute_.begin(a); p < by_attribute_.end(a); ++p) {
        const double* from = L + by_attribute_.columns[p] * table();
        for (std::size_t i = 0; i < k_; ++i)
          for (std::size_t j = 0; j < k_; ++j) g[(a * k_ + i) * k_ + j] += x(by_attribute_, p) * from[i * row_ + j];
      }
    });
  }

 private:
  static double x(const Incidence& X, std::size_t p) { return X.values.empty() ? 1.0 : X.values[p]; }

  template <class Body>
  void each(const Incidence& X, int n_threads, const Body& body) const {
    const std::vector<std::size_t> pieces = pieces_of(X, 1, std::max<std::size_t>(1, (1 << 18) / table()));
    parallel_for(pieces.size() - 1, n_threads, [&](std::size_t piece) {
      for (std::size_t i = pieces[piece]; i < pieces[piece + 1]; ++i) body(i);
    });
  }

  std::size_t k_, row_, n_;
  Incidence by_edge_, by_attribute_;
};

}  // namespace bmrm::chain
