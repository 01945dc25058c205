// Sums that keep their digits: Neumaier's compensated sum, used where few large terms are added.
#pragma once

#include <cmath>

namespace bmrm {

class Sum {
 public:
  void add(double x) {
    const double t = total_ + x;
    if (std::isfinite(t)) {
      rest_ += std::abs(total_) >= std::abs(x) ? (total_ - t) + x : (x - t) + total_;
    }
    total_ = t;
  }
  double value() const { return total_ + rest_; }

 private:
  double total_ = 0.0;
  double rest_ = 0.0;
};

}  // namespace bmrm
