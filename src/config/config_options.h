// --config and --set: the same for training and for every subcommand that works with a configuration.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>

#include "src/config/command_line.h"

namespace simclr {

// Adds both options; what they are given goes into `into`. needed_for: "needed to train", the end of the help's line.
void describe_config(CLI::App& app, ConfigSource& into, std::string_view needed_for);

// What is written must not be what is read ("": nothing). Error(kUsage) with `hint` at its end.
void check_not_input(const std::string& written, std::initializer_list<std::string> inputs, std::string_view hint);

}  // namespace simclr
