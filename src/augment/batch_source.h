// The source of a training step's batches: ViewLoader makes them on the host, DeviceViewLoader on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/views.h"

namespace simclr {

// The network's input for one step on one rank.
struct Batch {
  int64_t step = 0, epoch = 0;
  Images images;                 // [shards, 2n, 3, size, size]; in each shard view 1 of its n images, then view 2
  std::vector<int64_t> samples;  // [shards, n], the images' indices in the data set
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The batch of the next step; valid until the next call. If an image of that batch failed, throws the error of the
  // first such image; so does every later call.
  virtual const Batch& next() = 0;

  virtual double last_wait_s() const = 0;  // duration of the last next()
};

}  // namespace simclr
