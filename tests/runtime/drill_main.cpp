// A small job for failure drills: the Runtime and the control word of the trainer around a loop of ordered sums. The
// last rank misbehaves at step 5:
//   drill MISHAP RUN_FOLDER TIMEOUT_S [files]
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/control_channel.h"
#include "src/comm/stop_signals.h"
#include "src/runtime/runtime.h"

namespace simclr {
namespace {

constexpr int64_t kMishapStep = 5;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

struct Job {
  std::string mishap;
  std::filesystem::path run_folder;
  double timeout_s = 3;
  bool through_files = false;

  Runtime runtime;

  void misbehave();
  ExitCode run();
};

void Job::misbehave() {
  if (mishap == "stop") ::raise(SIGSTOP);
  if (mishap == "kill") ::raise(SIGKILL);
  if (mishap == "exit") ::_exit(9);
  if (mishap == "throw") fail(ExitCode::kData, "image 7 is broken");
  if (mishap == "sleep") sleep_s(1000);
  if (mishap == "lost_message") {
    const InsideCollective inside(&runtime.heartbeat());  // as if its message never came
    sleep_s(1000);
  }
  if (mishap == "long_work")
    for (int i = 0; i < 20; ++i) {
      sleep_s(timeout_s / 10);
      runtime.heartbeat().beat();
    }
}

ExitCode Job::run() {
  install_signal_handlers();
  // As with several hosts: ranks cannot watch each other before the run folder is known.
  const Launcher launcher = read_launcher();
  runtime.begin_start(timeout_s);
  if (mishap.starts_with("init_") && launcher.rank == launcher.ranks - 1) {
    if (mishap == "init_stop") ::raise(SIGSTOP);
    sleep_s(1000);
  }
  runtime.start_mpi();
  install_signal_handlers();
  if (runtime.rank() == runtime.size() - 1) {
    if (mishap == "start_sleep" || mishap == "start_usr1") sleep_s(1000);
    if (mishap == "start_stop") ::raise(SIGSTOP);
  }
  runtime.use_reduction(Reduction::kOrdered);
  runtime.discover_ranks();
  Collectives& collectives = runtime.host();
  const bool culprit = runtime.rank() == runtime.size() - 1;
  const bool first_step_is_far = mishap.starts_with("before_");
  require_equal(collectives, ExitCode::kUsage, "configuration", mishap == "other_config" && culprit ? "cafe" : "5ab1",
                "use one file");
  agree_on(collectives, [&] {
    if (runtime.is_first()) make_directories(run_folder);
  });
  open_log_file(run_folder);
  runtime.start_watchdog(make_heartbeat_board(collectives, through_files ? 2 : 1, run_folder),
                         {.timeout_s = timeout_s, .run_folder = run_folder, .hosts = runtime.topology().hosts});
  runtime.end_start();
  runtime.begin_status(run_folder, 0, "checkpoints/step_00000003.safetensors");
  if (first_step_is_far && culprit) {
    if (mishap == "before_stopped") ::raise(SIGSTOP);
    sleep_s(1000);
  }
  if (first_step_is_far) collectives.barrier();  // the others wait for that rank
  log_info("started {} ranks", runtime.size());

  Context context(1);
  ControlChannel control(collectives, context);
  std::vector<float> grad(100000);
  const int64_t steps = mishap == "none" || mishap == "finalize" || mishap == "long_work" ? 20 : 1000000;
  for (int64_t step = 1; step <= steps; ++step) {
    runtime.heartbeat().beat(step - 1, Phase::kTraining);
    if (step == kMishapStep && culprit) misbehave();
    collectives.ordered_sum(std::span(grad));
    sleep_s(0.01);
    control.post({.step = step, .stop_signal = stop_signal()});
    runtime.record_progress(step, runtime.status().checkpoint);
    for (const Decision& decision : control.decisions_after(step))
      if (decision.stop()) return runtime.shut_down(ExitCode::kStopped, fmt::format("signal {}", decision.stop_signal));
  }
  if (mishap == "finalize" && culprit) {  // goes the way of shut_down() up to MPI_Finalize
    agree_on(collectives, [] {});
    collectives.barrier();
    runtime.watchdog().begin_shutdown();
    sleep_s(1000);
  }
  return runtime.shut_down(ExitCode::kDone);
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "drill MISHAP RUN_FOLDER TIMEOUT_S [files]\n");
    return 2;
  }
  simclr::Job job;
  job.mishap = argv[1];
  job.run_folder = argv[2];
  job.timeout_s = std::atof(argv[3]);
  job.through_files = argc > 4;
  try {
    return static_cast<int>(job.run());
  } catch (...) {
    return static_cast<int>(job.runtime.shut_down_after_error(std::current_exception()));
  }
}
