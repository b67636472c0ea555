#include "src/comm/heartbeat.h"

#include "src/base/log.h"
#include "src/comm/agreement.h"

namespace simclr {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kTraining:
      return "training";
    case Phase::kEvaluating:
      return "evaluating";
    case Phase::kSaving:
      return "saving";
    case Phase::kEnding:
      return "ending";
  }
  return "unknown";
}

void Heartbeat::beat(int64_t step, Phase phase) noexcept {
  // An evaluation comes before the first step, too.
  if (phase != Phase::kStarting && phase != Phase::kEvaluating) gate_.pass();
  step_.store(step, std::memory_order_relaxed);
  phase_.store(static_cast<int32_t>(phase), std::memory_order_relaxed);
  beat();
}

void Heartbeat::beat() noexcept {
  progress_.fetch_add(1, std::memory_order_release);
}

// Entering and leaving are progress: who comes out of a long wait starts with all its time.
void Heartbeat::entered_collective() noexcept {
  beat();
  waiting_.store(true, std::memory_order_release);
}

void Heartbeat::left_collective() noexcept {
  beat();
  waiting_.store(false, std::memory_order_release);
}

Pulse Heartbeat::read() const noexcept {
  Pulse pulse;
  pulse.waiting = waiting_.load(std::memory_order_acquire);
  pulse.progress = progress_.load(std::memory_order_acquire);
  pulse.step = step_.load(std::memory_order_relaxed);
  pulse.phase = static_cast<Phase>(phase_.load(std::memory_order_relaxed));
  return pulse;
}

std::unique_ptr<HeartbeatBoard> make_heartbeat_board(Collectives& collectives, int nodes,
                                                     const std::filesystem::path& run_folder) {
  if (nodes == 1) {
    try {
      return make_shared_memory_board(collectives);
    } catch (const AgreedError& e) {
      log_warning("{}; the ranks watch each other through files in {} instead", e.what(),
                  (run_folder / "heartbeat").string());
    }
  }
  return make_file_board(collectives, run_folder);
}

}  // namespace simclr
