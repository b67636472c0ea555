// MNIST and sets of the same files (Fashion-MNIST, KMNIST): idx files of 28x28 gray images and of labels 0..9, as
// distributed (.gz) or unpacked: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-..., t10k-labels-...
#pragma once

#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Reads one split from folder `path`, path/raw or path/MNIST/raw (where torchvision puts them). Gray becomes RGB of
// three equal channels. The headers of all four files are checked first, whichever split is read; then sizes, checksums
// of .gz and labels of the split. Memory is taken by a header's word only as far as the file's size can bear it out.
// Any count is read. Classes are the digits, unless class_names.txt beside the files names them. Error(kData): file,
// expected, found, what to do.
ImageSet read_mnist(const std::string& path, Split split, const Beat& beat = no_beat);

}  // namespace simclr
