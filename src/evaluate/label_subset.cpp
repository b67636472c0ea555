#include "src/evaluate/label_subset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "kernels/common/philox.h"

namespace simclr {
namespace {

constexpr uint32_t kSubset = 0, kHeldOut = 1;  // purposes of a draw, part of the random counter

// The rows of each class in random order.
std::map<int32_t, std::vector<int64_t>> shuffled_classes(std::span<const int32_t> labels, std::span<const int64_t> rows,
                                                         uint64_t seed, uint32_t what) {
  std::map<int32_t, std::vector<int64_t>> classes;
  for (const int64_t row : rows) classes[labels[row]].push_back(row);
  for (auto& [label, members] : classes) {
    PhiloxStream random(philox_key(seed, RandomPurpose::kLabelSubset), what, static_cast<uint32_t>(label), 0);
    for (size_t i = members.size(); i > 1; --i)  // Fisher and Yates
      std::swap(members[i - 1], members[random.below(static_cast<uint32_t>(i))]);
  }
  return classes;
}

}  // namespace

std::vector<int64_t> draw_label_subset(std::span<const int32_t> labels, double percent, uint64_t seed) {
  SIMCLR_CHECK(percent > 0 && percent <= 100, "{} % of the labels", percent);
  std::vector<int64_t> all(labels.size()), drawn;
  std::iota(all.begin(), all.end(), int64_t{0});
  for (const auto& [label, members] : shuffled_classes(labels, all, seed, kSubset)) {
    const int64_t wanted = std::llround(percent / 100 * as_double(members.size()));
    drawn.insert(drawn.end(), members.begin(), members.begin() + std::max<int64_t>(wanted, 1));
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

HeldOutSplit hold_out(std::span<const int32_t> labels, std::span<const int64_t> rows, uint64_t seed) {
  HeldOutSplit split;
  for (const auto& [label, members] : shuffled_classes(labels, rows, seed, kHeldOut)) {
    const int64_t size = std::ssize(members);
    const int64_t held = size < 2 ? 0 : std::max<int64_t>(size / 5, 1);
    split.held_out.insert(split.held_out.end(), members.begin(), members.begin() + held);
    split.fit.insert(split.fit.end(), members.begin() + held, members.end());
  }
  std::sort(split.held_out.begin(), split.held_out.end());
  std::sort(split.fit.begin(), split.fit.end());
  return split;
}

}  // namespace simclr
