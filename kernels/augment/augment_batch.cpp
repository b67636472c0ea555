// Checks every job once for all devices, then calls the overload of the device.
#include "kernels/augment/augment_batch.h"

#include <algorithm>
#include <array>

namespace simclr {
namespace {

void check_job(const ViewJob& job, const ViewParams& params, size_t bytes) {
  SIMCLR_CHECK(job.height >= 1 && job.width >= 1 && job.height * job.width <= INT32_MAX / 3, "image is {}x{}",
               job.height, job.width);
  SIMCLR_CHECK(job.offset >= 0 && static_cast<size_t>(job.offset + 3 * job.height * job.width) <= bytes,
               "an image of {}x{} at byte {} of {}", job.height, job.width, job.offset, bytes);
  const CropBox& crop = job.draw.crop;
  SIMCLR_CHECK(crop.height >= 1 && crop.width >= 1 && crop.top >= 0 && crop.left >= 0 &&
                   crop.top + crop.height <= job.height && crop.left + crop.width <= job.width,
               "crop of {}x{} at ({}, {}) in an image of {}x{}", crop.height, crop.width, crop.top, crop.left,
               job.height, job.width);
  SIMCLR_CHECK(!job.draw.blur || params.blur_probability > 0, "a draw with blur for views without");
  std::array<bool, 4> seen{};
  for (const JitterOp op : job.draw.order) {
    SIMCLR_CHECK(static_cast<size_t>(op) < seen.size() && !seen[static_cast<size_t>(op)], "op {} in the jitter",
                 static_cast<int>(op));
    seen[static_cast<size_t>(op)] = true;
  }
}

void check_params(const ViewParams& params) {
  constexpr int64_t kMostSize = 4096;
  SIMCLR_CHECK(params.size >= 1 && params.size <= kMostSize && params.blur_taps % 2 == 1 &&
                   (params.blur_taps / 2 < params.size || params.blur_probability <= 0),
               "size {}, blur kernel {}", params.size, params.blur_taps);
}

}  // namespace

ViewJob whole_image_job(int64_t offset, int64_t height, int64_t width) {
  ViewJob job{.offset = offset, .height = height, .width = width};
  job.draw.crop = center_square(height, width);
  return job;
}

ScratchNeed render_views_scratch(const Exec& exec, const ViewParams& params, int64_t height, int64_t width) {
  check_params(params);
  SIMCLR_CHECK(height >= 1 && width >= 1, "images of up to {}x{}", height, width);
  return std::visit([&](const auto& device) { return detail::render_views_scratch(device, params, height, width); },
                    exec);
}

void render_views(const Exec& exec, const ViewParams& params, std::span<const uint8_t> sources, const ViewJobs& jobs,
                  const Images& images) {
  check_params(params);
  SIMCLR_CHECK(images.is_in(image_layout_of(exec)) && images.channels == 3 && images.height == params.size &&
                   images.width == params.size,
               "views of {} pixels as [{}, {}, {}]", params.size, images.channels, images.height, images.width);
  SIMCLR_CHECK(images.shards * images.samples == std::ssize(jobs.jobs), "{} jobs for {}x{} views", jobs.jobs.size(),
               images.shards, images.samples);
  SIMCLR_CHECK(jobs.jobs.empty() || jobs.on_device != nullptr, "the jobs are not on the device");
  for (const ViewJob& job : jobs.jobs) {
    if (job.height != 0 || job.width != 0) check_job(job, params, sources.size());
  }
  std::visit([&](const auto& device) { detail::render_views(device, params, sources.data(), jobs, images); }, exec);
}

}  // namespace simclr
