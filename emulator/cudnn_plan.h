// What a plan of the fake cuDNN consists of: the number of its engine, its convolution, the workspace it needs.
#pragma once

#include "emulator/cudnn_convolution.h"

namespace simclr::emulator::cudnn {

enum EngineIndex : int64_t {
  kPlainEngine = 0,       // takes everything; the only one of the fallback heuristics
  kAtomicEngine = 1,      // not deterministic
  kTensorCoreEngine = 2,  // TF32 for float32 operands
  kHungryEngine = 5,      // needs a terabyte of workspace
  kUselessEngine = 7,     // offered by the heuristics, but no plan finalizes
  kTiledEngine = 12,      // float32 only
};

int64_t workspace_of(int64_t engine, const Convolution& convolution);

}  // namespace simclr::emulator::cudnn
