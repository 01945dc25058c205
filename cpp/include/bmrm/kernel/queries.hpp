// Sets of rows that are looked at one set at a time, on the thread pool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bmrm/kernel/sum.hpp"
#include "bmrm/pool.hpp"

namespace bmrm {

// Sets q = 0 ... n - 1; set q holds the places starts[q] .. starts[q + 1] of `rows`. `turns` names the sets from the
// largest to the smallest; a set of share 0 is passed over.
struct Sets {
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> starts;
  std::span<const std::int64_t> turns;
  std::span<const double> share;

  std::size_t first(std::size_t q) const { return static_cast<std::size_t>(starts[q]); }
  std::size_t size(std::size_t q) const { return static_cast<std::size_t>(starts[q + 1] - starts[q]); }
};

// Calls value(q, desk) for every set that counts and returns the sum of share_q value_q, added up in the order of q.
// Large sets go first, so that no thread is left alone with one; small ones share a task. A desk is scratch space,
// kept for the next call unless it has become large: to ask for memory anew costs as much as a sort.
template <class Desk, class Value>
double sum_over_sets(const Sets& sets, int n_threads, const Value& value) {
  constexpr std::size_t kRows = 4096, kKept = std::size_t{1} << 22;
  std::vector<std::size_t> tasks{0};  // places in turns where tasks begin
  std::size_t rows = 0;
  for (std::size_t place = 0; place < sets.turns.size(); ++place) {
    rows += sets.size(static_cast<std::size_t>(sets.turns[place]));
    if (rows >= kRows || place + 1 == sets.turns.size()) {
      tasks.push_back(place + 1);
      rows = 0;
    }
  }
  std::vector<double> values(sets.turns.size(), 0.0);
  parallel_for(tasks.size() - 1, n_threads, [&](std::size_t task) {
    thread_local Desk desk;
    for (std::size_t place = tasks[task]; place < tasks[task + 1]; ++place) {
      const auto q = static_cast<std::size_t>(sets.turns[place]);
      if (sets.share[q] > 0.0) values[q] = sets.share[q] * value(q, desk);
    }
    if (desk.n_items() > kKept) desk = Desk();
  });
  Sum sum;
  for (const double v : values) sum.add(v);
  return sum.value();
}

}  // namespace bmrm
