// Color, blur and normalization on the CPU, in place on a view. Loops without branches, so that they compile to vector
// code; each loop is compiled per instruction set. Sums have a fixed order that only the pixel's place decides.
#include <algorithm>
#include <cmath>

#include "kernels/augment/augment_ops.h"
#include "kernels/augment/pixel.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"

namespace simclr {

SIMCLR_MULTIVERSION
void adjust_brightness(float* x, int64_t pixels, float factor) {
  for (int64_t i = 0; i < 3 * pixels; ++i) x[i] = clamp01(factor * x[i]);
}

// Mean of gray over the image: 16 float lanes over blocks of 256 pixels, blocks in double.
SIMCLR_MULTIVERSION
double mean_gray(const float* x, int64_t pixels) {
  constexpr int64_t kLanes = 16, kBlock = 256;
  const float* __restrict r = x;
  const float* __restrict g = x + pixels;
  const float* __restrict b = x + 2 * pixels;
  double sum = 0;
  for (int64_t begin = 0; begin < pixels; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, pixels);
    float lane[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) lane[l] += gray_of(r[i + l], g[i + l], b[i + l]);
    }
    for (int64_t l = 0; i < end; ++i, ++l) lane[l] += gray_of(r[i], g[i], b[i]);
    for (int64_t l = 0; l < kLanes; ++l) sum += lane[l];
  }
  return sum / as_double(pixels);
}

SIMCLR_MULTIVERSION
void adjust_contrast(float* x, int64_t pixels, float factor) {
  const float offset = (1 - factor) * to_float(mean_gray(x, pixels));
  for (int64_t i = 0; i < 3 * pixels; ++i) x[i] = clamp01(factor * x[i] + offset);
}

SIMCLR_MULTIVERSION
void adjust_saturation(float* x, int64_t pixels, float factor) {
  float* __restrict r = x;
  float* __restrict g = x + pixels;
  float* __restrict b = x + 2 * pixels;
  for (int64_t i = 0; i < pixels; ++i) {
    const float offset = (1 - factor) * gray_of(r[i], g[i], b[i]);
    r[i] = clamp01(factor * r[i] + offset);
    g[i] = clamp01(factor * g[i] + offset);
    b[i] = clamp01(factor * b[i] + offset);
  }
}

// HSV without S: with value V, chroma c = max - min = V S and hue h in sixths of a turn, channel n (5, 3, 1 for R, G,
// B) is V - c max(0, min(k, 4 - k, 1)), k = (n + h) mod 6. A gray pixel has c = 0 and stays as it is.
SIMCLR_MULTIVERSION
void adjust_hue(float* x, int64_t pixels, float turn) {
  float* __restrict red = x;
  float* __restrict green = x + pixels;
  float* __restrict blue = x + 2 * pixels;
  const float shift = 6 * (turn - std::floor(turn));  // [0, 6)
  for (int64_t i = 0; i < pixels; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float value = std::max(r, std::max(g, b));
    const float chroma = value - std::min(r, std::min(g, b));
    const float inverse = 1 / (chroma > 0 ? chroma : 1.0f);
    const float from_red = (g - b) * inverse, from_green = (b - r) * inverse + 2, from_blue = (r - g) * inverse + 4;
    const float hue = (value == r ? from_red : value == g ? from_green : from_blue) + shift;  // [-1, 11)
    red[i] = hue_channel(hue + 5, value, chroma);
    green[i] = hue_channel(hue + 3, value, chroma);
    blue[i] = hue_channel(hue + 1, value, chroma);
  }
}

SIMCLR_MULTIVERSION
void to_grayscale(float* x, int64_t pixels) {
  float* __restrict r = x;
  float* __restrict g = x + pixels;
  float* __restrict b = x + 2 * pixels;
  for (int64_t i = 0; i < pixels; ++i) r[i] = g[i] = b[i] = gray_of(r[i], g[i], b[i]);
}

int64_t blur_scratch_bytes(int64_t size, int64_t taps) {
  return int64_t{sizeof(float)} * (size * size + size + 2 * (taps / 2) + taps);
}

SIMCLR_MULTIVERSION
void gaussian_blur(float* x, int64_t size, int64_t taps, float sigma, std::byte* scratch) {
  const int64_t half = taps / 2;
  float* const across = reinterpret_cast<float*>(scratch);  // [size, size], one channel blurred along its rows
  float* const padded = across + size * size;               // [size + 2 half], one row with its mirrored ends
  float* const weight = padded + size + 2 * half;           // [taps]
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const double d = as_double(t - half) / as_double(sigma);
    const double w = std::exp(-0.5 * d * d);
    weight[t] = to_float(w);
    sum += w;
  }
  for (int64_t t = 0; t < taps; ++t) weight[t] = to_float(weight[t] / sum);

  for (int64_t c = 0; c < 3; ++c) {
    float* const plane = x + c * size * size;
    for (int64_t y = 0; y < size; ++y) {
      const float* source = plane + y * size;
      std::copy_n(source, size, padded + half);
      for (int64_t i = 1; i <= half; ++i) {
        padded[half - i] = source[reflect(-i, size)];
        padded[half + size - 1 + i] = source[reflect(size - 1 + i, size)];
      }
      float* __restrict row = across + y * size;
      const float* __restrict p = padded;
      for (int64_t i = 0; i < size; ++i) row[i] = weight[0] * p[i];
      for (int64_t t = 1; t < taps; ++t) {
        const float w = weight[t];
        for (int64_t i = 0; i < size; ++i) row[i] += w * p[i + t];
      }
    }
    for (int64_t y = 0; y < size; ++y) {
      float* __restrict row = plane + y * size;
      for (int64_t t = 0; t < taps; ++t) {
        const float w = weight[t];
        const float* __restrict a = across + reflect(y + t - half, size) * size;
        if (t == 0) {
          for (int64_t i = 0; i < size; ++i) row[i] = w * a[i];
        } else {
          for (int64_t i = 0; i < size; ++i) row[i] += w * a[i];
        }
      }
    }
  }
}

SIMCLR_MULTIVERSION
void normalize(float* x, int64_t pixels, const std::array<float, 3>& mean, const std::array<float, 3>& inverse_std) {
  for (int64_t c = 0; c < 3; ++c) {
    float* __restrict p = x + c * pixels;
    const float m = mean[c], s = inverse_std[c];
    for (int64_t i = 0; i < pixels; ++i) p[i] = (p[i] - m) * s;
  }
}

}  // namespace simclr
