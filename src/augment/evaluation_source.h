// Images for evaluation: whole, resized, normalized, in calls of one fixed size, so that what the network computes
// for an image does not depend on how many there are or who computes it.
#pragma once

#include <cstdint>

#include "kernels/common/views.h"

namespace simclr {

class EvaluationSource {
 public:
  virtual ~EvaluationSource() = default;
  virtual int64_t call_images() const = 0;
  // Image first + k of the data set at place k in [0, call_images()), and zeros beyond the set. Images [shards,
  // samples, 3, size, size] in the memory of the device, valid until the next call.
  virtual ConstImages load(int64_t first) = 0;
};

}  // namespace simclr
