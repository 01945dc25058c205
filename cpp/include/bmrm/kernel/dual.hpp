// Dual coordinate descent for sum_i p_i l(<x_i, w> + offset_i, y_i) + lam/2 <w, S w>.
//
// A dual point is a slope s_i and b_i = -l*(s_i) for each row: s_i <f> + b_i lies below l. Its w is
// center - S^-1 X'(p s) / lam, kept up to date. The step for row i is the loss's proximal map, whatever the loss:
//   q = p_i <x_i, S^-1 x_i> / lam,  (z, s_i) = prox(f_i + q s_i, q), or near it: see DualStep
// The gap of (w, s) is the sum of p_i (l(f_i) - s_i f_i - b_i), terms that are never negative; an epoch adds them up as
// it goes along, with the f_i that it meets, which estimates the gap for free.
// A row is settled when l is linear with slope s_i on all of [f_i - reach, f_i + reach]: epochs leave it out until
// the next check of all rows.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "bmrm/kernel/evaluate.hpp"
#include "bmrm/kernel/rows.hpp"
#include "bmrm/kernel/sum.hpp"
#include "bmrm/loss/scalar.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

struct DualProblem {
  Rows rows;
  std::span<const double> offset;   // empty: none
  std::span<const double> q;        // of every row
  std::span<const double> inverse;  // the diagonal of S^-1; empty: ones
  double lam;
  bool intercept;  // w has one more coordinate, whose entry is 1 in every row
};

struct DualPoint {
  std::span<double> w;
  std::span<double> s;
  std::span<double> b;
};

struct DualEpoch {
  double estimate = 0.0;      // of the gap
  double movement = 0.0;      // the largest change of a row's own score by its own step
  double variation = 0.0;     // at least the sum of the lengths of all changes of w, in the norm of S
  std::size_t n_updates = 0;  // rows whose slope changed
  std::size_t n_active = 0;   // rows left for the next epoch
  std::size_t n_entries = 0;  // of the rows visited
};

// How two blocks of rows work side by side (CoCoA+): each takes its own changes of w sigma times, 1 <= sigma <= 2, in
// place of those of the other that it does not see. What they find does not depend on the number of threads.
struct DualBlocks {
  std::size_t n_merges;  // of the changes of w, in an epoch
  double& sigma;
  double& least;              // that sigma may be
  std::span<double> scratch;  // 2 numbers for each coordinate of w
  int n_threads;
};

// How often to merge; 0: one block. A merge costs about as much as an entry for each coordinate, and waking a thread as
// much as thousands of entries; with fewer than 4 merges in an epoch the blocks know too little of each other.
inline std::size_t dual_merges(std::size_t n_entries, std::size_t dim) {
  const std::size_t n_merges = std::min(n_entries / kEntriesPerTask, n_entries / (4 * std::max<std::size_t>(1, dim)));
  return n_merges < 4 ? 0 : std::min<std::size_t>(n_merges, 256);
}

template <class L>
bool is_settled(const L& loss, double f, double y, double s, double reach) {
  if constexpr (PiecewiseQuadraticLoss<L>) {
    const Interval before = subdifferential(loss, f - reach, y), after = subdifferential(loss, f + reach, y);
    return (before.lower == s) & (after.upper == s);  // no branch: which rows are settled cannot be guessed
  } else {
    return false;
  }
}

// What l lies above the plane of slope s: never negative but for rounding.
inline double excess(double value, double s, double b, double f) { return std::max(0.0, value - (b + s * f)); }

template <class L, class View>
class DualCoordinates {
 public:
  DualCoordinates(const View& X, const L& loss, const DualProblem& problem, const DualPoint& point)
      : X_(X), loss_(loss), problem_(problem), point_(point), per_lam_(1.0 / problem.lam) {}

  // Visits the active rows once, in random order; those that turn out to be settled are moved to the end.
  DualEpoch epoch(std::span<std::int64_t> active, std::uint64_t key, double reach) {
    Block block(active, key, neighbors(active.size()), point_.w.data(), 1.0);
    Patience patience;
    bool stopped = false;
    visit(block, active.size(), reach, [&] { return !(stopped = patience.is_over()); });
    const DualEpoch sums = finish(active, std::span(&block, 1));
    if (stopped) throw Interrupted();
    return sums;
  }

  // The same by two blocks, each half of the rows, whose changes of w are added n_merges times.
  DualEpoch epoch(std::span<std::int64_t> active, std::uint64_t key, double reach, const DualBlocks& by) {
    const std::size_t n = active.size(), d = point_.w.size(), each = neighbors(n);
    const std::size_t half = n / 2 / each * each, quarter = half / 2 / each * each;
    // Both orders are random, so this makes new halves of those of the last epoch.
    std::swap_ranges(active.data() + quarter, active.data() + half, active.data() + half);
    std::array<Block, 2> blocks{Block(active.first(half), key, each, by.scratch.data(), by.sigma),
                                Block(active.subspan(half), ~key, each, by.scratch.data() + d, by.sigma)};
    for (const Block& block : blocks) std::copy(point_.w.begin(), point_.w.end(), block.w);
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> stopped = false;
    Patience patience;
    const auto go_on = [&] {  // only the caller may ask
      if (std::this_thread::get_id() == caller && patience.is_over()) stopped = true;
      return !stopped;
    };
    for (std::size_t k = 1; k <= by.n_merges && !stopped; ++k) {
      try {
        parallel_for(2, by.n_threads, [&](std::size_t at) {
          visit(blocks[at], blocks[at].rows.size() * k / by.n_merges, reach, go_on);
        });
      } catch (const Interrupted&) {
        stopped = true;
      }
      merge(blocks, by);  // in any case: w is that of the slopes again
    }
    const DualEpoch sums = finish(active, blocks);
    if (stopped) throw Interrupted();
    return sums;
  }

 private:
  // Rows that are visited one after the other, with a w of their own.
  struct Block {
    Block(std::span<std::int64_t> own, std::uint64_t key, std::size_t each, double* w_, double sigma_)
        : order(own, key, each), rows(own), w(w_), sigma(sigma_) {}
    RandomOrder order;
    std::span<std::int64_t> rows;
    double* w;
    double sigma;          // how many times each change counts in w
    std::size_t next = 0;  // rows visited
    double rise = 0.0;     // of sum p (b + s offset) since the last merge
    DualEpoch sums;
  };

  // How many rows that lie side by side are visited one after the other: a line with numbers of several short rows is
  // then read once, and long rows are read in order. The more there are, the less an epoch learns where rows are alike,
  // or where there are few of them.
  std::size_t neighbors(std::size_t n) const {
    constexpr std::size_t kLong = 64, kFewRows = 8192;
    const bool is_long = X_.n_entries() >= kLong * X_.n_rows;
    return std::clamp<std::size_t>(n / 64, 1, !is_long ? 4 : X_.n_rows >= kFewRows ? 8 : 1);
  }

  // Visits the rows of a block up to `until`; `go_on` is asked now and then.
  template <class GoOn>
  void visit(Block& block, std::size_t until, double reach, const GoOn& go_on) {
    constexpr std::size_t kAhead = 8;  // rows: first their numbers are asked for, then, as far again, their entries
    const auto active = block.rows;
    const std::size_t n = active.size();
    if (block.next == 0) {
      for (std::size_t k = 0; k < std::min(n, 2 * kAhead); ++k) ask_for_numbers(block.order.draw(k));
      for (std::size_t k = 0; k < std::min(n, kAhead); ++k) prefetch_row(X_, static_cast<std::size_t>(active[k]));
    }
    for (; block.next < until; ++block.next) {
      const std::size_t k = block.next;
      if (k % 256 == 255 && !go_on()) return;
      if (k + 2 * kAhead < n) ask_for_numbers(block.order.draw(k + 2 * kAhead));
      if (k + kAhead < n) prefetch_row(X_, static_cast<std::size_t>(active[k + kAhead]));
      if (!step(static_cast<std::size_t>(active[k]), reach, block)) std::swap(active[block.sums.n_active++], active[k]);
    }
  }

  // Adds the changes of w by both blocks, and chooses sigma. With u_k, sigma times the change by block k, the blocks'
  // models of the dual value are right, or too low, where sigma >= |u_1 + u_2|^2 / (|u_1|^2 + |u_2|^2): then it rises.
  // Half way between that and 1 is faster, and rises too as long as there is slack in the steps themselves. After a
  // fall sigma never again gets below a larger `least`; 2 is always enough.
  void merge(std::array<Block, 2>& blocks, const DualBlocks& by) {
    double *first = blocks[0].w, *second = blocks[1].w, *w = point_.w.data();
    double own = 0.0, both = 0.0, along = 0.0;
    const double per = 1.0 / by.sigma;
    for (std::size_t j = 0; j < point_.w.size(); ++j) {
      const double a = first[j] - w[j], b = second[j] - w[j], sum = a + b;
      const double weight = problem_.inverse.empty() ? 1.0 : 1.0 / problem_.inverse[j];
      own += weight * (a * a + b * b), both += weight * sum * sum, along += weight * sum * w[j];
      w[j] += per * sum;
      first[j] = second[j] = w[j];
    }
    const double rise = blocks[0].rise + blocks[1].rise, fall = per * (along + 0.5 * per * both) / per_lam_;
    if (rise - fall < -1e-9 * (std::abs(rise) + std::abs(fall))) by.least = std::min(2.0, by.least + 0.25);
    by.sigma = std::clamp(own > 0.0 ? 0.5 + 0.5 * both / own : 1.0, by.least, 2.0);
    for (Block& block : blocks) block.sigma = by.sigma, block.rise = 0.0;
  }

  // Adds up what the blocks have found, and moves the settled rows to the end, in place: memory that the system has yet
  // to hand out would cost as much as visits to hundreds of rows.
  DualEpoch finish(std::span<std::int64_t> active, std::span<const Block> blocks) const {
    DualEpoch sums;
    for (const Block& block : blocks) {
      const auto rows = block.rows, kept = rows.first(block.sums.n_active + rows.size() - block.next);
      std::rotate(rows.data() + block.sums.n_active, rows.data() + block.next, rows.data() + rows.size());
      for (std::int64_t& row : kept) std::swap(active[sums.n_active++], row);
      sums.estimate += block.sums.estimate;
      sums.movement = std::max(sums.movement, block.sums.movement);
      sums.variation += block.sums.variation;
      sums.n_updates += block.sums.n_updates;
      sums.n_entries += block.sums.n_entries;
    }
    sums.variation = std::sqrt(static_cast<double>(sums.n_updates) * sums.variation);
    return sums;
  }

  // Moves the slope of row i; true if the row is settled.
  bool step(std::size_t i, double reach, Block& block) {
    DualEpoch& sums = block.sums;
    const double p = problem_.rows.at(i), y = problem_.rows.y[i], q = block.sigma * problem_.q[i], s = point_.s[i];
    const double f = score(i, block.w);
    sums.n_entries += row_entries(X_, i);
    const DualStep next = dual_step(loss_, f, s, y, q);
    sums.estimate += p * excess(next.value, s, point_.b[i], f);
    const double change = next.slope - s;
    if (change == 0.0) return next.dslope == 0.0 && is_settled(loss_, f, y, s, reach);
    block.rise += p * (next.b - point_.b[i] + (problem_.offset.empty() ? 0.0 : change * problem_.offset[i]));
    point_.s[i] = next.slope;
    point_.b[i] = next.b;
    const double c = -p * change * block.sigma * per_lam_;
    move(i, c, block.w);
    ++sums.n_updates;
    sums.movement = std::max(sums.movement, std::abs(next.z - f));
    sums.variation -= c * q * change;
    return false;
  }

  void ask_for_numbers(std::size_t i) const {
    prefetch_start(X_, i);
    prefetch(point_.s.data() + i);
    prefetch(point_.b.data() + i);
    prefetch(problem_.q.data() + i);
    prefetch(problem_.rows.y.data() + i);
  }

  double score(std::size_t i, const double* w) const {
    double f = row_dot(X_, i, w);
    if (problem_.intercept) f += w[X_.n_cols];
    return problem_.offset.empty() ? f : f + problem_.offset[i];
  }

  void move(std::size_t i, double c, double* w) const {
    row_axpy(X_, i, c, problem_.inverse, w);
    if (problem_.intercept) w[X_.n_cols] += problem_.inverse.empty() ? c : c * problem_.inverse[X_.n_cols];
  }

  const View& X_;
  const L& loss_;
  DualProblem problem_;
  DualPoint point_;
  double per_lam_;
};

// q_i = p_i <x_i, S^-1 x_i> / lam
template <class View>
void dual_steps(const View& X, const Rows& rows, std::span<const double> inverse, double lam, bool intercept,
                std::span<double> q, int n_threads) {
  const double constant = !intercept ? 0.0 : (inverse.empty() ? 1.0 : inverse[X.n_cols]);
  each_row_task(X, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) q[i] = rows.at(i) * (row_norm(X, i, inverse) + constant) / lam;
  });
}

// How many tasks rows that cost little are cut into, by their number only, and body(begin, end, k) for each task.
inline std::size_t spans_of_rows(std::size_t n_rows) { return std::max<std::size_t>(1, n_rows / kRowsPerTask); }
template <class Body>
void each_span_of_rows(std::size_t n_rows, std::size_t n_tasks, int n_threads, const Body& body) {
  parallel_for(n_tasks, n_threads, [&](std::size_t k) { body(n_rows * k / n_tasks, n_rows * (k + 1) / n_tasks, k); });
}

// The slopes and offsets of the proximal points of v. Where many rows have the same v and y, as at the start, Newton's
// method would find the same point again and again: some are kept.
template <class L>
void dual_start(const L& loss, std::span<const double> v, std::span<const double> y, double q, const DualPoint& point,
                int n_threads) {
  struct Known {
    double v = std::numeric_limits<double>::quiet_NaN(), y = v, s = v, b = v;
  };
  each_span_of_rows(v.size(), spans_of_rows(v.size()), n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::array<Known, 16> known{};
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(v[i]) + 3 * std::bit_cast<std::uint64_t>(y[i]);
      Known& one = known[(bits * 0x9E3779B97F4A7C15ULL) >> 60];
      if (one.v != v[i] || one.y != y[i]) {
        const ProxPoint p = prox(loss, v[i], y[i], q);
        one = {v[i], y[i], p.slope, loss(p.z, y[i]).value - p.slope * p.z};
      }
      point.s[i] = one.s, point.b[i] = one.b;
    }
  });
}

struct DualCheck {
  double value = 0.0;        // sum p l(f)
  double gap = 0.0;          // sum p (l(f) - s f - b)
  double offset = 0.0;       // sum p (b + s offset): the offset of the plane of R
  double size = 0.0;         // sum p (|b| + |s f| + |s offset|): what rounding is measured by
  std::size_t n_active = 0;  // rows that are not settled: they come first
};

// The sums of rows [begin, end); their numbers fill `active`, the settled ones last. Terms are written down before they
// are added, and every row is written to both ends of what is free of `active`: the loops have no branches.
template <class L>
DualCheck dual_check_rows(const L& loss, std::span<const double> f, const Rows& rows, std::span<const double> offset,
                          const DualPoint& point, double reach, std::size_t begin, std::size_t end,
                          std::span<std::int64_t> active) {
  constexpr std::size_t kStep = 256;
  double value[kStep], slope[kStep], gap[kStep], plane[kStep], size[kStep], out[kStep];
  DualCheck check;
  Sum values, planes;
  std::size_t last = active.size();
  for (std::size_t first = begin; first < end; first += kStep) {
    const std::size_t some = std::min(kStep, end - first);
    const double *g = f.data() + first, *y = rows.y.data() + first, *s = point.s.data() + first;
    const double *b = point.b.data() + first, *shift = offset.empty() ? nullptr : offset.data() + first;
    const Counts counts = counts_from(rows, first);
    loss_terms(loss, g, y, counts, some, value, slope);
    each_counted(counts, some, [&](std::size_t i, double p) {
      const double along = s[i] * g[i];
      gap[i] = p != 0.0 ? std::max(0.0, value[i] - p * (b[i] + along)) : 0.0;
      plane[i] = p != 0.0 ? p * b[i] : 0.0;
      size[i] = p != 0.0 ? p * (std::abs(b[i]) + std::abs(along)) : 0.0;
    });
    if (shift != nullptr)
      each_counted(counts, some, [&](std::size_t i, double p) {
        plane[i] += p * s[i] * shift[i];
        size[i] += p * std::abs(s[i] * shift[i]);
      });
    each_counted(counts, some, [&](std::size_t i, double p) {
      const bool settled = is_settled(loss, g[i], y[i], s[i], reach);
      out[i] = p == 0.0 || settled ? 1.0 : 0.0;
    });
    for (std::size_t i = 0; i < some; ++i) {
      active[check.n_active] = active[last - 1] = static_cast<std::int64_t>(first + i);
      const std::size_t leaves = out[i] != 0.0;
      check.n_active += 1 - leaves, last -= leaves;
    }
    values.add(sum_by_halves(value, some)), planes.add(sum_by_halves(plane, some));
    check.gap += sum_by_halves(gap, some), check.size += sum_by_halves(size, some);
  }
  check.value = values.value(), check.offset = planes.value();
  return check;
}

// Looks at all rows with their true scores, and sorts the settled ones out.
template <class L>
DualCheck dual_check(const L& loss, std::span<const double> f, const Rows& rows, std::span<const double> offset,
                     const DualPoint& point, double reach, std::span<std::int64_t> active, int n_threads) {
  const std::size_t m = f.size(), n_tasks = spans_of_rows(m);
  std::vector<DualCheck> parts(n_tasks);
  each_span_of_rows(m, n_tasks, n_threads, [&](std::size_t begin, std::size_t end, std::size_t k) {
    parts[k] = dual_check_rows(loss, f, rows, offset, point, reach, begin, end, active.subspan(begin, end - begin));
  });
  if (n_tasks == 1) return parts[0];
  DualCheck check;
  Sum value, plane;
  for (std::size_t k = 0; k < n_tasks; ++k) {
    const auto own = active.subspan(m * k / n_tasks, m * (k + 1) / n_tasks - m * k / n_tasks);
    value.add(parts[k].value), plane.add(parts[k].offset);
    check.gap += parts[k].gap, check.size += parts[k].size;
    // In place: memory that the system has yet to hand out costs more than the check itself.
    for (std::int64_t& row : own.first(parts[k].n_active)) std::swap(active[check.n_active++], row);
  }
  check.value = value.value(), check.offset = plane.value();
  return check;
}

}  // namespace bmrm
