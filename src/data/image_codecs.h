// The JPEG and the PNG decoder. Private to image_file.cpp, which is the interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/data/image_file.h"

namespace simclr {

// They do not check data.max_pixels: image_file.cpp does. Errors: BadImage.
ImageInfo read_jpeg_info(std::span<const uint8_t> file);
ImageInfo read_png_info(std::span<const uint8_t> file);
PlanarImage decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                        std::vector<uint8_t>& storage);
PlanarImage decode_png(std::span<const uint8_t> file, const ImageInfo& info, std::vector<uint8_t>& storage);

}  // namespace simclr
