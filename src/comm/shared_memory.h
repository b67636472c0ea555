// Memory that all ranks of one host see, and that is gone with the last of them however they end: nothing of it has a
// name in the file system that a killed rank could leave behind. Zero at the start.
#pragma once

#include <cstddef>
#include <utility>

#include "src/comm/collectives.h"

namespace simclr {

// Unmapped at the end.
class SharedMemory {
 public:
  SharedMemory() = default;
  // Of a file, or (fd < 0) of this process alone. valid() is false when it cannot be mapped; errno says why.
  SharedMemory(int fd, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  bool valid() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// How the others find what rank 0 has made.
enum class FoundBy {
  kDescriptor,  // an anonymous file, opened through /proc/PID/fd of rank 0
  kName,        // a name in /dev/shm, taken away when all have opened it: a rank 0 killed in between leaves it there
};

// Collective, all ranks on one host. By descriptor; where a rank cannot see rank 0's (a container or a user of its own)
// by name. Throws AgreedError(kDevice) when that fails, too (other host, full or missing /dev/shm).
SharedMemory share_memory(Collectives& collectives, size_t bytes, FoundBy first = FoundBy::kDescriptor);

}  // namespace simclr
