// STL-10 in its official binary layout (https://cs.stanford.edu/~acoates/stl10/): 96x96 images, each as three planes
// stored by columns, in train_X.bin, test_X.bin, unlabeled_X.bin; labels 1..10, one byte each, in train_y.bin and
// test_y.bin; class_names.txt. The files are mapped: 2.9 GB, shared by the ranks of a host.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Training: train_X and then unlabeled_X, without labels, as the data set's authors intend. Bank: train_X with its
// labels. Test: test_X with its labels. Folder `path` or path/stl10_binary. First all files of all splits are checked:
// they exist, hold whole images, and as many labels. Then every label of the split is checked. Any number of images is
// accepted. Error(kData): file, expected, found, what to do.
std::unique_ptr<Dataset> open_stl10(const std::string& path, Split split);

}  // namespace simclr
