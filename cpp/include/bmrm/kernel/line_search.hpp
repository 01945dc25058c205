// The exact minimum over t >= 0 of p t + q t^2 / 2 + sum of line terms.
#pragma once

#include <cmath>
#include <span>
#include <utility>

#include "bmrm/kernel/along.hpp"

namespace bmrm {

struct LineMinimum {
  double t = 0.0;
  double slope = 0.0;  // right slope at t
  int trials = 0;
  bool bounded = true;  // false: the slope stays negative as far as we looked
};

class LineSearch {
 public:
  // Ends where the slope is no more than `accuracy` of that at 0.
  LineSearch(std::span<LineTerm* const> terms, double p, double q, int n_threads, double accuracy = 1e-9)
      : terms_(terms), p_(p), q_(q), n_threads_(n_threads), accuracy_(accuracy) {}

  LineMinimum minimize(double guess) {
    if (!bracket(guess)) return {lower_.t, lower_.slope, trials_, upper_.slope >= 0.0};
    const bool rough = std::all_of(terms_.begin(), terms_.end(), [](auto* term) { return term->costly_and_smooth(); });
    const double enough = (rough ? std::max(kRoughly, accuracy_) : accuracy_) * scale_;
    while (trials_ < kMostTrials) {
      if (unsettled() == 0) return at_settled_root();
      if (!rough && kinks() == 0 && falls_to_the_end()) break;
      if (-lower_.slope <= enough) return {lower_.t, lower_.slope, trials_, true};
      if (upper_.t - lower_.t <= 4e-16 * upper_.t || upper_.slope <= enough) break;
      const double t = next_trial();
      if (!(t > lower_.t && t < upper_.t)) break;
      record(total(t));
      // Few rows are left to look at after the first narrowings: the threads are not worth waking.
      for (LineTerm* term : terms_) term->narrow(lower_.t, upper_.t, 1);
    }
    return {upper_.t, upper_.slope, trials_, true};
  }

 private:
  struct End {
    double t = 0.0, slope = 0.0, curvature = 0.0;
  };
  static constexpr int kMostTrials = 200;
  static constexpr double kRoughly = 1e-5;  // of the slope, relative to that at 0
  static constexpr std::size_t kFewKinks = 4;

  End total(double t) {
    ++trials_;
    End sum{t, p_ + q_ * t, q_};
    const int n_threads = unsettled() > 4 * kRowsPerTask ? n_threads_ : 1;
    for (LineTerm* term : terms_) {
      const TrialSlope open = term->trial(t, n_threads);
      const Settled settled = term->settled();
      sum.slope += open.slope + settled.constant + settled.linear * t;
      sum.curvature += open.curvature + settled.linear;
    }
    return sum;
  }

  std::size_t unsettled() const {
    std::size_t n = 0;
    for (const LineTerm* term : terms_) n += term->unsettled();
    return n;
  }

  // Widens the step until the slope is no longer negative. False: the minimum is at 0, or there is none. From the
  // smallest number above 0 that takes less than 600 trips.
  bool bracket(double guess) {
    double lower = 0.0;
    for (double upper = guess; upper < 1e18; lower = upper, upper *= 4.0) {
      lower_ = {lower, p_ + q_ * lower, q_};
      upper_ = {upper, p_ + q_ * upper, q_};
      for (LineTerm* term : terms_) {
        const BracketSlopes ends = term->open(lower, upper, n_threads_);
        lower_.slope += ends.lower.slope;
        lower_.curvature += ends.lower.curvature;
        upper_.slope += ends.upper.slope;
        upper_.curvature += ends.upper.curvature;
      }
      ++trials_;
      if (lower == 0.0) scale_ = std::abs(lower_.slope);
      if (lower_.slope >= 0.0) {  // at 0 only: further on the lower end is the last upper one
        upper_.slope = lower_.slope;
        return false;
      }
      if (std::isnan(upper_.slope)) upper_.slope = kInfinity;
      if (upper_.slope >= 0.0) return true;
    }
    return false;
  }

  void record(End end) {
    const bool below = end.slope < 0.0;
    same_side_ = below == last_below_ ? same_side_ + 1 : 0;
    last_below_ = below;
    (below ? lower_ : upper_) = end;
  }

  // Where few kinks are left among smooth rows, both sides of one of them: it is the minimum or it is out of the
  // way (without smooth rows a trial costs next to nothing, and rows settle by themselves). Otherwise a
  // Newton step from the end with the smaller slope, if it falls inside; else the secant's root; and the
  // middle whenever one end has stood still for two trials.
  double next_trial() const {
    if (const Kink kink = next_kink(); kink.after > kink.before)
      return kink.after < upper_.t ? kink.after : kink.before;
    const double width = upper_.t - lower_.t;
    const double middle = lower_.t + 0.5 * width;
    if (same_side_ >= 2 || !std::isfinite(upper_.slope)) return middle;
    const End& best = -lower_.slope < upper_.slope ? lower_ : upper_;
    const double newton = best.t - best.slope / best.curvature;
    if (best.curvature > 0.0 && newton > lower_.t && newton < upper_.t) return newton;
    const double secant = lower_.t - lower_.slope * width / (upper_.slope - lower_.slope);
    return std::isfinite(secant) ? std::clamp(secant, lower_.t + 0.01 * width, upper_.t - 0.01 * width) : middle;
  }

  std::size_t kinks() const {
    std::size_t n = 0;
    for (const LineTerm* term : terms_) n += term->kinks();
    return n;
  }

  // No kink lies inside the bracket; one may lie at its upper end. Settled rows have the slopes they have inside.
  bool falls_to_the_end() {
    if (std::exchange(seen_inside_, true)) return false;
    return total(upper_.t).slope <= 0.0;
  }

  Kink next_kink() const {
    if (const std::size_t n = kinks(); n > 0 && n <= kFewKinks && n < unsettled())
      for (const LineTerm* term : terms_)
        if (term->kinks() > 0) return term->first_kink(lower_.t, upper_.t);
    return {};
  }

  // All rows are settled: the slope is linear on the bracket, its root is exact.
  LineMinimum at_settled_root() {
    Settled sum{p_, q_};
    for (const LineTerm* term : terms_) {
      sum.constant += term->settled().constant;
      sum.linear += term->settled().linear;
    }
    double t = sum.linear > 0.0 ? -sum.constant / sum.linear : upper_.t;
    t = std::clamp(t, lower_.t, upper_.t);
    return {t, std::max(0.0, sum.constant + sum.linear * t), trials_, true};
  }

  std::span<LineTerm* const> terms_;
  double p_, q_;
  int n_threads_;
  double accuracy_;
  double scale_ = 0.0;  // size of the slope at 0
  int trials_ = 0;
  int same_side_ = 0;
  bool last_below_ = false;
  bool seen_inside_ = false;
  End lower_, upper_;
};

}  // namespace bmrm
