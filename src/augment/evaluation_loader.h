// Pictures for evaluation: whole, resized, normalised, in calls of one fixed size, so that what the network computes
// for a picture does not depend on how many there are or who computes it.
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
  // The data set outlives the loader. `threads`: the most that fill() may use.
  EvaluationLoader(const Dataset& dataset, const ViewParams& params, int threads);

  // images.sample(k) = picture first + k for k in [0, images.shards * images.samples), and zeros beyond the data set.
  // images is [shards, samples, 3, size, size]. Returns the number of real pictures.
  int64_t fill(int64_t first, Images images);

 private:
  struct Worker {
    std::vector<uint8_t> picture;
    std::vector<std::byte> scratch;
  };
  const Dataset& dataset_;
  const ViewParams params_;
  CpuExec exec_;
  std::vector<Worker> workers_;  // one per thread
};

}  // namespace simclr
