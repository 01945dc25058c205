// A data matrix behind one interface: what the risks may ask of it, whatever its layout and number types.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "bmrm/kernel/checks.hpp"
#include "bmrm/kernel/columns.hpp"
#include "bmrm/kernel/curvature.hpp"
#include "bmrm/kernel/evaluate.hpp"
#include "bmrm/kernel/product.hpp"
#include "bmrm/kernel/selected_gram.hpp"
#include "bmrm/kernel/wide.hpp"

namespace bmrm {

struct Position {
  std::int64_t row;
  std::int64_t column;
};

using AnyView = std::variant<Csr<float, std::int32_t>, Csr<float, std::int64_t>, Csr<double, std::int32_t>,
                             Csr<double, std::int64_t>, Dense<float>, Dense<double>>;

class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual std::size_t n_rows() const = 0;
  virtual std::size_t n_cols() const = 0;
  virtual std::size_t n_entries() const = 0;
  virtual bool fuses() const = 0;  // one pass for products and loss is the faster way here
  // The most additions on the way of one row's term into an entry of X'l, or of the k columns of X'L.
  virtual std::size_t sum_depth(std::size_t k) const = 0;
  virtual void dot(const double* w, double* f, int n_threads) const = 0;
  virtual void tdot(const double* l, double* g, int n_threads) = 0;
  // The same for k scores of each row: W (d x k), F and L (m x k).
  virtual void dot_wide(const double* W, std::size_t k, double* F, int n_threads) const = 0;
  virtual void tdot_wide(const double* L, std::size_t k, double* G, int n_threads) = 0;
  virtual void dot_rows(std::span<const std::int64_t> rows, const double* w, double* f, int n_threads) const = 0;
  // H = sum over rows[k] of c[k] x x', the lower triangle; g = sum over all rows of c[i] x_i^2, by columns.
  virtual void gram(std::span<const std::int64_t> rows, const double* c, double* H, int n_threads) = 0;
  virtual void squares(const double* c, double* g, int n_threads) = 0;
  virtual void row_norms(double* squared, int n_threads) const = 0;
  virtual double square_sum(int n_threads) const = 0;  // of all entries
  virtual LossSum evaluate(const AnyScalarLoss& loss, const double* w, const Shift& shift, const Rows& rows, double* f,
                           double* l, double* g, int n_threads) = 0;
  virtual std::optional<Position> first_nonfinite(int n_threads) const = 0;
  virtual AnyView view() const = 0;  // for methods that take rows one at a time
  virtual void selected_gram(std::span<const std::int64_t> columns, const double* D, double* H,
                             int n_threads) const = 0;
  virtual SelectedSize selected_size(std::span<const std::int64_t> columns) const = 0;
  virtual void column_sizes(const double* weight, double* squares, std::int64_t* counts, int n_threads) const = 0;
  virtual std::unique_ptr<Columns> columns() const = 0;
};

template <class View>
class MatrixOf : public Matrix {
 public:
  MatrixOf(View view, std::size_t bytes_per_entry, std::size_t per_column)
      : X_(view), cut_(view.n_rows, view.n_cols, view.n_entries(), per_column), bytes_per_entry_(bytes_per_entry) {}

  AnyView view() const override { return X_; }
  std::size_t n_rows() const override { return X_.n_rows; }
  std::size_t n_cols() const override { return X_.n_cols; }
  std::size_t n_entries() const override { return X_.n_entries(); }
  // Fusing pays while w and a block's gradient stay in the second-level cache together with the tile.
  bool fuses() const override { return by_row_blocks() && X_.n_cols <= (std::size_t{1} << 14); }

  std::size_t sum_depth(std::size_t k) const override {
    if (k > 1 || !by_row_blocks()) return X_.n_rows;
    return (X_.n_rows + cut_.n_blocks - 1) / cut_.n_blocks + cut_.n_blocks - 1;
  }

  void dot(const double* w, double* f, int n_threads) const override { bmrm::dot(X_, w, f, n_threads); }

  void tdot(const double* l, double* g, int n_threads) override {
    std::lock_guard lock(mutex_);  // scratch memory is kept from call to call
    if (!by_row_blocks()) return tdot_by_columns(l, g, n_threads);
    sum_blocks(cut_, X_.n_cols, scratch_, g, threads_for(X_.n_entries(), n_threads),
               [&](std::size_t k, double* own) { row_axpys(X_, cut_.begin(k), cut_.end(k), l + cut_.begin(k), own); });
  }

  void dot_wide(const double* W, std::size_t k, double* F, int n_threads) const override {
    bmrm::dot_wide(X_, W, k, F, n_threads);
  }
  void tdot_wide(const double* L, std::size_t k, double* G, int n_threads) override {
    bmrm::tdot_wide(X_, L, k, G, n_threads);
  }

  void dot_rows(std::span<const std::int64_t> rows, const double* w, double* f, int n_threads) const override {
    const std::size_t n = rows.size(), entries = X_.n_entries() / std::max<std::size_t>(1, X_.n_rows) * n;
    const std::size_t n_tasks = std::clamp<std::size_t>(entries / kEntriesPerTask, 1, n ? n : 1);
    parallel_for(n_tasks, threads_for(entries, n_threads), [&](std::size_t task) {
      for (std::size_t k = n * task / n_tasks; k < n * (task + 1) / n_tasks; ++k) {
        const auto i = static_cast<std::size_t>(rows[k]);
        row_dots(X_, i, i + 1, w, f + k);
      }
    });
  }

  void gram(std::span<const std::int64_t> rows, const double* c, double* H, int n_threads) override {
    std::lock_guard lock(mutex_);
    weighted_gram(X_, rows, c, scratch_, H, n_threads);
  }

  double square_sum(int n_threads) const override {
    return bmrm::square_sum(X_.values, X_.n_entries(), threads_for(X_.n_entries(), n_threads));
  }

  void squares(const double* c, double* g, int n_threads) override {
    std::lock_guard lock(mutex_);
    sum_blocks(cut_, X_.n_cols, scratch_, g, threads_for(X_.n_entries(), n_threads),
               [&](std::size_t k, double* own) { tile::squares(X_, cut_.begin(k), cut_.end(k), c, own); });
  }

  LossSum evaluate(const AnyScalarLoss& loss, const double* w, const Shift& shift, const Rows& rows, double* f,
                   double* l, double* g, int n_threads) override {
    if (fuses()) {
      std::lock_guard lock(mutex_);
      return fused(X_, cut_, bytes_per_entry_, loss, w, shift, rows, scratch_, f, l, g, n_threads);
    }
    each_row_task(X_, n_threads, [&](std::size_t begin, std::size_t end) {
      row_dots(X_, begin, end, w, f + begin);
      shift.apply(f, begin, end);
    });
    const LossSum sum = evaluate_loss(loss, {f, X_.n_rows}, rows, {l, X_.n_rows}, n_threads);
    tdot(l, g, n_threads);
    return sum;
  }

  void selected_gram(std::span<const std::int64_t> columns, const double* D, double* H, int n_threads) const override {
    bmrm::selected_gram(X_, columns, D, H, n_threads);
  }
  SelectedSize selected_size(std::span<const std::int64_t> columns) const override {
    return bmrm::selected_size(X_, columns);
  }
  void column_sizes(const double* weight, double* squares, std::int64_t* counts, int n_threads) const override {
    bmrm::column_sizes(X_, weight, squares, counts, n_threads);
  }
  std::unique_ptr<Columns> columns() const override {
    return std::make_unique<ColumnsOf<decltype(by_columns(X_))>>(by_columns(X_));
  }

 protected:
  virtual void tdot_by_columns(const double* l, double* g, int n_threads) = 0;

  bool by_row_blocks() const { return cut_.transpose == Transpose::kRowBlocks; }

  View X_;
  Cut cut_;
  std::size_t bytes_per_entry_;
  std::mutex mutex_;
  std::vector<double> scratch_;
};

// The first row, in order, for which `bad` returns a column; blocks of rows are searched in parallel, and only those
// that are not `fine` as a whole.
template <class Fine, class Bad>
std::optional<Position> first_row_where(std::size_t n_rows, std::size_t n_entries, int n_threads, const Fine& fine,
                                        const Bad& bad) {
  const std::size_t n_tasks = std::clamp<std::size_t>(n_entries / kEntriesPerTask, 1, n_rows ? n_rows : 1);
  std::vector<std::optional<Position>> found(n_tasks);
  parallel_for(n_tasks, threads_for(n_entries, n_threads), [&](std::size_t k) {
    const std::size_t begin = n_rows * k / n_tasks, end = n_rows * (k + 1) / n_tasks;
    if (fine(begin, end)) return;
    for (std::size_t i = begin; i < end && !found[k]; ++i)
      if (const std::int64_t column = bad(i); column >= 0) found[k] = Position{static_cast<std::int64_t>(i), column};
  });
  for (const auto& position : found)
    if (position) return position;
  return std::nullopt;
}

template <class Value>
class DenseMatrix final : public MatrixOf<Dense<Value>> {
 public:
  explicit DenseMatrix(Dense<Value> view) : MatrixOf<Dense<Value>>(view, sizeof(Value), kDensePerColumn) {}

  void row_norms(double* squared, int n_threads) const override {
    const auto& X = this->X_;
    parallel_for((X.n_rows + 255) / 256, threads_for(X.n_entries(), n_threads), [&](std::size_t k) {
      for (std::size_t i = k * 256; i < std::min(X.n_rows, (k + 1) * 256); ++i) {
        double s = 0.0;
        for (std::size_t j = 0; j < X.n_cols; ++j)
          s += static_cast<double>(X.row(i)[j]) * static_cast<double>(X.row(i)[j]);
        squared[i] = s;
      }
    });
  }

  std::optional<Position> first_nonfinite(int n_threads) const override {
    const auto& X = this->X_;
    const auto fine = [&](std::size_t begin, std::size_t end) {
      return all_finite(X.row(begin), (end - begin) * X.n_cols);
    };
    return first_row_where(X.n_rows, X.n_entries(), n_threads, fine, [&](std::size_t i) -> std::int64_t {
      for (std::size_t j = 0; j < X.n_cols; ++j)
        if (!std::isfinite(X.row(i)[j])) return static_cast<std::int64_t>(j);
      return -1;
    });
  }

 protected:
  void tdot_by_columns(const double* l, double* g, int n_threads) override { column_ranges(this->X_, l, g, n_threads); }
};

template <class Value, class Index>
class CsrMatrix final : public MatrixOf<Csr<Value, Index>> {
 public:
  explicit CsrMatrix(Csr<Value, Index> view)
      : MatrixOf<Csr<Value, Index>>(view, sizeof(Value) + sizeof(Index), kCompressedPerColumn) {}

  void row_norms(double* squared, int n_threads) const override {
    const auto& X = this->X_;
    each_row_task(X, n_threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        squared[i] = 0.0;
        for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
          squared[i] += static_cast<double>(X.values[p]) * static_cast<double>(X.values[p]);
      }
    });
  }

  std::optional<Position> first_nonfinite(int n_threads) const override {
    const auto& X = this->X_;
    const auto fine = [&](std::size_t begin, std::size_t end) {
      return all_finite(X.values + X.indptr[begin], static_cast<std::size_t>(X.indptr[end] - X.indptr[begin]));
    };
    return first_row_where(X.n_rows, X.n_entries(), n_threads, fine, [&](std::size_t i) -> std::int64_t {
      for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
        if (!std::isfinite(X.values[p])) return static_cast<std::int64_t>(X.indices[p]);
      return -1;
    });
  }

  // Where G outgrows the second-level cache and L is no larger, gathering rows of L by columns of X is faster than
  // scattering into G; a copy of X by columns is made on first use and kept.
  void tdot_wide(const double* L, std::size_t k, double* G, int n_threads) override {
    const auto& X = this->X_;
    constexpr std::size_t kCached = std::size_t{1} << 16, kMostRows = std::size_t{1} << 31;
    if (X.n_cols * k <= kCached || X.n_rows > X.n_cols || X.n_rows >= kMostRows || mostly_zero(L, X.n_rows, k))
      return bmrm::tdot_wide(X, L, k, G, n_threads);
    std::unique_lock lock(this->mutex_);
    if (columns_.indptr.empty()) columns_ = by_columns(X);
    lock.unlock();
    const auto* rows = reinterpret_cast<const std::int32_t*>(columns_.rows.data());
    const Csr<Value, std::int32_t> transposed{X.n_cols, X.n_rows, columns_.indptr.data(), rows, columns_.values.data()};
    bmrm::dot_wide(transposed, L, k, G, n_threads);
  }

 protected:
  void tdot_by_columns(const double* l, double* g, int n_threads) override {
    column_ranges(this->X_, split_, l, g, n_threads);
  }

 private:
  ColumnSplit<Value, Index> split_;
  SparseColumns<Value> columns_;
};

// The first entry whose index lies outside [0, n_cols) (its column is the entry's place in `indices`); says
// also whether the indices of every row increase strictly.
template <class Index>
std::optional<Position> first_out_of_range(std::span<const std::int64_t> indptr, std::span<const Index> indices,
                                           std::int64_t n_cols, bool& sorted, int n_threads) {
  std::atomic<bool> increasing{true};
  const auto last = static_cast<Index>(std::min<std::int64_t>(n_cols - 1, std::numeric_limits<Index>::max()));
  const auto fine = [&](std::size_t begin, std::size_t end) {
    const auto from = static_cast<std::size_t>(indptr[begin]), to = static_cast<std::size_t>(indptr[end]);
    const Index* at = indices.data();
    const IndexCheck check = check_range(at + from, to - from, last);
    std::size_t falls = 0;  // where a row begins an index need not be larger
    for (std::size_t i = begin; i < end; ++i) {
      const auto first = static_cast<std::size_t>(indptr[i]);
      if (first > from && indptr[i] < indptr[i + 1]) falls += at[first] <= at[first - 1];
    }
    if (falls != check.n_falls) increasing.store(false, std::memory_order_relaxed);
    return check.in_range;
  };
  const auto bad = [&](std::size_t i) -> std::int64_t {
    for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
      const Index j = indices[static_cast<std::size_t>(p)];
      if (j < 0 || j > last) return p;
    }
    return -1;
  };
  const auto found = first_row_where(indptr.size() - 1, indices.size(), n_threads, fine, bad);
  sorted = increasing.load();
  return found;
}

}  // namespace bmrm
