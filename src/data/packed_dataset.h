// data.format: packed. The splits of a packed file as data sets. The file is mapped: no image is decoded or copied.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// `path` is the file. The fingerprint is the hash stored in it. Error(kData), also for a split without images.
std::unique_ptr<Dataset> open_packed(const std::string& path, Split split);

// Null if the file has no bank: the training split then has the labels.
std::unique_ptr<Dataset> open_packed_bank(const std::string& path);

}  // namespace simclr
