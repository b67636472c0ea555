// The one thing of EXIF that an image's pixels depend on.
#pragma once

#include <cstdint>
#include <span>

namespace simclr {

// Orientation 1..8 of the TIFF structure that EXIF is ("II*\0" or "MM\0*" first); 1 if it says none or nonsense.
int exif_orientation(std::span<const uint8_t> tiff);

}  // namespace simclr
