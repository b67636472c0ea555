// Which training labels a probe sees when it may see only a share of them: the same number of every class, drawn once
// from the seed. A smaller share is part of a larger one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace simclr {

// Rows in ascending order: of each class that occurs, llround(percent / 100 * its images), at least one. A function
// of the labels, percent in (0, 100] and the seed.
std::vector<int64_t> draw_label_subset(std::span<const int32_t> labels, double percent, uint64_t seed);

// Of the rows of a subset a fifth of every class, held out to choose by: each class with two rows or more gives at
// least one. Both parts in ascending order.
struct HeldOutSplit {
  std::vector<int64_t> fit, held_out;
};
HeldOutSplit hold_out(std::span<const int32_t> labels, std::span<const int64_t> rows, uint64_t seed);

}  // namespace simclr
