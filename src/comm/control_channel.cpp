#include "src/comm/control_channel.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <span>

#include "kernels/common/error.h"

namespace simclr {

ControlChannel::ControlChannel(Collectives& collectives, Context& context)
    : collectives_(collectives), device_(context.device()) {
  const size_t all_bytes = static_cast<size_t>(collectives.size()) * sizeof(ControlWord);
  for (Slot& slot : slots_) {
    slot.upload = device_.make_upload(sizeof(ControlWord));
    slot.mine = context.allocate(sizeof(ControlWord));
    slot.all = context.allocate(all_bytes);
    slot.readback = device_.make_readback(all_bytes);
  }
}

void ControlChannel::post(const ControlWord& word, const OnDevice& on_device) {
  if (!started_) first_pending_ = next_ = word.step;
  started_ = true;
  SIMCLR_CHECK(word.step == next_, "control word of step {}, expected {}", word.step, next_);
  SIMCLR_CHECK(next_ - first_pending_ <= kDelay, "the control words of step {} were not looked at", first_pending_);
  Slot& slot = slots_[word.step % (kDelay + 1)];
  std::memcpy(slot.upload->host(), &word, sizeof word);
  slot.upload->start(slot.mine.data(), sizeof(ControlWord));
  if (on_device.non_finite)
    device_.copy(slot.mine.data() + offsetof(ControlWord, non_finite), on_device.non_finite, sizeof word.non_finite);
  if (on_device.weights_hash)
    device_.copy(slot.mine.data() + offsetof(ControlWord, weights_hash), on_device.weights_hash,
                 sizeof word.weights_hash);
  collectives_.all_gather(slot.mine.as<std::byte>(), slot.all.as<std::byte>());
  slot.readback->start(slot.all.data());
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

Decision ControlChannel::decide(int64_t step) {
  std::vector<ControlWord> words(collectives_.size());
  std::memcpy(words.data(), slots_[step % (kDelay + 1)].readback->wait(), words.size() * sizeof(ControlWord));
  for (size_t r = 0; r < words.size(); ++r)
    if (words[r].step != step)
      fail(ExitCode::kDevice, "rank {} is at step {}, rank {} at step {}; please report it", r, words[r].step,
           collectives_.rank(), step);
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
    decision.time_is_up = decision.time_is_up || word.time_is_up != 0;
    decision.save_due = decision.save_due || word.save_due != 0;
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
