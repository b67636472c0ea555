// The reference: a view in double with plain loops, written from the definitions in augment.h and augment_ops.h and
// sharing nothing with the fast version. Slow, allocates; for tests and for the CUDA twin to be compared with.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

struct Rgb {
  double r = 0, g = 0, b = 0;
};
using Pixels = std::vector<Rgb>;  // [size * size]

double gray_of(const Rgb& p) {
  return 0.2989 * p.r + 0.587 * p.g + 0.114 * p.b;
}
Rgb blend(double factor, const Rgb& p, double other) {
  const auto mix = [=](double v) { return std::clamp(factor * v + (1 - factor) * other, 0.0, 1.0); };
  return {mix(p.r), mix(p.g), mix(p.b)};
}

// Weight of input q for output i: the triangle filter, not normalized.
double triangle(int64_t q, int64_t i, int64_t extent, int64_t size) {
  const double step = as_double(extent) / as_double(size);
  const double center = (as_double(i) + 0.5) * step;
  return std::max(0.0, 1 - std::abs(as_double(q) + 0.5 - center) / std::max(1.0, step));
}

Pixels crop_ref(const PlanarImage& image, const CropBox& crop, bool flip, int64_t size) {
  Pixels out(static_cast<size_t>(size * size));
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      Rgb sum;
      double weights = 0;
      for (int64_t v = 0; v < crop.height; ++v) {
        const double row_weight = triangle(v, y, crop.height, size);
        if (row_weight == 0) continue;
        for (int64_t u = 0; u < crop.width; ++u) {
          const double w = row_weight * triangle(u, x, crop.width, size);
          const int64_t column = crop.left + u;
          sum.r += w * image.row(0, crop.top + v)[column];
          sum.g += w * image.row(1, crop.top + v)[column];
          sum.b += w * image.row(2, crop.top + v)[column];
          weights += w;
        }
      }
      const int64_t at = flip ? size - 1 - x : x;
      out[y * size + at] = {sum.r / weights / 255, sum.g / weights / 255, sum.b / weights / 255};
    }
  }
  return out;
}

// The textbook's two conversions, hue in sixths of a turn.
Rgb turn_hue(const Rgb& p, double turn) {
  const double value = std::max({p.r, p.g, p.b}), chroma = value - std::min({p.r, p.g, p.b});
  if (chroma == 0) return p;
  double hue = value == p.r ? (p.g - p.b) / chroma : value == p.g ? 2 + (p.b - p.r) / chroma : 4 + (p.r - p.g) / chroma;
  hue = std::fmod(hue + 6 * turn + 12, 6.0);
  const int sector = static_cast<int>(hue) % 6;
  const double f = hue - std::floor(hue), low = value - chroma, falling = value - chroma * f,
               rising = value - chroma * (1 - f);
  switch (sector) {
    case 0:
      return {value, rising, low};
    case 1:
      return {falling, value, low};
    case 2:
      return {low, value, rising};
    case 3:
      return {low, falling, value};
    case 4:
      return {rising, low, value};
    default:
      return {value, low, falling};
  }
}

void jitter_ref(const ViewDraw& draw, Pixels& pixels) {
  for (const JitterOp op : draw.order) {
    double mean = 0;
    for (const Rgb& p : pixels) mean += gray_of(p) / as_double(pixels.size());
    for (Rgb& p : pixels) {
      if (op == JitterOp::kBrightness) p = blend(draw.brightness, p, 0);
      if (op == JitterOp::kContrast) p = blend(draw.contrast, p, mean);
      if (op == JitterOp::kSaturation) p = blend(draw.saturation, p, gray_of(p));
      if (op == JitterOp::kHue) p = turn_hue(p, draw.hue);
    }
  }
}

Pixels blur_ref(const Pixels& in, int64_t size, int64_t taps, double sigma) {
  const auto mirrored = [size](int64_t i) { return i < 0 ? -i : i >= size ? 2 * size - 2 - i : i; };
  Pixels out(in.size());
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      Rgb sum;
      double weights = 0;
      for (int64_t v = -(taps / 2); v <= taps / 2; ++v) {
        for (int64_t u = -(taps / 2); u <= taps / 2; ++u) {
          const double w = std::exp(-0.5 * as_double(u * u + v * v) / (sigma * sigma));
          const Rgb& p = in[mirrored(y + v) * size + mirrored(x + u)];
          sum = {sum.r + w * p.r, sum.g + w * p.g, sum.b + w * p.b};
          weights += w;
        }
      }
      out[y * size + x] = {sum.r / weights, sum.g / weights, sum.b / weights};
    }
  }
  return out;
}

}  // namespace

void render_view_ref(const PlanarImage& image, const ViewDraw& draw, const ViewParams& params, double* out) {
  Pixels pixels = crop_ref(image, draw.crop, draw.flip, params.size);
  if (draw.jitter) jitter_ref(draw, pixels);
  if (draw.grayscale) {
    for (Rgb& p : pixels) p = {gray_of(p), gray_of(p), gray_of(p)};
  }
  if (draw.blur) pixels = blur_ref(pixels, params.size, params.blur_taps, draw.blur_sigma);
  const size_t count = pixels.size();
  for (size_t i = 0; i < count; ++i) {
    out[i] = (pixels[i].r - params.mean[0]) * params.inverse_std[0];
    out[count + i] = (pixels[i].g - params.mean[1]) * params.inverse_std[1];
    out[2 * count + i] = (pixels[i].b - params.mean[2]) * params.inverse_std[2];
  }
}

}  // namespace simclr
