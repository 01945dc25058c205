// Coordinate descent for  min over z of <g, z - w> + (z - w)' H (z - w) / 2 + sum_j u_j |z_j| + v_j z_j^2 / 2
// with lower <= z <= upper: the subproblem of a proximal Newton method on its working set.
//
// Two forms. With H given, a move costs one row of H, and a coordinate that stays costs nothing. With the columns
// of the data, H = X'DX is never formed: a move costs a column twice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "bmrm/kernel/lanes.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

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

// Conjugate gradients on the face that z lies in: the coordinates that are neither 0 nor at a bound, their signs kept.
// Coordinate descent finds the face in a few epochs, but is slow to the minimum on it where columns are alike.
class FaceDescent {
 public:
  FaceDescent(std::span<const double> H, const Penalty& penalty) : H_(H), penalty_(penalty) {}

  // Moves z toward the minimum on its face, coordinates that would change their sign to 0, if the objective falls.
  void move(std::span<double> slope, std::span<double> z, int most) {
    k_ = z.size();
    collect(z);
    if (face_.empty()) return;
    const std::vector<double> p = step(slope, z, most);
    std::vector<double> delta(k_, 0.0);
    for (const std::size_t j : face_) {
      double to = std::clamp(z[j] + p[j], penalty_.lower[j], penalty_.upper[j]);
      if (penalty_.u[j] > 0.0 && to * z[j] < 0.0) to = std::clamp(0.0, penalty_.lower[j], penalty_.upper[j]);
      delta[j] = to - z[j];
    }
    const std::vector<double> change = times(delta);
    double gain = 0.0;
    for (const std::size_t j : face_) {
      const double to = z[j] + delta[j];
      gain += delta[j] * (slope[j] + 0.5 * change[j] + 0.5 * penalty_.v[j] * (z[j] + to)) +
              penalty_.u[j] * (std::abs(to) - std::abs(z[j]));
    }
    if (!(gain < 0.0)) return;
    for (std::size_t j = 0; j < k_; ++j) slope[j] += change[j];
    for (const std::size_t j : face_) z[j] += delta[j];
  }

 private:
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
    for (const std::size_t j : face_) {
      const double sign = static_cast<double>(z[j] > 0.0) - static_cast<double>(z[j] < 0.0);
      r[j] = -(slope[j] + penalty_.v[j] * z[j] + penalty_.u[j] * sign);
    }
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
inline constexpr int kEpochsPerFace = 6;
inline constexpr int kStepsPerFace = 25;

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
    if (done.epochs % kEpochsPerFace == 0) FaceDescent(H, penalty).move(slope, z, kStepsPerFace);
  }
  return done;
}

// A copy of the data by columns. Column n_cols is the constant one.
class Columns {
 public:
  virtual ~Columns() = default;
  virtual std::size_t n_rows() const = 0;
  virtual std::size_t n_cols() const = 0;
  // z starts at w; q holds D X (z - w) and starts at 0.
  virtual Descent descend(std::span<const std::int64_t> working, const double* D, std::span<const double> g,
                          const Penalty& penalty, std::span<double> z, double* q, double tol, int max_epochs) const = 0;
};

template <class Value>
struct SparseColumns {
  std::size_t n_rows, n_cols;
  std::vector<std::int64_t> indptr;
  std::vector<std::uint32_t> rows;
  std::vector<Value> values;

  template <class Body>
  void each(std::size_t j, const Body& body) const {
    for (auto p = static_cast<std::size_t>(indptr[j]); p < static_cast<std::size_t>(indptr[j + 1]); ++p)
      body(rows[p], static_cast<double>(values[p]));
  }
};

template <class Value>
struct DenseColumns {
  std::size_t n_rows, n_cols;
  std::vector<Value> values;

  template <class Body>
  void each(std::size_t j, const Body& body) const {
    const Value* column = values.data() + j * n_rows;
    for (std::size_t i = 0; i < n_rows; ++i) body(i, static_cast<double>(column[i]));
  }
};

// The transpose of compressed rows: a counting sort.
template <class Value, class Index>
SparseColumns<Value> by_columns(const Csr<Value, Index>& X) {
  if (X.n_rows > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("too many rows for columns");
  SparseColumns<Value> out{X.n_rows, X.n_cols, std::vector<std::int64_t>(X.n_cols + 1, 0), {}, {}};
  const auto n = static_cast<std::int64_t>(X.n_entries());
  for (std::int64_t p = 0; p < n; ++p) ++out.indptr[static_cast<std::size_t>(X.indices[p]) + 1];
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.rows.resize(X.n_entries());
  out.values.resize(X.n_entries());
  std::vector<std::int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  Patience patience;
  for (std::size_t i = 0; i < X.n_rows; ++i) {
    if (i % 1024 == 0) patience.check();
    for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(X.indices[p])]++);
      out.rows[to] = static_cast<std::uint32_t>(i);
      out.values[to] = X.values[p];
    }
  }
  return out;
}

template <class Value>
DenseColumns<Value> by_columns(const Dense<Value>& X) {
  DenseColumns<Value> out{X.n_rows, X.n_cols, std::vector<Value>(X.n_entries())};
  Patience patience;
  constexpr std::size_t kBlock = 64;
  for (std::size_t i = 0; i < X.n_rows; i += kBlock) {
    patience.check();
    const std::size_t end = std::min(X.n_rows, i + kBlock);
    for (std::size_t j = 0; j < X.n_cols; ++j)
      for (std::size_t k = i; k < end; ++k) out.values[j * X.n_rows + k] = X.row(k)[j];
  }
  return out;
}

template <class View>
class ColumnsOf final : public Columns {
 public:
  explicit ColumnsOf(View view) : X_(std::move(view)) {}
  std::size_t n_rows() const override { return X_.n_rows; }
  std::size_t n_cols() const override { return X_.n_cols; }

  Descent descend(std::span<const std::int64_t> working, const double* D, std::span<const double> g,
                  const Penalty& penalty, std::span<double> z, double* q, double tol, int max_epochs) const override {
    const std::vector<double> curvature = curvatures(working, D);
    std::vector<std::size_t> active = all(working.size());
    Descent done;
    double margin = std::numeric_limits<double>::infinity();  // zeros whose slope stays so far within their threshold
                                                              // are left alone for a while
    int since_face = 0, most = kStepsPerFace;
    for (done.epochs = 1; done.epochs <= max_epochs; ++done.epochs) {
      const bool whole = active.size() == working.size();
      done.violation = 0.0;
      std::size_t kept = 0, seen = 0;
      for (const std::size_t k : active) {
        if (X_.n_rows > kManyRows || seen++ % 64 == 0) patience_.check();
        const auto j = static_cast<std::size_t>(working[k]);
        const double slope = g[k] + dot(j, q);
        if (z[k] == 0.0 && std::abs(slope) < penalty.u[k] - margin) continue;
        active[kept++] = k;
        const double move = best_value(penalty, k, z[k], slope, curvature[k]) - z[k];
        if (move == 0.0) continue;
        z[k] += move;
        add(j, move, D, q);
        done.violation = std::max(done.violation, std::abs(move) * (curvature[k] + penalty.v[k]));
      }
      active.resize(kept);
      margin = done.violation;
      if (!(done.violation > tol)) {
        if (whole) break;
        active = all(working.size());
        margin = std::numeric_limits<double>::infinity();
      } else if (++since_face >= kEpochsPerFace) {
        since_face = 0;
        most = std::min(most, max_epochs - done.epochs);
        done.epochs += on_face({working, D, g, penalty, curvature}, z, q, 0.3 * tol, most);
        most *= 2;  // the face changes less and less
      }
    }
    return done;
  }

 private:
  static constexpr std::size_t kManyRows = std::size_t{1} << 17;

  struct Model {
    std::span<const std::int64_t> working;
    const double* D;
    std::span<const double> g;
    const Penalty& penalty;
    const std::vector<double>& curvature;
  };

  // Conjugate gradients on the face that z lies in, as FaceDescent does with a matrix; returns the steps taken.
  int on_face(const Model& model, std::span<double> z, double* q, double tol, int most) const {
    const Penalty& penalty = model.penalty;
    std::vector<std::size_t> face;
    for (std::size_t k = 0; k < z.size(); ++k)
      if ((z[k] != 0.0 || penalty.u[k] == 0.0) && z[k] > penalty.lower[k] && z[k] < penalty.upper[k] &&
          model.curvature[k] + penalty.v[k] > 0.0)
        face.push_back(k);
    const std::size_t n = face.size();
    if (n == 0) return 0;
    std::vector<double> r(n), p(n, 0.0), d(n), slope(n), ahead(X_.n_rows);
    double rho = 0.0, largest = 0.0;
    const auto residual = [&] {
      double sum = 0.0;
      largest = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += r[i] * r[i] / (model.curvature[face[i]] + penalty.v[face[i]]);
        largest = std::max(largest, std::abs(r[i]));
      }
      return sum;
    };
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t k = face[i];
      const double sign = static_cast<double>(z[k] > 0.0) - static_cast<double>(z[k] < 0.0);
      slope[i] = model.g[k] + dot(column(model, k), q) + penalty.v[k] * z[k];
      r[i] = -(slope[i] + penalty.u[k] * sign);
      d[i] = r[i] / (model.curvature[k] + penalty.v[k]);
    }
    rho = residual();
    int steps = 0;
    while (steps < most && largest > tol) {
      ++steps;
      forward(model, face, d, ahead);
      double dHd = 0.0;
      std::vector<double> Hd(n);
      for (std::size_t i = 0; i < n; ++i) {
        Hd[i] = dot(column(model, face[i]), ahead.data()) + penalty.v[face[i]] * d[i];
        dHd += d[i] * Hd[i];
      }
      if (!(dHd > 0.0)) break;
      const double t = rho / dHd;
      for (std::size_t i = 0; i < n; ++i) {
        p[i] += t * d[i];
        r[i] -= t * Hd[i];
      }
      const double before = rho;
      rho = residual();
      for (std::size_t i = 0; i < n; ++i)
        d[i] = r[i] / (model.curvature[face[i]] + penalty.v[face[i]]) + (rho / before) * d[i];
    }
    for (double t = 1.0; t > 0.01; t *= 0.5) {
      ++steps;
      if (move_on(model, face, slope, p, t, z, q, ahead)) break;
    }
    return steps;
  }

  // Moves z by t p, coordinates that would change their sign to 0, if the objective falls.
  bool move_on(const Model& model, const std::vector<std::size_t>& face, const std::vector<double>& slope,
               const std::vector<double>& p, double t, std::span<double> z, double* q,
               std::vector<double>& ahead) const {
    const Penalty& penalty = model.penalty;
    std::vector<double> delta(face.size());
    double gain = 0.0;
    for (std::size_t i = 0; i < face.size(); ++i) {
      const std::size_t k = face[i];
      double to = std::clamp(z[k] + t * p[i], penalty.lower[k], penalty.upper[k]);
      if (penalty.u[k] > 0.0 && to * z[k] < 0.0) to = std::clamp(0.0, penalty.lower[k], penalty.upper[k]);
      delta[i] = to - z[k];
      gain += delta[i] * (slope[i] + 0.5 * penalty.v[k] * delta[i]) + penalty.u[k] * (std::abs(to) - std::abs(z[k]));
    }
    forward(model, face, delta, ahead);
    for (std::size_t i = 0; i < ahead.size(); ++i)
      if (model.D[i] > 0.0) gain += 0.5 * ahead[i] * ahead[i] / model.D[i];
    if (!(gain < 0.0)) return false;
    for (std::size_t i = 0; i < ahead.size(); ++i) q[i] += ahead[i];
    for (std::size_t i = 0; i < face.size(); ++i) z[face[i]] += delta[i];
    return true;
  }

  // ahead = D X x for an x on the face
  void forward(const Model& model, const std::vector<std::size_t>& face, const std::vector<double>& x,
               std::vector<double>& ahead) const {
    patience_.check();
    std::fill(ahead.begin(), ahead.end(), 0.0);
    for (std::size_t i = 0; i < face.size(); ++i)
      each(column(model, face[i]), [&](std::size_t row, double value) { ahead[row] += x[i] * value; });
    for (std::size_t row = 0; row < ahead.size(); ++row) ahead[row] *= model.D[row];
  }

  static std::size_t column(const Model& model, std::size_t k) { return static_cast<std::size_t>(model.working[k]); }

  static std::vector<std::size_t> all(std::size_t n) {
    std::vector<std::size_t> index(n);
    std::iota(index.begin(), index.end(), std::size_t{0});
    return index;
  }

  // sum_i D_i x_ij^2
  std::vector<double> curvatures(std::span<const std::int64_t> working, const double* D) const {
    std::vector<double> found;
    for (const std::int64_t column : working) {
      patience_.check();
      double sum = 0.0;
      each(static_cast<std::size_t>(column), [&](std::size_t i, double x) { sum += D[i] * x * x; });
      found.push_back(sum);
    }
    return found;
  }

  double dot(std::size_t j, const double* q) const {
    double sum = 0.0;
    each(j, [&](std::size_t i, double x) { sum += x * q[i]; });
    return sum;
  }

  void add(std::size_t j, double move, const double* D, double* q) const {
    each(j, [&](std::size_t i, double x) { q[i] += move * x * D[i]; });
  }

  template <class Body>
  void each(std::size_t j, const Body& body) const {
    if (j < X_.n_cols) return X_.each(j, body);
    for (std::size_t i = 0; i < X_.n_rows; ++i) body(i, 1.0);
  }

  View X_;
  mutable Patience patience_;
};

}  // namespace bmrm
