// What every layer is constructed with: device, collectives, parameter store, arena, and how the global batch is cut.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/common/numbers.h"
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

// The layer's name in profiles: "layer1.0.conv1" for the parameter layer1.0.conv1.weight.
inline std::string_view layer_of(const Parameter& parameter) {
  return std::string_view(parameter.name).substr(0, parameter.name.rfind('.'));
}

template <typename View>
double bytes_of(const View& view) {
  return as_double(view.elements()) * as_double(size_of(view.type()));
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
