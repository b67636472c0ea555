// Writes the rows of a stored image as an upright, planar one.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/augment/planar_image.h"

namespace simclr {

// Takes the rows in any order. Plain data without a destructor, so decoders that leave by longjmp may hold one.
class UprightRows {
 public:
  // height x width: of the stored image. storage receives [3, height, width] of the upright one.
  UprightRows(int64_t height, int64_t width, int orientation, std::vector<uint8_t>& storage)
      : stored_width_(width),
        height_(orientation >= 5 ? width : height),
        width_(orientation >= 5 ? height : width),
        orientation_(orientation) {
    const size_t bytes = 3 * height * width;
    if (storage.size() < bytes) storage.resize(bytes);
    pixels_ = storage.data();
  }

  PlanarImage view() const { return {pixels_, height_, width_}; }

  // Row y of the stored image: `channels` interleaved bytes a pixel, 1 (gray) or 3 (RGB).
  void put(int64_t y, const uint8_t* row, int64_t channels) {
    const int64_t start = place(y, 0), step = stored_width_ > 1 ? place(y, 1) - start : 1;
    const int64_t plane = height_ * width_;
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t* from = row + (channels == 1 ? 0 : c);
      uint8_t* to = pixels_ + c * plane + start;
      if (step == 1) {
        for (int64_t x = 0; x < stored_width_; ++x) to[x] = from[x * channels];
      } else {
        for (int64_t x = 0; x < stored_width_; ++x) to[x * step] = from[x * channels];
      }
    }
  }

 private:
  // Offset of stored pixel (y, x) in a plane of the upright image. The values: EXIF 2.3, tag Orientation.
  int64_t place(int64_t y, int64_t x) const {
    const int64_t bottom = height_ - 1, right = width_ - 1;
    switch (orientation_) {
      case 2:
        return y * width_ + (right - x);
      case 3:
        return (bottom - y) * width_ + (right - x);
      case 4:
        return (bottom - y) * width_ + x;
      case 5:
        return x * width_ + y;
      case 6:
        return x * width_ + (right - y);
      case 7:
        return (bottom - x) * width_ + (right - y);
      case 8:
        return (bottom - x) * width_ + y;
      default:
        return y * width_ + x;
    }
  }

  int64_t stored_width_;
  int64_t height_, width_;  // of the upright image
  int orientation_;
  uint8_t* pixels_ = nullptr;
};

}  // namespace simclr
