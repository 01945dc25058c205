// What the two kinds of rows of joint losses share: what a row is worth, and steps along edges of its hull.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace bmrm {

inline constexpr double kHuge = std::numeric_limits<double>::infinity();

// What a row is worth at its scores.
struct JointValue {
  double loss, offset;  // offset + <l, f> lies below the loss
  double lead;          // of the best vertex before all others; below 0 where theta is another point
};

// A step in theta and what it gains: slope t - curvature t^2 / 2, t <= most.
struct JointMove {
  double slope = 0.0, curvature = 0.0, most = 0.0;
  std::size_t from = 0, to = 0;
  int kind = -1;
  double length() const { return curvature > 0.0 ? std::min(most, slope / curvature) : most; }
  double gain() const { return length() * (slope - 0.5 * curvature * length()); }
};

// The scores of one row, how strongly they answer its own steps, and what has changed of its slopes.
struct JointRow {
  double* f;
  const double* q;
  double* changes;
  void add(std::size_t v, double by) {
    f[v] -= q[v] * by;
    changes[v] += by;
  }
};

}  // namespace bmrm
