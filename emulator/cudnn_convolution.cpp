#include "emulator/cudnn_convolution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace simclr::emulator::cudnn {
namespace {

// Which attribute of an operation is what, by pass.
struct OperationNames {
  int x, filter, y, convolution, alpha, beta;
};

OperationNames names_of(cudnnBackendDescriptorType_t pass) {
  switch (pass) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

float to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000U) & ~0x1FFFU);  // to nearest, ties away
}

float load(const Tensor& t, const void* data, int64_t at) {
  if (t.type == CUDNN_DATA_FLOAT) return static_cast<const float*>(data)[at];
  return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[at]) << 16);
}

void store(const Tensor& t, void* data, int64_t at, float value) {
  if (t.type == CUDNN_DATA_FLOAT) {
    static_cast<float*>(data)[at] = value;
    return;
  }
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);  // to nearest, ties to even
  static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>(std::isnan(value) ? 0x7FFFU : rounded >> 16);
}

// Entry i of the first dimension as dense [c, h, w].
void gather(const Tensor& t, const void* data, int64_t i, bool tf32, float* out) {
  for (int64_t c = 0; c < t.dims[1]; ++c)
    for (int64_t h = 0; h < t.dims[2]; ++h)
      for (int64_t w = 0; w < t.dims[3]; ++w) {
        const float v = load(t, data, i * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3]);
        *out++ = tf32 && t.type == CUDNN_DATA_FLOAT ? to_tf32(v) : v;
      }
}

void scatter(const Convolution& v, const Tensor& t, void* data, int64_t i, const float* in) {
  for (int64_t c = 0; c < t.dims[1]; ++c)
    for (int64_t h = 0; h < t.dims[2]; ++h)
      for (int64_t w = 0; w < t.dims[3]; ++w) {
        const int64_t at = i * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3];
        const float old = v.beta == 0.0F ? 0.0F : v.beta * load(t, data, at);
        store(t, data, at, v.alpha * *in++ + old);
      }
}

// c[m][n] += a[m][k] * b[k][n], rows dense; every element sums over k in ascending order.
[[gnu::optimize("O3"), gnu::target_clones("avx512f", "avx2,fma", "default")]] void multiply_add(
    int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {
    float* __restrict c0 = c + i * n;
    float* __restrict c1 = c0 + n;
    float* __restrict c2 = c1 + n;
    float* __restrict c3 = c2 + n;
    for (int64_t p = 0; p < k; ++p) {
      const float a0 = a[i * k + p], a1 = a[(i + 1) * k + p], a2 = a[(i + 2) * k + p], a3 = a[(i + 3) * k + p];
      const float* __restrict row = b + p * n;
      for (int64_t j = 0; j < n; ++j) {
        c0[j] += a0 * row[j];
        c1[j] += a1 * row[j];
        c2[j] += a2 * row[j];
        c3[j] += a3 * row[j];
      }
    }
  }
  for (; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
}

std::vector<float> transpose(const std::vector<float>& a, int64_t rows, int64_t cols) {
  std::vector<float> result(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) result[j * rows + i] = a[i * cols + j];
  return result;
}

// Sizes of the matrix form: filter [K, R], columns [R, P], y [K, P] with R = c*r*s, P = places of y.
struct Sizes {
  int64_t k, r, p;
  explicit Sizes(const Convolution& v)
      : k(v.filter.dims[0]), r(v.filter.dims[1] * v.filter.dims[2] * v.filter.dims[3]), p(v.y.dims[2] * v.y.dims[3]) {}
  size_t columns() const { return static_cast<size_t>(r * p); }
};

// f(element of columns, element of one dense image) for every tap that meets the image.
template <typename F>
void for_each_tap(const Convolution& v, F&& f) {
  const int64_t p = v.y.dims[2] * v.y.dims[3];
  int64_t row = 0;
  for (int64_t c = 0; c < v.x.dims[1]; ++c)
    for (int64_t r = 0; r < v.filter.dims[2]; ++r)
      for (int64_t s = 0; s < v.filter.dims[3]; ++s, ++row)
        for (int64_t oh = 0; oh < v.y.dims[2]; ++oh) {
          const int64_t h = oh * v.stride[0] - v.padding[0] + r * v.dilation[0];
          if (h < 0 || h >= v.x.dims[2]) continue;
          for (int64_t ow = 0; ow < v.y.dims[3]; ++ow) {
            const int64_t w = ow * v.stride[1] - v.padding[1] + s * v.dilation[1];
            if (w < 0 || w >= v.x.dims[3]) continue;
            f(static_cast<size_t>(row * p + oh * v.y.dims[3] + ow),
              static_cast<size_t>((c * v.x.dims[2] + h) * v.x.dims[3] + w));
          }
        }
}

std::vector<float> dense(const Tensor& t, const void* data, int64_t entries, bool tf32) {
  const int64_t each = t.dims[1] * t.dims[2] * t.dims[3];
  std::vector<float> result(entries * each);
  for (int64_t i = 0; i < entries; ++i) gather(t, data, i, tf32, result.data() + i * each);
  return result;
}

std::vector<float> image_of(const Tensor& t, const void* data, int64_t i, bool tf32) {
  std::vector<float> result(t.dims[1] * t.dims[2] * t.dims[3]);
  gather(t, data, i, tf32, result.data());
  return result;
}

void forward(const Convolution& v, const void* x, const void* filter, void* y, bool tf32) {
  const Sizes n(v);
  const std::vector<float> weights = dense(v.filter, filter, n.k, tf32);  // [K, R]
  for (int64_t i = 0; i < v.x.dims[0]; ++i) {
    const std::vector<float> image = image_of(v.x, x, i, tf32);
    std::vector<float> columns(n.columns()), out(static_cast<size_t>(n.k * n.p));
    for_each_tap(v, [&](size_t column, size_t pixel) { columns[column] = image[pixel]; });
    multiply_add(n.k, n.p, n.r, weights.data(), columns.data(), out.data());
    scatter(v, v.y, y, i, out.data());
  }
}

void backward_data(const Convolution& v, void* grad_x, const void* filter, const void* grad_y, bool tf32) {
  const Sizes n(v);
  const std::vector<float> weights = transpose(dense(v.filter, filter, n.k, tf32), n.k, n.r);  // [R, K]
  for (int64_t i = 0; i < v.x.dims[0]; ++i) {
    const std::vector<float> grad = image_of(v.y, grad_y, i, tf32);  // [K, P]
    std::vector<float> columns(n.columns()), image(static_cast<size_t>(v.x.dims[1] * v.x.dims[2] * v.x.dims[3]));
    multiply_add(n.r, n.p, n.k, weights.data(), grad.data(), columns.data());
    for_each_tap(v, [&](size_t column, size_t pixel) { image[pixel] += columns[column]; });
    scatter(v, v.x, grad_x, i, image.data());
  }
}

void backward_filter(const Convolution& v, const void* x, void* grad_filter, const void* grad_y, bool tf32) {
  const Sizes n(v);
  std::vector<float> sum(n.k * n.r);  // [K, R]
  for (int64_t i = 0; i < v.x.dims[0]; ++i) {
    const std::vector<float> image = image_of(v.x, x, i, tf32), grad = image_of(v.y, grad_y, i, tf32);  // grad [K, P]
    std::vector<float> columns(n.columns());
    for_each_tap(v, [&](size_t column, size_t pixel) { columns[column] = image[pixel]; });
    multiply_add(n.k, n.r, n.p, grad.data(), transpose(columns, n.r, n.p).data(), sum.data());
  }
  for (int64_t k = 0; k < n.k; ++k) scatter(v, v.filter, grad_filter, k, sum.data() + k * n.r);
}

}  // namespace

size_t Tensor::extent_bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < 4; ++i) last += (dims[i] - 1) * strides[i];
  return static_cast<size_t>(last + 1) * element_bytes();
}

const Tensor& Convolution::output() const {
  return pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? y
         : pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? x
                                                                                : filter;
}

Tensor read_tensor(const Object& tensor) {
  Tensor t{.type = tensor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
           .id = tensor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
           .alignment = tensor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)};
  const auto dims = tensor.values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  std::copy_n(dims.begin(), 4, t.dims.begin());
  std::copy_n(strides.begin(), 4, t.strides.begin());
  return t;
}

Convolution read_convolution(const Object& operation) {
  const OperationNames names = names_of(operation.type);
  const ObjectPtr c = operation.object(names.convolution);
  Convolution v{.pass = operation.type,
                .x = read_tensor(*operation.object(names.x)),
                .filter = read_tensor(*operation.object(names.filter)),
                .y = read_tensor(*operation.object(names.y)),
                .alpha = operation.value<float>(names.alpha),
                .beta = operation.value<float>(names.beta)};
  const auto padding = c->values<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto stride = c->values<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = c->values<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  for (size_t i = 0; i < 2; ++i) v.padding[i] = padding[i], v.stride[i] = stride[i], v.dilation[i] = dilation[i];
  return v;
}

void compute(const Convolution& v, const void* x, const void* filter, const void* y, void* output, bool tensor_cores) {
  if (v.pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return forward(v, x, filter, output, tensor_cores);
  if (v.pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return backward_data(v, output, filter, y, tensor_cores);
  backward_filter(v, x, output, y, tensor_cores);
}

}  // namespace simclr::emulator::cudnn
