// The only file that knows both worlds: numpy arrays in, spans out, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bmrm::py {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
std::span<T> view(const Out<T>& array) {
  return {array.data(), array.size()};
}

// A new numpy array that owns the vector's memory: nothing is copied.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> give(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

inline void require(bool condition, const std::string& message) {
  if (!condition) throw nb::value_error(message.c_str());
}

inline void require_size(std::size_t size, std::size_t expected, const char* name) {
  if (size == expected) return;  // the message costs more than many a kernel
  require(false, std::string(name) + " has length " + std::to_string(size) + ", expected " + std::to_string(expected));
}

inline void require_rows(std::span<const std::int64_t> rows, std::size_t m) {
  const auto bad = std::find_if(rows.begin(), rows.end(), [m](std::int64_t i) { return std::uint64_t(i) >= m; });
  if (bad != rows.end()) require(false, "row " + std::to_string(*bad) + " does not exist");
}

// Starts of parts, and the end of the last one.
inline void require_rising(std::span<const std::int64_t> starts, std::size_t end, const char* name) {
  const bool good = !starts.empty() && starts.front() == 0 && starts.back() == static_cast<std::int64_t>(end) &&
                    std::is_sorted(starts.begin(), starts.end());
  if (!good) require(false, std::string(name) + " must rise from 0 to " + std::to_string(end));
}

}  // namespace bmrm::py
