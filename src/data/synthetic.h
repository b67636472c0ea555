// The built-in data set: 32x32 images of eight shapes, drawn by rule, so that a first run needs no download.
// Every image shows several copies of ONE shape, each with its own place, size, rotation and pastel color, on a dark
// background with noise. The shape is the cue that survives crops and color jitter: the set is easy by design.
#pragma once

#include <cstdint>

#include "src/data/dataset.h"

namespace simclr {

// Image i of a split shows shape i mod 8 and is a function of (split, i) alone: the same for every seed, rank, thread
// and number of images. (sin, atan2 and others are the system's: single pixel values may differ between machines.)
// The order is not shuffled; the sampler does that.
ImageSet draw_synthetic(const SyntheticSettings& settings, Split split, const Beat& beat = no_beat);

}  // namespace simclr
