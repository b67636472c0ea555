// A job in the small for failure drills: the same session, heartbeat, watchdog, control word and ways out as the
// trainer, with a loop of ordered sums for a training. One rank (the last) misbehaves at step 5 as told:
//   drill MISHAP RUN_FOLDER TIMEOUT_S [files]
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/control_channel.h"
#include "src/comm/heartbeat.h"
#include "src/comm/make_collectives.h"
#include "src/comm/mpi_session.h"
#include "src/comm/stop_signals.h"
#include "src/comm/topology.h"
#include "src/comm/watchdog.h"
#include "src/comm/way_out.h"

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

  Heartbeat heartbeat;
  std::unique_ptr<MpiSession> session;
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<Watchdog> watchdog;
  WayOut way;

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
    const InsideCollective inside(&heartbeat);  // as if its message never came
    sleep_s(1000);
  }
  if (mishap == "long_work")
    for (int i = 0; i < 20; ++i) {
      sleep_s(timeout_s / 10);
      heartbeat.beat();
    }
}

ExitCode Job::run() {
  handle_notices();
  // As between several hosts: nobody can be watched before the run folder is known.
  const Launcher launcher = read_launcher();
  auto deadline = std::make_unique<StartDeadline>(
      heartbeat, StartDeadline::Options{.limit_s = timeout_s, .rank = launcher.rank, .host = host_name()});
  if (mishap.starts_with("init_") && launcher.rank == launcher.ranks - 1) {
    if (mishap == "init_stop") ::raise(SIGSTOP);
    sleep_s(1000);
  }
  {
    const InsideCollective inside(&heartbeat);
    session = std::make_unique<MpiSession>();
  }
  way.session = session.get();
  start_log({.rank = session->rank(), .ranks = session->size(), .host = host_name()});
  handle_stop_signals();
  if (session->rank() == session->size() - 1) {
    if (mishap == "start_sleep" || mishap == "start_usr1") sleep_s(1000);
    if (mishap == "start_stop") ::raise(SIGSTOP);
  }
  collectives = make_collectives(*session, Reduction::kOrdered, &heartbeat);
  way.collectives = collectives.get();
  const Topology topology = discover_topology(*collectives);
  way.status.ranks = topology.size;
  way.status.rank = topology.rank;
  way.status.host = topology.host();
  const bool culprit = topology.rank == topology.size - 1;
  const bool first_step_is_far = mishap.starts_with("before_");
  require_equal(*collectives, ExitCode::kUsage, "configuration", mishap == "other_config" && culprit ? "cafe" : "5ab1",
                "use one file");
  agree_on(*collectives, [&] {
    if (topology.rank == 0) make_directories(run_folder);
  });
  open_log_file(run_folder);
  way.run_folder = run_folder;
  watchdog = std::make_unique<Watchdog>(
      heartbeat, make_heartbeat_board(*collectives, through_files ? 2 : 1, run_folder),
      Watchdog::Options{.timeout_s = timeout_s, .run_folder = run_folder, .hosts = topology.hosts});
  way.watchdog = watchdog.get();
  deadline.reset();
  watchdog->set_checkpoint("checkpoints/step_00000003.safetensors");
  if (first_step_is_far && culprit) {
    if (mishap == "before_stopped") ::raise(SIGSTOP);
    sleep_s(1000);
  }
  if (first_step_is_far) collectives->barrier();  // the others wait for that rank
  log_info("started {} ranks", topology.size);

  Context context(1);
  ControlChannel control(*collectives, context);
  std::vector<float> grad(100000);
  const int64_t steps = mishap == "none" || mishap == "finalize" || mishap == "long_work" ? 20 : 1000000;
  for (int64_t step = 1; step <= steps; ++step) {
    heartbeat.beat(step - 1, Phase::kTraining);
    if (step == kMishapStep && culprit) misbehave();
    collectives->ordered_sum(std::span(grad));
    sleep_s(0.01);
    control.post({.step = step, .stop_signal = stop_signal()});
    way.status.step = step;
    if (const auto decision = control.decision_for(step); decision && decision->stop())
      return leave_in_order(way, ExitCode::kStopped, fmt::format("signal {}", decision->stop_signal));
  }
  if (mishap == "finalize" && culprit) {  // goes the way of leave_in_order up to MPI_Finalize
    agree_on(*collectives, [] {});
    collectives->barrier();
    watchdog->begin_leaving();
    sleep_s(1000);
  }
  return leave_in_order(way, ExitCode::kDone);
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
    return static_cast<int>(simclr::leave_after_error(job.way, std::current_exception()));
  }
}
