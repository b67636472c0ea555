// Owned memory of a device: aligned to 256 bytes, zero-filled, move-only. What it points at can be read by ops of that
// device; the host reads it on the CPU only (Device::download elsewhere).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "src/device/device.h"

namespace simclr {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  // Throws Error(kDevice) with the size when there is no memory.
  Buffer(std::shared_ptr<Device> device, size_t bytes);
  explicit Buffer(size_t bytes);  // memory of the host

  std::byte* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T)};
  }

 private:
  struct Release {
    std::shared_ptr<Device> device;
    void operator()(std::byte* p) const noexcept { device->release(p); }
  };
  std::unique_ptr<std::byte, Release> memory_;
  size_t bytes_ = 0;
};

}  // namespace simclr
