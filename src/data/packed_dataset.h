// Splits of a packed file as data sets. The file is mapped: images are neither decoded nor copied.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// `path` is the file. The fingerprint is the hash that was written with the images. Error(kData), also for a split
// without images.
std::unique_ptr<Dataset> open_packed(const std::string& path, Split split);

// Null where the training split has the labels itself.
std::unique_ptr<Dataset> open_packed_bank(const std::string& path);

}  // namespace simclr
