// log(sum exp) of terms that come one at a time, and the largest of them: the two ways to add up what a dynamic
// program finds.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace bmrm {

inline constexpr double kNever = -std::numeric_limits<double>::infinity();

// The largest term. Its share is 1 for the first that attains it: what follows it is one best answer.
class Largest {
 public:
  void add(double term) { value_ = term > value_ ? term : value_; }
  // Adds offset + a_k + b_k. Four at a time, which need not wait for each other.
  void add_sums(double offset, const double* a, const double* b, int n) {
    double lanes[4] = {value_, value_, value_, value_};
    int k = 0;
    for (; k + 4 <= n; k += 4)
      for (int lane = 0; lane < 4; ++lane) {
        const double term = offset + a[k + lane] + b[k + lane];
        lanes[lane] = term > lanes[lane] ? term : lanes[lane];
      }
    for (; k < n; ++k) add(offset + a[k] + b[k]);
    for (const double lane : lanes) add(lane);
  }
  double total() const { return value_; }

  class Shares {
   public:
    explicit Shares(double total) : total_(total) {}
    double of(double term) {
      if (found_ || !(term >= total_)) return 0.0;
      found_ = true;
      return 1.0;
    }

   private:
    double total_;
    bool found_ = false;
  };

 private:
  double value_ = kNever;
};

// log(sum exp), against the largest term so far: no term overflows.
class LogSum {
 public:
  void add(double term) {
    if (term <= largest_) {
      if (term > kNever) sum_ += std::exp(term - largest_);
    } else {
      sum_ = sum_ * std::exp(largest_ - term) + 1.0;
      largest_ = term;
    }
  }
  void add_sums(double offset, const double* a, const double* b, int n) {
    for (int k = 0; k < n; ++k) add(offset + a[k] + b[k]);
  }
  double total() const { return largest_ > kNever ? largest_ + std::log(sum_) : kNever; }

  class Shares {
   public:
    explicit Shares(double total) : total_(total) {}
    double of(double term) const { return std::exp(term - total_); }

   private:
    double total_;
  };

 private:
  double largest_ = kNever, sum_ = 0.0;
};

// Multiplies shares so that they add up to a mass.
inline void scale_to(double mass, double* shares, std::size_t n) {
  double sum = 0.0;
  for (std::size_t k = 0; k < n; ++k) sum += shares[k];
  const double factor = sum > 0.0 ? mass / sum : 0.0;
  for (std::size_t k = 0; k < n; ++k) shares[k] *= factor;
}

}  // namespace bmrm
