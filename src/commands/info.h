// `simclr_train info`: describes a checkpoint, for people and for grep.
#pragma once

#include <filesystem>
#include <string>

#include "src/checkpoint/safetensors.h"

namespace simclr {

enum class InfoConfig { kLeaveOut, kPrint };

// Reads the whole file and verifies the checksum. Lines of the form "key: value", among them
//   step: 12        weights sha256: <64 digits>        checksum: ok
// A safetensors file of another program is described too, with `checksum: none` if it lacks ours.
// Throws Error(kOutput) for a file that cannot be read or is damaged.
std::string describe_checkpoint(const SafetensorsFile& file, InfoConfig config);
std::string describe_checkpoint(const std::filesystem::path& path, InfoConfig config);

}  // namespace simclr
