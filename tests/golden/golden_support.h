// Truth from outside: values in float64 that make_golden.py computed with numpy, and none of the program's code. The one
// reader of the files next to it.
#pragma once

#include <cstdint>
#include <vector>

namespace simclr::test {

// Rows of z and grad_z [2B, C]: view 1 of images 0..B-1, then view 2. z holds floats. The last case has tau = 0.01 and
// a loss of 1.7e-19: 1 - p of the positive has no digit left there.
struct GoldenInfoNce {
  int64_t batch, columns;
  double temperature, margin, loss;
  std::vector<double> z, grad_z;
};

// Rows as above; z holds floats.
struct GoldenBarlowTwins {
  int64_t batch, columns;
  double lambda, eps, loss;
  std::vector<double> z, grad_z;
};

// [samples, channels, height, width]. x is 2 z + 3 for a float z: its last bit is lost in single precision. The running
// variance starts at 1, the running mean at 0.
struct GoldenBatchNorm {
  int64_t samples, channels, height, width;
  double eps, momentum;
  std::vector<double> x, grad_y, gamma, beta;
  std::vector<double> y, grad_x, grad_gamma, grad_beta, running_mean, running_var;
};

// Every case of a file. A file that cannot be read throws, which fails the test. SIMCLR_GOLDEN names another folder than
// tests/golden/ of the source tree (scripts/gpu_check.sh takes the files to machines without the sources).
std::vector<GoldenInfoNce> golden_infonce();
std::vector<GoldenBarlowTwins> golden_barlow_twins();
std::vector<GoldenBatchNorm> golden_batch_norm();

// Rounded to the type that the program takes.
inline std::vector<float> to_float(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace simclr::test
