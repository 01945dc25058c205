// The optimality system of the quadratic program on its support S:
//
//     minimize 1/2 p'H p - r'p  subject to  C p = e,   p zero outside S,
//
// solved with the factor of M = H_SS + C_S' diag(rho) C_S. The second term changes nothing on C p = e, and
// makes M definite in the directions that the rows fix. Variables are scaled to a unit diagonal of M and a
// small ridge is added: as p is a step from the current point, the ridge is a proximal term and leaves no
// bias.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "bmrm/kernel/cholesky.hpp"
#include "bmrm/kernel/gram.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

struct QpMatrices {
  std::size_t q = 0;
  Gram H;
  std::vector<double> C;  // by variables: q coefficients each

  const double* column(std::size_t j) const { return C.data() + j * q; }
};

class SupportKkt {
 public:
  const std::vector<std::size_t>& support() const { return S_; }
  std::size_t size() const { return S_.size(); }
  // True when the factor was updated since it was computed from scratch.
  bool updated() const { return updated_; }
  // The size of variable k of the support in the scaled problem is its value times this.
  double weight(std::size_t k) const { return 1.0 / scale_[k]; }

  void assign(const QpMatrices& data, std::vector<std::size_t> S) {
    S_ = std::move(S);
    refactor(data);
  }

  void insert(const QpMatrices& data, std::size_t j) {
    S_.push_back(j);
    if (!rho_suits(data)) {
      refactor(data);
      return;
    }
    append_row(data, S_.size() - 1);
    touch();
  }

  void erase(const QpMatrices& data, std::size_t k) {
    S_.erase(S_.begin() + static_cast<std::ptrdiff_t>(k));
    if (!rho_suits(data)) {
      refactor(data);
      return;
    }
    scale_.erase(scale_.begin() + static_cast<std::ptrdiff_t>(k));
    factor_.remove(k);
    touch();
  }

  // After other variables were removed: variable j is now called names[j].
  void rename(const std::vector<std::size_t>& names) {
    for (auto& j : S_) j = names[j];
  }

  // What is left out follows from the rest, digit by digit.
  void pack(Packer& to) const {
    to.count(S_.size());
    for (const std::size_t j : S_) to.count(j);
    to.numbers(scale_);
    to.count(rho_.size());
    to.numbers(rho_);
    factor_.pack(to);
    to.count(updated_);
  }

  void unpack(Unpacker& from, const QpMatrices& data) {
    S_.resize(from.count(data.H.size()));
    for (auto& j : S_) j = from.count(data.H.size() - 1);
    scale_ = from.vector(S_.size());
    rho_ = from.vector(from.count(data.q));
    Unpacker::require(rho_.size() == data.q || S_.empty());
    factor_.unpack(from, S_.size());
    updated_ = from.count(1) == 1;
    rows_known_ = false;
  }

  void refactor(const QpMatrices& data) {
    rho_ = wanted_rho(data);
    factor_.clear();
    scale_.clear();
    Patience patience;
    for (std::size_t k = 0; k < S_.size(); ++k) {
      if (k % 64 == 63 || data.q > kManyRows) patience.check();
      append_row(data, k);
    }
    touch();
    updated_ = false;
  }

  // In: p holds r on S, nu holds e. Out: the step p and the multipliers nu, M p = r + C' nu.
  void solve(const QpMatrices& data, std::vector<double>& p, std::vector<double>& nu) {
    const std::size_t q = data.q, s = S_.size();
    if (!rows_known_) solve_rows(data);
    for (std::size_t k = 0; k < s; ++k) {
      const double* C = data.column(S_[k]);
      double pull = p[k];
      for (std::size_t i = 0; i < q; ++i) pull += C[i] * rho_[i] * nu[i];
      p[k] = pull * scale_[k];
    }
    factor_.forward(p.data());
    for (std::size_t i = 0; i < q; ++i) nu[i] -= dot(&rows_[i * s], p.data(), s);
    K_.resize(q * q);
    Patience patience;
    for (std::size_t i = 0; i < q; ++i) {
      if (i % 16 == 15) patience.check();
      for (std::size_t j = 0; j < q; ++j) K_[i * q + j] = dot(&rows_[i * s], &rows_[j * s], s);
    }
    solve_semidefinite(K_, nu);
    for (std::size_t i = 0; i < q; ++i) add_scaled(nu[i], &rows_[i * s], p.data(), s);
    factor_.backward(p.data());
    for (std::size_t k = 0; k < s; ++k) p[k] *= scale_[k];
  }

 private:
  static constexpr double kRidge = 1e-13;
  static constexpr std::size_t kManyRows = 20;  // each pair of variables costs a pass over them

  void touch() {
    updated_ = true;
    rows_known_ = false;
  }

  // rows_ = L^{-1} (C_S scaled)', one row of C after the other.
  void solve_rows(const QpMatrices& data) {
    const std::size_t s = S_.size();
    rows_.resize(data.q * s);
    Patience patience;
    for (std::size_t i = 0; i < data.q; ++i) {
      if (i % 16 == 15) patience.check();
      for (std::size_t k = 0; k < s; ++k) rows_[i * s + k] = data.column(S_[k])[i] * scale_[k];
      factor_.forward(rows_.data() + i * s);
    }
    rows_known_ = true;
  }

  double augmented(const QpMatrices& data, std::size_t i, std::size_t j) const {
    double sum = data.H.row(i)[j];
    const double *a = data.column(i), *b = data.column(j);
    for (std::size_t k = 0; k < data.q; ++k) sum += rho_[k] * a[k] * b[k];
    return sum;
  }

  void append_row(const QpMatrices& data, std::size_t k) {
    const std::size_t j = S_[k];
    const double diagonal = augmented(data, j, j);
    const double scale = diagonal > 0.0 ? 1.0 / std::sqrt(diagonal) : 1.0;
    work_.resize(k);
    for (std::size_t l = 0; l < k; ++l) work_[l] = augmented(data, j, S_[l]) * scale * scale_[l];
    scale_.push_back(scale);
    factor_.append(work_, 1.0 + kRidge, kRidge);
  }

  // Row by row the smallest curvature in view: a larger rho would drown the small entries of H, a smaller one
  // leave M close to singular where only variables of large curvature meet a row. Variables of no curvature
  // or with a coefficient that is small for its row set no measure.
  std::vector<double> wanted_rho(const QpMatrices& data) const {
    constexpr double kRange = 1e-8, kCounts = 1e-3;
    std::vector<double> rho(data.q, 1.0);
    for (std::size_t i = 0; i < data.q; ++i) {
      double largest = 0.0;
      for (const std::size_t j : S_) largest = std::max(largest, std::abs(data.column(j)[i]));
      double least = std::numeric_limits<double>::infinity(), most = 0.0;
      for (const std::size_t j : S_) {
        const double coefficient = data.column(j)[i], h = data.H.diagonal(j);
        if (std::abs(coefficient) <= kCounts * largest || !(h > 0.0)) continue;
        const double ratio = h / (coefficient * coefficient);
        least = std::min(least, ratio);
        most = std::max(most, ratio);
      }
      if (most > 0.0 && std::isfinite(most)) rho[i] = std::max(least, kRange * most);
    }
    return rho;
  }

  bool rho_suits(const QpMatrices& data) const {
    if (rho_.size() != data.q) return false;
    const std::vector<double> wanted = wanted_rho(data);
    for (std::size_t i = 0; i < data.q; ++i) {
      if (rho_[i] > 1e3 * wanted[i] || rho_[i] < 1e-6 * wanted[i]) return false;
    }
    return true;
  }

  std::vector<std::size_t> S_;
  std::vector<double> scale_;  // 1 / sqrt(M_jj)
  std::vector<double> rho_;
  std::vector<double> rows_, K_, work_;
  UpdatableCholesky factor_;
  bool updated_ = false;
  bool rows_known_ = false;
};

}  // namespace bmrm
