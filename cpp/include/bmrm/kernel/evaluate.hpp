// The loss on spans of scores, and the fused pass: scores, value and subgradient in one reading of X.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "bmrm/kernel/logistic.hpp"
#include "bmrm/kernel/product.hpp"
#include "bmrm/kernel/sum.hpp"
#include "bmrm/loss/list.hpp"

namespace bmrm {

inline constexpr std::size_t kRowsPerTask = 8192;

struct LossSum {
  double value = 0.0;
  double slope = 0.0;  // sum of the slopes: the derivative with respect to a constant added to all scores
};

inline Counts counts_from(const Rows& rows, std::size_t first) {
  return {rows.weight.empty() ? nullptr : rows.weight.data() + first, rows.scale};
}

// Four sums side by side, because one alone would wait for itself.
inline double sum_of(const double* x, std::size_t n) {
  double s[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) s[k] += x[i + k];
  for (; i < n; ++i) s[0] += x[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// Values and slopes times what the rows count. Values are written down before they are added: the loop then has
// no sums in it and compiles to vector code for losses without calls.
template <class L>
void loss_terms(const L& loss, const double* __restrict f, const double* __restrict y, Counts counts, std::size_t n,
                double* __restrict value, double* __restrict l) {
  if constexpr (std::is_same_v<L, Logistic>) {
    logistic_terms(f, y, counts, n, value, l);
  } else {
    each_counted(counts, n, [&](std::size_t i, double c) {
      const ValueSlope v = loss(f[i], y[i]);
      l[i] = c * v.slope;
      value[i] = c != 0.0 ? c * v.value : 0.0;
    });
  }
}

// The weighted sums over rows [begin, end), and their weighted slopes.
template <class L>
LossSum loss_on_rows(const L& loss, const double* f, const Rows& rows, std::size_t begin, std::size_t end, double* l) {
  constexpr std::size_t kStep = 256;
  double value[kStep];
  Sum sum;
  double slope = 0.0;
  for (std::size_t first = begin; first < end; first += kStep) {
    const std::size_t some = std::min(kStep, end - first);
    loss_terms(loss, f + first, rows.y.data() + first, counts_from(rows, first), some, value, l + first);
    sum.add(sum_by_halves(value, some));
    slope += sum_of(l + first, some);
  }
  return {sum.value(), slope};
}

inline LossSum loss_on_rows(const AnyScalarLoss& loss, const double* f, const Rows& rows, std::size_t begin,
                            std::size_t end, double* l) {
  return std::visit([&](const auto& one) { return loss_on_rows(one, f, rows, begin, end, l); }, loss);
}

inline LossSum add_up(const std::vector<LossSum>& parts) {
  Sum value, slope;
  for (const LossSum& part : parts) {
    value.add(part.value);
    slope.add(part.slope);
  }
  return {value.value(), slope.value()};
}

inline LossSum evaluate_loss(const AnyScalarLoss& loss, std::span<const double> f, const Rows& rows,
                             std::span<double> l, int n_threads) {
  const std::size_t m = f.size(), n_tasks = (m + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<LossSum> parts(n_tasks);
  parallel_for(n_tasks, n_tasks < 4 ? 1 : n_threads, [&](std::size_t k) {
    const std::size_t end = std::min(m, (k + 1) * kRowsPerTask);
    parts[k] = loss_on_rows(loss, f.data(), rows, k * kRowsPerTask, end, l.data());
  });
  return add_up(parts);
}

// The norm of the weighted slopes, each the steeper one of those at f - e and f + e.
template <class L>
double steepest(const L& loss, std::span<const double> f, const Rows& rows, double e) {
  constexpr std::size_t kStep = 256;
  double squares[kStep], sizes[kStep];
  double sum = 0.0, total = 0.0;
  for (std::size_t first = 0; first < f.size(); first += kStep) {
    const std::size_t some = std::min(kStep, f.size() - first);
    const double* g = f.data() + first;
    const double* y = rows.y.data() + first;
    each_counted(counts_from(rows, first), some, [&](std::size_t i, double c) {
      const double before = std::abs(loss(g[i] - e, y[i]).slope), after = std::abs(loss(g[i] + e, y[i]).slope);
      const double s = c * std::max(before, after);
      sizes[i] = c != 0.0 ? s : 0.0;
      squares[i] = c != 0.0 ? s * s : 0.0;
    });
    sum += sum_of(squares, some);
    total += sum_of(sizes, some);
  }
  return std::isfinite(sum) ? std::sqrt(sum) : total;  // squares overflow first; the norm is at most the sum
}

// A constant and a known shift for each row, added to the scores. Either may be absent.
struct Shift {
  double constant = 0.0;
  std::span<const double> offset;
  void apply(double* f, std::size_t begin, std::size_t end) const {
    if (constant != 0.0)
      for (std::size_t i = begin; i < end; ++i) f[i] += constant;
    if (!offset.empty())
      for (std::size_t i = begin; i < end; ++i) f[i] += offset[i];
  }
};

// Tiles stay in the second-level cache between the dots and the axpys.
inline std::size_t rows_per_tile(std::size_t n_rows, std::size_t entries, std::size_t bytes_per_entry) {
  const std::size_t bytes_per_row =
      std::max<std::size_t>(1, entries * bytes_per_entry / std::max<std::size_t>(1, n_rows));
  return std::clamp<std::size_t>((std::size_t{1} << 17) / bytes_per_row, 4, 1024);
}

// scores = X w + shift, value and slopes of the loss, g = X' slopes. Needs Transpose::kRowBlocks.
template <class Matrix>
LossSum fused(const Matrix& X, const Cut& cut, std::size_t bytes_per_entry, const AnyScalarLoss& loss, const double* w,
              const Shift& shift, const Rows& rows, std::vector<double>& scratch, double* f, double* l, double* g,
              int n_threads) {
  std::vector<LossSum> parts(cut.n_blocks);
  const std::size_t tile = rows_per_tile(X.n_rows, X.n_entries(), bytes_per_entry);
  sum_blocks(cut, X.n_cols, scratch, g, threads_for(X.n_entries(), n_threads), [&](std::size_t k, double* own) {
    LossSum& part = parts[k];
    for (std::size_t i = cut.begin(k); i < cut.end(k); i += tile) {
      const std::size_t end = std::min(cut.end(k), i + tile);
      row_dots(X, i, end, w, f + i);
      shift.apply(f, i, end);
      const LossSum here = loss_on_rows(loss, f, rows, i, end, l);
      part.value += here.value;
      part.slope += here.slope;
      row_axpys(X, i, end, l + i, own);
    }
  });
  return add_up(parts);
}

}  // namespace bmrm
