// Chains: scores of tokens and edges, losses, best labels, marginals.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "bmrm/structured/buffers.hpp"
#include "bmrm/structured/chain.hpp"
#include "bmrm/structured/emissions.hpp"
#include "bmrm/structured/long_vectors.hpp"

namespace nb = nanobind;

namespace bmrm::py {

using namespace nb::literals;

namespace {

using Starts = In<std::int64_t>;
using Labels = In<std::int32_t>;
using Values = std::optional<In<double>>;

void require_pointers(const Starts& starts, std::size_t end, const char* name) {
  require_rising(view(starts), end, name);
}

// The numbers of scores and of weights must not overflow: arrays are compared with them.
void require_tables(std::size_t n_tables, std::size_t k, bool of_pairs, const char* of) {
  require(k > 0 && k < std::size_t{1} << 31, "k must lie between 1 and 2^31 - 1, got " + std::to_string(k));
  const std::size_t size = (k + kLanes) * (of_pairs ? k : 1);
  require(n_tables <= (std::size_t{1} << 63) / size,
          std::to_string(n_tables) + " " + of + " and " + std::to_string(k) + " labels have more than 2^63 numbers");
}

void require_below(std::span<const std::int32_t> ids, std::size_t end, const char* name) {
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [end](std::int32_t i) { return i < 0 || std::size_t(i) >= end; });
  if (bad != ids.end())
    require(false, std::string(name) + " " + std::to_string(*bad) + " lies outside of 0 .. " + std::to_string(end - 1));
}

chain::Tokens tokens_of(const Starts& indptr, const Labels& attributes, const Values& values,
                        std::size_t n_attributes) {
  require_pointers(indptr, attributes.size(), "indptr");
  require_below(view(attributes), n_attributes, "attribute");
  if (values) require_size(values->size(), attributes.size(), "values");
  return {view(indptr), view(attributes), values ? view(*values) : std::span<const double>{}};
}

std::unique_ptr<chain::Emissions> emissions(const Starts& indptr, const Labels& attributes, const Values& values,
                                            const Starts& starts, const std::optional<Labels>& labels, std::size_t k) {
  require_tables(indptr.size(), k, false, "tokens");
  require_tables(starts.size(), k, false, "attributes");
  require(starts.size() > 0, "there must be starts");
  const chain::Tokens tokens = tokens_of(indptr, attributes, values, starts.size() - 1);
  const std::size_t n = labels ? labels->size() : (starts.size() - 1) * k;
  require_pointers(starts, n, "starts");
  for (std::size_t a = 0; a + 1 < starts.size(); ++a) {
    const std::int64_t size = view(starts)[a + 1] - view(starts)[a];
    require(labels ? size <= static_cast<std::int64_t>(k) : size == static_cast<std::int64_t>(k),
            "an attribute has another number of weights than of labels");
  }
  if (labels) require_below(view(*labels), k, "label");
  nb::gil_scoped_release unlocked;
  return std::make_unique<chain::Emissions>(tokens, view(starts),
                                            labels ? view(*labels) : std::span<const std::int32_t>{}, k);
}

void emission_scores(const chain::Emissions& self, const In<double>& w, Out<double>& out, int n_threads) {
  require_size(w.size(), self.n_weights(), "w");
  require_size(out.size(), self.n_tokens() * self.row(), "out");
  nb::gil_scoped_release unlocked;
  self.scores(w.data(), out.data(), n_threads);
}

void emission_gradient(chain::Emissions& self, const In<double>& slopes, Out<double>& out, int n_threads) {
  require_size(out.size(), self.n_weights(), "out");
  require_size(slopes.size(), self.n_tokens() * self.row(), "slopes");
  nb::gil_scoped_release unlocked;
  self.gradient(slopes.data(), out.data(), n_threads);
}

std::unique_ptr<chain::EdgeScores> edge_scores(const Starts& indptr, const Labels& attributes, const Values& values,
                                               std::size_t n_attributes, std::size_t k) {
  require_tables(n_attributes, k, true, "attributes");
  require_tables(indptr.size(), k, true, "edges");
  const chain::Tokens edges = tokens_of(indptr, attributes, values, n_attributes);
  nb::gil_scoped_release unlocked;
  return std::make_unique<chain::EdgeScores>(edges, n_attributes, k);
}

void scores_of_edges(const chain::EdgeScores& self, const In<double>& w, Out<double>& out, int n_threads) {
  require_size(w.size(), self.n_weights(), "w");
  require_size(out.size(), self.n_edges() * self.table(), "out");
  nb::gil_scoped_release unlocked;
  self.scores(w.data(), out.data(), n_threads);
}

void gradient_of_edges(const chain::EdgeScores& self, const In<double>& slopes, Out<double>& out, int n_threads) {
  require_size(out.size(), self.n_weights(), "out");
  require_size(slopes.size(), self.n_edges() * self.table(), "slopes");
  nb::gil_scoped_release unlocked;
  self.gradient(slopes.data(), out.data(), n_threads);
}

chain::Layout layout_of(const Starts& starts, std::size_t k, bool pairs, std::size_t n_scores) {
  require(k > 0 && starts.size() > 1 && view(starts).front() == 0, "there must be labels and sequences, starts from 0");
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    if (view(starts)[i] >= view(starts)[i + 1]) require(false, "sequence " + std::to_string(i) + " is empty");
  const chain::Layout layout{k, view(starts), pairs};
  // So that the size of the layout does not overflow: each token and each pair of labels has a score.
  require(k <= n_scores / k && layout.n_tokens() <= n_scores,
          "scores has length " + std::to_string(n_scores) + ", too short for " + std::to_string(k) + " labels and " +
              std::to_string(layout.n_tokens()) + " tokens");
  require_size(n_scores, layout.size(), "scores");
  return layout;
}

chain::Scores scores_of(const In<double>& f, const std::optional<In<double>>& d, double t) {
  if (d) require_size(d->size(), f.size(), "d");
  return {f.data(), d ? d->data() : nullptr, t};
}

void require_labels(const chain::Layout& layout, const Labels& y, const In<double>& p) {
  require_size(y.size(), layout.n_tokens(), "y");
  require_size(p.size(), layout.n_sequences(), "p");
  require_below(view(y), layout.k, "label");
}

std::pair<double, double> log_loss(const Starts& starts, std::size_t k, bool pairs, const Labels& y,
                                   const In<double>& p, const In<double>& f, const std::optional<In<double>>& d,
                                   double t, Out<double>& slopes, int n_threads) {
  const chain::Layout layout = layout_of(starts, k, pairs, f.size());
  require_labels(layout, y, p);
  require_size(slopes.size(), f.size(), "slopes");
  const chain::Scores scores = scores_of(f, d, t);
  nb::gil_scoped_release unlocked;
  const auto [value, slope] = chain::log_loss(layout, view(y), view(p), scores, view(slopes), n_threads);
  return {value, slope};
}

chain::Costs costs_of(const chain::Layout& layout, const In<double>& costs, double each) {
  require_size(costs.size(), layout.k * layout.k, "costs");
  return {costs.data(), each};
}

std::pair<double, double> hinge_loss(const Starts& starts, std::size_t k, bool pairs, const Labels& y,
                                     const In<double>& p, const In<double>& costs, double each, const In<double>& f,
                                     const std::optional<In<double>>& d, double t, Out<double>& slopes, int n_threads) {
  const chain::Layout layout = layout_of(starts, k, pairs, f.size());
  require_labels(layout, y, p);
  require_size(slopes.size(), f.size(), "slopes");
  const chain::Costs cost = costs_of(layout, costs, each);
  const chain::Scores scores = scores_of(f, d, t);
  nb::gil_scoped_release unlocked;
  const auto [value, slope] = chain::hinge_loss(layout, view(y), view(p), cost, scores, view(slopes), n_threads);
  return {value, slope};
}

void best(const Starts& starts, std::size_t k, bool pairs, const In<double>& f, Out<std::int32_t>& out, int n_threads) {
  const chain::Layout layout = layout_of(starts, k, pairs, f.size());
  require_size(out.size(), layout.n_tokens(), "out");
  nb::gil_scoped_release unlocked;
  chain::best_labels(layout, {}, {nullptr, 0.0}, {f.data(), nullptr, 0.0}, view(out), n_threads);
}

void worst(const Starts& starts, std::size_t k, bool pairs, const Labels& y, const In<double>& costs, double each,
           const In<double>& f, Out<std::int32_t>& out, int n_threads) {
  const chain::Layout layout = layout_of(starts, k, pairs, f.size());
  require_size(y.size(), layout.n_tokens(), "y");
  require_size(out.size(), layout.n_tokens(), "out");
  require_below(view(y), k, "label");
  const chain::Costs cost = costs_of(layout, costs, each);
  nb::gil_scoped_release unlocked;
  chain::best_labels(layout, view(y), cost, {f.data(), nullptr, 0.0}, view(out), n_threads);
}

void marginals(const Starts& starts, std::size_t k, bool pairs, const In<double>& f, Out<double>& out,
               Out<double>& log_z, int n_threads) {
  const chain::Layout layout = layout_of(starts, k, pairs, f.size());
  require_size(out.size(), layout.transitions(), "out");
  require_size(log_z.size(), layout.n_sequences(), "log_z");
  nb::gil_scoped_release unlocked;
  chain::marginals_of(layout, {f.data(), nullptr, 0.0}, view(out), view(log_z), n_threads);
}

// An array that gives its memory back to the buffers it is from, which live as long as it does.
auto taken(const std::shared_ptr<Buffers>& self) {
  struct Lease {
    std::shared_ptr<Buffers> from;
    std::unique_ptr<double[]> buffer;
  };
  auto* lease = new Lease{self, self->take()};
  nb::capsule owner(lease, [](void* p) noexcept {
    std::unique_ptr<Lease> ended(static_cast<Lease*>(p));
    ended->from->give_back(std::move(ended->buffer));
  });
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(lease->buffer.get(), {self->size()}, owner);
}

void combined(const In<double>& f, const In<double>& d, double t, Out<double>& out, int n_threads) {
  require_size(d.size(), f.size(), "d");
  require_size(out.size(), f.size(), "out");
  nb::gil_scoped_release unlocked;
  combine(f.data(), d.data(), t, f.size(), out.data(), n_threads);
}

std::pair<double, double> inners(const In<double>& a, const In<double>& b, int n_threads) {
  require_size(b.size(), a.size(), "b");
  nb::gil_scoped_release unlocked;
  return inner_and_size(a.data(), b.data(), a.size(), n_threads);
}

}  // namespace

void bind_structured_chain(nb::module_& m) {
  nb::class_<chain::Emissions>(m, "ChainEmissions", "Scores of tokens, tokens x padded labels, from their attributes.")
      .def("scores", &emission_scores, "w"_a, "out"_a, "n_threads"_a = 1, "out[t, c] = sum_a x[t, a] w[a, c].")
      .def("gradient", &emission_gradient, "slopes"_a, "out"_a, "n_threads"_a = 1,
           "out[a, c] = sum_t x[t, a] slopes[t, c].");
  m.def("chain_emissions", &emissions, "indptr"_a, "attributes"_a, "values"_a.none(), "starts"_a, "labels"_a.none(),
        "k"_a, "Attribute a has the weights starts[a] to starts[a + 1], for the labels given there, or for all k.");
  nb::class_<chain::EdgeScores>(m, "ChainEdges", "Scores of edges, edges x k x padded labels, from their attributes.")
      .def("scores", &scores_of_edges, "w"_a, "out"_a, "n_threads"_a = 1, "out[e, i, j] = sum_a x[e, a] w[a, i, j].")
      .def("gradient", &gradient_of_edges, "slopes"_a, "out"_a, "n_threads"_a = 1,
           "out[a, i, j] = sum_e x[e, a] slopes[e, i, j].");
  m.def("chain_edges", &edge_scores, "indptr"_a, "attributes"_a, "values"_a.none(), "n_attributes"_a, "k"_a,
        "Edges lead from each token to the next of its sequence; all have weights for k x k labels.");
  m.def("chain_log", &log_loss, "starts"_a, "k"_a, "pairs"_a, "y"_a, "p"_a, "f"_a, "d"_a.none(), "t"_a, "slopes"_a,
        "n_threads"_a = 1, "sum_i p_i (log Z - score of y) at scores f + t d, and the slope along d.");
  m.def("chain_hinge", &hinge_loss, "starts"_a, "k"_a, "pairs"_a, "y"_a, "p"_a, "costs"_a, "each"_a, "f"_a,
        "d"_a.none(), "t"_a, "slopes"_a, "n_threads"_a = 1,
        "sum_i p_i max over labels of costs + score - score of y, or, where each > 0, of their product plus costs.");
  m.def("chain_best", &best, "starts"_a, "k"_a, "pairs"_a, "f"_a, "out"_a, "n_threads"_a = 1,
        "The labels with the largest score.");
  m.def("chain_worst", &worst, "starts"_a, "k"_a, "pairs"_a, "y"_a, "costs"_a, "each"_a, "f"_a, "out"_a,
        "n_threads"_a = 1, "The labels with the largest hinge loss.");
  m.def("chain_marginals", &marginals, "starts"_a, "k"_a, "pairs"_a, "f"_a, "out"_a, "log_z"_a, "n_threads"_a = 1,
        "The marginals of tokens, padded, and log Z of each sequence.");
  nb::class_<Buffers>(m, "Buffers", "Arrays of n numbers, uninitialized, whose memory is used again.")
      .def(nb::new_([](std::size_t n) { return std::make_shared<Buffers>(n); }), "n"_a)
      .def("take", &taken, "Return an array.");
  m.def("combined", &combined, "f"_a, "d"_a, "t"_a, "out"_a, "n_threads"_a = 1, "out = f + t d, by several threads.");
  m.def("inner_and_size", &inners, "a"_a, "b"_a, "n_threads"_a = 1, "sum_i a_i b_i and sum_i |a_i b_i|, likewise.");
}

}  // namespace bmrm::py
