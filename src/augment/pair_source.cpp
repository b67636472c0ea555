#include "src/augment/pair_source.h"

#include <algorithm>
#include <limits>

#include "kernels/common/error.h"
#include "kernels/common/parallel.h"
#include "src/augment/device_view_loader.h"
#include "src/augment/uploaded_images.h"

namespace simclr {
namespace {

// Not an epoch of training: these views are used for nothing else.
constexpr uint32_t kNoEpoch = std::numeric_limits<uint32_t>::max();

// The view and image at each place.
class Pairs {
 public:
  Pairs(const ViewParams& params, uint64_t seed, std::vector<int64_t> images)
      : params_(params), key_(philox_key(seed, RandomPurpose::kViews)), source_images_(std::move(images)) {}

  int64_t count() const { return 2 * std::ssize(source_images_); }
  int64_t image(int64_t place) const { return source_images_[place / 2]; }
  ViewDraw draw(int64_t place, int64_t height, int64_t width) const {
    const ViewId id{
        .view = static_cast<uint32_t>(place % 2), .sample = static_cast<uint32_t>(image(place)), .epoch = kNoEpoch};
    return draw_view(params_, key_, id, height, width);
  }

 private:
  const ViewParams params_;
  const PhiloxKey key_;
  const std::vector<int64_t> source_images_;
};

class HostPairSource final : public EvaluationSource {
 public:
  HostPairSource(Context& context, const Dataset& dataset, const ViewParams& params, Pairs pairs, int64_t shards,
                 int64_t samples)
      : dataset_(dataset),
        params_(params),
        pairs_(std::move(pairs)),
        exec_{.threads = context.threads()},
        workers_(context.threads()),
        images_{nullptr, shards, samples, 3, params.size, params.size},
        memory_(images_.elements() * sizeof(float)) {
    images_.data = memory_.as<float>().data();
  }
  int64_t call_images() const override { return images_.shards * images_.samples; }

  ConstImages load(int64_t first) override {
    const int64_t real = std::clamp<int64_t>(pairs_.count() - first, 0, call_images());
    const auto views = images_.as<float>();
    parallel_for(exec_, real, [&](int64_t k, int thread) {
      Worker& worker = workers_[thread];
      const PlanarImage image = dataset_.image(pairs_.image(first + k), worker.image);
      const size_t needed = view_scratch_bytes(params_, image.height, image.width);
      if (worker.scratch.size() < needed) worker.scratch.resize(needed);
      render_view(image, pairs_.draw(first + k, image.height, image.width), params_, worker.scratch, views.sample(k));
    });
    std::fill(views.sample(real), views.sample(call_images()), 0.0F);
    return images_;
  }

 private:
  struct Worker {
    std::vector<uint8_t> image;
    std::vector<std::byte> scratch;
  };
  const Dataset& dataset_;
  const ViewParams params_;
  const Pairs pairs_;
  const CpuExec exec_;
  std::vector<Worker> workers_;  // one per thread
  Images images_;
  Buffer memory_;
};

class DevicePairSource final : public EvaluationSource {
 public:
  DevicePairSource(Context& context, const Dataset& dataset, const ViewParams& params, Pairs pairs, int64_t shards,
                   int64_t samples, const Beat& beat)
      : pairs_(std::move(pairs)),
        call_images_(shards * samples),
        source_images_(context, dataset, call_images_ / 2, 0, beat),
        renderer_(context, params, shards, samples, source_images_.largest_height(), source_images_.largest_width()) {}
  int64_t call_images() const override { return call_images_; }

  ConstImages load(int64_t first) override {
    const int64_t real = std::clamp<int64_t>(pairs_.count() - first, 0, call_images_);
    std::vector<int64_t> samples;
    for (int64_t k = 0; k < real; k += 2) samples.push_back(pairs_.image(first + k));
    const auto places = source_images_.provide(samples);
    std::vector<ViewJob>& jobs = renderer_.jobs();
    for (int64_t k = 0; k < call_images_; ++k) {
      if (k >= real) {
        jobs[k] = ViewJob{};
        continue;
      }
      const auto& place = places[k / 2];
      jobs[k] = {place.offset, place.height, place.width, pairs_.draw(first + k, place.height, place.width)};
    }
    return renderer_.render(source_images_.bytes());
  }

 private:
  const Pairs pairs_;
  const int64_t call_images_;
  DeviceImages source_images_;
  DeviceRenderer renderer_;
};

}  // namespace

std::unique_ptr<EvaluationSource> make_pair_source(Context& context, const Dataset& dataset, const ViewParams& params,
                                                   uint64_t seed, std::vector<int64_t> images, int64_t shards,
                                                   int64_t samples, const Beat& beat) {
  SIMCLR_CHECK(shards * samples % 2 == 0, "pairs in calls of {} views", shards * samples);
  Pairs pairs(params, seed, std::move(images));
  if (context.device().is_cpu() || dataset.decodes()) {
    auto host = std::make_unique<HostPairSource>(context, dataset, params, std::move(pairs), shards, samples);
    if (context.device().is_cpu()) return host;
    return std::make_unique<UploadedEvaluationSource>(context, std::move(host), shards, samples, params.size);
  }
  return std::make_unique<DevicePairSource>(context, dataset, params, std::move(pairs), shards, samples, beat);
}

std::vector<int64_t> spread_images(int64_t count, int64_t most) {
  const int64_t wanted = std::min(count, most);
  std::vector<int64_t> images(wanted);
  for (int64_t i = 0; i < wanted; ++i) images[i] = i * count / wanted;
  return images;
}

}  // namespace simclr
