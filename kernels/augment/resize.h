// A whole image made smaller (or larger) as 8-bit pixels, once: for files of prepared images. Views are resized by
// render_view, in one step with the crop.
#pragma once

#include <cstdint>

#include "kernels/augment/planar_image.h"

namespace simclr {

// out [3, height, width] = the whole image resized (antialiased bilinear, see ResampleTable), rounded to the nearest,
// half up. Sizes >= 1; no overlap. Thread-safe.
void resize_image(const PlanarImage& image, int64_t height, int64_t width, uint8_t* out);

}  // namespace simclr
