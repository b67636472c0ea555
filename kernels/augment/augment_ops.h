// The steps that a view consists of, on planar float images [3, size, size] of values in [0, 1]. Internal to
// kernels/augment: called by render_view in the order of the draw, and by the tests one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/augment/augment.h"

namespace simclr {

// How a row or column of `size` outputs is made of `extent` inputs: output i = sum_t weight[t * size + i] *
// input[first[i] + t]. Triangle filter of half-width support = max(1, extent / size) pixels around the center c = (i +
// 0.5) * extent / size, weight max(0, 1 - |q + 0.5 - c| / support) for input q, normalized over the inputs that exist
// (Pillow's Resample.c, torch's antialiased interpolate). support = 1 is plain bilinear with half-pixel centers.
struct ResampleTable {
  int32_t* first = nullptr;  // [size]; 0 <= first, first + taps <= extent
  float* weight = nullptr;   // [taps, size]; 0 for inputs outside the filter
  int64_t taps = 0;
};

// Inputs that one output can touch: the pixel centers in an open interval of length 2 * support, at most extent.
int64_t resample_taps(int64_t extent, int64_t size);

// Fills table.first and table.weight (memory given by the caller), each weight times `scale`; reversed: for mirrored
// outputs.
void fill_resample_table(int64_t extent, int64_t size, double scale, bool reversed, const ResampleTable& table);

// Bytes of scratch for resized_crop from any crop of an image of this size, and for blur.
int64_t resized_crop_scratch_bytes(int64_t height, int64_t width, int64_t size);
int64_t blur_scratch_bytes(int64_t size, int64_t taps);

// out [3, size, size] = crop of image / 255, resized; mirrored left to right when flip is set.
void resized_crop(const PlanarImage& image, const CropBox& crop, bool flip, int64_t size, std::byte* scratch,
                  float* out);

// In place on x [3, pixels]. gray = 0.2989 R + 0.587 G + 0.114 B; clamp = to [0, 1].
void adjust_brightness(float* x, int64_t pixels, float factor);  // clamp(factor x)
void adjust_contrast(float* x, int64_t pixels, float factor);    // clamp(factor x + (1 - factor) mean(gray))
void adjust_saturation(float* x, int64_t pixels, float factor);  // clamp(factor x + (1 - factor) gray)
void adjust_hue(float* x, int64_t pixels, float turn);           // RGB -> HSV, H + turn mod 1, -> RGB
void to_grayscale(float* x, int64_t pixels);                     // R = G = B = gray

// x [3, size, size] convolved with the normalized Gaussian exp(-i^2 / 2 sigma^2), |i| <= taps / 2, in both directions;
// outside the image it is mirrored without repeating the edge (-1 -> 1).
void gaussian_blur(float* x, int64_t size, int64_t taps, float sigma, std::byte* scratch);

// x = (x - mean) * inverse_std, per channel.
void normalize(float* x, int64_t pixels, const std::array<float, 3>& mean, const std::array<float, 3>& inverse_std);

// The whole of render_view in double and plain loops: what the fast version is measured against.
void render_view_ref(const PlanarImage& image, const ViewDraw& draw, const ViewParams& params, double* out);

}  // namespace simclr
