// The normalization that an encoder was trained with, as a line of text in its checkpoints: images of another data
// set go through the same one.
#pragma once

#include <string>
#include <string_view>

#include "kernels/augment/augment.h"

namespace simclr {

inline constexpr const char* kNormalizationKey = "normalization";  // in the environment of a checkpoint

// "(value - [0.4914, 0.4822, 0.4465]) * [4.0486, 4.1152, 3.8314]": means and inverse standard deviations of values in
// [0, 1], with all their digits.
std::string print_normalization(const ViewParams& params);

// Sets mean and inverse_std to what print_normalization() wrote. False, and nothing set, for any other text.
bool read_normalization(std::string_view text, ViewParams& params);

}  // namespace simclr
