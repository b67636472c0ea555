// One random view of one image: the random decisions (draw_view) and their execution (render_view), and the plain
// resize of evaluation (render_whole). Definitions are torchvision's (transforms/transforms.py, functional_tensor.py);
// docs/views.md lists the formulas and the differences. Not here: threads, batches, files (src/augment).
//
// Order of operations: crop + resize, flip, color jitter, grayscale, blur, normalize. Values are floats in [0, 1] up
// to the last step. A view is a function of (image, params, key, epoch, sample, view) alone, to the bit.
//
// Random words. Philox block b of a view is philox4x32({b, view, sample, epoch}, philox_key(seed, kViews)); word w is
// element w % 4 of block w / 4. Each decision has its own word, whether or not it is used:
//
//   word  0  flip                 u < flip                                 u(w) = (w >> 8) * 2^-24, in [0, 1)
//   word  1  jitter applies       u < jitter_probability
//   word  2  order of the jitter  permutation number (w * 24) >> 32 in lexicographic order (0 = 0123, 23 = 3210)
//   word  3  brightness factor    low + (high - low) * u
//   word  4  contrast factor      likewise
//   word  5  saturation factor    likewise
//   word  6  hue turn             likewise
//   word  7  grayscale applies    u < grayscale_probability
//   word  8  blur applies         u < blur_probability
//   word  9  blur sigma           low + (high - low) * u
//   words 10, 11  unused
//   words 12+4t .. 15+4t, t = 0..9: try t of the crop: area share, log of the ratio (v = w * 2^-32, double),
//            top = (w * (H - h + 1)) >> 32, left = (w * (W - w' + 1)) >> 32; tries after the first success are unused
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/augment/planar_image.h"
#include "kernels/common/philox.h"

namespace simclr {

// low..high of a uniform draw.
struct Range {
  float low = 0, high = 0;
};

enum class JitterOp : uint8_t { kBrightness = 0, kContrast = 1, kSaturation = 2, kHue = 3 };

// What views are made of; made from the settings by make_view_params (src/augment/view_params.h). The defaults leave a
// image as it is. Probabilities in [0, 1]; 1 means always, 0 never.
struct ViewParams {
  int64_t size = 32;                          // side of a view, pixels, >= 1
  std::array<double, 2> crop_scale = {1, 1};  // share of the image's area
  std::array<double, 2> crop_ratio = {1, 1};  // width / height, > 0
  float flip_probability = 0;
  float jitter_probability = 0;
  Range brightness{1, 1}, contrast{1, 1}, saturation{1, 1};  // factors, >= 0
  Range hue{0, 0};                                           // turns of the HSV circle
  float grayscale_probability = 0;
  float blur_probability = 0;
  Range blur_sigma{1, 1};                 // pixels of the view, > 0
  int64_t blur_taps = 3;                  // kernel size, odd, blur_taps / 2 < size
  std::array<float, 3> mean = {0, 0, 0};  // of values in [0, 1], per channel
  std::array<float, 3> inverse_std = {1, 1, 1};
};

// SimCLR's blur kernel (arXiv:2002.05709, appendix A): about a tenth of the side, odd, at least 3.
constexpr int64_t blur_taps_for(int64_t size) {
  return size < 40 ? 3 : 2 * (size / 20) + 1;
}

// Part of an image in whole pixels.
struct CropBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropBox&) const = default;
};

// The random decisions of one view.
struct ViewDraw {
  CropBox crop{};
  bool flip = false, jitter = false, grayscale = false, blur = false;
  std::array<JitterOp, 4> order = {JitterOp::kBrightness, JitterOp::kContrast, JitterOp::kSaturation, JitterOp::kHue};
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;  // neutral values leave every bit alone
  float blur_sigma = 1;
};

// Which view: the Philox counter without the block number.
struct ViewId {
  uint32_t view = 0, sample = 0, epoch = 0;
};

// The decisions of a view of an image of the given size, from the random words of the table above.
ViewDraw draw_view(const ViewParams& params, PhiloxKey key, ViewId id, int64_t height, int64_t width);

// Bytes of scratch that rendering from an image of this size takes.
int64_t view_scratch_bytes(const ViewParams& params, int64_t height, int64_t width);

// out [3, size, size] = the view of `image` that `draw` describes, normalized. `scratch` has at least
// view_scratch_bytes, aligned to 16, any content; no overlap with `out`. Thread-safe; allocates nothing.
void render_view(const PlanarImage& image, const ViewDraw& draw, const ViewParams& params, std::span<std::byte> scratch,
                 float* out);

// The largest square in the middle of an image; of a square one all of it.
constexpr CropBox center_square(int64_t height, int64_t width) {
  const int64_t side = height < width ? height : width;
  return {.top = (height - side) / 2, .left = (width - side) / 2, .height = side, .width = side};
}

// out [3, size, size] = the image without chance, for evaluation: its center square resized (antialiased bilinear)
// and normalized; torchvision's Resize(size), CenterCrop(size). A square image is shown whole.
void render_whole(const PlanarImage& image, const ViewParams& params, std::span<std::byte> scratch, float* out);

}  // namespace simclr
