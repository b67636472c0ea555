// What both algorithms of InfoNCE make of settings, shape and rank: the rank's part of the problem, and its line in the
// log.
#pragma once

#include "kernels/infonce/infonce.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {

InfoNceProblem make_infonce_problem(const Collectives& collectives, const LossSettings& settings,
                                    const LossShape& shape);

// ContrastiveLoss::describe()
std::string describe_infonce(const Collectives& collectives, const LossShape& shape);

}  // namespace simclr
