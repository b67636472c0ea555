// The orientation of an image from its EXIF data; no other field is read.
#pragma once

#include <cstdint>
#include <span>

namespace simclr {

// Orientation 1..8 from EXIF's TIFF structure, which starts with "II*\0" or "MM\0*"; 1 if it is absent or invalid.
int exif_orientation(std::span<const uint8_t> tiff);

}  // namespace simclr
