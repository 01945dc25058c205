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

// Slope of the settled part: constant + linear t.
struct Settled {
  double constant = 0.0;
  double linear = 0.0;
};

class LineTerm {
 public:
  virtual ~LineTerm() = default;
  virtual AlongValue evaluate(double t, int n_threads) const = 0;
  virtual void start() = 0;                                     // all rows unsettled
  virtual TrialSlope trial(double t, int n_threads) const = 0;  // unsettled rows
  virtual void narrow(double lower, double upper, int n_threads) = 0;
  virtual std::size_t unsettled() const = 0;
  virtual Settled settled() const = 0;
};

template <class L>
class LossLine final : public LineTerm {
 public:
  LossLine(L loss, std::span<const double> f, std::span<const double> g, Rows rows)
      : loss_(std::move(loss)),
        f_(f),
        g_(g),
        rows_(rows),
        blocks_((f.size() + kRowsPerTask - 1) / kRowsPerTask) {}

  AlongValue evaluate(double t, int n_threads) const override {
    std::vector<AlongValue> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t k) { parts[k] = evaluate_block(k, t); });
    Sum value, left, right;
    for (const AlongValue& part : parts) {
      value.add(part.value);
      left.add(part.left);
      right.add(part.right);
    }
    return {value.value(), left.value(), right.value()};
  }

  void start() override {
    for (Block& block : blocks_) block = Block{};
  }

  TrialSlope trial(double t, int n_threads) const override {
    std::vector<TrialSlope> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t k) { parts[k] = trial_block(k, t); });
    Sum slope, curvature;
    for (const TrialSlope& part : parts) {
      slope.add(part.slope);
      curvature.add(part.curvature);
    }
    return {slope.value(), curvature.value()};
  }

  void narrow(double lower, double upper, int n_threads) override {
    if constexpr (PiecewiseQuadraticLoss<L>)
      each_block(n_threads, [&](std::size_t k) { narrow_block(k, lower, upper); });
  }

  std::size_t unsettled() const override {
    std::size_t n = 0;
    for (std::size_t k = 0; k < blocks_.size(); ++k)
      n += blocks_[k].fresh ? end(k) - begin(k) : blocks_[k].open.size();
    return n;
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
    bool fresh = true;                // nothing narrowed yet: every row is open
    std::vector<std::uint32_t> open;  // unsettled rows, counted from the block's first
    Settled settled;
  };

  std::size_t begin(std::size_t k) const { return k * kRowsPerTask; }
  std::size_t end(std::size_t k) const { return std::min(f_.size(), (k + 1) * kRowsPerTask); }

  template <class Body>
  void each_block(int n_threads, const Body& body) const {
    parallel_for(blocks_.size(), blocks_.size() < 4 ? 1 : n_threads, body);
  }

  template <class Body>
  void each_open_row(std::size_t k, const Body& body) const {
    const std::size_t first = begin(k);
    if (blocks_[k].fresh) {
      for (std::size_t i = first; i < end(k); ++i) body(i);
    } else {
      for (const std::uint32_t i : blocks_[k].open) body(first + i);
    }
  }

  AlongValue evaluate_block(std::size_t k, double t) const {
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

  double right_slope(std::size_t i, double z) const {
    if constexpr (Kinked<L>) {
      const Interval s = loss_.subdifferential(z, rows_.y[i]);
      return g_[i] >= 0.0 ? s.upper : s.lower;
    } else {
      return loss_(z, rows_.y[i]).slope;
    }
  }

  TrialSlope trial_block(std::size_t k, double t) const {
    TrialSlope sum;
    each_open_row(k, [&](std::size_t i) {
      const double cg = rows_.at(i) * g_[i], z = f_[i] + t * g_[i];
      if (cg == 0.0) return;
      sum.slope += cg * right_slope(i, z);
      sum.curvature += cg * g_[i] * loss_.curvature(z, rows_.y[i]);
    });
    return sum;
  }

  void narrow_block(std::size_t k, double lower, double upper) {
    std::vector<std::uint32_t> open;
    Settled& settled = blocks_[k].settled;
    each_open_row(k, [&](std::size_t i) {
      const double cg = rows_.at(i) * g_[i], y = rows_.y[i];
      if (cg == 0.0) return;
      const double z0 = f_[i] + lower * g_[i], z1 = f_[i] + upper * g_[i];
      if (loss_.piece(z0, y) != loss_.piece(z1, y)) {
        open.push_back(static_cast<std::uint32_t>(i - begin(k)));
        return;
      }
      const double middle = 0.5 * (lower + upper), zm = f_[i] + middle * g_[i];
      const double linear = cg * g_[i] * loss_.curvature(zm, y);
      settled.linear += linear;
      settled.constant += cg * loss_(zm, y).slope - linear * middle;
    });
    blocks_[k].open = std::move(open);
    blocks_[k].fresh = false;
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
