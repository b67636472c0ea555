// `simclr_train evaluate`: k-NN and a linear probe on the features of a trained encoder. docs/evaluation.md.
#pragma once

#include "src/train/run.h"

namespace simclr {

// Every rank runs it; rank 0 prints and writes. The numbers have the same bits for every number of ranks, threads and
// images a call. Throws AgreedError.
void evaluate(const EvaluateCommand& command, RunHandles& run);

}  // namespace simclr
