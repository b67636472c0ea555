#include "src/comm/control_channel.h"

#include <algorithm>
#include <map>
#include <span>

#include "kernels/common/error.h"

namespace simclr {

ControlChannel::ControlChannel(Collectives& collectives) : collectives_(collectives) {
  for (auto& words : words_) words.resize(static_cast<size_t>(collectives.size()));
}

void ControlChannel::post(const ControlWord& word) {
  if (!started_) first_pending_ = next_ = word.step;
  started_ = true;
  SIMCLR_CHECK(word.step == next_, "control word of step {}, expected {}", word.step, next_);
  SIMCLR_CHECK(next_ - first_pending_ <= kDelay, "the control words of step {} were not looked at", first_pending_);
  std::vector<ControlWord>& words = words_[word.step % (kDelay + 1)];
  collectives_.all_gather(std::as_bytes(std::span(&word, 1)), std::as_writable_bytes(std::span(words)));
  for (size_t r = 0; r < words.size(); ++r)
    if (words[r].step != word.step)
      fail(ExitCode::kDevice, "rank {} is at step {}, rank {} at step {}; please report it", r, words[r].step,
           collectives_.rank(), word.step);
  ++next_;
}

std::optional<Decision> ControlChannel::decision_for(int64_t step) {
  const int64_t due = step - kDelay;
  if (due < first_pending_ || due >= next_) return std::nullopt;
  SIMCLR_CHECK(due == first_pending_, "decision of step {} before that of step {}", due, first_pending_);
  Decision decision = decide(first_pending_++);
  if (!decision.asks_for_action()) return std::nullopt;
  return decision;
}

std::vector<Decision> ControlChannel::drain() {
  std::vector<Decision> decisions;
  for (; first_pending_ < next_; ++first_pending_) {
    Decision decision = decide(first_pending_);
    if (decision.asks_for_action()) decisions.push_back(std::move(decision));
  }
  return decisions;
}

Decision ControlChannel::decide(int64_t step) const {
  const std::vector<ControlWord>& words = words_[step % (kDelay + 1)];
  Decision decision;
  decision.step = step;
  bool differ = false;
  for (int r = 0; r < static_cast<int>(words.size()); ++r) {
    const ControlWord& word = words[r];
    if (word.stop_signal != 0 && !decision.stop()) {
      decision.stop_signal = word.stop_signal;
      decision.stop_rank = r;
    }
    if (word.error_code != 0 && !decision.failed()) {
      decision.error_code = word.error_code;
      decision.error_rank = r;
    }
    if (word.non_finite != 0) decision.non_finite_ranks.push_back(r);
    differ = differ || word.hash_due != words[0].hash_due ||
             (word.hash_due != 0 && word.weights_hash != words[0].weights_hash);
  }
  if (differ)
    for (const ControlWord& word : words) decision.differing_hashes.push_back(word.weights_hash);
  return decision;
}

std::string Decision::describe_hashes() const {
  std::map<uint64_t, std::string> ranks_of;
  std::vector<uint64_t> order;
  for (size_t r = 0; r < differing_hashes.size(); ++r) {
    std::string& ranks = ranks_of[differing_hashes[r]];
    if (ranks.empty()) order.push_back(differing_hashes[r]);
    ranks += fmt::format("{}{}", ranks.empty() ? "rank " : ", ", r);
  }
  std::string text = fmt::format("the weights of the ranks differ after step {}: ", step);
  for (const uint64_t hash : order)
    text += fmt::format("{}{}: {:016x}", hash == order[0] ? "" : "; ", ranks_of[hash], hash);
  return text;
}

}  // namespace simclr
