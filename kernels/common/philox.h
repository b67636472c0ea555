// Philox4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11).
// A value is a function of (key, counter): no state exists, so nothing about randomness needs saving.
// Key: (seed, purpose). Counter: what the draw is for, e.g. (draw block, view, sample, epoch).
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/numbers.h"

namespace simclr {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr uint32_t lower_word(uint64_t value) {
  return static_cast<uint32_t>(value);
}
constexpr uint32_t upper_word(uint64_t value) {
  return lower_word(value >> 32);
}

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {upper_word(p1) ^ counter[1] ^ key[0], lower_word(p1), upper_word(p0) ^ counter[3] ^ key[1],
               lower_word(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// What a stream of random numbers is for; part of the key, so that two uses never share numbers.
enum class RandomPurpose : uint32_t {
  kInitialWeights = 1,
  kSampleOrder = 2,
  kViews = 3,
  kSyntheticTrain = 4,
  kSyntheticTest = 5,
  kLabelSubset = 6,
};

// The run's 64-bit seed and a purpose make one key: a Philox block of both, so that near seeds give far keys.
constexpr PhiloxKey philox_key(uint64_t seed, RandomPurpose purpose) {
  const PhiloxCounter mixed =
      philox4x32({static_cast<uint32_t>(purpose), 0, 0, 0}, {lower_word(seed), upper_word(seed)});
  return {mixed[0], mixed[1]};
}

// 24 random bits as a float in [0, 1).
constexpr float uniform01(uint32_t bits) {
  return to_float(bits >> 8) * 0x1p-24f;
}

// A cursor over the draws of one counter: word i of block (i / 4). counter[0] is the block number.
class PhiloxStream {
 public:
  constexpr PhiloxStream(PhiloxKey key, uint32_t c1, uint32_t c2, uint32_t c3) : key_(key), counter_{0, c1, c2, c3} {}
  constexpr uint32_t next() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  constexpr float uniform() { return uniform01(next()); }                                    // [0, 1)
  constexpr float uniform(float low, float high) { return low + (high - low) * uniform(); }  // [low, high)
  constexpr uint32_t below(uint32_t n) { return upper_word(uint64_t{next()} * n); }          // [0, n)

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int used_ = 4;
};

}  // namespace simclr
