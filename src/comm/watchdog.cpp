#include "src/comm/watchdog.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "src/base/log.h"
#include "src/base/progress_line.h"
#include "src/base/status_file.h"
#include "src/comm/stall_detector.h"
#include "src/comm/startup_stop.h"
#include "src/comm/stop_signals.h"

namespace simclr {
namespace {

constexpr int kExit = static_cast<int>(ExitCode::kDevice);
constexpr int kStoppedExit = static_cast<int>(ExitCode::kStopped);

// The line and status.json go to a file system that may be what hangs: leave after this time in any case.
constexpr unsigned kLastActLimitSeconds = 5;
volatile std::sig_atomic_t last_exit = kExit;
void leave_now(int) {
  ::_exit(last_exit);
}
void limit_last_act(int exit_code) {
  last_exit = exit_code;
  ::signal(SIGALRM, leave_now);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  ::alarm(kLastActLimitSeconds);
}

// A thread that gets no signals: they are for the main thread, whose blocking system calls they shall interrupt.
template <typename Work>
std::thread start_thread(Work work) {
  sigset_t all, old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &old);
  std::thread thread(work);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

// The line of a stop before the first step. signal: "signal 15 to rank 2".
std::string describe_early_end(const std::string& signal, bool has_run_folder) {
  return fmt::format("stopped before the first step ({}){}; start the same command again", signal,
                     has_run_folder ? "" : " and before the run folder was open: status.json is not of this start");
}

constexpr double kSelfReportGraceS = 5;

std::atomic<Watchdog*> speaker = nullptr;  // that a process's last words ask, in whichever folder they are found
bool claim_as_speaker() {
  Watchdog* const watchdog = speaker;
  return watchdog == nullptr || watchdog->claim_report();
}
constexpr double kStopPropagationS = 5;  // for ranks that are alive: one look
constexpr unsigned kReporterGraceS = 3;  // the rank that reports; its exit makes the launcher end all
constexpr double kPauseS = 0.2;          // between two checks for a signal of this process

}  // namespace

Watchdog::Watchdog(Heartbeat& heartbeat, std::unique_ptr<HeartbeatBoard> board, Options options)
    : heartbeat_(heartbeat), board_(std::move(board)), options_(std::move(options)) {
  SIMCLR_CHECK(options_.timeout_s > 0, "a watchdog with a time limit of {} s", options_.timeout_s);
  SIMCLR_CHECK(static_cast<int>(options_.hosts.size()) == board_->size(), "{} hosts for {} ranks",
               options_.hosts.size(), board_->size());
  thread_ = start_thread([this] { run(); });
  speaker = this;
  set_last_words_claim(claim_as_speaker);
}

Watchdog::~Watchdog() {
  Watchdog* mine = this;
  speaker.compare_exchange_strong(mine, nullptr);
  stop();
}

void Watchdog::set_checkpoint(const std::string& name) {
  std::lock_guard lock(mutex_);
  checkpoint_ = name;
}

void Watchdog::watch(std::shared_ptr<CommunicatorHealth> communicator) {
  std::lock_guard lock(mutex_);
  communicator_ = std::move(communicator);
}

void Watchdog::leave_start() {
  heartbeat_.gate().pass();
}

void Watchdog::begin_shutdown() {
  std::lock_guard lock(mutex_);
  leaving_ = true;
  wake_.notify_all();
}

void Watchdog::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Watchdog::claim_report() {
  return board_->claim_report();
}

void Watchdog::run() {
  const int size = board_->size();
  const double interval_s = board_->interval_s(options_.timeout_s);
  StallDetector detector(size, options_.timeout_s, interval_s, monotonic_seconds());
  std::vector<Pulse> pulses(size);
  StartupStop startup_stop(kStopPropagationS);
  std::optional<double> leaving_since_s;
  uint64_t alive = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool leaving = leaving_;
    const std::shared_ptr<CommunicatorHealth> communicator = communicator_;
    lock.unlock();
    Pulse mine = heartbeat_.read();
    mine.alive = ++alive;
    mine.left = leaving;
    startup_stop.fill(mine, heartbeat_.gate(), stop_signal(), pulses);
    const bool starting = !leaving && !mine.begun;
    board_->publish(mine);
    const double now_s = monotonic_seconds();
    if (leaving) {
      if (!leaving_since_s) leaving_since_s = now_s;
      if (now_s - *leaving_since_s > options_.timeout_s)
        end_job(fmt::format("MPI_Finalize has not returned for {:g} s on rank {} ({}); the run itself is complete",
                            options_.timeout_s, board_->rank(), options_.hosts[board_->rank()]),
                mine.step, false);
    } else {
      for (int r = 0; r < size; ++r) pulses[r] = board_->read(r);
      const StartupStop::Outcome stop = startup_stop.look(pulses, starting, interval_s, now_s);
      if (stop == StartupStop::Outcome::kStop) end_start(describe_stop(pulses), mine.step);
      if (stop == StartupStop::Outcome::kMissing)
        end_job(fmt::format("asked to stop by {} before the first step, but rank {} ({}) has given no sign of life for "
                            "{:.1f} s: its process is stopped or gone, or its host is; look there, then start again",
                            describe_stop(pulses), startup_stop.rank(), options_.hosts[startup_stop.rank()],
                            startup_stop.silent_s()),
                mine.step, true);
      if (const std::optional<Verdict> verdict = detector.look(pulses, now_s))
        end_job(describe(*verdict, options_.hosts, options_.timeout_s, options_.setting), mine.step, true);
      if (const std::string error = communicator ? communicator->error() : ""; !error.empty())
        end_job(fmt::format("rank {} ({}): the communication between GPUs failed after step {}: {}; NCCL_DEBUG=INFO "
                            "shows more, --resume auto continues from the last checkpoint",
                            board_->rank(), options_.hosts[board_->rank()], mine.step, error),
                mine.step, true);
    }
    lock.lock();
    wake_.wait_for(lock, std::chrono::duration<double>(interval_s), [&] { return stopping_ || leaving_ != leaving; });
  }
  // Stopped without begin_shutdown (the process ends after an error): the others must not take silence for a stall here.
  Pulse last = heartbeat_.read();
  last.alive = ++alive;
  last.left = true;
  board_->publish(last);
}

void Watchdog::end_start(const std::string& signal, int64_t step) {
  limit_last_act(kStoppedExit);
  if (board_->rank() != 0) ::sleep(kReporterGraceS);
  if (board_->rank() == 0) {
    if (board_->claim_report()) {
      // The file first: the launcher may wait for nothing else, and a terminal can block.
      if (!options_.run_folder.empty()) write_status(RunState::kStopped, signal, step, ExitCode::kStopped);
      log_last_words(describe_early_end(signal, !options_.run_folder.empty()), LogLevel::kInfo);
    } else {
      ::sleep(kReporterGraceS);  // an error has come first: the rank that reports it ends the job with its code
    }
  }
  ::_exit(kStoppedExit);
}

void Watchdog::write_status(RunState state, const std::string& reason, int64_t step, ExitCode code) {
  RunStatus status{.state = state, .reason = reason, .step = step, .exit_code = code};
  status.ranks = board_->size();
  status.rank = board_->rank();
  status.host = options_.hosts[board_->rank()];
  {
    // try_lock: the main thread may have been in set_checkpoint when it stopped responding.
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) status.checkpoint = checkpoint_;
  }
  if (!try_write_status_file(options_.run_folder, status)) log_last_words("status.json could not be written");
}

void Watchdog::end_job(const std::string& reason, int64_t step, bool with_status) {
  limit_last_act(kExit);
  if (!board_->claim_report()) {
    // Another rank is at its last words; who exits first makes the launcher end all, also that one.
    ::sleep(2);
    ::_exit(kExit);
  }
  log_last_words(reason);
  if (with_status && !options_.run_folder.empty()) write_status(RunState::kFailed, reason, step, ExitCode::kDevice);
  std::shared_ptr<CommunicatorHealth> communicator;
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) communicator = communicator_;
  }
  if (communicator) communicator->abort();
  ::_exit(kExit);
}

StartDeadline::StartDeadline(const Heartbeat& heartbeat, Options options)
    : heartbeat_(heartbeat), options_(std::move(options)) {
  SIMCLR_CHECK(options_.limit_s > 0, "a start with a time limit of {} s", options_.limit_s);
  thread_ = start_thread([this] { run(); });
}

StartDeadline::~StartDeadline() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

// The time in which this process was stopped or got no processor does not count: who wakes up late knows nothing yet.
bool StartDeadline::over_within(double seconds) {
  constexpr double kLookS = 0.1;
  std::unique_lock lock(mutex_);
  double before = monotonic_seconds();
  while (seconds > 0) {
    if (wake_.wait_for(lock, std::chrono::duration<double>(kLookS), [&] { return over_; })) return true;
    const double now = monotonic_seconds();
    seconds -= std::min(now - before, 2 * kLookS);
    before = now;
  }
  return over_;
}

// There is no board to ask. SIGTERM may come from a launcher that removes the survivors of a dead rank, which takes it a
// second; and of several ranks that are asked, the first one shall speak for all.
void StartDeadline::end_start(int signal) {
  if ((signal == SIGTERM || options_.rank != 0) && over_within(kReporterGraceS)) return;
  limit_last_act(kStoppedExit);
  log_last_words(describe_early_end(fmt::format("signal {} to rank {}", signal, options_.rank), false),
                 LogLevel::kInfo);
  ::_exit(kStoppedExit);
}

void StartDeadline::run() {
  for (double left_s = options_.limit_s; left_s > 0; left_s -= kPauseS) {
    if (over_within(std::min(left_s, kPauseS))) return;
    if (const int signal = stop_signal(); signal != 0) return end_start(signal);
  }
  const bool waiting = heartbeat_.read().waiting;
  if (waiting && over_within(kSelfReportGraceS + (options_.rank == 0 ? 0 : kReporterGraceS))) return;
  limit_last_act(kExit);
  log_last_words(fmt::format(
      "rank {} ({}) is not done starting after {:g} s: {}, then start again", options_.rank, options_.host,
      options_.limit_s,
      waiting ? "it waits for the other ranks; look at the network and for a host that is stopped or overloaded"
              : "it is at work itself, not waiting for others; look for a slow disk or an overloaded host there"));
  ::_exit(kExit);
}

}  // namespace simclr
