// What a run says about itself before the first step.
#pragma once

#include <string>
#include <vector>

#include "src/train/training_setup.h"

namespace simclr {

struct StartFacts {
  const TrainingSetup& setup;
  const Topology& topology;
  std::string mpi_version;
};

// One line a parameter, name and shape: what --dry-run tells first.
std::vector<std::string> describe_parameters(const Model& model);

// One line each: ranks and threads, libraries, data, network, what an anchor sees, schedule, memory, the promise.
std::vector<std::string> describe_start(const StartFacts& facts);

}  // namespace simclr
