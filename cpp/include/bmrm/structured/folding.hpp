// All foldings of an RNA sequence: the best, or the sum over all, by one dynamic program (Zuker; McCaskill).
//
//     closed(i, j)  i and j pair:                        hairpin | loop + closed(p, q) | multiloop + many + one
//     one(i, j)     from i to j one branch, that starts at i:  branch + closed(i, j) | one(i, j - 1) + unpaired
//     many(i, j)    from i to j one branch or more:      unpaired + one(u, j) | many(i, u - 1) + one(u, j)
//     outer(j)      the first j bases:                   outer(j - 1) + unpaired | outer(k) + branch + closed(k, j - 1)
//
// Every structure is made in exactly one way, so the same terms serve for the largest score and for the sum. Going
// back, each cell passes what it has to its terms by their shares: all to one of the largest, or as much as each
// contributes to a sum, which gives expected counts. O(n^2 L^2 + n^3) for loops of L bases at most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/pool.hpp"
#include "bmrm/structured/fold_features.hpp"
#include "bmrm/structured/log_sum.hpp"

namespace bmrm {

template <class Sum>
class Foldings {
 public:
  using Bases = FoldWeights::Bases;

  // With a true structure given (partners, -1 where unpaired), each pair that is not in it scores 1 more, and each that
  // is 1 less: with the number of true pairs that is the size of the symmetric difference.
  Foldings(const FoldWeights& weights, const double* w, Bases bases, std::span<const std::int64_t> truth)
      : weights_(weights),
        w_(w),
        bases_(bases),
        truth_(truth),
        n_(static_cast<int>(bases.size())),
        closed_(bases.size() * bases.size(), kNever),
        one_(bases.size() * bases.size(), kNever),
        many_(bases.size() * bases.size(), kNever),
        outer_(bases.size() + 1, 0.0) {
    Patience patience;
    for (int i = n_ - 1; i >= 0; --i) {
      for (int j = i + kMinHairpin + 1; j < n_; ++j) {
        if (pairs(i, j)) closed(i, j) = total([&](const auto& take) { each_closed(i, j, take); });
        one(i, j) = total([&](const auto& take) { each_one(i, j, take); });
        many(i, j) = total([&](const auto& take) { each_many(i, j, take); });
      }
      patience.check();
    }
    for (int j = 1; j <= n_; ++j)
      outer_[static_cast<std::size_t>(j)] = total([&](const auto& take) { each_outer(j, take); });
  }

  double value() const { return outer_.back(); }

  // Goes back from the whole: calls pair(i, j, share) for each pair, and emit(index, share) for the weights.
  template <class Pair, class Emit>
  void share_out(const Pair& pair, const Emit& emit) const {
    Masses mass(bases_.size());
    mass.outer.back() = 1.0;
    for (int j = n_; j > 0; --j) share_outer(j, mass, emit);
    Patience patience;
    for (int i = 0; i < n_; ++i) {
      for (int j = n_ - 1; j > i + kMinHairpin; --j) {
        share_many(i, j, mass, emit);
        share_one(i, j, mass, emit);
        const double here = mass.closed[at(i, j)];
        if (here > 0.0) pair(i, j, here);
        share_closed(i, j, mass, emit);
      }
      patience.check();
    }
  }

 private:
  enum class Kind { hairpin, loop, multiloop, ends, unpaired, first, later, branch };

  struct Masses {
    explicit Masses(std::size_t n)
        : closed(n * n, 0.0), one(n * n, 0.0), many(n * n, 0.0), outer(n + 1, 0.0) {}
    std::vector<double> closed, one, many, outer;
  };

  // Where a cell lies. one is kept by columns: it is read along u for a fixed j.
  std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i) * bases_.size() + static_cast<std::size_t>(j);
  }
  double& closed(int i, int j) { return closed_[at(i, j)]; }
  double& one(int i, int j) { return one_[at(j, i)]; }
  double& many(int i, int j) { return many_[at(i, j)]; }
  double closed(int i, int j) const { return closed_[at(i, j)]; }
  double one(int i, int j) const { return one_[at(j, i)]; }
  double many(int i, int j) const { return many_[at(i, j)]; }
  double outer(int j) const { return outer_[static_cast<std::size_t>(j)]; }

  bool pairs(int i, int j) const {
    return pair_type(bases_[static_cast<std::size_t>(i)], bases_[static_cast<std::size_t>(j)]) != kNoPair;
  }

  double bonus(int i, int j) const {
    if (truth_.empty()) return 0.0;
    return truth_[static_cast<std::size_t>(i)] == j ? -1.0 : 1.0;
  }

  template <class Each>
  static double total(const Each& each) {
    Sum sum;
    each([&sum](double term, Kind, int, int) { sum.add(term); });
    return sum.total();
  }

  // The score of what `say` emits.
  template <class Say>
  double score(const Say& say) const {
    double sum = 0.0;
    say([&](std::size_t index, double count) { sum += count * w_[index]; });
    return sum;
  }

  // Each of these calls take(term, kind, a, b) for all terms of a cell.
  template <class Take>
  void each_closed(int i, int j, const Take& take) const {
    const FoldWeights& f = weights_;
    const double pair = score([&](const auto& emit) { f.pair(bases_, i, j, emit); }) + bonus(i, j);
    take(pair + score([&](const auto& emit) { f.hairpin(bases_, i, j, emit); }), Kind::hairpin, 0, 0);
    for (int p = i + 1; p <= std::min(i + 1 + f.max_loop(), j - kMinHairpin - 2); ++p)
      for (int q = j - 1; q >= std::max(p + kMinHairpin + 1, j - 1 - f.max_loop() + (p - i - 1)); --q)
        if (closed(p, q) > kNever)
          take(pair + score([&](const auto& emit) { f.loop(bases_, i, j, p, q, emit); }) + closed(p, q), Kind::loop, p,
               q);
    const double around = pair + score([&](const auto& emit) { f.multiloop(bases_, i, j, emit); });
    const double *first = &many_[at(i + 1, 0)], *last = &one_[at(j - 1, 0)];
    for (int u = i + 1 + kMinHairpin + 2; u < j - 1 - kMinHairpin; ++u)
      take(around + first[u - 1] + last[u], Kind::multiloop, u, 0);
  }

  template <class Take>
  void each_one(int i, int j, const Take& take) const {
    if (closed(i, j) > kNever)
      take(closed(i, j) + score([&](const auto& emit) { weights_.branch(bases_, i, j, emit); }), Kind::ends, 0, 0);
    take(one(i, j - 1) + score([&](const auto& emit) { weights_.unpaired_in_multiloop(1, emit); }), Kind::unpaired, 0,
         0);
  }

  template <class Take>
  void each_many(int i, int j, const Take& take) const {
    const double unpaired = score([&](const auto& emit) { weights_.unpaired_in_multiloop(1, emit); });
    const double *first = &many_[at(i, 0)], *last = &one_[at(j, 0)];
    for (int u = i; u < j - kMinHairpin; ++u) {
      take(unpaired * (u - i) + last[u], Kind::first, u, 0);
      if (u > i) take(first[u - 1] + last[u], Kind::later, u, 0);
    }
  }

  template <class Take>
  void each_outer(int j, const Take& take) const {
    take(outer(j - 1) + score([&](const auto& emit) { weights_.unpaired_in_exterior(1, emit); }), Kind::unpaired, 0, 0);
    for (int k = 0; k < j - kMinHairpin - 1; ++k)
      if (closed(k, j - 1) > kNever)
        take(outer(k) + score([&](const auto& emit) { weights_.exterior_branch(bases_, k, j - 1, emit); }) +
                 closed(k, j - 1),
             Kind::branch, k, 0);
  }

  // Calls give(share, kind, a, b) for the terms that have a share of what the cell has.
  template <class Each, class Give>
  static void share(double mass, double total, const Each& each, const Give& give) {
    if (!(mass > 0.0)) return;
    typename Sum::Shares shares(total);
    each([&](double term, Kind kind, int a, int b) {
      const double part = mass * shares.of(term);
      if (part > 0.0) give(part, kind, a, b);
    });
  }

  template <class Emit>
  static auto times(double part, const Emit& emit) {
    return [part, &emit](std::size_t index, double count) { emit(index, part * count); };
  }

  template <class Emit>
  void share_outer(int j, Masses& mass, const Emit& emit) const {
    share(
        mass.outer[static_cast<std::size_t>(j)], outer(j), [&](const auto& take) { each_outer(j, take); },
        [&](double part, Kind kind, int k, int) {
          if (kind == Kind::unpaired) {
            mass.outer[static_cast<std::size_t>(j - 1)] += part;
            weights_.unpaired_in_exterior(1, times(part, emit));
          } else {
            mass.outer[static_cast<std::size_t>(k)] += part;
            mass.closed[at(k, j - 1)] += part;
            weights_.exterior_branch(bases_, k, j - 1, times(part, emit));
          }
        });
  }

  template <class Emit>
  void share_many(int i, int j, Masses& mass, const Emit& emit) const {
    share(
        mass.many[at(i, j)], many(i, j), [&](const auto& take) { each_many(i, j, take); },
        [&](double part, Kind kind, int u, int) {
          mass.one[at(u, j)] += part;
          if (kind == Kind::first) {
            weights_.unpaired_in_multiloop(u - i, times(part, emit));
          } else {
            mass.many[at(i, u - 1)] += part;
          }
        });
  }

  template <class Emit>
  void share_one(int i, int j, Masses& mass, const Emit& emit) const {
    share(
        mass.one[at(i, j)], one(i, j), [&](const auto& take) { each_one(i, j, take); },
        [&](double part, Kind kind, int, int) {
          if (kind == Kind::ends) {
            mass.closed[at(i, j)] += part;
            weights_.branch(bases_, i, j, times(part, emit));
          } else {
            mass.one[at(i, j - 1)] += part;
            weights_.unpaired_in_multiloop(1, times(part, emit));
          }
        });
  }

  template <class Emit>
  void share_closed(int i, int j, Masses& mass, const Emit& emit) const {
    const double here = mass.closed[at(i, j)];
    if (here > 0.0) weights_.pair(bases_, i, j, times(here, emit));
    share(
        here, closed(i, j), [&](const auto& take) { each_closed(i, j, take); },
        [&](double part, Kind kind, int a, int b) {
          if (kind == Kind::hairpin) {
            weights_.hairpin(bases_, i, j, times(part, emit));
          } else if (kind == Kind::loop) {
            mass.closed[at(a, b)] += part;
            weights_.loop(bases_, i, j, a, b, times(part, emit));
          } else {
            mass.many[at(i + 1, a - 1)] += part;
            mass.one[at(a, j - 1)] += part;
            weights_.multiloop(bases_, i, j, times(part, emit));
          }
        });
  }

  const FoldWeights& weights_;
  const double* w_;
  Bases bases_;
  std::span<const std::int64_t> truth_;
  int n_;
  std::vector<double> closed_, one_, many_, outer_;
};

}  // namespace bmrm
