// The rows of the proximal point method, and which of them changed.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bmrm/kernel/changes.hpp"
#include "bmrm/kernel/envelope.hpp"
#include "losses.hpp"

namespace bmrm::py {

using namespace nb::literals;

namespace {

using Numbers = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

std::pair<double, double> along(const AnyScalarLoss& loss, In<double> f, OptionalIn u, double t, In<double> center,
                                double q, In<double> y, OptionalIn weight, double scale, Out<double> z,
                                Out<double> slopes, Out<double> bends, int n_threads) {
  const std::size_t m = f.size();
  const Rows rows = rows_of(y, weight, scale, m);
  const auto direction = optional_view(u, m, "u");
  require_size(center.size(), m, "center");
  require_size(z.size(), m, "z");
  require_size(slopes.size(), m, "slopes");
  require_size(bends.size(), m, "bends");
  nb::gil_scoped_release unlocked;
  const SmoothedRows out{view(z), view(slopes), view(bends)};
  const AlongSums sums = std::visit(
      [&](const auto& one) {
        return envelope_along(one, view(f), direction, t, view(center), q, rows, out, n_threads);
      },
      loss);
  return {sums.slope, sums.bend};
}

std::tuple<double, double, double, double, double> plane(const AnyScalarLoss& loss, In<double> z, In<double> slopes,
                                                         In<double> f, OptionalIn offset, In<double> y,
                                                         OptionalIn weight, double scale, Out<double> weighted,
                                                         int n_threads) {
  const std::size_t m = z.size();
  const Rows rows = rows_of(y, weight, scale, m);
  const auto shift = optional_view(offset, m, "offset");
  require_size(slopes.size(), m, "slopes");
  require_size(f.size(), m, "f");
  require_size(weighted.size(), m, "weighted");
  nb::gil_scoped_release unlocked;
  const PlaneSums sums = std::visit(
      [&](const auto& one) {
        return envelope_plane(one, view(z), view(slopes), view(f), shift, rows, view(weighted), n_threads);
      },
      loss);
  return {sums.loss, sums.cross, sums.size, sums.total, sums.moved};
}

Numbers nonzero_of(In<double> c) { return give(nonzero(view(c))); }

std::pair<double, Numbers> changes_of(In<double> c, In<double> before, double same) {
  require_size(before.size(), c.size(), "before");
  Changes found = changes(view(c), view(before), same);
  return {found.times, give(std::move(found.rows))};
}

}  // namespace

void bind_envelope(nb::module_& m) {
  m.def("envelope_along", &along, "loss"_a, "f"_a, "u"_a.none(), "t"_a, "center"_a, "q"_a, "y"_a, "weight"_a.none(),
        "scale"_a, "z"_a, "slopes"_a, "bends"_a, "n_threads"_a,
        "The rows of the envelope of width q around the slopes `center`, at the scores f + t u.\n\n"
        "Returns the weighted first and second derivative in t, 0 without u.");
  m.def(
      "envelope_plane", &plane, "loss"_a, "z"_a, "slopes"_a, "f"_a, "offset"_a.none(), "y"_a, "weight"_a.none(),
      "scale"_a, "weighted"_a, "n_threads"_a,
      "The slopes times the weights, and weighted sums over the rows: of l(z), of slope (z - offset) and its size, of\n"
      "the slopes, and of slope (f - z).");
  m.def("nonzero", &nonzero_of, "c"_a, "The places of the numbers that are not 0.");
  m.def("changes", &changes_of, "c"_a, "before"_a, "same"_a,
        "A factor by which c has changed somewhere, and the places where |c - factor before| > same c.\n\n"
        "The factor is 0 where c and before are nowhere both above 0.");
}

}  // namespace bmrm::py
