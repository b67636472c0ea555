#include "src/comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "src/base/file.h"
#include "src/comm/agreement.h"

namespace simclr {

SharedMemory::SharedMemory(int fd, size_t bytes) : bytes_(bytes) {
  const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* address = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (address != MAP_FAILED) data_ = static_cast<std::byte*>(address);
}

SharedMemory::~SharedMemory() {
  if (valid()) ::munmap(data_, bytes_);
}

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// What rank 0 sends: zero-terminated texts.
struct Place {
  std::array<char, 64> path{};  // where to open it
  std::array<char, 64> link{};  // by descriptor: what /proc calls the file that has to be there
};

void write(std::array<char, 64>& target, std::string_view text) {
  SIMCLR_CHECK(text.size() < target.size(), "a place of {} characters", text.size());
  text.copy(target.data(), text.size());
}

Error no_shared_memory(const char* what, std::string_view where, int error_number) {
  return Error(ExitCode::kDevice, fmt::format("cannot {} shared memory {}: {}", what, where, errno_text(error_number)));
}

std::string new_name() {
  return fmt::format("simclr-{}-{:08x}", ::getpid(), std::random_device{}());
}

// Taken at once: memory that has run out would otherwise be a SIGBUS later.
SharedMemory reserve_and_map(const Descriptor& file, size_t bytes, std::string_view where) {
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0)
    throw no_shared_memory("reserve", where, error);
  SharedMemory memory(file.get(), bytes);
  if (!memory.valid()) throw no_shared_memory("map", where, errno);
  return memory;
}

SharedMemory open_and_map(int fd, size_t bytes, std::string_view where) {
  const Descriptor file(fd);
  if (fd < 0) throw no_shared_memory("open", where, errno);
  SharedMemory memory(fd, bytes);
  if (!memory.valid()) throw no_shared_memory("map", where, errno);
  return memory;
}

// Nothing but the very file is opened: where processes have other numbers (a container of its own), PID is another's.
SharedMemory open_descriptor(const Place& place, size_t bytes) {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink(place.path.data(), link.data(), link.size() - 1);
  if (length < 0) throw no_shared_memory("find", place.path.data(), errno);
  if (link != place.link) throw no_shared_memory("find", place.path.data(), ENOENT);
  return open_and_map(::open(place.path.data(), O_RDWR | O_CLOEXEC), bytes, place.path.data());
}

SharedMemory share_by_descriptor(Collectives& collectives, size_t bytes) {
  const bool leader = collectives.rank() == 0;
  SharedMemory memory;
  Descriptor file;  // open until all have it
  Place place;
  agree_on(collectives, [&] {
    if (!leader) return;
    const std::string name = new_name();
    file = Descriptor(::memfd_create(name.c_str(), MFD_CLOEXEC));
    if (file.get() < 0) throw no_shared_memory("make", name, errno);
    memory = reserve_and_map(file, bytes, name);
    write(place.path, fmt::format("/proc/{}/fd/{}", ::getpid(), file.get()));
    write(place.link, fmt::format("/memfd:{} (deleted)", name));
  });
  collectives.broadcast(std::span<char>(place.path), 0);
  collectives.broadcast(std::span<char>(place.link), 0);
  agree_on(collectives, [&] {
    if (!leader) memory = open_descriptor(place, bytes);
  });
  return memory;
}

SharedMemory share_by_name(Collectives& collectives, size_t bytes) {
  const bool leader = collectives.rank() == 0;
  SharedMemory memory;
  Place place;
  if (leader) write(place.path, fmt::format("/{}", new_name()));
  try {
    agree_on(collectives, [&] {
      if (!leader) return;
      const Descriptor file(::shm_open(place.path.data(), O_RDWR | O_CREAT | O_EXCL, 0600));
      if (file.get() < 0) throw no_shared_memory("make", place.path.data(), errno);
      memory = reserve_and_map(file, bytes, place.path.data());
    });
    collectives.broadcast(std::span<char>(place.path), 0);
    agree_on(collectives, [&] {
      if (!leader) memory = open_and_map(::shm_open(place.path.data(), O_RDWR, 0600), bytes, place.path.data());
    });
  } catch (...) {
    if (leader) ::shm_unlink(place.path.data());
    throw;
  }
  if (leader) ::shm_unlink(place.path.data());
  return memory;
}

}  // namespace

SharedMemory share_memory(Collectives& collectives, size_t bytes, FoundBy first) {
  if (first == FoundBy::kDescriptor) {
    try {
      return share_by_descriptor(collectives, bytes);
    } catch (const AgreedError&) {  // the way by name has its own say
    }
  }
  return share_by_name(collectives, bytes);
}

}  // namespace simclr
