// Initial weights of a run from a file (model.init_from): an exported encoder, torchvision weights saved as safetensors,
// or a checkpoint. Only reads them into memory that the caller provides.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"

namespace simclr {

struct StartWeights {
  std::string sha256;                 // weights_sha256() of the tensors read
  bool projector = false;             // the file has one
  std::vector<std::string> left_out;  // tensors of the file that the network does not have: fc.weight, fc.bias
};

// Reads those `tensors` that are weights; the projector's only if the file has a projector. Before anything is
// overwritten, the checksum is verified if the file has one, and names, types and shapes are compared: the file must
// have every tensor of the encoder and may have in addition a whole projector, torchvision's counters and classifier,
// and optimizer state, which are ignored. Error(kOutput): what is missing, extra or different, and what to do; or a
// value that is not finite.
StartWeights load_start_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                                const Beat& beat = no_beat);

}  // namespace simclr
