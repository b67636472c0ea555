// Features of a whole data set on every rank, from an encoder that takes a fixed number of images per call.
// Independent of network and data set, which FeatureSource hides.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "src/comm/collectives.h"
#include "src/device/buffer.h"

namespace simclr {

struct FeatureSource {
  int64_t images = 0;        // N, images of the data set
  int64_t call_images = 0;   // images per call, the same on each rank
  int64_t feature_size = 0;  // D
  // Encodes the images first .. first + call_images - 1 of the data set, without augmentation; of these, `count` >= 1
  // exist, the rest is padding. first is a multiple of call_images. Returns [call_images, D]; valid until the next
  // call.
  std::function<ConstFloatMatrix(int64_t first, int64_t count)> encode;
  // Before each call, equally often on all ranks, also on one that has no images left. May be missing.
  std::function<void()> before_call = {};
};

struct FeatureMatrix {
  Buffer memory;
  FloatMatrix view;  // [N, D], rows in the order of the data set, stride D
};

// Each rank makes a consecutive run of the calls, about N/W images, and the rows are gathered, so every rank returns
// the same [N, D]. Calls start at multiples of call_images for every W; so the bits do not depend on W if an image's
// row depends on nothing but the images in the same call. For a network that computes in units (shards), call_images
// may be any number of units and may change with W.
FeatureMatrix extract_features(Collectives& collectives, const FeatureSource& source);

// Scales rows to unit length, in place: x / max(||x||, 1e-12). Error(kDiverged) naming the first non-finite row.
void normalize_features(const Exec& exec, const FloatMatrix& features);

}  // namespace simclr
