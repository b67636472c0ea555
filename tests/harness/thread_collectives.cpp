#include "tests/harness/thread_collectives.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/comm/element.h"

namespace simclr {
namespace {

// Thrown in a rank that cannot continue because another one failed; run_ranks never reports it first.
class PeerFailed : public Error {
 public:
  using Error::Error;
};

// Memory of one rank that the others may read until the operation ends.
struct Shown {
  const std::byte* send = nullptr;
  std::byte* stage = nullptr;
};

// The state that all ranks of one run_ranks share.
class Room {
 public:
  Room(int size, double timeout_s) : size_(size), timeout_s_(timeout_s), shown_(size), stages_(size) {}

  int size() const { return size_; }
  const Shown& shown_by(int rank) const { return shown_[rank]; }

  // Before the first meeting of an operation only: other ranks may still read the buffers of the previous one.
  void show(int rank, const Shown& shown) { shown_[rank] = shown; }

  // Memory of `bytes` that stays with the rank; double for alignment.
  std::byte* stage(int rank, int64_t bytes) {
    stages_[rank].resize(static_cast<size_t>(bytes + 7) / 8);
    return reinterpret_cast<std::byte*>(stages_[rank].data());
  }

  // Waits until all ranks have called the same operation (name, count, type).
  void meet(int rank, const std::string& operation) {
    std::unique_lock lock(mutex_);
    throw_if_broken(operation);
    if (arrived_ > 0 && operation != meeting_) {
      broken_ = fmt::format("rank {} called {}, but another rank called {}", rank, operation, meeting_);
      changed_.notify_all();
      throw Error(ExitCode::kOther, broken_);
    }
    meeting_ = operation;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++generation_;
      changed_.notify_all();
      return;
    }
    if (left_ > 0) break_off(fmt::format("a rank has returned, but rank {} waits in {}", rank, operation));
    const int64_t generation = generation_;
    const bool in_time = changed_.wait_for(lock, std::chrono::duration<double>(timeout_s_),
                                           [&] { return generation_ != generation || !broken_.empty(); });
    if (generation_ != generation) return;
    if (!in_time) break_off(fmt::format("rank {} has waited in {} for {} s", rank, operation, timeout_s_));
    throw_if_broken(operation);
  }

  // The rank takes part in no further operation: its own error, or (empty reason) a normal return.
  void leave(int rank, const std::string& reason) {
    std::lock_guard lock(mutex_);
    ++left_;
    if (broken_.empty() && !reason.empty()) broken_ = fmt::format("rank {} failed: {}", rank, reason);
    if (broken_.empty() && arrived_ > 0)
      broken_ = fmt::format("rank {} has returned, others wait in {}", rank, meeting_);
    changed_.notify_all();
  }

  bool wait_all_left(double limit_s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(limit_s), [&] { return left_ == size_; });
  }

 private:
  [[noreturn]] void break_off(const std::string& reason) {
    broken_ = reason;
    changed_.notify_all();
    throw Error(ExitCode::kDevice, reason);
  }
  void throw_if_broken(const std::string& operation) const {
    if (!broken_.empty()) throw PeerFailed(ExitCode::kDevice, operation + " cannot complete: " + broken_);
  }

  const int size_;
  const double timeout_s_;
  std::vector<Shown> shown_;
  std::vector<std::vector<double>> stages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string meeting_, broken_;
  int arrived_ = 0, left_ = 0;
  int64_t generation_ = 0;
};

class ThreadCollectives : public Collectives {
 public:
  ThreadCollectives(Room& room, int rank) : room_(room), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return room_.size(); }

  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    check_all_gather(send, receive, size());
    const std::string operation = describe("all_gather", send);
    room_.show(rank_, {static_cast<const std::byte*>(send.data), nullptr});
    room_.meet(rank_, operation);
    const int64_t bytes = bytes_of(send);
    for (int r = 0; r < size(); ++r)
      copy(static_cast<std::byte*>(receive.data) + r * bytes, room_.shown_by(r).send, bytes);
    room_.meet(rank_, operation + " (end)");
  }

  void ordered_sum(TypedSpan data) override {
    const std::string operation = describe("ordered_sum", data);
    sum_slice(operation, data, data.count * rank_ / size(), data.count * (rank_ + 1) / size());
    room_.meet(rank_, operation + " (copy)");
    copy(data.data, room_.shown_by(0).stage, bytes_of(data));
    room_.meet(rank_, operation + " (end)");
  }

  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    check_reduce_scatter(send, receive, size());
    const std::string operation = describe("reduce_scatter", send);
    sum_slice(operation, send, receive.count * rank_, receive.count * (rank_ + 1));
    const int64_t bytes = bytes_of(receive);
    copy(receive.data, room_.shown_by(0).stage + rank_ * bytes, bytes);
    room_.meet(rank_, operation + " (end)");
  }

  void broadcast(TypedSpan data, int root) override {
    check_root(root, size());
    const std::string operation = describe("broadcast", data) + " from " + std::to_string(root);
    room_.show(rank_, {static_cast<const std::byte*>(data.data), nullptr});
    room_.meet(rank_, operation);
    if (rank_ != root) copy(data.data, room_.shown_by(root).send, bytes_of(data));
    room_.meet(rank_, operation + " (end)");
  }

  void barrier() override { room_.meet(rank_, "barrier"); }

 private:
  static std::string describe(const char* name, ConstTypedSpan span) {
    const char* type = span.type == ElementType::kFloat32   ? "float32"
                       : span.type == ElementType::kFloat64 ? "float64"
                                                            : "bytes";
    return fmt::format("{} of {} {}", name, span.count, type);
  }
  static void copy(void* to, const void* from, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  // Leaves the sum of elements [begin, end) over ranks, in tree order, in the stage of rank 0.
  void sum_slice(const std::string& operation, ConstTypedSpan data, int64_t begin, int64_t end) {
    check_sum(data, size());
    check_tree(size());
    std::byte* stage = room_.stage(rank_, bytes_of(data));
    copy(stage, data.data, bytes_of(data));
    room_.show(rank_, {nullptr, stage});
    room_.meet(rank_, operation);
    ordered_tree_sum_typed(
        data.type, [&](int64_t r) { return room_.shown_by(static_cast<int>(r)).stage; }, size(), begin, end);
  }

  Room& room_;
  const int rank_;
};

}  // namespace

void run_ranks(int size, const std::function<void(Collectives&)>& body, double timeout_s) {
  SIMCLR_CHECK(size >= 1, "run_ranks with {} ranks", size);
  Room room(size, timeout_s);
  std::vector<std::exception_ptr> own_errors(size), peer_errors(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadCollectives collectives(room, rank);
      std::string reason;
      try {
        body(collectives);
      } catch (const PeerFailed& e) {
        peer_errors[rank] = std::current_exception();
        reason = e.what();
      } catch (const std::exception& e) {
        own_errors[rank] = std::current_exception();
        reason = e.what();
      } catch (...) {
        own_errors[rank] = std::current_exception();
        reason = "unknown exception";
      }
      room.leave(rank, reason);
    });
  }
  if (!room.wait_all_left(2 * timeout_s)) {
    std::fprintf(stderr, "run_ranks: a rank is stuck outside the collectives for over %g s\n", 2 * timeout_s);
    std::abort();
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& errors : {own_errors, peer_errors})
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
}

}  // namespace simclr
