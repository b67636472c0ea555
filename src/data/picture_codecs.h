// The two kinds of pictures, each behind its library: used by picture_file.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/data/picture_file.h"

namespace simclr {

// The pixel limit is not theirs: picture_file.cpp asks for the size first. BadPicture as there.
PictureInfo read_jpeg_info(std::span<const uint8_t> file);
PictureInfo read_png_info(std::span<const uint8_t> file);
PictureView decode_jpeg(std::span<const uint8_t> file, const PictureInfo& info, int reduction,
                        std::vector<uint8_t>& storage);
PictureView decode_png(std::span<const uint8_t> file, const PictureInfo& info, std::vector<uint8_t>& storage);

}  // namespace simclr
