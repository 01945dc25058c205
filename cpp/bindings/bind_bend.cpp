// Second derivatives of losses with k scores for each row.
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "bmrm/kernel/block_factors.hpp"
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

using Blocks = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::unique_ptr<BlockFactors> block_factors(Blocks H, double ridge, int n_threads) {
  require_size(H.shape(2), H.shape(1), "H");
  nb::gil_scoped_release unlocked;
  return std::make_unique<BlockFactors>(H.data(), H.shape(0), H.shape(1), ridge, n_threads);
}

void solve(const BlockFactors& self, InMatrix<double> V, OutMatrix<double> out, int n_threads) {
  require_size(V.shape(0), self.size(), "V");
  require_size(V.shape(1), self.n_blocks(), "V");
  require_size(out.shape(0), self.size(), "out");
  require_size(out.shape(1), self.n_blocks(), "out");
  nb::gil_scoped_release unlocked;
  self.solve(V.data(), out.data(), n_threads);
}

}  // namespace

void bind_bend(nb::module_& m) {
  nb::class_<BlockFactors>(m, "BlockFactors", "Cholesky factors of k matrices of one size.")
      .def("solve", &solve, "V"_a, "out"_a, "n_threads"_a = 1, "Column c of out solves block c for column c of V.");
  m.def("block_factors", &block_factors, "H"_a, "ridge"_a, "n_threads"_a = 1,
        "Factors of k matrices, whose lower triangles are read; pivots are at least `ridge` times the diagonal.");
  m.def("softmax_shares", &shares, "F"_a, "out"_a, "n_threads"_a = 1, "out = exp(F) / sum exp(F), row by row.");
  m.def("softmax_bend", &bend, "shares"_a, "weight"_a, "G"_a, "n_threads"_a = 1,
        "G = weight shares (G - <shares, G>), row by row, in place.");
}

}  // namespace bmrm::py
