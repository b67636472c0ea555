// The simplified interface of libpng (png.h, "simplified API"): it keeps its longjmp to itself.
#include "src/data/png_image.h"

#include <png.h>

#include "kernels/common/error.h"

namespace simclr {

std::string encode_png(const RgbImage& image) {
  SIMCLR_CHECK(image.height >= 1 && image.width >= 1 && std::ssize(image.pixels) == image.height * image.width * 3,
               "{} bytes for {} x {} pixels", image.pixels.size(), image.height, image.width);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string png(bytes, '\0');
  const int done = png_image_write_to_memory(&header, png.data(), &bytes, /*convert_to_8_bit=*/0, image.pixels.data(),
                                             /*row_stride=*/0, /*colormap=*/nullptr);
  if (done == 0)
    fail(ExitCode::kOther, "libpng cannot write an image of {} x {}: {}", image.width, image.height,
         static_cast<const char*>(header.message));
  png.resize(bytes);
  return png;
}

}  // namespace simclr
