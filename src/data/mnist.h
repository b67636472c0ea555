// MNIST and data sets in the same files (Fashion-MNIST, KMNIST): idx files of 28x28 gray images and labels 0..9, as
// distributed (.gz) or unpacked: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-..., t10k-labels-...
#pragma once

#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Reads one split from folder `path`, path/raw or path/MNIST/raw (torchvision's place). Gray becomes RGB with three
// equal channels. First the headers of all four files are checked, of both splits; then sizes, gzip checksums and
// labels of the split. Memory is bounded by what the file's size can hold, not by what its header states. Any number of
// images is accepted. Classes are the digits, unless a class_names.txt next to the files names them. Error(kData):
// file, expected, found, what to do.
ImageSet read_mnist(const std::string& path, Split split, const Beat& beat = no_beat);

}  // namespace simclr
