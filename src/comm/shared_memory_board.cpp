// HeartbeatBoard in shared memory: one cache line per rank, each written by its owner alone.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/file.h"
#include "src/comm/heartbeat.h"
#include "src/comm/shared_memory.h"

namespace simclr {
namespace {

struct alignas(64) SharedPulse {
  std::atomic<uint64_t> alive, progress;
  std::atomic<int64_t> step;
  std::atomic<int32_t> phase, stop_signal;
  std::atomic<uint8_t> waiting, left, knows_of_stop, begun;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(SharedPulse) == 64);

// Line 0 of the memory holds the claim, line 1 + r the pulse of rank r. Zero-filled memory is the start state.
struct alignas(64) Claim {
  std::atomic<uint32_t> taken;
};

// Bytes for the lines of all ranks.
size_t bytes_for(int ranks) {
  return 64 * (static_cast<size_t>(ranks) + 1);
}

class SharedMemoryBoard final : public HeartbeatBoard {
 public:
  SharedMemoryBoard(SharedMemory memory, int rank, int size) : memory_(std::move(memory)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void publish(const Pulse& mine) noexcept override {
    SharedPulse& shared = pulse_of(rank_);
    shared.step.store(mine.step, std::memory_order_relaxed);
    shared.phase.store(static_cast<int32_t>(mine.phase), std::memory_order_relaxed);
    shared.progress.store(mine.progress, std::memory_order_relaxed);
    shared.waiting.store(mine.waiting, std::memory_order_relaxed);
    shared.left.store(mine.left, std::memory_order_relaxed);
    shared.stop_signal.store(mine.stop_signal, std::memory_order_relaxed);
    shared.knows_of_stop.store(mine.knows_of_stop, std::memory_order_relaxed);
    shared.begun.store(mine.begun, std::memory_order_relaxed);
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
    pulse.stop_signal = shared.stop_signal.load(std::memory_order_relaxed);
    pulse.knows_of_stop = shared.knows_of_stop.load(std::memory_order_relaxed) != 0;
    pulse.begun = shared.begun.load(std::memory_order_relaxed) != 0;
    return pulse;
  }

  bool claim_report() noexcept override { return reinterpret_cast<Claim*>(memory_.data())->taken.exchange(1) == 0; }

  double interval_s(double timeout_s) const override { return std::clamp(timeout_s / 10, 0.01, 0.2); }

 private:
  SharedPulse& pulse_of(int rank) const { return reinterpret_cast<SharedPulse*>(memory_.data())[1 + rank]; }

  SharedMemory memory_;
  const int rank_, size_;
};

}  // namespace

std::unique_ptr<HeartbeatBoard> make_shared_memory_board(Collectives& collectives) {
  const int rank = collectives.rank(), size = collectives.size();
  SharedMemory memory = size == 1 ? SharedMemory(-1, bytes_for(1)) : share_memory(collectives, bytes_for(size));
  if (!memory.valid()) fail(ExitCode::kDevice, "cannot map a page of memory: {}; free some memory", errno_text(errno));
  return std::make_unique<SharedMemoryBoard>(std::move(memory), rank, size);
}

}  // namespace simclr
