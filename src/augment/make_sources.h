// Chooses where pictures become views: on the host, or on the GPU that trains.
#pragma once

#include <memory>

#include "src/augment/batch_source.h"
#include "src/augment/evaluation_source.h"
#include "src/augment/view_loader.h"
#include "src/device/context.h"

namespace simclr {

// What is passed in outlives what is returned.
std::unique_ptr<BatchSource> make_batch_source(Context& context, const Dataset& dataset, const SamplePlan& plan,
                                               const ViewParams& params, const ViewLoaderSettings& settings);

// Calls of shards * samples pictures.
std::unique_ptr<EvaluationSource> make_evaluation_source(Context& context, const Dataset& dataset,
                                                         const ViewParams& params, int64_t shards, int64_t samples);

}  // namespace simclr
