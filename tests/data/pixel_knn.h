// What nearest neighbors make of the raw pixels: the figure that a data set is judged by.
#pragma once

#include <cstddef>

#include "src/data/dataset.h"

namespace simclr::test {

// Share of test images whose class wins the vote of their k nearest training images, weighted with exp(cosine /
// 0.1); each pixel value standardized over the training set, images then scaled to unit length.
double pixel_knn_accuracy(const ImageSet& train, const ImageSet& test, size_t k);

}  // namespace simclr::test
