// `simclr_train evaluate`: k-NN and a linear probe on the features of a trained encoder. docs/evaluation.md.
#pragma once

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"

namespace simclr {

// Every rank runs it; rank 0 prints and writes. The numbers have the same bits for every number of ranks, threads and
// images per call. Throws AgreedError.
void evaluate(const EvaluateCommand& command, Runtime& runtime);

}  // namespace simclr
