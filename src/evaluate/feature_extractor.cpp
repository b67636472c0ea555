// Each rank fills a run of rows; one gather concatenates the runs, which gives the order of the data set.
#include "src/evaluate/feature_extractor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/l2_normalize/l2_normalize.h"

namespace simclr {

FeatureMatrix extract_features(Collectives& collectives, const FeatureSource& source) {
  SIMCLR_CHECK(source.images >= 1 && source.call_images >= 1 && source.feature_size >= 1,
               "{} images in calls of {}, {} features", source.images, source.call_images, source.feature_size);
  const int64_t ranks = collectives.size(), width = source.feature_size;
  const int64_t calls = (source.images + source.call_images - 1) / source.call_images;
  const int64_t rank_calls = (calls + ranks - 1) / ranks;  // the last ranks may have fewer, or none
  const int64_t rank_rows = rank_calls * source.call_images;

  const Buffer own(rank_rows * width * sizeof(float));  // [rank_rows, D]
  const int64_t first_call = collectives.rank() * rank_calls;
  for (int64_t call = first_call; call < first_call + rank_calls; ++call) {
    if (source.before_call) source.before_call();
    if (call >= calls) continue;
    const int64_t first = call * source.call_images;
    const int64_t count = std::min(source.call_images, source.images - first);
    const ConstFloatMatrix features = source.encode(first, count);
    SIMCLR_CHECK(features.rows == source.call_images && features.cols == width, "features [{}, {}], not [{}, {}]",
                 features.rows, features.cols, source.call_images, width);
    float* target = own.as<float>().data() + (call - first_call) * source.call_images * width;
    for (int64_t row = 0; row < count; ++row) std::copy_n(features.row(row), width, target + row * width);
  }

  Buffer all(ranks * rank_rows * width * sizeof(float));  // [W * rank_rows, D], of which the first N rows are used
  collectives.all_gather(own.as<float>(), all.as<float>());
  const FloatMatrix view{all.as<float>().data(), source.images, width, width};
  return {std::move(all), view};
}

void normalize_features(const Exec& exec, const FloatMatrix& features) {
  std::vector<double> norms(features.rows);
  l2_normalize_forward(exec, features, features, norms);
  for (size_t row = 0; row < norms.size(); ++row) {
    if (!std::isfinite(norms[row])) {
      fail(ExitCode::kDiverged,
           "the encoder's feature for image {} is not finite: the weights have diverged; use an earlier checkpoint",
           row);
    }
  }
}

}  // namespace simclr
