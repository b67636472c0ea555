// An estimate of the memory that this rank will hold at its peak, by purpose, and the largest batch that fits. Computed
// from the built setup: on the CPU its memory is allocated, but not touched, before the first step.
#pragma once

#include <cstdint>
#include <string>

#include "src/comm/topology.h"
#include "src/train/training_setup.h"

namespace simclr {

// Bytes. On a GPU: program to evaluation are host memory, the others GPU memory.
struct MemoryNeed {
  int64_t program = 0;       // resident once the setup is built: libraries, the data set
  int64_t file_pages = 0;    // part of program: mapped files and the like, which the system can drop or ranks share
  int64_t batches = 0;       // of views: the current one and those being loaded
  int64_t checkpoint = 0;    // the copy that is written while training continues
  int64_t evaluation = 0;    // features of bank and test images for k-NN, and the batches they are computed from
  int64_t feature_maps = 0;  // and their gradients
  int64_t parameters = 0;    // weights, gradients, running statistics and the optimizer's state
  int64_t loss = 0;
  int64_t scratch = 0;  // workspace of the ops, and small buffers

  int64_t on_host() const { return program + batches + checkpoint + evaluation; }
  int64_t on_device() const { return feature_maps + parameters + loss + scratch; }
};

MemoryNeed memory_need(const TrainingSetup& setup);

// The need with another global batch, a multiple of the shards: batches and feature maps grow with it, the loss with its
// square where its products are stored. Scratch is assumed to grow, never to shrink.
MemoryNeed scale_batch(const MemoryNeed& need, const TrainingSetup& setup, int64_t global_batch);

// What this rank may hold in total, including what it holds already: its share of the host's memory, and what is free
// on its GPU. 0: unknown.
struct MemoryLimit {
  int64_t host = 0, device = 0;  // device: 0 on the CPU
};
MemoryLimit memory_limit(const TrainingSetup& setup, const Topology& topology);

bool fits(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& setup);

// The largest global batch that fits and that the data set can fill, a multiple of the shards; 0: none.
int64_t largest_batch(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& setup);

// "peak memory per rank: 1234 MB: feature maps 1000, ...; 5678 MB available, enough for a global batch of at most 2048"
std::string describe_memory(const TrainingSetup& setup, const Topology& topology);

}  // namespace simclr
