// What nearest neighbours make of the raw pixels: the figure that a data set is judged by.
#pragma once

#include <cstddef>

#include "src/data/dataset.h"

namespace simclr::testing {

// Share of test pictures whose class wins the vote of their k nearest training pictures, weighted with exp(cosine /
// 0.1); each pixel value standardised over the training set, pictures then scaled to unit length.
double pixel_knn_accuracy(const PictureSet& train, const PictureSet& test, size_t k);

}  // namespace simclr::testing
