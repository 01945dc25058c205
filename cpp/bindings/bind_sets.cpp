// Losses that look at more than one row: pairs, tables, permutations. Value returned, slopes out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "arrays.hpp"
#include "bmrm/kernel/checks.hpp"
#include "bmrm/loss/contingency.hpp"
#include "bmrm/loss/pairs.hpp"
#include "bmrm/loss/ranking.hpp"

namespace nb = nanobind;

namespace bmrm::py {

using namespace nb::literals;

namespace {

using Index = In<std::int64_t>;

void require_starts(const Index& starts, std::size_t end, const char* name) { require_rising(view(starts), end, name); }

Sets sets_of(std::size_t m, const Index& rows, const Index& starts, const Index& turns, const In<double>& share) {
  require_rows(view(rows), m);
  require_starts(starts, rows.size(), "starts");
  const std::size_t n = starts.size() - 1;
  require_size(turns.size(), n, "turns");
  require_size(share.size(), n, "share");
  require_rows(view(turns), n);
  return {view(rows), view(starts), view(turns), view(share)};
}

// Runs a loss without the interpreter's lock. Scores that are not finite have no order: the answer is NaN.
template <class Loss>
double run(const In<double>& scores, Out<double>& slopes, const Loss& loss) {
  require_size(slopes.size(), scores.size(), "slopes");
  nb::gil_scoped_release release;
  const bool finite = all_finite(scores.data(), scores.size());
  const double nothing = finite ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  std::fill(slopes.data(), slopes.data() + slopes.size(), nothing);
  return finite ? loss(view(scores), view(slopes)) : nothing;
}

Graded graded_of(std::size_t m, const Index& rows, const Index& starts, const Index& turns, const Index& blocks,
                 const Index& queries, const In<double>& share) {
  const Sets sets = sets_of(m, rows, starts, turns, share);
  require_starts(blocks, rows.size(), "blocks");
  require_starts(queries, blocks.size() - 1, "queries");
  require_size(queries.size(), starts.size(), "queries");
  for (std::size_t q = 0; q < queries.size(); ++q)
    require(view(blocks)[static_cast<std::size_t>(view(queries)[q])] == view(starts)[q], "blocks do not fit starts");
  return {sets, view(blocks), view(queries)};
}

double pairs(const In<double>& scores, const Index& rows, const Index& starts, const Index& turns, const Index& blocks,
             const Index& queries, const In<double>& share, const std::optional<In<double>>& weight,
             Out<double>& slopes, int n_threads) {
  const Graded graded = graded_of(scores.size(), rows, starts, turns, blocks, queries, share);
  if (weight) require_size(weight->size(), scores.size(), "weight");
  const auto p = weight ? view(*weight) : std::span<const double>{};
  return run(scores, slopes, [&](auto f, auto out) { return pair_hinge(f, graded, p, out, n_threads); });
}

double pairs_by_gain(const In<double>& scores, const Index& rows, const Index& starts, const Index& turns,
                     const Index& blocks, const Index& queries, const In<double>& gain, const In<double>& discount,
                     const In<double>& share, Out<double>& slopes, int n_threads) {
  const Graded graded = graded_of(scores.size(), rows, starts, turns, blocks, queries, share);
  require_size(gain.size(), blocks.size() - 1, "gain");
  require_size(discount.size(), blocks.size() - 1, "discount");
  return run(scores, slopes,
             [&](auto f, auto out) { return gain_pairs(f, graded, view(gain), view(discount), out, n_threads); });
}

template <class Choose>
double by_table(const In<double>& scores, const Index& positives, const Index& negatives, Out<double>& slopes,
                const Choose& choose) {
  require_rows(view(positives), scores.size());
  require_rows(view(negatives), scores.size());
  require_size(positives.size() + negatives.size(), scores.size(), "positives and negatives");
  return run(scores, slopes,
             [&](auto f, auto out) { return choose(Tables(f, view(positives), view(negatives)), out); });
}

double by_fbeta(const In<double>& scores, const Index& positives, const Index& negatives, double beta,
                Out<double>& slopes) {
  require(positives.size() > 0 && beta > 0.0, "fbeta needs positives and a beta above 0");
  return by_table(scores, positives, negatives, slopes,
                  [beta](const Tables& tables, std::span<double> out) { return fbeta(tables, beta, out); });
}

double by_k(const In<double>& scores, const Index& positives, const Index& negatives, std::size_t k, double per,
            Out<double>& slopes) {
  require(k > 0 && k <= scores.size() && per > 0.0, "k must lie between 1 and the number of rows, per above 0");
  return by_table(scores, positives, negatives, slopes,
                  [k, per](const Tables& tables, std::span<double> out) { return at_k(tables, k, per, out); });
}

Ranked ranked_of(std::size_t m, const Index& rows, const Index& starts, const Index& turns, const In<double>& margin,
                 const In<double>& share) {
  require_size(margin.size(), rows.size(), "margin");
  const Sets sets = sets_of(m, rows, starts, turns, share);
  for (std::size_t q = 0; q + 1 < starts.size(); ++q)
    if (sets.size(q) == 0) require(false, "query " + std::to_string(q) + " is empty");
  return Ranked{sets, view(margin)};
}

double by_gain(const In<double>& scores, const Index& rows, const Index& starts, const Index& turns,
               const In<double>& margin, const In<double>& share, const In<double>& gain, const In<double>& discount,
               Out<double>& slopes, int n_threads) {
  const Ranked ranked = ranked_of(scores.size(), rows, starts, turns, margin, share);
  require_size(gain.size(), rows.size(), "gain");
  for (std::size_t q = 0; q + 1 < starts.size(); ++q)
    if (ranked.sets.size(q) > discount.size()) require(false, "discount is shorter than a query");
  return run(scores, slopes,
             [&](auto f, auto out) { return gain_loss(f, ranked, view(gain), view(discount), out, n_threads); });
}

double by_reciprocal_rank(const In<double>& scores, const Index& rows, const Index& starts, const Index& turns,
                          const In<double>& margin, const In<double>& share, const Index& n_relevant,
                          Out<double>& slopes, int n_threads) {
  const Ranked ranked = ranked_of(scores.size(), rows, starts, turns, margin, share);
  require_size(n_relevant.size(), starts.size() - 1, "n_relevant");
  for (std::size_t q = 0; q < n_relevant.size(); ++q) {
    const std::int64_t n = view(n_relevant)[q];
    require(n > 0 && n <= view(starts)[q + 1] - view(starts)[q], "each query needs a relevant document");
  }
  return run(scores, slopes,
             [&](auto f, auto out) { return reciprocal_rank_loss(f, ranked, view(n_relevant), out, n_threads); });
}

}  // namespace

void bind_sets(nb::module_& m) {
  m.def("pair_hinge", &pairs, "scores"_a, "rows"_a, "starts"_a, "turns"_a, "blocks"_a, "queries"_a, "share"_a,
        "weight"_a.none(), "slopes"_a, "n_threads"_a = 1,
        "sum_q share_q times the mean of p_i p_j max(0, 1 - (f_i - f_j)) over pairs of a higher and a lower grade.");
  m.def("gain_pairs", &pairs_by_gain, "scores"_a, "rows"_a, "starts"_a, "turns"_a, "blocks"_a, "queries"_a, "gain"_a,
        "discount"_a, "share"_a, "slopes"_a, "n_threads"_a = 1,
        "sum_q share_q times the sum of (g_i - g_j) (d_i - d_j) max(0, 1 - (f_i - f_j)); g and d are given by block.");
  m.def("fbeta", &by_fbeta, "scores"_a, "positives"_a, "negatives"_a, "beta"_a, "slopes"_a,
        "max over labelings of 1 - F_beta + 1/m times the difference of the scores.");
  m.def("at_k", &by_k, "scores"_a, "positives"_a, "negatives"_a, "k"_a, "per"_a, "slopes"_a,
        "The same for labelings with k positives and 1 - (true positives) / per.");
  m.def("gain_loss", &by_gain, "scores"_a, "rows"_a, "starts"_a, "turns"_a, "margin"_a, "share"_a, "gain"_a,
        "discount"_a, "slopes"_a, "n_threads"_a = 1,
        "sum_q share_q max over permutations of sum_i c_i (f_pi(i) - f_i) + (d_i - d_pi(i)) g_i.");
  m.def("reciprocal_rank_loss", &by_reciprocal_rank, "scores"_a, "rows"_a, "starts"_a, "turns"_a, "margin"_a, "share"_a,
        "n_relevant"_a, "slopes"_a, "n_threads"_a = 1,
        "sum_q share_q max over permutations of sum_i c_i (f_pi(i) - f_i) + 1 - 1 / rank of the first relevant one.");
}

}  // namespace bmrm::py
