// Losses of k scores of one row. A family knows its rows' targets and offers
//   loss(i, f, c, l)         c times the loss of row i at scores f; its slopes, times c, are written to l
//   at(i, f, g, t, side)     the loss on the line f + t g: value, one-sided slope, and which piece it is on
// Families with pieces (max of linear functions) are searched exactly; smooth ones give a curvature instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "bmrm/loss/exponent.hpp"

namespace bmrm {

enum class Side { kLeft, kRight };

// The loss of one row on a line. Equal pieces at two steps mean: linear in between.
struct OnLine {
  double value = 0.0, slope = 0.0, curvature = 0.0;
  std::int64_t piece = 0;
};

// Keeps the largest value; among equal ones the largest slope to the right, the least to the left.
class Largest {
 public:
  explicit Largest(Side side) : sign_(side == Side::kRight ? 1.0 : -1.0) {}
  void see(double value, double slope, std::int64_t piece) {
    if (value < best_.value || (value == best_.value && sign_ * slope <= sign_ * best_.slope)) return;
    best_ = {value, slope, 0.0, piece};
  }
  const OnLine& best() const { return best_; }

 private:
  double sign_;
  OnLine best_{-std::numeric_limits<double>::infinity(), 0.0, 0.0, -1};
};

// max over c of factor(y, c) (f_c - f_y) + delta(y, c). Empty delta: 1 for c != y; empty factor: 1.
struct MaxMargin {
  static constexpr bool kPieces = true;
  std::size_t k;
  std::span<const std::int32_t> y;
  std::span<const double> delta, factor;  // k x k each

  double cost(std::size_t y0, std::size_t c) const { return delta.empty() ? (c == y0 ? 0.0 : 1.0) : delta[y0 * k + c]; }
  double times(std::size_t y0, std::size_t c) const { return factor.empty() ? 1.0 : factor[y0 * k + c]; }
  std::size_t label(std::size_t i) const { return static_cast<std::size_t>(y[i]); }

  std::size_t worst(std::size_t i, const double* f, double& value) const {
    const std::size_t y0 = label(i);
    std::size_t best = y0;
    value = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
      const double v = times(y0, c) * (f[c] - f[y0]) + cost(y0, c);
      if (c != y0 && v > value) value = v, best = c;
    }
    return best;
  }

  double loss(std::size_t i, const double* f, double c, double* l) const {
    double value;
    const std::size_t y0 = label(i), worst_class = worst(i, f, value);
    put(y0, worst_class, c, l);
    return c * value;
  }

  OnLine at(std::size_t i, const double* f, const double* g, double t, Side side) const {
    const std::size_t y0 = label(i);
    Largest largest(side);
    const double fy = f[y0] + t * g[y0];
    for (std::size_t c = 0; c < k; ++c) {
      const double a = times(y0, c);
      largest.see(c == y0 ? 0.0 : a * ((f[c] + t * g[c]) - fy) + cost(y0, c), a * (g[c] - g[y0]),
                  static_cast<std::int64_t>(c));
    }
    return largest.best();
  }

  // The slopes of the piece that is steepest in direction g.
  void extreme(std::size_t i, const double* f, const double* g, double c, double* l) const {
    put(label(i), static_cast<std::size_t>(at(i, f, g, 0.0, Side::kRight).piece), c, l);
  }

 private:
  void put(std::size_t y0, std::size_t other, double c, double* l) const {
    std::fill_n(l, k, 0.0);
    if (other == y0) return;
    l[other] = c * times(y0, other);
    l[y0] = -l[other];
  }
};

// max over z among the true labels and z' among the others of delta(z, z') + f_z' - f_z, at least 0 (Y10 eq. 55); with
// an empty delta it is margin + max f_z' - min f_z (eq. 54). A row with no label, or with all of them, has no loss.
struct MultilabelMargin {
  static constexpr bool kPieces = true;
  std::size_t k;
  std::span<const std::int64_t> indptr;  // the labels of row i, increasing: labels[indptr[i]] ...
  std::span<const std::int32_t> labels;
  double margin;
  std::span<const double> delta;

  double loss(std::size_t i, const double* f, double c, double* l) const {
    const OnLine best = at(i, f, nullptr, 0.0, Side::kRight);
    put(best.piece, c, l);
    return c * best.value;
  }

  OnLine at(std::size_t i, const double* f, const double* g, double t, Side side) const {
    Largest largest(side);
    largest.see(0.0, 0.0, -1);
    if (delta.empty()) {
      see_uniform(i, f, g, t, side, largest);
    } else {
      each_true(i, [&](std::size_t z) {
        each_wrong(i, [&](std::size_t other) {
          const double value = delta[z * k + other] + (on(f, g, t, other) - on(f, g, t, z));
          largest.see(value, slope(g, other) - slope(g, z), pair(z, other));
        });
      });
    }
    return largest.best();
  }

  void extreme(std::size_t i, const double* f, const double* g, double c, double* l) const {
    put(at(i, f, g, 0.0, Side::kRight).piece, c, l);
  }

 private:
  static double on(const double* f, const double* g, double t, std::size_t c) {
    return g == nullptr ? f[c] : f[c] + t * g[c];
  }
  static double slope(const double* g, std::size_t c) { return g == nullptr ? 0.0 : g[c]; }
  std::int64_t pair(std::size_t z, std::size_t other) const { return static_cast<std::int64_t>(z * k + other); }

  void see_uniform(std::size_t i, const double* f, const double* g, double t, Side side, Largest& largest) const {
    Largest wrong(side), right(side);  // the least true score is the largest negative one
    each_true(i, [&](std::size_t z) { right.see(-on(f, g, t, z), -slope(g, z), static_cast<std::int64_t>(z)); });
    each_wrong(i, [&](std::size_t c) { wrong.see(on(f, g, t, c), slope(g, c), static_cast<std::int64_t>(c)); });
    const OnLine &a = right.best(), &b = wrong.best();
    if (a.piece < 0 || b.piece < 0) return;
    largest.see(margin + (b.value + a.value), b.slope + a.slope,
                pair(static_cast<std::size_t>(a.piece), static_cast<std::size_t>(b.piece)));
  }

  template <class Body>
  void each_true(std::size_t i, const Body& body) const {
    for (auto p = indptr[i]; p < indptr[i + 1]; ++p)
      body(static_cast<std::size_t>(labels[static_cast<std::size_t>(p)]));
  }

  template <class Body>
  void each_wrong(std::size_t i, const Body& body) const {
    std::size_t c = 0;
    each_true(i, [&](std::size_t z) {
      for (; c < z; ++c) body(c);
      c = z + 1;
    });
    for (; c < k; ++c) body(c);
  }

  void put(std::int64_t piece, double c, double* l) const {
    std::fill_n(l, k, 0.0);
    if (piece < 0) return;
    l[static_cast<std::size_t>(piece) / k] = -c;
    l[static_cast<std::size_t>(piece) % k] = c;
  }
};

// log sum exp f_c - f_y
struct SoftmaxRows {
  static constexpr bool kPieces = false;
  std::size_t k;
  std::span<const std::int32_t> y;

  // The class with the largest score, whose share is 1, and the sum of the other shares. Where that is small, neither
  // the loss nor the slope of the top may be a difference from 1.
  struct Shares {
    std::size_t top;
    double others;
  };

  // Writes the shares exp(f_c - f_top).
  static Shares shares(const double* f, std::size_t k, double* e) {
    const auto top = static_cast<std::size_t>(std::max_element(f, f + k) - f);
    for (std::size_t c = 0; c < k; ++c) e[c] = exp_of_negative(f[c] - f[top]);
    double others = 0.0;
    for (std::size_t c = 0; c < top; ++c) others += e[c];
    for (std::size_t c = top + 1; c < k; ++c) others += e[c];
    return {top, others};
  }

  double loss(std::size_t i, const double* f, double c, double* l) const {
    const auto y0 = static_cast<std::size_t>(y[i]);
    const auto [top, others] = shares(f, k, l);
    const double sum = 1.0 + others;
    const double rest = y0 == top ? others : sum - l[y0];
    for (std::size_t j = 0; j < k; ++j) l[j] *= c / sum;
    l[y0] = -c * rest / sum;
    return c * (std::log1p(others) + (f[top] - f[y0]));
  }

  OnLine at(std::size_t i, const double* f, const double* g, double t, Side) const {
    const auto y0 = static_cast<std::size_t>(y[i]);
    std::size_t top = 0;
    for (std::size_t c = 1; c < k; ++c) top = f[c] + t * g[c] > f[top] + t * g[top] ? c : top;
    const double largest = f[top] + t * g[top];
    double others = 0.0, first = 0.0, second = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
      const double e = exp_of_negative((f[c] + t * g[c]) - largest), d = g[c] - g[y0];
      others += c == top ? 0.0 : e;
      first += e * d;
      second += e * d * d;
    }
    const double sum = 1.0 + others, mean = first / sum;
    return {std::log1p(others) + (largest - (f[y0] + t * g[y0])), mean, std::max(0.0, second / sum - mean * mean), 0};
  }

  void extreme(std::size_t i, const double* f, const double*, double c, double* l) const { loss(i, f, c, l); }
};

}  // namespace bmrm
