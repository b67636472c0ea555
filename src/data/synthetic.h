// The embedded data set: 32x32 pictures of eight shapes, drawn by rule, so that a first run needs no download.
// Every picture shows several copies of ONE shape, each with its own place, size, rotation and pastel colour, on a dull
// background with noise. Shape was made the cue that survives crops and colour jitter: the set is easy by design.
#pragma once

#include <cstdint>

#include "src/data/dataset.h"

namespace simclr {

// Picture i of a split shows shape i mod 8 and is a function of (split, i) alone: the same for every seed, rank, thread
// and number of pictures. (sin, atan2 and others come from the system: machines may differ in single pixel values.)
// The order is not shuffled, the sampler does that.
PictureSet draw_synthetic(const SyntheticSettings& settings, Split split, const Beat& beat = no_beat);

}  // namespace simclr
