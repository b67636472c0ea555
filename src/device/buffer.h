// Owned memory of a device: aligned to 256 bytes, zero-filled, move-only. CPU only so far; CUDA joins here.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

namespace simclr {

inline constexpr size_t kBufferAlignment = 256;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  explicit Buffer(size_t bytes);  // throws Error(kDevice) with the size when there is no memory

  std::byte* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t bytes_ = 0;
};

}  // namespace simclr
