#include "src/device/buffer.h"

#include <cstring>

#include "kernels/common/error.h"

namespace simclr {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  // rounded < bytes: the sum above has wrapped around, as it does for a negative count of elements.
  if (rounded >= bytes) memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded)));
  if (!memory_) fail(ExitCode::kDevice, "no memory for a buffer of {} bytes; use a smaller batch or network", bytes);
  std::memset(memory_.get(), 0, rounded);
}

}  // namespace simclr
