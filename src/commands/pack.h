// `simclr_train pack`: a data set as one file of decoded images, resized once. docs/data.md.
#pragma once

#include <cstdint>

#include "src/config/command_line.h"
#include "src/data/dataset.h"

namespace simclr {

// Writes the file, or verifies the checksums of one. The bytes depend on images and size alone, not on threads.
// One rank. Throws Error: kData for the set, kOutput for the file, kUsage for more ranks.
void pack(const PackCommand& command, int ranks);

// Height and width with the shorter side at most `shorter` (0: no limit), aspect kept as torchvision's Resize keeps it:
// the longer side is rounded down. Images are never enlarged.
struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};
ImageSize packed_size(int64_t height, int64_t width, int64_t shorter);

}  // namespace simclr
