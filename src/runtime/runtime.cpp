#include "src/runtime/runtime.h"

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/make_collectives.h"
#include "src/device/choose_device.h"
#include "src/device/processor.h"

namespace simclr {
namespace {

// A killed run's last rank may hold its folder for a moment when the next one starts.
constexpr double kLockPatienceS = 5;

}  // namespace

void Runtime::begin_start(double limit_s) {
  start_deadline_ = std::make_unique<StartDeadline>(
      heartbeat_, StartDeadline::Options{.limit_s = limit_s, .rank = read_launcher().rank, .host = host_name()});
}

void Runtime::start_mpi() {
  {
    const InsideCollective inside(&heartbeat_);
    mpi_.emplace();
  }
  start_log({.rank = rank(), .ranks = size(), .host = host_name()});
  use_reduction(Reduction::kFastest);  // for any number of ranks
}

void Runtime::discover_ranks() {
  topology_ = discover_topology(*bootstrap_);
  status_.ranks = topology_->size;
  status_.rank = topology_->rank;
  status_.host = topology_->host();
}

void Runtime::watch_start() {
  if (topology().nodes > 1) return;
  try {
    watch_host(TrainSettings{}.timeout_s, Watchdog::Options{}.setting);
    end_start();
  } catch (const AgreedError& e) {
    if (is_first()) log_warning("{}; the ranks cannot watch each other until the run folder is open", e.what());
  }
}

void Runtime::watch_host(double timeout_s, const std::string& setting) {
  start_watchdog(make_shared_memory_board(*bootstrap_),
                 {.timeout_s = timeout_s, .run_folder = "", .hosts = topology().hosts, .setting = setting});
}

void Runtime::use_reduction(Reduction reduction) {
  bootstrap_ = make_collectives(mpi(), reduction, &heartbeat_);
}

void Runtime::lock_folder(const std::filesystem::path& folder) {
  folder_lock_.emplace(folder, kLockPatienceS, beat());
  if (!folder_lock_->warning().empty()) log_warning("{}", folder_lock_->warning());
}

// The board is made while the watchdog of the start still watches.
void Runtime::watch_run(const std::filesystem::path& folder, double timeout_s) {
  start_watchdog(make_heartbeat_board(*bootstrap_, topology().nodes, folder),
                 {.timeout_s = timeout_s, .run_folder = folder, .hosts = topology().hosts});
}

void Runtime::start_watchdog(std::unique_ptr<HeartbeatBoard> board, const Watchdog::Options& options) {
  watchdog_ = std::make_unique<Watchdog>(heartbeat_, std::move(board), options);
}

void Runtime::start_device(const DeviceDecision& decision, const Settings& settings) {
  if (is_first() && !decision.sentence.empty()) log_info("{}", decision.sentence);
  const int threads = choose_threads(topology(), settings.run.threads);
  context_ = agree_on(*bootstrap_, [&] {
    if (decision.cuda) {
      return std::make_unique<Context>(make_cuda_device(
          {.ordinal = decision.ordinal, .threads = threads, .precision = settings.run.precision, .beat = beat()}));
    }
    return std::make_unique<Context>(threads, settings.run.precision);
  });
  if (!decision.cuda) {
    if (const std::string warning = slow_convolutions_warning(); !warning.empty() && is_first())
      log_warning("{}", warning);
    return;
  }
  nccl_ = make_nccl_collectives(*bootstrap_, *context_, settings.train.reduction, &heartbeat_);
  staged_ = std::make_unique<StagedCollectives>(*nccl_, context_->shared_device(), &heartbeat_);
  if (watchdog_) watchdog_->watch(nccl_->health());
}

void Runtime::begin_status(const std::filesystem::path& folder, int64_t step, const std::string& checkpoint) {
  status_folder_ = folder;
  status_.step = step;
  status_.checkpoint = checkpoint;
  heartbeat_.beat(step, Phase::kStarting);
  watchdog().set_checkpoint(checkpoint);
}

bool Runtime::record_progress(int64_t step, const std::string& checkpoint) {
  status_.step = step;
  if (checkpoint == status_.checkpoint) return false;
  status_.checkpoint = checkpoint;
  watchdog().set_checkpoint(checkpoint);
  return true;
}

void Runtime::write_status() const {
  SIMCLR_CHECK(status_folder_, "status.json is written before begin_status()");
  write_status_file(*status_folder_, status_);
}

const MpiSession& Runtime::mpi() const {
  SIMCLR_CHECK(mpi_, "MPI is used before start_mpi()");
  return *mpi_;
}

const Topology& Runtime::topology() const {
  SIMCLR_CHECK(topology_, "the topology is asked for before discover_ranks()");
  return *topology_;
}

Watchdog& Runtime::watchdog() const {
  SIMCLR_CHECK(watchdog_, "the watchdog is asked for before it is started");
  return *watchdog_;
}

Collectives& Runtime::host() const {
  if (staged_) return *staged_;
  SIMCLR_CHECK(bootstrap_, "ranks communicate before start_mpi()");
  return *bootstrap_;
}

RunContext Runtime::context() {
  SIMCLR_CHECK(context_, "the device is used before start_device()");
  Collectives& on_device = nccl_ ? static_cast<Collectives&>(*nccl_) : host();
  return {.context = *context_, .collectives = on_device, .host = host(), .heartbeat = heartbeat_};
}

}  // namespace simclr
