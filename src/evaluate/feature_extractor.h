// Features of a whole data set on every rank, from an encoder that takes a fixed number of images a call.
// Knows neither network nor data set: FeatureSource stands between.
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
  int64_t call_images = 0;   // images a call takes, on each rank the same
  int64_t feature_size = 0;  // D
  // Encodes the images first .. first + call_images - 1 of the data set, without augmentation; of these, `count` >= 1
  // exist, the rest is padding. first is a multiple of call_images. Returns [call_images, D]; valid until the next
  // call.
  std::function<ConstMatrix(int64_t first, int64_t count)> encode;
  // Before each call, equally often on all ranks, also on one that has no images left. May be missing.
  std::function<void()> before_call = {};
};

struct FeatureMatrix {
  Buffer memory;
  Matrix view;  // [N, D], rows in the order of the data set, stride D
};

// Calls are dealt out to ranks in consecutive runs and the rows gathered, so every rank returns the same [N, D] and
// rank r encodes about N/W images. The bits do not depend on W if those of an image's row depend on nothing but the
// images beside it in the same call: calls start at multiples of call_images whatever W is. With call_images = q
// units of a network that computes unit by unit, q may change with W, too.
FeatureMatrix extract_features(Collectives& collectives, const FeatureSource& source);

// Rows to unit length, in place: x / max(||x||, 1e-12). Non-finite features: Error(kDiverged) naming the first row.
void normalize_features(const Exec& exec, const Matrix& features);

}  // namespace simclr
