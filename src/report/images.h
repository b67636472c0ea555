// Images for people: what training sees of a data set, made small enough to look at. Not for training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/settings.h"
#include "src/data/dataset.h"
#include "src/data/png_image.h"

namespace simclr {

// The image inside a square of `side` pixels, aspect kept, centered on light gray. Smaller images are enlarged by
// repeating pixels, larger ones averaged over boxes.
RgbImage fit_into_square(const PlanarImage& image, int64_t side);

struct AugmentedPair {
  int64_t sample = 0;  // its place in the data set
  RgbImage original;   // as a square
  RgbImage views[2];   // of the size of the squares; of data.image_size pixels before they were enlarged or averaged
};

// The first `count` images of a step (0: the first of the run) with the two views that training makes of them: the
// very ones, for the same settings. At most a global batch. Errors as of the data set.
std::vector<AugmentedPair> draw_pairs(const Dataset& dataset, const Settings& settings, int64_t step, int64_t count,
                                      int64_t side);

// The side at which views of that many pixels are shown: themselves, or the smallest multiple from 96 pixels on.
int64_t shown_side(int64_t image_size);

// Rows of images of one size with gaps; a wider one after the first column, which shows what the others belong to.
RgbImage grid_of(const std::vector<std::vector<RgbImage>>& rows);
std::vector<std::vector<RgbImage>> rows_of(const std::vector<AugmentedPair>& pairs);

}  // namespace simclr
