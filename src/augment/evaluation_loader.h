// Makes images for evaluation on the host: whole, resized, normalized, in calls of one fixed size, so that the
// network's result for an image depends neither on the number of images nor on the rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/augment/augment.h"
#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "src/data/dataset.h"

namespace simclr {

class EvaluationLoader {
 public:
  // The data set outlives the loader. `threads`: upper limit for fill().
  EvaluationLoader(const Dataset& dataset, const ViewParams& params, int threads);

  // images.sample(k) = image first + k for k in [0, images.shards * images.samples), zeros past the end of the set.
  // images is [shards, samples, 3, size, size]. Returns the number of real images.
  int64_t fill(int64_t first, Images images);

 private:
  struct Worker {
    std::vector<uint8_t> image;
    std::vector<std::byte> scratch;
  };
  const Dataset& dataset_;
  const ViewParams params_;
  CpuExec exec_;
  std::vector<Worker> workers_;  // one per thread
};

}  // namespace simclr
