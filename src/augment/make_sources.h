// Chooses where images are made into views: on the host, or on the GPU that trains.
#pragma once

#include <memory>

#include "src/augment/batch_source.h"
#include "src/augment/evaluation_source.h"
#include "src/augment/view_loader.h"
#include "src/device/context.h"

namespace simclr {

// The arguments outlive the result. beat: while the data set is copied to a GPU.
std::unique_ptr<BatchSource> make_batch_source(Context& context, const Dataset& dataset, const SamplePlan& plan,
                                               const ViewParams& params, const ViewLoaderSettings& settings,
                                               const Beat& beat = no_beat);

// Calls of shards * samples images.
std::unique_ptr<EvaluationSource> make_evaluation_source(Context& context, const Dataset& dataset,
                                                         const ViewParams& params, int64_t shards, int64_t samples,
                                                         const Beat& beat = no_beat);

}  // namespace simclr
