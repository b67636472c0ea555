// Non-owning views of tensors. The leading dimension of everything per-sample is the shard: a rank holds `shards`
// consecutive shards of `samples` samples each (2n views in training), and sums over samples are kept per shard.
// A view whose type is kBfloat16 holds elements of that type: its pointers are then addresses and not to be counted in
// floats (element_address() counts, stored_as() turns them into what they are).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/data_type.h"

namespace simclr {

// Channels of feature maps are stored in blocks of this many: 16 with AVX-512, else 8 (one vector register). The last
// block is padded with zeros, which stay zero through every op. Constant within a process.
int64_t channel_block();
inline constexpr int64_t kMaxChannelBlock = 16;
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Feature maps [shards, samples, channels, height, width]. Memory order belongs to the device:
// CPU nChw16c or nChw8c, i.e. [shards*samples, ceil(channels/block), height, width, block]; CUDA NHWC, i.e.
// [shards*samples, height, width, padded_channels].
template <typename T>
struct ActivationView {
  T* data = nullptr;
  int64_t shards = 0, samples = 0, channels = 0, height = 0, width = 0;
  DataType type = DataType::kFloat32;

  int64_t padded_channels() const { return round_up(channels, channel_block()); }
  int64_t sample_elements() const { return padded_channels() * height * width; }
  int64_t shard_elements() const { return samples * sample_elements(); }
  int64_t elements() const { return shards * shard_elements(); }
  T* sample(int64_t i) const { return element_address(data, i * sample_elements(), type); }  // i in [0, shards*samples)
  T* shard(int64_t s) const { return element_address(data, s * shard_elements(), type); }
  operator ActivationView<const T>() const requires(!std::is_const_v<T>) {
    return {data, shards, samples, channels, height, width, type};
  }
  template <typename U>
  bool same_shape(const ActivationView<U>& o) const {
    return shards == o.shards && samples == o.samples && channels == o.channels && height == o.height &&
           width == o.width && type == o.type;
  }
};
using Activation = ActivationView<float>;
using ConstActivation = ActivationView<const float>;

// Network input [shards, samples, channels, height, width]. CPU: plain NCHW, no padding, which is what the functions
// below count. CUDA: NHWC with kCudaImageChannels channels (cuda_exec.h), those beyond `channels` zero.
template <typename T>
struct ImagesView {
  T* data = nullptr;
  int64_t shards = 0, samples = 0, channels = 0, height = 0, width = 0;
  DataType type = DataType::kFloat32;

  int64_t sample_elements() const { return channels * height * width; }
  int64_t shard_elements() const { return samples * sample_elements(); }
  int64_t elements() const { return shards * shard_elements(); }
  T* sample(int64_t i) const { return element_address(data, i * sample_elements(), type); }
  T* shard(int64_t s) const { return element_address(data, s * shard_elements(), type); }
  operator ImagesView<const T>() const requires(!std::is_const_v<T>) {
    return {data, shards, samples, channels, height, width, type};
  }
};
using Images = ImagesView<float>;
using ConstImages = ImagesView<const float>;

// Row-major matrix [rows, cols], rows `stride` elements apart (stride >= cols). Inside the network the stride is
// padded_cols(cols) and the padding is zero, so that a matrix is also an activation of height and width 1.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  DataType type = DataType::kFloat32;

  T* row(int64_t i) const { return element_address(data, i * stride, type); }
  int64_t elements() const { return rows * stride; }
  MatrixView slice(int64_t first, int64_t count) const { return {row(first), count, cols, stride, type}; }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, stride, type}; }
};
using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

inline int64_t padded_cols(int64_t cols) {
  return round_up(cols, channel_block());
}

// The other face of a matrix in the network: rows = shards * samples.
template <typename T>
ActivationView<T> as_activation(const MatrixView<T>& m, int64_t shards) {
  return {m.data, shards, m.rows / shards, m.cols, 1, 1, m.type};
}

}  // namespace simclr
