// Crops of images that were decoded at a reduced size. Crops are drawn for the whole size, so they do not depend on the
// reduction; the reduction is a function of the crops and the view's side alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "kernels/augment/augment.h"
#include "kernels/augment/planar_image.h"

namespace simclr {

// The largest of 1, 2, 4 and 8 at which each crop still has at least `side` pixels in height and width: views are then
// still shrunk from the decoded image, never enlarged.
inline int largest_reduction(std::initializer_list<CropBox> crops, int64_t side) {
  for (const int reduction : {8, 4, 2}) {
    if (std::all_of(crops.begin(), crops.end(), [&](const CropBox& crop) {
          return crop.height >= reduction * side && crop.width >= reduction * side;
        }))
      return reduction;
  }
  return 1;
}

// Maps a crop of an image of height x width to the decoded image: each edge times decoded / whole, rounded to the
// nearest pixel (halves up), at least one pixel. The same crop if the image was not reduced.
inline CropBox crop_of_reduced(const CropBox& crop, int64_t height, int64_t width, const PlanarImage& decoded) {
  const auto edge = [](int64_t at, int64_t whole, int64_t part) { return (2 * at * part + whole) / (2 * whole); };
  CropBox box{.top = std::min(edge(crop.top, height, decoded.height), decoded.height - 1),
              .left = std::min(edge(crop.left, width, decoded.width), decoded.width - 1)};
  box.height = std::max<int64_t>(edge(crop.top + crop.height, height, decoded.height) - box.top, 1);
  box.width = std::max<int64_t>(edge(crop.left + crop.width, width, decoded.width) - box.left, 1);
  return box;
}

}  // namespace simclr
