// Foldings of one RNA sequence: the loops of a structure, the best structure, and the expected counts of all.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bmrm/structured/fold_features.hpp"
#include "bmrm/structured/folding.hpp"

namespace nb = nanobind;

namespace bmrm::py {

using namespace nb::literals;

namespace {

using Bases = In<std::uint8_t>;
using Partners = In<std::int64_t>;

FoldWeights weights_of(int max_loop, int max_hairpin) {
  require(max_loop >= 2 && max_loop <= 10000, "max_loop must lie between 2 and 10000");
  require(max_hairpin >= kMinHairpin && max_hairpin <= 10000, "max_hairpin must lie between 3 and 10000");
  return {max_loop, max_hairpin};
}

void require_bases(const Bases& bases) {
  const auto b = view(bases);
  require(!b.empty() && b.size() <= 20000, "a sequence must have 1 to 20000 bases");
  require(std::all_of(b.begin(), b.end(), [](std::uint8_t base) { return base < 4; }), "bases must be 0 to 3");
}

std::vector<std::pair<std::string, std::size_t>> parts(int max_loop, int max_hairpin) {
  const FoldWeights weights = weights_of(max_loop, max_hairpin);
  std::vector<std::pair<std::string, std::size_t>> found;
  for (std::size_t part = 0; part < FoldWeights::kParts; ++part)
    found.emplace_back(FoldWeights::kNames[part], weights.start(part + 1) - weights.start(part));
  return found;
}

std::string named(std::int64_t i, std::int64_t j) {
  return "the pair of positions " + std::to_string(i) + " and " + std::to_string(j);
}

// Pairs must be mutual, nested, of bases that pair, and around three bases at least.
void require_nested(const Bases& bases, const Partners& partners) {
  require_size(partners.size(), bases.size(), "y");
  const auto b = view(bases);
  const auto partner = view(partners);
  const auto n = static_cast<std::int64_t>(b.size());
  std::vector<std::int64_t> open;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t j = partner[static_cast<std::size_t>(i)];
    if (j < 0) continue;
    if (j == i) require(false, "position " + std::to_string(i) + " is its own partner");
    if (j >= n || partner[static_cast<std::size_t>(j)] != i)
      require(false, "position " + std::to_string(i) + " has partner " + std::to_string(j) + ", which has another");
    if (j > i) {
      if (j - i <= kMinHairpin) require(false, named(i, j) + " encloses fewer than 3 bases");
      if (pair_type(b[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(j)]) == kNoPair)
        require(false, named(i, j) + " is of bases that do not pair");
      open.push_back(i);
    } else {
      if (open.back() != j)
        require(false, named(j, i) + " crosses that of " + std::to_string(open.back()) + " and " +
                           std::to_string(partner[static_cast<std::size_t>(open.back())]));
      open.pop_back();
    }
  }
}

auto feature(const Bases& bases, const Partners& partners, int max_loop, int max_hairpin) {
  const FoldWeights weights = weights_of(max_loop, max_hairpin);
  require_bases(bases);
  require_nested(bases, partners);
  std::vector<double> counts(weights.dim(), 0.0);
  fold_loops(weights, view(bases), view(partners), [&](std::size_t index, double count) { counts[index] += count; });
  return give(std::move(counts));
}

auto best(const Bases& bases, const In<double>& w, const Partners& truth, int max_loop, int max_hairpin) {
  const FoldWeights weights = weights_of(max_loop, max_hairpin);
  require_bases(bases);
  require_size(w.size(), weights.dim(), "w");
  if (truth.size() > 0) require_size(truth.size(), bases.size(), "y");
  std::vector<std::int64_t> partner(bases.size(), -1);
  {
    nb::gil_scoped_release release;
    const Foldings<Largest> all(weights, w.data(), view(bases), view(truth));
    all.share_out(
        [&](int i, int j, double) {
          partner[static_cast<std::size_t>(i)] = j;
          partner[static_cast<std::size_t>(j)] = i;
        },
        [](std::size_t, double) {});
  }
  return give(std::move(partner));
}

auto expectations(const Bases& bases, const In<double>& w, int max_loop, int max_hairpin) {
  const FoldWeights weights = weights_of(max_loop, max_hairpin);
  require_bases(bases);
  require_size(w.size(), weights.dim(), "w");
  std::vector<double> counts(weights.dim(), 0.0);
  double value = 0.0;
  {
    nb::gil_scoped_release release;
    const Foldings<LogSum> all(weights, w.data(), view(bases), {});
    value = all.value();
    all.share_out([](int, int, double) {}, [&](std::size_t index, double count) { counts[index] += count; });
  }
  return std::make_pair(value, give(std::move(counts)));
}

}  // namespace

void bind_structured_folding(nb::module_& m) {
  m.def("fold_parts", &parts, "max_loop"_a, "max_hairpin"_a,
        "The kinds of weights of a folding, in their order, and how many there are of each.");
  m.def("fold_feature", &feature, "bases"_a, "partner"_a, "max_loop"_a, "max_hairpin"_a,
        "How often a structure has each weight; ValueError if the partners are no structure of these bases.");
  m.def("fold_best", &best, "bases"_a, "w"_a, "truth"_a, "max_loop"_a, "max_hairpin"_a,
        "The partners in the structure with the largest score and, where true partners are given, cost.");
  m.def("fold_expectations", &expectations, "bases"_a, "w"_a, "max_loop"_a, "max_hairpin"_a,
        "log of the sum of exp(score) over all structures, and the expected counts of the weights.");
}

}  // namespace bmrm::py
