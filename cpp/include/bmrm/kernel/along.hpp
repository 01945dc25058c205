// A sum of scalar losses on a line: t -> sum_i c_i l(f_i + t g_i, y_i), from cached scores only.
//
// The exact search narrows a bracket [lower, upper] around the minimum. A row whose two ends lie in the same
// piece of a piecewise quadratic loss has a linear slope in between: it is settled and summed up once. Each
// trial step then looks at the unsettled rows only, so that the whole search costs a few readings of the
// scores and never a sort. Smooth losses without pieces are searched by safeguarded Newton steps.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "bmrm/kernel/evaluate.hpp"

namespace bmrm {

struct AlongValue {
  double value = 0.0;
  double left = 0.0;  // one-sided slopes
  double right = 0.0;
};

// The right slope and the curvature at a trial step.
struct TrialSlope {
  double slope = 0.0;
  double curvature = 0.0;
};

// Both ends of a bracket.
struct BracketSlopes {
  TrialSlope lower, upper;
};

// Neighboring steps between which a row passes from one piece of its loss to the next.
struct Kink {
  double before = 0.0, after = 0.0;
};

// Slope of the settled part: constant + linear t.
struct Settled {
  double constant = 0.0;
  double linear = 0.0;
};

// What the blocks of a sum add up to.
inline AlongValue total(const std::vector<AlongValue>& parts) {
  Sum value, left, right;
  for (const AlongValue& part : parts) {
    value.add(part.value);
    left.add(part.left);
    right.add(part.right);
  }
  return {value.value(), left.value(), right.value()};
}

inline BracketSlopes total(const std::vector<BracketSlopes>& parts) {
  Sum sums[4];
  for (const BracketSlopes& part : parts) {
    sums[0].add(part.lower.slope);
    sums[1].add(part.lower.curvature);
    sums[2].add(part.upper.slope);
    sums[3].add(part.upper.curvature);
  }
  return {{sums[0].value(), sums[1].value()}, {sums[2].value(), sums[3].value()}};
}

inline TrialSlope total(const std::vector<TrialSlope>& parts) {
  Sum slope, curvature;
  for (const TrialSlope& part : parts) {
    slope.add(part.slope);
    curvature.add(part.curvature);
  }
  return {slope.value(), curvature.value()};
}

class LineTerm {
 public:
  virtual ~LineTerm() = default;
  virtual AlongValue evaluate(double t, int n_threads) const = 0;
  // Forgets what was settled, and settles what can be on a new bracket: one reading of all rows.
  virtual BracketSlopes open(double lower, double upper, int n_threads) = 0;
  virtual TrialSlope trial(double t, int n_threads) const = 0;  // unsettled rows
  virtual void narrow(double lower, double upper, int n_threads) = 0;
  virtual std::size_t unsettled() const = 0;
  virtual Settled settled() const = 0;
  // Unsettled rows that may become settled.
  virtual std::size_t kinks() const = 0;
  virtual Kink first_kink(double lower, double upper) const = 0;  // of the first of them
  virtual bool costly_and_smooth() const { return false; }        // no kinks, and every trial is dear
};

template <class L>
class LossLine final : public LineTerm {
 public:
  LossLine(L loss, std::span<const double> f, std::span<const double> g, Rows rows)
      : loss_(std::move(loss)), f_(f), g_(g), rows_(rows), blocks_((f.size() + kRowsPerTask - 1) / kRowsPerTask) {}

  AlongValue evaluate(double t, int n_threads) const override {
    std::vector<AlongValue> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t k) { parts[k] = evaluate_block(k, t); });
    return total(parts);
  }

  BracketSlopes open(double lower, double upper, int n_threads) override {
    std::vector<BracketSlopes> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t k) { parts[k] = open_block(k, lower, upper); });
    return total(parts);
  }

  TrialSlope trial(double t, int n_threads) const override {
    std::vector<TrialSlope> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t k) { parts[k] = trial_block(k, t); });
    return total(parts);
  }

  void narrow(double lower, double upper, int n_threads) override {
    if constexpr (PiecewiseQuadraticLoss<L>)
      each_block(n_threads, [&](std::size_t k) { narrow_block(k, lower, upper); });
  }

  std::size_t unsettled() const override {
    std::size_t n = 0;
    for (const Block& block : blocks_) n += block.open.size();
    return n;
  }

  std::size_t kinks() const override { return PiecewiseQuadraticLoss<L> ? unsettled() : 0; }

  Kink first_kink(double lower, double upper) const override {
    if constexpr (PiecewiseQuadraticLoss<L>) {
      for (std::size_t k = 0; k < blocks_.size(); ++k)
        if (!blocks_[k].open.empty()) return kink_of(begin(k) + blocks_[k].open.front(), lower, upper);
    }
    return {lower, upper};
  }

  Settled settled() const override {
    Sum constant, linear;
    for (const Block& block : blocks_) {
      constant.add(block.settled.constant);
      linear.add(block.settled.linear);
    }
    return {constant.value(), linear.value()};
  }

 private:
  struct Block {
    std::vector<std::uint32_t> open;  // unsettled rows, counted from the block's first
    Settled settled;
  };

  std::size_t begin(std::size_t k) const { return k * kRowsPerTask; }
  std::size_t end(std::size_t k) const { return std::min(f_.size(), (k + 1) * kRowsPerTask); }

  template <class Body>
  void each_block(int n_threads, const Body& body) const {
    parallel_for(blocks_.size(), blocks_.size() < 4 ? 1 : n_threads, body);
  }

  AlongValue evaluate_block(std::size_t k, double t) const {
    if constexpr (!Kinked<L>) return evaluate_smooth(k, t);
    AlongValue sum;
    for (std::size_t i = begin(k); i < end(k); ++i) {
      const double c = rows_.at(i), z = f_[i] + t * g_[i], y = rows_.y[i];
      if (c == 0.0) continue;
      sum.value += c * loss_(z, y).value;
      const Interval s = subdifferential(loss_, z, y);
      const bool up = g_[i] >= 0.0;
      sum.left += c * g_[i] * (up ? s.lower : s.upper);
      sum.right += c * g_[i] * (up ? s.upper : s.lower);
    }
    return sum;
  }

  static constexpr std::size_t kChunk = 256;

  AlongValue evaluate_smooth(std::size_t k, double t) const {
    double z[kChunk], value[kChunk], slope[kChunk];
    AlongValue sum;
    for (std::size_t first = begin(k); first < end(k); first += kChunk) {
      const std::size_t n = std::min(end(k) - first, kChunk);
      for (std::size_t j = 0; j < n; ++j) z[j] = f_[first + j] + t * g_[first + j];
      loss_terms(loss_, z, rows_.y.data() + first, counts_from(rows_, first), n, value, slope);
      for (std::size_t j = 0; j < n; ++j) slope[j] = slope[j] == 0.0 ? 0.0 : slope[j] * g_[first + j];
      sum.value += add_chunk(value, n);
      sum.left += add_chunk(slope, n);
    }
    sum.right = sum.left;
    return sum;
  }

  // The terms of a chunk of rows, written down first and added up afterwards: no row waits for another, so that
  // the compiler can take several at a time.
  struct Chunk {
    double slope0[kChunk], slope1[kChunk], constant[kChunk];
    double curvature0[kChunk], curvature1[kChunk], linear[kChunk];
    double settles[kChunk];
  };

  BracketSlopes open_block(std::size_t k, double lower, double upper) {
    BracketSlopes sum;
    Settled& settled = blocks_[k].settled;
    std::vector<std::uint32_t>& open = blocks_[k].open;
    open.resize(end(k) - begin(k));
    std::size_t n_open = 0;
    settled = {};
    Chunk chunk;
    for (std::size_t i = begin(k); i < end(k); i += kChunk) {
      const std::size_t n = std::min(end(k) - i, kChunk);
      if constexpr (std::is_same_v<L, Logistic>) {
        fill_logistic(chunk, i, n, lower, upper);
      } else if (rows_.weight.empty()) {
        fill(chunk, i, n, lower, upper, [this](std::size_t) { return rows_.scale; });
      } else {
        fill(chunk, i, n, lower, upper, [this](std::size_t row) { return rows_.weight[row]; });
      }
      sum.lower.slope += add_chunk(chunk.slope0, n);
      sum.upper.slope += add_chunk(chunk.slope1, n);
      settled.constant += add_chunk(chunk.constant, n);
      if constexpr (Curved<L>) {
        sum.lower.curvature += add_chunk(chunk.curvature0, n);
        sum.upper.curvature += add_chunk(chunk.curvature1, n);
        settled.linear += add_chunk(chunk.linear, n);
      }
      for (std::size_t j = 0; j < n; ++j) {
        open[n_open] = static_cast<std::uint32_t>(i + j - begin(k));
        n_open += chunk.settles[j] == 0.0;
      }
    }
    open.resize(n_open);
    return sum;
  }

  template <class Weight>
  void fill(Chunk& chunk, std::size_t first, std::size_t n, double lower, double upper, const Weight& weight) const {
    const double middle = 0.5 * (lower + upper);
    const double *f = f_.data() + first, *g = g_.data() + first, *y = rows_.y.data() + first;
    for (std::size_t j = 0; j < n; ++j) {
      const double cg = weight(first + j) * g[j];
      const double z0 = f[j] + lower * g[j], z1 = f[j] + upper * g[j], zm = f[j] + middle * g[j];
      const bool settles = settles_between(z0, z1, y[j]);
      double constant = cg * loss_(zm, y[j]).slope;
      chunk.slope0[j] = cg * right_slope(g[j], z0, y[j]);
      chunk.slope1[j] = cg * right_slope(g[j], z1, y[j]);
      if constexpr (Curved<L>) {
        chunk.curvature0[j] = cg * g[j] * loss_.curvature(z0, y[j]);
        chunk.curvature1[j] = cg * g[j] * loss_.curvature(z1, y[j]);
        const double linear = cg * g[j] * loss_.curvature(zm, y[j]);
        chunk.linear[j] = settles ? linear : 0.0;
        constant -= linear * middle;
      }
      chunk.constant[j] = settles ? constant : 0.0;
      chunk.settles[j] = settles ? 1.0 : 0.0;
    }
  }

  void fill_logistic(Chunk& chunk, std::size_t first, std::size_t n, double lower, double upper) const {
    const double *f = f_.data() + first, *g = g_.data() + first, *y = rows_.y.data() + first;
    const Counts counts = counts_from(rows_, first);
    logistic_along(f, g, y, counts, lower, n, chunk.slope0, chunk.curvature0);
    logistic_along(f, g, y, counts, upper, n, chunk.slope1, chunk.curvature1);
    for (double* none : {chunk.constant, chunk.linear, chunk.settles}) std::fill_n(none, n, 0.0);
  }

  static double add_chunk(const double* terms, std::size_t n) {
    double lanes[4] = {};
    std::size_t j = 0;
    for (; j + 4 <= n; j += 4)
      for (std::size_t k = 0; k < 4; ++k) lanes[k] += terms[j + k];
    for (; j < n; ++j) lanes[0] += terms[j];
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }

  bool settles_between(double z0, double z1, double y) const {
    if constexpr (PiecewiseQuadraticLoss<L>) {
      return loss_.piece(z0, y) == loss_.piece(z1, y);
    } else {
      return false;
    }
  }

  // The slope of a row that stays in one piece, taken from the middle: the ends may be kinks.
  Settled between(double lower, double upper, std::size_t i) const {
    const double middle = 0.5 * (lower + upper), cg = rows_.at(i) * g_[i], z = f_[i] + middle * g_[i];
    const double linear = cg * g_[i] * curvature(loss_, z, rows_.y[i]);
    return {cg * loss_(z, rows_.y[i]).slope - linear * middle, linear};
  }

  // By halving, to the last digit: one row costs nothing, and no rounding can put the kink on the wrong side.
  Kink kink_of(std::size_t i, double lower, double upper) const {
    const auto piece = [&](double t) { return loss_.piece(f_[i] + t * g_[i], rows_.y[i]); };
    const auto first = piece(lower);
    for (double t = lower + 0.5 * (upper - lower); t > lower && t < upper; t = lower + 0.5 * (upper - lower))
      (piece(t) == first ? lower : upper) = t;
    return {lower, upper};
  }

  double right_slope(double g, double z, double y) const {
    if constexpr (Kinked<L>) {
      const Interval s = loss_.subdifferential(z, y);
      return g >= 0.0 ? s.upper : s.lower;
    } else {
      return loss_(z, y).slope;
    }
  }

  TrialSlope trial_block(std::size_t k, double t) const {
    if constexpr (std::is_same_v<L, Logistic>) return trial_logistic(k, t);
    TrialSlope sum;
    for (const std::uint32_t offset : blocks_[k].open) {
      const std::size_t i = begin(k) + offset;
      const double g = g_[i], cg = rows_.at(i) * g, z = f_[i] + t * g;
      sum.slope += cg * right_slope(g, z, rows_.y[i]);
      sum.curvature += cg * g * curvature(loss_, z, rows_.y[i]);
    }
    return sum;
  }

  TrialSlope trial_logistic(std::size_t k, double t) const {
    TrialSlope sum;
    double slope[kChunk], curvature[kChunk];
    for (std::size_t i = begin(k); i < end(k); i += kChunk) {
      const std::size_t n = std::min(end(k) - i, kChunk);
      logistic_along(f_.data() + i, g_.data() + i, rows_.y.data() + i, counts_from(rows_, i), t, n, slope, curvature);
      sum.slope += add_chunk(slope, n);
      sum.curvature += add_chunk(curvature, n);
    }
    return sum;
  }

  void narrow_block(std::size_t k, double lower, double upper) {
    std::vector<std::uint32_t>& open = blocks_[k].open;
    Settled& settled = blocks_[k].settled;
    std::size_t kept = 0;
    for (const std::uint32_t offset : open) {
      const std::size_t i = begin(k) + offset;
      const double g = g_[i], y = rows_.y[i];
      if (settles_between(f_[i] + lower * g, f_[i] + upper * g, y)) {
        const Settled part = between(lower, upper, i);
        settled.constant += part.constant;
        settled.linear += part.linear;
      } else {
        open[kept++] = offset;
      }
    }
    open.resize(kept);
  }

  L loss_;
  std::span<const double> f_, g_;
  Rows rows_;
  std::vector<Block> blocks_;
};

inline std::unique_ptr<LineTerm> make_line(const AnyScalarLoss& loss, std::span<const double> f,
                                           std::span<const double> g, const Rows& rows) {
  return std::visit(
      [&](const auto& one) -> std::unique_ptr<LineTerm> {
        return std::make_unique<LossLine<std::decay_t<decltype(one)>>>(one, f, g, rows);
      },
      loss);
}

}  // namespace bmrm
