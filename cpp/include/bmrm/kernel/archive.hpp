// State as one vector of numbers, for a file: whole numbers up to 2^53 are numbers as well.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bmrm {

class Packer {
 public:
  void number(double value) { values_.push_back(value); }
  void count(std::size_t value) { values_.push_back(static_cast<double>(value)); }
  void numbers(std::span<const double> values) { values_.insert(values_.end(), values.begin(), values.end()); }
  std::vector<double> take() { return std::move(values_); }

 private:
  std::vector<double> values_;
};

// Reads what a packer wrote; a state that is too short, or holds an index beyond its limit, is refused.
class Unpacker {
 public:
  explicit Unpacker(std::span<const double> values) : values_(values) {}

  double number() { return numbers(1)[0]; }

  std::size_t count(std::size_t limit) {
    const double value = number();
    const bool whole = value >= 0.0 && value <= static_cast<double>(limit);
    require(whole && static_cast<double>(static_cast<std::size_t>(value)) == value);
    return static_cast<std::size_t>(value);
  }

  std::span<const double> numbers(std::size_t n) {
    require(n <= values_.size());
    const auto taken = values_.first(n);
    values_ = values_.subspan(n);
    return taken;
  }

  std::vector<double> vector(std::size_t n) {
    const auto taken = numbers(n);
    return {taken.begin(), taken.end()};
  }

  std::size_t left() const { return values_.size(); }

  static void require(bool valid) {
    if (!valid) throw std::invalid_argument("not the state of a quadratic program");
  }

 private:
  std::span<const double> values_;
};

}  // namespace bmrm
