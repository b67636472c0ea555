// Checks, the random decisions of a view, and the order of its steps. The arithmetic on pixels is in augment_cpu.cpp.
#include "kernels/augment/augment.h"

#include <algorithm>
#include <cmath>

#include "kernels/augment/augment_ops.h"
#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

constexpr int kCropTries = 10;
constexpr uint32_t kFirstCropBlock = 3;

float uniform_in(uint32_t word, Range range) {
  return range.low + (range.high - range.low) * uniform01(word);
}
double uniform_in(uint32_t word, double low, double high) {
  return low + (high - low) * (word * 0x1p-32);
}
int64_t below(uint32_t word, int64_t n) {
  return static_cast<int64_t>((uint64_t{word} * static_cast<uint64_t>(n)) >> 32);
}

// Permutation `index` of the four ops in lexicographic order (0 = 0123, 23 = 3210).
std::array<JitterOp, 4> jitter_order(uint32_t index) {
  std::array<uint8_t, 4> left = {0, 1, 2, 3};
  std::array<JitterOp, 4> order{};
  constexpr std::array<uint32_t, 4> kRadix = {6, 2, 1, 1};  // orders of the ops that follow
  for (size_t i = 0; i < 4; ++i) {
    const size_t pick = index / kRadix[i];
    index %= kRadix[i];
    order[i] = static_cast<JitterOp>(left[pick]);
    std::copy(left.begin() + static_cast<std::ptrdiff_t>(pick) + 1, left.end(),
              left.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return order;
}

// torchvision RandomResizedCrop.get_params after its ten tries: the largest centered box of an allowed ratio.
CropBox fallback_crop(const std::array<double, 2>& ratio, int64_t height, int64_t width) {
  const double image_ratio = as_double(width) / as_double(height);
  CropBox box{.top = 0, .left = 0, .height = height, .width = width};
  if (image_ratio < ratio[0]) {
    box.height = std::llrint(as_double(width) / ratio[0]);
  } else if (image_ratio > ratio[1]) {
    box.width = std::llrint(as_double(height) * ratio[1]);
  }
  box.height = std::clamp<int64_t>(box.height, 1, height);  // torchvision could return 0 here
  box.width = std::clamp<int64_t>(box.width, 1, width);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

CropBox draw_crop(const ViewParams& params, PhiloxKey key, ViewId id, int64_t height, int64_t width) {
  const double area = as_double(height * width);
  const double log_low = std::log(params.crop_ratio[0]), log_high = std::log(params.crop_ratio[1]);
  for (uint32_t t = 0; t < kCropTries; ++t) {
    const PhiloxCounter word = philox4x32({kFirstCropBlock + t, id.view, id.sample, id.epoch}, key);
    const double target = area * uniform_in(word[0], params.crop_scale[0], params.crop_scale[1]);
    const double ratio = std::exp(uniform_in(word[1], log_low, log_high));
    const int64_t w = std::llrint(std::sqrt(target * ratio));  // to nearest, ties to even, as Python's round
    const int64_t h = std::llrint(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {.top = below(word[2], height - h + 1), .left = below(word[3], width - w + 1), .height = h, .width = w};
  }
  return fallback_crop(params.crop_ratio, height, width);
}

void check_call(const PlanarImage& image, const ViewParams& params, std::span<std::byte> scratch) {
  SIMCLR_CHECK(image.height >= 1 && image.width >= 1, "image is {}x{}", image.height, image.width);
  SIMCLR_CHECK(params.size >= 1 && params.blur_taps % 2 == 1 &&
                   (params.blur_taps / 2 < params.size || params.blur_probability <= 0),
               "size {}, blur kernel {}", params.size, params.blur_taps);
  const int64_t needed = view_scratch_bytes(params, image.height, image.width);
  SIMCLR_CHECK(std::ssize(scratch) >= needed, "scratch has {} bytes, {} are needed", scratch.size(), needed);
}

void apply_jitter(const ViewDraw& draw, int64_t pixels, float* x) {
  for (const JitterOp op : draw.order) {
    switch (op) {
      case JitterOp::kBrightness:
        if (draw.brightness != 1) adjust_brightness(x, pixels, draw.brightness);
        break;
      case JitterOp::kContrast:
        if (draw.contrast != 1) adjust_contrast(x, pixels, draw.contrast);
        break;
      case JitterOp::kSaturation:
        if (draw.saturation != 1) adjust_saturation(x, pixels, draw.saturation);
        break;
      case JitterOp::kHue:
        if (draw.hue != 0) adjust_hue(x, pixels, draw.hue);
        break;
    }
  }
}

}  // namespace

ViewDraw draw_view(const ViewParams& params, PhiloxKey key, ViewId id, int64_t height, int64_t width) {
  SIMCLR_CHECK(height >= 1 && width >= 1, "image is {}x{}", height, width);
  const PhiloxCounter a = philox4x32({0, id.view, id.sample, id.epoch}, key);  // words 0..3
  const PhiloxCounter b = philox4x32({1, id.view, id.sample, id.epoch}, key);  // words 4..7
  const PhiloxCounter c = philox4x32({2, id.view, id.sample, id.epoch}, key);  // words 8..11
  ViewDraw draw;
  draw.flip = uniform01(a[0]) < params.flip_probability;
  draw.jitter = uniform01(a[1]) < params.jitter_probability;
  draw.order = jitter_order(static_cast<uint32_t>(below(a[2], 24)));
  draw.brightness = uniform_in(a[3], params.brightness);
  draw.contrast = uniform_in(b[0], params.contrast);
  draw.saturation = uniform_in(b[1], params.saturation);
  draw.hue = uniform_in(b[2], params.hue);
  draw.grayscale = uniform01(b[3]) < params.grayscale_probability;
  draw.blur = uniform01(c[0]) < params.blur_probability;
  draw.blur_sigma = uniform_in(c[1], params.blur_sigma);
  draw.crop = draw_crop(params, key, id, height, width);
  return draw;
}

int64_t view_scratch_bytes(const ViewParams& params, int64_t height, int64_t width) {
  const int64_t blur = params.blur_probability > 0 ? blur_scratch_bytes(params.size, params.blur_taps) : 0;
  return std::max(resized_crop_scratch_bytes(height, width, params.size), blur);
}

void render_view(const PlanarImage& image, const ViewDraw& draw, const ViewParams& params, std::span<std::byte> scratch,
                 float* out) {
  check_call(image, params, scratch);
  SIMCLR_CHECK(!draw.blur || params.blur_probability > 0, "a draw with blur for views without");
  const int64_t pixels = params.size * params.size;
  resized_crop(image, draw.crop, draw.flip, params.size, scratch.data(), out);
  if (draw.jitter) apply_jitter(draw, pixels, out);
  if (draw.grayscale) to_grayscale(out, pixels);
  if (draw.blur) gaussian_blur(out, params.size, params.blur_taps, draw.blur_sigma, scratch.data());
  normalize(out, pixels, params.mean, params.inverse_std);
}

void render_whole(const PlanarImage& image, const ViewParams& params, std::span<std::byte> scratch, float* out) {
  check_call(image, params, scratch);
  resized_crop(image, center_square(image.height, image.width), false, params.size, scratch.data(), out);
  normalize(out, params.size * params.size, params.mean, params.inverse_std);
}

}  // namespace simclr
