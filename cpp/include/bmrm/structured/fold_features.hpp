// The loops of a folded RNA sequence and the weights each of them has: nearest neighbors, in the manner of Turner.
//
// A structure is a set of nested base pairs. A pair (i, j) closes a loop: a hairpin, if no pair lies inside; a stack, a
// bulge or an interior loop, if one does; a multiloop, if several do. What no pair encloses is the exterior. Every
// function here tells which weights a loop has, by emit(index, how often).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bmrm {

inline constexpr int kMinHairpin = 3;
inline constexpr int kNoPair = -1;

// Bases are 0 to 3 for A, C, G, U; AU, CG, GC, GU, UA and UG pair.
inline int pair_type(std::uint8_t a, std::uint8_t b) {
  constexpr std::array<int, 16> kTypes{kNoPair, kNoPair, kNoPair, 0, kNoPair, kNoPair, 1, kNoPair,
                                       kNoPair, 2,       kNoPair, 3, 4,       kNoPair, 5, kNoPair};
  return kTypes[a * 4u + b];
}

class FoldWeights {
 public:
  // Hairpins of max_hairpin unpaired bases or more share a weight; bulges and interior loops have max_loop at most.
  FoldWeights(int max_loop, int max_hairpin) : max_loop_(max_loop), max_hairpin_(max_hairpin) {
    const auto loop = static_cast<std::size_t>(max_loop), hairpin = static_cast<std::size_t>(max_hairpin);
    const std::array<std::size_t, kParts> sizes{
        6, 36, hairpin - kMinHairpin + 1, 96, loop, loop - 1, loop - 1, 96, 3, 6, 2, 6};
    for (std::size_t part = 0; part < kParts; ++part) start_[part + 1] = start_[part] + sizes[part];
  }

  static constexpr std::size_t kParts = 12;
  static constexpr std::array<const char*, kParts> kNames{
      "pairs",         "stacks",           "hairpin lengths", "hairpin mismatches",
      "bulge lengths", "interior lengths", "asymmetry",       "interior mismatches",
      "multiloop",     "multiloop ends",   "exterior",        "exterior ends"};

  std::size_t dim() const { return start_[kParts]; }
  std::size_t start(std::size_t part) const { return start_[part]; }
  int max_loop() const { return max_loop_; }

  using Bases = std::span<const std::uint8_t>;

  template <class Emit>
  void pair(Bases b, int i, int j, const Emit& emit) const {
    emit(start_[kPair] + type(b, i, j), 1.0);
  }

  template <class Emit>
  void hairpin(Bases b, int i, int j, const Emit& emit) const {
    const int length = std::min(j - i - 1, max_hairpin_);
    emit(start_[kHairpinLength] + static_cast<std::size_t>(length - kMinHairpin), 1.0);
    emit(start_[kHairpinMismatch] + mismatch(b, i, j), 1.0);
  }

  // The loop between (i, j) and (p, q) inside of it: a stack, a bulge or an interior loop.
  template <class Emit>
  void loop(Bases b, int i, int j, int p, int q, const Emit& emit) const {
    const int left = p - i - 1, right = j - q - 1, length = left + right;
    if (length == 0) {
      emit(start_[kStack] + type(b, i, j) * 6 + type(b, p, q), 1.0);
    } else if (left == 0 || right == 0) {
      emit(start_[kBulgeLength] + static_cast<std::size_t>(length - 1), 1.0);
    } else {
      interior_shape(left, right, emit);
      interior_side(b, i, j, emit);
      interior_side(b, q, p, emit);
    }
  }

  // An interior loop with unpaired bases on both sides, and a pair with those of the loop beside it.
  template <class Emit>
  void interior_shape(int left, int right, const Emit& emit) const {
    emit(start_[kInteriorLength] + static_cast<std::size_t>(left + right - 2), 1.0);
    emit(start_[kAsymmetry] + static_cast<std::size_t>(std::max(left, right) - std::min(left, right)), 1.0);
  }
  template <class Emit>
  void interior_side(Bases b, int i, int j, const Emit& emit) const {
    emit(start_[kInteriorMismatch] + mismatch(b, i, j), 1.0);
  }

  // (i, j) closes a multiloop.
  template <class Emit>
  void multiloop(Bases b, int i, int j, const Emit& emit) const {
    emit(start_[kMultiloop], 1.0);
    emit(start_[kMultiloopEnd] + type(b, j, i), 1.0);
  }

  // (p, q) is a branch of a multiloop.
  template <class Emit>
  void branch(Bases b, int p, int q, const Emit& emit) const {
    emit(start_[kMultiloop] + 1, 1.0);
    emit(start_[kMultiloopEnd] + type(b, p, q), 1.0);
  }

  template <class Emit>
  void unpaired_in_multiloop(int count, const Emit& emit) const {
    emit(start_[kMultiloop] + 2, static_cast<double>(count));
  }

  template <class Emit>
  void exterior_branch(Bases b, int p, int q, const Emit& emit) const {
    emit(start_[kExterior], 1.0);
    emit(start_[kExteriorEnd] + type(b, p, q), 1.0);
  }

  template <class Emit>
  void unpaired_in_exterior(int count, const Emit& emit) const {
    emit(start_[kExterior] + 1, static_cast<double>(count));
  }

 private:
  enum Part : std::size_t {
    kPair,
    kStack,
    kHairpinLength,
    kHairpinMismatch,
    kBulgeLength,
    kInteriorLength,
    kAsymmetry,
    kInteriorMismatch,
    kMultiloop,
    kMultiloopEnd,
    kExterior,
    kExteriorEnd
  };

  static std::uint8_t base(Bases b, int i) { return b[static_cast<std::size_t>(i)]; }
  static std::size_t type(Bases b, int i, int j) { return static_cast<std::size_t>(pair_type(base(b, i), base(b, j))); }
  // The pair from i to j with the bases beside it that face each other: after i and before j.
  static std::size_t mismatch(Bases b, int i, int j) {
    return type(b, i, j) * 16 + base(b, i + 1) * 4u + base(b, j - 1);
  }

  int max_loop_, max_hairpin_;
  std::array<std::size_t, kParts + 1> start_{};
};

// Emits the weights of all loops of a structure; partner is -1 where a base is unpaired. The structure must be nested;
// a bulge or an interior loop that is too long is an error.
template <class Emit>
void fold_loops(const FoldWeights& weights, std::span<const std::uint8_t> bases, std::span<const std::int64_t> partner,
                const Emit& emit) {
  // Any negative number says unpaired, also one that does not fit an int.
  const auto mate = [&](int i) {
    return static_cast<int>(std::max<std::int64_t>(-1, partner[static_cast<std::size_t>(i)]));
  };
  std::vector<std::pair<int, int>> open, inside;
  int unpaired = 0;
  const auto look_between = [&](int first, int end) {  // for pairs between, which are opened, and unpaired bases
    inside.clear();
    unpaired = 0;
    for (int k = first; k < end; ++k) {
      if (mate(k) < 0) {
        ++unpaired;
      } else {
        inside.emplace_back(k, mate(k));
        k = mate(k);
      }
    }
    open.insert(open.end(), inside.begin(), inside.end());
  };
  look_between(0, static_cast<int>(bases.size()));
  for (const auto& [p, q] : inside) weights.exterior_branch(bases, p, q, emit);
  weights.unpaired_in_exterior(unpaired, emit);
  while (!open.empty()) {
    const auto [i, j] = open.back();
    open.pop_back();
    weights.pair(bases, i, j, emit);
    look_between(i + 1, j);
    if (inside.empty()) {
      weights.hairpin(bases, i, j, emit);
    } else if (inside.size() == 1) {
      if (unpaired > weights.max_loop())
        throw std::invalid_argument("the loop inside positions " + std::to_string(i) + " and " + std::to_string(j) +
                                    " has " + std::to_string(unpaired) +
                                    " unpaired bases, more than max_loop=" + std::to_string(weights.max_loop()));
      weights.loop(bases, i, j, inside[0].first, inside[0].second, emit);
    } else {
      weights.multiloop(bases, i, j, emit);
      weights.unpaired_in_multiloop(unpaired, emit);
      for (const auto& [p, q] : inside) weights.branch(bases, p, q, emit);
    }
  }
}

}  // namespace bmrm
