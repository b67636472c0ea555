// Pairs of random views of fixed images, the same in every call, for measuring alignment and uniformity. Place 2i holds
// view 1 of image i, place 2i + 1 view 2. Made on the host or on the GPU that trains.
#pragma once

#include <memory>
#include <vector>

#include "src/augment/evaluation_source.h"
#include "src/augment/view_params.h"
#include "src/device/context.h"

namespace simclr {

// images: indices in the data set, which outlives the result. Each call makes shards * samples views, an even number.
// beat: while the data set is copied to a GPU.
std::unique_ptr<EvaluationSource> make_pair_source(Context& context, const Dataset& dataset, const ViewParams& params,
                                                   uint64_t seed, std::vector<int64_t> images, int64_t shards,
                                                   int64_t samples, const Beat& beat = no_beat);

// At most `most` images, evenly spread over a data set (which may be sorted by class).
std::vector<int64_t> spread_images(int64_t count, int64_t most);

}  // namespace simclr
