// Coordinate descent for  min over z of <g, z - w> + (z - w)' H (z - w) / 2 + sum_j u_j |z_j| + v_j z_j^2 / 2
// with lower <= z <= upper: the subproblem of a proximal Newton method on its working set.
//
// Two forms. With H given (here), a move costs one row of H, and a coordinate that stays costs nothing. With the
// columns of the data (columns.hpp), H = X'DX is never formed: a move costs a column twice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "bmrm/kernel/cholesky.hpp"
#include "bmrm/kernel/lanes.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

// What belongs to each coordinate of the working set.
struct Penalty {
  std::span<const double> u, v, lower, upper;
};

struct Descent {
  int epochs = 0;
  double violation = 0.0;  // largest move of the last epoch, in units of the gradient
};

// The best value of coordinate k, now z, where the quadratic has this slope and curvature.
inline double best_value(const Penalty& penalty, std::size_t k, double z, double slope, double curvature) {
  const double u = penalty.u[k], bend = curvature + penalty.v[k];
  if (!(bend > 0.0)) return u > 0.0 && std::abs(slope) <= u ? std::clamp(0.0, penalty.lower[k], penalty.upper[k]) : z;
  const double c = curvature * z - slope;
  const double excess = c > u ? c - u : (c < -u ? c + u : 0.0);
  return std::clamp(excess / bend, penalty.lower[k], penalty.upper[k]);
}

// y += c x
BMRM_CLONES inline void add_multiple(double c, const double* __restrict x, std::size_t n, double* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) y[i] += c * x[i];
}

inline constexpr int kEpochsPerFace = 3;
inline constexpr std::size_t kFactored = 75;  // n^3 / 3 operations are as many as 25 steps of conjugate gradients

// Newton's step on the face that z lies in: the coordinates that are neither 0 nor at a bound, their signs kept. By
// a factorization, or by conjugate gradients on large faces. Coordinate descent finds the face in a few epochs, but is
// slow to the minimum on it where columns are alike.
class FaceDescent {
 public:
  FaceDescent(std::span<const double> H, const Penalty& penalty) : H_(H), penalty_(penalty) {}

  // Moves z toward the minimum on its face, coordinates that would change their sign to 0, until the objective falls.
  void move(std::span<double> slope, std::span<double> z) {
    k_ = z.size();
    for (std::size_t turn = 0, before = k_ + 1; turn < kTurns;
         ++turn) {  // what becomes 0 stays so until the next epoch
      collect(z);
      if (face_.empty() || face_.size() == before) return;
      before = face_.size();
      const bool small = before <= kFactored;
      const std::vector<double> p = small ? solved(slope, z) : step(slope, z, kStepsWithMatrix);
      double t = 1.0;
      while (t > 0.1 && !move_by(t, p, slope, z)) t *= 0.5;
      if (!small || !(t > 0.1 || move_by(until_first(p, z), p, slope, z))) return;
    }
  }

 private:
  static constexpr int kStepsWithMatrix = 25;
  static constexpr std::size_t kTurns = 20;
  static constexpr double kRounding = 1e-15;

  bool move_by(double t, const std::vector<double>& p, std::span<double> slope, std::span<double> z) const {
    std::vector<double> delta(k_, 0.0);
    for (const std::size_t j : face_) {
      double to = std::clamp(z[j] + t * p[j], penalty_.lower[j], penalty_.upper[j]);
      if (penalty_.u[j] > 0.0 && (to * z[j] < 0.0 || std::abs(to) <= kRounding * std::abs(z[j])))
        to = std::clamp(0.0, penalty_.lower[j], penalty_.upper[j]);
      delta[j] = to - z[j];
    }
    const std::vector<double> change = times(delta);
    double gain = 0.0;
    for (const std::size_t j : face_) {
      const double to = z[j] + delta[j];
      gain += delta[j] * (slope[j] + 0.5 * change[j] + 0.5 * penalty_.v[j] * (z[j] + to)) +
              penalty_.u[j] * (std::abs(to) - std::abs(z[j]));
    }
    if (!(gain < 0.0)) return false;
    for (std::size_t j = 0; j < k_; ++j) slope[j] += change[j];
    for (const std::size_t j : face_) z[j] += delta[j];
    return true;
  }

  // How far along p the first coordinate becomes 0: so far the objective falls, where p is Newton's step.
  double until_first(const std::vector<double>& p, std::span<const double> z) const {
    double t = 1.0;
    for (const std::size_t j : face_)
      if (penalty_.u[j] > 0.0 && (z[j] + p[j]) * z[j] < 0.0) t = std::min(t, -z[j] / p[j]);
    return t;
  }

  // What is left of the optimality conditions on the face.
  double residual(std::span<const double> slope, std::span<const double> z, std::size_t j) const {
    const double sign = static_cast<double>(z[j] > 0.0) - static_cast<double>(z[j] < 0.0);
    return -(slope[j] + penalty_.v[j] * z[j] + penalty_.u[j] * sign);
  }

  // Newton's step, in units in which the diagonal is 1.
  std::vector<double> solved(std::span<const double> slope, std::span<const double> z) const {
    const std::size_t n = face_.size();
    std::vector<double> M(n * n), r(n), unit(n), p(k_, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = face_[i];
      const double bend = H_[j * k_ + j] + penalty_.v[j];
      unit[i] = bend > 0.0 ? 1.0 / std::sqrt(bend) : 0.0;
      r[i] = unit[i] * residual(slope, z, j);
      for (std::size_t l = 0; l < i; ++l) M[i * n + l] = unit[i] * unit[l] * H_[j * k_ + face_[l]];
      M[i * n + i] = bend > 0.0 ? 1.0 : 0.0;
    }
    solve_semidefinite(M, r);
    for (std::size_t i = 0; i < n; ++i) p[face_[i]] = unit[i] * r[i];
    return p;
  }

  void collect(std::span<const double> z) {
    face_.clear();
    for (std::size_t j = 0; j < k_; ++j)
      if ((z[j] != 0.0 || penalty_.u[j] == 0.0) && z[j] > penalty_.lower[j] && z[j] < penalty_.upper[j])
        face_.push_back(j);
  }

  // H x for an x on the face
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(k_, 0.0);
    for (const std::size_t j : face_) {
      const double* row = H_.data() + j * k_;
      add_multiple(x[j], row, k_, y.data());
    }
    return y;
  }

  std::vector<double> step(std::span<const double> slope, std::span<const double> z, int most) const {
    std::vector<double> p(k_, 0.0), r(k_, 0.0), d(k_, 0.0), scaled(k_, 0.0);
    double rho = 0.0, first = 0.0;
    const auto precondition = [&] {
      double sum = 0.0;
      for (const std::size_t j : face_) {
        const double bend = H_[j * k_ + j] + penalty_.v[j];
        scaled[j] = bend > 0.0 ? r[j] / bend : 0.0;
        sum += r[j] * scaled[j];
      }
      return sum;
    };
    for (const std::size_t j : face_) r[j] = residual(slope, z, j);
    first = rho = precondition();
    d = scaled;
    for (int iteration = 0; iteration < most && rho > 1e-6 * first; ++iteration) {
      patience_.check();
      std::vector<double> Hd = times(d);
      double dHd = 0.0;
      for (const std::size_t j : face_) dHd += d[j] * (Hd[j] += penalty_.v[j] * d[j]);
      if (!(dHd > 0.0)) break;
      const double t = rho / dHd;
      for (const std::size_t j : face_) {
        p[j] += t * d[j];
        r[j] -= t * Hd[j];
      }
      const double before = rho;
      rho = precondition();
      for (const std::size_t j : face_) d[j] = scaled[j] + (rho / before) * d[j];
    }
    return p;
  }

  std::span<const double> H_;
  const Penalty& penalty_;
  std::size_t k_ = 0;
  std::vector<std::size_t> face_;
  mutable Patience patience_;
};

// H is k x k, symmetric, row after row. z starts at w; slope starts as g and is kept up to date.
inline Descent descend_with_matrix(std::span<const double> H, const Penalty& penalty, std::span<double> slope,
                                   std::span<double> z, double tol, int max_epochs) {
  const std::size_t k = z.size();
  Patience patience;
  Descent done;
  for (done.epochs = 1; done.epochs <= max_epochs; ++done.epochs) {
    done.violation = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
      const double* row = H.data() + j * k;
      const double move = best_value(penalty, j, z[j], slope[j], row[j]) - z[j];
      if (move == 0.0) continue;
      z[j] += move;
      add_multiple(move, row, k, slope.data());
      done.violation = std::max(done.violation, std::abs(move) * (row[j] + penalty.v[j]));
    }
    patience.check();
    if (!(done.violation > tol)) break;
    if (done.epochs % kEpochsPerFace == 0) FaceDescent(H, penalty).move(slope, z);
  }
  return done;
}

}  // namespace bmrm
