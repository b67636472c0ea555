// `simclr_train loss`: loss and gradient of two files of projector outputs, a reference for checking another
// implementation (docs/checking_a_loss.md). Every rank runs it.
#pragma once

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"

namespace simclr {

// Every rank reads both files and computes the rows of its own images, consecutive ones as in training, and shares them
// with all others. Rank 0 prints, and writes the gradients. The numbers have the same bits for every number of ranks and
// threads. Throws AgreedError: kData for the files, kUsage for options that differ between ranks, kDiverged when a loss
// or gradient is not finite, kOutput for the gradients.
void check_loss(const LossCommand& command, Runtime& runtime);

}  // namespace simclr
