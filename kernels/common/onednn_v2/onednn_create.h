// Primitive descriptors of oneDNN 2.x; onednn_v3/ has the same functions for 3.x. CMake chooses the folder.
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
  const dnnl::convolution_forward::desc desc(kind, algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left,
                                             a.padding_right);
  return {desc, attr, engine};
}

inline dnnl::convolution_backward_data::primitive_desc describe_backward_data(
    const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvolutionArgs& a, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_data::desc desc(algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left,
                                                   a.padding_right);
  return {desc, attr, engine, forward};
}

inline dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvolutionArgs& a, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_weights::desc desc(algorithm, a.src, a.weights, a.dst, a.strides, a.padding_left,
                                                      a.padding_right);
  return {desc, attr, engine, forward};
}

// bias may be an empty descriptor.
inline dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const dnnl::memory::desc& src,
                                                    const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                                    const dnnl::memory::desc& dst) {
  if (bias.dims().empty()) return {dnnl::matmul::desc(src, weights, dst), engine};
  return {dnnl::matmul::desc(src, weights, bias, dst), engine};
}

}  // namespace simclr::onednn
