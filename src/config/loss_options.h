// The options of `simclr_train loss`, as part of the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// Adds the subcommand; what it is given goes into `into`.
CLI::App* describe_loss(CLI::App& app, LossCommand& into);

// What one option alone cannot know. Error(kUsage) with `hint` at its end.
void check_loss_options(const LossCommand& command, std::string_view hint);

}  // namespace simclr
