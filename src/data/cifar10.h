// CIFAR-10 in its official binary layout (https://www.cs.toronto.edu/~kriz/cifar.html, "binary version"):
// data_batch_1..5.bin and test_batch.bin, records of one label byte and 3072 bytes [3, 32, 32]; batches.meta.txt names
// the classes.
#pragma once

#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Reads one split from folder `path`, or from path/cifar-10-batches-bin. Checks and errors: see read_cifar().
ImageSet read_cifar10(const std::string& path, Split split, const Beat& beat = no_beat);

}  // namespace simclr
