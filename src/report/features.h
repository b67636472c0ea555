// Nearest neighbors and a two-dimensional map of a feature matrix, for the report. Single-threaded and on one rank, so
// results depend on neither number.
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

// The `count` rows of the bank with the largest product with row `query` of `queries`, nearest first; equal ones in
// the order of the bank. Rows have unit length. bank [N, D], queries [M, D].
std::vector<Neighbor> nearest_rows(const ConstFloatMatrix& bank, const ConstFloatMatrix& queries, int64_t query,
                                   int64_t count);

struct PlaneMap {
  std::vector<std::array<double, 2>> points;  // one for each row
  std::array<double, 2> explained = {0, 0};   // share of the total variance along each axis
};

// Principal component analysis: projects the given rows, less their mean, on the two directions of largest variance.
// Block power iteration with eight directions and a fixed start, then Rayleigh-Ritz (Golub and Van Loan, "Matrix
// Computations", 4th edition, section 8.2.4): the whole decomposition would take minutes for 2048 features. The largest
// component of an axis is positive. All zeros if the rows do not vary. beat: after each iteration.
PlaneMap principal_plane(const ConstFloatMatrix& features, const std::vector<int64_t>& rows,
                         const Beat& beat = no_beat);

}  // namespace simclr
