// STL-10 in its official binary layout (https://cs.stanford.edu/~acoates/stl10/): 96x96 images, each of three planes
// that are stored by columns, in train_X.bin, test_X.bin, unlabeled_X.bin; labels 1..10, a byte each, in train_y.bin
// and test_y.bin; class_names.txt. The files are mapped: 2.9 GB that the ranks of a host share.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Training: train_X and then unlabeled_X, without labels, as the set is meant to be pre-trained on. Bank: train_X with
// its labels. Test: test_X with its labels. Folder `path` or path/stl10_binary. All files are checked first, whichever
// split is read: there, whole images, as many labels; then every label of the split. Any count is read.
// Error(kData): file, expected, found, what to do.
std::unique_ptr<Dataset> open_stl10(const std::string& path, Split split);

}  // namespace simclr
