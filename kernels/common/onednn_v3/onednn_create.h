// Primitive descriptors of oneDNN 3.x; onednn_v2/ has the same functions for 2.x. CMake chooses the folder.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace simclr::onednn {

struct ConvolutionArgs {
  dnnl::memory::desc src, weights, dst;
  dnnl::memory::dims strides, padding_left, padding_right;
};

inline dnnl::convolution_forward::primitive_desc describe_forward(const dnnl::engine& engine, dnnl::prop_kind kind,
                                                                  dnnl::algorithm algorithm, const ConvolutionArgs& a,
                                                                  const dnnl::primitive_attr& attr) {
  return {engine, kind, algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left, a.padding_right, attr};
}

inline dnnl::convolution_backward_data::primitive_desc describe_backward_data(
    const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvolutionArgs& a, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left, a.padding_right, forward, attr};
}

inline dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvolutionArgs& a, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left, a.padding_right, forward, attr};
}

// bias may be an empty descriptor.
inline dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const dnnl::memory::desc& src,
                                                    const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                                    const dnnl::memory::desc& dst) {
  if (bias.is_zero()) return {engine, src, weights, dst};
  return {engine, src, weights, bias, dst};
}

}  // namespace simclr::onednn
