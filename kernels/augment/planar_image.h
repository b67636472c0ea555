// A decoded image as the data set hands it out and the augmentations read it. Not a network input: those are
// ImagesView (kernels/common/views.h), floats and normalized.
#pragma once

#include <cstdint>

namespace simclr {

// RGB, 8 bits, planar [3, height, width], rows and planes without padding: a row of one channel is contiguous, so that
// it turns into floats with wide loads. Grayscale sources repeat their one channel. Does not own the pixels.
struct PlanarImage {
  const uint8_t* pixels = nullptr;
  int64_t height = 0, width = 0;

  const uint8_t* row(int64_t channel, int64_t y) const { return pixels + (channel * height + y) * width; }
  int64_t bytes() const { return 3 * height * width; }
};

}  // namespace simclr
