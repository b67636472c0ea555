// What every layer is built with: device, ranks, parameter store, and how the global batch is cut.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/comm/collectives.h"
#include "src/config/settings.h"
#include "src/device/context.h"
#include "src/nn/activation_arena.h"
#include "src/nn/parameter_store.h"
#include "src/nn/plan_choices.h"

namespace simclr {

// The cut of the global batch (DESIGN: S shards belong to the mathematics of a run, the number of ranks does not).
struct ShardGeometry {
  int64_t shards = 0;            // S, of all ranks
  int64_t local_shards = 0;      // S / W
  int64_t first_shard = 0;       // of this rank
  int64_t images_per_shard = 0;  // n

  int64_t samples() const { return 2 * images_per_shard; }             // views per shard
  int64_t local_rows() const { return local_shards * samples(); }      // views on this rank
  int64_t global_rows() const { return shards * samples(); }           // 2B
  int64_t global_images() const { return shards * images_per_shard; }  // B
};

// Train: batch statistics over all ranks. Evaluate: running statistics, no communication.
enum class Mode { kTrain, kEvaluate };

// "layer1.0.conv1" of layer1.0.conv1.weight: what a profile calls its layer.
inline std::string_view layer_of(const Parameter& parameter) {
  return std::string_view(parameter.name).substr(0, parameter.name.rfind('.'));
}

template <typename View>
double bytes_of(const View& view) {
  return static_cast<double>(view.elements()) * static_cast<double>(size_of(view.type));
}

struct LayerContext {
  Context& context;
  Collectives& collectives;
  ParameterStore& store;
  ActivationArena& arena;
  ShardGeometry geometry;
  BatchNormSettings batch_norm;
  PlanChoices plans;
};

}  // namespace simclr
