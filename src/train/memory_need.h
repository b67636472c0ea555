// The memory that a run will hold on this rank at its peak, part by part, and the largest batch for which that fits.
// Known once the parts are built: on the CPU their memory is not touched, so not taken, before the first step.
#pragma once

#include <cstdint>
#include <string>

#include "src/comm/topology.h"
#include "src/train/training_setup.h"

namespace simclr {

// Bytes. On a GPU program to evaluation are the host's, the others the GPU's.
struct MemoryNeed {
  int64_t program = 0;       // what is resident when the parts are built: libraries, the data set
  int64_t file_pages = 0;    // of program: pages of files and the like, which the system can drop or ranks share
  int64_t batches = 0;       // of views, and those on their way
  int64_t checkpoint = 0;    // the copy that is written while training goes on
  int64_t evaluation = 0;    // features of bank and test images for k-NN, and the batch that they are made from
  int64_t feature_maps = 0;  // and their gradients
  int64_t parameters = 0;    // weights, gradients, running statistics and the optimizer's state
  int64_t loss = 0;
  int64_t scratch = 0;  // and the small things that are kept beside it

  int64_t on_host() const { return program + batches + checkpoint + evaluation; }
  int64_t on_device() const { return feature_maps + parameters + loss + scratch; }
};

MemoryNeed memory_need(const TrainingSetup& setup);

// The same with another global batch, a multiple of the shards: what stands in a batch grows with it; the loss with its
// square where its products are stored. An estimate: scratch is taken to grow, never to shrink.
MemoryNeed scale_batch(const MemoryNeed& need, const TrainingSetup& setup, int64_t global_batch);

// What this rank may take in all, with what it holds already: its share of the host's memory, and of a GPU what is
// free. 0: unknown.
struct MemoryLimit {
  int64_t host = 0, device = 0;  // device: 0 on the CPU, where all is the host's
};
MemoryLimit memory_limit(const TrainingSetup& setup, const Topology& topology);

bool fits(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& setup);

// The largest multiple of the shards that fits and that the data set can fill; 0: none does.
int64_t largest_batch(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& setup);

// "memory of a rank at its peak: 1234 MB: feature maps 1000, ...; 5678 MB are available, enough for a global batch of
// 2048"
std::string describe_memory(const TrainingSetup& setup, const Topology& topology);

}  // namespace simclr
