// Sums of losses with k scores for each row: value and slopes, extreme slopes, and the sum on a line.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bmrm/kernel/along.hpp"
#include "bmrm/loss/vector.hpp"

namespace bmrm {

// What each row counts.
struct Shares {
  std::span<const double> weight;
  double scale = 1.0;
  double at(std::size_t i) const { return weight.empty() ? scale : weight[i]; }
};

class VectorRows {
 public:
  virtual ~VectorRows() = default;
  virtual std::size_t n_rows() const = 0;
  virtual std::size_t n_scores() const = 0;  // of each row
  virtual double evaluate(const double* F, const Shares& shares, double* L, int n_threads) const = 0;
  virtual void extreme(const double* F, const double* G, const Shares& shares, double* L) const = 0;
  virtual std::unique_ptr<LineTerm> line(const double* F, const double* G, const Shares& shares) const = 0;
};

// t -> sum_i c_i loss_i(f_i + t g_i). A row whose ends of the bracket lie on the same piece is settled, as in LossLine.
template <class Family>
class VectorLine final : public LineTerm {
 public:
  VectorLine(Family family, std::size_t n_rows, const double* F, const double* G, Shares shares)
      : family_(std::move(family)), n_rows_(n_rows), F_(F), G_(G), shares_(shares), blocks_(n_rows / kBlock + 1) {}

  AlongValue evaluate(double t, int n_threads) const override {
    std::vector<AlongValue> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t b) {
      for (std::size_t i = begin(b); i < end(b); ++i) {
        const double c = shares_.at(i);
        if (c == 0.0) continue;
        const OnLine left = at(i, t, Side::kLeft), right = Family::kPieces ? at(i, t, Side::kRight) : left;
        parts[b].value += c * left.value;
        parts[b].left += c * left.slope;
        parts[b].right += c * right.slope;
      }
    });
    return total(parts);
  }

  BracketSlopes open(double lower, double upper, int n_threads) override {
    std::vector<BracketSlopes> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t b) {
      Block& block = blocks_[b];
      block = {};
      for (std::size_t i = begin(b); i < end(b); ++i) {
        const double c = shares_.at(i);
        if (c == 0.0) continue;
        const OnLine before = at(i, lower, Side::kRight), after = at(i, upper, Side::kRight);
        parts[b].lower.slope += c * before.slope;
        parts[b].lower.curvature += c * before.curvature;
        parts[b].upper.slope += c * after.slope;
        parts[b].upper.curvature += c * after.curvature;
        keep_or_settle(block, i, c, before, upper);
      }
    });
    return total(parts);
  }

  TrialSlope trial(double t, int n_threads) const override {
    std::vector<TrialSlope> parts(blocks_.size());
    each_block(n_threads, [&](std::size_t b) {
      for (const std::size_t i : blocks_[b].open) {
        const OnLine here = at(i, t, Side::kRight);
        parts[b].slope += shares_.at(i) * here.slope;
        parts[b].curvature += shares_.at(i) * here.curvature;
      }
    });
    return total(parts);
  }

  void narrow(double lower, double upper, int n_threads) override {
    if constexpr (Family::kPieces) {
      each_block(n_threads, [&](std::size_t b) {
        Block& block = blocks_[b];
        const std::vector<std::size_t> open = std::exchange(block.open, {});
        for (const std::size_t i : open) keep_or_settle(block, i, shares_.at(i), at(i, lower, Side::kRight), upper);
      });
    }
  }

  std::size_t unsettled() const override {
    std::size_t n = 0;
    for (const Block& block : blocks_) n += block.open.size();
    return n;
  }

  std::size_t kinks() const override { return Family::kPieces ? unsettled() : 0; }
  bool costly_and_smooth() const override { return !Family::kPieces; }

  // By halving, to the last digit, as for scalar losses.
  Kink first_kink(double lower, double upper) const override {
    for (const Block& block : blocks_) {
      if (!Family::kPieces || block.open.empty()) continue;
      const std::size_t i = block.open.front();
      const std::int64_t first = at(i, lower, Side::kRight).piece;
      for (double t = lower + 0.5 * (upper - lower); t > lower && t < upper; t = lower + 0.5 * (upper - lower))
        (at(i, t, Side::kLeft).piece == first ? lower : upper) = t;
      return {lower, upper};
    }
    return {lower, upper};
  }

  Settled settled() const override {
    Sum constant;
    for (const Block& block : blocks_) constant.add(block.settled);
    return {constant.value(), 0.0};
  }

 private:
  static constexpr std::size_t kBlock = 512;
  struct Block {
    std::vector<std::size_t> open;
    double settled = 0.0;
  };

  std::size_t begin(std::size_t b) const { return b * kBlock; }
  std::size_t end(std::size_t b) const { return std::min(n_rows_, (b + 1) * kBlock); }

  template <class Body>
  void each_block(int n_threads, const Body& body) const {
    parallel_for(blocks_.size(), blocks_.size() < 4 ? 1 : n_threads, body);
  }

  OnLine at(std::size_t i, double t, Side side) const {
    return family_.at(i, F_ + i * family_.k, G_ + i * family_.k, t, side);
  }

  void keep_or_settle(Block& block, std::size_t i, double c, const OnLine& before, double upper) {
    if (Family::kPieces && at(i, upper, Side::kLeft).piece == before.piece) {
      block.settled += c * before.slope;
    } else {
      block.open.push_back(i);
    }
  }

  Family family_;
  std::size_t n_rows_;
  const double *F_, *G_;
  Shares shares_;
  std::vector<Block> blocks_;
};

template <class Family>
class VectorRowsOf final : public VectorRows {
 public:
  VectorRowsOf(Family family, std::size_t n_rows) : family_(std::move(family)), n_rows_(n_rows) {}

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_scores() const override { return family_.k; }

  double evaluate(const double* F, const Shares& shares, double* L, int n_threads) const override {
    const std::size_t k = family_.k, n_blocks = n_rows_ / kBlock + 1;
    std::vector<double> parts(n_blocks, 0.0);
    parallel_for(n_blocks, n_blocks < 4 ? 1 : n_threads, [&](std::size_t b) {
      Sum part;
      for (std::size_t i = b * kBlock; i < std::min(n_rows_, (b + 1) * kBlock); ++i) {
        const double c = shares.at(i);
        if (c == 0.0) {
          std::fill_n(L + i * k, k, 0.0);
        } else {
          part.add(family_.loss(i, F + i * k, c, L + i * k));
        }
      }
      parts[b] = part.value();
    });
    Sum sum;
    for (const double part : parts) sum.add(part);
    return sum.value();
  }

  void extreme(const double* F, const double* G, const Shares& shares, double* L) const override {
    const std::size_t k = family_.k;
    for (std::size_t i = 0; i < n_rows_; ++i) family_.extreme(i, F + i * k, G + i * k, shares.at(i), L + i * k);
  }

  std::unique_ptr<LineTerm> line(const double* F, const double* G, const Shares& shares) const override {
    return std::make_unique<VectorLine<Family>>(family_, n_rows_, F, G, shares);
  }

 private:
  static constexpr std::size_t kBlock = 512;
  Family family_;
  std::size_t n_rows_;
};

}  // namespace bmrm
