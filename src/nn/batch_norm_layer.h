// Batch norm over the global batch: the op kernels/batch_norm, its parameters and running statistics, and the two sums
// over ranks (one in forward, one in backward) that make the batch global. The arithmetic is the op's.
#pragma once

#include <string>

#include "kernels/batch_norm/batch_norm.h"
#include "src/nn/layer_context.h"

namespace simclr {

class BatchNormLayer {
 public:
  // height and width are 1 for a matrix.
  BatchNormLayer(const LayerContext& lc, const std::string& name, int64_t channels, int64_t height, int64_t width);

  struct Fused {
    bool relu = false;
    ConstElements residual{};  // added before ReLU; shape and layout of x
  };
  void forward(Mode mode, ConstActivation x, const Fused& fused, Activation y);

  // relu_y: the output of forward if ReLU was fused, else none. masked, if given, receives grad_y where relu_y > 0
  // and 0 elsewhere (may be grad_y itself). Sets the gradients of weight and bias, which are then global.
  void backward(ConstActivation grad_y, ConstActivation x, ConstElements relu_y, Elements masked, Activation grad_x);

  // skip: a device flag as for the optimizer's update; nothing changes when it is not 0 (a non-finite step).
  void update_running_statistics(const int* skip);

  std::string_view name() const { return layer_of(*weight_); }  // layer1.0.bn1

  // weight = gamma, bias = 0, running mean 0 and variance 1.
  void initialize(float gamma);

 private:
  OpName named(std::string_view op) const { return {.kind = OpKind::kBatchNorm, .layer = name(), .op = op}; }

  Context* context_;
  Collectives* collectives_;
  BatchNormSettings settings_;
  int groups_;
  Parameter *weight_, *bias_;
  NamedBuffer *running_mean_, *running_var_;
  Buffer mean_, inv_std_, var_, sums_;
  BatchNormStatistics statistics_;
};

}  // namespace simclr
