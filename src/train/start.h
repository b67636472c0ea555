// The start of a run up to its device: settings, device and run folder, each agreed on by all ranks. Every function is
// collective and throws AgreedError.
#pragma once

#include <filesystem>
#include <optional>

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"
#include "src/train/recorded_plans.h"

namespace simclr {

// Every rank reads its file and compares each key with rank 0's. The runtime has the communicator of train.reduction
// afterwards.
Settings agree_on_settings(const CommandLine& line, Runtime& runtime);

// The device that the settings, and --profile, can be computed on.
DeviceDecision choose_training_device(const CommandLine& line, const Settings& settings, Runtime& runtime);

// The run folder with its lock, log file and watchdog. Leaves config.yaml and status.json as they are.
std::filesystem::path open_run_folder(const CommandLine& line, const Settings& settings, Runtime& runtime);

// A mistyped model.init_from is reported before the data set is read, which may take minutes. Whether its tensors fit
// is checked once the network exists. A run that resumes from a checkpoint does not need the file.
void check_start_weights(const std::filesystem::path& folder, const CommandLine& line, const Settings& settings,
                         Runtime& runtime);

// The models of what computes: bits are promised on one. The host's belongs to it on a GPU too: it draws the initial
// weights and the views.
std::string processor_of(const Context& context);

// With reduction ordered: one processor model and one set of libraries on all ranks. Rank 0 warns of a binding of cores
// that does not suit run.threads.
void require_equal_machines(const Settings& settings, Runtime& runtime);

// The convolution plans of the checkpoint that this run resumes from, on rank 0: with them its bits continue.
std::optional<RecordedPlans> plans_of_checkpoint(const std::filesystem::path& folder, const CommandLine& line,
                                                 const Settings& settings, Runtime& runtime);

}  // namespace simclr
