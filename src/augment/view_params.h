// From the settings of a run to what the augmentation kernel takes.
#pragma once

#include "kernels/augment/augment.h"
#include "src/config/settings.h"
#include "src/data/dataset.h"

namespace simclr {

// Mean and std are views.normalize's, or those of the training images where it is empty. Error(kData) when a channel
// has no spread (std 0), since it cannot be normalized. The settings have been validated.
ViewParams make_view_params(const ViewSettings& views, int64_t image_size, const ChannelStatistics& statistics);

}  // namespace simclr
