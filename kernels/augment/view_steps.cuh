// The steps of a view on CUDA, in the order of render_view: what one block does with one view. A thread owns pixels and
// keeps them through all steps, so that only the mean of the contrast and the blur make it wait for others. Only for
// augment_batch_cuda.cu.
#pragma once

#include <cmath>

#include "kernels/augment/augment_batch.h"
#include "kernels/augment/pixel.h"
#include "kernels/common/block_sum.cuh"
#include "kernels/common/numbers.h"
#include "kernels/common/storage.cuh"

namespace simclr::detail {

// Where the parts of a view's memory begin, in floats. A channel's plane has size * size floats.
struct ViewLayout {
  int64_t planes = 0;  // [3, size, size], and [size, size] more where there is blur
  int64_t row_weight = 0, column_weight = 0, row_first = 0, column_first = 0;  // of two ResampleTables
  int64_t blur_weight = 0;                                                     // [blur_taps]
  int64_t floats = 0;                                                          // of the whole
};

struct ViewStepParams {
  ViewLayout at;
  int size = 0, blur_taps = 0;
  float mean[3] = {}, inverse_std[3] = {};
};

// f(pixel) for the pixels of this thread.
template <typename F>
__device__ void for_own_pixels(int pixels, F f) {
  for (int p = threadIdx.x; p < pixels; p += static_cast<int>(blockDim.x)) f(p);
}

__device__ inline int taps_of(int extent, int size) {
  const double support = fmax(1.0, as_double(extent) / as_double(size));
  const int taps = static_cast<int>(ceil(2 * support));
  return taps < extent ? taps : extent;
}

// Entry i of a table: see fill_resample_table, whose arithmetic this is. place: where the output goes.
__device__ inline void fill_entry(int i, int extent, int size, int taps, double scale, int place, float* weight,
                                  int* first) {
  const double step = as_double(extent) / as_double(size);
  const double support = fmax(1.0, step), inverse_support = 1 / support;
  const double center = __dmul_rn(as_double(i) + 0.5, step);  // not fused into what follows
  const int low = static_cast<int>(floor(center - support + 0.5));
  const int begin = low < 0 ? 0 : low > extent - taps ? extent - taps : low;
  double sum = 0;
  for (int t = 0; t < taps; ++t) {
    const double w = fmax(0.0, 1 - fabs(as_double(begin + t) + 0.5 - center) * inverse_support);
    sum += w;
    weight[t * size + place] = to_float(w);
  }
  const double factor = scale / sum;
  for (int t = 0; t < taps; ++t) {
    float& w = weight[t * size + place];
    w = to_float(w * factor);
  }
  first[place] = begin;
}

// x [3, size, size] = crop of the image / 255, resized, mirrored where the draw says so.
__device__ inline void crop_and_resize(const uint8_t* image, const ViewJob& job, const ViewStepParams& how,
                                       float* memory, float* x) {
  const int size = how.size, pixels = size * size, width = static_cast<int>(job.width);
  const int crop_height = static_cast<int>(job.draw.crop.height), crop_width = static_cast<int>(job.draw.crop.width);
  const int row_taps = taps_of(crop_height, size), column_taps = taps_of(crop_width, size);
  float* row_weight = memory + how.at.row_weight;        // [row_taps, size]
  float* column_weight = memory + how.at.column_weight;  // [column_taps, size]
  int* row_first = reinterpret_cast<int*>(memory + how.at.row_first);
  int* column_first = reinterpret_cast<int*>(memory + how.at.column_first);
  for (int k = threadIdx.x; k < 2 * size; k += static_cast<int>(blockDim.x)) {
    if (k < size) {
      fill_entry(k, crop_height, size, row_taps, 1.0 / 255, k, row_weight, row_first);
    } else {
      const int i = k - size;
      fill_entry(i, crop_width, size, column_taps, 1.0, job.draw.flip ? size - 1 - i : i, column_weight, column_first);
    }
  }
  __syncthreads();
  const int plane = static_cast<int>(job.height) * width;
  const uint8_t* corner = image + job.draw.crop.top * width + job.draw.crop.left;
  for_own_pixels(pixels, [&](int p) {
    const int row = p / size, column = p % size;
    const uint8_t* source = corner + static_cast<int64_t>(row_first[row]) * width + column_first[column];
    for (int c = 0; c < 3; ++c, source += plane) {
      float sum = 0;
      for (int t = 0; t < column_taps; ++t) {
        float blended = 0;  // down a column of the image
        const uint8_t* down = source + t;
        for (int u = 0; u < row_taps; ++u, down += width) {
          blended += row_weight[u * size + row] * to_float(*down);
        }
        sum += column_weight[t * size + column] * blended;
      }
      x[c * pixels + p] = sum;
    }
  });
}

// change(channel) for the three channels of a thread's pixels.
template <typename F>
__device__ void change_channels(float* x, int pixels, F change) {
  for_own_pixels(pixels, [&](int p) {
    for (int c = 0; c < 3; ++c) x[c * pixels + p] = change(x[c * pixels + p]);
  });
}

__device__ inline float gray_at(const float* x, int pixels, int p) {
  return gray_of(x[p], x[pixels + p], x[2 * pixels + p]);
}

__device__ inline void adjust_contrast_of(float* x, int pixels, float factor, double* of_warp) {
  double partial = 0;
  for_own_pixels(pixels, [&](int p) { partial += gray_at(x, pixels, p); });
  const double mean = block_reduce(partial, Add(), of_warp) / as_double(pixels);
  const float offset = (1 - factor) * to_float(mean);
  change_channels(x, pixels, [=](float v) { return clamp01(factor * v + offset); });
}

__device__ inline void adjust_saturation_of(float* x, int pixels, float factor) {
  for_own_pixels(pixels, [&](int p) {
    const float offset = (1 - factor) * gray_at(x, pixels, p);
    for (int c = 0; c < 3; ++c) x[c * pixels + p] = clamp01(factor * x[c * pixels + p] + offset);
  });
}

__device__ inline void adjust_hue_of(float* x, int pixels, float turn) {
  const float shift = 6 * (turn - floorf(turn));  // [0, 6)
  for_own_pixels(pixels, [&](int p) {
    const float r = x[p], g = x[pixels + p], b = x[2 * pixels + p];
    const float value = fmaxf(r, fmaxf(g, b)), chroma = value - fminf(r, fminf(g, b));
    const float inverse = 1 / (chroma > 0 ? chroma : 1.0F);
    const float from_red = (g - b) * inverse, from_green = (b - r) * inverse + 2, from_blue = (r - g) * inverse + 4;
    const float hue = (value == r ? from_red : value == g ? from_green : from_blue) + shift;  // [-1, 11)
    x[p] = hue_channel(hue + 5, value, chroma);
    x[pixels + p] = hue_channel(hue + 3, value, chroma);
    x[2 * pixels + p] = hue_channel(hue + 1, value, chroma);
  });
}

__device__ inline void apply_jitter_of(const ViewDraw& draw, float* x, int pixels, double* of_warp) {
  for (int k = 0; k < 4; ++k) {  // the whole block takes the same way
    switch (draw.order[k]) {
      case JitterOp::kBrightness: {
        const float factor = draw.brightness;
        if (factor != 1) change_channels(x, pixels, [=](float v) { return clamp01(factor * v); });
        break;
      }
      case JitterOp::kContrast:
        if (draw.contrast != 1) adjust_contrast_of(x, pixels, draw.contrast, of_warp);
        break;
      case JitterOp::kSaturation:
        if (draw.saturation != 1) adjust_saturation_of(x, pixels, draw.saturation);
        break;
      case JitterOp::kHue:
        if (draw.hue != 0) adjust_hue_of(x, pixels, draw.hue);
        break;
    }
  }
}

__device__ inline void to_grayscale_of(float* x, int pixels) {
  for_own_pixels(pixels, [&](int p) { x[p] = x[pixels + p] = x[2 * pixels + p] = gray_at(x, pixels, p); });
}

// across [size, size]: a plane of its own.
__device__ inline void gaussian_blur_of(float* x, int size, int taps, float sigma, float* weight, float* across) {
  const int half = taps / 2, pixels = size * size;
  const auto bell = [=](int t) {
    const double d = as_double(t - half) / as_double(sigma);
    return exp(-0.5 * d * d);
  };
  for (int t = threadIdx.x; t < taps; t += static_cast<int>(blockDim.x)) {
    double sum = 0;
    for (int u = 0; u < taps; ++u) sum += bell(u);
    weight[t] = to_float(to_float(bell(t)) / sum);
  }
  for (int c = 0; c < 3; ++c) {
    float* plane = x + c * pixels;
    __syncthreads();  // the plane and the weights are there, the channel before has left `across`
    for_own_pixels(pixels, [&](int p) {
      const int row = p / size, column = p % size;
      float sum = 0;
      for (int t = 0; t < taps; ++t) sum += weight[t] * plane[row * size + reflect(column + t - half, size)];
      across[p] = sum;
    });
    __syncthreads();
    for_own_pixels(pixels, [&](int p) {
      const int row = p / size, column = p % size;
      float sum = 0;
      for (int t = 0; t < taps; ++t) sum += weight[t] * across[reflect(row + t - half, size) * size + column];
      plane[p] = sum;
    });
  }
}

template <typename T>
struct alignas(16) Pixel {
  T channel[kCudaImageChannels];
};

// x, or zeros where x is null, as the network reads it.
template <typename T>
__device__ void write_image(const float* x, const ViewStepParams& how, Pixel<T>* out) {
  const int pixels = how.size * how.size;
  for_own_pixels(pixels, [&](int p) {
    Pixel<T> pixel;
    for (int c = 0; c < kCudaImageChannels; ++c) {
      float v = 0.0F;
      if (c < 3 && x != nullptr) v = (x[c * pixels + p] - how.mean[c]) * how.inverse_std[c];
      pixel.channel[c] = to_storage<T>(v);
    }
    out[p] = pixel;
  });
}

}  // namespace simclr::detail
