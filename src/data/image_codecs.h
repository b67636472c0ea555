// The two kinds of images, each behind its library: used by image_file.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/data/image_file.h"

namespace simclr {

// The pixel limit is not theirs: image_file.cpp asks for the size first. BadImage as there.
ImageInfo read_jpeg_info(std::span<const uint8_t> file);
ImageInfo read_png_info(std::span<const uint8_t> file);
PlanarImage decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                        std::vector<uint8_t>& storage);
PlanarImage decode_png(std::span<const uint8_t> file, const ImageInfo& info, std::vector<uint8_t>& storage);

}  // namespace simclr
