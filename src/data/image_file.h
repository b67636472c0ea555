// Decodes one image, JPEG (libjpeg-turbo) or PNG (libpng), from bytes in memory: its upright size from the header, and
// its pixels. The first bytes decide the format, not the file name. Files and folders: image_folder.h.
//
// Every image becomes 8-bit RGB: gray is repeated in three channels; CMYK and YCCK are converted (R = C K / 255 of the
// inverted values that Adobe's marker indicates); palettes are looked up; 16 bits are rounded to 8; alpha,
// transparency, color profiles and gamma are ignored. The EXIF orientation 1..8 is applied if it comes before the
// pixels; other values count as 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/augment/planar_image.h"
#include "kernels/common/error.h"

namespace simclr {

// The bytes are not a usable image. what() is the reason without the file name, which the caller adds.
class BadImage : public Error {
 public:
  explicit BadImage(const std::string& reason) : Error(ExitCode::kData, reason) {}
};

enum class ImageKind { kJpeg, kPng };

struct ImageInfo {
  ImageKind kind = ImageKind::kJpeg;
  int64_t height = 0, width = 0;  // upright, >= 1
  int orientation = 1;            // EXIF, 1..8: how to turn the stored image upright; 5..8 swap height and width
};

// Reads the header only; memory does not grow with the image. BadImage if the bytes are neither JPEG nor PNG, the
// header is damaged or the image has more than max_pixels.
ImageInfo read_image_info(std::span<const uint8_t> file, int64_t max_pixels);

// The image that read_image_info described, upright, planar RGB [3, height, width] in `storage`. `reduction` is 1,
// 2, 4 or 8: a JPEG is decoded at 1/reduction of its size, sides rounded up; a PNG always whole.
//
// BadImage if pixels are missing or cannot be decoded. Damage for which libjpeg only warns (a bad code within the data)
// is accepted, as by PIL and torchvision: the result depends on the bytes alone, so it is the same on every rank. A
// JPEG of more than 100 scans is refused: each scan costs a pass over the image.
PlanarImage decode_image(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                         std::vector<uint8_t>& storage);

}  // namespace simclr
