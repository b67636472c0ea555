// CIFAR-100 in its official binary layout (https://www.cs.toronto.edu/~kriz/cifar.html, "binary version"): train.bin
// and test.bin, records of a coarse label (20 superclasses), a fine label (100 classes) and 3072 bytes [3, 32, 32];
// fine_label_names.txt names the classes.
#pragma once

#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Reads one split from folder `path`, or from path/cifar-100-binary, with the fine labels. Checks and errors: see
// read_cifar().
ImageSet read_cifar100(const std::string& path, Split split, const Beat& beat = no_beat);

}  // namespace simclr
