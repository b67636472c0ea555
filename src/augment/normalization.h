// The normalization that an encoder was trained with, as a line of text in its checkpoints: evaluation on any data set
// uses the same one.
#pragma once

#include <string>
#include <string_view>

#include "kernels/augment/augment.h"

namespace simclr {

inline constexpr const char* kNormalizationKey = "normalization";  // in the environment of a checkpoint

// "(value - [0.4914, 0.4822, 0.4465]) * [4.0486, 4.1152, 3.8314]": means and inverse standard deviations of values in
// [0, 1], with all digits.
std::string print_normalization(const ViewParams& params);

// Sets mean and inverse_std from the text of print_normalization(). Returns false, and sets nothing, for other texts.
bool read_normalization(std::string_view text, ViewParams& params);

}  // namespace simclr
