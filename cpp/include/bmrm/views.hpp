// Non-owning views of a data matrix and of what goes with its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bmrm {

// Compressed rows: row i holds entries indptr[i] .. indptr[i+1] of (indices, values), columns increasing.
template <class Value, class Index>
struct Csr {
  std::size_t n_rows;
  std::size_t n_cols;
  const std::int64_t* indptr;
  const Index* indices;
  const Value* values;
  std::size_t n_entries() const { return static_cast<std::size_t>(indptr[n_rows] - indptr[0]); }
};

template <class Value>
struct Dense {
  std::size_t n_rows;
  std::size_t n_cols;
  const Value* values;
  std::size_t n_entries() const { return n_rows * n_cols; }
  const Value* row(std::size_t i) const { return values + i * n_cols; }
};

// What the loss needs beside the scores. An empty weight means: every row counts `scale`.
struct Rows {
  std::span<const double> y;
  std::span<const double> weight;
  double scale = 1.0;
  double at(std::size_t i) const { return weight.empty() ? scale : weight[i]; }
};

}  // namespace bmrm
