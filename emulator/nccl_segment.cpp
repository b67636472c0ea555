#include "emulator/nccl_segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "emulator/runtime.h"

namespace simclr::emulator::nccl {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double limit_s() {
  static const double limit = [] {
    const char* text = std::getenv("EMULATOR_NCCL_TIMEOUT_S");
    if (!text) return 30.0;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || value <= 0) {
      complain("EMULATOR_NCCL_TIMEOUT_S is '%s', not a number of seconds", text);
      std::_Exit(2);
    }
    return value;
  }();
  return limit;
}

struct Fault {
  int rank = -1;
  int64_t operation = 0;
};
const Fault& planted_fault() {
  static const Fault fault = [] {
    Fault read;
    const char* text = std::getenv("EMULATOR_NCCL_FAULT");
    long long operation = 0;
    int end = 0;
    if (!text || *text == '\0') return read;
    if (std::sscanf(text, "%d:%lld%n", &read.rank, &operation, &end) != 2 || text[end] != '\0' || operation < 1) {
      complain("EMULATOR_NCCL_FAULT is '%s', not RANK:OPERATION", text);
      std::_Exit(2);
    }
    read.operation = operation;
    return read;
  }();
  return fault;
}

size_t align(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

size_t slots_offset() {
  return align(sizeof(Header));
}

size_t pipes_offset(int ranks) {
  return slots_offset() + static_cast<size_t>(ranks) * kSlotBytes;
}

size_t segment_bytes(int ranks) {
  return pipes_offset(ranks) + static_cast<size_t>(ranks) * static_cast<size_t>(ranks) * align(sizeof(Pipe));
}

bool is_gone(int process) {
  return process != 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

Segment::Segment(const std::string& name, int ranks, int rank)
    : name_(name), ranks_(ranks), rank_(rank), bytes_(segment_bytes(ranks)) {
  const int file = ::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0) throw std::runtime_error("shm_open " + name + ": " + std::strerror(errno));
  // Memory that is not there would show as SIGBUS at the first touch.
  const int full = ::posix_fallocate(file, 0, static_cast<off_t>(bytes_));
  void* memory = full == 0 ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int reason = full != 0 ? full : errno;
  ::close(file);
  if (memory == MAP_FAILED) {
    ::shm_unlink(name.c_str());
    throw std::runtime_error(std::to_string(bytes_ >> 10) +
                             " KiB of shared memory in /dev/shm: " + std::strerror(reason));
  }
  header_ = static_cast<Header*>(memory);  // a new file is all zeros, which is how everything starts
}

Segment::~Segment() {
  ::munmap(header_, bytes_);
}

std::byte* Segment::slot(int rank) {
  return reinterpret_cast<std::byte*>(header_) + slots_offset() + static_cast<size_t>(rank) * kSlotBytes;
}

Pipe& Segment::pipe(int from, int to) {
  auto* first = reinterpret_cast<std::byte*>(header_) + pipes_offset(ranks_);
  return *reinterpret_cast<Pipe*>(first + static_cast<size_t>(from * ranks_ + to) * align(sizeof(Pipe)));
}

void Segment::unlink() {
  ::shm_unlink(name_.c_str());
}

bool Segment::enter() {
  const double begin = now_s();
  if (++operations_ == planted_fault().operation && rank_ == planted_fault().rank)
    note(ncclRemoteError, "operation " + std::to_string(operations_) + " meets the planted fault of the network");
  if (status() == ncclSuccess) return true;
  wait_for_abort(begin);
  return false;
}

// The other ranks notice, too, when none aborts.
void Segment::wait_for_abort(double begin_s) {
  while (!all_waits_end()) {
    ::usleep(500);
    if (now_s() - begin_s > limit_s()) header_->failed = 1;
  }
}

bool Segment::wait(const std::function<bool()>& done, const std::function<std::string()>& blame,
                   const std::function<bool(int)>& who) {
  const double begin = now_s();
  for (int64_t turn = 0; !done(); ++turn) {
    if (all_waits_end() || status() != ncclSuccess) {
      wait_for_abort(begin);
      return false;
    }
    if (turn < 200) {
      ::sched_yield();
      continue;
    }
    ::usleep(turn < 2000 ? 50 : 500);  // more ranks than cores
    if (turn % 64 != 0) continue;
    std::string missing;
    bool hopeless = false;
    for (int r = 0; r < ranks_; ++r) {
      if (!who(r)) continue;
      missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(r);
      const bool left = header_->rank[r].left != 0, gone = is_gone(header_->rank[r].process);
      if (!left && !gone) continue;
      hopeless = true;
      missing += left ? " (which has destroyed its communicator)" : " (whose process has ended)";
    }
    if (done()) return true;
    if (hopeless) {
      note(ncclRemoteError, blame() + " waits for " + missing);
      continue;
    }
    if (now_s() - begin > limit_s()) {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%g s", limit_s());
      fail(ncclSystemError,
           blame() + " waited " + seconds + " for " + (missing.empty() ? "no rank in particular" : missing));
      return false;
    }
  }
  return true;
}

bool Segment::barrier(const std::function<std::string()>& blame) {
  const uint64_t generation = header_->generation;
  const uint64_t mine = ++header_->rank[rank_].barriers;
  if (header_->arrived.fetch_add(1) + 1 == static_cast<uint64_t>(ranks_)) {
    header_->arrived = 0;
    ++header_->generation;
    return true;
  }
  return wait([&] { return header_->generation != generation; }, blame,
              [&](int r) { return header_->rank[r].barriers < mine; });
}

bool Segment::note(ncclResult_t status, const std::string& text) {
  int expected = ncclSuccess;
  if (!status_.compare_exchange_strong(expected, status)) return false;
  complain("NCCL: rank %d: %s", rank_, text.c_str());
  const std::lock_guard guard(failure_lock_);
  failure_ = text;
  return true;
}

void Segment::fail(ncclResult_t status, const std::string& text) {
  if (note(status, text)) header_->failed = 1;
}

std::string Segment::failure() {
  const std::lock_guard guard(failure_lock_);
  return failure_;
}

void Segment::abort() {
  int expected = ncclSuccess;
  status_.compare_exchange_strong(expected, ncclInternalError);
  over_ = true;
  header_->aborted = 1;
}

void Segment::leave() {
  over_ = true;
  header_->rank[rank_].left = 1;
}

ncclResult_t Segment::status() {
  if (header_->failed != 0 || header_->aborted != 0) {
    int expected = ncclSuccess;
    status_.compare_exchange_strong(expected, ncclRemoteError);
  }
  return static_cast<ncclResult_t>(status_.load());
}

}  // namespace simclr::emulator::nccl
