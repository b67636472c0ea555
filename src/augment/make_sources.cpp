#include "src/augment/make_sources.h"

#include "src/augment/device_view_loader.h"
#include "src/augment/evaluation_loader.h"
#include "src/augment/uploaded_images.h"

namespace simclr {
namespace {

class HostEvaluationSource final : public EvaluationSource {
 public:
  HostEvaluationSource(int threads, const Dataset& dataset, const ViewParams& params, Images shape)
      : loader_(dataset, params, threads), images_(shape), memory_(images_.elements() * sizeof(float)) {
    images_.data = memory_.as<float>().data();
  }
  int64_t call_images() const override { return images_.shards * images_.samples; }
  ConstImages load(int64_t first) override {
    loader_.fill(first, images_);
    return images_;
  }

 private:
  EvaluationLoader loader_;
  Images images_;
  Buffer memory_;
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(Context& context, const Dataset& dataset, const SamplePlan& plan,
                                               const ViewParams& params, const ViewLoaderSettings& settings,
                                               const Beat& beat) {
  if (context.device().is_cpu()) return std::make_unique<ViewLoader>(dataset, plan, params, settings);
  if (dataset.decodes()) return std::make_unique<UploadedBatchSource>(context, dataset, plan, params, settings);
  return std::make_unique<DeviceViewLoader>(context, dataset, plan, params, settings, kResidentBytes, beat);
}

std::unique_ptr<EvaluationSource> make_evaluation_source(Context& context, const Dataset& dataset,
                                                         const ViewParams& params, int64_t shards, int64_t samples,
                                                         const Beat& beat) {
  if (!context.device().is_cpu() && !dataset.decodes())
    return std::make_unique<DeviceEvaluationSource>(context, dataset, params, shards, samples, beat);
  const Images shape{nullptr, shards, samples, 3, params.size, params.size};
  auto host = std::make_unique<HostEvaluationSource>(context.threads(), dataset, params, shape);
  if (context.device().is_cpu()) return host;
  return std::make_unique<UploadedEvaluationSource>(context, std::move(host), shards, samples, params.size);
}

}  // namespace simclr
