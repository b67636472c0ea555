// `simclr_train embed`: features and labels of a split as .npy files. docs/evaluation.md.
#pragma once

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"

namespace simclr {

// Every rank runs it; rank 0 writes. The bytes of the files are the same for every number of ranks, threads and
// images per call. Throws AgreedError.
void embed(const EmbedCommand& command, Runtime& runtime);

}  // namespace simclr
