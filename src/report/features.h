// Two looks at a matrix of features for the report: which rows are nearest, and a map of them in a plane. Sums run in
// one order; neither threads nor ranks take part.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/common/views.h"
#include "src/base/beat.h"

namespace simclr {

struct Neighbor {
  int64_t row = 0;
  double cosine = 0;
};

// The `count` rows of the bank with the largest product with row `query` of `queries`, nearest first; equal ones by
// their number. Rows have unit length. bank [N, D], queries [M, D].
std::vector<Neighbor> nearest_rows(const ConstMatrix& bank, const ConstMatrix& queries, int64_t query, int64_t count);

struct PlaneMap {
  std::vector<std::array<double, 2>> points;  // a row each
  std::array<double, 2> explained = {0, 0};   // share of the whole variance along each axis
};

// Principal component analysis: the given rows, less their mean, along the two directions of largest variance. Block
// power iteration (Golub and Van Loan, "Matrix Computations", 4th edition, section 8.2.4) with eight directions and a
// fixed start; an axis points to where its largest component is positive. Zeros when the rows do not vary.
PlaneMap principal_plane(const ConstMatrix& features, const std::vector<int64_t>& rows, const Beat& beat = no_beat);

}  // namespace simclr
