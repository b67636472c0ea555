// One convolution as a cuDNN operation graph, and the choice of the plan that computes it (backend API; host code
// only). Tensors are NHWC, filters KRSC, channels as the caller pads them; compute type float32.
//
// The choice is a function of the convolution and of the device's properties, never of free memory or of timing: the
// first entry of heuristic mode A (then of mode FALLBACK) whose engine passes the filters, whose plan finalizes and
// whose workspace is within kWorkspaceCap. The filters:
//   all     no CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, no REDUCED_PRECISION_REDUCTION
//   fp32    also no TENSOR_CORE, no DOWN_CONVERT_INPUTS
// A plan has a name (cudnn_plan_name.h) from which the same plan is made again: on another rank, or after a resume. Two
// devices of one model may rank engines differently (clocks), so rank 0 chooses and the others follow.
// bf16: cuDNN has no engine that writes a float32 filter gradient of bfloat16 tensors, so that one is bfloat16 too
// (accumulated in float32).
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/data_type.h"
#include "kernels/conv2d/cudnn_descriptor.h"

namespace simclr::cudnn {

inline constexpr int64_t kWorkspaceCap = int64_t{256} << 20;  // bytes; part of what decides the bits of a result

enum class ConvPass { kForward, kBackwardData, kBackwardFilter };
constexpr size_t index_of(ConvPass pass) {  // of arrays by ConvPass
  return static_cast<size_t>(pass);
}

// Channels as stored, padding included; the tensors are dense.
struct ConvShape {
  int64_t samples = 0, in_channels = 0, out_channels = 0, height = 0, width = 0;  // of the input
  int64_t kernel = 3, stride = 1, padding = 1;

  int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

// "forward bf16 [64, 32, 32, 16] -> 32, kernel 3, stride 1, padding 1", for messages.
struct ConvRequest {
  ConvPass pass = ConvPass::kForward;
  Precision precision = Precision::kFp32;  // storage float32, float32, bfloat16
  ConvShape shape;

  std::string text() const;
};

// What a plan is made for: the device of a handle, or the description of a device that need not be here.
class PlanTarget {
 public:
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  // The JSON of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION; cuDNN 9.8 or later. Throws when the library refuses it.
  static PlanTarget from_properties(const std::string& json);

  void apply(Descriptor& descriptor, cudnnBackendAttributeName_t properties) const;  // heuristics, engine
  void apply_to_plan(Descriptor& plan) const;                                        // also the handle
  cudnnHandle_t handle() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::vector<Descriptor> properties_;  // none or one
};

class ConvPlan {
 public:
  // The first plan that passes; throws Error(kDevice), naming the convolution and what was refused, if there is none.
  static ConvPlan choose(const PlanTarget& target, const ConvRequest& request);
  // The plan of that name; throws if this library has no such engine, or it no longer passes the filters.
  static ConvPlan from_name(const PlanTarget& target, const ConvRequest& request, const std::string& name);

  const ConvRequest& request() const { return request_; }
  const std::string& name() const { return name_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Queues the convolution on the handle's stream; the filter is w or, in the backward filter pass, its gradient; x (y)
  // is the gradient in the backward data pass (both backward passes). All 16-byte aligned; overwrites the pass's
  // output.
  void run(cudnnHandle_t handle, void* x, void* filter, void* y, void* workspace) const;

 private:
  ConvPlan(const ConvRequest& request, std::vector<Descriptor> parts, Descriptor plan);

  ConvRequest request_;
  std::string name_;
  int64_t workspace_bytes_ = 0;
  std::vector<Descriptor> parts_;  // what the plan refers to
  Descriptor plan_;
};

// Whether an engine with these notes may compute in this precision.
bool passes_filters(Precision precision, const std::vector<cudnnBackendNumericalNote_t>& notes);

}  // namespace simclr::cudnn
