// `simclr_train` without a subcommand: a training run from settings to exit code. Builds what the run consists of in
// the order in which it depends on each other, then hands over to the Trainer. docs/walkthrough.md follows it.
#pragma once

#include "src/config/command_line.h"
#include "src/runtime/runtime.h"

namespace simclr {

// Trains, or only prints with --print-config and --dry-run, and shuts the runtime down. Collective. Throws Error or
// AgreedError.
ExitCode train(const CommandLine& command_line, Runtime& runtime);

}  // namespace simclr
