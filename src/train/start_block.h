// The start block: the facts of a run that are logged before the first step.
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

// One line per parameter, name and shape: the first lines of --dry-run.
std::vector<std::string> describe_parameters(const Model& model);

// One line each: ranks and threads, libraries, data, network, pairs per anchor, schedule, memory, reproducibility.
std::vector<std::string> describe_start(const StartFacts& facts);

}  // namespace simclr
