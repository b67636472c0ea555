#include "src/augment/evaluation_loader.h"

#include <algorithm>

#include "kernels/common/error.h"
#include "kernels/common/parallel.h"
#include "src/augment/reduced_crops.h"

namespace simclr {

EvaluationLoader::EvaluationLoader(const Dataset& dataset, const ViewParams& params, int threads)
    : dataset_(dataset), params_(params), workers_(threads) {
  exec_.threads = threads;
}

int64_t EvaluationLoader::fill(int64_t first, Images images) {
  SIMCLR_CHECK(first >= 0 && images.channels == 3 && images.height == params_.size && images.width == params_.size,
               "images from {} on as [{}, {}, {}]", first, images.channels, images.height, images.width);
  const auto out = images.as<float>();
  const int64_t places = images.shards * images.samples;
  const int64_t real = std::clamp<int64_t>(dataset_.count() - first, 0, places);
  parallel_for(exec_, real, [&](int64_t k, int thread) {
    Worker& worker = workers_[thread];
    const PlanarImage image = dataset_.image_for(
        first + k,
        [&](int64_t height, int64_t width) { return largest_reduction({center_square(height, width)}, params_.size); },
        worker.image);
    const size_t needed = view_scratch_bytes(params_, image.height, image.width);
    if (worker.scratch.size() < needed) worker.scratch.resize(needed);
    render_whole(image, params_, worker.scratch, out.sample(k));
  });
  std::fill(out.sample(real), out.sample(places), 0.0F);
  return real;
}

}  // namespace simclr
