// The output of `simclr_train loss`: text or JSON, and the gradient as the data of a .npy file. Sums have a fixed order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/check_loss/views.h"
#include "src/config/command_line.h"

namespace simclr {

struct CheckLossResult {
  double loss = 0;
  double grad_norms[2] = {0, 0};  // of view 1 and view 2; only if a gradient is requested
  std::string precision;          // "fp32"
  int ranks = 1;
};

// Lines "key: value"; numbers with all their digits.
std::string describe(const LossCommand& command, const ViewPair& views, const CheckLossResult& result);
// One object on one line.
std::string describe_as_json(const LossCommand& command, const ViewPair& views, const CheckLossResult& result);

double mean_of(std::span<const double> losses);

// grad_z [2N, C] in image order. view is 0 or 1.
template <typename T>
double gradient_norm(std::span<const T> grad_z, int view, const ViewPair& views);
// [N, C] of the files' type.
template <typename T>
std::vector<std::byte> gradient_bytes(std::span<const T> grad_z, int view, const ViewPair& views);

}  // namespace simclr
