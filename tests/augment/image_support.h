// Images and calls that the tests of the augmentations share.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/augment/augment.h"

namespace simclr::test {

// Owns the pixels of one image, planar [3, height, width].
struct TestImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  PlanarImage view() const { return {pixels.data(), height, width}; }
};

// value(channel, y, x) = (85 channel + 37 y + 11 x + 5 x y) mod 256: the image that torchvision's values were made
// from.
inline TestImage formula_image(int64_t height, int64_t width) {
  TestImage p{height, width, {}};
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x)
        p.pixels.push_back(static_cast<uint8_t>((c * 85 + y * 37 + x * 11 + x * y * 5) % 256));
    }
  }
  return p;
}

inline TestImage noise_image(int64_t height, int64_t width, uint32_t seed) {
  TestImage p{height, width, {}};
  PhiloxStream stream({seed, 77}, 0, 0, 0);
  for (int64_t i = 0; i < 3 * height * width; ++i) p.pixels.push_back(static_cast<uint8_t>(stream.below(256)));
  return p;
}

inline TestImage constant_image(int64_t height, int64_t width, uint8_t r, uint8_t g, uint8_t b) {
  TestImage p{height, width, {}};
  for (const uint8_t v : {r, g, b}) p.pixels.insert(p.pixels.end(), static_cast<size_t>(height * width), v);
  return p;
}

inline CropBox whole(const TestImage& p) {
  return {.top = 0, .left = 0, .height = p.height, .width = p.width};
}

// The view, in memory that held NaN before.
inline std::vector<float> render(const TestImage& image, const ViewDraw& draw, const ViewParams& params) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scratch(static_cast<size_t>(view_scratch_bytes(params, image.height, image.width)) / sizeof(float),
                             kNan);
  std::vector<float> out(3 * params.size * params.size, kNan);
  render_view(image.view(), draw, params, std::as_writable_bytes(std::span(scratch)), out.data());
  return out;
}

// What SimCLR asks for, every step in use.
inline ViewParams usual_views(int64_t size) {
  return {.size = size,
          .crop_scale = {0.2, 1.0},
          .crop_ratio = {0.75, 4.0 / 3},
          .flip_probability = 0.5f,
          .jitter_probability = 0.8f,
          .brightness = {0.6f, 1.4f},
          .contrast = {0.6f, 1.4f},
          .saturation = {0.6f, 1.4f},
          .hue = {-0.1f, 0.1f},
          .grayscale_probability = 0.2f,
          .blur_probability = 0.5f,
          .blur_sigma = {0.1f, 2.0f},
          .blur_taps = blur_taps_for(size),
          .mean = {0.5f, 0.4f, 0.3f},
          .inverse_std = {4.0f, 5.0f, 3.0f}};
}

}  // namespace simclr::test
