// Weights for a run to start from (model.init_from): an encoder that was exported, torchvision's own saved as
// safetensors, or a checkpoint. Only reads; what becomes of the weights is the caller's business.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"

namespace simclr {

struct StartWeights {
  std::string sha256;                 // of what was taken, as weights_sha256() has it
  bool projector = false;             // the file had one
  std::vector<std::string> left_out;  // tensors of the file that are no part of the network: fc.weight, fc.bias
};

// Fills the memory of those `tensors` that are weights; a projector only if the file has one. Before anything is
// overwritten, the checksum is verified where there is one, and names, types and shapes are compared: each tensor of
// the encoder must be there, and nothing else but a whole projector, torchvision's counters and classifier, and
// optimizer state, which is left alone. Error(kOutput): what is missing, extra or different, and what to do; a value
// that is not finite.
StartWeights load_start_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                                const Beat& beat = no_beat);

}  // namespace simclr
