// Rows whose indices come in another order than the increasing one that the products rely on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "bmrm/pool.hpp"

namespace bmrm {

// Copies the rows with their indices in increasing order; false if an index occurs twice in a row.
template <class Value, class Index>
bool order_rows(std::span<const std::int64_t> indptr, const Index* indices, const Value* values, Index* to_indices,
                Value* to_values, int n_threads) {
  constexpr std::size_t kRows = 4096;
  const std::size_t m = indptr.size() - 1;
  std::atomic<bool> distinct{true};
  parallel_for((m + kRows - 1) / kRows, n_threads, [&](std::size_t block) {
    std::vector<std::pair<Index, Value>> row;
    for (std::size_t i = block * kRows; i < std::min(m, (block + 1) * kRows); ++i) {
      const std::int64_t begin = indptr[i], end = indptr[i + 1];
      if (std::is_sorted(indices + begin, indices + end, std::greater<>())) {
        std::reverse_copy(indices + begin, indices + end, to_indices + begin);
        std::reverse_copy(values + begin, values + end, to_values + begin);
      } else {
        row.clear();
        for (std::int64_t p = begin; p < end; ++p) row.emplace_back(indices[p], values[p]);
        std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < row.size(); ++k) {
          std::tie(to_indices[begin + std::int64_t(k)], to_values[begin + std::int64_t(k)]) = row[k];
        }
      }
      if (std::adjacent_find(to_indices + begin, to_indices + end) != to_indices + end) distinct = false;
    }
  });
  return distinct;
}

}  // namespace bmrm
