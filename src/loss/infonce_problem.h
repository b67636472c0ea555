// What both algorithms of InfoNCE make of settings, shape and rank: the rank's part of the problem, and its line in the
// log.
#pragma once

#include "kernels/infonce/infonce.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {

InfoNceProblem make_infonce_problem(const Collectives& collectives, const LossSettings& settings,
                                    const LossShape& shape);

// For a profile: `products` products of all anchors of this rank with all keys (one forward, two backward in the
// textbook's form), whatever an algorithm saves or computes again.
Work infonce_work(const InfoNceProblem& problem, int products);

// ContrastiveLoss::describe()
std::string describe_infonce(const Collectives& collectives, const LossShape& shape);

}  // namespace simclr
