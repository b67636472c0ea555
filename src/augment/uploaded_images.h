// Copies images that the host made to a GPU: for data sets whose images are decoded, where the host does most of the
// work anyway. For data sets in memory the GPU makes the views (device_view_loader.h).
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "src/augment/batch_source.h"
#include "src/augment/evaluation_source.h"
#include "src/augment/view_loader.h"
#include "src/device/context.h"

namespace simclr {

// Converts host images [shards, samples, 3, size, size], float32 NCHW, to the device's NHWC, channels and element type.
class UploadedImages {
 public:
  UploadedImages(Context& context, int64_t shards, int64_t samples, int64_t size);

  // Returns when the copy is queued; the host's images may change then. The result is valid, for work on the device's
  // stream, until the next call queues its own.
  const Images& put(const ConstImages& host);

 private:
  Context& context_;
  std::array<std::unique_ptr<Upload>, 3> uploads_;  // used in turn, one for each step in flight
  size_t turn_ = 0;
  Images images_;
  Buffer memory_;
};

class UploadedBatchSource final : public BatchSource {
 public:
  UploadedBatchSource(Context& context, const Dataset& dataset, const SamplePlan& plan, const ViewParams& params,
                      const ViewLoaderSettings& settings)
      : loader_(dataset, plan, params, settings),
        uploaded_(context, settings.shard_count, 2 * plan.images_per_shard(), params.size) {}
  const Batch& next() override {
    const Batch& host = loader_.next();
    batch_ = {.step = host.step, .epoch = host.epoch, .images = uploaded_.put(host.images), .samples = host.samples};
    return batch_;
  }
  double last_wait_s() const override { return loader_.last_wait_s(); }

 private:
  ViewLoader loader_;
  UploadedImages uploaded_;
  Batch batch_;
};

class UploadedEvaluationSource final : public EvaluationSource {
 public:
  UploadedEvaluationSource(Context& context, std::unique_ptr<EvaluationSource> host, int64_t shards, int64_t samples,
                           int64_t size)
      : host_(std::move(host)), uploaded_(context, shards, samples, size) {}
  int64_t call_images() const override { return host_->call_images(); }
  ConstImages load(int64_t first) override { return uploaded_.put(host_->load(first)); }

 private:
  std::unique_ptr<EvaluationSource> host_;
  UploadedImages uploaded_;
};

}  // namespace simclr
