// The contents of a checkpoint, and the hash of its weights. Tensors are views: the trainer owns their memory.
// The promise of equal bits (README) covers the tensors, not `environment`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"

namespace simclr {

// Names: parameters and batch-norm statistics as in torchvision (`layer1.0.conv1.weight`, `bn1.running_mean`),
// optimizer state as `optimizer.STATE.PARAMETER` (`optimizer.momentum.conv1.weight`). All other names are weights.
inline constexpr std::string_view kOptimizerPrefix = "optimizer.";
inline bool is_weight(std::string_view name) {
  return !name.starts_with(kOptimizerPrefix);
}

// Everything in a checkpoint except its tensors; stored as the metadata of the file.
struct CheckpointHeader {
  int64_t step = 0;   // optimizer updates done
  int64_t epoch = 0;  // step / steps per epoch
  std::string config_yaml;
  std::string config_hash;
  std::map<std::string, std::string> environment;  // program and library versions, processor, ranks, host, date, ...
};

struct TrainingState {
  CheckpointHeader header;
  std::vector<NamedTensor> tensors;
};

// Durable on return; the same state gives the same bytes. Throws Error(kOutput).
void write_checkpoint(const std::filesystem::path& path, const TrainingState& state, const Beat& beat = no_beat);

// Reads the metadata of a file and checks format and version, but not the checksum. Throws Error(kOutput).
CheckpointHeader read_checkpoint_header(const SafetensorsFile& file);

enum class LoadWhat { kEverything, kWeights };  // kWeights: the file's optimizer state is ignored

// Reads the file's tensors into the memory of `tensors`. Before anything is overwritten, the checksum is verified and
// names, types and shapes are compared; Error(kOutput) lists what is missing, extra or of another shape.
CheckpointHeader load_checkpoint(const SafetensorsFile& file, std::span<const NamedTensor> tensors, LoadWhat what,
                                 const Beat& beat = no_beat);
CheckpointHeader load_checkpoint(const std::filesystem::path& path, std::span<const NamedTensor> tensors, LoadWhat what,
                                 const Beat& beat = no_beat);

// SHA-256 in 64 lower-case digits over the weights in ascending order of their names' bytes, of each
//   NAME ' ' DTYPE ' ' SHAPE '\n' BYTES        e.g. "fc.bias F32 [10]\n" and 40 bytes, little-endian, row-major
// Optimizer state is left out. The order of `tensors` does not matter.
std::string weights_sha256(std::span<const NamedTensor> tensors, const Beat& beat = no_beat);
std::string weights_sha256(const SafetensorsFile& file);

}  // namespace simclr
