// Non-owning views of tensors: an address, a shape, what the elements are stored as and in which order. The leading
// dimension of everything per-sample is the shard: a rank holds `shards` consecutive shards of `samples` samples each
// (2n views in training), and sums over samples are kept per shard.
//
// Each view comes in two kinds. Activation, Images and Matrix know the type of their elements at run time only (data is
// Elements, elements.h): there is no data[i], and as<float>() gives the other kind, whose data is a float*, after a
// check. FloatMatrix is that other kind where a matrix is never anything else.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/elements.h"
#include "kernels/common/layout.h"

namespace simclr {

// Data of a view that converts to another's: Elements to ConstElements, float* to const float* or Elements.
template <typename From, typename To>
concept ViewOf = !std::is_same_v<From, To> && std::is_convertible_v<From, To>;

// Feature maps [shards, samples, channels, height, width], channels padded to padded_channels(). On a CPU kBlocked, on
// CUDA kNhwc.
template <typename Data>
struct ActivationView {
  Data data{};
  int64_t shards = 0, samples = 0, channels = 0, height = 0, width = 0;
  Layout layout = Layout::kBlocked;

  DataType type() const { return type_of(data); }
  // One place a sample: kBlocked and kNhwc are the same.
  bool is_in(Layout wanted) const { return layout == wanted || (height * width == 1 && wanted != Layout::kNchw); }
  int64_t padded_channels() const { return round_up(channels, channel_block()); }
  int64_t sample_elements() const { return padded_channels() * height * width; }
  int64_t shard_elements() const { return samples * sample_elements(); }
  int64_t elements() const { return shards * shard_elements(); }
  Data sample(int64_t i) const { return data + i * sample_elements(); }  // i in [0, shards*samples)
  Data shard(int64_t s) const { return data + s * shard_elements(); }

  template <Element T>
  auto as() const {
    const auto first = data.template as<T>();
    return ActivationView<std::remove_const_t<decltype(first)>>{first,  shards, samples, channels,
                                                                height, width,  layout};
  }
  template <typename To>
  requires ViewOf<Data, To>
  operator ActivationView<To>() const { return {data, shards, samples, channels, height, width, layout}; }
  template <typename Other>
  bool same_shape(const ActivationView<Other>& o) const {
    return shards == o.shards && samples == o.samples && channels == o.channels && height == o.height &&
           width == o.width && type() == o.type() && layout == o.layout;
  }
};
using Activation = ActivationView<Elements>;
using ConstActivation = ActivationView<ConstElements>;

// Network input [shards, samples, channels, height, width]. On a CPU kNchw, on CUDA kNhwc with kCudaImageChannels
// channels.
template <typename Data>
struct ImagesView {
  Data data{};
  int64_t shards = 0, samples = 0, channels = 0, height = 0, width = 0;
  Layout layout = Layout::kNchw;

  DataType type() const { return type_of(data); }
  bool is_in(Layout wanted) const { return layout == wanted; }
  int64_t stored_channels() const { return layout == Layout::kNhwc ? kCudaImageChannels : channels; }
  int64_t sample_elements() const { return stored_channels() * height * width; }
  int64_t shard_elements() const { return samples * sample_elements(); }
  int64_t elements() const { return shards * shard_elements(); }
  Data sample(int64_t i) const { return data + i * sample_elements(); }
  Data shard(int64_t s) const { return data + s * shard_elements(); }

  template <Element T>
  auto as() const {
    const auto first = data.template as<T>();
    return ImagesView<std::remove_const_t<decltype(first)>>{first, shards, samples, channels, height, width, layout};
  }
  template <typename To>
  requires ViewOf<Data, To>
  operator ImagesView<To>() const { return {data, shards, samples, channels, height, width, layout}; }
};
using Images = ImagesView<Elements>;
using ConstImages = ImagesView<ConstElements>;

// Row-major matrix [rows, cols], rows `stride` elements apart (stride >= cols). Inside the network the stride is
// padded_cols(cols) and the padding is zero, so that a matrix is also an activation of height and width 1.
template <typename Data>
struct MatrixView {
  Data data{};
  int64_t rows = 0, cols = 0, stride = 0;

  DataType type() const { return type_of(data); }
  Data row(int64_t i) const { return data + i * stride; }
  int64_t elements() const { return rows * stride; }
  MatrixView slice(int64_t first, int64_t count) const { return {row(first), count, cols, stride}; }

  template <Element T>
  auto as() const {
    const auto first = data.template as<T>();
    return MatrixView<std::remove_const_t<decltype(first)>>{first, rows, cols, stride};
  }
  template <typename To>
  requires ViewOf<Data, To>
  operator MatrixView<To>() const { return {data, rows, cols, stride}; }
};
using Matrix = MatrixView<Elements>;
using ConstMatrix = MatrixView<ConstElements>;
using FloatMatrix = MatrixView<float*>;
using ConstFloatMatrix = MatrixView<const float*>;

// The other face of a matrix in the network: rows = shards * samples.
template <typename Data>
ActivationView<Data> as_activation(const MatrixView<Data>& m, int64_t shards) {
  return {m.data, shards, m.rows / shards, m.cols, 1, 1};
}

}  // namespace simclr
