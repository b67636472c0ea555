// 2-D convolution without bias, forward and both gradients, over the shards of a rank.
//   y[i, o, p, q] = sum_{c, u, v} w[o, c, u, v] * x[i, c, p*stride + u - padding, q*stride + v - padding]
//   grad_x: the transposed convolution of grad_y with w;   grad_w = sum over images and places of grad_y * x
//
// Shapes: x [shards, samples, in, H, W], y [shards, samples, out, H', W'], H' = (H + 2*padding - kernel)/stride + 1,
// w [out, in, kernel, kernel] plain float32 (OIHW, the master weights; each call brings them into the library's form).
// Bits: y and grad_x of a shard depend on that shard alone; grad_w is computed per shard and summed over the rank's
// shards by the ordered tree. No result depends on the number of ranks or threads.
// Padding channels of y and grad_x are zero for a finite sample; NaN or infinity may spread to them within its sample.
// Aliasing: none allowed. Synchronous on the CPU, queued on exec.stream on CUDA. No allocation: needs plan.scratch().
// bf16: x, y and the weights are rounded to bfloat16 (images on the CPU come as float32), sums are float32. On CUDA a
// shard's grad_w is rounded to bfloat16, too (cuDNN writes no other); the sum over shards is float32.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "kernels/conv2d/algorithm.h"

namespace simclr {

struct Conv2dParams {
  int64_t shards = 0, samples = 0;  // samples per shard (2n views)
  int64_t in_channels = 0, out_channels = 0;
  int64_t height = 0, width = 0;  // of the input
  int64_t kernel = 3, stride = 1, padding = 1;
  bool input_is_images = false;                                  // x is plain NCHW images; then there is no grad_x
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto;  // on a CPU

  int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  int64_t weight_elements() const { return out_channels * in_channels * kernel * kernel; }
  double forward_flops() const;  // 2 * multiply-adds of all shards, padding counted as work
};

// The device's own description of the three convolutions of one layer, made once at set-up.
class Conv2dPlan {
 public:
  virtual ~Conv2dPlan() = default;
  const Conv2dParams& params() const { return params_; }
  virtual ScratchNeed scratch() const = 0;
  virtual std::string describe() const = 0;  // which implementations were chosen
  // What was chosen, forward; backward data; backward weights, for make_conv2d_plan() on other ranks and after a
  // resume: "winograd_shared; winograd_shared; winograd" on a CPU.
  virtual std::string choice() const = 0;

 protected:
  explicit Conv2dPlan(const Conv2dParams& params) : params_(params) {}

 private:
  Conv2dParams params_;
};

// choice: another plan's choice(), to compute with the same implementations; Error(kDevice) when they are not here.
// Empty: chosen by params and device alone, never by timing or free memory; Error(kDevice) when params.algorithm is
// winograd and the CPU's library has none.
std::unique_ptr<Conv2dPlan> make_conv2d_plan(const Exec& exec, const Conv2dParams& params,
                                             const std::string& choice = {});

void conv2d_forward(const Exec& exec, const Conv2dPlan& plan, ConstActivation x, const float* weight, Activation y);
void conv2d_forward(const Exec& exec, const Conv2dPlan& plan, ConstImages x, const float* weight, Activation y);
void conv2d_backward_data(const Exec& exec, const Conv2dPlan& plan, ConstActivation grad_y, const float* weight,
                          Activation grad_x);
// grad_weight [out, in, kernel, kernel]: this rank's part of the ordered sum over shards; overwritten.
void conv2d_backward_weights(const Exec& exec, const Conv2dPlan& plan, ConstActivation x, ConstActivation grad_y,
                             float* grad_weight);
void conv2d_backward_weights(const Exec& exec, const Conv2dPlan& plan, ConstImages x, ConstActivation grad_y,
                             float* grad_weight);

}  // namespace simclr
