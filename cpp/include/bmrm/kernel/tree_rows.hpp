// Rows whose classes are nodes of a tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bmrm/kernel/class_level.hpp"
#include "bmrm/kernel/joint_rows.hpp"
#include "bmrm/kernel/vector_rows.hpp"

namespace bmrm {

// Classes that are nodes of a tree: vertices path(c) - path(y) at the cost delta(y, c). theta lies on the simplex of
// the classes.
class TreeRows {
 public:
  TreeRows(std::vector<std::int64_t> parents, std::vector<std::int64_t> classes, std::vector<std::int32_t> y,
           std::vector<double> delta)
      : parents_(std::move(parents)), classes_(std::move(classes)), y_(std::move(y)), delta_(std::move(delta)) {}

  std::size_t n_rows() const { return y_.size(); }
  std::size_t n_scores() const { return parents_.size(); }
  std::size_t width() const { return classes_.size(); }

  JointValue value(std::size_t i, const double* f, const double* theta) const {
    const std::size_t y = label(i);
    sum_paths(f);
    double offset = 0.0, largest = -kHuge, second = -kHuge;
    std::size_t first = 0;
    for (std::size_t c = 0; c < width(); ++c) {
      const double g = costly(y, c);
      offset += theta[c] * cost(y, c);
      if (g > largest) {
        second = largest;
        largest = g, first = c;
      } else {
        second = std::max(second, g);
      }
    }
    const double own = sums_[static_cast<std::size_t>(classes_[y])];
    return {largest - own, offset, theta[first] == 1.0 ? largest - second : -1.0};
  }

  void slopes(std::size_t i, const double* theta, double c, double* l) const {
    std::fill_n(l, n_scores(), 0.0);
    for (std::size_t a = 0; a < width(); ++a) l[static_cast<std::size_t>(classes_[a])] = c * theta[a];
    l[static_cast<std::size_t>(classes_[label(i)])] -= c;
    for (std::size_t v = n_scores(); v-- > 0;)
      if (parents_[v] >= 0) l[static_cast<std::size_t>(parents_[v])] += l[v];
  }

  void best(std::size_t i, const double* f, double* theta) const {
    sum_paths(f);
    std::fill_n(theta, width(), 0.0);
    std::size_t first = 0;
    for (std::size_t c = 1; c < width(); ++c)
      if (costly(label(i), c) > costly(label(i), first)) first = c;
    theta[first] = 1.0;
  }

  double move(std::size_t i, double* theta, JointRow& row, double least) const {
    const std::size_t y = label(i);
    sum_paths(row.f);
    std::size_t to = 0, from = width();
    double largest = -kHuge, smallest = kHuge;
    for (std::size_t c = 0; c < width(); ++c) {
      const double g = costly(y, c);
      if (g > largest) largest = g, to = c;
      if (theta[c] > 0.0 && g < smallest) smallest = g, from = c;
    }
    if (from == width() || from == to) return 0.0;
    JointMove one{largest - smallest, 0.0, theta[from], from, to, 0};
    between(from, to, [&](std::size_t v, double) { one.curvature += row.q[v]; });
    const double gain = one.gain();
    if (!(gain > least)) return 0.0;
    put(theta, row, from, to, one.length());
    return gain;
  }

  double offset(std::size_t i, const double* theta) const {
    double sum = 0.0;
    for (std::size_t c = 0; c < width(); ++c)
      if (theta[c] != 0.0) sum += theta[c] * cost(label(i), c);
    return sum;
  }

  // Makes the slopes of each node add up to 0 in theta (m x width), but for rounding.
  void level(double* theta, const Shares& shares) const { level_of_classes(theta, y_, width(), shares); }

  // Makes theta add up to 1 again, but for the last digit.
  void mend(double* theta, JointRow&) const {
    double sum = 0.0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < width(); ++c) {
      sum += theta[c];
      if (theta[c] > theta[best]) best = c;
    }
    theta[best] += 1.0 - sum;
  }

 private:
  std::size_t label(std::size_t i) const { return static_cast<std::size_t>(y_[i]); }
  double cost(std::size_t y, std::size_t c) const { return delta_[y * width() + c]; }
  double costly(std::size_t y, std::size_t c) const {
    return sums_[static_cast<std::size_t>(classes_[c])] + cost(y, c);
  }

  // The scores of the paths, in sums_: a node comes after its parent.
  void sum_paths(const double* f) const {
    sums_.resize(n_scores());
    for (std::size_t v = 0; v < n_scores(); ++v)
      sums_[v] = f[v] + (parents_[v] < 0 ? 0.0 : sums_[static_cast<std::size_t>(parents_[v])]);
  }

  // Calls body(node, 1) on the path to class b and body(node, -1) on that to a, where only one of the two goes.
  template <class Body>
  void between(std::size_t a, std::size_t b, const Body& body) const {
    std::int64_t u = classes_[a], v = classes_[b];
    while (u != v) {
      if (v > u) {
        body(static_cast<std::size_t>(v), 1.0);
        v = parents_[static_cast<std::size_t>(v)];
      } else {
        body(static_cast<std::size_t>(u), -1.0);
        u = parents_[static_cast<std::size_t>(u)];
      }
    }
  }

  void put(double* theta, JointRow& row, std::size_t from, std::size_t to, double t) const {
    theta[to] += t;
    theta[from] = t == theta[from] ? 0.0 : theta[from] - t;
    between(from, to, [&](std::size_t v, double sign) { row.add(v, sign * t); });
  }

  std::vector<std::int64_t> parents_, classes_;
  std::vector<std::int32_t> y_;  // places among the classes
  std::vector<double> delta_;    // classes x classes
  mutable std::vector<double> sums_;
};

}  // namespace bmrm
