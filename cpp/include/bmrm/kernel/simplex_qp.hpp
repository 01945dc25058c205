// The dual of the master problem of a bundle method:
//
//     minimize 1/2 x'H x - b'x  subject to  x >= 0,  C x = c,
//
// with H positive semidefinite and dense, often close to singular, and few rows in C. A primal active-set
// method: x, its support S, the factor on S and the products g = H x outlive a solve, so that the next one,
// with a few variables more or less or with another b, starts where this one ended.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bmrm/kernel/archive.hpp"
#include "bmrm/kernel/equality_rows.hpp"
#include "bmrm/kernel/gram.hpp"
#include "bmrm/kernel/support_kkt.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

class ActiveSetQp {
 public:
  explicit ActiveSetQp(std::span<const double> c) : rows_(c), nu_(c.size(), 0.0) {
    if (c.empty()) throw std::invalid_argument("c must have at least one entry");
    data_.q = c.size();
  }

  // One vector of numbers, and a program that goes on from it to the last digit: see simplex_qp_state.hpp.
  std::vector<double> packed() const;
  static ActiveSetQp unpacked(Unpacker from);

  std::size_t size() const { return x_.size(); }
  std::size_t rows() const { return rows_.size(); }
  const std::vector<double>& x() const { return x_; }
  const std::vector<double>& multipliers() const { return nu_; }
  std::size_t steps() const { return steps_; }
  double violation() const { return violation_; }
  bool optimal() const { return optimal_; }  // false: the last solve ended at the limit of steps

  // Appends a variable at zero. h: its products with the variables there are, then with itself.
  void add(std::span<const double> h, std::span<const double> column) {
    if (h.size() != size() + 1) throw std::invalid_argument("h must have one entry per variable and one more");
    if (column.size() != rows()) throw std::invalid_argument("column must have one entry per row of C");
    if (!(h.back() >= 0.0)) throw std::invalid_argument("the last entry of h must not be negative");
    data_.H.append(h);
    data_.C.insert(data_.C.end(), column.begin(), column.end());
    x_.push_back(0.0);
    root_.push_back(std::sqrt(h.back()));
    active_.push_back(0);
    double product = 0.0;
    for (const std::size_t j : kkt_.support()) product += h[j] * x_[j];
    g_.push_back(product);
  }

  // Removes variables at zero, given in ascending order.
  void remove(std::span<const std::int64_t> indices) {
    std::vector<char> gone(size(), 0);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const auto j = static_cast<std::size_t>(indices[k]);
      if (indices[k] < 0 || j >= size()) throw std::invalid_argument("index out of range");
      if (k > 0 && indices[k] <= indices[k - 1]) throw std::invalid_argument("indices must be ascending");
      if (x_[j] != 0.0) throw std::invalid_argument("a variable that is not zero cannot be removed");
      gone[j] = 1;
    }
    for (std::size_t k = kkt_.size(); k-- > 0;) {
      if (gone[kkt_.support()[k]]) leave(k);
    }
    compact(gone);
  }

  // Starts from a feasible point; its support becomes the active set.
  void set_start(std::span<const double> x) {
    if (x.size() != size()) throw std::invalid_argument("x must have one entry per variable");
    std::vector<std::size_t> S;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (!(x[j] >= 0.0)) throw std::invalid_argument("the start has a negative entry");
      if (x[j] > 0.0) S.push_back(j);
    }
    if (!rows_.feasible(data_, x)) throw std::invalid_argument("the start does not satisfy the equality rows");
    x_.assign(x.begin(), x.end());
    std::fill(active_.begin(), active_.end(), char{0});
    for (const std::size_t j : S) active_[j] = 1;
    kkt_.assign(data_, std::move(S));
    rows_.restore(data_, kkt_.support(), x_);
    refresh_products();
  }

  // Solves for the linear term b from the current point. Reduced costs above -tol, relative to the terms they
  // are made of, count as nonnegative. After max_steps the current point is returned: it is feasible as well.
  const std::vector<double>& solve(std::span<const double> b, double tol, std::size_t max_steps) {
    if (b.size() != size()) throw std::invalid_argument("b must have one entry per variable");
    if (!rows_.feasible(data_, x_)) throw std::invalid_argument("no feasible start: call set_start first");
    const std::vector<double> start = x_;
    b_.assign(b.begin(), b.end());
    entries_.assign(size(), 0);
    stall_ = 0;
    last_residual_ = settled_residual_ = std::numeric_limits<double>::infinity();
    Patience patience;
    optimal_ = false;
    for (steps_ = 0; steps_ < max_steps && !optimal_; ++steps_) {
      if (steps_ % 8 == 0 || rows() > kManyRows) patience.check();
      if (step() && !refinement_pays(tol)) optimal_ = !enter(tol) && verified(tol);
    }
    if (!optimal_) settle();
    if (!rows_.feasible(data_,
                        x_)) {  // beyond the range of the arithmetic: better no progress than a wrong point
      set_start(start);
      settle();
      optimal_ = false;
    }
    return x_;
  }

 private:
  static constexpr std::size_t kManyRows = 20;  // a step costs their square times the support
  static constexpr double kNegligible = 1e-14;
  static constexpr double kRounding = 2e-16;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // --- the point ---------------------------------------------------------------------------------------

  void refresh_products() {
    p_.clear();
    for (const std::size_t j : kkt_.support()) p_.push_back(x_[j]);
    std::fill(g_.begin(), g_.end(), 0.0);
    data_.H.accumulate(kkt_.support(), p_.data(), g_.data());
    updates_ = 0;
  }

  // Feasible to rounding, with fresh products and the multipliers' worst violation: what a solve ends with.
  void settle() {
    rows_.restore(data_, kkt_.support(), x_);
    refresh_products();
    measure();
    violation_ = 0.0;
    for (std::size_t j = 0; j < size(); ++j) violation_ = std::min(violation_, relative_cost(j));
  }

  // Optimal with fresh products too: else the method goes on, as long as that reduces the residual.
  bool verified(double tol) {
    settle();
    const double residual = support_residual();
    if (residual > tol && residual < 0.5 * settled_residual_) {
      settled_residual_ = residual;
      last_residual_ = std::numeric_limits<double>::infinity();
      return false;
    }
    return !enter(tol);
  }

  void compact(const std::vector<char>& gone) {
    std::vector<std::size_t> kept, names(size(), 0);
    for (std::size_t j = 0; j < size(); ++j) {
      if (gone[j]) continue;
      names[j] = kept.size();
      x_[kept.size()] = x_[j];
      g_[kept.size()] = g_[j];
      root_[kept.size()] = root_[j];
      active_[kept.size()] = active_[j];
      std::copy_n(&data_.C[j * rows()], rows(), &data_.C[kept.size() * rows()]);
      kept.push_back(j);
    }
    data_.H.keep(kept);
    data_.C.resize(kept.size() * rows());
    x_.resize(kept.size());
    g_.resize(kept.size());
    root_.resize(kept.size());
    active_.resize(kept.size());
    kkt_.rename(names);
  }

  // --- reduced costs -----------------------------------------------------------------------------------

  double reduced_cost(std::size_t j) const {
    double r = g_[j] - b_[j];
    for (std::size_t i = 0; i < rows(); ++i) r -= data_.column(j)[i] * nu_[i];
    return r;
  }

  // The size of the terms that make up a reduced cost: its rounding error is a small multiple of eps times
  // it.
  double cost_scale(std::size_t j) const {
    double scale = root_[j] * norm_ + std::abs(b_[j]);
    for (std::size_t i = 0; i < rows(); ++i) scale += std::abs(data_.column(j)[i] * nu_[i]);
    return scale;
  }

  double relative_cost(std::size_t j) const {
    const double r = reduced_cost(j);
    return std::abs(r) <= kRounding * incumbent_ ? 0.0 : r / cost_scale(j);
  }

  double support_residual() {
    measure();
    double residual = 0.0;
    for (const std::size_t j : kkt_.support()) residual = std::max(residual, std::abs(relative_cost(j)));
    return residual;
  }

  // Sum of x_i sqrt(H_ii), a bound of the terms of g_j over sqrt(H_jj).
  void measure() {
    norm_ = incumbent_ = 0.0;
    for (const std::size_t j : kkt_.support()) norm_ += x_[j] * root_[j];
    for (const std::size_t j : kkt_.support()) incumbent_ += x_[j] * cost_scale(j);
  }

  // Adds the most violated variable, measured by the decrease it promises; by index when the method stalls,
  // which rules out cycles. A variable that keeps coming back must be violated more each time.
  bool enter(double tol) {
    measure();
    const bool by_index = stalled();
    std::size_t best = kNone;
    double best_score = 0.0;
    for (std::size_t j = 0; j < size(); ++j) {
      if (active_[j]) continue;
      const double r = reduced_cost(j);
      if (r >= 0.0) continue;
      const double patience = std::min(100.0, std::ldexp(1.0, std::max(0, entries_[j] - 4)));
      const double scale = cost_scale(j);
      if (r >= -tol * patience * scale - kRounding * incumbent_) continue;
      const double score = r / (root_[j] + std::numeric_limits<double>::min());
      if (score < best_score) {
        best = j;
        best_score = score;
        if (by_index) break;
      }
    }
    if (best == kNone) return false;
    ++entries_[best];
    active_[best] = 1;
    kkt_.insert(data_, best);
    last_residual_ = std::numeric_limits<double>::infinity();
    return true;
  }

  void leave(std::size_t k) {
    const std::size_t j = kkt_.support()[k];
    x_[j] = 0.0;
    active_[j] = 0;
    kkt_.erase(data_, k);
    last_residual_ = std::numeric_limits<double>::infinity();
  }

  // --- steps -------------------------------------------------------------------------------------------

  // Moves toward the minimizer on the support. False when a variable turned zero on the way and left.
  bool step() {
    find_direction();
    const double slope = slope_along_direction();
    Hp_.assign(size(), 0.0);
    data_.H.accumulate(kkt_.support(), p_.data(), Hp_.data());
    const auto [blocking, limit] = ratio_test();
    const double wanted = step_length(slope, limit);
    const bool blocked = blocking != kNone && limit <= wanted;
    const double alpha = blocked ? limit : wanted;
    for (std::size_t k = 0; k < kkt_.size(); ++k) {
      double& value = x_[kkt_.support()[k]];
      value = std::max(0.0, value + alpha * p_[k]);
    }
    add_scaled(alpha, Hp_.data(), g_.data(), size());
    // Updates add up, and what a large part of x leaves behind may exceed all that is left.
    const double before = norm_;
    measure();
    if (++updates_ > 50 || norm_ < 0.1 * before) refresh_products();
    stall_ = alpha * slope > 1e-27 * slope_scale_ ? 0 : stall_ + 1;
    if (blocked) leave(blocking);
    return !blocked;
  }

  // The step p to the minimizer on the support, and the multipliers there.
  void find_direction() {
    const auto& S = kkt_.support();
    const std::vector<double> e = rows_.residuals(data_, S, x_);
    p_.resize(S.size());
    // Multipliers far from their values drown p in rounding: it is then computed again from the new ones.
    for (int attempt = 0; attempt < 3; ++attempt) {
      for (std::size_t k = 0; k < S.size(); ++k) p_[k] = -reduced_cost(S[k]);
      std::vector<double> change = e;
      kkt_.solve(data_, p_, change);
      for (std::size_t i = 0; i < rows(); ++i) nu_[i] += change[i];
      if (EqualityRows::met(data_, S, p_, e, 1e-12, x_, 1e-15)) break;
    }
    absorb_rounding();
  }

  // What rounding alone pushes below zero must not count as a blocking variable: it ends at zero.
  void absorb_rounding() {
    const auto& S = kkt_.support();
    double longest = 0.0, largest = 0.0;
    for (std::size_t k = 0; k < S.size(); ++k) {
      longest = std::max(longest, std::abs(p_[k]) * kkt_.weight(k));
      largest = std::max(largest, x_[S[k]] * kkt_.weight(k));
    }
    const double noise = std::max(kNegligible * longest, 0.01 * kNegligible * largest);
    for (std::size_t k = 0; k < S.size(); ++k) {
      if (x_[S[k]] + p_[k] < 0.0 && -p_[k] * kkt_.weight(k) <= noise) p_[k] = -x_[S[k]];
    }
  }

  double slope_along_direction() {
    measure();
    double slope = 0.0;
    slope_scale_ = 0.0;
    for (std::size_t k = 0; k < kkt_.size(); ++k) {
      const std::size_t j = kkt_.support()[k];
      slope -= p_[k] * reduced_cost(j);
      slope_scale_ += std::abs(p_[k]) * cost_scale(j);
    }
    return slope;
  }

  // The first variable of the support that turns zero along p, and the step at which it does. Of several at the
  // same step the one of lowest index when the method stalls: with the same choice on entering this ends cycles.
  std::pair<std::size_t, double> ratio_test() const {
    std::size_t blocking = kNone;
    double limit = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < kkt_.size(); ++k) {
      if (p_[k] >= 0.0) continue;
      const double ratio = x_[kkt_.support()[k]] / -p_[k];
      const bool tie = stalled() && ratio == limit && kkt_.support()[k] < kkt_.support()[blocking];
      if (ratio < limit || tie) {
        limit = ratio;
        blocking = k;
      }
    }
    return {blocking, limit};
  }

  bool stalled() const { return stall_ > 10 + rows(); }

  // One, the full step, unless the ridge held it back: where H has next to no curvature along p, the line is
  // followed to its own minimum, and to the boundary if it has none.
  double step_length(double slope, double limit) const {
    if (!(slope > kNegligible * slope_scale_)) return 1.0;
    // Not for a step that is itself a correction of the rows, or rounding.
    const std::vector<double> zero(rows(), 0.0);
    const bool keeps_rows = EqualityRows::met(data_, kkt_.support(), p_, zero, 1e-10, x_, 0.0);
    double curvature = 0.0, size_of_terms = 0.0;
    for (std::size_t k = 0; k < kkt_.size(); ++k) {
      const std::size_t j = kkt_.support()[k];
      curvature += p_[k] * Hp_[j];
      size_of_terms += std::abs(p_[k]) * root_[j];
    }
    if (curvature * 1.5 >= slope || !keeps_rows) return 1.0;
    if (curvature > 1e-15 * size_of_terms * size_of_terms) return slope / curvature;
    if (std::isinf(limit)) throw std::runtime_error("unbounded");
    return limit;
  }

  // After a full step: another one on the same support works as iterative refinement, as long as it helps.
  // When it does not, the updated factor may have lost its accuracy and is computed anew, once.
  bool refinement_pays(double tol) {
    const double residual = support_residual();
    if (residual <= tol) return false;
    if (residual < 0.5 * last_residual_) {
      last_residual_ = residual;
      return true;
    }
    if (residual <= 100.0 * tol || !kkt_.updated()) return false;
    kkt_.refactor(data_);
    last_residual_ = std::numeric_limits<double>::infinity();
    return true;
  }

  QpMatrices data_;
  SupportKkt kkt_;
  EqualityRows rows_;
  std::vector<double> b_;
  std::vector<double> x_, g_, nu_;  // the point, H x, the multipliers of the rows
  std::vector<double> root_;        // sqrt(H_jj)
  std::vector<char> active_;        // whether a variable is in the support
  std::vector<int> entries_;        // how often a variable entered during this solve
  std::vector<double> p_, Hp_;      // the step on the support, and its products
  double norm_ = 0.0;
  double incumbent_ = 0.0;  // size of the terms of the objective: smaller reduced costs promise nothing
  double slope_scale_ = 0.0;
  double last_residual_ = 0.0;
  double settled_residual_ = 0.0;
  double violation_ = 0.0;
  std::size_t updates_ = 0;
  std::size_t stall_ = 0;
  std::size_t steps_ = 0;
  bool optimal_ = false;
};

}  // namespace bmrm
