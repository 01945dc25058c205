// Sums over all labelings of a chain: log Z and the marginals, by the forward-backward recursion.
//
// Exponentials are scaled, each row by its largest score and each forward sum to 1. With scores of transitions (of the
// start, of the end) that differ by at most 300 that loses nothing, whatever the other scores are: the backward sums of
// two labels of a token differ by at most exp(300), so a path whose share of the forward sum vanished, or stood still
// at 3e-308, has less than exp(-100) of Z. Beyond, all is done in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bmrm/kernel/checks.hpp"
#include "bmrm/loss/exponent.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/structured/layout.hpp"

namespace bmrm::chain {

inline constexpr double kNarrow = 300.0;

// exp(x - largest) of rows; padding becomes 0
struct Shares {
  std::vector<double> e;
  double top = 0.0;
  bool narrow = true;

  void take(const double* x, std::size_t n, std::size_t k, std::size_t row) {
    e.resize(std::max(e.size(), n * row));
    top = -std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < k; ++c) {
        top = std::max(top, x[i * row + c]);
        least = std::min(least, x[i * row + c]);
      }
    }
    narrow = top - least <= kNarrow;
    if (!narrow) return;
    for (std::size_t i = 0; i < n * row; ++i) e[i] = exp_of_negative(x[i] - top);
    for (std::size_t i = 0; i < n; ++i) std::fill(e.begin() + i * row + k, e.begin() + (i + 1) * row, 0.0);
  }
};

struct SharedShares {
  Shares transitions, start, end;
  std::vector<double> transposed;

  SharedShares(const Layout& layout, const Shared& shared) : transposed(layout.table()) {
    const std::size_t k = layout.k, row = layout.row();
    transitions.take(shared.transitions.data(), k, k, row);
    start.take(shared.start.data(), 1, k, row);
    end.take(shared.end.data(), 1, k, row);
    if (!transitions.narrow) return;
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < k; ++j) transposed[j * row + i] = transitions.e[i * row + j];
  }
  bool narrow() const { return transitions.narrow && start.narrow && end.narrow; }
};

// The logarithm of a product, taken once for many factors.
class LogProduct {
 public:
  void times(double x) {
    product_ *= x;
    if (product_ > 1e-150 && product_ < 1e150) return;
    log_ += std::log(product_);
    product_ = 1.0;
  }
  double value() const { return log_ + std::log(product_); }

 private:
  double product_ = 1.0, log_ = 0.0;
};

// Room for the rows of one sequence.
struct Room {
  std::vector<double> E, A, c, tops, beta;
  std::vector<Shares> edges;

  void fit(std::size_t n, std::size_t row) {
    if (c.size() < n) c.resize(n), tops.resize(n), E.resize(n * row), A.resize(n * row);
    if (beta.size() < row) beta.resize(row);
  }
};

// E = exp(f - largest), row by row
BMRM_CLONES static inline void exponentials(const double* __restrict f, std::size_t n, std::size_t row,
                                            double* __restrict tops, double* __restrict E) {
  for (std::size_t t = 0; t < n; ++t) {
    Lanes most, v;
    load(f + t * row, most);
    for (std::size_t c = kLanes; c < row; c += kLanes) {
      load(f + t * row + c, v);
      raise(v, most);
    }
    const double top = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    tops[t] = top;
    for (std::size_t c = 0; c < row; ++c) E[t * row + c] = exp_of_negative(f[t * row + c] - top);
  }
}

BMRM_INLINE double total_of(const double* x, std::size_t row) {
  Lanes s, v;
  load(x, s);
  for (std::size_t c = kLanes; c < row; c += kLanes) {
    load(x + c, v);
    s += v;
  }
  return sum(s);
}

// A_t = (A_{t-1} M) E_t, divided by its sum c_t. `edges` holds one M for each edge, or there is one for all.
BMRM_CLONES static inline void forward(std::size_t n, std::size_t k, std::size_t row, const double* start,
                                       const double* M, const Shares* edges, const double* E, double* A, double* sums) {
  for (std::size_t t = 0; t < n; ++t) {
    double* a = A + t * row;
    if (t == 0) {
      std::copy_n(start, row, a);
    } else {
      row_times(a - row, k, edges == nullptr ? M : edges[t - 1].e.data(), row, a);
    }
    for (std::size_t c = 0; c < row; ++c) a[c] *= E[t * row + c];
    sums[t] = total_of(a, row);
    const double factor = 1.0 / sums[t];
    for (std::size_t c = 0; c < row; ++c) a[c] *= factor;
  }
}

// From the backward sums of the last token: L_t = A_t beta_t; V_t = E_t beta_t / c_t, written over E; and beta_{t-1} =
// M V_t, by the transpose of M, or by the edges' own.
BMRM_CLONES static inline void backward(std::size_t n, std::size_t k, std::size_t row, const double* transposed,
                                        const Shares* edges, const double* A, const double* sums, double* beta,
                                        double* E, double* L) {
  for (std::size_t t = n; t-- > 0;) {
    const double factor = 1.0 / sums[t];
    for (std::size_t c = 0; c < row; ++c) {
      L[t * row + c] = A[t * row + c] * beta[c];
      E[t * row + c] *= beta[c] * factor;
    }
    if (t == 0) break;
    if (edges == nullptr) {
      row_times(E + t * row, k, transposed, row, beta);
      continue;
    }
    const double* M = edges[t - 1].e.data();
    for (std::size_t i = 0; i < k; ++i) {
      Lanes s = {}, v, x;
      for (std::size_t c = 0; c < row; c += kLanes) {
        load(M + i * row + c, v);
        load(E + t * row + c, x);
        s += v * x;
      }
      beta[i] = sum(s);
    }
  }
}

// What a sum over all labelings leaves behind: p times the marginals of tokens in L, of edges (if they have their own
// scores) in `edges`, and added to `share`, which `finish` completes after the last sequence. Returns log Z, less the
// score of the labels y where they are given: term by term, because the difference may be small.
class Marginals {
 public:
  Marginals(const Layout& layout, const Shared& shared, const SharedShares& shares)
      : layout_(layout), shared_(shared), shares_(shares) {}

  double operator()(const Sequence& sequence, const std::int32_t* y, double p, Room& room, double* L, double* edges,
                    Share& share) const {
    room.fit(sequence.n, layout_.row());
    const bool narrow = shares_.narrow() && fits(sequence, room);
    const double log_z =
        narrow ? scaled(sequence, y, p, room, L, edges, share) : logs(sequence, y, p, room, L, edges, share);
    const std::size_t row = layout_.row();
    for (std::size_t c = 0; c < layout_.k; ++c) {
      share.start[c] += L[c];
      share.end[c] += L[(sequence.n - 1) * row + c];
    }
    return log_z;
  }

  void finish(Share& share) const {
    if (layout_.pairs || !shares_.narrow()) return;  // else the table is still without its exponentials
    for (std::size_t e = 0; e < layout_.table(); ++e) share.transitions[e] *= shares_.transitions.e[e];
  }

 private:
  // Takes the exponentials of the edges' own scores, if there are any; says whether all are narrow.
  bool fits(const Sequence& sequence, Room& room) const {
    if (!layout_.pairs) return true;
    if (room.edges.size() < sequence.n) room.edges.resize(sequence.n);
    for (std::size_t t = 1; t < sequence.n; ++t) {
      room.edges[t - 1].take(sequence.to(layout_, shared_, t), layout_.k, layout_.k, layout_.row());
      if (!room.edges[t - 1].narrow) return false;
    }
    return true;
  }

  double scaled(const Sequence& sequence, const std::int32_t* y, double p, Room& room, double* L, double* edges,
                Share& share) const {
    const std::size_t n = sequence.n, k = layout_.k, row = layout_.row();
    const Shares* own = layout_.pairs ? room.edges.data() : nullptr;
    const double *M = shares_.transitions.e.data(), *end = shares_.end.e.data();
    exponentials(sequence.f.data(), n, row, room.tops.data(), room.E.data());
    forward(n, k, row, shares_.start.e.data(), M, own, room.E.data(), room.A.data(), room.c.data());
    double z = 0.0;
    for (std::size_t c = 0; c < k; ++c) z += room.A[(n - 1) * row + c] * end[c];
    const double log_z = log_of(sequence, y, z, room, own);
    const double factor = p / z;
    for (std::size_t c = 0; c < row; ++c) room.beta[c] = factor * end[c];
    backward(n, k, row, shares_.transposed.data(), own, room.A.data(), room.c.data(), room.beta.data(), room.E.data(),
             L);
    if (own == nullptr) {
      add_outers(room.A.data(), room.E.data() + row, n - 1, k, row, share.transitions.data());
    } else {
      for (std::size_t t = 1; t < n; ++t) put_edge(t, own[t - 1].e.data(), room, edges, share);
    }
    return log_z;
  }

  double log_of(const Sequence& sequence, const std::int32_t* y, double z, const Room& room, const Shares* own) const {
    LogProduct product;
    product.times(z);
    double rest = 0.0;
    for (std::size_t t = 0; t < sequence.n; ++t) {
      product.times(room.c[t]);
      rest += room.tops[t] + (t == 0 ? shares_.start.top : own == nullptr ? shares_.transitions.top : own[t - 1].top);
      if (y != nullptr) rest -= score_of(layout_, shared_, sequence, y, t);
    }
    return product.value() + (rest + shares_.end.top - (y == nullptr ? 0.0 : shared_.end[label(y, sequence.n - 1)]));
  }

  void put_edge(std::size_t t, const double* M, const Room& room, double* edges, Share& share) const {
    const std::size_t row = layout_.row(), table = layout_.table();
    double* out = edges == nullptr ? nullptr : edges + (t - 1) * table;
    for (std::size_t i = 0; i < layout_.k; ++i) {
      const double a = room.A[(t - 1) * row + i];
      for (std::size_t j = 0; j < row; ++j) {
        const double q = a * M[i * row + j] * room.E[t * row + j];
        share.transitions[i * row + j] += q;
        if (out != nullptr) out[i * row + j] = q;
      }
    }
  }

  static double log_sum(const double* x, std::size_t k) {
    const double top = *std::max_element(x, x + k);
    double sum = 0.0;
    for (std::size_t c = 0; c < k; ++c) sum += std::exp(x[c] - top);
    return top + std::log(sum);
  }

  // The same in logarithms: A holds those of the forward sums. What a label has at the end is shared out to the labels
  // before it. Shares of a label are divided by their sum: they are those of some distribution of labelings, whatever
  // the logarithms are rounded by, and so their plane is valid everywhere.
  double logs(const Sequence& sequence, const std::int32_t* y, double p, Room& room, double* L, double* edges,
              Share& share) const {
    const std::size_t n = sequence.n, k = layout_.k, row = layout_.row();
    const double* f = sequence.f.data();
    double* A = room.A.data();
    std::vector<double> terms(k);
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t j = 0; j < k; ++j) {
        if (t > 0) {
          const double* T = sequence.to(layout_, shared_, t);
          for (std::size_t i = 0; i < k; ++i) terms[i] = A[(t - 1) * row + i] + T[i * row + j];
        }
        A[t * row + j] = f[t * row + j] + (t > 0 ? log_sum(terms.data(), k) : shared_.start[j]);
      }
    }
    for (std::size_t j = 0; j < k; ++j) terms[j] = A[(n - 1) * row + j] + shared_.end[j];
    const double log_z = log_sum(terms.data(), k);
    std::fill_n(L, n * row, 0.0);
    give_shares(p, terms);
    std::copy_n(terms.data(), k, L + (n - 1) * row);
    for (std::size_t t = n - 1; t > 0; --t) lead_back(sequence, t, A, terms, L, edges, share);
    if (y == nullptr) return log_z;
    double own = shared_.end[label(y, n - 1)];
    for (std::size_t t = 0; t < n; ++t) own += score_of(layout_, shared_, sequence, y, t);
    return log_z - own;
  }

  // Turns logarithms into shares that add up to a mass.
  static void give_shares(double mass, std::vector<double>& terms) {
    const double top = *std::max_element(terms.begin(), terms.end());
    double sum = 0.0;
    for (double& term : terms) sum += term = std::exp(term - top);
    for (double& term : terms) term *= mass / sum;
  }

  // Shares what the labels of token t have with those of the token before.
  void lead_back(const Sequence& sequence, std::size_t t, const double* A, std::vector<double>& terms, double* L,
                 double* edges, Share& share) const {
    const std::size_t k = layout_.k, row = layout_.row();
    const double* T = sequence.to(layout_, shared_, t);
    double* out = edges == nullptr ? nullptr : edges + (t - 1) * layout_.table();
    if (out != nullptr) std::fill_n(out, layout_.table(), 0.0);
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t i = 0; i < k; ++i) terms[i] = A[(t - 1) * row + i] + T[i * row + j];
      give_shares(L[t * row + j], terms);
      for (std::size_t i = 0; i < k; ++i) {
        L[(t - 1) * row + i] += terms[i];
        share.transitions[i * row + j] += terms[i];
        if (out != nullptr) out[i * row + j] = terms[i];
      }
    }
  }

  const Layout& layout_;
  const Shared& shared_;
  const SharedShares& shares_;
};

}  // namespace bmrm::chain
