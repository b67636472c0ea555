// Whether a run may resume from a checkpoint, and what the log warns of when it does. Rank 0, before anything is loaded.
#pragma once

#include <filesystem>

#include "src/checkpoint/training_state.h"
#include "src/config/settings.h"

namespace simclr {

inline constexpr const char* kDataKey = "data_sha256";  // in a checkpoint's environment: the training images
inline constexpr const char* kEvaluationDueKey = "evaluation_due";  // of a run that was stopped within an evaluation
inline constexpr const char* kInitKey = "init_sha256";  // of a run with model.init_from: the weights it started from

// saved: of the checkpoint; mine: what this run records; on_cpu: where this run computes. Throws Error: kData for other
// training images and kUsage for other settings, unless resume.allow names them; kUsage for another start; kDevice for
// convolutions that this CPU does not have. Warns of what is allowed but may change bits.
void check_resume(const std::filesystem::path& file, const CheckpointHeader& saved, const CheckpointHeader& mine,
                  const Settings& settings, bool on_cpu);

// Warns of another program version, library, processor or choice of convolutions.
void warn_of_other_environment(const std::filesystem::path& file, const CheckpointHeader& saved,
                               const CheckpointHeader& mine);

}  // namespace simclr
