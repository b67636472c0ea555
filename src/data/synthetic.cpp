// Draws the synthetic images: shapes as signed distances in pixels, one pixel of anti-aliasing.
#include "src/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "kernels/common/philox.h"

namespace simclr {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kPixels = kSide * kSide;
constexpr uint64_t kDataSeed = 20240607;  // changing this or any draw below changes the data set
constexpr float kPi = std::numbers::pi_v<float>;
constexpr int kPlaceTries = 60;

enum Shape { kDisc, kSquare, kTriangle, kStar, kCross, kRing, kCrescent, kBars, kShapes };
const std::array<const char*, kShapes> kNames = {"disc",  "square", "triangle", "star",
                                                 "cross", "ring",   "crescent", "bars"};

using Color = std::array<float, 3>;
using Canvas = std::array<std::array<float, kPixels>, 3>;  // [3, 32, 32], values around [0, 1]

float luma(const Color& c) {
  return 0.299f * c[0] + 0.587f * c[1] + 0.114f * c[2];
}
float clamp01(float v) {
  return std::clamp(v, 0.0f, 1.0f);
}
float box(float x, float y, float half_width, float half_height) {
  return std::max(std::abs(x) - half_width, std::abs(y) - half_height);
}

// Five tips at radius `tip`, inner corners at `inner`: folded to half a sector, then the distance to its one edge.
float star(float x, float y, float tip, float inner) {
  constexpr float kSector = 2 * kPi / 5;
  const float turn = std::atan2(y, x) + kSector / 2;
  const float angle = std::abs(turn - kSector * std::floor(turn / kSector) - kSector / 2), radius = std::hypot(x, y);
  const float px = radius * std::cos(angle), py = radius * std::sin(angle);
  const float edge_x = inner * std::cos(kSector / 2) - tip, edge_y = inner * std::sin(kSector / 2);
  return (edge_y * (px - tip) - edge_x * py) / std::hypot(edge_x, edge_y);
}

// Signed distance in pixels from (x, y) to the edge of a shape of radius r around the origin; negative inside.
float distance_to(Shape shape, float x, float y, float r) {
  switch (shape) {
    case kDisc:
      return std::hypot(x, y) - 0.82f * r;
    case kSquare:
      return box(x, y, 0.74f * r, 0.74f * r);
    case kTriangle:
      return std::max({x, -0.5f * x + 0.8660254f * y, -0.5f * x - 0.8660254f * y}) - 0.56f * r;
    case kStar:
      return star(x, y, 1.12f * r, 0.47f * r);
    case kCross:
      return std::min(box(x, y, r, 0.33f * r), box(x, y, 0.33f * r, r));
    case kRing:
      return std::abs(std::hypot(x, y) - 0.76f * r) - 0.24f * r;
    case kCrescent:
      return std::max(std::hypot(x + 0.1f * r, y) - r, 0.8f * r - std::hypot(x - 0.45f * r, y));
    case kBars:
      return box(x, std::abs(y) - 0.58f * r, r, 0.28f * r);
    case kShapes:
      break;
  }
  return 0;
}

// A dark gradient between two near colors, with a faint grating.
void draw_background(PhiloxStream& random, Canvas& canvas) {
  const float base = random.uniform(0.06f, 0.18f);
  Color from{}, to{};
  for (float& v : from) v = clamp01(base + random.uniform(-0.03f, 0.03f));
  const float drift = random.uniform(-0.06f, 0.06f);
  for (size_t c = 0; c < 3; ++c) to[c] = clamp01(from[c] + drift + random.uniform(-0.03f, 0.03f));
  const float gradient = random.uniform(0, 2 * kPi), strength = random.uniform(0, 0.03f);
  const float grating = random.uniform(0, 2 * kPi), phase = random.uniform(0, 2 * kPi), period = random.uniform(4, 12);
  const float gx = 0.9f / kSide * std::cos(gradient), gy = 0.9f / kSide * std::sin(gradient);
  const float wx = 2 * kPi / period * std::cos(grating), wy = 2 * kPi / period * std::sin(grating);
  for (int64_t i = 0; i < kPixels; ++i) {
    const float x = to_float(i % kSide) + 0.5f, y = to_float(i / kSide) + 0.5f;
    const float t = clamp01((x - 16) * gx + (y - 16) * gy + 0.5f), wave = strength * std::sin(wx * x + wy * y + phase);
    for (size_t c = 0; c < 3; ++c) canvas[c][i] = from[c] * (1 - t) + to[c] * t + wave;
  }
}

// A light color of random hue, whose luma and saturation are drawn independently of the hue.
Color draw_pastel(PhiloxStream& random) {
  const float hue = random.uniform(0, 6), brightness = random.uniform(0.6f, 0.8f),
              saturation = random.uniform(0, 0.35f);
  Color pure{};  // HSV(hue, 1, 1)
  for (size_t c = 0; c < 3; ++c) {
    const float k = std::fmod(to_float(5 - 2 * static_cast<int>(c)) + hue, 6.0f);
    pure[c] = 1 - clamp01(std::min(k, 4 - k));
  }
  const float gray = luma(pure);
  for (float& v : pure) v = clamp01(brightness + saturation * (v - gray));
  return pure;
}

struct Copy {
  float x = 0, y = 0, radius = 0;
};

void draw_copy(Shape shape, const Copy& copy, const Color& color, float rotation, Canvas& canvas) {
  const float cosine = std::cos(rotation), sine = std::sin(rotation);
  const float reach = 1.5f * copy.radius + 1;  // bars and square corners lie within sqrt(2) radii
  const auto first = [&](float center) { return std::max<int64_t>(0, static_cast<int64_t>(center - reach)); };
  const auto last = [&](float center) { return std::min<int64_t>(kSide - 1, static_cast<int64_t>(center + reach)); };
  for (int64_t row = first(copy.y); row <= last(copy.y); ++row) {
    for (int64_t column = first(copy.x); column <= last(copy.x); ++column) {
      const float x = to_float(column) + 0.5f - copy.x, y = to_float(row) + 0.5f - copy.y;
      const float coverage =
          clamp01(0.5f - distance_to(shape, cosine * x + sine * y, cosine * y - sine * x, copy.radius));
      if (coverage == 0) continue;
      for (size_t c = 0; c < 3; ++c) {
        float& v = canvas[c][row * kSide + column];
        v = v * (1 - coverage) + color[c] * coverage;
      }
    }
  }
}

// 3 to 5 copies that hardly overlap; fewer if 60 tries find no place.
void draw_copies(PhiloxStream& random, Shape shape, Canvas& canvas) {
  const int64_t wanted = 3 + random.below(3);
  std::array<Copy, 5> placed{};
  int64_t count = 0;
  for (int t = 0; t < kPlaceTries && count < wanted; ++t) {
    Copy copy{.radius = random.uniform(4.5f, 7.5f)};
    copy.x = random.uniform(0.6f * copy.radius, kSide - 0.6f * copy.radius);
    copy.y = random.uniform(0.6f * copy.radius, kSide - 0.6f * copy.radius);
    const bool free = std::all_of(placed.begin(), placed.begin() + count, [&](const Copy& o) {
      return std::hypot(copy.x - o.x, copy.y - o.y) >= 0.95f * (copy.radius + o.radius);
    });
    if (!free) continue;
    placed[count++] = copy;
    const Color color = draw_pastel(random);
    draw_copy(shape, copy, color, random.uniform(-kPi, kPi), canvas);
  }
}

// Adds N(0, 0.04) noise (Box-Muller on pairs of words) and rounds to 8 bits.
void finish(PhiloxStream& random, const Canvas& canvas, uint8_t* pixels) {
  constexpr float kNoise = 0.04f;
  for (size_t i = 0; i < 3 * kPixels; i += 2) {
    const float radius = kNoise * std::sqrt(-2 * std::log(1 - random.uniform())), angle = random.uniform(0, 2 * kPi);
    const std::array<float, 2> noise = {radius * std::cos(angle), radius * std::sin(angle)};
    for (size_t k = 0; k < 2; ++k) {
      const float v = canvas[(i + k) / kPixels][(i + k) % kPixels] + noise[k];
      pixels[i + k] = static_cast<uint8_t>(std::floor(clamp01(v) * 255 + 0.5f));
    }
  }
}

}  // namespace

ImageSet draw_synthetic(const SyntheticSettings& settings, Split split, const Beat& beat) {
  ImageSet set;
  set.count = split == Split::kTrain ? settings.train_images : settings.test_images;
  set.height = set.width = kSide;
  if (set.count < 1)
    fail(ExitCode::kData, "data.synthetic.{}_images is {}; set it to 1 or more", name_of(split), set.count);
  set.class_names.assign(kNames.begin(), kNames.end());
  set.pixels.resize(set.count * 3 * kPixels);
  set.labels.resize(set.count);
  const PhiloxKey key =
      philox_key(kDataSeed, split == Split::kTrain ? RandomPurpose::kSyntheticTrain : RandomPurpose::kSyntheticTest);
  Canvas canvas{};
  for (int64_t i = 0; i < set.count; ++i) {
    const auto shape = static_cast<Shape>(i % kShapes);
    PhiloxStream composition(key, 0, static_cast<uint32_t>(i), 0), noise(key, 1, static_cast<uint32_t>(i), 0);
    draw_background(composition, canvas);
    draw_copies(composition, shape, canvas);
    finish(noise, canvas, set.pixels.data() + i * 3 * kPixels);
    set.labels[i] = shape;
    beat();
  }
  return set;
}

}  // namespace simclr
