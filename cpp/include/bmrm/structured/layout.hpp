// How the scores of chains lie in memory. A row is the k labels of a token, padded with zeros to whole vectors, so that
// no loop over labels has a remainder:
//   tokens x row | k x row transitions, from the label of a row | row start | row end | edges x k x row
// The last part is there only where edges have attributes of their own; an edge leads from one token to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/kernel/wide_tile.hpp"

namespace bmrm::chain {

inline std::size_t padded(std::size_t k) { return (k + kLanes - 1) / kLanes * kLanes; }

struct Layout {
  std::size_t k;
  std::span<const std::int64_t> starts;  // of the sequences, and the number of tokens at last
  bool pairs;                            // whether edges have scores of their own

  std::size_t row() const { return padded(k); }
  std::size_t table() const { return k * row(); }
  std::size_t n_sequences() const { return starts.size() - 1; }
  std::size_t n_tokens() const { return static_cast<std::size_t>(starts.back()); }
  std::size_t first(std::size_t i) const { return static_cast<std::size_t>(starts[i]); }
  std::size_t length(std::size_t i) const { return first(i + 1) - first(i); }
  std::size_t transitions() const { return n_tokens() * row(); }
  std::size_t start() const { return transitions() + table(); }
  std::size_t end() const { return start() + row(); }
  std::size_t edges() const { return end() + row(); }
  // Sequence i has one edge less than tokens, and so have those before it.
  std::size_t edge(std::size_t i) const { return edges() + (first(i) - i) * table(); }
  std::size_t size() const { return edges() + (pairs ? (n_tokens() - n_sequences()) * table() : 0); }
};

// f + t d; d may be null
struct Scores {
  const double* f;
  const double* d;
  double t;
};

// Rows of f + t d, the padding at -inf: no label is there.
BMRM_CLONES static inline void load_rows(const double* __restrict f, const double* __restrict d, double t,
                                         std::size_t n, std::size_t k, std::size_t row, double* __restrict out) {
  if (d == nullptr) {
    std::copy_n(f, n * row, out);
  } else {
    for (std::size_t e = 0; e < n * row; ++e) out[e] = f[e] + t * d[e];
  }
  if (k == row) return;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = k; c < row; ++c) out[i * row + c] = -std::numeric_limits<double>::infinity();
}

inline void load_rows(const Scores& scores, std::size_t from, std::size_t n, const Layout& layout, double* out) {
  const double* d = scores.d == nullptr ? nullptr : scores.d + from;
  load_rows(scores.f + from, d, scores.t, n, layout.k, layout.row(), out);
}

// The scores that all sequences share.
struct Shared {
  std::vector<double> transitions, start, end;

  Shared(const Layout& layout, const Scores& scores)
      : transitions(layout.table()), start(layout.row()), end(layout.row()) {
    load_rows(scores, layout.transitions(), layout.k, layout, transitions.data());
    load_rows(scores, layout.start(), 1, layout, start.data());
    load_rows(scores, layout.end(), 1, layout, end.data());
  }
};

// The scores of one sequence: n rows, and n - 1 tables of its edges, transitions included, where edges have their own.
struct Sequence {
  std::size_t n = 0;
  std::vector<double> f, edges;

  void load(const Layout& layout, const Scores& scores, const Shared& shared, std::size_t i) {
    n = layout.length(i);
    f.resize(std::max(f.size(), n * layout.row()));
    load_rows(scores, layout.first(i) * layout.row(), n, layout, f.data());
    if (!layout.pairs) return;
    const std::size_t table = layout.table();
    edges.resize(std::max(edges.size(), (n - 1) * table));
    load_rows(scores, layout.edge(i), (n - 1) * layout.k, layout, edges.data());
    for (std::size_t e = 0; e < n - 1; ++e)
      for (std::size_t c = 0; c < table; ++c) edges[e * table + c] += shared.transitions[c];
  }

  // The table that leads to token t.
  const double* to(const Layout& layout, const Shared& shared, std::size_t t) const {
    return layout.pairs ? edges.data() + (t - 1) * layout.table() : shared.transitions.data();
  }
};

// The slopes of what a block of sequences shares: transitions, start and end; and what the block adds to the value and
// to the slope in direction d.
struct Share {
  std::vector<double> transitions, start, end;
  double value = 0.0, slope = 0.0;

  explicit Share(const Layout& layout) : transitions(layout.table()), start(layout.row()), end(layout.row()) {}
};

inline std::size_t label(const std::int32_t* y, std::size_t t) { return static_cast<std::size_t>(y[t]); }

// What label y_t of token t adds to the score of the labels y, the step to it included.
inline double score_of(const Layout& layout, const Shared& shared, const Sequence& sequence, const std::int32_t* y,
                       std::size_t t) {
  const std::size_t c = label(y, t);
  const double step = t == 0 ? shared.start[c] : sequence.to(layout, shared, t)[label(y, t - 1) * layout.row() + c];
  return sequence.f[t * layout.row() + c] + step;
}

// Adds s times the indicators of the labels y to slopes.
inline void add_path(const Layout& layout, const std::int32_t* y, std::size_t n, double s, double* L, double* edges,
                     Share& share) {
  const std::size_t row = layout.row();
  for (std::size_t t = 0; t < n; ++t) {
    const std::size_t c = label(y, t);
    L[t * row + c] += s;
    if (t == 0) continue;
    const std::size_t e = label(y, t - 1) * row + c;
    share.transitions[e] += s;
    if (layout.pairs) edges[(t - 1) * layout.table() + e] += s;
  }
  share.start[label(y, 0)] += s;
  share.end[label(y, n - 1)] += s;
}

// Sequences in blocks of about as many tokens, from the lengths alone: sums do not depend on the number of threads.
inline std::vector<std::size_t> blocks_of(const Layout& layout) {
  const std::size_t most = std::max<std::size_t>(1024, 4 * layout.row());
  std::vector<std::size_t> blocks{0};
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < layout.n_sequences(); ++i) {
    tokens += layout.length(i);
    if (tokens < most && i + 1 < layout.n_sequences()) continue;
    blocks.push_back(i + 1);
    tokens = 0;
  }
  return blocks;
}

// out[c] = sum_i a[i] M[i, c]
BMRM_INLINE void row_times(const double* a, std::size_t n, const double* M, std::size_t row, double* out) {
  std::size_t rest;
  wide::each_block(row, rest, [&](auto size, std::size_t begin, std::size_t) BMRM_INLINED {
    constexpr std::size_t B = decltype(size)::value;
    Lanes s[B] = {}, v;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t b = 0; b < B; ++b) {
        load(M + i * row + begin + b * kLanes, v);
        s[b] += a[i] * v;
      }
    }
    for (std::size_t b = 0; b < B; ++b) store(s[b], out + begin + b * kLanes);
  });
}

BMRM_INLINE void raise(const Lanes& v, Lanes& most) {
#if defined(__GNUC__)
  most = v > most ? v : most;
#else
  for (std::size_t c = 0; c < kLanes; ++c) most.v[c] = v.v[c] > most.v[c] ? v.v[c] : most.v[c];
#endif
}

BMRM_INLINE void spread(double x, Lanes& v) {
  const double all[kLanes] = {x, x, x, x};
  load(all, v);
}

// out[c] = max_i a[i] + M[i, c]
BMRM_INLINE void row_max(const double* a, std::size_t n, const double* M, std::size_t row, double* out) {
  std::size_t rest;
  wide::each_block(row, rest, [&](auto size, std::size_t begin, std::size_t) BMRM_INLINED {
    constexpr std::size_t B = decltype(size)::value;
    Lanes s[B], v, x;
    for (std::size_t b = 0; b < B; ++b) spread(-std::numeric_limits<double>::infinity(), s[b]);
    for (std::size_t i = 0; i < n; ++i) {
      spread(a[i], x);
      for (std::size_t b = 0; b < B; ++b) {
        load(M + i * row + begin + b * kLanes, v);
        raise(v + x, s[b]);
      }
    }
    for (std::size_t b = 0; b < B; ++b) store(s[b], out + begin + b * kLanes);
  });
}

// Q[i, c] += sum_t A[t, i] V[t, c], two rows of Q at a time so that what is read of V serves both
BMRM_CLONES static inline void add_outers(const double* A, const double* V, std::size_t n, std::size_t k,
                                          std::size_t row, double* Q) {
  for (std::size_t begin = 0; begin < row; begin += 4 * kLanes) {
    std::size_t rest;
    wide::each_block(std::min(row - begin, 4 * kLanes), rest, [&](auto size, std::size_t, std::size_t) BMRM_INLINED {
      constexpr std::size_t B = decltype(size)::value <= 4 ? decltype(size)::value : 4;
      for (std::size_t i = 0; i < k; i += 2) {
        const std::size_t second = i + 1 < row ? i + 1 : i;  // rows of A are padded: the one beyond is 0
        Lanes s[2][B] = {}, v;
        for (std::size_t t = 0; t < n; ++t) {
          const double a = A[t * row + i], b = A[t * row + second];
          for (std::size_t c = 0; c < B; ++c) {
            load(V + t * row + begin + c * kLanes, v);
            s[0][c] += a * v;
            s[1][c] += b * v;
          }
        }
        for (std::size_t h = 0; h < 2 && i + h < k; ++h) {
          for (std::size_t c = 0; c < B; ++c) {
            double* q = Q + (i + h) * row + begin + c * kLanes;
            load(q, v);
            v += s[h][c];
            store(v, q);
          }
        }
      }
    });
  }
}

}  // namespace bmrm::chain
