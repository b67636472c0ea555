// Crop and resize on the CPU: separable, rows first (wide loads of 8-bit rows), then columns on the `size` rows that
// are left. See ResampleTable for the formula.
#include <algorithm>
#include <cmath>

#include "kernels/augment/augment_ops.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"

namespace simclr {
namespace {

// y[i] = sum_t weight[t * size] * x[t * rows_apart + i] over the 8-bit rows x.
struct RowBlend {
  const uint8_t* rows;
  int64_t rows_apart;
  const float* weight;  // of one output row, `weights_apart` from tap to tap
  int64_t weights_apart;
  int64_t taps;
};

[[gnu::always_inline]] inline void blend_rows(const RowBlend& in, int64_t columns, float* __restrict y) {
  if (in.taps == 2) {  // plain bilinear
    const uint8_t* __restrict a = in.rows;
    const uint8_t* __restrict b = in.rows + in.rows_apart;
    const float wa = in.weight[0], wb = in.weight[in.weights_apart];
    for (int64_t i = 0; i < columns; ++i) y[i] = wa * to_float(a[i]) + wb * to_float(b[i]);
    return;
  }
  std::fill_n(y, columns, 0.0f);
  for (int64_t t = 0; t < in.taps; ++t) {
    const uint8_t* __restrict a = in.rows + t * in.rows_apart;
    const float w = in.weight[t * in.weights_apart];
    for (int64_t i = 0; i < columns; ++i) y[i] += w * to_float(a[i]);
  }
}

// Which columns of the image pass through the first half: the crop's, widened to whole vectors where there is room.
constexpr int64_t kVector = 16;
struct ColumnRange {
  int64_t begin = 0, count = 0;
};

ColumnRange columns_of(const CropBox& crop, int64_t width) {
  const int64_t padded = (crop.width + kVector - 1) / kVector * kVector;
  if (padded > width) return {crop.left, crop.width};
  return {std::min(crop.left, width - padded), padded};
}

}  // namespace

int64_t resample_taps(int64_t extent, int64_t size) {
  const double support = std::max(1.0, as_double(extent) / as_double(size));
  return std::min<int64_t>(static_cast<int64_t>(std::ceil(2 * support)), extent);
}

void fill_resample_table(int64_t extent, int64_t size, double scale, bool reversed, const ResampleTable& table) {
  const double step = as_double(extent) / as_double(size);
  const double support = std::max(1.0, step), inverse_support = 1 / support;
  for (int64_t i = 0; i < size; ++i) {
    const double center = (as_double(i) + 0.5) * step;
    const int64_t nearest_low = static_cast<int64_t>(std::floor(center - support + 0.5));
    const int64_t first = std::clamp<int64_t>(nearest_low, 0, extent - table.taps);
    const int64_t column = reversed ? size - 1 - i : i;
    double sum = 0;
    for (int64_t t = 0; t < table.taps; ++t) {
      const double weight = std::max(0.0, 1 - std::abs(as_double(first + t) + 0.5 - center) * inverse_support);
      sum += weight;
      table.weight[t * size + column] = to_float(weight);
    }
    const double factor = scale / sum;
    for (int64_t t = 0; t < table.taps; ++t) {
      float& weight = table.weight[t * size + column];
      weight = to_float(weight * factor);
    }
    table.first[column] = static_cast<int32_t>(first);
  }
}

int64_t resized_crop_scratch_bytes(int64_t height, int64_t width, int64_t size) {
  const int64_t table = size * (1 + resample_taps(height, size)) + size * (1 + resample_taps(width, size));
  return int64_t{sizeof(float)} * (3 * size * width + table);
}

SIMCLR_MULTIVERSION
void resized_crop(const PlanarImage& image, const CropBox& crop, bool flip, int64_t size, std::byte* scratch,
                  float* out) {
  const ColumnRange columns = columns_of(crop, image.width);
  float* const blended = reinterpret_cast<float*>(scratch);  // [3, size, columns.count]
  ResampleTable rows{.taps = resample_taps(crop.height, size)};
  ResampleTable cols{.taps = resample_taps(crop.width, size)};
  rows.weight = blended + 3 * size * columns.count;
  cols.weight = rows.weight + rows.taps * size;
  rows.first = reinterpret_cast<int32_t*>(cols.weight + cols.taps * size);
  cols.first = rows.first + size;
  fill_resample_table(crop.height, size, 1.0 / 255, false, rows);
  fill_resample_table(crop.width, size, 1.0, flip, cols);

  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < size; ++y) {
      const uint8_t* source = image.row(c, crop.top + rows.first[y]) + columns.begin;
      blend_rows({source, image.width, rows.weight + y, size, rows.taps}, columns.count,
                 blended + (c * size + y) * columns.count);
    }
  }
  const int32_t* __restrict first = cols.first;
  for (int64_t row = 0; row < 3 * size; ++row) {
    const float* __restrict x = blended + row * columns.count + (crop.left - columns.begin);  // [crop.width]
    float* __restrict y = out + row * size;
    if (cols.taps == 2) {
      const float* __restrict wa = cols.weight;
      const float* __restrict wb = cols.weight + size;
      for (int64_t i = 0; i < size; ++i) y[i] = wa[i] * x[first[i]] + wb[i] * x[first[i] + 1];
      continue;
    }
    std::fill_n(y, size, 0.0f);
    for (int64_t t = 0; t < cols.taps; ++t) {
      const float* __restrict w = cols.weight + t * size;
      for (int64_t i = 0; i < size; ++i) y[i] += w[i] * x[first[i] + t];
    }
  }
}

}  // namespace simclr
