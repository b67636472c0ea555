// The thread that ends the job when a rank is dead or stalled: a blocked collective cannot say who is missing. It
// makes no MPI call. On a verdict the first rank that sees it writes one line (stderr and train.log) and status.json;
// all ranks call _exit(4), and the launcher removes processes that cannot exit. A stop that is asked for before
// the first step (startup_stop.h) ends the job the same way, with 75 and a line of rank 0.
// Before there is a place where ranks can see each other, StartDeadline: no names, but no hang without end either.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/base/status_file.h"
#include "src/comm/communicator_health.h"
#include "src/comm/heartbeat.h"
#include "src/comm/topology.h"

namespace simclr {

class Watchdog {
 public:
  struct Options {
    double timeout_s = 600;
    std::filesystem::path run_folder;  // of status.json; empty: none
    std::vector<std::string> hosts;    // [W], by rank
    // The key of timeout_s, for messages. Empty: a command without keys, steps and checkpoints.
    std::string setting = "train.timeout_s";
  };

  // Starts the thread. The heartbeat outlives this.
  Watchdog(Heartbeat& heartbeat, std::unique_ptr<HeartbeatBoard> board, Options options);
  ~Watchdog();  // stops the thread
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // For status.json, should the job end by force: the newest checkpoint, relative to the run folder.
  void set_checkpoint(const std::string& name);

  // From now on also looks whether the communicator has failed, and aborts it when the job ends by force.
  void watch(std::shared_ptr<CommunicatorHealth> communicator);

  // From now on a stop that is asked for no longer ends this rank: its main thread says how the run ends. Waits where
  // the ranks have agreed on such an end before.
  void leave_start();

  // The run is over on all ranks, what is left is MPI_Finalize: from now on this rank is not watched, and the thread
  // only checks that stop() comes within timeout_s.
  void begin_shutdown();
  void stop();

  // True on the first rank that asks: it alone says why the job ends.
  bool claim_report();

 private:
  void run();
  [[noreturn]] void end_start(const std::string& signal, int64_t step);
  [[noreturn]] void end_job(const std::string& reason, int64_t step, bool with_status);
  void write_status(RunState state, const std::string& reason, int64_t step, ExitCode code);

  Heartbeat& heartbeat_;
  const std::unique_ptr<HeartbeatBoard> board_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string checkpoint_;
  std::shared_ptr<CommunicatorHealth> communicator_;
  bool stopping_ = false, leaving_ = false;
  std::thread thread_;
};

// The same for the start, when ranks cannot watch each other yet: when this object still lives after limit_s, its thread
// writes one line that says whether this rank waits for others or is at work itself, and calls _exit(4). Makes no
// MPI call, and may stand before MPI_Init. A rank that waits leaves five seconds later, so that one that is at work
// itself comes first to say so; of those that wait, rank 0 speaks first. Time in which the process itself was stopped
// does not count. A stop that is asked for ends the start within seconds, with 75.
class StartDeadline {
 public:
  struct Options {
    double limit_s = 600;
    int rank = 0;
    std::string host;
  };

  // Starts the thread. The heartbeat outlives this.
  StartDeadline(const Heartbeat& heartbeat, Options options);
  ~StartDeadline();  // the start is over
  StartDeadline(const StartDeadline&) = delete;
  StartDeadline& operator=(const StartDeadline&) = delete;

 private:
  void run();
  void end_start(int signal);
  bool over_within(double seconds);

  const Heartbeat& heartbeat_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace simclr
