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
        shapes_(static_cast<std::size_t>((weights.max_loop() + 1) * (weights.max_loop() + 1)), 0.0),
        unpaired_(bases.size(), 0.0),
        closed_(bases.size() * bases.size(), kNever),
        faced_(bases.size() * bases.size(), kNever),
        one_(bases.size() * bases.size(), kNever),
        many_(bases.size() * bases.size(), kNever),
        outer_(bases.size() + 1, 0.0) {
    for (int left = 1; left < weights.max_loop(); ++left)
      for (int right = 1; right <= weights.max_loop() - left; ++right)
        shapes_[shape(left, right)] = score([&](const auto& emit) { weights.interior_shape(left, right, emit); });
    for (int count = 0; count < n_; ++count)
      unpaired_[static_cast<std::size_t>(count)] =
          score([&](const auto& emit) { weights.unpaired_in_multiloop(count, emit); });
    Patience patience;
    for (int i = n_ - 1; i >= 0; --i) {
      for (int j = i + kMinHairpin + 1; j < n_; ++j) {
        if (pairs(i, j)) close(i, j);
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
    explicit Masses(std::size_t n) : closed(n * n, 0.0), one(n * n, 0.0), many(n * n, 0.0), outer(n + 1, 0.0) {}
    std::vector<double> closed, one, many, outer;
  };

  // Where a cell lies. one is kept by columns: it is read along u for a fixed j.
  std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i) * bases_.size() + static_cast<std::size_t>(j);
  }
  // By the left side, and by the right one from long to short: the end of the inner pair then grows with the place.
  std::size_t shape(int left, int right) const {
    return static_cast<std::size_t>((left + 1) * (weights_.max_loop() + 1) - 1 - right);
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

  void close(int i, int j) {
    closed(i, j) = total([&](const auto& take) { each_closed(i, j, take); });
    if (i > 0 && j + 1 < n_)
      faced_[at(i, j)] = closed(i, j) + score([&](const auto& emit) { weights_.interior_side(bases_, j, i, emit); });
  }

  // What the terms of a cell are told to: they are added up, or each gets its share of what the cell has, by
  // give(share, kind, a, b). A run is offset + x_k + y_k for k = 0, 1, ..., of the same kind and a, and of b + k.
  struct Adder {
    Sum& sum;
    void one(double term, Kind, int, int) const { sum.add(term); }
    void run(double offset, const double* x, const double* y, int n, Kind, int, int) const {
      sum.add_sums(offset, x, y, n);
    }
  };

  // A term's share of a cell, and where it belongs.
  struct Part {
    double share;
    Kind kind;
    int a, b;
  };

  struct Sharer {
    typename Sum::Shares& shares;
    std::vector<Part>& parts;
    void one(double term, Kind kind, int a, int b) const {
      const double share = shares.of(term);
      if (share > 0.0) parts.push_back({share, kind, a, b});
    }
    void run(double offset, const double* x, const double* y, int n, Kind kind, int a, int b) const {
      for (int k = 0; k < n; ++k) one(offset + x[k] + y[k], kind, a, b + k);
    }
  };

  template <class Each>
  static double total(const Each& each) {
    Sum sum;
    each(Adder{sum});
    return sum.total();
  }

  // Calls give for the terms that have a share of what the cell has. Shares are divided by their sum: they are those of
  // some distribution of structures, whatever the totals are rounded by, and so their plane is valid everywhere.
  template <class Each, class Give>
  static void share(double mass, double total, const Each& each, const Give& give) {
    if (!(mass > 0.0)) return;
    typename Sum::Shares shares(total);
    std::vector<Part> parts;
    each(Sharer{shares, parts});
    double sum = 0.0;
    for (const Part& part : parts) sum += part.share;
    for (const Part& part : parts) give(mass * (part.share / sum), part.kind, part.a, part.b);
  }

  // The score of what `say` emits.
  template <class Say>
  double score(const Say& say) const {
    double sum = 0.0;
    say([&](std::size_t index, double count) { sum += count * w_[index]; });
    return sum;
  }

  // Each of these tells all terms of a cell.
  template <class Take>
  void each_closed(int i, int j, const Take& take) const {
    const FoldWeights& f = weights_;
    const double pair = score([&](const auto& emit) { f.pair(bases_, i, j, emit); }) + bonus(i, j);
    take.one(pair + score([&](const auto& emit) { f.hairpin(bases_, i, j, emit); }), Kind::hairpin, 0, 0);
    each_loop(i, j, pair, take);
    const double around = pair + score([&](const auto& emit) { f.multiloop(bases_, i, j, emit); });
    const int u = i + 1 + kMinHairpin + 2;
    take.run(around, &many_[at(i + 1, u - 1)], &one_[at(j - 1, u)], j - 1 - kMinHairpin - u, Kind::multiloop, 0, u);
  }

  // Stacks and bulges, then interior loops: most of the work, by tables of what does not depend on both pairs.
  template <class Take>
  void each_loop(int i, int j, double pair, const Take& take) const {
    const int longest = weights_.max_loop();
    const auto straight = [&](int p, int q) {
      if (closed(p, q) > kNever)
        take.one(pair + score([&](const auto& emit) { weights_.loop(bases_, i, j, p, q, emit); }) + closed(p, q),
                 Kind::loop, p, q);
    };
    for (int q = j - 1; q >= std::max(i + kMinHairpin + 2, j - 1 - longest); --q) straight(i + 1, q);
    for (int p = i + 2; p <= std::min(j - kMinHairpin - 2, i + 1 + longest); ++p) straight(p, j - 1);
    const double side = pair + score([&](const auto& emit) { weights_.interior_side(bases_, i, j, emit); });
    for (int left = 1; left < longest && i + left + kMinHairpin + 3 < j; ++left) {
      const int p = i + 1 + left, most = std::min(longest - left, j - p - kMinHairpin - 2), q = j - 1 - most;
      take.run(side, &shapes_[shape(left, most)], &faced_[at(p, q)], most, Kind::loop, p, q);
    }
  }

  template <class Take>
  void each_one(int i, int j, const Take& take) const {
    if (closed(i, j) > kNever)
      take.one(closed(i, j) + score([&](const auto& emit) { weights_.branch(bases_, i, j, emit); }), Kind::ends, 0, 0);
    take.one(one(i, j - 1) + unpaired_[1], Kind::unpaired, 0, 0);
  }

  template <class Take>
  void each_many(int i, int j, const Take& take) const {
    const int n = j - kMinHairpin - i;
    take.run(0.0, unpaired_.data(), &one_[at(j, i)], n, Kind::first, 0, i);
    take.run(0.0, &many_[at(i, i)], &one_[at(j, i + 1)], n - 1, Kind::later, 0, i + 1);
  }

  template <class Take>
  void each_outer(int j, const Take& take) const {
    take.one(outer(j - 1) + score([&](const auto& emit) { weights_.unpaired_in_exterior(1, emit); }), Kind::unpaired, 0,
             0);
    for (int k = 0; k < j - kMinHairpin - 1; ++k)
      if (closed(k, j - 1) > kNever)
        take.one(outer(k) + score([&](const auto& emit) { weights_.exterior_branch(bases_, k, j - 1, emit); }) +
                     closed(k, j - 1),
                 Kind::branch, 0, k);
  }

  template <class Emit>
  static auto times(double part, const Emit& emit) {
    return [part, &emit](std::size_t index, double count) { emit(index, part * count); };
  }

  template <class Emit>
  void share_outer(int j, Masses& mass, const Emit& emit) const {
    share(
        mass.outer[static_cast<std::size_t>(j)], outer(j), [&](const auto& take) { each_outer(j, take); },
        [&](double part, Kind kind, int, int k) {
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
        [&](double part, Kind kind, int, int u) {
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
            mass.many[at(i + 1, b - 1)] += part;
            mass.one[at(b, j - 1)] += part;
            weights_.multiloop(bases_, i, j, times(part, emit));
          }
        });
  }

  const FoldWeights& weights_;
  const double* w_;
  Bases bases_;
  std::span<const std::int64_t> truth_;
  int n_;
  // shapes_ are the scores of interior loops by their sides' lengths, unpaired_ those of so many unpaired bases of a
  // multiloop; faced_ is closed_ with its side of an interior loop around it.
  std::vector<double> shapes_, unpaired_, closed_, faced_, one_, many_, outer_;
};

}  // namespace bmrm
