// H = X_W' D X_W for a set W of columns, read row by row: no copy of the data by columns is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/product.hpp"

namespace bmrm {

// The columns of W, increasing; the constant column (number n_cols) may come last.
struct Selection {
  std::span<const std::int64_t> columns;
  std::vector<std::int32_t> place;  // of each column of X in W, -1 if it is not there
  bool constant = false;

  Selection(std::span<const std::int64_t> chosen, std::size_t n_cols) : columns(chosen), place(n_cols, -1) {
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (static_cast<std::size_t>(chosen[k]) < n_cols) {
        place[static_cast<std::size_t>(chosen[k])] = static_cast<std::int32_t>(k);
      } else {
        constant = true;
      }
    }
  }
  std::size_t size() const { return columns.size(); }
};

// Adds the upper triangle's share of rows [begin, end).
template <class Value, class Index>
void add_gram(const Csr<Value, Index>& X, const Selection& W, const double* D, std::size_t begin, std::size_t end,
              double* H) {
  const std::size_t k = W.size();
  std::vector<std::size_t> places(k);
  std::vector<double> values(k);
  for (std::size_t i = begin; i < end; ++i) {
    if (D[i] == 0.0) continue;
    std::size_t n = 0;
    for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      const std::int32_t place = W.place[static_cast<std::size_t>(X.indices[p])];
      if (place < 0) continue;
      places[n] = static_cast<std::size_t>(place);
      values[n++] = static_cast<double>(X.values[p]);
    }
    if (W.constant) {
      places[n] = k - 1;
      values[n++] = 1.0;
    }
    for (std::size_t a = 0; a < n; ++a) {
      double* row = H + places[a] * k;
      const double scaled = D[i] * values[a];
      for (std::size_t b = a; b < n; ++b) row[places[b]] += scaled * values[b];
    }
  }
}

BMRM_CLONES inline void add_outer(const double* const* rows, const double* const* scaled, std::size_t k, double* H) {
  for (std::size_t a = 0; a < k; ++a) {
    double* row = H + a * k;
    const double s0 = scaled[0][a], s1 = scaled[1][a], s2 = scaled[2][a], s3 = scaled[3][a];
    for (std::size_t b = a; b < k; ++b)
      row[b] += (s0 * rows[0][b] + s1 * rows[1][b]) + (s2 * rows[2][b] + s3 * rows[3][b]);
  }
}

// Four rows at a time, so that H is read a quarter as often.
template <class Value>
void add_gram(const Dense<Value>& X, const Selection& W, const double* D, std::size_t begin, std::size_t end,
              double* H) {
  const std::size_t k = W.size();
  std::vector<double> kept(8 * k);
  const double *rows[4], *scaled[4];
  for (std::size_t r = 0; r < 4; ++r) {
    rows[r] = kept.data() + r * k;
    scaled[r] = kept.data() + (4 + r) * k;
  }
  for (std::size_t i = begin; i < end; i += 4) {
    for (std::size_t r = 0; r < 4; ++r) {
      const bool there = i + r < end;
      for (std::size_t a = 0; a < k; ++a) {
        const auto j = static_cast<std::size_t>(W.columns[a]);
        const double x = !there ? 0.0 : (j < X.n_cols ? static_cast<double>(X.row(i + r)[j]) : 1.0);
        kept[r * k + a] = x;
        kept[(4 + r) * k + a] = there ? D[i + r] * x : 0.0;
      }
    }
    add_outer(rows, scaled, k, H);
  }
}

// Row blocks with a matrix of their own each, as many as the shape allows, added in order.
template <class View>
void selected_gram(const View& X, std::span<const std::int64_t> columns, const double* D, double* H, int n_threads) {
  const Selection W(columns, X.n_cols);
  const std::size_t k = W.size();
  const Cut cut(X.n_rows, std::max<std::size_t>(1, k * k), X.n_entries(), 16);
  const std::size_t n_blocks = std::min<std::size_t>(8, cut.transpose == Transpose::kRowBlocks ? cut.n_blocks : 1);
  std::vector<std::vector<double>> own(n_blocks - 1, std::vector<double>(k * k, 0.0));
  std::fill(H, H + k * k, 0.0);
  const std::size_t n_chunks = std::max<std::size_t>(1, X.n_entries() / (n_blocks * kEntriesPerTask));
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {  // short enough for Ctrl-C to be seen in between
    parallel_for(n_blocks, threads_for(X.n_entries(), n_threads), [&](std::size_t b) {
      const std::size_t part = b * n_chunks + chunk, parts = n_blocks * n_chunks;
      add_gram(X, W, D, X.n_rows * part / parts, X.n_rows * (part + 1) / parts, b == 0 ? H : own[b - 1].data());
    });
  }
  for (const auto& block : own)
    for (std::size_t p = 0; p < k * k; ++p) H[p] += block[p];
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < a; ++b) H[a * k + b] = H[b * k + a];
}

// How many entries the rows have in W, and how many pairs of entries: what an epoch of coordinate descent costs, and
// what H costs. Estimated from every eighth row where there are many.
struct SelectedSize {
  double entries = 0.0, pairs = 0.0;
};

template <class Value, class Index>
SelectedSize selected_size(const Csr<Value, Index>& X, std::span<const std::int64_t> columns) {
  const Selection W(columns, X.n_cols);
  const std::size_t step = X.n_rows > 4096 ? 8 : 1;
  SelectedSize sum;
  for (std::size_t i = 0; i < X.n_rows; i += step) {
    double n = W.constant;
    for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
      n += W.place[static_cast<std::size_t>(X.indices[p])] >= 0;
    sum.entries += n;
    sum.pairs += 0.5 * n * (n + 1.0);
  }
  return {sum.entries * static_cast<double>(step), sum.pairs * static_cast<double>(step)};
}
template <class Value>
SelectedSize selected_size(const Dense<Value>& X, std::span<const std::int64_t> columns) {
  const auto m = static_cast<double>(X.n_rows), k = static_cast<double>(columns.size());
  constexpr double kSideBySide = 8.0;  // so many pairs of dense rows take the time of one of compressed rows
  return {m * k, 0.5 * m * k * (k + 1.0) / kSideBySide};
}

// squares[j] = sum_i weight_i x_ij^2 and the number of entries that are stored. No weights: ones.
template <class Value, class Index>
void column_sizes(const Csr<Value, Index>& X, const double* weight, double* squares, std::int64_t* counts,
                  int n_threads) {
  struct Size {
    double squares = 0.0;
    std::int64_t count = 0;
  };
  constexpr std::size_t kMost = 32, kPerColumn = 8;  // blocks, and entries for each column in a block
  const std::size_t affordable = X.n_entries() / (kPerColumn * std::max<std::size_t>(1, X.n_cols));
  const std::size_t n_blocks = std::clamp<std::size_t>(std::min(X.n_entries() >> 16, affordable), 1, kMost);
  std::vector<Size> sizes(n_blocks * X.n_cols);  // a column's two numbers lie side by side
  parallel_for(n_blocks, n_threads, [&](std::size_t k) {
    Size* own = sizes.data() + k * X.n_cols;
    for (std::size_t i = X.n_rows * k / n_blocks; i < X.n_rows * (k + 1) / n_blocks; ++i) {
      const double p = weight == nullptr ? 1.0 : weight[i];
      for (std::int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
        const auto x = static_cast<double>(X.values[e]);
        Size& column = own[X.indices[e]];
        column.squares += p * x * x;
        ++column.count;
      }
    }
  });
  std::fill(counts, counts + X.n_cols, std::int64_t{0});
  for (std::size_t k = 0; k < n_blocks; ++k)
    for (std::size_t j = 0; j < X.n_cols; ++j) {
      squares[j] += sizes[k * X.n_cols + j].squares;
      counts[j] += sizes[k * X.n_cols + j].count;
    }
}
template <class Value>
void column_sizes(const Dense<Value>& X, const double* weight, double* squares, std::int64_t* counts, int) {
  std::fill(counts, counts + X.n_cols, static_cast<std::int64_t>(X.n_rows));
  Patience patience;
  for (std::size_t i = 0; i < X.n_rows; ++i) {
    if (i % 1024 == 0) patience.check();
    const double p = weight == nullptr ? 1.0 : weight[i];
    for (std::size_t j = 0; j < X.n_cols; ++j) {
      const auto x = static_cast<double>(X.row(i)[j]);
      squares[j] += p * x * x;
    }
  }
}

}  // namespace bmrm
