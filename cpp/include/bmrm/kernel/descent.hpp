// Stochastic subgradient descent with l2 shrinkage in O(1): w = alpha v, and shrinking w shrinks alpha.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "bmrm/kernel/visits.hpp"

namespace bmrm {

enum class Rule { kSgd, kFolos, kPegasos, kAdaptive, kProximal };

struct RowDescent {
  Rule rule = Rule::kSgd;
  double lam = 1.0;
  double t0 = 0.0;        // kSgd, kFolos: eta = 1 / (lam (t + t0))
  double radius = 0.0;    // the others: w stays within sum_j w_j^2 / metric_j <= radius^2
  std::size_t batch = 1;  // rows for each step
  double every = 1.0;     // rows between two points of the average
};

// What goes on from epoch to epoch. t counts steps; the last four belong to the adaptive rules.
struct Clock {
  double t = 0.0;
  double taken = 0.0;     // points in the average
  double since = 0.0;     // rows since the last of them
  double phase = 0.0;     // steps since the reach was changed
  double tau = 0.0;       // tau_1 + ... + tau_t
  double reach = 0.0;     // R
  double steepest = 0.0;  // the largest |s_i| |x_i| seen
};

// w as alpha v; coordinates that are not penalized have no alpha. Knows its norm, if asked to.
template <class View>
class ScaledVector {
 public:
  ScaledVector(const View& X, const Coordinates& at, double* w, bool with_norm)
      : X_(X), at_(at), v_(w), with_norm_(with_norm) {
    measure();
  }

  double operator[](std::size_t j) const { return at_.shrinks_at(j, X_.n_cols) ? alpha_ * v_[j] : v_[j]; }
  double norm() const { return alpha_ * std::sqrt(std::max(0.0, squared_)); }

  double dot(std::size_t i) const {
    double shrunk = 0.0, free = 0.0;
    if (at_.plain()) {
      each_entry(X_, i, [&](std::size_t j, double x) { shrunk += x * v_[j]; });
    } else {
      each_entry(X_, i, [&](std::size_t j, double x) { (at_.shrinks[j] != 0.0 ? shrunk : free) += x * v_[j]; });
    }
    const double f = alpha_ * shrunk + free;
    return at_.constant ? f + (*this)[X_.n_cols] : f;
  }

  // w += c metric x_i
  void add(std::size_t i, double c) {
    if (c == 0.0) return;
    const double scaled = c / alpha_;
    if (at_.plain() && !with_norm_) {
      each_entry(X_, i, [&](std::size_t j, double x) { v_[j] += scaled * x; });
    } else {
      each_entry(X_, i, [&](std::size_t j, double x) { move(j, x, c, scaled); });
    }
    if (at_.constant) move(X_.n_cols, 1.0, c, scaled);
  }

  void shrink(double factor) {
    alpha_ *= factor;
    if (alpha_ < 1e-9) settle();
  }

  // Writes w itself where v was, and measures it anew.
  void settle() {
    for (std::size_t j = 0; j < at_.dim(X_.n_cols); ++j) v_[j] = (*this)[j];
    alpha_ = 1.0;
    measure();
  }

 private:
  void move(std::size_t j, double x, double c, double scaled) {
    const double metric = at_.metric_of(j, X_.n_cols), before = v_[j];
    if (!at_.shrinks_at(j, X_.n_cols)) {
      v_[j] += c * metric * x;
      return;
    }
    v_[j] += scaled * metric * x;
    if (with_norm_) squared_ += (v_[j] - before) * (v_[j] + before) / metric;
  }

  void measure() {
    squared_ = 0.0;
    for (std::size_t j = 0; with_norm_ && j < at_.dim(X_.n_cols); ++j)
      if (at_.shrinks_at(j, X_.n_cols)) squared_ += v_[j] * v_[j] / at_.metric_of(j, X_.n_cols);
  }

  const View& X_;
  const Coordinates& at_;
  double* v_;
  bool with_norm_;
  double alpha_ = 1.0;
  double squared_ = 0.0;
};

struct Pace {
  double eta;
  double before;       // factor for w before the rows are added
  double after = 1.0;  // and afterwards
};

// Step t of each rule.
inline Pace next_pace(const RowDescent& descent, Clock& clock) {
  const double lam = descent.lam;
  clock.t += 1.0;
  clock.phase += 1.0;
  switch (descent.rule) {
    case Rule::kSgd: {
      const double eta = 1.0 / (lam * (clock.t + descent.t0));
      return {eta, std::max(0.0, 1.0 - lam * eta)};
    }
    case Rule::kFolos: {
      const double eta = 1.0 / (lam * (clock.t + descent.t0));
      return {eta, 1.0, 1.0 / (1.0 + lam * eta)};
    }
    case Rule::kPegasos:
      return {1.0 / (lam * clock.t), 1.0 - 1.0 / clock.t};
    default:
      break;
  }
  const double R = clock.reach, G = clock.steepest + lam * descent.radius;
  const double sum = lam * clock.phase + clock.tau;
  // D09 eq. (5) weighs tau R^2 against G^2 by 4 : 1, Bartlett et al. by 3 : 2 for their other functions.
  const double weight = descent.rule == Rule::kProximal ? 1.0 : 8.0 / 3.0;
  const double gain = weight * (G / R) * (G / R);
  const double tau = 0.5 * gain / (sum + std::sqrt(sum * sum + gain));
  clock.tau += tau;
  const double eta = 1.0 / (lam * clock.phase + clock.tau);
  const double shrinkage = descent.rule == Rule::kProximal ? lam : lam + tau;
  return {eta, std::max(0.0, 1.0 - eta * shrinkage)};
}

template <class View>
class DescentEpoch {
 public:
  DescentEpoch(const View& X, const RowLoss& loss, const Visits& visits, const Tangents& tangents,
               const Coordinates& at, const RowDescent& descent, double* w, double* average, Clock& clock)
      : X_(X),
        loss_(loss),
        visits_(visits),
        tangents_(tangents),
        at_(at),
        descent_(descent),
        clock_(clock),
        w_(X, at, w, descent.rule >= Rule::kPegasos),
        averaging_{average, descent.every, clock.taken, clock.since},
        touched_(descent.batch),
        scores_(descent.batch) {}

  void run() {
    Watch watch;
    const std::size_t n = visits_.order.size();
    for (std::size_t first = 0; first < n; first += descent_.batch) {
      const std::size_t some = std::min(descent_.batch, n - first);
      step(visits_.order.subspan(first, some));
      const double taken = clock_.taken;
      averaging_.after(some, at_.dim(X_.n_cols), [this](std::size_t j) { return w_[j]; });
      if (clock_.taken != taken) w_.settle();  // sums of differences drift
      for (std::size_t k = 0; k < some; ++k) watch.check();
    }
    w_.settle();
  }

 private:
  void step(std::span<const std::int64_t> rows) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto i = static_cast<std::size_t>(rows[k]);
      scores_[k] = w_.dot(i) + visits_.shift_of(i);
      touched_[k] = loss_(scores_[k], visits_.y[i]);
      note_tangent(X_, loss_, at_, visits_, tangents_, i, scores_[k], touched_[k]);
      if (descent_.rule >= Rule::kAdaptive) note(i, touched_[k].slope);
    }
    const Pace pace = next_pace(descent_, clock_);
    w_.shrink(pace.before);
    const double eta = pace.eta / static_cast<double>(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto i = static_cast<std::size_t>(rows[k]);
      w_.add(i, coefficient(loss_, visits_, i, scores_[k], touched_[k], eta, [&] { return row_length(X_, i, at_); }));
    }
    if (pace.after != 1.0) w_.shrink(pace.after);
    if (descent_.rule >= Rule::kPegasos) project();
  }

  void note(std::size_t i, double slope) {
    const double counted = std::abs(slope) * visits_.counts(i);
    clock_.steepest = std::max(clock_.steepest, counted * std::sqrt(row_length(X_, i, at_)));
  }

  void project() {
    double norm = w_.norm();
    if (norm > descent_.radius) {
      w_.shrink(descent_.radius / norm);
      norm = descent_.radius;
    }
    if (descent_.rule != Rule::kProximal || norm < clock_.reach || clock_.reach >= descent_.radius) return;
    clock_.reach = std::min(std::sqrt(2.0) * clock_.reach, descent_.radius);
    clock_.phase = clock_.tau = 0.0;
  }

  const View& X_;
  const RowLoss& loss_;
  const Visits& visits_;
  const Tangents& tangents_;
  const Coordinates& at_;
  const RowDescent& descent_;
  Clock& clock_;
  ScaledVector<View> w_;
  Averaging averaging_;
  std::vector<ValueSlope> touched_;
  std::vector<double> scores_;
};

}  // namespace bmrm
