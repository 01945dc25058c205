// Coordinate descent as in coordinate.hpp for H = X'DX, which is never formed, on a copy of the data by columns.
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
#include <utility>
#include <vector>

#include "bmrm/kernel/coordinate.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

// A copy of the data by columns. Column n_cols is the constant one.
class Columns {
 public:
  virtual ~Columns() = default;
  virtual std::size_t n_rows() const = 0;
  virtual std::size_t n_cols() const = 0;
  // g belongs to a point w; q holds D X (z - w).
  virtual Descent descend(std::span<const std::int64_t> working, const double* D, std::span<const double> g,
                          const Penalty& penalty, std::span<double> z, double* q, double tol, int max_epochs,
                          int n_threads) const = 0;
};

template <class Value>
struct SparseColumns {
  std::size_t n_rows, n_cols;
  std::vector<std::int64_t> indptr;
  std::vector<std::uint32_t> rows;
  std::vector<Value> values;

  std::size_t n_entries(std::size_t j) const { return static_cast<std::size_t>(indptr[j + 1] - indptr[j]); }

  template <class Body>
  void each(std::size_t j, const Body& body) const {
    for (auto p = static_cast<std::size_t>(indptr[j]); p < static_cast<std::size_t>(indptr[j + 1]); ++p)
      body(rows[p], static_cast<double>(values[p]));
  }

  // <x_j, q>, as four sums: one sum would wait for each of its additions.
  double dot(std::size_t j, const double* q) const {
    const auto end = static_cast<std::size_t>(indptr[j + 1]);
    auto p = static_cast<std::size_t>(indptr[j]);
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (; p + 4 <= end; p += 4)
      for (std::size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(values[p + k]) * q[rows[p + k]];
    for (; p < end; ++p) sums[0] += static_cast<double>(values[p]) * q[rows[p]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
};

// <x, y>, as eight sums side by side
template <class Value>
BMRM_CLONES double dot_of(const Value* __restrict x, const double* __restrict y, std::size_t n) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += static_cast<double>(x[i + k]) * y[i + k];
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * y[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class Value>
struct DenseColumns {
  std::size_t n_rows, n_cols;
  std::vector<Value> values;

  std::size_t n_entries(std::size_t) const { return n_rows; }

  template <class Body>
  void each(std::size_t j, const Body& body) const {
    const Value* column = values.data() + j * n_rows;
    for (std::size_t i = 0; i < n_rows; ++i) body(i, static_cast<double>(column[i]));
  }

  double dot(std::size_t j, const double* q) const { return dot_of(values.data() + j * n_rows, q, n_rows); }
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
                  const Penalty& penalty, std::span<double> z, double* q, double tol, int max_epochs,
                  int n_threads) const override {
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
        done.epochs += on_face({working, D, g, penalty, curvature, n_threads}, z, q, 0.3 * tol, most);
        most *= 2;  // the face changes less and less
      }
    }
    return done;
  }

 private:
  static constexpr std::size_t kManyRows = std::size_t{1} << 17;
  static constexpr int kStepsPerFace = 10;
  static constexpr std::size_t kEntriesForTwo = std::size_t{1} << 16;

  struct Model {
    std::span<const std::int64_t> working;
    const double* D;
    std::span<const double> g;
    const Penalty& penalty;
    const std::vector<double>& curvature;
    int n_threads;
  };

  // Coordinates in two halves of about as many entries, a thread for each: always two, so that sums do not depend on
  // the number of threads, unless the face is small.
  struct Face {
    std::vector<std::size_t> at;
    std::size_t middle = 0, n_halves = 1;

    std::size_t size() const { return at.size(); }
    std::size_t operator[](std::size_t i) const { return at[i]; }

    template <class Body>
    void each_half(int n_threads, const Body& body) const {
      if (n_halves == 1) return body(0, 0, at.size());
      parallel_for(2, n_threads, [&](std::size_t h) { body(h, h == 0 ? 0 : middle, h == 0 ? middle : at.size()); });
    }
  };

  void halve(const Model& model, Face& face) const {
    std::vector<std::size_t> until(face.size() + 1, 0);
    for (std::size_t i = 0; i < face.size(); ++i) {
      const std::size_t j = column(model, face[i]);
      until[i + 1] = until[i] + (j < X_.n_cols ? X_.n_entries(j) : X_.n_rows);
    }
    if (until.back() < kEntriesForTwo) return;
    face.n_halves = 2;
    face.middle =
        static_cast<std::size_t>(std::lower_bound(until.begin(), until.end(), until.back() / 2) - until.begin());
  }

  // Conjugate gradients on the face that z lies in, as FaceDescent does with a matrix; returns the steps taken.
  int on_face(const Model& model, std::span<double> z, double* q, double tol, int most) const {
    const Penalty& penalty = model.penalty;
    Face face;
    for (std::size_t k = 0; k < z.size(); ++k)
      if ((z[k] != 0.0 || penalty.u[k] == 0.0) && z[k] > penalty.lower[k] && z[k] < penalty.upper[k] &&
          model.curvature[k] + penalty.v[k] > 0.0)
        face.at.push_back(k);
    const std::size_t n = face.size();
    if (n == 0) return 0;
    halve(model, face);
    std::vector<double> r(n), p(n, 0.0), d(n), slope(n), Hd(n), ahead(face.n_halves * X_.n_rows);
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
      face.each_half(model.n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
          Hd[i] = dot(column(model, face[i]), ahead.data()) + penalty.v[face[i]] * d[i];
      });
      double dHd = 0.0;
      for (std::size_t i = 0; i < n; ++i) dHd += d[i] * Hd[i];
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
  bool move_on(const Model& model, const Face& face, const std::vector<double>& slope, const std::vector<double>& p,
               double t, std::span<double> z, double* q, std::vector<double>& ahead) const {
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
    for (std::size_t i = 0; i < X_.n_rows; ++i)
      if (model.D[i] > 0.0) gain += 0.5 * ahead[i] * ahead[i] / model.D[i];
    if (!(gain < 0.0)) return false;
    for (std::size_t i = 0; i < X_.n_rows; ++i) q[i] += ahead[i];
    for (std::size_t i = 0; i < face.size(); ++i) z[face[i]] += delta[i];
    return true;
  }

  // ahead = D X x for an x on the face; the second half, if there is one, is room to work
  void forward(const Model& model, const Face& face, const std::vector<double>& x, std::vector<double>& ahead) const {
    patience_.check();
    face.each_half(model.n_threads, [&](std::size_t half, std::size_t begin, std::size_t end) {
      double* own = ahead.data() + half * X_.n_rows;
      std::fill(own, own + X_.n_rows, 0.0);
      for (std::size_t i = begin; i < end; ++i)
        each(column(model, face[i]), [&](std::size_t row, double value) { own[row] += x[i] * value; });
    });
    if (face.n_halves == 2)
      for (std::size_t row = 0; row < X_.n_rows; ++row) ahead[row] += ahead[X_.n_rows + row];
    for (std::size_t row = 0; row < X_.n_rows; ++row) ahead[row] *= model.D[row];
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
    if (j < X_.n_cols) return X_.dot(j, q);
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
