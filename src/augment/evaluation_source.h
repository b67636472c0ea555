// The source of evaluation's images: whole, resized, normalized, in calls of one fixed size, so that the network's
// result for an image depends neither on the number of images nor on the rank. Made on the host or on a GPU.
#pragma once

#include <cstdint>

#include "kernels/common/views.h"

namespace simclr {

class EvaluationSource {
 public:
  virtual ~EvaluationSource() = default;
  virtual int64_t call_images() const = 0;
  // Image first + k of the data set at place k in [0, call_images()), zeros past the end of the set. Returns images
  // [shards, samples, 3, size, size] in device memory, valid until the next call.
  virtual ConstImages load(int64_t first) = 0;
};

}  // namespace simclr
