// The evaluation part of the report: the nearest training images of a few test images, and a map of the test features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/views.h"
#include "src/base/beat.h"
#include "src/data/dataset.h"
#include "src/data/png_image.h"

namespace simclr {

struct EvaluationFeatures {
  int64_t step = 0;
  const Dataset &bank_set, &test_set;
  ConstFloatMatrix bank, queries;  // [N, D], [M, D], rows of unit length, in the order of the sets
};

struct EvaluationView {
  std::string html;                         // neighbors and map
  std::vector<std::vector<RgbImage>> rows;  // of a grid: a test image and its neighbors
};

// Eight test images, spread evenly over the set, and at most 2,000 points. The result is a function of the features.
// beat: between images and iterations. Throws the errors of the data sets.
EvaluationView view_evaluation(const EvaluationFeatures& features, const Beat& beat = no_beat);

}  // namespace simclr
