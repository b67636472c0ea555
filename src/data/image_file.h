// One encoded image, JPEG (libjpeg-turbo) or PNG (libpng), as bytes: its upright size from the header, and its pixels
// as the views read them. What a file is, its first bytes say, never its name. Not here: files and folders
// (image_folder.h).
//
// Every image becomes RGB of 8 bits: gray repeats its channel; CMYK and YCCK are converted (R = C K / 255 of the
// inverted values that Adobe's marker announces); palettes are looked up; 16 bits become 8 by rounding; alpha,
// transparency, color profiles and gamma are left aside. The EXIF orientation 1..8 is applied when it stands before
// the pixels; other values count as 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/augment/planar_image.h"
#include "kernels/common/error.h"

namespace simclr {

// The bytes are no image that can be used. what() is the reason alone: whoever knows the file's name says the rest.
class BadImage : public Error {
 public:
  explicit BadImage(const std::string& reason) : Error(ExitCode::kData, reason) {}
};

enum class ImageKind { kJpeg, kPng };

struct ImageInfo {
  ImageKind kind = ImageKind::kJpeg;
  int64_t height = 0, width = 0;  // upright, >= 1
  int orientation = 1;            // EXIF, 1..8: how the stored image becomes upright; from 5 on height and width swap
};

// From the header alone: takes no memory that grows with the image. BadImage for what is neither kind, for a
// damaged header and for more than max_pixels.
ImageInfo read_image_info(std::span<const uint8_t> file, int64_t max_pixels);

// The image that read_image_info described, upright, planar RGB [3, height, width] in `storage`. `reduction` is 1,
// 2, 4 or 8: a JPEG is decoded at 1/reduction of its size, sides rounded up; a PNG always whole.
//
// BadImage if the pixels are not all there, or cannot be decoded. Damage that libjpeg bridges with a warning alone (a
// bad code within the data) is accepted, as by PIL and torchvision: what it bridges depends on the bytes alone, so
// every rank sees the same. A JPEG of more than 100 scans is refused: each one costs a pass over the image.
PlanarImage decode_image(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                         std::vector<uint8_t>& storage);

}  // namespace simclr
