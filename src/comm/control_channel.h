// The control word: what every rank sends the others after each step, and on what all act together. On a CPU they act at
// once. On a GPU two steps later, so that the gather runs next to the computation and no rank waits for it; but at once
// where a step takes longer than a second, so that the lag is bounded in seconds. Within such a step the ranks also poll
// each other between layers, and abandon it when one of them was asked to stop (docs/decisions/0008).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/comm/collectives.h"
#include "src/device/context.h"

namespace simclr {

// One rank's word about one step. Plain bytes: it travels through the memory of the device.
struct ControlWord {
  int64_t step = 0;
  int32_t stop_signal = 0;  // 0: this rank was not asked to stop
  int32_t error_code = 0;   // an ExitCode; 0: none. The reason follows when all ranks act on it, by agree()
  int32_t non_finite = 0;   // not 0: loss or gradient of this step is not finite
  int32_t time_is_up = 0;   // 1: this rank's clock says that the run has lasted long enough
  int32_t save_due = 0;     // 1: this rank's clock asks for a checkpoint
  uint32_t hash_due = 0;    // 1: weights_hash is set
  uint32_t step_ms = 0;     // how long this step took on this rank
  uint64_t weights_hash = 0;
};

// What the words of one step ask for; the same on every rank.
struct Decision {
  int64_t step = 0;
  int stop_signal = 0;  // of the lowest rank that was asked; 0: none
  int stop_rank = -1;
  int error_code = 0;  // of the lowest rank that has an error
  int error_rank = -1;
  bool time_is_up = false, save_due = false;  // on any rank
  std::vector<int> non_finite_ranks;
  std::vector<uint64_t> differing_hashes;  // [W] when the ranks' weights differ, else empty

  bool stop() const { return stop_rank >= 0; }
  bool failed() const { return error_rank >= 0; }
  bool non_finite() const { return !non_finite_ranks.empty(); }
  bool hashes_differ() const { return !differing_hashes.empty(); }
  bool asks_for_action() const {
    return stop() || time_is_up || save_due || failed() || non_finite() || hashes_differ();
  }

  // "the weights of the ranks differ after step 100: rank 0: 0123456789abcdef, ranks 1, 2: …"
  std::string describe_hashes() const;
};

class ControlChannel {
 public:
  static constexpr int64_t kMostDelay = 2;  // steps
  static constexpr double kLongStepS = 1;   // longer ones have no delay

  ControlChannel(Collectives& collectives, Context& context);  // without delay on a CPU
  ControlChannel(Collectives& collectives, Context& context, int64_t most_delay);

  // What only the device knows when the word is posted: places in its memory, read in the order of its work. Null: the
  // word's own value stands.
  struct OnDevice {
    const int* non_finite = nullptr;
    const uint64_t* weights_hash = nullptr;
  };
  // Once per step on every rank, with consecutive steps. Does not block on a GPU.
  void post(const ControlWord& word, const OnDevice& on_device);
  void post(const ControlWord& word) { post(word, {}); }

  // After post() of `step`: what the words that are due by now ask for, oldest first; none when nothing. Error(kDevice)
  // when the ranks were at different steps.
  std::vector<Decision> decisions_after(int64_t step);

  // Between two layers of a step, or two calls of an evaluation, the same place on all ranks: gathers the words and
  // waits for them. word.step: steps done.
  std::optional<Decision> poll(const ControlWord& word);

  // How long the longest rank took for the last step whose words were read; the same on all ranks. None before.
  std::optional<double> step_s() const { return step_s_; }

  // After the last step: what the words that have not been read yet ask for, oldest first.
  std::vector<Decision> drain();

 private:
  // The memory of one step's words.
  struct Slot {
    std::unique_ptr<Upload> upload;      // this rank's word
    Buffer mine;                         // one ControlWord
    Buffer all;                          // [W]
    std::unique_ptr<Readback> readback;  // [W]
  };
  Slot make_slot(Context& context) const;
  void send(Slot& slot, const ControlWord& word, const OnDevice& on_device);
  std::vector<ControlWord> receive(Slot& slot, int64_t step);  // [W]
  Decision decide(int64_t step);
  int64_t delay() const { return step_s_ && *step_s_ > kLongStepS ? 0 : most_delay_; }

  Collectives& collectives_;
  Device& device_;
  const int64_t most_delay_;
  std::array<Slot, kMostDelay + 1> slots_;  // by step mod 3
  Slot poll_slot_;
  std::optional<double> step_s_;
  int64_t first_pending_ = 0, next_ = 0;  // steps posted and not looked at: [first_pending_, next_)
  bool started_ = false;
};

}  // namespace simclr
