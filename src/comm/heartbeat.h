// What a rank publishes for the watchdogs of the others: that its process runs, that its main thread makes progress, and
// where it is. Heartbeat is this rank's own pulse, updated by the main thread; HeartbeatBoard is where all ranks can
// read all pulses. Nothing here calls MPI after set-up.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "src/comm/collective_observer.h"
#include "src/comm/collectives.h"
#include "src/comm/start_gate.h"

namespace simclr {

// What the main thread is doing.
enum class Phase : int32_t { kStarting, kTraining, kEvaluating, kSaving, kEnding };
const char* name_of(Phase phase);

struct Pulse {
  uint64_t alive = 0;     // counts up while the process runs (its watchdog thread)
  uint64_t progress = 0;  // counts up while the main thread makes progress
  int64_t step = 0;       // steps done
  Phase phase = Phase::kStarting;
  bool waiting = false;  // inside a collective: waits for others, so it is not the culprit
  bool left = false;     // shutting down in order: no longer watched
  // While the rank starts (startup_stop.h): the signal that asks it to stop, 0: none; that it knows of one to any rank and
  // will not begin to train. begun: it is past its start.
  int32_t stop_signal = 0;
  bool knows_of_stop = false, begun = false;
};

// beat() comes from the main thread, read() from any.
class Heartbeat final : public CollectiveObserver {
 public:
  void beat(int64_t step, Phase phase) noexcept;
  // In the middle of long work that is not a step.
  void beat() noexcept;

  void entered_collective() noexcept override;
  void left_collective() noexcept override;

  Pulse read() const noexcept;  // what the main thread shows: without alive, left and what concerns a stop
  // From the first step on there is something to save: beat() of such a phase passes the gate first.
  bool is_starting() const noexcept { return !gate_.is_passed(); }
  StartGate& gate() noexcept { return gate_; }

 private:
  std::atomic<uint64_t> progress_{0};
  std::atomic<int64_t> step_{0};
  std::atomic<int32_t> phase_{0};
  std::atomic<bool> waiting_{false};
  StartGate gate_;
};

// Used by the watchdog's thread; claim_report by any.
class HeartbeatBoard {
 public:
  virtual ~HeartbeatBoard() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void publish(const Pulse& mine) noexcept = 0;
  // The newest pulse of a rank that can be seen; a default one before its first.
  virtual Pulse read(int rank) noexcept = 0;
  // True for the first rank that asks: it says why the job ends.
  virtual bool claim_report() noexcept = 0;
  // Seconds between looks that this kind can afford.
  virtual double interval_s(double timeout_s) const = 0;
};

// Shared memory of one host; a single process has it for itself. Collective. Throws AgreedError(kDevice) when a rank
// cannot map it (shared_memory.h).
std::unique_ptr<HeartbeatBoard> make_shared_memory_board(Collectives& collectives);

// A file per rank in RUN_FOLDER/heartbeat, for ranks on several hosts. Collective. AgreedError(kOutput).
std::unique_ptr<HeartbeatBoard> make_file_board(Collectives& collectives, const std::filesystem::path& run_folder);

// The right one of the two; files, with a warning, where shared memory does not work. Collective.
std::unique_ptr<HeartbeatBoard> make_heartbeat_board(Collectives& collectives, int nodes,
                                                     const std::filesystem::path& run_folder);

}  // namespace simclr
