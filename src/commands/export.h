// `simclr_train export`: the encoder of a checkpoint as a safetensors file with torchvision's names. docs/pytorch.md.
#pragma once

#include <string>

#include "src/config/command_line.h"

namespace simclr {

// Runs in one process and reads only the checkpoint. Returns the lines for the user. Throws Error: kOutput for files.
//   tensors   OIHW float32, batch norm with running_mean, running_var and num_batches_tracked (int64, a scalar: forward
//             passes in training, two a step with batch_norm.views: separate); no fc. With the projector as
//             projector.0.weight, ...: a torch.nn.Sequential
//   metadata  stem, depth, width, source, step, weights_sha256 (of the checkpoint), config, and of values in [0, 1]
//             mean and std
std::string export_encoder(const ExportCommand& command);

}  // namespace simclr
