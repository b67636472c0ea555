// The settings of a run that takes milliseconds: ten steps of four images a shard, two shards.
#pragma once

#include "src/config/settings.h"

namespace simclr {

inline constexpr int64_t kSmallSteps = 10;

inline Settings small_settings() {
  Settings s;
  s.run.threads = 1;
  s.data.image_size = 8;
  s.data.workers = 0;
  s.data.synthetic = {.train_images = 40, .test_images = 8};
  s.model.encoder.depth = 10;
  s.model.encoder.width = 8;
  s.model.projector.hidden = 8;
  s.model.projector.output = 8;
  s.loss.algorithm = LossAlgorithm::kStreaming;
  s.train.global_batch = 8;
  s.train.shards = 2;
  s.train.max_steps = kSmallSteps;
  s.checkpoint.every_epochs = 0;
  s.evaluate.knn.every_epochs = 0;
  return s;
}

}  // namespace simclr
