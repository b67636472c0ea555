#include "src/comm/control_channel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

Decision judge(const std::vector<ControlWord>& words, int64_t step) {
  Decision decision;
  decision.step = step;
  bool differ = false;
  for (int r = 0; r < std::ssize(words); ++r) {
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

}  // namespace

ControlChannel::ControlChannel(Collectives& collectives, Context& context)
    : ControlChannel(collectives, context, context.device().is_cpu() ? 0 : kMostDelay) {}

ControlChannel::ControlChannel(Collectives& collectives, Context& context, int64_t most_delay)
    : collectives_(collectives), device_(context.device()), most_delay_(most_delay), poll_slot_(make_slot(context)) {
  SIMCLR_CHECK(most_delay >= 0 && most_delay <= kMostDelay, "a delay of {} steps", most_delay);
  for (Slot& slot : slots_) slot = make_slot(context);
}

ControlChannel::Slot ControlChannel::make_slot(Context& context) const {
  const size_t all_bytes = bytes_of<ControlWord>(collectives_.size());
  return {.upload = device_.make_upload(sizeof(ControlWord)),
          .mine = context.allocate(sizeof(ControlWord)),
          .all = context.allocate(all_bytes),
          .readback = device_.make_readback(all_bytes)};
}

void ControlChannel::send(Slot& slot, const ControlWord& word, const OnDevice& on_device) {
  std::memcpy(slot.upload->host(), &word, sizeof word);
  slot.upload->start(slot.mine.data(), sizeof(ControlWord));
  if (on_device.non_finite)
    device_.copy(slot.mine.data() + offsetof(ControlWord, non_finite), on_device.non_finite, sizeof word.non_finite);
  if (on_device.weights_hash)
    device_.copy(slot.mine.data() + offsetof(ControlWord, weights_hash), on_device.weights_hash,
                 sizeof word.weights_hash);
  collectives_.all_gather(slot.mine.as<std::byte>(), slot.all.as<std::byte>());
  slot.readback->start(slot.all.data());
}

std::vector<ControlWord> ControlChannel::receive(Slot& slot, int64_t step) {
  std::vector<ControlWord> words(collectives_.size());
  std::memcpy(words.data(), slot.readback->wait(), words.size() * sizeof(ControlWord));
  for (size_t r = 0; r < words.size(); ++r)
    if (words[r].step != step)
      fail(ExitCode::kDevice, "rank {} is at step {}, rank {} at step {}; please report it", r, words[r].step,
           collectives_.rank(), step);
  return words;
}

void ControlChannel::post(const ControlWord& word, const OnDevice& on_device) {
  if (!started_) first_pending_ = next_ = word.step;
  started_ = true;
  SIMCLR_CHECK(word.step == next_, "control word of step {}, expected {}", word.step, next_);
  SIMCLR_CHECK(next_ - first_pending_ <= kMostDelay, "the control words of step {} were not read", first_pending_);
  send(slots_[word.step % std::ssize(slots_)], word, on_device);
  ++next_;
}

std::vector<Decision> ControlChannel::decisions_after(int64_t step) {
  SIMCLR_CHECK(step == next_ - 1, "decisions after step {}, the last word is of step {}", step, next_ - 1);
  std::vector<Decision> decisions;
  while (first_pending_ <= step - delay()) {  // a word may say that there is no delay any more
    Decision decision = decide(first_pending_++);
    if (decision.asks_for_action()) decisions.push_back(std::move(decision));
  }
  return decisions;
}

std::vector<Decision> ControlChannel::drain() {
  std::vector<Decision> decisions;
  while (first_pending_ < next_) {
    Decision decision = decide(first_pending_++);
    if (decision.asks_for_action()) decisions.push_back(std::move(decision));
  }
  return decisions;
}

std::optional<Decision> ControlChannel::poll(const ControlWord& word) {
  send(poll_slot_, word, {});
  Decision decision = judge(receive(poll_slot_, word.step), word.step);
  if (!decision.asks_for_action()) return std::nullopt;
  return decision;
}

Decision ControlChannel::decide(int64_t step) {
  const std::vector<ControlWord> words = receive(slots_[step % std::ssize(slots_)], step);
  uint32_t longest_ms = 0;
  for (const ControlWord& word : words) longest_ms = std::max(longest_ms, word.step_ms);
  step_s_ = 1e-3 * longest_ms;
  return judge(words, step);
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
