// The fake NCCL: ranks are processes of one host that meet in POSIX shared memory named by the unique id. Small enough
// for the /dev/shm of containers: what is longer than a slot goes through in chunks.
//
// Where the real library hangs or spoils memory, the fake says so: ranks in different collectives, a rank that does not
// come (EMULATOR_NCCL_TIMEOUT_S, 30 by default), a rank whose process has ended, a buffer that is too small.
// A misuse ends every wait of every rank. An error from outside (a rank that is gone or has aborted, a network) is as
// NVIDIA describes it: ncclCommGetAsyncError reports it, and pending work does not complete until this rank aborts, or
// until the time limit. EMULATOR_NCCL_FAULT=RANK:N plants one: the N-th operation of that rank (from 1) meets it.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace simclr::emulator::nccl {

inline constexpr int kMostRanks = 16;
inline constexpr size_t kSlotBytes = size_t{256} << 10;  // of each rank, for collectives
inline constexpr size_t kPipeBytes = size_t{16} << 10;   // of each pair of ranks, for send and receive

// What a rank says of the collective that it enters.
struct Call {
  int kind, type, op, root;
  uint64_t count;

  bool operator==(const Call&) const = default;
};

// From one rank to another, one message at a time.
struct Pipe {
  std::atomic<uint64_t> announced, received;  // messages
  int type;
  uint64_t count;
  std::atomic<uint64_t> written, read;  // bytes, ever
  std::byte bytes[kPipeBytes];
};

struct RankState {
  std::atomic<int> process;        // its id; 0: not here yet
  std::atomic<int> left;           // 1: the communicator was destroyed or aborted
  std::atomic<uint64_t> barriers;  // that it has come to, ever
  uint64_t entered;                // collectives, ever; its own business
  Call calls[2];  // of even and odd collectives: a rank may be one ahead of another that still compares
};

struct Header {
  std::atomic<int> ranks;
  std::atomic<int> joined;
  std::atomic<int> failed;                    // a misuse was seen: all waits of all ranks end
  std::atomic<int> aborted;                   // a rank has aborted
  std::atomic<uint64_t> arrived, generation;  // of the barrier
  RankState rank[kMostRanks];
};

// This process's view of a segment, and the waiting in it. Unmapped with the last owner.
class Segment {
 public:
  // Opens or makes it; throws std::runtime_error with the reason.
  Segment(const std::string& name, int ranks, int rank);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Header& header() { return *header_; }
  std::byte* slot(int rank);
  Pipe& pipe(int from, int to);
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  void unlink();

  // Before an operation. False when the communicator has failed, and then not before this rank has aborted.
  bool enter();
  // Waits until done(). False when it will not come, with the reason in failure(): blame() names what is waited for,
  // who(r) says whether rank r is still to come.
  bool wait(const std::function<bool()>& done, const std::function<std::string()>& blame,
            const std::function<bool(int)>& who);
  // All ranks; `blame` as above.
  bool barrier(const std::function<std::string()>& blame);

  // Ends every wait of every rank, loudly. status is what ncclCommGetAsyncError says from now on; the first one stays.
  void fail(ncclResult_t status, const std::string& text);
  std::string failure();  // the text of it, or empty
  // Ends the waits of this rank without a message; the others notice it.
  void abort();
  ncclResult_t status();  // also looks whether another rank has failed or aborted
  void leave();           // this rank destroys its communicator

 private:
  bool note(ncclResult_t status, const std::string& text);  // the first error, loudly; whether it was
  bool all_waits_end() const { return over_ || header_->failed != 0; }
  void wait_for_abort(double begin_s);

  std::string name_;
  int ranks_, rank_;
  size_t bytes_ = 0;
  Header* header_ = nullptr;
  std::atomic<int> status_ = ncclSuccess;
  std::atomic<bool> over_ = false;  // this rank has aborted or destroyed its communicator
  int64_t operations_ = 0;          // ever; guarded by the emulator's lock, under which operations run
  std::mutex failure_lock_;
  std::string failure_;
};

}  // namespace simclr::emulator::nccl
