// Batches of random views made on a GPU: the random parameters are drawn on the host (the same as on the CPU), the
// pixels are rendered by a kernel on the device's stream. Asynchronous: next() returns when the work is queued. The
// same for the whole images of evaluation.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/augment/augment_batch.h"
#include "src/augment/batch_source.h"
#include "src/augment/device_images.h"
#include "src/augment/evaluation_source.h"
#include "src/augment/view_loader.h"
#include "src/data/sampler.h"

namespace simclr {

// Sends the view jobs of a call to the device and renders their images there.
class DeviceRenderer {
 public:
  // Each call renders shards * samples views.
  DeviceRenderer(Context& context, const ViewParams& params, int64_t shards, int64_t samples, int64_t largest_height,
                 int64_t largest_width);

  std::vector<ViewJob>& jobs() { return jobs_; }  // [shards * samples], fill them before render()
  // Valid, for work on the device's stream, until the next call queues its own.
  const Images& render(std::span<const uint8_t> sources);
  const Images& images() const { return images_; }

 private:
  Context& context_;
  const ViewParams params_;
  std::vector<ViewJob> jobs_;
  std::array<std::unique_ptr<Upload>, 3> uploads_;  // used in turn, one for each step in flight
  size_t turn_ = 0;
  Buffer device_jobs_;
  Images images_;
  Buffer images_memory_;
};

class DeviceViewLoader final : public BatchSource {
 public:
  // As ViewLoader; settings.workers is ignored. beat: while the data set is copied to the device.
  DeviceViewLoader(Context& context, const Dataset& dataset, const SamplePlan& plan, const ViewParams& params,
                   const ViewLoaderSettings& settings, int64_t resident_bytes = kResidentBytes,
                   const Beat& beat = no_beat);

  const Batch& next() override;
  double last_wait_s() const override { return last_wait_s_; }  // on the host: drawing and queueing

 private:
  const SamplePlan& plan_;
  const ViewParams params_;
  const ViewLoaderSettings settings_;
  const PhiloxKey key_;
  DeviceImages source_images_;
  DeviceRenderer renderer_;
  Batch batch_;
  int64_t next_step_;
  double last_wait_s_ = 0;
};

class DeviceEvaluationSource final : public EvaluationSource {
 public:
  DeviceEvaluationSource(Context& context, const Dataset& dataset, const ViewParams& params, int64_t shards,
                         int64_t samples, const Beat& beat = no_beat);

  int64_t call_images() const override { return call_images_; }
  ConstImages load(int64_t first) override;

 private:
  const Dataset& dataset_;
  const int64_t call_images_;
  DeviceImages source_images_;
  DeviceRenderer renderer_;
};

}  // namespace simclr
