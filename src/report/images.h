// Images for the report and for `simclr_train preview`: samples of the data set and the views that training makes of
// them, scaled for display. Not used for training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/settings.h"
#include "src/data/dataset.h"
#include "src/data/png_image.h"

namespace simclr {

// Scales the image into a square of `side` pixels, keeping the aspect ratio, centered on light gray. Smaller images are
// enlarged by repeating pixels, larger ones are averaged over boxes.
RgbImage fit_into_square(const PlanarImage& image, int64_t side);

struct AugmentedPair {
  int64_t sample = 0;  // index in the data set
  RgbImage original;   // [side, side]
  RgbImage views[2];   // [side, side], scaled from data.image_size
};

// The first `count` images of a step (from 0) with exactly the two views that training makes of them with these
// settings; at most a global batch. Throws the errors of the data set.
std::vector<AugmentedPair> draw_pairs(const Dataset& dataset, const Settings& settings, int64_t step, int64_t count,
                                      int64_t side);

// The side at which views are shown: the smallest multiple of image_size that is at least 96 pixels.
int64_t shown_side(int64_t image_size);

// Arranges rows of images of one size in a grid, with a wider gap after the first column (the original image).
RgbImage grid_of(const std::vector<std::vector<RgbImage>>& rows);
std::vector<std::vector<RgbImage>> rows_of(const std::vector<AugmentedPair>& pairs);

}  // namespace simclr
