// The network of a run: encoder and projector, their parameters, forward and backward over this rank's shards.
#pragma once

#include <string>

#include "src/nn/projector.h"
#include "src/nn/resnet.h"

namespace simclr {

class Model {
 public:
  // Allocates everything; weights are initialized from the seed.
  Model(Context& context, Collectives& collectives, const ShardGeometry& geometry, const ModelSettings& settings,
        int64_t image_size, uint64_t seed, const PlanChoices& plans = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Train mode. x [shards, 2n, 3, size, size] must not change until backward. Returns z [shards*2n, C] (padded stride).
  ConstMatrix forward(ConstImages x, const BetweenLayers& between = nothing_between);
  // Sets all gradients: per-rank ones (still to be summed over ranks) and those of batch norm (global already). ready
  // is called as parts of the network are done, from its end to its beginning; the last call names the first parameter
  // of the store.
  void backward(ConstMatrix grad_z, const GradientsReady& ready = ignore_ready);
  // Adds the last forward's batch to the running statistics, unless the device flag *skip is set.
  void update_running_statistics(const int* skip);

  // Evaluation mode: returns h [shards*2n, D]; no communication. Call it between steps only: within one it would
  // overwrite what backward needs.
  ConstMatrix encode(ConstImages x);
  // Evaluation mode: z [shards*2n, C] of h, which encode() returned last. Between steps only.
  ConstMatrix project(ConstMatrix h);

  ParameterStore& store() { return store_; }
  const ParameterStore& store() const { return store_; }
  int64_t representation_size() const { return encoder_.out_features(); }  // D
  size_t activation_bytes() const { return arena_.bytes(); }               // feature maps and their gradients
  double step_flops() const;  // forward and backward of this rank, about 3 x forward
  std::string describe() const;
  std::string describe_plans() const { return encoder_.describe_plans(); }

 private:
  ParameterStore store_;
  ActivationArena arena_;
  LayerContext lc_;
  ModelSettings settings_;
  ResNet encoder_;
  Projector projector_;
  ConstMatrix h_;
};

}  // namespace simclr
