// What the binding files of matrices and of losses share: optional arrays and row data.
#pragma once

#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "bmrm/loss/list.hpp"
#include "bmrm/views.hpp"

namespace bmrm::py {

using OptionalIn = std::optional<In<double>>;

inline std::span<const double> optional_view(const OptionalIn& array, std::size_t n, const char* name) {
  if (!array) return {};
  require_size(array->size(), n, name);
  return view(*array);
}

inline Rows rows_of(const In<double>& y, const OptionalIn& weight, double scale, std::size_t n) {
  require_size(y.size(), n, "y");
  return {view(y), optional_view(weight, n, "weight"), scale};
}

}  // namespace bmrm::py
