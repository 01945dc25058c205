// Svmlight text to the arrays of a sparse matrix, in parallel.
//
// The text is cut at line ends into blocks. A first pass counts the colons, commas and line feeds of each
// block, which bounds what the block can hold; the second parses each block straight to its own place in
// arrays of that size, and what the bound left over (comments, qids) is squeezed out at the end. So nothing
// is held twice, and the result is the same for every number of threads. When something is wrong, the first
// bad place of the file is reported: blocks behind a bad one are dropped, blocks before it are always
// finished.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bmrm/io/buffer.hpp"
#include "bmrm/io/svmlight_block.hpp"
#include "bmrm/pool.hpp"

namespace bmrm::io {

struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Index, class Value>
struct SvmlightTable {
  Buffer<Index> indices;
  Buffer<Value> values;
  Buffer<Index> indptr;
  Buffer<double> labels;
  Buffer<std::int64_t> label_ends;  // row i has the labels from label_ends[i - 1] up to label_ends[i]
  Buffer<std::int64_t> groups;
  bool has_groups = false;
  bool many_labels = false;
  bool zero_based = false;
  std::int64_t n_features = 0;
};

namespace detail {

struct Counts {
  std::size_t entries = 0;
  std::size_t rows = 0;
  std::size_t labels = 0;
};

struct Block {
  const char* begin;
  const char* end;
  std::size_t origin;
  Counts most;   // bounds on what is in the block
  Counts start;  // the sums of the bounds of the blocks before
  Findings found;
};

// Bytes are counted in bytes as long as those cannot overflow: that is what the compiler turns into wide
// code.
inline Counts count_marks(const char* p, const char* end) {
  Counts counts;
  std::size_t commas = 0;
  while (p < end) {
    const auto n = static_cast<int>(std::min<std::ptrdiff_t>(end - p, 192));
    std::uint8_t colons = 0, feeds = 0, some_commas = 0;
    for (int i = 0; i < n; ++i) {
      colons = static_cast<std::uint8_t>(colons + (p[i] == ':'));
      feeds = static_cast<std::uint8_t>(feeds + (p[i] == '\n'));
      some_commas = static_cast<std::uint8_t>(some_commas + (p[i] == ','));
    }
    counts.entries += colons;
    counts.rows += feeds;
    commas += some_commas;
    p += n;
  }
  counts.labels = counts.rows + commas;
  return counts;
}

// Cuts behind line feeds. The last line may lack one: then it is copied to `tail`, which gets one.
inline std::vector<Block> split(std::string_view text, std::size_t block_bytes, std::string& tail) {
  const std::size_t last = text.rfind('\n');
  const std::size_t whole = last == std::string_view::npos ? 0 : last + 1;
  std::vector<Block> blocks;
  for (std::size_t begin = 0; begin < whole;) {
    const std::size_t aim = std::min(begin + std::max<std::size_t>(block_bytes, 1), whole) - 1;
    const std::size_t end = text.find('\n', aim) + 1;
    blocks.push_back({text.data() + begin, text.data() + end, begin, {}, {}, {}});
    begin = end;
  }
  if (whole < text.size()) {
    tail = text.substr(whole);
    tail += '\n';
    blocks.push_back({tail.data(), tail.data() + tail.size(), whole, {}, {}, {}});
  }
  return blocks;
}

inline Counts bound(std::vector<Block>& blocks, int n_threads) {
  parallel_for(blocks.size(), n_threads,
               [&](std::size_t i) { blocks[i].most = count_marks(blocks[i].begin, blocks[i].end); });
  Counts total;
  for (Block& block : blocks) {
    block.start = total;
    total.entries += block.most.entries;
    total.rows += block.most.rows;
    total.labels += block.most.labels;
  }
  return total;
}

// The findings of all blocks together, up to the first that could not be finished.
inline Findings gather(const std::vector<Block>& blocks) {
  Findings all;
  for (const Block& block : blocks) {
    const Findings& found = block.found;
    all.n_rows += found.n_rows;
    all.n_entries += found.n_entries;
    all.n_labels += found.n_labels;
    all.top = std::max(all.top, found.top);
    all.saw_zero |= found.saw_zero;
    all.many_labels |= found.many_labels;
    all.with_group = std::min(all.with_group, found.with_group);
    all.without_group = std::min(all.without_group, found.without_group);
    if (!all.at_limit) all.at_limit = found.at_limit;
    all.fault = found.fault;
    if (all.fault) break;
  }
  return all;
}

// The first of the faults: those seen in one place, and those that only the whole file shows.
inline Fault first_fault(const Findings& all, Base base) {
  Fault first = all.fault;
  if (all.at_limit.offset < first.offset && base == Base::automatic && all.saw_zero) first = all.at_limit;
  const std::size_t mixed = std::max(all.with_group, all.without_group);
  if (mixed < first.offset) {
    const bool lacks = mixed == all.without_group;
    first = {mixed, std::string(lacks ? "no qid here, but on the lines before" : "a qid here, but not before") +
                        "; expected one on every line or on none"};
  }
  return first;
}

[[noreturn]] inline void report(std::string_view text, const Fault& fault) {
  const std::string_view before = text.substr(0, fault.offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t feed = before.rfind('\n');
  const std::size_t column = feed == std::string_view::npos ? fault.offset + 1 : fault.offset - feed;
  throw ParseError("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + fault.message);
}

template <class T>
void squeeze(Buffer<T>& buffer, std::size_t from, std::size_t to, std::size_t n) {
  if (from != to && n != 0) std::memmove(buffer.data() + to, buffer.data() + from, n * sizeof(T));
}

// Parses every block to its place. False when an index does not fit Index.
template <class Index, class Value>
bool fill(std::vector<Block>& blocks, const SvmlightOptions& options, SvmlightTable<Index, Value>& table) {
  std::atomic<std::size_t> first_bad{blocks.size()};
  std::atomic<bool> too_wide{false};
  parallel_for(blocks.size(), options.n_threads, [&](std::size_t i) {
    if (i > first_bad.load() || too_wide.load()) return;
    Block& block = blocks[i];
    const Counts& at = block.start;
    const Room<Index, Value> room{table.indices.data() + at.entries, table.values.data() + at.entries,
                                  table.indptr.data() + 1 + at.rows, table.labels.data() + at.labels,
                                  table.label_ends.data() + at.rows, table.groups.data() + at.rows};
    block.found = BlockParser<Index, Value>(block.begin, block.end, block.origin, options, room).parse();
    if (block.found.too_wide) too_wide = true;
    if (!block.found.fault) return;
    for (std::size_t bad = first_bad.load(); i < bad && !first_bad.compare_exchange_weak(bad, i);) {
    }
  });
  return !too_wide.load();
}

// Closes the gaps between the blocks, and makes the ends of rows and labels count from the start of the file.
template <class Index, class Value>
void close_gaps(const std::vector<Block>& blocks, bool has_groups, SvmlightTable<Index, Value>& table) {
  Counts at;
  table.indptr[0] = 0;
  for (const Block& block : blocks) {
    const Findings& found = block.found;
    squeeze(table.indices, block.start.entries, at.entries, found.n_entries);
    squeeze(table.values, block.start.entries, at.entries, found.n_entries);
    squeeze(table.labels, block.start.labels, at.labels, found.n_labels);
    if (has_groups) squeeze(table.groups, block.start.rows, at.rows, found.n_rows);
    for (std::size_t i = 0; i < found.n_rows; ++i) {
      table.indptr[1 + at.rows + i] =
          static_cast<Index>(table.indptr[1 + block.start.rows + i] + static_cast<Index>(at.entries));
      table.label_ends[at.rows + i] = table.label_ends[block.start.rows + i] + static_cast<std::int64_t>(at.labels);
    }
    at.entries += found.n_entries;
    at.rows += found.n_rows;
    at.labels += found.n_labels;
  }
}

// Indices were stored as if counted from one: moves them when the file turned out to count from zero.
template <class Index>
void count_from_zero(Buffer<Index>& indices, int n_threads) {
  constexpr std::size_t step = std::size_t{1} << 20;
  parallel_for((indices.size() + step - 1) / step, n_threads, [&](std::size_t i) {
    const std::size_t end = std::min(indices.size(), (i + 1) * step);
    for (std::size_t j = i * step; j < end; ++j) ++indices[j];
  });
}

template <class Index, class Value>
void finish(const std::vector<Block>& blocks, const Findings& all, bool moved, const SvmlightOptions& options,
            SvmlightTable<Index, Value>& table) {
  table.has_groups = all.with_group != nowhere;
  table.many_labels = options.labels == Labels::many || all.many_labels;
  close_gaps(blocks, table.has_groups, table);
  table.indices.shrink(all.n_entries);
  table.values.shrink(all.n_entries);
  table.indptr.shrink(all.n_rows + 1);
  table.labels.shrink(all.n_labels);
  table.label_ends.shrink(all.n_rows);
  table.groups.shrink(table.has_groups ? all.n_rows : 0);
  if (moved) count_from_zero(table.indices, options.n_threads);
  table.n_features = options.n_features.value_or(all.top + 1 + (moved ? 1 : 0));
}

// False when the indices or the number of features do not fit Index.
template <class Index, class Value>
bool parse_as(std::string_view text, std::vector<Block>& blocks, const Counts& most, const SvmlightOptions& options,
              SvmlightTable<Index, Value>& table) {
  table.indices = Buffer<Index>(most.entries);
  table.values = Buffer<Value>(most.entries);
  table.indptr = Buffer<Index>(most.rows + 1);
  table.labels = Buffer<double>(most.labels);
  table.label_ends = Buffer<std::int64_t>(most.rows);
  table.groups = Buffer<std::int64_t>(most.rows);
  if (!fill(blocks, options, table)) return false;
  const Findings all = gather(blocks);
  const Fault fault = first_fault(all, options.base);
  if (fault) report(text, fault);
  const bool moved = options.base == Base::automatic && all.saw_zero;
  // Written so that it cannot overflow: moved indices are larger by one, and the number of features by two.
  if (moved && all.top > static_cast<std::int64_t>(std::numeric_limits<Index>::max()) - 2) return false;
  finish(blocks, all, moved, options, table);
  table.zero_based = moved || options.base == Base::zero;
  return true;
}

}  // namespace detail

template <class Value>
using SvmlightResult = std::variant<SvmlightTable<std::int32_t, Value>, SvmlightTable<std::int64_t, Value>>;

// Indices have 32 bits when the numbers of entries and of features allow, 64 otherwise.
template <class Value>
SvmlightResult<Value> parse_svmlight(std::string_view text, const SvmlightOptions& options) {
  std::string tail;
  std::vector<detail::Block> blocks = detail::split(text, options.block_bytes, tail);
  const detail::Counts most = detail::bound(blocks, options.n_threads);
  constexpr auto narrow = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (most.entries <= narrow && static_cast<std::size_t>(options.n_features.value_or(0)) <= narrow) {
    SvmlightTable<std::int32_t, Value> table;
    if (detail::parse_as(text, blocks, most, options, table)) return table;
    for (detail::Block& block : blocks) block.found = {};
  }
  SvmlightTable<std::int64_t, Value> table;
  if (!detail::parse_as(text, blocks, most, options, table)) throw std::logic_error("64 bits do not suffice");
  return table;
}

}  // namespace bmrm::io
