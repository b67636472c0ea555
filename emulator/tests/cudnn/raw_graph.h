// cuDNN's backend API with nothing between: objects as the C calls make them. For tests of the API's own rules, so that
// they share no code with the program's wrapper. Works with the real library and with the fake.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace simclr::test {

using Handle = cudnnBackendDescriptor_t;

template <typename T>
cudnnStatus_t set(Handle object, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
  return cudnnBackendSetAttribute(object, name, type, static_cast<int64_t>(values.size()), values.data());
}
inline cudnnStatus_t set_integers(Handle object, cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  return set(object, name, CUDNN_TYPE_INT64, values);
}
inline cudnnStatus_t set_object(Handle object, cudnnBackendAttributeName_t name, Handle value) {
  return set(object, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector<Handle>{value});
}

// Destroys what it made. Nothing is checked here: statuses are the tests' own business.
class Objects {
 public:
  Objects() = default;
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    for (const Handle object : made_) cudnnBackendDestroyDescriptor(object);
  }
  Handle make(cudnnBackendDescriptorType_t type) {
    Handle object = nullptr;
    if (cudnnBackendCreateDescriptor(type, &object) != CUDNN_STATUS_SUCCESS) return nullptr;
    made_.push_back(object);
    return object;
  }

 private:
  std::vector<Handle> made_;
};

// left_out: an attribute not to be set.
struct TensorFields {
  std::vector<int64_t> dims{2, 8, 4, 4}, strides{128, 1, 32, 8};  // [n, c, h, w] with c innermost
  int64_t id = 1, alignment = 16;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int left_out = -1;
};
inline Handle make_tensor(Objects& objects, const TensorFields& f) {
  const Handle t = objects.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (f.left_out != CUDNN_ATTR_TENSOR_DATA_TYPE)
    set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{f.type});
  if (f.left_out != CUDNN_ATTR_TENSOR_DIMENSIONS) set_integers(t, CUDNN_ATTR_TENSOR_DIMENSIONS, f.dims);
  if (f.left_out != CUDNN_ATTR_TENSOR_STRIDES) set_integers(t, CUDNN_ATTR_TENSOR_STRIDES, f.strides);
  if (f.left_out != CUDNN_ATTR_TENSOR_UNIQUE_ID) set_integers(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, {f.id});
  if (f.left_out != CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) set_integers(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {f.alignment});
  return t;
}

struct ConvolutionFields {
  int64_t padding = 1, stride = 1, dilation = 1;
  int left_out = -1;
};
inline Handle make_convolution(Objects& objects, const ConvolutionFields& f) {
  const Handle c = objects.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION});
  set_integers(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {f.padding, f.padding});
  set_integers(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {f.padding, f.padding});
  if (f.left_out != CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) set_integers(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  if (f.left_out != CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)
    set_integers(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {f.stride, f.stride});
  if (f.left_out != CUDNN_ATTR_CONVOLUTION_DILATIONS)
    set_integers(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, {f.dilation, f.dilation});
  return c;
}

struct PassAttributes {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};
inline constexpr PassAttributes kForwardPass{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
inline constexpr PassAttributes kDataPass{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
inline constexpr PassAttributes kFilterPass{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

struct OperationFields {
  Handle x = nullptr, filter = nullptr, y = nullptr, convolution = nullptr;  // null: left out
  float alpha = 1.0F, beta = 0.0F;
};
inline Handle make_operation(Objects& objects, const PassAttributes& pass, const OperationFields& f) {
  const Handle o = objects.make(pass.type);
  for (const auto& [name, value] : {std::pair{pass.x, f.x}, std::pair{pass.filter, f.filter}, std::pair{pass.y, f.y},
                                    std::pair{pass.convolution, f.convolution}})
    if (value) set_object(o, name, value);
  set(o, pass.alpha, CUDNN_TYPE_FLOAT, std::vector{f.alpha});
  set(o, pass.beta, CUDNN_TYPE_FLOAT, std::vector{f.beta});
  return o;
}

}  // namespace simclr::test
