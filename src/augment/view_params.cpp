#include "src/augment/view_params.h"

#include <algorithm>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

// torchvision ColorJitter: the factor is uniform in [max(0, 1 - x), 1 + x].
Range factors(double strength) {
  return {to_float(std::max(0.0, 1 - strength)), to_float(1 + strength)};
}

}  // namespace

ViewParams make_view_params(const ViewSettings& views, int64_t image_size, const ChannelStatistics& statistics) {
  ViewParams params;
  params.size = image_size;
  params.crop_scale = views.crop_scale;
  params.crop_ratio = views.crop_ratio;
  params.flip_probability = to_float(views.flip);
  params.jitter_probability = to_float(views.jitter.probability);
  params.brightness = factors(views.jitter.brightness);
  params.contrast = factors(views.jitter.contrast);
  params.saturation = factors(views.jitter.saturation);
  params.hue = {to_float(-views.jitter.hue), to_float(views.jitter.hue)};
  params.grayscale_probability = to_float(views.grayscale);
  params.blur_probability = to_float(views.blur.probability);
  params.blur_sigma = {to_float(views.blur.sigma[0]), to_float(views.blur.sigma[1])};
  params.blur_taps = blur_taps_for(image_size);
  const NormalizeSettings& given = views.normalize;
  SIMCLR_CHECK(given.mean.size() == given.std.size() && (given.mean.empty() || given.mean.size() == 3),
               "normalize has {} means and {} stds", given.mean.size(), given.std.size());
  for (size_t c = 0; c < 3; ++c) {
    const double mean = given.mean.empty() ? statistics.mean[c] : given.mean[c];
    const double std = given.std.empty() ? statistics.std[c] : given.std[c];
    if (!(std > 0)) {
      fail(ExitCode::kData, "channel {} of the training images is constant (std {}); set views.normalize.mean and .std",
           c, std);
    }
    params.mean[c] = to_float(mean);
    params.inverse_std[c] = to_float(1 / std);
  }
  return params;
}

}  // namespace simclr
