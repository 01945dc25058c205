// The proximal map of all rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "bmrm/loss/list.hpp"

namespace bmrm {

// z, slopes and dslopes (may be null) of the proximal points of v; one q for all rows or one for each. The points
// of a few rows are written down side by side before they are stored: that loop compiles to vector code for losses
// without calls.
template <class L>
void prox_of_rows(const L& loss, std::span<const double> v, const double* y, std::span<const double> q, double* z,
                  double* slopes, double* dslopes) {
  constexpr std::size_t kStep = 128;
  double at[kStep], slope[kStep], bend[kStep];
  for (std::size_t first = 0; first < v.size(); first += kStep) {
    const std::size_t some = std::min(kStep, v.size() - first);
    const double *f = v.data() + first, *t = y + first;
    const auto look = [&](std::size_t k, double width) {
      const ProxPoint p = prox(loss, f[k], t[k], width);
      at[k] = p.z;
      slope[k] = p.slope;
      bend[k] = p.dslope;
    };
    if (q.size() == 1) {
      for (std::size_t k = 0; k < some; ++k) look(k, q[0]);
    } else {
      for (std::size_t k = 0; k < some; ++k) look(k, q[first + k]);
    }
    std::copy_n(at, some, z + first);
    std::copy_n(slope, some, slopes + first);
    if (dslopes != nullptr) std::copy_n(bend, some, dslopes + first);
  }
}

}  // namespace bmrm
