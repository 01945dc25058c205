// X w and X' g for dense and compressed rows, threaded, with sums that repeat bit for bit.
//
// X w: each row's sum stands alone. X' g takes one of two ways, chosen by the shape of the data only:
//   kRowBlocks     few columns: a fixed number of row blocks, each with its own gradient, added in order;
//   kColumnRanges  many columns: every thread owns a range of columns and walks all rows in order, so each
//                  column's sum is the serial one. Split pointers into the sorted rows are kept from call to
//                  call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bmrm/kernel/dense_tile.hpp"
#include "bmrm/kernel/sparse_tile.hpp"
#include "bmrm/pool.hpp"
#include "bmrm/views.hpp"

namespace bmrm {

// Calls body(column, value) for every stored entry of row i.
template <class Value, class Index, class Body>
BMRM_INLINE void each_entry(const Csr<Value, Index>& X, std::size_t i, const Body& body) {
  for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
    body(static_cast<std::size_t>(X.indices[p]), static_cast<double>(X.values[p]));
}
template <class Value, class Body>
BMRM_INLINE void each_entry(const Dense<Value>& X, std::size_t i, const Body& body) {
  for (std::size_t j = 0; j < X.n_cols; ++j) body(j, static_cast<double>(X.row(i)[j]));
}

inline constexpr std::size_t kEntriesPerTask = std::size_t{1} << 16;
inline constexpr std::size_t kMostBlocks = 256;
inline constexpr std::size_t kFewestBlocks = 4;  // below, row blocks could not feed many threads
// Passes so short that two threads are all that pays; column ranges would cost some of them to prepare.
inline constexpr std::size_t kShortPass = std::size_t{1} << 21;

enum class Transpose { kRowBlocks, kColumnRanges };

// How the rows are cut, from the shape alone: never from the number of threads. A block has at least
// `per_column` entries for each column, so that adding up the blocks' gradients costs little. Wider data is left to
// column ranges: good for dense rows, but of compressed rows every thread fetches much of what the others read.
struct Cut {
  std::size_t n_rows = 0;
  std::size_t n_blocks = 1;
  Transpose transpose = Transpose::kRowBlocks;

  Cut(std::size_t rows, std::size_t cols, std::size_t entries, std::size_t per_column) : n_rows(rows) {
    if (entries < 2 * kEntriesPerTask) return;
    const std::size_t most = std::min(kMostBlocks, entries / (per_column * cols));
    if (most >= (entries < kShortPass ? 2 : kFewestBlocks)) {
      n_blocks = std::min(most, entries / kEntriesPerTask);
    } else {
      transpose = Transpose::kColumnRanges;
    }
  }
  std::size_t begin(std::size_t block) const { return n_rows * block / n_blocks; }
  std::size_t end(std::size_t block) const { return n_rows * (block + 1) / n_blocks; }
};

// A pass shorter than about 0.1 ms is not worth waking another thread.
inline int threads_for(std::size_t entries, int n_threads) {
  return std::max(1,
                  std::min<int>(n_threads, static_cast<int>(std::min<std::size_t>(entries / kEntriesPerTask, 1024))));
}

template <class Value, class Index>
void row_dots(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* w, double* f) {
  tile::dots(X, begin, end, w, f);
}
template <class Value>
void row_dots(const Dense<Value>& X, std::size_t begin, std::size_t end, const double* w, double* f) {
  tile::dots(X.row(begin), end - begin, X.n_cols, w, f);
}

template <class Value, class Index>
void row_axpys(const Csr<Value, Index>& X, std::size_t begin, std::size_t end, const double* l, double* g) {
  tile::axpys(X, begin, end, l, g);
}
template <class Value>
void row_axpys(const Dense<Value>& X, std::size_t begin, std::size_t end, const double* l, double* g) {
  tile::axpys(X.row(begin), end - begin, X.n_cols, 0, X.n_cols, l, g);
}

// Calls body(begin, end) on tasks of whole rows.
template <class Matrix, class Body>
void each_row_task(const Matrix& X, int n_threads, const Body& body) {
  const std::size_t n_tasks = std::clamp<std::size_t>(X.n_entries() / kEntriesPerTask, 1, X.n_rows ? X.n_rows : 1);
  parallel_for(n_tasks, threads_for(X.n_entries(), n_threads),
               [&](std::size_t k) { body(X.n_rows * k / n_tasks, X.n_rows * (k + 1) / n_tasks); });
}

// The sum of the squares of n numbers, by tasks of fixed size that are added in order.
template <class Value>
double square_sum(const Value* x, std::size_t n, int n_threads) {
  const std::size_t n_tasks = (n + kEntriesPerTask - 1) / kEntriesPerTask;
  std::vector<double> parts(n_tasks);
  parallel_for(n_tasks, n_threads, [&](std::size_t k) {
    constexpr std::size_t kSums = 8;
    const std::size_t end = std::min(n, (k + 1) * kEntriesPerTask);
    double s[kSums] = {};
    std::size_t p = k * kEntriesPerTask;
    for (; p + kSums <= end; p += kSums)
      for (std::size_t i = 0; i < kSums; ++i) s[i] += static_cast<double>(x[p + i]) * static_cast<double>(x[p + i]);
    for (; p < end; ++p) s[0] += static_cast<double>(x[p]) * static_cast<double>(x[p]);
    for (const double one : s) parts[k] += one;
  });
  double sum = 0.0;
  for (const double part : parts) sum += part;
  return sum;
}

// f = X w
template <class Matrix>
void dot(const Matrix& X, const double* w, double* f, int n_threads) {
  each_row_task(X, n_threads, [&](std::size_t begin, std::size_t end) { row_dots(X, begin, end, w, f + begin); });
}

// Where each row enters each column range; made once for a given number of ranges.
template <class Value, class Index>
class ColumnSplit {
 public:
  void prepare(const Csr<Value, Index>& X, std::size_t n_ranges) {
    if (n_ranges == 1 || boundaries_.size() == n_ranges + 1) return;
    boundaries_ = equal_boundaries(X, n_ranges);
    splits_.assign((n_ranges - 1) * X.n_rows, 0);
    for (std::size_t i = 0; i < X.n_rows; ++i) {
      const Index* row_end = X.indices + X.indptr[i + 1];
      const Index* from = X.indices + X.indptr[i];
      for (std::size_t r = 1; r < n_ranges; ++r) {
        from = std::lower_bound(from, row_end, static_cast<Index>(boundaries_[r]));
        splits_[(r - 1) * X.n_rows + i] = from - X.indices;
      }
    }
  }
  std::int64_t begin(const Csr<Value, Index>& X, std::size_t i, std::size_t r) const {
    return r == 0 ? X.indptr[i] : splits_[(r - 1) * X.n_rows + i];
  }
  std::int64_t end(const Csr<Value, Index>& X, std::size_t i, std::size_t r, std::size_t n_ranges) const {
    return r + 1 == n_ranges ? X.indptr[i + 1] : splits_[r * X.n_rows + i];
  }

 private:
  // Boundaries with about equally many entries between them, from a sample of the entries.
  static std::vector<std::size_t> equal_boundaries(const Csr<Value, Index>& X, std::size_t n_ranges) {
    const std::size_t n = X.n_entries();
    const std::size_t step = std::max<std::size_t>(1, n / 20000);
    std::vector<Index> sample;
    for (std::size_t p = step / 2; p < n; p += step) sample.push_back(X.indices[p]);
    std::sort(sample.begin(), sample.end());
    std::vector<std::size_t> boundaries(n_ranges + 1, 0);
    for (std::size_t r = 1; r < n_ranges; ++r)
      boundaries[r] = sample.empty() ? 0 : static_cast<std::size_t>(sample[sample.size() * r / n_ranges]);
    boundaries[n_ranges] = X.n_cols;
    return boundaries;
  }

  std::vector<std::size_t> boundaries_;
  std::vector<std::int64_t> splits_;
};

inline constexpr std::size_t kCompressedPerColumn = 16;
inline constexpr std::size_t kDensePerColumn = 64;

// g = X' l by fixed row blocks, each with its own gradient, added in the order of the blocks.
template <class Body>
void sum_blocks(const Cut& cut, std::size_t n_cols, std::vector<double>& scratch, double* g, int n_threads,
                const Body& body) {
  const std::size_t stride = (n_cols + 31) / 16 * 16;  // two threads never write to neighboring cache lines
  scratch.resize((cut.n_blocks - 1) * stride);
  const auto own = [&](std::size_t k) { return k == 0 ? g : scratch.data() + (k - 1) * stride; };
  parallel_for(cut.n_blocks, n_threads, [&](std::size_t k) {
    std::fill(own(k), own(k) + n_cols, 0.0);
    body(k, own(k));
  });
  const std::size_t n_ranges = cut.n_blocks * n_cols / kEntriesPerTask + 1;
  parallel_for(n_ranges, n_ranges < 4 ? 1 : n_threads, [&](std::size_t r) {
    const std::size_t begin = n_cols * r / n_ranges / 8 * 8;
    const std::size_t end = r + 1 == n_ranges ? n_cols : n_cols * (r + 1) / n_ranges / 8 * 8;
    for (std::size_t k = 1; k < cut.n_blocks; ++k)
      for (std::size_t j = begin; j < end; ++j) g[j] += own(k)[j];
  });
}

// Rows are walked in chunks so that the pool can look for Ctrl-C in between.
template <class Value, class Index>
void column_ranges(const Csr<Value, Index>& X, ColumnSplit<Value, Index>& split, const double* l, double* g,
                   int n_threads) {
  std::fill(g, g + X.n_cols, 0.0);
  const auto n_ranges = static_cast<std::size_t>(threads_for(X.n_entries(), n_threads));
  split.prepare(X, n_ranges);
  const std::size_t n_chunks = std::max<std::size_t>(1, X.n_entries() / (kEntriesPerTask * 64));
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const std::size_t begin = X.n_rows * chunk / n_chunks, end = X.n_rows * (chunk + 1) / n_chunks;
    parallel_for(n_ranges, n_threads, [&](std::size_t r) {
      tile::scatter_rows(
          X, begin, end, l + begin, [&](std::size_t i) { return split.begin(X, i, r); },
          [&](std::size_t i) { return split.end(X, i, r, n_ranges); }, g);
    });
  }
}

template <class Value>
void column_ranges(const Dense<Value>& X, const double* l, double* g, int n_threads) {
  std::fill(g, g + X.n_cols, 0.0);
  const std::size_t n_tasks = std::clamp<std::size_t>(X.n_entries() / kEntriesPerTask, 1, X.n_cols / 64 + 1);
  parallel_for(n_tasks, threads_for(X.n_entries(), n_threads), [&](std::size_t k) {
    // Ranges in multiples of a cache line, so that two threads never write to the same one.
    const std::size_t begin = X.n_cols * k / n_tasks / 8 * 8;
    const std::size_t end = k + 1 == n_tasks ? X.n_cols : X.n_cols * (k + 1) / n_tasks / 8 * 8;
    tile::axpys(X.values, X.n_rows, X.n_cols, begin, end, l, g);
  });
}

}  // namespace bmrm
