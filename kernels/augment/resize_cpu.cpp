#include "kernels/augment/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

// A ResampleTable with its memory.
struct Table {
  Table(int64_t extent, int64_t size)
      : taps(resample_taps(extent, size)), first(size), weight(static_cast<size_t>(taps * size)) {
    fill_resample_table(extent, size, 1.0, false, {.first = first.data(), .weight = weight.data(), .taps = taps});
  }

  int64_t taps;
  std::vector<int32_t> first;
  std::vector<float> weight;  // [taps, size]
};

}  // namespace

// Not compiled once per instruction set, which may round otherwise: the same image is the same file everywhere.
void resize_image(const PlanarImage& image, int64_t height, int64_t width, uint8_t* out) {
  SIMCLR_CHECK(image.height >= 1 && image.width >= 1 && height >= 1 && width >= 1, "{}x{} pixels to {}x{}",
               image.height, image.width, height, width);
  const Table rows(image.height, height), columns(image.width, width);
  std::vector<float> blended(image.width), sums(static_cast<size_t>(width));
  float* __restrict const x = blended.data();
  float* __restrict const y = sums.data();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t row = 0; row < height; ++row, out += width) {
      std::fill_n(x, image.width, 0.0f);
      for (int64_t t = 0; t < rows.taps; ++t) {
        const uint8_t* source = image.row(c, rows.first[row] + t);
        const float w = rows.weight[t * height + row];
        for (int64_t i = 0; i < image.width; ++i) x[i] += w * to_float(source[i]);
      }
      std::fill_n(y, width, 0.0f);
      for (int64_t t = 0; t < columns.taps; ++t) {
        const float* w = columns.weight.data() + t * width;
        for (int64_t i = 0; i < width; ++i) y[i] += w[i] * x[columns.first[i] + t];
      }
      for (int64_t i = 0; i < width; ++i)
        out[i] = static_cast<uint8_t>(std::floor(std::clamp(y[i], 0.0f, 255.0f) + 0.5f));
    }
  }
}

}  // namespace simclr
