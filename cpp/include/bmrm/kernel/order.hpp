// Rows in the order of their scores: radix sort where there are many, comparisons where there are few.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bmrm {

// A score as a number whose order as an integer is that of the scores, with the row it belongs to.
struct Keyed {
  std::uint64_t key;
  std::int64_t row;

  bool operator<(const Keyed& other) const { return key != other.key ? key < other.key : row < other.row; }
};

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

inline std::uint64_t key_of(double f) {
  const auto bits = std::bit_cast<std::uint64_t>(f);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

inline double score_of(std::uint64_t key) { return std::bit_cast<double>((key & kSign) != 0 ? key & ~kSign : ~key); }

// What to subtract from scores between these two before they are multiplied and added: a number between them where they
// differ by less than their size, as after a constant that is common to all. Then the difference is exact. 0 elsewhere.
inline double common_part(double least, double most) {
  const double middle = least + 0.5 * (most - least);
  return most - least < std::min(std::abs(least), std::abs(most)) && (least > 0.0) == (most > 0.0) ? middle : 0.0;
}

// Sorts by the 33 leading bits that differ, 11 at a time from the last to the first; what is still equal in those,
// which few rows are, is compared. Linear time unless many different scores agree in that many bits, m log m then.
class Order {
 public:
  // Writes make(0) ... make(items.size() - 1) to items in increasing order.
  template <class Make>
  void sort(std::span<Keyed> items, const Make& make) {
    const std::size_t n = items.size();
    if (n <= kFew) {
      for (std::size_t k = 0; k < n; ++k) items[k] = make(k);
      std::sort(items.begin(), items.end());
      return;
    }
    std::uint64_t least = make(0).key, most = least;
    for (std::size_t k = 1; k < n; ++k) {
      const std::uint64_t key = make(k).key;
      least = std::min(least, key), most = std::max(most, key);
    }
    const Leading leading{least, most == least ? 0 : std::countl_zero(most - least)};
    count(n, make, leading);
    const auto other = spare(n);
    static_assert(kPasses == 3, "from make to items, to the spare ones, and back");
    scatter(n, make, items.data(), 0, leading);
    scatter(n, [&](std::size_t k) { return items[k]; }, other.data(), 1, leading);
    scatter(n, [&](std::size_t k) { return other[k]; }, items.data(), 2, leading);
    finish(items, leading);
  }

  // At least n items of scratch space.
  std::span<Keyed> spare(std::size_t n) {
    if (spare_.size() < n) spare_.resize(n);
    return spare_;
  }

  std::size_t n_items() const { return spare_.capacity(); }

 private:
  static constexpr std::size_t kFew = 1024, kPasses = 3, kBits = 11, kBuckets = std::size_t{1} << kBits;

  struct Leading {
    std::uint64_t least;
    int shift;
    std::uint64_t operator()(const Keyed& item) const {
      return ((item.key - least) << shift) >> (64 - kPasses * kBits);
    }
  };

  static std::size_t bucket(std::uint64_t leading, std::size_t pass) {
    return (leading >> (kBits * pass)) & (kBuckets - 1);
  }

  template <class Make>
  void count(std::size_t n, const Make& make, const Leading& leading) {
    for (auto& starts : starts_) starts.fill(0);
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint64_t bits = leading(make(k));
      for (std::size_t pass = 0; pass < kPasses; ++pass) ++starts_[pass][bucket(bits, pass)];
    }
    for (auto& starts : starts_) {
      std::size_t sum = 0;
      for (std::size_t& start : starts) sum += std::exchange(start, sum);
    }
  }

  template <class Make>
  void scatter(std::size_t n, const Make& make, Keyed* to, std::size_t pass, const Leading& leading) {
    auto& starts = starts_[pass];
    for (std::size_t k = 0; k < n; ++k) {
      const Keyed item = make(k);
      to[starts[bucket(leading(item), pass)]++] = item;
    }
  }

  static void finish(std::span<Keyed> items, const Leading& leading) {
    for (std::size_t first = 0; first < items.size();) {
      const std::uint64_t bits = leading(items[first]);
      std::size_t end = first + 1;
      while (end < items.size() && leading(items[end]) == bits) ++end;
      const auto run = items.subspan(first, end - first);
      if (!std::is_sorted(run.begin(), run.end())) std::sort(run.begin(), run.end());
      first = end;
    }
  }

  std::array<std::array<std::size_t, kBuckets>, kPasses> starts_;
  std::vector<Keyed> spare_;
};

}  // namespace bmrm
