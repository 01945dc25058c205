// Memory that is claimed generously and given back: pages never written cost nothing, and no element is
// initialized before the thread that fills it touches it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace bmrm::io {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(claim(nullptr, size)), size_(size) {}
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

  void shrink(std::size_t size) {
    if (size >= size_) return;
    data_ = claim(data_, size);
    size_ = size;
  }

  // The caller frees what it gets.
  T* release() {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  static T* claim(T* old, std::size_t size) {
    if (size > static_cast<std::size_t>(-1) / sizeof(T) - 1) throw std::bad_alloc();
    void* p = std::realloc(old, (size + (size == 0)) * sizeof(T));
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bmrm::io
