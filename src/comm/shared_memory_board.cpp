// HeartbeatBoard in POSIX shared memory: one cache line per rank, each written by its owner alone.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "src/base/file.h"
#include "src/comm/agreement.h"
#include "src/comm/heartbeat.h"

namespace simclr {
namespace {

struct alignas(64) SharedPulse {
  std::atomic<uint64_t> alive, progress;
  std::atomic<int64_t> step;
  std::atomic<int32_t> phase;
  std::atomic<uint8_t> waiting, left;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(SharedPulse) == 64);

// Line 0 of the memory holds the claim, line 1 + r the pulse of rank r. Zero-filled memory is the start state.
struct alignas(64) Claim {
  std::atomic<uint32_t> taken;
};

// A mapping of all lines, unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, int ranks) : bytes_(64 * (static_cast<size_t>(ranks) + 1)) {
    const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    address_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, fd, 0);
  }
  ~Mapping() {
    if (valid()) ::munmap(address_, bytes_);
  }
  Mapping(Mapping&& other) noexcept : address_(std::exchange(other.address_, MAP_FAILED)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  bool valid() const { return address_ != MAP_FAILED; }
  std::byte* line(int index) const { return static_cast<std::byte*>(address_) + 64 * static_cast<size_t>(index); }

 private:
  void* address_ = MAP_FAILED;
  size_t bytes_ = 0;
};

class SharedMemoryBoard final : public HeartbeatBoard {
 public:
  SharedMemoryBoard(Mapping mapping, int rank, int size) : mapping_(std::move(mapping)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void publish(const Pulse& mine) noexcept override {
    SharedPulse& shared = pulse_of(rank_);
    shared.step.store(mine.step, std::memory_order_relaxed);
    shared.phase.store(static_cast<int32_t>(mine.phase), std::memory_order_relaxed);
    shared.progress.store(mine.progress, std::memory_order_relaxed);
    shared.waiting.store(mine.waiting, std::memory_order_relaxed);
    shared.left.store(mine.left, std::memory_order_relaxed);
    shared.alive.store(mine.alive, std::memory_order_release);
  }

  Pulse read(int rank) noexcept override {
    const SharedPulse& shared = pulse_of(rank);
    Pulse pulse;
    pulse.alive = shared.alive.load(std::memory_order_acquire);
    pulse.progress = shared.progress.load(std::memory_order_relaxed);
    pulse.step = shared.step.load(std::memory_order_relaxed);
    pulse.phase = static_cast<Phase>(shared.phase.load(std::memory_order_relaxed));
    pulse.waiting = shared.waiting.load(std::memory_order_relaxed) != 0;
    pulse.left = shared.left.load(std::memory_order_relaxed) != 0;
    return pulse;
  }

  bool claim_report() noexcept override { return reinterpret_cast<Claim*>(mapping_.line(0))->taken.exchange(1) == 0; }

  double interval_s(double timeout_s) const override { return std::clamp(timeout_s / 10, 0.01, 0.2); }

 private:
  SharedPulse& pulse_of(int rank) const { return *reinterpret_cast<SharedPulse*>(mapping_.line(1 + rank)); }

  Mapping mapping_;
  const int rank_, size_;
};

using Name = std::array<char, 64>;

Error no_shared_memory(const char* what, const Name& name, int error_number) {
  return Error(ExitCode::kDevice,
               fmt::format("cannot {} shared memory {}: {}", what, name.data(), errno_text(error_number)));
}

// Opens (or, as the leader, makes) the memory of this name and maps it.
Mapping map_memory(const Name& name, int ranks, bool leader) {
  const int fd = ::shm_open(name.data(), leader ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (fd < 0) throw no_shared_memory(leader ? "make" : "open", name, errno);
  // Taken at once: a full /dev/shm would otherwise be a SIGBUS later.
  const int error = leader ? ::posix_fallocate(fd, 0, 64 * (ranks + 1)) : 0;
  Mapping mapping = error == 0 ? Mapping(fd, ranks) : Mapping();
  const int map_error = errno;
  ::close(fd);
  if (!mapping.valid()) throw no_shared_memory(error != 0 ? "reserve" : "map", name, error != 0 ? error : map_error);
  return mapping;
}

}  // namespace

std::unique_ptr<HeartbeatBoard> make_shared_memory_board(Collectives& collectives) {
  const int rank = collectives.rank(), size = collectives.size();
  Mapping mapping;
  if (size == 1) {
    mapping = Mapping(-1, 1);
    if (!mapping.valid())
      fail(ExitCode::kDevice, "cannot map a page of memory: {}; free some memory", errno_text(errno));
  } else {
    const bool leader = rank == 0;
    Name name{};
    if (leader) {
      const std::string text = fmt::format("/simclr-{}-{:08x}", ::getpid(), std::random_device{}());
      std::memcpy(name.data(), text.data(), text.size());
    }
    try {
      agree_on(collectives, [&] {
        if (leader) mapping = map_memory(name, size, leader);
      });
      collectives.broadcast(std::span<char>(name), 0);
      agree_on(collectives, [&] {
        if (!leader) mapping = map_memory(name, size, leader);
      });
    } catch (...) {
      if (leader) ::shm_unlink(name.data());
      throw;
    }
    if (leader) ::shm_unlink(name.data());
  }
  return std::make_unique<SharedMemoryBoard>(std::move(mapping), rank, size);
}

}  // namespace simclr
