// From settings to an objective.
#include "src/loss/contrastive_loss.h"

#include "src/loss/barlow_twins_loss.h"
#include "src/loss/infonce_loss.h"
#include "src/loss/streaming_loss.h"

namespace simclr {

std::unique_ptr<ContrastiveLoss> make_loss(Context& context, Collectives& collectives, const LossSettings& settings,
                                           const LossShape& shape) {
  switch (settings.type) {
    case LossType::kInfoNce:
      SIMCLR_CHECK(settings.algorithm != LossAlgorithm::kAuto, "loss.algorithm: auto is not resolved for the device");
      if (settings.algorithm == LossAlgorithm::kStreaming) {
        return std::make_unique<StreamingLoss>(context, collectives, settings, shape);
      }
      return std::make_unique<InfoNceLoss>(context, collectives, settings, shape);
    case LossType::kBarlowTwins:
      return std::make_unique<BarlowTwinsLoss>(context, collectives, settings, shape);
  }
  fail(ExitCode::kOther, "no loss of type {}", static_cast<int>(settings.type));
}

}  // namespace simclr
