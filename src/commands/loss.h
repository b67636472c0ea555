// `simclr_train loss`: loss and gradient of two files of projector outputs, for people who check a loss of their own
// against one that they can trust (docs/checking_a_loss.md). Every rank runs it.
#pragma once

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"

namespace simclr {

// Every rank reads both files whole and computes the rows of its own images, consecutive ones as in training; what it
// has computed goes to all others. Rank 0 prints, and writes the gradients. The numbers have the same bits for every
// number of ranks and threads. Throws AgreedError: kData for the files, kUsage for what does not fit together,
// kDiverged when a loss or gradient is not finite, kOutput for the gradients.
void check_loss(const LossCommand& command, Runtime& runtime);

}  // namespace simclr
