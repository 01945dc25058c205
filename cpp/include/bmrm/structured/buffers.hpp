// Long arrays that come back: a fresh one of many megabytes costs as much as a pass over it, because the system hands
// out its pages one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace bmrm {

class Buffers {
 public:
  explicit Buffers(std::size_t n) : n_(n) {}
  std::size_t size() const { return n_; }

  std::unique_ptr<double[]> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique_for_overwrite<double[]>(n_);
    auto buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  void give_back(std::unique_ptr<double[]> buffer) {
    std::lock_guard lock(mutex_);
    if (free_.size() < kMost) free_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kMost = 4;
  std::size_t n_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<double[]>> free_;
};

}  // namespace bmrm
