// The door between the start and the first step of this process. A stop before the first step ends all ranks at once,
// with nothing saved (startup_stop.h); after it the control word carries the stop and a checkpoint is written. A rank must
// be on one side: once it has shown the others that it knows of a stop, its main thread may not begin to train.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace simclr {

class StartGate {
 public:
  // The main thread, before the first step and at shutdown: waits while the gate is closed. The process may end
  // meanwhile, which is what the gate is closed for.
  void pass() noexcept {
    State expected = State::kOpen;
    while (!state_.compare_exchange_strong(expected, State::kPassed) && expected != State::kPassed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      expected = State::kOpen;
    }
  }

  // The watchdog's thread. close(): false when the main thread has passed; open() undoes it.
  bool close() noexcept {
    State expected = State::kOpen;
    return state_.compare_exchange_strong(expected, State::kClosed) || expected == State::kClosed;
  }
  void open() noexcept {
    State expected = State::kClosed;
    state_.compare_exchange_strong(expected, State::kOpen);
  }

  bool is_passed() const noexcept { return state_.load() == State::kPassed; }

 private:
  enum class State { kOpen, kClosed, kPassed };
  std::atomic<State> state_{State::kOpen};
};

}  // namespace simclr
