// Second derivatives of losses with k scores for each row.
#include "arrays.hpp"
#include "bmrm/kernel/softmax_bend.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

void shares(InMatrix<double> F, OutMatrix<double> out, int n_threads) {
  require_size(out.shape(0), F.shape(0), "out");
  require_size(out.shape(1), F.shape(1), "out");
  nb::gil_scoped_release unlocked;
  softmax_shares(F.data(), F.shape(0), F.shape(1), out.data(), n_threads);
}

void bend(InMatrix<double> shares, In<double> weight, OutMatrix<double> G, int n_threads) {
  require_size(weight.size(), shares.shape(0), "weight");
  require_size(G.shape(0), shares.shape(0), "G");
  require_size(G.shape(1), shares.shape(1), "G");
  nb::gil_scoped_release unlocked;
  softmax_bend(shares.data(), view(weight), shares.shape(1), G.data(), n_threads);
}

}  // namespace

void bind_bend(nb::module_& m) {
  m.def("softmax_shares", &shares, "F"_a, "out"_a, "n_threads"_a = 1, "out = exp(F) / sum exp(F), row by row.");
  m.def("softmax_bend", &bend, "shares"_a, "weight"_a, "G"_a, "n_threads"_a = 1,
        "G = weight shares (G - <shares, G>), row by row, in place.");
}

}  // namespace bmrm::py
