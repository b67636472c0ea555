// The loss of barlow_twins.h as plain loops in double over the whole batch, without a distributed part and without the
// short cuts: what the fast one is held to. Allocates; not for a training step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace simclr {

struct BarlowTwinsReferenceSettings {
  int64_t batch = 0;    // B
  int64_t columns = 0;  // C
  double lambda = 0.005;
  double scale = 1.0;
  double eps = 1e-5;
};

struct BarlowTwinsReference {
  double loss = 0;
  std::vector<double> y;        // [2B, C]
  std::vector<double> inv_std;  // [2, C]
  std::vector<double> c;        // [C, C]
  std::vector<double> grad_y;   // dL/dy [2B, C]
  std::vector<double> grad_z;   // dL/dz [2B, C]
};

// z [2B, C], row-major, rows [view 1 of 0..B-1 ; view 2 of 0..B-1].
BarlowTwinsReference barlow_twins_reference(std::span<const double> z, const BarlowTwinsReferenceSettings& settings);

}  // namespace simclr
