// Draws a share of the training labels for a probe: the same share of every class, as a function of the seed. A smaller
// share is a subset of a larger one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace simclr {

// Returns rows in ascending order: of each class, llround(percent / 100 * its images), at least one. percent is in
// (0, 100].
std::vector<int64_t> draw_label_subset(std::span<const int32_t> labels, double percent, uint64_t seed);

// Holds out a fifth of every class of a subset for choosing hyper-parameters, at least one row of each class with two
// rows or more. Both parts are in ascending order.
struct HeldOutSplit {
  std::vector<int64_t> fit, held_out;
};
HeldOutSplit hold_out(std::span<const int32_t> labels, std::span<const int64_t> rows, uint64_t seed);

}  // namespace simclr
