// Converts the settings of a run to the parameters of the augmentation kernel.
#pragma once

#include "kernels/augment/augment.h"
#include "src/config/settings.h"
#include "src/data/dataset.h"

namespace simclr {

// Mean and std are those of views.normalize, or of the training images if it is empty. Error(kData) if a channel has
// std 0 and so cannot be normalized. The settings have been validated.
ViewParams make_view_params(const ViewSettings& views, int64_t image_size, const ChannelStatistics& statistics);

}  // namespace simclr
