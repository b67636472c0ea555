// Views per second of one core: crop, flip, jitter, grayscale (and blur), normalize, as SimCLR asks for them.
// items_per_second is the figure; run with --benchmark_repetitions=9 and read the median.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/augment/augment.h"

namespace simclr {
namespace {

ViewParams usual_views(int64_t size, bool blur) {
  return {.size = size,
          .crop_scale = {0.08, 1.0},
          .crop_ratio = {0.75, 1.3333},
          .flip_probability = 0.5f,
          .jitter_probability = 0.8f,
          .brightness = {0.6f, 1.4f},
          .contrast = {0.6f, 1.4f},
          .saturation = {0.6f, 1.4f},
          .hue = {-0.1f, 0.1f},
          .grayscale_probability = 0.2f,
          .blur_probability = blur ? 0.5f : 0.0f,
          .blur_sigma = {0.1f, 2.0f},
          .blur_taps = blur_taps_for(size),
          .mean = {0.49f, 0.48f, 0.44f},
          .inverse_std = {4.0f, 4.1f, 3.8f}};
}

// Arguments: side of the source, side of the view, blur.
void BM_RandomView(benchmark::State& state) {
  constexpr int64_t kImages = 64;
  const int64_t side = state.range(0);
  const ViewParams params = usual_views(state.range(1), state.range(2) != 0);
  std::vector<uint8_t> pixels(kImages * 3 * side * side);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  std::vector<std::byte> scratch(view_scratch_bytes(params, side, side));
  std::vector<float> out(3 * params.size * params.size);
  const PhiloxKey key = philox_key(1, RandomPurpose::kViews);
  uint32_t sample = 0;
  for (auto _ : state) {
    const PlanarImage image{pixels.data() + (sample % kImages) * 3 * side * side, side, side};
    const ViewDraw draw = draw_view(params, key, {.view = 0, .sample = sample, .epoch = 0}, side, side);
    render_view(image, draw, params, scratch, out.data());
    benchmark::DoNotOptimize(out.data());
    ++sample;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_RandomView)
    ->Args({32, 32, 0})
    ->Args({32, 32, 1})
    ->Args({96, 32, 0})
    ->Args({96, 32, 1})
    ->Args({224, 32, 0})
    ->Args({224, 32, 1})
    ->Args({224, 224, 0})
    ->Args({224, 224, 1});

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
