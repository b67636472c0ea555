// What the tests of the network share: a small network with its cut of the global batch, inputs that are functions of
// their place in the global batch (so that every cut sees the same), and snapshots. Nothing here computes a layer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/comm/gradient_reducer.h"
#include "src/nn/model.h"
#include "tests/kernels/kernel_support.h"
#include "tests/nn/reference_network.h"

namespace simclr::test {

struct NetworkCase {
  std::string name;
  EncoderSettings encoder{.depth = 10, .width = 8};
  ProjectorSettings projector{.layers = 2, .hidden = 12, .output = 6};
  BatchNormSettings batch_norm{};
  int64_t image_size = 8, shards = 2, images_per_shard = 2;

  ModelSettings settings() const { return {encoder, projector, batch_norm}; }
  int64_t samples() const { return 2 * images_per_shard; }
  int64_t rows() const { return shards * samples(); }
  int64_t image_elements() const { return 3 * image_size * image_size; }
  ShardGeometry geometry(int rank, int ranks) const {
    const int64_t local = shards / ranks;
    return {.shards = shards, .local_shards = local, .first_shard = rank * local, .images_per_shard = images_per_shard};
  }
};

inline std::vector<float> dense(const ConstMatrix& matrix) {  // [rows, cols] without the padding
  const auto m = matrix.as<float>();
  std::vector<float> out;
  for (int64_t i = 0; i < m.rows; ++i) out.insert(out.end(), m.row(i), m.row(i) + m.cols);
  return out;
}

inline bool padding_is_zero(const ConstMatrix& matrix) {
  const auto m = matrix.as<float>();
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t c = m.cols; c < m.stride; ++c)
      if (m.row(i)[c] != 0.0F) return false;
  return true;
}

// Images of the whole global batch [rows, 3, size, size], and a gradient of z [rows, C].
inline std::vector<float> all_images(const NetworkCase& c, uint32_t seed) {
  return test::random_values(c.rows() * c.image_elements(), seed);
}
inline std::vector<float> all_grad_z(const NetworkCase& c, uint32_t seed) {
  return test::random_values(c.rows() * c.projector.output, seed + 1000);
}

// The model of one rank with its part of the images.
class RankNetwork {
 public:
  RankNetwork(const NetworkCase& c, Collectives& collectives, int threads = 1, uint64_t seed = 7)
      : case_(c),
        geometry_(c.geometry(collectives.rank(), collectives.size())),
        context_(threads),
        model_(std::make_unique<Model>(context_, collectives, geometry_, c.settings(), c.image_size, seed)),
        reducer_(collectives),
        images_(static_cast<size_t>(geometry_.local_rows() * c.image_elements()) * sizeof(float)),
        grad_z_(static_cast<size_t>(geometry_.local_rows() * padded_cols(c.projector.output)) * sizeof(float)) {}

  Model& model() { return *model_; }
  ParameterStore& store() { return model_->store(); }

  // Scales, offsets, biases and running statistics leave their starts of 0 and 1, where many mistakes do not show.
  void randomize_vectors() {
    uint32_t stream = 1;
    for (auto& p : store().parameters()) {
      if (!p.one_dimensional()) continue;
      const bool scale = p.name.ends_with(".weight");
      fill({p.value, static_cast<size_t>(p.elements)}, ++stream, scale ? 0.5F : -0.5F, scale ? 1.5F : 0.5F);
    }
    for (auto& b : store().buffers()) {
      const bool var = b.name.ends_with("_var");
      fill({b.value, static_cast<size_t>(b.elements)}, ++stream, var ? 0.5F : -0.5F, var ? 2.0F : 0.5F);
    }
  }

  // The rank's images of the batch `seed`; they stay until the next call.
  ConstImages images(uint32_t seed) {
    const auto all = all_images(case_, seed);
    const auto to = images_.as<float>();
    const int64_t skip = geometry_.first_shard * case_.samples() * case_.image_elements();
    std::copy_n(all.begin() + skip, to.size(), to.begin());
    return {to.data(), geometry_.local_shards, case_.samples(), 3, case_.image_size, case_.image_size};
  }
  ConstMatrix grad_z(uint32_t seed) {
    const int64_t cols = case_.projector.output, skip = geometry_.first_shard * case_.samples() * cols;
    const auto all = all_grad_z(case_, seed);
    const FloatMatrix m{grad_z_.as<float>().data(), geometry_.local_rows(), cols, padded_cols(cols)};
    for (int64_t i = 0; i < m.rows; ++i) std::copy_n(all.begin() + skip + i * cols, cols, m.row(i));
    return m;
  }

  // z of the rank's rows; the gradients in the store are then those of sum(grad_z * z) over the GLOBAL batch.
  std::vector<float> forward_backward(uint32_t seed) {
    const auto z = dense(model_->forward(images(seed)));
    model_->backward(grad_z(seed));
    reducer_.reduce(store().per_rank_gradients());
    return z;
  }
  // A whole training step, with plain gradient descent for an optimizer. Returns z.
  std::vector<float> step(uint32_t seed) {
    const auto z = forward_backward(seed);
    const int skip = 0;
    for (auto& p : store().parameters())
      for (int64_t k = 0; k < p.elements; ++k) p.value[k] -= 0.01F * p.grad[k];
    model_->update_running_statistics(&skip);
    return z;
  }

  std::vector<float> gradients() const {  // gaps included
    const auto all = model_->store().gradients();
    return {all.begin(), all.end()};
  }
  std::vector<float> values() const {
    std::vector<float> out;
    for (const auto& p : model_->store().parameters()) out.insert(out.end(), p.value, p.value + p.elements);
    return out;
  }
  std::vector<float> running_statistics() const {
    std::vector<float> out;
    for (const auto& b : model_->store().buffers()) out.insert(out.end(), b.value, b.value + b.elements);
    return out;
  }
  Tensors tensors() const {  // parameters and running statistics, for the reference
    Tensors out;
    for (const auto& p : model_->store().parameters()) out[p.name] = {p.value, p.value + p.elements};
    for (const auto& b : model_->store().buffers()) out[b.name] = {b.value, b.value + b.elements};
    return out;
  }

 private:
  static void fill(std::span<float> to, uint32_t seed, float low, float high) {
    const auto from = test::random_values(static_cast<int64_t>(to.size()), seed, low, high);
    std::copy(from.begin(), from.end(), to.begin());
  }

  NetworkCase case_;
  ShardGeometry geometry_;
  Context context_;
  std::unique_ptr<Model> model_;
  GradientReducer reducer_;
  Buffer images_, grad_z_;
};

}  // namespace simclr::test
