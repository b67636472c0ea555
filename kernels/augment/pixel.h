// What happens to one pixel, in the functions that the loops of every device call. constexpr, so that nvcc compiles
// them for the GPU too; always_inline, because on the CPU only what is inlined into a clone is compiled for the clone's
// instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

namespace simclr {

// torchvision's rgb_to_grayscale.
[[gnu::always_inline]] constexpr float gray_of(float r, float g, float b) {
  return 0.2989f * r + 0.587f * g + 0.114f * b;
}
[[gnu::always_inline]] constexpr float clamp01(float v) {
  return std::min(std::max(v, 0.0f), 1.0f);
}

// A channel of an HSV color, see adjust_hue. k in [0, 16).
[[gnu::always_inline]] constexpr float hue_channel(float k, float value, float chroma) {
  k -= (k >= 6 ? 6.0f : 0.0f) + (k >= 12 ? 6.0f : 0.0f);
  return value - chroma * std::max(0.0f, std::min(std::min(k, 4 - k), 1.0f));
}

// Index of a pixel outside [0, size), mirrored without repeating the edge: -1 -> 1, size -> size - 2.
constexpr int64_t reflect(int64_t i, int64_t size) {
  if (i < 0) i = -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace simclr
