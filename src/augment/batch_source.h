// Where the training step gets its batches: ViewLoader makes them on the host, DeviceViewLoader on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/views.h"

namespace simclr {

// What one rank feeds to the network in one step.
struct Batch {
  int64_t step = 0, epoch = 0;
  Images images;                 // [shards, 2n, 3, size, size]; within a shard view 1 of its n images, then view 2
  std::vector<int64_t> samples;  // [shards, n], the images
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The batch of the next step; valid until the next call. An error of an image is thrown here, as itself, when its
  // batch is due (the first image of the batch that failed), and again by every later call.
  virtual const Batch& next() = 0;

  virtual double last_wait_s() const = 0;  // how long the last next() took
};

}  // namespace simclr
