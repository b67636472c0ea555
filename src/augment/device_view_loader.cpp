#include "src/augment/device_view_loader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

namespace simclr {

DeviceRenderer::DeviceRenderer(Context& context, const ViewParams& params, int64_t shards, int64_t samples,
                               int64_t largest_height, int64_t largest_width)
    : context_(context),
      params_(params),
      jobs_(shards * samples),
      device_jobs_(context.allocate_elements<ViewJob>(shards * samples)),
      images_{.data = {},
              .shards = shards,
              .samples = samples,
              .channels = 3,
              .height = params.size,
              .width = params.size,
              .layout = image_layout_of(context.exec())} {
  for (auto& upload : uploads_) upload = context.device().make_upload(device_jobs_.bytes());
  images_memory_ = context.allocate_storage(images_.elements());
  images_.data = {images_memory_.data(), storage_of(context.exec())};
  context.reserve(render_views_scratch(context.exec(), params, largest_height, largest_width));
}

const Images& DeviceRenderer::render(std::span<const uint8_t> sources) {
  Upload& upload = *uploads_[turn_++ % uploads_.size()];
  std::memcpy(upload.host(), jobs_.data(), device_jobs_.bytes());
  upload.start(device_jobs_.data(), device_jobs_.bytes());
  render_views(context_.exec(), params_, sources, ViewJobs(jobs_, device_jobs_.as<ViewJob>().data()), images_);
  return images_;
}

DeviceViewLoader::DeviceViewLoader(Context& context, const Dataset& dataset, const SamplePlan& plan,
                                   const ViewParams& params, const ViewLoaderSettings& settings, int64_t resident_bytes,
                                   const Beat& beat)
    : plan_(plan),
      params_(params),
      settings_(settings),
      key_(philox_key(settings.seed, RandomPurpose::kViews)),
      source_images_(context, dataset, settings.shard_count * plan.images_per_shard(), resident_bytes, beat),
      renderer_(context, params, settings.shard_count, 2 * plan.images_per_shard(), source_images_.largest_height(),
                source_images_.largest_width()),
      next_step_(settings.start_step) {
  batch_.images = renderer_.images();
}

const Batch& DeviceViewLoader::next() {
  const auto start = std::chrono::steady_clock::now();
  const int64_t n = plan_.images_per_shard();
  batch_.step = next_step_++;
  batch_.epoch = plan_.epoch_of(batch_.step);
  batch_.samples.clear();
  for (int64_t s = 0; s < settings_.shard_count; ++s) {
    const std::vector<int64_t> samples = plan_.samples_of(batch_.step, settings_.first_shard + s);
    batch_.samples.insert(batch_.samples.end(), samples.begin(), samples.end());
  }
  const auto places = source_images_.provide(batch_.samples);  // [shards * n]
  for (int64_t item = 0; item < std::ssize(places); ++item) {
    const auto& place = places[item];
    for (uint32_t view = 0; view < 2; ++view) {
      const ViewId id{.view = view,
                      .sample = static_cast<uint32_t>(batch_.samples[item]),
                      .epoch = static_cast<uint32_t>(batch_.epoch)};
      renderer_.jobs()[(2 * (item / n) + view) * n + item % n] = {
          place.offset, place.height, place.width, draw_view(params_, key_, id, place.height, place.width)};
    }
  }
  renderer_.render(source_images_.bytes());
  last_wait_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return batch_;
}

DeviceEvaluationSource::DeviceEvaluationSource(Context& context, const Dataset& dataset, const ViewParams& params,
                                               int64_t shards, int64_t samples, const Beat& beat)
    : dataset_(dataset),
      call_images_(shards * samples),
      source_images_(context, dataset, call_images_, 0, beat),  // not resident: no second copy of the training set
      renderer_(context, params, shards, samples, source_images_.largest_height(), source_images_.largest_width()) {}

ConstImages DeviceEvaluationSource::load(int64_t first) {
  SIMCLR_CHECK(first >= 0 && first < dataset_.count(), "images from {} on of {}", first, dataset_.count());
  std::vector<int64_t> samples(std::min(call_images_, dataset_.count() - first));
  std::iota(samples.begin(), samples.end(), first);
  const auto places = source_images_.provide(samples);
  std::vector<ViewJob>& jobs = renderer_.jobs();
  for (size_t k = 0; k < jobs.size(); ++k)
    jobs[k] = k < places.size() ? whole_image_job(places[k].offset, places[k].height, places[k].width) : ViewJob{};
  return renderer_.render(source_images_.bytes());
}

}  // namespace simclr
