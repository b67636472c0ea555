#include "src/device/buffer.h"

namespace simclr {

Buffer::Buffer(std::shared_ptr<Device> device, size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  std::byte* memory = device->allocate(bytes);
  memory_ = std::unique_ptr<std::byte, Release>(memory, Release{std::move(device)});
}

Buffer::Buffer(size_t bytes) : Buffer(make_cpu_device(1), bytes) {}

}  // namespace simclr
