// --config and --set: the same for training and for every subcommand that works with a configuration.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// Adds both options; what they are given goes into `into`. needed_for: "needed to train", the end of the help's line.
void describe_config(CLI::App& app, ConfigSource& into, std::string_view needed_for);

}  // namespace simclr
